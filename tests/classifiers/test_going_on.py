"""The default goes on learning: counts exactly, weights by rows that it keeps."""

import pickle
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import steelyard as sy
from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.fitting.default import continuation
from steelyard.fitting.default.continuation import Reservoir, max_rows

MOST = 3_000


@pytest.fixture
def few_are_kept(monkeypatch):
    monkeypatch.setattr(continuation, "MAX_KEPT", MOST)


def stream(n, seed=0, flip=False):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "text": rng.choice(list("xyz"), n),
            "whole": rng.integers(0, 5, n).astype(str),
        }
    )
    z = X["number"] + 2.0 * ((X["text"] == "x") & (X["whole"] == "1")) - 0.5
    p = 1.0 / (1.0 + np.exp(z if flip else -z))
    return X, np.where(rng.random(n) < p, "yes", "no")


def quick():
    return sy.ShrinkageNB(strength=(2.5, 10, 2.5), interactions=None)


INTERACTIONS = [("number", "text"), ("text", "whole")]


def in_chunks(clf, X, y, size, **more):
    for first in range(0, len(y), size):
        rows = slice(first, first + size)
        clf.partial_fit(X[rows], y[rows], **more)
    return clf


def test_a_first_chunk_is_a_fit_and_keeps_rows_besides():
    X, y = stream(400)
    fitted, first = quick().fit(X, y), quick().partial_fit(X, y)
    np.testing.assert_array_equal(fitted.predict_proba(X), first.predict_proba(X))
    assert len(first.kept_rows_.labels) == 400 and not hasattr(fitted, "kept_rows_")


def test_while_all_rows_are_kept_chunks_give_the_model_of_one_fit():
    X, y = stream(900)
    parts, whole = in_chunks(quick(), X, y, 300), quick().fit(X, y)
    assert parts.kept_rows_.threshold == 0.0
    # Cut points too, which were chosen again.
    assert parts.encoder_.schema_ == whole.encoder_.schema_
    np.testing.assert_array_equal(parts.counts_.by_code, whole.counts_.by_code)
    np.testing.assert_allclose(
        parts.predict_proba(X), whole.predict_proba(X), atol=1e-4
    )


@pytest.mark.parametrize("has_names", [True, False])
def test_while_all_rows_are_kept_chunks_choose_what_one_fit_chooses(has_names):
    X, y = stream(1_000)
    if not has_names:
        X = X[["number"]].assign(other=X["whole"].astype(float) ** 2).to_numpy()
    parts, whole = in_chunks(sy.ShrinkageNB(), X, y, 250), sy.ShrinkageNB().fit(X, y)
    assert parts.strength_path_ == whole.strength_path_
    interactions = [
        [interaction["columns"] for interaction in clf.interactions_]
        for clf in (parts, whole)
    ]
    assert interactions[0] == interactions[1]
    np.testing.assert_allclose(
        parts.predict_proba(X), whole.predict_proba(X), atol=1e-4
    )


def test_while_all_rows_are_kept_forgetting_gives_earlier_rows_less_weight():
    X, y = stream(900)
    parts = in_chunks(quick(), X, y, 300, forget=0.5)
    faded = np.repeat([0.25, 0.5, 1.0], 300)
    whole = quick().fit(X, y, sample_weight=faded)
    np.testing.assert_array_equal(parts.kept_rows_.amounts, faded)
    np.testing.assert_allclose(
        parts.predict_proba(X), whole.predict_proba(X), atol=1e-4
    )


def test_fewer_rows_of_wide_tables_are_kept():
    assert list(map(max_rows, (3, 50, 300))) == [40_000, 20_000, 10_000]


def test_rows_that_have_faded_are_few_and_represent_the_weight_of_all():
    clf, keeps = quick(), 0.5 ** (250 / 500)
    in_chunks(clf, *stream(7_500), 250, forget=keeps)
    kept = clf.kept_rows_
    # Four half-lives in full, and as many rows as a half-life weighs.
    assert 2_000 < len(kept.labels) < 3_200
    assert kept.amounts.sum() == pytest.approx(clf.counts_.total, rel=0.02)


@pytest.mark.usefixtures("few_are_kept")
@pytest.mark.parametrize("missing", ["skip", "impute", "value"])
def test_counts_of_new_bins_add_up_to_those_of_classes(missing):
    X, y = stream(2 * MOST)
    X.loc[::7, "number"] = np.nan
    clf = sy.ShrinkageNB(
        strength=(2.5, 10, 2.5), interactions=INTERACTIONS, missing=missing
    )
    first = clf.partial_fit(X[:200], y[:200]).encoder_.schema_
    in_chunks(clf, X[200:], y[200:], 2_000)
    new, counts = clf.encoder_.schema_, clf.counts_
    assert first.features[0].edges != new.features[0].edges
    for part in zip(new.offsets, new.offsets[1:], strict=False):
        by_class = counts.by_code[slice(*part)].sum(axis=0)
        np.testing.assert_allclose(by_class, counts.by_class)
    truth = clf.encoder_.transform(X[y == "yes"])[:, 0]
    of_bins = counts.by_code[new.offsets[0] : new.offsets[1], 1]
    np.testing.assert_allclose(of_bins, np.bincount(truth), rtol=0.1, atol=20)


@pytest.mark.usefixtures("few_are_kept")
def test_ten_chunks_are_as_good_as_a_fit_of_all_rows():
    X, y = stream(MOST + 2_000)
    new, truth = stream(5_000, seed=1)
    parts, whole = in_chunks(sy.ShrinkageNB(), X, y, 500), sy.ShrinkageNB().fit(X, y)
    assert len(parts.kept_rows_.labels) == MOST < len(y)
    losses = [log_loss(truth, clf.predict_proba(new)) for clf in (parts, whole)]
    assert abs(losses[0] - losses[1]) < 0.005
    np.testing.assert_array_equal(parts.class_count_, whole.class_count_)


@pytest.mark.usefixtures("few_are_kept")
@pytest.mark.parametrize("n_late", [10, 2_000])
@pytest.mark.parametrize("forget", [1.0, 0.5])
def test_kept_rows_represent_the_loss_of_all_rows(forget, n_late):
    # With 10 late rows no refit is due, and kept choices are fitted to.
    X, y = stream(4 * MOST + n_late)
    ends, faded = [0, 2 * MOST, 4 * MOST, len(y)], np.ones(len(y))
    clf = quick()
    for first, last in pairwise(ends):
        faded[:first] *= forget
        clf.partial_fit(X[first:last], y[first:last], forget=forget)
    assert len(clf.kept_rows_.labels) == MOST
    assert clf.kept_rows_.amounts.sum() == pytest.approx(faded.sum(), rel=0.05)
    whole = quick().fit(X, y, sample_weight=faded)
    assert clf.objective_ == pytest.approx(whole.objective_, rel=0.05)
    np.testing.assert_allclose(clf.class_count_, whole.class_count_)
    new, truth = stream(5_000, seed=1)
    losses = [log_loss(truth, model.predict_proba(new)) for model in (clf, whole)]
    assert losses[0] < losses[1] + 0.006


@pytest.mark.usefixtures("few_are_kept")
def test_counts_of_categories_are_those_of_all_rows():
    X, y = stream(4 * MOST)
    X["rare"] = np.where(np.arange(len(y)) % 2_000 == 9, "rare", X["text"])
    clf, whole = in_chunks(quick(), X, y, 1_500), quick().fit(X, y)
    new, old = clf.encoder_.schema_, whole.encoder_.schema_
    for j, feature in enumerate(new.features):
        if feature.kind == "categorical":
            assert feature.values == old.features[j].values
            parts = [slice(*schema.offsets[j : j + 2]) for schema in (new, old)]
            np.testing.assert_array_equal(
                clf.counts_.by_code[parts[0]], whole.counts_.by_code[parts[1]]
            )


def test_kept_rows_do_not_depend_on_names():
    X, y = stream(2 * MOST)
    other = X.set_axis(["b", "a", "c"], axis=1)
    for clf, rows in ((quick(), X), (quick(), other)):
        in_chunks(clf, rows, y, MOST, forget=0.05)
        if rows is X:
            kept = clf.kept_rows_.priorities
    np.testing.assert_array_equal(clf.kept_rows_.priorities, kept)


def test_a_stream_that_turns_is_followed_within_a_half_life():
    clf, half_life = quick(), 2_000
    in_chunks(clf, *stream(10_000), 500, forget=0.5 ** (500 / half_life))
    new, truth = stream(2_000, seed=2, flip=True)
    before = log_loss(truth, clf.predict_proba(new))
    in_chunks(clf, *stream(half_life, 3, flip=True), 500, forget=0.5**0.25)
    after = log_loss(truth, clf.predict_proba(new))
    assert before > 0.9 and after < 0.7
    assert clf.counts_.total < 1.6 * half_life


COUNTED = [
    sy.NaiveBayes,
    sy.GainRatioWeightedNB,
    sy.AUCWeightedNB,
    sy.OneDependenceNB,
    quick,
]


@pytest.mark.parametrize("make", COUNTED)
def test_rows_from_before_a_change_are_forgotten_by_themselves(make):
    clf = in_chunks(make(), *stream(1_500), 500, forget="auto")
    kept = clf.counts_.total
    with pytest.warns(UserWarning, match="^The rows have changed. .* have 1/"):
        clf.partial_fit(*stream(500, seed=3, flip=True), forget="auto")
    assert clf.counts_.total < 0.6 * kept < clf.counts_.total + 1_000
    new, truth = stream(1_000, seed=2, flip=True)
    everything = in_chunks(make(), *stream(1_500), 500)
    everything.partial_fit(*stream(500, seed=3, flip=True))
    losses = [log_loss(truth, m.predict_proba(new)) for m in (clf, everything)]
    assert losses[0] < losses[1] - 0.05


def test_nothing_is_forgotten_where_rows_stay_as_they_are():
    clf = in_chunks(quick(), *stream(2_000), 200, forget="auto")
    assert clf.counts_.total == 2_000


def test_trying_factors_chooses_no_strengths_and_leaves_no_trace(monkeypatch):
    X, y = stream(600)
    clf = quick().partial_fit(X[:300], y[:300])
    before = dict(vars(clf))
    twin = clf._twin(is_tried=True)
    monkeypatch.setattr(sy.ShrinkageNB, "_choose", None)
    twin.partial_fit(X[300:], y[300:], forget=0.25)
    assert all(vars(clf)[name] is value for name, value in before.items())
    assert not hasattr(twin, "uncertainty_")


@pytest.mark.parametrize("forget", [0, 1.5, -1, "a", True, None, np.nan, [0.5]])
@pytest.mark.parametrize("make", [sy.NaiveBayes, quick])
def test_forget_is_a_share_or_auto(make, forget):
    X, y = stream(200)
    with pytest.raises(ParameterError, match=r"above 0 and at most 1.*or 'auto'"):
        make().partial_fit(X, y, forget=forget)


WRONG_CHUNKS = {
    "a column with another name": (
        lambda X, y: (X.rename(columns={"text": "txet"}), y),
        "Was 'text' renamed to 'txet'?",
    ),
    "a column less": (lambda X, y: (X[["text", "whole"]], y), "now missing:\n- number"),
    "a column more": (
        lambda X, y: (X.assign(more=1), y),
        "at fit time:\n- more",
    ),
    "an array of other width": (
        lambda X, y: (X[["number"]].to_numpy(), y),
        "X has 1 features",
    ),
    "no labels": (lambda X, y: (X, None), "Pass the labels as the second argument"),
    "the name of a column": (
        lambda X, y: (X.assign(label=y), "label"),
        "pass that column, X['label']",
    ),
    "no rows": (lambda X, y: (X[:0], y[:0]), "The table has no rows"),
    "fewer labels": (lambda X, y: (X, y[1:]), "but there are 199 labels"),
    "a missing label": (
        lambda X, y: (X, np.where(np.arange(200) == 3, None, y)),
        "in 1 of 200 rows (first in row 3)",
    ),
    "labels of another kind": (
        lambda X, y: (X, np.arange(200) % 2),
        "text throughout, or numbers throughout",
    ),
    "text in a number": (
        lambda X, y: (X.assign(number="a lot"), y),
        "'number' was numeric",
    ),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("chunk", WRONG_CHUNKS)
@pytest.mark.parametrize("make", [sy.NaiveBayes, quick])
def test_a_wrong_chunk_is_refused_and_leaves_the_model_as_it_was(make, chunk):
    X, y = stream(200)
    clf = make().partial_fit(X, y)
    before, (changed, message) = clf.predict_proba(X), WRONG_CHUNKS[chunk]
    for forget in (0.5, "auto"):
        with pytest.raises((TableError, ColumnError), match=re.escape(message)):
            clf.partial_fit(*changed(X, y), forget=forget)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


@pytest.mark.parametrize("classes", ["yes", 3, [["no", "yes"]]])
def test_classes_to_come_are_a_list(classes):
    X, y = stream(200)
    with pytest.raises(ParameterError, match="`classes` must be a list"):
        sy.NaiveBayes().partial_fit(X, y, classes=classes)


def test_a_scan_without_target_or_rows_is_refused(tmp_path):
    X, y = stream(200)
    clf = sy.NaiveBayes().partial_fit(X, y)
    X.to_parquet(tmp_path / "no.parquet")
    X.assign(label=y)[:0].to_parquet(tmp_path / "empty.parquet")
    for name, message in (("no", "has no column 'label'"), ("empty", "no rows")):
        with pytest.raises((TableError, ColumnError), match=message):
            clf.partial_fit(sy.scan(tmp_path / f"{name}.parquet"), "label")
    assert clf.counts_.total == 200


@pytest.mark.parametrize("make", COUNTED[:-1])
def test_counts_of_all_methods_fade(make):
    X, y = stream(400)
    clf = make().partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:], forget=0.5)
    assert clf.counts_.total == pytest.approx(250)


@pytest.mark.filterwarnings("ignore:The rows have changed")
def test_late_classes_and_categories_meet_forgetting():
    X, y = stream(600)
    late = X[300:].assign(text="new")
    labels = np.where(np.arange(300) % 3, y[300:], "maybe")
    for make in COUNTED:
        clf = make().partial_fit(X[:300], y[:300])
        clf.partial_fit(late, labels, classes=["maybe"], forget="auto")
        assert clf.classes_.tolist() == ["maybe", "no", "yes"]
        assert 0.2 < clf.predict_proba(late)[:, 0].mean() < 0.45


def test_categories_and_classes_may_come_late():
    X, y = stream(1_200)
    clf = in_chunks(sy.ShrinkageNB(), X[:600], y[:600], 300)
    late, labels = X[600:].assign(text="new"), y[600:].copy()
    labels = np.where(np.arange(600) % 3, labels, "maybe")
    with pytest.warns(UserWarning, match=r"New classes in y: \['maybe'\]"):
        clf.partial_fit(late, labels)
    assert clf.classes_.tolist() == ["maybe", "no", "yes"]
    share = clf.predict_proba(late)[:, 0].mean()
    assert 0.25 < share < 0.4
    assert clf.predict_proba(X[:600])[:, 0].mean() < 0.1


def test_kept_rows_travel_in_the_model_file(tmp_path):
    X, y = stream(1_500)
    clf = in_chunks(
        sy.ShrinkageNB(interactions=[("text", "whole")]), X[:1_000], y[:1_000], 500
    )
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    for model in (clf, again):
        model.partial_fit(X[1_000:], y[1_000:], forget=0.5)
    np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))
    again.save(tmp_path / "again.json")
    clf.save(tmp_path / "model.json")
    texts = [(tmp_path / f"{name}.json").read_text() for name in ("model", "again")]
    assert texts[0] == texts[1]


def test_a_fit_of_few_rows_goes_on_in_memory_as_chunks_do(tmp_path):
    X, y = stream(400)
    fitted = quick().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    parts = quick().partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(fitted.predict_proba(X), parts.predict_proba(X))
    clf = quick().fit(X, y)
    clf.save(tmp_path / "model.json")
    for other in (sy.load(tmp_path / "model.json"), pickle.loads(pickle.dumps(clf))):
        with pytest.raises(ParameterError, match="has kept no rows to go on from"):
            other.partial_fit(X, y)


def test_a_model_that_has_kept_no_rows_cannot_go_on():
    X, y = stream(300)
    for clf in (
        quick().fit(X, y).with_prior({"yes": 0.1}),
        quick().partial_fit(X, y).with_prior({"yes": 0.1}),
    ):
        with pytest.raises(ParameterError, match="has kept no rows to go on from"):
            clf.partial_fit(X, y)
    with pytest.raises(ParameterError, match="looks at all rows at once"):
        sy.ShrinkageNB(instances="value-frequency").partial_fit(X, y)


@pytest.mark.parametrize("make", [quick, sy.NaiveBayes])
def test_a_scan_is_learned_chunk_by_chunk(make, tmp_path):
    X, y = stream(1_000)
    X.assign(label=y)[:400].to_parquet(tmp_path / "first.parquet")
    X.assign(label=y)[400:].to_parquet(tmp_path / "more.parquet")
    clf = make().partial_fit(sy.scan(tmp_path / "first.parquet"), "label")
    clf.partial_fit(sy.scan(tmp_path / "more.parquet", target="label", chunk_rows=300))
    same = make().partial_fit(X[:400], y[:400])
    same.partial_fit(X[400:700], y[400:700]).partial_fit(X[700:], y[700:])
    np.testing.assert_allclose(
        clf.predict_proba(X), same.predict_proba(X), rtol=0, atol=1e-10
    )
    before = clf.predict_proba(X)
    X[:10].assign(label=None).to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(TableError):
        clf.partial_fit(
            sy.scan([tmp_path / "first.parquet", tmp_path / "bad.parquet"]), "label"
        )
    np.testing.assert_array_equal(clf.predict_proba(X), before)


@pytest.mark.usefixtures("few_are_kept")
def test_draws_represent_the_weight_of_all_rows():
    X, y = stream(10_000)
    u = np.random.default_rng(0).integers(1, 4, 10_000).astype(float)
    rows = Reservoir.of(quick()._recipe().encode(X, y, u), 0)
    assert len(rows.labels) == MOST
    assert rows.amounts.sum() == pytest.approx(u.sum(), rel=0.03)
