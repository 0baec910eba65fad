"""Fit a table of text, numbers and missing values as it is, and read one prediction.

python examples/mixed_table.py
"""

import pandas as pd

from steelyard import NaiveBayes

rows = [
    ("male", "third", 22, "S", "no"),
    ("female", "first", 38, "C", "yes"),
    ("female", "third", 26, "S", "yes"),
    ("female", "first", 35, "S", "yes"),
    ("male", "third", 35, "S", "no"),
    ("male", None, None, "Q", "no"),
    ("male", "first", 54, "S", "no"),
    ("male", "third", 2, None, "no"),
    ("female", "third", 27, "S", "yes"),
    ("female", "second", 14, "C", "yes"),
    ("female", None, 4, "S", "yes"),
    ("male", "second", 39, "S", "no"),
]
passengers = pd.DataFrame(rows, columns=["sex", "class", "age", "port", "survived"])
survived = passengers.pop("survived")

clf = NaiveBayes().fit(passengers, survived)

# "D" was never seen as a port, and the age of one is unknown: such cells are left out.
new = pd.DataFrame(
    {
        "sex": ["female", "male"],
        "class": ["third", "second"],
        "age": [None, 30.0],
        "port": ["D", "S"],
    }
)
for row in clf.predict_proba(new):
    print(", ".join(f"{c}: {p:.3f}" for c, p in zip(clf.classes_, row, strict=True)))

# What each cell of the first row adds to the log-odds of "yes" against "no".
print(clf.explain_local(new[:1]).evidence())
