"""Settings, declared once: default, what is allowed, and a line of meaning.

A class lists its settings, and what it learns, in its body::

    class Ridge(DeclaredPart):
        lam: float = setting(default=1.0, allowed=number(0.0), about="Strength.")
        weights_: NDArray = learned(about="The weights.")

From that one list come ``__init__`` and its signature, which type checkers and editors
see too (PEP 681), the check before a fit, the sections "Parameters" and "Attributes" of
the docstring, the checks of the file reader, and ``--set`` and completion on the
command line. A subclass that repeats a name gives it another default.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from textwrap import wrap
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator

from steelyard.exceptions import ParameterError

# What float64 and int64 hold with room to spare.
_LARGEST_NUMBER = 1 << 1000
_LARGEST_WHOLE = 1 << 63


@dataclass(frozen=True)
class Check:
    """What a setting may be: in words, as a test, and which words are among it."""

    text: str
    accepts: Callable[[Any], bool]
    words: tuple[str, ...] = ()

    def __or__(self, other: Check) -> Check:
        """Allow what either allows."""
        text, words = f"{self.text} or {other.text}", self.words + other.words
        return Check(text, lambda x: self.accepts(x) or other.accepts(x), words)

    def called(self, text: str) -> Check:
        """Return the same check in other words."""
        return replace(self, text=text)


def word(*words: str) -> Check:
    """Allow one of some words."""
    quoted = ", ".join(repr(entry) for entry in words)
    text = quoted if len(words) == 1 else f"one of {quoted}"
    return Check(text, lambda value: isinstance(value, str) and value in words, words)


def whole(low: int) -> Check:
    """Allow whole numbers from ``low`` on."""

    def accepts(value: Any) -> bool:
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        return is_whole and low <= int(value) < _LARGEST_WHOLE

    return Check(f"a whole number of at least {low}", accepts)


def number(low: float = -math.inf, high: float = math.inf, ends: str = "[)") -> Check:
    """Allow finite numbers in a range, whose ends belong to it as the brackets say."""
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
    return Check(text if is_bounded else "a finite number", accepts)


def like(text: str, accepts: Callable[[Any], bool], *words: str) -> Check:
    """Allow what a test accepts, or one of some words."""

    def accepts_either(value: Any) -> bool:
        return value in words if isinstance(value, str) else accepts(value)

    return Check(text, accepts_either, words)


def listed(item: Check, n_items: int | None = None, *, at_least: int = 0) -> Check:
    """Allow a list, tuple or array of what ``item`` allows."""

    def accepts(value: Any) -> bool:
        if isinstance(value, (str, bytes, Mapping)) or not np.iterable(value):
            return False
        entries = list(value)
        right_size = n_items in (None, len(entries)) and len(entries) >= at_least
        return right_size and all(map(item.accepts, entries))

    return Check(f"a list of {item.text}", accepts)


def mapped(key: Check, item: Check) -> Check:
    """Allow a mapping from what ``key`` to what ``item`` allows."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(key.accepts(k) and item.accepts(v) for k, v in value.items())

    return Check(f"a mapping from {key.text} to {item.text}", accepts)


def part(kind: type, words: Mapping[str, Any] | tuple[str, ...]) -> Check:
    """Allow the name of a part, or an object of its kind."""
    either = word(*words) | Check("", lambda value: isinstance(value, kind))
    return either.called(f"{word(*words).text}, or a {kind.__name__} object")


def accepted_by(resolve: Callable[[Any], Any], text: str, *words: str) -> Check:
    """Allow what a function that resolves the setting does not refuse."""

    def accepts(value: Any) -> bool:
        try:
            resolve(value)
        except ParameterError:
            return False
        return True

    return Check(text, accepts, words)


NONE = Check("None", lambda value: value is None)
FLAG = Check("True or False", lambda value: isinstance(value, (bool, np.bool_)))
_GENERATOR = Check("", lambda value: isinstance(value, np.random.RandomState))
SEED = (NONE | whole(0) | _GENERATOR).called("None, a whole number or a RandomState")
_THREADS = Check("", lambda value: whole(-_LARGEST_WHOLE).accepts(value) and value != 0)
N_JOBS = (NONE | _THREADS).called("None, a number of threads, or -1 for all cores")
_SAME: Any = object()


@dataclass(frozen=True)
class Setting:
    """One setting of a class."""

    default: Any
    allowed: Check | None = None
    about: str = ""
    name: str = ""
    kw_only: bool = False
    """Whether it can be given by keyword only."""

    @property
    def kind(self) -> str:
        """What it may be and its default, for documentation."""
        text = self.allowed.text if self.allowed else "object"
        text = text.removeprefix("a ").removeprefix("one of ")
        is_required = self.default is inspect.Parameter.empty
        return text if is_required else f"{text}, default={self.default!r}"


@dataclass(frozen=True)
class LearnedAttribute:
    """One attribute that a class learns."""

    about: str = ""
    optional: bool = False
    """Whether only some settings or tables give it."""

    kind: str = ""
    """Shape and type, for documentation."""


def setting(
    *,
    default: Any,
    allowed: Check | None = None,
    about: str = "",
    kw_only: bool = False,
) -> Any:
    """Declare a setting; what is left out is that of the class above."""
    return Setting(default, allowed, about, kw_only=kw_only)


def required(*, allowed: Check | None = None, about: str = "") -> Any:
    """Declare a setting without a default."""
    return Setting(inspect.Parameter.empty, allowed, about)


def setting_of(part: type[Declared], name: str, *, default: Any = _SAME) -> Any:
    """Declare a setting that is handed on to a part: it is the part's own."""
    entry = part._settings[name]
    return entry if default is _SAME else replace(entry, default=default)


def learned(
    kind: str = "",
    about: str = "",
    *,
    optional: bool = False,
    init: Literal[False] = False,
) -> Any:
    """Declare an attribute that ``fit`` sets."""
    return LearnedAttribute(about, optional, kind)


# ----------------------------------------------------------------------- documentation

_SECTION = re.compile(r"^ *(\w[\w ]*)\n *-{3,}$", re.MULTILINE)


def _documented(cls: type[Declared]) -> str | None:
    """Return the docstring with the sections of settings and attributes in it."""
    text = vars(cls).get("__doc__")
    if not text:
        return None
    text = inspect.cleandoc(text)
    headings = {match[1]: match.start() for match in _SECTION.finditer(text)}
    declared: dict[str, Mapping[str, Setting | LearnedAttribute]] = {
        "Parameters": cls._settings,
        "Attributes": cls._learned,
    }
    sections = [
        _section(heading, entries)
        for heading, entries in declared.items()
        if entries and heading not in headings
    ]
    place = min(headings.values(), default=len(text))
    pieces = [text[:place].rstrip(), *sections, text[place:].rstrip()]
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def _section(heading: str, entries: Mapping[str, Setting | LearnedAttribute]) -> str:
    lines = [heading, "-" * len(heading)]
    for name, entry in entries.items():
        lines.append(f"{name} : {entry.kind}" if entry.kind else name)
        lines += wrap(entry.about, 84, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


# -------------------------------------------------------------------------- the classes


class Declared(BaseEstimator):
    """A class whose settings are declared in its body."""

    _settings: ClassVar[dict[str, Setting]] = {}
    _learned: ClassVar[dict[str, LearnedAttribute]] = {}
    _keyword_only: ClassVar[bool] = False
    """Whether settings can be given by keyword only."""

    _dropped_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that files of earlier releases have, and that mean nothing now."""

    _added_settings: ClassVar[Mapping[str, Any]] = {}
    """Settings that files of earlier releases may lack, and what they were then."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect what the body declares, and write ``__init__`` from it."""
        super().__init_subclass__(**options)
        inherited: dict[str, Setting] = {}
        attributes: dict[str, LearnedAttribute] = {}
        for base in reversed(cls.__mro__[1:]):
            inherited |= vars(base).get("_settings", {})
            attributes |= vars(base).get("_learned", {})
        own: dict[str, Setting] = {}
        for name, value in list(vars(cls).items()):
            if isinstance(value, Setting):
                above = inherited.get(name, Setting(None))
                own[name] = Setting(
                    value.default,
                    value.allowed or above.allowed,
                    value.about or above.about,
                    name,
                    value.kw_only or above.kw_only,
                )
                delattr(cls, name)
            elif isinstance(value, LearnedAttribute):
                attributes[name] = value
                delattr(cls, name)
        cls._settings = {**inherited, **own}
        cls._learned = attributes
        if "__init__" not in vars(cls):
            cls.__init__ = _written_init(cls)  # type: ignore[method-assign]
        cls.__doc__ = _documented(cls)


def _written_init(cls: type[Declared]) -> Callable[..., None]:
    """Return an ``__init__`` that stores its arguments and does nothing else."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [
        inspect.Parameter(
            name, kinds[cls._keyword_only or entry.kw_only], default=entry.default
        )
        for name, entry in cls._settings.items()
    ]
    parameters.sort(key=lambda parameter: parameter.kind)
    signature = inspect.Signature([first, *parameters])

    def __init__(self: Any, *args: Any, **settings: Any) -> None:  # noqa: N807
        try:
            bound = signature.bind(self, *args, **settings)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        bound.apply_defaults()
        for parameter in parameters:
            setattr(self, parameter.name, bound.arguments[parameter.name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__


@dataclass_transform(field_specifiers=(setting, required, learned))
class DeclaredPart(Declared):
    """A part of a classifier: settings by position or keyword."""


Kind = TypeVar("Kind", bound=DeclaredPart)


def check_settings(owner: Declared) -> None:
    """Raise a ``ParameterError`` for the first setting that is not allowed."""
    for name in owner._get_param_names():
        allowed = owner._settings.get(name, Setting(None)).allowed
        if allowed is not None and not allowed.accepts(getattr(owner, name)):
            raise refusal(owner, name)


def resolve_part(
    value: Any, kind: type[Kind], words: Mapping[str, type[Kind]], name: str
) -> Kind:
    """Return the part that a setting names, or the part itself, checked."""
    check = part(kind, words)
    if not check.accepts(value):
        raise ParameterError(
            f"The {name!r} parameter must be {check.text}. Got {value!r} instead."
        )
    resolved = words[value]() if isinstance(value, str) else value
    check_settings(resolved)
    return resolved


def refusal(owner: Declared, name: str) -> ParameterError:
    """Return the error that says what a setting may be."""
    allowed = owner._settings[name].allowed
    return ParameterError(
        f"The {name!r} parameter of {type(owner).__name__} must be "
        f"{allowed.text if allowed else 'anything'}. Got {getattr(owner, name)!r} "
        "instead."
    )
