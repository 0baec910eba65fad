"""New rows beside what a model holds of its training rows."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import steelyard as sy
from steelyard.evaluation.shares import stability_index
from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.monitoring.drift import period_of

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

FEW = {"max_iter": 20, "generations": 2, "population_size": 4, "random_state": 0}
quietly = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def people(n=400, seed=0):
    """Return numbers, categories and missing cells, and labels that go by them."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 12, n).round()
    job = rng.choice(["clerk", "smith", "judge", "cook"], n, p=[0.5, 0.3, 0.15, 0.05])
    income = np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(10, 0.5, n).round())
    odds = (age - 50) / 10 + (job == "smith") - 0.5
    ill = rng.random(n) < 1 / (1 + np.exp(-odds))
    table = pd.DataFrame({"age": age, "job": job, "income": income})
    return table, np.where(ill, "ill", "well")


@pytest.fixture(scope="module")
def model():
    return sy.NaiveBayes().fit(*people())


def column(found, name, period=0):
    return next(c for c in found.periods[period].columns if c.name == name)


# -------------------------------------------------------------------------- made shifts


SHIFTS = {
    "age": lambda X: X.assign(age=X["age"] + 20),
    "job": lambda X: X.assign(job=np.where(np.arange(len(X)) % 2, "cook", X["job"])),
    "income": lambda X: X.assign(income=X["income"] * 3),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_a_shift_is_found_in_its_column(model, name):
    X, _ = people(seed=1)
    assert not model.drift(X).is_alarm
    found = model.drift(SHIFTS[name](X))
    moved = {text.split(": ")[1] for text in found.alarms}
    assert name in moved and moved <= {name, "p(well)"}
    assert column(found, name).compared.psi > 0.25
    assert column(found, name).verdict(found.thresholds) == "shifted"


def test_missing_unseen_and_out_of_range_cells_are_counted(model):
    X, _ = people(seed=1)
    X.loc[:99, "job"] = "pilot"
    X.loc[100:199, "income"] = np.nan
    X.loc[:49, "age"] = 300.0
    found = model.drift(X)
    assert column(found, "job").unseen.value == 0.25
    assert column(found, "age").beyond.value == pytest.approx(0.125, abs=0.01)
    income = column(found, "income")
    assert income.missing.value == pytest.approx(X["income"].isna().mean())
    assert income.missing_before == pytest.approx(people()[0]["income"].isna().mean())
    texts = "\n".join(found.alarms)
    for text in ("job: 25.0 % unseen", "% missing, ", "age: 12.5 % out of range"):
        assert text in texts


def test_an_index_is_that_of_the_histograms_in_the_model(model):
    X, _ = people(seed=1)
    found = column(model.drift(X), "job").compared
    before, now = people()[0]["job"].value_counts(), X["job"].value_counts()
    expected = [before[name] for name in ("clerk", "smith", "judge", "cook")]
    actual = [now[name] for name in ("clerk", "smith", "judge", "cook")]
    assert found.names[:3] == ["clerk", "smith", "judge"]
    assert found.psi == pytest.approx(stability_index(expected, actual))
    assert found.by_chance == pytest.approx(3 * 2 / 400)
    # Of its own training rows nothing has moved.
    own = model.drift(people()[0])
    assert max(row["psi"] for row in own.rows()) == pytest.approx(0.0, abs=1e-9)


def test_labels_give_calibration_log_loss_and_auc(model):
    X, y = people(seed=1)
    found = model.drift(X, y).periods[0].performance
    proba = model.predict_proba(X)
    from sklearn.metrics import log_loss, roc_auc_score

    assert found.auc == pytest.approx(roc_auc_score(y == "well", proba[:, 1]))
    assert found.log_loss.value == pytest.approx(log_loss(y, proba))
    gap = np.mean(proba[:, 1] - (y == "well"))
    assert found.calibration.value == pytest.approx(gap)
    assert not model.drift(X, y).is_alarm
    wrong = np.where(np.arange(len(y)) % 3 == 0, "ill", y)
    assert "calibration" in model.drift(X, wrong).alarms[0]
    # Labels that are not known yet, or no classes, are left out.
    late = np.where(np.arange(len(y)) < 100, y, None)
    assert model.drift(X, late).periods[0].performance.rows == 100
    assert model.drift(X, ["?"] * len(y)).periods[0].performance is None


def test_periods_are_compared_each_for_itself(model):
    X, y = people(seed=1)
    month = np.repeat(["2024-01-05", "2024-02-05", "2024-10-05", "2024-11-05"], 100)
    moved = X.assign(month=month)
    moved.loc[300:, "age"] += 25
    found = model.drift(moved, y, by="month")
    names = ["2024-01", "2024-02", "2024-10", "2024-11"]
    assert [period.name for period in found.periods] == names
    assert {text.split(": ")[0] for text in found.alarms} == {"2024-11"}
    assert "*" in repr(found) and "2024-10" in repr(found)
    frame = found.to_frame()
    assert len(frame) == 4 * 4 and set(frame["period"]) == set(names)
    alone = model.drift(X[:100]).periods[0].columns
    for a, b in zip(alone, found.periods[0].columns, strict=True):
        assert a.compared.psi == b.compared.psi
    numbers = model.drift(X, by=np.arange(400) % 12 + 1.0)
    assert [p.name for p in numbers.periods] == [str(k) for k in range(1, 13)]
    assert period_of(None) == "(missing)" and period_of(pd.Timestamp("2024-05-31"))


@pytest.mark.parametrize("as_frame", [pa.Table.from_pandas, pl.from_pandas, sy.scan])
def test_rows_may_be_of_any_library_or_a_source(model, as_frame):
    X, y = people(seed=1)
    whole = X.assign(month=np.arange(400) % 3, ill=y)
    expected = model.drift(X, y, by=whole["month"]).to_dict()
    if as_frame is sy.scan:
        parts = [whole[k : k + 90] for k in range(0, 400, 90)]
        found = model.drift(sy.scan(parts), "ill", by="month")
    else:
        found = model.drift(as_frame(whole.drop(columns="ill")), y, by="month")
    assert found.to_dict() == expected


def test_a_saved_model_has_all_that_is_needed(model, tmp_path):
    X, y = people(seed=1)
    model.save(tmp_path / "m.json")
    assert sy.load(tmp_path / "m.json").drift(X, y).to_dict() == (
        model.drift(X, y).to_dict()
    )


@quietly
@pytest.mark.parametrize("entry", sy.methods(), ids=lambda entry: entry.acronym)
def test_every_method_can_be_watched(entry, tmp_path):
    X, y = people(120)
    if entry.acronym == "SPSS":
        X = X[["age", "job"]]
    clf = entry.create()
    clf.set_params(**{name: FEW[name] for name in FEW if name in clf._settings})
    clf.fit(X, y)
    found = clf.drift(people(100, 1)[0][X.columns], people(100, 1)[1])
    indices = {row["column"]: row["psi"] for row in found.rows()}
    assert {*X.columns} <= {*indices}
    assert all(indices[name] is not None for name in X.columns)
    is_lazy = entry.acronym in ("LWNB", "AIWNB-L")
    assert found.has_scores is not is_lazy and ("p(well)" in indices) is not is_lazy
    clf.save(tmp_path / "m.json")
    again = sy.load(tmp_path / "m.json").drift(people(100, 1)[0][X.columns])
    assert {row["column"]: row["psi"] for row in again.rows()} == indices


def test_several_classes_have_a_score_each_and_chunks_have_none():
    X, y = people()
    three = np.where(X["age"] > 60, "old", y)
    clf = sy.NaiveBayes().fit(X, three)
    found = clf.drift(people(seed=1)[0])
    assert [c.name for c in found.periods[0].columns[:3]] == [
        "p(ill)",
        "p(old)",
        "p(well)",
    ]
    chunked = sy.NaiveBayes().partial_fit(X, y, classes=["ill", "well"])
    found = chunked.drift(people(seed=1)[0])
    assert not found.has_scores
    assert "has no record of its training scores" in repr(found)
    assert not clf.with_prior({"old": 0.1}).drift(X).has_scores


def test_the_default_keeps_the_scores_of_rows_held_out():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(100, 40)), rng.normal(size=(1000, 40))
    y = X[:, 0] + X[:, 1] + rng.normal(size=100) > 0
    clf = sy.ShrinkageNB(interactions=None, grid=[(10, 40, 10)] * 2).fit(X, y)

    def spread(rows):
        odds = np.log(clf.predict_proba(rows)[:, 1]) - np.log(
            clf.predict_proba(rows)[:, 0]
        )
        return np.subtract(*np.quantile(odds, [0.75, 0.25]))

    (kept,) = clf.training_.score_ranges
    # Of rows that it has seen it is surer than of others.
    held_out = kept.quartiles[2] - kept.quartiles[0]
    assert abs(held_out - spread(new)) < abs(spread(X) - spread(new))
    assert kept.weight == 100


def test_scores_of_an_edited_model_are_not_compared_with_those_before(tmp_path):
    X, y = people(400, 1)
    clf = sy.NaiveBayes().fit(X, y)
    name = X.columns[0]
    made = clf.edited({"column": name, "remove": True})
    made.save(tmp_path / "m.json")
    for own in (made, sy.load(tmp_path / "m.json")):
        found = own.drift(X)
        assert not found.has_scores
        assert [c.name for c in found.periods[0].columns] == [*X]
        # They are back with the model that has them.
        back = own.unedited().drift(X)
        assert back.has_scores and back.rows() == clf.drift(X).rows()


def test_numbers_too_large_to_square_are_beyond_those_of_training():
    X, y = people(400, 1)
    clf = sy.NaiveBayes(numeric="gaussian").fit(X, y)
    (name,) = X.select_dtypes("float").columns[:1]
    new = X.assign(**{name: 1e160})
    clf.predict_proba(new)
    assert column(clf.drift(new), name).beyond.value == 1.0


def test_missing_cells_are_a_group_beside_the_values():
    X, y = people(400, 1)
    clf = sy.NaiveBayes().fit(X, y)
    gone = np.arange(400) % 2 == 0
    compared = column(clf.drift(X.assign(job=X["job"].mask(gone))), "job").compared
    assert compared.names[-1] == "(missing)"
    assert compared.expected[-1] == 0.0 and compared.actual[-1] == 0.5
    assert sum(compared.actual) == pytest.approx(1.0)
    assert compared.psi > 1.0 > 0.5 > column(clf.drift(X), "job").compared.psi


def test_intervals_of_shares_are_wider_where_more_columns_are_tested():
    X, y = people(400, 1)
    few, many = X, X.assign(**{f"copy{k}": X["age"] for k in range(20)})
    ends = [
        column(sy.NaiveBayes().fit(rows, y).drift(rows), "income").missing
        for rows in (few, many)
    ]
    assert ends[0].value == ends[1].value > 0.0
    assert ends[1].low < ends[0].low and ends[1].high > ends[0].high


# ----------------------------------------------------------------- alarms without cause


def test_resampled_rows_raise_few_alarms():
    alarms = 0
    for seed in range(200):
        clf = sy.NaiveBayes().fit(*people(400, seed + 1000))
        X, y = people(250, seed + 2)
        alarms += clf.drift(X, y, by=np.arange(250) % 2).is_alarm
    assert alarms <= 10


def test_new_values_of_a_column_with_many_are_to_be_expected():
    rng = np.random.default_rng(0)

    def draw(n):
        return pd.DataFrame({"town": rng.zipf(1.5, n).astype(str)})

    clf = sy.NaiveBayes().fit(draw(400), np.arange(400) % 2)
    found = [clf.drift(draw(300)) for _ in range(20)]
    shares = [column(entry, "town").unseen.value for entry in found]
    expected = column(found[0], "town").unseen_expected
    assert np.mean(shares) == pytest.approx(expected, rel=0.3) and expected > 0.1
    assert sum(entry.is_alarm for entry in found) <= 2


# ------------------------------------------------------------------- pages and refusals


def test_the_report_is_one_page_with_bars_and_no_text_is_markup(model):
    X, y = people(seed=1)
    found = model.drift(SHIFTS["job"](X).assign(m="<b>&"), y, by="m")
    page = found.to_html(title="<i>")
    assert page.startswith("<!DOCTYPE html>") and page.count("<figure") >= 4
    assert "<b>&" not in page and "<i>" not in page
    assert "src=" not in page and "http" not in page.replace("http-equiv", "")
    months = model.drift(X, y, by=np.arange(400) % 5)
    assert "PSI of job" in months.to_html() and "log-loss" in months._repr_html_()
    document = json.loads(json.dumps(found.to_dict()))
    assert document["alarms"] == found.alarms
    assert document["periods"][0]["performance"]["rows"] == 400


def test_what_cannot_be_compared_is_refused(model):
    X, y = people(seed=1)
    with pytest.raises(NotFittedError):
        sy.NaiveBayes().drift(X)
    with pytest.raises(ColumnError, match=r"no column 'mnth'\. Did you mean 'month'"):
        model.drift(X.assign(month=1), by="mnth")
    with pytest.raises(TableError, match="has 3 cells, and there are 400 rows"):
        model.drift(X, by=[1, 2, 3])
    with pytest.raises(TableError, match="400 rows, but there are 3 labels"):
        model.drift(X, y[:3])
    with pytest.raises(TableError, match="more than 120 values"):
        model.drift(X, by=np.arange(400))
    with pytest.raises(ParameterError, match="`psi` must be a number greater than 0"):
        model.drift(X, psi=0)
    with pytest.raises(ParameterError, match="`by` is the name of a column"):
        model.drift(sy.scan([X]), by=[1])
    with pytest.raises(ColumnError, match="yet now missing"):
        model.drift(X[["age", "job"]])


def test_columns_that_the_model_dropped_are_not_compared():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"id": [f"P{k:04}" for k in range(300)], "x": rng.normal(size=300)}
    )
    with pytest.warns(sy.exceptions.IdentifierWarning):
        clf = sy.ShrinkageNB().fit(X, X["x"] + rng.normal(size=300) > 0)
    drift = clf.drift(X[["x"]].assign(id=None)[["id", "x"]])
    assert "id" not in drift.to_frame()["column"].tolist()
