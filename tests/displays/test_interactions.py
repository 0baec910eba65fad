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
def test_a_map_has_the_evidence_of_the_cells_in_a_panel_for_each_class(
    fitted, interaction
):
    clf, _ = fitted
    display = InteractionHeatmapDisplay.from_estimator(clf, interaction)
    figure, table = display.figure_, display.table
    figure.draw_without_rendering()
    panels = [ax for ax in figure.axes if ax.get_visible() and ax.collections]
    panels = [ax for ax in panels if ax.get_label() != "<colorbar>"]
    n_classes = len(clf.classes_)
    assert len(panels) == (1 if n_classes == 2 else n_classes)
    chosen = [1] if n_classes == 2 else range(n_classes)
    for ax, c in zip(panels, chosen, strict=True):
        mesh = ax.collections[0]
        np.testing.assert_allclose(
            mesh.get_array().reshape(table.cells.shape[:2]), table.cells[:, :, c]
        )
        low, high = mesh.get_clim()
        assert low == -high and high >= np.abs(table.cells[:, :, c]).max()
        hatched = [patch for patch in ax.patches if patch.get_hatch()]
        assert len(hatched) == (table.cell_counts == 0).sum()
        assert tick_overlaps(ax) == []
    width, height = figure.get_size_inches()
    assert width < 15 and height < 12


def test_cut_points_are_between_cells_and_values_beside_them(fitted):
    clf, _ = fitted
    one = [clf.classes_[0]]
    display = InteractionHeatmapDisplay.from_estimator(
        clf, ("kind", "size"), classes=one
    )
    kind, size = display.table.sides
    assert display.ax_.get_yticks().tolist() == [
        k + 0.5 for k in range(len(kind.labels))
    ]
    assert display.ax_.get_xticks().tolist() == list(range(1, len(size.labels)))
    texts = [t.get_text() for t in display.ax_.get_xticklabels()]
    assert texts == short_numbers(size.edges)
    assert display.ax_.get_ylabel() == kind.name


def test_a_map_goes_into_axes_that_are_given(fitted):
    clf, _ = fitted
    _, ax = plt.subplots()
    display = InteractionHeatmapDisplay.from_estimator(clf, 0, ax=ax)
    assert display.ax_ is ax and len(ax.collections) == 1
    asked = clf.classes_[0]
    only = InteractionHeatmapDisplay.from_estimator(clf, 0, classes=[asked])
    shown = only.ax_.collections[0].get_array().ravel()
    np.testing.assert_allclose(shown, only.table.cells[:, :, 0].ravel())


def test_a_nomogram_has_lines_for_interactions_and_maps_below(fitted):
    clf, X = fitted
    display = NomogramDisplay.from_estimator(clf, row=X[:1])
    names = [t.get_text() for t in display.ax_.get_yticklabels()]
    assert sum("×" in name for name in names) == 3
    maps = [ax for ax in display.figure_.axes if ax.get_visible() and ax.patches]
    rings = [p for ax in maps for p in ax.patches if p.get_linewidth() == 1.6]
    assert len(rings) == 3
    display.figure_.draw_without_rendering()
    without = NomogramDisplay.from_estimator(clf, max_interactions=0)
    assert len(without.figure_.axes) == 1
    _, ax = plt.subplots()
    assert NomogramDisplay.from_estimator(clf, ax=ax).figure_ is ax.figure


def test_the_ring_of_a_map_is_around_the_cell_of_the_row(fitted):
    clf, X = fitted
    whole, row = clf.explain_global(), clf.explain_local(X[4:5])
    display = whole.plot(row=row)
    c = display._target()
    evidence = row.contributions[0] * row.link_scale
    k = len(whole.classes)
    for j in range(3, 6):
        table = whole.tables[j]
        a, b = display._cell_of_row(table)
        t = evidence[j]
        expected = (k * t[c] - t.sum()) / (k - 1)
        assert table.cells[a, b, c] == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ParameterError, match="other attributes"):
        whole.plot(row=row.split_interactions())


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
    with pytest.raises(ParameterError, match="none was worth keeping"):
        InteractionHeatmapDisplay.from_estimator(clf)
