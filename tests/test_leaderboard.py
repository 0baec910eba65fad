"""The page of the leader board is made from result files."""

import runpy
from pathlib import Path

import pytest

from steelyard.lab.runner import compare

ROOT = Path(__file__).resolve().parents[1]
WORDS = "# Board\n\nWhat it means.\n\n<!-- measured -->\n"


@pytest.fixture(scope="module")
def main():
    pytest.importorskip("matplotlib")
    return runpy.run_path(str(ROOT / "studies/leaderboard.py"))["main"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two result files: one method has more repeats than the others."""
    folder = tmp_path_factory.mktemp("results")
    data = ["sklearn:iris", "sklearn:wine", "sklearn:breast_cancer"]
    settings = {"folds": 2, "n_jobs": 1}
    compare(["NB", "GNB", "SVM"], data, journal=folder / "a.jsonl", **settings)
    compare(["SHNB"], data, repeats=2, journal=folder / "b.jsonl", **settings)
    return [str(folder / name) for name in ("a.jsonl", "b.jsonl")]


def test_page_keeps_its_words_and_has_tables_and_pictures(main, results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{WORDS}old figures\n", encoding="utf-8")
    for _ in range(2):
        main([*results, "--write", str(page)])
        text = page.read_text(encoding="utf-8")
        assert text.startswith(WORDS)
        assert "old figures" not in text
    for part in ("| breast_cancer |", "SHNB against each method", "over 3 data sets"):
        assert part in text
    assert "SVM" not in text.split("## Accuracy by data set")[0]
    for name in ("page_accuracy.svg", "page_log_loss.svg"):
        assert f"images/{name}" in text
        assert "<svg" in (tmp_path / "images" / name).read_text(encoding="utf-8")


def test_page_without_the_mark_is_refused(main, results, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Board\n", encoding="utf-8")
    with pytest.raises(SystemExit) as refused:
        main([*results, "--write", str(page)])
    assert refused.value.code == 2
    assert "<!-- measured -->" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "# Board\n"
