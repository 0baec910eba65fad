"""What every kind of source offers to a scan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import pyarrow as pa

from steelyard.table.sources.chunks import Part


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
