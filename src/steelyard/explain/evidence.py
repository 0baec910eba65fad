"""Evidence: what speaks for one class against another, or against all others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.text import as_plain, bar, signed, text_table
from steelyard.explain.views import PlainData, Tabular, percent


@dataclass(frozen=True)
class EvidenceItem(PlainData):
    """What one attribute of a row says for one class against another."""

    attribute: str
    value: str
    amount: float
    """In log-odds; positive speaks for the class."""

    missing: bool


@dataclass(frozen=True, repr=False)
class Evidence(Tabular):
    """Two classes of one row compared: the prior and all items add up to log-odds."""

    target: str
    against: str
    probability: float
    """Posterior probability of the target."""

    prior: float
    items: tuple[EvidenceItem, ...]
    """By falling size."""

    base_rate: float | None = None
    """Share of the target among the classes, where the model begins with it."""

    @property
    def start(self) -> tuple[str, str]:
        """What the sum begins with: a name, and the base rate if it is that."""
        if self.base_rate is None:
            return "prior", ""
        return "base rate", percent(self.base_rate)

    @property
    def total(self) -> float:
        """Log-odds of the target against the other class."""
        return math.fsum([self.prior, *(item.amount for item in self.items)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {**super().to_dict(), "total": as_plain(self.total)}

    def layout(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a title, names of columns and lines of texts with bars."""
        amounts = [self.prior, *(item.amount for item in self.items)]
        largest = max((abs(a) for a in amounts if math.isfinite(a)), default=0.0)
        names = [self.start, *((item.attribute, item.value) for item in self.items)]
        lines = [
            [*name, signed(amount), bar(amount, largest)]
            for name, amount in zip(names, amounts, strict=True)
        ]
        lines.append(["sum", "", signed(self.total), ""])
        title = (
            f"{self.target} (probability {self.probability:.4g}) against "
            f"{self.against}: evidence in log-odds"
        )
        return title, ["attribute", "value", "evidence", ""], lines

    def __repr__(self) -> str:
        """Lay the evidence out as text with bars."""
        title, headers, lines = self.layout()
        return f"{title}\n{text_table(headers, lines, [False, False, True, False])}"


def evidence_of(contributions: Floats) -> Floats:
    r"""Turn contributions (..., K) into evidence for each class against the others.

    .. math:: e_c = t_c - \frac{1}{K - 1} \sum_{k \ne c} t_k

    With two classes that is the log-odds, with its sign for each class.

    Examples
    --------
    >>> evidence_of(np.array([-1.0, -3.0]))
    array([ 2., -2.])
    """
    k = contributions.shape[-1]
    total = contributions.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray((k * contributions - total) / (k - 1))
