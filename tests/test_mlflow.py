"""Models in MLflow: the file of the model, its signature, and what is served."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError, ParameterError

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def trips():
    rng = np.random.default_rng(0)
    n = 300
    km = rng.gamma(2.0, 3.0, n).round(1)
    X = pd.DataFrame(
        {
            "zone": rng.choice(["centre", "port", None], n, p=[0.6, 0.3, 0.1]),
            "km": np.where(rng.random(n) < 0.1, np.nan, km),
            "seats": rng.integers(1, 5, n),
            "night": rng.random(n) < 0.4,
            "when": pd.date_range("2024-01-01", periods=n, freq="5h"),
        }
    )
    tips = np.where(km + 3.0 * X["night"] + rng.normal(size=n) > 7.0, "tip", "none")
    return sy.ShrinkageNB().fit(X, tips), X


@pytest.fixture(scope="module")
def logged(trips, tmp_path_factory):
    """The model in a registry of this machine."""
    import steelyard.mlflow

    folder = tmp_path_factory.mktemp("mlflow")
    store = f"sqlite:///{folder}/mlflow.db"
    mlflow.set_tracking_uri(store)
    mlflow.create_experiment("tips", artifact_location=(folder / "files").as_uri())
    mlflow.set_experiment("tips")
    clf, X = trips
    with mlflow.start_run():
        info = steelyard.mlflow.log_model(
            clf, "model", registered_model_name="tips", input_example=X.head(3)
        )
    return info, store


def with_gaps(rows, X):
    """The rows with the columns that they leave out."""
    whole = rows.reindex(columns=X.columns)
    return whole.assign(when=pd.to_datetime(whole["when"]))


def same(trips, again):
    clf, X = trips
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_a_logged_and_registered_model_is_loaded_as_it_was(trips, logged):
    from steelyard.mlflow import load_model

    same(trips, load_model(logged[0].model_uri))
    same(trips, load_model("models:/tips/1"))


def test_nothing_is_pickled(trips, tmp_path):
    from steelyard.mlflow import load_model, save_model

    save_model(trips[0], tmp_path / "model")
    same(trips, load_model(tmp_path / "model"))
    same(trips, sy.load(tmp_path / "model/data/model.json"))
    files = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert files <= {"", ".json", ".txt", ".yaml"}
    needs = (tmp_path / "model/requirements.txt").read_text().split()
    assert f"steelyard=={sy.__version__}" in needs


def test_a_pyfunc_answers_as_the_model_does(trips, logged):
    clf, X = trips
    served = mlflow.pyfunc.load_model("models:/tips/1")
    assert [*served.predict(X)] == [*clf.predict(X)]
    proba = served.predict(X, params={"method": "predict_proba"})
    assert [*proba.columns] == ["none", "tip"]
    np.testing.assert_array_equal(proba, clf.predict_proba(X))
    few = X[["km"]].head()
    assert [*served.predict(few)] == [*clf.predict(with_gaps(few, X))]
    with pytest.raises(ParameterError, match="`method` is one of"):
        served.predict(X, params={"method": "fit"})


def test_the_signature_has_the_columns_of_the_model(trips, logged):
    signature = logged[0].signature
    kinds = {column.name: str(column.type) for column in signature.inputs}
    assert [*kinds] == ["zone", "km", "seats", "night", "when"]
    assert (kinds["zone"], kinds["km"]) == ("DataType.string", "Any")
    assert not any(column.required for column in signature.inputs)
    served = mlflow.pyfunc.load_model("models:/tips/1")
    with pytest.raises(ColumnError, match="'km'"):
        served.predict(trips[1].assign(km="far"))


def test_rows_are_scored_over_http(trips, logged):
    """``mlflow models serve`` on the loopback, from the registry."""
    clf, X = trips
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "models",
        "serve",
        "-m",
        "models:/tips/1",
    ]
    command += ["--port", str(port), "--host", "127.0.0.1", "--env-manager", "local"]
    home = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    own = {**os.environ, "MLFLOW_TRACKING_URI": logged[1], "PATH": home}
    server = subprocess.Popen(
        command, env=own, stdout=subprocess.DEVNULL, start_new_session=True
    )

    def ask(body):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/invocations",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["predictions"]

    try:
        rows = json.loads(X.head(20).to_json(orient="split", date_format="iso"))
        del rows["index"]
        for _ in range(600):
            try:
                labels = ask({"dataframe_split": rows})
                break
            except urllib.error.HTTPError as error:
                raise AssertionError(error.read()) from None
            except OSError:
                assert server.poll() is None
                time.sleep(0.5)
        assert labels == clf.predict(X.head(20)).tolist()
        params = {"method": "predict_proba"}
        proba = ask({"dataframe_split": rows, "params": params})
        found = pd.DataFrame(proba)[clf.classes_]
        np.testing.assert_allclose(found, clf.predict_proba(X.head(20)), atol=1e-15)
        one = ask({"dataframe_records": [{"zone": "port", "km": None}]})
        port_alone = with_gaps(pd.DataFrame([{"zone": "port"}]), X)
        assert one == [*clf.predict(port_alone)]
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
