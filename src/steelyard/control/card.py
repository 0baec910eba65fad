"""Cards of points: what they hold, add up to, and are written as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard.classifiers.fitted import FittedNB
from steelyard.model.edits import Edit
from steelyard.model.table_model import NBModel

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class CardRow:
    """One line of a card."""

    column: str
    value: str
    """A bin, categories, or what is not known."""

    points: int
    rows: float
    """Weight of the training rows."""

    rate: float
    """Share of the target among them; NaN where there are none."""


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
    """Points before anything is known."""

    rows: tuple[CardRow, ...]
    points_to_double: float
    zero: float
    """Points of even odds."""

    fitted: CardModel
    loss: dict[str, float]
    n_cells: int
    """How many bins and categories have points; what is not known apart."""

    def probability(self, points: Any) -> Any:
        """Return the probability of the target, of a total of points."""
        doublings = (np.asarray(points, dtype=np.float64) - self.zero) / (
            self.points_to_double
        )
        return 1.0 / (1.0 + np.exp2(-doublings))

    def ends(self) -> tuple[int, int]:
        """Return the fewest and the most points that a row can have."""
        by_column: dict[str, list[int]] = {}
        for row in self.rows:
            by_column.setdefault(row.column, []).append(row.points)
        low = self.start + sum(map(min, by_column.values()))
        return low, self.start + sum(map(max, by_column.values()))

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


class Scorecard:
    """Whole points for bins and categories, which add up to log-odds.

    A total of ``base_points`` means odds of ``base_odds`` to one for the target, and
    ``points_to_double`` more points twice the odds. What is not known adds nothing.
    With two classes there is one card. With more there is one for each class against
    all others; their probabilities are made to add up to one.

    Attributes
    ----------
    cards : tuple of Card
        ``target``, ``start``, ``rows`` and ``loss`` of each card.
    classes_ : ndarray of shape (K,)
        Classes of the model.
    name : str or None
        What is predicted, where the model knows it.
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
        ndarray of shape (n,), or (n, K) where there is a card for each class
        """
        totals = [
            np.round(card.fitted.predict_joint_log_proba(X)[:, 1]).astype(np.int64)
            for card in self.cards
        ]
        return totals[0] if len(totals) == 1 else np.stack(totals, axis=1)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities that the points say, in the order of ``classes_``.

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
            p = np.stack([card.probability(own) for card, own in each], axis=1)
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

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the card as a page that prints on one sheet; written where asked."""
        from steelyard.control.card_files import html_card

        return _written(html_card(self), path)

    def to_markdown(self) -> str:
        """Return the card as tables of Markdown."""
        from steelyard.control.card_files import markdown_card

        return markdown_card(self)

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
        from steelyard._common.files import atomic_write
        from steelyard.control.card_files import content_of_card

        atomic_write(path, content_of_card(self, path, format, **options))

    def _repr_html_(self) -> str:
        from steelyard.control.card_files import html_tables

        return html_tables(self)

    def __repr__(self) -> str:
        """Lay the card out as text."""
        from steelyard.control.card_files import text_card

        return text_card(self)


def _start_row(card: Card) -> CardRow:
    return CardRow("(start)", "", card.start, np.nan, np.nan)


def _written(text: str, path: str | PathLike[str] | None) -> str:
    from steelyard._common.files import atomic_write

    if path is not None:
        atomic_write(path, text.encode("utf-8"))
    return text
