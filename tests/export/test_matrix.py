"""Every method, missing mode and number of classes, in every engine."""

import numpy as np
import pytest

import steelyard as sy

NO_PLAN = {"LWNB", "AIWNB-L", "AODE", "WAODE"}
METHODS = [m.acronym for m in sy.methods() if m.acronym not in NO_PLAN]
N_ROWS = 2000


@pytest.fixture(
    scope="module",
    params=[
        (method, missing, n_classes)
        for method in METHODS
        for missing in ("skip", "value", "impute")
        for n_classes in (2, 3, 7)
    ],
    ids=lambda case: "-".join(map(str, case)),
)
def case(request, fitted, hostile_rows):
    """A model, rows, and what it predicts of them."""
    clf = fitted(*request.param)
    X = hostile_rows(clf, N_ROWS, request.param[-1])
    return clf, X, clf.predict_proba(X), clf.predict(X)


def test_python(case):
    clf, X, proba, labels = case
    score = clf.scorer()
    rows = X.astype(object).to_dict("records")
    found = [list(score(row).values()) for row in rows]
    np.testing.assert_allclose(found, proba, rtol=0, atol=1e-12)
    assert [score.predict(row) for row in rows] == labels.tolist()
