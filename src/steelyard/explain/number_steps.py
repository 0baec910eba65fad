"""The numbers that a column may hold, searched from one of them outward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.table.summary.ranges import NumberRange


@dataclass(frozen=True)
class NumberSteps:
    """The numbers that a column may hold: between its ends, in steps of its digits."""

    where: NumberRange
    now: float
    """What the row holds; the middle of the column if that is unknown."""

    digits: int
    """Digits after the point."""

    @classmethod
    def of(cls, where: NumberRange, label: str) -> NumberSteps:
        """Return the steps of a column; the row holds what a label says."""
        try:
            now, known = float(label), [where.low, where.high, float(label)]
        except ValueError:
            now, known = float(np.median(where.points)), [where.low, where.high]
        texts = [f"{x:.9f}".rstrip("0") for x in known]
        digits = max(len(text.partition(".")[2]) for text in texts)
        # Numbers that were computed have as many as they need to be told apart.
        return cls(where, now, digits if digits < 5 else max(cls._finest(where), 0))

    @staticmethod
    def _finest(where: NumberRange) -> int:
        """Return digits of a number that tell a thousandth of the range apart."""
        wide = where.high - where.low or 1.0
        return int(np.ceil(3.0 - np.log10(wide))) if np.isfinite(wide) else 0

    def rounded(self, numbers: Floats, digits: int | None = None) -> Floats:
        """Return the nearest numbers that the column may hold, increasing."""
        digits = self.digits if digits is None else digits
        return self.where.clipped(np.unique(np.round(numbers, digits)))

    def nearest(self, found: Callable[[Floats], Floats]) -> float | None:
        """Return the number nearest to the present one of those that a search finds.

        First in coarse steps over the whole range, then finer ones on the way back.
        """
        best, digits = None, min(self.digits, self._finest(self.where))
        low, high = self.where.low, self.where.high
        while digits <= self.digits:
            step = 10.0**-digits
            numbers = np.arange(np.floor(low / step), np.ceil(high / step) + 1.0) * step
            numbers = found(self.rounded(numbers, digits))
            if not len(numbers):
                break
            best = float(numbers[np.argmin(np.abs(numbers - self.now))])
            low, high = sorted((best, best + np.sign(self.now - best) * step))
            digits += 1
        return best
