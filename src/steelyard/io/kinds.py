"""Columns converted to the kinds that options or a model ask for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from steelyard._common.one_cell import DATE_TEXT, number_in
from steelyard.exceptions import ColumnError, TableError
from steelyard.io.chunks import Chunk, regroup
from steelyard.io.convert import dates_of, numbers_of, plain_numbers
from steelyard.io.dates import DateTally
from steelyard.io.dialect import CsvDialect, decimal_in
from steelyard.io.numbers import exceptions, is_blank
from steelyard.io.reader import Reader, is_date, is_number, is_text, value_type
from steelyard.io.text import TextFiles

# As many digits as a float64 can be trusted with.
_DIGITS = "{:.15g}".format
_MAX_FIRST_TEXTS = 50
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


class Recast(Reader):
    """A reader that converts the columns of another to the kinds asked for.

    Dates are dates in every format, and decimals and durations are numbers.

    Parameters
    ----------
    reader : Reader
        What reads the rows.
    text, numbers : sequences of str
        Columns whose cells are names, or numbers without exception.
    expected : mapping
        Columns of a model and their kinds, such as ``"dates"``: a few cells of other
        kinds are treated as missing, and reported.
    like : mapping
        How the file of the model was read.

    Attributes
    ----------
    target : str or None
        The column of classes: whole numbers stay numbers, booleans become text.
    n_read, n_unlabelled : int
        Rows of the last reading, and those of them without a class.
    """

    def __init__(
        self,
        reader: Reader,
        text: Sequence[str] = (),
        numbers: Sequence[str] = (),
        expected: Mapping[str, str] | None = None,
        like: Mapping[str, Any] = {},
    ) -> None:
        self._reader, self._like = reader, like
        self.target: str | None = None
        self._text, self._numbers = set(text), set(numbers)
        self._expected = dict(expected or {})
        self._dialect = getattr(reader, "dialect", CsvDialect())
        if isinstance(reader, TextFiles):
            # Before they are numbers, which would lose leading zeros.
            reader.as_text.update({*text, *numbers, *self._expected})
        self.name, self.names, self.about = reader.name, reader.names, reader.about
        self.hint, self.labels = reader.hint, reader.labels
        self.n_rows, self.n_bytes = reader.n_rows, reader.n_bytes
        self.is_repeatable, self.is_cheap = reader.is_repeatable, reader.is_cheap
        self.needs_copy, self.reads_ahead = reader.needs_copy, reader.reads_ahead
        self._forget()

    def _forget(self) -> None:
        """Reset what is counted in one reading."""
        self.n_read = self.n_unlabelled = 0
        # Cells that are no numbers, or no dates, by column.
        self._wrong: dict[str, dict[str, Counter[str]]] = {
            "numbers": defaultdict(Counter),
            "dates": defaultdict(Counter),
        }
        self._first_texts: dict[str, list[str]] = defaultdict(list)

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """What was detected and left out, a sentence each."""
        notes = list(self._reader.notes)
        for what, columns in self._wrong.items():
            notes += [exceptions(name, wrong, what) for name, wrong in columns.items()]
        for name, texts in self._first_texts.items():
            if texts and all(map(DATE_TEXT.fullmatch, texts)):
                notes.append(
                    f"{name}: dates, treated as categories, such as {texts[0]!r}, "
                    "because some cells are not dates or swap day and month"
                )
        return notes

    @property
    def reading(self) -> dict[str, Any]:  # type: ignore[override]
        """How files are read: those of text, and cells that mean missing ones."""
        reading, words = self._reader.reading, self._reader.missing_by_column
        if not words:
            return reading
        defaults: dict[str, Any] = {"missing_values": []}
        defaults |= {"decimals": {}, "dates": {}, "units": {}}
        return {**defaults, **reading, "missing_by_column": dict(words)}

    def check_names(self, wanted: Sequence[str] | None) -> None:
        """Raise an error if a file lacks one of some columns, or differs in any."""
        self._reader.check_names(wanted)

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Chunk]:
        """Yield some columns of all rows."""
        self._forget()
        chunks: Iterable[Chunk] = self._reader.read(names, max_rows)
        if self._expected:
            # Half of the cells must be numbers, of as many rows as possible.
            chunks = regroup(chunks, max_rows)
        for chunk in chunks:
            columns = []
            for name in chunk.cells.column_names:
                column = self._converted(name, chunk)
                for word in self._reader.missing_by_column.get(name, ()):
                    column = _without(column, word)
                self._keep_first_texts(name, column)
                columns.append(column)
            cells = pa.table(columns, names=chunk.cells.column_names)
            self.n_read += cells.num_rows
            if self.target in names:
                self.n_unlabelled += cells.column(self.target).null_count
            yield replace(chunk, cells=cells)

    def _keep_first_texts(self, name: str, column: Any) -> None:
        """Keep the first texts of a column, which show whether it contains dates."""
        if name in self._text or name == self.target or not pt.is_string(column.type):
            return
        texts = self._first_texts[name]
        if len(texts) < _MAX_FIRST_TEXTS:
            more = column.drop_null().slice(0, _MAX_FIRST_TEXTS - len(texts))
            texts += more.to_pylist()

    # --------------------------------------------------------------------------- casts

    def _converted(self, name: str, chunk: Chunk) -> Any:
        """Return a column of a chunk in the kind asked for."""
        column = chunk.column(name)
        kind = value_type(column.type)
        if pt.is_null(column.type):
            return column
        if is_date(kind):
            is_name = name in self._text or name == self.target
            is_name |= self._expected.get(name) == "text"
            return _dates_as_text(column) if is_name else column.cast(kind)
        if pt.is_duration(column.type) or pt.is_time(column.type):
            column = _seconds(column)
        elif pt.is_decimal(column.type):
            column = column.cast(pa.float64(), safe=False)
        # Text of text files is stripped already, and may be asked for as numbers.
        is_stripped = is_text(kind) and isinstance(self._reader, TextFiles)
        if name == self.target and not is_stripped:
            return _as_classes(column, name)
        match self._expected.get(name):
            case "numbers":
                return self._as_numbers(name, column, chunk)
            case "dates":
                return self._as_dates(name, column)
            case "booleans":
                return self._as_booleans(name, column)
            case "text":
                return column
            case str():
                return as_text(column)
        if name in self._text:
            return as_text(column)
        return (
            self._as_numbers(name, column, chunk) if name in self._numbers else column
        )

    def _as_dates(self, name: str, column: Any) -> Any:
        """Convert text to dates, in the model's order of day and month."""
        if not is_text(value_type(column.type)):
            return column
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
        order = self._like.get("dates", {}).get(name, "")
        if not order:
            tally = DateTally()
            distinct = texts.drop_null().unique().to_pylist()
            tally.add(dict.fromkeys(distinct, 1), is_blank)
            order = tally.order("") or "dmy"
        dates, wrong = dates_of(texts, order)
        if wrong:
            self._wrong["dates"][name].update(wrong)
        return dates

    def _as_numbers(self, name: str, column: Any, chunk: Chunk) -> Any:
        """Convert text to numbers.

        Other cells are counted if a model expects numbers, unless they are half of all;
        otherwise they are refused.
        """
        if not is_text(value_type(column.type)):
            # What is neither is refused elsewhere.
            return column
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
        unit = self._like.get("units", {}).get(name, "")
        decimal = decimal_in(name, self._dialect, self._like)
        numbers, others = _read_numbers(texts, decimal, self._dialect.thousands, unit)
        bad = {text for text in others if not is_blank(text)}
        n_bad = sum(others[text] for text in bad)
        is_half = 2 * n_bad > len(texts) - texts.null_count
        if bad and (is_half or name not in self._expected):
            row = next(k for k, text in enumerate(texts.to_pylist()) if text in bad)
            place = chunk.place_at(row)
            raise ColumnError(
                f"Column {name!r} of {place.name} must contain numbers, but row "
                f"{place.row + 1} has {texts[row].as_py()!r}. Correct it, leave it "
                "empty, or name it in `missing_values`."
            )
        if others:
            self._wrong["numbers"][name].update(others)
        return numbers

    def _as_booleans(self, name: str, column: Any) -> Any:
        if pt.is_boolean(column.type):
            return column
        texts = as_text(column).cast(pa.string()).to_pylist()
        cells = [None if t is None else _TRUTH.get(t.lower(), t) for t in texts]
        for cell in cells:
            if isinstance(cell, str):
                problem = f"must hold true or false, not {cell!r}."
                raise ColumnError(f"Column {name!r} of {self.name} {problem}")
        return pa.chunked_array([pa.array(cells, pa.bool_())])


def _read_numbers(
    texts: Any, decimal: str, thousands: str, unit: str
) -> tuple[Any, Counter[str]]:
    """Return a number for each text, and the texts that are not numbers.

    Cells are read with the other decimal mark if most are numbers with it alone.
    """
    numbers = plain_numbers(texts, decimal)
    if numbers is not None:
        # Whole numbers beyond 2**53 are rounded, as they are when a model is fitted.
        return numbers.cast(pa.float64(), safe=False), Counter()
    converted, wrong = numbers_of(texts, decimal, thousands, unit)
    if converted.null_count - texts.null_count > len(converted) // 2:
        other = {".": ",", ",": "."}[decimal]
        otherwise, others = numbers_of(texts, other, thousands, unit)
        if otherwise.null_count < converted.null_count:
            return otherwise, others
    return converted, wrong


def as_text(column: Any) -> Any:
    """Write numbers as text, whole ones without a point; keep everything else."""
    kind = value_type(column.type)
    if not is_number(kind):
        return column
    column = column.cast(kind)
    if pt.is_integer(kind):
        return column.cast(pa.string())
    texts = []
    for chunk in column.cast(pa.float64()).dictionary_encode().chunks:
        written = pa.array([_DIGITS(v) for v in chunk.dictionary.to_pylist()], "string")
        texts.append(pc.take(written, chunk.indices))
    return pa.chunked_array(texts, pa.string())


def _without(column: Any, word: str) -> Any:
    """Return a column with one value missing: a number, however it is written, or text.

    >>> _without(pa.chunked_array([[1.0, -999.0]]), "-999").to_pylist()
    [1.0, None]
    """
    kind: Any = value_type(column.type)
    column = column.cast(kind)
    if is_number(kind):
        number = number_in(word)
        if number is None:
            return column
        is_word = pc.equal(column.cast(pa.float64(), safe=False), float(number))
    elif is_text(kind):
        is_word = pc.equal(column, pa.scalar(word, kind))
    else:
        return column
    return pc.if_else(is_word, pa.scalar(None, kind), column)


def _seconds(column: Any) -> Any:
    """Return durations and times of day as seconds."""
    kind = column.type
    whole = pa.int32() if pt.is_time32(kind) else pa.int64()
    numbers = column.cast(whole).cast(pa.float64(), safe=False)
    return pc.divide(numbers, {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit])


def _dates_as_text(column: Any) -> Any:
    """Write dates as text files have them, without the time if it is midnight."""
    texts = column.cast(value_type(column.type)).cast(pa.string())
    texts = pc.replace_substring_regex(texts, r"(\.\d*?)0+(Z?)$", r"\1\2")
    texts = pc.replace_substring_regex(texts, r"\.(Z?)$", r"\1")
    return pc.replace_substring_regex(texts, " 00:00:00$", "")


def _as_classes(column: Any, name: str) -> Any:
    """Return whole numbers as such, and everything else as text."""
    kind = column.type
    if is_text(value_type(kind)):
        # Blanks around labels mean nothing.
        return pc.utf8_trim_whitespace(column.cast(pa.string()))
    if pt.is_dictionary(kind):
        return as_text(column.cast(kind.value_type))
    if pt.is_boolean(kind):
        return pc.if_else(column, "True", "False")
    if not is_number(kind):
        return column
    if pt.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise TableError(
            f"The classes in column {name!r} are numbers with fractions. Choose a "
            "column of classes with `target`, or cut the numbers into classes first."
        ) from None
