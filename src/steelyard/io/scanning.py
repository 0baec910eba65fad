"""A source as fits read it: names, target, weight, and chunks of checked rows."""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard._common import progress
from steelyard._common.allowed import LARGEST_WEIGHT, MIN_WEIGHT
from steelyard.exceptions import ColumnError, TableError
from steelyard.io.chunks import MAX_ROWS, Chunk, read_ahead, regroup
from steelyard.io.copies import CopyReader, copy_of
from steelyard.io.paths import find_column
from steelyard.io.reader import Reader, is_number

_CHANGED = (
    "The source changed between two readings: it had {} rows, and now {}. Leave it "
    "alone while a model is fitted, and fit it again."
)


class Scan:
    """A source that ``sy.scan`` has opened; see there."""

    def __init__(
        self,
        reader: Reader,
        *,
        target: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        chunk_rows: int | None = None,
        drop_missing_target: bool = False,
        work_folder: str | PathLike[str] | None = None,
    ) -> None:
        self._reader = reader
        self._columns = None if columns is None else list(columns)
        self._chunk_rows = chunk_rows or MAX_ROWS
        self.drops_unlabelled = drop_missing_target
        self._copy: CopyReader | None = None
        self._n_read: int | None = None
        self.work_folder = work_folder
        self.n_dropped = 0
        """How many rows without a target the last reading left out."""
        self._take_roles(target, weight)

    def _take_roles(self, target: str | None, weight: str | None) -> None:
        for name in (target, weight, *(self._columns or ())):
            if name is not None:
                find_column(name, self._reader.names, self._title)
        if target is not None and target == weight:
            raise ColumnError(f"Column {target!r} is both target and weight.")
        self.target, self.weight = target, weight
        wanted = self._reader.names if self._columns is None else self._columns
        roles = [name for name in (target, weight) if name is not None]
        self.names = list(dict.fromkeys([*wanted, *roles]))
        if not self.features:
            raise TableError(f"{self._title} has no column to learn from.")
        self._reader.check_names(None if self._columns is None else self.names)

    @property
    def _title(self) -> str:
        name = self._reader.name
        return f"The{name[3:]}" if name.startswith("the ") else name

    def with_roles(self, target: str | None = None, weight: str | None = None) -> Scan:
        """Return the same source for one use, with a separate temporary copy."""
        new = copy.copy(self)
        new._copy, new._n_read, new.n_dropped = None, None, 0
        new._take_roles(target or self.target, weight or self.weight)
        return new

    # --------------------------------------------------------------------- properties

    @property
    def features(self) -> list[str]:
        """Columns to learn from."""
        return [name for name in self.names if name not in (self.target, self.weight)]

    @property
    def notes(self) -> list[str]:
        """What was left out, a sentence each."""
        return self._reader.notes

    @property
    def reading(self) -> Mapping[str, Any]:
        """How files of text are read."""
        return self._reader.reading

    @property
    def labels(self) -> Mapping[str, str]:
        """Titles of columns by name, if files have them."""
        return self._reader.labels

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, None until they were read once."""
        if self._n_read is not None:
            return self._n_read
        return None if self.drops_unlabelled and self.target else self._reader.n_rows

    @property
    def n_bytes(self) -> int | None:
        """How many bytes the files take, None for other sources."""
        return self._reader.n_bytes

    @property
    def is_repeatable(self) -> bool:
        """Whether chunks can be asked for again."""
        return self._copy is not None or self._reader.is_repeatable

    @property
    def is_cheap(self) -> bool:
        """Whether reading again is cheaper than keeping a copy."""
        return self._copy is not None or self._reader.is_cheap

    @property
    def _source(self) -> Reader:
        return self._reader if self._copy is None else self._copy

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f", {self.n_rows:,} rows"
        roles = [("target", self.target), ("weight", self.weight)]
        shown = "".join(f", {role}={name!r}" for role, name in roles if name)
        return f"<scan of {self._reader.name}{rows}{shown}>"

    # --------------------------------------------------------------------- reading

    def chunks(
        self, columns: Sequence[str] | None = None, *, keep: bool = True
    ) -> Iterator[Chunk]:
        """Yield all rows, in the same order each time.

        With ``keep=False`` this is the last reading: nothing is copied for another.
        Then the chunks of an iterable have the types of its frames.
        """
        names = list(self.names if columns is None else columns)
        for name in names:
            find_column(name, self._reader.names, self._title)
        if keep or self._reader.needs_copy:
            self._keep()
        return self._checked(names)

    def _keep(self) -> None:
        """Make a copy if reading again would be slow, impossible or uncertain."""
        if not self.is_cheap:
            self._copy = copy_of(
                lambda: self._watched(self._read(self.names), "copy"),
                self.work_folder,
                self._reader.name,
            )

    def _read(self, names: list[str]) -> Iterator[Chunk]:
        chunks = self._source.read(names, self._chunk_rows)
        return read_ahead(chunks) if self._source.reads_ahead else chunks

    def _watched(self, chunks: Iterable[Chunk], step: str) -> Generator[Chunk]:
        """Yield chunks, and report progress to whoever watches."""
        n_rows = n_bytes = 0
        source = self._source
        for chunk in chunks:
            yield chunk
            n_rows, n_bytes = n_rows + chunk.n_rows, n_bytes + chunk.n_bytes
            if progress.current is not None:
                totals = source.n_rows, source.n_bytes
                progress.current.read(step, n_rows, n_bytes, totals)

    def _checked(self, names: list[str]) -> Iterator[Chunk]:
        read = [*names]
        if self.drops_unlabelled and self.target is not None:
            read.append(self.target)
        chunks = self._read(list(dict.fromkeys(read)))
        row = seen = 0
        weight = 0.0
        for chunk in self._watched(regroup(chunks, self._chunk_rows), "read"):
            seen += chunk.n_rows
            chunk = replace(chunk, first_row=row)
            if self.target in chunk.cells.column_names:
                chunk = self._with_target(chunk, seen)
            if self.weight in names:
                weight += _check_weights(chunk, self.weight)
            row += chunk.n_rows
            if chunk.n_rows:
                yield replace(chunk, cells=chunk.cells.select(names))
        self._finish(row, seen)
        if self.weight in names and not weight:
            raise TableError(
                "All sample weights are zero: no row is left to learn from."
            )

    def _finish(self, row: int, seen: int) -> None:
        """Compare the number of rows with that of the reading before."""
        expected = self._source.n_rows if self._n_read is None else self._n_read
        n_rows = seen if self._n_read is None else row
        if expected is not None and n_rows != expected:
            raise TableError(_CHANGED.format(f"{expected:,}", f"{n_rows:,}"))
        if not row:
            problem = "no row with a target" if seen else "no rows"
            raise TableError(f"There are {problem} in {self._reader.name}.")
        self._n_read, self.n_dropped = row, seen - row

    def _with_target(self, chunk: Chunk, seen: int) -> Chunk:
        """Return the rows with a target; refuse others unless they are dropped."""
        labels = chunk.column(str(self.target))
        is_missing = pc.is_null(labels, nan_is_null=pa.types.is_floating(labels.type))
        missing = np.asarray(is_missing.to_numpy(), dtype=bool)
        count = int(missing.sum())
        if not count:
            return chunk
        if self.drops_unlabelled:
            return _without(chunk, missing)
        where = chunk.place(int(np.flatnonzero(missing)[0]))
        raise TableError(
            f"{count:,} of the {seen:,} rows read so far have no target "
            f"{self.target!r}; the first is {where}. Fill them in, or leave "
            "them out with sy.scan(..., drop_missing_target=True)."
        )

    def close(self) -> None:
        """Remove the temporary copy, if there is one."""
        temporary, self._copy = self._copy, None
        if temporary is not None:
            temporary.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _without(chunk: Chunk, missing: NDArray[np.bool_]) -> Chunk:
    """Drop rows; the first row after a gap gets a place."""
    kept = np.flatnonzero(~missing)
    # A run begins after a dropped row, and at a file or row group.
    begins = {int(k) for k in np.flatnonzero(np.diff(kept, prepend=-2) != 1)}
    begins |= {int(k) for k in np.searchsorted(kept, [row for row, _ in chunk.places])}
    places = [
        (k, chunk.place_at(int(kept[k]))) for k in sorted(begins) if k < len(kept)
    ]
    return replace(chunk, cells=chunk.cells.take(pa.array(kept)), places=places)


def _check_weights(chunk: Chunk, name: str | None) -> float:
    """Check weights and return their sum."""
    column = chunk.column(str(name))
    if not is_number(column.type):
        raise ColumnError(
            f"The weights in column {name!r} must be numbers, not {column.type}."
        )
    weights = np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    allowed = (weights >= MIN_WEIGHT) & (weights <= LARGEST_WEIGHT)
    wrong = np.flatnonzero(~(allowed | (weights == 0.0)))
    if wrong.size:
        value = weights[wrong[0]]
        shown = "missing or not finite" if not np.isfinite(value) else f"{value:g}"
        raise TableError(
            f"The weight in column {name!r} of {chunk.place(int(wrong[0]))} is "
            f"{shown}. Weights must be finite and 0 or more, from {MIN_WEIGHT:g} to "
            f"{LARGEST_WEIGHT:g}; use 0 to leave a row out."
        )
    return float(weights.sum())
