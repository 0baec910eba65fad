"""What is told of a fit to somebody who waits."""

import builtins
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import steelyard as sy
from steelyard._common import progress
from steelyard.exceptions import StoppedError

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def without_rich(monkeypatch):
    own = builtins.__import__

    def refused(name, *given, **how):
        if name.startswith("rich"):
            raise ImportError(name)
        return own(name, *given, **how)

    monkeypatch.setattr(builtins, "__import__", refused)


def test_a_long_fit_reports_its_steps_and_passes(without_rich, capsys):
    clf = sy.ShrinkageNB(verbose=True).fit(X, Y)
    *steps, last = capsys.readouterr().err.splitlines()
    assert len(steps) == len(clf.strength_path_)
    assert steps[0].startswith("Fitting ShrinkageNB 1/")
    assert "log-loss of held-out rows" in steps[0]
    assert last.endswith("passes, done")
    n_passes = int(last.split()[-3].replace(",", ""))
    assert n_passes > clf.n_iter_
    assert progress.current is None


def test_it_is_silent_unless_asked(capsys):
    sy.ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X, Y)
    sy.RegularizedNB().fit(X, Y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["WANBIA-CLL", "RNB", "CWNB"])
def test_bars_show_passes(name, capsys):
    sy.method(name, verbose=True).fit(X, Y)
    assert "passes" in capsys.readouterr().err


def test_a_fit_that_fails_ends_the_watch(capsys):
    with pytest.raises(RuntimeError), progress.watching("Fitting", True):
        # A bar within a bar is not drawn, but its steps are told.
        with progress.progress("trees", 3, True) as advance:
            advance("one")
        assert progress.current.n_steps == 1
        raise RuntimeError
    assert progress.current is None


# ------------------------------------------------------------------- a function is told


def test_a_listener_gets_passes_and_the_time_left():
    told = []
    with sy.watch(told.append):
        clf = sy.method("CAVWNB").fit(X, Y)
    assert {at.step for at in told} == {"fit"}
    assert [at.n_passes for at in told] == list(range(1, len(told) + 1))
    assert [at.rows for at in told] == [150 * (k + 1) for k in range(len(told))]
    assert told[-1].objective == pytest.approx(clf.objective_, rel=1e-6)
    known = [at for at in told if at.expected_passes is not None]
    assert known and all(at.expected_passes > at.n_passes for at in known)
    assert all(at.seconds_left >= 0 for at in known)
    assert all(a.seconds <= b.seconds for a, b in pairwise(told))
    assert progress.current is None


def test_a_listener_gets_readings_searches_and_passes(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    told = []
    with sy.watch(told.append):
        sy.ShrinkageNB().fit(sy.scan([frame, frame]), "y")
    steps = list(dict.fromkeys(at.step for at in told))
    assert steps == ["copy", "read", "fit", "search"]
    assert max(at.rows for at in told if at.step == "read") == 300
    assert "log-loss" in next(at for at in told if at.step == "search").note


@pytest.mark.parametrize("name", ["WANBIA-CLL", "SHNB", "RNB", "SBC", "DEAWNB"])
def test_a_function_that_returns_true_stops_the_fit(name):
    clf = sy.method(name).fit(X[:100], Y[:100])
    before = clf.predict_proba(X)
    with pytest.raises(StoppedError, match="as it was"), sy.watch(lambda _: True):
        clf.fit(X, Y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    assert progress.current is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_of_the_function_ends_the_fit(error):
    def fails(at):
        raise error

    clf = sy.RegularizedNB()
    with pytest.raises(error), sy.watch(fails):
        clf.fit(X, Y)
    assert not hasattr(clf, "model_")


def test_other_answers_go_on_and_several_may_listen(capsys):
    first, second = [], []
    with sy.watch(lambda at: first.append(at) or 1), sy.watch(second.append):
        sy.WeightedNB(verbose=True).fit(X, Y)
    assert first == second and first
    assert "passes" in capsys.readouterr().err
    with pytest.raises(TypeError, match="takes a function, not str"), sy.watch("me"):
        pass


def test_bars_show_readings_and_time_left(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    with progress.watching("Fitting", True):
        sy.method("CAVWNB").fit(sy.scan([frame, frame]), "y")
    shown = capsys.readouterr().err
    assert "passes" in shown and "Fitting" in shown
