"""Tables of spreadsheets, of statistics programs and of Weka, which are read whole."""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import TableError
from steelyard.io.arff_reader import ArffError, ArffReader
from steelyard.io.chunks import Part, Place
from steelyard.io.dialect import CsvDialect
from steelyard.io.numbers import ColumnTally, read_numbers
from steelyard.io.paths import File
from steelyard.io.reader import Reader
from steelyard.io.streams import as_arrow

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["ArffData", "ArffError", "WholeFiles", "parse_arff", "read_arff"]

_MIXED = ("string", "mixed", "mixed-integer")
_GZIP_MAGIC = b"\x1f\x8b"


class WholeFiles(Reader):
    """Files of Excel, SPSS, Stata or Weka.

    Values that are labelled in SPSS and Stata are categories, named by their labels.

    Parameters
    ----------
    files : sequence of File
        What to read.
    dialect : CsvDialect
        Which cells of Excel are missing, and how text in ARFF is encoded.
    """

    is_cheap = False

    def __init__(self, files: Sequence[File], dialect: CsvDialect) -> None:
        self.dialect, self.notes, self.about = dialect, [], {}
        self._tables = {file.name: self._table(file) for file in files}
        first = self._tables[files[0].name]
        self.name = files[0].name if len(files) == 1 else f"{len(files)} files"
        self.names = first.column_names
        self.n_rows = sum(table.num_rows for table in self._tables.values())

    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return the types of the first file."""
        first = next(iter(self._tables.values()))
        return {name: first.schema.field(name).type for name in names}

    def read(self, names: Sequence[str], most_rows: int) -> Iterator[Part]:
        """Yield some columns of each file."""
        for name, table in self._tables.items():
            yield Part(table.select(list(names)), [(0, Place(name))])

    def _table(self, file: File) -> pa.Table:
        try:
            frame = _READERS[file.format](self, file)
        except (ImportError, OSError, TableError):
            raise
        except Exception as error:
            # Libraries have errors of their own for what is no such file.
            line = str(error).partition("\n")[0]
            problem = f"cannot be read as {file.format}: {line}"
            raise TableError(f"{file.name} {problem}") from None
        frame.columns = frame.columns.map(lambda name: str(name).strip())
        return as_arrow(frame, file.name)

    def _read_excel(self, file: File) -> pandas.DataFrame:
        import pandas as pd

        _library("openpyxl", file)
        with pd.ExcelFile(_data(file), engine="openpyxl") as book:
            first, *others = book.sheet_names
            empty = {"na_values": list(self.dialect.empty), "keep_default_na": False}
            frame = pd.read_excel(book, sheet_name=first, **empty)
        if others:
            sheets = f"the sheet {first!r} is read, and not {listed(map(repr, others))}"
            self.notes.append(f"{file.name}: {sheets}")
        for name in frame.columns[frame.dtypes.map(str) == "object"]:
            if pd.api.types.infer_dtype(frame[name]) in _MIXED:
                texts = frame[name].map(_cell_text, na_action="ignore")
                frame[name] = self._numbers_or_text(texts, str(name))
        return frame

    def _numbers_or_text(self, texts: pandas.Series, name: str) -> pandas.Series:
        """Return numbers where text holds them, except for a few cells; say so."""
        known = texts.dropna()
        tally = ColumnTally(".", self.dialect.thousands)
        tally.add_texts(Counter(known), known.head(200).tolist())
        if not tally.is_numeric():
            return texts
        self.notes += tally.tally.notes(name)
        found = read_numbers(known.unique(), ".", self.dialect.thousands)
        values = texts.map({text: value for text, (value, _) in found.items()})
        return values.astype(float)

    def _read_spss(self, file: File) -> pandas.DataFrame:
        frame, about = _library("pyreadstat", file).read_sav(_path(file))
        for name, labels in about.variable_value_labels.items():
            frame[name] = _labelled(frame[name], labels)
        return frame

    def _read_stata(self, file: File) -> pandas.DataFrame:
        import pandas as pd

        frame = pd.read_stata(_path(file), convert_categoricals=False)
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

    def _read_arff(self, file: File) -> pandas.DataFrame:
        with file.open() as raw:
            data = parse_arff(raw.read(), file.name, self.dialect.encoding)
        if data.weights is not None:
            problem = "the weights that its rows state are not used"
            self.notes.append(f"{file.name}: {problem}")
        self.about = {"relation": data.relation, "target": data.target_name()}
        return data.to_pandas()


def _data(file: File) -> Any:
    if file.path != "-":
        return file.path
    with file.open() as raw:
        return io.BytesIO(raw.read())


def _path(file: File) -> str:
    if file.path == "-":
        problem = f"{file.format} files cannot be read from standard input."
        raise TableError(problem)
    return file.path


def _library(name: str, file: File) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ModuleNotFoundError(
            f"{file.name} is read by {name}, which is not installed. Install it with "
            "`pip install 'steelyard[formats]'`, or save the table as CSV.",
            name=name,
        ) from None


def _cell_text(cell: Any) -> str:
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if is_whole else cell).strip()


def _labelled(column: pandas.Series, labels: dict[Any, str]) -> pandas.Series:
    """Return names in place of numbers, where each that occurs has one."""
    if not len(known := column.dropna()) or not known.isin(list(labels)).all():
        return column
    return column.map(labels).astype("category")


_READERS: dict[str, Callable[[WholeFiles, File], pandas.DataFrame]] = {
    "arff": WholeFiles._read_arff,
    "xlsx": WholeFiles._read_excel,
    "sav": WholeFiles._read_spss,
    "dta": WholeFiles._read_stata,
}


@dataclass(frozen=True, eq=False)
class ArffData:
    """The contents of an ARFF file, one array per attribute.

    A column is float64 with NaN for missing where the attribute is numeric, and object,
    of str and None, where it is nominal or a string. Values are ``declared`` of nominal
    attributes, None of others. There are no ``weights`` when no row states one.
    """

    relation: str
    names: list[str]
    columns: list[NDArray[Any]]
    declared: list[tuple[str, ...] | None]
    weights: Floats | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.columns[0])

    def target_name(self) -> str:
        """Return the attribute named "class" in any case, else the last one."""
        named = [name for name in self.names if name.lower() == "class"]
        return "class" if "class" in named else [*named, self.names[-1]][0]

    def split(
        self, target: str | None = None
    ) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
        """Return the other columns by name, and the labels: those of `target_name`."""
        target = self.target_name() if target is None else target
        if target not in self.names:
            raise ValueError(
                f"The data set {self.relation!r} has no attribute {target!r}."
                f"{did_you_mean(target, self.names)}"
            )
        table = dict(zip(self.names, self.columns, strict=True))
        labels = table.pop(target)
        return table, labels

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas frame; nominal columns are categories as declared."""
        import pandas as pd

        columns = zip(self.names, self.columns, self.declared, strict=True)
        return pd.DataFrame(
            {
                name: column if values is None else pd.Categorical(column, list(values))
                for name, column, values in columns
            }
        )

    def to_polars(self) -> polars.DataFrame:
        """Return a polars frame; nominal columns are enums, NaN becomes null."""
        import polars as pl

        series = []
        for name, column, values in zip(
            self.names, self.columns, self.declared, strict=True
        ):
            if column.dtype == object:
                kind = pl.String if values is None else pl.Enum(values)
                series.append(pl.Series(name, column.tolist(), dtype=kind))
            else:
                series.append(pl.Series(name, column, nan_to_null=True))
        return pl.DataFrame(series)


def read_arff(path: str | PathLike[str], encoding: str = "utf-8") -> ArffData:
    r"""Read an ARFF file, plain or compressed with gzip.

    Numeric, nominal and string attributes are understood, as are quoted names
    and values, sparse rows, instance weights and comments. In a sparse row an
    unlisted numeric cell is 0 and an unlisted nominal cell is the *first*
    declared value. An unquoted ``?`` is a missing value; a quoted one is text.

    Compression is recognised by the contents, not the name. What is not ARFF as
    described raises an ``ArffError`` with the line and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> text = '''@relation weather
    ... @attribute outlook {sunny, rainy}
    ... @attribute temperature numeric
    ... @attribute play {yes, no}
    ... @data
    ... sunny, 31.5, no
    ... rainy, ?, yes
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "weather.arff"
    ...     _ = file.write_text(text)
    ...     data = read_arff(file)
    >>> data.names
    ['outlook', 'temperature', 'play']
    >>> data.columns[1]
    array([31.5,  nan])
    >>> X, y = data.split()
    >>> list(y)
    ['no', 'yes']
    """
    return parse_arff(Path(path).read_bytes(), fspath(path), encoding)


def parse_arff(raw: bytes, name: str, encoding: str = "utf-8") -> ArffData:
    """Read the bytes of an ARFF file, as `read_arff`; messages call it ``name``."""
    if raw.startswith(_GZIP_MAGIC):
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            problem = f"the gzip data are truncated or damaged ({error})."
            raise ArffError(name, None, f"{problem} Fetch the file again.") from error
    try:
        text = raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = f"the byte 0x{raw[error.start]:02x} at offset {error.start} is not "
        advice = 'Give the file\'s encoding, for example `encoding="latin-1"`.'
        raise ArffError(name, line, f"{problem}{encoding} text. {advice}") from error
    return ArffData(*ArffReader(name).read(text))
