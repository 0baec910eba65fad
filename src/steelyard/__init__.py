"""Weighted naive Bayes classification for ordinary tables.

Names are loaded when they are first used, so that ``import steelyard`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AUCWeightedNB": "steelyard.classifiers.filters",
    "AttributeWeightedNB": "steelyard.classifiers.published",
    "BoostedNB": "steelyard.classifiers.boosted",
    "ClassAttributeWeightedNB": "steelyard.classifiers.published",
    "CollaborativeNB": "steelyard.classifiers.collaborative",
    "CorrelationAdjustedNB": "steelyard.classifiers.evolved",
    "CorrelationWeightedNB": "steelyard.classifiers.filters",
    "CostSensitiveNB": "steelyard.classifiers.cost_sensitive",
    "DeepWeightedNB": "steelyard.classifiers.filters",
    "DevianceNB": "steelyard.classifiers.published",
    "EqualFrequencyDiscretizer": "steelyard.table.discretizers",
    "EqualWidthDiscretizer": "steelyard.table.discretizers",
    "EvolvedWeightsNB": "steelyard.classifiers.evolved",
    "ExponentialNB": "steelyard.classifiers.published",
    "FixedEdgesDiscretizer": "steelyard.table.discretizers",
    "ForwardSelectedNB": "steelyard.classifiers.selective",
    "GainRatioWeightedNB": "steelyard.classifiers.filters",
    "GeneralizedDevianceNB": "steelyard.classifiers.published",
    "InstanceWeightedNB": "steelyard.classifiers.instance_weighted",
    "JointWeightedNB": "steelyard.classifiers.joint",
    "LazyAttributeInstanceNB": "steelyard.classifiers.lazy",
    "LocallyWeightedNB": "steelyard.classifiers.lazy",
    "LogisticNB": "steelyard.classifiers.published",
    "MDLDiscretizer": "steelyard.table.discretizers",
    "NaiveBayes": "steelyard.classifiers.base",
    "RegularizedNB": "steelyard.classifiers.published",
    "SPSSNaiveBayes": "steelyard.classifiers.spss",
    "SelectiveNB": "steelyard.classifiers.selective",
    "ShrinkageNB": "steelyard.classifiers.shrinkage",
    "SquaredErrorNB": "steelyard.classifiers.published",
    "TableEncoder": "steelyard.table.encoder",
    "TreeWeightedNB": "steelyard.classifiers.filters",
    "ValueWeightedNB": "steelyard.classifiers.published",
    "WeightedNB": "steelyard.classifiers.weighted",
    "compare": "steelyard.experiments.runner",
    "load": "steelyard.persistence",
    "method": "steelyard.classifiers.registry",
    "methods": "steelyard.classifiers.registry",
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
    from steelyard.classifiers.base import NaiveBayes
    from steelyard.classifiers.boosted import BoostedNB
    from steelyard.classifiers.collaborative import CollaborativeNB
    from steelyard.classifiers.cost_sensitive import CostSensitiveNB
    from steelyard.classifiers.evolved import CorrelationAdjustedNB, EvolvedWeightsNB
    from steelyard.classifiers.filters import (
        AUCWeightedNB,
        CorrelationWeightedNB,
        DeepWeightedNB,
        GainRatioWeightedNB,
        TreeWeightedNB,
    )
    from steelyard.classifiers.instance_weighted import InstanceWeightedNB
    from steelyard.classifiers.joint import JointWeightedNB
    from steelyard.classifiers.lazy import LazyAttributeInstanceNB, LocallyWeightedNB
    from steelyard.classifiers.published import (
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
    from steelyard.classifiers.registry import method, methods
    from steelyard.classifiers.selective import ForwardSelectedNB, SelectiveNB
    from steelyard.classifiers.shrinkage import ShrinkageNB
    from steelyard.classifiers.spss import SPSSNaiveBayes
    from steelyard.classifiers.weighted import WeightedNB
    from steelyard.experiments.runner import compare
    from steelyard.persistence import load
    from steelyard.table.discretizers import (
        EqualFrequencyDiscretizer,
        EqualWidthDiscretizer,
        FixedEdgesDiscretizer,
        MDLDiscretizer,
    )
    from steelyard.table.encoder import TableEncoder


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
