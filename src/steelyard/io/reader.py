"""What every kind of source offers to a scan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from steelyard.exceptions import TableError
from steelyard.io.chunks import MOST_ROWS, Part
from steelyard.io.types import conform, join_types

if TYPE_CHECKING:
    import pandas


class TypesChangedError(Exception):
    """Parts that were read have other types than the source has; read it again."""


class Reader(ABC):
    """Reads a source from its beginning, part by part."""

    is_repeatable: bool = True
    """Whether it can be read again."""

    is_cheap: bool = True
    """Whether reading again is cheaper than a temporary copy, and gives the same."""

    needs_copy: bool = False
    """Whether types are known at the end only, so that it is copied in any case."""

    reads_ahead: bool = False
    """Whether a thread may read, which code of the user must not be run in."""

    name: str
    """How messages call the source."""

    names: list[str]
    """All columns."""

    notes: list[str] = []  # noqa: RUF012
    """What is left out, a sentence each."""

    about: Mapping[str, str] = {}
    """What the source says of itself: its name and the column to predict."""

    n_rows: int | None = None
    n_bytes: int | None = None

    def check_names(self, wanted: Sequence[str] | None) -> None:  # noqa: B027
        """Raise an error if a part lacks one of some columns, or differs in any."""

    @abstractmethod
    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return the types of some columns, the same in all parts."""

    @abstractmethod
    def read(self, names: Sequence[str], most_rows: int) -> Iterator[Part]:
        """Yield some columns of all rows, in order."""


def whole_table(reader: Reader, names: Sequence[str]) -> pa.Table:
    """Return all rows of some columns: a table in memory is all parts."""
    while True:
        try:
            parts = [part.cells for part in reader.read(names, MOST_ROWS)]
        except TypesChangedError:
            continue
        break
    types = {
        name: join_types(
            name,
            [cells.schema.field(name).type for cells in parts],
            partial(_example, parts, name, reader.name),
        )
        for name in names
    }
    tables = [conform(cells, types, reader.name) for cells in parts]
    if not sum(table.num_rows for table in tables):
        raise TableError(f"There are no rows in {reader.name}.")
    return pa.concat_tables(tables).unify_dictionaries()


def _example(
    parts: list[pa.Table], name: str, where: str, kind: pa.DataType
) -> tuple[Any, str] | None:
    """Return a cell of a column that has some type, and where it is."""
    columns = (cells.column(name) for cells in parts)
    known = (c.drop_null() for c in columns if c.type == kind)
    return next(((cells[0].as_py(), where) for cells in known if len(cells)), None)


def whole_frame(reader: Reader, names: Sequence[str]) -> pandas.DataFrame:
    """Return all rows of some columns as a frame of pandas."""
    frame = whole_table(reader, names).to_pandas()
    frame.columns = list(names)
    return frame
