"""The default goes on over New Year: chunks with dates are one fit of their rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError
from steelyard.fitting.default import continuation


def quick(**settings):
    return sy.ShrinkageNB(strength=(2.5, 10, 2.5), interactions=None, **settings)


def dated(dates, seed=0):
    """Rows whose class depends on the date, on a number and on a category."""
    rng, dates = np.random.default_rng(seed), pd.DatetimeIndex(dates)
    X = pd.DataFrame(
        {
            "when": dates,
            "number": rng.normal(size=len(dates)),
            "text": rng.choice(list("xyz"), len(dates)),
        }
    )
    z = X["number"] + (dates.month % 2) + 2.0 * (dates.hour < 12) - 1.5
    p = 1.0 / (1.0 + np.exp(-z.fillna(0.0)))
    return X, np.where(rng.random(len(X)) < p, "yes", "no")


def days(first, n=90, freq="D"):
    return pd.date_range(first, periods=n, freq=freq)


CHUNKS = {
    "over New Year": [days("2023-10-01"), days("2023-12-10"), days("2024-02-01")],
    "years, then one": [
        days("2022-10-01", 120),
        days("2024-02-01"),
        days("2024-05-01"),
    ],
    "days, then hours": [days("2023-03-01"), days("2023-06-01", 90, "7h")],
    "hours, then days": [days("2023-06-01", 90, "7h"), days("2023-09-01")],
    "missing, then dates": [[pd.NaT] * 60, days("2023-06-01", 90, "7h")],
    "some are missing": [
        days("2023-12-01").where(np.arange(90) % 3 > 0),
        [*days("2024-03-01", 60), *[pd.NaT] * 30],
    ],
    "far from today": [days("1711-12-01"), days("2199-12-31", 90, "7h")],
}


@pytest.mark.parametrize("name", CHUNKS)
def test_chunks_with_dates_are_one_fit(name, tmp_path):
    X, y = dated([date for chunk in CHUNKS[name] for date in chunk])
    clf, first = quick(), 0
    for chunk in CHUNKS[name]:
        rows = slice(first, first := first + len(chunk))
        clf.partial_fit(X[rows], y[rows])
        clf.save(tmp_path / "model.json")
        clf = sy.load(tmp_path / "model.json")
    whole = quick().fit(X, y)
    assert clf.encoder_.schema_ == whole.encoder_.schema_
    np.testing.assert_array_equal(clf.counts_.by_code, whole.counts_.by_code)
    np.testing.assert_array_equal(clf.predict_proba(X), whole.predict_proba(X))


def test_small_chunks_between_two_refits_take_dates_of_another_year():
    X, y = dated(days("2023-06-01", 230))
    clf = quick().partial_fit(X[:200], y[:200])
    names = clf.encoder_.schema_.names
    # The first day of 2024 is day 214.
    clf.partial_fit(X[200:215], y[200:215])
    assert clf.encoder_.schema_.names == names
    clf.partial_fit(X[215:], y[215:])
    assert clf.encoder_.schema_.names == [*names[:3], "when.year", *names[3:]]
    whole = quick().fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_scans_with_dates_are_learned_chunk_by_chunk(ending, tmp_path):
    X, y = dated(days("2023-11-01", 240, "9h"))
    X = X.assign(day=X["when"].dt.normalize(), label=y)
    files = []
    for k in range(3):
        part = X[80 * k : 80 * (k + 1)]
        files.append(tmp_path / f"{k}.{ending}")
        write = part.to_parquet if ending == "parquet" else part.to_csv
        write(files[-1], index=False)
    clf = quick()
    for file in files:
        clf.partial_fit(sy.scan(file, chunk_rows=40), "label")
    whole = quick().fit(sy.scan(files), "label")
    rows = X.drop(columns="label")
    assert clf.encoder_.schema_.names == whole.encoder_.schema_.names
    np.testing.assert_allclose(
        clf.predict_proba(rows), whole.predict_proba(rows), rtol=0, atol=1e-10
    )


def test_a_column_that_was_empty_takes_dates_at_the_next_refit(tmp_path):
    X, y = dated(days("2023-11-01", 120))
    X.assign(label=y, when="")[:60].to_csv(tmp_path / "0.csv", index=False)
    X.assign(label=y)[60:].to_csv(tmp_path / "1.csv", index=False)
    for forget in (1.0, "auto"):
        clf = quick().partial_fit(sy.scan(tmp_path / "0.csv"), "label")
        assert "when.month" not in clf.encoder_.schema_.names
        clf.partial_fit(sy.scan(tmp_path / "1.csv"), "label", forget=forget)
        assert "when.month" in clf.encoder_.schema_.names
    whole = quick().fit(X.assign(when=X["when"].where(np.arange(120) >= 60)), y)
    clf = quick().partial_fit(sy.scan(tmp_path / "0.csv"), "label")
    clf.partial_fit(sy.scan(tmp_path / "1.csv"), "label")
    np.testing.assert_array_equal(clf.predict_proba(X), whole.predict_proba(X))
    counted = sy.NaiveBayes().partial_fit(sy.scan(tmp_path / "0.csv"), "label")
    with pytest.raises(ColumnError, match="'when' was empty in the rows so far"):
        counted.partial_fit(sy.scan(tmp_path / "1.csv"), "label")


@pytest.mark.parametrize("make", [quick, sy.NaiveBayes])
def test_text_in_place_of_dates_is_refused_by_the_name_of_the_column(make):
    X, y = dated(days("2023-11-01"))
    clf = make().partial_fit(X, y)
    text = X.assign(when=X["when"].astype(str))
    message = (
        "^Column 'when' contained dates when the model was fitted, but now contains"
    )
    for refused in (clf.predict, lambda rows: clf.partial_fit(rows, y)):
        with pytest.raises(ColumnError, match=message):
            refused(text)


def everything(n=360):
    """Dates, numbers, categories of several types, an identifier, missing cells."""
    X, y = dated(days("2023-10-01", n, "8h"))
    rng = np.random.default_rng(1)
    levels = pd.Categorical(rng.choice(["lo", "mid", "hi"], n), ["lo", "mid", "hi"])
    X = X.assign(
        level=levels.as_ordered(),
        flag=rng.random(n) < 0.3,
        whole=rng.integers(0, 9, n),
        paid=rng.integers(0, 9, n) / 4,
        late=pd.date_range("1999-12-25", periods=n, freq="D")[rng.permutation(n)],
        name=[f"person {k}" for k in range(n)],
    )
    X.loc[::7, "number"] = np.nan
    X.loc[::11, "text"] = None
    X.loc[::5, "late"] = pd.NaT
    return X, y, rng.integers(1, 4, n).astype(float)


SETTINGS = {
    "as they are": {},
    "shapes": {"constraints": {"when": "increasing", "number": "increasing"}},
    "value": {"missing": "value", "class_weight": "balanced"},
    "imputed": {"missing": "impute"},
    "densities": {"numeric": "gaussian"},
}


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
@pytest.mark.parametrize("forget", [1.0, 0.7])
@pytest.mark.parametrize("name", SETTINGS)
def test_whatever_a_table_holds_chunks_are_one_fit(name, forget, tmp_path):
    X, y, u = everything()
    clf, size, faded = quick(**SETTINGS[name]), 120, np.ones(len(y))
    for first in range(0, len(y), size):
        rows = slice(first, first + size)
        faded[:first] *= forget
        clf.partial_fit(X[rows], y[rows], sample_weight=u[rows], forget=forget)
        clf.save(tmp_path / "model.json")
        clf = sy.load(tmp_path / "model.json")
    whole = quick(**SETTINGS[name]).fit(X, y, sample_weight=faded * u)
    assert clf.encoder_.schema_.left_out
    assert clf.encoder_.schema_ == whole.encoder_.schema_
    np.testing.assert_allclose(
        clf.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-10
    )
    assert [f"{n}" for n in clf.notices_] == [f"{n}" for n in whole.notices_]


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
@pytest.mark.parametrize("library", ["polars", "pyarrow", "object"])
def test_chunks_of_any_library_are_one_fit(library):
    X, y, _ = everything(240)
    make = {
        "polars": lambda X: pytest.importorskip("polars").from_pandas(X),
        "pyarrow": lambda X: pytest.importorskip("pyarrow").Table.from_pandas(X),
        "object": lambda X: X.astype(object),
    }[library]
    clf, whole = quick(), quick().fit(make(X.reset_index(drop=True)), y)
    for rows in (slice(0, 120), slice(120, 240)):
        clf.partial_fit(make(X[rows].reset_index(drop=True)), y[rows])
    np.testing.assert_array_equal(
        clf.predict_proba(make(X)), whole.predict_proba(make(X))
    )


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_an_identifier_that_was_left_out_need_not_be_in_later_chunks():
    X, y, _ = everything(240)
    clf = quick().partial_fit(X[:120], y[:120])
    clf.partial_fit(X[120:].drop(columns="name"), y[120:])
    whole = quick().fit(X.assign(name=None), y)
    np.testing.assert_allclose(
        clf.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-10
    )
    clf.partial_fit(X[:120].drop(columns="name"), y[:120])
    assert clf.counts_.total == 360


def test_dates_and_categories_that_the_kept_rows_lack_are_not_forgotten(monkeypatch):
    monkeypatch.setattr(continuation, "MAX_KEPT", 150)
    monkeypatch.setattr(continuation, "MIN_OF_WIDE", 150)
    X, y = dated(days("2023-06-01", 900))
    X["rare"] = np.where(np.arange(900) == 3, "once", "often")
    clf = quick(constraints={"when.year": "increasing"}, missing="value")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.partial_fit(X[:300], y[:300])
        for first in range(300, 900, 60):
            rows = slice(first, first + 60)
            clf.partial_fit(X[rows], y[rows], forget=0.2)
    schema, counts = clf.encoder_.schema_, clf.counts_
    assert "when.year" in schema.names
    (j,) = (j for j, f in enumerate(schema.features) if f.name == "rare")
    code = schema.offsets[j] + schema.features[j].code_of["once"]
    assert counts.by_code[code].sum() == pytest.approx(0.2**10)
    for part in zip(schema.offsets, schema.offsets[1:], strict=False):
        by_class = counts.by_code[slice(*part)].sum(axis=0)
        np.testing.assert_allclose(by_class, counts.by_class)


def test_models_of_dates_that_only_one_has_parts_of_are_not_merged():
    sites = [dated(days("2023-03-01")), dated(days("2023-12-01"))]
    models = [sy.NaiveBayes(numeric="gaussian").fit(*site) for site in sites]
    with pytest.raises(ColumnError, match="Only one of the models has the year of"):
        sy.merge(*models)
    # What the message says to do.
    own = [(X.assign(**{"when.year": X["when"].dt.year}), y) for X, y in sites]
    merged = sy.merge(*(sy.NaiveBayes(numeric="gaussian").fit(*site) for site in own))
    X, y = (
        pd.concat([own[0][0], own[1][0]]),
        np.concatenate([sites[0][1], sites[1][1]]),
    )
    whole = sy.NaiveBayes(numeric="gaussian").fit(X, y)
    np.testing.assert_allclose(merged.predict_proba(X), whole.predict_proba(X))


def test_rows_of_the_next_year_have_no_columns_that_nobody_named():
    X, y = dated(days("2023-03-01"))
    later = dated(days("2023-12-01"))[0]
    for clf, rows in (
        (quick().fit(X, y), later),
        (quick().fit(later, y), X),
        (quick().fit(X, y), X.assign(when=X["when"].astype(str))),
    ):
        kinds = {notice.kind for notice in clf.check(rows)}
        assert not kinds & {"unused-column", "missing-column"}
