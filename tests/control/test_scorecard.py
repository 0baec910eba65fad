"""Cards of points: what is printed is what is predicted, in every format."""

import base64
import csv
import hashlib
import html
import io
import itertools
import json
import re
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.control.card import CardRow, Scorecard, with_woe
from steelyard.control.card_cells import (
    CardColumn,
    _at_first,
    fitted,
    merged_fit,
    pooled,
    rounded,
)
from steelyard.control.scorecard import made_rows, scorecard_of
from steelyard.exceptions import ParameterError, TableError
from steelyard.export import to_sql
from steelyard.persistence.files import load_fitted


def table(n=400, seed=0, n_classes=2):
    """Numbers, text that looks like formulas, missing cells."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    colour = np.array(["=1+1", "green", "<b>", "(a)"], dtype=object)
    colour = colour[np.where(rng.random(n) < 0.5, y, rng.integers(0, 4, n))]
    colour[rng.random(n) < 0.1] = None
    X = pd.DataFrame(
        {
            "colour": colour,
            "length": np.where(rng.random(n) < 0.05, np.nan, y + rng.normal(size=n)),
            "width": np.round(3.0 - y + rng.normal(size=n), 1),
        }
    )
    return X, np.array(["no", "yes", "maybe"])[y]


CASES = {
    "NB": sy.NaiveBayes(),
    "missing value": sy.NaiveBayes(missing="value"),
    "imputed": sy.NaiveBayes(missing="impute"),
    "Gaussian": sy.NaiveBayes(numeric="gaussian"),
    "imputed Gaussian": sy.NaiveBayes(missing="impute", numeric="gaussian"),
    "default": sy.ShrinkageNB(strength=(1.0, 4.0, 1.0)),
    "interactions": sy.ShrinkageNB(
        strength=(1.0, 4.0, 1.0), interactions=[("colour", "length")]
    ),
    "weighted": sy.WeightedNB(lam=1.0),
    "mixture": sy.RegularizedNB(lam=1.0),
    "exponential": sy.method("ENB"),
    "boosted": sy.method("BNB"),
    "AODE": sy.method("AODE"),
}


@pytest.fixture(scope="module", params=list(CASES))
def made(request):
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = CASES[request.param].fit(X, y)
    return clf, scorecard_of(clf, X, y, interactions=1), X


def by_hand(card, X):
    """Add up the printed points of rows, by the printed cells."""
    (own,) = card.cards
    totals = np.full(len(X), own.start)
    for name in dict.fromkeys(row.column for row in own.rows):
        if " × " in name:
            return None
        for i, cell in enumerate(X[name]):
            totals[i] += points_of([r for r in own.rows if r.column == name], cell)
    return totals


def points_of(rows, cell):
    known = {row.value: row.points for row in rows}
    if cell is None or cell != cell:
        return known.get("(missing)", known.get("(unknown)"))
    for row in rows:
        text = row.value
        if isinstance(cell, str):
            if cell in text.split(", "):
                return row.points
        elif text == "known":
            return row.points
        elif text[0] in "≤>":
            low, _, high = text[1:].partition(" to ")
            above = text[0] == "≤" or cell > float(low)
            high = low if text[0] == "≤" else high or "inf"
            if above and cell <= float(high):
                return row.points
    return known.get("(unseen)", known.get("(unknown)"))


def test_printed_points_add_up_to_points_and_probabilities(made):
    _, card, X = made
    expected = by_hand(card, X)
    found = card.points(X)
    assert found.dtype.kind == "i"
    if expected is not None:
        np.testing.assert_array_equal(found, expected)
    p = 1.0 / (1.0 + 2.0 ** ((600 - 20 * np.log2(50) - found) / 20))
    np.testing.assert_allclose(card.predict_proba(X)[:, 1], p, atol=1e-12)
    np.testing.assert_allclose(card.predict_proba(X).sum(axis=1), 1.0)


def test_a_card_is_near_its_model(made):
    clf, card, X = made
    away = np.abs(card.predict_proba(X)[:, 1] - clf.predict_proba(X)[:, 1])
    assert away.mean() < (0.12 if clf.model_.kind == "votes" else 0.06)
    assert abs(card.loss["points"] - card.loss["merged"]) < 0.005
    assert card.loss["n_rows"] == len(X)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_sql_returns_the_same_points(made, dialect, tmp_path):
    _, card, X = made
    path = tmp_path / "card.sql"
    card.export(path, dialect=dialect, table="t", contributions=True)
    query = path.read_text(encoding="utf-8")
    if dialect == "sqlite":
        with sqlite3.connect(":memory:") as base:
            X.to_sql("t", base, index=False)
            found = pd.read_sql_query(query, base)
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(config={"threads": 1}) as base:
            base.register("t", X)
            found = base.execute(query).df()
    np.testing.assert_array_equal(found["points"], card.points(X))
    np.testing.assert_allclose(found["p(yes)"], card.predict_proba(X)[:, 1], atol=1e-12)
    parts = found.filter(regex=r"points\(").sum(axis=1) + card.cards[0].start
    np.testing.assert_array_equal(parts, found["points"])


def test_the_scorer_of_a_card_has_its_probabilities(made):
    _, card, X = made
    score = card.cards[0].fitted.scorer()
    row = X.iloc[3].to_dict()
    expected = card.predict_proba(X.iloc[3:4])[0, 1]
    assert score(row)["yes"] == pytest.approx(expected, abs=1e-12)


def test_without_rows_counts_are_used(made):
    clf, _, X = made
    card = clf.scorecard()
    assert card.loss["on"].startswith("rows drawn from the counts")
    if clf.model_.kind == "votes":
        return
    away = np.abs(card.predict_proba(X)[:, 1] - clf.predict_proba(X)[:, 1])
    assert away.mean() < 0.07


def test_the_other_class_and_its_scale():
    X, y = table()
    clf = sy.NaiveBayes().fit(X, y)
    no, yes = (clf.scorecard(X, target=label) for label in ("no", "yes"))
    np.testing.assert_allclose(no.predict_proba(X), yes.predict_proba(X), atol=0.02)
    assert np.corrcoef(no.points(X), yes.points(X))[0, 1] < -0.99
    other = clf.scorecard(X, base_points=0, base_odds=1, points_to_double=1)
    assert np.ptp(other.points(X)) < np.ptp(yes.points(X)) / 10
    assert other.cards[0].probability(0) == 0.5
    assert other.cards[0].probability(1) == pytest.approx(2 / 3)


def test_more_classes_have_a_card_each():
    X, y = table(n_classes=3)
    clf = sy.NaiveBayes().fit(X, y)
    card = clf.scorecard(X, y)
    assert [own.target for own in card.cards] == ["maybe", "no", "yes"]
    assert card.points(X).shape == (len(X), 3)
    p = card.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.abs(p - clf.predict_proba(X)).mean() < 0.06
    assert "one card for each class" in repr(card)
    assert "one card for each class" in card.to_html()
    assert list(card.to_frame()["target"].unique()) == ["maybe", "no", "yes"]
    with pytest.raises(ParameterError, match="not among the classes"):
        clf.scorecard(target="perhaps")
    with pytest.raises(ParameterError, match="3 cards"):
        card.export("card.sql")
    one = clf.scorecard(X, target="no")
    assert one.predict_proba(X).shape == (len(X), 2)
    assert "p(not no)" in to_sql(one.cards[0].fitted, "sqlite")


def test_frames_and_files_say_the_same(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    X, y = table()
    card = sy.NaiveBayes().fit(X, pd.Series(y, name="ill")).scorecard(X, y)
    frame = card.to_frame()
    assert list(frame.columns) == [
        "column",
        "value",
        "points",
        "rows",
        "rate",
        "woe",
        "information",
    ]
    known = frame[frame["column"] == "width"]
    assert known["rows"].sum() == len(X)
    rate = (known["rows"] * known["rate"].fillna(0.0)).sum() / len(X)
    assert rate == pytest.approx((y == "yes").mean())
    card.to_excel(tmp_path / "card.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "card.xlsx")["card"]
    lines = [
        (sheet.cell(k, 1).value, sheet.cell(k, 2).value, sheet.cell(k, 3).value)
        for k in range(6, 6 + len(frame) - 1)
    ]
    expected = frame[["column", "value", "points"]].values.tolist()[1:]
    assert [list(line) for line in lines] == expected
    assert sheet["C3"].value.startswith(f"={card.cards[0].start}+SUMPRODUCT(C6:C")
    assert "f" not in {c.data_type for c in sheet["B"]}
    totals = [sheet.cell(k, 8).value for k in range(6, 6 + len(card.cards[0].scale()))]
    shares = [sheet.cell(k, 9).value for k in range(6, 6 + len(totals))]
    np.testing.assert_allclose(card.cards[0].probability(totals), shares)
    card.export(tmp_path / "card.csv")
    text = (tmp_path / "card.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [int(row["points"]) for row in rows] == frame["points"].tolist()
    card.export(tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert text == card.to_markdown() and "# Scorecard: ill = yes" in text
    page = card.to_html(tmp_path / "card.html")
    assert (tmp_path / "card.html").read_text(encoding="utf-8") == page
    assert "&lt;b&gt;" in page and "<b>" not in page
    assert card._repr_html_() in page


def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch):
    X, y = table(60)
    card = sy.NaiveBayes().fit(X, y).scorecard(X)
    with pytest.raises(ParameterError, match="html, xlsx, csv, md, sql"):
        card.export(tmp_path / "card.doc")
    with pytest.raises(ParameterError, match="no option 'dialect'"):
        card.export(tmp_path / "card.md", dialect="sqlite")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ImportError, match="openpyxl, which is not installed"):
        card.to_excel(tmp_path / "card.xlsx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points_to_double": 0}, "points_to_double"),
        ({"base_odds": -1.0}, "base_odds"),
        ({"max_bins": 1}, "max_bins"),
        ({"max_cells": 2.5}, "max_cells"),
        ({"interactions": -1}, "interactions"),
        ({"y": ["no"]}, "need their rows"),
        ({"points_to_double": 1e300}, "points_to_double"),
        ({"points_to_double": 1e-300}, "points_to_double"),
        ({"base_points": 1e19}, "base_points"),
    ],
)
def test_bad_options_are_named(options, message):
    X, y = table(60)
    clf = sy.NaiveBayes().fit(X, y)
    with pytest.raises(ParameterError, match=message):
        clf.scorecard(**options)


def test_each_row_has_a_label():
    X, y = table(60)
    clf = sy.NaiveBayes().fit(X, y)
    for rows, labels in ((X, y[:-1]), (X[:1], y), (X, y[:1])):
        said = f"{len(rows)} rows, but there are {len(labels)} labels"
        with pytest.raises(TableError, match=said):
            clf.scorecard(rows, labels)


@pytest.mark.parametrize("points_to_double", [0.01, 1e6])
@pytest.mark.parametrize("base_points", [-1e9, 1e9])
def test_points_at_the_ends_of_what_is_allowed(points_to_double, base_points):
    X, y = table(60)
    clf = sy.NaiveBayes().fit(X, y)
    scale = {"points_to_double": points_to_double, "base_points": base_points}
    card = clf.scorecard(X, y, base_odds=1.0, **scale)
    assert "Log-loss" in repr(card) and card.to_html()
    assert np.isfinite(card.loss["points"])
    if points_to_double > 1:
        assert card.loss["points"] == pytest.approx(card.loss["merged"], abs=1e-6)


def test_texts_of_others_stay_texts_in_every_file(tmp_path):
    X, y = table(200)
    evil = "<img src=x onerror=alert(1)>"
    X["colour"] = X["colour"].replace({"red": "=1+1", "green": "@x", "blue": evil})
    clf = sy.NaiveBayes().fit(X, y).edited({"column": "width", "scale": 0.5}, evil)
    card = clf.scorecard(X, max_loss=0.0)
    card.export(tmp_path / "card.csv")
    rows = [*csv.reader(io.StringIO((tmp_path / "card.csv").read_text("utf-8")))]
    assert any(row[2].startswith("'=1+1") for row in rows)
    assert not any(cell.startswith(("=", "@")) for row in rows for cell in row)
    assert "<img" not in re.sub(r"\\<", "", card.to_markdown())
    page = card.to_html()
    assert "<img" not in page
    policy = re.search('http-equiv="Content-Security-Policy" content="(.*?)"', page)
    for tag in ("style", "script"):
        ((text, *_),) = re.findall(f"<{tag}>((.|\n)*?)</{tag}>", page)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]
    assert "unsafe" not in policy[1] and " style=" not in page


def test_limits_are_kept_and_fewer_cells_cost_more():
    X, y = table(600)
    clf = sy.ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X, y)
    small = clf.scorecard(X, y, max_cells=4, max_loss=0.0)
    large = clf.scorecard(X, y, max_cells=20, max_bins=5, max_loss=0.0)
    assert small.n_cells <= 4 < large.n_cells <= 20
    counts = large.to_frame().groupby("column").size()
    assert counts.max() <= 6
    assert isinstance(small, Scorecard) and small.loss["points"] > large.loss["points"]
    loose = clf.scorecard(X, y, max_loss=0.02)
    assert loose.n_cells < large.n_cells


def test_a_rising_curve_rises_on_the_card():
    rng = np.random.default_rng(3)
    x = rng.random(500)
    X = pd.DataFrame({"x": x, "z": x + 0.3 * rng.random(500)})
    y = rng.random(500) < 1 / (1 + np.exp(3 - 6 * x))
    clf = sy.NaiveBayes(numeric="equal-frequency").fit(X, y)
    from steelyard.control.scorecard import card_columns

    codes, model = clf._encode(X), clf.model_
    schema = model.schema
    columns = card_columns(model, schema, schema, codes, model.proba(codes)[:, 1], 1, 0)
    rising = [
        column.__class__(**{**vars(column), "direction": 1}) for column in columns
    ]
    fit = merged_fit(rising, model.proba(codes)[:, 1], 8, 80, 0.0)
    for own in fit.by_column():
        assert (np.diff(own) >= 0).all()
    free = merged_fit(columns, model.proba(codes)[:, 1], 8, 80, 0.0)
    assert any((np.diff(own) < 0).any() for own in free.by_column())


def test_values_of_cells_are_at_the_optimum():
    rng = np.random.default_rng(0)
    X, y = table()
    clf = sy.NaiveBayes().fit(X, y)
    from scipy.optimize import minimize

    from steelyard.control.card_cells import _start, cross_entropy, design
    from steelyard.control.scorecard import card_columns

    codes, model = clf._encode(X), clf.model_
    p = model.proba(codes)[:, 1]
    columns = card_columns(model, model.schema, model.schema, codes, p, 1, 0)
    fit = fitted(columns, p, _start(columns, p))
    rows = design(columns, len(p))
    said = np.concatenate([[0.0], *(column.means() for column in columns)])

    def loss(values):
        away = values[1:] - said[1:]
        return len(p) * cross_entropy(rows @ values, p) + 0.5 * away @ away

    best = minimize(loss, rng.normal(size=len(said)), method="BFGS")
    assert loss(fit.values) <= best.fun + 1e-6


def test_rounding_together_beats_rounding_one_by_one():
    rng = np.random.default_rng(1)
    better = 0
    for _ in range(50):
        root = rng.normal(size=(12, 6))
        curvature, values = root.T @ root, 2.0 * rng.normal(size=6)

        def cost(whole, values=values, curvature=curvature):
            return (whole - values) @ curvature @ (whole - values)

        one_by_one, together = cost(np.round(values)), cost(rounded(values, curvature))
        assert together <= one_by_one + 1e-9
        better += together < one_by_one - 1e-9
    assert better > 15


def test_a_model_file_has_what_a_card_needs(tmp_path):
    X, y = table()
    clf = sy.ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X, y)
    clf.save(tmp_path / "model.json")
    loaded = sy.load(tmp_path / "model.json")
    assert loaded.scorecard().to_frame().equals(clf.scorecard().to_frame())
    assert loaded.scorecard(X).to_frame().equals(clf.scorecard(X).to_frame())


def test_a_card_keeps_shapes():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["rises", "peak", "noise"])
    odds = X["rises"] - X["peak"] ** 2 + 0.5 * np.sin(5.0 * X["rises"])
    y = np.where(rng.random(400) < 1.0 / (1.0 + np.exp(-odds)), "yes", "no")
    wanted = {"rises": "increasing", "peak": "peak"}
    clf = sy.ShrinkageNB(constraints=wanted, strength=(2.0, 8.0, 0.2)).fit(X, y)
    card = clf.scorecard(X, y).to_frame()
    for column, kind in wanted.items():
        points = card.loc[(card["column"] == column) & (card["value"] != "(unknown)")]
        ways = np.sign(np.diff(points["points"])).tolist()
        assert ways == sorted(ways, reverse=True) and len(set(ways)) > (kind == "peak")


def line_of(values, cell):
    """Return which line of a column a cell is on, by what is printed of the lines."""
    if pd.isna(cell):
        return values.index("(unknown)")
    if isinstance(cell, str):
        return next(k for k, text in enumerate(values) if cell in text.split(", "))
    for k, text in enumerate(values):
        low, high = -np.inf, np.inf
        if found := re.fullmatch(r"> (\S+) to (\S+)", text):
            low, high = map(float, found.groups())
        elif text.startswith("≤ "):
            high = float(text[2:])
        elif text.startswith("> "):
            low = float(text[2:])
        if low < cell <= high:
            return k
    raise AssertionError(f"{cell} is on no line of {values}")


def workbook_answer(sheet, marked):
    """Evaluate the two formulas of a sheet with some lines marked, as Excel would."""
    total = re.fullmatch(
        r'=(-?\d+)\+SUMPRODUCT\(C(\d+):C(\d+)\*\(F\2:F\3<>""\)\)', sheet["C3"].value
    )
    start, first, last = map(int, total.groups())
    points = start + sum(
        sheet.cell(k, 3).value for k in range(first, last + 1) if k in marked
    )
    odds = re.fullmatch(r"=1/\(1\+2\^\(\((\S+)-C3\)/(\S+)\)\)", sheet["C4"].value)
    zero, double = map(float, odds.groups())
    return points, 1.0 / (1.0 + 2.0 ** ((zero - points) / double))


def test_printed_points_add_up_to_the_printed_probability_everywhere(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    X = table()[0]
    X = X.iloc[:60]
    card = sy.NaiveBayes().fit(*table()).scorecard(*table())
    card.to_excel(tmp_path / "card.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "card.xlsx")["card"]
    page = card.to_html().replace("<wbr>", "")
    page = re.sub(r"<small>.*?</small>", "", page)
    tables = re.findall(r"<caption>(.*?)</caption>(.*?)</table>", page, re.DOTALL)
    of_page = {
        html.unescape(name): [
            (html.unescape(text), int(points))
            for points, text in re.findall(
                r'<tr data-points="(.*?)"><td>(.*?)</td>', body
            )
        ]
        for name, body in tables
    }
    names = [sheet.cell(k, 1).value for k in range(6, sheet.max_row + 1)]
    with sqlite3.connect(":memory:") as base:
        X.to_sql("data", base, index=False)
        query = to_sql(card.cards[0].fitted, "sqlite")
        of_sql = pd.read_sql_query(query, base)["p(yes)"].to_numpy()
    for row, (_, cells) in enumerate(X.iterrows()):
        marked, printed = set(), card.cards[0].start
        for column, cell in cells.items():
            first = 6 + names.index(column)
            values = [text for text, _ in of_page[column]]
            k = line_of(values, cell)
            assert sheet.cell(first + k, 2).value == values[k]
            marked.add(first + k)
            printed += of_page[column][k][1]
        total, probability = workbook_answer(sheet, marked)
        assert total == printed == card.points(X.iloc[[row]])[0]
        assert probability == pytest.approx(of_sql[row], abs=1e-12)
        p = card.predict_proba(X.iloc[[row]])[0, 1]
        assert probability == pytest.approx(p, abs=1e-12)


def plain_ward(column, most):
    """Merge the two neighbours that cost least, over and over: cells in order."""
    cells = column.mergeable()
    values, weights = column.means(), column.weights()
    rows = [weights[column.groups == cell].sum() for cell in cells]
    means = values[cells - 1].tolist()
    order = range(len(cells)) if column.in_line else np.argsort(means, kind="stable")
    merged = [([int(cells[k])], rows[k], means[k]) for k in order]
    while len(merged) > most:
        costs = [
            a[1] * b[1] / (a[1] + b[1]) * (a[2] - b[2]) ** 2
            for a, b in itertools.pairwise(merged)
        ]
        k = int(np.argmin(costs))
        (one, n, u), (other, m, v) = merged[k : k + 2]
        merged[k : k + 2] = [(one + other, n + m, (n * u + m * v) / (n + m))]
    return {frozenset(own) for own, *_ in merged}


@pytest.mark.parametrize("in_line", [True, False])
def test_like_cells_are_those_of_plain_ward(in_line):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 50))
        groups = np.maximum(np.arange(n) - seed % 2, 0)
        codes, said = rng.integers(0, n, 200), rng.normal(size=n).round(1 + seed % 3)
        single = np.arange(n - seed % 3 // 2, n)
        column = CardColumn(0, codes, groups, said, in_line, single)
        for most in (2, 7):
            made = _at_first([column], most)[0]
            again = [
                frozenset(groups[made.groups == cell].tolist())
                for cell in made.mergeable()
            ]
            assert set(again) == plain_ward(column, most)
            # Without a gap, in the order of their first codes.
            firsts = [int(np.argmax(made.groups == c)) for c in np.unique(made.groups)]
            assert firsts == sorted(firsts) and made.n_cells == made.groups.max()


def test_tens_of_thousands_of_categories_are_merged():
    rng = np.random.default_rng(0)
    n = 40_000
    codes, said = rng.integers(0, n, n), np.append(0.0, rng.normal(size=n - 1))
    column = CardColumn(0, codes, np.arange(n), said, False, np.arange(n, n))
    (made,) = _at_first([column], 16)
    assert made.n_cells == 16
    # No value of one cell lies between those of another.
    ends = [
        (said[made.groups == c].min(), said[made.groups == c].max())
        for c in range(1, 17)
    ]
    assert all(a[1] < b[0] for a, b in itertools.pairwise(sorted(ends)))


def test_values_that_are_left_make_up_for_each_rounding_error():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        half = rng.normal(size=(n, n + 1))
        curvature = half @ half.T + 0.01 * np.eye(n)
        values = 3.0 * rng.normal(size=n)

        def cost(whole, values=values, curvature=curvature):
            return (whole - values) @ curvature @ (whole - values)

        # One after the other: what is left goes where the loss is least.
        whole, left = values.copy(), np.argsort(-np.diag(curvature), kind="stable")
        while len(left):
            whole[left[0]], done = np.round(whole[left[0]]), left[0]
            left = left[1:]
            others = np.setdiff1d(np.arange(n), left)
            pull = curvature[np.ix_(left, others)] @ (whole - values)[others]
            inner = curvature[np.ix_(left, left)]
            whole[left] = values[left] - np.linalg.solve(inner, pull)
        assert whole[done] == np.round(whole[done])
        assert cost(rounded(values, curvature)) <= cost(whole) + 1e-9


def test_cells_whose_points_go_against_the_model_become_one():
    codes, said = np.tile([1, 2, 3], 20), np.array([0.0, -1.0, 0.1, 0.2])
    column = CardColumn(0, codes, np.arange(4), said, True, np.arange(0), 1)
    target = 1.0 / (1.0 + np.exp(-said[codes]))
    fit = fitted([column], target, np.zeros(4))
    assert pooled(fit, np.array([0, -3, 1, 1])) is None
    made = pooled(fit, np.array([0, -3, 2, 1]))
    assert made is not None and made.columns[0].groups.tolist() == [0, 1, 2, 2]


def test_made_numbers_of_a_density_are_spread_as_those_of_training():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    X = pd.DataFrame({"income": rng.normal(30_000.0, 5_000.0 * (1 + y))})
    clf = sy.NaiveBayes(numeric="gaussian").fit(X, y)
    codes = made_rows(clf.encoder_.schema_, clf.counts_, clf.training_.ranges)
    numbers = codes.number_column(0)
    for c, part in enumerate(np.split(numbers, [len(numbers) // 2])):
        rows = X["income"][y == c]
        assert part.mean() == pytest.approx(rows.mean(), rel=1e-3)
        assert part.std() == pytest.approx(rows.std(), rel=0.02)


def test_ends_of_a_card_are_the_points_of_its_worst_and_best_rows():
    X = pd.DataFrame(itertools.product("abc", "de"), columns=["wood", "soil"])
    X = pd.concat([X] * 20, ignore_index=True)
    y = (X["wood"] == "a") ^ (np.arange(120) % 5 == 0) | (X["soil"] == "d")
    made = sy.NaiveBayes(categorical_features="all").fit(X, y).scorecard(X)
    points, (card,) = made.points(X), made.cards
    assert card.ends() == (points.min(), points.max())
    assert card.start != 0 and np.ptp(points) > 0


def partly_known(unknown="marginal"):
    """Return a model of columns that repeat each other, and rows with hidden cells."""
    rng = np.random.default_rng(0)
    y = rng.random(900) < 0.25
    X = pd.DataFrame({f"x{j}": 2.0 * y + rng.exponential(size=900) for j in range(4)})
    clf = sy.ShrinkageNB(
        strength=(1.0, 4.0, 1.0), interactions=[("x0", "x1")], unknown=unknown
    )
    hidden = X.where(rng.random(X.shape) < 0.5)
    return clf.fit(X, np.where(y, "yes", "no")), X, hidden, y


@pytest.mark.parametrize("interactions", [0, 1])
def test_points_are_counted_from_what_suits_partly_known_rows(
    interactions, monkeypatch
):
    clf, X, hidden, y = partly_known()
    card = scorecard_of(clf, X, interactions=interactions)
    monkeypatch.setattr("steelyard.control.scorecard._from_unknown", lambda *of: of[3])
    before = scorecard_of(clf, X, interactions=interactions)
    np.testing.assert_array_equal(card.points(X), before.points(X))
    lines = card.to_frame().set_index("value")["points"]
    assert (lines["(unknown)"] == 0).all()
    start = card.cards[0].start
    assert card.points(X.iloc[:1] * np.nan).tolist() == [start]
    losses = [
        -np.log(np.where(y, p[:, 1], p[:, 0])).mean()
        for p in (card.predict_proba(hidden), before.predict_proba(hidden))
    ]
    assert losses[0] < losses[1]


def test_points_of_a_model_that_adds_up_are_as_they_were():
    clf, X, _, _ = partly_known("sum")
    other, *_ = partly_known()
    cards = [scorecard_of(of, X) for of in (clf, other.set_params(unknown="sum"))]
    assert cards[0].to_frame().equals(cards[1].to_frame())


def test_a_card_has_what_its_signers_ask_for(tmp_path):
    X = pd.DataFrame({"sky": ["sun", "rain", "snow"] * 40, "wind": [1, 2, 3, 4] * 30})
    y = ["play", "stay", "play", "play"] * 30
    clf = sy.NaiveBayes(categorical_features="all").fit(X, y)
    about = {
        "author": "A. Meyer",
        "use": "teaching",
        "signatures": ["Owner"],
        "columns": {"wind": {"reason": "Wrong wind"}},
    }
    card = clf.scorecard(X, y, card=about, target="play")
    clf.save(tmp_path / "m.json")
    checksum = json.loads((tmp_path / "m.json").read_text())["checksum"]
    assert ("Model checksum", checksum) in card.document
    loaded = load_fitted(tmp_path / "m.json").scorecard(X, y, card=about)
    assert dict(loaded.document)["Model checksum"] == checksum
    page = card.to_html()
    for text in (checksum, "A. Meyer", "teaching", "Owner", "Wrong wind", "> IV "):
        assert text in page
    assert "A. Meyer" in card.to_markdown() and "A. Meyer" in repr(card)
    assert "Prepared by" in clf.scorecard(X).to_html()


def test_weights_of_evidence_and_information_are_those_of_credit_scoring():
    rows = (CardRow("sky", "sun", 9, 40.0, 0.75), CardRow("sky", "rain", -9, 60.0, 0.5))
    made = with_woe(rows)
    hits, others = np.array([30.0, 30.0]), np.array([10.0, 30.0])
    woe = np.log((hits / hits.sum()) / (others / others.sum()))
    found = np.array([row.woe for row in made])
    np.testing.assert_allclose(found, woe, atol=0.05)
    information = (hits / hits.sum() - others / others.sum()) @ found
    assert sum(row.information for row in made) == pytest.approx(information)


def test_adverse_reasons_are_the_columns_that_lose_most():
    X = pd.DataFrame(
        {"sky": ["sun", "rain"] * 40, "wind": [1, 2, 1, 2, 2, 1, 1, 2] * 10}
    )
    y = np.where((X["sky"] == "sun") | (X["wind"] == 1), "play", "stay")
    clf = sy.NaiveBayes(categorical_features="all").fit(X, y)
    card = clf.scorecard(
        X, target="play", card={"columns": {"sky": {"reason": "Bad weather"}}}
    )
    rows = pd.DataFrame({"sky": ["rain", "sun"], "wind": [2, 1]})
    worst, best = card.adverse_reasons(rows)
    assert best == []
    assert len(worst) == 2 and any(text.startswith("Bad weather (-") for text in worst)
    lost = card.points(rows[1:]) - card.points(rows[:1])
    assert sum(int(text.split("(-")[1][:-1]) for text in worst) == lost[0]
