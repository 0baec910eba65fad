"""Published methods by their acronyms: which exist, and how to get one.

The registry is data: a class is imported when it is asked for, so that listing methods
loads nothing, and ``steelyard.X`` finds every public class here.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any

from steelyard._common.text import did_you_mean, text_table
from steelyard.exceptions import ParameterError

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

DEFAULT = "SHNB"
"""The method that is used if no other is named."""


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
    def module(self) -> str:
        """The module that has the class."""
        return f"steelyard.classifiers.{self.home.partition('.')[0]}"

    @property
    def names(self) -> tuple[str, ...]:
        """Acronym and aliases."""
        return (self.acronym, *self.aliases)

    @property
    def estimator(self) -> type[BaseNB]:
        """The class."""
        cls: type[BaseNB] = getattr(import_module(self.module), self.class_name)
        return cls

    @property
    def rows_needed(self) -> str:
        """What a fit keeps of its rows, see ``BaseNB.rows_needed``."""
        return self.create().rows_needed

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


@cache
def entries() -> tuple[Method, ...]:
    """Read the table of methods: ``methods.txt``, a line for each."""
    file = resources.files("steelyard.classifiers").joinpath("methods.txt")
    _, *lines = filter(None, file.read_text("utf-8").splitlines())
    return tuple(_read_entry(line) for line in lines)


def _read_entry(line: str) -> Method:
    acronym, aliases, home, family, learns, settings, paper = (
        cell.strip() for cell in line.split("|")
    )
    pairs = [pair.split("=") for pair in settings.split(";") if pair]
    return Method(
        acronym,
        home,
        family,
        learns,
        paper,
        {name.strip(): literal_eval(value) for name, value in pairs},
        tuple(aliases.split()),
    )


# Public names that are not classifiers.
_FURTHER = {
    "EqualFrequencyDiscretizer": "steelyard.table.discretizers",
    "EqualWidthDiscretizer": "steelyard.table.discretizers",
    "FixedEdgesDiscretizer": "steelyard.table.discretizers",
    "GridDiscretizer": "steelyard.table.discretizers",
    "MDLDiscretizer": "steelyard.table.discretizers",
    "Notice": "steelyard.notices.notice",
    "TableEncoder": "steelyard.table.encoder",
    "compare": "steelyard.lab.runner",
    "evaluate": "steelyard.evaluation.evaluate",
    "has_device": "steelyard.gpu.devices",
    "load": "steelyard.persistence",
    "merge": "steelyard.classifiers.merging",
    "method": "steelyard.classifiers.registry",
    "methods": "steelyard.classifiers.registry",
    "read": "steelyard.io.dataset",
    "scan": "steelyard.io",
    "watch": "steelyard._common.progress",
}


@cache
def classes() -> dict[str, str]:
    """Return the module of every classifier."""
    return {
        "JointWeightedNB": "steelyard.classifiers.joint",
        **{entry.class_name: entry.module for entry in entries()},
    }


@cache
def homes() -> dict[str, str]:
    """Return the module of every public name."""
    return {**classes(), **_FURTHER}


class MethodTable(tuple[Method, ...]):
    """The table of methods: a sequence that prints as a table.

    >>> import steelyard as sy
    >>> [entry.acronym for entry in sy.methods()][:4]
    ['NB', 'NB-Laplace', 'GNB', 'GNB-Weka']
    """

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
        header, rows = list(self.rows()[0]), [[*row.values()] for row in self.rows()]
        are_numbers = [False] * len(header)
        return text_table(header, rows, are_numbers, rule=False, max_width=None)


def methods() -> MethodTable:
    """List every method: acronym, class, family, what it learns, settings, paper.

    Returns
    -------
    MethodTable
        A sequence of ``Method`` entries that prints as a table.
    """
    return MethodTable(entries())


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
    if _plain(str(name)) == "svm":
        # A baseline of scikit-learn's, not an entry of the table.
        baselines = import_module("steelyard.lab.baselines")
        svm: BaseNB = baselines.baseline("SVM", **settings)
        return svm
    return entry_of(name).create(**settings)


def entry_of(name: str) -> Method:
    """Return the entry of a method by one of its names, as ``method`` takes them."""
    entry = _by_name().get(_plain(name)) if isinstance(name, str) else None
    if entry is not None:
        return entry
    acronyms = [entry.acronym for entry in entries()]
    hint = did_you_mean(name, (n for entry in entries() for n in entry.names))
    raise ParameterError(
        f"There is no method {name!r}.{hint} Known: {', '.join(acronyms)}."
    )


@cache
def _by_name() -> dict[str, Method]:
    """Every method by its names, as they are compared."""
    return {_plain(name): entry for entry in entries() for name in entry.names}


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
