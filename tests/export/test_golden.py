"""Small models in every format, word for word: a change of wording is seen here.

``STEELYARD_RECORD=1`` writes the files anew.
"""

import os
import re
from pathlib import Path

import pandas as pd
import pytest

import steelyard as sy
from steelyard import export

FOLDER = Path(__file__).parent / "golden"
SKY = ["sun", "rain", "fog", None, "sun", "rain"] * 6
DEGREES = [21.0, 12.5, None, 9.5, 24.0, 11.0] * 6
WINDY = [True, False, False, None, True, True] * 6
X = pd.DataFrame({"sky": SKY, "degrees": DEGREES, "windy": WINDY})
TWO = ["play", "stay", "stay", "stay", "play", "play"] * 6
THREE = ["play", "stay", "<away>", "stay", "play", "play"] * 6

MODELS = {
    "sum": (sy.NaiveBayes(missing="value"), TWO),
    "densities": (sy.NaiveBayes(numeric="gaussian", missing="impute"), THREE),
    "mixture": (sy.RegularizedNB(), TWO),
    "votes": (sy.BoostedNB(rounds=3), TWO),
}


def nodes_of(model):
    """Nodes and constants of ONNX as text."""
    from onnx import numpy_helper

    lines = [
        f"{t.name} = {numpy_helper.to_array(t).tolist()}"
        for t in model.graph.initializer
    ]
    for node in model.graph.node:
        of = {a.name: a.strings or a.ints or a.i for a in node.attribute}
        given = "".join(f", {name}={value}" for name, value in of.items())
        inputs = ", ".join(node.input)
        lines.append(f"{node.output[0]} = {node.op_type}({inputs}{given})")
    return "\n".join(lines) + "\n"


WRITERS = {
    "onnx.txt": lambda clf: nodes_of(export.to_onnx(clf)),
}


def rounded(text):
    """Text with numbers of nine digits: the last ones may differ by machine."""
    return re.sub(r"-?\d+\.\d+(?:e[-+]?\d+)?", lambda m: f"{float(m[0]):.9g}", text)


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("name", MODELS)
def test_small_models_word_for_word(name, ending):
    if ending == "onnx.txt":
        pytest.importorskip("onnx")
    clf, y = MODELS[name]
    clf = clf.set_params(categorical_features=["sky", "windy"]).fit(X, y)
    text = rounded(WRITERS[ending](clf)).replace(sy.__version__, "VERSION")
    file = FOLDER / f"{name}.{ending}"
    if os.environ.get("STEELYARD_RECORD"):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
