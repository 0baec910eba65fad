"""Rows and codes in a folder: fits equal those of the source, and go on when killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings

import pytest

import steelyard as sy
from steelyard.exceptions import TableError
from steelyard.fitting.pass_journal import PassJournal
from steelyard.io.copies import CODES, MANIFEST
from steelyard.model import streamed

METHODS = "NB GNB WANBIA-CLL CAVWNB-CLL RNB DWNB SBC LWNB".split()
COLUMNS = ["a", "b", "c", "x", "z", "name"]


@pytest.fixture(scope="module")
def table(table_of_all_kinds):
    return table_of_all_kinds


def fitted(name, rows, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sy.method(name, **settings).fit(rows)


def saved(clf, path):
    clf.save(path)
    return path.read_text()


@pytest.fixture(scope="module", params=["csv", "parquet"])
def source(request, table, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / f"table.{request.param}"
    if request.param == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return path


@pytest.mark.parametrize("name", METHODS)
def test_a_fit_of_the_folder_has_the_bits_of_the_source(source, name, tmp_path):
    weight = None if source.suffix == ".csv" else "w"
    how = {"target": "y", "weight": weight, "columns": COLUMNS}
    rows = sy.scan(source, **how)
    kept = rows.encode(tmp_path / "kept")
    assert repr(kept).startswith("<scan of ") and kept.n_rows == 1200
    expected = saved(fitted(name, rows), tmp_path / "source.json")
    # The first fit writes codes, the second reads them.
    for again in (kept, sy.scan(tmp_path / "kept")):
        assert saved(fitted(name, again), tmp_path / "kept.json") == expected


def test_the_default_has_the_bits_of_the_source(source, tmp_path):
    settings = {} if source.suffix == ".csv" else {"class_weight": "balanced"}
    rows = sy.scan(source, target="y")
    kept = rows.encode(tmp_path / "kept")
    expected = saved(fitted("SHNB", rows, **settings), tmp_path / "a.json")
    for _ in range(2):
        assert saved(fitted("SHNB", kept, **settings), tmp_path / "b.json") == expected


def test_methods_that_encode_alike_share_codes(table, tmp_path, monkeypatch):
    kept = sy.scan([table], target="y").encode(tmp_path / "kept")
    n_encoded = []
    own = streamed.TableSummary

    def counted(*given, **how):
        n_encoded.append(1)
        return own(*given, **how)

    monkeypatch.setattr(streamed, "TableSummary", counted)
    for name in ("WANBIA-CLL", "CAWNB-CLL", "RNB", "DWNB", "SBC"):
        fitted(name, kept)
    assert len(n_encoded) == 1
    assert len(list((tmp_path / "kept" / CODES).iterdir())) == 1
    fitted("WANBIA-CLL", kept, numeric="equal-width")
    assert len(n_encoded) == 2


def test_another_target_and_fewer_columns_are_other_codes(table, tmp_path):
    kept = sy.scan([table]).encode(tmp_path / "kept")
    one = sy.WeightedNB().fit(kept, "y")
    two = sy.WeightedNB().fit(kept, "a")
    assert list(two.classes_) == list("abcd") and len(one.classes_) == 3
    few = sy.WeightedNB().fit(sy.scan(tmp_path / "kept", columns=["a", "x"]), "y")
    assert list(few.feature_names_in_) == ["a", "x"]
    assert len(list((tmp_path / "kept" / CODES).iterdir())) == 3


def test_files_that_are_kept_already_are_not_read_again(source, tmp_path):
    sy.scan(source, target="y").encode(tmp_path / "kept")
    before = os.stat(tmp_path / "kept" / MANIFEST).st_mtime_ns
    sy.scan(source, target="y").encode(tmp_path / "kept")
    assert os.stat(tmp_path / "kept" / MANIFEST).st_mtime_ns == before
    with pytest.raises(TableError, match="holds other rows"):
        sy.scan(source, target="y", columns=["a"]).encode(tmp_path / "kept")


def test_a_folder_with_other_files_is_left_alone(table, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(TableError, match="there already"):
        sy.scan([table], target="y").encode(tmp_path)
    with pytest.raises(TableError, match="There is no folder"):
        sy.scan([table], target="y").encode(tmp_path / "a" / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_nothing_is_left_of_rows_that_cannot_be_read(table, tmp_path):
    def frames():
        yield table
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError):
        sy.scan(frames(), target="y").encode(tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def folder(table, tmp_path):
    """Rows and codes of a fit."""
    kept = sy.scan([table], target="y").encode(tmp_path / "kept")
    fitted("WANBIA-CLL", kept)
    return tmp_path / "kept"


def changed(folder, change):
    path = folder / MANIFEST
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_another_version_is_refused(folder):
    changed(folder, lambda content: content.update(version=2))
    with pytest.raises(TableError, match="version 2 of their format, and this release"):
        sy.scan(folder)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1'])
def test_a_damaged_list_is_refused(folder, text):
    (folder / MANIFEST).write_text(text)
    with pytest.raises(TableError, match="is damaged"):
        sy.scan(folder)


def test_files_that_are_gone_or_changed_are_refused(folder):
    file = folder / "00000.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    with pytest.raises(TableError, match="was changed"):
        sy.scan(folder)
    file.unlink()
    with pytest.raises(TableError, match="is missing"):
        sy.scan(folder)
    file.write_bytes(whole)
    changed(folder, lambda content: content.update(rows=7))
    with pytest.raises(TableError, match="7 were kept"):
        sy.scan(folder)


def codes_of(folder):
    (inside,) = (folder / CODES).iterdir()
    return inside


@pytest.mark.parametrize("name", ["codes-0.npy", "labels.npy", "codes.json"])
def test_changed_codes_are_refused_and_made_again(folder, name):
    path = codes_of(folder) / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(TableError, match="are damaged or were changed"):
        fitted("WANBIA-CLL", sy.scan(folder))
    shutil.rmtree(codes_of(folder))
    assert fitted("WANBIA-CLL", sy.scan(folder)).n_iter_
    path.unlink()
    with pytest.raises(TableError, match="are damaged or were changed"):
        fitted("WANBIA-CLL", sy.scan(folder))


def test_codes_beyond_those_of_a_column_are_refused(folder):
    path = codes_of(folder) / "codes.json"
    content = json.loads(path.read_text())
    content["features"][0]["values"] = content["features"][0]["values"][:1]
    path.write_text(json.dumps(content))
    with pytest.raises(TableError, match="does not fit the columns"):
        fitted("WANBIA-CLL", sy.scan(folder))


def test_a_folder_that_cannot_be_written_to_is_fitted(folder, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("steelyard.persistence.codes_folder._write", refused)
    with pytest.warns(UserWarning, match="cannot be kept .*: permission denied"):
        clf = sy.WeightedNB(numeric="equal-width").fit(sy.scan(folder))
    assert clf.n_iter_
    assert len(list((folder / CODES).iterdir())) == 1


# ---------------------------------------------------------------------- fits go on

_KILLED = """
import os, signal, sys, warnings
import steelyard as sy
from steelyard.fitting.pass_journal import PassJournal

name, folder, n_passes = sys.argv[1:]
put = PassJournal.put

def killed(self, key, numbers):
    put(self, key, numbers)
    if self.n_passes == int(n_passes):
        os.kill(os.getpid(), signal.SIGKILL)

PassJournal.put = killed
warnings.simplefilter("ignore")
sy.method(name).fit(sy.scan(folder))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("name, n_passes", [("RNB", 9), ("SHNB", 9), ("CAVWNB", 30)])
def test_a_fit_that_was_killed_goes_on(table, name, n_passes, tmp_path, monkeypatch):
    kept = sy.scan([table], target="y").encode(tmp_path / "kept")
    expected = saved(fitted(name, kept), tmp_path / "whole.json")
    given = [sys.executable, "-c", _KILLED, name, str(tmp_path / "kept"), str(n_passes)]
    assert subprocess.run(given, check=False).returncode == -signal.SIGKILL
    (left,) = codes_of(tmp_path / "kept").glob("passes-*")
    with left.open("ab") as file:
        file.write(b"half of a result")
    made, put = [], PassJournal.put

    def counted(self, *given):
        made.append(self.n_passes)
        put(self, *given)

    monkeypatch.setattr(PassJournal, "put", counted)
    assert saved(fitted(name, kept), tmp_path / "again.json") == expected
    # It went on after the passes that were there, and has put them away.
    assert made[0] == n_passes
    assert not left.exists()


def test_an_interrupted_fit_goes_on_and_others_do_not_mind(folder, monkeypatch):
    put = PassJournal.put

    def interrupted(self, *given):
        put(self, *given)
        if self.n_passes == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(PassJournal, "put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted("CAVWNB", sy.scan(folder))
    monkeypatch.setattr(PassJournal, "put", put)
    (left,) = codes_of(folder).glob("passes-*")
    n_bytes = left.stat().st_size
    # Other settings have another file.
    fitted("CAVWNB", sy.scan(folder), lam=1.0)
    assert left.stat().st_size == n_bytes
    # A fit alike at the same time keeps nothing.
    first, second = PassJournal(left), PassJournal(left)
    assert (first.is_open, second.is_open, first.n_passes) == (True, False, 3)
    second.close(done=True)
    first.close(done=False)
    assert left.exists()
