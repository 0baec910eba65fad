"""The same text file is the same table, however it is read."""

import datetime
import gzip
import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.cli import inputs as streams
from steelyard.cli.run import main
from steelyard.io.dataset import read_dataset
from steelyard.io.paths import find_column, find_files
from steelyard.io.reader import whole_table
from steelyard.io.text import TextFiles

N = 260
RNG = np.random.default_rng(0)
SIZES = np.round(np.exp(RNG.normal(6, 2, N)), 2)
NAMES = ["Ulm", "Köln", "St. Gallen", "Aix-en-Provence", "Å"]


def written(value, decimal=".", thousands=""):
    text = f"{value:,.2f}"
    return text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)


def table(sizes, more=(), names="city size class", separator=",", newline="\n"):
    """Lines of a file: a name, a number and a class, and further columns."""
    header = [*names.split(), *(name for name, _ in more)]
    rows = []
    for k, size in enumerate(sizes):
        cells = [NAMES[k % 5], size, "yes" if SIZES[k] > 400 else "no"]
        cells += [column[k % len(column)] for _, column in more]
        rows.append(separator.join(cells))
    return [line + newline for line in (separator.join(header), *rows)]


def plain(**options):
    return table([written(size) for size in SIZES], **options)


def odd(cells, **options):
    """Numbers, with some cells in place of every twentieth."""
    sizes = [written(size) for size in SIZES]
    for k, cell in zip(range(7, N, 20), cells * 20, strict=False):
        sizes[k] = cell
    return table(sizes, **options)


CASES = {}
for separator, (decimal, thousands), encoding in product(
    [",", ";", "\t", "|"],
    [(".", ""), (".", "'"), (",", ""), (",", ".")],
    ["utf-8", "cp1252", "utf-16"],
):
    if separator != decimal and (encoding == "utf-8" or separator == ";"):
        sizes = [written(size, decimal, thousands) for size in SIZES]
        name = f"{separator!r} {decimal}{thousands or '-'} {encoding}"
        CASES[name] = table(sizes, separator=separator), encoding
for word in ("NA", "N/A", "NaN", "NULL", "?", "-", "unknown", "n.a.", "#DIV/0!"):
    CASES[f"missing {word}"] = odd([word]), "utf-8"
for name, sizes in {
    "dollars": [f"${written(size)}" for size in SIZES],
    "dollars with commas": [f'"${written(size, ".", ",")}"' for size in SIZES],
    "percent": [f"{written(size)} %" for size in SIZES],
    "two currencies": [f"{'$€'[k % 2]}{written(s)}" for k, s in enumerate(SIZES)],
    "euros behind": [f"{written(size)} EUR" for size in SIZES],
    "plus signs": [f"+{written(size)}" for size in SIZES],
    "minus of print": [f"\u2212{written(size)}" for size in SIZES],
    "hexadecimal": [hex(int(size)) for size in SIZES],
    "exponents": [f"{size:.3e}" for size in SIZES],
    "no digits before the point": [f".{int(size)}" for size in SIZES],
    "whole and large": [str(2**53 + int(size)) for size in SIZES],
    "large and fractions late": [str(2**53 + k) for k in range(N - 1)] + ["1.5"],
    "large and few, and texts late": [str(2**53 + k % 12) for k in range(N - 5)]
    + ["sum"] * 5,
    "leading zeros": [f"{int(size):07d}" for size in SIZES],
    "three digits after commas": [f'"{k % 9 + 1},{k:03d}"' for k in range(N)],
    "three digits after points": [f"{k % 9 + 1}.{k:03d}" for k in range(N)],
    "points that late cells decide": [f"{k % 9 + 1}.{k:03d}" for k in range(N - 1)]
    + ["0.5"],
    "commas that late cells decide": [f'"{k % 9 + 1},{k:03d}"' for k in range(N - 1)]
    + ['"0,5"'],
    "few values and one more": [str(k % 3) for k in range(N - 4)] + ["3+"] * 4,
    "codes with letters": [f"{'AV'[k % 2] if k > 220 else ''}{k}" for k in range(N)],
    "text in the first rows": ["x"] * 120 + [str(k) for k in range(N - 120)],
    "text in the last rows": [str(k) for k in range(N - 60)] + ["x"] * 60,
    "one text at the end": [str(k) for k in range(N - 1)] + ["sum"],
    "nothing": [""] * N,
    "spaces": ["  "] * N,
    "infinity": [*(str(k) for k in range(N - 1)), "inf"],
    "true and false": ["TRUE", "false"] * (N // 2),
    "dates": [f"2024-01-{k % 28 + 1:02d}" for k in range(N)],
    "dates, day first": [f"{k % 28 + 1}.{k % 12 + 1}.2024" for k in range(N)],
    "dates, month first": [f"{k % 12 + 1}/{k % 28 + 1}/2024" for k in range(N)],
    "dates that late cells decide": ["01/02/2024"] * (N - 1) + ["31/12/2024"],
    "dates in two orders": ["01/31/2024"] * (N - 1) + ["31/12/2024"],
    "dates in two forms": ["2024-01-31", "30.01.2024"] * (N // 2),
    "dates with names": [f"{k % 28 + 1} March 2024" for k in range(N)],
    "dates of years of two digits": [f"{k % 28 + 1:02d}.01.99" for k in range(N)],
    "dates and words": ["2024-01-31"] * (N - 1) + ["soon"],
    "dates and missing ones": ["2024-01-31", "unknown"] * (N // 2),
    "no such days": ["2024-02-30"] * N,
    "times": [f"2024-01-31T{k % 24:02d}:30:00Z" for k in range(N)],
    "times that are late": ["2024-01-31"] * (N - 1) + ["2024-01-31 7:15 PM"],
    "units": [f"{written(size)} kg" for size in SIZES],
    "units without a blank": [f"{k}mm" for k in range(N)],
    "two units": [f"{k} {'kg' if k % 2 else 'g'}" for k in range(N)],
    "units of some": [f"{k} {'kg' if k % 2 else ''}" for k in range(N)],
    "few numbers with a letter": [f"{k % 4}WD" for k in range(N)],
    "brackets": [f"({s})" if k % 3 else f"{s}" for k, s in enumerate(SIZES)],
    "all in brackets": [f"({k})" for k in range(N)],
    "D exponents": [f"{size:.3e}".replace("e", "D") for size in SIZES],
    "codes with a D": [f"{k}D{k % 7}" for k in range(N)],
    "zip codes": [f"{37 * k:05d}" for k in range(N)],
    "zip codes and words": ["00501"] * (N - 6) + ["unknown", "?"] * 3,
    "numbers of one length": [f"{k + 100}" for k in range(N)],
    "codes but one": [f"{37 * k:05d}" for k in range(N - 1)] + ["7"],
    "codes but a late fraction": [f"{k:05d}" for k in range(N - 1)] + ["1.5"],
    "long codes": [f"{k:022d}" for k in range(N)],
    "zeros and ones": [str(k % 2) for k in range(N)],
    "blanks around": [f"  {written(size)} " for size in SIZES],
    "quoted": [f'"{written(size)}"' for size in SIZES],
    "blanks before quotes": [f' "{written(size)}"' for size in SIZES],
    "line breaks in cells": ['"a\nb"', '"c, d"'] * (N // 2),
    "doubled quotes": ['"a ""b"""', "c"] * (N // 2),
    "a quote within": ['5" nails', "7"] * (N // 2),
}.items():
    CASES[name] = table(sizes), "utf-8"
CASES |= {
    "thousands between semicolons": (
        table([f"{k % 9 + 1}.{k:03d}" for k in range(N)], separator=";"),
        "utf-8",
    ),
    "row names": (
        [plain()[0], *(f"r{k},{line}" for k, line in enumerate(plain()[1:]))],
        "utf-8",
    ),
    **{
        name: ([top + plain()[0], *plain()[1:]], "utf-8")
        for name, top in {
            "blank lines above": "\n \n",
            "a title": "Cities\n",
            "titles": "Cities\n\nby size, 2024\n",
            "titles in rows of commas": "Cities,,\n,,\n",
            "comments above": "# a\n# b, c, d, e\n# f\n",
            "a title of two lines": '"Cities\nby size"\n',
            "what Excel says": "sep=,\n",
        }.items()
    },
    "carriage returns": (plain(newline="\r\n"), "utf-8"),
    "single quotes": ([line.replace("St. G", "'St, G'") for line in plain()], "utf-8"),
    "points beside commas": (
        table(
            [written(size, ",") for size in SIZES],
            [("plain", [f"{k}.25" for k in range(50)])],
            separator=";",
        ),
        "utf-8",
    ),
    "infinity and words beside commas": (
        table(
            [
                "inf" if k % 20 == 3 else "n.a." if k > N - 4 else written(size, ",")
                for k, size in enumerate(SIZES)
            ],
            separator=";",
        ),
        "utf-8",
    ),
    "texts with blanks at their end": (
        [line.replace("Ulm", "Ulm  ") for line in plain()],
        "utf-8",
    ),
    "no name": (plain(names="city  size class".replace("  ", " ")), "utf-8"),
    "blank lines": ([x for line in plain() for x in (line, "\n")], "utf-8"),
    "short lines": ([*plain(), "Total\n", "Sum,3\n"], "utf-8"),
    "empty cells at the end": (
        [line if k < 9 else line[:-1] + ",,\n" for k, line in enumerate(plain())],
        "utf-8",
    ),
    "a long line": ([*plain()[:200], "a,1,no,more\n", *plain()[200:]], "utf-8"),
    "a name less": (["city,size\n", *plain()[1:]], "utf-8"),
    "two of a name": (plain(names="city city class"), "utf-8"),
    "rows and no names": ([], "utf-8"),
    "names and no rows": (plain()[:1], "utf-8"),
    "an open quote": ([*plain(), 'Ulm,"3,no\n', *plain()[1:9]], "utf-8"),
    "letters that are late": (
        [
            *(line.replace("Köln", "Koln").replace("Å", "A") for line in plain()),
            "é,1,no\n",
        ],
        "cp1252",
    ),
    "a byte-order mark": (["\ufeff" + plain()[0], *plain()[1:]], "utf-8"),
    "no end of the last line": ([*plain()[:-1], plain()[-1].rstrip()], "utf-8"),
    "an empty first column": ([f",{line}" for line in plain()], "utf-8"),
    "one class": (table([written(s) for s in SIZES], names="city size class"), "utf-8"),
}


def as_whole(path, folder):
    data = read_dataset(path, target="class")
    columns = {name: data.table[name] for name in data.table} | {"class": data.target}
    found = {}
    for name, column in columns.items():
        cells = [
            None if c != c or c is None else c for c in np.asarray(column).tolist()
        ]
        if np.asarray(column).dtype.kind == "M":
            is_missing = np.isnat(np.asarray(column))
            cells = pd.Series(column).astype("datetime64[us]").dt.to_pydatetime()
            cells = np.where(is_missing, None, cells).tolist()
        found[name] = cells
    # Rows without a label are left out there.
    notes = [note for note in data.notes if "without 'class'" not in note]
    return found, [note for note in notes if "treated as categories" not in note]


def as_scan(path, folder):
    rows = sy.scan(path, target="class", drop_missing_target=True)
    with rows.with_roles() as opened:
        chunks = list(opened.chunks())
        notes = opened.notes
    columns = {name: [] for name in chunks[0].cells.column_names}
    for chunk in chunks:
        for name, cells in columns.items():
            cells += chunk.column(name).to_pylist()
    return columns, notes


def in_blocks(path, folder, n_bytes=1024):
    reader = TextFiles(find_files(path), {}, n_bytes)
    find_column("class", reader.names, reader.name)
    cells = whole_table(reader, reader.names).to_pydict()
    kept = [k for k, label in enumerate(cells["class"]) if label is not None]
    return {name: [of[k] for k in kept] for name, of in cells.items()}, reader.notes


def as_gzip(path, folder):
    packed = folder / "data.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return as_scan(packed, folder)


def as_two(path, folder):
    header, *rows = folder.lines
    parts = folder / "parts"
    parts.mkdir()
    for k, part in enumerate((rows[: N // 2], rows[N // 2 :])):
        text = "".join([header, *part])
        (parts / f"{k}.csv").write_bytes(text.encode(folder.encoding))
    return as_scan(parts, folder)


WAYS = {"scan": as_scan, "blocks": in_blocks, "gzip": as_gzip, "two files": as_two}


def at_midnight(cell):
    """Return a day as a moment."""
    is_day = isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime)
    return datetime.datetime.combine(cell, datetime.time()) if is_day else cell


def outcome(read, path, folder):
    """Columns and notes, or the message of an error, without names of files."""
    try:
        columns, notes = read(path, folder)
    except ValueError as error:
        return re.sub(
            r"\S*(data\.csv(\.gz)?|parts/\d\.csv|2 files)", "FILE", str(error)
        )
    names = re.compile(r"^(\S*\.csv(\.gz)?|2 files): ")
    columns = {n: list(map(at_midnight, cells)) for n, cells in columns.items()}
    return columns, sorted(names.sub("FILE: ", note) for note in notes)


@pytest.fixture
def file(request, tmp_path):
    class Folder(type(tmp_path)):
        lines: list
        encoding: str

    folder = Folder(tmp_path)
    folder.lines, folder.encoding = request.param
    path = tmp_path / "data.csv"
    path.write_bytes("".join(folder.lines).encode(folder.encoding))
    return path, folder


def test_there_are_many_odd_files():
    assert len(CASES) >= 60


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("file", CASES.values(), ids=CASES, indirect=True)
def test_a_file_is_one_table_however_it_is_read(file, way):
    path, folder = file
    expected = outcome(as_whole, path, folder)
    if way == "two files" and len(folder.lines) < 3:
        pytest.skip("there are not two parts of it")
    found = outcome(WAYS[way], path, folder)
    if way == "two files":
        # Lines are counted in each file, and each says what it leaves out.
        if isinstance(expected, str) and isinstance(found, str):
            assert re.sub(r"\d+", "N", found) == re.sub(r"\d+", "N", expected)
            return
        expected, found = (
            (columns, {re.sub(r"line \d+", "line N", note) for note in notes})
            for columns, notes in (expected, found)
        )
    assert found == expected


@pytest.mark.parametrize(
    "file", [of for k, of in enumerate(CASES.values()) if k % 5 == 0], indirect=True
)
def test_a_model_is_the_same_beyond_memory(file, monkeypatch, capsys):
    path, folder = file

    def fitted(name):
        out = folder / name
        options = ["--target", "class", "--method", "NB", "--no-check"]
        status = main(["fit", str(path), *options, "-o", str(out)])
        said = capsys.readouterr().err
        if status:
            return status, said
        content = json.loads(Path(out).read_text())["content"]
        record = content["fitted"]["training_"]
        del record["cut_points_are_exact"], record["summary"]["row_hashes"]
        content["classes"].pop("dtype")
        return status, sorted(said.splitlines()), content

    whole = fitted("whole.json")
    monkeypatch.setattr(streams, "_BYTES_A_BYTE", 10**6)
    assert fitted("parts.json") == whole


# ------------------------------------------------------------------ what was decided

DAY = datetime.datetime
FOUND = {
    "dates, day first": (DAY(2024, 2, 2), "dates, day first"),
    "dates, month first": (DAY(2024, 2, 2), "dates, month first"),
    "dates that late cells decide": (DAY(2024, 2, 1), "dates, day first"),
    "dates in two orders": ("01/31/2024", "dates, treated as categories"),
    "dates in two forms": (DAY(2024, 1, 30), "dates, day first"),
    "dates with names": (DAY(2024, 3, 2), "dates, year first"),
    "dates of years of two digits": (DAY(1999, 1, 2), "dates, day first"),
    "dates and words": ("2024-01-31", "dates, treated as categories"),
    "dates and missing ones": (None, "dates, year first"),
    "no such days": ("2024-02-30", "dates, treated as categories"),
    "times": (DAY(2024, 1, 31, 1, 30), "weekday and hour"),
    "times that are late": (DAY(2024, 1, 31), "weekday and hour"),
    "units": (SIZES[1], "numbers, 'kg' left out"),
    "units without a blank": (1, "numbers, 'mm' left out"),
    "two units": ("1 kg", None),
    "units of some": ("1 kg", None),
    "few numbers with a letter": ("1WD", None),
    "brackets": (-SIZES[1], "negative if in brackets"),
    "all in brackets": ("(1)", None),
    "D exponents": (float(f"{SIZES[1]:.3e}"), "with exponents after D"),
    "codes with a D": ("1D1", None),
    "zip codes": ("00037", "names, since all cells have 5 digits"),
    "zip codes and words": ("00501", "names, since all cells have 5 digits"),
    "numbers of one length": (101, None),
    "codes but one": (37, None),
    "codes but a late fraction": (1, None),
    "long codes": (f"{1:022d}", "names, since all cells have 22 digits"),
    "zeros and ones": (1, None),
    "thousands between semicolons": (2.001, "if they mark thousands, set"),
    "three digits after commas": (2001, "thousands marked by ','"),
    "row names": (SIZES[1], "row names at the start of each line are skipped"),
    "blank lines above": (SIZES[1], None),
    "a title": (SIZES[1], "a line above the header is skipped, 'Cities'"),
    "titles": (SIZES[1], "2 lines above the header are skipped, 'Cities' first"),
    "titles in rows of commas": (SIZES[1], "a line above the header is skipped"),
    "comments above": (SIZES[1], "3 lines above the header are skipped, '# a' first"),
    "a title of two lines": (SIZES[1], "a line above the header is skipped"),
    "what Excel says": (SIZES[1], None),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_people_write_is_read_and_reported(name, tmp_path):
    lines, encoding = CASES[name]
    path = tmp_path / "data.csv"
    path.write_bytes("".join(lines).encode(encoding))
    data = read_dataset(path, target="class")
    cell, said = FOUND[name]
    found = data.table["size"].iloc[1]
    assert (None if found != found else found) == cell
    told = " ".join(data.notes)
    assert said in told if said else "cells between" in told or not told
