"""Results of passes in a file, so that a fit that was killed goes on after the last.

A pass is a function of rows, loss and effect alone, and solvers do the same with the
same results. So a fit that is run again takes results from the file as long as there
are any, without a look at the rows, and ends with the same bits.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import zlib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.files import lock
from steelyard.fitting.rows import Passes, PassesOf
from steelyard.losses import Loss
from steelyard.model.training import TrainingSet
from steelyard.proba.gaussian import GaussianTable
from steelyard.weighting.base import Effect

# The key of a pass, how many bytes its result takes, and a checksum of both.
_HEAD = struct.Struct("<32sQI")


class PassJournal:
    """A file of results of passes, open for one fit at a time.

    A result that was not written to its end is as if absent.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._places = path, dict[bytes, tuple[int, int]]()
        self._turn = threading.Lock()
        self._file = open(path, "a+b")
        # Of two fits alike at once, the second keeps nothing.
        self.is_open = lock(self._file.fileno()) is not False
        end = self._read() if self.is_open else 0
        if self.is_open:
            self._file.truncate(end)

    def _read(self) -> int:
        """Find all results, and return where the last one ends."""
        self._file.seek(0)
        while len(head := self._file.read(_HEAD.size)) == _HEAD.size:
            key, size, checksum = _HEAD.unpack(head)
            start = self._file.tell()
            left = os.fstat(self._file.fileno()).st_size - start
            if size > left or _checksum(key, self._file.read(size)) != checksum:
                return start - _HEAD.size
            self._places[key] = start, size
        return self._file.tell() - len(head)

    @property
    def n_passes(self) -> int:
        """How many results there are."""
        return len(self._places)

    def get(self, key: bytes) -> Floats | None:
        """Return the numbers of a result, None if it is not there."""
        with self._turn:
            if (place := self._places.get(key)) is None:
                return None
            self._file.seek(place[0])
            return np.frombuffer(self._file.read(place[1]), dtype="<f8")

    def put(self, key: bytes, numbers: Floats) -> None:
        """Add a result; it outlives the process at once."""
        data = numbers.astype("<f8").tobytes()
        with self._turn:
            self._file.seek(0, os.SEEK_END)
            self._file.write(_HEAD.pack(key, len(data), _checksum(key, data)) + data)
            self._file.flush()
            self._places[key] = self._file.tell() - len(data), len(data)

    def close(self, done: bool) -> None:
        """Close the file, and remove it after a fit that is done."""
        self._file.close()
        if done and self.is_open:
            self.path.unlink(missing_ok=True)

    def passes(
        self, rows: Passes, training: TrainingSet, gaussian: GaussianTable
    ) -> Passes:
        """Return passes over rows of a training set that are kept here."""
        if not self.is_open:
            return rows
        arrays = [training.labels, training.weights]
        sums = [0 if own is None else zlib.crc32(_bytes(own)) for own in arrays]
        about = f"{training.n_rows} {training.n_classes} {sums} "
        return _KeptPasses(rows, self, about, gaussian)


@dataclass(frozen=True)
class _KeptPasses(PassesOf):
    """Passes whose results are kept, and taken from where they are kept."""

    journal: PassJournal
    about: str
    gaussian: GaussianTable

    def evaluate(self, loss: Loss, effect: Effect) -> tuple[float, Effect]:
        """Return a loss and its gradient with respect to the effect of weights."""
        said = f"{type(loss).__name__} {sorted(vars(loss).items())}"
        key = self._key(said, [effect])
        if (kept := self.journal.get(key)) is not None:
            return float(kept[0]), _effects(kept[1:], [effect])[0]
        value, found = self.rows.evaluate(loss, effect)
        self.journal.put(key, _numbers([value], [found]))
        return value, found

    def evaluate_mixture(
        self, alpha: float, halves: tuple[Effect, Effect], printed: bool
    ) -> tuple[float, float, Effect, Effect]:
        """Return the squared error of a mixture, and its three gradients."""
        key = self._key(f"mixture {alpha!r} {printed}", halves)
        if (kept := self.journal.get(key)) is not None:
            a, b = _effects(kept[2:], halves)
            return float(kept[0]), float(kept[1]), a, b
        value, slope, *found = self.rows.evaluate_mixture(alpha, halves, printed)
        self.journal.put(key, _numbers([value, slope], found))
        return value, slope, found[0], found[1]

    def with_densities(self, gaussian: GaussianTable) -> _KeptPasses:
        """Return the same rows with other densities of Gaussian attributes."""
        rows = self.rows.with_densities(gaussian)
        return replace(self, rows=rows, gaussian=gaussian)

    def _key(self, said: str, effects: Any) -> bytes:
        digest = hashlib.sha256((self.about + said).encode())
        densities = [getattr(self.gaussian, own.name) for own in fields(GaussianTable)]
        tables = [array for array in densities if array is not None]
        for array in [*tables, *(a for own in effects for a in vars(own).values())]:
            digest.update(repr(array.shape).encode())
            digest.update(_bytes(array))
        return digest.digest()


def _bytes(array: Any) -> memoryview:
    return np.ascontiguousarray(array).data


def _checksum(key: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key))


def _numbers(values: list[float], effects: Any) -> Floats:
    arrays = [array.ravel() for own in effects for array in vars(own).values()]
    return np.concatenate([np.array(values), *arrays])


def _effects(numbers: Floats, like: Any) -> list[Effect]:
    """Return effects of the shapes of others, from their numbers one after another."""
    arrays, start = [], 0
    for array in (a for own in like for a in vars(own).values()):
        arrays.append(numbers[start : start + array.size].reshape(array.shape).copy())
        start += array.size
    return [Effect(*arrays[k : k + 3]) for k in range(0, len(arrays), 3)]
