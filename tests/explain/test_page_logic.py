"""What the page computes, in Node: posteriors, changes and what to ask next."""

import json
import subprocess
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.control.edits import edit_steps
from steelyard.explain import page
from steelyard.explain.page import page_data
from steelyard.explain.reasons import reasons
from tests.explain.conftest import CASES, fitted
from tests.explain.test_page import settings_of

TEN = [
    "NB",
    "missing value",
    "imputed",
    "Gaussian",
    "value weights",
    "mixture",
    "calibrated pairs",
    "default",
    "interactions",
    "several discretizers",
]


def in_node(node, folder, given, code):
    """Return what an expression gives, with the scripts of the page at hand."""
    (folder / "in.json").write_text(json.dumps(given), encoding="utf-8")
    scoring = files("steelyard.export") / "assets" / "scoring.js"
    marginal = files("steelyard.export") / "assets" / "marginal.js"
    assets = files("steelyard.explain") / "assets"
    lines = [
        f"global.marginal = require({json.dumps(str(marginal))});",
        f"global.scoring = require({json.dumps(str(scoring))});",
        f"const changes = require({json.dumps(str(assets / 'changes.js'))});",
        f"const spread = require({json.dumps(str(assets / 'spread.js'))});",
        "const given = JSON.parse(require('fs').readFileSync('in.json'));",
        f"console.log(JSON.stringify({code}));",
    ]
    done = subprocess.run(
        [node, "-e", "\n".join(lines)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def random_rows(X, n, seed=0):
    """Rows of which each cell is one of its column, or missing."""
    random = np.random.default_rng(seed)
    rows = {}
    for name in X.columns:
        cells = X[name].sample(n, replace=True, random_state=random.integers(1 << 30))
        known = random.random(n) < 0.7
        rows[name] = [c if k else None for c, k in zip(cells, known, strict=True)]
    kinds = {"length": float, "width": float, "striped": object}
    return pd.DataFrame(rows).astype(kinds)


@pytest.mark.parametrize("name", TEN)
def test_posteriors_on_random_settings_are_those_of_python(name, mixed, node, tmp_path):
    assert name in CASES
    clf, rows = fitted(name, *mixed), random_rows(mixed[0], 200)
    given = {"data": page_data(clf), "rows": settings_of(rows)}
    code = (
        "given.rows.map((row, i) => [scoring.posterior(given.data.model, row),"
        " scoring.along(given.data.model, row, i % 4).posterior(row[i % 4])])"
    )
    found = np.array(in_node(node, tmp_path, given, code))
    expected = clf.predict_proba(rows)
    np.testing.assert_allclose(found[:, 0], expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[:, 1], expected, rtol=0, atol=1e-9)


def with_script(name, stubs, code):
    """Return an expression of what a script of the page makes, given its globals."""
    path = files("steelyard.explain") / "assets" / f"{name}.js"
    made = {"sure": "sureness", "edit": "editing"}.get(name, name)
    text = f"require('fs').readFileSync({json.dumps(str(path))}, 'utf8')"
    body = f"{text} + '; return {made};'"
    keys = ", ".join(json.dumps(key) for key in stubs)
    call = f"new Function({keys}, {body})({', '.join(stubs.values())})"
    return f"((made) => {code})({call})"


@pytest.mark.parametrize("name", ["default", "interactions"])
def test_intervals_of_the_page_are_those_of_python(name, mixed, two, node, tmp_path):
    for X, y in (mixed, two):
        clf, rows = fitted(name, X, y), X[:30]
        given = {"data": page_data(clf), "rows": settings_of(rows)}
        k = len(clf.classes_)
        each = f"[...Array({k}).keys()].map((c) => made.interval(row, c))"
        code = f"given.rows.map((row) => {each})"
        stubs = {"controls": "{ data: given.data }", "scoring": "scoring"}
        found = in_node(node, tmp_path, given, with_script("sure", stubs, code))
        expected = clf.predict_interval(rows)
        # Variances are written in single precision.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        assert np.ptp(expected, axis=2).max() > 0.01


EDITS = [
    {"column": "width", "scale": 0.5},
    {"column": "width", "to": 1.5, "flatten": True},
    {"column": "width", "from": 1.0, "interpolate": True},
    {"column": "width", "monotone": "increasing"},
    {"column": "length", "monotone": "decreasing"},
    {"column": "colour", "values": ["red", "blue"], "merge": True},
    {"column": "colour", "values": ["red"], "set": 1.5},
    {"column": "striped", "remove": True},
]


def test_edits_on_the_page_are_those_of_python(two, node, tmp_path):
    clf, rows = fitted("default", *two), two[0][:60]
    data = {**page_data(clf), "steps": edit_steps(clf)}
    given = {"data": data, "rows": settings_of(rows), "edits": EDITS}
    # What the script draws goes nowhere.
    nothing = (
        "new Proxy(() => {}, { get: (_, key) => (key === 'value' ? '' : () => ''), "
        "set: () => true })"
    )
    made = ["button", "byId", "element", "fixed", "percent", "signed", "t"]
    drawn = ", ".join(f"{name}: () => {nothing}" for name in made)
    stubs = {"controls": f"{{ data: given.data, {drawn} }}", "scoring": "scoring"}
    code = (
        "(made.connect(() => {}, () => 1), given.edits.map((edit) => { "
        "made.add(edit); return given.rows.map((row) => "
        "scoring.posterior(given.data.model, row)); }))"
    )
    found = in_node(node, tmp_path, given, with_script("edit", stubs, code))
    for probabilities, edit in zip(found, EDITS, strict=True):
        before, clf = clf, clf.edited(edit)
        expected = clf.predict_proba(rows)
        np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-9)
        assert np.abs(expected - before.predict_proba(rows)).max() > 1e-4, edit


def test_parts_of_a_date_on_the_page_are_those_of_pandas(node, tmp_path):
    days = pd.date_range("1969-12-25T05:00", periods=40, freq="19h")
    parts = {"year": 1, "month": 2, "weekday": 3, "hour": 4}
    attributes = [{"kind": "number"}] * 5
    given = {
        "data": {"words": {}, "attributes": []},
        "days": [(day - pd.Timestamp(0)) / pd.Timedelta("1D") for day in days],
        "own": {"date": parts},
        "attributes": attributes,
    }
    page = "{ getElementById: () => ({ textContent: JSON.stringify(given.data) }) }"
    code = (
        "given.days.map((x) => { const values = [x]; "
        "made.setParts(given.own, x, values, given.attributes); return values; })"
    )
    stubs = {"document": page, "scoring": "scoring"}
    found = in_node(node, tmp_path, given, with_script("controls", stubs, code))
    expected = [[d.year, d.month, d.isoweekday(), d.hour] for d in days]
    assert [values[1:] for values in found] == expected


@pytest.mark.parametrize("name", TEN)
def test_reasons_of_the_page_are_those_of_python(name, mixed, two, node, tmp_path):
    for X, y in (mixed, two) if name != "calibrated pairs" else (mixed,):
        clf, rows = fitted(name, X, y), random_rows(X, 20, seed=3)
        given = {"data": page_data(clf), "rows": settings_of(rows)}
        code = (
            "given.rows.map((row) => scoring.reasons("
            "given.data.model, row, given.data.attributes.length))"
        )
        names = [own["name"] for own in given["data"]["attributes"]]
        for told, wanted in zip(
            in_node(node, tmp_path, given, code), reasons(clf, rows, 99), strict=True
        ):
            amounts = zip(names, told["amounts"], strict=False)
            found = {n: a for n, a in amounts if abs(a) > 1e-9}
            expected = {r.attribute: r.amount for r in wanted if abs(r.amount) > 1e-9}
            assert found == pytest.approx(expected, rel=0, abs=1e-9)
            label = str(clf.classes_[told["first"]])
            assert all(reason.label == label for reason in wanted)


@pytest.mark.parametrize("name", TEN)
def test_changes_of_the_page_are_those_of_python(name, mixed, two, node, tmp_path):
    for X, y in (mixed, two) if name != "calibrated pairs" else (mixed,):
        clf, rows = fitted(name, X, y), random_rows(X, 12, seed=1)
        why = clf.explain_local(rows)
        fixed = [[], ["length"]]
        given = {"data": page_data(clf), "rows": settings_of(rows)}
        code = (
            "[[], [1]].map((fixed) => given.rows.map((row) => changes.find("
            "given.data, row, {target: null, logit: null}, new Set(fixed))))"
        )
        for kept, answers in zip(
            fixed, in_node(node, tmp_path, given, code), strict=True
        ):
            for i, told in enumerate(answers):
                own = why.counterfactual(i, fixed=kept)
                assert told["found"] == own.found
                if not own.found:
                    continue
                assert str(clf.classes_[told["target"]]) == own.target
                columns = [X.columns[change["j"]] for change in told["made"]]
                assert columns == [change.attribute for change in own.changes]
                np.testing.assert_allclose(told["after"], own.after, rtol=0, atol=1e-9)
                for change, wanted in zip(told["made"], own.changes, strict=True):
                    if isinstance(change["cell"], str):
                        assert change["cell"] == wanted.after
                    elif "tries" in given["data"]["attributes"][change["j"]]:
                        assert change["cell"] == pytest.approx(float(wanted.after))


def test_a_change_may_aim_at_a_probability(two, node, tmp_path):
    clf = fitted("default", *two)
    rows = random_rows(two[0], 10, seed=2)
    given = {"data": page_data(clf), "rows": settings_of(rows)}
    code = (
        "given.rows.map((row) => changes.find(given.data, row, {target: 1, below: true,"
        " logit: Math.log(0.2 / 0.8)}, new Set()))"
    )
    found = in_node(node, tmp_path, given, code)
    assert any(told["made"] for told in found)
    for told in found:
        assert not told["found"] or told["after"][1] < 0.2 + 1e-12


def test_what_to_ask_next_is_the_value_that_moves_most(node, tmp_path, two):
    X, y = two
    clf = fitted("NB", X, y)
    data = page_data(clf)
    found = in_node(
        node,
        tmp_path,
        {"data": data},
        "spread.expected(spread.prepared(given.data), [null, null, null, null], 1)",
    )
    assert sorted(item["j"] for item in found) == [0, 1, 2, 3]
    # For a category by hand: chances of its values, and what each does.
    own, p = data["attributes"][0], None
    p = clf.predict_proba(X.iloc[:1].assign(**dict.fromkeys(X.columns)))[0, 1]
    cells = X.iloc[: len(own["values"])].assign(**dict.fromkeys(X.columns))
    after = clf.predict_proba(cells.assign(colour=own["values"]))
    shares = np.array(own["shares"])
    within = shares[:, None] * after / np.array([1 - p, p])
    chances = (within / within.sum(axis=0)) @ np.array([1 - p, p])
    expected = float(chances @ np.abs(after[:, 1] - p))
    (colour,) = (item["change"] for item in found if item["j"] == 0)
    assert colour == pytest.approx(expected, abs=1e-9)


def test_the_range_of_an_answer_is_that_of_the_middle_eight_tenths_of_rows(
    node, tmp_path
):
    x = np.random.default_rng(0).normal(size=2000)
    X = pd.DataFrame({"x": x})
    y = np.where(np.random.default_rng(1).random(2000) < 1 / (1 + np.exp(-x)), "b", "a")
    clf = sy.NaiveBayes(numeric="gaussian").fit(X, y)
    given = {"data": page_data(clf)}
    code = "spread.range(spread.prepared(given.data), [null], 1)"
    ends = in_node(node, tmp_path, given, code)
    p = clf.predict_proba(X)[:, 1]
    np.testing.assert_allclose(ends, np.quantile(p, [0.1, 0.9]), atol=0.04)
    assert np.ptp(np.quantile(p, [0.1, 0.2])) > 0.05


COLOURS = ["red", "green", "blue"]


def partly_known(name):
    """Return a fitted classifier, and rows of which any cells may be missing."""
    random = np.random.default_rng(len(name))
    more = {"ten classes": 10, "three classes": 3, "other shares": 3, "CAWNB": 3}
    n, k = 400, more.get(name, 2)
    y = random.integers(0, k, n)
    X = pd.DataFrame(
        {
            "text": np.array(COLOURS, dtype=object)[
                np.where(random.random(n) < 0.6, y, random.integers(0, 3, n)) % 3
            ],
            "number": y + random.normal(size=n),
            "same": y + random.normal(size=n),
            "whole": (y + random.integers(0, 3, n)).astype(float),
        }
    )
    X["same"] = 0.8 * X["number"] + 0.3 * X["same"]
    settings = {"strength": (1.0, 4.0, 1.0)}
    if name == "dates":
        X["when"] = pd.Timestamp("2023-03-01") + pd.to_timedelta(
            900 * y + 53 * np.arange(n), "h"
        )
    if name == "interactions":
        settings["interactions"] = [("text", "number"), ("whole", "same")]
    if name == "values":
        X.loc[random.random(n) < 0.1 + 0.4 * (y == 1), "text"] = None
        X.loc[random.random(n) < 0.3, "whole"] = np.nan
    clf = sy.ShrinkageNB(**settings)
    if name == "CAWNB":
        clf = sy.ClassAttributeWeightedNB(unknown="marginal")
    clf.fit(X, np.array(list("abcdefghij"))[y])
    rows = X.iloc[random.integers(0, n, 24)].reset_index(drop=True)
    if name == "other shares":
        clf = clf.with_prior({"a": 0.05})
    if name == "never seen":
        rows.loc[random.random(24) < 0.3, "text"] = "mauve"
    for j, column in enumerate(rows):
        hidden = random.random(24) < np.linspace(0.0, 1.1, 24)
        rows.loc[hidden & (random.random(24) < 0.9), column] = None
        rows.loc[rows.index[-3 if j % 2 else -1], column] = None
    return clf, rows


def differences(rows):
    return np.array(rows)[:, 1:] - np.array(rows)[:, :1]


PARTLY = (
    "two classes",
    "three classes",
    "ten classes",
    "dates",
    "interactions",
    "values",
    "never seen",
    "other shares",
)


@pytest.mark.parametrize("name", [*PARTLY, "CAWNB"])
def test_partly_known_rows_of_the_page_are_those_of_python(name, node, tmp_path):
    clf, rows = partly_known(name)
    data = page_data(clf)
    given = {"data": data, "rows": page._cases(clf, rows)["cells"]}
    code = (
        "given.rows.map((row) => { const { model, attributes } = given.data;"
        " const p = scoring.posterior(model, row), c = p.indexOf(Math.max(...p));"
        " const partial = scoring.isPartial(model, row), at = (cell, j) =>"
        " scoring.along(model, row, j).posterior(cell);"
        " return { p, partial, along: row.slice(0, 4).map(at),"
        " total: scoring.contributions(model, row, attributes.length),"
        " own: partial ? scoring.ownContributions(model, row) : null,"
        " curves: row.slice(0, 4).map((cell, j) => { const cells = row.map((x, k) =>"
        " k === j ? cell : null); const to = scoring.totalOf(model, row, j);"
        " const terms = model.terms.filter((term) => scoring.attributeOf(term) === j);"
        " return cell === null || to === null || !terms.length ? null"
        " : to(scoring.amounts(terms[0], cells) || model.base.map(() => 0)); }),"
        " next: spread.expected(spread.prepared(given.data), row, c) }; })"
    )
    answers = in_node(node, tmp_path, given, code)
    why, expected = clf.explain_local(rows), clf.predict_proba(rows)
    near = {"rtol": 0, "atol": 1e-9}
    assert sum(answer["partial"] for answer in answers) > 12
    for i, answer in enumerate(answers):
        np.testing.assert_allclose(answer["p"], expected[i], **near)
        np.testing.assert_allclose(
            answer["along"], np.tile(expected[i], (4, 1)), **near
        )
        # What all classes have alike says nothing.
        amounts = differences(answer["total"])
        np.testing.assert_allclose(amounts, differences(why.contributions[i]), **near)
        if not answer["partial"]:
            continue
        # Points of curves are what their columns add.
        for j, row in enumerate(answer["curves"]):
            if row is not None and abs(amounts[j]).max() > 0.0:
                np.testing.assert_allclose(differences([row])[0], amounts[j], **near)
        implied = amounts - differences(answer["own"])
        np.testing.assert_allclose(implied, differences(why.implied[i]), **near)
        asked = {n: c for n, c in why.next_questions(i) if n in clf.feature_names_in_}
        names = [attribute["name"] for attribute in data["attributes"]]
        found = {names[q["j"]]: q["change"] for q in answer["next"]}
        for column, change in asked.items():
            assert found[column] == pytest.approx(change, rel=0, abs=1e-9)


@pytest.mark.parametrize("name", PARTLY)
def test_intervals_of_partly_known_rows_are_those_of_python(name, node, tmp_path):
    clf, rows = partly_known(name)
    given = {"data": page_data(clf), "rows": page._cases(clf, rows)["cells"]}
    each = f"[...Array({len(clf.classes_)}).keys()].map((c) => made.interval(row, c))"
    stubs = {"controls": "{ data: given.data }", "scoring": "scoring"}
    code = with_script("sure", stubs, f"given.rows.map((row) => {each})")
    found = in_node(node, tmp_path, given, code)
    # Variances are written in single precision.
    np.testing.assert_allclose(found, clf.predict_interval(rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["two classes", "three classes"])
def test_eight_of_ten_answers_end_in_the_band(name, node, tmp_path):
    clf, _ = partly_known(name)
    random = np.random.default_rng(5)
    y = random.integers(0, len(clf.classes_), 300)
    X = pd.DataFrame(
        {
            "text": np.array(COLOURS, dtype=object)[
                np.where(random.random(300) < 0.6, y, random.integers(0, 3, 300))
            ],
            "number": y + random.normal(size=300),
            "same": y + random.normal(size=300),
            "whole": (y + random.integers(0, 3, 300)).astype(float),
        }
    )
    X["same"] = 0.8 * X["number"] + 0.3 * X["same"]
    after, rows = clf.predict_proba(X)[:, 1], X.copy()
    for column in X:
        rows.loc[random.random(300) < 0.5, column] = None
    given = {"data": page_data(clf), "rows": page._cases(clf, rows)["cells"]}
    code = (
        "given.rows.map((row) => [spread.range(spread.prepared(given.data), row, 1),"
        " scoring.posterior(given.data.model, row)[1]])"
    )
    inside = []
    for p, (ends, now) in zip(after, in_node(node, tmp_path, given, code), strict=True):
        if ends is not None:
            assert ends[0] < now < ends[1]
            inside.append(ends[0] < p < ends[1])
    assert len(inside) > 250 and 0.7 < np.mean(inside) < 0.9


def test_a_change_is_answered_within_a_frame(node, tmp_path):
    random = np.random.default_rng(0)
    y = random.integers(0, 26, 1000)
    X = pd.DataFrame(
        {f"x{k}": y % (k % 9 + 2) + random.normal(size=1000) for k in range(60)}
    )
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    clf = sy.ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X, letters[y])
    # A column more is known at each step: nothing can be kept from the one before.
    code = (
        "(() => { const { model, attributes } = given.data, n = attributes.length;"
        " const row = attributes.map(() => null), times = attributes.map((_, j) => {"
        " row[j] = 1; const start = performance.now(); scoring.posterior(model, row);"
        " scoring.contributions(model, row, n); return performance.now() - start; });"
        " return times.sort((a, b) => a - b)[30]; })()"
    )
    found = in_node(node, tmp_path, {"data": page_data(clf)}, code)
    assert found < 64, "milliseconds, on a machine that others use as well"


def test_cells_that_count_though_they_are_missing_can_be_asked_for(node, tmp_path):
    clf, rows = partly_known("values")
    row = rows.iloc[:1].assign(number=1.0, same=0.5, whole=2.0, text=None)
    assert not clf.model_.marginal.columns.all()
    given = {"data": page_data(clf), "rows": page._cases(clf, row)["cells"]}
    code = (
        "given.rows.map((row) => { const d = spread.prepared(given.data);"
        " return [scoring.isPartial(given.data.model, row), spread.range(d, row, 1),"
        " spread.expected(d, row, 1)]; })"
    )
    ((is_partial, ends, (question,)),) = in_node(node, tmp_path, given, code)
    assert not is_partial
    # The three answers that remain.
    answers = [clf.predict_proba(row.assign(text=text))[0, 1] for text in COLOURS]
    assert question["j"] == 0 and 0.0 < question["change"] < np.ptp(answers)
    assert min(answers) - 1e-9 <= ends[0] < ends[1] <= max(answers) + 1e-9
