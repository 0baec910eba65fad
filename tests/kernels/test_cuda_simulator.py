"""The kernels of a GPU, run by numba's simulator of one."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    numba.__version__.startswith("0.60."),
    reason="the simulator of numba 0.60 does not know all that the kernels use",
)
@pytest.mark.slow
def test_a_simulated_gpu_gives_what_the_cpu_gives():
    # numba reads the variable when it is imported: the tests need their own process.
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    pytest_quiet = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*pytest_quiet, "tests/gpu"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_no_library_of_a_gpu_is_loaded_without_one():
    code = (
        "import sys, numpy as np, steelyard as sy\n"
        "X = np.array([['a'], ['b']] * 10)\n"
        "sy.WeightedNB().fit(X, [0, 1] * 10).predict(X)\n"
        "libraries = {'numba.cuda', 'cupy', 'torch', 'steelyard.gpu'}\n"
        "loaded = libraries & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_gpu_that_is_not_there_is_an_error_that_says_what_is_missing():
    import numpy as np

    import steelyard as sy

    if sy.has_device("cuda"):
        pytest.skip("there is one")
    X, y = np.array([["a"], ["b"]] * 10), [0, 1] * 10
    with pytest.raises(ValueError, match="device='cuda' cannot be used"):
        sy.NaiveBayes(device="cuda").fit(X, y)
    with pytest.raises(ValueError, match="'cpu', 'cuda'"):
        sy.NaiveBayes(device="gpu").fit(X, y)
    loads = sy.NaiveBayes(device="auto")
    with pytest.warns(UserWarning, match="uses the CPU"):
        from steelyard.gpu.devices import _warn_once

        _warn_once.cache_clear()
        loads.fit(X, y)
    loads.fit(X, y)  # which does not say so again: a warning would be an error
