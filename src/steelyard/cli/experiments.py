"""``steelyard compare``, ``reproduce`` and ``demo``: methods on the same folds."""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from steelyard._common.text import probability_text
from steelyard.cli import options, output
from steelyard.exceptions import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from steelyard.explain.row_cells import Evidence

_COMPARE = "cross-validate methods on data sets, all on the same folds"
_COMPARE_EXAMPLES = """
steelyard compare iris wine breast_cancer --methods NB,RNB,LogisticRegression
steelyard compare data.csv --target class --methods NB,SNB --html report.html
steelyard compare group:rnb33 --data datasets --methods all --journal run.jsonl
"""
_DESIGN = ("folds", "repeats", "seed", "journal", "retry_errors")
_REPORTS = ("html", "markdown", "latex", "csv")


def add_compare_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    about = "files, or names of data sets: those of --data, scikit-learn's, openml:NAME"
    add("datasets", nargs="+", metavar="DATA", help=f"{about}, group:NAME")
    options.add_names(
        parser,
        "--methods",
        "acronyms, scikit-learn's SVM, LogisticRegression, RandomForest, "
        "HistGradientBoosting; EBM, CatBoost and Khiops where installed, or all "
        "(default: NB and the library's default)",
    )
    options.add_target(parser)
    about = "honest (default), published-rnb, published-cwnb, published-exponential"
    options.add_names(parser, "--protocol", about)
    options.add_folds(parser)
    add("--repeats", type=int, default=1, help="repeats (default: 1)")
    add("--metric", default="accuracy", help="measure to rank by (default: accuracy)")
    about = "method that each of the others is tested against (default: the one of best"
    add("--control", metavar="NAME", help=f"{about} rank)")
    options.add_runs(parser)
    about = "keep results in a file, from which the same command goes on"
    add("--journal", metavar="FILE", help=about)
    add("--retry-errors", action="store_true", help="run failed fits again")
    for name in _REPORTS:
        add(f"--{name}", metavar="FILE", help=f"write the report as {name} to a file")
    options.add_force(parser)
    options.add_json(parser)
    options.add_input(parser)


@options.command("compare", _COMPARE, _COMPARE_EXAMPLES, add_compare_options)
def run_compare(arguments: argparse.Namespace) -> None:
    """Compare methods, write reports, and print what came out."""
    from steelyard.classifiers.registry import DEFAULT
    from steelyard.lab.report.summaries import check_metric
    from steelyard.lab.runner import compare, resolve_methods

    for name in _REPORTS:
        output.check_output(getattr(arguments, name), arguments.force)
    output.check_output(arguments.journal, force=True)
    check_metric(arguments.metric)
    methods = arguments.methods or ["NB", DEFAULT]
    if arguments.control is not None:
        (arguments.control,) = resolve_methods(arguments.control)
        compared = list(resolve_methods(methods))
        if arguments.control not in compared:
            raise ParameterError(
                f"--control {arguments.control} is not among the methods to compare: "
                f"{', '.join(compared)}. Add it to --methods."
            )
    results = compare(
        methods,
        [_data_set(name, arguments) for name in arguments.datasets],
        protocol=arguments.protocol or "honest",
        folder=arguments.data,
        n_jobs=arguments.jobs,
        **options.chosen(arguments, *_DESIGN),
    )
    _write_reports(results, arguments)
    if arguments.json:
        output.print_json({"settings": results.settings, "fits": results.rows})
    else:
        _show_results(results, arguments.metric, arguments.control)


def _data_set(name: str, arguments: argparse.Namespace) -> Any:
    """Read a file as all commands do; leave other names to the comparison."""
    from steelyard.io.dataset import read_dataset

    if not Path(name).is_file():
        return name
    data = read_dataset(name, target=arguments.target, **options.reading_of(arguments))
    output.note(*data.notes)
    return data


def _write_reports(results: Any, arguments: argparse.Namespace) -> None:
    from steelyard.lab import report

    shown = options.chosen(arguments, "metric", "control")
    for name in _REPORTS:
        target = getattr(arguments, name)
        if target is not None:
            make = getattr(report, f"results_to_{name}")
            text = make(results) if name == "csv" else make(results, **shown)
            output.write_text(target, text, arguments.force)


def _show_results(results: Any, metric: str, control: str | None) -> None:
    from steelyard.lab.report.writers import print_results

    # A pipe gets the whole text at once.
    text = None if sys.stdout.isatty() else io.StringIO()
    width = output.screen().width
    print_results(results, metric, control=control, file=text, width=width)
    print(text.getvalue() if text else "", end="")


PAPERS = ("rnb", "cwnb", "exponential", "spss")
"""The documents whose tables can be measured: a TOML file each."""

_REPRODUCE = "measure the tables of a paper beside what it published"
_REPRODUCE_EXAMPLES = """
steelyard reproduce rnb --quick --data datasets
steelyard reproduce exponential --out results
steelyard reproduce spss --markdown spss.md
steelyard reproduce rnb --out results --write docs/reproduction.md
"""


def add_reproduce_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("paper", choices=PAPERS, help="whose tables")
    add("--quick", action="store_true", help="a few small data sets")
    options.add_runs(parser)
    about = "folder of published tables (default: 'published' beside the data sets)"
    add("--published", metavar="DIR", help=about)
    about = "how often cross-validation is repeated where a paper does it 10 times"
    add("--repeats", type=int, metavar="N", help=about)
    about = "keep results, report and pictures in a folder, from which an interrupted"
    add("--out", metavar="DIR", help=f"{about} run resumes")
    add("--markdown", metavar="FILE", help="write the report to a file")
    about = "replace the paper's section of a Markdown page, between the lines"
    marks = "'<!-- begin PAPER -->' and '<!-- end PAPER -->'"
    add("--write", metavar="FILE", help=f"{about} {marks}")
    add("--silent", action="store_true", help="no progress on standard error")
    options.add_force(parser)
    options.add_json(parser)


@options.command("reproduce", _REPRODUCE, _REPRODUCE_EXAMPLES, add_reproduce_options)
def run_reproduce(arguments: argparse.Namespace) -> None:
    """Print the report of a paper, and write it where asked."""
    reproduce = _reproduce_of_checkout(arguments.paper)
    output.check_output(arguments.markdown, arguments.force)
    report = reproduce(
        arguments.paper,
        arguments.data,
        arguments.published,
        n_jobs=arguments.jobs,
        progress=not arguments.silent,
        **options.chosen(arguments, "quick", "out", "repeats"),
    )
    text = report.to_markdown(level=1)
    if arguments.markdown is not None:
        output.write_text(arguments.markdown, text, arguments.force)
    if arguments.write is not None:
        report.write_section(Path(arguments.write))
        output.note(f"written: {arguments.write}")
    output.present(arguments, report.as_dict, lambda: print(text))


def _reproduce_of_checkout(paper: str) -> Callable[..., Any]:
    """Return the function behind the command: it is beside ``src``, in no wheel."""
    root = Path(__file__).parents[3]
    if not (root / "reproduction" / "documents.py").is_file():
        raise FileNotFoundError(
            "reproduction needs a checkout of the repository: experiments of papers "
            "are not installed with the package. In its folder run: "
            f"pip install -e '.[cli,plot]' && steelyard reproduce {paper}"
        )
    if str(root) not in sys.path:
        # First, so that a folder of this name elsewhere is not taken for it. Processes
        # of a comparison have the same path.
        sys.path.insert(0, str(root))
    from reproduction.documents import reproduce

    return reproduce


_DEMO = "compare methods on real data, explain one prediction, write a page"
_DEMO_EXAMPLES = """
steelyard demo
steelyard demo --page wine.html
steelyard demo --json
"""

_DATA = ("breast cancer", "wine", "iris")
_SHAPE = ("data", "rows", "columns")
_FOLDS = 5
_WINES = ("Barolo", "Grignolino", "Barbera")
_TITLE = "wine, row 0 of the test part"


def add_demo_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "where to write the page (default: in a new temporary folder)"
    parser.add_argument("--page", metavar="FILE", help=about)
    options.add_json(parser)


@options.command("demo", _DEMO, _DEMO_EXAMPLES, add_demo_options)
def run_demo(arguments: argparse.Namespace) -> None:
    """Show results on real data, and one prediction opened."""
    output.check_output(arguments.page, force=True)
    # A folder of one's own: in the one for all, others could place a link.
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

    ``progress`` is told what comes next.
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

    Evidence of pairs is split. The model is written as a page.
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
    evidence = clf.explain_local(X_test[:1], pairs="split").evidence()
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
