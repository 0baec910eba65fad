"""Validate a model, decide with it and monitor it, before signing.

python examples/signed_model.py              # breast cancer, of scikit-learn
python examples/signed_model.py credit-g     # a data set in the folder STEELYARD_DATA
"""

import sys

import numpy as np

import steelyard as sy
from steelyard.lab.data.datasets import load_dataset

# The class to be found, what people are grouped by, and costs of its errors.
TASKS = {
    "sklearn:breast_cancer": ("malignant", "mean radius", {"fp": 1, "fn": 20}),
    "credit-g": ("bad", "personal_status", {"fp": 1, "fn": 5}),
    "heart-statlog": ("present", "sex", {"fp": 1, "fn": 5}),
    "adult": (">50K", "sex", {"fp": 1, "fn": 1}),
}
# What those who sign expect of curves, for that class.
SHAPES = {
    "sklearn:breast_cancer": {"mean texture": "increasing"},
    "credit-g": {"duration": "increasing", "credit_amount": "valley"},
    "heart-statlog": {
        "age": "increasing",
        "resting_blood_pressure": "increasing",
        "maximum_heart_rate_achieved": "decreasing",
        "oldpeak": "increasing",
    },
    "adult": {"age": "peak", "education-num": "increasing", "hours-per-week": "peak"},
}

name = sys.argv[1] if len(sys.argv) > 1 else "sklearn:breast_cancer"
positive, group, costs = TASKS[name]
data = load_dataset(name)
rows = np.random.default_rng(0).permutation(len(data))[:4000]
X, y = data.table.iloc[rows], np.asarray(data.target)[rows]
half = len(rows) // 2
# People are measured by the group; the model does not see it.
clf = sy.ShrinkageNB().fit(X[:half].drop(columns=group), y[:half])

result = sy.evaluate(clf, X[half:], y[half:], by=group, positive=positive, costs=costs)
print(f"{name}: {half} rows to learn from, {len(rows) - half} others\n")
print(f"AUC {result.metrics['auc']:.3f}, log-loss {result.metrics['log_loss']:.3f}")
cost, cut = result.decision.cost, result.thresholds["by_cost"]["threshold"]
print(f"deciding for {positive} from a probability of {cut:.3f} costs {cost.value:.3f}")
print(f"a row (95 %: {cost.low:.3f} to {cost.high:.3f})\n")
for table in result.tables()[-2:]:
    print(table.title)
    for row in [table.header, *table.rows]:
        print(" | ".join(row))
    print()

rare = clf.with_prior({positive: 0.02})
shown = X[half:].drop(columns=group)
k = clf.classes_.tolist().index(positive)
for text, model in (("as in training", clf), ("where 2 % are", rare)):
    print(f"mean probability of {positive} {text}: ", end="")
    print(f"{model.predict_proba(shown)[:, k].mean():.3f}")

moved = shown.copy()
column = moved.select_dtypes("number").columns[0]
moved[column] = moved[column] * 1.5
for text, new in (("the other half", shown), (f"{column} times 1.5", moved)):
    found = clf.drift(new, y[half:])
    print(f"\n{text}: {found.alarms or 'no threshold is passed'}")

shapes = {column: (kind, positive) for column, kind in SHAPES[name].items()}
shaped = sy.ShrinkageNB(constraints=shapes).fit(X[:half].drop(columns=group), y[:half])
before, after, error = shaped.shape_losses_
print(f"\nshapes of {', '.join(shapes)}: log-loss in folds {before:.4f} without,")
print(f"{after:.4f} with (standard error {error:.4f}); on the other half ", end="")
truth = clf.classes_.searchsorted(y[half:])
for model in (clf, shaped):
    p = model.predict_proba(shown)[np.arange(len(truth)), truth]
    print(f"{-np.log(p).mean():.4f}", end=" " if model is clf else "\n")
