"""``fit`` with a method that selects columns."""

SPSS = ["--target", "ill", "--method", "SPSS", "--force"]


def test_selected_predictors_and_the_path_are_shown(tmp_path, csv, run, run_json):
    options = [*SPSS, "-o", tmp_path / "m.json"]
    found = run_json("fit", csv, *options)
    assert 0 < len(found["selected"]) <= found["columns"]
    assert any(step["chosen"] for step in found["path"])
    out = run("fit", csv, *options).out
    assert f"selected {len(found['selected'])} of {found['columns']} columns" in out
    assert "Size" in out
    assert "Added" in out


def test_forced_predictors_are_named_without_brackets(tmp_path, csv, run_json):
    options = [*SPSS, "-o", tmp_path / "m.json"]
    one = run_json("fit", csv, *options, "--set", "forced=zip")
    assert one["selected"][0] == "zip"
    two = run_json("fit", csv, *options, "--set", "forced=zip, age")
    assert set(two["selected"][:2]) == {"zip", "age"}
