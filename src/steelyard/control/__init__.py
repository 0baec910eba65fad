"""Control of a fitted model: a card of whole points, and edits that are recorded."""

from steelyard.control.card import Scorecard
from steelyard.control.edits import edited, unedited
from steelyard.control.scorecard import scorecard_of
from steelyard.control.steps_of_columns import edit_steps

__all__ = ["Scorecard", "edit_steps", "edited", "scorecard_of", "unedited"]
