"""``steelyard methods`` and ``completion``: what there is, for people and shells."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from steelyard.cli import options, output

_METHODS = "list every method"
_METHODS_EXAMPLES = """
steelyard methods
steelyard methods --family filters
steelyard methods --json | jq -r '.[].acronym'
"""


def add_methods_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "only families whose name contains this"
    parser.add_argument("--family", metavar="TEXT", help=about)
    options.add_json(parser)


@options.command("methods", _METHODS, _METHODS_EXAMPLES, add_methods_options)
def run_methods(arguments: argparse.Namespace) -> None:
    """Print the table of methods."""
    import steelyard
    from steelyard.classifiers.registry import DEFAULT

    rows = steelyard.methods().rows()
    if arguments.family is not None:
        families = sorted({row["family"] for row in rows})
        rows = [row for row in rows if arguments.family.lower() in row["family"]]
        if not rows:
            raise ValueError(
                f"There is no family {arguments.family!r}. Families: "
                f"{', '.join(families)}."
            )
    if arguments.json:
        output.print_json(rows)
        return
    # Names of classes and settings are there for scripts; they would not fit.
    header = ["acronym", "family", "learns", "paper"]
    cells = [[row[name] for name in header] for row in rows]
    for line in cells:
        if DEFAULT in line[0].split(", "):
            line[0] += " (default)"
    output.print_table("Methods", header, cells, n_texts=4)


SHELLS = ("bash", "zsh", "fish", "tcsh")

_SHELLS = "print a script that lets a shell complete commands and options"
_SHELLS_EXAMPLES = """
steelyard completion bash > ~/.local/share/bash-completion/completions/steelyard
steelyard completion zsh > ~/.zfunc/_steelyard
steelyard completion fish > ~/.config/fish/completions/steelyard.fish
"""


def add_shell_option(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


@options.command("completion", _SHELLS, _SHELLS_EXAMPLES, add_shell_option)
def run_completion(arguments: argparse.Namespace) -> None:
    """Print the script."""
    # The program consists of its commands, of which this is one.
    from steelyard.cli.run import build_parser

    print(script(arguments.shell, build_parser()))


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return the script for a shell, made from the parser."""
    import shtab

    import steelyard

    methods = steelyard.methods()
    acronyms = [entry.acronym for entry in methods]
    settings = sorted({text for entry in methods for text in _settings_of(entry)})
    for action in _actions(parser):
        if action.dest in ("method", "methods"):
            action.choices = acronyms
        elif action.dest == "settings":
            action.choices = settings
        elif action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.metavar == "FILE" or not (action.option_strings or action.choices):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _settings_of(method: Any) -> Iterator[str]:
    """Yield NAME= and, where words are allowed, NAME=WORD, for what is declared."""
    for name, entry in method.estimator._settings.items():
        words = entry.allowed.words if entry.allowed else ()
        yield from (f"{name}={word}" for word in ("", *words))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options and arguments of all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from command._actions
