"""The rules: how a column is treated, and what is decided about it.

They hold in memory and for chunks, which answer the same questions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np

from steelyard._common.allowed import MIN_STEP
from steelyard._common.arrays import Floats
from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError
from steelyard.table.discretizers.base import Discretizer, MDLDiscretizer
from steelyard.table.discretizers.unsupervised import (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
)
from steelyard.table.factors import CellKind
from steelyard.table.schema import FeatureSchema, Kind, sort_values
from steelyard.table.summary.whole_column import (
    ROUNDING,
    NumberRange,
    WholeColumn,
    numbering,
)

if TYPE_CHECKING:
    from steelyard.table.summary.chunked_column import ChunkedColumn

ColumnSummary: TypeAlias = "WholeColumn | ChunkedColumn"
"""What is known of a column: both kinds answer the same questions."""

# Weka's step of numbers that are all the same.
_ONLY_STEP = 0.01

# A column looks like an identifier when nearly all its values differ; below this many
# rows that is what an ordinary column may look like.
_MIN_ROWS = 20
_MIN_SHARE = 0.95
# Whole numbers of a column that is called so need not all differ, nor run on.
_MIN_NAMED_SHARE = 0.9
_ID = re.compile(
    r"(?:^|[^a-z])(?:id|identifier)(?:$|[^a-z])|(?-i:[a-z](?:ID|Id)$)", re.IGNORECASE
)


class Described(Protocol):
    """What decides on the treatment of a column: itself, or a summary of it."""

    position: int

    @property
    def declared(self) -> list[Any] | None:
        """Values declared by a category or enum type, None for other types."""

    @property
    def storage(self) -> CellKind:
        """What the type of the column can hold, "nothing" if it does not say."""


@dataclass(frozen=True)
class Uncut:
    """A treatment that makes no bins: categories, or numbers as they are."""

    kind: Kind
    supervised: ClassVar[bool] = False


Treatment = Discretizer | Uncut

_CATEGORIES: tuple[Treatment, ...] = (Uncut("categorical"),)
_NUMERIC: dict[str, Treatment] = {
    "mdl": MDLDiscretizer(),
    "mdl-better": MDLDiscretizer(better_encoding=True),
    "kononenko": MDLDiscretizer(criterion="kononenko"),
    "equal-width": EqualWidthDiscretizer(),
    "equal-width-merged": EqualWidthDiscretizer(empty="merge"),
    "equal-frequency": EqualFrequencyDiscretizer(),
    "gaussian": Uncut("gaussian"),
    "gaussian-weka": Uncut("gaussian-weka"),
    "gaussian-relative": Uncut("gaussian-relative"),
    "linear": Uncut("linear"),
}
_DEFAULT = "mdl"


class EncoderSettings(Protocol):
    """The settings of an encoder that decide on a schema."""

    categorical_features: Any
    numeric: Any
    missing: str
    cardinality: str
    keep_identifiers: bool


def treatments(
    settings: EncoderSettings, columns: Sequence[Described], names: list[str] | None
) -> list[tuple[Treatment, ...]]:
    """Decide how every column is treated; several discretizers cut it together."""
    numeric = settings.numeric
    categorical = _categorical_positions(settings.categorical_features, columns, names)
    by_column = numeric_treatments(numeric, len(columns), names)
    if isinstance(numeric, Mapping):
        named = column_positions(numeric, len(columns), names, "numeric")
        for key, position in zip(numeric, named, strict=True):
            if columns[position].storage == "text":
                raise ParameterError(
                    f"`numeric` names {key!r}, but that column holds text."
                )
            # Named here, it is numeric: a column of booleans or of missing values.
            categorical.discard(position)
    for position in categorical:
        by_column[position] = _CATEGORIES
    ids = list(enumerate(names or [None] * len(columns)))
    used = {id(own): own for of_column in by_column for own in of_column}
    for treatment in used.values():
        if isinstance(treatment, Discretizer):
            treatment.check_parameters()
            treatment.check_columns(ids)
    return by_column


def numeric_treatments(
    numeric: Any, n_columns: int, names: list[str] | None
) -> list[tuple[Treatment, ...]]:
    """Say how every column would be treated as a numeric one."""
    if not isinstance(numeric, Mapping):
        return [_treatments(numeric)] * n_columns
    by_column = [_treatments(_DEFAULT)] * n_columns
    positions = column_positions(numeric, n_columns, names, "numeric")
    for position, setting in zip(positions, numeric.values(), strict=True):
        by_column[position] = _treatments(setting)
    return by_column


def _treatments(setting: Any) -> tuple[Treatment, ...]:
    """Return the treatment of a column, or the discretizers that cut it together."""
    several = isinstance(setting, (list, tuple)) and setting
    found = tuple(map(_treatment, setting if several else (setting,)))
    uncut = [own.kind for own in found if isinstance(own, Uncut)]
    if uncut and len(found) > 1:
        raise ParameterError(
            f"The 'numeric' parameter joins {uncut[0]!r} with other treatments, and it "
            "has no cut points. Use it alone, or join discretizers such as ('mdl', "
            "'equal-frequency')."
        )
    return found


def _treatment(setting: Any) -> Treatment:
    if isinstance(setting, Discretizer):
        return setting
    if isinstance(setting, str) and setting in _NUMERIC:
        return _NUMERIC[setting]
    allowed = ", ".join(map(repr, _NUMERIC))
    raise ParameterError(
        f"The 'numeric' parameter must be one of {allowed}, a discretizer, a tuple of "
        f"discretizers, or a mapping from columns to these. Got {setting!r} instead."
    )


def _categorical_positions(
    setting: Any, columns: Sequence[Described], names: list[str] | None
) -> set[int]:
    """Say which columns hold categories."""
    if isinstance(setting, str) and setting == "all":
        return set(range(len(columns)))
    automatic = setting is None or (isinstance(setting, str) and setting == "auto")
    categorical = set() if automatic else _chosen_positions(setting, columns, names)
    # Text cannot be anything else. A column of unknown type with nothing in it is taken
    # as `numeric` says, until text turns up.
    categorical.update(
        column.position
        for column in columns
        if column.storage == "text"
        or (column.storage == "booleans" and automatic)
        or column.declared is not None
    )
    return categorical


def _chosen_positions(
    setting: Any, columns: Sequence[Described], names: list[str] | None
) -> set[int]:
    """Resolve a list of names or positions, or a mask, of categorical columns."""
    items = list(setting)
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != len(columns):
            raise ParameterError(
                f"The mask in `categorical_features` has {len(items)} entries for "
                f"{len(columns)} columns."
            )
        items = np.flatnonzero(items).tolist()
    return set(column_positions(items, len(columns), names, "categorical_features"))


def column_positions(
    chosen: Any, n_columns: int, names: list[str] | None, setting: str
) -> Iterator[int]:
    """Resolve names or positions to positions."""
    for item in chosen:
        if isinstance(item, str):
            yield _position_of(item, names, setting)
            continue
        if not isinstance(item, Integral) or isinstance(item, (bool, np.bool_)):
            raise ParameterError(
                f"`{setting}` must name columns by name (str) or position (int). "
                f"Got {item!r} instead."
            )
        position = int(item)
        if not -n_columns <= position < n_columns:
            raise ParameterError(
                f"`{setting}` names column {position}, but there are "
                f"{n_columns} columns (0 to {n_columns - 1})."
            )
        yield position % n_columns


def _position_of(name: str, names: list[str] | None, setting: str) -> int:
    if names is not None and name in names:
        return names.index(name)
    hint = "The table has no column names; use positions."
    if names:
        hint = f"Columns: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}."
        hint += did_you_mean(name, names)
    raise ParameterError(f"`{setting}` names {name!r}, which is not a column. {hint}")


# -------------------------------------------------------------- what is decided


class LearnedColumn(NamedTuple):
    """What is decided about a column."""

    label: str
    feature: FeatureSchema
    range: NumberRange | None
    suspect: str | None
    """What makes the column look like an identifier."""

    @property
    def is_left_out(self) -> bool:
        """Whether the column has no say."""
        return self.feature.left_out


def learned_column(
    column: ColumnSummary,
    treatments: Sequence[Treatment],
    settings: EncoderSettings,
    n_rows: int,
    left_out: Collection[int] | None = None,
    with_range: bool = True,
) -> LearnedColumn:
    """Decide on the schema of a column of ``n_rows`` rows.

    Where it is known which columns are left out, identifiers are not looked for, and
    the range of the numbers need not be found.
    """
    has_range = with_range and not column.is_category
    where = column.known_range() if has_range else None
    suspect = _suspicion(column, where, n_rows) if left_out is None else None
    if column.position in (left_out or ()) or (
        suspect and not settings.keep_identifiers
    ):
        nothing = FeatureSchema(column.name, "categorical", "nothing", left_out=True)
        return LearnedColumn(column.label, nothing, None, suspect)
    feature = _feature(column, treatments, settings)
    return LearnedColumn(column.label, feature, where, suspect)


def _feature(
    column: ColumnSummary, treatments: Sequence[Treatment], settings: EncoderSettings
) -> FeatureSchema:
    treatment = treatments[0]
    if treatment.kind == "categorical":
        return _category(column, settings)
    feature = FeatureSchema(column.name, treatment.kind, column.cells)
    if column.cells == "nothing":
        # It is not known yet whether it will hold numbers. A column of missing values
        # only stays without influence.
        is_grid = treatment.kind == "gaussian-weka"
        return replace(feature, step=_ONLY_STEP) if is_grid else feature
    fill = column.mean() if settings.missing == "impute" else None
    if isinstance(treatment, Discretizer):
        found = (
            column.edges(own, fill)
            for own in treatments
            if isinstance(own, Discretizer)
        )
        feature = feature.cut_at([edges.tolist() for edges in found])
        place = None if fill is None else 1 + bisect_left(feature.edges, fill)
        has_code = settings.missing == "value" and column.some_missing
        return replace(feature, missing_is_value=has_code, fill=place)
    if treatment.kind == "gaussian-weka":
        return replace(feature, fill=fill, step=_grid_step(column.distinct(fill)))
    return feature if fill is None else replace(feature, fill=fill)


def _category(column: ColumnSummary, settings: EncoderSettings) -> FeatureSchema:
    held = values = column.held
    if settings.cardinality == "declared":
        values = [*held, *(column.declared or [])]
    feature = FeatureSchema(
        column.name,
        "categorical",
        column.cells,
        sort_values(values, column.order),
        missing_is_value=settings.missing == "value" and column.some_missing,
        ordered=column.order is not None and bool(values),
    )
    if settings.missing != "impute" or not held:
        return feature
    weights = column.weights_by_code(feature)[1:]
    most = int(np.argmax(weights >= (1.0 - ROUNDING) * weights.max()))
    return replace(feature, fill=1 + most)


def _grid_step(distinct: Floats) -> float:
    """Mean distance of distinct neighbours, Weka's precision of an attribute."""
    if distinct.size < 2:
        return _ONLY_STEP
    with np.errstate(over="ignore"):
        step = float((distinct[-1] - distinct[0]) / (distinct.size - 1))
    return step if step >= MIN_STEP and np.isfinite(step) else _ONLY_STEP


def _suspicion(
    column: ColumnSummary, where: NumberRange | None, n_rows: int
) -> str | None:
    """Say what makes a column look like an identifier, None for other columns."""
    if n_rows < _MIN_ROWS:
        return None
    if where is not None:
        how = column.numbering(where, n_rows)
        if how is None and _ID.search(str(column.name)):
            n = column.n_whole_numbers()
            if n >= _MIN_NAMED_SHARE * n_rows:
                how = f"its name, and {n} different whole numbers"
        return how
    if not column.is_category or column.cells not in ("text", "numbers"):
        return None
    held = column.held
    if column.cells == "text":
        is_name = len(held) >= _MIN_SHARE * n_rows
        return f"{len(held)} different values" if is_name else None
    is_name = column.is_integer and len(held) == n_rows
    return numbering(NumberRange(min(held), max(held)), n_rows) if is_name else None
