"""What all pictures do alike: find axes to draw on, and keep them."""

from __future__ import annotations

from typing import Any, Self

from steelyard.displays._style import pyplot

__all__ = ["Display"]


class Display:
    """A picture, and where it was drawn."""

    ax_: Any
    figure_: Any

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
