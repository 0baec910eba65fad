"""Running a command: the parser of all commands, and how errors are reported."""

from __future__ import annotations

import _thread
import argparse
import contextlib
import gc
import json
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from steelyard._common import progress
from steelyard.cli.options import Parser
from steelyard.cli.output import in_options, refuse_to_replace_input, show_notes

__all__ = ["main"]

# In the order in which a newcomer needs them. Each is a module of this folder with
# ABOUT and EXAMPLES for its help, and functions `add_options` and `run`.
NAMES = "demo fit predict evaluate explain scorecard edit export monitor serve schema "
NAMES += "methods compare help datasets reproduce completion"

_EXAMPLES = """\
examples:
  steelyard demo
  steelyard fit data.csv --target class
  steelyard predict data.model.json new.csv -o out.csv
  steelyard explain data.model.json --html model.html
  steelyard COMMAND --help
  steelyard help files
"""

_EXTRAS = {"matplotlib": "plot", "onnx": "onnx"}
_EXTRAS |= {"openpyxl": "formats", "pyreadstat": "formats"}
_EXTRAS |= {"starlette": "serve", "uvicorn": "serve"}
_FOR_PROGRAMMERS = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ResourceWarning,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 on success, 2 on a wrong input, 130 after Ctrl-C.

    ``monitor`` returns 3 if a threshold is exceeded. Without ``argv`` the arguments are
    those of the process.
    """
    argv = sys.argv[1:] if argv is None else argv
    Parser.as_json = "--json" in argv
    parser = build_parser()
    if not argv:
        parser.print_help()
        return 2
    arguments = parser.parse_args(argv)
    show_notes(wanted=False)
    if sys.stderr.isatty():
        progress.before_compiling = _say_that_kernels_are_compiled
    try:
        with warnings.catch_warnings(), _no_lost_interrupt(), _rare_collections():
            _show_warnings(arguments.parser)
            refuse_to_replace_input(arguments)
            status = arguments.run(arguments)
        sys.stdout.flush()
        show_notes()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. Python would complain again when
        # it closes the stream at exit.
        sys.stdout = open(os.devnull, "w")
        return 0
    except ModuleNotFoundError as error:
        if "not installed" in str(error):
            return _fail(str(error).replace("`", ""))
        package = (error.name or "").partition(".")[0]
        install = f"pip install 'steelyard[{_EXTRAS.get(package, 'cli')}]'"
        needs = f"this command needs the package {package!r}"
        return _fail(f"{needs}. Install the extra that brings it: {install}")
    except MemoryError:
        return _fail("out of memory. Try fewer rows or columns.")
    except OSError as error:
        # What the system refused, without its error number.
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(f"{where}{error.strerror}." if error.strerror else str(error))
    except ValueError as error:
        return _fail(in_options(str(error), arguments.parser))
    return status or 0


def build_parser() -> Parser:
    """Return the parser of all commands, without loading what they need to run."""
    from steelyard import __version__

    parser = Parser(
        prog="steelyard",
        description="Classify tables with models that people can read and sign.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        metavar="COMMAND", required=True, title="commands", dest="command"
    )
    for name in NAMES.split():
        command: Any = import_module(f"steelyard.cli.{name}")
        examples = command.EXAMPLES.strip().replace("\n", "\n  ")
        added = commands.add_parser(
            name,
            help=command.ABOUT,
            description=f"{command.ABOUT[0].upper()}{command.ABOUT[1:]}.",
            epilog=f"examples:\n  {examples}",
        )
        command.add_options(added)
        added.set_defaults(run=command.run, parser=added)
    parser.commands = commands.choices
    return parser


def _say_that_kernels_are_compiled() -> None:
    text = "steelyard: compiling kernels for this machine: once, a few seconds."
    print(text, file=sys.stderr, flush=True)


def _fail(message: str) -> int:
    # Results printed so far come before the reason why there are no more.
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w")
    line = " ".join(message.split())
    # Not on standard output, which may contain the start of a document already.
    error = json.dumps({"error": line}, ensure_ascii=False)
    print(error if Parser.as_json else f"steelyard: {line}", file=sys.stderr)
    return 2


@contextlib.contextmanager
def _no_lost_interrupt() -> Iterator[None]:
    """Raise Ctrl-C again if it came during a callback of the compiler.

    Exceptions that are raised there are lost.
    """
    earlier = sys.unraisablehook

    def hook(lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            # Later, since now it would be lost again.
            threading.Timer(0.01, _thread.interrupt_main).start()
        else:
            earlier(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = earlier


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Run the garbage collector less often: a command ends before it matters.

    With thousands of columns it took a third of the time.
    """
    earlier = gc.get_threshold()
    gc.set_threshold(50_000, *earlier[1:])
    try:
        yield
    finally:
        gc.set_threshold(*earlier)


def _show_warnings(parser: argparse.ArgumentParser) -> None:
    """Show a warning as one line, and none that is meant for programmers."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        line = " ".join(in_options(str(message), parser).split())
        print(f"steelyard: warning: {line}", file=sys.stderr)

    warnings.simplefilter("default")
    for category in _FOR_PROGRAMMERS:
        warnings.simplefilter("ignore", category)
    warnings.showwarning = show
