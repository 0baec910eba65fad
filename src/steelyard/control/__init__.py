"""Control of a fitted model: a card of whole points, and edits that are recorded."""

from steelyard.control.card import Scorecard
from steelyard.control.edits import edited, unedited
from steelyard.control.scorecard import scorecard_of

__all__ = ["Scorecard", "edited", "scorecard_of", "unedited"]
