"""Pictures of reproductions: curves, correlations, one method against others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_correlations", "draw_curves", "draw_scatters"]

# Hollow markers, the first the largest: curves that coincide are all seen.
_MARKERS = ("o", "s", "^", "D", "v", "x")
_LINES = ("-", "-", "--", "--", ":", ":")


def draw_curves(
    panels: Mapping[str, tuple[Sequence[float], Mapping[str, Sequence[float]]]],
    xlabel: str,
    ylabel: str,
    *,
    columns: int = 3,
    log: bool = False,
) -> Any:
    """Draw curves in panels; each is its positions, and values by name."""
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    size = (7.0, 4.2) if len(panels) == 1 else (3.3 * columns, 2.8 * rows + 0.4)
    drawn = Figure(figsize=size, layout="constrained")
    grid = drawn.subplots(rows, columns, squeeze=False)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, (x, curves)) in zip(grid.ravel(), panels.items(), strict=False):
        for i, (name, y) in enumerate(curves.items()):
            style = {"marker": _MARKERS[i], "linestyle": _LINES[i]}
            axes.plot(
                x, y, label=name, markersize=8 - i, fillstyle="none", lw=1.2, **style
            )
        axes.set_title(title, fontsize="medium")
        axes.grid(alpha=0.3)
        if log:
            axes.set_xscale("log")
    drawn.supxlabel(xlabel, fontsize="medium")
    drawn.supylabel(ylabel, fontsize="medium")
    grid[0, 0].legend(frameon=False, fontsize="small")
    return drawn


def draw_correlations(tables: Mapping[str, NDArray[np.float64]]) -> Any:
    """Draw matrices of correlation coefficients."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(3.4 * len(tables) + 0.6, 3.6), layout="constrained")
    grid = drawn.subplots(1, len(tables), squeeze=False)[0]
    image: Any = None
    for axes, (title, table) in zip(grid, tables.items(), strict=True):
        image = axes.imshow(table, vmin=-1, vmax=1, cmap="RdBu_r")
        axes.set_title(title, fontsize="medium")
        axes.set_xticks([])
        axes.set_yticks([])
    drawn.colorbar(image, ax=list(grid), shrink=0.8, label="correlation")
    return drawn


def draw_scatters(
    ours: str,
    y: NDArray[np.float64],
    others: Mapping[str, NDArray[np.float64]],
    significant: Mapping[str, NDArray[np.bool_]],
) -> Any:
    """Draw one method against each of the others; filled where significant."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(2.6 * len(others), 3.0), layout="constrained")
    grid = drawn.subplots(1, len(others), squeeze=False)[0]
    for axes, (name, x) in zip(grid, others.items(), strict=True):
        ends = [min(x.min(), y.min()) - 2, max(x.max(), y.max()) + 2]
        axes.plot(ends, ends, color="black", lw=0.8)
        for filled, face in ((False, "none"), (True, None)):
            chosen = significant[name] == filled
            colours = np.where(y[chosen] >= x[chosen], "tab:blue", "tab:orange")
            axes.scatter(
                x[chosen],
                y[chosen],
                s=28,
                edgecolors=list(colours),
                facecolors=face or list(colours),
            )
        axes.set(xlim=ends, ylim=ends, aspect="equal", xlabel=name)
        axes.grid(alpha=0.3)
    grid[0].set_ylabel(ours)
    return drawn
