"""LibreOffice without a screen, which answers rows by the workbook of a model.

It needs LibreOffice Calc and a Python that can talk to it: of Debian the packages
``libreoffice-calc`` and ``python3-uno``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np

from steelyard.export.check import Scored
from steelyard.export.excel import to_excel
from steelyard.export.plan import Interaction, Sum
from steelyard.export.reading import plan_of

# What the other Python runs: a line of JSON for each workbook, and one back.
_PROGRAM = """
import json, sys, time, uno
from com.sun.star.beans import PropertyValue
here = uno.getComponentContext()
made = here.ServiceManager.createInstanceWithContext
resolver = made("com.sun.star.bridge.UnoUrlResolver", here)
for _ in range(3000):
    try:
        there = resolver.resolve("uno:pipe,name=%s;urp;StarOffice.ComponentContext")
        break
    except Exception:
        time.sleep(0.1)
desktop = there.ServiceManager.createInstanceWithContext(
    "com.sun.star.frame.Desktop", there)
hidden = PropertyValue()
hidden.Name, hidden.Value = "Hidden", True
for line in sys.stdin:
    path, names, rows, n = json.loads(line)
    book = desktop.loadComponentFromURL("file://" + path, "_blank", 0, (hidden,))
    sheet = book.Sheets.getByName("answer")
    book.enableAutomaticCalculation(False)
    found = [of[0] for of in sheet.getCellRangeByName("A1:A5000").getDataArray()]
    first = found.index("column") + 1
    places = [sheet.getCellByPosition(1, found.index(n, first)) for n in names]
    outputs, answers = sheet.getCellRangeByName("B3:B%%d" %% (2 + n)), []
    for row in rows:
        for place, cell in zip(places, row):
            if cell is None or cell == "":
                place.setFormula("" if cell is None else '=""')
            elif isinstance(cell, str):
                place.setString(cell)
            else:
                place.setValue(cell)
        book.calculate()
        answers.append([of[0] for of in outputs.getDataArray()])
    book.close(True)
    print(json.dumps(answers), flush=True)
"""


class Server:
    """A LibreOffice with a profile of its own; stopped as a context ends.

    Raises
    ------
    FileNotFoundError
        If there is no LibreOffice, or no Python that can talk to it.
    """

    def __init__(self) -> None:
        office, python = shutil.which("soffice"), "/usr/bin/python3"
        can_talk = [python, "-c", "import uno"]
        if office is None or subprocess.run(can_talk, capture_output=True).returncode:
            raise FileNotFoundError("LibreOffice, or python3-uno, is not installed")
        self.folder = Path(tempfile.mkdtemp(prefix="sy-lo-"))
        name = self.folder.name
        command = [office, "--headless", "--norestore", "--nologo"]
        command += [f"-env:UserInstallation=file://{self.folder}/profile"]
        quiet: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        accept = f"--accept=pipe,name={name};urp;"
        self.office = subprocess.Popen(
            [*command, accept], start_new_session=True, **quiet
        )
        pipe = subprocess.PIPE
        program = [python, "-c", _PROGRAM % name]
        self.client = subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True)

    def score(self, clf: Any, X: Any, _: dict[str, Any]) -> Scored:
        """Return classes and probabilities, as an engine of ``export.check`` does."""
        plan, path = plan_of(clf), self.folder / "model.xlsx"
        path.write_bytes(to_excel(clf))
        n_results = 1 + len(clf.classes_) + bool(plan.counted())
        dates = [column.date for column in plan.columns if column.date in {*X}]
        days = np.timedelta64(1, "D")
        X = X.assign(
            **{name: (X[name] - np.datetime64("1899-12-30")) / days for name in dates}
        )
        used = {plan.columns[j].source for j in plan.used()}
        names = [name for name in X if name in used]
        plain = X[names].astype(object).where(X[names].notna(), None)
        rows = [list(map(_plain, row)) for row in plain.itertuples(index=False)]
        given = json.dumps([str(path), names, rows, n_results])
        assert self.client.stdin is not None and self.client.stdout is not None
        self.client.stdin.write(f"{given}\n")
        self.client.stdin.flush()
        answers = json.loads(self.client.stdout.readline())
        return [row[0] for row in answers], [row[1:] for row in answers]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.client:
            self.client.kill()
        os.killpg(self.office.pid, signal.SIGKILL)
        self.office.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, str) else float(cell)


def as_typed(clf: Any, X: Any) -> Any:
    """Return rows in which no number is a cut point in 15 digits and another in more.

    Spreadsheets take the two for equal; nobody types such numbers.
    """
    plan, X = plan_of(clf), X.copy()
    for term in plan.root.terms if isinstance(plan.root, Sum) else ():
        for of in term.sides if isinstance(term, Interaction) else (term,):
            name = plan.columns[of.column].name
            if name in X and X[name].dtype.kind != "M":
                for edge in getattr(of, "edges", ()):
                    is_near = np.isclose(X[name].astype(float), edge, 1e-14, 0.0)
                    X[name] = X[name].mask(is_near, edge)
    return X
