"""Pieces of a source that fit into memory, and the origin of each of their rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import pyarrow as pa

    from steelyard.table.frames import Table

# Three exist at a time: one in use, one waiting, and one being decoded.
MAX_ROWS = 2**17
MAX_BYTES = 32 * 10**6

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Place:
    """Where a piece of a source begins."""

    name: str
    """The file, or the name of another source in messages."""

    group: int | None = None
    """The row group of a Parquet file or the batch of an Arrow file, from 0."""

    row: int = 0
    """The first row within the file, from 0."""

    def __str__(self) -> str:
        return f"{self.name}, row {self.row + 1:,}"


Places = Sequence[tuple[int, Place]]
"""Rows at which a file or row group begins, in order, each with its origin."""


def places_between(places: Places, start: int, stop: int) -> Places:
    """Return the places of rows ``start`` to ``stop``, counted from ``start``."""
    first = bisect_right([offset for offset, _ in places], start) - 1
    return [
        (max(offset - start, 0), replace(at, row=at.row + max(start - offset, 0)))
        for offset, at in places[first:]
        if offset < stop
    ]


@dataclass(frozen=True)
class Part:
    """Some rows as they were read, and the places where runs of them begin."""

    cells: pa.Table
    places: Places
    n_bytes: int = 0
    """Bytes of the file, if known."""

    def cut(self, start: int, stop: int) -> Part:
        """Return the rows between two positions."""
        share = (stop - start) / max(self.cells.num_rows, 1)
        cells, places = self.cells.slice(start, stop - start), self.places
        size = round(self.n_bytes * share)
        return Part(cells, places_between(places, start, stop), size)


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a source: at most 2¹⁷, and 32 MB of cells."""

    cells: pa.Table
    """The columns asked for, in that order; every chunk has the same types."""

    first_row: int
    """Position of the first row in the whole source, from 0."""

    places: Places

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.cells.num_rows)

    def table(self, names: Sequence[str]) -> Table:
        """Return some columns, for the encoder."""
        from steelyard.table.frames import as_table

        return as_table(self.cells.select(list(names)), is_whole=False)

    def column(self, name: str) -> Any:
        """Return one column, for ``as_series`` or as weights."""
        return self.cells.column(name)

    def place_at(self, row: int = 0) -> Place:
        """Return where a row of the chunk came from."""
        return places_between(self.places, row, row + 1)[0][1]

    def place(self, row: int = 0) -> str:
        """Return where a row came from as text, counted from 1 in its file."""
        return str(self.place_at(row))


def regroup(parts: Iterable[Part], max_rows: int) -> Iterator[Part]:
    """Slice large parts and join small ones, keeping the order of rows.

    Otherwise each of 10,000 row groups with a few rows would cost as much as a chunk.
    """
    waiting: list[Part] = []
    rows = n_bytes = 0
    for part in parts:
        size = part.cells.num_rows
        if not size:
            continue
        per_row = max(part.cells.nbytes / size, 1.0)
        step = max(min(max_rows, int(MAX_BYTES / per_row)), 1)
        for start in range(0, size, step):
            piece = part.cut(start, min(start + step, size))
            piece_bytes = int(piece.cells.num_rows * per_row)
            if waiting and (
                rows + piece.cells.num_rows > max_rows
                or n_bytes + piece_bytes > MAX_BYTES
                or piece.cells.schema != waiting[0].cells.schema
            ):
                yield _joined(waiting)
                waiting, rows, n_bytes = [], 0, 0
            waiting.append(piece)
            rows, n_bytes = rows + piece.cells.num_rows, n_bytes + piece_bytes
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    import pyarrow as pa

    places, rows = [], 0
    for part in parts:
        places += [(rows + offset, place) for offset, place in part.places]
        rows += part.cells.num_rows
    # Dictionaries are unified here once, and not by every column that is read.
    cells = pa.concat_tables([part.cells for part in parts]).unify_dictionaries()
    return Part(cells, places, sum(part.n_bytes for part in parts))


def read_ahead(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield items while a thread reads the next two."""
    iterator, over = iter(items), object()
    pool = ThreadPoolExecutor(1, "steelyard-read-ahead")
    try:
        waiting = deque(pool.submit(next, iterator, over) for _ in range(2))
        while (item := waiting.popleft().result()) is not over:
            waiting.append(pool.submit(next, iterator, over))
            yield cast(_Item, item)
    finally:
        pool.shutdown(cancel_futures=True)
