"""A questionnaire: ask the most informative question next.

With nothing known the answer is the base rate. `next_questions` ranks the missing
columns by how much each is expected to change the probability once it is known; the
first of them is asked for, until a class has 98 %. Dots are the probability of a
malignant tumour after each answer, lines are its interval of 90 %: how well the model
knows this probability, given the cells that are known.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import steelyard as sy

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
clf = sy.ShrinkageNB().fit(X_train, y_train)
malignant = clf.classes_.tolist().index(0)


def ask(tumour, sure=0.98):
    """Return the questions, and the probability with its interval after each."""
    row = X_test.iloc[[tumour]].mask(np.ones((1, X.shape[1]), dtype=bool))
    asked, answers = ["nothing known"], []
    while True:
        p = clf.predict_proba(row)[0, malignant]
        answers.append([p, *clf.predict_interval(row)[0, malignant]])
        if max(p, 1 - p) >= sure or not row.isna().any(axis=None):
            return asked, np.array(answers)
        column = clf.explain_local(row).next_questions()[0].column
        row[column] = value = X_test[column].iloc[tumour]
        asked.append(f"{column} = {value:.3g}")


runs = [ask(tumour) for tumour in range(50)]
n_asked = np.array([len(asked) - 1 for asked, _ in runs])
is_malignant = y_test[:50].to_numpy() == 0
said = np.array([answers[-1, 0] for _, answers in runs]) > 0.5
all_known = clf.predict(X_test[:50]) == 0
print("of 50 tumours")
print(f"{np.sum(n_asked <= 2)} need two measurements at most")
print(f"{np.sum(n_asked == X.shape[1])} need all {X.shape[1]}")
print(f"{np.sum(said == is_malignant)} are answered right")
print(f"{np.sum(all_known == is_malignant)} are, if all measurements are known at once")

shown = [0, 1, 3]
figure, panels = plt.subplots(
    len(shown), sharex=True, height_ratios=[len(runs[k][0]) for k in shown]
)
for panel, k in zip(panels, shown, strict=True):
    asked, answers = runs[k]
    steps = np.arange(len(asked))
    color = "C1" if is_malignant[k] else "C0"
    panel.hlines(steps, answers[:, 1], answers[:, 2], color=color, alpha=0.35, lw=6)
    panel.plot(answers[:, 0], steps, "o-", color=color, lw=1)
    panel.set_yticks(steps, asked)
    panel.set_ylim(len(asked) - 0.5, -0.5)
    panel.set_title(f"in truth {'malignant' if is_malignant[k] else 'benign'}")
panels[-1].set(xlim=(-0.02, 1.02), xlabel="probability that the tumour is malignant")
figure.set_size_inches(7.2, 6)
path = sys.argv[1] if sys.argv[1:] else "questionnaire.svg"
plt.savefig(path, metadata={"Date": None})
