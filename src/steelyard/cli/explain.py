"""``steelyard explain``: what a model has learned, or why rows are predicted so."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli.models import load_model, rows_for
from steelyard.cli.options import (
    Commands,
    add_command,
    add_force,
    add_input,
    add_json,
    names_of,
)
from steelyard.cli.output import (
    check_output,
    evidence_table,
    note,
    print_json,
    print_table,
    screen,
    writing,
)
from steelyard.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas

    from steelyard.explain import GlobalExplanation, LocalExplanation

__all__ = ["add_parser"]

_EXAMPLES = """
steelyard explain model.json
steelyard explain model.json --attribute age,income
steelyard explain model.json --html model.html --picture nomogram.svg
steelyard explain model.json new.csv --rows 3 --counterfactual
steelyard explain model.json new.csv --picture first-row.png
"""

_PICTURES = (".png", ".svg", ".pdf")
_MOST_CLASSES = 8


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "explain",
        "show what a model has learned, or why it predicts rows as it does",
        _EXAMPLES,
        _run,
    )
    parser.add_argument("model", help="a model file, written by fit")
    parser.add_argument(
        "data", nargs="?", help="a file of rows to explain; the whole model without it"
    )
    parser.add_argument(
        "--attribute",
        metavar="NAME,...",
        action="append",
        default=[],
        help="show the value tables of these (default: of the three most important)",
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=5,
        metavar="N",
        help="explain so many rows of the file (default: 5)",
    )
    parser.add_argument(
        "--counterfactual",
        action="store_true",
        help="say what would have to change for another class to win",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write a page in which values can be set"
    )
    parser.add_argument(
        "--picture",
        metavar="FILE",
        help="draw a nomogram, or the first row's evidence (png, svg, pdf)",
    )
    add_force(parser)
    add_json(parser)
    add_input(parser)


def _run(arguments: argparse.Namespace) -> None:
    for path in (arguments.html, arguments.picture):
        check_output(path, arguments.force)
    _check_options(arguments)
    clf = load_model(arguments.model)
    rows = None
    if arguments.data is not None:
        rows = clf.explain_local(_first_rows(clf, arguments))
    whole = None if rows is not None else clf.explain_global()
    tables = [] if whole is None else _tables(whole, names_of(arguments.attribute))
    _write_files(clf, whole, rows, arguments)
    if arguments.json:
        found: Any = whole if rows is None else rows
        document = found.to_dict()
        if rows is not None and arguments.counterfactual:
            document["counterfactuals"] = [
                rows.counterfactual(i).to_dict() for i in range(len(rows))
            ]
        print_json(document)
    elif rows is not None:
        _show_rows(rows, arguments.counterfactual)
    elif whole is not None:
        _show_model(whole, tables)


def _check_options(arguments: argparse.Namespace) -> None:
    if arguments.rows < 1:
        raise ParameterError(f"--rows must be at least 1. Got {arguments.rows}.")
    if arguments.counterfactual and arguments.data is None:
        raise ParameterError("--counterfactual is about rows: name a file of rows.")
    if arguments.attribute and arguments.data is not None:
        raise ParameterError(
            "--attribute is about the whole model: name no file of rows."
        )
    if arguments.picture and Path(arguments.picture).suffix.lower() not in _PICTURES:
        raise ParameterError(
            f"Pictures are written to {', '.join(_PICTURES)}, not to "
            f"{arguments.picture}."
        )


def _first_rows(clf: Any, arguments: argparse.Namespace) -> pandas.DataFrame:
    n_rows = arguments.rows
    chunks = rows_for(clf, arguments.data, arguments, rows=max(n_rows, 1000))
    table, _ = next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    return table.head(n_rows)


def _write_files(
    clf: Any,
    whole: GlobalExplanation | None,
    rows: LocalExplanation | None,
    arguments: argparse.Namespace,
) -> None:
    """Write page and picture, both or none."""
    with ExitStack() as files:
        if arguments.html is not None:
            path = files.enter_context(writing(arguments.html, arguments.force))
            clf.to_html(path, Path(arguments.model).stem)
        if arguments.picture is not None:
            path = files.enter_context(writing(arguments.picture, arguments.force))
            suffix = Path(arguments.picture).suffix.lower()
            _draw(whole if rows is None else rows, path, suffix[1:])
    for written in (arguments.html, arguments.picture):
        if written is not None:
            note(f"written: {written}")


def _draw(found: Any, path: Path, form: str) -> None:
    import matplotlib

    # Files are drawn without a window.
    matplotlib.use("Agg")
    if found.kind != "sum" and found.parts:
        part = max(found.parts, key=lambda part: part.share)
        note(f"{found.note} The picture shows the {part.name}.")
        found = part.explanation
    found.plot().figure_.savefig(path, format=form, dpi=150)


def _tables(found: GlobalExplanation, names: list[str]) -> list[Any]:
    """Return the value tables of some attributes, in each part that is a sum."""
    from steelyard.experiments.data.source import find_column

    for name in names:
        find_column(name, found.attributes, "The model")
    places = [found.attributes.index(name) for name in names] or found.order[:3]
    sums = [("", found)] if found.tables else []
    sums += [
        (part.name, part.explanation) for part in found.parts if part.explanation.tables
    ]
    return [(name, part.tables[j]) for name, part in sums[:3] for j in places]


def _show_model(found: GlobalExplanation, tables: list[Any]) -> None:
    import numpy as np
    from rich.text import Text

    console = screen()
    console.print(Text(repr(found)), soft_wrap=True)
    weights = found.weights.get("class_attribute_weights_")
    shape = (len(found.classes), len(found.view_names))
    if weights is not None and np.shape(weights) == shape and shape[0] <= _MOST_CLASSES:
        rows = [
            [found.view_names[k], *(f"{w:.3f}" for w in weights[:, k])]
            for k in found.view_order
        ]
        header = ["attribute", *map(str, found.classes)]
        console.print()
        print_table(console, "Weights by class", header, rows)
    if "alpha_" in found.weights:
        console.print(f"alpha: {float(found.weights['alpha_']):.3f}")
    for name, table in tables:
        heading = f"\n{name}: " if name else "\n"
        console.print(Text(f"{heading}{table!r}"), soft_wrap=True)


def _show_rows(found: LocalExplanation, counterfactual: bool) -> None:
    from rich.text import Text

    console = screen()
    if found.kind != "sum":
        console.print(Text(found.note), soft_wrap=True)
    for i in range(len(found)):
        best = found.probabilities[i].max()
        console.print(
            Text.assemble(
                f"\nrow {i + 1}: ",
                (str(found.predicted[i]), "bold"),
                f" (probability {best:.4g})",
            )
        )
        _show_evidence(console, found, i)
        if counterfactual:
            console.print(Text(f"\n{found.counterfactual(i)!r}"), soft_wrap=True)


def _show_evidence(console: Any, found: LocalExplanation, i: int) -> None:
    from rich.text import Text

    if found.contributions is not None:
        evidence = found.evidence(i)
        console.print(
            Text.assemble(
                "evidence for ",
                (evidence.target, "green"),
                " (+) and for ",
                (evidence.against, "red"),
                " (-), in log-odds",
            )
        )
        items = [(item.attribute, item.value, item.amount) for item in evidence.items]
        console.print(evidence_table(evidence.prior, items, evidence.total, most=15))
    if found.neighbours:
        console.print(Text(repr(found.neighbours[i])), soft_wrap=True)
    for part in found.parts[:3]:
        console.print(
            Text(f"\n{part.name} (share {part.share:.3f})", "bold"), soft_wrap=True
        )
        _show_evidence(console, part.explanation, i)
    if len(found.parts) > 3:
        console.print(f"… and {len(found.parts) - 3} more parts; --json has all")
