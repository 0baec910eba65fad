"""steelyard reproduce: tables of papers, in a checkout."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import steelyard
from reproduction import documents

# Papers are beside ``src``: the command does not know them from a wheel.
of_a_checkout = pytest.mark.skipif(
    not (Path(steelyard.__file__).parents[2] / "reproduction").is_dir(),
    reason="steelyard is not installed from these sources",
)


@pytest.fixture
def calls(monkeypatch):
    """Record how reproductions are asked for, and return a short one."""
    calls = []

    def reproduce(name, data, published, **options):
        calls.append((name, data, options))
        return SimpleNamespace(
            to_markdown=lambda level: "# Table 3", as_dict=lambda: {"name": name}
        )

    monkeypatch.setattr(documents, "reproduce", reproduce)
    return calls


@of_a_checkout
def test_reproduce_prints_and_writes_the_report(tmp_path, calls, run, run_json):
    path = tmp_path / "report.md"
    done = run("reproduce", "rnb", "--quick", "--data", "here", "--markdown", path)
    assert (done.status, done.out) == (0, "# Table 3\n")
    assert path.read_text(encoding="utf-8") == "# Table 3"
    name, data, options = calls[0]
    assert (name, data, options["quick"]) == ("rnb", "here", True)
    assert run_json("reproduce", "cwnb") == {"name": "cwnb"}


@of_a_checkout
def test_reproduce_refuses(tmp_path, monkeypatch, csv, refused):
    assert "invalid choice" in refused("reproduce", "nobody")
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    assert "STEELYARD_DATA" in refused("reproduce", "rnb")
    assert "absent" in refused("reproduce", "rnb", "--data", tmp_path / "no")
    assert "exists" in refused("reproduce", "rnb", "--markdown", csv)
