"""Scorecards: what they contain, add up to, and are written as.

A page, a workbook, Markdown, CSV and text are written here; SQL and the other formats
of exports from the plan of the card as a model.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.files import atomic_write
from steelyard._common.html import (
    content_policy,
    element,
    escape,
    fill_template,
    read_asset,
)
from steelyard._common.text import (
    markdown_table,
    markdown_text,
    safe_cells,
    text_table,
)
from steelyard.classifiers.fitted import FittedNB
from steelyard.exceptions import ParameterError
from steelyard.export.excel import new_workbook, packed_workbook
from steelyard.export.formats import FORMATS, content_of
from steelyard.model.edits import Edit
from steelyard.model.table_model import NBModel

if TYPE_CHECKING:
    import pandas

# Lines in three columns of a printed page, letters of a value in a line, and sizes of
# type, smaller for more lines.
_LINES_OF_A_PAGE, _LETTERS, _LARGEST, _SMALLEST = 130, 14, 9.5, 4.0
# Those below the columns are as wide as all three.
_LINES_OF_DOCUMENT = 60

_HOW = "Add one line for each column; unknown values add nothing."
_ONE_EACH = (
    "There is one card for each class against all others; probabilities of all cards "
    "are divided by their sum."
)
_HEADER = ["column", "value", "points", "rows", "rate"]
_WOE = "WoE"

SIGNATURES = ("Prepared by", "Reviewed by", "Approved by")
"""Who signs a card by default."""

# Reasons that are given to those whom a decision goes against.
_REASONS = 4


@dataclass(frozen=True)
class CardRow:
    """One line of a scorecard."""

    column: str
    value: str
    """A bin, categories, or a missing or unseen value."""

    points: int
    rows: float
    """Weight of the training rows."""

    rate: float
    """Share of the target among them; NaN if there are none."""

    woe: float = math.nan
    """Weight of evidence: logarithm of the share of the target's rows that are here, to
    that of the others; half a row is added to each. NaN if there are none."""

    information: float = 0.0
    """What the line adds to the information value (IV) of its column."""


def with_woe(rows: Iterable[CardRow]) -> tuple[CardRow, ...]:
    """Return lines with their weights of evidence, those of each column together.

    >>> rows = [CardRow("sky", "sun", 9, 10, 0.8), CardRow("sky", "rain", -9, 10, 0.2)]
    >>> [(round(row.woe, 2), round(row.information, 2)) for row in with_woe(rows)]
    [(1.22, 0.73), (-1.22, 0.73)]
    """
    made: list[CardRow] = []
    for _, group in groupby(rows, key=lambda row: row.column):
        lines = list(group)
        hits = np.array([row.rows * row.rate if row.rows else 0.0 for row in lines])
        rest = np.array([row.rows for row in lines]) - hits
        gaps = hits / max(hits.sum(), 1e-300) - rest / max(rest.sum(), 1e-300)
        odds = (hits + 0.5) / (rest + 0.5) * (rest.sum() + 0.5) / (hits.sum() + 0.5)
        for row, woe, gap in zip(lines, np.log(odds), gaps, strict=True):
            of_row = replace(row, woe=float(woe), information=float(gap * woe))
            made.append(of_row if row.rows else row)
    return tuple(made)


class CardModel(FittedNB):
    """A card as a fitted model of two classes, for exports and predictions."""

    _unit = "points"

    def __init__(self, model: NBModel, encoder: Any) -> None:
        self.model_, self.encoder_ = model, encoder
        self.classes_, self.n_jobs = model.classes, 1


@dataclass(frozen=True, repr=False)
class Card:
    """The points for one class against the others."""

    target: Any
    start: int
    """Points of a row without values."""

    rows: tuple[CardRow, ...]
    points_to_double: float
    zero: float
    """Points of even odds."""

    fitted: CardModel
    loss: dict[str, float]
    n_cells: int
    """Number of bins and categories that have points, except missing values."""

    def probability(self, points: Any) -> Any:
        """Return the probability of the target, of a total of points."""
        doublings = (np.asarray(points, dtype=np.float64) - self.zero) / (
            self.points_to_double
        )
        return 1.0 / (1.0 + np.exp2(-doublings))

    def points_of_columns(self) -> dict[str, list[int]]:
        """Return the points of all lines of each column."""
        by_column: dict[str, list[int]] = {}
        for row in self.rows:
            by_column.setdefault(row.column, []).append(row.points)
        return by_column

    def ends(self) -> tuple[int, int]:
        """Return the fewest and the most points that a row can have."""
        points = self.points_of_columns().values()
        return self.start + sum(map(min, points)), self.start + sum(map(max, points))

    def scale(self, most: int = 20) -> list[tuple[int, float]]:
        """Return totals in even steps, and the probability of each."""
        # Ten doublings from even odds are a chance of one in a thousand.
        far = round(10 * self.points_to_double)
        low, high = (
            min(max(end, round(self.zero) - far), round(self.zero) + far)
            for end in self.ends()
        )
        steps = [k * 10**e for e in range(9) for k in (1, 2, 5)]
        step = next(s for s in steps if (high - low) / s <= most)
        first = -(-low // step) * step
        totals = range(first, high + 1, step)
        return [(t, float(self.probability(t))) for t in totals]

    def title(self, name: str | None) -> str:
        """Return a title, with the name of what is predicted."""
        return (
            f"Scorecard: {name} = {self.target}"
            if name
            else f"Scorecard: {self.target}"
        )

    def legend(self) -> str:
        """Return in words what points mean."""
        double = f"{self.points_to_double:g} more points double the odds"
        return f"Start with {self.start} points; {double} of {self.target}."

    def lines(self) -> list[list[str]]:
        """Return the cells of a table of text, a line for the start and each row."""
        lines = [["(start)", "", f"{self.start:d}", "", "", ""]]
        for row in self.rows:
            texts = (
                _points_text(row.points),
                _number_text(row.rows, ".6g"),
                _share_text(row.rate),
                _number_text(row.woe, "+.2f"),
            )
            lines.append([row.column, row.value, *texts])
        return lines

    def scale_lines(self) -> list[list[str]]:
        """Return totals and their probabilities as text."""
        return [[str(total), _share_text(p)] for total, p in self.scale()]


class Scorecard:
    """Whole points for bins and categories, which add up to log-odds.

    A total of ``base_points`` means odds of ``base_odds`` to one for the target, and
    ``points_to_double`` more points twice the odds. Unseen values add nothing.
    With two classes there is one card. With more there is one for each class against
    all others; their probabilities are made to add up to one.

    Attributes
    ----------
    cards : tuple of Card
        ``target``, ``start``, ``rows`` and ``loss`` of each card.
    classes_ : ndarray of shape (K,)
        Classes of the model.
    name : str or None
        What is predicted, if the model has its name.
    edits : tuple of Edit
        What was changed by hand in the model.
    loss : dict
        Mean log-loss of the model, of the card before rounding ("merged") and of its
        points, over ``n_rows`` rows; of several cards the means. ``on`` says over which
        rows and to what: labels, or the probabilities of the model.
    """

    def __init__(
        self,
        cards: Sequence[Card],
        classes: NDArray[Any],
        name: str | None,
        on: str,
        n_rows: int,
        edits: Sequence[Edit] = (),
    ) -> None:
        self.cards, self.classes_, self.name = tuple(cards), classes, name
        self.edits = tuple(edits)
        names = self.cards[0].loss
        means = {n: float(np.mean([c.loss[n] for c in self.cards])) for n in names}
        self.loss: dict[str, Any] = {**means, "n_rows": n_rows, "on": on}
        self.document: list[tuple[str, str]] = []
        self.signatures: tuple[str, ...] = SIGNATURES
        self.reason_texts: dict[str, str] = {}

    @property
    def n_cells(self) -> int:
        """How many bins and categories have points, in all cards."""
        return sum(card.n_cells for card in self.cards)

    def points(self, X: Any) -> Ints:
        """Return the total of points of every row.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table.

        Returns
        -------
        ndarray of shape (n,), or (n, K) if there is a card for each class
        """
        totals = [
            np.round(card.fitted.predict_joint_log_proba(X)[:, 1]).astype(np.int64)
            for card in self.cards
        ]
        return totals[0] if len(totals) == 1 else np.stack(totals, axis=1)

    def adverse_reasons(self, X: Any, most: int = _REASONS) -> list[list[str]]:
        """Return the columns in which each row loses most against their best line.

        The texts are those of ``reason``, or ``label``, in the columns of ``card``, and
        otherwise the names of columns. Points that are lost are in brackets.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table.
        most : int, default=4
            How many reasons to give for a row at most.
        """
        if len(self.cards) > 1:
            raise ParameterError(
                "Adverse reasons are those of one card: make it with `target`."
            )
        (card,) = self.cards
        codes, model = card.fitted._encode(X), card.fitted.model_
        assert isinstance(model, NBModel)
        of_columns, lost = card.points_of_columns(), {}
        for j, name in enumerate(model.schema.labels()):
            if name in of_columns:
                first = int(model.schema.offsets[j])
                points = model.table[first + codes.column(j).astype(np.int64), 1]
                lost[name] = max(of_columns[name]) - np.round(points).astype(np.int64)
        reasons = []
        for i in range(codes.n_rows):
            order = sorted(lost, key=lambda name: -lost[name][i])[:most]
            reasons.append(
                [
                    f"{self.reason_texts.get(name, name)} (-{lost[name][i]})"
                    for name in order
                    if lost[name][i] > 0
                ]
            )
        return reasons

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the points, in the order of ``classes_``.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table.

        Returns
        -------
        ndarray of shape (n, K)
            Of one card of a model with more classes, (n, 2): others, and the target.
        """
        points = self.points(X)
        if len(self.cards) > 1:
            each = zip(self.cards, points.T, strict=True)
            p = np.stack([card.probability(total) for card, total in each], axis=1)
            return np.asarray(p / p.sum(axis=1, keepdims=True))
        (card,) = self.cards
        p = card.probability(points)
        is_first = len(self.classes_) == 2 and card.target == self.classes_[0]
        return np.stack([p, 1.0 - p] if is_first else [1.0 - p, p], axis=1)

    def to_frame(self) -> pandas.DataFrame:
        """Return the lines of the card, or of all cards, as a frame of pandas."""
        import pandas as pd

        lines = [
            {"target": card.target, **vars(row)}
            for card in self.cards
            for row in (_start_row(card), *card.rows)
        ]
        frame = pd.DataFrame(lines)
        return frame if len(self.cards) > 1 else frame.drop(columns="target")

    def notes(self) -> list[str]:
        """Return what merging and rounding cost, and the edits by hand."""
        loss = self.loss
        losses = (
            f"Log-loss: model {loss['model']:.4f}, with merged bins "
            f"{loss['merged']:.4f}, with integer points {loss['points']:.4f} "
            f"({loss['n_rows']} {loss['on']})."
        )
        woe = (
            "WoE: weight of evidence for the class, IV: information value of a column."
        )
        return [losses, woe, *(f"Edited by hand: {edit}." for edit in self.edits)]

    def reasons_in_words(self) -> str:
        """Return how adverse reasons are found, with the text of each column."""
        of_columns = self.cards[0].points_of_columns().items()
        spans = {name: max(points) - min(points) for name, points in of_columns}
        texts = [
            f"{self.reason_texts.get(name, name)} (up to -{spans[name]})"
            for name in sorted(spans, key=lambda name: -spans[name])
            if spans[name] > 0
        ]
        how = f"Adverse reasons: name up to {_REASONS} columns that lose most points "
        return f"{how}against their best line: {'; '.join(texts)}."

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the card as a page that prints on one sheet; write it if asked to."""
        text = _page(self)
        if path is not None:
            atomic_write(path, text.encode("utf-8"))
        return text

    def to_markdown(self) -> str:
        """Return the card as tables of Markdown."""
        parts = []
        for card in self.cards:
            lines = [list(map(markdown_text, line)) for line in card.lines()]
            parts += [f"# {markdown_text(card.title(self.name))}"]
            parts += [markdown_text(f"{card.legend()} {_HOW}")]
            parts += [markdown_table([*_HEADER, _WOE], lines)]
            parts += [markdown_table(["total", "probability"], card.scale_lines())]
        parts += [_ONE_EACH] if len(self.cards) > 1 else []
        parts += ["  \n".join(map(markdown_text, self.notes()))]
        signed = [[f"{who}:", "_" * 30] for who in self.signatures]
        entries = [list(entry) for entry in self.document]
        parts += [markdown_table(["model card", ""], [*entries, *signed])]
        return "\n\n".join(parts) + "\n"

    def to_excel(self, path: str | PathLike[str]) -> None:
        """Write the card as a workbook that adds up the points of chosen lines."""
        self.export(path, "xlsx")

    def export(
        self, path: str | PathLike[str], format: str | None = None, **options: Any
    ) -> None:
        """Write the card to a file.

        Parameters
        ----------
        path : str or path-like
            Where to write. An existing file is replaced in one step.
        format : str, default=None
            "html", "xlsx", "csv" or "md", or one of ``steelyard.export.FORMATS``, which
            score tables and rows. By default what the name of the file ends with. SQL
            returns the column ``points`` as well, and with ``contributions=True`` those
            of every column.
        **options
            Options of the format, such as ``dialect`` of SQL.
        """
        kind = Path(path).suffix.lower().lstrip(".") if format is None else format
        if kind in _WRITERS:
            if options:
                raise ParameterError(
                    f"The format {kind!r} has no option {next(iter(options))!r}."
                )
            content = _WRITERS[kind](self)
        elif kind not in FORMATS:
            given = f"the ending of {str(path)!r}" if format is None else repr(format)
            raise ParameterError(
                f"A card has no format by {given}. Known: "
                f"{', '.join(dict.fromkeys([*_WRITERS, *FORMATS]))}."
            )
        elif len(self.cards) > 1:
            raise ParameterError(
                f"There are {len(self.cards)} cards, one for each class, and a file "
                f"of {kind} has one. Make the card of one class: `target`."
            )
        else:
            content = content_of(self.cards[0].fitted, kind, **options)  # type: ignore[arg-type]
        atomic_write(path, content)

    def _repr_html_(self) -> str:
        return "".join(_section(card, self) for card in self.cards)

    def __repr__(self) -> str:
        """Lay the card out as text."""
        parts = []
        for card in self.cards:
            parts += [card.title(self.name), card.legend()]
            numbers = [False] * 2 + [True] * 4
            parts.append(text_table([*_HEADER, _WOE], card.lines(), numbers))
            scale = card.scale_lines()
            parts.append(text_table(["total", "probability"], scale, [True, True]))
        parts += [_ONE_EACH] if len(self.cards) > 1 else []
        entries = [f"{name}: {text}" for name, text in self.document]
        return "\n\n".join([*parts, "\n".join([*self.notes(), *entries])])


def _start_row(card: Card) -> CardRow:
    return CardRow("(start)", "", card.start, np.nan, np.nan)


def _share_text(share: float) -> str:
    return "" if math.isnan(share) else f"{100.0 * share:.1f} %"


def _number_text(number: float, form: str) -> str:
    return "" if math.isnan(number) else format(number, form)


def _points_text(points: int) -> str:
    return f"{points:+d}" if points else "0"


# -------------------------------------------------------------------------------- files


def _page(card: Scorecard) -> str:
    """Return a page that prints on one sheet, as far as type can be small."""
    lines = max(map(_n_lines, card.cards)) + len(card.edits) + _LINES_OF_DOCUMENT
    size = min(_LARGEST, max(_SMALLEST, _LARGEST * math.sqrt(_LINES_OF_A_PAGE / lines)))
    page, style, code = (
        read_asset("steelyard.control", f"card.{kind}")
        for kind in ("html", "css", "js")
    )
    style = fill_template(style, {"SIZE": f"{size:.3g}"})
    parts = {
        "TITLE": escape(card.cards[0].title(card.name)),
        "POLICY": content_policy(style, [code]),
        "STYLE": style,
        "BODY": card._repr_html_(),
        "CODE": code,
    }
    return fill_template(page, parts)


def _n_lines(card: Card) -> float:
    """Estimate the number of lines of a card on paper."""
    values = sum(max(math.ceil(len(row.value) / _LETTERS), 1) for row in card.rows)
    return values + 2.5 * len(card.points_of_columns()) + len(card.scale())


def _section(card: Card, whole: Scorecard) -> str:
    by_column = groupby(card.rows, key=lambda row: row.column)
    tables = [_column_table(name, list(rows)) for name, rows in by_column]
    tables.append(_scale_table(card))
    several = len(whole.cards) > 1
    notes = [*whole.notes(), *([_ONE_EACH] if several else [])]
    parts = [
        element("h1", escape(card.title(whole.name))),
        element("p", escape(f"{card.legend()} {_HOW}")),
        element("div", element("output", "", class_="sum"), class_="box"),
        element("div", "".join(tables), class_="card"),
        *(element("p", escape(note), class_="small") for note in notes),
        *([] if several else [_document(whole)]),
    ]
    return element(
        "section",
        "".join(parts),
        class_="apart" if several else None,
        data_start=card.start,
        data_zero=repr(card.zero),
        data_double=repr(card.points_to_double),
    )


def _document(whole: Scorecard) -> str:
    """Return who made the card of what, the texts of reasons, and lines to sign."""
    lines = [
        element("tr", element("th", escape(name)) + element("td", escape(text)))
        for name, text in whole.document
    ]
    blanks = "<span></span>Date<span></span>Signature<span></span>"
    signed = [element("p", escape(who) + blanks) for who in whole.signatures]
    return (
        element("p", escape(whole.reasons_in_words()), class_="small")
        + element("table", "".join(lines), class_="document")
        + element("div", "".join(signed), class_="sign")
    )


def _column_table(name: str, rows: Sequence[CardRow]) -> str:
    heads = ("points", "rows", "rate", _WOE)
    head = "<td></td>" + "".join(element("th", text) for text in heads)
    lines = [element("tr", head)]
    for row in rows:
        cells = (
            # Lines end at a part of a name, if they can.
            element("td", re.sub("([_/=])(?=\\w)", r"\1<wbr>", escape(row.value)))
            + element("td", _points_text(row.points), class_="points")
            + element("td", _number_text(row.rows, ".6g"), class_="few")
            + element("td", _share_text(row.rate), class_="few")
            + element("td", _number_text(row.woe, "+.2f"), class_="few")
        )
        lines.append(element("tr", cells, data_points=str(row.points)))
    body = element("tbody", "".join(lines))
    worth = element("small", f" IV {sum(row.information for row in rows):.2f}")
    return element("table", element("caption", escape(name) + worth) + body)


def _scale_table(card: Card) -> str:
    head = element("tr", element("th", "total") + element("th", "probability"))
    lines = [
        element("tr", element("td", total) + element("td", p))
        for total, p in card.scale_lines()
    ]
    caption = element("caption", escape(f"points to probability of {card.target}"))
    return element("table", caption + head + "".join(lines), class_="scale")


def _csv(card: Scorecard) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["target", *_HEADER, _WOE])
    for of_class in card.cards:
        for row in (_start_row(of_class), *of_class.rows):
            line = [of_class.target, row.column, row.value, row.points]
            shares = [_number_text(x, ".6g") for x in (row.rows, row.rate, row.woe)]
            writer.writerow(safe_cells([*line, *shares]))
    return out.getvalue().encode("utf-8")


def _excel(card: Scorecard) -> bytes:
    book = new_workbook()
    book.remove(book.active)
    for k, of_class in enumerate(card.cards, start=1):
        sheet = book.create_sheet("card" if len(card.cards) == 1 else f"card {k}")
        _fill_sheet(sheet, of_class, card)
    return packed_workbook(book)


def _fill_sheet(sheet: Any, card: Card, whole: Scorecard) -> None:
    """Write the lines, a column to choose some, and formulas for what they add to."""
    first, last = 6, 5 + len(card.rows)
    # Without `--`, which some programs do not take for a number.
    chosen = f'SUMPRODUCT(C{first}:C{last}*(F{first}:F{last}<>""))'
    double, zero = repr(card.points_to_double), repr(card.zero)
    _put(sheet, 1, [card.title(whole.name)])
    _put(sheet, 2, [f"{card.legend()} {_HOW} Mark chosen lines with x."])
    _put(sheet, 3, ["total", "", f"={card.start}+{chosen}"], formula=3)
    probability = f"=1/(1+2^(({zero}-C3)/{double}))"
    _put(sheet, 4, ["probability", "", probability], formula=3)
    sheet["C4"].number_format = "0.0%"
    _put(sheet, 5, [*_HEADER, "chosen", "", "total", "probability"])
    for k, row in enumerate(card.rows, start=first):
        rate = None if math.isnan(row.rate) else row.rate
        _put(sheet, k, [row.column, row.value, row.points, row.rows, rate])
        sheet.cell(k, 5).number_format = "0.0%"
    for k, (total, p) in enumerate(card.scale(), start=first):
        _put(sheet, k, [total, p], left=8)
        sheet.cell(k, 9).number_format = "0.0%"
    below = max(last, first + len(card.scale())) + 2
    _put(sheet, below, ["\n".join(whole.notes())])
    signed = [(f"{who}:", "date:") for who in whole.signatures]
    for k, entry in enumerate([*whole.document, *signed], start=below + 2):
        _put(sheet, k, list(entry))
    sheet.column_dimensions["A"].width = 24
    sheet.column_dimensions["B"].width = 32
    sheet.page_setup.fitToWidth = sheet.page_setup.fitToHeight = 1
    sheet.sheet_properties.pageSetUpPr.fitToPage = True


def _put(
    sheet: Any, row: int, values: list[Any], left: int = 1, formula: int = 0
) -> None:
    """Write cells; no text of the user's is taken for a formula."""
    for k, value in enumerate(values, start=left):
        cell = sheet.cell(row, k, value)
        if isinstance(value, str) and k != formula:
            cell.data_type = "s"


_WRITERS = {
    "html": lambda card: _page(card).encode("utf-8"),
    "xlsx": _excel,
    "csv": _csv,
    "md": lambda card: card.to_markdown().encode("utf-8"),
}
