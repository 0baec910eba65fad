"""Any small table and any settings: a model, or an error that was meant."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from steelyard import WeightedNB
from steelyard.exceptions import ParameterError, TableError
from steelyard.losses import LOSSES
from steelyard.weighting import WEIGHTINGS

CELLS = st.one_of(
    st.none(), st.sampled_from(["a", "b", "c"]), st.sampled_from(["é", "", "b"])
)
NUMBERS = st.one_of(
    st.just(float("nan")),
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 1e-12, 1e12]),
)


@st.composite
def tables(draw):
    n = draw(st.integers(2, 14))
    columns = [
        draw(st.lists(cells, min_size=n, max_size=n))
        for cells in draw(
            st.lists(st.sampled_from([CELLS, NUMBERS]), min_size=1, max_size=3)
        )
    ]
    X = np.empty((n, len(columns)), object)
    for j, column in enumerate(columns):
        X[:, j] = column
    y = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    u = draw(
        st.one_of(
            st.none(),
            st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n),
        )
    )
    return X, y, u


CHOICES = st.fixed_dictionaries(
    {
        "weighting": st.sampled_from(list(WEIGHTINGS)),
        "loss": st.sampled_from(list(LOSSES)),
        "bounds": st.sampled_from([(0, 1), (0, None), None]),
        "lam": st.sampled_from([0.0, 1.0]),
        "numeric": st.sampled_from(["mdl", "gaussian", "gaussian-weka", "equal-width"]),
        "missing": st.sampled_from(["skip", "impute", "value"]),
        "prior_weight": st.booleans(),
        "multiclass": st.sampled_from(["native", "one-vs-one"]),
        "solver": st.sampled_from(["auto", "newton", "lbfgs", "published", "fixed"]),
    }
)


@pytest.mark.slow
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(table=tables(), choice=CHOICES)
def test_any_table_gives_probabilities_or_an_error_that_was_meant(table, choice):
    X, y, u = table
    clf = WeightedNB(max_iter=100, **choice)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            clf.fit(X, y, u)
        except (ParameterError, TableError):
            return
        p = clf.predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    assert np.isfinite(clf.objective_)
    assert set(clf.predict(X)) <= set(clf.classes_)
