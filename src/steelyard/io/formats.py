"""Tables of spreadsheets, statistics programs, Weka and JSON, which are read whole."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import TableError
from steelyard.io.arff import parse_arff
from steelyard.io.chunks import Chunk, Place
from steelyard.io.convert import as_decided, count_texts
from steelyard.io.dialect import CsvDialect, Top, codec_of, first_names
from steelyard.io.numbers import ColumnTally, column_reading
from steelyard.io.paths import File, packing_of
from steelyard.io.reader import Reader
from steelyard.io.streams import as_arrow

if TYPE_CHECKING:
    import pandas

_MIXED = ("string", "mixed", "mixed-integer")
# Engines of pandas for spreadsheets: the first that is installed reads them.
_ENGINES = {
    "xlsx": ["openpyxl"],
    "xls": ["calamine", "xlrd"],
    "ods": ["calamine", "odf"],
}
# Sheets of more cells are read if a tenth of them are filled.
_MAX_OPEN_CELLS = 20_000_000
_MIN_FILLED_SHARE = 0.1
_MODULES = {"calamine": "python_calamine"}
_PACKAGES = {"odf": "odfpy", "calamine": "python-calamine"}


class WholeFiles(Reader):
    """Files of Excel and other spreadsheets, SPSS, Stata, Weka, or JSON.

    Values that are labelled in SPSS and Stata are categories, named by their labels. If
    ``like``, the reading of a model's file, names a sheet that exists, it is read.
    """

    is_cheap = False

    def __init__(
        self,
        files: Sequence[File],
        dialect: CsvDialect,
        like: Mapping[str, Any] = {},
    ) -> None:
        self.dialect, self._like = dialect, like
        self.notes, self.about, self.labels = [], {}, {}
        self.reading = {"missing_values": dialect.missing_values}
        self.reading |= {"decimals": {}, "dates": {}, "units": {}}
        self._tables = {file.name: self._table(file) for file in files}
        first = self._tables[files[0].name]
        self.name = files[0].name if len(files) == 1 else f"{len(files)} files"
        self.names = first.column_names
        self.n_rows = sum(table.num_rows for table in self._tables.values())

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Chunk]:
        """Yield some columns of each file."""
        for name, table in self._tables.items():
            yield Chunk(table.select(list(names)), [(0, Place(name))])

    def _table(self, file: File) -> pa.Table:
        try:
            frame = _READERS[file.format](self, file)
        except (ImportError, OSError, TableError):
            raise
        except Exception as error:
            # Libraries have different errors for other files.
            line = str(error).partition("\n")[0] or type(error).__name__
            problem = f"cannot be read as {file.format}: {line}"
            raise TableError(f"{file.name} {problem}") from None
        frame.columns = frame.columns.map(lambda name: str(name).strip())
        return as_arrow(frame, file.name)

    def _read_excel(self, file: File) -> pandas.DataFrame:
        import pandas as pd

        engine, _ = _library(_ENGINES[file.format], file)
        how: Any = {"na_values": list(self.dialect.empty), "keep_default_na": False}
        how["comment"] = self.dialect.comment or None
        source: Any = file.path
        if source == "-":
            with file.open() as raw:
                source = io.BytesIO(raw.read())
        with pd.ExcelFile(source, engine=engine) as book:
            how["sheet_name"] = sheet = self._sheet(book.sheet_names, file)
            if engine == "openpyxl":
                _check_extent(book.book[sheet], f"The sheet {sheet!r} of {file.name}")
            skip = self.dialect.skip or self._titles(book, sheet, file)
            how["header"] = None if self.dialect.no_header else 0
            frame = pd.read_excel(book, skiprows=skip, **how)
        if self.dialect.no_header:
            frame.columns = [f"x{k}" for k in range(1, frame.shape[1] + 1)]
        unnamed = frame.columns.map(str).str.fullmatch(r"Unnamed: \d+")
        frame = frame.loc[:, ~(unnamed & frame.isna().all().to_numpy())]
        return self._read_objects(frame)

    def _sheet(self, sheets: Sequence[Any], file: File) -> str:
        """Return the sheet asked for, or the first; note the others."""
        names = list(map(str, sheets))
        of_model = self._like.get("sheet")
        chosen = self.dialect.sheet or (of_model if of_model in names else names[0])
        if chosen not in names:
            raise TableError(
                f"{file.name} has no sheet {chosen!r}.{did_you_mean(chosen, names)} "
                f"Sheets: {listed(map(repr, names))}."
            )
        others = listed(repr(name) for name in names if name != chosen)
        if others and not self.dialect.sheet:
            read = f"reading sheet {chosen!r}, not {others}"
            self.notes.append(f"{file.name}: {read}")
        self.reading["sheet"] = chosen
        if others:
            self.hint = f" Other sheets, to choose with `sheet`: {others}."
        return chosen

    def _titles(self, book: Any, sheet: str, file: File) -> int:
        """Return how many rows are above the names of columns, and note them."""
        import pandas as pd

        if self.dialect.no_header:
            return 0
        first = pd.read_excel(book, sheet_name=sheet, header=None, nrows=60)
        cells = first.dropna(axis=1, how="all").astype(object)
        rows = cells.where(cells.notna(), None).to_numpy().tolist()
        filled = [k for k, row in enumerate(rows) if any(c is not None for c in row)]
        start = first_names(_without_ends([rows[k] for k in filled]))
        titles = tuple(
            str(next(cell for cell in rows[k] if cell is not None))
            for k in filled[:start]
        )
        if titles:
            self.notes.append(f"{file.name}: {Top(start, titles).in_words()}")
        return filled[start] if filled else 0

    def _read_objects(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """Convert columns of text or several types as those of text files."""
        import pandas as pd

        for name in frame.columns[frame.dtypes.map(str).isin(["object", "str"])]:
            if pd.api.types.infer_dtype(frame[name]) in _MIXED:
                texts = frame[name].map(_cell_text, na_action="ignore")
                cells = pa.chunked_array([pa.array(texts, pa.string())])
                decided = self._decided(cells, str(name))
                frame[name] = decided.to_pandas(date_as_object=False).to_numpy()
        return frame

    def _read_json(self, file: File) -> pandas.DataFrame:
        """Read objects, one to a row: a list of them, or a line for each."""
        import pandas as pd

        with file.open() as raw:
            text = file.unpacked(raw).read().decode(codec_of(self.dialect.encoding))
        if file.format == "jsonl":
            rows: Any = [_loads(line) for line in text.splitlines() if line.strip()]
        else:
            rows = _loads(text)
        if isinstance(rows, dict) and rows.keys() == {"columns", "rows"}:
            # As predictions are written.
            rows = [
                dict(zip(rows["columns"], row, strict=True)) for row in rows["rows"]
            ]
        by_column = isinstance(rows, dict) and all(
            isinstance(column, list) for column in rows.values()
        )
        by_row = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
        if not by_column and not by_row:
            raise TableError(
                f"{file.name} contains no table. A table is a list of objects, one for "
                "each row, or an object with a list for each column."
            )
        frame = pd.DataFrame(rows)
        nested = [n for n in frame if frame[n].map(type).isin((list, dict)).any()]
        self.notes += [f"{name}: nested values, dropped" for name in nested]
        frame = frame.drop(columns=nested)
        empty = list(self.dialect.empty)
        return self._read_objects(frame.mask(frame.isin(empty)))

    def _decided(self, texts: Any, name: str) -> Any:
        """Return numbers or dates if the texts are such, and note it."""
        tally = ColumnTally(".", self.dialect.thousands)
        count_texts(tally, texts)
        order = tally.dates.order("")
        self.notes += tally.notes(name, ".", order)
        for part, entries in column_reading({name: tally}, {name: order}, ".").items():
            self.reading[part].update(entries)
        return as_decided(texts, tally, order)

    def _read_spss(self, file: File) -> pandas.DataFrame:
        frame, about = _library(["pyreadstat"], file)[1].read_sav(_path(file))
        self._take_labels(about.column_names_to_labels)
        for name, labels in about.variable_value_labels.items():
            is_ordinal = about.variable_measure.get(name) == "ordinal"
            frame[name] = _labelled(frame[name], labels, is_ordinal)
        return frame

    def _read_stata(self, file: File) -> pandas.DataFrame:
        import pandas as pd

        with pd.io.stata.StataReader(_path(file)) as stata:
            frame = stata.read(convert_categoricals=False)
            self._take_labels(stata.variable_labels())
        try:
            named = pd.read_stata(_path(file))
        except ValueError:
            # Two values of one label, which a category cannot have.
            return frame
        for name in frame.columns:
            if isinstance(named[name].dtype, pd.CategoricalDtype):
                names = named[name].cat.remove_unused_categories()
                # A few labels among many numbers are those of missing values.
                if all(isinstance(value, str) for value in names.cat.categories):
                    frame[name] = names.cat.as_unordered()
        return frame

    def _take_labels(self, labels: Mapping[str, str | None]) -> None:
        for name, label in labels.items():
            if label and label.strip() not in ("", name):
                self.labels[name] = label.strip()

    def _read_arff(self, file: File) -> pandas.DataFrame:
        with file.open() as raw:
            is_gzip = packing_of(file.path).lower() == ".gz"
            text = (raw if is_gzip else file.unpacked(raw)).read()
        encoding = self.dialect.encoding
        relation, frame, has_weights = parse_arff(text, file.name, encoding)
        if has_weights:
            note = "the row weights in the file are not used"
            self.notes.append(f"{file.name}: {note}")
        named = [name for name in frame if name.lower() == "class"]
        target = "class" if "class" in named else [*named, frame.columns[-1]][0]
        self.about = {"relation": relation, "target": target}
        return frame


def _without_ends(rows: list[list[Any]]) -> list[list[Any]]:
    """Cut the first rows after their only cell, if they have one: they are titles."""
    trimmed: list[list[Any]] = []
    for n, row in enumerate(rows):
        filled = [k for k, cell in enumerate(row) if cell is not None]
        if len(filled) > 1:
            return [*trimmed, *rows[n:]]
        trimmed.append(row[: filled[0] + 1])
    return trimmed


def _check_extent(sheet: Any, where: str) -> None:
    """Refuse a sheet with a cell so far off that the sheet does not fit into memory."""
    if (sheet.max_row or 0) * (sheet.max_column or 0) <= _MAX_OPEN_CELLS:
        return
    # The extent in the file counts empty cells with a style.
    sheet.reset_dimensions()
    n_filled, last, width = 0, 0, 0
    for k, row in enumerate(sheet.iter_rows(values_only=True), 1):
        filled = [j for j, cell in enumerate(row, 1) if cell is not None]
        if filled:
            n_filled, last, width = n_filled + len(filled), k, max(width, filled[-1])
    if last * width > max(_MAX_OPEN_CELLS, n_filled / _MIN_FILLED_SHARE):
        raise TableError(
            f"{where} has cells as far as row {last} and column {width}, of which "
            f"{n_filled} are filled. Delete what is beyond the table, or save the "
            "table as CSV."
        )


def _loads(text: str) -> Any:
    """Read JSON; whole numbers beyond 64 bits are floats, as in text files."""
    return json.loads(
        text, parse_int=lambda t: int(t) if abs(float(t)) < 2.0**63 else float(t)
    )


def _path(file: File) -> str:
    if file.path == "-":
        problem = f"{file.format} files cannot be read from standard input."
        raise TableError(problem)
    return file.path


def _library(names: Sequence[str], file: File) -> tuple[str, Any]:
    """Return the first library that is installed, and its module."""
    for name in names:
        with suppress(ImportError):
            return name, import_module(_MODULES.get(name, name))
    packages = " or ".join(_PACKAGES.get(name, name) for name in names)
    raise ModuleNotFoundError(
        f"{file.name} is read by {packages}, which is not installed. Install it with "
        "`pip install 'steelyard[formats]'`, or save the table as CSV.",
        name=names[-1],
    )


def _cell_text(cell: Any) -> str:
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if is_whole else cell).strip()


def _labelled(
    column: pandas.Series, labels: dict[Any, str], is_ordinal: bool
) -> pandas.Series:
    """Return labels in place of numbers if each that occurs has one.

    They are in the order of the numbers if that is meaningful.
    """
    import pandas as pd

    if not len(present := column.dropna()) or not present.isin(list(labels)).all():
        return column
    named = column.map(labels).astype("category")
    if not is_ordinal or len(set(labels.values())) < len(labels):
        return named
    names = [labels[number] for number in sorted(labels)]
    kind = pd.CategoricalDtype([n for n in names if n in {*named.cat.categories}], True)
    return named.astype(kind)


_READERS: dict[str, Callable[[WholeFiles, File], pandas.DataFrame]] = {
    "arff": WholeFiles._read_arff,
    "json": WholeFiles._read_json,
    "jsonl": WholeFiles._read_json,
    **dict.fromkeys(_ENGINES, WholeFiles._read_excel),
    "sav": WholeFiles._read_spss,
    "dta": WholeFiles._read_stata,
}
