"""Tables with everything that an explanation has to show, and a browser to show it."""

import json
import os
import select
import shutil
import subprocess
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import steelyard as sy


@pytest.fixture(scope="session")
def mixed():
    """Text, numbers, booleans and missing values; three classes."""
    random = np.random.default_rng(7)
    n = 240
    y = random.integers(0, 3, n)
    colour = np.array(["red", "green", "blue"], dtype=object)[
        np.where(random.random(n) < 0.6, y, random.integers(0, 3, n))
    ]
    colour[random.random(n) < 0.08] = None
    X = pd.DataFrame(
        {
            "colour": colour,
            "length": np.where(
                random.random(n) < 0.05, np.nan, y * 1.5 + random.normal(size=n)
            ),
            "width": 3.0 - y + random.normal(size=n),
            "striped": random.random(n) < 0.2 + 0.3 * (y == 1),
        }
    )
    return X, np.array(["ant", "bee", "cat"])[y]


@pytest.fixture(scope="session")
def two(mixed):
    """The same with two classes."""
    X, y = mixed
    return X, np.where(y == "cat", "bee", y)


CASES = {
    "NB": (sy.NaiveBayes, {}),
    "missing value": (sy.NaiveBayes, {"missing": "value"}),
    "imputed": (sy.NaiveBayes, {"missing": "impute"}),
    "imputed Gaussian": (sy.NaiveBayes, {"missing": "impute", "numeric": "gaussian"}),
    "Gaussian": (sy.NaiveBayes, {"numeric": "gaussian"}),
    "Weka": (sy.NaiveBayes, {"numeric": "gaussian-weka"}),
    "weighted": (sy.WeightedNB, {"lam": 1.0}),
    "value weights": (sy.ValueWeightedNB, {"lam": 1.0}),
    "weighted Gaussian": (sy.WeightedNB, {"lam": 1.0, "numeric": "gaussian"}),
    "calibrated pairs": (
        sy.WeightedNB,
        {
            "loss": "exponential",
            "calibrated": True,
            "multiclass": "one-vs-one",
            "lam": 1.0,
        },
    ),
    "mixture": (sy.RegularizedNB, {"lam": 1.0}),
    "pairs of mixtures": (
        sy.RegularizedNB,
        {"lam": 1.0, "multiclass": "one-vs-one"},
    ),
    "default": (sy.ShrinkageNB, {"strength": (1.0, 4.0, 1.0)}),
    "default, missing value": (
        sy.ShrinkageNB,
        {"strength": (1.0, 4.0, 1.0), "missing": "value"},
    ),
    "default, imputed": (
        sy.ShrinkageNB,
        {"strength": (1.0, 4.0, 1.0), "missing": "impute"},
    ),
    "interactions": (
        sy.ShrinkageNB,
        {
            "strength": (1.0, 4.0, 1.0),
            "interactions": [
                ("colour", "length"),
                ("width", "length"),
                ("striped", "colour"),
            ],
        },
    ),
    "interactions, missing value": (
        sy.ShrinkageNB,
        {
            "strength": (1.0, 4.0, 1.0),
            "interactions": [("colour", "length")],
            "missing": "value",
        },
    ),
    "several discretizers": (
        sy.WeightedNB,
        {"lam": 1.0, "numeric": ("mdl", "equal-width")},
    ),
    "densities": (sy.WeightedNB, {"lam": 1.0, "numeric": "gaussian-weka"}),
    "united cut points": (sy.NaiveBayes, {"numeric": ("mdl", "equal-frequency")}),
    "mixture of densities": (
        sy.RegularizedNB,
        {"lam": 1.0, "numeric": "gaussian"},
    ),
    "impossible class": (sy.NaiveBayes, {"prior": [0.5, 0.0, 0.5]}),
}


def fitted(name, X, y):
    kind, settings = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**settings).fit(X, y)


@pytest.fixture(scope="session", params=list(CASES))
def case(request, mixed):
    """A fitted classifier and its table, for each kind of model a page can show."""
    return fitted(request.param, *mixed), mixed[0]


# A headless Chromium, spoken to through a pipe: no driver and no open port.

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
KEYS = {"Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "Enter": 13}


def find_browser():
    """Path of a Chromium, None without one."""
    if os.name != "posix":
        return None
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    cache = Path.home() / ".cache" / "ms-playwright"
    return next(map(str, cache.glob("chromium*/chrome-linux*/chrome")), None)


class Browser:
    """One page in one browser, by the DevTools protocol."""

    def __init__(self, program, folder):
        self._program, self._folder = program, folder
        self._number = 0
        self._events = []
        self._buffer = b""

    def __enter__(self):
        import fcntl  # not on every system

        read_theirs, self._write = os.pipe()
        self._read, write_theirs = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        high = [
            fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (read_theirs, write_theirs)
        ]

        def connect():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [
                self._program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._folder}",
                "about:blank",
            ],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (*high, read_theirs, write_theirs):
            os.close(end)
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Page.enable")
        self._call("Runtime.enable")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)
        os.close(self._read)
        os.close(self._write)

    @property
    def errors(self):
        """What the page threw since it was opened."""
        return [e["params"] for e in self._events if "exceptionThrown" in e["method"]]

    def open(self, path, fragment=""):
        """Load a file and wait until it is there."""
        self._events.clear()
        # The page before must not be taken for this one, nor be this one still.
        self._call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self._call("Page.navigate", url=path.as_uri() + fragment)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def look(self, width, height, colours="light"):
        """Set the size of the window, and light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        mobile = width < 600
        self._call("Emulation.setDeviceMetricsOverride", mobile=mobile, **size)
        wish = {"name": "prefers-color-scheme", "value": colours}
        self._call("Emulation.setEmulatedMedia", features=[wish])

    def run(self, code):
        """Return the value of an expression in the page."""
        answer = self._call("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition, seconds=20):
        """Wait until an expression holds."""
        end = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.02)

    def press(self, key):
        """Press and release a key, as a person would."""
        code = KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._events.append(answer)

    def _receive(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], 60.0)
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 16)
            assert part, "the browser ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Return a headless Chromium, started once and ended by the tests."""
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium was found: install the system package chromium")
    with Browser(program, tmp_path_factory.mktemp("browser")) as opened:
        yield opened
