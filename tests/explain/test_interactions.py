"""Interactions in explanations: shown as such, split on request, tabulated."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.explain import explain_local
from steelyard.explain.page import page_data
from steelyard.explain.reasons import reasons


def crossed(n=400, n_classes=2, seed=0):
    """Two numbers and a category; the class is a matter of two of them together."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": random.normal(size=n),
            "mass": random.normal(size=n),
            "kind": random.choice(["old", "new", "odd"], n),
        }
    )
    is_odd = (X["size"] > 0) ^ (X["mass"] > 0)
    y = np.where(is_odd, "out", "in").astype(object)
    y[random.random(n) < 0.05] = "in"
    if n_classes == 3:
        y[(X["kind"] == "odd") & (X["mass"] > 1)] = "over"
    return X, y


def fit(X, y, **settings):
    interactions = [("size", "mass"), ("kind", "mass")]
    return sy.ShrinkageNB(
        strength=(2.5, 10.0, 2.5), interactions=interactions, **settings
    ).fit(X, y)


@pytest.fixture(scope="module")
def two_classes():
    X, y = crossed()
    return fit(X, y), X, y


@pytest.fixture(scope="module")
def three_classes():
    X, y = crossed(n_classes=3)
    return fit(X, y), X, y


# ------------------------------------------------------------------------ single rows


def test_a_interaction_is_an_item_of_evidence_with_both_values(two_classes):
    clf, X, _ = two_classes
    found = clf.explain_local(X[:1])
    items = {item.attribute: item for item in found.evidence().items}
    assert set(items) == {"size", "mass", "kind", "size × mass", "kind × mass"}
    kind, mass = items["kind × mass"].value.split(" & ")
    assert kind == X["kind"][0]
    low, high = mass.strip("(]").split(", ") if "," in mass else (None, None)
    if low is not None:
        assert float(low) < X["mass"][0] <= float(high) + 1e-6


def test_split_interactions_give_half_to_each_column_and_the_sums_stay(three_classes):
    clf, X, _ = three_classes
    found = clf.explain_local(X[:20])
    split = found.split_interactions()
    assert split.attributes == ["size", "mass", "kind"]
    plain = found.contributions
    expected = np.stack(
        [
            plain[:, 0] + plain[:, 3] / 2,
            plain[:, 1] + plain[:, 3] / 2 + plain[:, 4] / 2,
            plain[:, 2] + plain[:, 4] / 2,
        ],
        axis=1,
    )
    np.testing.assert_allclose(split.contributions, expected, rtol=0, atol=1e-12)
    total = split.base + split.contributions.sum(axis=1)
    np.testing.assert_allclose(
        total, clf.predict_joint_log_proba(X[:20]), rtol=0, atol=1e-12
    )
    for row in range(3):
        a, b = (e.evidence(row) for e in (found, split))
        assert a.total == pytest.approx(b.total, abs=1e-12)
        assert not any("×" in item.attribute for item in b.items)


def test_the_setting_is_the_same_as_the_method(two_classes):
    clf, X, _ = two_classes
    by_setting = explain_local(clf, X[:5], interactions="split")
    by_method = explain_local(clf, X[:5]).split_interactions()
    assert by_setting.to_dict() == by_method.to_dict()
    assert by_method.split_interactions() is by_method
    with pytest.raises(ParameterError, match="'shown' or 'split'"):
        explain_local(clf, X[:5], interactions="halved")


def test_a_model_without_interactions_is_split_as_it_is(two_classes):
    _, X, y = two_classes
    found = sy.NaiveBayes().fit(X, y).explain_local(X[:2])
    assert found.split_interactions() is found


def test_split_interactions_go_on_to_pictures_and_counterfactuals(two_classes):
    clf, X, _ = two_classes
    found = clf.explain_local(X[:1])
    split = found.split_interactions()
    assert split.counterfactual().to_dict() == found.counterfactual().to_dict()
    json.dumps(split.to_dict(), allow_nan=False)


def test_a_interaction_with_an_unknown_side_says_nothing(two_classes):
    clf, _, _ = two_classes
    row = pd.DataFrame({"size": [np.nan], "mass": [1.0], "kind": ["never seen"]})
    found = clf.explain_local(row)
    np.testing.assert_array_equal(found.contributions[0, [0, 2, 3, 4]], 0.0)
    assert found.missing[0].tolist() == [True, False, False, True, False]
    assert "(unknown)" in found.values[0][3]


def test_reasons_have_interactions_or_their_halves(two_classes):
    clf, X, _ = two_classes
    shown, split = (
        reasons(clf, X[:30], 5),
        reasons(clf, X[:30], 5, interactions="split"),
    )
    assert any("×" in reason.attribute for line in shown for reason in line)
    assert not any("×" in reason.attribute for line in split for reason in line)
    for a, b in zip(shown, split, strict=True):
        assert sum(r.amount for r in a) == pytest.approx(sum(r.amount for r in b))


def test_a_counterfactual_changes_columns_and_does_win(two_classes):
    clf, X, _ = two_classes
    found = clf.explain_local(X[:10])
    for row in range(10):
        change = found.counterfactual(row, fixed=["kind"])
        assert change.found
        assert {c.attribute for c in change.changes} <= {"size", "mass"}
        cells = X[row : row + 1].copy()
        for c in change.changes:
            cells[c.attribute] = float(c.after)
        assert clf.predict(cells)[0] == change.target


# ---------------------------------------------------------------------- the whole model


def test_a_interaction_has_a_table_of_its_cells(three_classes):
    clf, X, _ = three_classes
    table = clf.explain_global().interaction(("mass", "kind"))
    assert table.name == "kind × mass"
    kind, mass = table.sides
    assert (kind.name, sorted(kind.labels)) == ("kind", ["new", "odd", "old"])
    assert len(mass.labels) == len(mass.edges) + 1 == mass.n_intervals
    assert table.cells.shape == (3, len(mass.labels), 3)
    bins = np.searchsorted(mass.edges, X["mass"], side="left")
    for a, value in enumerate(kind.labels):
        for b in range(len(mass.labels)):
            rows = (X["kind"] == value) & (bins == b)
            assert table.cell_counts[a, b] == rows.sum()
            if rows.any():
                own = clf.explain_local(X[rows][:1])
                t = own.contributions[0, own.attributes.index("kind × mass")]
                others = (t.sum() - t) / 2
                expected = (t - others) * own.link_scale
                np.testing.assert_allclose(table.cells[a, b], expected, atol=1e-12)


def test_importance_of_a_interaction_is_that_over_the_training_rows(two_classes):
    clf, X, _ = two_classes
    from_counts, from_rows = clf.explain_global(), clf.explain_global(X)
    np.testing.assert_allclose(
        from_counts.importance[3:], from_rows.importance[3:], rtol=1e-10
    )


def test_text_counts_interactions_and_lists_the_cells_that_say_most(two_classes):
    clf, _, _ = two_classes
    whole = clf.explain_global()
    assert "3 columns and 2 interactions" in repr(whole)
    table = whole.interaction("size × mass")
    lines = repr(table).splitlines()
    assert lines[1].split() == ["size", "mass", "rows", "for", "out", "±"]
    assert len(lines) == 3 + min(12, table.cells[:, :, 0].size)
    loudness = np.abs(table.cells[:, :, 1]) * table.cell_counts
    a, b = np.unravel_index(np.argmax(loudness), loudness.shape)
    assert table.sides[0].labels[a] in lines[3]
    assert table.sides[1].labels[b] in lines[3]


def test_interactions_are_found_by_name_columns_or_place(two_classes):
    whole = two_classes[0].explain_global()
    first = whole.interaction()
    assert first.importance.mean() == whole.importance[3:].max()
    assert whole.interaction("kind × mass") is whole.interaction(("kind", "mass"))
    for wrong in ("size", 2, ("size", "kind")):
        with pytest.raises(ParameterError, match="Interactions: "):
            whole.interaction(wrong)
    with pytest.raises(ParameterError, match="not an interaction"):
        _ = whole.table("size").cells


def test_a_saved_model_is_explained_alike(three_classes, tmp_path):
    clf, X, _ = three_classes
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    assert again.explain_global().to_dict() == clf.explain_global().to_dict()
    rows = again.explain_local(X[:3]).to_dict()
    assert rows == clf.explain_local(X[:3]).to_dict()
    sides = again.explain_global().to_dict()["tables"][3]["sides"]
    assert [side["name"] for side in sides] == ["size", "mass"]


# ------------------------------------------------------------- curves in a few lines


def test_many_bins_are_merged_with_all_their_rows(two_classes):
    clf, X, _ = two_classes
    whole = clf.explain_global()
    bins = whole.table("size")
    text = repr(bins)
    assert f"means of {len(bins.edges) + 1} bins" in text
    lines = text.splitlines()[3:]
    assert len(lines) == 11 and lines[0].startswith("(missing or unseen)")
    n_rows = [int(re.search(r"(\d+) +[-+]", line)[1]) for line in lines]
    assert sum(n_rows) == len(X)
    first = next(k for k, e in enumerate(bins.edges) if f"≤ {e:.6g} " in lines[1])
    rows = bins.counts[1 : first + 2].sum(axis=1)
    mean = np.average(bins.evidence[1 : first + 2, 1], weights=rows)
    assert float(lines[1].split()[-2]) == pytest.approx(mean, abs=0.006)


# ------------------------------------------------------------------------- the page


def test_the_page_marks_the_cell_of_each_interaction(browser, two_classes, tmp_path):
    clf, X, _ = two_classes
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    assert browser.errors == []

    def hidden(j):
        mark = f"document.querySelector('#attribute-{j} .map .here')"
        return browser.run(f"{mark}.getAttribute('visibility')") == "hidden"

    assert hidden(3) and hidden(4)
    for j, name in enumerate(["size", "mass"]):
        browser.run(
            f"(() => {{ const e = document.getElementById('value-{j}');"
            f"e.value = {json.dumps(str(X[name][0]))};"
            "e.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
    assert not hidden(3) and hidden(4)
    row = X[:1].assign(kind=None)
    found = clf.explain_local(row)
    code = browser.run("document.querySelector('#attribute-3 .map').dataset.code")
    position = found.attributes.index("size × mass")
    assert int(code) == found.cells.codes[0, position]
    shown = browser.run("document.getElementById('value-3').textContent")
    assert shown == found.values[0][3]
    evidence = found.evidence(target="out", against="in").items
    amounts = {item.attribute: item.amount for item in evidence}
    for j, name in enumerate(found.attributes):
        own = browser.run(f"document.getElementById('evidence-{j}').dataset.evidence")
        assert float(own) == pytest.approx(amounts.get(name, 0.0), abs=1e-9)
    title = browser.run(
        f"document.querySelector('#attribute-3 rect[data-code=\"{code}\"] title')"
        ".textContent"
    )
    assert title.startswith(shown)


def test_the_page_knows_cells_without_rows(two_classes):
    clf, _, _ = two_classes
    whole = clf.explain_global()
    for j in (3, 4):
        empty = page_data(clf)["attributes"][j]["empty"]
        counts = whole.tables[j].counts.sum(axis=1)
        assert empty == np.flatnonzero(counts == 0).tolist()


def test_curves_below_sliders_have_the_evidence_of_their_numbers(
    browser, two_classes, tmp_path
):
    clf, _, _ = two_classes
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    text = browser.run(
        "document.querySelector('#attribute-0 .curve polyline').getAttribute('points')"
    )
    points = np.array([pair.split(",") for pair in text.split()], dtype=float)
    own = page_data(clf)["attributes"][0]
    span = own["high"] - own["low"]
    numbers = own["low"] + points[:, 0] / 100 * span
    edges = own["cuts"]
    # Numbers are rounded in the drawing: those at jumps may be on either side.
    apart = np.abs(np.subtract.outer(numbers, edges)).min(axis=1) > 2e-4 * span
    assert apart.sum() > 20
    rows = pd.DataFrame({"size": numbers, "mass": np.nan, "kind": None})[apart]
    parts = clf.explain_local(rows).contributions[:, 0]
    heights = -points[apart, 1]  # up is less in a drawing
    assert np.corrcoef(heights, parts[:, 1] - parts[:, 0])[0, 1] > 0.9999
