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
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator

# All that a class declares its settings with can be imported from here.
from steelyard._common.allowed import *  # noqa: F403
from steelyard._common.allowed import Check, part
from steelyard.exceptions import ParameterError

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
    """Declare a setting that is passed on to a part, which declares it."""
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

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect what the body declares, and write ``__init__`` from it."""
        super().__init_subclass__(**options)
        inherited: dict[str, Setting] = {}
        attributes: dict[str, LearnedAttribute] = {}
        for base in reversed(cls.__mro__[1:]):
            inherited |= vars(base).get("_settings", {})
            attributes |= vars(base).get("_learned", {})
        declared: dict[str, Setting] = {}
        for name, value in list(vars(cls).items()):
            if isinstance(value, Setting):
                above = inherited.get(name, Setting(None))
                declared[name] = Setting(
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
        cls._settings = {**inherited, **declared}
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
