"""Published methods by their acronyms: which exist, and how to get one.

The registry is data: a class is imported when it is asked for, so that listing methods
loads nothing, and ``steelyard.X`` finds every public class here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard._common.text import did_you_mean, text_table
from steelyard.exceptions import ParameterError

if TYPE_CHECKING:
    from steelyard.classifiers.base import BaseNB

__all__ = ["CLASSES", "DEFAULT", "HOMES", "Method", "MethodTable", "method", "methods"]

DEFAULT = "SHNB"
"""The method that is used where none is named."""


@dataclass(frozen=True)
class Method:
    """One published method: a class with some of its settings fixed."""

    acronym: str
    home: str
    """Module and class, below ``steelyard.classifiers``."""

    family: str
    learns: str
    paper: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return self.home.partition(".")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """Acronym and aliases."""
        return (self.acronym, *self.aliases)

    @property
    def estimator(self) -> type[BaseNB]:
        """The class."""
        module = import_module(f"steelyard.classifiers.{self.home.partition('.')[0]}")
        cls: type[BaseNB] = getattr(module, self.class_name)
        return cls

    def create(self, **settings: Any) -> BaseNB:
        """Return an unfitted classifier, with further settings or other ones."""
        chosen = {**self.settings, **settings}
        allowed = self.estimator._get_param_names()
        for name in chosen:
            if name not in allowed:
                raise ParameterError(
                    f"{self.acronym} has no setting {name!r}."
                    f"{did_you_mean(name, allowed)} Settings: {', '.join(allowed)}."
                )
        return self.estimator(**chosen)


_LANGLEY = "Langley, Iba & Thompson, AAAI 1992"
_JOHN = "John & Langley, UAI 1995"
_ZAIDI = "Zaidi, Cerquides, Carman & Webb, JMLR 2013"
_JIANG = "Jiang, Zhang, Yu & Wang, Pattern Recognition 2019"
_ZHANG = "Zhang, Jiang & Yu, Information Sciences 2020"
_WANG = "Wang, Ren & Bai, IEEE Access 2020"
_KIM = "Kim & Lee, IEEE Access 2022"
_DWNB = "Jiang, Wang & Cai, IJAIT 2012"
_XU = "Xu, Jiang & Yu, JETAI 2019"
_FRANK = "Frank, Hall & Pfahringer, UAI 2003"
_ELKAN = "Elkan, UCSD CS97-557, 1997"
_CWNB = "Zhang, Jiang & Li, KAIS 2021"
_AIWNB = "Zhang, Jiang & Yu, Pattern Recognition 2021"
_CFW = "Jiang, Zhang, Li & Wu, IEEE TKDE 2019"
_DFWNB = "Jiang, Li, Wang & Zhang, EAAI 2016"
_SHENG = "Zhang & Sheng, ICDM 2004"
_KLNB = "Lee, Gutierrez & Dou, ICDM 2011"
_HALL = "Hall, Knowledge-Based Systems 2007"
_AUC = "Kim, Chung & Lee, Computing 2017"
_DE = "Wu & Cai, J. Computational Information Systems 2011"
_CWANB = "Yu, Gan, Chen & He, IEEE Access 2020"
_TCSFS = "Jiang, Kong & Li, IEEE Trans. SMC: Systems 2019"
_SBC = "Langley & Sage, UAI 1994"
_SNB = "Chen, Webb, Liu & Ma, Knowledge-Based Systems 2020"
_SPSS = "IBM SPSS Statistics Algorithms, Naive Bayes"

_PLAIN = "plain"
_LEARNED = "learned attribute weights"
_INSTANCES = "instance weights"
_BOTH = "both"
_FILTERS = "filters"
_WRAPPERS = "wrappers and selection"
_OURS = "ours"

_WANBIA = ("published.AttributeWeightedNB", _LEARNED, "a weight per attribute", _ZAIDI)
_CAWNB = (
    "published.ClassAttributeWeightedNB",
    _LEARNED,
    "a weight per class and attribute",
    _JIANG,
)
_CAVWNB = (
    "published.ValueWeightedNB",
    _LEARNED,
    "a weight per class, attribute and value",
    _ZHANG,
)
_CWNB_ENTRY = (
    "collaborative.CollaborativeNB",
    _BOTH,
    "a weight per row and per attribute",
    _CWNB,
)
_COUNTS_ONLY = "nothing beyond counts"

_METHODS = (
    Method("NB", "naive_bayes.NaiveBayes", _PLAIN, _COUNTS_ONLY, _LANGLEY),
    Method(
        "NB-Laplace",
        "naive_bayes.NaiveBayes",
        _PLAIN,
        _COUNTS_ONLY,
        _LANGLEY,
        {"smoothing": "laplace"},
    ),
    Method(
        "GNB",
        "naive_bayes.NaiveBayes",
        _PLAIN,
        "Gaussian densities",
        _JOHN,
        {"numeric": "gaussian", "smoothing": "laplace"},
    ),
    Method(
        "GNB-Weka",
        "naive_bayes.NaiveBayes",
        _PLAIN,
        "Gaussian intervals as in Weka",
        _JOHN,
        {"numeric": "gaussian-weka", "smoothing": "laplace"},
    ),
    Method("WANBIA-CLL", *_WANBIA, {"loss": "log"}),
    Method("WANBIA-MSE", *_WANBIA, {"loss": "brier"}, ("WANBIA",)),
    Method("CAWNB-CLL", *_CAWNB, {"loss": "log"}),
    Method("CAWNB-MSE", *_CAWNB, {"loss": "brier"}, ("CAWNB",)),
    Method("CAVWNB-CLL", *_CAVWNB, {"loss": "log"}, ("CAVWNB",)),
    Method("CAVWNB-MSE", *_CAVWNB, {"loss": "brier"}),
    Method(
        "RNB",
        "published.RegularizedNB",
        _LEARNED,
        "class-specific and shared weights, and their mixture",
        _WANG,
    ),
    Method(
        "ENB",
        "published.ExponentialNB",
        _LEARNED,
        "a weight per attribute, exponential loss",
        _KIM,
    ),
    Method(
        "DNB",
        "published.DevianceNB",
        _LEARNED,
        "a weight per attribute, deviance",
        _KIM,
    ),
    Method(
        "LNB",
        "published.LogisticNB",
        _LEARNED,
        "a weight per attribute, log-loss",
        _KIM,
    ),
    Method(
        "GDNB",
        "published.GeneralizedDevianceNB",
        _LEARNED,
        "weights of attributes and prior",
        _KIM,
    ),
    Method(
        "MSE",
        "published.SquaredErrorNB",
        _LEARNED,
        "a weight per attribute, squared error",
        _KIM,
    ),
    Method(
        "DWNB",
        "instance_weighted.InstanceWeightedNB",
        _INSTANCES,
        "a weight per row",
        _DWNB,
    ),
    Method(
        "AVFWNB",
        "instance_weighted.InstanceWeightedNB",
        _INSTANCES,
        "a weight per row, from value frequencies",
        _XU,
        {"instances": "value-frequency"},
    ),
    Method(
        "LWNB",
        "lazy.LocallyWeightedNB",
        _INSTANCES,
        "nothing; neighbours of each query",
        _FRANK,
    ),
    Method("BNB", "boosted.BoostedNB", _INSTANCES, "a vote of models", _ELKAN),
    Method("CWNB", *_CWNB_ENTRY),
    Method("CWNB-R", *_CWNB_ENTRY, {"variant": "reversed"}),
    Method("CWNB-I", *_CWNB_ENTRY, {"variant": "interactive"}),
    Method("CWNB-RI", *_CWNB_ENTRY, {"variant": "reversed-interactive"}),
    Method(
        "AIWNB-E",
        "weighted.WeightedNB",
        _BOTH,
        "a weight per row and per attribute, both filters",
        _AIWNB,
        {
            "weighting": "correlation",
            "solver": "fixed",
            "instances": "value-frequency",
            "smoothing": "laplace",
        },
    ),
    Method(
        "AIWNB-L",
        "lazy.LazyAttributeInstanceNB",
        _BOTH,
        "a weight per attribute; rows are weighted by each query",
        _AIWNB,
    ),
    Method(
        "CFW",
        "filters.CorrelationWeightedNB",
        _FILTERS,
        "a weight per attribute, from mutual information",
        _CFW,
        aliases=("CBFWNB",),
    ),
    Method(
        "DFWNB",
        "filters.DeepWeightedNB",
        _FILTERS,
        "weight 2 for a subset of the attributes",
        _DFWNB,
        aliases=("DAWNB",),
    ),
    Method(
        "GRAWNB",
        "filters.GainRatioWeightedNB",
        _FILTERS,
        "a weight per attribute, from gain ratios",
        f"{_SHENG}; {_KLNB}",
        aliases=("KLNB",),
    ),
    Method(
        "DTAWNB",
        "filters.TreeWeightedNB",
        _FILTERS,
        "a weight per attribute, from depths in trees",
        _HALL,
    ),
    Method(
        "TreeNB",
        "filters.TreeWeightedNB",
        _FILTERS,
        "a weight per attribute, from depths in one tree",
        _HALL,
        {"n_trees": 1, "share": None},
    ),
    Method(
        "AUCNB",
        "filters.AUCWeightedNB",
        _FILTERS,
        "a weight per attribute, from its ROC curve",
        _AUC,
    ),
    Method(
        "DEAWNB",
        "evolved.EvolvedWeightsNB",
        _WRAPPERS,
        "a weight per attribute, by differential evolution",
        _DE,
    ),
    Method(
        "CWANB",
        "evolved.CorrelationAdjustedNB",
        _WRAPPERS,
        "a weight per attribute, adjusted from a filter",
        _CWANB,
    ),
    Method(
        "TCSFS-NB",
        "cost_sensitive.CostSensitiveNB",
        _WRAPPERS,
        "which attributes to use, by accuracy and cost",
        _TCSFS,
    ),
    Method(
        "SBC",
        "selective.ForwardSelectedNB",
        _WRAPPERS,
        "which attributes to use, by accuracy",
        _SBC,
    ),
    Method(
        "SNB",
        "selective.SelectiveNB",
        _WRAPPERS,
        "which attributes to use, by leave-one-out error",
        _SNB,
    ),
    Method(
        "SPSS",
        "spss.SPSSNaiveBayes",
        _WRAPPERS,
        "which attributes to use, by likelihood",
        _SPSS,
    ),
    Method(
        "SHNB",
        "shrinkage.ShrinkageNB",
        _OURS,
        "weights of attributes, classes and values, drawn to naive Bayes",
        "steelyard",
    ),
)

# Public names that are not classifiers.
_FURTHER = {
    "EqualFrequencyDiscretizer": "steelyard.table.discretizers",
    "EqualWidthDiscretizer": "steelyard.table.discretizers",
    "FixedEdgesDiscretizer": "steelyard.table.discretizers",
    "MDLDiscretizer": "steelyard.table.discretizers",
    "TableEncoder": "steelyard.table.encoder",
    "compare": "steelyard.experiments.runner",
    "load": "steelyard.persistence",
    "method": "steelyard.classifiers.registry",
    "methods": "steelyard.classifiers.registry",
}

CLASSES: dict[str, str] = {
    "JointWeightedNB": "steelyard.classifiers.joint",
    **{
        entry.class_name: f"steelyard.classifiers.{entry.home.partition('.')[0]}"
        for entry in _METHODS
    },
}
"""The module of every classifier."""

HOMES: dict[str, str] = {**CLASSES, **_FURTHER}
"""The module of every public name."""


class MethodTable(Sequence[Method]):
    """The table of methods: a sequence that prints as a table.

    Examples
    --------
    >>> import steelyard as sy
    >>> [entry.acronym for entry in sy.methods()][:4]
    ['NB', 'NB-Laplace', 'GNB', 'GNB-Weka']
    """

    _columns = ("acronym", "class", "family", "learns", "settings", "paper")

    def __init__(self, entries: Sequence[Method]) -> None:
        self._entries = tuple(entries)

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Method]:
        return iter(self._entries)

    def rows(self) -> list[dict[str, str]]:
        """Return the table as one mapping of texts per method."""
        return [
            {
                "acronym": ", ".join(entry.names),
                "class": entry.class_name,
                "family": entry.family,
                "learns": entry.learns,
                "settings": ", ".join(f"{k}={v!r}" for k, v in entry.settings.items()),
                "paper": entry.paper,
            }
            for entry in self
        ]

    def __repr__(self) -> str:
        cells = [[row[c] for c in self._columns] for row in self.rows()]
        is_numeric = [False] * len(self._columns)
        return text_table(self._columns, cells, is_numeric, rule=False, max_width=None)


def methods() -> MethodTable:
    """List every method: acronym, class, family, what it learns, settings, paper.

    Returns
    -------
    MethodTable
        A sequence of ``Method`` entries that prints as a table.
    """
    return MethodTable(_METHODS)


def method(name: str, **settings: Any) -> BaseNB:
    """Return an unfitted classifier for a method's acronym.

    Parameters
    ----------
    name : str
        An acronym; case, ``-``, ``_`` and blanks do not matter.
    **settings
        Settings that differ from the method's own.

    Returns
    -------
    estimator
        A scikit-learn classifier.

    Examples
    --------
    >>> import steelyard as sy
    >>> sy.method("nb laplace")
    NaiveBayes(smoothing='laplace')
    >>> sy.method("GNB", n_jobs=2).numeric
    'gaussian'
    """
    entry = _by_name().get(_plain(name)) if isinstance(name, str) else None
    if entry is not None:
        return entry.create(**settings)
    if _plain(str(name)) == "svm":
        # A baseline of scikit-learn's, not an entry of the table.
        baselines = import_module("steelyard.experiments.baselines")
        svm: BaseNB = baselines.baseline("SVM", **settings)
        return svm
    known = [entry.acronym for entry in _METHODS]
    hint = did_you_mean(name, (n for entry in _METHODS for n in entry.names))
    raise ParameterError(
        f"There is no method {name!r}.{hint} Known: {', '.join(known)}."
    )


@cache
def _by_name() -> dict[str, Method]:
    """Every method by its names, as they are compared."""
    return {_plain(name): entry for entry in _METHODS for name in entry.names}


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
