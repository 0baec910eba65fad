"""Odd files, made here: each is noticed, said or refused, from Python and the shell."""

import bz2
import io
import json
import lzma
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.cli.run import main
from steelyard.io.dataset import read_dataset

N = 120


def birds(n=N, seed=0):
    """Return rows of three species, told apart well but not by one column alone."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    return pd.DataFrame(
        {
            "island": rng.choice(["Biscoe", "Dream", "Torgersen"], n),
            "bill": (rng.normal(0, 3, n) + np.array([38, 48, 47])[kind]).round(1),
            "mass": (rng.normal(0, 30, n) + np.array([370, 380, 500])[kind]).round()
            * 10,
            "sex": rng.choice(["male", "female"], n),
            "depth": rng.normal(17, 2, n).round(1),
            "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[kind],
        }
    )


def column(name, change, every=4):
    """Return what changes some cells of a column."""

    def edit(frame):
        cells, changed = frame[name].astype(object), np.arange(len(frame)) % every == 0
        cells[changed] = [change(cell) for cell in cells[changed]]
        return frame.assign(**{name: cells})

    return edit


def whole(name, make):
    """Return what makes a column of the frame."""
    return lambda frame: frame.assign(**{name: make(frame)})


def more(*rows):
    """Return what appends rows, given as dictionaries."""
    return lambda frame: pd.concat([frame, pd.DataFrame(rows)])[frame.columns]


def codes(*values):
    return lambda f: np.array(values)[f["species"].astype("category").cat.codes]


def running(f):
    return np.arange(1, len(f) + 1)


def known(n, cells):
    """Return what leaves all but some cells of a new column empty."""
    return lambda f: np.where(np.arange(len(f)) < n, cells, None)


def rare(f):
    return birds(600).assign(species=np.repeat(["A", "B", "C"], [400, 197, 3]))


# What is wrong in the file: how it is made, and the kind of notice that says it.
NOTICED = {
    "labels in lower case": (column("species", str.lower), "class-spelling"),
    "labels in capitals": (column("species", str.upper), "class-spelling"),
    "labels with two blanks": (
        lambda f: column("species", lambda c: c.replace("x ", "x  "))(
            f.assign(species="x " + f["species"])
        ),
        "class-spelling",
    ),
    "values in lower case": (column("island", str.lower), "spelling"),
    "values in capitals": (column("sex", str.upper), "spelling"),
    "values as titles": (column("sex", str.title), "spelling"),
    "a total below": (
        more({"species": "Total", "bill": 5000.0, "mass": 5e5}),
        "small-class",
    ),
    "a source below": (more({"species": "Source: a station, 120 rows"}), "small-class"),
    "two lines below": (more({"species": "Total"}, {"species": "Mean"}), "small-class"),
    "a slip in a label": (column("species", lambda c: c + "e", 60), "small-class"),
    "a row of one label": (more({"species": "Adelie"}), "sparse-rows"),
    "a row of label and number": (
        more({"species": "Gentoo", "mass": 4000.0}),
        "sparse-rows",
    ),
    "two empty rows": (
        more({"species": "Gentoo"}, {"species": "Adelie"}),
        "sparse-rows",
    ),
    "units in braces": (
        whole("mass", lambda f: f["mass"].astype(str) + " [g]"),
        "digits",
    ),
    "versions": (
        whole("version", lambda f: [f"{k % 9}.{k % 5}.0" for k in running(f)]),
        "digits",
    ),
    "ranges": (
        whole("range", lambda f: [f"{k % 40}-{k % 40 + 5}" for k in running(f)]),
        "digits",
    ),
    "footnotes": (column("mass", lambda c: f"{c:.0f}*", 2), "digits"),
    "doubtful numbers": (
        whole("bill", lambda f: [f"{b}?" for b in f["bill"]]),
        "digits",
    ),
    "-999 for missing": (column("mass", lambda c: -999, 10), "missing-code"),
    "-9999 for missing": (column("bill", lambda c: -9999, 10), "missing-code"),
    "-1 for missing": (column("mass", lambda c: -1, 12), "missing-code"),
    "0 for missing": (column("bill", lambda c: 0, 10), "missing-code"),
    "999 for missing": (column("bill", lambda c: 999, 10), "missing-code"),
    "99999 for missing": (column("mass", lambda c: 99999, 20), "missing-code"),
    "-99.0 for missing": (column("depth", lambda c: -99.0, 8), "missing-code"),
    "names of rows": (
        whole("id", lambda f: [f"N{k}A1" for k in running(f)]),
        "identifier",
    ),
    "a running number": (whole("no", running), "identifier"),
    "numbers out of order": (
        whole("no", lambda f: running(f)[::-1] + 40),
        "identifier",
    ),
    "a running number with gaps": (
        whole("no", lambda f: running(f) + running(f) // 40),
        "identifier",
    ),
    "a running number and a footer": (
        lambda f: more({"species": "Adelie", "bill": 40.0})(f.assign(no=running(f))),
        "identifier",
    ),
    "numbers of 16 digits": (
        whole("card", lambda f: 4000123412340000 + 7919 * running(f)),
        "identifier",
    ),
    "a copy of the label": (whole("kind", lambda f: f["species"]), "leak"),
    "codes of the label": (whole("code", codes("A01", "C02", "G03")), "leak"),
    "numbers of the label": (whole("code", codes(1, 2, 3)), "leak"),
    "fractions of the label": (whole("code", codes(0.1, 0.25, 3.5)), "leak"),
    "codes with holes": (
        lambda f: column("code", lambda c: "?", 40)(
            whole("code", codes("A", "B", "C"))(f)
        ),
        "leak",
    ),
    "a score of the label": (
        whole(
            "score",
            lambda f: (
                10 * f["species"].rank(method="dense") + f["bill"] % 1 + running(f) % 7
            ),
        ),
        "near-leak",
    ),
    "nearly a copy of the label": (
        lambda f: column("kind", lambda c: "Gentoo", 40)(f.assign(kind=f["species"])),
        "near-leak",
    ),
    "a number in other units": (
        whole("kg", lambda f: f["mass"] / 1000),
        "same-columns",
    ),
    "numbers and their names": (
        whole("place", lambda f: f["island"].str.upper()),
        "same-columns",
    ),
    "a number called ID": (
        whole("ID", lambda f: (running(f) // 11 * 12 + running(f) % 11) * 37 % 99991),
        "identifier",
    ),
    "every row twice": (lambda f: pd.concat([f, f]), "repeated-rows"),
    "some rows twice": (lambda f: pd.concat([f, f[::5]]), "repeated-rows"),
    "one value": (whole("same", lambda f: "x"), "constant"),
    "one number": (whole("same", lambda f: 7), "constant"),
    "nothing": (whole("same", lambda f: None), "constant"),
    "two known names": (whole("note", known(2, ["a", "b"] * 60)), "nearly-empty"),
    "three known numbers": (whole("note", known(3, np.arange(N))), "nearly-empty"),
    "classes of 400 and 3 rows": (rare, "unequal-classes"),
}

# Refused in one line that has this word.
REFUSED = {
    "one class": (lambda f: f.assign(species="Adelie"), "Adelie|class"),
    "no rows": (lambda f: f[:0], "empty|rows"),
    "no labels": (lambda f: f.assign(species=None), "empty"),
    "no target": (lambda f: f.drop(columns="species"), "species"),
    "masses as labels": (lambda f: f.assign(species=f["mass"].astype(int)), "bins"),
    "fractions as labels": (lambda f: f.assign(species=f["bill"]), "bins"),
    "labels alone": (lambda f: f[["species"]], "column"),
}

# Read as it is meant: nothing is noticed.
READ = {
    "exponents of Fortran": whole(
        "bill", lambda f: [f"{b / 1000:.4f}d+03" for b in f["bill"]]
    ),
    "as it is": lambda f: f,
    "labels with blanks at the end": column("species", lambda c: c + "  "),
    "labels with blanks in front": column("species", lambda c: "  " + c),
    "values with blanks at the end": column("sex", lambda c: c + " "),
    "words for missing": column("mass", lambda c: "NA", 12),
    "words for missing with blanks": column("sex", lambda c: "NA ", 12),
    "empty cells": column("bill", lambda c: None, 10),
    "capitals that are meant": lambda f: f.assign(
        species=f["species"].replace({"Adelie": "hAd", "Gentoo": "had"})
    ),
    "classes that run on": whole("species", lambda f: running(f) % 3),
    "few names with digits": whole(
        "size", lambda f: [f"{k % 4}XL" for k in running(f)]
    ),
}


# Text as other programs write it: name and content of the file, a word that says what
# was done, and the kind of notice where one says more. All are read as they are meant.


def lines(frame, change, **how):
    """Return the bytes of a file, its lines changed."""
    own = frame.to_csv(index=False, **how).splitlines()
    return ("\n".join(change(own)) + "\n").encode()


def written(cells=None, encoding="utf-8", **how):
    """Return what writes a frame, some of its columns changed cell by cell."""

    def write_it(frame):
        for name, change in (cells or {}).items():
            changed = [change(k, c) for k, c in enumerate(frame[name])]
            frame = frame.assign(**{name: changed})
        return frame.to_csv(index=False, **how).encode(encoding)

    return write_it


def above(*more, **how):
    return lambda f: lines(f, lambda own: [*more, *own], **how)


def zipped(f):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", f.to_csv(index=False))
    return packed.getvalue()


def points(k, number):
    return f"{int(number):,}".replace(",", ".")


WRITTEN = {
    "semicolons, decimal commas": (
        "a.csv",
        written(sep=";", decimal=","),
        "decimal commas",
        None,
    ),
    "points in thousands": (
        "a.csv",
        written({"mass": points}, sep=";", decimal=","),
        "thousands marked by '.'",
        None,
    ),
    "tabs": ("a.csv", written(sep="\t"), "cells between tabs", None),
    "vertical bars": ("a.txt", written(sep="|"), "vertical bars", None),
    "a title": ("a.csv", above("Birds of three islands"), "is skipped", None),
    "a comment": ("a.csv", above("# by hand"), "is skipped", None),
    "blank lines on top": ("a.csv", above("", ""), "", None),
    "sep= on top": ("a.csv", above("sep=;", sep=";"), "semicolons", None),
    "UTF-16": ("a.csv", written(encoding="utf-16"), "encoding utf-16", None),
    "a byte-order mark": ("a.csv", written(encoding="utf-8-sig"), "", None),
    "ends of lines of old Macs": ("a.csv", written(lineterminator="\r"), "", None),
    "blanks around cells": (
        "a.csv",
        lambda f: lines(f, lambda own: [line.replace(",", " , ") for line in own]),
        "",
        None,
    ),
    "units below the names": (
        "a.csv",
        lambda f: lines(f, lambda own: [own[0], ",mm,g,,mm,", *own[1:]]),
        "bill: numbers, except 1 cell: 'mm'",
        None,
    ),
    "names of rows, as R writes": (
        "a.csv",
        lambda f: lines(
            f, lambda own: [own[0], *(f"r{k},{own[k]}" for k in range(1, len(own)))]
        ),
        "row names",
        None,
    ),
    "grams": (
        "a.csv",
        written({"mass": lambda k, c: f"{c:.0f} g"}),
        "mass: numbers, 'g' left out",
        None,
    ),
    "dollars": (
        "a.csv",
        written({"mass": lambda k, c: f"${c:,.0f}"}),
        "mass: numbers, '$' left out",
        None,
    ),
    "percent": (
        "a.csv",
        written({"depth": lambda k, c: f"{c} %"}),
        "depth: numbers, '%' left out",
        None,
    ),
    "a few words among numbers": (
        "a.csv",
        written({"mass": lambda k, c: c if k % 40 else "unknown"}),
        "except 3 cells: 'unknown'",
        None,
    ),
    "decimal commas in one column": (
        "a.csv",
        written({"bill": lambda k, c: str(c).replace(".", ",")}),
        "bill: numbers, with decimal commas",
        None,
    ),
    "both decimal marks": (
        "a.csv",
        written({"bill": lambda k, c: str(c).replace(".", ",."[k % 2])}),
        "",
        "digits",
    ),
    "lines of JSON": (
        "a.jsonl",
        lambda f: f.to_json(orient="records", lines=True).encode(),
        "",
        None,
    ),
    "JSON": ("a.json", lambda f: f.to_json(orient="records").encode(), "", None),
    "a zip archive": ("a.zip", zipped, "", None),
    "xz": ("a.csv.xz", lambda f: lzma.compress(written()(f)), "", None),
    "bzip2": ("a.csv.bz2", lambda f: bz2.compress(written()(f)), "", None),
}


def write(tmp_path, edit):
    """Write a changed file, its rows in one order; return its path."""
    path = tmp_path / "odd.csv"
    edit(birds()).to_csv(path, index=False)
    return path


def in_python(path):
    """Read and fit; return kinds of notices."""
    data = read_dataset(path, target="species")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            notice.kind
            for notice in sy.NaiveBayes().fit(data.table, data.target).notices_
        ]


def fitted_in_words(path, capsys):
    """Fit in the shell; return the status and what it prints."""
    out = path.with_name("words.json")
    options = "--target species --method NB --no-check --force".split()
    status = main(["fit", str(path), *options, "-o", str(out)])
    return status, capsys.readouterr().out


def in_the_shell(path, capsys, *options):
    """Fit; return the status, the document and what is on standard error."""
    arguments = [
        "fit",
        str(path),
        "--target",
        "species",
        "--method",
        "NB",
        "--no-check",
    ]
    arguments += ["-o", str(path.parent / "model.json"), "--force", "--json", *options]
    status = main(arguments)
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else None, err


@pytest.mark.parametrize("what", NOTICED)
def test_it_is_noticed(what, tmp_path, capsys):
    edit, kind = NOTICED[what]
    path = write(tmp_path, edit)
    found = in_python(path)
    assert kind in found
    status, document, _ = in_the_shell(path, capsys)
    assert status == 0
    assert [notice["kind"] for notice in document["notices"]] == found
    # The shell speaks of options alone.
    assert not any("`" in notice["advice"] for notice in document["notices"])
    status, printed = fitted_in_words(path, capsys)
    assert status == 0 and "`" not in printed.partition("Noticed")[2]


@pytest.mark.parametrize(
    ("notice", "option"),
    [
        ("a copy of the label", "--drop"),
        ("a running number", "--drop"),
        ("one value", "--drop"),
        ("-999 for missing", "--missing-values=mass=-999"),
    ],
)
def test_advice_names_settings_in_python_and_options_in_the_shell(
    notice, option, tmp_path, capsys
):
    path = write(tmp_path, NOTICED[notice][0])
    _, document, _ = in_the_shell(path, capsys)
    assert option in document["notices"][0]["advice"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = pd.read_csv(path)
        clf = sy.NaiveBayes().fit(frame.drop(columns="species"), frame["species"])
    said = [*map(str, clf.notices_), *(str(entry.message) for entry in caught)]
    assert "`" in said[0] and not any("--" in text for text in said)


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what, tmp_path, capsys):
    edit, word = REFUSED[what]
    path = write(tmp_path, edit)
    status, document, err = in_the_shell(path, capsys)
    assert status == 2 and document is None and len(err.splitlines()) == 1
    assert any(part in err for part in word.split("|")), err
    with pytest.raises(ValueError, match=word):
        data = read_dataset(path, target="species")
        data.check_target()
        data.check()


@pytest.mark.parametrize("what", READ)
def test_it_is_read_as_it_is_meant(what, tmp_path, capsys):
    path = write(tmp_path, READ[what])
    assert in_python(path) == []
    status, document, _ = in_the_shell(path, capsys)
    assert (status, document["notices"], len(document["classes"])) == (0, [], 3)


@pytest.mark.parametrize("what", WRITTEN)
def test_it_is_read_however_it_is_written(what, tmp_path, capsys):
    name, make, said, kind = WRITTEN[what]
    path = tmp_path / name
    path.write_bytes(make(birds()))
    data = read_dataset(path, target="species")
    assert said in "\n".join(data.notes)
    assert in_python(path) == ([kind] if kind else [])
    status, document, err = in_the_shell(path, capsys)
    assert (status, document["rows"]) == (0, N) and said in err
    assert [notice["kind"] for notice in document["notices"]] == in_python(path)
    if kind is None:
        expected = birds().drop(columns="species")
        known = data.table["mass"].notna()
        assert (data.table[known] == expected[known].to_numpy()).all(axis=None)


# ---------------------------------------------------------------------------- new rows

# New rows: what is changed, the kind of notice, and whether the shell refuses them.
NEW = {
    "a value never seen": (column("island", lambda c: "Mars", 50), "unseen", False),
    "a value in lower case": (column("island", str.lower, 50), "unseen", False),
    "all values never seen": (lambda f: f.assign(sex="f"), "unseen", False),
    "millimetres": (column("bill", lambda c: 100 * c, 60), "beyond", False),
    "kilograms": (lambda f: f.assign(mass=f["mass"] / 1000), "beyond", False),
    "minus signs": (column("depth", lambda c: -c, 60), "beyond", False),
    "-999": (column("mass", lambda c: -999, 60), "beyond", False),
    "an empty column": (lambda f: f.assign(sex=None), "all-missing", False),
    "no numbers": (lambda f: f.assign(mass=None), "all-missing", False),
    "an empty half": (column("bill", lambda c: None, 2), "new-missing", False),
    "a renamed column": (
        lambda f: f.rename(columns={"sex": "Sex"}),
        "renamed-column",
        True,
    ),
    "two renamed": (
        lambda f: f.rename(columns={"sex": "SEX", "bill": "Bill"}),
        "renamed-column",
        True,
    ),
    "a missing column": (lambda f: f.drop(columns="depth"), "missing-column", True),
    "words for numbers": (lambda f: f.assign(mass="heavy"), "other-kind", True),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Fit to the rows as they are; return the classifier and its file."""
    path = tmp_path_factory.mktemp("model") / "birds.json"
    frame = birds()
    clf = sy.NaiveBayes().fit(frame.drop(columns="species"), frame["species"])
    clf.save(path)
    return clf, path


def predicted(path, new, tmp_path, capsys, *options):
    """Predict a frame in the shell; return status, kinds of notices and messages."""
    data = tmp_path / "new.csv"
    new.to_csv(data, index=False)
    status = main(["predict", str(path), str(data), "--json", *options])
    out, err = capsys.readouterr()
    notices = json.loads(out)["notices"] if out else []
    return status, [notice["kind"] for notice in notices], err


@pytest.mark.parametrize("reasons", [[], ["--reasons", "1"]])
@pytest.mark.parametrize("what", NEW)
def test_new_rows_are_noticed(what, reasons, model, tmp_path, capsys):
    edit, kind, is_refused = NEW[what]
    clf, path = model
    new = edit(birds(60, seed=1)).drop(columns="species")
    notices = sy.load(path).check(new)
    assert kind in [notice.kind for notice in notices]
    assert notices == clf.check(new)
    status, kinds, err = predicted(path, new, tmp_path, capsys, *reasons)
    if is_refused:
        assert status == 2 and len(err.splitlines()) == 1
    else:
        assert (status, kinds) == (0, [notice.kind for notice in notices])
        assert err.count("noticed: ") == 1


@pytest.mark.parametrize("reasons", [[], ["--reasons", "1"]])
def test_ordinary_new_rows_are_not(reasons, model, tmp_path, capsys):
    clf, path = model
    new = birds(60, seed=1).drop(columns="species")
    assert clf.check(new) == []
    assert predicted(path, new, tmp_path, capsys, *reasons) == (0, [], "")


TESTED = {
    "training rows": (lambda: birds(), ["seen-rows"]),
    "half of them training rows": (
        lambda: pd.concat([birds()[:40], birds(40, seed=1)]),
        ["seen-rows"],
    ),
    "new rows": (lambda: birds(60, seed=1), []),
    "new rows twice": (lambda: pd.concat([birds(60, seed=1)] * 2), ["repeated-rows"]),
    "other classes": (
        lambda: birds(60, seed=1).replace({"species": {"Gentoo": "King"}}),
        ["unknown-class"],
    ),
}


@pytest.mark.parametrize("what", TESTED)
def test_rows_to_evaluate_on(what, model, tmp_path, capsys):
    make, expected = TESTED[what]
    clf, path = model
    frame = make()
    notices = clf.check(frame.drop(columns="species"), frame["species"])
    assert [notice.kind for notice in notices] == expected
    data = tmp_path / "test.csv"
    frame.to_csv(data, index=False)
    arguments = ["evaluate", str(path), str(data), "--target", "species", "--json"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert [notice["kind"] for notice in json.loads(out)["notices"]] == expected
    assert err.count("noticed: ") == bool(expected)


def test_explain_says_it_too(model, tmp_path, capsys):
    _, path = model
    data = tmp_path / "new.csv"
    birds(5).assign(island="Mars").to_csv(data, index=False)
    assert main(["explain", str(path), str(data), "--json"]) == 0
    out, err = capsys.readouterr()
    assert [notice["kind"] for notice in json.loads(out)["notices"]] == ["unseen"]
    assert "noticed: island: all 5 rows have a value that training never saw" in err


def test_there_are_enough_odd_files():
    kinds = (NOTICED, REFUSED, READ, WRITTEN, NEW, TESTED)
    assert sum(map(len, kinds)) >= 100


def test_the_page_lists_all_of_them():
    page = Path(__file__).parents[2] / "docs" / "odd_files.md"
    listed = page.read_text("utf-8")
    for what in (*NOTICED, *REFUSED, *READ, *WRITTEN, *NEW):
        assert f"| {what} |" in listed, "run studies/odd_files.py"


def test_the_option_named_for_a_missing_code_removes_it(tmp_path, capsys):
    path = write(tmp_path, column("mass", lambda c: -999, 10))
    _, document, _ = in_the_shell(path, capsys)
    (notice,) = document["notices"]
    option = notice["advice"].partition("--missing-values=")[2]
    assert option == "mass=-999"
    status, document, _ = in_the_shell(path, capsys, "--missing-values", option)
    assert (status, document["notices"]) == (0, [])
    data = read_dataset(path, target="species", missing_values=[option])
    assert data.table["mass"].isna().sum() == 12
    rows = sy.scan(path, missing_values=[option])
    assert sy.NaiveBayes().fit(rows, "species").training_.ranges[2].low > 2000.0


def test_names_that_were_asked_for_are_not_noticed(tmp_path, capsys):
    path = write(tmp_path, lambda f: f)
    status, document, _ = in_the_shell(path, capsys, "--categorical", "bill")
    assert (status, document["notices"]) == (0, [])
    frame = birds()
    X = frame.drop(columns="species").astype({"bill": str})
    notices = sy.NaiveBayes().fit(X, frame["species"]).notices_
    assert [(notice.kind, notice.column) for notice in notices] == [("digits", "bill")]


def test_whole_numbers_as_labels_are_warned_about_in_python():
    frame = birds()
    with pytest.warns(UserWarning, match="whole numbers, each treated as a class"):
        clf = sy.NaiveBayes().fit(frame[["bill", "sex"]], frame["mass"].astype(int))
    assert clf.notices_[0].kind == "number-target"


def test_notices_do_not_depend_on_the_library():
    polars = pytest.importorskip("polars")
    frame = NOTICED["-999 for missing"][0](birds())
    frame["mass"] = frame["mass"].astype(float)
    X, y = frame.drop(columns="species"), frame["species"]
    notices = sy.NaiveBayes().fit(X, y).notices_
    assert sy.NaiveBayes().fit(polars.from_pandas(X), y).notices_ == notices
    assert [notice.kind for notice in notices] == ["missing-code"]


@pytest.mark.parametrize(("n_wrong", "is_reported"), [(0, True), (1, False)])
def test_next_to_no_errors_in_held_out_rows_are_reported(
    n_wrong, is_reported, tmp_path, capsys
):
    def tell(frame):
        size = 100 * frame["species"].rank(method="dense") + frame["bill"]
        frame = frame.assign(size=size, weight=size + frame["depth"])
        frame.loc[frame.index[:n_wrong], "species"] = "Gentoo"
        return frame

    path = write(tmp_path, tell)
    command = ["fit", str(path), "--target", "species", "--method", "NB", "--json"]
    assert main([*command, "-o", str(tmp_path / "m.json")]) == 0
    found = json.loads(capsys.readouterr().out)["notices"]
    assert ("no-errors" in {notice["kind"] for notice in found}) == is_reported
