"""Changed model files: every reader refuses one, or all give the same answers."""

from __future__ import annotations

import copy
import csv
import hashlib
import io
import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import steelyard as sy
from fuzzing.answers import check_answers
from fuzzing.case import (
    ALL_DIGITS,
    OWN,
    Case,
    WrongError,
    own_error,
    same,
    steelyard,
)

NUMBERS = [0, 1, -1, 2**31, 2**53 + 1, 10**30, 10**400, 0.5, -0.0, 5e-324, 1e-300]
NUMBERS += [1e100, 1e155, -1e300, 1.7e308, 1e308, -1.7e308, float("nan"), float("inf")]
ODD: list[Any] = [*NUMBERS, None, True, "", "-inf", "x", "sum", "text", "gaussian"]
ODD += [[], [[]], {}, [0.0, 1.0], {"number": "inf"}, {"tuple": []}, {"mapping": []}]


@cache
def training() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return a table with every kind of column, and three classes."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = pd.DataFrame(
        {
            "word": np.array(["a", "b", "c"])[(y + (rng.random(30) < 0.3)) % 3],
            "size": rng.normal(size=30) + y,
            "level": rng.integers(0, 4, 30).astype(float),
        }
    )
    X.loc[3, "size"] = np.nan
    return X, y


@cache
def queries() -> pd.DataFrame:
    """Return rows to predict: known, missing, unseen and far cells."""
    rows = training()[0].head(5).copy()
    rows.loc[5] = [None, np.nan, 9.0]
    rows.loc[6] = ["unseen", 1e6, -1e300]
    rows.loc[7] = ["a", -1e3, np.nan]
    return rows


@cache
def saved_model(name: str, numeric: str, n_classes: int) -> str | None:
    """Return the text of a model file, None where there is no such model."""
    X, y = training()
    clf = sy.method(name)
    if "numeric" in clf.get_params() and name != "SHNB":
        clf.set_params(numeric=numeric)
    if "random_state" in clf.get_params():
        clf.set_params(random_state=0)
    rows = y < n_classes
    try:
        clf.fit(X[rows], y[rows])
    except OWN:
        return None
    with tempfile.TemporaryDirectory() as folder:
        clf.save(Path(folder) / "model.json")
        return (Path(folder) / "model.json").read_text()


def mutate(content: Any, rng: random.Random) -> Any:
    """Change a document in one to three places."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        parent, key = descend(content, rng)
        kind = rng.choice(["replace", "replace", "scale", "delete", "copy", "swap"])
        if kind == "scale" and type(parent[key]) in (int, float):
            factor = rng.choice([-1, 0.5, 2, 1e10, 1e-10, 1e100, 1e-300, 1e300])
            parent[key] = 0 if abs(parent[key]) >= 10**400 else parent[key] * factor
        elif kind == "delete":
            del parent[key]
        elif kind == "copy" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif kind == "swap" and isinstance(parent, list):
            other = rng.randrange(len(parent))
            parent[key], parent[other] = parent[other], parent[key]
        else:
            parent[key] = copy.deepcopy(rng.choice(ODD))
    return content


def nudge(content: Any, rng: random.Random) -> Any:
    """Change numbers of a document by little, so that it may still be a model."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([0, 1, 3])):
        parent, key = descend(content["model"], rng)
        if type(parent[key]) is float:
            parent[key] *= rng.choice([0.9, 1.5, 10.0, -1.0])
    return content


def descend(value: Any, rng: random.Random) -> tuple[Any, Any]:
    """Choose a place: a container and a key, small sections as often as large ones."""
    while True:
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        inner = value[key]
        if not (isinstance(inner, (dict, list)) and inner) or rng.random() < 0.15:
            return value, key
        value = inner


def forged(text: str, rng: random.Random) -> bytes | None:
    """Return a changed file: mostly with a checksum that is right."""
    if rng.random() < 0.1:
        data, at = text.encode(), rng.randrange(len(text))
        odd = rng.choice([bytes([rng.randrange(256)]), b"", b"0", b'"'])
        return data[:at] + odd + data[at + 1 :]
    document = json.loads(text)
    change = nudge if rng.random() < 0.3 else mutate
    content = change(document["content"], rng)
    try:
        canonical = json.dumps(
            content, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
    except ValueError:  # JSON knows no such number
        return None
    title = f"{document['format']} {document['version']} {canonical}"
    digest = hashlib.sha256(title.encode("ascii")).hexdigest()
    document |= {"content": content, "checksum": f"sha256:{digest}"}
    return json.dumps(document).encode("ascii")


def attack_file(case: Case, number: int) -> None:
    """Change a model file, and read it in every way there is."""
    rng = case.rng
    methods = [entry.acronym for entry in sy.methods()]
    name, numeric = rng.choice(methods), rng.choice(["mdl", "gaussian"])
    text = saved_model(name, numeric, rng.choice([2, 3]))
    data = None if text is None else forged(text, rng)
    if data is None:
        case.outcome = "no document"
        return
    case.about = f"{name} {numeric}"
    path = case.folder / "model.json"
    path.write_bytes(data)
    try:
        clf = sy.load(path)
    except sy.exceptions.ModelFileError:
        case.outcome = "refused"
        check_refused(case, path)
        return
    except Exception as error:
        with case.check("load"):
            raise WrongError(f"load: {type(error).__name__}: {error}") from None
        return
    p = None
    with case.check("answers of a changed model"):
        p, _ = own_error(lambda: check_answers(clf, queries()))
    case.outcome = "other rows wanted" if p is None else "probabilities"
    if p is not None:
        check_readers(case, path, clf, p)


def _command(case: Case, *words: str) -> tuple[int, str, str]:
    data, out = case.folder / "rows.csv", case.folder / "out.py"
    queries().to_csv(data, index=False)
    out.unlink(missing_ok=True)
    return steelyard(*(w.format(data=data, out=out) for w in words))


def check_refused(case: Case, path: Path) -> None:
    """No command takes a file that ``sy.load`` refuses."""
    for words in (["predict", "{data}"], ["export", "-o", "{out}"]):
        command, *more = words
        with case.check(f"{command} of a file that load refuses"):
            status, _, said = _command(case, command, str(path), *more)
            if status != 2 or "Traceback" in said or said.count("\n") != 1:
                raise WrongError(f"status {status}, {said!r:.120}")


def check_readers(case: Case, path: Path, clf: Any, p: Any) -> None:
    """Answers of the command line, the scorer and exported source are the same."""
    with case.check("predict of a changed model"):
        status, out, said = _command(case, "predict", str(path), "{data}", *ALL_DIGITS)
        if status:
            raise WrongError(f"status {status}, {said!r:.120}")
        _, *rows = csv.reader(io.StringIO(out))
        n = len(clf.classes_)
        same("predict", p, [[float(x) for x in row[-n:]] for row in rows])
        labels = [row[-n - 1] for row in rows]
        if labels != [str(label) for label in clf.predict(queries()).tolist()]:
            raise WrongError("predict: other classes")
    with case.check("scorer of a changed model"):
        score, refusal = own_error(clf.scorer)
        frame = queries().astype(object)
        rows = frame.where(frame.notna(), None).to_dict("records")
        if score is not None:
            same("scorer", p, [list(score(row).values()) for row in rows], 1e-9)
    with case.check("export of a changed model"):
        status, _, said = _command(case, "export", str(path), "-o", "{out}")
        if (status == 0) != (refusal is None):
            raise WrongError(f"status {status}, {said!r:.80}, scorer: {refusal}")
        if status == 0:
            module: dict[str, Any] = {}
            exec((case.folder / "out.py").read_text(encoding="utf-8"), module)
            found = [list(module["score"](row).values()) for row in rows]
            same("exported", p, found, 1e-9)
