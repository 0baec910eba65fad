"""The command line: parses, calls a public function, prints what it returns.

Each command has a file of its name. ``run`` has the parser of all and handles errors;
``options``, ``inputs`` and ``output`` are shared; ``small`` reads small files.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.cli.run import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.cli",
    run="main",
)
