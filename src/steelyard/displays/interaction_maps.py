"""Maps of interactions: cells in the colours of evidence, with readable axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.displays import drawing as draw
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.shared import InteractionSide
from steelyard.explain.value_tables import AttributeTable

# Maps in one line.
_MAX_LINE = 4

_SCALE = "evidence in log-odds"

# Against, none, for: the colours of evidence, paler towards the middle.
_COLOURS = ("#8c2f1c", "#c0543c", "#e8b5a6", "#f7f7f5", "#a9d3c2", "#2a7f62", "#14503c")

_EMPTY = {"hatch": "////", "facecolor": "none", "edgecolor": "#8a918e", "linewidth": 0}
_RING = {"fill": False, "edgecolor": draw.INK, "linewidth": 1.6}

# Size of the names of values, and room between them in inches.
_TICKS, _ROOM = 7.0, 0.1

# Inches of one of several maps of different interactions: itself, and what is above it.
_SMALL_MAP, _SMALL_HEIGHT = 1.7, 2.0

# How many classes have a map unless they are named.
_MAX_CLASSES = 12


def _map_inches(table: AttributeTable, n_columns: int) -> tuple[float, float]:
    """Return width and height of one map, with ``n_columns`` maps in a line."""
    a, b = (len(side.labels) for side in table.sides)
    widest, highest = (2.3, 2.2) if n_columns > 1 else (5.0, 4.2)
    width = min(max((_widest(table.sides[1]) + _ROOM) * b, 1.7), widest)
    return width, min(max(0.28 * a, 1.5), highest)


def _figure_inches(
    table: AttributeTable, n_columns: int, n_lines: int
) -> tuple[float, float]:
    """Return the size of a figure of all maps of one interaction."""
    width, height = _map_inches(table, n_columns)
    first, second = table.sides
    below = 0.15 if _fits(second, width) else _widest(second)
    wide = n_columns * (width + 0.15) + _widest(first) + 1.5
    return wide, n_lines * (height + 0.3) + below + 0.5


def maps_height(tables: list[AttributeTable]) -> float:
    """Return the height in inches of maps of several interactions, four in a line."""
    below = max(_widest(table.sides[1]) for table in tables)
    return math.ceil(len(tables) / _MAX_LINE) * (_SMALL_HEIGHT + below) + 0.1


def draw_maps(
    figure: Any,
    tables: list[AttributeTable],
    c: int,
    marked: Callable[[AttributeTable], tuple[int, int] | None],
) -> None:
    """Draw maps of several interactions for one class, on one scale of colours."""
    n_lines = math.ceil(len(tables) / _MAX_LINE)
    axes = figure.subplots(n_lines, _MAX_LINE, squeeze=False).ravel().tolist()
    image = _draw_all(axes, [(table, c) for table in tables], _SMALL_MAP)
    for ax, table in zip(axes, tables, strict=False):
        cell = marked(table)
        if cell is not None:
            ax.add_patch(draw.pyplot().Rectangle(cell[::-1], 1, 1, **_RING))
    beside = axes if n_lines > 1 else axes[: len(tables)]
    _colour_bar(figure, image, beside, n_lines, _SCALE)


def _draw_all(
    axes: list[Any], maps: list[tuple[AttributeTable, int]], width: float
) -> Any:
    """Draw maps, each an interaction for a class, and hide the axes that are left."""
    amounts = [table.cells[:, :, c].ravel() for table, c in maps]
    finite = np.abs(np.concatenate(amounts))
    finite = finite[np.isfinite(finite)]
    # The contribution that has the darkest colour.
    limit = max(float(finite.max(initial=0.0)), 1e-6)
    for ax, (table, c) in zip(axes, maps, strict=False):
        image = _draw_map(ax, table, c, limit, width)
    for ax in axes[len(maps) :]:
        ax.set_visible(False)
    return image


def _colour_bar(
    figure: Any, image: Any, axes: list[Any], n_lines: int, scale: str
) -> None:
    """Draw the scale of colours beside the lines of maps."""
    size = {"aspect": 18.0 * n_lines, "shrink": 0.9 if n_lines == 1 else 0.6}
    bar = figure.colorbar(image, ax=axes, **size)
    bar.set_label(scale, fontsize=8)
    bar.ax.tick_params(labelsize=_TICKS)


def _widest(side: InteractionSide) -> float:
    return max((draw.text_width(text, _TICKS) for text in _names(side)), default=0.0)


def _fits(side: InteractionSide, width: float) -> bool:
    """Whether the names of a side fit into a width."""
    return (_widest(side) + _ROOM / 2.0) * len(side.labels) <= width


def _draw_map(
    ax: Any, table: AttributeTable, c: int, limit: float, width: float
) -> Any:
    """Draw an interaction for one class on axes of about this width."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("evidence", list(_COLOURS))
    amounts, counts = table.cells[:, :, c], table.cell_counts
    style = {"cmap": colours, "vmin": -limit, "vmax": limit}
    style.update(edgecolors="white", linewidth=0.4)
    image = ax.pcolormesh(amounts, **style)
    if counts is not None and not (counts > 0.0).all():
        for a, b in np.argwhere(~(counts > 0.0)):
            ax.add_patch(draw.pyplot().Rectangle((b, a), 1, 1, **_EMPTY))
    first, second = table.sides
    _name_values(ax.yaxis, first)
    _name_values(ax.xaxis, second)
    if not _fits(second, width):
        ax.xaxis.set_tick_params(rotation=90)
    ax.set_ylabel(draw.label(first.name, 34), fontsize=8)
    ax.set_xlabel(draw.label(second.name, 44), fontsize=8)
    draw.bare(ax, "top", "right", "left", "bottom")
    return image


def _names(side: InteractionSide) -> list[str]:
    """Return the texts of the ticks of a side: cut points, then values."""
    return [*short_numbers(side.edges), *_values(side)]


def _values(side: InteractionSide) -> list[str]:
    return [draw.label(text, 18) for text in side.labels[side.n_intervals :]]


def _name_values(axis: Any, side: InteractionSide) -> None:
    """Put cut points between cells, and names of values beside them."""
    n = side.n_intervals
    positions = [*range(1, n), *(k + 0.5 for k in range(n, len(side.labels)))]
    axis.set_ticks(positions, _names(side), fontsize=_TICKS)
    axis.set_tick_params(length=2.0 if n else 0.0, pad=2.0)


def short_numbers(numbers: tuple[float, ...]) -> list[str]:
    """Write numbers with as few digits as keep them distinct.

    Examples
    --------
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


@dataclass(eq=False, repr=False)
class InteractionHeatmapDisplay(draw.Display):
    """Evidence of an interaction: a cell for each value of one and of the other.

    Colours are evidence beyond that of the two columns alone; cells without training
    rows are hatched. With several classes there is a map for each.

    Parameters
    ----------
    table : AttributeTable
        The interaction.
    classes : list, default=None
        Classes with a map: by default the second of two, or up to twelve of several,
        those with the largest contributions. On axes that are given there is one
        map.

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
    classes: list[Any] | None = None

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        interaction: str | int | tuple[str, str] = 0,
        *,
        classes: list[Any] | None = None,
        ax: Any = None,
    ) -> InteractionHeatmapDisplay:
        """Draw one interaction of a classifier that is one sum.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        interaction : str, tuple of two column names or int, default=0
            The interaction by its name, its columns, or its rank by importance.
        classes
            As in ``InteractionHeatmapDisplay``.
        """
        return cls(explain_global(clf).interaction(interaction), classes).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        table = self.table
        if not table.sides:
            problem = f"{table.name} is not an interaction. Use ValueCurveDisplay."
            raise ParameterError(problem)
        limit, importance = _MAX_CLASSES if ax is None else 1, table.importance
        if importance is None:
            importance = np.abs(table.cells).mean(axis=(0, 1))
        chosen = draw.shown_classes(table.classes, self.classes, limit, importance)
        n_columns = min(len(chosen), _MAX_LINE)
        n_lines = math.ceil(len(chosen) / n_columns)
        if ax is None:
            width = _map_inches(table, n_columns)[0]
            size = _figure_inches(table, n_columns, n_lines)
            options: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
            options.update(figsize=size, layout="constrained")
            figure, grid = draw.pyplot().subplots(n_lines, n_columns, **options)
            axes = grid.ravel().tolist()
        else:
            figure, axes, chosen = ax.figure, [ax], chosen[:1]
            width = float(ax.get_window_extent().width / figure.dpi)
        self.ax_, self.figure_ = axes[0], figure
        image = _draw_all(axes, [(table, c) for c in chosen], width)
        axes = axes[: len(chosen)]
        scale = _SCALE
        if len(table.classes) == 2:
            first, second = (draw.label(c, 24) for c in table.classes)
            scale = draw.sides(first, "log-odds", second)
        else:
            for place, c in zip(axes, chosen, strict=True):
                draw.headline(place, draw.label(table.classes[c], 28), 9)
        if ax is None:
            _name_outer(axes, n_columns)
        _colour_bar(figure, image, axes, n_lines, scale)


def _name_outer(axes: list[Any], n_columns: int) -> None:
    """Name axes at the left, and below if no other map is there."""
    n_lines = math.ceil(len(axes) / n_columns)
    for k, ax in enumerate(axes):
        if k % n_columns:
            ax.set_ylabel("")
        if k + n_columns < len(axes):
            ax.set_xlabel("")
            continue
        ax.tick_params(labelbottom=True)
        if k // n_columns < n_lines - 1:
            # Its names are at a place where the last line has no map.
            ax.xaxis.set_in_layout(False)
