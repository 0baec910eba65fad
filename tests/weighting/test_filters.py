"""Filters: weights from trees, curves and subsets, and what must not matter."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.model.training import TrainingSet
from steelyard.weighting import (
    WEIGHTINGS,
    AUCWeighting,
    FilterWeighting,
    GainRatioWeighting,
    SubsetWeighting,
    TreeWeighting,
)
from steelyard.weighting.filters.correlation import (
    add_locally_predictive,
    area_under_curve,
    best_subset,
)
from steelyard.weighting.filters.trees import depth_weights

METHODS = [
    name for entry in sy.methods() if entry.family == "filters" for name in entry.names
]
WORDS = [word for word, kind in WEIGHTINGS.items() if issubclass(kind, FilterWeighting)]


def near(*values):
    return pytest.approx(list(values), abs=1e-12)


def method_of(name, **settings):
    """Return a method, with a seed where it draws random numbers."""
    clf = sy.method(name, **settings)
    if "random_state" in clf.get_params() and "random_state" not in settings:
        clf.set_params(random_state=0)
    return clf


def part_of(word):
    """Return the filter that a word names, with a seed where it draws numbers."""
    part = WEIGHTINGS[word]()
    return part.set_params(random_state=0) if "random_state" in vars(part) else part


def weights_of(name, X, y, u=None, **settings):
    return method_of(name, **settings).fit(X, y, u).attribute_weights_


# -------------------------------------------------------------------------- all filters


def test_all_acronyms_of_filters_are_there():
    names = {"CFW", "DFWNB", "GRAWNB", "KLNB", "DTAWNB", "TreeNB", "AUCNB"}
    assert names <= set(METHODS)
    assert isinstance(sy.method("CBFWNB"), sy.CorrelationWeightedNB)
    assert isinstance(sy.method("DAWNB"), sy.DeepWeightedNB)


def test_klnb_is_another_name_of_grawnb(weather):
    (entry,) = [entry for entry in sy.methods() if "KLNB" in entry.names]
    assert "GRAWNB" in entry.names
    one, other = (sy.method(name) for name in ("GRAWNB", "KLNB"))
    assert type(one) is type(other) and one.get_params() == other.get_params()


@pytest.mark.parametrize("name", METHODS)
def test_a_filter_has_common_settings_and_its_own_but_no_optimiser(name):
    clf = sy.method(name)
    names = set(clf.get_params())
    common = set(sy.NaiveBayes().get_params()) | {"instances", "variance"}
    part = set(clf._filter().get_params()) - {"prior_weight"}
    assert names == common | part
    with pytest.raises(TypeError, match="solver"):
        type(clf)(solver="newton")


def test_trees_differ_from_fit_to_fit_unless_they_are_given_a_seed(random_table):
    X, y = random_table()
    assert sy.TreeWeightedNB().random_state is None
    assert TreeWeighting().random_state is None
    drawn = [sy.TreeWeightedNB().fit(X, y).attribute_weights_ for _ in range(3)]
    assert any((drawn[0] != other).any() for other in drawn[1:])
    seeded = [weights_of("DTAWNB", X, y, random_state=5) for _ in range(2)]
    np.testing.assert_array_equal(*seeded)


@pytest.mark.parametrize("name", METHODS)
def test_neither_order_nor_copies_of_rows_matter(name, random_table):
    X, y = random_table()
    first = weights_of(name, X, y)
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_allclose(weights_of(name, X[order], y[order]), first, atol=1e-12)
    u = np.random.default_rng(1).integers(0, 4, len(y))
    copies = weights_of(name, np.repeat(X, u, axis=0), np.repeat(y, u))
    np.testing.assert_allclose(weights_of(name, X, y, u), copies, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in METHODS if n not in ("TreeNB", "DTAWNB")])
def test_order_of_columns_does_not_matter(name, random_table):
    X, y = random_table()
    turned = weights_of(name, X[:, ::-1], y)[::-1]
    np.testing.assert_allclose(turned, weights_of(name, X, y), atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_threads_do_not_matter(name, random_table):
    X, y = random_table()
    one, two = (weights_of(name, X, y, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", [n for n in METHODS if n != "AUCNB"])
@pytest.mark.parametrize("gaps", [False, True])
def test_gaussian_columns_are_filtered_by_their_mdl_codes(name, gaps):
    X, y = load_iris(return_X_y=True)
    if gaps:
        X = X.copy()
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    binned = weights_of(name, X, y, numeric="mdl")
    assert len(set(binned)) > 1
    for numeric in ("gaussian", {0: "mdl", 1: "gaussian", 2: "gaussian", 3: "mdl"}):
        found = weights_of(name, X, y, numeric=numeric)
        np.testing.assert_allclose(found, binned, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_weights_of_a_filter_are_exponents(name):
    X, y = load_iris(return_X_y=True)
    clf = sy.method(name, numeric={0: "gaussian", 1: "mdl"}).fit(X, y)
    plain = sy.NaiveBayes(
        numeric={0: "gaussian", 1: "mdl"}, smoothing=clf.smoothing
    ).fit(X, y)
    added = plain.model_.contributions(plain._encode(X))
    if isinstance(clf, sy.DeepWeightedNB):  # its counts are multiplied too
        assert clf.attribute_weights_.tolist() == [1.0, 1.0, 2.0, 2.0]
        added[:, 2:] = clf.model_.contributions(clf._encode(X))[:, 2:] / 2.0
    expected = plain.class_log_prior_ + np.einsum(
        "j,ijc->ic", clf.attribute_weights_, added
    )
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), expected, atol=1e-9)


@pytest.mark.parametrize("word", WORDS)
def test_a_filter_can_start_an_optimisation(word, random_table):
    X, y = random_table()
    part = part_of(word)
    start = sy.WeightedNB(weighting=part, solver="fixed").fit(X, y)
    assert start.n_iter_ == 1
    found = sy.WeightedNB(weighting=part, bounds=(0, None), lam=0.5).fit(X, y)
    assert (found.attribute_weights_ != start.attribute_weights_).any()
    # The objective is convex, so that the start does not matter for the end; but the
    # counts of "subset" are other counts.
    if word != "subset":
        plain = sy.WeightedNB(bounds=(0, None), lam=0.5).fit(X, y)
        assert found.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    weighted = sy.WeightedNB(weighting=part, solver="fixed", prior_weight=True)
    assert weighted.fit(X, y).prior_weight_ == 1.0
    np.testing.assert_array_equal(weighted.attribute_weights_, start.attribute_weights_)


def test_bounds_do_not_cut_weights_that_are_not_searched_for(weather):
    clf = sy.WeightedNB(weighting="gain-ratio", solver="fixed", bounds=(0, 1))
    assert clf.fit(*weather).attribute_weights_.sum() == pytest.approx(4.0)


@pytest.mark.parametrize("word", WORDS)
def test_one_filter_for_each_pair_of_classes(word, random_table, tmp_path):
    X, y = random_table()
    part = part_of(word)
    clf = sy.WeightedNB(weighting=part, multiclass="one-vs-one", solver="fixed")
    clf.fit(X, y)
    rows = y != 1
    pair = sy.WeightedNB(weighting=part, solver="fixed").fit(X[rows], y[rows])
    np.testing.assert_allclose(clf.attribute_weights_[1], pair.attribute_weights_)
    if word == "subset":
        assert clf.selected_features_[1] == pair.selected_features_
        clf.save(tmp_path / "model.json")
        loaded = sy.load(tmp_path / "model.json")
        assert loaded.selected_features_ == clf.selected_features_


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_filter_comes_back(name, random_table, tmp_path):
    X, y = random_table()
    clf = sy.method(name).fit(X, y)
    clf.save(tmp_path / "model.json")
    loaded = sy.load(tmp_path / "model.json")
    assert loaded.get_params() == clf.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(loaded.attribute_weights_, clf.attribute_weights_)
    assert getattr(loaded, "selected_features_", 0) == getattr(
        clf, "selected_features_", 0
    )


def test_a_filter_that_is_a_part_comes_back(weather, tmp_path):
    for part in (
        GainRatioWeighting(prior_weight=True),
        SubsetWeighting(max_stale=2),
        TreeWeighting(n_trees=3, share=None, categories="ordinal"),
        AUCWeighting(rescaled=True, threshold=0.5),
    ):
        clf = sy.WeightedNB(weighting=part, solver="fixed").fit(*weather)
        clf.save(tmp_path / "model.json")
        loaded = sy.load(tmp_path / "model.json").weighting
        assert type(loaded) is type(part)
        assert loaded.get_params() == part.get_params()


@pytest.mark.parametrize(
    "name, settings, told",
    [
        ("DTAWNB", {"n_trees": 0}, "'n_trees'.*at least 1. Got 0"),
        ("DTAWNB", {"n_trees": True}, "'n_trees'"),
        ("DTAWNB", {"share": 0.0}, "'share'.*greater than 0"),
        ("DTAWNB", {"share": 2}, "'share'.*at most 1"),
        (
            "DTAWNB",
            {"categories": "both"},
            "'categories'.*'one-hot', 'ordinal'. Got 'both'",
        ),
        ("DTAWNB", {"random_state": "x"}, "'random_state'"),
        ("DFWNB", {"max_stale": 0}, "'max_stale'.*at least 1. Got 0"),
        ("DFWNB", {"locally_predictive": 1}, "'locally_predictive'.*True or False"),
        ("DFWNB", {"zero_is_one": "no"}, "'zero_is_one'.*True or False"),
        ("AUCNB", {"rescaled": None}, "'rescaled'.*True or False"),
        ("AUCNB", {"threshold": 2.0}, "'threshold'.*between 0 and 1. Got 2.0"),
        ("CFW", {"instances": "relief"}, "'discriminative'.*Got 'relief'"),
    ],
)
def test_bad_settings_are_refused_and_leave_the_earlier_model(
    name, settings, told, weather
):
    X, y = weather
    clf = sy.method(name).fit(X, y)
    before = clf.predict_proba(X)
    with pytest.raises(ParameterError, match=told):
        clf.set_params(**settings).fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_a_filter_of_ones_own_is_given_a_training_set(weather):
    X, y = weather
    seen = []

    class First(FilterWeighting):
        def _filter(self, training):
            seen.append(training)
            return np.eye(len(training.schema))[0]

    clf = sy.WeightedNB(weighting=First(), solver="fixed").fit(X, y)
    assert clf.attribute_weights_.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert isinstance(seen[0], TrainingSet)
    np.testing.assert_array_equal(seen[0].classes[seen[0].labels], y)


def test_joint_weights_refuse_counts_that_are_multiplied(weather):
    with pytest.raises(ParameterError, match="learns from counts as they are"):
        sy.JointWeightedNB(weighting="subset").fit(*weather)


def test_collaborative_weights_keep_multiplying_counts(weather):
    X, y = weather

    class Always(SubsetWeighting):
        def select(self, training):
            return [0, 2]

    part = Always()
    clf = sy.CollaborativeNB(
        weighting=part, variant="reversed", rounds=1, solver="fixed"
    ).fit(X, y)
    first = sy.WeightedNB(weighting=part, smoothing="laplace", solver="fixed").fit(X, y)
    proba = first.predict_proba(X)[np.arange(len(y)), (y == "y").astype(int)]
    np.testing.assert_allclose(clf.instance_weights_, 2.0 - proba)
    again = first.fit(X, y, clf.instance_weights_)
    np.testing.assert_allclose(clf.predict_proba(X), again.predict_proba(X))


# --------------------------------------------------------------------------- gain ratio


def test_attributes_without_any_information_keep_weight_one():
    X = np.array([["a", "x"], ["a", "y"]] * 4)
    y = np.array([0, 0, 1, 1] * 2)
    assert weights_of("GRAWNB", X, y).tolist() == [1.0, 1.0]


def test_a_constant_attribute_gets_no_weight_by_gain_ratio(weather):
    X, y = weather
    X = np.c_[X, np.full(len(y), "same")]
    weights = weights_of("KLNB", X, y)
    assert weights[4] == 0.0
    assert weights.sum() == pytest.approx(5.0)


# ------------------------------------------------------------------------------ subsets


def test_best_first_search_finds_the_best_subset_of_small_tables(merit):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        relevance = rng.random(6)
        redundancy = rng.random((6, 6)) * 0.6
        redundancy = (redundancy + redundancy.T) / 2.0
        np.fill_diagonal(redundancy, 0.0)
        found = best_subset(relevance, redundancy, 30)
        subsets = [c for k in range(7) for c in combinations(range(6), k)]
        largest = max(merit(c, relevance, redundancy) for c in subsets)
        assert merit(found, relevance, redundancy) >= largest - 1e-5


def test_search_goes_on_past_a_subset_that_is_no_better(merit):
    # Attributes 0 and 1 repeat each other; 2 and 3 are good together only.
    relevance = np.array([0.5, 0.5, 0.34, 0.34])
    redundancy = np.zeros((4, 4))
    redundancy[0, 1:] = redundancy[1:, 0] = [1.0, 0.9, 0.9]
    redundancy[1, 2:] = redundancy[2:, 1] = [0.9, 0.9]
    assert merit([2, 3], relevance, redundancy) < merit([0], relevance, redundancy)
    assert best_subset(relevance, redundancy, 15) == [0]
    relevance[2:] = 0.36
    assert sorted(best_subset(relevance, redundancy, 15)) == [2, 3]
    assert best_subset(relevance, redundancy, 1) == [0]


def test_nothing_is_selected_if_no_column_has_information():
    X = np.array([["a", "x"], ["a", "y"]] * 4)
    clf = sy.method("DFWNB").fit(X, [0, 0, 1, 1] * 2)
    assert clf.selected_features_ == []
    assert clf.attribute_weights_.tolist() == [1.0, 1.0]
    assert best_subset(np.zeros(3), np.zeros((3, 3)), 5) == []


def test_locally_predictive_attributes_follow_in_the_order_of_relevance():
    relevance = np.array([0.5, 0.1, 0.2, 0.15])
    redundancy = np.zeros((4, 4))
    redundancy[1, 2] = redundancy[2, 1] = 0.12
    assert add_locally_predictive([0], relevance, redundancy) == [0, 2, 3]


def test_selected_attributes_have_names_where_columns_have():
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = sy.DeepWeightedNB().fit(frame, y)
    chosen = [list(frame).index(name) for name in clf.selected_features_]
    assert np.flatnonzero(clf.attribute_weights_ == 2.0).tolist() == sorted(chosen)
    assert 1 < len(chosen) < frame.shape[1]
    clf.fit(frame.to_numpy(), y)
    assert clf.selected_features_ == chosen


# -------------------------------------------------------------------------------- trees


def test_depths_of_a_tree_made_by_hand():
    # Root: column 2; its children: column 0, and a leaf; below them column 2 and 1.
    tree = SimpleNamespace(
        children_left=[1, 3, -1, 5, 7, -1, -1, -1, -1],
        children_right=[2, 4, -1, 6, 8, -1, -1, -1, -1],
        feature=[2, 0, -2, 2, 1, -2, -2, -2, -2],
    )
    found = depth_weights(tree, np.array([0, 1, 3]), 4)
    assert found.tolist() == near(2**-0.5, 3**-0.5, 0.0, 1.0)
    # Two columns of one attribute: the smaller depth counts.
    assert depth_weights(tree, np.array([0, 0, 1]), 2).tolist() == near(2**-0.5, 1.0)


def test_one_tree_is_scikit_learns_on_ordered_codes():
    X, y = load_iris(return_X_y=True)
    clf = sy.method("TreeNB", random_state=0).fit(X, y)
    codes = clf.encoder_.transform(X)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=1)[0]
    tree = DecisionTreeClassifier(criterion="entropy", random_state=int(seed))
    expected = depth_weights(tree.fit(codes, y).tree_, np.arange(4), 4)
    np.testing.assert_array_equal(clf.attribute_weights_, expected)


def test_values_of_a_category_are_singled_out_or_kept_in_order():
    # The middle value stands for the class: one test singles it out, or two in order.
    X = np.array([["a", "u"], ["b", "u"], ["c", "u"], ["a", "v"], ["b", "v"]] * 4)
    y = (X[:, 0] == "b").astype(int)
    y[-1] = 0
    single = sy.method("TreeNB", categories="one-hot").fit(X, y)
    ordinal = sy.method("TreeNB", categories="ordinal").fit(X, y)
    assert single.attribute_weights_.tolist() == near(1.0, 2**-0.5)
    assert ordinal.attribute_weights_[0] == 1.0
    assert ordinal.attribute_weights_[1] == pytest.approx(3**-0.5)


def test_trees_are_drawn_by_the_seed(random_table):
    X, y = random_table()
    zero, again = (weights_of("DTAWNB", X, y, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(zero, again)
    assert (weights_of("DTAWNB", X, y, random_state=1) != zero).any()
    many = weights_of("DTAWNB", X, y, n_trees=40)
    assert ((many >= 0.0) & (many <= 1.0)).all()
    assert many[4] == 0.0  # a constant


# ---------------------------------------------------------------------------- the curve


@pytest.mark.plain
@pytest.mark.parametrize("weighted", [False, True])
def test_area_agrees_with_scikit_learn(weighted):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    scores = np.round(rng.normal(size=200) + y, 1)
    u = rng.random(200) if weighted else np.ones(200)
    found = area_under_curve(scores, u * (y == 1), u * (y == 0))
    assert found == pytest.approx(roc_auc_score(y, scores, sample_weight=u))


@pytest.mark.parametrize("numeric", ["mdl", "gaussian", "gaussian-weka"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_areas_of_log_likelihood_ratios(numeric, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes].copy(), y[y < n_classes]
    X[::9, 1] = np.nan
    u = np.random.default_rng(0).integers(1, 4, len(y))
    clf = sy.method("AUCNB", numeric=numeric).fit(X, y, u)
    plain = sy.method("NB-Laplace", numeric=numeric).fit(X, y, u)
    added = plain.model_.contributions(plain._encode(X))
    for j in range(4):
        known = ~np.isnan(X[:, j])
        areas = []
        for a, b in combinations(range(n_classes), 2):
            rows = known & ((y == a) | (y == b))
            ratio = added[rows, j, a] - added[rows, j, b]
            ratio = np.round(ratio, 12)
            areas.append(roc_auc_score(y[rows] == a, ratio, sample_weight=u[rows]))
        assert clf.attribute_weights_[j] == pytest.approx(np.mean(areas))


def test_areas_can_be_rescaled_and_cut_off(weather):
    areas = weights_of("AUCNB", *weather)
    rescaled = weights_of("AUCNB", *weather, rescaled=True)
    np.testing.assert_allclose(rescaled, 2 * areas - 1)
    cut = weights_of("AUCNB", *weather, threshold=0.7)
    np.testing.assert_array_equal(cut, np.where(areas >= 0.7, areas, 0.0))
    assert (cut == 0.0).sum() == 2


def test_an_attribute_without_known_cells_has_the_area_of_chance():
    X = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan], [4.0, np.nan]] * 5)
    y = np.array([0, 0, 1, 1] * 5)
    for numeric in ("mdl", "gaussian"):
        assert weights_of("AUCNB", X, y, numeric=numeric).tolist() == [1.0, 0.5]
