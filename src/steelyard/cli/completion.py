"""``steelyard completion``: scripts that let shells complete commands and options."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from steelyard.cli.options import Commands, add_command

__all__ = ["add_parser", "script"]

SHELLS = ("bash", "zsh", "fish")

_EXAMPLES = """
steelyard completion bash > ~/.local/share/bash-completion/completions/steelyard
steelyard completion zsh > ~/.zfunc/_steelyard
steelyard completion fish > ~/.config/fish/completions/steelyard.fish
"""

# Options whose values are acronyms of methods.
_METHODS = ("--method", "--methods")


@dataclass(frozen=True)
class Option:
    """An option or a positional argument of a command."""

    names: tuple[str, ...]
    about: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command with its options."""

    name: str
    about: str
    options: tuple[Option, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Choices of positional arguments."""
        return tuple(
            word
            for option in self.options
            if not option.names
            for word in option.choices
        )


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "completion",
        "print a script that lets a shell complete commands and options",
        _EXAMPLES,
        _run,
    )
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def _run(arguments: argparse.Namespace) -> None:
    # The program consists of its commands, of which this is one.
    from steelyard.cli.program import build_parser

    print(script(arguments.shell, build_parser()), end="")


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return the script for a shell, made from the parser."""
    import steelyard

    methods = tuple(entry.acronym for entry in steelyard.methods())
    commands = _commands(parser, methods)
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands)


def _commands(
    parser: argparse.ArgumentParser, methods: tuple[str, ...]
) -> list[Command]:
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            about = {entry.dest: entry.help or "" for entry in action._choices_actions}
            for name, inner in action.choices.items():
                options = tuple(_option(a, methods) for a in inner._actions)
                found.append(Command(name, about[name], options))
    return found


def _option(action: argparse.Action, methods: tuple[str, ...]) -> Option:
    names = tuple(action.option_strings)
    choices = tuple(map(str, action.choices or ()))
    if set(names) & set(_METHODS):
        choices = methods
    about = (action.help or "").replace("%%", "%")
    return Option(names, about, action.nargs != 0, choices)


def _long(command: Command) -> list[str]:
    return [name for option in command.options for name in option.names]


def _bash(commands: list[Command]) -> str:
    lines = [
        "# bash completion of steelyard",
        "_steelyard() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}"',
        '    local before="${COMP_WORDS[COMP_CWORD-1]}"',
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        COMPREPLY=($(compgen -W "{" ".join(c.name for c in commands)} '
        '--help --version" -- "$word"))',
        "        return",
        "    fi",
        '    case "${COMP_WORDS[1]} $before" in',
    ]
    for command in commands:
        for option in command.options:
            if option.names and option.choices:
                cases = "|".join(f'"{command.name} {name}"' for name in option.names)
                words = " ".join(option.choices)
                lines.append(
                    f'        {cases}) COMPREPLY=($(compgen -W "{words}" -- "$word")); '
                    "return ;;"
                )
    lines += ["    esac", '    case "${COMP_WORDS[1]}" in']
    for command in commands:
        words = " ".join([*_long(command), *command.words])
        lines.append(
            f'        {command.name}) COMPREPLY=($(compgen -W "{words}" -- "$word")) ;;'
        )
    lines += ["    esac", "}", "complete -o default -F _steelyard steelyard", ""]
    return "\n".join(lines)


def _zsh(commands: list[Command]) -> str:
    lines = ["#compdef steelyard", "", "_steelyard() {", "    local -a commands", ""]
    lines.append("    commands=(")
    lines += [f"        {_quoted(f'{c.name}:{c.about}')}" for c in commands]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "        return",
        "    fi",
        '    local command="$words[2]"',
        "    shift words",
        "    (( CURRENT-- ))",
        '    case "$command" in',
    ]
    for command in commands:
        lines.append(f"        {command.name})")
        lines.append("            _arguments \\")
        for option in command.options:
            for name in option.names:
                spec = f"{name}[{_bracketed(option.about)}]"
                if option.takes_value:
                    spec += f":value:{_zsh_values(option)}"
                lines.append(f"                {_quoted(spec)} \\")
        words = f"({' '.join(command.words)})" if command.words else "_files"
        lines.append(f"                {_quoted(f'*:argument:{words}')}")
        lines.append("            ;;")
    lines += ["    esac", "}", "", '_steelyard "$@"', ""]
    return "\n".join(lines)


def _zsh_values(option: Option) -> str:
    return f"({' '.join(option.choices)})" if option.choices else "_files"


def _bracketed(text: str) -> str:
    return "".join(f"\\{c}" if c in "[]:\\" else c for c in text)


def _fish(commands: list[Command]) -> str:
    lines = ["# fish completion of steelyard"]
    for command in commands:
        lines.append(
            "complete -c steelyard -n __fish_use_subcommand -f "
            f"-a {command.name} -d {_quoted(command.about)}"
        )
    for command in commands:
        start = f"complete -c steelyard -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            if option.names:
                lines.append(f"{start}{_fish_option(option)}")
            elif option.choices:
                lines.append(f"{start} -f -a '{' '.join(option.choices)}'")
    return "\n".join([*lines, ""])


def _fish_option(option: Option) -> str:
    text = ""
    for name in option.names:
        flag = "-l" if name.startswith("--") else "-s"
        text += f" {flag} {name.lstrip('-')}"
    if option.choices:
        text += f" -x -a '{' '.join(option.choices)}'"
    elif option.takes_value:
        text += " -r"
    return f"{text} -d {_quoted(option.about)}"


def _quoted(text: str) -> str:
    """Quote a text for any of the shells."""
    return "'" + text.replace("'", '"') + "'"
