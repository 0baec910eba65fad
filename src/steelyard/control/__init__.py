"""Control of a fitted model: a card of whole points, and edits that are recorded."""

from steelyard.control.card import Scorecard
from steelyard.control.edit_request import edit_steps
from steelyard.control.edits import edited, unedited
from steelyard.control.scorecard import scorecard_of

__all__ = ["Scorecard", "edit_steps", "edited", "scorecard_of", "unedited"]
