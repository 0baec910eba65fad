"""Control of a fitted model: a scorecard of whole points, and edits that are recorded.

Whoever adds up the points of a card needs no computer. ``card`` is what it contains and
is written as, ``scorecard`` how it is made, ``card_cells`` how cells are merged and
rounded; ``edits`` are changes by hand.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.control.card import *  # noqa: F403
    from steelyard.control.edits import *  # noqa: F403
    from steelyard.control.scorecard import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.control",
    card="Scorecard",
    edits="edit_steps edited unedited",
    scorecard="scorecard_of",
)
