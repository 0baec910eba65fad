"""steelyard reproduce: tables of papers."""

from types import SimpleNamespace

import pytest

from reproduction import documents


@pytest.fixture
def calls(monkeypatch):
    """Record how reproductions are asked for, and return a short one."""
    calls = []

    def reproduce(name, data, **options):
        calls.append((name, data, options))
        return SimpleNamespace(
            to_markdown=lambda level: "# Table 3", as_dict=lambda: {"name": name}
        )

    monkeypatch.setattr(documents, "reproduce", reproduce)
    return calls


def test_reproduce_prints_and_writes_the_report(tmp_path, calls, run, run_json):
    path = tmp_path / "report.md"
    done = run("reproduce", "rnb", "--quick", "--data", "here", "--markdown", path)
    assert (done.status, done.out) == (0, "# Table 3\n")
    assert path.read_text(encoding="utf-8") == "# Table 3"
    name, data, options = calls[0]
    assert (name, data, options["quick"]) == ("rnb", "here", True)
    assert run_json("reproduce", "cwnb") == {"name": "cwnb"}


def test_reproduce_refuses(tmp_path, csv, refused):
    assert "invalid choice" in refused("reproduce", "nobody")
    assert "absent" in refused("reproduce", "rnb", "--data", tmp_path / "no")
    assert "exists" in refused("reproduce", "rnb", "--markdown", csv)
