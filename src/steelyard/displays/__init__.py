"""Pictures of models, in scikit-learn's manner; they need matplotlib."""

from steelyard.displays.nomogram import NomogramDisplay
from steelyard.displays.pairs import PairHeatmapDisplay
from steelyard.displays.path import (
    RegularizationPathDisplay,
    StrengthPathDisplay,
    WeightPath,
    regularization_path,
)
from steelyard.displays.reliability import ReliabilityDisplay
from steelyard.displays.roc import ROCDisplay
from steelyard.displays.trace import SolverTraceDisplay
from steelyard.displays.values import ValueCurveDisplay
from steelyard.displays.waterfall import WaterfallDisplay
from steelyard.displays.weights import WeightBarsDisplay, WeightHeatmapDisplay

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
