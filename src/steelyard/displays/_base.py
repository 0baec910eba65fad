"""What all pictures do alike: find axes to draw on, and keep them."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, Self

from steelyard.displays._style import pyplot

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


class Display:
    """A picture, and where it was drawn.

    What all pictures have is written here once: docstrings of class methods that make
    one end with their own parameters, those of classes need not name the axes.
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
        """Draw on what ``_axes`` returns for these axes, or None."""
        raise NotImplementedError

    def _axes(self, ax: Any, width: float, height: float) -> Any:
        """Keep the user's axes, or new ones of a size in inches."""
        if ax is None:
            _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax
