"""Columns converted to the kinds that options or a model ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from steelyard._common.one_cell import DATE_TEXT, number_in
from steelyard.exceptions import ColumnError, TableError
from steelyard.io.chunks import Part, regroup
from steelyard.io.convert import dates_of, numbers_of, plain_numbers
from steelyard.io.dates import DateTally
from steelyard.io.dialect import CsvDialect, decimal_in
from steelyard.io.numbers import exceptions, is_blank
from steelyard.io.reader import Reader, is_date, is_number, is_text
from steelyard.io.text import TextFiles

# As many digits as a float64 can be trusted with.
_DIGITS = "{:.15g}".format
_FIRST_TEXTS = 50
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
        kinds are taken as missing, and reported.
    like : mapping
        How the file of the model was read.
    target : str, optional
        The column of classes: whole numbers stay numbers, booleans become text.
    """

    def __init__(
        self,
        reader: Reader,
        text: Sequence[str] = (),
        numbers: Sequence[str] = (),
        expected: Mapping[str, str] | None = None,
        target: str | None = None,
        like: Mapping[str, Any] = {},
    ) -> None:
        self._reader, self._target, self._like = reader, target, like
        self._text, self._numbers = set(text), set(numbers)
        self._expected = dict(expected or {})
        self._dialect = getattr(reader, "dialect", CsvDialect())
        if isinstance(reader, TextFiles):
            # Before they are numbers, which would lose leading zeros.
            reader.keep_text({*text, *numbers, *self._expected})
        self.name, self.names, self.about = reader.name, reader.names, reader.about
        self.hint, self.labels = reader.hint, reader.labels
        self.n_rows, self.n_bytes = reader.n_rows, reader.n_bytes
        self.is_repeatable, self.is_cheap = reader.is_repeatable, reader.is_cheap
        self.needs_copy, self.reads_ahead = reader.needs_copy, reader.reads_ahead
        self.n_read = self.n_unlabelled = 0
        """Rows of the last reading, and those of them without a class."""
        self._wrong: dict[str, Counter[str]] = {}
        self._wrong_dates: dict[str, Counter[str]] = {}
        self._first: dict[str, list[str]] = {}

    def with_target(self, target: str) -> Recast:
        """Set the column of classes."""
        self._target = target
        return self

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """What was detected and left out, a sentence each."""
        notes = list(self._reader.notes)
        notes += [exceptions(name, wrong) for name, wrong in self._wrong.items()]
        for name, wrong in self._wrong_dates.items():
            notes.append(exceptions(name, wrong, "dates"))
        for name, texts in self._first.items():
            if texts and all(map(DATE_TEXT.fullmatch, texts)):
                notes.append(
                    f"{name}: dates, taken as names, such as {texts[0]!r}, since some "
                    "cells are none, or have day and month in another order"
                )
        return notes

    @property
    def reading(self) -> dict[str, Any]:  # type: ignore[override]
        """How files are read: those of text, and cells that stand for missing ones."""
        reading, words = self._reader.reading, self._reader.missing_by_column
        if not words:
            return reading
        nothing: dict[str, Any] = {"missing_values": []}
        nothing |= {"decimals": {}, "dates": {}, "units": {}}
        return {**nothing, **reading, "missing_by_column": dict(words)}

    def check_names(self, wanted: Sequence[str] | None) -> None:
        """Raise an error if a part lacks one of some columns, or differs in any."""
        self._reader.check_names(wanted)

    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return the types of some columns."""
        return {
            name: self._type(name, kind)
            for name, kind in self._reader.types(names).items()
        }

    def _type(self, name: str, kind: pa.DataType) -> pa.DataType:
        held = kind.value_type if pt.is_dictionary(kind) else kind
        if pt.is_null(held):
            return kind
        if is_date(held):
            is_named = name in self._text or name == self._target
            return pa.string() if is_named else held
        if pt.is_decimal(kind) or pt.is_duration(kind) or pt.is_time(kind):
            kind = held = pa.float64()
        if name == self._target and not is_text(held):
            return pa.int64() if is_number(kind) else pa.string()
        if name == self._target and not isinstance(self._reader, TextFiles):
            return pa.string()
        if name in self._text and is_number(held):
            return pa.string()
        return pa.float64() if name in self._numbers and is_text(held) else kind

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Part]:
        """Yield some columns of all rows."""
        self.n_read = self.n_unlabelled = 0
        self._wrong, self._wrong_dates, self._first = {}, {}, {}
        parts: Iterable[Part] = self._reader.read(names, max_rows)
        if self._expected:
            # Half of the cells must be numbers, of as many rows as possible.
            parts = regroup(parts, max_rows)
        for part in parts:
            columns = []
            for name, column in zip(
                part.cells.column_names, part.cells.columns, strict=True
            ):
                column = self._column(name, column, part)
                for word in self._reader.missing_by_column.get(name, ()):
                    column = _without(column, word)
                self._note_texts(name, column)
                columns.append(column)
            cells = pa.table(columns, names=part.cells.column_names)
            cells = cells.replace_schema_metadata(part.cells.schema.metadata)
            self.n_read += cells.num_rows
            if self._target in names:
                self.n_unlabelled += cells.column(self._target).null_count
            yield Part(cells, part.places, part.n_bytes)

    def _note_texts(self, name: str, column: Any) -> None:
        """Keep the first texts of a column, which tell whether it holds dates."""
        if name in self._text or name == self._target:
            # Names by request.
            return
        first = self._first.setdefault(name, [])
        if len(first) < _FIRST_TEXTS and pt.is_string(column.type):
            texts = column.drop_null().slice(0, _FIRST_TEXTS - len(first))
            first += texts.to_pylist()

    def _column(self, name: str, column: Any, part: Part) -> Any:
        kind = column.type
        if pt.is_null(kind):
            return column
        held = kind.value_type if pt.is_dictionary(kind) else kind
        if is_date(held):
            if pt.is_dictionary(kind):
                column = column.cast(held)
            is_named = name in self._text or name == self._target
            is_named |= self._expected.get(name) == "text"
            return _dates_as_text(column) if is_named else column
        if pt.is_duration(kind) or pt.is_time(kind):
            column, held = _seconds(column), pa.float64()
        elif pt.is_decimal(kind):
            column = column.cast(pa.float64(), safe=False)
            held = column.type
        if name == self._target and not is_text(held):
            return _as_classes(column, name)
        if name == self._target and not isinstance(self._reader, TextFiles):
            # Text files are stripped already. Blanks around labels mean nothing.
            return pc.utf8_trim_whitespace(column.cast(pa.string()))
        if name in self._expected:
            return self._as_expected(name, column, part)
        if name in self._text:
            return as_text(column)
        if name in self._numbers:
            return self._as_numbers(name, column, part)
        return column

    def _as_expected(self, name: str, column: Any, part: Part) -> Any:
        """Convert a column to its kind in the model."""
        match self._expected[name]:
            case "numbers":
                wrong = self._wrong.setdefault(name, Counter())
                column = self._as_numbers(name, column, part, wrong)
                if not wrong:
                    del self._wrong[name]
                return column
            case "dates":
                return self._as_dates(name, column)
            case "text":
                return column
            case "booleans":
                return self._as_booleans(name, column)
        return as_text(column)

    def _as_dates(self, name: str, column: Any) -> Any:
        """Convert text to dates, in the model's order of day and month."""
        kind = column.type.value_type if pt.is_dictionary(column.type) else column.type
        if not is_text(kind):
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
            self._wrong_dates.setdefault(name, Counter()).update(wrong)
        return dates

    def _as_numbers(
        self, name: str, column: Any, part: Part, wrong: Counter[str] | None = None
    ) -> Any:
        """Convert text to numbers; refuse other cells unless ``wrong`` counts them.

        A column is refused in any case if half of the cells are no numbers.
        """
        kind = column.type.value_type if pt.is_dictionary(column.type) else column.type
        if not is_text(kind):
            # What is neither is refused elsewhere.
            return column
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
        unit = self._like.get("units", {}).get(name, "")
        decimal = decimal_in(name, self._dialect, self._like)
        numbers, others = as_numbers(texts, decimal, self._dialect.thousands, unit)
        bad = {text for text in others if not is_blank(text)}
        n_bad = sum(others[text] for text in bad)
        if bad and (wrong is None or 2 * n_bad > len(texts) - texts.null_count):
            raise self._not_numbers(name, texts, part, bad)
        if wrong is not None:
            wrong.update(others)
        elif others:
            self._wrong.setdefault(name, Counter()).update(others)
        return numbers

    def _not_numbers(
        self, name: str, texts: Any, part: Part, bad: set[str]
    ) -> ColumnError:
        row = next(k for k, text in enumerate(texts.to_pylist()) if text in bad)
        place = part.cut(row, row + 1).places[0][1]
        return ColumnError(
            f"Column {name!r} of {place.name} must hold numbers, but row "
            f"{place.row + 1} has {texts[row].as_py()!r}. Correct it, leave it empty, "
            "or name it in `missing_values`."
        )

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


def as_numbers(
    texts: Any, decimal: str, thousands: str, unit: str = ""
) -> tuple[Any, Counter[str]]:
    """Return a number for each text, and the texts that are none.

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
    kind = column.type
    held = kind.value_type if pt.is_dictionary(kind) else kind
    if not is_number(held):
        return column
    if pt.is_dictionary(kind):
        column = column.cast(held)
    if pt.is_integer(column.type):
        return column.cast(pa.string())
    parts = column.cast(pa.float64()).dictionary_encode().chunks
    texts = []
    for chunk in parts:
        written = pa.array([_DIGITS(v) for v in chunk.dictionary.to_pylist()], "string")
        texts.append(pc.take(written, chunk.indices))
    return pa.chunked_array(texts, pa.string())


def _without(column: Any, word: str) -> Any:
    """Return a column with one value missing: a number, however it is written, or text.

    Examples
    --------
    >>> _without(pa.chunked_array([[1.0, -999.0]]), "-999").to_pylist()
    [1.0, None]
    """
    kind: Any = column.type.value_type if pt.is_dictionary(column.type) else column.type
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
    """Write dates as text files have them, without the time where it is midnight."""
    texts = column.cast(pa.string())
    texts = pc.replace_substring_regex(texts, r"(\.\d*?)0+(Z?)$", r"\1\2")
    texts = pc.replace_substring_regex(texts, r"\.(Z?)$", r"\1")
    return pc.replace_substring_regex(texts, " 00:00:00$", "")


def _as_classes(column: Any, name: str) -> Any:
    """Return whole numbers as such, and everything else as text."""
    kind = column.type
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
