"""A plan as a workbook that answers: inputs, tables of what values add, and formulas.

Formulas are those that Excel, LibreOffice and others have had for long. Text is
compared by EXACT, since ``=`` and MATCH do not tell small letters from capitals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from steelyard._common.loading import import_optional
from steelyard.exceptions import ParameterError
from steelyard.export.plan import (
    UNKNOWN_CELLS,
    Density,
    Grouping,
    Interaction,
    Lookup,
    Plan,
    Sum,
    Term,
    about,
    refuse_intervals,
    refuse_large,
    refuse_texts,
)
from steelyard.export.reading import plan_of
from steelyard.export.source import json_plan

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# Lists of values to choose from are as long as this at most.
_MAX_CHOICES = 1000

# Letters that a cell takes.
_MAX_TEXT = 32_767
_INVALID = rf"[\0-\x08\x0b\x0c\x0e-\x1f]|(?s:.){{{_MAX_TEXT + 1}}}"

# A score of a class that is impossible; distances that are squared are within a limit.
_IMPOSSIBLE, _MAX_DISTANCE = "-1E+200", 1e100

_HOW = (
    "Fill in what is known, and leave the rest empty. Reasons are log-odds of the "
    "prediction against the runner-up, beside the average training row."
)

# Parts of a date by the number of its cell, which counts days since 1899-12-30.
_PARTS = {
    "day": "({}-25569)",
    "year": "YEAR({})",
    "month": "MONTH({})",
    "weekday": "WEEKDAY({},2)",
    "hour": "HOUR({})",
}


def to_excel(clf: BaseNB) -> bytes:
    """Return a classifier whose model is one sum as a workbook that scores one row.

    The sheet ``answer`` has the inputs, prediction, probabilities and reasons; others
    are ``scores`` and ``tables``.
    """
    plan = json_plan(plan_of(clf))
    if not isinstance(plan.root, Sum):
        raise ParameterError(
            f"{plan.estimator} is not one sum here, and a workbook has one. Use "
            "another format, such as model.py, or a method that is one sum, such as "
            "WANBIA-CLL."
        )
    refuse_intervals(plan, "Excel")
    refuse_large(plan, "Excel")
    limit = (
        f"a cell of Excel has no control characters and at most {_MAX_TEXT:,} letters"
    )
    refuse_texts(plan, _INVALID, limit)
    book = new_workbook()
    _Workbook(plan, plan.root, book)
    return packed_workbook(book)


class _Sheet:
    """A sheet that is written from the first row on."""

    def __init__(self, sheet: Any) -> None:
        self.sheet, self.cell, self.last = sheet, sheet.cell, 0
        for letter, width in (("A", 32), ("B", 24), ("D", 24)):
            sheet.column_dimensions[letter].width = width

    def put(self, cells: Sequence[Any], formulas: bool = False) -> int:
        """Write a row, and return its number; all but the first may be formulas."""
        self.last += 1
        for k, value in enumerate(cells, start=1):
            if formulas and k > 1:
                self.cell(self.last, k, value)
            else:
                _plain(self.cell(self.last, k), value)
        return self.last


class _Workbook:
    """The three sheets of a model."""

    def __init__(self, plan: Plan, root: Sum, book: Any) -> None:
        self.plan, self.root, self.n = plan, root, len(root.base)
        self.answer, self.scores, self.tables = map(
            _Sheet, (book.active, *map(book.create_sheet, ("scores", "tables")))
        )
        book.active.title = "answer"
        labels = list(plan.classes)
        used = {plan.columns[j].source for j in plan.used()}
        sources = [column.source for column in plan.columns if column.source in used]
        self.first = 7 + self.n + bool(plan.counted())
        """The row of the first input."""
        self.inputs = {
            name: f"answer!$B${self.first + k}"
            for k, name in enumerate(dict.fromkeys(sources))
        }
        self.codes: dict[Any, str] = {}
        """Cells with the line of a table that a cell is in, by column and table."""
        self.lines: dict[int, list[int]] = {}
        """Rows of the sheet of scores, by attribute."""
        self.values: dict[int, tuple[int, int]] = {}
        """Rows of the sheet of tables that hold the values of a column."""
        self.tables.put(["column", "value, or end of interval", "", *labels])
        self.scores.put(["attribute", "line of its table", *labels])
        for term in root.terms:
            self.term(term)
        counted = [self.unknown(j, of) for j, of in plan.counted().items()]
        self.totals()
        self.page(counted)

    # --------------------------------------------------------------------------- tables

    def table(
        self, name: str, keys: Sequence[Any], rows: Sequence[Sequence[float]]
    ) -> int:
        """Write a table, and return its first row."""
        first = self.tables.last + 1
        for k, (key, row) in enumerate(zip(keys, rows, strict=True)):
            key = int(key) if isinstance(key, bool) else key
            self.tables.put([name, key, k + 1, *row])
        return first

    def line(
        self, column: int, name: str, rows: Sequence[Sequence[float]], of: Any
    ) -> tuple[str, int]:
        """Write a table of a column, and which line of it a cell is in.

        Lines are those of missing cells, of values never seen and of values, or of
        missing cells and of intervals.
        """
        field = self.plan.columns[column]
        cell = self.inputs[field.source]
        if field.kind == "number":
            first = self.table(name, ["(missing)", *of.edges, "(above)"], rows)
            n, value = len(of.edges), self.number(column)
            ends = f"tables!$B${first + 1}:$B${first + n}"
            at = f"2+SUMPRODUCT(({ends}<{value})*1)" if n else "2"
        else:
            keys = ["(missing)", "(never seen)", *of.values]
            first = self.table(name, keys, rows)
            n = len(of.values)
            self.values.setdefault(column, (first + 2, first + 1 + n))
            values = f"tables!$B${first + 2}:$B${first + 1 + n}"
            order = f"tables!$C${first + 2}:$C${first + 1 + n}"
            same = (
                f"EXACT({values},{cell})"
                if field.cells == "text"
                else f"({values}={self.number(column)})"
            )
            # 0 where there is none.
            at = f"MAX(2,SUMPRODUCT({same}*{order}))" if n else "2"
        if field.cells != "text":
            at = f"IF(ISTEXT({cell}),NA(),{at})"
        return f"=IF(ISBLANK({cell}),1,{at})", first

    def number(self, column: int) -> str:
        """Write the number of a cell, or of a part of its date."""
        field = self.plan.columns[column]
        cell = self.inputs[field.source]
        return _PARTS[field.part].format(cell) if field.part else f"N({cell})"

    # ---------------------------------------------------------------------------- terms

    def score_row(self, attribute: int | None, cells: Sequence[Any]) -> int:
        """Write a row of the sheet of scores, and return its number."""
        row = self.scores.put(cells, formulas=True)
        if attribute is not None:
            self.lines.setdefault(attribute, []).append(row)
        return row

    def term(self, term: Term) -> None:
        name, row = self.plan.attributes[term.attribute], self.scores.last + 1
        if isinstance(term, Density):
            self.density(term, name)
            return
        if isinstance(term, Interaction):
            groups = [self.group(side, name) for side in term.sides]
            rows = list(chain.from_iterable(term.rows))
            first = self.table(name, [""] * len(rows), rows)
            row = self.scores.last + 1
            at = f"=1+{groups[0]}*{len(term.rows[0])}+{groups[1]}"
        else:
            middle = [(0.0,) * self.n] if isinstance(term, Lookup) else []
            rows = [term.missing, *middle, *term.rows]
            at, first = self.line(term.column, name, rows, term)
            values = term.values if isinstance(term, Lookup) else None
            self.codes[term.column, values] = f"scores!$B${row}"
        last = first + len(rows) - 1
        added = [
            f"=INDEX(tables!{_letter(4 + c)}${first}:{_letter(4 + c)}${last},$B{row})"
            for c in range(self.n)
        ]
        self.score_row(term.attribute, [name, at, *added])

    def group(self, side: Grouping, name: str) -> str:
        """Write the group of one side of an interaction, and return its cell."""
        field = self.plan.columns[side.column]
        middle = [] if field.kind == "number" else [0]
        rows = [(group,) for group in (side.missing, *middle, *side.groups)]
        title = f"{name}: group of {field.name}"
        at, first = self.line(side.column, title, rows, side)
        groups = f"tables!$D${first}:$D${first + len(rows) - 1}"
        row = self.score_row(None, [title, at])
        self.scores.cell(row, 2).value = f"=INDEX({groups},{at[1:]})"
        return f"$B${row}"

    def density(self, term: Density, name: str) -> None:
        cell = self.inputs[self.plan.columns[term.column].source]
        number = self.number(term.column)
        missing = "" if term.fill is None else repr(term.fill)
        head = f'=IF(ISTEXT({cell}),NA(),IF(ISBLANK({cell}),"{missing}",{number}))'
        if missing:
            head = head.replace(f'"{missing}"', missing)
        row, logs = self.scores.last + 1, []
        for c in range(self.n):
            mean, scale = repr(term.mean[c]), repr(term.scale[c])
            if term.form == "linear":
                limit = repr(term.limit)
                logs.append(f"MIN(MAX(($B{row}-{mean})*{scale},-{limit}),{limit})")
            else:
                # Within bounds before the product, and within the exact one after.
                far = repr(min(2.0 * _MAX_DISTANCE / term.scale[c], 1e300))
                away = f"MIN({_MAX_DISTANCE},MIN(ABS($B{row}-{mean}),{far})*{scale})"
                logs.append(f"{term.constant[c]!r}-({away})^2/2")
        if term.form == "relative":
            shown = [f'=IF($B{row}="",0,{log})' for log in logs]
            self.score_row(None, [f"{name}: log-density", head, *shown])
            row, logs, same = row + 1, [], row
            top = f"MAX($C{same}:{_letter(2 + self.n)}{same})"
            for c in range(self.n):
                logs.append(f"MAX({_letter(3 + c)}{same}-{top},-{term.depth!r})")
            head = f"=$B{same}"
        added = [
            f'=IF($B{row}="",0,{weight!r}*({log}))'
            for weight, log in zip(term.weight, logs, strict=True)
        ]
        self.score_row(term.attribute, [name, head, *added])

    def unknown(self, column: int, by_missing: bool) -> str:
        """Write 1 for an unknown cell of a column, and 0 for others."""
        field = self.plan.columns[column]
        cell = self.inputs[field.source]
        if field.kind == "number":
            return f"IF(ISBLANK({cell}),{int(by_missing)},0)"
        key = column, field.values
        if key not in self.codes:
            rows = [(0.0,)] * (2 + len(field.values))
            term = Lookup(column, field.values, (), ())
            at, _ = self.line(column, field.name, rows, term)
            row = self.score_row(None, [field.name, at])
            self.codes[key] = f"scores!$B${row}"
        lines = "<3" if by_missing else "=2"
        return f"IF({self.codes[key]}{lines},1,0)"

    # --------------------------------------------------------------------------- answer

    def totals(self) -> None:
        """Write scores, probabilities, and which classes are first and second."""
        last, columns = self.scores.last, [_letter(3 + c) for c in range(self.n)]
        span = f"$C{{0}}:${columns[-1]}{{0}}"
        totals = [
            f"={base!r}+SUM({of}2:{of}{max(last, 2)})"
            if base > float("-inf")
            else f"={_IMPOSSIBLE}"
            for of, base in zip(columns, self.root.base, strict=True)
        ]
        scale = repr(self.root.scale)
        self.total = total = self.score_row(None, ["score", None, *totals])
        top = f"MAX({span.format(total)})"
        powers = [f"=EXP({scale}*({of}{total}-{top}))" for of in columns]
        self.power = self.score_row(None, ["power", None, *powers])
        self.proba = f"scores!{{}}{self.power}/SUM(scores!{span.format(self.power)})"
        # Of the best, the first in this order is the prediction.
        order = self.root.tie_order
        ordered = [f"={columns[c]}{total}" for c in order]
        row = self.score_row(None, ["in the order of ties", None, *ordered])
        places = self.score_row(None, ["their places", None, *(c + 1 for c in order)])
        best = f"MATCH(MAX({span.format(row)}),{span.format(row)},0)"
        first = self.score_row(None, ["best", f"=INDEX({span.format(places)},{best})"])
        others = [
            f"=IF($B{first}={c + 1},{_IMPOSSIBLE}*10,{of}{total})"
            for c, of in enumerate(columns)
        ]
        rest = self.score_row(None, ["the others", None, *others])
        second = f"=MATCH(MAX({span.format(rest)}),{span.format(rest)},0)"
        second_row = self.score_row(None, ["runner-up", second])
        self.best, self.second = f"scores!$B${first}", f"scores!$B${second_row}"

    def reason(self, attribute: int) -> str:
        """Write what an attribute adds for the best class against the runner-up."""
        parts = []
        centre = self.root.centre[attribute] if self.root.centre else (0.0,) * self.n
        end = _letter(2 + self.n)
        for row in self.lines.get(attribute, []):
            at = f"scores!$C{row}:${end}{row}"
            parts.append(f"INDEX({at},{self.best})-INDEX({at},{self.second})")
        if any(centre):
            self.scores.put([f"{self.plan.attributes[attribute]}: mean", "", *centre])
            at = f"scores!$C{self.scores.last}:${end}{self.scores.last}"
            parts.append(f"INDEX({at},{self.second})-INDEX({at},{self.best})")
        return f"{self.root.scale!r}*({'+'.join(parts)})" if parts else "0"

    def page(self, counted: Sequence[str]) -> None:
        """Write the sheet of inputs and answers."""
        sheet, plan = self.answer, self.plan
        labels = f"scores!$C$1:${_letter(2 + self.n)}$1"
        sheet.put([about(plan)])
        sheet.put([_HOW])
        best = f"INDEX({labels},{self.best})"
        wrong = '"text stands where a number should be"'
        sheet.put(["prediction", f"=IFERROR({best},{wrong})"], formulas=True)
        for c, label in enumerate(plan.classes):
            sheet.put(
                [f"p({label})", f"={self.proba.format(_letter(3 + c))}"], formulas=True
            )
            sheet.cell(sheet.last, 2).number_format = "0.0%"
        if counted:
            sheet.put([UNKNOWN_CELLS, f"={'+'.join(counted)}"], formulas=True)
        header = ["column", "value", "reason", "supports", "it takes"]
        for k, text in enumerate(header, start=1):
            sheet.cell(self.first - 1, k, text)
        by_source: dict[str, list[str]] = {name: [] for name in self.inputs}
        crossed: list[tuple[str, str]] = []
        for j, name in enumerate(plan.attributes):
            if j >= len(plan.columns):
                crossed.append((name, self.reason(j)))
            elif plan.columns[j].source in by_source:
                by_source[plan.columns[j].source].append(self.reason(j))
        rows = [(name, "+".join(of)) for name, of in by_source.items()]
        for row, (name, reason) in enumerate([*rows, *crossed], start=self.first):
            which = f"IF(C{row}>0,{self.best},{self.second})"
            speaks = f'=IF(C{row}=0,"",INDEX({labels},{which}))'
            _plain(sheet.cell(row, 1), name)
            sheet.cell(row, 3, f"={reason}").number_format = "+0.00;-0.00;0"
            sheet.cell(row, 4, speaks)
            if name in self.inputs and row < self.first + len(rows):
                self.describe(row, name)
        bars = import_module("openpyxl.formatting.rule").DataBarRule
        rule = bars("min", None, "max", None, "638EC6")
        last = self.first + len(rows) + len(crossed)
        sheet.sheet.conditional_formatting.add(f"C{self.first}:C{last}", rule)
        sheet.sheet.freeze_panes = f"A{self.first}"

    def describe(self, row: int, name: str) -> None:
        """Say what an input takes, and have a program check it."""
        fields = {c.source: (j, c) for j, c in enumerate(self.plan.columns)}
        j, field = fields[name]
        validation = import_module("openpyxl.worksheet.datavalidation").DataValidation
        first, last = self.values.get(j, (1, 0))
        takes = {"text": "text", "booleans": "1 for true, 0 for false"}.get(
            field.cells, "a number"
        )
        check = validation("decimal", "between", "-1E+300", "1E+300", allow_blank=True)
        check.error = (
            f"This column takes {takes}. Leave the cell empty if it is unknown."
        )
        if field.date:
            takes = "a date, from 1900 on"
            self.answer.cell(row, 2).number_format = "yyyy-mm-dd hh:mm:ss"
        elif field.cells == "text" and 0 < last - first + 1 <= _MAX_CHOICES:
            takes += ", one of the list, or another value"
            check = validation("list", formula1=f"tables!$B${first}:$B${last}")
            check.showErrorMessage = False
        elif field.cells == "text":
            check = None
        if check is not None:
            self.answer.sheet.add_data_validation(check)
            check.add(f"B{row}")
        self.answer.cell(row, 5, takes)


def _letter(column: int) -> str:
    """Return the letters of a column.

    >>> _letter(3), _letter(28)
    ('C', 'AB')
    """
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _plain(cell: Any, value: Any) -> None:
    """Put a value into a cell: text is no formula, and a number has all its digits."""
    is_number = isinstance(value, float)
    cell.value = repr(value) if is_number else value
    if isinstance(value, str) or is_number:
        cell.data_type = "n" if is_number else "s"


def new_workbook() -> Any:
    """Return an empty workbook; openpyxl is an optional dependency."""
    return import_optional("openpyxl", "Workbooks need", "openpyxl").Workbook()


def packed_workbook(book: Any) -> bytes:
    """Return a workbook, of which the same model gives the same bytes."""
    saved, out = BytesIO(), BytesIO()
    book.save(saved)
    with ZipFile(saved) as parts, ZipFile(out, "w") as packed:
        for name in parts.namelist():
            content = parts.read(name)
            if name == "docProps/core.xml":
                moment = rb"\g<1>2000-01-01T00:00:00Z"
                content = re.sub(rb"(<dcterms:\w+ [^>]*>)[^<]*", moment, content)
            packed.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return out.getvalue()
