"""A compiled loss is used for that loss alone; any other is evaluated in NumPy."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.losses import LOSSES, LogLoss

CASES = [cls for cls in LOSSES.values() if cls().compiled is not None]


def table(n_classes, n=50):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = np.where(rng.random((n, 3)) < 0.5, y[:, None], rng.integers(0, 3, (n, 3)))
    return X.astype(str), y


def fitted(loss, n_classes):
    clf = sy.WeightedNB(loss=loss, bounds=(0, 3), lam=0.1, tol=1e-12, solver="lbfgs")
    return clf.fit(*table(n_classes))


@pytest.mark.parametrize("base", CASES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_subclass_with_its_own_loss_never_uses_the_compiled_form(base, n_classes):
    calls = []

    class Doubled(base):
        def value_and_gradient(self, scores, y, weights):
            calls.append(len(y))
            value, gradient = super().value_and_gradient(scores, y, weights)
            return 2.0 * value, 2.0 * gradient

    assert Doubled().compiled is None
    clf = fitted(Doubled(), n_classes)
    assert calls
    # Twice the loss with twice the penalty has the same minimum, twice as high.
    twice = sy.WeightedNB(
        loss=Doubled(), bounds=(0, 3), lam=0.2, tol=1e-12, solver="lbfgs"
    ).fit(*table(n_classes))
    plain = fitted(base(), n_classes)
    assert twice.objective_ == pytest.approx(2.0 * plain.objective_, rel=1e-6)
    assert clf.objective_ > 1.2 * plain.objective_


@pytest.mark.parametrize("base", CASES, ids=lambda cls: cls.__name__)
def test_a_subclass_that_changes_nothing_keeps_the_compiled_form(base):
    class Same(base):
        pass

    class Grandchild(Same):
        def value_and_gradient(self, scores, y, weights):
            return super().value_and_gradient(scores, y, weights)

    assert Same().compiled == base().compiled is not None
    assert Grandchild().compiled is None
    assert fitted(Same(), 2).objective_ == fitted(base(), 2).objective_
    assert fitted(Grandchild(), 2).objective_ == pytest.approx(
        fitted(base(), 2).objective_, rel=1e-9
    )


def test_a_compiled_form_of_its_own_can_be_declared():
    class Again(LogLoss):
        kernel = LogLoss.kernel

        def value_and_gradient(self, scores, y, weights):
            raise AssertionError("the compiled form is used")

    assert Again().compiled == LogLoss().compiled
    assert fitted(Again(), 3).objective_ == fitted(LogLoss(), 3).objective_
