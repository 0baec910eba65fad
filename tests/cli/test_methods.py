"""steelyard methods: the table of methods."""

import steelyard


def test_methods_lists_every_method(run, run_json, monkeypatch):
    rows = run_json("methods")
    assert rows == steelyard.methods().rows()
    monkeypatch.setenv("COLUMNS", "200")  # so that no cell is broken into lines
    out = run("methods").out
    assert all(row["acronym"] in out and row["paper"] in out for row in rows)


def test_methods_of_a_family(run_json, refused):
    families = {row["family"] for row in run_json("methods", "--family", "filter")}
    assert families == {"filters"}
    assert "Families: both, dependent attributes, filters" in refused(
        "methods", "--family", "magic"
    )


def test_methods_marks_the_default(run):
    lines = [line for line in run("methods").out.splitlines() if "(default)" in line]
    assert len(lines) == 1
    assert "SHNB" in lines[0]
