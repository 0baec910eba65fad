"""Maps of interactions."""

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.displays import (
    InteractionHeatmapDisplay,
    NomogramDisplay,
    ValueCurveDisplay,
)
from steelyard.displays.interaction_maps import short_numbers
from steelyard.exceptions import ParameterError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

LONG = "a rather long name of a column that has $signs$"


def crossed(n_classes, n=300):
    """Numbers that go together, so that some cells have no rows, and categories."""
    random = np.random.default_rng(1)
    size = random.normal(170, 10, n)
    X = pd.DataFrame(
        {
            "size": size,
            LONG: 1e4 * np.exp((size - 170) / 20 + 0.3 * random.normal(size=n)),
            "kind": random.choice(
                ["one", "the second of $all$ kinds", "three", "four"], n
            ),
        }
    )
    y = (X["size"] > 170).astype(int) + (X["kind"] == "one") * random.integers(0, 2, n)
    y = np.where(random.random(n) < 0.4, random.integers(0, n_classes, n), y)
    names = np.array([f"class {c} of a long name" for c in range(n_classes)])
    return X, names[y % n_classes]


@pytest.fixture(scope="module", params=[2, 11])
def fitted(request):
    X, y = crossed(request.param)
    interactions = [("size", LONG), ("kind", "size"), (LONG, "kind")]
    return sy.ShrinkageNB(strength=(2.5, 10.0, 2.5), interactions=interactions).fit(
        X, y
    ), X


def tick_overlaps(ax):
    """Neighbouring tick labels that lie on each other, along either axis."""
    renderer = ax.figure.canvas.get_renderer()
    found = []
    for axis in (ax.xaxis, ax.yaxis):
        texts = [t for t in axis.get_ticklabels() if t.get_text() and t.get_visible()]
        boxes = [t.get_window_extent(renderer) for t in texts]
        for a in range(len(boxes) - 1):
            if boxes[a].overlaps(boxes[a + 1]):
                found.append((texts[a].get_text(), texts[a + 1].get_text()))
    return found


@pytest.mark.parametrize("interaction", [0, 1, 2])
def test_a_map_has_the_evidence_of_the_cells_and_hatches_those_without_rows(
    fitted, interaction
):
    clf, _ = fitted
    display = InteractionHeatmapDisplay.from_estimator(clf, interaction)
    ax, table = display.ax_, display.table
    display.figure_.draw_without_rendering()
    importance = np.abs(table.cells).mean(axis=(0, 1))
    c = 1 if len(clf.classes_) == 2 else int(importance.argmax())
    mesh = ax.collections[0]
    shown = mesh.get_array().reshape(table.cells.shape[:2])
    np.testing.assert_allclose(shown, table.cells[:, :, c])
    low, high = mesh.get_clim()
    assert low == -high and high >= np.abs(shown).max()
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert len(hatched) == (table.cell_counts == 0).sum()
    assert tick_overlaps(ax) == []


def test_cut_points_are_between_cells_and_values_beside_them(fitted):
    clf, _ = fitted
    display = InteractionHeatmapDisplay.from_estimator(clf, ("kind", "size"))
    kind, size = display.table.sides
    assert display.ax_.get_yticks().tolist() == [
        k + 0.5 for k in range(len(kind.labels))
    ]
    assert display.ax_.get_xticks().tolist() == list(range(1, len(size.labels)))
    texts = [t.get_text() for t in display.ax_.get_xticklabels()]
    assert texts == short_numbers(size.edges)
    assert display.ax_.get_ylabel() == kind.name


def test_a_map_goes_into_axes_that_are_given_and_speaks_for_a_class(fitted):
    clf, _ = fitted
    _, ax = plt.subplots()
    asked = clf.classes_[0]
    only = InteractionHeatmapDisplay.from_estimator(clf, 0, target=asked, ax=ax)
    assert only.ax_ is ax and len(ax.collections) == 1
    shown = only.ax_.collections[0].get_array().ravel()
    np.testing.assert_allclose(shown, only.table.cells[:, :, 0].ravel())


def test_a_nomogram_has_lines_for_interactions(fitted):
    clf, X = fitted
    display = NomogramDisplay.from_estimator(clf, row=X[:1])
    names = [t.get_text() for t in display.ax_.get_yticklabels()]
    assert sum("×" in name for name in names) == 3
    with pytest.raises(ParameterError, match="other columns"):
        clf.explain_global().plot(row=clf.explain_local(X[:1]).split_interactions())


def test_other_pictures_take_models_with_interactions(fitted):
    clf, X = fitted
    total = clf.explain_local(X).evidence(0).total
    for explanation in (
        clf.explain_local(X),
        clf.explain_local(X).split_interactions(),
    ):
        display = explanation.plot()
        assert display.ax_.patches[-1].get_width() == pytest.approx(total, abs=1e-9)
    with pytest.raises(ParameterError, match="InteractionHeatmapDisplay"):
        ValueCurveDisplay.from_estimator(clf, 3)
    with pytest.raises(ParameterError, match="ValueCurveDisplay"):
        InteractionHeatmapDisplay(clf.explain_global().table("size")).plot()


def test_curves_end_near_the_rows(fitted):
    clf, X = fitted
    display = ValueCurveDisplay.from_estimator(clf, LONG)
    low, high = display.ax_.get_xlim()
    span = np.ptp(X[LONG])
    assert X[LONG].min() - 0.15 * span < low < high < X[LONG].max() + 0.15 * span


def test_a_model_without_interactions_says_so(fitted):
    _, X = fitted
    clf = sy.NaiveBayes().fit(X, np.arange(len(X)) % 2)
    with pytest.raises(ParameterError, match="none was kept"):
        InteractionHeatmapDisplay.from_estimator(clf)
