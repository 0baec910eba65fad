"""Every method fits what it fitted.

Bits are compared where STEELYARD_EXACT is set, which is meant for the machine that
wrote the files; elsewhere logarithms and exponentials may differ in the last place.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy

_spec = importlib.util.spec_from_file_location(
    "golden", Path(__file__).with_name("golden.py")
)
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)

EXACT = bool(os.environ.get("STEELYARD_EXACT"))
RECORDED = json.loads(golden.FITS.read_text("utf-8"))


def assert_same(value, expected, rtol):
    if isinstance(expected, list) and expected and isinstance(expected[0], list):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            assert_same(one, other, rtol)
        return
    value, expected = np.array(value, dtype=float), np.array(expected, dtype=float)
    if EXACT:
        np.testing.assert_array_equal(value, expected)
    else:
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("case", sorted(RECORDED))
def test_every_method_fits_what_it_fitted(case):
    name, table = case.rsplit(" ", 1)
    clf = golden.fitted(golden.classifiers()[name], table)
    found = golden.record(clf, table)
    assert set(found["learned"]) >= set(RECORDED[case]["learned"])
    for key, value in RECORDED[case]["learned"].items():
        # Weights that hardly matter are only as sure as the solver's tolerance.
        assert_same(found["learned"][key], value, 1e-5)
    assert_same(found["proba"], RECORDED[case]["proba"], 1e-6)


def test_every_method_has_its_fits():
    names = {entry.acronym for entry in sy.methods()}
    assert {f"{name} numeric" for name in names} <= set(RECORDED)
