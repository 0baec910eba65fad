"""Notices: their order, where they are shown, what files keep, and honest columns."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import steelyard as sy
from steelyard.evaluation.evaluate import evaluate
from steelyard.exceptions import IdentifierWarning, ModelFileError
from steelyard.notices.check import NewRows
from steelyard.notices.notice import arranged, in_lines, in_one_line
from steelyard.persistence import files
from steelyard.table.frames import as_table

HOSTILE = "<img src=x onerror='window.hacked = 2'>"


def numbers(n, seed=0):
    """Return rows of numbers and a category, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    cells = {"a": rng.normal(size=n) + y, "b": rng.normal(size=n), "c": list("xyz"[:2])}
    cells["c"] = rng.choice(cells["c"], n)
    return pd.DataFrame(cells), np.array(["no", "yes"])[y]


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_honest_columns_are_no_leaks(load):
    X, y = load(return_X_y=True, as_frame=True)
    assert sy.NaiveBayes().fit(X, y).notices_ == []
    few = y < 2
    assert sy.NaiveBayes().fit(X[few], y[few]).notices_ == []


def test_the_worst_come_first_and_many_are_one_line():
    many = [sy.Notice("constant", "one value", f"x{k}", k) for k in range(30)]
    found = arranged(
        [*many, sy.Notice("spelling", "a, A", "s"), sy.Notice("leak", "l")]
    )
    assert [notice.kind for notice in found] == ["leak", "spelling", "constant"]
    assert found[2].text.startswith("30 columns have only one value: x0, x1")
    assert found[2].rows == 29
    assert len(in_lines(many)) == 13 and in_lines(many)[-1] == "and 18 more"
    assert in_one_line([]) == "" and "\n" not in in_one_line(found)


def test_files_keep_notices_and_the_sketch(tmp_path):
    X, y = numbers(400)
    clf = sy.NaiveBayes().fit(X.assign(same=1.0, code=y), y)
    assert [notice.kind for notice in clf.notices_] == ["leak", "constant"]
    clf.save(tmp_path / "m.json")
    again = sy.load(tmp_path / "m.json")
    assert again.notices_ == clf.notices_
    assert np.array_equal(
        again.training_.row_hashes.hashes, clf.training_.row_hashes.hashes
    )
    assert len(again.training_.row_hashes.hashes) == 256
    content = json.loads((tmp_path / "m.json").read_text())["content"]
    assert (
        len(json.dumps(content["fitted"]["training_"]["summary"]["row_hashes"])) < 2200
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("notices", lambda v: v[0]["rows"][0].__setitem__(0, 7)),
        ("notices", lambda v: v[0]["columns"].__setitem__(0, "what")),
        ("notices", lambda v: v[0]["rows"][0].__setitem__(3, -1)),
        ("notices", lambda v: v[0]["rows"][0].__setitem__(2, 1.5)),
        ("row_hashes", lambda v: v.update(hashes="AAAA")),
        ("row_hashes", lambda v: v.update(hashes="?")),
        ("row_hashes", lambda v: v.update(hashes=v["hashes"][8:16] + v["hashes"][:8])),
        ("row_hashes", lambda v: v.update(repeated=2.0)),
        ("score_ranges", lambda v: v.update(low=[])),
        ("score_ranges", lambda v: v.update(low=[v["high"][0] + 1.0])),
        ("score_ranges", lambda v: v["histogram"][0].__setitem__(3, 1.5)),
        ("row_hashes", lambda v: v.update(n_hashed=v["n_rows"] + 1)),
    ],
)
def test_made_up_notices_are_refused(name, change, tmp_path):
    X, y = numbers(40)
    path = tmp_path / "m.json"
    sy.NaiveBayes().fit(X.assign(same=1.0), y).save(path)
    document = json.loads(path.read_text())
    change(document["content"]["fitted"]["training_"]["summary"][name])
    text = files._canonical(document["content"])
    document["checksum"] = files._checksum(document["version"], text)
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=name):
        sy.load(path)


def test_the_sketch_is_of_rows_in_any_order_and_of_any_library():
    polars = pytest.importorskip("polars")
    X, y = numbers(1000)
    order = np.random.default_rng(1).permutation(1000)
    expected = sy.NaiveBayes().fit(X, y).training_.row_hashes.hashes
    for other, labels in ((X.iloc[order], y[order]), (polars.from_pandas(X), y)):
        found = sy.NaiveBayes().fit(other, labels).training_.row_hashes.hashes
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_the_share_of_learned_rows_is_estimated(share):
    X, y = numbers(6000)
    clf = sy.NaiveBayes().fit(X, y)
    n_seen = round(2000 * share)
    new, labels = numbers(2000 - n_seen or 1, seed=2)
    rows = pd.concat([X[:n_seen], new])
    (notice,) = clf.check(rows, [*y[:n_seen], *labels])
    assert notice.kind == "seen-rows"
    assert abs(notice.rows - n_seen) < 250 and "about" in notice.text
    assert clf.check(*numbers(2000, seed=3)) == []


def test_a_long_matrix_is_known_again_by_some_of_its_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9000, 3)), rng.integers(0, 2, 9000)
    clf = sy.NaiveBayes(numeric="gaussian").fit(X, y)
    assert clf.training_.row_hashes.n_hashed < 9000
    (notice,) = clf.check(X, y)
    assert notice.kind == "seen-rows" and 7500 < notice.rows <= 9000
    assert clf.check(rng.normal(size=(9000, 3)), y) == []


def test_rows_that_are_equal_by_chance_are_not_reported():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(list("ab"), (300, 3)), columns=list("uvw"))
    y = rng.choice(["no", "yes"], 300)
    clf = sy.NaiveBayes().fit(X, y)
    assert clf.notices_ == [] and clf.check(X, y) == []


@pytest.mark.parametrize(("n_rows", "n_columns"), [(20_000, 5), (20_000, 7), (3000, 6)])
def test_rows_equal_by_chance_to_a_long_matrix_are_not_reported(n_rows, n_columns):
    """Some rows of a long matrix are hashed, and hardly any of those are equal."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (2 * n_rows, n_columns)).astype(np.uint8)
    y = rng.integers(0, 2, len(X))
    clf = sy.NaiveBayes(categorical_features="all").fit(X[:n_rows], y[:n_rows])
    assert clf.training_.row_hashes.n_hashed < n_rows
    assert clf.check(X[n_rows:], y[n_rows:]) == []


def test_the_page_lists_notices_and_escapes_them(tmp_path):
    X, y = numbers(60)
    clf = sy.NaiveBayes().fit(X.assign(**{HOSTILE: "x"}), y)
    clf.to_html(tmp_path / "m.html")
    text = (tmp_path / "m.html").read_text()
    shown = text.partition('<details id="noticed">')[2].partition("</details>")[0]
    assert "Noticed in the training rows: 1" in shown
    assert "&lt;img src=x" in shown and HOSTILE not in text
    sy.NaiveBayes().fit(X, y).to_html(tmp_path / "n.html")
    assert 'id="noticed"' not in (tmp_path / "n.html").read_text()


def test_evaluations_show_notices():
    X, y = numbers(60)
    X = X.assign(**{HOSTILE: y})
    result = evaluate(sy.NaiveBayes(), X, y, folds=3)
    assert [notice.kind for notice in result.notices] == ["leak"]
    assert "Noticed\n" in repr(result) and "gives the class away" in repr(result)
    assert HOSTILE not in result._repr_html_()
    assert "&lt;img" in result._repr_html_()
    plain = evaluate(sy.NaiveBayes(), X[["a"]], y, folds=3)
    assert plain.notices == () and "Noticed" not in repr(plain)


def test_rows_in_chunks_have_notices_of_what_is_counted():
    X, y = numbers(200)
    frame = X.assign(code=y, same="x", y=y)
    expected = sy.NaiveBayes().fit(X.assign(code=y, same="x"), y).notices_
    rows = sy.scan([frame[:90], frame[90:]])
    clf = sy.NaiveBayes().fit(rows, "y")
    assert clf.notices_ == expected and clf.training_.row_hashes is None
    assert clf.check(rows) == [
        sy.Notice(
            "unused-column",
            "columns that the model does not use: y",
            advice="drop them (`X[clf.feature_names_in_]`)",
        )
    ]
    clf = sy.NaiveBayes().partial_fit(X.assign(code=y, same="x"), y, ["no", "yes"])
    assert clf.notices_ == expected


def test_tables_without_names_are_checked_by_position():
    X, y = numbers(60)
    clf = sy.NaiveBayes().fit(X[["a", "b"]].to_numpy(), y)
    (notice,) = clf.check(np.array([[0.0, 100.0]]))
    assert (notice.kind, notice.column) == ("beyond", "x1")


def test_numbers_and_their_text_are_one_category():
    X = pd.DataFrame({"zip": ["1", "2", "3"] * 9})
    clf = sy.NaiveBayes().fit(X, list("abc") * 9)
    (notice,) = clf.check(pd.DataFrame({"zip": [1, 2, 7]}))
    assert (notice.kind, notice.rows) == ("unseen", 1) and "'7'" in notice.text


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_what_a_user_changes_after_a_fit_changes_no_notice(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (300, 4)).astype(dtype)
    X[:, 2] = 1
    y = rng.integers(0, 2, 300)
    how = {"categorical_features": "all"} if dtype == np.uint8 else {}
    clf, other = (sy.NaiveBayes(**how).fit(X, y) for _ in range(2))
    expected, sketch = clf.notices_, clf.training_.row_hashes
    assert [notice.kind for notice in expected] == ["constant"]
    X[:] = 3
    assert other.notices_ == expected
    assert (other.training_.row_hashes.hashes == sketch.hashes).all()


def is_computed(clf):
    return clf.training_.summary._compute is None


def test_rows_are_kept_no_longer_than_until_their_summary_is_needed():
    X, y = np.arange(40.0).reshape(20, 2) % [7, 5], np.arange(20) % 2
    clf = sy.NaiveBayes().fit(X, y)
    assert not is_computed(clf)
    again = pickle.loads(pickle.dumps(clf))
    assert is_computed(clf) and is_computed(again)
    assert again.notices_ == clf.notices_ == []
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        clf.nothing_  # noqa: B018
    assert not is_computed(clf.fit(X, y))
    # Of a long matrix some rows are kept, and a long frame is summarised in the fit.
    long, labels = np.zeros((110_000, 2)), [0, 1] * 55_000
    clf.fit(long, labels)
    assert clf.training_.summary._compute.args[0].n_rows == 4_096
    assert clf.training_.row_hashes.n_rows == 110_000
    assert is_computed(clf.fit(pd.DataFrame(long).add_prefix("x"), labels))


def test_a_fit_of_a_long_matrix_leaves_the_summary_for_later():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (5_000, 50)).astype(np.uint8)
    y = rng.integers(0, 3, 5_000)
    clf = sy.NaiveBayes(categorical_features="all").fit(X, y)
    assert not is_computed(clf)
    lazy = clf.training_.summary
    # One that is not computed yet, and threads that ask at the same time.
    other = clf.with_prior([0.1, 0.1, 0.8])
    assert not is_computed(clf)
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: lazy.value, range(8))]
    assert all(value.score_ranges == found[0].score_ranges for value in found)
    assert len(found[0].score_ranges) == 3
    assert other.training_.score_ranges is None
    assert other.training_.row_hashes is clf.training_.row_hashes


@pytest.mark.parametrize("ask", [False, True])
def test_what_was_asked_before_changes_nothing_later(ask, tmp_path):
    X, y = numbers(200)
    X = X.assign(name=[f"n{k}" for k in range(200)])
    with pytest.warns(IdentifierWarning):
        clf = sy.NaiveBayes().fit(X, y)
    if ask:
        assert [notice.kind for notice in clf.notices_] == ["identifier"]
    clf.partial_fit(X[:50], y[:50])
    assert clf.notices_ == [] and clf.training_.score_ranges is None
    edited = sy.NaiveBayes().fit(X[["a", "b"]], y)
    if ask:
        assert edited.training_.score_ranges
    copied = deepcopy(edited.edited([{"column": "a", "remove": True}]))
    assert copied.training_.score_ranges == edited.training_.score_ranges
    copied.save(tmp_path / "m.json")
    again = sy.load(tmp_path / "m.json")
    assert again.training_.score_ranges == edited.training_.score_ranges


def _padded(kind: str):
    """Return rows and labels with blanks at some ends, and plain ones."""
    rng = np.random.default_rng(0)
    wood, y = rng.choice(["ash", "elm"], 60), rng.choice(["no", "yes"], 60)
    blanks = rng.choice(["", " "], 60)
    X = pd.DataFrame(
        {"wood": wood + blanks.astype(object), "size": rng.normal(size=60)}
    )
    labels = pd.Series(y + blanks[::-1].astype(object), name="ill")
    made = {
        "pandas": (X, labels),
        "category": (X.astype({"wood": "category"}), labels.astype("category")),
        "polars": (pl.from_pandas(X), pl.from_pandas(labels)),
        "pyarrow": (pa.Table.from_pandas(X), pa.chunked_array([labels.to_numpy()])),
        "objects": (X.to_numpy(object), labels.to_numpy(object)),
    }
    return *made[kind], X.assign(wood=wood), y


@pytest.mark.parametrize("kind", ["pandas", "category", "polars", "pyarrow", "objects"])
def test_blanks_around_labels_are_ignored_and_those_of_values_reported(
    kind,
):
    X, y, _, labels = _padded(kind)
    with pytest.warns(UserWarning, match="differ from others by blanks only"):
        clf = sy.NaiveBayes().fit(X, y)
    assert clf.classes_.tolist() == ["no", "yes"]
    assert set(clf.predict(X)) <= set(clf.classes_)
    assert {"class-spelling", "spelling"} <= {notice.kind for notice in clf.notices_}
    expected = sy.NaiveBayes().fit(X, labels)
    assert np.array_equal(clf.predict_proba(X), expected.predict_proba(X))


def test_labels_that_all_have_blanks_stay_as_they_are():
    X, _, _, labels = _padded("pandas")
    clf = sy.NaiveBayes().fit(X, labels.astype(object) + " ")
    assert clf.classes_.tolist() == ["no ", "yes "]
    assert clf.check(X[:4], labels[:4]) == []


def test_chunks_of_frames_join_what_differs_by_blanks():
    X, y, _, _ = _padded("pandas")
    with pytest.warns(UserWarning, match="by blanks only"):
        whole = sy.NaiveBayes().fit(X, y)
        parts = sy.NaiveBayes().partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert parts.classes_.tolist() == whole.classes_.tolist()
    assert np.array_equal(parts.counts_.by_class, whole.counts_.by_class)


def test_measures_of_an_evaluation_do_not_mind_blanks():
    X, y, _, labels = _padded("pandas")
    expected = evaluate(sy.NaiveBayes(), X, labels, folds=3).metrics
    with pytest.warns(UserWarning, match="by blanks only"):
        assert evaluate(sy.NaiveBayes(), X, y, folds=3).metrics == expected


def test_text_like_dates_is_reported_as_dates():
    days = pd.date_range("2023-01-01", periods=60).strftime("%d.%m.%Y")
    X = pd.DataFrame({"seen": [*days, *days], "size": np.arange(120) % 7 / 3})
    clf = sy.NaiveBayes().fit(X, np.arange(120) % 2)
    (notice,) = clf.notices_
    assert notice.kind == "digits" and "pandas.to_datetime" in notice.advice


@pytest.mark.parametrize(("odd", "ends"), [(-3, "down to -3"), (9, "up to 9")])
def test_whole_numbers_beyond_either_end_are_reported_while_rows_are_encoded(odd, ends):
    X = pd.DataFrame({"size": np.arange(200) % 5, "wood": ["oak", "elm"] * 100})
    clf = sy.NaiveBayes().fit(X, np.arange(200) % 2)
    # So many whole numbers are counted by value, fewer are compared one by one.
    for n in (3, 1 << 14):
        new = pd.DataFrame({"size": [odd, 1, 2] * n, "wood": ["oak"] * 3 * n})
        new, rows = as_table(new), NewRows(clf)
        clf.encoder_.encode(new, rows.watch(new))
        (notice,) = rows.notices()
        assert notice.rows == n and ends in notice.text


@pytest.mark.parametrize("n", [100, 1 << 14])
def test_missing_whole_numbers_are_counted_while_rows_are_encoded(n):
    X = pd.DataFrame({"size": np.arange(200) % 5, "wood": ["oak", "elm"] * 100})
    clf = sy.NaiveBayes().fit(X, np.arange(200) % 2)
    sizes = pd.array([1, 4, None] * n, dtype="Int64")
    new = as_table(pd.DataFrame({"size": sizes, "wood": ["oak"] * 3 * n}))
    rows = NewRows(clf)
    clf.encoder_.encode(new, rows.watch(new))
    (notice,) = rows.notices()
    assert (notice.kind, notice.column, notice.rows) == ("new-missing", "size", n)
    assert f"{n:,} of {3 * n:,} rows" in notice.text


def test_labels_with_blanks_at_their_ends_are_not_unknown_classes():
    X, y = pd.DataFrame({"wood": ["oak", "elm"] * 20}), np.array(["no", "yes"] * 20)
    clf = sy.NaiveBayes().fit(X, y)
    for labels, is_known in ((["no ", " yes"] * 20, True), (["no", "YES"] * 20, False)):
        unknown = [n for n in clf.check(X, labels) if "unknown" in n.kind]
        assert bool(unknown) != is_known


@pytest.mark.parametrize("unknown", ["marginal", "sum"])
def test_notices_say_what_is_done_about_unknown_cells(unknown):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = pd.DataFrame(
        {
            "size": y + rng.normal(size=200),
            "mass": y + rng.normal(size=200),
            "sky": np.array(["sun", "rain"])[(y + (rng.random(200) < 0.2)) % 2],
        }
    )
    settings = {"strength": (1.0, 4.0, 1.0), "interactions": None}
    clf = sy.ShrinkageNB(**settings).fit(X, y).set_params(unknown=unknown)
    new = X.assign(size=np.nan, sky="fog")
    new.loc[:50, "mass"] = np.nan
    averages = "predictions average over their possible values"
    done = averages if unknown == "marginal" else "ignored"
    found = {notice.kind: notice for notice in clf.check(new)}
    assert {found[k].done for k in ("all-missing", "new-missing", "unseen")} == {done}
    sure = "predictions may be overconfident" in found["new-missing"].advice
    assert sure == (unknown == "sum")
    (lacking,) = [n for n in clf.check(X.drop(columns="mass")) if n.column == "mass"]
    assert (averages in lacking.advice) == (unknown == "marginal")
    # A method that adds up leaves such cells out.
    naive = {n.kind: n for n in sy.NaiveBayes().fit(X, y).check(new)}
    assert naive["all-missing"].done == "ignored"


@pytest.mark.parametrize("unknown", ["marginal", "sum"])
def test_evaluations_count_rows_with_unknown_cells(unknown):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 3)) + y[:, None]
    settings = {"strength": (1.0, 4.0, 1.0), "interactions": None}
    clf = sy.ShrinkageNB(**settings).fit(X, y).set_params(unknown=unknown)
    new = X + 0.01
    new[:30, 1] = np.nan
    kinds = {n.kind: n for n in sy.evaluate(clf, new, y).notices}
    assert ("unknown-cells" in kinds) == (unknown == "marginal")
    if unknown == "marginal":
        assert kinds["unknown-cells"].rows == 30
