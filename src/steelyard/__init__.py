"""Weighted naive Bayes classification for ordinary tables.

Names are loaded when they are first used, so that ``import steelyard`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AttributeWeightedNB": "steelyard.learned",
    "BoostedNB": "steelyard.boosted",
    "ClassAttributeWeightedNB": "steelyard.learned",
    "CollaborativeNB": "steelyard.collaborative",
    "DevianceNB": "steelyard.learned",
    "EqualFrequencyDiscretizer": "steelyard.table.discretizers",
    "EqualWidthDiscretizer": "steelyard.table.discretizers",
    "ExponentialNB": "steelyard.learned",
    "FixedEdgesDiscretizer": "steelyard.table.discretizers",
    "GeneralizedDevianceNB": "steelyard.learned",
    "InstanceWeightedNB": "steelyard.instance_weighted",
    "JointWeightedNB": "steelyard.joint",
    "LazyAttributeInstanceNB": "steelyard.lazy",
    "LocallyWeightedNB": "steelyard.lazy",
    "LogisticNB": "steelyard.learned",
    "MDLDiscretizer": "steelyard.table.discretizers",
    "NaiveBayes": "steelyard.classifier",
    "RegularizedNB": "steelyard.learned",
    "SquaredErrorNB": "steelyard.learned",
    "TableEncoder": "steelyard.table.encoder",
    "ValueWeightedNB": "steelyard.learned",
    "WeightedNB": "steelyard.weighted",
    "load": "steelyard.persistence",
    "method": "steelyard.presets",
    "methods": "steelyard.presets",
}

__all__ = [
    "AttributeWeightedNB",
    "BoostedNB",
    "ClassAttributeWeightedNB",
    "CollaborativeNB",
    "DevianceNB",
    "EqualFrequencyDiscretizer",
    "EqualWidthDiscretizer",
    "ExponentialNB",
    "FixedEdgesDiscretizer",
    "GeneralizedDevianceNB",
    "InstanceWeightedNB",
    "JointWeightedNB",
    "LazyAttributeInstanceNB",
    "LocallyWeightedNB",
    "LogisticNB",
    "MDLDiscretizer",
    "NaiveBayes",
    "RegularizedNB",
    "SquaredErrorNB",
    "TableEncoder",
    "ValueWeightedNB",
    "WeightedNB",
    "__version__",
    "load",
    "method",
    "methods",
]

if TYPE_CHECKING:
    from steelyard.boosted import BoostedNB
    from steelyard.classifier import NaiveBayes
    from steelyard.collaborative import CollaborativeNB
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
    from steelyard.table.discretizers import (
        EqualFrequencyDiscretizer,
        EqualWidthDiscretizer,
        FixedEdgesDiscretizer,
        MDLDiscretizer,
    )
    from steelyard.table.encoder import TableEncoder
    from steelyard.weighted import WeightedNB


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
