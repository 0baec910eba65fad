"""The classifier works inside scikit-learn's tools, as any estimator must."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import steelyard
from steelyard import EqualWidthDiscretizer, MDLDiscretizer, NaiveBayes
from steelyard.proba import MEstimate

X, Y = load_iris(return_X_y=True)
SETTINGS = [
    {},
    {"numeric": "gaussian", "n_jobs": 2},
    {"numeric": MDLDiscretizer(better_encoding=True), "smoothing": MEstimate(2.0)},
    {"numeric": {0: "gaussian", 1: EqualWidthDiscretizer(5)}, "class_weight": {1: 2.0}},
    {"categorical_features": [0, 1], "missing": "value", "prior": [0.2, 0.3, 0.5]},
]


def frame_of_two_kinds():
    numbers = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    return numbers.assign(size=np.where(X[:, 0] > 5.8, "large", "small"))


@pytest.mark.plain
@pytest.mark.parametrize("settings", SETTINGS)
def test_clone_keeps_settings_and_forgets_what_was_learned(settings):
    clf = NaiveBayes(**settings).fit(X, Y)
    copy = clone(clf)
    assert repr(copy) == repr(clf)
    assert not hasattr(copy, "classes_")
    again = copy.fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(again, clf.predict_proba(X))


@pytest.mark.plain
@pytest.mark.parametrize("settings", SETTINGS)
def test_pickled_classifier_predicts_the_same_bits(settings):
    clf = NaiveBayes(**settings).fit(X, Y)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.predict_proba(X), clf.predict_proba(X))
    copy.partial_fit(X[:10], Y[:10])


def test_joblib_file_brings_back_the_same_classifier(tmp_path):
    clf = NaiveBayes().fit(frame_of_two_kinds(), Y)
    joblib.dump(clf, tmp_path / "clf.joblib")
    copy = joblib.load(tmp_path / "clf.joblib")
    np.testing.assert_array_equal(
        copy.predict_proba(frame_of_two_kinds()),
        clf.predict_proba(frame_of_two_kinds()),
    )


def test_fit_leaves_the_settings_as_they_were_given():
    discretizer = MDLDiscretizer()
    clf = NaiveBayes(numeric=discretizer, prior=[0.2, 0.3, 0.5])
    before = clf.get_params()
    clf.fit(X, Y)
    assert clf.get_params() == before
    assert clf.numeric is discretizer
    assert not hasattr(discretizer, "edges_")


def test_grid_search_over_settings_and_settings_of_parts():
    grid = [
        {"smoothing": ["m-estimate", "laplace", "kohavi", 0.1]},
        {"numeric": ["mdl", "gaussian", "equal-frequency"]},
        {"numeric": [MDLDiscretizer()], "numeric__better_encoding": [False, True]},
        {"smoothing": [MEstimate()], "smoothing__m": [0.5, 4.0]},
    ]
    search = GridSearchCV(NaiveBayes(), grid, cv=3, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 11
    assert search.best_score_ > 0.9
    assert search.predict(X[:3]).tolist() == [0, 0, 0]


def test_set_params_reaches_parts_and_refuses_unknown_names():
    clf = NaiveBayes(numeric=MDLDiscretizer())
    clf.set_params(numeric__better_encoding=True, missing="value")
    assert clf.numeric.better_encoding is True
    assert clf.get_params()["numeric__better_encoding"] is True
    assert clf.missing == "value"
    with pytest.raises(ValueError, match="Invalid parameter 'smooth'"):
        clf.set_params(smooth=1)


def test_representation_shows_only_what_differs_from_the_defaults():
    assert repr(NaiveBayes()) == "NaiveBayes()"
    assert repr(NaiveBayes(smoothing=0.5)) == "NaiveBayes(smoothing=0.5)"


@pytest.mark.parametrize("fitted", [False, True])
def test_html_display_names_the_class_and_its_parts(fitted):
    clf = NaiveBayes(numeric=MDLDiscretizer())
    if fitted:
        clf.fit(X, Y)
    html = estimator_html_repr(clf)
    assert "NaiveBayes" in html
    assert "MDLDiscretizer" in html
    assert ("Not fitted" in html) != fitted


def test_column_names_are_kept_from_frames_and_forgotten_with_arrays():
    clf = NaiveBayes().fit(frame_of_two_kinds(), Y)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "d", "size"]
    assert clf.n_features_in_ == 5
    clf.fit(X, Y)
    assert not hasattr(clf, "feature_names_in_")
    assert clf.n_features_in_ == 4


def test_pipeline_passes_through_scaling():
    pipeline = make_pipeline(StandardScaler(), NaiveBayes(numeric="gaussian"))
    plain = NaiveBayes(numeric="gaussian").fit(X, Y)
    scaled = pipeline.fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(scaled, plain.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_column_transformer_in_front_hands_over_mixed_columns(output):
    front = ColumnTransformer(
        [("scaled", StandardScaler(), ["a", "b"])], remainder="passthrough"
    ).set_output(transform=output)
    if output == "polars":
        # polars frames come out of polars frames only.
        polars = pytest.importorskip("polars", reason="polars is not installed")
        table = polars.from_pandas(frame_of_two_kinds())
    else:
        table = frame_of_two_kinds()
    pipeline = make_pipeline(front, NaiveBayes()).fit(table, Y)
    assert pipeline.score(table, Y) > 0.9
    kinds = [f.kind for f in pipeline[-1].encoder_.schema_.features]
    assert kinds == ["binned"] * 4 + ["categorical"]


def test_cross_validation_on_two_processes_gives_the_scores_of_one():
    one = cross_val_score(NaiveBayes(), X, Y, cv=4)
    two = cross_val_score(NaiveBayes(), X, Y, cv=4, n_jobs=2)
    np.testing.assert_array_equal(one, two)


def test_metadata_routing_hands_sample_weights_to_fit_and_partial_fit():
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(Y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = NaiveBayes().set_fit_request(sample_weight=True)
        clf = clf.set_score_request(sample_weight=False)
        results = cross_validate(
            clf, X, Y, cv=3, params={"sample_weight": weights}, return_estimator=True
        )
        totals = [fitted.class_count_.sum() for fitted in results["estimator"]]
        assert sum(totals) == 2 * weights.sum()

        grid = {"smoothing": ["laplace", "m-estimate"]}
        search = GridSearchCV(clf, grid, cv=3).fit(X, Y, sample_weight=weights)
        assert search.best_estimator_.class_count_.sum() == weights.sum()

        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), clf
        )
        pipeline.fit(X, Y, sample_weight=weights)
        assert pipeline[-1].class_count_.sum() == weights.sum()

        routing = NaiveBayes().set_partial_fit_request(classes=True)
        assert routing.get_metadata_routing().partial_fit.requests["classes"] is True


def test_calibration_uses_its_probabilities_and_sample_weights():
    calibrated = CalibratedClassifierCV(NaiveBayes(), cv=3)
    calibrated.fit(X, Y, sample_weight=np.ones(len(Y)))
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert calibrated.score(X, Y) > 0.9


def test_voting_with_other_methods():
    vote = VotingClassifier(
        [(entry.acronym, entry.create()) for entry in steelyard.methods()],
        voting="soft",
    )
    assert vote.fit(X, Y).score(X, Y) > 0.93


@pytest.mark.parametrize("name", ["neg_log_loss", "neg_brier_score", "roc_auc_ovr"])
def test_scorers_of_probabilities_accept_it(name):
    # Before scikit-learn 1.7, Brier's score is one of two classes.
    rows = Y < 2 if name == "neg_brier_score" else Y < 3
    score = get_scorer(name)(NaiveBayes().fit(X[rows], Y[rows]), X[rows], Y[rows])
    assert np.isfinite(score)
