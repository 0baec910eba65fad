"""Comparisons that are killed or interrupted, and go on where they were."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from joblib.externals.loky import process_executor
from sklearn.linear_model import LogisticRegression

from steelyard.lab import worker
from steelyard.lab.journal import read_journal
from steelyard.lab.results import Results
from steelyard.lab.runner import compare

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL"),
]

DATA = ["sklearn:iris", "sklearn:wine"]
FITS = 30  # 2 data sets, 5 folds, 3 methods

# Each line of input names a result file and starts a run in a process group of its own;
# the answers are its id and, in the end, its exit status. Processes are forked, since a
# fresh one would import for seconds before there is anything to interrupt.
SCRIPT = """
import os, signal, sys, time, warnings
from pathlib import Path
from joblib.externals.loky.backend.context import set_start_method
from sklearn.linear_model import LogisticRegression
from steelyard.lab.runner import compare

worker, *data = sys.argv[1:]

class Slow(LogisticRegression):
    def fit(self, X, y):
        Path(worker).write_text(str(os.getpid()))
        time.sleep(0.05)
        return super().fit(X, y)

methods = ["NB", ("slow", Slow(max_iter=500)), "SVM"]
settings = dict(folds=5, progress=False)
compare(methods, data, n_jobs=1, **settings)  # loads what loads late
warnings.filterwarnings("ignore", "`fork` start method")
set_start_method("fork")
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.setsid()
        try:
            compare(methods, data, n_jobs=2, journal=line.strip(), **settings)
        except KeyboardInterrupt:
            os._exit(130)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Runs:
    """Runs of the same comparison, one after the other."""

    journal = None

    def __init__(self, folder):
        self.noise = folder / "noise"
        self._worker = folder / "worker"
        script = folder / "script.py"
        script.write_text(SCRIPT)
        with self.noise.open("wb") as noise:
            self._driver = subprocess.Popen(
                [sys.executable, script, self._worker, *DATA],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=noise,
                text=True,
                start_new_session=True,
            )
        assert self._answer() == "ready"

    def _answer(self):
        return self._driver.stdout.readline().strip()

    def start(self):
        self._worker.unlink(missing_ok=True)
        self._driver.stdin.write(f"{self.journal}\n")
        self._driver.stdin.flush()
        self.process = int(self._answer())
        # A signal to the group must not come before there is one.
        while os.getpgid(self.process) != self.process:
            time.sleep(0.001)

    def end(self):
        """Return the exit status of the run, below zero for a signal."""
        return int(self._answer())

    def close(self):
        with self._driver:
            self._driver.kill()

    @property
    def lines(self):
        """Whole lines of the result file."""
        text = self.journal.read_bytes() if self.journal.exists() else b""
        return text.splitlines(keepends=True)[: text.count(b"\n")]

    @property
    def complete(self):
        """Whether the result file has all fits."""
        return bool(self.lines) and len(read_journal(self.journal)[1]) == FITS

    @property
    def running(self):
        with suppress(ProcessLookupError):
            os.kill(self.process, 0)
            return True
        return False

    def wait_for_lines(self, number):
        """Wait until there are so many lines, or the run has ended."""
        deadline = time.monotonic() + 60
        while len(self.lines) < number and self.running:
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def kill_worker(self):
        """Kill a worker that was seen at a slow fit, whatever it is doing now.

        That is the run itself where a single fold is left.
        """
        with suppress(OSError, ValueError):
            os.kill(int(self._worker.read_text()), signal.SIGKILL)
            return True
        return False


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    runs = Runs(tmp_path_factory.mktemp("runs"))
    yield runs
    runs.close()


@pytest.fixture
def runs(driver, tmp_path):
    driver.journal = tmp_path / "r.jsonl"
    return driver


def timeless(results):
    times = {"fit_seconds", "predict_seconds", "peak_memory_mb"}
    return [
        {name: row[name] for name in row if name not in times} for row in results.rows
    ]


@pytest.fixture(scope="module")
def uninterrupted():
    methods = ["NB", ("slow", LogisticRegression(max_iter=500)), "SVM"]
    return timeless(compare(methods, DATA, folds=5, n_jobs=1))


def test_run_that_is_killed_again_and_again_ends_with_the_same_table(
    runs, uninterrupted
):
    moments = random.Random(0)
    in_progress = workers = 0
    for kill in range(30):
        before = runs.lines
        runs.start()
        runs.wait_for_lines(len(before) + kill % 4)
        time.sleep(moments.uniform(0.0, 0.05))
        if kill % 3 == 1:
            # The run goes on without it, up to the next kill.
            workers += runs.kill_worker()
            runs.wait_for_lines(len(runs.lines) + 1)
        # Workers that are left alone notice it, and leave.
        stop = os.kill if kill % 3 == 2 else os.killpg
        with suppress(ProcessLookupError):
            stop(runs.process, signal.SIGKILL)
        status = runs.end()
        assert runs.lines[: len(before)] == before
        if status == 0:
            break
        assert status == -signal.SIGKILL
        in_progress += len(runs.lines) > len(before) and not runs.complete
    assert in_progress > 2 and workers > 0
    runs.start()
    assert runs.end() == 0
    assert timeless(Results.from_journal(runs.journal)) == uninterrupted
    assert runs.noise.read_bytes() == b""


def test_control_c_ends_a_run_with_status_130_and_the_next_one_goes_on(
    runs, uninterrupted
):
    runs.start()
    runs.wait_for_lines(5)
    os.killpg(runs.process, signal.SIGINT)
    assert runs.end() == 130
    before = runs.lines
    assert len(before) >= 5 and not runs.complete
    runs.start()
    assert runs.end() == 0
    assert runs.lines[: len(before)] == before
    assert timeless(Results.from_journal(runs.journal)) == uninterrupted
    assert runs.noise.read_bytes() == b""


def test_interrupt_right_after_a_task_was_handed_over_leaves_no_traceback(
    monkeypatch,
):
    # The pool's thread is held up between a result and a look at what to do next.
    class SlowThread(process_executor._ExecutorManagerThread):
        def process_result_item(self, item):
            super().process_result_item(item)
            time.sleep(0.3)

    class Interrupted(worker.ProcessPoolExecutor):
        def submit(self, *args):
            future = super().submit(*args)
            if self._queue_count > 3:
                raise KeyboardInterrupt
            return future

    failed = []
    monkeypatch.setattr(process_executor, "_ExecutorManagerThread", SlowThread)
    monkeypatch.setattr(worker, "ProcessPoolExecutor", Interrupted)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    with pytest.raises(KeyboardInterrupt):
        compare("NB", DATA, folds=5, n_jobs=2, progress=False)
    assert failed == []


LEFT_ALONE = """
import os, sys, time
from types import SimpleNamespace
from steelyard.lab.worker import _start

plan, parent = SimpleNamespace(data={}, journal=None), os.getpid()
if not os.fork():
    if sys.argv[1] == "early":  # killed before the worker began
        os.setsid()
        while os.getppid() == parent:
            time.sleep(0.01)
    print(os.getpid(), flush=True)
    _start(plan, parent)
    time.sleep(60)
if sys.argv[1] == "late":
    time.sleep(60)
"""


@pytest.mark.parametrize("moment", ["early", "late"])
def test_worker_leaves_when_its_parent_was_killed(moment, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(LEFT_ALONE)
    parent = subprocess.Popen(
        [sys.executable, script, moment], stdout=subprocess.PIPE, text=True
    )
    with parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    assert worker._PARENT_SECONDS <= 0.5
    deadline = time.monotonic() + 20  # of a busy machine; it takes half a second
    while Path(f"/proc/{pid}").exists() and not is_zombie(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_zombie(process):
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][1] == "Z"
    return True
