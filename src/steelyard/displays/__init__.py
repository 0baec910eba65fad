"""Pictures of models, in scikit-learn's manner; they need matplotlib."""

from steelyard.displays.contributions import ValueCurveDisplay, WaterfallDisplay
from steelyard.displays.fits import (
    RegularizationPathDisplay,
    SolverTraceDisplay,
    StrengthPathDisplay,
    WeightPath,
    regularization_path,
)
from steelyard.displays.nomogram import NomogramDisplay
from steelyard.displays.pair_maps import PairHeatmapDisplay
from steelyard.displays.probabilities import ReliabilityDisplay, ROCDisplay
from steelyard.displays.weight_bars import WeightBarsDisplay, WeightHeatmapDisplay

__all__ = [
    "NomogramDisplay",
    "PairHeatmapDisplay",
    "ROCDisplay",
    "RegularizationPathDisplay",
    "ReliabilityDisplay",
    "SolverTraceDisplay",
    "StrengthPathDisplay",
    "ValueCurveDisplay",
    "WaterfallDisplay",
    "WeightBarsDisplay",
    "WeightHeatmapDisplay",
    "WeightPath",
    "regularization_path",
]
