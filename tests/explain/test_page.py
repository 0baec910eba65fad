"""The web page: its data, its scoring in Node, and all of it in a browser."""

import json
import re
import subprocess
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError, TableError
from steelyard.explain.page import page_data

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "@@DATA@@",
    '" onfocus="window.hacked = 3" autofocus="',
]


def embedded(path):
    """Read the model out of a page as a browser would."""
    text = path.read_text(encoding="utf-8")
    found = re.search(
        r'<script type="application/json" id="model">(.*?)</script>', text, re.S
    )
    return json.loads(found[1])


def settings_of(X):
    """Rows of a table as the page takes them: text, numbers, booleans and null."""
    rows = []
    for cells in X.astype(object).to_numpy().tolist():
        rows.append(
            [
                None
                if cell is None or cell != cell
                else cell
                if isinstance(cell, (str, bool))
                else float(cell)
                for cell in cells
            ]
        )
    return rows


def test_the_page_holds_the_models_own_floats(mixed, tmp_path):
    X, y = mixed
    clf = sy.NaiveBayes(numeric={"length": "mdl", "width": "gaussian"}).fit(X, y)
    clf.to_html(tmp_path / "model.html")
    data = embedded(tmp_path / "model.html")
    model = data["model"]
    assert model["base"] == clf.model_.log_prior.tolist()
    offsets = clf.model_.schema.offsets
    for j in clf.model_.schema.coded:
        own, term = clf.model_.table[offsets[j] : offsets[j + 1]], model["terms"][j]
        assert [term["missing"], *term["rows"]] == own.tolist()
    assert model["terms"][2]["mean"] == clf.model_.gaussian.mean[0].tolist()
    assert data["classes"] == ["ant", "bee", "cat"]
    assert data["attributes"][0]["values"] == ["blue", "green", "red"]
    assert sorted(data["order"]) == [0, 1, 2, 3]


def test_the_page_needs_no_network(mixed, tmp_path):
    X, y = mixed
    sy.NaiveBayes().fit(X, y).to_html(tmp_path / "model.html")
    text = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert "http://" not in text and "https://" not in text
    assert "default-src 'none'" in text
    assert not re.search(r"<(link|img|iframe)|src=", text)


def test_names_cannot_become_markup(mixed, tmp_path):
    X, y = mixed
    X = X.rename(columns=dict(zip(X.columns, HOSTILE, strict=True)))
    clf = sy.NaiveBayes().fit(X, y)
    clf.to_html(tmp_path / "model.html", title="</title><script>1</script>")
    text = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert text.count("<script") == 3 and "<img" not in text
    data = embedded(tmp_path / "model.html")
    assert [attribute["name"] for attribute in data["attributes"]] == HOSTILE


def test_half_of_a_surrogate_pair_is_shown_as_a_question_mark(tmp_path):
    X = np.array([["a"], ["b"]] * 5)
    clf = sy.NaiveBayes().fit(X, np.array(["\ud800", "yes"] * 5, dtype=object))
    clf.to_html(tmp_path / "page.html")
    assert "yes or ??" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("acronym", ["LWNB", "AIWNB-L", "BNB"])
def test_models_without_a_fixed_sum_are_refused_and_nothing_is_written(
    acronym, mixed, tmp_path
):
    clf = sy.method(acronym).fit(*mixed)
    with pytest.raises(ParameterError, match=r"Not one sum.*explain_local"):
        clf.to_html(tmp_path / "model.html")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_error_and_leaves_nothing(mixed, tmp_path):
    clf = sy.NaiveBayes().fit(*mixed)
    with pytest.raises(FileNotFoundError):
        clf.to_html(tmp_path / "nowhere" / "model.html")


def extreme_rows(X):
    """Rows of the table, all unknown, unseen values, far and edge numbers."""
    rows = X[:40].astype(object)
    odd = [
        [None, np.nan, np.nan, None],
        ["mauve", 1e6, -1e6, True],
        ["red", 0.0, 2.5, False],
    ]
    return pd.concat([rows, pd.DataFrame(odd, columns=X.columns)]).astype(
        {"length": float, "width": float, "striped": object}
    )


def test_scoring_in_node_equals_predict_proba(case, node, tmp_path):
    clf, X = case
    rows = extreme_rows(X)
    data = page_data(clf)
    (tmp_path / "in.json").write_text(
        json.dumps({"data": data, "rows": settings_of(rows)}), encoding="utf-8"
    )
    script = files("steelyard.export") / "assets" / "scoring.js"
    code = (
        f"const s = require({json.dumps(str(script))});"
        "const {data, rows} = JSON.parse(require('fs').readFileSync('in.json'));"
        "console.log(JSON.stringify(rows.map("
        "r => s.posterior(data.model, r))));"
    )
    done = subprocess.run(
        [node, "-e", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    np.testing.assert_allclose(
        json.loads(done.stdout), clf.predict_proba(rows), rtol=0, atol=1e-9
    )


def test_error_function_in_node_is_that_of_scipy(node):
    from scipy.special import erfc

    points = np.linspace(-6, 26, 641)
    script = files("steelyard.export") / "assets" / "scoring.js"
    code = (
        f"const s = require({json.dumps(str(script))});"
        f"console.log(JSON.stringify({points.tolist()}.map(s.erfc)));"
    )
    done = subprocess.run(
        [node, "-e", code], capture_output=True, text=True, check=True
    )
    np.testing.assert_allclose(json.loads(done.stdout), erfc(points), rtol=2e-12)


def shown(browser, n_classes=3):
    return [
        float(
            browser.run(
                f"document.getElementById('probability-{c}').dataset.probability"
            )
        )
        for c in range(n_classes)
    ]


SET = """(() => { const e = document.getElementById(%s); e.value = %s;
  e.dispatchEvent(new Event(%s, {bubbles: true})); return e.value; })()"""


def set_value(browser, name, value, event="input"):
    return browser.run(
        SET % (json.dumps(name), json.dumps(str(value)), json.dumps(event))
    )


def test_values_set_in_a_browser_give_predict_proba(browser, case, tmp_path):
    clf, X = case
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    assert browser.errors == []
    rows = extreme_rows(X).iloc[[0, 1, 2, 40, 42]]
    expected = clf.predict_proba(rows)
    for row, wanted in zip(settings_of(rows), expected, strict=True):
        browser.run("document.getElementById('reset').click()")
        for j, value in enumerate(row):
            if value is None:
                continue
            kind = page_data(clf)["attributes"][j]
            if kind["kind"] == "category":
                set_value(browser, f"value-{j}", kind["values"].index(value), "change")
            else:
                set_value(browser, f"value-{j}", repr(value))
        np.testing.assert_allclose(shown(browser), wanted, rtol=0, atol=1e-9)


def test_the_page_can_be_used_by_keyboard_and_read_aloud(browser, two, tmp_path):
    X, y = two
    clf = sy.NaiveBayes(numeric="gaussian").fit(X, y)
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    names = browser.run(
        "[...document.querySelectorAll('select, input, button')].filter("
        "e => e.offsetParent && !(e.labels && e.labels.length) && !e.textContent.trim()"
        " && !e.ariaLabel && !e.getAttribute('aria-labelledby')).map(e => e.id)"
    )
    assert names == []
    live = browser.run("document.getElementById('summary').getAttribute('aria-live')")
    assert live == "polite"
    # By Tab to a list, then by letter to a value; by arrow along a slider.
    browser.run("document.getElementById('reset').focus()")
    seen = []
    for _ in range(12):
        browser.press("Tab")
        seen.append(browser.run("document.activeElement.id"))
    assert {"name-0", "value-0", "slider-1", "value-1", "slider-2"} <= set(seen)
    before = shown(browser, 2)
    browser.run("document.getElementById('slider-1').focus()")
    browser.press("ArrowRight")
    value = float(browser.run("document.getElementById('value-1').value"))
    clear = "getComputedStyle(document.getElementById('clear-1')).visibility"
    assert browser.run(clear) == "visible"
    row = pd.DataFrame(
        {"colour": [None], "length": [value], "width": [np.nan], "striped": [None]}
    )
    assert shown(browser, 2) != before
    np.testing.assert_allclose(
        shown(browser, 2), clf.predict_proba(row)[0], rtol=0, atol=1e-9
    )
    browser.run("document.getElementById('value-0').focus()")
    browser.press("r")
    assert browser.run("document.getElementById('value-0').value") == "2"
    outline = browser.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.wait("document.getElementById('summary').textContent.includes('2 known')")


def test_evidence_in_the_browser_is_that_of_explain_local(browser, two, tmp_path):
    X, y = two
    clf = sy.NaiveBayes().fit(X, y)
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    set_value(browser, "value-0", 0, "change")
    set_value(browser, "value-2", "1.25")
    row = pd.DataFrame(
        {"colour": ["blue"], "length": [np.nan], "width": [1.25], "striped": [None]}
    )
    evidence = clf.explain_local(row).evidence(target="bee", against="ant")
    amounts = {item.attribute: item.amount for item in evidence.items}
    for j, name in enumerate(X.columns):
        own = float(
            browser.run(f"document.getElementById('evidence-{j}').dataset.evidence")
        )
        assert own == pytest.approx(amounts[name], abs=1e-9)


def test_hostile_names_are_shown_as_text_in_a_browser(browser, mixed, tmp_path):
    X, y = mixed
    X = X.rename(columns=dict(zip(X.columns, HOSTILE, strict=True)))
    y = np.where(y == "ant", HOSTILE[0], np.where(y == "bee", HOSTILE[1], y))
    X[HOSTILE[0]] = X[HOSTILE[0]].replace("red", HOSTILE[1])
    sy.NaiveBayes().fit(X, y).to_html(tmp_path / "model.html", title=HOSTILE[1])
    browser.open(tmp_path / "model.html")
    assert browser.errors == []
    assert browser.run("typeof window.hacked") == "undefined"
    legends = browser.run(
        "[...document.querySelectorAll('.name')].map(e => e.textContent)"
    )
    assert sorted(legends) == sorted(HOSTILE)
    assert browser.run("document.querySelectorAll('img').length") == 0


def test_a_page_asks_for_the_target_by_its_name(two, mixed, tmp_path):
    X, y = two
    clf = sy.NaiveBayes().fit(X, pd.Series(y, name="insect"))
    clf.save(tmp_path / "model.json")
    assert sy.load(tmp_path / "model.json").target_name_ == "insect"
    clf.to_html(tmp_path / "model.html")
    text = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert "<h1>insect: ant or bee?</h1>" in text
    assert "4 columns of 240 rows" in text
    assert embedded(tmp_path / "model.html")["target"] == "insect"
    assert page_data(clf, "animal")["target"] == "animal"
    nameless = sy.NaiveBayes().fit(X, y)
    assert not hasattr(nameless, "target_name_")
    assert page_data(nameless)["target"] is None
    sy.NaiveBayes().fit(*mixed).to_html(tmp_path / "model.html")
    assert "<h1>Which class?</h1>" in (tmp_path / "model.html").read_text("utf-8")


def test_shares_of_categories_are_those_of_the_known_cells(mixed):
    X, y = mixed
    own = page_data(sy.NaiveBayes().fit(X, y))["attributes"][0]
    shares = X["colour"].value_counts(normalize=True)
    assert own["shares"] == pytest.approx(shares[own["labels"]].tolist())


LETTERS = list("abcdefghijkl")


@pytest.fixture(scope="module")
def twelve():
    """Twelve classes and two columns."""
    random = np.random.default_rng(3)
    y = random.integers(0, 12, 600)
    X = pd.DataFrame(
        {"x": y + random.normal(size=600), "even": np.where(y % 2, "no", "yes")}
    )
    return sy.NaiveBayes(numeric="gaussian").fit(X, np.array(LETTERS)[y])


def names_of_classes(browser):
    return browser.run(
        "[...document.querySelectorAll('#posterior tbody tr')]"
        ".filter(e => !e.hidden).map(e => e.querySelector('th').textContent)"
    )


def test_many_classes_are_sorted_and_can_be_searched(browser, twelve, tmp_path):
    twelve.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    set_value(browser, "value-0", "7.2")
    proba = twelve.predict_proba(pd.DataFrame({"x": [7.2], "even": [None]}))[0]
    expected = [LETTERS[c] for c in np.argsort(-proba, kind="stable")]
    assert names_of_classes(browser)[:6] == expected[:6]
    assert browser.run("document.getElementById('name').textContent") == expected[0]
    set_value(browser, "find-class", "K")
    assert names_of_classes(browser) == ["k"]
    # A class may be asked for.
    set_value(browser, "shown", "2", "change")
    assert browser.run("document.getElementById('name').textContent") == "c"


def test_a_link_keeps_the_values(browser, mixed, tmp_path):
    clf = sy.NaiveBayes(numeric={"length": "mdl", "width": "gaussian"}).fit(*mixed)
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    set_value(browser, "value-0", 1, "change")
    set_value(browser, "value-1", "0.125")
    browser.wait("location.hash.includes('length=0.125')")
    link, before = browser.run("location.hash"), shown(browser)
    browser.open(tmp_path / "model.html", link)
    assert shown(browser) == before
    assert browser.run("document.getElementById('value-1').value") == "0.125"
    browser.run("document.getElementById('reset').click()")
    browser.wait("location.hash === ''")
    # Links of others are read as far as they make sense.
    browser.open(tmp_path / "model.html", "#colour=mauve&length=long&none=1&width=2")
    assert browser.errors == []
    row = pd.DataFrame(
        {"colour": [None], "length": [np.nan], "width": [2.0], "striped": [None]}
    )
    expected = clf.predict_proba(row.astype({"striped": object}))[0]
    np.testing.assert_allclose(shown(browser), expected, rtol=0, atol=1e-9)


def test_the_range_is_that_of_the_answers_with_all_values_known(browser, tmp_path):
    random = np.random.default_rng(0)
    sick = random.random(400) < 0.4
    X = pd.DataFrame(
        {
            "test": np.where(sick ^ (random.random(400) < 0.3), "up", "down"),
            "age": random.normal(50.0, 10.0, 400) + 5.0 * sick,
        }
    )
    clf = sy.NaiveBayes(numeric="gaussian").fit(X, np.where(sick, "ill", "well"))
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    set_value(browser, "value-1", "52")
    browser.wait("document.getElementById('summary').textContent.includes('1 known')")
    ends = json.loads(
        browser.run("document.getElementById('range').dataset.ends || 'null'")
    )
    rows = pd.DataFrame({"test": ["up", "down"], "age": [52.0, 52.0]})
    assert ends == pytest.approx(sorted(clf.predict_proba(rows)[:, 1]), abs=1e-9)
    set_value(browser, "value-0", 1, "change")
    browser.wait("document.getElementById('summary').textContent.includes('2 known')")
    assert browser.run("document.getElementById('range').hidden")


PLACES = """[...document.querySelectorAll(
    '[id^=attribute-], #answer, #percent, #all, #why h2')]
  .map(e => { const b = e.getBoundingClientRect(); return [b.top, b.height]; })"""


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_nothing_jumps_when_values_are_set(browser, mixed, tmp_path, size, colours):
    clf = sy.NaiveBayes(numeric={"length": "mdl", "width": "gaussian"}).fit(*mixed)
    clf.to_html(tmp_path / "model.html")
    browser.look(*size, colours)
    browser.open(tmp_path / "model.html")
    announced = "document.getElementById('summary').textContent"
    browser.wait(f"{announced}.includes('0 known')")
    before = browser.run(PLACES)
    set_value(browser, "value-0", 1, "change")
    set_value(browser, "value-1", "2.5")
    set_value(browser, "value-2", "-300")
    browser.wait(f"{announced}.includes('3 known')")
    np.testing.assert_allclose(browser.run(PLACES), before, rtol=0, atol=0.5)
    wide = browser.run("document.documentElement.scrollWidth")
    assert wide <= size[0]
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", paper))) < 60) == (colours == "dark")
    if size[0] < 600:
        tall = browser.run("document.getElementById('answer').offsetHeight")
        assert tall <= size[1] / 5
        browser.run("window.scrollTo(0, 600)")
        top = "document.getElementById('answer').getBoundingClientRect().top"
        assert browser.run(top) == pytest.approx(0.0, abs=1.0)
    browser.look(1280, 900)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_do_not_widen_the_page(browser, mixed, tmp_path, width):
    X, y = mixed
    names = {name: f"{name}, a column with a very long name " * 3 for name in X}
    labels = pd.Series(y, name="a target whose name is long, too") + "_of_a_kind" * 5
    clf = sy.RegularizedNB(lam=1.0, multiclass="one-vs-one")
    clf.fit(X.rename(columns=names), labels)
    clf.to_html(tmp_path / "model.html")
    browser.look(width, 900)
    browser.open(tmp_path / "model.html")
    set_value(browser, "value-0", 1, "change")
    assert browser.run("document.documentElement.scrollWidth") <= width
    browser.look(1280, 900)


def test_unknown_and_far_values_look_so(browser, mixed, tmp_path):
    clf = sy.NaiveBayes().fit(*mixed)
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    field = "document.getElementById('attribute-1')"
    assert browser.run(f"{field}.className") == "unknown"
    assert browser.run("document.getElementById('value-1').placeholder") == "?"
    set_value(browser, "value-1", "1000")
    assert browser.run(f"{field}.className") != "unknown"
    note = f"{field}.querySelector('.interval').textContent"
    assert browser.run(note) == "outside the training range"
    n_bars = f"{field}.querySelectorAll('.curve rect').length"
    assert browser.run(n_bars) == 20


def test_reasons_are_sorted_by_size_and_hold_every_known_value(browser, two, tmp_path):
    clf = sy.NaiveBayes().fit(*two)
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    set_value(browser, "value-0", 2, "change")
    set_value(browser, "value-1", "3")
    set_value(browser, "value-2", "1.25")
    lines = browser.run(
        "[...document.querySelectorAll('#reasons li')].map(e => e.innerText)"
    )
    assert "Average row" in lines[0] and len(lines) == 5
    assert "1 unknown value" in lines[1]
    row = pd.DataFrame(
        {"colour": ["red"], "length": [3.0], "width": [1.25], "striped": [None]}
    )
    items = clf.explain_local(row).evidence(target="bee", against="ant").items
    items = [item for item in items if not item.missing]
    assert [line.split()[0] for line in lines[2:]] == [i.attribute for i in items]


def test_scripts_that_are_not_the_pages_own_do_not_run(browser, mixed, tmp_path):
    sy.NaiveBayes().fit(*mixed).to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    browser.run(
        "(() => { const e = document.createElement('script');"
        "e.textContent = 'window.hacked = 1'; document.body.append(e);"
        "document.body.setAttribute('onclick', 'window.hacked = 2');"
        "document.body.click(); })()"
    )
    assert browser.run("typeof window.hacked") == "undefined"


def test_a_date_is_set_as_a_date_and_sets_its_parts(browser, tmp_path):
    moments = pd.Timestamp("2023-03-01") + pd.to_timedelta(np.arange(200) * 53, "h")
    X = pd.DataFrame({"when": moments, "id": np.arange(200)})
    y = np.where((moments.hour < 9) == (np.arange(200) % 7 > 0), "night", "day")
    with pytest.warns(UserWarning, match="identifier"):
        clf = sy.ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X, y)
    clf.to_html(tmp_path / "model.html")
    browser.open(tmp_path / "model.html")
    assert browser.run("document.getElementById('value-0').type") == "datetime-local"
    # A column that is left out is not there to be set.
    assert browser.run("document.getElementById('value-1')") is None
    set_value(browser, "value-0", "2023-05-17T04:00")
    rows = pd.DataFrame({"when": [pd.Timestamp("2023-05-17 04:00")], "id": [0]})
    expected = clf.predict_proba(rows)[0]
    shown = browser.run("document.getElementById('probability-1').textContent")
    assert shown.replace("\xa0", " ") == f"{100 * expected[1]:.1f} %"
    told = browser.run("cases.take('when\\n2023-05-17 04:00')")
    assert told.startswith("1 row loaded.")
    again = browser.run("document.getElementById('probability-1').textContent")
    assert again == shown
    # What is no date to a scorer is none here.
    browser.run("cases.take('when\\n2024-02-30')")
    assert browser.run("document.getElementById('value-0').value") == ""
    assert browser.errors == []


def test_rows_of_the_author_are_in_the_page_with_their_classes(mixed, tmp_path):
    X, y = mixed
    clf = sy.NaiveBayes().fit(X, y)
    clf.to_html(tmp_path / "page.html", rows=(X[:5], y[:5]))
    found = embedded(tmp_path / "page.html")["rows"]
    assert [row[: X.shape[1]] for row in found["cells"]] == settings_of(X[:5])
    assert [clf.classes_[k] for k in found["labels"]] == list(y[:5])
    with pytest.raises(TableError, match="5 rows, but there are 3 labels"):
        clf.to_html(tmp_path / "no.html", rows=(X[:5], y[:3]))
    many = X.sample(6000, replace=True, random_state=0)
    with pytest.raises(ParameterError, match=r"at most \d+ rows. Got 6000"):
        clf.to_html(tmp_path / "no.html", rows=many)
    assert not (tmp_path / "no.html").exists()
