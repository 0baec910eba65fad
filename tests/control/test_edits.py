"""Edits: every kind, with every method that is a sum, saved, exported and undone."""

import json
import sqlite3
import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ModelFileError, ParameterError
from steelyard.explain.page import page_data
from steelyard.export import to_sql


def table(n=300, seed=0, n_classes=2):
    """Numbers, text and missing cells."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    colour = np.array(["red", "green", "blue"], dtype=object)
    colour = colour[np.where(rng.random(n) < 0.5, y, rng.integers(0, 3, n))]
    colour[rng.random(n) < 0.1] = None
    age = np.round(40 + 12 * y + 15 * rng.normal(size=n))
    X = pd.DataFrame(
        {
            "colour": colour,
            "age": np.where(rng.random(n) < 0.05, np.nan, age),
            "width": np.round(3.0 - y + rng.normal(size=n), 1),
        }
    )
    return X, np.array(["no", "yes", "perhaps"])[y]


METHODS = {
    "NB": sy.NaiveBayes(numeric="equal-frequency"),
    "missing value": sy.NaiveBayes(numeric="equal-frequency", missing="value"),
    "imputed": sy.NaiveBayes(numeric="equal-frequency", missing="impute"),
    "united cut points": sy.NaiveBayes(numeric=("equal-width", "equal-frequency")),
    "weighted": sy.WeightedNB(lam=1.0, numeric="equal-frequency"),
    "value weights": sy.ValueWeightedNB(lam=1.0, numeric="equal-frequency"),
    "exponential, bins": sy.method("WANBIA-CLL", numeric="equal-frequency"),
    "filter": sy.method("CFW", numeric="equal-frequency"),
    "tree": sy.method("TAN", numeric="equal-frequency"),
    "default": sy.ShrinkageNB(
        strength=(1.0, 4.0, 1.0), interactions=[("colour", "age")]
    ),
}
EDITS = {
    "set": {"column": "age", "from": 30, "to": 50, "set": 0.25},
    "flatten": {"column": "age", "from": 30, "to": 60, "flatten": True},
    "interpolate": {"column": "age", "from": 20, "to": 60, "interpolate": True},
    "rise": {"column": "age", "monotone": "increasing"},
    "fall": {"column": "age", "monotone": "decreasing", "from": 30},
    "set values": {"column": "colour", "values": ["red", "blue"], "set": -0.5},
    "merge values": {"column": "colour", "values": ["red", "blue"], "merge": True},
    "remove": {"column": "width", "remove": True},
    "scale": {"column": "width", "scale": 0.5},
    "scale codes": {"column": "colour", "scale": 2},
}


@pytest.fixture(scope="module", params=list(METHODS))
def fitted(request):
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[request.param].fit(X, y), X, y


def curve(clf, column, numbers):
    """Evidence of numbers of a column, for the second class."""
    X = pd.DataFrame({"colour": None, "age": np.nan, "width": np.nan}, index=[0])
    X = pd.concat([X] * (len(numbers) + 1), ignore_index=True)
    X["colour"] = X["colour"].astype(object)
    X.loc[1:, column] = numbers
    clf = copy(clf)
    clf.model_ = clf.model_.summed  # what the column adds by itself
    explanation = clf.explain_local(X)
    own = explanation.contributions[1:, explanation.attributes.index(column)]
    return clf.model_.link_scale * np.diff(own, axis=1)[:, 0]


@pytest.mark.parametrize("kind", list(EDITS))
def test_every_kind_is_saved_exported_and_undone_to_the_bit(fitted, kind, tmp_path):
    clf, X, _ = fitted
    before = clf.predict_proba(X)
    made = clf.edited([EDITS[kind]], reason="the board said so")
    after = made.predict_proba(X)
    assert type(made) is type(clf) and not hasattr(clf, "edits_")
    assert (clf.predict_proba(X) == before).all()
    assert np.abs(after - before).max() > 1e-4
    made.save(tmp_path / "edited.json")
    loaded = sy.load(tmp_path / "edited.json")
    assert (loaded.predict_proba(X) == after).all()
    (edit,) = loaded.edits_
    assert edit.reason == "the board said so" and edit.when.startswith("20")
    assert json.loads(edit.asked) == EDITS[kind]
    assert edit.before == made.edits_[0].before and len(edit.values) == len(edit.after)
    back = loaded.unedited()
    assert (back.predict_proba(X) == before).all() and not hasattr(back, "edits_")
    back.save(tmp_path / "back.json")
    clf.save(tmp_path / "first.json")
    assert (tmp_path / "back.json").read_bytes() == (
        tmp_path / "first.json"
    ).read_bytes()
    with sqlite3.connect(":memory:") as base:
        X.to_sql("data", base, index=False)
        found = pd.read_sql_query(to_sql(loaded, "sqlite"), base)
    np.testing.assert_allclose(found["p(yes)"], after[:, 1], atol=1e-12)
    assert "edited once" in to_sql(loaded)
    np.testing.assert_allclose(
        loaded.scorer()(X.iloc[0].to_dict())["yes"], after[0, 1], atol=1e-12
    )


def test_curves_are_as_asked_for(fitted):
    clf, _, _ = fitted
    if clf.model_.schema.is_interaction.any():
        clf = clf.edited(
            [{"interaction": p, "remove": True} for p in interactions_of(clf)]
        )
    numbers = np.arange(25.0, 65.0)
    old = curve(clf, "age", numbers)
    new = curve(clf.edited(EDITS["set"]), "age", numbers)
    inner = (numbers >= 33) & (numbers <= 47)
    np.testing.assert_allclose(new[inner], 0.25, atol=1e-9)
    outer = curve(clf.edited({**EDITS["flatten"]}), "age", numbers)[inner]
    assert np.ptp(outer) < 1e-9 < np.ptp(old)
    rising = curve(clf.edited(EDITS["rise"]), "age", numbers)
    assert (np.diff(rising) >= -1e-12).all()
    line = curve(clf.edited(EDITS["interpolate"]), "age", numbers)
    assert len(np.unique(np.sign(np.round(np.diff(line[3:-8]), 9)))) <= 2


def interactions_of(clf):
    names = clf.explain_global().attributes[clf.n_features_in_ :]
    return [name.split(" × ") for name in names]


def test_explanations_and_pages_show_edits(fitted, tmp_path):
    clf, _, _ = fitted
    made = clf.edited(EDITS["remove"], "useless").edited(EDITS["set values"])
    told = repr(made.explain_global())
    assert "width (edited)" in told and "remove width (useless)" in told
    assert "(edited)" not in repr(clf.explain_global())
    shown = made.explain_global().table("width")
    np.testing.assert_allclose(shown.evidence, 0.0, atol=1e-12)
    table = made.explain_global().table("colour")
    values = dict(zip(table.labels, table.evidence[:, 1], strict=True))
    assert values["red"] == pytest.approx(-0.5) == pytest.approx(values["blue"])
    made.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Edited by hand: 2" in page and "remove width (useless)" in page
    clf.to_html(tmp_path / "plain.html")
    assert "Edited by hand" not in (tmp_path / "plain.html").read_text(encoding="utf-8")


def test_the_mean_score_stays_without_a_column(fitted):
    clf, X, _ = fitted
    made = clf.edited(EDITS["remove"])
    one, other = (np.diff(c.explain_global().base)[0] for c in (clf, made))
    assert one == pytest.approx(other, abs=1e-9)
    changed = X.assign(width=X["width"] + 1.0)
    if not clf.model_.schema.is_interaction.any():
        assert (made.predict_proba(changed) == made.predict_proba(X)).all()


def test_a_interaction_is_removed():
    X, y = table()
    clf = METHODS["default"].fit(X, y)
    made = clf.edited({"interaction": ["age", "colour"], "remove": True})
    assert made.edits_[0].text == "remove colour × age"
    assert " × " not in "".join(a for a in to_sql(made).split() if "sy_" not in a)
    half = clf.edited({"interaction": ["colour", "age"], "scale": 0.5})
    three = [c.predict_joint_log_proba(X) for c in (clf, half, made)]
    np.testing.assert_allclose(three[0] - three[1], three[1] - three[2], atol=1e-12)


def test_missing_cells_have_evidence_where_they_are_a_value():
    X, y = table()
    edit = {"column": "colour", "values": [None], "set": 1.0}
    clf = sy.NaiveBayes(missing="value").fit(X, y)
    shown = clf.edited(edit).explain_global().table("colour")
    assert shown.evidence[-1, 1] == pytest.approx(1.0)
    with pytest.raises(ParameterError, match="missing='value'"):
        sy.NaiveBayes().fit(X, y).edited(edit)


def test_more_classes_name_the_class():
    X, y = table(n_classes=3)
    clf = sy.NaiveBayes().fit(X, y)
    edit = {"column": "colour", "values": ["red"], "set": 1.0}
    with pytest.raises(ParameterError, match="needs 'class'"):
        clf.edited(edit)
    made = clf.edited({**edit, "class": "perhaps"})
    table_ = made.explain_global().table("colour")
    own = table_.evidence[table_.labels.index("red")]
    assert own[made.classes_.tolist().index("perhaps")] == pytest.approx(1.0)


def test_the_start_is_fitted_again():
    X, y = table()
    clf = sy.WeightedNB(lam=1.0).fit(X, y)
    shifted = clf.edited({"column": "colour", "values": ["red"], "set": 2.0})
    made = clf.edited(
        {"column": "colour", "values": ["red"], "set": 2.0}, recalibrate=(X, y)
    )
    rates = [(y == "yes").mean(), made.predict_proba(X)[:, 1].mean()]
    assert rates[0] == pytest.approx(rates[1], abs=1e-8)
    assert abs(shifted.predict_proba(X)[:, 1].mean() - rates[0]) > 1e-3
    assert made.edits_[-1].text == f"intercept recalibrated on {len(X)} rows"
    assert (made.unedited().predict_proba(X) == clf.predict_proba(X)).all()


def test_the_start_is_fitted_again_where_scores_are_half_of_log_odds():
    X, y = table()
    clf = sy.WeightedNB(loss="exponential", calibrated=True, lam=1.0).fit(X, y)
    assert clf.model_.link_scale == 2.0
    made = clf.edited(EDITS["set values"], recalibrate=(X, y))
    rates = [(y == "yes").mean(), made.predict_proba(X)[:, 1].mean()]
    assert rates[0] == pytest.approx(rates[1], abs=1e-8)


def test_an_edit_may_have_another_reason_than_all():
    clf = METHODS["NB"].fit(*table())
    first = {**EDITS["remove"], "reason": "not allowed"}
    made = clf.edited([first, EDITS["rise"]], reason="the board said so")
    assert [e.reason for e in made.edits_] == ["not allowed", "the board said so"]


def test_a_line_between_bins_is_straight_in_numbers_not_in_places():
    X = pd.DataFrame({"x": np.tile([0.0, 1.0, 2.0, 10.0], 30)})
    y = np.where(np.arange(120) % 7 < X["x"], "no", "yes")
    edges = sy.FixedEdgesDiscretizer([0.5, 1.5, 6.0])
    clf = sy.NaiveBayes(numeric=edges).fit(X, y)
    made = clf.edited({"column": "x", "interpolate": True})
    curve = np.array(made.edits_[-1].after)
    # The middles of the bins, between 0 and 10.
    shares = (np.array([0.25, 1.0, 3.75, 8.0]) - 0.25) / 7.75
    expected = curve[0] + shares * (curve[-1] - curve[0])
    assert abs(curve[-1] - curve[0]) > 0.01
    np.testing.assert_allclose(curve, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("age", "must be a mapping"),
        ({"column": "age"}, "needs one action"),
        ({"column": "age", "set": 1, "remove": True}, "needs one action"),
        ({"set": 1}, "needs 'column' or 'interaction'"),
        ({"column": "agee", "remove": True}, "no column 'agee'. Did you mean 'age'"),
        ({"column": "age", "form": 3, "set": 1}, "no key 'form'. Did you mean 'from'"),
        ({"column": "age", "from": "a", "set": 1}, "'from' must be a number"),
        ({"column": "age", "set": "high"}, "'set' must be a number"),
        ({"column": "age", "set": float("nan")}, "'set' must be a number"),
        ({"column": "age", "from": 900, "set": 1}, "Its cut points are"),
        ({"column": "age", "values": ["red"], "set": 1}, "has numbers: say 'from'"),
        ({"column": "age", "monotone": "up"}, "'increasing' or 'decreasing'"),
        ({"column": "age", "remove": 1}, "'remove' must be true"),
        ({"column": "age", "remove": True, "to": 3}, "take no 'to'"),
        ({"column": "colour", "set": 1}, "name its 'values'"),
        ({"column": "colour", "values": ["rad"], "set": 1}, "Did you mean 'red'"),
        ({"interaction": ["age", "width"], "remove": True}, "no interaction"),
        ({"interaction": "age", "remove": True}, "must be two columns"),
        ({"column": "colour", "values": ["red"], "to": 3, "set": 1}, "or 'from' and"),
        ({"column": "colour", "values": ["red"], "set": 1, "class": "q"}, "among"),
        ({"column": "colour", "values": [["red"]], "set": 1}, r"no value \['red'\]"),
        ({"column": "colour", "values": [], "set": 1}, "one value or more"),
        ({"column": "colour", "values": "red", "set": 1}, "one value or more"),
        ({"column": "colour", "values": 3, "set": 1}, "one value or more"),
        ({"column": "age", "monotone": ["x"]}, "'increasing' or 'decreasing'"),
        ({"column": "age", "set": np.float32("nan")}, "'set' must be a number"),
        (
            {"column": "age", "from": np.inf, "set": 1},
            "'from' must be a number that is finite",
        ),
        ({"column": ["age"], "remove": True}, "no column"),
        ({"interaction": 5, "remove": True}, "must be two columns"),
        ({"interaction": ["age", 3], "remove": True}, "no interaction"),
        ({"interaction": [["age"], "width"], "remove": True}, "no interaction"),
    ],
)
def test_what_is_no_edit_is_refused(edit, message):
    X, y = table(100)
    clf = sy.NaiveBayes(numeric="equal-frequency").fit(X, y)
    with pytest.raises(ParameterError, match=message):
        clf.edited([edit])
    with pytest.raises(ParameterError, match="no edit"):
        clf.edited([])
    for wrong in (5, "remove age"):
        with pytest.raises(ParameterError, match="list of mappings"):
            clf.edited(wrong)
    with pytest.raises(ParameterError, match=r"\(X, y\)"):
        clf.edited([], recalibrate=(X,))


def test_numbers_of_numpy_are_numbers_and_values_count_once(tmp_path):
    X, y = table(100)
    clf = sy.NaiveBayes(numeric="equal-frequency").fit(X, y)
    for one in (np.int64(1), np.float32(1.0)):
        made = clf.edited({"column": "age", "from": np.int32(30), "set": one})
        same = clf.edited({"column": "age", "from": 30, "set": 1.0})
        assert (made.predict_proba(X) == same.predict_proba(X)).all()
        made.save(tmp_path / "m.json")
        assert json.loads(sy.load(tmp_path / "m.json").edits_[0].asked)["set"] == 1.0
    both = {"column": "colour", "merge": True}
    once, more = (
        clf.edited({**both, "values": values})
        for values in (["red", "blue"], ("red", "blue", "red"))
    )
    assert (once.predict_proba(X) == more.predict_proba(X)).all()


def test_an_interaction_is_distinguished_from_a_column_of_its_name():
    X, y = table()
    X["colour × age"] = np.arange(len(X)) % 2
    clf = sy.ShrinkageNB(
        strength=(1.0, 4.0, 1.0), interactions=[("colour", "age")]
    ).fit(X, y)
    made = clf.edited({"interaction": ("age", "colour"), "remove": True})
    (j,) = np.flatnonzero(clf.model_.schema.is_interaction)
    before, after = (c.model_.contributions(c._encode(X)) for c in (clf, made))
    assert before[:, j].any() and not after[:, j].any()
    assert (np.delete(before, j, axis=1) == np.delete(after, j, axis=1)).all()


def test_what_is_no_sum_or_has_no_bins_is_refused():
    X, y = table(100)
    with pytest.raises(ParameterError, match="not one sum"):
        sy.RegularizedNB(lam=1.0).fit(X, y).edited(EDITS["remove"])
    with pytest.raises(ParameterError, match="by a density"):
        sy.NaiveBayes(numeric="gaussian").fit(X, y).edited(EDITS["set"])


def test_a_file_with_edits_that_do_not_fit_is_refused(tmp_path):
    from steelyard.persistence.content import content_of, estimator_from
    from steelyard.persistence.reader import InvalidContentError

    X, y = table(100)
    made = sy.NaiveBayes().fit(X, y).edited(EDITS["set values"])
    for key, wrong in [
        ("places", [10**6]),
        ("table", [0.0]),
        ("when", 3),
        ("log_prior", [0.0]),
        ("values", [1]),
    ]:
        content = json.loads(json.dumps(content_of(made)))
        content["fitted"]["edits_"][0][key] = wrong
        with pytest.raises((InvalidContentError, ModelFileError)):
            estimator_from(content)


def test_a_card_of_an_edited_model_has_no_points_for_what_was_removed():
    X, y = table()
    X["twin"] = X["width"] + 0.1
    clf = sy.NaiveBayes(numeric="equal-frequency").fit(X, y)
    card = clf.edited(EDITS["remove"], "not allowed").scorecard(X, max_cells=6)
    assert "width" not in card.to_frame()["column"].tolist()
    assert "Edited by hand: remove width (not allowed), 20" in card.to_html()
    assert "width" in clf.scorecard(X).to_frame()["column"].tolist()


def test_an_edited_model_does_not_learn_on_silently():
    X, y = table(100)
    made = sy.NaiveBayes(numeric="equal-frequency").fit(X, y).edited(EDITS["remove"])
    with pytest.raises(ParameterError, match="edited by hand"):
        made.partial_fit(X, y)
    made.unedited().partial_fit(X, y)
    assert not hasattr(made.fit(X, y), "edits_")


def test_an_edit_that_breaks_a_shape_is_refused_unless_allowed(tmp_path):
    X, y = table()
    wanted = {"age": "increasing"}
    clf = sy.ShrinkageNB(
        strength=(2.5, 10.0, 1.0), interactions=None, constraints=wanted
    )
    clf.fit(X, y)
    clf.edited({"column": "age", "scale": 0.5}).edited(EDITS["remove"])
    falls = {"column": "age", "from": 50, "set": -3.0}
    with pytest.raises(ParameterError, match="not true that age is increasing"):
        clf.edited(falls)
    made = clf.edited(falls, break_shapes=True)
    assert made.edits_[0].text.endswith("not any more: age is increasing")
    clf.edited({"column": "width", "scale": 2.0})
    assert (made.unedited().predict_proba(X) == clf.predict_proba(X)).all()
    assert clf.explain_global().constraints == {"age": "increasing"}
    assert "age (increasing)" in repr(clf.explain_global())


def test_explanations_of_rows_mark_what_was_edited(fitted):
    clf, X, _ = fitted
    made = clf.edited(EDITS["set"])
    items = {
        item.attribute: item for item in made.explain_local(X[:1]).evidence().items
    }
    assert items["age"].edited and items["age"].title == "age (edited)"
    assert not items["width"].edited and "age (edited)" in repr(
        made.explain_local(X[:1])
    )
    own = {entry["name"]: entry for entry in page_data(made)["attributes"]}
    assert own["age"]["edited"] and "edited" not in own["width"]


def test_steps_of_a_page_are_the_bins_that_edits_change(fitted):
    from steelyard.control.edits import edit_steps

    steps = edit_steps(fitted[0])
    assert set(steps) == {"0", "1", "2"}
    for step in steps.values():
        n = len(step["middles"])
        assert len(step["weights"]) == n and min(step["weights"]) >= 0
        for k, edge in enumerate(step["edges"]):
            assert step["middles"][k] <= edge <= step["middles"][k + 1]


PRIORS = {"default": sy.ShrinkageNB(strength=(1.0, 4.0, 1.0), interactions=None)}
PRIORS |= {name: METHODS[name] for name in ("NB", "united cut points", "weighted")}
PRIORS["exponential"] = sy.WeightedNB(
    loss="exponential", calibrated=True, numeric="equal-frequency"
)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", list(PRIORS))
def test_edits_and_priors_are_undone_one_by_one_in_any_order(name, n_classes, tmp_path):
    X, y = table(n_classes=n_classes)
    clf = PRIORS[name].fit(X, y)
    file = tmp_path / "m.json"
    changes = {
        "e": lambda clf: clf.edited(
            [
                {"column": "colour", "remove": True},
                {"column": "age", "from": 40, "set": 0.5, "class": "yes"},
            ]
        ),
        "r": lambda clf: clf.edited([], "more ill", recalibrate=(X[:90], y[:90])),
        "p": lambda clf: clf.with_prior({"no": 0.1}),
        "q": lambda clf: clf.with_prior({"yes": 0.6}),
        "u": lambda clf: clf.unedited(),
        "l": lambda clf: sy.load(clf.save(file) or file),
    }

    def after(steps):
        made = clf
        for step in steps:
            made = changes[step](made)
        return made

    for steps, same in {
        "epu": "p",
        "elplul": "p",
        "peu": "p",
        "erpu": "p",
        "epequ": "pq",
        "pelqlrlu": "pq",
        "epuqe": "pqe",
        "epueu": "p",
    }.items():
        made, wanted = after(steps), after(same)
        assert np.array_equal(made.predict_proba(X), wanted.predict_proba(X)), steps
        assert np.array_equal(made.class_log_prior_, wanted.class_log_prior_), steps
        assert hasattr(made, "edits_") == hasattr(wanted, "edits_")
        answer = list(made.scorer()(X.iloc[0].to_dict()).values())
        np.testing.assert_allclose(answer, made.predict_proba(X)[0], atol=1e-12)
    shares = np.exp(clf.class_log_prior_)
    assert (clf.model_.link_scale != 1.0) == (name == "exponential")
    made = after("ep")
    p = after("e").predict_proba(X) * np.exp(made.class_log_prior_) / shares
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(made.predict_proba(X), p, atol=1e-12)
    back = after("ep").with_prior(shares)
    np.testing.assert_allclose(
        back.predict_proba(X), after("e").predict_proba(X), atol=1e-12
    )
    np.testing.assert_allclose(
        back.unedited().predict_proba(X), clf.predict_proba(X), atol=1e-12
    )
    np.testing.assert_allclose(
        after("pe").predict_proba(X), after("ep").predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize("kind", ["flatten", "merge values"])
def test_the_mean_of_training_rows_stays_where_values_become_one(kind):
    X, y = table()
    # Two values with rows unlike in number.
    X["colour"] = X["colour"].replace("green", "red")
    clf = METHODS["NB"].fit(X, y)
    (edit,) = clf.edited(EDITS[kind]).edits_
    schema = clf.model_.schema
    j = schema.labels().index(edit.attribute)
    counts = clf.counts_.by_code[schema.offsets[j] : schema.offsets[j + 1]].sum(axis=1)
    named = [schema.describe(j, code) for code in range(len(counts))]
    rows = counts[[named.index(value) for value in edit.values]]
    assert len(rows) > 1 and np.ptp(rows) > 0 and np.ptp(edit.before) > 0
    np.testing.assert_allclose(edit.after, rows @ edit.before / rows.sum(), atol=1e-12)


def test_scores_of_training_rows_are_not_those_with_other_priors(tmp_path):
    X, y = table()
    clf = METHODS["NB"].fit(X, y)
    assert clf.training_.score_ranges is not None
    for made in (clf, clf.edited(EDITS["remove"])):
        rare = made.with_prior({"yes": 0.05})
        rare.save(tmp_path / "m.json")
        for own in (rare, sy.load(tmp_path / "m.json"), rare.edited(EDITS["set"])):
            assert own.training_.score_ranges is None
    assert clf.training_.score_ranges is not None


def test_missing_cells_stay_when_bins_are_edited():
    X, y = table()
    numeric = ("equal-width", "equal-frequency")
    clf = sy.NaiveBayes(numeric=numeric, missing="value").fit(X, y)
    made = clf.edited(EDITS["set"])
    before, after = clf.predict_proba(X), made.predict_proba(X)
    is_missing = X["age"].isna().to_numpy()
    assert is_missing.any()
    np.testing.assert_allclose(after[is_missing], before[is_missing], atol=1e-12)
    assert np.abs(after - before)[X["age"].between(35, 45)].max() > 1e-3
