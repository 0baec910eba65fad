"""``steelyard demo``: methods compared on real data, and one prediction explained."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from steelyard._common.text import probability_text
from steelyard.cli import options, output

if TYPE_CHECKING:
    from rich.table import Table

    from steelyard.explain.evidence import Evidence

ABOUT = "compare methods on real data, explain one prediction, write a page"
EXAMPLES = """
steelyard demo
steelyard demo --page wine.html
steelyard demo --json
"""

_DATA = ("breast cancer", "wine", "iris")
_SHAPE = ("data", "rows", "columns")
_FOLDS = 5
_WINES = ("Barolo", "Grignolino", "Barbera")
_TITLE = "wine, row 0 of the test part"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "where to write the page (default: in a new temporary folder)"
    parser.add_argument("--page", metavar="FILE", help=about)
    options.add_shared(parser, "json")


def run(arguments: argparse.Namespace) -> None:
    """Print cross-validated measures, and explain one prediction."""
    output.check_output(arguments.page, force=True)
    # A new folder: in the shared one, other users could place a link.
    page = arguments.page
    if page is None:
        page = str(Path(tempfile.mkdtemp(prefix="steelyard-")) / "steelyard-demo.html")
    with output.working("Cross-validating …") as status:
        scores = measure(lambda what: status.update(f"{what} …"))
        status.update("Explaining one prediction …")
        evidence, truth = explain_one(page)
    if arguments.json:
        items = [(item.attribute, item.value, item.amount) for item in evidence.items]
        opened = {
            "title": _TITLE,
            "predicted": evidence.target,
            "truth": truth,
            "probability": evidence.probability,
            "against": evidence.against,
            "prior": evidence.prior,
            "items": items,
            "start": evidence.start,
            "total": evidence.total,
        }
        output.print_json({"scores": scores, "evidence": opened, "page": page})
        return
    console = output.screen()
    console.print(_score_table(scores))
    seconds = sum(score["seconds"] for score in scores)
    n_fits = _FOLDS * len(scores)
    console.print(f"{n_fits} fits on the same folds in {seconds:.1f} s.\n")
    right = "right" if evidence.target == truth else "wrong"
    console.print(
        f"One prediction of the default, opened ({_TITLE}): "
        f"[bold]{evidence.target}[/bold],\n"
        f"with probability {probability_text(evidence.probability)}, which is {right}. "
        f"Evidence for [green]{evidence.target}[/green] (+)\n"
        f"and for [red]{evidence.against}[/red] (-) in log-odds; "
        "the lines add up to the prediction.\n"
    )
    console.print(output.evidence_table(evidence))
    console.print(
        f"\nIts page, in which values can be set:\n[green]{page}[/green]",
        soft_wrap=True,
    )


def classifiers() -> dict[str, Any]:
    """Return the default, plain naive Bayes, weighted ones, and two of scikit-learn."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from steelyard.classifiers.registry import DEFAULT, method

    logit = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return {
        f"{DEFAULT}, default": method(DEFAULT),
        **{name: method(name) for name in ("NB", "WANBIA-CLL", "CAWNB-CLL")},
        "sklearn GNB": GaussianNB(),
        "sklearn logit": logit,
    }


def measure(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Cross-validate the methods on scikit-learn's data, all on the same folds.

    ``progress`` is called with the name of each step.
    """
    import numpy as np
    from sklearn import datasets

    from steelyard.evaluation.evaluate import evaluate
    from steelyard.evaluation.metrics import log_loss

    scores = []
    for data in _DATA:
        load = getattr(datasets, f"load_{data.replace(' ', '_')}")
        X, y = load(return_X_y=True)
        for name, clf in classifiers().items():
            progress(f"{name} on {data}")
            start = perf_counter()
            result = evaluate(clf, X, y, folds=_FOLDS)
            proba = np.maximum(np.asarray(result.proba), 1e-15)
            score = {
                "data": data,
                "rows": len(X),
                "columns": X.shape[1],
                "classes": len(result.classes),
                "method": name,
                "accuracy": float(np.mean(result.true == result.predicted)),
                "log_loss": log_loss(result.true, proba),
                "seconds": perf_counter() - start,
            }
            scores.append(score)
    return scores


def explain_one(page: str) -> tuple[Evidence, str]:
    """Explain what the default predicts for one held-out wine; return its truth too.

    Contributions of interactions are split. The model is written as a page.
    """
    import numpy as np
    from sklearn.datasets import load_wine
    from sklearn.model_selection import train_test_split

    from steelyard.classifiers.registry import DEFAULT, method

    bunch: Any = load_wine(as_frame=True)
    table = bunch.data.rename(columns=lambda name: name.replace("_", " "))
    labels = np.array(_WINES)[bunch.target]
    X_train, X_test, y_train, y_test = train_test_split(
        table, labels, test_size=0.3, random_state=0, stratify=labels
    )
    clf: Any = method(DEFAULT).fit(X_train, y_train)
    clf.to_html(page, "Which wine is it?")
    evidence = clf.explain_local(X_test[:1], interactions="split").evidence()
    return evidence, str(y_test[0])


def _score_table(scores: list[dict[str, Any]]) -> Table:
    """Lay out results as one line per data set and method, best ones in bold."""
    from rich import box
    from rich.table import Table

    title = "Accuracy and log-loss, five-fold cross-validation"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    for name in "data rows columns method accuracy log-loss".split():
        is_text = name in ("data", "method")
        table.add_column(name, justify="left" if is_text else "right")
    for _, group in groupby(scores, key=itemgetter("data")):
        entries = list(group)
        highest = max(entry["accuracy"] for entry in entries)
        lowest = min(entry["log_loss"] for entry in entries)
        for k, entry in enumerate(entries):
            accuracy, loss = entry["accuracy"], entry["log_loss"]
            table.add_row(
                *(str(entry[key]) if k == 0 else "" for key in _SHAPE),
                entry["method"],
                _bold(f"{100 * accuracy:.1f} %", accuracy == highest),
                _bold(f"{loss:.3f}", loss == lowest),
                end_section=k == len(entries) - 1,
            )
    return table


def _bold(text: str, condition: bool) -> str:
    return f"[bold]{text}[/bold]" if condition else text
