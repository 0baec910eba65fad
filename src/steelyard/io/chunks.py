"""Chunks of a source that fit into memory, and the origin of each of their rows."""

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
    """Where a chunk of a source begins."""

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
class Chunk:
    """Consecutive rows of a source, and where runs of them come from.

    ``Scan.chunks`` yields at most 2¹⁷ rows, and 32 MB of cells.
    """

    cells: pa.Table
    """The columns asked for, in that order; every chunk has the same types."""

    places: Places
    n_bytes: int = 0
    """Bytes of the file, if known."""

    first_row: int = 0
    """Position of the first row in the whole source, from 0."""

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

    def cut(self, start: int, stop: int) -> Chunk:
        """Return the rows between two positions."""
        cells = self.cells.slice(start, stop - start)
        size = round(self.n_bytes * (stop - start) / max(self.n_rows, 1))
        return Chunk(cells, places_between(self.places, start, stop), size)


def regroup(chunks: Iterable[Chunk], max_rows: int) -> Iterator[Chunk]:
    """Slice large chunks and join small ones, keeping the order of rows.

    Otherwise each of 10,000 row groups with a few rows would cost as much as a chunk.
    """
    waiting: list[Chunk] = []
    rows = n_bytes = 0
    for chunk in chunks:
        if not chunk.n_rows:
            continue
        per_row = max(chunk.cells.nbytes / chunk.n_rows, 1.0)
        step = max(min(max_rows, int(MAX_BYTES / per_row)), 1)
        for start in range(0, chunk.n_rows, step):
            piece = chunk.cut(start, min(start + step, chunk.n_rows))
            piece_bytes = int(piece.n_rows * per_row)
            if waiting and (
                rows + piece.n_rows > max_rows
                or n_bytes + piece_bytes > MAX_BYTES
                or piece.cells.schema != waiting[0].cells.schema
            ):
                yield _joined(waiting)
                waiting, rows, n_bytes = [], 0, 0
            waiting.append(piece)
            rows, n_bytes = rows + piece.n_rows, n_bytes + piece_bytes
    if waiting:
        yield _joined(waiting)


def _joined(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    import pyarrow as pa

    places, rows = [], 0
    for chunk in chunks:
        places += [(rows + offset, place) for offset, place in chunk.places]
        rows += chunk.n_rows
    # Dictionaries are unified here once, and not by every column that is read.
    cells = pa.concat_tables([chunk.cells for chunk in chunks]).unify_dictionaries()
    return Chunk(cells, places, sum(chunk.n_bytes for chunk in chunks))


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
