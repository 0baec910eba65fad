"""What a pair of columns says, as a map of the values of both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.displays import _maps as maps
from steelyard.displays import _style as draw
from steelyard.displays._base import Display
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.value_tables import AttributeTable
from steelyard.explain.views import position_of

# How many classes have a map unless they are named.
_MAX_CLASSES = 12


@dataclass(eq=False, repr=False)
class PairHeatmapDisplay(Display):
    """Evidence of a pair of columns: a cell for each value of one and of the other.

    Colours are evidence beyond that of the two columns alone; cells without training
    rows are hatched. With several classes there is a map for each.

    Parameters
    ----------
    table : AttributeTable
        The pair.
    classes : list, default=None
        Classes with a map: by default the second of two, or up to twelve of several,
        those that the pair says most about. On axes that are given there is one
        map.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import ShrinkageNB
    >>> from steelyard.displays import PairHeatmapDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X[:, 0] > 0) != (X[:, 1] > 0)
    >>> clf = ShrinkageNB(strength=(2.5, 10, 2.5), pairs=[(0, 1)]).fit(X, y)
    >>> display = PairHeatmapDisplay.from_estimator(clf, "x0 × x1")
    """

    table: AttributeTable
    classes: list[Any] | None = None

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        pair: str | int | tuple[str, str] = 0,
        *,
        classes: list[Any] | None = None,
        ax: Any = None,
    ) -> PairHeatmapDisplay:
        """Draw one pair of a classifier that is one sum.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        pair : str, tuple of two column names or int, default=0
            The pair by its name, its columns, or its place by importance.
        classes
            As in ``PairHeatmapDisplay``.
        """
        return cls(explain_global(clf).pair(pair), classes).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        table = self.table
        if not table.sides:
            problem = f"{table.name} is no pair of columns. Use ValueCurveDisplay."
            raise ParameterError(problem)
        chosen = self._chosen(_MAX_CLASSES if ax is None else 1)
        n_columns = min(len(chosen), maps.MAX_LINE)
        n_lines = math.ceil(len(chosen) / n_columns)
        if ax is None:
            width = maps.map_inches(table, n_columns)[0]
            size = maps.figure_inches(table, n_columns, n_lines)
            options: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
            options.update(figsize=size, layout="constrained")
            figure, axes = draw.pyplot().subplots(n_lines, n_columns, **options)
            places = axes.ravel().tolist()
        else:
            figure, places = ax.figure, [ax]
            width = float(ax.get_window_extent().width / figure.dpi)
        self.ax_, self.figure_ = places[0], figure
        for place in places[len(chosen) :]:
            place.set_visible(False)
        limit = maps.colour_limit(table.cells[:, :, chosen])
        for place, c in zip(places, chosen, strict=False):
            image = maps.draw_map(place, table, c, limit, width)
            if len(table.classes) > 2:
                draw.headline(place, draw.label(table.classes[c], 28), 9)
        if ax is None:
            _name_outer(places[: len(chosen)], n_columns)
        maps.colour_bar(figure, image, places[: len(chosen)], n_lines, self._scale())

    def _scale(self) -> str:
        names = [draw.label(c, 24) for c in self.table.classes]
        if len(names) == 2:
            return draw.sides(names[0], "log-odds", names[1])
        return maps.SCALE

    def _chosen(self, most: int) -> list[int]:
        if self.classes is not None:
            places = [position_of(c, self.table.classes) for c in self.classes]
            return places[:1] if most == 1 else places
        if len(self.table.classes) == 2:
            return [1]
        strength = self.table.importance
        if strength is None:
            strength = np.abs(self.table.cells).mean(axis=(0, 1))
        return sorted(draw.largest(strength, most))


def _name_outer(places: list[Any], n_columns: int) -> None:
    """Name axes at the left, and below where no other map is."""
    n_lines = math.ceil(len(places) / n_columns)
    for k, place in enumerate(places):
        if k % n_columns:
            place.set_ylabel("")
        if k + n_columns < len(places):
            place.set_xlabel("")
            continue
        place.tick_params(labelbottom=True)
        if k // n_columns < n_lines - 1:
            # Its names lie where the last line has no map.
            place.xaxis.set_in_layout(False)
