"""Weighted naive Bayes classification for ordinary tables.

Names are loaded when they are first used, so that ``import steelyard`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AUCWeightedNB": "steelyard.filtered",
    "AttributeWeightedNB": "steelyard.learned",
    "BoostedNB": "steelyard.boosted",
    "ClassAttributeWeightedNB": "steelyard.learned",
    "CollaborativeNB": "steelyard.collaborative",
    "CorrelationAdjustedNB": "steelyard.wrapped",
    "CorrelationWeightedNB": "steelyard.filtered",
    "CostSensitiveNB": "steelyard.cost_sensitive",
    "DeepWeightedNB": "steelyard.filtered",
    "DevianceNB": "steelyard.learned",
    "EqualFrequencyDiscretizer": "steelyard.table.discretizers",
    "EqualWidthDiscretizer": "steelyard.table.discretizers",
    "EvolvedWeightsNB": "steelyard.wrapped",
    "ExponentialNB": "steelyard.learned",
    "FixedEdgesDiscretizer": "steelyard.table.discretizers",
    "ForwardSelectedNB": "steelyard.selective",
    "GainRatioWeightedNB": "steelyard.filtered",
    "GeneralizedDevianceNB": "steelyard.learned",
    "InstanceWeightedNB": "steelyard.instance_weighted",
    "JointWeightedNB": "steelyard.joint",
    "LazyAttributeInstanceNB": "steelyard.lazy",
    "LocallyWeightedNB": "steelyard.lazy",
    "LogisticNB": "steelyard.learned",
    "MDLDiscretizer": "steelyard.table.discretizers",
    "NaiveBayes": "steelyard.classifier",
    "RegularizedNB": "steelyard.learned",
    "SPSSNaiveBayes": "steelyard.spss",
    "SelectiveNB": "steelyard.selective",
    "ShrinkageNB": "steelyard.shrinkage",
    "SquaredErrorNB": "steelyard.learned",
    "TableEncoder": "steelyard.table.encoder",
    "TreeWeightedNB": "steelyard.filtered",
    "ValueWeightedNB": "steelyard.learned",
    "WeightedNB": "steelyard.weighted",
    "compare": "steelyard.experiments.runner",
    "load": "steelyard.persistence",
    "method": "steelyard.presets",
    "methods": "steelyard.presets",
}

__all__ = [
    "AUCWeightedNB",
    "AttributeWeightedNB",
    "BoostedNB",
    "ClassAttributeWeightedNB",
    "CollaborativeNB",
    "CorrelationAdjustedNB",
    "CorrelationWeightedNB",
    "CostSensitiveNB",
    "DeepWeightedNB",
    "DevianceNB",
    "EqualFrequencyDiscretizer",
    "EqualWidthDiscretizer",
    "EvolvedWeightsNB",
    "ExponentialNB",
    "FixedEdgesDiscretizer",
    "ForwardSelectedNB",
    "GainRatioWeightedNB",
    "GeneralizedDevianceNB",
    "InstanceWeightedNB",
    "JointWeightedNB",
    "LazyAttributeInstanceNB",
    "LocallyWeightedNB",
    "LogisticNB",
    "MDLDiscretizer",
    "NaiveBayes",
    "RegularizedNB",
    "SPSSNaiveBayes",
    "SelectiveNB",
    "ShrinkageNB",
    "SquaredErrorNB",
    "TableEncoder",
    "TreeWeightedNB",
    "ValueWeightedNB",
    "WeightedNB",
    "__version__",
    "compare",
    "load",
    "method",
    "methods",
]

if TYPE_CHECKING:
    from steelyard.boosted import BoostedNB
    from steelyard.classifier import NaiveBayes
    from steelyard.collaborative import CollaborativeNB
    from steelyard.cost_sensitive import CostSensitiveNB
    from steelyard.experiments.runner import compare
    from steelyard.filtered import (
        AUCWeightedNB,
        CorrelationWeightedNB,
        DeepWeightedNB,
        GainRatioWeightedNB,
        TreeWeightedNB,
    )
    from steelyard.instance_weighted import InstanceWeightedNB
    from steelyard.joint import JointWeightedNB
    from steelyard.lazy import LazyAttributeInstanceNB, LocallyWeightedNB
    from steelyard.learned import (
        AttributeWeightedNB,
        ClassAttributeWeightedNB,
        DevianceNB,
        ExponentialNB,
        GeneralizedDevianceNB,
        LogisticNB,
        RegularizedNB,
        SquaredErrorNB,
        ValueWeightedNB,
    )
    from steelyard.persistence import load
    from steelyard.presets import method, methods
    from steelyard.selective import ForwardSelectedNB, SelectiveNB
    from steelyard.shrinkage import ShrinkageNB
    from steelyard.spss import SPSSNaiveBayes
    from steelyard.table.discretizers import (
        EqualFrequencyDiscretizer,
        EqualWidthDiscretizer,
        FixedEdgesDiscretizer,
        MDLDiscretizer,
    )
    from steelyard.table.encoder import TableEncoder
    from steelyard.weighted import WeightedNB
    from steelyard.wrapped import CorrelationAdjustedNB, EvolvedWeightsNB


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
