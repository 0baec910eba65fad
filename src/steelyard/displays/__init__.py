"""Pictures of models, in scikit-learn's manner; they need matplotlib."""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.displays.contributions import *  # noqa: F403
    from steelyard.displays.interaction_maps import *  # noqa: F403
    from steelyard.displays.nomogram import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.displays",
    contributions="ValueCurveDisplay WaterfallDisplay",
    nomogram="NomogramDisplay",
    interaction_maps="InteractionHeatmapDisplay",
)
