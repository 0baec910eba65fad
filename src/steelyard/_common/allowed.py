"""What a setting may be: a test, the same in words, and the same as plain data.

The plain data are in a table that is read if the classes are not loaded; see
``steelyard.persistence.declarations``. Words and numbers that classes, model files and
exports have in common are here too. With the standard library alone.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Integral, Real
from operator import attrgetter, or_
from typing import Any

from steelyard.exceptions import ParameterError

FORMS = ("adaboost-m1", "elkan")
"""Forms of boosting."""

KERNELS = ("linear", "epanechnikov", "tricube", "inverse", "gauss", "constant")
"""Kernels by which the weights of neighbours fall with their distance."""

SEARCH_ENDS = ("complete", "time limit", "interrupted")
"""How a search for attributes may end."""

N_BARS = 20
"""Bars of a histogram, all of one width."""

MAX_HASHES, HASH_BYTES = 256, 6
"""Number of hashes of training rows that a model keeps, and their length."""

MAX_KEPT, MIN_OF_WIDE, MAX_KEPT_CELLS = 40_000, 10_000, 1_000_000
"""Rows that a model keeps at most for ``partial_fit``.

Of a wide table they are fewer: those of a million cells, but at least 10,000.
"""

# Weights of rows and of classes, and sums of their products, stay finite in single
# precision, which preconditioners have.
MIN_WEIGHT, LARGEST_WEIGHT = 1e-15, 1e15

# Deviations on a grid are a sixth of its step, and their inverses finite.
MIN_STEP = 1e-300

# Relative densities: how far evidence may go against a class.
DENSITY_DEPTH = 20.0

# Linear attributes: deviations from the mean beyond which evidence is constant.
SLOPE_LIMIT = 4.0


SHAPES = {
    "increasing": "never go down",
    "decreasing": "never go up",
    "convex": "bend upwards, by the centres of bins",
    "concave": "bend downwards, by the centres of bins",
    "peak": "go up, then down",
    "valley": "go down, then up",
}
"""Names of shapes, and what log-odds do along the column."""


Form = Sequence[Any]
"""The name of a kind of check, and what it takes: numbers, words, other forms."""

# Well within the range of float64 and int64.
_LARGEST_NUMBER = 1 << 1000
_LARGEST_WHOLE = 1 << 63


@dataclass(frozen=True)
class Check:
    """A test of a setting, with a description and the words that it allows."""

    text: str
    accepts: Callable[[Any], bool]
    words: tuple[str, ...] = ()
    form: Form = ("never",)
    """The same test as plain data, of what a file can contain."""

    def __or__(self, other: Check) -> Check:
        """Allow what either allows."""
        text, words = f"{self.text} or {other.text}", self.words + other.words
        form = ("either", *_options(self.form), *_options(other.form))
        return Check(text, lambda x: self.accepts(x) or other.accepts(x), words, form)

    def called(self, text: str) -> Check:
        """Return the same check in other words."""
        return replace(self, text=text)


@dataclass(frozen=True)
class DescribedPart:
    """A component as a file describes it, if its class is not loaded."""

    name: str
    kinds: tuple[str, ...]
    """Names of its class and base classes."""

    settings: dict[str, Any]


def _options(form: Form) -> Sequence[Form]:
    return form[1:] if form[0] == "either" else (form,)


def word(*words: str) -> Check:
    """Allow one of some words."""
    quoted = ", ".join(repr(entry) for entry in words)
    text = quoted if len(words) == 1 else f"one of {quoted}"
    form = ("word", *words)
    accepts = lambda value: isinstance(value, str) and value in words  # noqa: E731
    return Check(text, accepts, words, form)


def matching(pattern: str, text: str = "", *words: str) -> Check:
    """Allow text that a pattern matches as a whole; some words show how."""
    whole_text = re.compile(pattern, re.DOTALL)

    def accepts(value: Any) -> bool:
        return isinstance(value, str) and whole_text.fullmatch(value) is not None

    return Check(text, accepts, words, ("matching", pattern))


def whole(low: int) -> Check:
    """Allow whole numbers from ``low`` on."""

    def accepts(value: Any) -> bool:
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        return is_whole and low <= int(value) < _LARGEST_WHOLE

    return Check(f"a whole number of at least {low}", accepts, form=("whole", low))


def number(low: float = -math.inf, high: float = math.inf, ends: str = "[)") -> Check:
    """Allow finite numbers in a range; brackets show which ends belong to it."""
    left, right = ends[0], ends[1]

    def accepts(value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        # Whole numbers may be too large for a float.
        if isinstance(value, Integral) and abs(int(value)) >= _LARGEST_NUMBER:
            return False
        x = float(value)
        above = low < x if left == "(" else low <= x
        return above and math.isfinite(x) and (x < high if right == ")" else x <= high)

    text = f"a float in the range {left}{low:g}, {high:g}{right}"
    is_bounded = math.isfinite(low) or math.isfinite(high)
    form = ("number", low, high, ends)
    return Check(text if is_bounded else "a finite number", accepts, form=form)


def listed(item: Check, n_items: int | None = None, at_least: int = 0) -> Check:
    """Allow a list, tuple or array of what ``item`` allows."""

    def accepts(value: Any) -> bool:
        if isinstance(value, (str, bytes, Mapping)):
            return False
        try:
            entries = list(value)
        except TypeError:
            return False
        right_size = n_items in (None, len(entries)) and len(entries) >= at_least
        return right_size and all(map(item.accepts, entries))

    form = ("listed", item.form, n_items, at_least)
    return Check(f"a list of {item.text}", accepts, form=form)


def mapped(key: Check, item: Check) -> Check:
    """Allow a mapping from what ``key`` to what ``item`` allows."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(key.accepts(k) and item.accepts(v) for k, v in value.items())

    form = ("mapped", key.form, item.form)
    return Check(f"a mapping from {key.text} to {item.text}", accepts, form=form)


def instance(kind: type) -> Check:
    """Allow objects of a class; files contain a description of a component."""
    form = ("part", kind.__name__)
    return Check(f"a {kind.__name__}", lambda x: isinstance(x, kind), form=form)


def _described(kind: str) -> Check:
    return Check("", lambda x: isinstance(x, DescribedPart) and kind in x.kinds)


def part(kind: type, words: Mapping[str, Any] | tuple[str, ...]) -> Check:
    """Allow the name of a component, or an object of its class."""
    text = f"{word(*words).text}, or a {kind.__name__} object"
    return (word(*words) | instance(kind)).called(text)


def accepted_by(
    resolve: Callable[[Any], Any], text: str, *words: str, like: Check | None = None
) -> Check:
    """Allow what a function that resolves the setting does not refuse.

    In files it is what ``like`` allows.
    """

    def accepts(value: Any) -> bool:
        try:
            resolve(value)
        except ParameterError:
            return False
        return True

    return Check(text, accepts, words, NEVER.form if like is None else like.form)


def _is_of_numpy(value: Any, *names: str) -> bool:
    """Whether a value is of one of some types of NumPy, which need not be loaded."""
    numpy = sys.modules.get("numpy")
    types = () if numpy is None else tuple(attrgetter(name)(numpy) for name in names)
    return isinstance(value, types)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, Real) and abs(value) == math.inf


NEVER = Check("nothing", lambda value: False)
ANY = Check("anything", lambda value: True, form=("any",))
NONE = Check("None", lambda value: value is None, form=("none",))
FLAG = Check(
    "True or False",
    lambda value: isinstance(value, bool) or _is_of_numpy(value, "bool_"),
    form=("flag",),
)
FALSE = Check("False", lambda x: FLAG.accepts(x) and not x, form=("false",))
INFINITE = Check("infinite", _is_infinite, form=("infinite",))
INFINITY = Check("infinity", lambda x: _is_infinite(x) and x > 0, form=("infinity",))
# A name or a position; whether there is such a column is checked with a table.
COLUMN = Check(
    "names or positions of columns",
    lambda x: isinstance(x, (str, int)) or _is_of_numpy(x, "integer", "bool_"),
    form=("column",),
)
_GENERATOR = Check("", lambda value: _is_of_numpy(value, "random.RandomState"))
SEED = (NONE | whole(0) | _GENERATOR).called("None, a whole number or a RandomState")
_THREADS = Check(
    "",
    lambda value: whole(-_LARGEST_WHOLE).accepts(value) and value != 0,
    form=("threads",),
)
N_JOBS = (NONE | _THREADS).called("None, a number of threads, or -1 for all cores")

_CONSTANTS = {
    check.form[0]: check
    for check in [NEVER, ANY, NONE, FLAG, FALSE, INFINITE, INFINITY, COLUMN, _THREADS]
}
_KINDS: dict[str, Callable[..., Check]] = {
    "either": lambda *checks: reduce(or_, checks),
    "part": _described,
    **{kind.__name__: kind for kind in (word, matching, whole, number, listed, mapped)},
}


def check_of(form: Form) -> Check:
    """Return the check that plain data describe.

    >>> either = (NONE | listed(whole(1), 2)).form
    >>> [check_of(either).accepts(value) for value in (None, [1, 2], [1], 0)]
    [True, True, False, False]
    """
    kind, *arguments = form
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    inner = (check_of(a) if isinstance(a, (list, tuple)) else a for a in arguments)
    return _KINDS[kind](*inner)
