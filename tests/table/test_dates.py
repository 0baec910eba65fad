"""Dates, times and durations of every library; what is nested is left out."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError
from steelyard.table.dates import date_of_part
from steelyard.table.frames import as_table

# A Friday, a leap day, nothing, and a Sunday before the first of January 1970.
DAYS = [dt.date(2024, 1, 5), dt.date(2024, 2, 29), None, dt.date(1969, 12, 28)]
CLOCK = [dt.time(10, 30), dt.time(23), None, dt.time(7, 15)]
TIMES = [d and dt.datetime.combine(d, t) for d, t in zip(DAYS, CLOCK, strict=True)]
PARTS = {
    "when": [19727, 19782, None, -4],
    "when.year": [2024, 2024, None, 1969],
    "when.month": [1, 2, None, 12],
    "when.weekday": [5, 4, None, 7],
    "when.hour": [10, 23, None, 7],
}
FRACTIONS = [10.5 / 24, 23 / 24, None, 7.25 / 24]

TABLES = {
    "pandas": pd.DataFrame({"when": pd.to_datetime(pd.Series(TIMES))}),
    "pandas in seconds": pd.DataFrame({"when": pd.Series(TIMES, dtype="M8[s]")}),
    "pandas objects": pd.DataFrame({"when": pd.Series(TIMES, dtype=object)}),
    "pandas of a zone": pd.DataFrame(
        {"when": pd.to_datetime(pd.Series(TIMES)).dt.tz_localize("Asia/Tokyo")}
    ),
    "pandas of a zone with an underscore": pd.DataFrame(
        {"when": pd.to_datetime(pd.Series(TIMES)).dt.tz_localize("America/New_York")}
    ),
    "pandas arrow of such a zone": pd.DataFrame(
        {
            "when": pd.Series(TIMES, dtype="timestamp[us][pyarrow]").dt.tz_localize(
                "America/New_York"
            )
        }
    ),
    "pandas arrow": pd.DataFrame(
        {"when": pd.Series(TIMES, dtype="timestamp[us][pyarrow]")}
    ),
    "polars": pl.DataFrame({"when": TIMES}),
    "polars of a zone": pl.DataFrame(
        {"when": pl.Series(TIMES).dt.replace_time_zone("Asia/Tokyo")}
    ),
    "pyarrow": pa.table({"when": pa.array(TIMES, pa.timestamp("ms"))}),
    "pyarrow in microseconds": pa.table({"when": pa.array(TIMES, pa.timestamp("us"))}),
}
DATES = {
    "pandas midnights": pd.DataFrame({"when": pd.to_datetime(pd.Series(DAYS))}),
    "pandas objects": pd.DataFrame({"when": pd.Series(DAYS, dtype=object)}),
    "polars": pl.DataFrame({"when": DAYS}),
    "pyarrow": pa.table({"when": DAYS}),
}


def cells(table):
    return {
        column.name: [None if x != x else x for x in column.numbers().tolist()]
        for column in table.columns
    }


@pytest.mark.parametrize("name", TABLES)
def test_times_of_every_library_have_the_same_parts(name):
    found = cells(as_table(TABLES[name]))
    days = [x and x + part for x, part in zip(PARTS["when"], FRACTIONS, strict=True)]
    assert found.pop("when") == days
    assert found == {part: PARTS[part] for part in list(PARTS)[1:]}


@pytest.mark.parametrize("name", DATES)
def test_dates_without_times_have_no_hours(name):
    table = as_table(DATES[name])
    assert cells(table) == {part: PARTS[part] for part in list(PARTS)[:4]}
    assert [column.declared is not None for column in table.columns] == [0, 0, 1, 1]


def test_dates_of_one_year_have_no_years():
    frame = pd.DataFrame({"when": DAYS[:3]})
    assert "when.year" not in as_table(frame).names
    y = ["a", "b"] * 20
    one_year = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=40), "y": y})
    two_years = pd.DataFrame({"when": pd.date_range("2023-12-01", periods=40), "y": y})
    for both, has_years in ((one_year, False), (two_years, True)):
        whole = sy.NaiveBayes().fit(both[["when"]], both["y"])
        chunks = sy.NaiveBayes().fit(sy.scan([both[:20], both[20:]]), "y")
        names = whole.feature_names_in_.tolist()
        assert chunks.feature_names_in_.tolist() == names
        assert ("when.year" in names) == has_years


def test_durations_and_times_of_day_are_seconds():
    spans = [dt.timedelta(seconds=90), None, dt.timedelta(milliseconds=500)]
    clock = [dt.time(0, 1, 30), None, dt.time(0, 0, 0, 500_000)]
    for table in (
        pd.DataFrame({"x": pd.to_timedelta(pd.Series(spans))}),
        pl.DataFrame({"x": spans}),
        pa.table({"x": spans}),
        pl.DataFrame({"x": clock}),
        pa.table({"x": clock}),
    ):
        assert cells(as_table(table)) == {"x": [90, None, 0.5]}


# ---------------------------------------------------------------------------- models


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    moments = pd.Timestamp("2023-01-01") + pd.to_timedelta(
        rng.integers(0, 9000, 300), "h"
    )
    frame = pd.DataFrame({"a": rng.normal(size=300), "when": moments})
    frame["night"] = np.where((moments.hour < 6) | (rng.random(300) < 0.1), "y", "n")
    return frame


@pytest.fixture(scope="module")
def clf(rows):
    return sy.NaiveBayes().fit(rows[["a", "when"]], rows["night"])


def test_a_model_learns_from_the_hour(clf, rows):
    assert clf.feature_names_in_.tolist() == ["a", *PARTS]
    assert clf.score(rows[["a", "when"]], rows["night"]) > 0.85
    plain = sy.NaiveBayes().fit(rows[["a"]], rows["night"])
    assert plain.score(rows[["a"]], rows["night"]) < 0.8


def test_a_row_at_midnight_is_no_other_table(clf, rows):
    at_midnight = rows.assign(when=rows["when"].dt.normalize())[["when", "a"]]
    found = clf.predict_proba(at_midnight)
    for one in (at_midnight[:1], pl.from_pandas(at_midnight[:1])):
        assert clf.predict_proba(one).tolist() == found[:1].tolist()
    assert (clf.explain_local(at_midnight[:1]).values[0][-1]).startswith("≤")


@pytest.mark.parametrize("has_hours", [True, False])
def test_chunks_give_the_same_model(rows, has_hours):
    frame = rows if has_hours else rows.assign(when=rows["when"].dt.normalize())
    whole = sy.NaiveBayes().fit(frame[["a", "when"]], frame["night"])
    # The first chunk has no hours in any case.
    first = frame[:1].assign(when=frame["when"][:1].dt.normalize())
    chunks = [first, frame[1:150], frame[150:]]
    there = sy.NaiveBayes().fit(sy.scan(chunks), "night")
    assert there.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
    assert ("when.hour" in there.feature_names_in_) == has_hours
    found = np.concatenate(list(there.predict_chunks(sy.scan([frame]))))
    assert np.abs(found - there.predict_proba(frame[["a", "when"]])).max() == 0
    assert np.abs(found - whole.predict_proba(frame[["a", "when"]])).max() < 0.05


def test_a_saved_model_reads_dates_too(clf, rows, tmp_path):
    clf.save(tmp_path / "m.json")
    again = sy.load(tmp_path / "m.json")
    table = rows[["a", "when"]]
    assert (again.predict_proba(table) == clf.predict_proba(table)).all()


def test_dates_in_place_of_numbers_are_refused_and_the_other_way(clf, rows):
    other = sy.NaiveBayes().fit(rows[["a"]], rows["night"])
    with pytest.raises(ColumnError, match="'a' holds dates"):
        other.predict(rows[["when"]].rename(columns={"when": "a"}))
    with pytest.raises(ColumnError, match=r"'when' contained dates.*to_datetime"):
        clf.predict(rows[["a", "when"]].astype({"when": str}))


def test_a_column_of_the_name_of_a_part_stays(rows):
    table = rows[["when"]].assign(**{"when.month": "x"})
    found = as_table(table)
    parts = ["when.year", "when.weekday", "when.hour"]
    assert found.names == ["when", "when.month", *parts]
    assert found.columns[1].cells == "text"


def test_selected_parts_are_the_date(rows):
    clf = sy.method("SBC").fit(rows[["a", "when"]], rows["night"])
    assert "when.hour" in clf.selected_features_
    assert "when" in clf.transform(rows[["a", "when"]]).columns


def test_names_of_parts():
    assert [*map(date_of_part, ["a.hour", "a.b.month", "a.second", ".x"])] == [
        "a",
        "a.b",
        "a.second",
        ".x",
    ]


# ---------------------------------------------------------------------------- nested


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda cells: pd.DataFrame(cells).assign(tags=[(1,), None] * 2),
    ],
)
def test_nested_columns_are_left_out_with_a_warning(make):
    table = make({"tags": [[1], [2, 3]] * 2, "a": [1.0, 2.0, 1.0, 2.0]})
    with pytest.warns(
        UserWarning, match="Left out, since they hold nested values: 'tags'"
    ):
        clf = sy.NaiveBayes().fit(table, ["x", "y"] * 2)
    assert clf.feature_names_in_.tolist() == ["a"]
    assert clf.predict(table).tolist() == ["x", "y"] * 2
