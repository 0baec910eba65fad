"""A service: answer one row in microseconds, with its reasons.

`clf.scorer()` is a plain function of a mapping. It needs no frame, no array and, once
it is pickled, no scikit-learn. Here Python's own web server wraps it; `steelyard serve`
is the one for daily use.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import perf_counter
from urllib.request import Request, urlopen

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

import steelyard as sy

X, y = load_wine(return_X_y=True, as_frame=True)
clf = sy.ShrinkageNB().fit(X, y)
score = clf.scorer()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            answer = {"p": score(row), "reasons": score.reasons(row, most=3)}
            status = 200
        except ValueError as error:
            answer, status = {"error": str(error)}, 422
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer, default=str).encode())

    def log_message(self, *_):
        pass


with HTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    row = X.iloc[0].to_dict() | {"hue": None}  # not measured
    url = f"http://127.0.0.1:{server.server_port}"
    with urlopen(Request(url, json.dumps(row).encode())) as reply:
        print(json.dumps(json.load(reply), indent=1))
    server.shutdown()

rows = X.to_dict("records")
times = {}
for name, answer in {
    "scorer()": lambda k: score(rows[k]),
    "predict_proba, one row": lambda k: clf.predict_proba(X[k : k + 1]),
}.items():
    start = perf_counter()
    for k in range(100):
        answer(k)
    times[name] = (perf_counter() - start) * 1e4
bars = plt.barh(list(times), times.values(), color=["C0", "C5"])
plt.bar_label(bars, [f"{value:,.0f} µs" for value in times.values()], padding=3)
plt.gca().set(xscale="log", xlabel="microseconds a row, on the machine that built this")
plt.margins(x=0.2)
plt.gcf().set_size_inches(7.2, 1.8)
plt.savefig(sys.argv[1] if sys.argv[1:] else "service.svg", metadata={"Date": None})
