"""Weighted naive Bayes classification for ordinary tables.

Names are loaded when they are first used, so that ``import steelyard`` stays quick.
``__all__`` has those that most people need; ``dir`` has every class of the reference,
which can be imported from here in the same way.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

__all__ = [
    "CollaborativeNB",
    "EqualFrequencyDiscretizer",
    "EqualWidthDiscretizer",
    "FixedEdgesDiscretizer",
    "InstanceWeightedNB",
    "MDLDiscretizer",
    "NaiveBayes",
    "RegularizedNB",
    "SPSSNaiveBayes",
    "ShrinkageNB",
    "TableEncoder",
    "WeightedNB",
    "__version__",
    "compare",
    "evaluate",
    "load",
    "merge",
    "method",
    "methods",
    "read",
    "scan",
]

if TYPE_CHECKING:
    from steelyard._common.progress import watch as watch
    from steelyard.classifiers.evolved import *  # noqa: F403
    from steelyard.classifiers.filters import *  # noqa: F403
    from steelyard.classifiers.instance_weighted import *  # noqa: F403
    from steelyard.classifiers.joint import *  # noqa: F403
    from steelyard.classifiers.lazy import *  # noqa: F403
    from steelyard.classifiers.merging import merge
    from steelyard.classifiers.naive_bayes import *  # noqa: F403
    from steelyard.classifiers.one_dependence import *  # noqa: F403
    from steelyard.classifiers.presets import *  # noqa: F403
    from steelyard.classifiers.registry import method, methods
    from steelyard.classifiers.selective import *  # noqa: F403
    from steelyard.classifiers.shrinkage import *  # noqa: F403
    from steelyard.classifiers.spss import *  # noqa: F403
    from steelyard.classifiers.weighted import *  # noqa: F403
    from steelyard.evaluation.evaluate import evaluate
    from steelyard.gpu.devices import has_device as has_device
    from steelyard.io import scan
    from steelyard.io.dataset import read
    from steelyard.lab.runner import compare
    from steelyard.notices.notice import Notice as Notice
    from steelyard.persistence.files import load
    from steelyard.table.discretizers import *  # noqa: F403
    from steelyard.table.encoder import *  # noqa: F403


def __getattr__(name: str) -> Any:
    from steelyard.classifiers.registry import homes

    if name not in homes():
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    value = getattr(import_module(homes()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from steelyard.classifiers.registry import homes

    return sorted({*homes(), *__all__})
