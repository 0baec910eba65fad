"""What is told of a fit to somebody who waits."""

import builtins

import pytest
from sklearn.datasets import load_iris

import steelyard as sy
from steelyard._common import progress

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def without_rich(monkeypatch):
    own = builtins.__import__

    def refused(name, *given, **how):
        if name.startswith("rich"):
            raise ImportError(name)
        return own(name, *given, **how)

    monkeypatch.setattr(builtins, "__import__", refused)


def test_a_long_fit_tells_its_steps_and_passes(without_rich, capsys):
    clf = sy.ShrinkageNB(verbose=True).fit(X, Y)
    *steps, last = capsys.readouterr().err.splitlines()
    assert len(steps) == len(clf.strength_path_)
    assert steps[0].startswith("Fitting ShrinkageNB 1/")
    assert "log-loss of held-out rows" in steps[0]
    assert last.endswith("passes, done")
    n_passes = int(last.split()[-3].replace(",", ""))
    assert n_passes > clf.n_iter_
    assert progress.watch is None


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
        # A bar within a bar is not drawn.
        with progress.progress("trees", 3, True) as advance:
            advance("one")
        assert progress.watch.n_steps == 0
        raise RuntimeError
    assert progress.watch is None
