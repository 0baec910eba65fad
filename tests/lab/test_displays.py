"""Pictures of a comparison: what they hold, and that nothing is cut off or covered."""

from itertools import pairwise

import matplotlib
import numpy as np
import pytest

from steelyard.exceptions import ParameterError
from steelyard.lab.displays import CriticalDifferenceDisplay, groups_of_equals
from steelyard.lab.report.summaries import summarize
from steelyard.lab.statistics import critical_difference

matplotlib.use("Agg")

LONG = ["a method of an uncommonly long name", "cost: $5 & $6", *"ABCDEFGHIJKLMNOPQR"]


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def boxes(display):
    """Return where texts lie once drawn, in pixels."""
    display.figure_.canvas.draw()
    return [text.get_window_extent() for text in display.ax_.texts if text.get_text()]


def test_the_diagram_shows_ranks_and_the_critical_difference(make_results):
    results = make_results(n_datasets=10)
    display = CriticalDifferenceDisplay.from_results(results)
    assert display.names == ["RNB", "NB", "GNB"]
    assert display.ranks == pytest.approx(np.sort(summarize(results).ranks))
    cd = critical_difference(3, 10)
    assert display.critical_difference == pytest.approx(cd)
    assert f"critical difference {cd:.2f}" in texts(display.ax_)


@pytest.mark.parametrize("names", [LONG, ["RNB", "NB"]])
def test_labels_of_the_diagram_neither_overlap_nor_leave_the_figure(
    make_results, names
):
    display = CriticalDifferenceDisplay.from_results(make_results(names))
    found = boxes(display)
    width, height = display.figure_.canvas.get_width_height()
    for i, box in enumerate(found):
        assert box.x0 >= 0 and box.x1 <= width
        assert box.y0 >= 0 and box.y1 <= height
        assert not any(box.overlaps(other) for other in found[i + 1 :])


def test_pictures_go_where_they_are_told(make_results):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    drawn = CriticalDifferenceDisplay.from_results(make_results(), ax=axes)
    assert drawn.ax_ is axes and drawn.figure_ is figure


def test_what_cannot_be_drawn_is_said(make_results):
    with pytest.raises(ParameterError, match="two data sets"):
        CriticalDifferenceDisplay.from_results(make_results(n_datasets=1))
    with pytest.raises(ParameterError, match="a rank for each"):
        CriticalDifferenceDisplay(["NB", "RNB"], [1.0], 1.0)


def test_groups_are_the_longest_runs_within_the_difference():
    ranks = np.array([1.0, 1.4, 2.0, 3.5, 4.6])
    assert groups_of_equals(ranks, 1.0) == [(0, 1), (1, 2)]
    assert groups_of_equals(ranks, 1.2) == [(0, 2), (3, 4)]
    assert groups_of_equals(ranks, 9.0) == [(0, 4)]
    assert groups_of_equals(ranks, 0.1) == []


def test_bars_of_a_line_do_not_touch():
    ranks = np.linspace(1.5, 19.5, 20)
    groups = CriticalDifferenceDisplay([f"m{i}" for i in range(20)], ranks, 4.0).groups
    for line in {group[2] for group in groups}:
        bars = sorted(group[:2] for group in groups if group[2] == line)
        assert all(a[1] < b[0] for a, b in pairwise(bars))
