"""``steelyard monitor``: new rows against those of training."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli import options, output
from steelyard.cli.inputs import check_target, load_model, rows_for
from steelyard.exceptions import ParameterError

if TYPE_CHECKING:
    from steelyard.monitoring import Drift

ABOUT = "compare new rows with those a model was fitted to, by period"
EXAMPLES = """
steelyard monitor model.json new.csv
steelyard monitor model.json new.csv --by month -o drift.html
steelyard monitor model.json "2024/*.parquet" --by date --target ill --json
steelyard monitor model.json -o drift.sql --dialect postgres --table people --by month
"""

ALARM = 3
"""Exit status if a threshold is exceeded."""

_OF_FILES = ("data", "target", "psi", "share", "json", *options.READING)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("model", help=options.MODEL)
    about = f"{options.SEVERAL}; none for -o drift.sql"
    parser.add_argument("data", nargs="*", metavar="FILE", help=about)
    about = "column of periods, which the model need not use; dates are cut to months, "
    about += "but not in SQL"
    parser.add_argument("--by", metavar="NAME", help=about)
    about = "column of true classes, if known (default: the model's target, "
    parser.add_argument("--target", metavar="NAME", help=f"{about}if it is there)")
    about = "threshold of the population stability index (default: 0.25)"
    parser.add_argument("--psi", type=float, metavar="X", help=about)
    about = "threshold of shares of missing, unseen and out-of-range cells, and of "
    about += "predicted minus observed shares (default: 0.05)"
    parser.add_argument("--share", type=float, metavar="X", help=about)
    about = "file to write: .html, a report with pictures; or .sql, a query that "
    about += "compares the columns of a table"
    parser.add_argument("-o", "--output", metavar="FILE", help=about)
    options.add_shared(parser, "force", "json")
    options.add_database(parser)
    options.add_input(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print and write; return 3 if a threshold is exceeded, else 0."""
    output.check_output(arguments.output, arguments.force)
    ending = Path(arguments.output or "report.html").suffix.lower()
    if ending == ".sql":
        _write_query(arguments)
        return 0
    if ending not in (".html", ".htm"):
        problem = "The output is a report, .html, or a query, .sql: not "
        raise ParameterError(f"{problem}{arguments.output}.")
    for name in options.given(arguments, "dialect table"):
        raise ParameterError(f"--{name} is for a query: -o drift.sql.")
    if not arguments.data:
        problem = "Name files of new rows, or write a query for a database with "
        raise ParameterError(f"{problem}-o drift.sql.")
    clf = load_model(arguments.model)
    target = arguments.target or _target_of_model(clf, arguments)
    check_target(target, clf, arguments)
    with output.working("Comparing …"):
        drift = _compared(clf, target, arguments)
    output.present(arguments, drift.to_dict, lambda: _show_drift(drift))
    if arguments.output is not None:
        title = f"{Path(arguments.model).name}: drift"
        page = drift.to_html(title=title)
        output.write_text(arguments.output, page, arguments.force)
    return ALARM if drift.is_alarm else 0


def _write_query(arguments: argparse.Namespace) -> None:
    """Write the query of drift, which reads a table in place of files."""
    from steelyard.monitoring import drift_sql

    for name in options.given(arguments, " ".join(_OF_FILES)):
        what = "a file" if name == "data" else f"--{name.replace('_', '-')}"
        raise ParameterError(
            f"A drift query reads the table of --table and has no thresholds: "
            f"{what} cannot be given with -o drift.sql. Leave it out, or write .html."
        )
    given = options.given(arguments, "dialect table by")
    query = drift_sql(load_model(arguments.model), **given)
    output.write_text(arguments.output, query, arguments.force)


def _compared(clf: Any, target: str | None, arguments: argparse.Namespace) -> Drift:
    from steelyard.monitoring import DriftMonitor

    monitor = DriftMonitor(clf, **options.given(arguments, "psi share"))
    also = [name for name in (target, arguments.by) if name is not None]
    for table, others in rows_for(clf, arguments.data, arguments, also):
        given = [others.column(name).to_pylist() for name in also]
        labels = given[0] if target is not None else None
        monitor.add(table, labels, given[-1] if arguments.by is not None else None)
    return monitor.result()


def _target_of_model(clf: Any, arguments: argparse.Namespace) -> str | None:
    """Return the model's target if the files have that column, else None."""
    from steelyard.io.recognise import open_files

    target = getattr(clf, "target_name_", None)
    if target is None or "-" in arguments.data:
        return None
    like = clf.training_.reading
    reader = open_files(arguments.data, like=like, **options.reading_of(arguments))
    if target not in reader.names:
        return None
    output.note(f"true classes are taken from column {target!r}, the model's target")
    return str(target)


def _show_drift(drift: Drift) -> None:
    for table in drift.tables():
        output.print_table(*table)
    output.say(*drift.summary())
