"""Published methods by their acronyms: which exist, and how to get one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.classifiers.base import BaseNB, NaiveBayes
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
from steelyard.classifiers.selective import ForwardSelectedNB, SelectiveNB
from steelyard.classifiers.shrinkage import ShrinkageNB
from steelyard.classifiers.spss import SPSSNaiveBayes
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError

__all__ = ["Method", "MethodTable", "method", "methods"]


@dataclass(frozen=True)
class Method:
    """One published method: a class with some of its settings fixed."""

    acronym: str
    estimator: type[BaseNB]
    family: str
    learns: str
    paper: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    def create(self, **settings: Any) -> BaseNB:
        """Return an unfitted classifier, with further settings or other ones."""
        chosen = {**self.settings, **settings}
        allowed = self.estimator._get_param_names()
        unknown = [name for name in chosen if name not in allowed]
        if unknown:
            close = difflib.get_close_matches(unknown[0], allowed, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ParameterError(
                f"{self.acronym} has no setting {unknown[0]!r}.{hint} "
                f"Settings: {', '.join(allowed)}."
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

_METHODS = (
    Method("NB", NaiveBayes, "plain", "nothing beyond counts", _LANGLEY),
    Method(
        "NB-Laplace",
        NaiveBayes,
        "plain",
        "nothing beyond counts",
        _LANGLEY,
        {"smoothing": "laplace"},
    ),
    Method(
        "GNB",
        NaiveBayes,
        "plain",
        "Gaussian densities",
        _JOHN,
        {"numeric": "gaussian", "smoothing": "laplace"},
    ),
    Method(
        "GNB-Weka",
        NaiveBayes,
        "plain",
        "Gaussian intervals as in Weka",
        _JOHN,
        {"numeric": "gaussian-weka", "smoothing": "laplace"},
    ),
    *(
        Method(
            f"{name}-{word}",
            estimator,
            "learned attribute weights",
            learns,
            paper,
            {"loss": loss},
            (name,) if word == default else (),
        )
        for name, estimator, learns, paper, default in (
            ("WANBIA", AttributeWeightedNB, "a weight per attribute", _ZAIDI, "MSE"),
            (
                "CAWNB",
                ClassAttributeWeightedNB,
                "a weight per class and attribute",
                _JIANG,
                "MSE",
            ),
            (
                "CAVWNB",
                ValueWeightedNB,
                "a weight per class, attribute and value",
                _ZHANG,
                "CLL",
            ),
        )
        for word, loss in (("CLL", "log"), ("MSE", "brier"))
    ),
    Method(
        "RNB",
        RegularizedNB,
        "learned attribute weights",
        "class-specific and shared weights, and their mixture",
        _WANG,
    ),
    *(
        Method(acronym, estimator, "learned attribute weights", learns, _KIM)
        for acronym, estimator, learns in (
            ("ENB", ExponentialNB, "a weight per attribute, exponential loss"),
            ("DNB", DevianceNB, "a weight per attribute, deviance"),
            ("LNB", LogisticNB, "a weight per attribute, log-loss"),
            ("GDNB", GeneralizedDevianceNB, "weights of attributes and prior"),
            ("MSE", SquaredErrorNB, "a weight per attribute, squared error"),
        )
    ),
    Method("DWNB", InstanceWeightedNB, "instance weights", "a weight per row", _DWNB),
    Method(
        "AVFWNB",
        InstanceWeightedNB,
        "instance weights",
        "a weight per row, from value frequencies",
        _XU,
        {"instances": "value-frequency"},
    ),
    Method(
        "LWNB",
        LocallyWeightedNB,
        "instance weights",
        "nothing; neighbours of each query",
        _FRANK,
    ),
    Method("BNB", BoostedNB, "instance weights", "a vote of models", _ELKAN),
    *(
        Method(
            f"CWNB{suffix}",
            CollaborativeNB,
            "both",
            "a weight per row and per attribute",
            _CWNB,
            {"variant": variant} if suffix else {},
        )
        for suffix, variant in (
            ("", "plain"),
            ("-R", "reversed"),
            ("-I", "interactive"),
            ("-RI", "reversed-interactive"),
        )
    ),
    Method(
        "AIWNB-E",
        WeightedNB,
        "both",
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
        LazyAttributeInstanceNB,
        "both",
        "a weight per attribute; rows are weighted by each query",
        _AIWNB,
    ),
    Method(
        "CFW",
        CorrelationWeightedNB,
        "filters",
        "a weight per attribute, from mutual information",
        _CFW,
        aliases=("CBFWNB",),
    ),
    Method(
        "DFWNB",
        DeepWeightedNB,
        "filters",
        "weight 2 for a subset of the attributes",
        _DFWNB,
        aliases=("DAWNB",),
    ),
    *(
        Method(
            acronym,
            GainRatioWeightedNB,
            "filters",
            "a weight per attribute, from gain ratios",
            paper,
        )
        for acronym, paper in (("GRAWNB", _SHENG), ("KLNB", _KLNB))
    ),
    Method(
        "DTAWNB",
        TreeWeightedNB,
        "filters",
        "a weight per attribute, from depths in trees",
        _HALL,
    ),
    Method(
        "TreeNB",
        TreeWeightedNB,
        "filters",
        "a weight per attribute, from depths in one tree",
        _HALL,
        {"n_trees": 1, "share": None},
    ),
    Method(
        "AUCNB",
        AUCWeightedNB,
        "filters",
        "a weight per attribute, from its ROC curve",
        _AUC,
    ),
    *(
        Method(acronym, estimator, "wrappers and selection", learns, paper)
        for acronym, estimator, learns, paper in (
            (
                "DEAWNB",
                EvolvedWeightsNB,
                "a weight per attribute, by differential evolution",
                _DE,
            ),
            (
                "CWANB",
                CorrelationAdjustedNB,
                "a weight per attribute, adjusted from a filter",
                _CWANB,
            ),
            (
                "TCSFS-NB",
                CostSensitiveNB,
                "which attributes to use, by accuracy and cost",
                _TCSFS,
            ),
            ("SBC", ForwardSelectedNB, "which attributes to use, by accuracy", _SBC),
            (
                "SNB",
                SelectiveNB,
                "which attributes to use, by leave-one-out error",
                _SNB,
            ),
        )
    ),
    Method(
        "SPSS",
        SPSSNaiveBayes,
        "wrappers and selection",
        "which attributes to use, by likelihood",
        _SPSS,
    ),
    Method(
        "SHNB",
        ShrinkageNB,
        "ours",
        "weights of attributes, classes and values, drawn to naive Bayes",
        "steelyard",
    ),
)


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
                "acronym": entry.acronym,
                "class": entry.estimator.__name__,
                "family": entry.family,
                "learns": entry.learns,
                "settings": ", ".join(f"{k}={v!r}" for k, v in entry.settings.items()),
                "paper": entry.paper,
            }
            for entry in self
        ]

    def __repr__(self) -> str:
        rows = self.rows()
        widths = {c: max(len(c), *(len(r[c]) for r in rows)) for c in self._columns}
        header = {column: column for column in self._columns}
        lines = [
            "  ".join(row[c].ljust(widths[c]) for c in self._columns).rstrip()
            for row in [header, *rows]
        ]
        return "\n".join(lines)


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
    by_name = {
        _plain(word): entry
        for entry in _METHODS
        for word in (entry.acronym, *entry.aliases)
    }
    entry = by_name.get(_plain(name)) if isinstance(name, str) else None
    if entry is None and _plain(str(name)) == "svm":
        # A baseline of scikit-learn's, not an entry of the table.
        from steelyard.experiments.baselines import baseline

        return baseline("SVM", **settings)
    if entry is None:
        close = difflib.get_close_matches(_plain(str(name)), list(by_name), 1, 0.0)
        nearest = by_name[close[0]].acronym
        known = ", ".join(entry.acronym for entry in _METHODS)
        raise ParameterError(
            f"There is no method {name!r}. The nearest is {nearest!r}. Known: {known}."
        )
    return entry.create(**settings)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
