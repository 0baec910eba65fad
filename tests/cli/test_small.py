"""Small files are read without the libraries that large ones need."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.cli import small as reading
from steelyard.cli.run import main
from steelyard.cli.small import small_rows

LABELS = np.array(["no", "it's", "é", "x,y", "5", "6", "7"])


def table(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    texts = np.array(["red", 'a "b"', "x, y", "naïve ☃", "NA", " lead", "Red"])
    X = pd.DataFrame(
        {
            "text": texts[(y + rng.integers(0, 3, n)) % 7],
            "number": rng.normal(size=n) + y,
            "short": np.round(rng.normal(size=n) * 3 + y % 2, 1),
            "whole": rng.integers(0, 40, n),
            "flag": rng.random(n) < 0.2 + 0.5 * (y % 2),
            "code": np.array([7, 1010, -3])[(y + rng.integers(0, 2, n)) % 3],
            "many": [f"v{i}" for i in rng.permutation(np.arange(n) // 2)],
            "empty": np.full(n, np.nan),
        }
    )
    for name in X.columns[:6]:
        X[name] = X[name].astype(object).where(rng.random(n) > 0.1, None)
    return X, y


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Predict a file both ways; return what was written, and whether it was small."""

    def run(clf, content, *options, name="new.csv"):
        model, data = tmp_path / "model.json", tmp_path / name
        if clf is not None:
            clf.save(model)
        data.write_bytes(content if isinstance(content, bytes) else content.encode())
        argv = ["predict", str(model), str(data), *options]
        read, found = [], []

        def recorded(*arguments):
            read.append(small_rows(*arguments))
            return read[-1]

        for reader in (recorded, lambda *arguments: None):
            monkeypatch.setattr(reading, "small_rows", reader)
            status = main(argv)
            found.append((status, *capsys.readouterr()))
        assert found[0] == found[1]
        return found[0], bool(read) and read[0] is not None

    return run


METHODS = ["NB", "SHNB", "WANBIA-CLL", "TAN", "CFW", "SNB"]


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("method", METHODS)
def test_every_byte_is_that_of_the_other_reader(method, n_classes, run):
    clf = sy.method(method)
    clf.set_params(categorical_features=["text", "flag", "code", "many"])
    if "missing" in clf.get_params() and n_classes != 3:
        clf.set_params(missing="value" if n_classes == 2 else "impute")
    X, y = table(600, n_classes)
    clf.fit(X, LABELS[y])
    rows, _ = table(120, n_classes, seed=1)
    rows.loc[3, "text"] = "never"
    rows.insert(2, "id", [f"no. {k}" for k in range(120)])
    options = ["--keep", "id"] if n_classes == 2 else []
    (status, text, notes), is_small = run(clf, rows.to_csv(index=False), *options)
    assert status == 0 and text.count("\n") == len(rows) + 1
    assert is_small and ("id" in notes) == (not options)


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["a", "b"]])
def test_classes_and_json(labels, run):
    X, y = table(300, 2)
    clf = sy.NaiveBayes().fit(X[["short", "whole"]].astype(float), np.array(labels)[y])
    text = X[["short", "whole"]][:9].to_csv(index=False, sep="\t")
    (status, *_), is_small = run(clf, text, "--json", name="new.tsv")
    assert status == 0 and is_small


@pytest.fixture(scope="module")
def small():
    X, y = table(300, 2)
    X = X[["text", "short", "flag"]].astype({"short": float})
    return sy.NaiveBayes(categorical_features=["text", "flag"]).fit(X, LABELS[y])


@pytest.mark.parametrize(
    "content",
    [
        "text,short\nred,1\n",
        "text,short,flag\n",
        "text,short,flag\nred,warm,true\n",
        "text,short,flag\nred,inf,true\n",
        "text,short,flag\nred,1,perhaps\n",
        "text,short,flag\nred,1,true,4\n",
        "text,short,flag\nred,1\n",
        "text,short,flag,text\nred,1,true,a\n",
        "text,short,flag,\nred,1,true,a\n",
        "text;short;flag\nred;1;true\n",
        'text,short,flag\n"red,1,true\n',
        'text,short,flag\n"two\nlines",1,true\n',
        "text,short,flag\nred, 1 ,TRUE\nred,+1,0\n",
        "text,short,flag\nred,1.5e400,true\n",
        "text,short,flag\nred,1,true\n\n   \nred,2,false\n",
        "text,short,flag\rred,1,true\r",
        "\ufefftext,short,flag\r\nred,NA,true\r\n,,\r\n",
        'text,short,flag\nred,"1,5",true\nred,"2,25",NA\n',
        'text,short,flag\nred,"1,250",true\nred,50%,?\n',
        "text,short,flag\nn/a,unknown,null\n#N/A,$3,false\nred,-,true\n",
        "text,short,flag\n'red',1,true\n'NA',2,false\n",
        "text|short|flag\nred|1|true\n",
        b"text,short,flag\nr\xe9d,1,true\n",
        b"text,short,flag\nred,1,tr\0ue\n",
        "",
    ],
)
def test_messages_of_unusual_files_are_those_of_the_other_reader(content, small, run):
    run(small, content)


@pytest.mark.parametrize(
    "options",
    [
        ["--reasons", "2"],
        ["--missing-values", "?"],
        ["--separator", ";"],
        ["--encoding", "latin-1"],
        ["--decimal", ","],
        ["--thousands", "none"],
        ["--missing-values", ""],
        ["--keep", "text"],
        ["--keep", "nothing"],
        ["--chunk-rows", "1"],
    ],
)
def test_options(options, small, run):
    run(small, "text,short,flag\nred,1,true\n'?,2,false\n", *options)


@pytest.mark.parametrize("method", ["GNB", "RNB", "ENB", "BNB", "LWNB", "SPSS"])
def test_models_of_all_kinds(method, run):
    X, y = table(200, 3)
    X = X[["short", "whole"]].astype(float)
    clf = sy.method(method).fit(X, LABELS[y])
    _, is_small = run(clf, X[:5].to_csv(index=False))
    assert is_small == (method != "SPSS")


def test_damaged_models_are_refused_as_before(small, run, tmp_path):
    run(small, "text,short,flag\nred,1,true\n")
    file = tmp_path / "model.json"
    whole = file.read_text()
    for text in (
        whole.replace("red", "rad", 1),
        whole[:50],
        whole.replace("2", "9", 1),
    ):
        file.write_text(text)
        (status, _, message), is_small = run(None, "text,short,flag\nred,1,true\n")
        assert status == 2 and not is_small and "model" in message


def test_nothing_large_is_loaded(small, tmp_path):
    small.save(tmp_path / "model.json")
    (tmp_path / "new.csv").write_text("text,short,flag\nred,1,true\n")
    code = (
        "import sys; from steelyard.cli import main;"
        "status = main(['predict', 'model.json', 'new.csv']);"
        "names = {name.partition('.')[0] for name in sys.modules};"
        "print(status, sorted(names & {'sklearn', 'numba', 'pandas',"
        " 'pyarrow'}))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


@pytest.mark.parametrize("unknown", ["marginal", "sum"])
def test_rows_with_unknown_cells_are_noted(unknown, run):
    X, y = table(300, 2)
    X = X[["text", "short", "flag"]].astype({"short": float})
    X = X.fillna({"text": "red", "short": 0.0, "flag": True})
    settings = {"categorical_features": ["text", "flag"], "interactions": None}
    clf = sy.ShrinkageNB(**settings).fit(X, LABELS[y]).set_params(unknown=unknown)
    rows = X[:9].astype(object)
    rows.loc[:3, "short"] = None
    rows.loc[[2, 7], "text"] = "never"
    content = rows.to_csv(index=False)
    (status, text, notes), is_small = run(clf, content)
    is_averaged = unknown == "marginal"
    assert status == 0 and is_small
    averages = "predictions average over their possible values"
    assert (averages in notes) == is_averaged
    json = run(clf, content, "--json")[0][1]
    assert ("5 of 9 rows have unknown cells" in json) == is_averaged
    found = np.loadtxt(text.splitlines()[1:], delimiter=",", usecols=(1, 2))
    expected = clf.predict_proba(rows.astype({"short": float}))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
