"""Every method by its acronym is explained, and becomes a page or says why not."""

import json
import subprocess
import warnings
from importlib.resources import files

import numpy as np
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.explain.page import page_data

NO_PAGE = {"LWNB", "AIWNB-L", "BNB", "AODE", "WAODE"}


@pytest.fixture(scope="module")
def fitted(two):
    """Every method, fitted to a few rows of two classes."""
    X, y = two[0][:80], two[1][:80]
    models = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in sy.methods():
            models[entry.acronym] = sy.method(entry.acronym).fit(X, y)
    return models


@pytest.mark.parametrize("acronym", [entry.acronym for entry in sy.methods()])
def test_every_method_is_explained(acronym, fitted, two):
    clf = fitted[acronym]
    if not hasattr(clf, "explain_local"):
        pytest.skip(f"{acronym} is no naive Bayes")
    rows = two[0][:6]
    found = clf.explain_local(rows)
    np.testing.assert_array_equal(found.probabilities, clf.predict_proba(rows))
    if found.scores is None:
        assert found.parts and found.note.startswith("Not one sum")
    else:
        np.testing.assert_allclose(
            found.scores, clf.predict_joint_log_proba(rows), rtol=0, atol=1e-12
        )
    whole = clf.explain_global()
    assert whole.kind == found.kind
    assert whole.attributes[:4] == list(two[0].columns)
    assert whole.attributes[0] in repr(whole) or whole.kind == "neighbours"
    changed = found.counterfactual()
    assert changed.target in {"ant", "bee"}


def test_the_page_of_every_method_scores_as_it_does(fitted, two, node, tmp_path):
    rows = two[0][:12]
    cells = [
        [None if c is None or c != c else c for c in row]
        for row in rows.astype(object).to_numpy().tolist()
    ]
    pages = {}
    for acronym, clf in fitted.items():
        if not hasattr(clf, "to_html"):
            continue
        if acronym in NO_PAGE:
            with pytest.raises(ParameterError, match="cannot become a page"):
                page_data(clf)
        else:
            pages[acronym] = page_data(clf)
    (tmp_path / "in.json").write_text(json.dumps({"pages": pages, "rows": cells}))
    script = files("steelyard.export") / "assets" / "scoring.js"
    code = (
        f"const s = require({json.dumps(str(script))});"
        "const {pages, rows} = JSON.parse(require('fs').readFileSync('in.json'));"
        "const all = {}; for (const [k, p] of Object.entries(pages))"
        " all[k] = rows.map(r => s.posterior(p.model, r));"
        "console.log(JSON.stringify(all));"
    )
    done = subprocess.run(
        [node, "-e", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for acronym, proba in json.loads(done.stdout).items():
        np.testing.assert_allclose(
            proba,
            fitted[acronym].predict_proba(rows),
            rtol=0,
            atol=1e-9,
            err_msg=acronym,
        )
