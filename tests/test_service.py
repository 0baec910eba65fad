"""The web service: answers of the scorer, errors that name the field, limits."""

import http.client
import json
import math
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import steelyard as sy

pytest.importorskip("starlette")
pytest.importorskip("httpx2")


@pytest.fixture(scope="module")
def trips():
    rng = np.random.default_rng(0)
    n = 300
    km = rng.gamma(2.0, 3.0, n).round(1)
    X = pd.DataFrame(
        {
            "zone": rng.choice(["centre", "port", None], n, p=[0.6, 0.3, 0.1]),
            "km": np.where(rng.random(n) < 0.1, np.nan, km),
            "night": rng.random(n) < 0.4,
            "when": pd.date_range("2024-01-01", periods=n, freq="5h"),
        }
    )
    tips = np.where(km + 3.0 * X["night"] + rng.normal(size=n) > 7.0, "tip", "none")
    return sy.ShrinkageNB().fit(X, tips), X


@pytest.fixture(scope="module")
def client(trips):
    from starlette.testclient import TestClient

    from steelyard.service import create_app

    return TestClient(create_app(trips[0], max_rows=100, max_bytes=100_000))


def rows_of(X):
    return json.loads(X.to_json(orient="records", date_format="iso"))


def test_answers_are_those_of_the_model(client, trips):
    clf, X = trips
    X = X.head(80)
    answers = client.post("/predict?reasons=2&interval=0.8", json=rows_of(X)).json()
    proba = [[a["probabilities"][c] for c in clf.classes_] for a in answers]
    np.testing.assert_allclose(proba, clf.predict_proba(X), rtol=0, atol=1e-12)
    assert [a["label"] for a in answers] == clf.predict(X).tolist()
    ends = [[a["interval"][c] for c in clf.classes_] for a in answers]
    expected = clf.predict_interval(X, 0.8)
    np.testing.assert_allclose(ends, expected, rtol=0, atol=1e-12)
    score = clf.scorer()
    for answer, row in zip(answers, rows_of(X), strict=True):
        reasons = {r["column"]: r["log_odds"] for r in answer["reasons"]}
        assert reasons == score.reasons(row, 2)


def test_a_row_is_answered_by_an_object_and_a_list_by_a_list(client):
    row = {"zone": "port", "night": True}
    one = client.post("/predict", json=row).json()
    assert set(one) == {"label", "probabilities"}
    assert client.post("/predict", json=[row]).json() == [one]
    assert client.post("/predict", json=[]).json() == []
    assert client.post("/predict", json={"zone": "never seen", "km": None}).is_success


@pytest.mark.parametrize(
    "body, status, message",
    [
        ("", 400, "not JSON"),
        ("{", 400, "not JSON"),
        ("9" * 5_000, 400, "not JSON"),
        (b"\xff\xfe\x00", 400, "not JSON"),
        ("[" * 60_000, 400, "nested too deeply"),
        ("3", 422, "A row is an object of columns, not 3."),
        ('[{}, {"zon": "port"}]', 422, "no column 'zon'. Did you mean 'zone'?"),
        ('{"km": "far"}', 422, "'km' takes number or null, got \"far\"."),
        ('{"km": true}', 422, "'km' takes number or null, got true."),
        ('{"km": NaN}', 422, "'km' takes number or null, got NaN."),
        ('{"km": -Infinity}', 422, "got -Infinity."),
        ('{"km": 1e999}', 422, "'km' takes finite numbers"),
        ('{"km": 1%s}' % ("0" * 400), 422, "'km' takes finite numbers"),
        ('{"night": 1}', 422, "'night' takes boolean or null, got 1."),
        ('{"zone": ["port"]}', 422, "'zone' takes string or null, got a list."),
        ('{"zone": {}}', 422, "'zone' takes string or null, got an object."),
        ('{"when": "tomorrow"}', 422, "'when' takes dates such as"),
        ('{"when": 19800}', 422, "'when' takes string or null, got 19800."),
        ('{"when.month": 2}', 422, "no column 'when.month'"),
        ('{"\\ud800": 1}', 422, "no column"),
        ("[{}" + ",{}" * 100 + "]", 422, "101 rows are more than the 100"),
        (" " * 100_001, 413, "more than 100,000 bytes"),
    ],
)
def test_wrong_requests_are_refused_in_words(client, body, status, message):
    answer = client.post("/predict", content=body)
    assert answer.status_code == status
    assert message in answer.json()["error"]


def test_the_row_of_an_error_is_named(client):
    answer = client.post("/predict", json=[{}, {}, {"km": "far"}])
    assert answer.json()["row"] == 2


@pytest.mark.parametrize(
    "query", ["reasons=-1", "reasons=two", "interval=nan", "interval=1", "interval=x"]
)
def test_wrong_parameters_are_refused(client, query):
    for rows in ({}, []):
        answer = client.post(f"/predict?{query}", json=rows)
        assert answer.status_code == 400
        name = query.partition("=")[0]
        assert answer.json()["error"].startswith(f"{name} must be ")


def test_other_paths_and_methods_are_errors_in_json(client):
    for answer, status in ((client.get("/predict"), 405), (client.get("/x"), 404)):
        assert answer.status_code == status
        assert answer.json()["error"]


def test_documents(client, trips):
    health = client.get("/health").json()
    assert health["status"] == "ok" and health["classes"] == ["none", "tip"]
    schema = client.get("/schema").json()
    assert list(schema["properties"]) == ["zone", "km", "night", "when"]
    described = client.get("/openapi.json").json()
    assert described["components"]["schemas"]["Row"] == schema
    operation = described["paths"]["/predict"]["post"]
    assert [p["name"] for p in operation["parameters"]] == ["reasons", "interval"]


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_the_service_keeps_to_its_description(client):
    """Requests that schemathesis makes up, right and wrong by the description."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import given, settings

    service = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    right, wrong = schemathesis.GenerationMode
    for result in service.get_all_operations():
        operation = result.ok()
        # Without parameters nothing can be wrong.
        modes = [right, wrong] if operation.method == "post" else [right]
        for mode in modes:

            @settings(max_examples=100, deadline=None)
            @given(case=operation.as_strategy(generation_mode=mode))
            def check(case):
                case.call_and_validate()

            check()


def test_a_model_without_uncertainty_has_no_intervals(trips):
    from starlette.testclient import TestClient

    from steelyard.service import create_app

    clf = sy.NaiveBayes().fit(trips[1], trips[1]["night"])
    client = TestClient(create_app(clf))
    answer = client.post("/predict?interval=0.9", json={})
    assert answer.status_code == 400 and "no uncertainty" in answer.json()["error"]
    operation = client.get("/openapi.json").json()["paths"]["/predict"]["post"]
    assert [p["name"] for p in operation["parameters"]] == ["reasons"]
    proba = client.post("/predict", json={}).json()["probabilities"]
    assert set(proba) == {"false", "true"} and math.isclose(sum(proba.values()), 1.0)


def test_the_command_serves_and_stops_after_what_was_asked(trips, tmp_path):
    pytest.importorskip("uvicorn")
    trips[0].save(tmp_path / "model.json")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "steelyard", "serve", str(tmp_path / "model.json")]
    process = subprocess.Popen(
        [*command, "--port", str(port)], stderr=subprocess.PIPE, text=True
    )
    try:
        assert f"http://127.0.0.1:{port}" in process.stderr.readline()
        for _ in range(200):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                client.request("GET", "/health")
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        assert json.load(client.getresponse())["status"] == "ok"
        # Half of a request, then the signal, then the rest.
        body = b'{"km": 3.5}'
        client.putrequest("POST", "/predict")
        client.putheader("Content-Length", str(len(body)))
        client.endheaders(body[:4])
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        client.send(body[4:])
        assert json.load(client.getresponse())["label"] == "none"
        client.close()
        assert process.wait(30) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
