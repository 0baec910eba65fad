"""Choose the tests that `make test` leaves to `make test-all`, by times of a whole run.

    STEELYARD_TEST_TIMES=times.txt python -m pytest -n 2
    python tools/slow_tests.py times.txt

Times are of a processor, so that other work on the machine does not matter much. The
first test of a module pays for what all of it share; where that is slow and others are
not, the next run says so of the second: times of several runs may be given.
"""

from __future__ import annotations

import sys
from pathlib import Path

SLOW = Path(__file__).parents[1] / "tests" / "slow.txt"

LIMIT = 1.0
"""Seconds above which a test is slow."""


def slow_tests(paths: list[str]) -> list[str]:
    """Return the names of tests that were slow in some run, in order."""
    slow = set()
    for path in paths:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            seconds, _, name = line.partition("\t")
            if float(seconds) > LIMIT:
                slow.add(name)
    return sorted(slow)


if __name__ == "__main__":
    names = slow_tests(sys.argv[1:])
    SLOW.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{len(names)} slow tests")
