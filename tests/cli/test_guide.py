"""The commands in the user guide run."""

import re
import shlex
from pathlib import Path

import pytest

from steelyard.cli.run import NAMES

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "user_guide.md"


@pytest.fixture
def section():
    text = GUIDE.read_text(encoding="utf-8")
    return text.split("\n## The command line\n")[1].split("\n## ")[0]


def test_commands_of_the_guide_run_one_after_the_other(
    section, tmp_path, monkeypatch, frame, run
):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("patients.csv", index=False)
    frame.to_csv("new.csv", index=False)
    (block,) = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    for line in block.splitlines():
        words = shlex.split(line)[1:]
        # One process, since starting others takes longer than the comparison.
        done = run(*words, *(["--jobs", "1"] if words[0] == "compare" else []))
        assert done.status == 0, f"{line}: {done.err}"
    for name in ("model.json", "out.csv", "model.html", "report.md"):
        assert Path(name).is_file()


def test_the_guide_names_every_command(section):
    rows = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    assert rows == NAMES.split()
