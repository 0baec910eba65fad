"""Pictures: each can be drawn, into given axes too, and no label lies on another."""

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.displays import (
    NomogramDisplay,
    ValueCurveDisplay,
    WaterfallDisplay,
)
from steelyard.exceptions import IdentifierWarning, ParameterError
from steelyard.io.dataset import read_dataset

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DATA = os.environ.get("STEELYARD_DATA")


def wide(n_columns, n_classes, seed=0):
    """Many columns with long names, odd signs, numbers and missing values."""
    random = np.random.default_rng(seed)
    n = 150
    y = random.integers(0, n_classes, n)
    columns = {}
    for j in range(n_columns):
        name = f"a rather long name of the column that has number ${j}$ & more"
        if j % 4 == 0:
            columns[name] = y * (j % 3) + random.normal(size=n)
        else:
            noise = random.integers(0, 2 + j % 7, n)
            codes = np.where(random.random(n) < 0.5, y % (2 + j % 7), noise)
            names = [f"value_{v}/of$long^kind" for v in range(9)]
            columns[name] = np.array(names, dtype=object)[codes]
            columns[name][random.random(n) < 0.05] = None
    labels = np.array([f"class_{c} with_a_long name" for c in range(n_classes)])
    return pd.DataFrame(columns), labels[y]


@pytest.fixture(scope="module")
def small():
    X, y = wide(6, 2)
    return sy.NaiveBayes().fit(X, y), X, y


def overlaps(axes):
    """Pairs of texts within axes that lie on each other."""
    figure = axes.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    texts = [t for t in axes.texts if t.get_text() and t.get_visible()]
    texts += [t for t in axes.get_yticklabels() if t.get_text()]
    boxes = np.array([t.get_window_extent(renderer).extents for t in texts])
    # Extents have a margin; letters themselves are about so much smaller.
    margin = np.array([0.05, 0.15]) * (boxes[:, 2:] - boxes[:, :2])
    low, high = boxes[:, :2] + margin, boxes[:, 2:] - margin
    meet = ((low[:, None] < high) & (low < high[:, None])).all(axis=2)
    pairs = np.argwhere(np.triu(meet, 1))
    return [(texts[a].get_text(), texts[b].get_text()) for a, b in pairs]


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("numeric", ["mdl", "gaussian"])
def test_labels_of_a_nomogram_with_forty_attributes_do_not_overlap(n_classes, numeric):
    X, y = wide(40, n_classes)
    clf = sy.NaiveBayes(numeric=numeric).fit(X, y)
    display = NomogramDisplay.from_estimator(clf, row=X[:1])
    assert len(display.ax_.get_yticks()) == 40 + 2
    assert overlaps(display.ax_) == []


@pytest.mark.skipif(not DATA, reason="STEELYARD_DATA names no folder of data sets")
@pytest.mark.parametrize("name", ["credit-g", "soybean", "mushroom", "vote"])
def test_labels_do_not_overlap_on_real_tables(name):
    data = read_dataset(Path(DATA) / f"{name}.arff")
    X, y = data.table, data.target
    clf = sy.NaiveBayes().fit(X, y)
    assert overlaps(NomogramDisplay.from_estimator(clf, row=X[:1]).ax_) == []
    assert overlaps(WaterfallDisplay.from_estimator(clf, X, row=5).ax_) == []


def test_a_nomogram_places_dots_at_points_in_proportion_to_the_evidence(small):
    clf, _, _ = small
    found = clf.explain_global()
    display = found.plot(max_attributes=1)
    evidence = np.sort(found.tables[found.order[0]].evidence[1:, 1])
    dots = np.sort(display.ax_.collections[0].get_offsets()[:, 0])
    points = 100.0 * (evidence - evidence[0]) / np.ptp(evidence)
    np.testing.assert_allclose(dots, points, atol=1e-9)


def marked(display):
    """Points of the marked row, its total points and its probability, as drawn."""
    ax = display.ax_
    rings = [line for line in ax.lines if line.get_markersize() == 11]
    points = [float(line.get_xdata()[0]) for line in rings]
    y = -len(rings) - 0.4
    (total,) = [line for line in ax.lines if list(line.get_ydata()) == [y - 1.0, y]]
    found = []
    for level in (y + 0.12, y - 1.25):
        texts = [t for t in ax.texts if t.get_position()[1] == pytest.approx(level)]
        pairs = [(t.get_position()[0], float(t.get_text())) for t in texts]
        at, numbers = np.transpose(sorted(pairs))
        if level < y:
            numbers = np.log(numbers / (1.0 - numbers))
        slope, start = np.polyfit(at, numbers, 1)
        np.testing.assert_allclose(start + slope * at, numbers, atol=1e-9)
        found.append(start + slope * total.get_xdata()[0])
    return points, found[0], 1.0 / (1.0 + np.exp(-found[1]))


@pytest.mark.parametrize("numeric", ["mdl", "gaussian"])
def test_points_of_a_nomogram_add_up_to_the_probability(numeric):
    X, y = wide(5, 2)
    clf = sy.NaiveBayes(numeric=numeric).fit(X, y)
    whole = clf.explain_global()
    # A row whose probability is not beyond the scale.
    sums = np.abs(clf.predict_log_proba(X) @ [-1.0, 1.0])
    row = int(np.argmin(sums))
    display = NomogramDisplay.from_estimator(clf, row=X[row : row + 1])
    points, total, proba = marked(display)
    assert total == pytest.approx(sum(points), abs=1e-6)
    assert proba == pytest.approx(clf.predict_proba(X)[row, 1], abs=1e-9)
    lines = [np.array(line.get_xdata()) for line in display.ax_.lines]
    lines = [x for x in lines if len(x) == 2 and x[0] == pytest.approx(0.0, abs=1e-9)]
    assert max(x[1] for x in lines) == pytest.approx(100.0)
    if numeric == "mdl":
        longest = max(np.ptp(table.evidence[1:, 1]) for table in whole.tables)
        order = np.argsort(-whole.class_importance[:, 1], kind="stable")
        local = clf.explain_local(X[row : row + 1])
        items = local.evidence(target=clf.classes_[1]).items
        amounts = {item.attribute: item.amount for item in items}
        for j, own in zip(order, points, strict=True):
            least = whole.tables[j].evidence[1:, 1].min()
            expected = 100.0 * (amounts[whole.attributes[j]] - least) / longest
            assert own == pytest.approx(expected, abs=1e-9)


def test_with_several_classes_one_known_column_has_its_exact_probability():
    X, y = wide(5, 4)
    clf = sy.NaiveBayes().fit(X, y)
    for j, name in enumerate(X.columns):
        row = X[:1].where((X.columns == name)[None, :])
        for c in clf.classes_:
            display = NomogramDisplay.from_estimator(clf, row=row, target=c)
            expected = clf.predict_proba(row)[0, list(clf.classes_).index(c)]
            assert marked(display)[2] == pytest.approx(expected, abs=1e-9), (j, c)
    labels = [t.get_text() for t in display.ax_.get_yticklabels()]
    assert labels[-1].startswith("≈ P(")


def test_a_nomogram_says_what_is_left_out(small):
    clf, X, _ = small
    display = NomogramDisplay.from_estimator(clf, max_attributes=4, row=X[:1])
    texts = [t.get_text() for t in display.ax_.texts]
    assert "2 less important columns are not shown: treated as unknown" in texts
    assert overlaps(display.ax_) == []
    whole = NomogramDisplay.from_estimator(clf)
    assert not any("left out" in t.get_text() for t in whole.ax_.texts)


@pytest.mark.parametrize("numeric", ["equal-width", "gaussian"])
def test_curves_of_numbers_are_above_the_histogram_of_the_rows(numeric):
    X, y = wide(1, 2)
    clf = sy.NaiveBayes(numeric=numeric).fit(X, y)
    display = ValueCurveDisplay.from_estimator(clf, 0)
    (beside,) = [ax for ax in display.figure_.axes if ax is not display.ax_]
    numbers = X.iloc[:, 0].to_numpy()
    expected, _ = np.histogram(numbers, 20)
    heights = [bar.get_height() for bar in beside.patches]
    np.testing.assert_allclose(heights, expected, atol=1e-5)
    assert display.ax_.get_xlim()[0] <= numbers.min()


def test_a_nomogram_refuses_what_is_not_one_sum(small):
    _, X, y = small
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = sy.method("RNB").fit(X, y)
    with pytest.raises(ParameterError, match="draw a part"):
        NomogramDisplay.from_estimator(clf)
    assert clf.explain_global().parts[0].explanation.plot().ax_
    with pytest.raises(ParameterError, match="not among the classes"):
        NomogramDisplay.from_estimator(small[0], target="nobody")


def test_a_waterfall_ends_at_the_log_odds(small):
    clf, X, _ = small
    display = WaterfallDisplay.from_estimator(clf, X, row=2, max_attributes=3)
    total = display.ax_.patches[-1].get_width()
    assert total == pytest.approx(clf.explain_local(X).evidence(2).total, abs=1e-12)
    labels = [t.get_text() for t in display.ax_.get_yticklabels()]
    assert labels[-2:] == ["3 other columns", "sum"]
    assert overlaps(display.ax_) == []


@pytest.mark.parametrize("n_classes", [2, 9])
@pytest.mark.parametrize("attribute", [0, 1])
@pytest.mark.parametrize("numeric", ["equal-width", "gaussian"])
def test_value_curves_draw_every_kind_of_attribute(n_classes, attribute, numeric):
    X, y = wide(2, n_classes)
    clf = sy.NaiveBayes(numeric=numeric, missing="value").fit(X, y)
    display = ValueCurveDisplay.from_estimator(clf, attribute)
    assert display.figure_ is display.ax_.figure
    display.figure_.draw_without_rendering()


def test_pictures_go_into_axes_that_are_given(small):
    clf, X, _ = small
    _, axes = plt.subplots(1, 3, figsize=(15, 5))
    displays = [
        NomogramDisplay.from_estimator(clf, ax=axes[0]),
        WaterfallDisplay.from_estimator(clf, X, ax=axes[1]),
        ValueCurveDisplay.from_estimator(clf, 1, ax=axes[2]),
    ]
    for display, ax in zip(displays, axes.flat, strict=True):
        assert display.ax_ is ax and display.figure_ is ax.figure


@pytest.mark.parametrize("n_classes", [2, 4])
def test_columns_of_fine_bins_are_drawn_once(n_classes):
    X, y = wide(9, n_classes)
    clf = sy.ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X, y)
    nomogram = NomogramDisplay.from_estimator(clf, row=X[:1])
    names = [text.get_text() for text in nomogram.ax_.get_yticklabels()[:-2]]
    assert len(set(names)) == len(names) == 9
    assert overlaps(nomogram.ax_) == []
    waterfall = WaterfallDisplay.from_estimator(clf, X)
    assert len(waterfall.ax_.get_yticks()) == 9 + 2
    total = waterfall.ax_.patches[-1].get_width()
    assert total == pytest.approx(clf.explain_local(X).evidence(0).total, abs=1e-9)
    curve = ValueCurveDisplay.from_estimator(clf, X.columns[0])
    assert curve.figure_.get_figwidth() < 8


def test_bins_say_what_a_missing_cell_adds(small):
    _, X, y = small
    numbers = np.where(np.arange(len(X)) % 5, np.linspace(0.0, 1.0, len(X)), np.nan)
    clf = sy.NaiveBayes(numeric="equal-frequency", missing="value")
    clf.fit(pd.DataFrame({"n": numbers}), y)
    display = ValueCurveDisplay.from_estimator(clf, "n")
    texts = [text.get_text() for text in display.ax_.texts]
    titles = [display.ax_.get_title(loc=side) for side in ("left", "center", "right")]
    assert any(text.startswith("missing: ") for text in (*texts, *titles))


def with_identifiers(n_classes, **columns):
    """A fitted model of columns beside two that are left out as identifiers."""
    random = np.random.default_rng(0)
    number = random.normal(size=200)
    ids = {"id": np.arange(200) + 5000, "code": [f"c{i}" for i in range(200)]}
    made = {"number": number, "name": random.choice(list("abc"), 200)}
    made["gaps"] = np.where(random.random(200) < 0.2, np.nan, random.normal(size=200))
    table = pd.DataFrame({**ids, **{name: made[name] for name in columns}})
    labels = np.digitize(number, np.linspace(-0.5, 0.5, n_classes - 1))
    with pytest.warns(IdentifierWarning):
        return sy.ShrinkageNB(interactions=None).fit(table, labels), table


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("columns", [("number", "name", "gaps"), ("name",)])
def test_a_nomogram_has_no_line_for_columns_that_are_left_out(n_classes, columns):
    clf, table = with_identifiers(n_classes, **dict.fromkeys(columns))
    display = NomogramDisplay.from_estimator(clf, row=table[:1])
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert {*names} >= {*columns}
    assert not {"id", "code"} & {*names}
    assert "left out" not in " ".join(text.get_text() for text in display.ax_.texts)
    plt.close("all")


def test_a_column_that_is_left_out_has_no_curve():
    clf, _ = with_identifiers(2, name=None)
    with pytest.raises(ParameterError, match="no values of 'code'"):
        ValueCurveDisplay.from_estimator(clf, "code")


def test_a_nomogram_of_no_values_says_so():
    clf, _ = with_identifiers(2, name=None)
    whole = clf.explain_global()
    aside = replace(
        whole,
        attributes=whole.attributes[:2],
        tables=whole.tables[:2],
        importance=whole.importance[:2],
        class_importance=whole.class_importance[:2],
    )
    with pytest.raises(ParameterError, match="No column of the model has values"):
        aside.plot()
    with pytest.raises(ParameterError, match="max_attributes must be at least 1"):
        whole.plot(max_attributes=0)


def test_a_classifier_plots_itself_a_column_and_a_row():
    clf, X = with_identifiers(2, number=None, name=None)
    made = [clf.plot(), clf.plot("number"), clf.plot(X[:1])]
    names = [type(display).__name__ for display in made]
    assert names == ["NomogramDisplay", "ValueCurveDisplay", "WaterfallDisplay"]
