"""JSON Schema of a row: what is valid by it, the scorer takes."""

import json
import re

import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError
from steelyard.export import row_schema


@pytest.fixture(scope="module")
def trips():
    X = pd.DataFrame(
        {
            "zone": ["1", "02", "airport", None] * 15,
            "km": [1.5, 20.0, None, 8.0] * 15,
            "night": [True, False, False, None] * 15,
            "when": pd.date_range("2023-11-01", periods=60, freq="41h"),
            "code": [1, 2, 2**60, 4] * 15,
            "empty": [None] * 60,
        }
    )
    clf = sy.NaiveBayes(categorical_features=["zone", "night", "code"])
    return clf.fit(X, ["tip", "none", "none", "tip"] * 15)


def test_each_column_has_its_types_values_and_range(trips):
    schema = row_schema(trips)
    columns = schema["properties"]
    types = {name: set(entry["type"]) - {"null"} for name, entry in columns.items()}
    assert types == {
        "zone": {"string"},
        "km": {"number"},
        "night": {"boolean"},
        "when": {"string"},
        "code": {"number"},
        "empty": {"string", "number", "boolean"},
    }
    assert all("null" in entry["type"] for entry in columns.values())
    assert columns["zone"]["examples"] == ["02", "1", "airport"]
    assert columns["km"]["description"] == "from 1.5 to 20 in training"
    assert columns["code"]["examples"][-1] == 2**60
    assert schema["additionalProperties"] is False and "required" not in schema
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    "date, is_date",
    [
        ("2024-01-31", True),
        ("2024-01-31T14:30", True),
        ("2024-01-31 14:30:05.25Z", True),
        ("2024-01-31T14:30:05+01:00", True),
        ("2024-13-01", False),
        ("2024-12-32", False),
        ("2024-06-31", False),
        ("2024-02-30", False),
        ("0000-01-01", False),
        ("now", False),
        ("31.01.2024", False),
    ],
)
def test_dates_of_the_pattern_are_those_that_are_read(date, is_date, trips):
    pattern = row_schema(trips)["properties"]["when"]["pattern"]
    assert bool(re.search(pattern, date)) == is_date
    if is_date:
        trips.scorer()({"when": date})
    else:
        with pytest.raises(ColumnError):
            trips.scorer()({"when": date})


def test_valid_rows_are_answered(trips):
    score = trips.scorer()
    cells = {"string": "2", "number": 2, "boolean": True, "null": None}
    for name, entry in row_schema(trips)["properties"].items():
        for kind in entry["type"]:
            is_date = name == "when" and kind == "string"
            score({name: "2024-02-29" if is_date else cells[kind]})


def test_any_method_has_a_schema_and_arrays_have_columns_by_position():
    lazy = sy.method("LWNB").fit([["a", 1.0], ["b", 2.0]] * 4, [0, 1] * 4)
    assert list(row_schema(lazy)["properties"]) == ["x0", "x1"]
