"""``steelyard predict``: a model and a file to predictions, some rows at a time."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from steelyard.cli.models import load_model, rows_for
from steelyard.cli.options import (
    Commands,
    add_command,
    add_input,
    add_json,
    add_output,
    names_of,
)
from steelyard.cli.output import check_output, working, writing

__all__ = ["add_parser"]

_EXAMPLES = """
steelyard predict model.json new.csv -o out.csv
steelyard predict model.json new.parquet --reasons 3 --keep id -o out.csv
cat new.csv | steelyard predict model.json - | head
steelyard predict model.json new.csv --json
"""

Lines = list[tuple[Any, ...]]

# Rows of a chunk: explanations hold a number per row, column and class, and a text
# per cell.
_ROWS = 50_000
_EXPLAINED_ROWS = 2_000


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "predict",
        "predict classes and probabilities of the rows of a file",
        _EXAMPLES,
        _run,
    )
    parser.add_argument("model", help="a model file, written by fit")
    parser.add_argument(
        "data", help="CSV, TSV, Parquet or ARFF file, or - for standard input"
    )
    add_output(
        parser,
        "CSV or TSV file to write (default: CSV to standard output)",
        required=False,
    )
    parser.add_argument(
        "--reasons",
        type=_count,
        default=0,
        metavar="N",
        help="also the N cells that speak loudest for or against the class",
    )
    parser.add_argument(
        "--keep",
        metavar="NAME,...",
        action="append",
        default=[],
        help="columns of the file to copy, such as an identifier",
    )
    parser.add_argument(
        "--chunk-rows", type=_positive, metavar="N", help="rows to hold in memory"
    )
    add_json(parser)
    add_input(parser)


def _run(arguments: argparse.Namespace) -> None:
    if arguments.output == "-":
        arguments.output = None
    check_output(arguments.output, arguments.force)
    separator = "\t" if str(arguments.output).endswith((".tsv", ".tab")) else ","
    clf = load_model(arguments.model)
    chunks = _predictions(clf, arguments)
    with ExitStack() as stack:
        if arguments.output is None:
            stream: IO[str] = sys.stdout
        else:
            _check_extension(arguments)
            path = stack.enter_context(writing(arguments.output, arguments.force))
            stream = stack.enter_context(open(path, "w", encoding="utf-8", newline=""))
        header = _header(clf, arguments)
        status = None
        if arguments.output is not None:
            status = stack.enter_context(working("Predicting …"))
        write = _write_json if arguments.json else _write_csv
        write(stream, header, chunks, separator, status)


def _check_extension(arguments: argparse.Namespace) -> None:
    suffix = Path(arguments.output).suffix.lower()
    allowed = (".json",) if arguments.json else (".csv", ".tsv", ".tab", ".txt")
    if suffix not in allowed:
        raise ValueError(
            f"Predictions are written to {' or '.join(allowed)}, not to "
            f"{arguments.output}."
        )


def _header(clf: Any, arguments: argparse.Namespace) -> list[str]:
    return [
        *names_of(arguments.keep),
        "prediction",
        *(f"p({label})" for label in clf.classes_),
        *(f"reason {k + 1}" for k in range(arguments.reasons)),
    ]


def _predictions(clf: Any, arguments: argparse.Namespace) -> Iterator[Lines]:
    """Yield lines of predictions, chunk by chunk."""
    from steelyard.explain.reasons import reasons

    keep = names_of(arguments.keep)
    rows = arguments.chunk_rows or (_EXPLAINED_ROWS if arguments.reasons else _ROWS)
    for table, kept in rows_for(clf, arguments.data, arguments, keep, rows):
        columns: list[Any] = [_cells(kept[name]) for name in keep]
        columns.append(clf.predict(table).tolist())
        columns += clf.predict_proba(table).T.tolist()
        if arguments.reasons:
            filled = [""] * arguments.reasons
            lines = [
                [*map(str, line), *filled][: arguments.reasons]
                for line in reasons(clf, table, arguments.reasons)
            ]
            columns += zip(*lines, strict=True)
        yield list(zip(*columns, strict=True))


def _cells(column: Any) -> list[Any]:
    """Return cells as Python objects, missing ones as None."""
    return column.astype(object).where(column.notna(), None).tolist()


def _write_csv(
    stream: IO[str],
    header: Sequence[str],
    chunks: Iterator[Lines],
    separator: str,
    status: Any,
) -> None:
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    done = 0
    for lines in chunks:
        if not done:
            writer.writerow(header)
        writer.writerows(lines)
        done += len(lines)
        if status is not None:
            status.update(f"{done} rows predicted …")


def _write_json(
    stream: IO[str],
    header: Sequence[str],
    chunks: Iterator[Lines],
    separator: str,
    status: Any,
) -> None:
    """Write one document, a line for each row, without holding all of them."""
    done = 0
    for lines in chunks:
        for line in lines:
            stream.write(
                ",\n " if done else f'{{"columns": {_json(header)},\n"rows": [\n '
            )
            stream.write(_json(line))
            done += 1
        if status is not None:
            status.update(f"{done} rows predicted …")
    stream.write("\n]}\n")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _count(text: str) -> int:
    return _at_least(text, 0)


def _positive(text: str) -> int:
    return _at_least(text, 1)


def _at_least(text: str, low: int) -> int:
    if not text.isdigit() or int(text) < low:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least {low}, not {text!r}"
        )
    return int(text)
