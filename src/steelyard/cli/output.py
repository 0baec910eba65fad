"""What commands print and write: tables, notes, JSON, and files whole or not at all."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard._common.files import replacing
from steelyard.exceptions import ParameterError
from steelyard.notices.notice import Notice, in_one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from steelyard.explain.evidence import Evidence

# A pipe has no width; tables are as wide as they need to be.
_PIPE_WIDTH = 400
_PICTURES = (".png", ".svg", ".pdf")


def screen(*, error: bool = False) -> Console:
    """Return a console on standard output, or standard error.

    Colours are left out if it is no terminal, or if NO_COLOR is set.
    """
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the process with status 1.
            raise BrokenPipeError

    stream = sys.stderr if error else sys.stdout
    has_width = stream.isatty() or "COLUMNS" in os.environ
    width = None if has_width else _PIPE_WIDTH
    return Screen(file=stream, highlight=False, width=width)


def say(*texts: Any, style: str = "", error: bool = False) -> None:
    """Print lines as they are: rich may take cells of files for markup."""
    from rich.text import Text

    console = screen(error=error)
    for text in texts:
        console.print(Text(str(text), style=style), soft_wrap=True)


_notes: list[str] = []


def note(*texts: str) -> None:
    """Keep notes to print on standard error once the command has succeeded.

    If it fails, only the reason is printed.
    """
    _notes.extend(texts)


# A setting or a call in backquotes, and around it brackets with nothing else.
_CODE = re.compile(r"( \()?`(?:\w+\.)*(\w+)(=[^`]*|[(\[][^`]*)?`(\))?")


def in_options(text: str, parser: argparse.ArgumentParser) -> str:
    """Replace settings and calls in backquotes by options of the command line.

    A setting without a separate option has ``--set``. Calls without an option are left
    out if they are an aside, in brackets.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--keep-rare", action="store_true")
    >>> _ = parser.add_argument("--drop")
    >>> in_options("leave it out (`X.drop(columns=...)`)", parser)
    'leave it out (--drop)'
    >>> in_options("make it a date (`to_date(x)`), or `keep_rare=True`", parser)
    'make it a date, or --keep-rare'
    """
    options = {
        action.dest: action for action in parser._actions if action.option_strings
    }

    def as_option(match: re.Match[str]) -> str:
        before, name, rest, after = (part or "" for part in match.groups())
        given = rest.startswith("=")
        value = rest.strip("=[]'\"") if given else ""
        if name in options:
            option = options[name].option_strings[-1]
            has_value = given and options[name].nargs != 0
            return f"{before}{option}{'=' * has_value}{value * has_value}{after}"
        if given and "--set" in parser._option_string_actions:
            return f"{before}--set {name}={value}{after}"
        return "" if before and after and rest and not given else match[0]

    words = _CODE.sub(as_option, text)
    if "order" in options:
        words = words.replace(
            " an ordered category", " ordered with --order NAME=A,B,C"
        )
        words = words.replace("`constraints` names column", "A shape is set for column")
    return words.replace("set --set ", "use --set ").replace("Set --set ", "Use --set ")


def plain_notices(
    notices: Sequence[Notice], parser: argparse.ArgumentParser
) -> list[dict[str, Any]]:
    """Return notices as plain data, with advice by options."""
    return [
        {**notice.to_dict(), "advice": in_options(notice.advice, parser)}
        for notice in notices
    ]


def note_notices(notices: Sequence[Notice]) -> None:
    """Add a note with the worst notices in one line."""
    if notices:
        note(in_one_line(notices))


def show_notes(wanted: bool = True) -> None:
    """Print the notes on standard error if wanted, and clear them."""
    notes, _notes[:] = list(dict.fromkeys(_notes)), []
    if notes and wanted:
        say(*notes, style="dim", error=True)


def working(text: str) -> Any:
    """Show a spinner with a text while a block runs, on a terminal."""
    return screen(error=True).status(text)


def print_json(document: Any) -> None:
    """Print one JSON document; numbers that are not finite become null."""
    from steelyard._common.text import as_plain

    print(json.dumps(as_plain(document), ensure_ascii=False, indent=1))


def present(
    arguments: argparse.Namespace, document: Callable[[], Any], show: Callable[[], None]
) -> None:
    """Print JSON if ``--json`` is given, text otherwise; notes come before."""
    show_notes()
    if arguments.json:
        print_json(document())
    else:
        show()


def print_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    n_texts: int = 1,
) -> None:
    """Print texts in columns, of which all but the first few are numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for k, name in enumerate(header):
        justify: Any = "left" if k < n_texts else "right"
        table.add_column(Text(name), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    say(title, style="bold")
    screen().print(table)


def evidence_table(evidence: Evidence, most: int | None = None) -> Table:
    """Draw evidence as bars: to the left against a class, to the right for it.

    Of its items the first ``most`` are drawn.
    """
    from rich.table import Table
    from rich.text import Text

    from steelyard._common.text import sided_bars

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    has_half = evidence.half_width is not None
    for name in ("column", "value", "evidence", *["± (90 %)"] * has_half, ""):
        is_number = name not in ("column", "value", "")
        table.add_column(name, justify="right" if is_number else "left")
    items = [(i.title or i.attribute, i.value, i.amount) for i in evidence.items]
    rest = items[most:] if most is not None and len(items) > most + 1 else []
    lines = [(*evidence.start, evidence.prior), *items[: len(items) - len(rest)]]
    if rest:
        lines.append((f"{len(rest)} others", "", sum(amount for *_, amount in rest)))
    # As wide together as a table without intervals.
    bars = sided_bars([amount for *_, amount in lines], 14 if has_half else 24)
    half_widths = evidence.half_widths
    kept = [*half_widths[: len(lines) - bool(rest)], *[""] * bool(rest)]
    for (name, value, amount), half, bar in zip(lines, kept, bars, strict=True):
        drawn = Text(bar, "red" if amount < 0.0 else "green")
        shown = [f"{amount + 0.0:+.2f}", *[half] * has_half]
        table.add_row(Text(name), Text(value), *shown, drawn)
    total = Text(f"{evidence.total + 0.0:+.2f}", "bold")
    table.add_row(Text("sum", "bold"), "", total, *half_widths[-1:] * has_half, "")
    return table


def check_output(path: str | None, force: bool) -> None:
    """Refuse, before any work, a file that may not or cannot be written."""
    if path is None:
        return
    if path == "-":
        raise ValueError("This is written to a file, not to standard output.")
    target = Path(path)
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a file that can be written.")
    if target.exists() and not force:
        advice = "Choose another name, or replace it with --force."
        raise ValueError(f"{path} exists. {advice}")
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{path} cannot be written: no permission in {folder}.")


def refuse_to_replace_input(arguments: argparse.Namespace) -> None:
    """Refuse a model in place of its data, and whatever else in place of a model.

    Predictions may replace the file of their rows, if that is asked for.
    """
    target = getattr(arguments, "output", None)
    read = getattr(arguments, "model", getattr(arguments, "data", None))
    for path in read if isinstance(read, list) else [read]:
        try:
            same = os.path.samefile(target, path)  # type: ignore[arg-type]
        except (OSError, TypeError, ValueError):
            continue
        if same:
            raise ValueError(
                f"{target} is an input file, and would be overwritten. Choose another "
                "name for the output."
            )


@contextlib.contextmanager
def writing(path: str, force: bool) -> Iterator[Path]:
    """Give a temporary file, which becomes the output when all went well."""
    check_output(path, force)
    with replacing(path) as partial:
        yield partial


def write_text(path: str, text: str, force: bool) -> None:
    """Write a text to a file, and add a note."""
    with writing(path, force) as partial:
        partial.write_text(text, encoding="utf-8")
    note(f"written: {path}")


def check_picture(picture: str | None) -> None:
    """Refuse a picture file whose extension is not known."""
    if picture and Path(picture).suffix.lower() not in _PICTURES:
        raise ParameterError(
            f"Pictures are written to {', '.join(_PICTURES)}, not to {picture}."
        )


def draw(shown: Any, path: Path, picture: str) -> None:
    """Plot to a file, in the format of the picture's extension."""
    import matplotlib

    # Files are drawn without a window.
    matplotlib.use("Agg")
    form = Path(picture).suffix[1:].lower()
    shown.plot().figure_.savefig(path, format=form, dpi=150)
