"""``fit`` and ``predict``: models and predictions from files."""

import csv as csv_module
import hashlib
import io
import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard._common.text import cell_text
from steelyard.evaluation.evaluate import evaluate


def lines_of(text, delimiter=","):
    return list(csv_module.DictReader(io.StringIO(text), delimiter=delimiter))


@pytest.fixture
def stdin(monkeypatch):
    def give(data):
        monkeypatch.setattr(sys, "stdin", Namespace(buffer=io.BytesIO(data)))

    return give


# ---------------------------------------------------------------------------------- fit


def test_fit_saves_the_model_that_the_library_fits(tmp_path, csv, frame, run):
    path = tmp_path / "m.json"
    done = run("fit", csv, "--target", "ill", "--method", "wanbia-cll", "-o", path)
    assert done.status == 0, done.err
    for word in ("wanbia-cll", "ill", "sick, well", "60 rows", "3 columns", "%"):
        assert word in done.out
    table = frame.drop(columns="ill")
    expected = sy.method("WANBIA-CLL").fit(table, frame["ill"])
    found = sy.load(path)
    assert np.array_equal(found.predict_proba(table), expected.predict_proba(table))


def test_fit_learns_once_and_once_for_each_fold(tmp_path, csv, run, monkeypatch):
    fitted, own = [], sy.NaiveBayes.fit

    def counted(self, X, y, sample_weight=None):
        fitted.append(len(X))
        return own(self, X, y, sample_weight)

    monkeypatch.setattr(sy.NaiveBayes, "fit", counted)
    done = run("fit", csv, "--target", "ill", "--method", "NB", "-o", tmp_path / "m")
    assert done.status == 0, done.err
    assert fitted == [60, *[48] * 5]


def test_fit_summarises_as_json(tmp_path, csv, frame, run_json):
    path = tmp_path / "m.json"
    found = run_json("fit", csv, "--target", "ill", "--method", "NB", "-o", path)
    table = frame.drop(columns="ill")
    assert found["rows"] == 60
    assert found["classes"] == ["sick", "well"]
    folds = evaluate(sy.NaiveBayes(), table, frame["ill"], folds=5)
    assert found["check"]["accuracy"] == folds.metrics["accuracy"]
    assert found["check"]["log_loss"] == folds.metrics["log_loss"]
    share = frame["ill"].value_counts(normalize=True)
    assert found["majority"]["class"] == share.idxmax()
    assert found["majority"]["accuracy"] == pytest.approx(share.max())
    expected = -(share * np.log(share)).sum()
    assert found["majority"]["log_loss"] == pytest.approx(expected)
    assert found["fit_seconds"] > 0


def test_fit_takes_the_default_method_where_none_is_named(tmp_path, csv, run_json):
    found = run_json("fit", csv, "--target", "ill", "-o", tmp_path / "m.json")
    known = [entry.acronym for entry in sy.methods()]
    assert found["method"] == ("SHNB" if "SHNB" in known else "NB")


def test_fit_reads_standard_input(tmp_path, csv, run, model, stdin):
    stdin(Path(csv).read_bytes())
    path = tmp_path / "m.json"
    done = run("fit", "-", "--target", "ill", "--method", "NB", "-o", path)
    assert done.status == 0, done.err
    found, expected = (
        json.loads(file.read_text())["content"] for file in (path, Path(model))
    )
    # Standard input has neither a name nor a second reading.
    for name in ("file", "sha256"):
        del expected["fitted"]["training_"]["reading"][name]
    assert found == expected


def test_columns_kinds_and_settings_are_options(tmp_path, csv, run):
    path = tmp_path / "m.json"
    options = ["--columns", "zip,smoker", "--categorical", "zip"]
    settings = ["--set", "smoothing=0.5", "--set", "prior=frequency"]
    options += [*settings, "--target", "ill", "--method", "NB", "-o", path]
    assert run("fit", csv, *options).status == 0
    clf = sy.load(path)
    assert clf.feature_names_in_.tolist() == ["zip", "smoker"]
    assert (clf.smoothing, clf.prior) == (0.5, "frequency")
    schema = clf.encoder_.schema_.features[0]
    assert (schema.kind, schema.values) == ("categorical", ("1", "2", "3"))
    assert run("fit", csv, "--drop", "zip", *options[4:], "--force").status == 0
    assert sy.load(path).feature_names_in_.tolist() == ["age", "smoker"]


def test_the_device_is_an_option(tmp_path, csv, run):
    options = ["fit", csv, "--target", "ill", "--method", "NB", "--force"]
    options += ["-o", str(tmp_path / "model.json")]
    assert run(*options, "--device", "cpu").status == 0
    done = run(*options, "--device", "gpu")
    assert done.status != 0 and "'cuda'" in done.err
    done = run(*options[:4], "--method", "LWNB", *options[6:], "--device", "cuda")
    assert done.status != 0 and "trains on the CPU only" in done.err


def test_row_weights_come_from_a_column(tmp_path, frame, run):
    doubled = pd.concat([frame, frame[:30]])
    weighted = frame.assign(w=np.where(np.arange(60) < 30, 2, 1))
    for name, table in (("doubled", doubled), ("weighted", weighted)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    options = ["--target", "ill", "--method", "NB", "--categorical", "zip,age"]
    for name, extra in (("doubled", []), ("weighted", ["--weights", "w"])):
        path = tmp_path / f"{name}.csv"
        out = path.with_suffix(".json")
        assert run("fit", path, *options, *extra, "-o", out).status == 0
    models = [sy.load(tmp_path / f"{name}.json") for name in ("doubled", "weighted")]
    tables = [clf.model_.table for clf in models]
    assert np.array_equal(*tables)


def test_rows_without_a_label_are_left_out_and_counted(tmp_path, frame, run, run_json):
    frame.loc[[3, 5], "ill"] = None
    frame.to_csv(tmp_path / "holes.csv", index=False)
    arguments = ["fit", tmp_path / "holes.csv", "--target", "ill", "--method", "NB"]
    done = run(*arguments, "-o", tmp_path / "a.json")
    assert "dropped 2 rows without 'ill'" in done.err
    assert run_json(*arguments, "-o", tmp_path / "b.json")["rows"] == 58


def test_a_column_without_a_name_is_left_out_and_mentioned(tmp_path, run):
    path = tmp_path / "index.csv"
    path.write_text(",a,class\n0,1,x\n1,2,y\n2,1,x\n")
    done = run("fit", path, "--method", "NB", "-o", tmp_path / "m.json")
    assert "dropped, because it has no name: column 1" in done.err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_dates_have_views_in_every_format(tmp_path, frame, run, kind):
    hours = pd.to_timedelta(np.arange(len(frame)) * 7, unit="h")
    frame["day"] = pd.Timestamp("2020-01-25") + hours
    path, model = tmp_path / f"days.{kind}", tmp_path / "z.json"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    done = run("fit", path, "--target", "ill", "--method", "NB", "-o", model)
    told = "day: dates, year first, read as days, year, month, weekday and hour"
    assert (told in done.err) == (kind == "csv")
    clf = sy.load(model)
    names = ["age", "smoker", "zip", "day", "day.month", "day.weekday", "day.hour"]
    assert clf.encoder_.schema_.names == names
    assert clf.encoder_.schema_.features[4].values == (1, 2)
    expected = clf.predict_proba(frame.drop(columns="ill"))
    for other in ("csv", "parquet"):
        new = tmp_path / f"new.{other}"
        rows = frame.drop(columns="ill")
        rows.to_csv(new, index=False) if other == "csv" else rows.to_parquet(new)
        done = run("predict", model, new, "--json", "--digits", 17)
        found = [row[1:] for row in json.loads(done.out)["rows"]]
        assert found == expected.tolist()


@pytest.mark.parametrize(
    "options, message",
    [
        (["--target", "il"], "has no column 'il'. Did you mean 'ill'"),
        ([], "name the one to predict with --target"),
        (["--target", "age"], "numbers with fractions ("),
        (["--target", "ill", "--columns", "agee"], "Did you mean 'age'"),
        (["--target", "ill", "--drop", "zap"], "Did you mean 'zip'"),
        (["--target", "ill", "--columns", "ill"], "cannot be learned from"),
        (["--target", "ill", "--drop", "age,smoker,zip"], "No column is left"),
        (["--target", "ill", "--numeric", "smoker"], "must contain numbers, but row 1"),
        (["--target", "ill", "--categorical", "a", "--numeric", "a"], "is both in"),
        (["--target", "ill", "--categorical", "zp"], "Did you mean 'zip'"),
        (["--target", "ill", "--weights", "smoker"], "must be numbers"),
        (["--target", "ill", "--weights", "age"], "none missing"),
        (["--target", "ill", "--weights", "ill"], "has no column 'ill'"),
        (["--target", "ill", "--method", "RNBB"], "Did you mean 'RNB'?"),
        (["--target", "ill", "--method", "SVM"], "cannot be saved"),
        (
            ["--target", "ill", "--set", "smoothings=1"],
            "has no setting 'smoothings'. Did you mean 'smoothing'?",
        ),
        (["--target", "ill", "--set", "smoothing"], "NAME=VALUE"),
        (["--target", "ill", "--set", "smoothing=-1"], "number of at least 0"),
        (["--set", "smoothing=laplac"], "one of 'm-estimate', 'laplace'"),
        (["--target", "ill", "--separator", ";;"], "one character"),
        (["--target", "ill", "--separator", ";"], "--separator"),
        (["--target", "ill", "--encoding", "nix"], "no encoding 'nix'"),
        (["--target", "ill", "--format", "parquet"], "not a Parquet file"),
    ],
)
def test_fit_refuses(csv, tmp_path, refused, options, message):
    assert message in refused("fit", csv, *options, "-o", tmp_path / "z.json")


@pytest.mark.parametrize(
    "method, name, value",
    [("RNB", "max_iter", -5), ("NB", "prior", "flat"), ("SHNB", "missing", None)],
)
def test_a_setting_is_refused_before_the_file_is_read_in_the_words_of_fit(
    frame, tmp_path, refused, method, name, value
):
    options = ["--method", method, "--set", f"{name}={value}"]
    message = refused("fit", tmp_path / "none.csv", *options, "-o", tmp_path / "z.json")
    with pytest.raises(ValueError) as caught:
        sy.method(method, **{name: value}).fit(frame[["age"]], frame["ill"])
    assert message == f"steelyard: {' '.join(str(caught.value).split())}\n"


def test_an_existing_file_is_kept_unless_forced(csv, model, refused, run):
    arguments = ["fit", csv, "--target", "ill", "--method", "NB-Laplace", "-o", model]
    assert "exists" in refused(*arguments)
    assert run(*arguments, "--force").status == 0
    assert sy.load(model).smoothing == "laplace"


@pytest.mark.parametrize("output", ["", "nowhere/m.json", "-"])
def test_an_output_that_cannot_be_written_is_refused_first(
    csv, tmp_path, refused, output
):
    where = output if output == "-" else tmp_path / output
    assert refused("fit", csv, "--target", "nonsense", "-o", where)


def test_the_model_is_named_after_its_file(tmp_path, csv, run, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    done = run("fit", csv, "--target", "ill", "--method", "NB")
    assert "written: data.model.json" in done.out
    assert sy.load("data.model.json").training_.reading["file"] == "data.csv"
    assert "--force" in refused("fit", csv, "--target", "ill", "--method", "NB")
    assert "-o" in refused("fit", csv, csv, "--target", "ill")


def test_title_and_class_of_interest_are_asked_once(tmp_path, csv, run, refused):
    path, page = tmp_path / "m.json", tmp_path / "page.html"
    options = ["--target", "ill", "--method", "NB", "-o", path]
    assert "well" in refused("fit", csv, *options, "--positive", "wells")
    asked = ["--positive", "sick", "--title", "Who is ill?"]
    assert run("fit", csv, *options, *asked).status == 0
    assert run("explain", path, "--html", page).status == 0
    text = page.read_text("utf-8")
    assert "<title>Who is ill?</title>" in text and '"positive":0' in text
    assert "Scorecard: ill = sick" in run("scorecard", path).out
    assert "Deciding for sick at a probability" in run("evaluate", path, csv).out
    reading = sy.load(path).training_.reading
    assert reading["sha256"] == hashlib.sha256(Path(csv).read_bytes()).hexdigest()


def test_categories_are_ordered_by_an_option(tmp_path, csv, frame, run, refused):
    stages = np.array(["late", "early", "middle"])[frame["zip"] - 1]
    data, path = tmp_path / "stages.csv", tmp_path / "m.json"
    frame.assign(stage=stages).to_csv(data, index=False)
    options = ["fit", data, "--target", "ill", "--increasing", "stage", "-o", path]
    assert "--order NAME=A,B,C" in refused(*options)
    assert "lacks 'late'" in refused(*options, "--order", "stage=early,middle")
    done = run(*options, "--order", "stage=early,middle,late")
    assert done.status == 0, done.err
    j = sy.load(path).feature_names_in_.tolist().index("stage")
    assert sy.load(path).encoder_.schema_.features[j].values == (
        *("early", "middle", "late"),
    )
    assert run("predict", path, data).status == 0


# ------------------------------------------------------------------------------ predict


def test_predict_writes_labels_and_probabilities(tmp_path, csv, frame, model, run):
    path = tmp_path / "out.csv"
    done = run("predict", model, csv, "-o", path, "--digits", 17)
    assert done.status == 0
    assert "ignored: ill" in done.err
    found = pd.read_csv(path, dtype=str)
    clf, table = sy.load(model), frame.drop(columns="ill")
    assert found.columns.tolist() == ["prediction", "p_sick", "p_well"]
    assert found["prediction"].tolist() == clf.predict(table).tolist()
    proba = found[["p_sick", "p_well"]].to_numpy().astype(float)
    assert np.array_equal(proba, clf.predict_proba(table))


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("options", [[], ["--reasons", "2"], ["--json"]])
def test_chunks_give_the_predictions_of_the_whole(
    tmp_path, frame, model, run, form, options
):
    path = tmp_path / f"new.{form}"
    if form == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    whole = run("predict", model, path, *options)
    parts = run("predict", model, path, "--chunk-rows", 7, *options)
    assert whole.status == 0
    assert whole.out == parts.out
    assert len(whole.out.splitlines()) >= 61


def test_predictions_have_six_digits_and_plain_names(tmp_path, frame, run):
    data, path = tmp_path / "money.csv", tmp_path / "m.json"
    money = np.where(frame["ill"] == "sick", "<=50K", ">50K")
    frame.drop(columns="ill").assign(money=money, weight=0.1 + 0.2).to_csv(data)
    options = ["--target", "money", "--drop", "weight", "--method", "NB", "-o", path]
    assert run("fit", data, *options).status == 0
    (line, *_) = lines_of(run("predict", path, data, "--keep", "weight").out)
    assert list(line) == ["weight", "prediction", "p_le_50K", "p_gt_50K"]
    assert line["weight"] == "0.30000000000000004"
    assert len(line["p_gt_50K"].strip("0.").partition("e")[0].replace(".", "")) <= 6
    (few, *_) = lines_of(run("predict", path, data, "--digits", 2).out)
    assert float(few["p_gt_50K"]) == float(f"{float(line['p_gt_50K']):.2g}")


def test_predict_reads_standard_input_and_prints(csv, model, run, stdin):
    stdin(Path(csv).read_bytes())
    done = run("predict", model, "-", "-o", "-")
    assert done.out == run("predict", model, csv).out
    assert len(lines_of(done.out)) == 60


def test_order_of_columns_is_free_and_some_are_kept(tmp_path, csv, frame, model, run):
    mixed = frame[["smoker", "ill", "zip", "age"]].assign(
        id=[f"r{i}" for i in range(60)]
    )
    path = tmp_path / "mixed.csv"
    mixed.to_csv(path, index=False)
    done = run(
        "predict", model, path, "--keep", "id,smoker", "-o", tmp_path / "out.tsv"
    )
    assert done.status == 0
    found = lines_of((tmp_path / "out.tsv").read_text(), "\t")
    assert list(found[0])[:3] == ["id", "smoker", "prediction"]
    assert [line["id"] for line in found] == mixed["id"].tolist()
    plain = lines_of(run("predict", model, csv).out)
    assert [line["p_sick"] for line in found] == [line["p_sick"] for line in plain]


def test_predictions_as_one_json_document(csv, model, frame, run_json):
    found = run_json("predict", model, csv, "--reasons", 1)
    assert found["columns"] == ["prediction", "p_sick", "p_well", "reason_1"]
    assert len(found["rows"]) == 60
    label, p, q, _ = found["rows"][0]
    assert label in ("sick", "well")
    assert p + q == pytest.approx(1)


def test_reasons_are_the_loudest_evidence(csv, frame, model, run):
    done = run("predict", model, csv, "--reasons", 2)
    table = frame.drop(columns="ill")
    why = sy.load(model).explain_local(table)
    for i, line in enumerate(lines_of(done.out)[:10]):
        items = [item for item in why.evidence(i).items if item.amount]
        for k, item in enumerate(items[:2]):
            cell = cell_text(item.attribute, item.value)
            text = f"{cell} ({item.amount:+.2f} for {line['prediction']})"
            assert line[f"reason_{k + 1}"] == text


@pytest.mark.parametrize("method", ["RNB", "BNB", "LWNB", "AIWNB-L"])
def test_reasons_exist_for_models_that_are_not_one_sum(tmp_path, csv, run, method):
    path = tmp_path / "m.json"
    options = ["--target", "ill", "--method", method, "-o", path]
    assert run("fit", csv, *options).status == 0
    done = run("predict", path, csv, "--reasons", 3)
    assert done.status == 0, done.err
    found = lines_of(done.out)
    assert any("smoker = " in line["reason_1"] + line["reason_2"] for line in found)


def test_categories_that_are_numbers_match_across_formats(tmp_path, csv, frame, run):
    path = tmp_path / "m.json"
    options = ["--target", "ill", "--method", "NB", "--categorical", "zip"]
    assert run("fit", csv, *options, "-o", path).status == 0
    frame.astype({"zip": float}).to_parquet(tmp_path / "new.parquet")
    assert (
        run("predict", path, tmp_path / "new.parquet").out
        == run("predict", path, csv).out
    )


def change_version(path, version):
    text = path.read_text().replace('"version": 1', f'"version": {version}')
    path.write_text(text)


def test_predict_refuses_model_files_it_cannot_read(tmp_path, csv, model, refused):
    path = tmp_path / "other.json"
    path.write_text(Path(model).read_text())
    change_version(path, 99)
    assert "version 99" in refused("predict", path, csv)
    path.write_text(Path(model).read_text()[:200])
    assert "cut short" in refused("predict", path, csv)
    path.write_text(json.dumps({"a": 1}))
    assert "not a steelyard model" in refused("predict", path, csv)
    assert "There is no model file" in refused("predict", tmp_path / "no.json", csv)


def test_a_model_without_names_of_columns_is_refused(tmp_path, csv, refused):
    clf = sy.NaiveBayes().fit([[1.0], [2.0], [3.0]], [0, 1, 1])
    clf.save(tmp_path / "nameless.json")
    assert "without column names" in refused("predict", tmp_path / "nameless.json", csv)


def test_predict_refuses_data_that_do_not_fit(tmp_path, frame, model, refused):
    out = tmp_path / "out.csv"
    new = tmp_path / "new.csv"

    def message(table):
        table.to_csv(new, index=False)
        return refused("predict", model, new, "-o", out)

    assert "no column 'age'" in message(frame.drop(columns="age"))
    assert "lacks 2 columns" in message(frame.drop(columns=["age", "zip"]))
    assert "no rows" in message(frame[:0])
    # Text in the second chunk: rows that were predicted are not left behind.
    wrong = frame.astype({"age": object})
    wrong.loc[40:, "age"] = "old"
    wrong.to_csv(new, index=False)
    text = refused("predict", model, new, "-o", out, "--chunk-rows", 10)
    assert "row 41 has 'old'" in text
    new.write_text("")
    assert "is empty" in refused("predict", model, new, "-o", out)
    frame.to_csv(new, index=False)
    assert "no column 'nr'" in refused("predict", model, new, "--keep", "nr")
    assert "not to" in refused("predict", model, new, "-o", tmp_path / "out.xlsx")
    assert "at least 0" in refused("predict", model, new, "--reasons", "-1")
    assert "exists" in refused("predict", model, new, "-o", new)


def test_predict_does_not_harm_a_file_that_it_reads_and_replaces(
    tmp_path, csv, model, run
):
    whole = run("predict", model, csv).out
    assert run("predict", model, csv, "-o", csv, "--force").status == 0
    assert Path(csv).read_text() == whole


def test_a_column_that_a_model_sees_in_several_ways_is_one_reason(tmp_path, csv, run):
    if "SHNB" not in [entry.acronym for entry in sy.methods()]:
        pytest.skip("no method of this release sees columns in several ways")
    path = tmp_path / "m.json"
    options = ["--target", "ill", "--method", "SHNB", "-o", path]
    assert run("fit", csv, *options, "--set", "interactions=0").status == 0
    for line in lines_of(run("predict", path, csv, "--reasons", 3).out):
        told = [line[f"reason_{k}"].split(" ")[0] for k in (1, 2, 3)]
        named = [name for name in told if name]
        assert set(named) <= {"age", "smoker", "zip"}
        assert len(set(named)) == len(named)


# ------------------------------------------------------------------ files that are kept


def test_a_file_that_is_read_is_never_written(tmp_path, csv, model, run):
    before, link = Path(csv).read_bytes(), tmp_path / "link.csv"
    link.symlink_to(csv)
    for command in (
        ("fit", csv, "--target", "ill", "-o", csv, "--force"),
        ("fit", csv, "--target", "ill", "-o", link, "--force"),
        ("predict", model, csv, "-o", model, "--force"),
    ):
        done = run(*command)
        assert done.status == 2
        assert "is an input file" in done.err
    assert Path(csv).read_bytes() == before
    assert sy.load(model) is not None


def test_safe_csv_writes_no_formulas(tmp_path, model, frame, run):
    texts = ["=1+1", "+2", "-3", "@x", "plain", "a=b"]
    rows = frame.head(len(texts)).drop(columns="ill").assign(**{"=id": texts})
    rows.to_csv(tmp_path / "new.csv", index=False)
    plain = run("predict", model, tmp_path / "new.csv", "--keep", "=id")
    assert [line["=id"] for line in lines_of(plain.out)] == texts
    safe = run("predict", model, tmp_path / "new.csv", "--keep", "=id", "--safe-csv")
    found = [line["'=id"] for line in lines_of(safe.out)]
    assert found == ["'=1+1", "'+2", "'-3", "'@x", "plain", "a=b"]
    numbers = [name for name in lines_of(plain.out)[0] if name.startswith("p_")]
    for one, other in zip(lines_of(plain.out), lines_of(safe.out), strict=True):
        assert [one[name] for name in numbers] == [other[name] for name in numbers]


def test_whole_numbers_beyond_2_53_are_predicted(run, tmp_path):
    rows = [f"{2**53 + 2 * k},{'no' if k < 6 else 'yes'}\n" for k in range(12)]
    data, model, out = (tmp_path / f for f in ("data.csv", "m.json", "out.parquet"))
    data.write_text("".join(["size,class\n", *rows]))
    done = run("fit", data, "--target", "class", "--method", "NB", "-o", model)
    assert done.status == 0
    done = run("predict", model, data, "-o", out)
    assert done.status == 0, done.err
    labels = pd.read_parquet(out)["prediction"].tolist()
    assert labels == ["no"] * 6 + ["yes"] * 6


def test_the_report_says_what_columns_hold_and_which_are_strongest(
    csv, frame, run, run_json, tmp_path
):
    path = tmp_path / "new.json"
    found = run_json("fit", csv, "--target", "ill", "--method", "NB", "-o", path)
    holds = {line["column"]: line["holds"] for line in found["column_report"]}
    assert holds["age"] == f"{frame.age.min():g} … {frame.age.max():g}"
    share = 100 * (frame.smoker == frame.smoker.mode()[0]).mean()
    assert holds["smoker"] == f"{frame.smoker.mode()[0]} {share:.0f} %"
    assert found["strongest"][0] == "age"
    done = run("fit", csv, "--target", "ill", "--method", "NB", "-o", path, "--force")
    assert "new rows: accuracy " in done.out and "strongest columns: age" in done.out


def test_a_check_that_would_take_long_is_left_out_with_a_note(
    csv, run_json, run, tmp_path, monkeypatch
):
    from steelyard.cli import fit

    monkeypatch.setattr(fit, "_MAX_CHECK_SECONDS", 0.0)
    options = ("--target", "ill", "--method", "NB")
    done = run("fit", csv, *options, "-o", tmp_path / "m.json")
    assert done.status == 0
    assert "not cross-validated, since that takes long" in done.err


def test_long_tables_are_checked_on_some_rows(csv, run, tmp_path, monkeypatch):
    from steelyard.cli import fit

    monkeypatch.setattr(fit, "_MAX_CHECKED_ROWS", 40)
    options = ("--target", "ill", "--method", "NB", "-o", tmp_path / "m.json")
    assert "cross-validation of 40 of the 60 rows" in run("fit", csv, *options).out


def test_of_many_columns_the_odd_ones_are_shown(run, tmp_path):
    rng = np.random.default_rng(0)
    cells = {f"c{j}": rng.integers(0, 3, 60) for j in range(40)}
    cells["c39"] = np.where(np.arange(60) < 20, np.nan, 1.0)
    frame = pd.DataFrame(cells | {"ill": np.arange(60) % 2})
    frame.to_csv(tmp_path / "wide.csv", index=False)
    options = ("--target", "ill", "--method", "NB", "-o", tmp_path / "m.json")
    done = run("fit", tmp_path / "wide.csv", *options)
    assert "and 10 more columns" in done.out and "c39" in done.out
