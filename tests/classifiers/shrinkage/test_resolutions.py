"""ShrinkageNB over several resolutions: one table over the finest bins."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from steelyard import EqualFrequencyDiscretizer, ShrinkageNB
from steelyard.proba.basis import FINEST, bins_of_resolutions

GIVEN = {"strength": (1.0, 4.0, 0.7)}


def finest_edges(clf):
    """Return the cut points of equal frequency of each number."""
    features = [f for f in clf.model_.schema.features if f.kind == "binned"]
    return [[f.edges[k] for k in f.cuts[-1]] for f in features]


def test_one_resolution_is_ten_bins_of_equal_frequency(mixed):
    X, y = mixed
    clf = ShrinkageNB(resolutions=1, **GIVEN).fit(X, y)
    plain = ShrinkageNB(
        resolutions=1,
        numeric=("mdl", EqualFrequencyDiscretizer(10)),
        **GIVEN,
    ).fit(X, y)
    assert list(map(len, finest_edges(clf))) == [9, 9]
    assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))


def test_several_resolutions_are_one_table_over_the_finest_bins(mixed):
    X, y = mixed
    clf = ShrinkageNB(**GIVEN).fit(X, y)
    finest = EqualFrequencyDiscretizer(FINEST)
    for edges, name in zip(finest_edges(clf), ("length", "width"), strict=True):
        column = X[name].to_numpy()
        known = ~np.isnan(column)
        codes = np.searchsorted(edges, column[known])
        sizes = np.bincount(codes)
        assert len(sizes) > 20
        assert sizes.max() <= 3 * known.sum() / FINEST + 3
    given = ShrinkageNB(numeric=("mdl", finest), **GIVEN).fit(X, y)
    assert_array_equal(clf.predict_proba(X), given.predict_proba(X))


@pytest.mark.usefixtures("as_solved")
@pytest.mark.parametrize("missing", ["skip", "value", "impute"])
@pytest.mark.parametrize("resolutions", [1, 3, 8])
def test_a_table_row_is_weighted_evidence_plus_effects(
    resolutions, missing, mixed, problem_of
):
    X, y = mixed
    numeric = EqualFrequencyDiscretizer(10) if resolutions == 1 else "equal-frequency"
    settings = {"resolutions": resolutions, "missing": missing, "numeric": numeric}
    clf = ShrinkageNB(**settings, **GIVEN).fit(X, y)
    evidence = problem_of(clf, X, y).evidence.table.values
    schema, weights = clf.model_.schema, clf.class_attribute_weights_
    for j in schema.coded:
        rows = slice(schema.offsets[j] + 1, schema.offsets[j + 1])
        expected = evidence[rows] * weights[:, j] + clf.value_effects_[j].T
        assert_allclose(clf.model_.table[rows], expected, atol=1e-12)
        # Missing and unseen cells that have no code of their own add nothing.
        assert_array_equal(clf.model_.table[schema.offsets[j]], 0.0)


def test_a_missing_number_that_is_a_value_has_evidence_of_its_own(mixed):
    X, y = mixed
    X = X.copy()
    X.loc[(y == "ant") & (np.arange(len(y)) % 2 == 0), "length"] = np.nan
    clf = ShrinkageNB(missing="value", **GIVEN).fit(X, y)
    schema = clf.model_.schema
    j = schema.labels().index("length")
    own = clf.model_.table[schema.offsets[j + 1] - 1]
    assert own.argmax() == 0
    assert own[0] - own[1:].max() > 1.0


def test_an_imputed_number_is_read_like_the_one_it_is_replaced_by(mixed):
    X, y = mixed
    clf = ShrinkageNB(missing="impute", **GIVEN).fit(X, y)
    schema = clf.model_.schema
    feature = schema.features[schema.labels().index("width")]
    row = X.iloc[:1].copy()
    row["width"] = np.nan
    known = X["width"].to_numpy()
    known = known[~np.isnan(known)]
    same = known[np.searchsorted(feature.edges, known) + 1 == feature.fill]
    if same.size:  # there may be no number near the mean
        other = row.copy()
        other["width"] = same[0]
        assert_allclose(clf.predict_proba(row), clf.predict_proba(other))
    assert np.isfinite(clf.predict_proba(row)).all()


def test_resolutions_hold_for_the_columns_that_a_mapping_gives_bins(mixed):
    X, y = mixed
    numeric = {"length": "equal-frequency", "width": "mdl"}
    clf = ShrinkageNB(numeric=numeric, **GIVEN).fit(X, y)
    features = dict(
        zip(clf.model_.schema.labels(), clf.model_.schema.features, strict=True)
    )
    assert features["length"].n_values > 20
    assert features["width"].n_values < 20


def test_a_smooth_curve_has_smaller_steps_than_with_ten_bins():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 800)
    y = rng.random(800) < 1 / (1 + np.exp(-3 * np.sin(x)))
    grid = np.linspace(-2.9, 2.9, 400)[:, None]

    def curve(resolutions):
        clf = ShrinkageNB(resolutions=resolutions, numeric="equal-frequency").fit(
            x[:, None], y
        )
        logs = clf.predict_log_proba(grid)
        return logs[:, 1] - logs[:, 0]

    one, eight = curve(1), curve(8)
    steps = [np.diff(found) for found in (one, eight)]
    assert (np.abs(steps[0]) > 1e-9).sum() == 9
    assert (np.abs(steps[1]) > 1e-9).sum() > 25
    assert (steps[1] ** 2).sum() < 0.7 * (steps[0] ** 2).sum()
    error = [((found - 3 * np.sin(grid[:, 0])) ** 2).mean() for found in (one, eight)]
    assert error[1] < error[0]


def test_the_number_of_resolutions_is_checked(mixed):
    for bad in (0, 1.5, "8", None):
        with pytest.raises(ValueError, match="'resolutions' parameter"):
            ShrinkageNB(resolutions=bad).fit(*mixed)


def test_evidence_is_learned_at_the_numbers_of_bins(mixed, problem_of):
    X, y = mixed
    clf = ShrinkageNB(resolutions=3, numeric="equal-frequency", **GIVEN).fit(X, y)
    problem = problem_of(clf, X, y)
    numbers = problem.evidence.basis.n_bins
    assert numbers == bins_of_resolutions(3) == (4, 9, 20)
    scales = problem.evidence.basis.length_scales
    pairs = zip(scales.columns, scales.codes, strict=True)
    groups = [g.max() for j, g in pairs if j == 1]
    assert groups == [4, 9, 20]
