"""``steelyard predict``: a model and a file to predictions, some rows at a time."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from steelyard._common.progress import Advance, progress
from steelyard._common.text import listed, plain_names, safe_cells
from steelyard.cli import options, output
from steelyard.cli.inputs import load_model, rows_for
from steelyard.notices.notice import Notice

ABOUT = "predict classes and probabilities of the rows of a file"
EXAMPLES = """
steelyard predict model.json new.csv -o out.csv
steelyard predict model.json new.parquet --reasons 3 --keep id -o out.csv
steelyard predict model.json new.csv --intervals -o out.csv
cat new.csv | steelyard predict model.json - | head
steelyard predict model.json "trips/*.parquet" -o out.parquet
steelyard predict model.json new.csv --json
"""

Columns = list[Any]
"""Arrays or lists of one length."""

_COMMAS, _TABS = (".csv", ".txt"), (".tsv", ".tab")
_PARQUET, _JSON = (".parquet", ".pq"), (".json",)

# Rows of a chunk: explanations have a number per row, column and class, and a text
# per cell.
_MAX_CHUNK_ROWS = 50_000
_MAX_EXPLAINED_ROWS = 2_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    add("data", nargs="+", help=options.SEVERAL)
    about = "CSV, TSV or Parquet file to write (default: CSV to standard output)"
    add("-o", "--output", metavar="FILE", help=about)
    options.add_shared(parser, "force")
    about = "add the N strongest reasons for or against the class"
    add("--reasons", type=_at_least(0), default=0, metavar="N", help=about)
    about = "add low and high of 90 %% intervals of probabilities"
    add("--intervals", action="store_true", help=about)
    options.add_shared(parser, "split-interactions")
    about = "columns of the file to copy, such as an identifier"
    options.add_names(parser, "--keep", about)
    about = "significant digits of numbers, 17 for all (default: 6; Parquet has all)"
    add("--digits", type=_at_least(1), default=6, metavar="N", help=about)
    about = "rows to keep in memory"
    add("--chunk-rows", type=_at_least(1), metavar="N", help=about)
    about = "put an apostrophe before cells that a spreadsheet would run as a formula"
    add("--safe-csv", action="store_true", help=about)
    options.add_shared(parser, "json")
    options.add_input(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write predictions, chunk by chunk."""
    if arguments.output == "-":
        arguments.output = None
    output.check_output(arguments.output, arguments.force)
    noticed: list[Notice] = []
    write = _writer(arguments, noticed)
    clf = load_model(arguments.model)
    names = plain_names([str(c) for c in clf.classes_])
    header = [*arguments.keep, "prediction", *(f"p_{name}" for name in names)]
    if arguments.intervals:
        header += [f"{end}_{name}" for name in names for end in ("low", "high")]
    header += [f"reason_{k + 1}" for k in range(arguments.reasons)]
    shown = partial(_rounded, n_exact=len(arguments.keep) + 1, digits=arguments.digits)
    predictions = partial(_predictions, clf, arguments, noticed)
    if arguments.output is None:
        write(sys.stdout, header, shown(predictions(lambda *_: None)))
        output.note_notices(noticed)
        return
    with (
        output.writing(arguments.output, arguments.force) as path,
        open(path, "wb") as raw,
        progress("Predicting", None, sys.stderr.isatty(), stays=False) as advance,
    ):
        counts: list[int] = []
        chunks = _counted(predictions(advance), counts)
        if write is _write_parquet:
            write(raw, header, chunks)
        else:
            with io.TextIOWrapper(raw, encoding="utf-8", newline="") as stream:
                write(stream, header, shown(chunks))
    written = f"columns {listed(header, 6)}"
    output.note(f"{sum(counts)} rows written to {arguments.output}: {written}")
    output.note_notices(noticed)


def _counted(chunks: Iterable[Columns], counts: list[int]) -> Iterator[Columns]:
    for columns in chunks:
        counts.append(len(columns[-1]))
        yield columns


def _rounded(chunks: Iterable[Columns], n_exact: int, digits: int) -> Iterator[Columns]:
    """Round the numbers of all but the first columns to significant digits."""
    form = f".{digits}g"
    for columns in chunks:
        exact, numbers = columns[:n_exact], columns[n_exact:]
        yield [
            *exact,
            *(
                [x if isinstance(x, str) else float(format(x, form)) for x in column]
                for column in numbers
            ),
        ]


def _writer(
    arguments: argparse.Namespace, noticed: list[Notice]
) -> Callable[..., None]:
    """Return the function that writes predictions, by the extension of the file."""
    if arguments.output is None:
        write = partial(_write_csv, separator=",", is_safe=arguments.safe_csv)
        return partial(_write_json, noticed=noticed) if arguments.json else write
    allowed = _JSON if arguments.json else (*_COMMAS, *_TABS, *_PARQUET)
    suffix = Path(arguments.output).suffix.lower()
    if suffix not in allowed:
        raise ValueError(
            f"Predictions are written to {' or '.join(allowed)}, not to "
            f"{arguments.output}."
        )
    if suffix in _PARQUET:
        return _write_parquet
    separator = "\t" if suffix in _TABS else ","
    write = partial(_write_csv, separator=separator, is_safe=arguments.safe_csv)
    return partial(_write_json, noticed=noticed) if suffix in _JSON else write


def _predictions(
    clf: Any, arguments: argparse.Namespace, noticed: list[Notice], advance: Advance
) -> Iterator[Columns]:
    """Yield the columns of predictions, chunk by chunk; then add the notices."""
    from steelyard.cli.small import small_rows
    from steelyard.notices.check import NewRows

    check = NewRows(clf)
    if (small := small_rows(clf, arguments)) is not None:
        yield _predicted(clf, *small, arguments, check)
    else:
        rows = arguments.chunk_rows or (
            _MAX_EXPLAINED_ROWS if arguments.reasons else _MAX_CHUNK_ROWS
        )
        paths, keep = arguments.data, arguments.keep
        for table, others in rows_for(clf, paths, arguments, keep, rows, advance):
            # Cells as Python objects, missing ones as None.
            kept = [others.column(name).to_pylist() for name in keep]
            yield _predicted(clf, table, kept, arguments, check)
    noticed += check.notices()


def _predicted(
    clf: Any, table: Any, kept: Columns, arguments: argparse.Namespace, check: Any
) -> Columns:
    labels, probabilities = clf._answers(table, "predict", "predict_proba", check=check)
    columns = [*kept, labels, *probabilities.T]
    if arguments.intervals:
        columns += [*clf.predict_interval(table).reshape(len(labels), -1).T]
    if arguments.reasons:
        from steelyard.explain.reasons import reasons

        interactions: Any = "split" if arguments.split_interactions else "shown"
        lines = reasons(clf, table, arguments.reasons, interactions=interactions)
        columns += [
            [str(line[k]) if k < len(line) else "" for line in lines]
            for k in range(arguments.reasons)
        ]
    return columns


# ----------------------------------------------------------------------------- writing


def _lines(columns: Columns) -> Iterator[tuple[Any, ...]]:
    plain = (c.tolist() if hasattr(c, "tolist") else c for c in columns)
    return zip(*plain, strict=True)


def _write_csv(
    stream: IO[str],
    header: list[str],
    chunks: Iterable[Columns],
    separator: str,
    is_safe: bool,
) -> None:
    safe = safe_cells if is_safe else list
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    for k, columns in enumerate(chunks):
        if not k:
            writer.writerow(safe(header))
        writer.writerows(map(safe, _lines(columns)))


def _write_json(
    stream: IO[str],
    header: list[str],
    chunks: Iterable[Columns],
    noticed: list[Notice],
) -> None:
    """Write one JSON document, a line for each row, as chunks come."""
    before = f'{{"columns": {_json(header)},\n"rows": [\n '
    for columns in chunks:
        for line in _lines(columns):
            stream.write(before + _json(line))
            before = ",\n "
    notices = [notice.to_dict() for notice in noticed]
    stream.write(f'\n],\n"notices": {_json(notices)}}}\n')


def _write_parquet(
    stream: IO[bytes], header: list[str], chunks: Iterable[Columns]
) -> None:
    """Write a row group for each chunk, with checksums of pages."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    writer: Any = None
    for columns in chunks:
        # Lists contain text, and cells to copy that may be anything.
        cells = [
            pa.array(column)
            if hasattr(column, "dtype")
            else pa.array([None if v is None else str(v) for v in column], "string")
            for column in columns
        ]
        table = pa.table(cells, names=header)
        if writer is None:
            writer = ParquetWriter(
                stream, table.schema, compression="zstd", write_page_checksum=True
            )
        writer.write_table(table)
    writer.close()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _at_least(low: int) -> Callable[[str], int]:
    def count(text: str) -> int:
        if not text.isdigit() or int(text) < low:
            problem = f"must be a whole number of at least {low}, not {text!r}"
            raise argparse.ArgumentTypeError(problem)
        return int(text)

    return count
