"""Every method, missing mode and number of classes, in every engine."""

import numpy as np
import pytest

import steelyard as sy
from steelyard import export

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


def test_node(case, run_node, tmp_path):
    clf, X, proba, labels = case
    (tmp_path / "model.js").write_text(export.to_javascript(clf), encoding="ascii")
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    code = (
        "const { score, predict } = require('./model.js');"
        "answer([data.map((row) => Object.values(score(row))), data.map(predict)]);"
    )
    found, said = run_node(code, rows)
    assert said == labels.tolist()
    # Objects in JavaScript have names that are numbers first.
    classes = sorted(clf.classes_.tolist(), key=lambda name: name != "0")
    order = [clf.classes_.tolist().index(name) for name in classes]
    np.testing.assert_allclose(found, proba[:, order], rtol=0, atol=1e-12)
