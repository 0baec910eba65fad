"""A column of dates as columns of numbers: days, year, month, weekday and hour.

The days stay in the place of the dates, as a number since 1970-01-01 with the time of
day as a fraction. The others are named after the column, as in ``when.month``, and come
after all columns; month and weekday (1 for Monday) are categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from steelyard._common import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard._common.arrays import Floats
    from steelyard.table.columns import TableColumn

PARTS: dict[str, range | None] = {
    "year": None,
    "month": range(1, 13),
    "weekday": range(1, 8),
    "hour": None,
}
"""Parts of dates besides days, with their values if they are categories."""

DAY = 86_400_000_000
# 1970-01-01 was a Thursday.
_FIRST_WEEKDAY = 3


def date_of_part(name: str) -> str:
    """Return the column of dates that a name may be a part of, else the name.

    >>> date_of_part("when.month"), date_of_part("when"), date_of_part("a.b")
    ('when', 'when', 'a.b')
    """
    whole, _, part = name.rpartition(".")
    return whole if part in PARTS else name


def dates_in(attributes: Iterable[Any]) -> dict[str, str]:
    """Map each column that was derived from dates to the column of the dates.

    They are recognised by month and weekday, categories that are numbers.

    >>> from steelyard.table.schema import FeatureSchema
    >>> days = FeatureSchema("when", "binned", "numbers")
    >>> month = FeatureSchema("when.month", "categorical", "numbers", (1, 2))
    >>> weekday = FeatureSchema("when.weekday", "categorical", "numbers", (5,))
    >>> dates_in([days, month, weekday])
    {'when': 'when', 'when.month': 'when', 'when.weekday': 'when'}
    """
    by_name = {
        str(feature.name): feature for feature in attributes if not feature.sides
    }

    def is_part(name: str, part: str) -> bool:
        feature, values = by_name.get(f"{name}.{part}"), PARTS[part]
        if feature is None or feature.cells == "text":
            return False
        return values is None or (
            feature.kind == "categorical" and {*feature.values} <= {*values}
        )

    sources: dict[str, str] = {}
    for name in by_name:
        if is_part(name, "month") and is_part(name, "weekday"):
            parts = (f"{name}.{part}" for part in PARTS if is_part(name, part))
            sources |= dict.fromkeys((name, *parts), name)
    return sources


def as_moments(series: Any) -> NDArray[Any] | None:
    """Return the dates of a narwhals series as ``datetime64``, None for other cells.

    Times are those of the clock, in whatever time zone.
    """
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if isinstance(dtype, nw.Datetime):
        if dtype.time_zone is not None:
            series = series.dt.replace_time_zone(None)
        return np.asarray(series.to_numpy()).astype("datetime64[us]")
    if dtype == nw.Date:
        return np.asarray(series.to_numpy()).astype("datetime64[us]")
    if dtype == nw.Object:
        return _moments_of_objects(np.asarray(series.to_numpy(), dtype=object))
    native = series.to_native()
    if (
        dtype == nw.Unknown
        and getattr(getattr(native, "dtype", None), "kind", "") == "M"
    ):
        # Of pandas, in a zone whose name narwhals does not read: America/New_York.
        return np.asarray(native.dt.tz_localize(None)).astype("datetime64[us]")
    return None


def _moments_of_objects(cells: NDArray[Any]) -> NDArray[Any] | None:
    from datetime import date

    from steelyard.table.factors import is_missing

    # The first cell shows that most other columns have no dates.
    first = next((cell for cell in cells if not is_missing(cell)), None)
    if not isinstance(first, date):
        return None
    observed = np.array([not is_missing(cell) for cell in cells])
    if not all(isinstance(cell, date) for cell in cells[observed]):
        return None
    moments = np.full(len(cells), "NaT", dtype="datetime64[us]")
    moments[observed] = [
        cell.replace(tzinfo=None) if getattr(cell, "tzinfo", None) else cell
        for cell in cells[observed]
    ]
    return moments


def as_seconds(series: Any) -> Floats | None:
    """Return durations, or times of day, as seconds, None for other cells."""
    import narwhals.stable.v2 as nw

    if isinstance(series.dtype, nw.Duration):
        moments = np.asarray(series.to_numpy()).astype("timedelta64[us]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 1e6)
    if series.dtype == nw.Time:
        cells = series.to_list()
        return np.array([np.nan if c is None else _since_midnight(c) for c in cells])
    return None


def _since_midnight(time: Any) -> float:
    seconds = 3600 * time.hour + 60 * time.minute + time.second
    return float(seconds + time.microsecond / 1e6)


def date_parts(
    position: int, name: str, dates: NDArray[Any]
) -> tuple[dict[str, TableColumn], set[str]]:
    """Return the parts of dates by name, and the names of constant ones.

    That are hours which are all 0, and years which are all the same.
    """
    from steelyard.table.columns import PartColumn

    micros, missing = dates.astype(np.int64), np.isnat(dates)
    values = dict(_parts_of(dates, micros, missing))
    parts: dict[str, TableColumn] = {
        f"{name}.{part}": PartColumn(position, f"{name}.{part}", cells)
        for part, cells in values.items()
    }
    ends = {part: _ends(values[part][~missing]) for part in ("year", "hour")}
    idle = {f"{name}.{part}" for part in ends if is_idle(part, *ends[part])}
    return parts, idle


def _ends(numbers: Floats) -> tuple[float, float]:
    return (numbers.min(), numbers.max()) if len(numbers) else (0.0, 0.0)


def is_idle(part: str, low: float, high: float) -> bool:
    """Whether a part of dates is constant, by its smallest and largest number."""
    return (part.endswith("hour") and high <= 0) or (
        part.endswith("year") and low == high
    )


def _parts_of(
    moments: NDArray[Any], micros: NDArray[Any], missing: NDArray[Any]
) -> Iterator[tuple[str, Floats]]:
    year = moments.astype("datetime64[Y]").astype(np.int64) + 1970
    month = moments.astype("datetime64[M]").astype(np.int64) % 12 + 1
    weekday = (micros // DAY + _FIRST_WEEKDAY) % 7 + 1
    hour = micros % DAY // (DAY // 24)
    for part, values in zip(PARTS, (year, month, weekday, hour), strict=True):
        yield part, np.where(missing, np.nan, values.astype(np.float64))
