"""The result file: whole lines only, resumed, refused, and never lost."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from steelyard.lab import journal
from steelyard.lab.journal import (
    Journal,
    JournalError,
    open_journal,
    read_journal,
)
from steelyard.lab.results import COLUMNS, Results

SETTINGS = {"methods": {"NB": "NaiveBayes()"}, "folds": 10, "protocols": ("honest",)}


def row(fold=0, **fields):
    key = {"dataset": "iris", "method": "NB", "protocol": "honest", "repeat": 0}
    known = {**key, "fold": fold, "status": "ok", "accuracy": 0.9}
    return {**dict.fromkeys(COLUMNS), **known, **fields}


def started(tmp_path, n_rows=3):
    path = tmp_path / "results.jsonl"
    assert open_journal(path, SETTINGS, {"numpy": "2"}) == []
    with Journal(path) as file:
        for fold in range(n_rows):
            file.append(row(fold))
    return path


def test_rows_come_back_as_they_were_written(tmp_path):
    path = started(tmp_path)
    header, rows = read_journal(path)
    assert rows == [row(0), row(1), row(2)]
    assert header["versions"] == {"numpy": "2"}
    assert header["settings"]["folds"] == 10
    assert open_journal(path, SETTINGS) == rows
    assert Results.from_journal(path).values("accuracy", "iris", "NB").tolist() == [
        0.9,
        0.9,
        0.9,
    ]


def test_every_line_is_json_that_any_program_reads(tmp_path):
    path = started(tmp_path, 0)
    with Journal(path) as file:
        file.append(row(accuracy=float("nan"), extra={"alpha": float("inf")}))
    last = path.read_text().splitlines()[-1]
    found = json.loads(last, parse_constant=lambda word: pytest.fail(word))
    assert found["accuracy"] is None and found["extra"] == {"alpha": None}


def test_a_row_is_one_write(tmp_path, monkeypatch):
    path = started(tmp_path, 0)
    written = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda f, b: written.append(b) or real(f, b))
    with Journal(path) as file:
        file.append(row(error="two\nlines", dataset="größe"))
    assert len(written) == 1
    assert written[0].endswith(b"}\n") and written[0].count(b"\n") == 1


@pytest.mark.parametrize("cut", [1, 2, 30, 100])
def test_torn_last_line_is_cut_off_and_the_rest_goes_on(tmp_path, cut):
    path = started(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert read_journal(path)[1][:2] == [row(0), row(1)]
    assert open_journal(path, SETTINGS) == [row(0), row(1)]
    with Journal(path) as file:
        file.append(row(2))
    assert path.read_bytes() == whole


def test_a_row_after_a_torn_one_is_whole(tmp_path):
    path = started(tmp_path)
    with path.open("ab") as other:
        other.write(b'{"dataset": "iris", "meth')
    with Journal(path) as file:
        file.append(row(3))
    assert read_journal(path)[1] == [row(0), row(1), row(2), row(3)]
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_torn_header_is_written_again(tmp_path):
    path = started(tmp_path, 0)
    path.write_bytes(path.read_bytes()[:40])
    assert open_journal(path, SETTINGS) == []
    assert read_journal(path)[0]["settings"]["folds"] == 10


@pytest.mark.parametrize("damage", ["cut", "null", "{}", "[1]", "misspelt"])
def test_damaged_line_in_the_middle_costs_that_row_alone(tmp_path, damage):
    path = started(tmp_path)
    lines = path.read_text().split("\n")
    changed = {"cut": lines[2][:-20], "misspelt": lines[2].replace("ccur", "cur")}
    lines[2] = changed.get(damage, damage)
    path.write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=r"1 line of the result file .* Repeat"):
        assert [r["fold"] for r in read_journal(path)[1]] == [0, 2]


def test_of_a_fit_that_was_run_again_the_last_row_counts(tmp_path):
    path = started(tmp_path)
    with Journal(path) as file:
        file.append(row(1, accuracy=0.5))
    assert [r["accuracy"] for r in read_journal(path)[1]] == [0.9, 0.5, 0.9]


@pytest.mark.parametrize(
    "change, says",
    [
        ({"folds": 5}, "folds was 10, is 5"),
        ({"methods": {"RNB": "RegularizedNB()"}}, r"methods\['RNB'\] is new"),
        ({"methods": {"NB": "NaiveBayes(n_jobs=2)"}}, r"methods\['NB'\] was 'NaiveB"),
        ({"seed": 2}, "seed is new"),
    ],
)
def test_file_of_other_settings_is_refused_and_says_which(tmp_path, change, says):
    path = started(tmp_path)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=f"other settings: {says}"):
        open_journal(path, {**SETTINGS, **change})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n", "a,b\n1,2", '{"a": 1}\n', "no line at all"]
)
def test_file_of_another_kind_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(JournalError, match="not a result file"):
        open_journal(path, SETTINGS)
    assert path.read_text() == text


def test_file_of_a_later_format_is_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"steelyard": "results", "format": 99}\n')
    with pytest.raises(JournalError, match="format 99"):
        open_journal(path, SETTINGS)


def test_full_disk_is_a_clear_error_and_loses_nothing(tmp_path, monkeypatch):
    path = started(tmp_path)
    before = path.read_bytes()
    real = os.write

    def half(file, data):
        return real(file, data[:25])

    def none(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(path) as file:
        for write in (half, none):
            monkeypatch.setattr(journal.os, "write", write)
            with pytest.raises(OSError, match=r"No space left.*Rows written before"):
                file.append(row(9))
            assert path.read_bytes() == before
        monkeypatch.setattr(journal.os, "write", real)
        file.append(row(9))
    assert len(read_journal(path)[1]) == 4


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_folder_without_permission_is_a_clear_error(tmp_path, monkeypatch):
    folder = tmp_path / "closed"
    folder.mkdir()
    if os.geteuid() == 0:
        # The superuser may write everywhere: the system's answer is put in its mouth.
        def refuse(*args):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(journal.os, "open", refuse)
    else:
        folder.chmod(0o500)
    with pytest.raises(PermissionError, match=r"cannot be written.*closed"):
        open_journal(folder / "results.jsonl", SETTINGS)


def test_folder_that_is_absent_is_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot be written"):
        open_journal(tmp_path / "nowhere" / "results.jsonl", SETTINGS)


WRITER = """
import sys
from steelyard.lab.journal import Journal
from steelyard.lab.results import COLUMNS
with Journal(sys.argv[1]) as file:
    for fold in range(100_000_000):
        file.append({**dict.fromkeys(COLUMNS), "dataset": "iris",
                     "method": sys.argv[2], "protocol": "honest", "repeat": 0,
                     "fold": fold, "status": "ok", "error": "x" * 5000})
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_process_that_is_killed_while_writing_leaves_whole_rows(tmp_path):
    path = started(tmp_path, 0)
    for delay in (0.0, 0.013, 0.029):
        size = path.stat().st_size
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path), "a"])
        deadline = time.monotonic() + 60
        while path.stat().st_size == size and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        rows = open_journal(path, SETTINGS)
        lines = path.read_bytes().splitlines()
        assert all(len(json.loads(line)) > 1 for line in lines)
        assert rows and all(r["error"] == "x" * 5000 for r in rows)


@pytest.mark.parametrize("wrong", [{"fold": {}}, {"dataset": [1]}, {"repeat": None}])
def test_row_that_names_no_fit_is_left_out_as_other_damage(tmp_path, wrong):
    path = started(tmp_path)
    lines = path.read_text().splitlines()
    lines[2] = json.dumps({**row(1), **wrong})
    path.write_text("\n".join(lines) + "\n")
    with pytest.warns(UserWarning, match="1 line of the result file"):
        assert read_journal(path)[1] == [row(0), row(2)]


def test_header_without_settings_is_refused(tmp_path):
    path = started(tmp_path)
    _, *rows = path.read_text().splitlines(keepends=True)
    path.write_text('{"steelyard": "results", "format": 1}\n' + "".join(rows))
    with pytest.raises(JournalError, match="has no settings"):
        Results.from_journal(path)
