"""``steelyard fit``: a file to a model.

The report lists columns, and accuracy and log-loss by cross-validation.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from steelyard._common.progress import watching
from steelyard._common.text import counted, listed, shortened, unlabelled
from steelyard.cli import inputs, options, output
from steelyard.cli.inputs import make_classifier, read_training
from steelyard.cli.output import note
from steelyard.exceptions import IdentifierWarning
from steelyard.io.paths import is_several, stem_and_format
from steelyard.notices.notice import arranged, in_lines, no_error_notice
from steelyard.table.dates import dates_in

_FOLDS, _SEED = 5, 1
_MAX_CHECKED_ROWS = 5_000
# Of the processor, for all folds; the first fit of a machine compiles kernels too.
_MAX_CHECK_SECONDS = 300.0
_MAX_SHOWN_COLUMNS = 30
_MAX_STRONGEST_COLUMNS = 5

# Tables of methods that select columns: in the summary, and as fitted attributes.
_TABLES = {
    "path": "selection_path_",
    "cases": "case_processing_",
    "classification": "classification_table_",
}

ABOUT = "learn a model from a table"
EXAMPLES = """
steelyard fit data.csv --target class
steelyard fit churn.csv --target churn --positive yes --increasing age
steelyard fit data.csv --target class --categorical zip --drop id,name -o model.json
steelyard fit data.csv --target ill --order pain=none,some,much --increasing pain
steelyard fit "trips/*.parquet" --target tip --memory 2GB -o model.json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("data", nargs="+", help=options.SEVERAL)
    about = "the model file to write (default: DATA.model.json, in this folder)"
    parser.add_argument("-o", "--output", metavar="FILE", help=about)
    options.add_shared(parser, "force", "json")
    about = "skip the five-fold cross-validation"
    parser.add_argument("--no-check", action="store_true", help=about)
    options.add_training(parser)
    about = "heading of the model's page, as a question (default: made of the target)"
    parser.add_argument("--title", metavar="TEXT", help=about)
    about = "device to train on: cpu, cuda (a GPU), cuda:1, or auto (default: cpu)"
    parser.add_argument("--device", metavar="NAME", help=about)
    group = parser.add_argument_group("tables larger than memory")
    about = "read in chunks if the table needs more, such as 2GB (default: half of all)"
    group.add_argument("--memory", type=inputs.size_of, metavar="SIZE", help=about)
    about = "folder for temporary files (default: that of the system)"
    group.add_argument("--work-folder", metavar="DIR", help=about)


def run(arguments: argparse.Namespace) -> None:
    """Fit a model, save it, and print a summary."""
    if arguments.output is None:  # DATA.model.json, in this folder
        if is_several(arguments.data) or arguments.data == ["-"]:
            raise ValueError("Name the model file to write with -o.")
        arguments.output = f"{stem_and_format(arguments.data[0])[0]}.model.json"
    output.check_output(arguments.output, arguments.force)
    method, clf = make_classifier(arguments)
    if arguments.device is not None:
        if "device" not in clf.get_params():
            raise ValueError(f"{method} trains on the CPU only; omit --device.")
        clf.set_params(device=arguments.device)
    if not hasattr(clf, "save"):
        advice = "try it with evaluate or compare"
        raise ValueError(f"{method} is a baseline and cannot be saved; {advice}.")
    learn = _fit_stream if inputs.is_streamed(arguments) else _fit_table
    with warnings.catch_warnings():
        # There is a notice of it.
        warnings.simplefilter("ignore", IdentifierWarning)
        result = learn(clf, method, arguments)
    # Names that look like numbers were asked for.
    notices = [
        notice
        for notice in clf.notices_
        if notice.kind != "digits" or notice.column not in arguments.categorical
    ]
    record = clf.training_.with_notices(notices)
    reading = {**record.reading, **_asked(clf, arguments)}
    clf.training_ = replace(record, reading=reading)
    with output.writing(arguments.output, arguments.force) as path:
        clf.save(path)
    if check := result.get("check"):
        measured = check["accuracy"], result["majority"]["accuracy"], check["rows"]
        if not any(notice.kind == "no-errors" for notice in notices):
            notices = arranged([*notices, *no_error_notice(*measured)])
    dates = dates_in(clf.encoder_.schema_.features)
    used = {*clf.feature_names_in_} - {*_dropped(clf)}
    summary = {
        "model": arguments.output,
        "method": method,
        **result,
        "columns": len({dates.get(name, name) for name in used}),
        "classes": clf.classes_,
        "strongest": _strongest(clf),
        "notices": output.plain_notices(notices, arguments.parser),
        **_selection(clf),
    }
    lines = [output.in_options(n, arguments.parser) for n in in_lines(notices)]
    output.present(arguments, lambda: summary, lambda: _show(summary, lines))


def _asked(clf: Any, arguments: argparse.Namespace) -> dict[str, str]:
    """Return what a model keeps of its file, title and class of interest."""
    asked = options.given(arguments, "title positive")
    if arguments.positive is not None:
        inputs.class_named(clf.classes_, arguments.positive, "--positive")
    if arguments.data != ["-"]:
        asked["file"] = ", ".join(Path(path).name for path in arguments.data)
    if len(arguments.data) == 1 and Path(arguments.data[0]).is_file():
        with open(arguments.data[0], "rb") as file:
            asked["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return asked


def _strongest(clf: Any) -> list[str]:
    """Return the most important columns and interactions, if the model is one sum."""
    if not getattr(clf.model_, "is_sum", False):
        return []
    whole = clf.explain_global()
    if whole.importance is None:
        return []
    order = whole.order[:_MAX_STRONGEST_COLUMNS]
    return [whole.attributes[j] for j in order if whole.importance[j] > 0.0]


def _selection(clf: Any) -> dict[str, Any]:
    """Return the columns that a method selected, and the path of its search."""
    if not isinstance(getattr(clf, "selected_features_", None), list):
        return {}
    selection: dict[str, Any] = {"selected": clf.selected_features_}
    for key, name in _TABLES.items():
        if hasattr(clf, name):
            selection[key] = list(getattr(clf, name))
    return selection


def _dropped(clf: Any) -> list[str]:
    """Return the columns that were left out, such as identifiers."""
    return [clf.feature_names_in_[j] for j in clf.encoder_.schema_.left_out]


def _fit_table(clf: Any, method: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit to a table in memory."""
    with output.working("Reading …"):
        data, weights, _ = read_training(arguments.data[0], arguments)
    start, start_work = perf_counter(), process_time()
    with watching(f"Fitting {method}", sys.stderr.isatty(), stays=False):
        clf.fit(data.table, data.target, sample_weight=weights)
    clf.target_name_ = data.target_name
    read = {"reading": data.reading or {}, "labels": dict(data.labels)}
    record = replace(clf.training_, **read)
    seconds, work = perf_counter() - start, process_time() - start_work
    check = None
    if not arguments.no_check:
        check = _cross_validated(clf, data, weights, work)
    if check is not None:
        record = replace(record, quality=[{**check, "date": date.today().isoformat()}])
    clf.training_ = record
    return {
        "target": data.target_name,
        "rows": len(data),
        "check": check,
        "majority": _majority(data.target),
        "column_report": _describe(data.table, clf, data.labels),
        "fit_seconds": seconds,
    }


def _fit_stream(clf: Any, method: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit to rows that are read in chunks."""
    start = perf_counter()
    with watching(f"Fitting {method}", sys.stderr.isatty(), stays=False):
        rows, read = inputs.open_rows(arguments)
        clf.fit(rows)
    output.note(*read.notes)
    left_out = read.n_unlabelled
    if left_out:
        output.note(unlabelled(left_out, str(rows.target)))
    return {
        "target": rows.target,
        "rows": read.n_read - left_out,
        "check": None,
        "fit_seconds": perf_counter() - start,
    }


def _show(summary: dict[str, Any], noticed: list[str]) -> None:
    from rich.markup import escape

    from steelyard.classifiers.base.selection import RecordTable

    console, classes = output.screen(), summary["classes"]
    if noticed:
        output.say("Noticed", style="bold")
        output.say(*(f"- {line}" for line in noticed), "")
    if lines := summary.get("column_report"):
        rows, n_hidden = _column_rows(lines)
        header = ["column", "kind", "", "holds", "missing", "distinct"]
        output.print_table("Columns", header, rows, 4)
        if n_hidden:
            console.print(f"and {n_hidden} more columns\n")
    model, strongest = escape(summary["model"]), ""
    if summary["strongest"]:
        strongest = f"strongest columns: {', '.join(summary['strongest'])}\n"
    console.print(
        f"[bold]{escape(summary['method'])}[/bold] learned "
        f"[bold]{escape(summary['target'])}[/bold] "
        f"({len(classes)} classes: {escape(listed(classes, 6))})\n"
        f"from {summary['rows']} rows and {counted(summary['columns'], 'column')} in "
        f"{summary['fit_seconds']:.2f} s{escape(_checked(summary))}\n"
        f"{escape(strongest)}written: [green]{model}[/green]\n"
        f"next: steelyard explain {model} --html model.html\n"
        f"      steelyard predict {model} NEW.csv -o predictions.csv",
        soft_wrap=True,
    )
    if "selected" in summary:
        chosen = listed(summary["selected"], 20) or "none"
        n_chosen = len(summary["selected"])
        line = f"\nselected {n_chosen} of {summary['columns']} columns: {chosen}"
        output.say(line)
    for key in _TABLES:
        if key in summary:
            output.say(f"\n{RecordTable(summary[key])!r}")


def _checked(summary: dict[str, Any]) -> str:
    """Describe the cross-validated measures, beside those of the majority class."""
    if summary["check"] is None:
        return ""
    check, plain = summary["check"], summary["majority"]
    loss = "" if check["log_loss"] is None else f", log-loss {check['log_loss']:.3f}"
    checked = str(check["rows"])
    if check["rows"] < summary["rows"]:
        checked += f" of the {summary['rows']}"
    return (
        f"\nnew rows: accuracy {100 * check['accuracy']:.1f} %{loss} "
        f"({check['folds']}-fold cross-validation of {checked} rows)\n"
        f"always {str(plain['class'])!r}: accuracy {100 * plain['accuracy']:.1f} %, "
        f"log-loss {plain['log_loss']:.3f}"
    )


def _cross_validated(
    clf: Any, data: Any, weights: Any, seconds: float
) -> dict[str, float] | None:
    """Return accuracy and log-loss over five folds, None if that takes too long.

    Long tables are measured on a sample of 5,000 rows. ``seconds`` is the processor
    time of the fit, from which that of the folds is estimated.
    """
    import numpy as np

    from steelyard.evaluation.evaluate import Evaluation, cross_validated

    n_rows = min(len(data), _MAX_CHECKED_ROWS)
    if seconds * _FOLDS * n_rows / len(data) > _MAX_CHECK_SECONDS:
        note("not cross-validated, since that takes long: see 'steelyard evaluate'")
        return None
    rows = np.arange(len(data))
    if n_rows < len(data):
        rows = np.sort(np.random.default_rng(1).choice(rows, n_rows, replace=False))
    if weights is not None:
        weights = np.asarray(weights)[rows]
    # Some rows alone might not show which columns are identifiers.
    table = data.table.iloc[rows].drop(columns=_dropped(clf))
    labels = data.target[rows]
    try:
        with warnings.catch_warnings():
            # The fit has warned of the same table.
            warnings.simplefilter("ignore")
            given = table, labels, weights
            shown = sys.stderr.isatty()
            predicted = cross_validated(clf, *given, _FOLDS, _SEED, shown)
            evaluation = Evaluation.measured(*predicted, _FOLDS, None, None)
    except ValueError as error:
        note(f"not checked by cross-validation: {error}")
        return None
    measures = {name: evaluation.metrics[name] for name in ("accuracy", "log_loss")}
    return {**measures, "folds": _FOLDS, "rows": n_rows}  # type: ignore[dict-item]


def _majority(labels: Any) -> dict[str, Any]:
    """Return the measures of always predicting the most frequent class."""
    import numpy as np

    classes, counts = np.unique(labels, return_counts=True)
    shares = counts / counts.sum()
    return {
        "class": classes[counts.argmax()],
        "accuracy": float(shares.max()),
        "log_loss": float(-(shares * np.log(shares)).sum()),
    }


def _describe(table: Any, clf: Any, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Describe each column: kind, missing cells, distinct values and a remark.

    The default remark is the label of the column. Columns that are left out come last.
    """
    import pandas as pd

    aside = _dropped(clf)
    suspects = [n.column for n in clf.notices_ if n.kind == "identifier"]
    remarks = dict.fromkeys(suspects, "like an identifier")
    remarks |= dict.fromkeys(aside, "identifier: dropped")
    lines = []
    for name in sorted(table.columns, key=lambda name: name in aside):
        cells = table[name].dropna()
        n_values = int(cells.nunique())
        is_number = pd.api.types.is_numeric_dtype(cells) and cells.dtype != bool
        remark = "constant" if n_values < 2 else ""
        remark = remarks.get(str(name), remark)
        kind = "numbers" if is_number else "categories"
        if is_number and {*cells.unique().tolist()} == {0, 1}:
            kind = "yes or no"
        if pd.api.types.is_datetime64_any_dtype(cells):
            kind, remark = "dates", ""
        lines.append(
            {
                "column": str(name),
                "kind": kind,
                "missing": int(len(table) - len(cells)),
                "distinct": n_values,
                "remark": remark or labels.get(str(name), ""),
                "holds": _content(cells, is_number),
            }
        )
    return lines


def _content(cells: Any, is_number: bool) -> str:
    """Describe cells: the range of numbers or dates, or the most common value."""
    if not len(cells):
        return ""
    if is_number:
        return f"{cells.min():.6g} … {cells.max():.6g}"
    if cells.dtype.kind == "M":
        return f"{cells.min():%Y-%m-%d} … {cells.max():%Y-%m-%d}"
    counts = cells.astype(str).value_counts()
    share = 100 * counts.iloc[0] / len(cells)
    return f"{shortened(str(counts.index[0]), 20)} {share:.0f} %"


def _column_rows(lines: list[dict[str, Any]]) -> tuple[list[list[str]], int]:
    """Return the table of columns to show, and how many are not shown.

    If there are many, those with remarks come first.
    """
    shown = lines
    if len(lines) > _MAX_SHOWN_COLUMNS:
        shown = sorted(lines, key=lambda line: (not line["remark"], -line["missing"]))
        shown = shown[:_MAX_SHOWN_COLUMNS]
    names = ("column", "kind", "remark", "holds", "missing", "distinct")
    texts = [[str(line[name] or "") for name in names] for line in shown]
    return texts, len(lines) - len(shown)
