"""The map of an interaction: cells in the colours of evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.displays import drawing as draw
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.shared import InteractionSide
from steelyard.explain.value_tables import AttributeTable

# Against, none, for: the colours of evidence, paler towards the middle.
_COLOURS = ["#8c2f1c", "#c0543c", "#e8b5a6", "#f7f7f5", "#a9d3c2", "#2a7f62", "#14503c"]

_EMPTY = {"hatch": "////", "facecolor": "none", "edgecolor": "#8a918e", "linewidth": 0}

# Size of the names of values, and room for each in inches.
_TICKS, _ROOM = 7.0, 0.1


@dataclass(eq=False, repr=False)
class InteractionHeatmapDisplay(draw.Display):
    """Evidence of an interaction: a cell for each value of one and of the other.

    Colours are evidence beyond that of the two columns alone; cells without training
    rows are hatched.

    Parameters
    ----------
    table : AttributeTable
        The interaction.
    target : class, default=None
        The class that positive evidence supports: by default the second of two,
        or of several the one with the largest contributions.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import ShrinkageNB
    >>> from steelyard.displays import InteractionHeatmapDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X[:, 0] > 0) != (X[:, 1] > 0)
    >>> clf = ShrinkageNB(strength=(2.5, 10, 2.5), interactions=[(0, 1)]).fit(X, y)
    >>> display = InteractionHeatmapDisplay.from_estimator(clf, "x0 × x1")
    """

    table: AttributeTable
    target: Any = None

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        interaction: str | int | tuple[str, str] = 0,
        *,
        target: Any = None,
        ax: Any = None,
    ) -> InteractionHeatmapDisplay:
        """Draw one interaction of a classifier that is one sum.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        interaction : str, tuple of two column names or int, default=0
            The interaction by its name, its columns, or its rank by importance.
        target
            As in ``InteractionHeatmapDisplay``.
        """
        return cls(explain_global(clf).interaction(interaction), target).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        table = self.table
        if not table.sides:
            problem = f"{table.name} is not an interaction. Use ValueCurveDisplay."
            raise ParameterError(problem)
        importance = np.abs(table.cells).mean(axis=(0, 1))
        chosen = None if self.target is None else [self.target]
        (c,) = draw.shown_classes(table.classes, chosen, 1, importance)
        amounts, counts = table.cells[:, :, c], table.cell_counts
        n_lines, n_columns = amounts.shape
        first, second = table.sides
        widest = max(draw.text_width(text, _TICKS) for text in _names(second)) + _ROOM
        width = min(max(widest * n_columns, 1.7), 5.0)
        ax = self._axes(ax, width + 2.6, min(max(0.28 * n_lines, 1.5), 4.2) + 1.0)
        finite = np.abs(amounts[np.isfinite(amounts)])
        # The contribution that has the darkest colour.
        limit = max(float(finite.max(initial=0.0)), 1e-6)
        style: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.4}
        style["cmap"] = LinearSegmentedColormap.from_list("evidence", _COLOURS)
        image = ax.pcolormesh(amounts, vmin=-limit, vmax=limit, **style)
        for a, b in np.argwhere(~(counts > 0.0)) if counts is not None else ():
            ax.add_patch(draw.pyplot().Rectangle((b, a), 1, 1, **_EMPTY))
        _name_values(ax.yaxis, first)
        _name_values(ax.xaxis, second)
        inches = ax.get_window_extent().width / self.figure_.dpi
        if widest * n_columns > min(width, inches):
            ax.xaxis.set_tick_params(rotation=90)
        ax.set_ylabel(draw.label(first.name, 34), fontsize=8)
        ax.set_xlabel(draw.label(second.name, 44), fontsize=8)
        draw.bare(ax, "top", "right", "left", "bottom")
        names = [draw.label(name, 24) for name in table.classes]
        against = names[1 - c] if len(names) == 2 else "the others"
        bar = self.figure_.colorbar(image, ax=ax)
        bar.set_label(draw.sides(against, "log-odds", names[c]), fontsize=8)
        bar.ax.tick_params(labelsize=_TICKS)


def _names(side: InteractionSide) -> list[str]:
    """Return the texts of the ticks of a side: cut points, then values."""
    values = (draw.label(text, 18) for text in side.labels[side.n_intervals :])
    return [*short_numbers(side.edges), *values]


def _name_values(axis: Any, side: InteractionSide) -> None:
    """Put cut points between cells, and names of values beside them."""
    n = side.n_intervals
    positions = [*range(1, n), *(k + 0.5 for k in range(n, len(side.labels)))]
    axis.set_ticks(positions, _names(side), fontsize=_TICKS)
    axis.set_tick_params(length=2.0 if n else 0.0, pad=2.0)


def short_numbers(numbers: tuple[float, ...]) -> list[str]:
    """Write numbers with as few digits as keep them distinct.

    >>> short_numbers((10611.2, 13407.7, 15778.4))
    ['10600', '13400', '15800']
    >>> short_numbers((0.5, 1.5))
    ['0.5', '1.5']
    """
    texts: list[str] = []
    for digits in range(3, 18):
        texts = [f"{float(f'{x:.{digits}g}'):.{max(digits, 6)}g}" for x in numbers]
        if len(set(texts)) == len(texts):
            break
    return texts
