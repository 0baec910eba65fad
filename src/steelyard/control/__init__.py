"""Control of a fitted model: a card of whole points, and edits that are recorded.

Who adds up the points of a card needs no computer. ``card`` is what it holds,
``card_cells`` and ``card_columns`` how it is made, ``card_files`` how it is written;
``edits`` are changes by hand, ``edit_request`` what they may ask for.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.control.card import *  # noqa: F403
    from steelyard.control.edit_request import *  # noqa: F403
    from steelyard.control.edits import *  # noqa: F403
    from steelyard.control.scorecard import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.control",
    card="Scorecard",
    edit_request="edit_steps",
    edits="edited unedited",
    scorecard="scorecard_of",
)
