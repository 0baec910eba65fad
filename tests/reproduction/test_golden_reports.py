"""Reports for made-up results, byte for byte as version 0.1 wrote them."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from reproduction import engine
from reproduction.documents import reproduce
from steelyard.lab.data.datasets import load_dataset
from steelyard.lab.results import Results

FOLDER = os.environ.get("STEELYARD_DATA")
GOLDEN = Path(__file__).parent / "golden"


def made_up(protocol, dataset, method, n_rows):
    """Return rows of ten folds, which depend on nothing but their names."""

    def rng(text):
        return np.random.default_rng([1, zlib.crc32(text.encode())])

    level = rng(dataset).uniform(0.6, 0.97)
    effect = rng(method).normal(0, 0.01)
    draw = rng(f"{protocol}|{dataset}|{method}")
    effect += draw.normal(0, 0.01)
    n_test = max(n_rows // 10, 1)
    scores = level + effect + draw.normal(0, 0.02, size=10)
    scores = np.clip(np.round(scores * n_test) / n_test, 0, 1)
    if draw.uniform() < 0.05:  # so that some methods are equal
        scores[:] = np.round(level * n_test) / n_test
    for fold, accuracy in enumerate(scores.tolist()):
        yield {
            "dataset": dataset,
            "method": method,
            "protocol": protocol,
            "repeat": 0,
            "fold": fold,
            "status": "ok",
            "accuracy": accuracy,
            "fit_seconds": float(draw.exponential()),
            "extra": {
                "alpha": float(draw.uniform()),
                "rounds": int(draw.integers(1, 9)),
            },
        }


def made_up_comparison(methods, datasets, *, protocol, repeats, folder, **options):
    """Stand for ``compare``."""
    assert repeats == 1
    protocols = [protocol] if isinstance(protocol, str) else protocol
    sizes = {}
    for data in datasets:
        if isinstance(data, str):
            data = load_dataset(data, folder)
        if isinstance(data, tuple):
            name, table, target = data
            sizes[name] = {"rows": len(table), "classes": len(np.unique(target))}
        else:
            sizes[data.name] = {"rows": len(data), "classes": len(data.classes)}
    settings = {"datasets": sizes, "methods": dict(methods), "protocols": protocols}
    rows = [
        row
        for name in protocols
        for dataset, size in sizes.items()
        for method in methods
        for row in made_up(name, dataset, method, size["rows"])
    ]
    return Results(rows, {**settings, "folds": 10, "repeats": repeats})


@pytest.mark.skipif(not FOLDER, reason="STEELYARD_DATA names no folder of data sets")
@pytest.mark.parametrize("name", ["rnb", "cwnb"])
def test_same_numbers_give_the_same_report(name, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "compare", made_up_comparison)
    reproduce(name, quick=True, out=tmp_path, progress=False)
    written = (tmp_path / f"{name}-quick.md").read_text(encoding="utf-8")
    assert written == (GOLDEN / f"{name}-quick.md").read_text(encoding="utf-8")
