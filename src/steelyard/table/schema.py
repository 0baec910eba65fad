"""What a model knows of its table: names, kinds, values and cut points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from steelyard._common import np
from steelyard._common.one_cell import texts_by_number
from steelyard._common.text import day_text, six_digits
from steelyard.table.dates import dates_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal[
    "categorical",
    "binned",
    "gaussian",
    "gaussian-weka",
    "gaussian-relative",
    "linear",
    "interaction",
]

# How many merged values are named one by one.
_MAX_NAMED = 3


def sort_values(
    values: Iterable[Any], order: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """Sort distinct values: text by code point, numbers and booleans by size.

    Those of an order come first, and as it has them.
    """
    distinct = set(values)
    first = [value for value in dict.fromkeys(order or ()) if value in distinct]
    return (*first, *sorted(distinct.difference(first)))


@dataclass(frozen=True)
class Side:
    """One of the two attributes of an interaction, and how its codes are merged."""

    feature: int
    """Position of a categorical or binned attribute of the same schema."""

    groups: tuple[int, ...]
    """Coarse code of each of its codes, 0 for code 0; the others without a gap."""

    @property
    def n_groups(self) -> int:
        """Number of coarse codes, with 0."""
        return max(self.groups) + 1


@dataclass(frozen=True)
class FeatureSchema:
    """One attribute: how its cells become codes, or numbers for a density.

    Codes of a categorical or binned attribute are 0 for missing or unseen, then one
    for each value or bin in order, then, if missing cells count as a value, one for
    those. A Gaussian attribute has no codes. The code of an interaction is
    joined of the coarse codes of its two sides, ``a * n_groups_b + b``.
    """

    name: str | None
    kind: Kind
    cells: str
    """What the cells held at fit: numbers, text, booleans or nothing."""

    values: tuple[Any, ...] = ()
    """Values of a categorical attribute, sorted unless they have an order."""

    edges: tuple[float, ...] = ()
    """Increasing cut points of a binned attribute; bins are closed on the right."""

    missing_is_value: bool = False
    """Whether missing cells have a separate code, the last one."""

    fill: float | int | None = None
    """What replaces a missing cell: a code, or a number for a Gaussian attribute."""

    step: float = 0.0
    """Width of the grid of a ``gaussian-weka`` attribute."""

    cuts: tuple[tuple[int, ...], ...] = ()
    """Positions of the cut points of each discretizer among the edges, if there were
    several; none for one."""

    sides: tuple[Side, ...] = ()
    """The two attributes that an interaction is made of."""
    ordered: bool = False
    """Whether the values have an order, in which they are listed."""

    left_out: bool = False
    """Whether all cells count as missing: the column looks like an identifier."""

    @property
    def is_coded(self) -> bool:
        """Whether the attribute has codes rather than a density."""
        return self.kind in ("categorical", "binned", "interaction")

    @property
    def is_fine(self) -> bool:
        """Whether bins are so fine that a reader is shown numbers, not intervals."""
        return bool(self.cuts)

    @cached_property
    def n_values(self) -> int:
        """Number of values, without code 0."""
        if not self.is_coded:
            return 1
        if self.sides:
            return self.sides[0].n_groups * self.sides[1].n_groups - 1
        plain = len(self.values) if self.kind == "categorical" else len(self.edges) + 1
        return plain + self.missing_is_value

    @property
    def n_codes(self) -> int:
        """Number of rows in a table by code."""
        return self.n_values + 1 if self.is_coded else 0

    @property
    def missing_code(self) -> int:
        """The code of a missing cell: a separate one, the imputed one, or 0."""
        if self.missing_is_value:
            return self.n_values
        return int(self.fill) if self.fill is not None else 0

    @cached_property
    def code_of(self) -> dict[Any, int]:
        """Code of every value of a categorical attribute."""
        return {value: code for code, value in enumerate(self.values, start=1)}

    def cut_at(self, edges: Sequence[Sequence[float]]) -> FeatureSchema:
        """Return the attribute with the cut points of one or several discretizers.

        >>> age = FeatureSchema("age", "binned", "numbers")
        >>> age.cut_at([[30.0], [20.0, 30.0, 40.0]]).cuts
        ((1,), (0, 1, 2))
        """
        union = tuple(sorted({edge for of_one in edges for edge in of_one}))
        place = {edge: k for k, edge in enumerate(union)}
        cuts = tuple(tuple(place[edge] for edge in of_one) for of_one in edges)
        return replace(self, edges=union, cuts=cuts if len(edges) > 1 else ())

    def codes(self, values: Sequence[Any]) -> list[int]:
        """Return codes of values, 0 of new ones."""
        return [self.code_of.get(value, 0) for value in values]

    @cached_property
    def text_of(self) -> dict[float, str]:
        """Text value of each number that some value is the text of."""
        return texts_by_number(self.values) if self.cells == "text" else {}

    @property
    def both_known(self) -> NDArray[np.bool_]:
        """Whether neither side of an interaction is code 0, shape (n_codes,)."""
        is_seen = [np.arange(side.n_groups) > 0 for side in self.sides]
        return np.logical_and.outer(*is_seen).ravel()

    def describe(self, code: int, write: Callable[[float], str] = six_digits) -> str:
        """Name a code for a reader: a value, an interval, or missing.

        Cut points are written by ``write``. A code of an interaction is named by its
        schema, which has the sides.
        """
        assert not self.sides
        if code == 0:
            return "(missing or unseen)"
        if self.missing_is_value and code == self.n_values:
            return "(missing)"
        if self.kind == "categorical":
            return str(self.values[code - 1])
        return self._interval(code, code, write)

    def describe_merged(
        self, codes: Sequence[int], write: Callable[[float], str] = six_digits
    ) -> str:
        """Name several codes at once: neighbouring bins as one interval."""
        if 0 in codes or not codes:
            return "(unknown)"
        if len(codes) == 1:
            return self.describe(codes[0], write)
        n_bins = len(self.edges) + 1
        is_interval = codes[-1] <= n_bins and codes[-1] - codes[0] == len(codes) - 1
        if self.kind == "binned" and is_interval:
            return self._interval(codes[0], codes[-1], write)
        if len(codes) > _MAX_NAMED:
            return f"{len(codes)} other values"
        return " or ".join(map(self.describe, codes))

    def _interval(self, first: int, last: int, write: Callable[[float], str]) -> str:
        """Name the interval of some neighbouring bins."""
        if first == 1 and last > len(self.edges):
            return "(any)"
        if first == 1:
            return f"≤ {write(self.edges[last - 1])}"
        if last > len(self.edges):
            return f"> {write(self.edges[first - 2])}"
        return f"({write(self.edges[first - 2])}, {write(self.edges[last - 1])}]"


@dataclass(frozen=True)
class TableSchema:
    """The attributes of a table in order, learned by fit; interactions come last."""

    features: tuple[FeatureSchema, ...]

    def __len__(self) -> int:
        """Count the attributes."""
        return len(self.features)

    @cached_property
    def left_out(self) -> list[int]:
        """Columns that are ignored, since they look like identifiers."""
        return [j for j, feature in enumerate(self.features) if feature.left_out]

    @cached_property
    def is_interaction(self) -> NDArray[np.bool_]:
        """Whether each attribute is an interaction of others, shape (d,)."""
        return np.array([bool(f.sides) for f in self.features], dtype=bool)

    @cached_property
    def n_columns(self) -> int:
        """Number of columns of the table, without interactions, which follow."""
        return sum(not feature.sides for feature in self.features)

    @cached_property
    def without_interactions(self) -> TableSchema:
        """The attributes that read columns."""
        if self.n_columns == len(self):
            return self
        return TableSchema(tuple(f for f in self.features if not f.sides))

    def parents(self) -> list[int]:
        """Return the attribute before each in the interactions, -1 for none."""
        parents = [-1] * self.n_columns
        for interaction in self.features[self.n_columns :]:
            parent, child = interaction.sides
            parents[child.feature] = parent.feature
        return parents

    def with_interactions(
        self, interactions: Iterable[tuple[Side, Side]]
    ) -> TableSchema:
        """Append interactions of attributes."""
        features = list(self.features)
        for sides in interactions:
            for side in sides:
                feature = self.features[side.feature]
                if len(side.groups) != feature.n_codes or feature.sides:
                    raise ValueError("A side needs a group for each code.")
            features.append(FeatureSchema(None, "interaction", "nothing", sides=sides))
        return TableSchema(tuple(features))

    @cached_property
    def names(self) -> list[str] | None:
        """Column names, None for a table without them."""
        names = [feature.name for feature in self.features if not feature.sides]
        return None if None in names else list(map(str, names))

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First table row of every attribute, and their total: shape (d + 1,)."""
        sizes = [feature.n_codes for feature in self.features]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)

    @cached_property
    def n_codes(self) -> int:
        """Number of rows of a table by code."""
        return sum(feature.n_codes for feature in self.features)

    @cached_property
    def first_codes(self) -> NDArray[np.int64]:
        """Table rows of code 0, one for each attribute that has codes."""
        return self.offsets[:-1][np.diff(self.offsets) > 0]

    @cached_property
    def n_values(self) -> NDArray[np.int64]:
        """Number of values of each attribute, shape (d,)."""
        return np.array([feature.n_values for feature in self.features], dtype=np.int64)

    @cached_property
    def n_categories(self) -> NDArray[np.int64]:
        """Number of values of each categorical attribute, 0 for others, shape (d,)."""
        is_category = [feature.kind == "categorical" for feature in self.features]
        return np.where(is_category, self.n_values, 0)

    @cached_property
    def coded(self) -> NDArray[np.int64]:
        """Positions of the attributes with codes."""
        return np.flatnonzero([feature.is_coded for feature in self.features])

    @cached_property
    def gaussian(self) -> NDArray[np.int64]:
        """Positions of the attributes with densities."""
        return np.flatnonzero([not feature.is_coded for feature in self.features])

    @cached_property
    def is_linear(self) -> NDArray[np.bool_]:
        """Whether each attribute is the number itself, shape (d,)."""
        return np.array([f.kind == "linear" for f in self.features], dtype=bool)

    def labels(self) -> list[str]:
        """Name every attribute, by position if the table has no names.

        Further interactions of the same columns are numbered.
        """
        labels: list[str] = []
        for j, feature in enumerate(self.features):
            name = self._column_name(j)
            if feature.sides:  # numbered if a column has the name already
                names = (name if k == 1 else f"{name} ({k})" for k in count(1))
                name = next(candidate for candidate in names if candidate not in labels)
            labels.append(name)
        return labels

    def _column_name(self, j: int) -> str:
        """Name the column of an attribute, or the two of an interaction."""
        feature = self.features[j]
        if feature.sides:
            return " × ".join(self._column_name(side.feature) for side in feature.sides)
        return feature.name if feature.name is not None else f"x{j}"

    def is_date(self, j: int) -> bool:
        """Whether the numbers of a column are days since 1970."""
        return self.features[j].name in self._dates

    def writer(
        self, j: int, otherwise: Callable[[float], str] = six_digits
    ) -> Callable[[float], str]:
        """Return how numbers of a column are written: days since 1970 as dates."""
        return day_text if self.is_date(j) else otherwise

    @cached_property
    def _dates(self) -> frozenset[str]:
        return frozenset(dates_in(self.features).values())

    def describe(self, j: int, code: int) -> str:
        """Name a code of an attribute for a reader; of an interaction, both sides.

        >>> colour = FeatureSchema("colour", "categorical", "text", ("blue", "red"))
        >>> size = FeatureSchema("size", "binned", "numbers", edges=(1.0, 3.0))
        >>> sides = Side(1, (0, 1, 1, 2)), Side(0, (0, 1, 2))
        >>> schema = TableSchema((colour, size)).with_interactions([sides])
        >>> schema.describe(2, 5)
        '≤ 3 & red'
        """
        feature = self.features[j]
        if not feature.sides:
            return feature.describe(code, self.writer(j))
        coarse = divmod(code, feature.sides[1].n_groups)
        return " & ".join(
            self.features[side.feature].describe_merged(
                [v for v, group in enumerate(side.groups) if group == wanted],
                self.writer(side.feature),
            )
            for side, wanted in zip(feature.sides, coarse, strict=True)
        )


def feature_labels(schema: TableSchema, positions: Iterable[int]) -> list[Any]:
    """Return attributes as users name them: by name, or by position without names."""
    names = schema.names
    return [int(j) if names is None else names[j] for j in positions]
