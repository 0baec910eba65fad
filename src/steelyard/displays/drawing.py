"""Shared by all pictures: axes, colours, and labels that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any, Self

import numpy as np

from steelyard._common.loading import import_optional
from steelyard._common.text import shortened
from steelyard.explain.shared import position_of

_RETURNS = """
ax : matplotlib Axes, default=None
    Where to draw; a new figure if not given.

Returns
-------
{name}
    The picture."""

_ATTRIBUTES = """

Attributes
----------
ax_, figure_
    Where it was drawn."""

FOR, AGAINST, INK, PALE = "#2a7f62", "#c0543c", "#333333", "#d5d9d7"

# Distinguishable for most colour-blind readers (Okabe and Ito, 2008).
LINES = tuple("#0072b2 #e69f00 #009e73 #cc79a7 #56b4e9 #d55e00 #777777 #b8a800".split())


class Display:
    """Base class of pictures.

    Docstrings of subclasses are completed here: those of class methods with the
    parameter ``ax`` and what is returned, those of classes with the axes.
    """

    ax_: Any
    figure_: Any

    def __init_subclass__(cls) -> None:
        """Complete the docstrings of a kind of picture."""
        if cls.__doc__ and "ax_, figure_" not in cls.__doc__:
            cls.__doc__ = cleandoc(cls.__doc__) + _ATTRIBUTES
        for member in vars(cls).values():
            if isinstance(member, classmethod):
                text = cleandoc(member.__func__.__doc__ or "")
                if text and "\nReturns\n" not in text:
                    text += _RETURNS.format(name=cls.__name__)
                member.__func__.__doc__ = text

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if not given.

        Returns
        -------
        Display
            Itself.
        """
        self._draw(ax)
        return self

    def _draw(self, ax: Any) -> None:
        """Draw on the given axes, or on new ones if None."""
        raise NotImplementedError

    def _axes(self, ax: Any, width: float, height: float) -> Any:
        """Keep the user's axes, or new ones of a size in inches."""
        if ax is None:
            _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def pyplot() -> Any:
    """Import matplotlib's pyplot, or raise an error on how to install it."""
    return import_optional("matplotlib.pyplot", "Pictures need", "steelyard[plot]")


def side_colour(amount: float) -> str:
    """Return the colour of a contribution, by its sign."""
    return FOR if amount >= 0 else AGAINST


def largest(values: Any, n: int | None = None) -> list[int]:
    """Return the positions of the largest values, in falling order."""
    order: list[int] = np.argsort(-np.asarray(values), kind="stable").tolist()
    return order[:n]


def shown_classes(
    classes: Any, chosen: Sequence[Any] | None, limit: int, importance: Any
) -> list[int]:
    """Return positions of classes to draw: the chosen ones, or the second of two.

    Of several, the most important ones, at most ``limit``.
    """
    if chosen is not None:
        return [position_of(c, classes) for c in chosen]
    return [1] if len(classes) == 2 else sorted(largest(importance, limit))


def bare(ax: Any, *sides: str) -> None:
    """Remove the frame on some sides."""
    ax.spines[list(sides)].set_visible(False)


def headline(ax: Any, text: str, size: float = 10) -> None:
    """Set the title, small and flush left."""
    ax.set_title(text, fontsize=size, loc="left")


def sides(left: str, what: str, right: str) -> str:
    """Label both sides of a scale of contributions with their classes."""
    return f"← {left} · {what} · {right} →"


def count_bars(ax: Any, positions: Any, rows: Any, widths: Any) -> Any:
    """Draw counts as pale bars at the foot of a picture; return their axes."""
    twin = ax.twinx()
    ax.set_zorder(twin.get_zorder() + 1)
    ax.patch.set_visible(False)
    twin.bar(positions, rows, widths, color=PALE, zorder=0)
    top = max(rows.max(), 1)
    twin.set_ylim(0.0, 4.2 * top)
    # Counts are whole; weights of rows need not be.
    shown = f"{top:g}" if isinstance(top, float) else f"{top}"
    twin.set_yticks([0, top], ["0", shown])
    twin.set_ylabel("rows", loc="bottom")
    return twin


def label(text: Any, width: int) -> str:
    """Shorten a name, and keep matplotlib from reading formulas in it."""
    return shortened(str(text), width).replace("$", r"\$")


def text_width(text: str, size: float) -> float:
    """Width of a text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0]) / 72
