"""Draw one prediction as a waterfall, and find what would change it.

The tumour about which weighted naive Bayes is least sure is decomposed: every
measurement adds evidence for or against, and the bars add up to the prediction.

    python examples/plot_waterfall.py waterfall.svg
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import steelyard as sy


def main(path="waterfall.svg"):
    bunch = load_breast_cancer(as_frame=True)
    labels = bunch.target_names[bunch.target]
    X_train, X_test, y_train, y_test = train_test_split(
        bunch.data, labels, stratify=labels, random_state=0
    )
    clf = sy.method("WANBIA-CLL").fit(X_train, y_train)
    row = int(np.argmin(clf.predict_proba(X_test).max(axis=1)))

    why = clf.explain_local(X_test.iloc[[row]])
    print(why.counterfactual())
    print(f"In truth it is {y_test[row]}.")

    # The same bytes at every run: no date, no random identifiers; letters stay text.
    plt.rcParams.update({"svg.hashsalt": "steelyard", "svg.fonttype": "none"})
    display = why.plot(max_attributes=10)
    display.figure_.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
