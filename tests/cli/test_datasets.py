"""steelyard datasets: what is there, and what is fetched."""

import pytest

from steelyard.lab.data import archives
from steelyard.lab.data.datasets import catalogue

ARFF = "@relation x\n@attribute a numeric\n@attribute class {p,q}\n@data\n1,p\n2,q\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "glass.arff").write_text(ARFF)
    return tmp_path / "data"


def test_datasets_says_what_is_there_and_what_is_missing(folder, run, run_json):
    rows = {row["name"]: row for row in run_json("datasets", "--data", folder)}
    states = {name: rows[name]["state"] for name in ("glass", "iris", "wdbc", "labor")}
    assert states == {
        "glass": "folder",
        "iris": "scikit-learn",
        "wdbc": "scikit-learn",
        "labor": "missing",
    }
    out = run("datasets", "rnb", "--data", folder).out
    assert "31 of 33 are missing" in out and "'--fetch' gets 31" in out
    assert len(run_json("datasets", "exponential")) == 26
    assert [row["name"] for row in run_json("datasets", "zoo", "vote")] == [
        "vote",
        "zoo",
    ]


def test_datasets_fetches_what_is_missing_and_goes_on_after_a_failure(
    folder, run, monkeypatch
):
    asked = []

    def fetch(entry, where, progress):
        asked.append(entry["name"])
        if entry["name"] == "labor":
            raise OSError("no route to host")
        (where / f"{entry['name']}.arff").write_text(ARFF)
        return entry["name"] == "zoo"

    monkeypatch.setattr(archives, "fetch_dataset", fetch)
    names = ["glass", "labor", "satimage", "vote", "wdbc", "zoo"]
    done = run("datasets", *names, "--fetch", "--data", folder / "new")
    assert done.status == 2 and asked == ["glass", "labor", "vote", "zoo"]
    said = done.err.splitlines()
    assert "labor: no route to host." in said
    assert "zoo: fetched, cell by cell as in the documentation." in said
    assert "vote: fetched; it is another copy than that of the documentation." in said
    assert any(line.startswith("satimage: no source is known") for line in said)
    assert "2 of 6 are missing" in done.out


def test_an_archive_that_cannot_be_reached_is_tried_once(folder, run, monkeypatch):
    asked = []

    def fetch(entry, where, progress):
        asked.append(entry["name"])
        raise ConnectionError("no answer")

    monkeypatch.setattr(archives, "fetch_dataset", fetch)
    names = ["cmc", "glass", "labor", "vote"]
    done = run("datasets", *names, "--fetch", "--data", folder / "new")
    sources = {row["name"]: row["source"] for row in catalogue()}
    assert sources["cmc"].startswith("github:") and done.status == 2
    assert asked == ["cmc"]
    assert "GitHub cannot be reached. Not tried: glass, labor, vote." in done.err


def test_datasets_fetches_into_the_cache(folder, run, monkeypatch, tmp_path):
    def fetch(entry, where, progress):
        (where / "zoo.arff").write_text(ARFF)
        return True

    monkeypatch.setattr(archives, "fetch_dataset", fetch)
    assert run("datasets", "zoo", "--fetch").status == 0
    assert (tmp_path / "cache" / "steelyard" / "datasets" / "zoo.arff").is_file()
    assert "0 of 1 are missing" in run("datasets", "zoo").out


def test_datasets_refuses_unknown_names_and_folders(folder, refused, tmp_path):
    assert "Did you mean 'iris'" in refused("datasets", "irs")
    assert "absent" in refused("datasets", "--data", tmp_path / "no")
