"""Write the page of odd files: ``python studies/odd_files.py docs/odd_files.md``.

The files are those of ``tests/notices/test_odd_files.py``. Of each it is told what
``steelyard fit`` prints, and how many of 300 new rows naive Bayes predicts right: by
the file as ``pandas.read_csv`` reads it, as it is read here, and fixed as is said.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from steelyard import NaiveBayes
from steelyard.cli.run import main as steelyard
from steelyard.io.dataset import read_dataset
from steelyard.notices.notice import in_one_line

ROOT = Path(__file__).resolve().parents[1]
TARGET = "species"
HEAD = """# Odd files

Files as people have them: 120 rows of three species, with one thing wrong in each.
None goes wrong without a word, in Python as in the shell. The tables are written by
`python studies/odd_files.py docs/odd_files.md`, from the files of
`tests/notices/test_odd_files.py`.

Accuracy is that of plain naive Bayes on 300 new rows without faults, in which columns
that they cannot have are empty: trained on what `pandas.read_csv` makes of the file
("plain"), on what is read here ("read"), and on the file after it was fixed as the
notice says ("fixed"). A dash: there is no model, it refuses the new rows, or its
classes have other names.
"""


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    odd = runpy.run_path(str(ROOT / "tests/notices/test_odd_files.py"))
    lines = [HEAD]
    new = odd["birds"](300, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        page = Page(odd, new, Path(folder))
        lines += page.trained("Noticed", odd["NOTICED"])
        lines += page.trained("Read as they are meant", odd["READ"])
        lines += page.written(odd["WRITTEN"])
        lines += page.trained("Refused", odd["REFUSED"])
        lines += page.new_rows(odd["NEW"])
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", "utf-8")


class Page:
    """The tables."""

    def __init__(self, odd: dict[str, Any], new: Any, folder: Path) -> None:
        self._odd, self._new, self._folder = odd, new, folder
        birds = odd["birds"]()
        clf = NaiveBayes().fit(birds.drop(columns=TARGET), birds[TARGET])
        self._clean, self._fixed = clf, _percent(self._accuracy(clf))

    def trained(self, title: str, files: dict[str, Any]) -> list[str]:
        """Return the table of files that are a changed frame."""
        lines = []
        for what, entry in files.items():
            edit = entry[0] if isinstance(entry, tuple) else entry
            path = self._folder / "odd.csv"
            edit(self._odd["birds"]()).to_csv(path, index=False)
            lines.append(self._line(what, path))
        return _table(title, lines)

    def written(self, files: dict[str, Any]) -> list[str]:
        """Return the table of files that are written otherwise."""
        lines = []
        for what, (name, make, _, _) in files.items():
            path = self._folder / name
            path.write_bytes(make(self._odd["birds"]()))
            lines.append(self._line(what, path))
        return _table("Written otherwise", lines)

    def new_rows(self, files: dict[str, Any]) -> list[str]:
        """Return what is said of new rows."""
        lines = ["", "## New rows", "", "| what is wrong | noticed |", "| --- | --- |"]
        for what, (edit, _, _) in files.items():
            rows = edit(self._odd["birds"](60, seed=1)).drop(columns=TARGET)
            lines.append(f"| {what} | {_cell(in_one_line(self._clean.check(rows)))} |")
        return lines

    def _line(self, what: str, path: Path) -> list[str]:
        printed, is_fitted = _printed(path)
        read, fixed = "-", "-"
        if is_fitted:
            data = read_dataset(path, target=TARGET)
            read = self._of(data.table, data.target)
            is_fixed = "noticed" in printed and {*self._new[TARGET]} <= {*data.target}
            fixed = self._fixed if is_fixed else read
        return [what, _cell(printed), self._plain(path), read, fixed]

    def _plain(self, path: Path) -> str:
        try:
            frame = pd.read_csv(path)
            return self._of(frame.drop(columns=TARGET), frame[TARGET])
        except (ValueError, KeyError, AttributeError):
            return "-"

    def _of(self, X: Any, y: Any) -> str:
        try:
            return _percent(self._accuracy(NaiveBayes().fit(X, y)))
        except ValueError:
            return "-"

    def _accuracy(self, clf: Any) -> float:
        if not {*self._new[TARGET]} <= {*clf.classes_.tolist()}:
            raise ValueError("the classes are others")
        rows = self._new.reindex(columns=clf.feature_names_in_)
        return float((clf.predict(rows).astype(str) == self._new[TARGET]).mean())


def _printed(path: Path) -> tuple[str, bool]:
    """Return what the command says, and whether there is a model."""
    out, err = io.StringIO(), io.StringIO()
    command = ["fit", str(path), "--target", TARGET, "--method", "NB", "--no-check"]
    command += ["-o", str(path.with_name("m.json")), "--force"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = steelyard(command)
    noticed = out.getvalue().partition("Noticed\n")[2].partition("\n\n")[0]
    printed = err.getvalue().replace(f"{path.parent}/", "").splitlines()
    printed += [f"noticed: {line[2:]}" for line in noticed.splitlines()]
    return "<br>".join(printed), status == 0


def _table(title: str, lines: list[list[str]]) -> list[str]:
    head = [
        "",
        f"## {title}",
        "",
        "| what is wrong | printed | plain | read | fixed |",
    ]
    rule = "| --- | --- | ---: | ---: | ---: |"
    return [*head, rule, *(f"| {' | '.join(line)} |" for line in lines)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or "nothing"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


if __name__ == "__main__":
    main()
