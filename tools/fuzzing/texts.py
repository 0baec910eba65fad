"""Texts of CSV files: one table, however they are read."""

from __future__ import annotations

import copy
import datetime
import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import steelyard as sy
from fuzzing.case import ALL_DIGITS, Case, WrongError, equal, steelyard
from steelyard.io.dataset import read_dataset

WORDS = ["Ulm", "Köln", "St. Gallen", "a b", "x,y", 'say "so"', "it's", "two\nlines"]
MISSING = ["", "NA", "?", "-", "NaN", "NULL", "n.a.", "unknown", "  "]
KINDS = (
    "number number whole money large words words dates days times units codes "
    "brackets flag"
).split()
LATE = ["sum", "x", "1e400", "inf", "0x1F", "1,5", "1.5", "3+", "$4", "5 %", "-", "é"]
LATE += ["31/12/2024", "2024-02-30", "7 g", "(3)", "3.5D2", "00", "007"]


def _cells(n: int, rng: random.Random, decimal: str) -> list[str]:
    """Return the cells of a column; the last may show that it is another kind."""
    kind = rng.choice(KINDS)
    make: dict[str, Callable[[], str]] = {
        "number": lambda: f"{rng.gauss(0, 10 ** rng.choice([0, 3])):.2f}",
        "whole": lambda: str(rng.randrange(-3, 9)),
        "money": lambda: f"{rng.randrange(1, 9999):,}",
        "large": lambda: str(2**53 + rng.randrange(9)),
        "words": lambda: rng.choice(WORDS),
        "dates": lambda: f"2024-01-{rng.randrange(1, 29):02d}",
        "days": lambda: f"{rng.randrange(1, 29)}/{rng.randrange(1, 13)}/2024",
        "times": lambda: f"{rng.randrange(1, 29)}.1.2024 {rng.randrange(24)}:00",
        "units": lambda: f"{rng.randrange(99)} kg",
        "codes": lambda: f"{rng.randrange(99999):05d}",
        "brackets": lambda: rng.choice(["({})", "{}"]).format(rng.randrange(99)),
        "flag": lambda: rng.choice(["TRUE", "false", "true"]),
    }
    cells = [make[kind]() for _ in range(n)]
    if decimal == "," and kind == "number":
        cells = [cell.replace(".", ",") for cell in cells]
    for k in range(n):
        if rng.random() < 0.05:
            cells[k] = rng.choice(MISSING)
    if rng.random() < 0.4:
        at = [n - 1] if rng.random() < 0.5 else range(0, n, rng.choice([3, 20]))
        odd = rng.choice(LATE)
        for k in at:
            cells[k] = odd
    return cells


def make_text(rng: random.Random) -> tuple[str, str]:
    """Return a text with a column ``class``, and its encoding."""
    n, separator = rng.choice([4, 40, 200, 260]), rng.choice([",", ",", ";", "\t", "|"])
    decimal = rng.choice([".", "."] if separator == "," else [".", ","])
    names = [f"c{j}" for j in range(rng.choice([1, 2, 4]))]
    columns = [_cells(n, rng, decimal) for _ in names]
    columns.append([rng.choice(["yes", "no"]) for _ in range(n)])
    if rng.random() < 0.2:
        columns[-1][rng.randrange(n)] = ""
    rows = [[*names, "class"], *map(list, zip(*columns, strict=True))]
    newline = rng.choice(["\n", "\n", "\r\n"])
    lines = [separator.join(_quoted(c, separator, rng) for c in row) for row in rows]
    _make_irregular(lines, separator, rng)
    text = newline.join(lines) + (newline if rng.random() < 0.8 else "")
    encoding = rng.choice(["utf-8", "utf-8", "cp1252", "utf-16"])
    return (
        text if encoding != "utf-8" or rng.random() < 0.9 else "\ufeff" + text
    ), encoding


def _quoted(cell: str, separator: str, rng: random.Random) -> str:
    needs = separator in cell or "\n" in cell or cell.startswith('"')
    if needs or rng.random() < 0.05:
        return '"' + cell.replace('"', '""') + '"'
    return f" {cell}" if rng.random() < 0.02 else cell


def _make_irregular(lines: list[str], separator: str, rng: random.Random) -> None:
    """Add what files of people have: blank, short and long lines, an open quote."""
    odd = ["", "", "Total", f"Sum{separator}3", separator.join("1234567"), '"open', " "]
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(odd))


# --------------------------------------------------------------------- ways of reading

Read = tuple[dict[str, list[Any]], list[str]]


def as_whole(path: Path) -> Read:
    """Read a file at once."""
    data = read_dataset(path, target="class")
    columns = {name: data.table[name] for name in data.table} | {"class": data.target}
    cells = {
        name: [None if c is None or c != c else c for c in np.asarray(of).tolist()]
        for name, of in columns.items()
    }
    # Rows without a label are left out there.
    notes = [note for note in data.notes if "without 'class'" not in note]
    return cells, [note for note in notes if "treated as categories" not in note]


def as_scan(path: Path, n_bytes: int | None = None, rows: int | None = None) -> Read:
    """Read a file chunk by chunk, in blocks of so many bytes."""
    scan = sy.scan(path, target="class", chunk_rows=rows, drop_missing_target=True)
    if n_bytes is not None:
        # The one thing that is not public: blocks are large, and files here are small.
        reader = scan._reader = copy.copy(scan._reader)
        if not hasattr(reader, "_block_bytes"):
            raise WrongError("text files have no blocks: mend fuzzing/texts.py")
        reader._block_bytes = n_bytes
    with scan.with_roles() as opened:
        chunks = list(opened.chunks())
        notes = list(opened.notes)
    columns: dict[str, list[Any]] = {n: [] for n in chunks[0].cells.column_names}
    for chunk in chunks:
        for name, cells in columns.items():
            cells += chunk.column(name).to_pylist()
    return columns, notes


def as_gzip(path: Path) -> Read:
    """Read a compressed copy."""
    packed = path.with_name("data.csv.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return as_scan(packed)


def outcome_of(read: Callable[[], Read]) -> Any:
    """Columns and notes, or the message of an error, without names of files."""
    try:
        columns, notes = read()
    except ValueError as error:
        return re.sub(r"\S*data\.csv(\.gz)?", "FILE", str(error))
    names = re.compile(r"^\S*\.csv(\.gz)?: ")
    plain = {name: list(map(_plain, cells)) for name, cells in columns.items()}
    # As text: NaN is not itself, and 1 equals 1.0.
    return repr(plain), sorted(names.sub("FILE: ", note) for note in notes)


def _plain(cell: Any) -> Any:
    """Return what pandas makes of it: floats of whole numbers, moments of days."""
    if type(cell) is datetime.date:
        return datetime.datetime.combine(cell, datetime.time())
    return float(cell) if type(cell) is int else cell


def attack_text(case: Case, number: int) -> None:
    """Read a text in every way, and predict its rows in two."""
    rng = case.rng
    text, encoding = make_text(rng)
    path = case.folder / "data.csv"
    path.write_bytes(text.encode(encoding, errors="replace"))
    n_bytes, rows = rng.choice([200, 512, 1024, 4096]), rng.choice([1, 7, 50])
    case.about = f"{len(text)} characters, {encoding}, blocks {n_bytes}, chunks {rows}"
    ways: dict[str, Callable[[], Read]] = {
        "scan": lambda: as_scan(path),
        "small blocks": lambda: as_scan(path, n_bytes),
        "small chunks": lambda: as_scan(path, rows=rows),
        "gzip": lambda: as_gzip(path),
    }
    expected = None
    with case.check("whole"):
        expected = outcome_of(lambda: as_whole(path))
        case.outcome = "refused" if isinstance(expected, str) else "a table"
    if expected is None:
        return
    for name, read in ways.items():
        with case.check(name):
            equal(name, expected, outcome_of(read))
    if not isinstance(expected, str):
        check_commands(case, path)


def check_commands(case: Case, path: Path) -> None:
    """Fit by the command line; small text files are predicted in a way of their own."""
    model, table = case.folder / "model.json", case.folder / "out.parquet"
    options = ["--target", "class", "--method", "NB", "--no-check", "--force"]
    with case.check("predict, quickly and not"):
        status, _, _ = steelyard("fit", str(path), *options, "-o", str(model))
        if status:
            return
        quick = steelyard("predict", str(model), str(path), "--json", *ALL_DIGITS)
        table.unlink(missing_ok=True)
        slow = steelyard("predict", str(model), str(path), "-o", str(table))
        equal("status", quick[0], slow[0])
        if quick[0] == 0:
            rows = pd.read_parquet(table).itertuples(index=False)
            equal("rows", json.loads(quick[1])["rows"], [list(row) for row in rows])
