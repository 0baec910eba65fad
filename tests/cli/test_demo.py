"""steelyard demo: results on real data, and one prediction explained."""

import re
import tempfile
from pathlib import Path

import pytest

import steelyard
from steelyard.cli import demo


def test_demo_shows_results_and_evidence_within_80_columns(tmp_path, monkeypatch, run):
    monkeypatch.setenv("COLUMNS", "80")
    page = tmp_path / "p.html"
    done = run("demo", "--page", page)
    assert (done.status, done.err) == (0, "")
    text = done.out
    assert str(page) in text
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    text = text[: text.index("Its page")]
    assert max(map(len, text.splitlines())) <= 80
    for word in (
        "breast cancer",
        "wine",
        "iris",
        "accuracy",
        "log-loss",
        "average row",
    ):
        assert word in text
    for word in ("SHNB, default", "NB", "WANBIA-CLL", "CAWNB-CLL", "sklearn GNB"):
        assert len(re.findall(rf" {word} ", text)) == 3
    assert len(re.findall(r"\d\d\.\d %  ", text[: text.index("fits")])) == 18
    # No cell is broken over two lines.
    assert "od280/od315 of diluted wines" in text
    # The evidence adds up to what it says.
    table = text[text.index("column  ") :]
    amounts = [float(amount) for amount in re.findall(r" ([+-]\d+\.\d\d)", table)]
    assert sum(amounts[:-1]) == pytest.approx(amounts[-1], abs=0.08)


def test_the_page_of_the_demo_is_in_a_new_folder(tmp_path, monkeypatch, run_json):
    monkeypatch.setattr(demo, "classifiers", lambda: {"NB": steelyard.method("NB")})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (tmp_path / "steelyard-demo.html").symlink_to(mine)
    page = Path(run_json("demo")["page"])
    assert page.parent.parent == tmp_path and page.is_file()
    assert mine.read_text() == "mine"


def test_demo_as_json(tmp_path, monkeypatch, run_json):
    monkeypatch.setattr(demo, "classifiers", lambda: {"NB": steelyard.method("NB")})
    document = run_json("demo", "--page", tmp_path / "p.html")
    assert len(document["scores"]) == 3
    evidence = document["evidence"]
    total = evidence["prior"] + sum(item[2] for item in evidence["items"])
    assert total == pytest.approx(evidence["total"])
