"""``steelyard predict``: a model and a file to predictions, some rows at a time."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from steelyard.cli import options, output
from steelyard.cli.inputs import load_model, rows_for

ABOUT = "predict classes and probabilities of the rows of a file"
EXAMPLES = """
steelyard predict model.json new.csv -o out.csv
steelyard predict model.json new.parquet --reasons 3 --keep id -o out.csv
cat new.csv | steelyard predict model.json - | head
steelyard predict model.json new.csv --json
"""

Lines = list[Sequence[Any]]

# Rows of a chunk: explanations hold a number per row, column and class, and a text
# per cell.
_MAX_CHUNK_ROWS = 50_000
_MAX_EXPLAINED_ROWS = 2_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    add("data", help=options.DATA)
    about = "CSV or TSV file to write (default: CSV to standard output)"
    add("-o", "--output", metavar="FILE", help=about)
    options.add_force(parser)
    about = "also the N cells that speak loudest for or against the class"
    add("--reasons", type=_at_least(0), default=0, metavar="N", help=about)
    options.add_split_pairs(parser)
    about = "columns of the file to copy, such as an identifier"
    options.add_names(parser, "--keep", about)
    about = "put ' before text that spreadsheets would run: that begins with = + - @"
    add("--safe-csv", action="store_true", help=about)
    about = "rows to hold in memory"
    add("--chunk-rows", type=_at_least(1), metavar="N", help=about)
    options.add_json(parser)
    options.add_input(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write predictions, chunk by chunk."""
    if arguments.output == "-":
        arguments.output = None
    output.check_output(arguments.output, arguments.force)
    clf = load_model(arguments.model)
    chunks: Iterable[Lines] = _predictions(clf, arguments)
    write = _write_json if arguments.json else _write_csv
    header = [*arguments.keep, "prediction", *(f"p({c})" for c in clf.classes_)]
    header += [f"reason {k + 1}" for k in range(arguments.reasons)]
    if arguments.safe_csv and not arguments.json:
        header = output.safe_cells(header)
        chunks = ([*map(output.safe_cells, lines)] for lines in chunks)
    if arguments.output is None:
        write(sys.stdout, header, chunks, ",")
        return
    allowed = (".json",) if arguments.json else (".csv", ".tsv", ".tab", ".txt")
    if Path(arguments.output).suffix.lower() not in allowed:
        raise ValueError(
            f"Predictions are written to {' or '.join(allowed)}, not to "
            f"{arguments.output}."
        )
    separator = "\t" if arguments.output.endswith((".tsv", ".tab")) else ","
    with (
        output.writing(arguments.output, arguments.force) as path,
        open(path, "w", encoding="utf-8", newline="") as stream,
        output.working("Predicting …") as status,
    ):
        write(stream, header, _counted(chunks, status), separator)


def _predictions(clf: Any, arguments: argparse.Namespace) -> Iterator[Lines]:
    """Yield lines of predictions, chunk by chunk."""
    from steelyard.explain.reasons import reasons

    keep = arguments.keep
    rows = arguments.chunk_rows or (
        _MAX_EXPLAINED_ROWS if arguments.reasons else _MAX_CHUNK_ROWS
    )
    for table, kept in rows_for(clf, arguments.data, arguments, keep, rows):
        # Cells as Python objects, missing ones as None.
        kept = kept.astype(object).where(kept.notna(), None)
        columns: list[Any] = [kept[name].tolist() for name in keep]
        columns.append(clf.predict(table).tolist())
        columns += clf.predict_proba(table).T.tolist()
        if arguments.reasons:
            pairs: Any = "split" if arguments.split_pairs else "shown"
            lines = reasons(clf, table, arguments.reasons, pairs=pairs)
            columns += [
                [str(line[k]) if k < len(line) else "" for line in lines]
                for k in range(arguments.reasons)
            ]
        yield list(zip(*columns, strict=True))


def _counted(chunks: Iterable[Lines], status: Any) -> Iterator[Lines]:
    """Show how many rows are done."""
    done = 0
    for lines in chunks:
        yield lines
        done += len(lines)
        status.update(f"{done} rows predicted …")


def _write_csv(stream: IO[str], header: Any, chunks: Any, separator: str) -> None:
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    for k, lines in enumerate(chunks):
        writer.writerows(lines if k else [header, *lines])


def _write_json(stream: IO[str], header: Any, chunks: Any, separator: str) -> None:
    """Write one document, a line for each row, without holding all of them."""
    before = f'{{"columns": {_json(header)},\n"rows": [\n '
    for lines in chunks:
        for line in lines:
            stream.write(before + _json(line))
            before = ",\n "
    stream.write("\n]}\n")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _at_least(low: int) -> Callable[[str], int]:
    def count(text: str) -> int:
        if not text.isdigit() or int(text) < low:
            problem = f"must be a whole number of at least {low}, not {text!r}"
            raise argparse.ArgumentTypeError(problem)
        return int(text)

    return count
