"""``steelyard completion``: scripts that complete commands in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from steelyard.cli.run import build_parser

SHELLS = ("bash", "zsh", "fish", "tcsh")

ABOUT = "print a script that lets a shell complete commands and options"
EXAMPLES = """
steelyard completion bash > ~/.local/share/bash-completion/completions/steelyard
steelyard completion zsh > ~/.zfunc/_steelyard
steelyard completion fish > ~/.config/fish/completions/steelyard.fish
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
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
    """Yield NAME= for each declared setting, and NAME=WORD for each allowed word."""
    for name, entry in method.estimator._settings.items():
        words = entry.allowed.words if entry.allowed else ()
        yield from (f"{name}={word}" for word in ("", *words))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options and arguments of all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from command._actions
