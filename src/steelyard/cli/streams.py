"""Files that are read in chunks: which ones, how, and how far a reading has come."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from steelyard.cli.inputs import chosen_columns
from steelyard.cli.options import reading_of
from steelyard.cli.output import screen
from steelyard.exceptions import ParameterError, TableError

if TYPE_CHECKING:
    from steelyard.io.kinds import Recast
    from steelyard.io.scanning import Scan

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)(i?)b?", re.IGNORECASE)
_LEAST_MEMORY = 10**8

# What tables take in memory while a model is fitted: bytes a cell of a Parquet file,
# and bytes for each of a text file, which gzip makes smaller first.
_BYTES_A_CELL = 16
_BYTES_A_BYTE = 4
_UNPACKED = 5

# A chunk, its codes and the chunk that is read ahead, in shares of the memory.
_CHUNK_SHARE = 1 / 16


def size_of(text: str) -> int:
    """Read a size such as 500MB, 2GB or 1.5 GiB.

    Examples
    --------
    >>> size_of("2GB"), size_of("1.5 GiB"), size_of("300000000")
    (2000000000, 1610612736, 300000000)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        problem = f"must be a size such as 500MB or 2GB, not {text!r}"
        raise argparse.ArgumentTypeError(problem)
    unit = found[2].lower()
    factor = 1024 ** " kmgt".index(unit) if found[3] and unit else _UNITS[unit]
    size = int(float(found[1]) * factor)
    if size < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"must be at least 100MB, not {text!r}")
    return size


def default_memory() -> int:
    """Return half of the memory of this machine, or of what its container may use."""
    known = [2 * 10**9]
    with contextlib.suppress(AttributeError, ValueError, OSError):
        known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            known.append(int(file.read()))
    return max(min(known) // 2, _LEAST_MEMORY)


def add_options(parser: argparse.ArgumentParser) -> Any:
    """Say when tables are read in chunks, and where temporary files go."""
    group = parser.add_argument_group("tables larger than memory")
    about = "read in chunks what would take more, such as 2GB (default: half of all)"
    group.add_argument("--memory", type=size_of, metavar="SIZE", help=about)
    about = "folder for temporary files (default: that of the system)"
    group.add_argument("--work-folder", metavar="DIR", help=about)
    return group


def is_streamed(arguments: argparse.Namespace) -> bool:
    """Whether the data are read in chunks: several files, or a large one."""
    from steelyard.io.paths import is_several

    paths = arguments.data
    if is_several(paths):
        return True
    path, memory = paths[0], arguments.memory or default_memory()
    # Standard input cannot be read twice, and other files are read whole.
    return os.path.isfile(path) and _size_in_memory(path, arguments.format) > memory


def _size_in_memory(path: str, format: str | None) -> int:
    """Guess how many bytes a file takes in memory, 0 if it cannot be streamed."""
    from steelyard.io.paths import TEXT, packing_of, stem_and_format

    format, size = format or stem_and_format(path)[1], os.path.getsize(path)
    if format in TEXT:
        return size * _BYTES_A_BYTE * (_UNPACKED if packing_of(path) else 1)
    if format != "parquet":
        return size * _BYTES_A_BYTE if format == "arrow" else 0
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        found = read_metadata(path)
    except ArrowException as error:
        raise TableError(f"{path} is not a Parquet file: {error}") from None
    return int(found.num_rows * found.num_columns * _BYTES_A_CELL)


# ------------------------------------------------------------------------------ fitting


def open_rows(arguments: argparse.Namespace) -> tuple[Scan, Recast]:
    """Open the files to learn from, chunk by chunk."""
    from steelyard.experiments.data.dataset import open_table
    from steelyard.io.chunks import MOST_ROWS
    from steelyard.io.scanning import Scan

    if arguments.bins is not None:
        raise ParameterError("`bins` are for files that fit into memory.")
    reader, target = open_table(
        arguments.data,
        arguments.target,
        arguments.categorical,
        arguments.numeric,
        **reading_of(arguments),
    )
    arguments.weights = arguments.weights or reader.about.get("weight")
    columns = chosen_columns(arguments, reader.names, target, reader.name)
    memory = arguments.memory or default_memory()
    most_rows = max(int(memory * _CHUNK_SHARE / (8 * len(columns))), 1000)
    rows = Scan(
        reader.with_target(target),
        target=target,
        weight=arguments.weights,
        columns=columns,
        chunk_rows=min(most_rows, MOST_ROWS),
        drop_missing_target=True,
    )
    rows.work_folder = arguments.work_folder
    return rows, reader


# ----------------------------------------------------------------------------- progress


@contextlib.contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """Show rows, megabytes a second and the time left, on a terminal.

    What is given is to be called with a text, rows, bytes and how many bytes there are,
    or None where nobody knows.
    """
    console = screen(error=True)
    if not console.is_terminal:
        yield lambda *_: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    texts = TextColumn("{task.description}"), TextColumn("{task.fields[rows]}")
    rate = TransferSpeedColumn(), TimeRemainingColumn()
    columns = texts[0], BarColumn(), texts[1], *rate
    with Progress(*columns, console=console, transient=True) as bar:
        task, step = bar.add_task(title, total=None, rows=""), title

        def update(text: str, rows: int, n_bytes: int, total: int | None) -> None:
            nonlocal task, step
            if text != step:
                bar.remove_task(task)
                task, step = bar.add_task(text, total=total, rows=""), text
            bar.update(task, completed=n_bytes, total=total, rows=f"{rows:,} rows")

        yield update
