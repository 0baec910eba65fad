"""Measures that reports show: their titles, units, digits and directions."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard._common.text import number
from steelyard.exceptions import ParameterError
from steelyard.experiments.results import METRICS

__all__ = ["MEASURES", "Measure", "check_metric"]


@dataclass(frozen=True)
class Measure:
    """How a field of the rows is shown."""

    name: str
    title: str
    scale: float = 1.0
    """What a value is multiplied by where it is shown."""

    digits: int = 3
    larger_is_better: bool = False
    rope: float = 0.01
    """Half the width of the region of practical equivalence."""

    def text(self, value: float, signed: bool = False) -> str:
        """Return a value as it is shown, a dash for NaN."""
        return number(value * self.scale, self.digits, sign=signed)

    @property
    def is_quality(self) -> bool:
        """Whether this is about predictions, not about time or memory."""
        return self.name in METRICS

    @property
    def sign(self) -> float:
        """What makes larger values the better ones."""
        return 1.0 if self.larger_is_better else -1.0

    @property
    def direction(self) -> str:
        """Say which values are good."""
        return "larger is better" if self.larger_is_better else "smaller is better"


_SHOWN = {
    "accuracy": ("accuracy (%)", 100.0, 2),
    "balanced_accuracy": ("balanced accuracy (%)", 100.0, 2),
    "f1": ("F1 (%)", 100.0, 2),
    "log_loss": ("log-loss", 1.0, 4),
    "brier": ("Brier score", 1.0, 4),
    "auc": ("AUC", 1.0, 4),
    "ece": ("calibration error", 1.0, 4),
    "fit_seconds": ("fit time (s)", 1.0, 3),
    "predict_seconds": ("predict time (s)", 1.0, 3),
    "peak_memory_mb": ("peak memory (MB)", 1.0, 1),
}

MEASURES = {
    name: Measure(name, *shown, larger_is_better=METRICS.get(name, False))
    for name, shown in _SHOWN.items()
}
"""The fields of rows that can be summarized."""


def check_metric(metric: str) -> None:
    """Refuse what is not a measure, and say which there are."""
    if metric not in MEASURES:
        raise ParameterError(
            f"There is no metric {metric!r}. Metrics: {', '.join(MEASURES)}."
        )
