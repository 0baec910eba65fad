"""Intervals of learned weights."""

import json

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.explain import explain_weights


def test_bootstrap_is_the_quantiles_of_refits_and_repeats_by_seed(two):
    X, y = two
    clf = sy.WeightedNB(lam=0.1).fit(X, y)
    calls = []
    settings = {"n_bootstrap": 12, "random_state": 3, "level": 0.8}
    found = explain_weights(
        clf, X, y, **settings, progress=lambda *done: calls.append(done)
    )
    again = explain_weights(clf, X, y, **settings)
    name = "attribute_weights_"
    assert calls[-1] == (12, 12) and len(calls) == 12
    assert found.samples[name].shape == (12, 4)
    np.testing.assert_array_equal(found.samples[name], again.samples[name])
    np.testing.assert_allclose(
        found.low[name], np.percentile(found.samples[name], 10, axis=0)
    )
    assert (found.low[name] <= found.high[name]).all()
    assert "80 % intervals by bootstrap" in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_bootstrap_of_one_row_drawn_each_time_has_no_width():
    # Copies of a row are drawn alike: only two kinds of rows, and no randomness left.
    X = pd.DataFrame({"a": ["x", "y"], "b": ["u", "v"]})
    clf = sy.WeightedNB(lam=10.0).fit(X, [0, 1])
    found = explain_weights(clf, X, [0, 1], n_bootstrap=4, random_state=0)
    spread = np.ptp(found.samples["attribute_weights_"], axis=0)
    np.testing.assert_allclose(spread, 0.0, atol=1e-12)


def test_every_class_is_in_every_bootstrap_sample():
    X = pd.DataFrame({"a": list("xyxyxyxyz"), "b": list("uuvvuuvvw")})
    y = [0, 1, 0, 1, 0, 1, 0, 1, 2]
    clf = sy.WeightedNB(lam=1.0).fit(X, y)
    found = explain_weights(clf, X, y, n_bootstrap=10, random_state=0)
    assert found.samples["attribute_weights_"].shape == (10, 2)


@pytest.mark.parametrize(
    ("acronym", "settings", "words"),
    [
        ("NB", {}, "no weights"),
        ("CAVWNB", {}, "weights of values change"),
        ("WANBIA", {"level": 95}, "between 0 and 1"),
        ("WANBIA", {"n_bootstrap": 1}, "at least 2"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_has_no_interval_is_refused(acronym, settings, words, two):
    X, y = two
    clf = sy.method(acronym).fit(X, y)
    with pytest.raises(ParameterError, match=words):
        explain_weights(clf, X, y, **settings)
