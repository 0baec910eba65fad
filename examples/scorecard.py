"""A scorecard of integer points, and changes by hand.

Patients of a made-up clinic: a model, a card of it on one page, an edit with its
reason, and the way back.

    python examples/scorecard.py card.html
"""

import sys

import numpy as np
import pandas as pd

import steelyard as sy


def patients(n=800, seed=0):
    random = np.random.default_rng(seed)
    age = random.uniform(18, 90, n).round()
    pressure = random.normal(120 + 0.3 * (age - 50), 15).round()
    smoker = random.choice(["never", "former", "now"], n, p=[0.5, 0.3, 0.2])
    odds = 0.05 * (age - 60) + 0.03 * (pressure - 125) + 1.2 * (smoker == "now")
    ill = random.random(n) < 1 / (1 + np.exp(0.8 - odds))
    X = pd.DataFrame({"age": age, "pressure": pressure, "smoker": smoker})
    X.loc[random.random(n) < 0.1, "pressure"] = np.nan
    return X, pd.Series(np.where(ill, "ill", "well"), name="state")


def main(page="card.html"):
    X, y = patients()
    clf = sy.method("WANBIA-CLL").fit(X, y)
    rule = {"column": "age", "monotone": "decreasing"}
    signed = clf.edited([rule], reason="risk does not fall with age")
    card = signed.scorecard(X, y, target="ill", base_points=0, base_odds=1)
    print(card)
    card.to_html(page)
    for edit in signed.edits_:
        print(edit.text, list(zip(edit.values, edit.before, edit.after, strict=True)))
    same = (signed.unedited().predict_proba(X) == clf.predict_proba(X)).all()
    print("undone, to the bit:", bool(same))


if __name__ == "__main__":
    main(*sys.argv[1:])
