"""List what is noticed in all data sets: every notice should be true and useful.

    python studies/notices.py [FOLDER]
    python studies/notices.py --cost

Plain naive Bayes is fitted to each data set of a folder (environment STEELYARD_DATA)
and to those of scikit-learn. The last lines have the number of notices by kind, and a
data set on average. With ``--cost`` they tell what notices add to the processor time
of fits, and of predicting a Parquet file of a million rows.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from statistics import median
from time import process_time, thread_time
from typing import Any

import numpy as np
import pandas as pd

from steelyard import NaiveBayes, ShrinkageNB
from steelyard.classifiers.base import estimator as base
from steelyard.cli.run import main as steelyard
from steelyard.io.paths import stem_and_format
from steelyard.lab.data.datasets import BUNDLED, data_folder, load_dataset
from steelyard.model.training import TrainingSet
from steelyard.notices import check

_ROUNDS = 9


def main() -> None:
    """Fit and list, or measure."""
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["--cost"]:
        for name, clf, X, y in tables():
            in_fit, later = cost(clf, X, y)
            print(f"{name:32} {100 * in_fit:5.1f} % of the fit", end="")
            print(f", {100 * later:5.1f} % when read" if later else "")
        for name, share in predict_cost():
            print(f"{name:32} {100 * share:5.1f} % of steelyard predict")
        return
    list_notices(sys.argv[1] if len(sys.argv) > 1 else None)


def list_notices(folder: str | None) -> None:
    """Print every notice, and how many there are."""
    files = [stem_and_format(path) for path in sorted(data_folder(folder).iterdir())]
    names = [name for name, format in files if format and name != "MANIFEST"]
    names += [f"sklearn:{name}" for name in BUNDLED]
    kinds: Counter[str] = Counter()
    for name in names:
        data = load_dataset(name, folder)
        notices = NaiveBayes().fit(data.table, data.target).notices_
        kinds.update(notice.kind for notice in notices)
        for notice in notices:
            print(f"{name:24} {notice.kind:16} {notice}")
    for kind, n in kinds.most_common():
        print(f"{n:4} {kind}")
    print(f"{kinds.total() / len(names):.2f} notices a data set ({len(names)} sets)")


def tables() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield classifiers, and tables of several kinds for them."""
    rng = np.random.default_rng(0)
    for n, d in ((1_000_000, 7), (10_000, 20)):
        y, codes = rng.integers(0, 2, n), rng.integers(0, 5, (n, d)).astype(np.uint8)
        yield f"NB {n} x {d} bytes", NaiveBayes(categorical_features="all"), codes, y
    y = rng.integers(0, 2, 50_000)
    yield "NB 50000 x 10 numbers", NaiveBayes(), rng.normal(size=(50_000, 10)), y
    for name in ("iris", "breast_cancer", "digits"):
        data = load_dataset(f"sklearn:{name}")
        for clf in (NaiveBayes(), ShrinkageNB()):
            label = f"{type(clf).__name__} {name}"
            yield label, clf, data.table, data.target


def cost(clf: Any, X: Any, y: Any) -> tuple[float, float]:
    """Return the time for notices as a share of that of the rest of a fit.

    The first is spent in the fit, the second when notices are read after it.
    """
    spent = [0.0]

    def timed(function: Any) -> Any:
        def call(*given: Any) -> Any:
            start = process_time()
            notices = function(*given)
            spent[0] += process_time() - start
            return notices

        return call

    module: Any = base
    original = module.notices_at_fit, TrainingSet.small_copy
    module.notices_at_fit, TrainingSet.small_copy = map(timed, original)  # type: ignore[method-assign]
    try:
        shares = []
        for _ in range(_ROUNDS + 1):
            start, spent[0] = process_time(), 0.0
            clf.fit(X, y)
            rest, in_fit = process_time() - start - spent[0], spent[0]
            clf.notices_  # noqa: B018
            shares.append((in_fit / rest, (spent[0] - in_fit) / rest))
        # The first may compile.
        first, later = zip(*shares[1:], strict=True)
        return median(first), median(later)
    finally:
        module.notices_at_fit, TrainingSet.small_copy = original  # type: ignore[method-assign]


def predict_cost() -> Iterator[tuple[str, float]]:
    """Yield what looking at a million new rows costs, as a share of the rest."""
    rng, n = np.random.default_rng(0), 1_000_000
    names, y = np.array(["ash", "beech", "cedar", "date"]), rng.integers(0, 2, n)
    numbers = {f"x{j}": rng.normal(size=n).round(3) + 0.3 * y for j in range(8)}
    texts = {f"c{j}": names[rng.integers(0, 4, n)] for j in range(8)}
    mixed = dict([*numbers.items()][:4] + [*texts.items()][:4])
    mixed["whole"] = rng.integers(0, 100, n)
    module: Any = check
    original, spent = module._add_cells, [0.0]
    # To ask for the time may take longer than what is timed.
    clock = median(-thread_time() + thread_time() for _ in range(1000))

    def timed(*given: Any) -> None:
        start = thread_time()
        original(*given)
        spent[0] += thread_time() - start - clock

    module._add_cells = timed
    with tempfile.TemporaryDirectory() as folder:
        rows, model, out = (f"{folder}/{x}" for x in ("r.parquet", "m", "o.parquet"))
        command = ["predict", model, rows, "-o", out, "--force"]
        for name, cells in (("numbers", numbers), ("text", texts), ("mixed", mixed)):
            frame = pd.DataFrame(cells)
            frame.to_parquet(rows)
            NaiveBayes().fit(frame[:20_000], y[:20_000]).save(model)
            shares = []
            for _ in range(_ROUNDS + 1):
                start, spent[0] = process_time(), 0.0
                with contextlib.redirect_stderr(io.StringIO()):
                    steelyard(command)
                shares.append(spent[0] / (process_time() - start - spent[0]))
            yield f"1000000 rows, {len(cells)} columns: {name}", median(shares[1:])


if __name__ == "__main__":
    main()
