"""Send wrong requests to a service, and see that each is refused in words.

    python tools/bad_requests.py --requests 100000

A model is fitted and served by ``steelyard serve``. Bodies are valid ones with bytes
and cells exchanged, parameters and paths are odd ones, some requests are no HTTP. The
service must answer all with a status below 500, log no traceback, and be there at the
end.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

PORT = 8417
CELLS: list[Any] = [None, True, "", "x" * 999, "\ud800", 0, -1e308, 10**400, [], {}]
CELLS += [[[]], {"a": 1}, "2024-02-30", "2024-01-01", 1e-320]
BODIES = [b"", b"[", b"{}", b"[]", b"[" * 10**5, b"9" * 5000, b"\xff\xfe", b"null"]
BODIES += [b'{"n":NaN}', b'[{"n":1e999}]', b'{"n":-Infinity}', b'{"zz":1}', b"\x00"]
QUERIES = ["", "?reasons=2", "?reasons=-1", "?reasons=x", "?interval=0.9", "?interval"]
QUERIES += ["?interval=nan", "?reasons=1&interval=2", "?%ff", "?reasons=" + "9" * 5000]
PATHS = ["/predict"] * 12 + ["/schema", "/health", "/openapi.json", "/", "/../x", "/%0"]
POST = b"POST /predict HTTP/1.1\r\n"
RAW = [b"\r\n\r\n", b"GET\r\n\r\n", POST + b"Content-Length: x\r\n\r\n", b"\x16\x03"]
RAW += [POST + b"Host: x\r\nContent-Length: 99\r\n\r\n{"]


def served(folder: str) -> tuple[subprocess.Popen[str], Path]:
    """Fit a model, serve it, and return the process and the file of its log."""
    import pandas as pd

    import steelyard as sy

    n = 400
    X = pd.DataFrame({"n": [k % 17 * 1.5 for k in range(n)]})
    X["c"] = [("red", "green", None)[k % 3] for k in range(n)]
    X["b"] = [k % 5 < 2 for k in range(n)]
    X["t"] = pd.date_range("2024-01-01", periods=n, freq="7h")
    model, log = Path(folder, "model.json"), Path(folder, "log")
    sy.ShrinkageNB().fit(X, [k % 17 > 5 + k % 3 for k in range(n)]).save(model)
    command = [sys.executable, "-m", "steelyard", "serve", str(model)]
    with log.open("w") as stream:
        ports = ["--port", str(PORT)]
        return subprocess.Popen([*command, *ports], stderr=stream, text=True), log


def body(rng: random.Random) -> bytes:
    """Return a body that is wrong more often than not."""
    if rng.random() < 0.3:
        return rng.choice(BODIES)
    names = ["n", "c", "b", "t", "nn", "", "\udcff", "t.month"]
    rows = [
        {rng.choice(names): rng.choice(CELLS)} for _ in range(rng.choice([1, 1, 3]))
    ]
    text = bytearray(json.dumps(rows if rng.random() < 0.5 else rows[0]).encode())
    for _ in range(rng.choice([0, 0, 1, 3])):
        text[rng.randrange(len(text))] = rng.randrange(256)
    return bytes(text)


def main() -> int:
    """Send requests and print how many had each status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, statuses = random.Random(arguments.seed), Counter[int]()
    with tempfile.TemporaryDirectory() as folder:
        process, log = served(folder)
        try:
            while "until Ctrl-C" not in log.read_text():
                time.sleep(0.1)
            time.sleep(1.0)
            client = HTTPConnection("127.0.0.1", PORT, timeout=60)
            for _ in range(arguments.requests):
                if rng.random() < 0.02:
                    with socket.create_connection(("127.0.0.1", PORT)) as plain:
                        plain.sendall(rng.choice(RAW))
                    continue
                path = rng.choice(PATHS) + rng.choice(QUERIES)
                method = rng.choice(["POST"] * 9 + ["GET", "PUT", "DELETE", "TRACE"])
                try:
                    client.request(method, path, body(rng))
                    answer = client.getresponse()
                    answer.read()
                    statuses[answer.status] += 1
                except (HTTPException, ConnectionError):
                    statuses[0] += 1
                    client.close()
            client.request("GET", "/health")
            assert client.getresponse().status == 200
        finally:
            process.terminate()
            process.wait()
        failed = "Traceback" in log.read_text() or max(statuses) >= 500
        print(dict(sorted(statuses.items())), log.read_text()[-2000:] if failed else "")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
