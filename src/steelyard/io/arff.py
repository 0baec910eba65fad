"""The contents of ARFF files, Weka's."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.text import did_you_mean
from steelyard.io.arff_reader import ArffError, ArffReader

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["ArffData", "ArffError", "parse_arff", "read_arff"]

_GZIP_MAGIC = b"\x1f\x8b"


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
