"""The command line: what it prints, and its exit status."""

import re
import shutil
import subprocess
import sys

import pytest

import steelyard
from steelyard import cli


def run(*arguments, **options):
    """Run ``python -m steelyard`` and return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**options.pop("env", {}), "PYTHONIOENCODING": "utf-8"},
        **options,
    )


def test_version_is_the_package_version():
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"{steelyard.__version__}\n")


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "demo" in text
    assert "methods" in text


def test_methods_prints_the_table(capsys):
    assert cli.main(["methods"]) == 0
    assert capsys.readouterr().out == f"{steelyard.methods()!r}\n"


def test_demo_shows_results_and_evidence_within_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["demo"]) == 0
    captured = capsys.readouterr()
    text = captured.out
    assert captured.err == ""
    assert max(map(len, text.splitlines())) <= 80
    for word in ("breast cancer", "wine", "iris", "digits", "accuracy", "log-loss"):
        assert word in text
    assert len(re.findall(r"\d\d\.\d %", text)) == 12
    # No cell is broken over two lines.
    assert "od280/od315 of diluted wines" in text
    # The evidence adds up to what it says.
    table = text[text.index("attribute ") :]
    amounts = [float(found) for found in re.findall(r" ([+-]\d+\.\d\d)", table)]
    assert sum(amounts[:-1]) == pytest.approx(amounts[-1], abs=0.08)


@pytest.mark.parametrize("arguments", [[], ["demoo"], ["methods", "--loud"], ["-x"]])
def test_usage_error_is_one_line_and_status_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("steelyard: ")
    assert "--help" in done.stderr


@pytest.mark.parametrize("error", [ValueError("bad\n  table"), OSError("no such file")])
def test_input_error_is_one_line_and_status_2(monkeypatch, capsys, error):
    def fail():
        raise error

    monkeypatch.setattr(steelyard, "methods", fail)
    assert cli.main(["methods"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"steelyard: {' '.join(str(error).split())}\n"


def test_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.delitem(sys.modules, "rich.console")

    def refuse(name, *rest, **options):
        if name.startswith("rich"):
            raise ModuleNotFoundError("No module named 'rich'", name="rich")
        return original(name, *rest, **options)

    import builtins

    original = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    assert cli.main(["demo"]) == 2
    assert "needs the package 'rich'" in capsys.readouterr().err


def test_interrupt_ends_with_status_130_and_no_traceback():
    code = (
        "import os, signal, sys, time\n"
        "import steelyard.experiments.demo as demo\n"
        "from steelyard.cli import main\n"
        "def interrupted():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(30)\n"
        "demo.run_demo = interrupted\n"
        "sys.exit(main(['demo']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "Interrupted.\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash for a pipe")
def test_a_reader_that_stops_early_is_no_error():
    command = f'"{sys.executable}" -m steelyard methods | true; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
