"""Any small table, any method: every engine gives the model's probabilities."""

import warnings
from copy import copy
from shutil import which

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.exceptions import ParameterError, TableError
from steelyard.export.check import ENGINES
from steelyard.export.sql_dialect import DIALECTS

METHODS = "NB NB-Laplace GNB CFW DWNB RNB CWNB SHNB TreeNB BNB TAN MSE".split()
TEXTS = ["a", "A", "", "it's", 'b "', "\\n", "é☃", "1", "'); --"]
NUMBERS = [0.0, -0.0, 0.1, 0.3, 1.0, 2.5, -7.0, 1e-9, 1e9, 5e-324, np.nan]
COLUMNS = {
    "text": (object, st.sampled_from([*TEXTS, None])),
    "number": (float, st.sampled_from(NUMBERS) | st.floats(-1e6, 1e6)),
    "whole": (int, st.integers(-2, 3) | st.just(2**53 - 1)),
    "flag": (bool, st.booleans()),
}
NAMES = st.text(" '\"\\;.-$éxyz\n", min_size=1, max_size=4)


@st.composite
def cases(draw):
    """A classifier that is to be fitted, a table, and rows to score."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    n, n_queries = draw(st.integers(6, 24)), 8
    table, queries = {}, {}
    for name in names:
        dtype, cells = COLUMNS[draw(st.sampled_from(list(COLUMNS)))]
        column = draw(st.lists(cells, min_size=n, max_size=n))
        rows = draw(st.lists(cells, min_size=n_queries, max_size=n_queries))
        table[name] = pd.Series(column, dtype=dtype)
        queries[name] = pd.Series(rows, dtype=dtype)
    labels = draw(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=4, unique=True))
    y = [labels[k % len(labels)] for k in draw(st.permutations(range(n)))]
    clf = sy.method(draw(st.sampled_from(METHODS)))
    if "missing" in clf.get_params():
        clf.set_params(missing=draw(st.sampled_from(["skip", "value", "impute"])))
    return clf, pd.DataFrame(table), y, pd.DataFrame(queries)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_every_engine_repeats_any_model(case):
    clf, X, y, queries = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clf.fit(X, y)
        except (TableError, ParameterError):
            reject()
    answers = clf.predict_proba(queries)
    sums = clf
    if "unknown" in clf.get_params():
        sums = copy(clf).set_params(unknown="sum")
    programs = [kind for kind, of in (("r", "Rscript"), ("h", "cc")) if which(of)]
    for engine in ("py", "js", *programs, "sqlite", "duckdb"):
        options = {"dialect": engine} if engine in DIALECTS else {}
        labels, found = ENGINES[engine][1](clf, queries, options)
        # Databases add up the known cells, and count the others behind.
        found = np.asarray(found)[:, : len(clf.classes_)]
        adds_up = engine in DIALECTS or engine == "h"
        expected = sums.predict_proba(queries) if adds_up else answers
        np.testing.assert_allclose(
            found, expected, 0, 1e-9 if engine == "r" else 1e-12, err_msg=engine
        )
        # Of classes that only rounding tells apart, either is right.
        chosen = expected[range(len(labels)), np.searchsorted(clf.classes_, labels)]
        assert (chosen >= expected.max(axis=1) - 1e-12).all(), engine
