"""The program: help, exit status, pipes, interrupts, completion."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest

import steelyard
from steelyard.classifiers.registry import DEFAULT
from steelyard.cli import methods
from steelyard.cli.completion import SHELLS, script
from steelyard.cli.run import build_parser, main

COMMANDS = (
    "fit",
    "predict",
    "evaluate",
    "explain",
    "export",
    "schema",
    "serve",
    "scorecard",
    "edit",
    "monitor",
    "methods",
    "compare",
    "reproduce",
    "demo",
    "completion",
    "help",
)
HEAVY = ("numpy", "sklearn", "pandas", "numba", "scipy", "rich", "matplotlib")


def run_process(*arguments, **options):
    """Run ``python -m steelyard`` and return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **options.pop("env", {})},
        **options,
    )


def test_a_misspelt_option_is_suggested(run):
    done = run("fit", "a.csv", "--taget", "y")
    assert done.status == 2
    assert "--taget y. Did you mean '--target'?" in done.err
    done = run("export", "m.json", "--outptu", "m.sql")
    assert "-o/--output. Did you mean '--output'?" in done.err


def test_a_misspelt_model_file_is_suggested(run, tmp_path):
    (tmp_path / "model.json").touch()
    done = run("predict", tmp_path / "modl.json", "a.csv")
    assert done.status == 2
    assert "modl.json. Close: 'model.json'." in done.err


def test_version_is_the_package_version():
    done = run_process("--version")
    assert (done.returncode, done.stdout) == (0, f"{steelyard.__version__}\n")


def test_help_lists_the_commands(run):
    done = run("--help")
    assert done.status == 0
    for command in COMMANDS:
        assert command in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_ends_with_examples_that_parse(run, command):
    done = run(command, "--help")
    assert done.status == 0
    examples = done.out[done.out.index("\nexamples:\n") :]
    lines = re.findall(rf"steelyard {command}[^|>\n]*", examples)
    assert lines
    for line in lines:
        build_parser().parse_args(shlex.split(line)[1:])


def test_rare_options_and_those_of_files_are_in_the_help_of_their_own(run):
    short, whole, files = (
        run(*words).out for words in (["fit", "-h"], ["help", "fit"], ["help", "files"])
    )
    assert "steelyard help fit" in short and "steelyard help files" in short
    for option in ("--separator", "--work-folder", "--concave"):
        assert option not in short and option in whole
    assert "--target" in short and "--target" in whole
    assert "--separator" in files and "--target NAME" not in files
    assert run("fit", "-h").out == short
    assert run("help").out == run("--help").out


def test_help_on_what_is_no_topic_suggests_one(refused):
    assert "Did you mean 'files'?" in refused("help", "file")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["fit", "--help"], ["compare", "-h"], ["help", "files"]]
)
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys\n"
        "from steelyard.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("LOADED []\n"), done.stdout[-200:] + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["demoo"], ["methods", "--loud"], ["-x"], ["fit"], ["export", "a"]],
)
def test_usage_error_is_one_line_and_status_2(refused, arguments):
    assert "--help" in refused(*arguments)


def test_without_a_command_the_help_is_shown(run):
    done = run()
    assert done.status == 2 and "steelyard demo" in done.out and not done.err


@pytest.mark.parametrize("error", [ValueError("bad\n  table"), OSError("no such file")])
def test_input_error_is_one_line_and_status_2(monkeypatch, refused, error):
    def fail():
        raise error

    monkeypatch.setattr(steelyard, "methods", fail)
    assert refused("methods") == f"steelyard: {' '.join(str(error).split())}\n"


def test_an_error_of_the_system_names_the_file_and_no_number(monkeypatch, refused):
    def fail():
        raise PermissionError(13, "Permission denied", "secret.csv")

    monkeypatch.setattr(steelyard, "methods", fail)
    assert refused("methods") == "steelyard: secret.csv: Permission denied.\n"


def test_warnings_are_one_line_on_standard_error(monkeypatch, run):
    import warnings

    def warn():
        warnings.warn("look\nhere", UserWarning, stacklevel=1)
        warnings.warn("not for users", DeprecationWarning, stacklevel=1)
        return original()

    original = steelyard.methods
    monkeypatch.setattr(steelyard, "methods", warn)
    done = run("methods", "--json")
    assert (done.status, done.err) == (0, "steelyard: warning: look here\n")


@pytest.mark.parametrize(
    "package, extra, arguments",
    [
        ("rich", "cli", ["demo"]),
        ("pandas", "cli", ["fit", "CSV", "--target", "ill", "-o", "z.json"]),
        ("pyarrow", "cli", ["fit", "PARQUET", "-o", "z.json"]),
        ("shtab", "cli", ["completion", "bash"]),
        ("matplotlib", "plot", ["explain", "MODEL", "--picture", "z.png"]),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch, tmp_path, run, csv, frame, model, package, extra, arguments
):
    import builtins

    parquet = tmp_path / "data.parquet"
    frame.to_parquet(parquet)
    places = {"CSV": csv, "PARQUET": parquet, "MODEL": model}
    original = builtins.__import__

    def refuse(name, *rest, **options):
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return original(name, *rest, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtins, "__import__", refuse)
    done = run(*(places.get(word, word) for word in arguments))
    assert done.status == 2
    assert f"needs the package {package!r}" in done.err
    assert f"steelyard[{extra}]" in done.err
    assert not list(tmp_path.glob("z.*"))


def test_interrupt_ends_with_status_130_and_no_traceback():
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from steelyard.cli import demo, main\n"
        "def interrupted(progress):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(30)\n"
        "demo.measure = interrupted\n"
        "sys.exit(main(['demo']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "Interrupted.\n"


def test_an_interrupt_inside_a_callback_of_compiled_code_is_not_lost(monkeypatch, run):
    import ctypes

    def interrupted():
        raise KeyboardInterrupt

    def methods():
        ctypes.CFUNCTYPE(None)(interrupted)()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            pass
        raise ValueError("The interrupt was lost.")

    monkeypatch.setattr(steelyard, "methods", methods)
    # A shell starts jobs in the background without this handler.
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = run("methods")
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert (done.status, done.err) == (130, "Interrupted.\n")


def test_interrupt_leaves_no_half_written_file(monkeypatch, tmp_path, csv, model, run):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    # Small files go a way of their own.
    monkeypatch.setattr("steelyard.cli.small.small_rows", lambda *of: None)
    monkeypatch.setattr("steelyard.io.kinds.Recast.read", interrupted)
    assert run("predict", model, csv, "-o", tmp_path / "out.csv").status == 130
    assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_is_one_line_and_leaves_nothing(
    monkeypatch, tmp_path, csv, model, refused
):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    message = refused("predict", model, csv, "-o", tmp_path / "out.csv")
    place = tmp_path / "out.csv"
    assert message == f"steelyard: {place}: No space left on device.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_an_output_stream_that_is_full_is_one_line_and_status_2():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "steelyard", "methods"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash for a pipe")
def test_a_reader_that_stops_early_is_no_error():
    command = f'"{sys.executable}" -m steelyard methods | true; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [["predict", "MODEL", "CSV"], ["explain", "MODEL"]])
def test_every_way_of_printing_may_meet_a_closed_pipe(monkeypatch, csv, model, command):
    class Closed:
        encoding = "utf-8"

        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            pass

        def isatty(self):
            return False

    places = {"MODEL": model, "CSV": csv}
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Closed())
        assert main([places.get(word, word) for word in command]) == 0
        sys.stdout.close()


class Terminal:
    """Standard output that says it is a terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return True


def test_colours_are_for_terminals_and_vanish_with_no_color(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert main(["methods"]) == 0
    assert "\x1b[" not in capsys.readouterr().out
    shown = {}
    for name in ("plain", "colour"):
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal)
            if name == "plain":
                patch.setenv("NO_COLOR", "1")
            assert main(["demo"]) == 0
        shown[name] = terminal.text
    assert "\x1b[32m" in shown["colour"]
    assert not re.search("\x1b\\[[0-9;]*3[0-7]m", shown["plain"])


def test_the_default_method_in_the_help_is_that_of_the_library(run):
    assert f"(default: {DEFAULT})" in run("fit", "--help").out


def test_errors_of_the_library_name_options(refused, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes("a,class\n1,ä\n".encode("latin-1"))
    arguments = ["fit", path, "--encoding", "utf-8", "-o", tmp_path / "m.json"]
    message = refused(*arguments)
    assert "with --encoding, for example latin-1" in message


# --------------------------------------------------------------------------- completion


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_commands_options_and_methods(run, shell):
    done = run("completion", shell)
    assert done.status == 0
    for word in ("evaluate", "counterfactual", "parquet", "WANBIA-CLL", "max_iter="):
        assert word in done.out


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts_are_valid_where_the_shell_is_there(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell} to check its script")
    text = script(shell, build_parser())
    done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    "words, expected",
    [
        (["ev"], {"evaluate"}),
        (["fit", "data.csv", "--tar"], {"--target"}),
        (["fit", "--method", "WANBIA-"], {"WANBIA-CLL", "WANBIA-MSE"}),
        (["completion", "f"], {"fish"}),
        (["compare", "iris", "--methods", "WANBIA-C"], {"WANBIA-CLL"}),
        (["predict", "--format", "p"], {"parquet"}),
        (["fit", "--set", "max_i"], {"max_iter="}),
        (["fit", "--set", "missing=i"], {"missing=impute"}),
    ],
)
def test_bash_completes_a_word(words, expected):
    line = " ".join(f"'{word}'" for word in ["steelyard", *words])
    code = (
        f"{script('bash', build_parser())}\nCOMP_WORDS=({line})\n"
        f"COMP_CWORD={len(words)}\n_shtab_steelyard\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
    assert set(done.stdout.split()) == expected


def test_what_was_perhaps_meant_is_suggested(csv, refused):
    error = refused("fit", csv, "--taget", "ill", "-o", "m.json")
    assert "Did you mean '--target'?" in error and "'steelyard fit --help'" in error
    error = refused("fti", csv)
    assert "Did you mean 'fit'?" in error and "'steelyard --help'" in error
    assert "Did you mean 'csv'?" in refused(
        "fit", csv, "-o", "m.json", "--format", "cvs"
    )
    assert "mean" not in refused("fit", csv, "-o", "m.json", "--nothing-like-it")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory. Try fewer rows or columns."),
        (ModuleNotFoundError("`polars` is not installed."), "polars is not installed"),
    ],
)
def test_an_error_of_the_machine_is_one_line(error, words, monkeypatch, refused):
    def fail(*_):
        raise error

    monkeypatch.setattr(methods, "run", fail)
    assert words in refused("methods")
