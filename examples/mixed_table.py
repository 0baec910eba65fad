"""Fit a table of text, numbers and holes as it was typed, and read one prediction.

python examples/mixed_table.py
"""

import pandas as pd

from steelyard import NaiveBayes
from steelyard.table.frames import as_table

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
codes = clf.encoder_.encode(as_table(new))
no, yes = clf.model_.contributions(codes)[0].T
print(f"{'prior':8} {clf.class_log_prior_[1] - clf.class_log_prior_[0]:+.3f}")
for j, feature in enumerate(clf.model_.schema.features):
    value = feature.describe(int(codes.column(j)[0]))
    print(f"{feature.name:8} {yes[j] - no[j]:+.3f}  {value}")
