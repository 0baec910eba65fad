"""PMML: the form of the file, texts, refusals; what it computes is JPMML's to say."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import ParameterError
from steelyard.export.check import check

SPACE = "{http://www.dmg.org/PMML-4_4}"


def read(clf, **options):
    return ElementTree.fromstring(export.to_pmml(clf, **options))


def every(root, tag):
    return list(root.iter(SPACE + tag))


def test_coefficients_are_the_numbers_of_the_model():
    X = pd.DataFrame({"sky": ["sun", "rain"] * 10, "x": [1.0, 2.0, 3.0, np.nan] * 5})
    clf = sy.NaiveBayes(missing="value").fit(X, ["a", "b", "a", "b"] * 5)
    root = read(clf, target="weather")
    fields = [(f.get("name"), f.get("dataType")) for f in every(root, "DataField")]
    assert fields == [("sky", "string"), ("x", "double"), ("weather", "string")]
    plan = export.plan_of(clf)
    for c, table in enumerate(every(root, "RegressionTable")):
        assert float(table.get("intercept")) == plan.root.base[c]
        told = {
            (p.get("name"), p.get("value")): float(p.get("coefficient"))
            for p in every(table, "CategoricalPredictor")
        }
        sky, x = plan.root.terms
        for value, row in zip(sky.values, sky.rows, strict=True):
            assert told["sky", value] == row[c]
        assert told["missing(x)", "yes"] == x.missing[c]


def test_texts_cannot_break_out(hostile_table):
    X, y = hostile_table(100, 2)
    X = X.rename(columns={"colour": '"/><Extension a="'})
    clf = sy.NaiveBayes(categorical_features=['"/><Extension a="', "yes", "code"])
    root = read(clf.fit(X, np.array(["<b>&amp;", "two\nlines\t\r"])[y]))
    assert not every(root, "Extension")
    labels = [v.get("value") for v in every(root, "DataField")[-1]]
    assert labels == clf.classes_.tolist()
    found = {
        p.get("value")
        for p in every(root, "CategoricalPredictor")
        if p.get("name") == '"/><Extension a="'
    }
    assert found == {v for v in X['"/><Extension a="'] if v is not None}


@pytest.mark.parametrize("bad", ["\x01", "a\x00", "\ufffe"])
def test_characters_that_xml_cannot_hold_are_refused(bad):
    X = pd.DataFrame({"a": np.array(["u", "v"] * 10, dtype=object)})
    clf = sy.NaiveBayes().fit(X.set_axis([bad], axis=1), ["p", "q"] * 10)
    with pytest.raises(ParameterError, match=r"XML 1\.0 cannot hold"):
        export.to_pmml(clf)


@pytest.mark.parametrize(
    "target, message", [("a", "is a column"), ("", "name of a field"), (3, "got 3")]
)
def test_names_of_the_target(target, message, tmp_path):
    clf = sy.NaiveBayes().fit(pd.DataFrame({"a": ["u", "v"] * 10}), ["p", "q"] * 10)
    with pytest.raises(ParameterError, match=message):
        clf.export(tmp_path / "model.pmml", target=target)
    assert not list(tmp_path.iterdir())


def test_large_categories_and_large_models_are_refused():
    X = pd.DataFrame({"station": [1, 2**53] * 10})
    clf = sy.NaiveBayes(categorical_features=["station"]).fit(X, ["a", "b"] * 10)
    with pytest.raises(ParameterError, match="'station' has the category 9007199"):
        export.to_pmml(clf)
    names = np.repeat([f"name {i}" for i in range(5001)], 2)
    clf = sy.NaiveBayes().fit(
        pd.DataFrame({"name": names}), np.resize(range(200), 10002)
    )
    with pytest.raises(ParameterError, match="written as PMML"):
        export.to_pmml(clf)


@pytest.mark.parametrize(
    ("label", "kind"),
    [(2**31 - 1, "integer"), (2**31, "double"), (-(2**53) + 1, "double")],
)
def test_large_whole_numbers_as_classes_are_doubles(label, kind):
    X = pd.DataFrame({"sky": ["sun", "rain"] * 10})
    clf = sy.NaiveBayes().fit(X, [label, 1] * 10)
    root = read(clf)
    assert every(root, "DataField")[-1].get("dataType") == kind
    assert every(root, "OutputField")[0].get("dataType") == kind
    too_large = sy.NaiveBayes().fit(X, [2**53, 1] * 10)
    with pytest.raises(ParameterError, match=r"9007199254740992 is too large.* text"):
        export.to_pmml(too_large)


def with_returns():
    """A table with carriage returns, and a model in which they stand in all places."""
    rng = np.random.default_rng(0)
    texts = np.array(["a\r", "a\n", "a\r\n", "a\r\r", "a\t"])
    code = rng.integers(0, 5, (400, 2))
    X = pd.DataFrame(texts[code], columns=["first", "second\r"])
    y = np.array(["a\r", "b\n", "c\r\n"])[(code[:, 0] + code[:, 1]) % 3]
    return sy.TreeAugmentedNB().fit(X, y), X


def test_carriage_returns_stay():
    clf, X = with_returns()
    assert b"\r" not in export.to_pmml(clf)
    values = {e.text for e in read(clf).iter() if e.tag.endswith("value")}
    assert values >= set(X["first"])


@pytest.mark.engines
def test_carriage_returns_and_large_classes_in_jpmml():
    pytest.importorskip("jpmml_evaluator")
    assert check(*with_returns(), "pmml").agrees
    X = pd.DataFrame({"sky": ["sun", "rain"] * 10})
    for label in (3_000_000_000, -(10**12)):
        assert check(sy.NaiveBayes().fit(X, [label, 1] * 10), X, "pmml").agrees


@pytest.mark.engines
def test_text_of_numpy_is_text_in_jpmml():
    pytest.importorskip("jpmml_evaluator")
    X = pd.DataFrame({"sky": ["sun", "rain"] * 10})
    clf = sy.NaiveBayes().fit(X, ["play", "stay"] * 10)
    cells = pd.DataFrame({"sky": np.array([np.str_("sun"), None, np.str_("never")])})
    assert check(clf, cells, "pmml").agrees


METHODS = ["NB", "GNB", "RNB", "ENB", "BNB", "LNB"]


@pytest.mark.engines
@pytest.mark.parametrize("labels", [[0, 1, 2], [False, True], ["0", "1", "2"]])
@pytest.mark.parametrize("method", METHODS)
def test_classes_keep_their_types_and_names_differ(method, labels):
    pytest.importorskip("jpmml_evaluator")
    rng = np.random.default_rng(0)
    y = rng.choice(labels, 60)
    X = pd.DataFrame({"prediction": [f"v{v}" for v in y], "p(0)": rng.normal(size=60)})
    X.loc[::3, "prediction"] = "v0"
    clf = sy.method(method).fit(X, y)
    found = check(clf, X, "pmml")
    assert found.agrees, str(found)


@pytest.mark.engines
def test_elkans_votes_and_a_class_of_prior_0(hostile_table, hostile_rows):
    pytest.importorskip("jpmml_evaluator")
    X, y = hostile_table(200, 2)
    clf = sy.BoostedNB(form="elkan", categorical_features=["colour", "yes", "code"])
    clf.fit(X, y)
    assert check(clf, hostile_rows(clf, 300, 2), "pmml").agrees
    clf = sy.NaiveBayes(prior=[1.0, 0.0], categorical_features=["colour"]).fit(X, y)
    assert check(clf, hostile_rows(clf, 300, 2), "pmml").agrees


@pytest.fixture(scope="module")
def three():
    X = pd.DataFrame({"a": list("xyzxyzxzy") * 6, "b": [*range(9)] * 6})
    rng = np.random.default_rng(0)
    return X, np.where(rng.random(54) < 0.6, list("uvwuvwuwv") * 6, "v").tolist()


def test_a_mixture_averages_its_parts_by_their_shares(three):
    clf = sy.method("RNB").fit(*three)
    root = read(clf)
    (segmentation,) = every(root, "Segmentation")
    assert segmentation.get("multipleModelMethod") == "weightedAverage"
    shares = [float(s.get("weight")) for s in every(segmentation, "Segment")]
    assert shares == list(export.plan_of(clf).root.shares)


def test_one_vs_one_gives_each_class_the_mean_of_its_probabilities(three):
    clf = sy.method("WANBIA-CLL", multiclass="one-vs-one").fit(*three)
    (chain,) = every(read(clf), "Segmentation")
    *pairs, last = list(chain)
    assert (chain.get("multipleModelMethod"), len(pairs)) == ("modelChain", 3)
    said = [f.get("name") for pair in pairs for f in every(pair, "OutputField")]
    used = []
    for table in every(last, "RegressionTable"):
        parts = every(table, "NumericPredictor")
        assert [float(p.get("coefficient")) for p in parts] == [1 / 3, 1 / 3]
        used += [p.get("name") for p in parts]
    assert sorted(used) == sorted(said) and len(said) == 6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_voters_are_added_up_with_their_votes(three, n_classes):
    X, y = three
    clf = sy.method("BNB").fit(X, y if n_classes == 3 else [c == "u" for c in y])
    node = export.plan_of(clf).root
    (chain,) = every(read(clf), "Segmentation")
    *voters, last = list(chain)
    assert len(voters) == len(node.votes) > 1
    tables = every(last, "RegressionTable")
    kind = "NumericPredictor" if node.form == "elkan" else "CategoricalPredictor"
    found = [float(p.get("coefficient")) for p in every(tables[-1], kind)]
    factor = 2.0 if node.form == "elkan" else 1.0
    assert found == [factor * vote for vote in node.votes]
