"""``evaluate``: measures by cross-validation and on a test file."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix

import steelyard as sy


def test_cross_validation_agrees_with_compare(csv, frame, run_json):
    found = run_json(
        "evaluate", csv, "--target", "ill", "--method", "NB", "--folds", "4"
    )
    data = ("data", frame.drop(columns="ill"), frame["ill"])
    results = sy.compare("NB", [data], folds=4, n_jobs=1, progress=False)
    for name in ("accuracy", "balanced_accuracy", "f1", "log_loss", "brier", "ece"):
        assert found["metrics"][name] == pytest.approx(results.matrix(name)[0, 0])
    assert np.sum(found["confusion"]) == 60
    assert sum(entry["rows"] for entry in found["reliability"]) == 60


def test_a_model_is_measured_on_a_test_file(csv, frame, model, run, run_json):
    found = run_json("evaluate", model, csv, "--target", "ill")
    clf, table = sy.load(model), frame.drop(columns="ill")
    assert found["metrics"]["accuracy"] == pytest.approx(clf.score(table, frame["ill"]))
    expected = confusion_matrix(frame["ill"], clf.predict(table))
    assert np.array_equal(found["confusion"], expected)
    text = run("evaluate", model, csv, "--target", "ill").out
    for word in ("accuracy", "log-loss", "recall", "Calibration", "best F1"):
        assert word in text


def test_classes_that_are_numbers_are_found_in_any_spelling(
    tmp_path, frame, run, run_json
):
    frame["ill"] = (frame["ill"] == "sick").astype(int)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.astype({"ill": float}).to_csv(tmp_path / "b.csv", index=False)
    options = ["--target", "ill", "--method", "NB", "-o", tmp_path / "m.json"]
    assert run("fit", tmp_path / "a.csv", *options).status == 0
    both = [
        run_json("evaluate", tmp_path / "m.json", tmp_path / name, "--target", "ill")
        for name in ("a.csv", "b.csv")
    ]
    assert both[0]["metrics"] == both[1]["metrics"]
    assert both[0]["classes"] == [0, 1]


def test_classes_unknown_to_the_model_are_counted_as_wrong(
    tmp_path, frame, model, run_json
):
    frame.loc[:9, "ill"] = "dead"
    frame.to_csv(tmp_path / "new.csv", index=False)
    found = run_json("evaluate", model, tmp_path / "new.csv", "--target", "ill")
    assert found["rows_of_unseen_classes"] == 10
    assert found["classes"] == ["sick", "well", "dead"]
    assert found["thresholds"] is None
    assert np.sum(found["confusion"][2]) == 10


def test_small_classes_are_mentioned_and_the_run_goes_on(tmp_path, frame, run):
    frame.loc[[0, 1], "ill"] = "rare"
    frame.to_csv(tmp_path / "rare.csv", index=False)
    path = tmp_path / "rare.csv"
    done = run("evaluate", path, "--target", "ill", "--method", "NB", "--folds", 3)
    assert done.status == 0
    assert "1 of 3 classes have fewer rows than folds" in done.err


def test_a_baseline_without_probabilities_can_be_measured(csv, run_json):
    found = run_json(
        "evaluate", csv, "--target", "ill", "--method", "SVM", "--folds", 2
    )
    assert found["metrics"]["accuracy"] > 0.5


def test_weights_reach_the_fits(tmp_path, frame, run_json):
    path = tmp_path / "w.csv"
    frame.assign(w=np.where(frame["ill"] == "sick", 100, 1)).to_csv(path, index=False)
    options = ["--target", "ill", "--method", "NB", "--folds", 3]
    claimed = [
        np.array(run_json("evaluate", path, *options, *extra)["confusion"])[:, 0].sum()
        for extra in (["--drop", "w"], ["--weights", "w"])
    ]
    assert claimed[1] > claimed[0] + 5


def test_costs_and_the_positive_class_are_options(csv, model, run, run_json):
    options = ["--target", "ill", "--positive", "sick", "--costs", "1,5"]
    found = run_json("evaluate", model, csv, *options)["thresholds"]
    assert found["positive"] == "sick"
    assert found["best_cost"]["cost"] <= min(entry["cost"] for entry in found["table"])
    assert "least cost" in run("evaluate", model, csv, *options).out


def test_groups_are_measured_by_folds_and_on_a_test_file(tmp_path, frame, run_json):
    frame["sex"] = np.where(np.arange(60) % 3 == 0, "f", "m")
    path, model = tmp_path / "s.csv", tmp_path / "s.json"
    frame.to_csv(path, index=False)
    clf = sy.NaiveBayes().fit(frame[["age", "smoker", "zip"]], frame["ill"])
    clf.save(model)
    options = ["--target", "ill", "--by", "sex"]
    found = run_json("evaluate", model, path, *options)["groups"]
    women = frame[frame["sex"] == "f"]
    score = clf.score(women[["age", "smoker", "zip"]], women["ill"])
    assert found["f"]["accuracy"]["value"] == pytest.approx(score)
    assert found["f"]["accuracy"]["low"] < score < found["f"]["accuracy"]["high"]
    folds = ["--method", "NB", "--folds", "3"]
    for extra in ([], ["--drop", "sex"]):
        found = run_json("evaluate", path, *options, *folds, *extra)["groups"]
        assert [found[name]["rows"] for name in "fm"] == [20, 40]
    found = run_json("evaluate", model, path, "--target", "ill", "--by", "age")
    assert len(found["groups"]) == 5


def test_a_cost_has_a_threshold_and_an_interval(csv, model, run, run_json):
    options = ["--target", "ill", "--positive", "sick", "--cost", "fp=1,fn=5"]
    found = run_json("evaluate", model, csv, *options)
    assert found["thresholds"]["by_cost"]["threshold"] == pytest.approx(1 / 6)
    cost = found["cost_per_row"]
    assert cost["low"] <= cost["value"] <= cost["high"]
    shown = run("evaluate", model, csv, *options, "--by", "smoker").out
    for text in ("by the costs", "expected cost", "95 % interval", "misses %"):
        assert text in shown


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["CSV", "--target", "ill", "--folds", "1"], "at least 2"),
        (["CSV", "--target", "ill", "--folds", "59"], "use --folds="),
        (["CSV", "--target", "il"], "Did you mean 'ill'"),
        (["CSV", "--target", "ill", "--costs", "1"], "such as 1,20"),
        (["CSV", "--target", "ill", "--costs", "0,0"], "such as 1,20"),
        (["CSV", "--target", "ill", "--cost", "fp=1,tn=2"], "takes fp= and fn="),
        (["CSV", "--target", "ill", "--cost", "fp=1,fn=x"], "such as fp=1,fn=20"),
        (["CSV", "--target", "zip", "--cost", "fp=1,fn=2"], "there are 3"),
        (["CSV", "--target", "ill", "--by", "smokr"], "Did you mean 'smoker'"),
        (["MODEL", "CSV", "--target", "ill", "--by", "smokr"], "Did you mean"),
        (["MODEL", "CSV", "--target", "ill", "--by", "ill"], "names the target"),
        (["MODEL", "NOTRUTH"], "--target"),
        (["MODEL", "CSV", "--target", "il"], "Did you mean 'ill'"),
        (["MODEL", "CSV", "--target", "age"], "predicts from"),
        (["MODEL", "CSV", "--target", "ill", "--method", "NB"], "is fitted"),
        (["MODEL", "CSV", "--target", "ill", "--set", "a=1"], "--set is for training"),
        (["MODEL", "CSV", "--target", "ill", "--weights", "zip"], "is for training"),
        (["MODEL", "CSV", "--target", "ill", "--folds", "3"], "--folds is for cross"),
        (["MODEL", "CSV", "--target", "ill", "--seed", "0"], "--seed is for cross"),
        (["MODEL", "CSV", "--target", "ill", "--positive", "x"], "among the classes"),
        (["a", "b", "c"], "a model file and a test file"),
        (["CSV", "MODEL", "--target", "ill"], "not a model file"),
        (["ONE", "--target", "ill"], "one class"),
    ],
)
def test_evaluate_refuses(tmp_path, csv, frame, model, refused, arguments, message):
    one = tmp_path / "one.csv"
    frame.assign(ill="sick").to_csv(one, index=False)
    frame.drop(columns="ill").to_csv(tmp_path / "no.csv", index=False)
    places = {"CSV": csv, "MODEL": model, "ONE": one, "NOTRUTH": tmp_path / "no.csv"}
    assert message in refused("evaluate", *(places.get(a, a) for a in arguments))


def test_labels_that_are_no_classes_of_the_model_are_refused(
    tmp_path, frame, model, refused
):
    path = tmp_path / "new.csv"
    frame.assign(ill="other").to_csv(path, index=False)
    message = refused("evaluate", model, path, "--target", "ill")
    assert "is a class of the model: sick, well" in message
    pd.DataFrame(frame.assign(ill="")).to_csv(path, index=False)
    assert "is empty" in refused("evaluate", model, path, "--target", "ill")


def test_a_roc_curve_is_drawn(csv, model, run, refused, tmp_path):
    for name, data in (("a.svg", [csv]), ("b.png", [model, csv])):
        options = ["--target", "ill", "--picture", tmp_path / name]
        method = ["--method", "NB"] if len(data) == 1 else []
        done = run("evaluate", *data, *options, *method)
        assert done.status == 0, done.err
        assert f"written: {tmp_path / name}" in done.err
        assert "kappa" in done.out and "of the most frequent class" in done.out
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    assert "exists" in refused("evaluate", *data, *options)
    options[-1] = tmp_path / "c.doc"
    assert "Pictures are written to .png" in refused("evaluate", *data, *options)


def test_many_classes_and_rows_without_a_label_are_reported(run, tmp_path):
    labels = [f"k{i % 22}" for i in range(220)]
    frame = pd.DataFrame({"a": [i % 22 for i in range(220)], "kind": labels})
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame.loc[:4, "kind"] = None
    frame.to_csv(tmp_path / "test.csv", index=False)
    options = ("--target", "kind", "--method", "NB", "-o", tmp_path / "m.json")
    assert run("fit", tmp_path / "train.csv", *options).status == 0
    done = run("evaluate", tmp_path / "m.json", tmp_path / "test.csv")
    assert done.status == 0, done.err
    assert "dropped 5 rows without 'kind'" in done.err
    assert "the confusion matrix of 22 classes is in --json" in done.err + done.out
    asked = run(
        "evaluate", tmp_path / "m.json", tmp_path / "test.csv", "--positive", "k1"
    )
    assert "thresholds need two classes" in asked.err
