"""``steelyard explain``: what a model has learned, or why rows are predicted so."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard._common.text import probability_text
from steelyard.cli import options, output
from steelyard.cli.inputs import load_model, rows_and_labels, rows_for
from steelyard.exceptions import ColumnError, ParameterError

if TYPE_CHECKING:
    from steelyard.explain import GlobalExplanation, LocalExplanation

ABOUT = "show what a model has learned, or why it predicts rows as it does"
EXAMPLES = """
steelyard explain model.json
steelyard explain model.json --column age,income
steelyard explain model.json --details
steelyard explain model.json --html model.html --picture nomogram.svg
steelyard explain model.json --html model.html --card card.toml --language de
steelyard explain model.json rows.csv --html author.html --page-rows 200 --edit
steelyard explain model.json new.csv --rows 3 --counterfactual --fixed age
steelyard explain model.json new.csv --picture first-row.png
"""

_MAX_SHOWN_CLASSES = 8


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    about = "a file of rows to explain (default: explain the whole model)"
    add("data", nargs="?", help=about)
    about = "show only what the values of these columns contribute"
    options.add_names(parser, "--column", about)
    about = "show weights and the value tables of the most important columns"
    add("--details", action="store_true", help=about)
    about = "how many rows of the file to explain (default: 5)"
    add("--rows", type=int, default=5, metavar="N", help=about)
    about = "show what would have to change for another class to win"
    add("--counterfactual", action="store_true", help=about)
    about = "columns that cannot change, such as age"
    options.add_names(parser, "--fixed", about)
    options.add_shared(parser, "split-interactions")
    about = "write a page in which values can be set"
    add("--html", metavar="FILE", help=about)
    options.add_page(parser)
    about = "draw a nomogram, or the first row's evidence (png, svg, pdf)"
    add("--picture", metavar="FILE", help=about)
    options.add_shared(parser, "force", "json")
    options.add_input(parser)


def run(arguments: argparse.Namespace) -> None:
    """Explain the whole model, or rows of a file."""
    for path in (arguments.html, arguments.picture):
        output.check_output(path, arguments.force)
    _check_options(arguments)
    explain = _explain_model if arguments.data is None else _explain_rows
    explain(load_model(arguments.model), arguments)


def _explain_model(clf: Any, arguments: argparse.Namespace) -> None:
    whole = clf.explain_global()
    tables = _tables(whole, arguments.column)
    _write_files(clf, whole, arguments)
    show = _show_details if arguments.details else _show_model
    if arguments.column:
        show = _show_tables
    document = whole.to_dict
    output.present(arguments, document, lambda: show(whole, tables, arguments.model))


def _explain_rows(clf: Any, arguments: argparse.Namespace) -> None:
    from steelyard.io.paths import find_column

    chunks = rows_for(clf, arguments.data, arguments, rows=max(arguments.rows, 1000))
    table, _ = next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    table = table.slice(0, arguments.rows)
    notices = clf.check(table)
    rows = clf.explain_local(table)
    for name in arguments.fixed:
        find_column(name, rows.attributes[: rows.cells.schema.n_columns], "The model")
    if arguments.split_interactions:
        rows = rows.split_interactions()
    _write_files(clf, rows, arguments)
    output.note_notices(notices)
    if not arguments.json:
        _show_rows(rows, arguments)
        return
    document = rows.to_dict()
    if arguments.counterfactual:
        document["counterfactuals"] = [
            rows.counterfactual(i, fixed=arguments.fixed).to_dict()
            for i in range(len(rows))
        ]
    document["notices"] = output.plain_notices(notices, arguments.parser)
    output.print_json(document)


def _check_options(arguments: argparse.Namespace) -> None:
    if arguments.rows < 1:
        raise ParameterError(f"--rows must be at least 1. Got {arguments.rows}.")
    if arguments.counterfactual and arguments.data is None:
        raise ParameterError("--counterfactual is about rows: name a file of rows.")
    if arguments.fixed and not arguments.counterfactual:
        raise ParameterError(
            "--fixed is about what would have to change: add --counterfactual."
        )
    if arguments.split_interactions and arguments.data is None:
        raise ParameterError("--split-interactions is about rows: name a file of rows.")
    if arguments.column and arguments.data is not None:
        problem = "--column is about the whole model: name no file of rows."
        raise ParameterError(problem)
    if arguments.page_rows and (arguments.data is None or arguments.html is None):
        problem = "--page-rows puts rows of a file in a page: name both."
        raise ParameterError(problem)
    output.check_picture(arguments.picture)


def _write_files(clf: Any, explanation: Any, arguments: argparse.Namespace) -> None:
    """Write page and picture, both or none."""
    page, picture, force = arguments.html, arguments.picture, arguments.force
    with ExitStack() as files:
        if page is not None:
            path = files.enter_context(output.writing(page, force))
            how = options.chosen(arguments, "card", "language", "edit")
            if arguments.page_rows:
                how["rows"] = _some_rows(clf, arguments.data, arguments.page_rows)
            clf.to_html(path, _title(clf, arguments), **how)
        if picture is not None:
            path = files.enter_context(output.writing(picture, force))
            _draw(explanation, path, picture)
    output.note(*(f"written: {path}" for path in (page, picture) if path is not None))


def _title(clf: Any, arguments: argparse.Namespace) -> str | None:
    """Return the title of the page: that of the option, or the name of the file."""
    is_named = hasattr(clf, "target_name_") or arguments.card is not None
    return arguments.title or (None if is_named else Path(arguments.model).stem)


def _some_rows(clf: Any, path: str, most: int) -> Any:
    """Return evenly spaced rows of a file, with their labels if it has any."""
    from steelyard.table.ranges import evenly

    try:
        table, y = rows_and_labels(clf, path, getattr(clf, "target_name_", None))
    except ColumnError:
        table, y = rows_and_labels(clf, path, None)
    places = evenly(len(table), most).tolist()
    rows = table.take(places)
    return rows if y is None else (rows, [y[i] for i in places])


def _draw(explanation: Any, path: Path, picture: str) -> None:
    if explanation.kind != "sum" and explanation.parts:
        submodel = max(explanation.parts, key=lambda entry: entry.share)
        output.note(f"{explanation.note} The picture shows the {submodel.name}.")
        explanation = submodel.explanation
    output.draw(explanation, path, picture)


def _tables(whole: GlobalExplanation, names: list[str]) -> list[Any]:
    """Return the value tables of columns, for each submodel that is a sum."""
    from steelyard.io.paths import find_column

    for name in names:
        find_column(name, whole.attributes, "The model")
    places = [whole.attributes.index(name) for name in names] or whole.order[:3]
    submodels = [("", whole), *((s.name, s.explanation) for s in whole.parts)]
    sums = [(name, submodel.tables) for name, submodel in submodels if submodel.tables]
    return [(name, tables[j]) for name, tables in sums[:3] for j in places]


def _show_model(whole: GlobalExplanation, tables: list[Any], model: str) -> None:
    output.say(whole)
    if tables:
        name = tables[0][1].name
        shown = f'"{name}"' if " " in name else name
        output.note(
            f"next: steelyard explain {model} --column {shown} shows what its "
            "values contribute; --details shows weights"
        )


def _show_details(whole: GlobalExplanation, tables: list[Any], model: str) -> None:
    import numpy as np

    output.say(whole)
    console = output.screen()
    shared: Any = whole.weights.get("attribute_weights_")
    d, n_classes = len(whole.attributes), len(whole.classes)
    by_class: Any = whole.weights.get("class_attribute_weights_")
    columns = {}
    if np.shape(shared) == (d,):
        columns["all classes"] = shared
    if np.shape(by_class) == (n_classes, d) and n_classes <= _MAX_SHOWN_CLASSES:
        columns |= dict(zip(map(str, whole.classes), by_class, strict=True))
    if columns:
        rows = [
            [
                whole.attributes[j],
                whole.tables[j].kind if whole.tables else "",
                *(f"{weights[j]:.3f}" for weights in columns.values()),
            ]
            for j in whole.order
            # Interactions have effects and no weights.
            if not whole._is_interaction(j)
        ]
        header = ["column", "encoded as", *columns]
        console.print()
        output.print_table("Weights", header, rows, n_texts=2)
    if "alpha_" in whole.weights:
        console.print(f"alpha: {float(whole.weights['alpha_']):.3f}")
    _show_tables(whole, tables, model)


def _show_tables(whole: GlobalExplanation, tables: list[Any], model: str) -> None:
    for name, table in tables:
        output.say((f"\n{name}: " if name else "\n") + repr(table))


def _show_rows(rows: LocalExplanation, arguments: argparse.Namespace) -> None:
    from rich.text import Text

    console = output.screen()
    if rows.kind != "sum":
        output.say(rows.note)
    for i in range(len(rows)):
        label = (str(rows.predicted[i]), "bold")
        chosen = int(rows.probabilities[i].argmax())
        best = f" (probability {probability_text(rows.probabilities[i, chosen])}"
        if rows.intervals is not None:
            low, high = map(probability_text, rows.intervals[i, chosen])
            best += f", 90 % interval {low} to {high}"
        best += ")"
        console.print(Text.assemble(f"\nrow {i + 1}: ", label, best))
        _show_evidence(console, rows, i)
        if arguments.counterfactual:
            output.say(f"\n{rows.counterfactual(i, fixed=arguments.fixed)!r}")


def _show_evidence(console: Any, rows: LocalExplanation, i: int) -> None:
    from rich.text import Text

    if rows.contributions is not None:
        evidence = rows.evidence(i)
        target, against = (evidence.target, "green"), (evidence.against, "red")
        parts = ("evidence for ", target, " (+) and for ", against, " (-), in log-odds")
        console.print(Text.assemble(*parts))
        console.print(output.evidence_table(evidence, most=15))
    if rows.neighbours:
        output.say(repr(rows.neighbours[i]))
    for submodel in rows.parts[:3]:
        output.say(f"\n{submodel.name} (share {submodel.share:.3f})", style="bold")
        _show_evidence(console, submodel.explanation, i)
    if len(rows.parts) > 3:
        console.print(f"… and {len(rows.parts) - 3} more parts; --json has all")
