"""Fetching data sets: interrupted, slow and wrong answers of a server here."""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pandas as pd
import pytest
from sklearn import datasets

from steelyard.exceptions import TableError
from steelyard.io.dataset import read_dataset
from steelyard.lab.data import archives
from steelyard.lab.data.archives import content_digest, download, fetch_dataset
from steelyard.lab.data.datasets import (
    MULTICLASS,
    TASKS,
    catalogue,
    load_dataset,
)

ARFF = b"""% quotes and blanks, as Weka writes them
@relation toy
@attribute 'wage increase' real
@attribute pension {'?','ret allw','none'}
@attribute class {'very bad','good'}
@data
1.5,'?','good'
2,?,'very bad'
?,'ret allw','good'
"""
PLAIN = """@relation toy
@attribute a NUMERIC
@attribute b {-,ret_allw,none}
@attribute class {good,very_bad}
@data
1.5,-,good
2,?,very_bad
?,ret_allw,good
"""


@pytest.fixture
def server():
    """A server that answers as it is told, one answer after the other."""
    answers, asked = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            begin = int(self.headers.get("Range", "bytes=0-")[6:-1])
            asked.append(begin)
            kind, body = answers.pop(0)
            if isinstance(kind, int):
                return self.send_error(kind)
            resumes = begin and kind != "whole"
            rest = body[begin:] if resumes else body
            self.send_response(206 if resumes else 200)
            if resumes:
                of = f"bytes {begin}-{len(body) - 1}/{len(body)}"
                self.send_header("Content-Range", of)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[:40] if kind in ("cut", "slow") else rest)
            self.wfile.flush()
            if kind == "slow":
                over.wait(5)

        def log_message(self, *args):
            pass

    over = threading.Event()
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    url = f"http://127.0.0.1:{listener.server_port}/toy.arff"
    yield SimpleNamespace(answers=answers, asked=asked, url=url)
    over.set()
    listener.shutdown()
    thread.join()
    listener.server_close()


QUICK = {"pause": 0.0, "timeout": 0.3}


@pytest.mark.parametrize("first", ["cut", "slow"])
def test_an_interrupted_download_goes_on_where_it_stopped(server, tmp_path, first):
    server.answers += [(first, ARFF), (503, b""), ("ok", ARFF)]
    seen = []
    path = download(
        server.url, tmp_path / "a" / "x", progress=lambda *n: seen.append(n), **QUICK
    )
    assert path.read_bytes() == ARFF
    assert server.asked == [0, 40, 40]
    assert seen[-1] == (len(ARFF), len(ARFF)) and not list(path.parent.glob("*.part"))


def test_a_server_that_cannot_go_on_begins_again(server, tmp_path):
    server.answers += [("cut", ARFF), ("whole", ARFF)]
    assert download(server.url, tmp_path / "x", **QUICK).read_bytes() == ARFF
    (tmp_path / "y.part").write_bytes(ARFF + b"more")
    server.answers += [(416, b""), ("ok", ARFF)]
    assert download(server.url, tmp_path / "y", **QUICK).read_bytes() == ARFF


def test_what_is_absent_is_asked_for_once_and_failures_a_few_times(server, tmp_path):
    server.answers += [(404, b"")]
    with pytest.raises(OSError, match=r"after 1 attempt:.*404"):
        download(server.url, tmp_path / "x", **QUICK)
    server.answers += [(500, b"")] * 3
    with pytest.raises(OSError, match=r"after 3 attempts.*500"):
        download(server.url, tmp_path / "x", attempts=3, **QUICK)
    assert len(server.asked) == 4 and not (tmp_path / "x").exists()


def test_a_server_that_is_not_there_is_a_connection_error(tmp_path):
    with pytest.raises(ConnectionError, match=r"after 2 attempts: .*refused"):
        download("http://127.0.0.1:9/x", tmp_path / "x", attempts=2, **QUICK)


@pytest.fixture
def entry(server, tmp_path):
    plain = tmp_path / "plain.arff"
    plain.write_text(PLAIN)
    return {
        "name": "toy",
        "source": server.url,
        "instances": "3",
        "attributes": "2",
        "classes": "2",
        "target": "",
        "columns": "",
        "digest": content_digest(read_dataset(plain)),
    }


def test_a_fetched_set_is_written_without_quotes_and_compared(server, tmp_path, entry):
    server.answers += [("ok", ARFF)]
    assert fetch_dataset(entry, tmp_path, **QUICK)
    data = load_dataset("toy", tmp_path)
    assert list(data.table) == ["wage_increase", "pension"]
    assert data.target.tolist() == ["good", "very_bad", "good"]
    assert data.declared["pension"] == ("-", "ret_allw", "none")
    assert content_digest(data) == entry["digest"]
    # The raw file is kept: nothing is asked for again.
    assert not fetch_dataset({**entry, "digest": "other"}, tmp_path, **QUICK)
    assert len(server.asked) == 1


def test_wrong_answers_are_not_written_and_not_kept(server, tmp_path, entry):
    server.answers += [("ok", b"<html><body>Please log in</body></html>")]
    with pytest.raises(TableError, match=r"is not a table of 'toy': .*toy\.arff"):
        fetch_dataset(entry, tmp_path, **QUICK)
    assert not list(tmp_path.glob("downloads/*"))
    server.answers += [("ok", ARFF)]
    with pytest.raises(TableError, match=r"has \(3, 2, 2\) rows.* not written"):
        fetch_dataset({**entry, "instances": "4"}, tmp_path, **QUICK)
    assert not (tmp_path / "toy.arff").exists()


def test_tables_without_names_take_those_of_the_catalogue(server, tmp_path, entry):
    server.answers += [("ok", b"1.5,a,yes\n2,b,no\n3,a,yes\n")]
    url = server.url.replace(".arff", ".data")
    entry = {**entry, "source": url, "target": "x3", "columns": "size kind class"}
    fetch_dataset(entry, tmp_path, **QUICK)
    data = load_dataset("toy", tmp_path)
    assert data.kinds == {"size": "numeric", "kind": "categorical"}
    assert data.target.tolist() == ["yes", "no", "yes"]


def test_sets_of_openml_and_files_of_repositories(monkeypatch, tmp_path, entry):
    frame = pd.DataFrame({"a": [1.5, 2, 3], "b": [1, 2, 1], "class": [1.0, 2.0, 1.0]})
    bunch = SimpleNamespace(frame=frame, target_names=["class"], DESCR="")
    monkeypatch.setattr(datasets, "fetch_openml", lambda **settings: bunch)
    fetch_dataset({**entry, "source": "openml:31"}, tmp_path)
    assert load_dataset("toy", tmp_path).target.tolist() == ["1", "2", "1"]

    def fetched(url, path, **options):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(ARFF)
        urls.append(url)

    urls = []
    monkeypatch.setattr(archives, "download", fetched)
    fetch_dataset({**entry, "source": "github:me/data@abc/toy.arff"}, tmp_path)
    assert urls == ["https://raw.githubusercontent.com/me/data/abc/toy.arff"]


def test_the_catalogue_has_the_sets_of_all_papers():
    rows = {row["name"]: row for row in catalogue()}
    assert len(rows) == len(catalogue())
    groups = [word for row in rows.values() for word in row["papers"].split("|")]
    assert [groups.count(g) for g in ("rnb33", "cwnb60", "exp28")] == [33, 36, 26]
    assert {task.file for task in (*TASKS, *MULTICLASS)} <= rows.keys()
    without = [name for name, row in rows.items() if not row["source"]]
    assert without == ["ann-thyroid", "mfeat-pixel", "satimage"]


@pytest.mark.skipif(
    "STEELYARD_DATA" not in os.environ,
    reason="STEELYARD_DATA names no folder of data sets",
)
def test_digests_of_the_catalogue_are_those_of_the_folder():
    for row in catalogue():
        if int(row["instances"]) < 500:
            assert content_digest(load_dataset(row["name"])) == row["digest"], row
