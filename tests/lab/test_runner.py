"""Comparisons: the same folds, every fit a row, parts of runs completed."""

import errno
import io
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

import steelyard as sy
from steelyard.evaluation.evaluate import split_rows
from steelyard.exceptions import ParameterError, TableError
from steelyard.io.dataset import DataSet
from steelyard.lab import baselines
from steelyard.lab import journal as journals
from steelyard.lab.baselines import BASELINES
from steelyard.lab.data.datasets import load_dataset
from steelyard.lab.journal import JournalError
from steelyard.lab.protocols import PROTOCOLS, discretize_whole
from steelyard.lab.results import COLUMNS, Results
from steelyard.lab.runner import compare, resolve_methods

TIMES = ("fit_seconds", "predict_seconds", "peak_memory_mb")


class Failing(ClassifierMixin, BaseEstimator):
    """Raises an error, or ends the process, at tables of a certain number of rows."""

    def __init__(self, rows=None, deadly=False):
        self.rows = rows
        self.deadly = deadly

    def fit(self, X, y):
        if self.rows is None or len(X) == self.rows:
            if self.deadly:
                os._exit(1)
            raise RuntimeError("no\nluck")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def mixed(n=60, classes=("no", "yes")):
    """Return a small data set with numbers, text and missing values."""
    rng = np.random.default_rng(0)
    target = np.array(classes)[np.arange(n) % len(classes)]
    number = rng.normal(size=n) + 1.5 * (target == classes[0])
    number[::9] = np.nan
    colour = np.where(rng.random(n) < 0.3, "red", np.where(target == "no", "b", "c"))
    table = pd.DataFrame({"number": number, "colour": colour.astype(object)})
    table.loc[4, "colour"] = None
    return DataSet("mixed", table, target)


def timeless(results):
    kept = [name for name in COLUMNS if name not in TIMES]
    return [{name: row[name] for name in kept} for row in results.rows]


# ------------------------------------------------------------------------------ results


def test_rows_have_every_field_and_folds_are_those_of_scikit_learn():
    data = mixed()
    results = sy.compare("NB", data, folds=5, seed=3, repeats=2, n_jobs=1)
    assert len(results) == 10
    assert all(set(row) == set(COLUMNS) for row in results.rows)
    expected = [
        score
        for repeat in range(2)
        for score in cross_val_score(
            sy.method("NB"),
            data.table,
            data.target,
            cv=StratifiedKFold(5, shuffle=True, random_state=3 + repeat),
        )
    ]
    found = results.values("accuracy", "mixed", "NB")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert results.matrix("accuracy")[0, 0] == pytest.approx(np.mean(expected))
    first = results.rows[0]
    assert (first["protocol"], first["status"]) == ("honest", "ok")
    assert (first["n_train"], first["n_test"], first["n_classes"]) == (48, 12, 2)
    assert first["fit_seconds"] > 0.0


@pytest.mark.slow
def test_number_of_processes_does_not_matter_even_if_one_of_them_dies(tmp_path):
    # 61 rows in three folds: one fold has 40 training rows, the others 41.
    data = [mixed(61), "sklearn:iris"]
    methods = ["NB", ("bad", Failing(41)), ("deadly", Failing(40, deadly=True))]
    path = tmp_path / "r.jsonl"
    one = compare(methods[:2], data, folds=3, n_jobs=1)
    two = compare(methods, data, folds=3, n_jobs=2, journal=path)
    assert two.datasets == ["mixed", "iris"]
    assert two.methods == ["NB", "bad", "deadly"]
    assert timeless(two.select(method=["NB", "bad"])) == timeless(one)
    (died,) = two.select(method="deadly").failures
    assert (died["dataset"], died["fold"]) == ("mixed", 0)
    assert "process died" in died["error"]
    assert timeless(Results.from_journal(path)) == timeless(two)


class Brittle(Failing):
    """Ends the process when it is fitted again to as many rows."""

    def __init__(self, folder=None):
        self.folder = folder

    def fit(self, X, y):
        mark = Path(self.folder) / f"{len(X)}"
        if mark.exists():
            os._exit(1)
        mark.touch()
        self.classes_ = np.unique(y)
        return self


class Late(Brittle):
    """Ends the process at 30 rows, when the brittle ones have long been fitted."""

    def fit(self, X, y):
        if len(X) == 30:
            while len(list(Path(self.folder).iterdir())) < 2:
                time.sleep(0.01)
            time.sleep(0.5)
            os._exit(1)
        self.classes_ = np.unique(y)
        return self


@pytest.mark.slow
def test_a_fit_that_is_in_the_journal_is_not_run_again_when_a_worker_dies(tmp_path):
    # 61 rows in two folds: 30 training rows, then 31.
    marks = tmp_path / "marks"
    marks.mkdir()
    methods = [("once", Brittle(marks)), ("deadly", Late(marks))]
    path = tmp_path / "r.jsonl"
    results = compare(methods, mixed(61), folds=2, n_jobs=2, journal=path)
    assert [row["method"] for row in results.failures] == ["deadly"]
    assert timeless(Results.from_journal(path)) == timeless(results)


def test_failing_fit_is_a_row_with_its_error_and_the_others_go_on():
    results = compare(["NB", ("bad", Failing(40))], mixed(), folds=3, n_jobs=1)
    assert [row["method"] for row in results.failures] == ["bad"] * 3
    bad = results.failures[0]
    assert bad["error"] == "RuntimeError: no luck"
    assert bad["accuracy"] is None and bad["n_train"] == 40
    assert np.isnan(results.values("accuracy", "mixed", "bad")).all()
    accuracy = results.matrix("accuracy")[0]
    assert accuracy[0] > 0.5 and np.isnan(accuracy[1])
    assert "6 fits" in repr(results) and "3 failed" in repr(results)
    assert "-" in results.table()


def test_classifier_without_probabilities_has_no_log_loss():
    results = compare("SVM", mixed(), folds=3, n_jobs=1)
    row = results.rows[0]
    assert row["log_loss"] is row["brier"] is row["ece"] is None
    assert 0.5 < row["auc"] <= 1.0


def test_small_class_draws_a_warning_and_is_counted_where_training_lacks_it():
    data = mixed()
    target = data.target.copy().astype(object)
    target[0] = "rare"
    data = DataSet("mixed", data.table, target.astype(str))
    with pytest.warns(UserWarning, match=r"1 class of fewer than 4 rows \(rare\)"):
        results = compare(["NB", "SVM"], data, folds=4, n_jobs=1)
    assert not results.failures
    unseen = results.values("n_unseen_class", "mixed", "NB")
    assert sorted(unseen) == [0, 0, 0, 1]
    assert np.isfinite(results.matrix("log_loss")[0, 0])


def test_rows_are_split_without_classes_where_all_are_small():
    target = np.repeat(["a", "b", "c"], 3)
    splits = split_rows(target, 4, seed=1)
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(9))


def test_facts_of_fitted_classifiers_are_kept():
    results = compare(["RNB", "WANBIA-CLL"], "sklearn:iris", folds=3, n_jobs=1)
    rnb, wanbia = results.rows[:2]
    assert 0.0 <= rnb["extra"]["alpha"] <= 1.0
    assert 0.0 < wanbia["extra"]["selected"] <= 1.0 and wanbia["extra"]["n_iter"] > 0


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_baselines_take_tables_with_text_and_missing_values(name):
    results = compare(name, mixed(200), folds=2, n_jobs=1)
    assert results.methods == [name] and not results.failures
    assert results.matrix("accuracy")[0, 0] > 0.6


def test_khiops_finds_its_program_where_the_environment_is_not_active(monkeypatch):
    stub = SimpleNamespace(KhiopsClassifier=dict)
    monkeypatch.setitem(sys.modules, "khiops", SimpleNamespace(sklearn=stub))
    monkeypatch.setitem(sys.modules, "khiops.sklearn", stub)
    monkeypatch.setenv("PATH", "elsewhere")
    for _ in range(2):
        assert baselines._khiops(n_trees=0) == {"n_trees": 0}
        own = str(Path(sys.executable).parent)
        assert os.environ["PATH"] == os.pathsep.join([own, "elsewhere"])


def test_svm_is_a_baseline_that_has_an_acronym():
    assert sy.method("svm", C=0.5)[-1].C == 0.5
    with pytest.raises(ParameterError, match="SVM cannot be made like this"):
        sy.method("SVM", alpha=1.0)


def test_threads_and_seeds_are_set_in_every_part():
    pipeline = make_pipeline(RandomForestClassifier(n_estimators=3, n_jobs=2))
    one, other = (
        compare(("forest", pipeline), "sklearn:iris", folds=2, n_jobs=1)
        for _ in range(2)
    )
    assert timeless(one) == timeless(other) and not one.failures
    assert pipeline[-1].random_state is None and pipeline[-1].n_jobs == 2


class Pooled(Failing):
    """Records how many threads libraries may use while it is fitted."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_iter_ = max(pool["num_threads"] for pool in threadpool_info())
        return self


def test_libraries_use_one_thread_in_every_fit():
    with threadpool_limits(limits=2):
        results = compare(("pooled", Pooled()), "sklearn:iris", folds=2, n_jobs=1)
        assert max(pool["num_threads"] for pool in threadpool_info()) == 2
    assert [row["extra"]["n_iter"] for row in results.rows] == [1, 1]


def test_warnings_of_fits_are_counted_not_shown():
    table = mixed().table.assign(id=[f"row {i}" for i in range(60)])
    results = compare("NB", DataSet("d", table, mixed().target), folds=2, n_jobs=1)
    assert [row["warnings"] for row in results.rows] == [1, 1]


# ---------------------------------------------------------------------------- protocols


def test_both_protocols_are_run_side_by_side_and_the_published_one_sees_all_rows():
    data = load_dataset("sklearn:wine")
    results = compare(
        "NB", data, protocol=["honest", "published-rnb"], folds=5, n_jobs=1
    )
    assert results.protocols == ["honest", "published-rnb"]
    whole = discretize_whole(data.table, data.target)
    expected = cross_val_score(
        sy.method("NB", cardinality="declared"),
        whole,
        data.target,
        cv=StratifiedKFold(5, shuffle=True, random_state=1),
    )
    found = results.values("accuracy", "wine", "NB", "published-rnb")
    np.testing.assert_allclose(found, expected)
    with pytest.raises(ParameterError, match="several protocols: name one"):
        results.matrix("accuracy")
    honest = results.select(protocol="honest")
    assert honest.protocols == ["honest"] and honest.matrix("accuracy").shape == (1, 1)


def test_gaussian_methods_keep_their_numbers_where_others_get_bins():
    prepared = PROTOCOLS["published-cwnb"].prepare(mixed())
    assert prepared.table_for(sy.method("GNB"))["number"].dtype == np.float64
    assert not prepared.numbers.isna().any().any()
    assert prepared.numbers["colour"][4] in {"b", "c", "red"}
    bins = prepared.table_for(sy.method("NB"))["number"]
    assert len(bins.cat.categories) == 10


def test_exponential_protocol_makes_every_method_gaussian_and_pairs_classes():
    protocol = PROTOCOLS["published-exponential"]
    for name in ("NB", "WANBIA-CLL"):
        clf = protocol.adapt(sy.method(name), 2)
        assert (clf.numeric, clf.variance) == ("gaussian", "sample")
        assert (clf.smoothing, clf.prior) == ("laplace", "frequency")
    assert protocol.adapt(sy.method("NB"), 2).solver == "fixed"
    assert protocol.adapt(sy.method("LNB"), 3).multiclass == "one-vs-one"
    assert protocol.adapt(sy.method("LNB"), 2).multiclass == "native"
    other = LogisticRegression()
    assert protocol.adapt(other, 3).get_params() == other.get_params()
    results = compare(
        ["NB", "LNB"], "sklearn:iris", protocol=protocol.name, folds=3, n_jobs=1
    )
    assert not results.failures and (results.matrix("accuracy") > 0.9).all()


# ------------------------------------------------------------------------------ journal


def test_finished_run_is_read_not_run_again(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    first = compare("NB", mixed(), folds=3, journal=path, n_jobs=1)
    size = path.stat().st_size
    again = compare("NB", mixed(), folds=3, journal=path, n_jobs=1)
    assert again.rows == first.rows and path.stat().st_size == size


def test_part_of_a_run_is_completed_to_the_same_table(tmp_path):
    path = tmp_path / "r.jsonl"
    methods = ["NB", "LogisticRegression"]
    whole = compare(methods, mixed(), folds=3, repeats=2, n_jobs=1)
    compare(methods, mixed(), folds=3, repeats=2, journal=path, n_jobs=1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]) + lines[6][:50])
    resumed = compare(methods, mixed(), folds=3, repeats=2, journal=path, n_jobs=1)
    assert timeless(resumed) == timeless(whole)


def test_errors_stay_unless_they_are_to_be_tried_again(tmp_path):
    path = tmp_path / "r.jsonl"
    flag = tmp_path / "flag"
    clf = ("sometimes", Sometimes(str(flag)))
    assert len(compare(clf, mixed(), folds=2, journal=path, n_jobs=1).failures) == 2
    flag.touch()
    assert len(compare(clf, mixed(), folds=2, journal=path, n_jobs=1).failures) == 2
    retried = compare(clf, mixed(), folds=2, journal=path, n_jobs=1, retry_errors=True)
    assert not retried.failures and len(retried) == 2


class Sometimes(Failing):
    def __init__(self, flag=""):
        self.flag = flag
        self.rows = 0 if Path(flag).exists() else None
        self.deadly = False

    def get_params(self, deep=True):
        return {"flag": self.flag}


@pytest.mark.parametrize(
    "change",
    [{"seed": 2}, {"folds": 4}, {"repeats": 2}, {"protocol": "published-rnb"}],
)
def test_result_file_of_other_settings_is_refused(tmp_path, change):
    path = tmp_path / "r.jsonl"
    settings = {"folds": 3, "journal": path, "n_jobs": 1}
    compare("NB", mixed(), **settings)
    with pytest.raises(JournalError, match="other settings"):
        compare("NB", mixed(), **{**settings, **change})
    with pytest.raises(JournalError, match=r"methods\['RNB'\] is new"):
        compare("RNB", mixed(), **settings)
    with pytest.raises(JournalError, match="fingerprint"):
        data = mixed()
        compare("NB", DataSet("mixed", data.table, data.target[::-1]), **settings)


def test_full_disk_ends_the_run_and_keeps_what_was_written(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    compare("NB", mixed(), folds=2, journal=path, n_jobs=1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))

    def full_disk(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(journals.os, "write", full_disk)
        with pytest.raises(OSError, match="cannot be written"):
            compare("NB", mixed(), folds=2, journal=path, n_jobs=1)
    assert path.read_bytes() == b"".join(lines[:2])
    assert len(compare("NB", mixed(), folds=2, journal=path, n_jobs=1)) == 2


# ----------------------------------------------------------------------------- settings


def test_methods_may_be_given_in_every_form():
    found = resolve_methods(
        ["nb", "wanbia", ("mine", DummyClassifier()), LogisticRegression(), "svm"]
    )
    assert list(found) == ["NB", "wanbia", "mine", "LogisticRegression", "SVM"]
    assert list(resolve_methods({"a": DummyClassifier()})) == ["a"]
    assert list(resolve_methods(("one", DummyClassifier()))) == ["one"]
    assert list(resolve_methods(("NB", "RNB"))) == ["NB", "RNB"]
    every = resolve_methods("all")
    assert list(every) == [entry.acronym for entry in sy.methods()]


@pytest.mark.parametrize(
    "methods, says",
    [
        ("RBN", r"no method 'RBN'\. Did you mean .*Baselines: SVM"),
        (["NB", "nb"], "Two methods are named 'NB'"),
        ([("x", 3)], "3 is not a classifier"),
        ([], "No method is given"),
    ],
)
def test_methods_that_cannot_be_are_refused(methods, says):
    with pytest.raises(ParameterError, match=says):
        resolve_methods(methods)


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"folds": 1}, "'folds' must be a whole number of at least 2"),
        ({"repeats": 0}, "'repeats'"),
        ({"seed": -1}, "'seed'"),
        ({"folds": 2.5}, "'folds'"),
        ({"protocol": "onest"}, "Did you mean 'honest'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says):
    with pytest.raises(ParameterError, match=says):
        compare("NB", mixed(), n_jobs=1, **settings)


def test_data_that_cannot_be_are_refused_before_anything_runs():
    one = DataSet("one", mixed().table, np.repeat("a", 60))
    with pytest.raises(TableError, match="has 1 class"):
        compare("NB", [mixed(), one], n_jobs=1)
    with pytest.raises(TableError, match="fewer than 100 folds"):
        compare("NB", mixed(), folds=100, n_jobs=1)
    with pytest.raises(ParameterError, match="Two data sets are named"):
        compare("NB", [mixed(), mixed()], n_jobs=1)
    with pytest.raises(ParameterError, match="No data set"):
        compare("NB", [], n_jobs=1)


def test_table_and_labels_may_be_given_as_a_triple():
    data = mixed()
    triple = ("mixed", data.table.to_numpy(), list(data.target))
    results = compare("NB", triple, folds=2, n_jobs=1)
    assert results.datasets == ["mixed"] and not results.failures


def test_csv_file_is_compared_by_its_path(tmp_path):
    data = mixed()
    path = tmp_path / "file.csv"
    data.table.assign(answer=data.target).to_csv(path, index=False)
    results = compare("NB", path, target="answer", folds=2, n_jobs=1)
    assert results.datasets == ["file"]


# ------------------------------------------------------------------------------ results


def test_results_refuse_unknown_names_and_say_what_there_is(tmp_path):
    results = compare("NB", mixed(), folds=2, n_jobs=1)
    with pytest.raises(ParameterError, match="no metric 'accuracyy'"):
        results.matrix("accuracyy")
    with pytest.raises(ParameterError, match="no fits of 'RNB' on 'mixed'"):
        results.values("accuracy", "mixed", "RNB")
    with pytest.raises(ParameterError, match="no field 'color'"):
        results.select(color=1)
    with pytest.raises(ParameterError, match="no protocol 'x'"):
        results.matrix("accuracy", "x")
    results.to_csv(tmp_path / "rows.csv")
    table = pd.read_csv(tmp_path / "rows.csv")
    assert list(table.columns) == list(COLUMNS) and len(table) == 2


# ----------------------------------------------------------------------------- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_drawn_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    compare("NB", mixed(), folds=2, n_jobs=1, progress=True)
    assert "Comparing" in terminal.getvalue()
    assert "2 of 2 fits" in terminal.getvalue()


def test_progress_is_silent_where_there_is_no_terminal(capsys):
    compare("NB", mixed(), folds=2, n_jobs=1, progress=True)
    assert capsys.readouterr().err == ""


def test_all_methods_can_be_named_among_others():
    every = list(resolve_methods("all"))
    assert list(resolve_methods(["all", "SVM"])) == [*every, "SVM"]
