"""What README shows of the shell is what the shell prints.

``python tests/test_readme.py`` puts into README what it prints now.
"""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from steelyard.cli.run import main

BLOCK = re.compile(r"(?<=```text\n).*?(?=```)", re.DOTALL)
README = Path(__file__).resolve().parents[1] / "README.md"


def churn(n=1000):
    """Return the table of README: customers, one in three of whom leaves."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"C{k:05}" for k in rng.permutation(n)],
            "contract": rng.choice(["monthly", "yearly", "two years"], n),
            "tenure": rng.integers(0, 72, n),
            "price": rng.uniform(20, 110, n).round(2),
            "calls": rng.poisson(1.2, n),
        }
    )
    odds = 1.6 * (table["contract"] == "monthly") - table["tenure"] / 14
    odds += table["price"] / 40 + 0.7 * table["calls"] - 2.4
    table["price"] = table["price"].where(rng.random(n) > 0.05)
    table["churn"] = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return table


def printed(folder):
    """Return what ``fit`` prints of the table, with one empty line at a time."""
    churn().to_csv(Path(folder, "churn.csv"), index=False)
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        main(["fit", "churn.csv", "--target", "churn"])
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return re.sub(r"\n\n+", "\n\n", "\n".join(lines).strip("\n") + "\n")


def test_readme_shows_what_fit_prints(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "88")
    shown = BLOCK.search(README.read_text("utf-8"))[0]

    def without_time(text):
        return re.sub(r"in [\d.]+ s\b", "in … s", text)

    assert without_time(printed(tmp_path)) == without_time(shown)


if __name__ == "__main__":
    os.environ["COLUMNS"] = "88"
    with tempfile.TemporaryDirectory() as folder:
        text = printed(folder)
    page = README.read_text("utf-8")
    README.write_text(BLOCK.sub(lambda _: text, page, count=1), "utf-8")
