"""Pictures of reproductions: curves, correlations, one method against others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_correlations", "draw_curves", "draw_mixtures", "draw_scatters"]

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
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    size = (7.0, 4.2) if len(panels) == 1 else (3.3 * columns, 2.8 * rows + 0.4)
    drawn, grid = _panels(*size, rows, columns)
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
    drawn, (grid,) = _panels(3.4 * len(tables) + 0.6, 3.6, columns=len(tables))
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
    drawn, (grid,) = _panels(2.6 * len(others), 3.0, columns=len(others))
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


def draw_mixtures(points: NDArray[np.float64], min_large: int) -> Any:
    """Draw mixtures against rows per class."""
    drawn, grid = _panels(6.0, 3.6)
    axes = grid[0, 0]
    axes.scatter(points[:, 0], points[:, 1], s=24, alpha=0.8, linewidths=0)
    axes.axvline(min_large, color="gray", lw=0.8, ls="--")
    axes.set(xscale="log", xlabel="rows per class", ylabel="alpha*, mean over folds")
    axes.grid(alpha=0.3)
    return drawn


def _panels(width: float, height: float, rows: int = 1, columns: int = 1) -> Any:
    """Return a figure and its axes, shape (rows, columns)."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, drawn.subplots(rows, columns, squeeze=False)
