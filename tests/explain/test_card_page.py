"""A card in a browser: chosen lines add up, and it prints on one page."""

import base64
import re

import steelyard as sy


def test_chosen_lines_add_up_to_points_and_probability(browser, two, tmp_path):
    X, y = two
    card = sy.NaiveBayes().fit(X, y).scorecard(X)
    path = tmp_path / "card.html"
    card.to_html(path)
    browser.open(path)
    (own,) = card.cards
    row = X.dropna().iloc[[0]]
    chosen = chosen_lines(own, row)
    for k in chosen:
        browser.run(f"document.querySelectorAll('tr[data-points]')[{k}].click()")
    points = int(card.points(row)[0])
    expected = f"{points} points: {100 * own.probability(points):.1f} %"
    assert browser.run("document.querySelector('.sum').textContent") == expected
    assert browser.errors == []


def chosen_lines(card, row):
    """Return the lines of the cells that have the points of a row, by column."""
    fitted = card.fitted
    told = fitted.model_.contributions(fitted._encode(row))[0, :, 1]
    schema = fitted.model_.schema
    lines = []
    for j, name in enumerate(schema.labels()):
        own = [k for k, r in enumerate(card.rows) if r.column == name]
        lines += [k for k in own if card.rows[k].points == told[j]][:1]
    return lines


def test_a_card_of_many_lines_prints_on_one_page(browser, tmp_path):
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = pd.DataFrame({f"column {k}": y + 2 * rng.normal(size=500) for k in range(12)})
    clf = sy.NaiveBayes(numeric="equal-frequency").fit(X, y)
    card = clf.scorecard(X, max_bins=6, max_cells=72, max_loss=0.0)
    assert card.n_cells > 60
    card.to_html(tmp_path / "card.html")
    browser.open(tmp_path / "card.html")
    printed = browser._call("Page.printToPDF", preferCSSPageSize=True)
    pages = re.findall(rb"/Type\s*/Page[^s]", base64.b64decode(printed["data"]))
    assert len(pages) == 1
