"""A device gives what the CPU gives: counts, passes, weights, probabilities.

Runs on a GPU, and in numba's simulator of one with few rows (tests/kernels).
"""

import json
import os

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import steelyard as sy
from steelyard.fitting.problem import build_problem
from steelyard.losses import LOSSES, BrierLoss, resolve_loss

IS_SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not sy.has_device("cuda"), reason="no GPU"),
    # Sums of two 32-bit halves overflow on purpose, which scalars of NumPy tell.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
    # Of numba-cuda and CuPy about themselves.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
real = pytest.mark.skipif(IS_SIMULATED, reason="arrays of other libraries, or too long")


def table(n_classes, n_rows=None, is_wide=False, seed=0):
    """Return text whose first columns tell of the class, and the classes."""
    rng = np.random.default_rng(seed)
    n_rows = n_rows or (301 if IS_SIMULATED else 20_001)
    y = rng.integers(0, n_classes, n_rows)
    X = rng.integers(0, 6, (n_rows, 4))
    X[:, 0] = np.where(rng.random(n_rows) < 0.4, y % 6, X[:, 0])
    X[:, 1] = np.where(rng.random(n_rows) < 0.3, (y + 1) % 6, X[:, 1])
    if is_wide:
        X = np.column_stack([X, rng.integers(0, 300, n_rows)])
    cells = X.astype("<U3").astype(object)
    cells[rng.random(X.shape) < 0.02] = None
    return cells, y


def row_weights(n_rows, whole):
    rng = np.random.default_rng(5)
    return rng.integers(1, 4, n_rows).astype(float) if whole else 2 * rng.random(n_rows)


def objectives(clf, X, y, weights=None):
    """Return the objective of a fit on the CPU and on the device."""
    found = []
    for device in ("cpu", "cuda"):
        recipe = clf.set_params(device=device)._recipe()
        training = recipe.encode(X, y, weights, clf)
        found.append(build_problem(recipe, training).objective)
    return found


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 26])
def test_counts_equal_those_of_the_cpu(n_classes, is_wide):
    X, y = table(n_classes, is_wide=is_wide)
    for weights in (None, row_weights(len(y), whole=True)):
        cpu = sy.NaiveBayes().fit(X, y, weights).counts_
        gpu = sy.NaiveBayes(device="cuda").fit(X, y, weights).counts_
        assert np.array_equal(cpu.by_code, gpu.by_code)
        assert np.array_equal(cpu.by_class, gpu.by_class)


def test_counts_of_weights_with_fractions_agree_to_rounding():
    X, y = table(3)
    weights = row_weights(len(y), whole=False)
    cpu = sy.NaiveBayes().fit(X, y, weights).counts_
    gpu = sy.NaiveBayes(device="cuda").fit(X, y, weights).counts_
    assert_allclose(gpu.by_code, cpu.by_code, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("n_classes", "is_wide"),
    [(2, False), (2, True), (3, False), (10, True), (26, False)],
)
def test_a_pass_agrees_for_every_compiled_loss(n_classes, is_wide):
    n_rows = 90 if IS_SIMULATED and n_classes > 3 else None
    X, y = table(n_classes, n_rows, is_wide=is_wide)
    weights = row_weights(len(y), whole=False) if is_wide else None
    cpu, gpu = objectives(sy.WeightedNB(weighting="value"), X, y, weights)
    w = np.random.default_rng(1).random(cpu.size)
    effect = cpu.weighting.apply(w, cpu.evidence)
    for loss in (*map(resolve_loss, LOSSES), BrierLoss(published_gradient=True)):
        value, slope = cpu.rows.evaluate(loss, effect)
        found, gradient = gpu.rows.evaluate(loss, effect)
        size = np.abs(slope.table).max()
        assert_allclose(found, value, rtol=1e-12)
        assert_allclose(gradient.table, slope.table, rtol=0, atol=1e-10 * size)
        assert_allclose(gradient.base, slope.base, rtol=0, atol=1e-10 * size)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_pass_agrees_for_the_mixture(n_classes):
    X, y = table(n_classes)
    cpu, gpu = objectives(sy.RegularizedNB(), X, y)
    w = np.random.default_rng(1).random(cpu.size)
    value, slope = cpu(w)
    found, gradient = gpu(w)
    assert_allclose(found, value, rtol=1e-12)
    assert_allclose(gradient, slope, rtol=0, atol=1e-9 * np.abs(slope).max())


def test_two_passes_have_the_same_bits():
    for n_classes in (2, 3):
        X, y = table(n_classes)
        weights = row_weights(len(y), whole=False)
        _, gpu = objectives(sy.WeightedNB(weighting="value"), X, y, weights)
        w = np.full(gpu.size, 0.7)
        (a, slope_a), (b, slope_b) = gpu(w), gpu(w)
        assert a == b and np.array_equal(slope_a, slope_b)


def test_rows_taken_for_second_derivatives_are_those_of_the_cpu():
    X, y = table(3, is_wide=True)
    weights = row_weights(len(y), whole=False)
    cpu, gpu = objectives(sy.WeightedNB(), X, y, weights)
    for picked in (None, np.arange(7, 90, 3)):
        a, b = cpu.rows.take(picked), gpu.rows.take(picked)
        assert np.array_equal(a.table_rows(), b.table_rows())
        assert np.array_equal(a.y, b.y) and np.array_equal(a.weights, b.weights)


@pytest.mark.parametrize("weighting", ["attribute", "class-attribute"])
def test_learned_weights_agree(weighting):
    X, y = table(2, n_rows=150 if IS_SIMULATED else None)
    clf = sy.WeightedNB(weighting=weighting, lam=0.1)
    cpu, gpu = (
        clf.fit(X, y),
        sy.WeightedNB(weighting=weighting, lam=0.1, device="cuda").fit(X, y),
    )
    assert_allclose(gpu.objective_, cpu.objective_, rtol=1e-10)
    assert_allclose(gpu.predict_proba(X), cpu.predict_proba(X), atol=1e-9)


def test_a_model_of_the_device_loads_and_predicts(tmp_path):
    X, y = table(3)
    clf = sy.NaiveBayes(device="cuda").fit(X, y)
    clf.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())
    loaded = sy.load(tmp_path / "model.json")
    assert loaded.device == "cuda"
    expected = sy.NaiveBayes().fit(X, y).predict_proba(X)
    assert np.array_equal(loaded.predict_proba(X), expected)


def test_probabilities_of_codes_on_the_device_agree():
    from steelyard.gpu.arrays import proba_on_device
    from steelyard.gpu.device_codes import codes_to_device

    for n_classes, is_wide in ((2, False), (2, True), (3, True), (26, False)):
        X, y = table(n_classes, is_wide=is_wide)
        clf = sy.NaiveBayes().fit(X, y)
        codes = clf.encoder_.encode(_as_table(X))
        found = proba_on_device(clf.model_, codes_to_device(codes)).copy_to_host()
        assert_allclose(found, clf.predict_proba(X), rtol=0, atol=1e-12)


def _as_table(X):
    from steelyard.table.frames import as_table

    return as_table(X)


# ---------------------------------------------------------------------------- numbers


def numbers(n_classes, n_rows=None, with_text=True):
    """Return numbers that tell of the class, some missing, with columns of text."""
    X, y = table(n_classes, n_rows or (90 if IS_SIMULATED else None))
    rng = np.random.default_rng(2)
    own = rng.normal(size=(len(y), 3)) * (1.0, 30.0, 1e-3) + (0.0, 1e6, 5.0)
    own[:, 0] += 0.7 * y
    own[:, 1] *= 1.0 + 2e-5 * (y % 2)
    own[rng.random(own.shape) < 0.05] = np.nan
    if not with_text:
        return own, y
    frame = pd.DataFrame(own, columns=list("abc"))
    return frame.assign(**{f"t{j}": X[:, j] for j in range(2)}), y


@pytest.mark.parametrize(("n_classes", "with_text"), [(2, False), (3, True)])
def test_moments_by_class_agree(n_classes, with_text):
    X, y = numbers(n_classes, with_text=with_text)
    for weights in (None, row_weights(len(y), whole=False))[with_text:]:
        settings = {"numeric": "gaussian"}
        cpu = sy.NaiveBayes(**settings).fit(X, y, weights).counts_
        gpu = sy.NaiveBayes(**settings, device="cuda").fit(X, y, weights).counts_
        again = sy.NaiveBayes(**settings, device="cuda").fit(X, y, weights).counts_
        for name in ("weight", "mean", "squares"):
            found = getattr(gpu.moments, name)
            assert_allclose(found, getattr(cpu.moments, name), rtol=1e-11)
            assert np.array_equal(found, getattr(again.moments, name))
        assert_allclose(gpu.by_class, cpu.by_class, rtol=1e-13)
        assert_allclose(gpu.by_code, cpu.by_code, rtol=1e-13)


@pytest.mark.parametrize(
    ("numeric", "n_classes"),
    [
        ("gaussian", 2),
        ("gaussian-weka", 3),
        ("gaussian-relative", 3),
        ("linear", 2),
        ("linear", 3),
    ],
)
def test_a_pass_over_numbers_agrees(numeric, n_classes):
    X, y = numbers(n_classes)
    weights = row_weights(len(y), whole=False) if n_classes == 3 else None
    clf = sy.WeightedNB(weighting="class-attribute", numeric=numeric)
    cpu, gpu = objectives(clf, X, y, weights)
    w = np.random.default_rng(1).random(cpu.size)
    value, slope = cpu(w)
    found, gradient = gpu(w)
    assert_allclose(found, value, rtol=1e-11)
    assert_allclose(gradient, slope, rtol=0, atol=1e-9 * np.abs(slope).max())
    assert np.array_equal(gradient, gpu(w)[1])


def test_a_mixture_over_numbers_agrees():
    X, y = numbers(3)
    cpu, gpu = objectives(sy.RegularizedNB(numeric="gaussian"), X, y)
    w = np.random.default_rng(1).random(cpu.size)
    value, slope = cpu(w)
    found, gradient = gpu(w)
    assert_allclose(found, value, rtol=1e-11)
    assert_allclose(gradient, slope, rtol=0, atol=1e-9 * np.abs(slope).max())


def test_rows_with_numbers_taken_for_second_derivatives_are_those_of_the_cpu():
    X, y = numbers(3)
    cpu, gpu = objectives(sy.WeightedNB(numeric="gaussian"), X, y)
    for picked in (None, np.arange(7, 90, 3)):
        a, b = cpu.rows.take(picked), gpu.rows.take(picked)
        for (_, one), (_, other) in zip(
            a.densities(slice(None)), b.densities(slice(None)), strict=True
        ):
            assert_allclose(other, one, rtol=1e-9, atol=1e-9)


def test_probabilities_of_numbers_on_the_device_agree():
    from steelyard.gpu.arrays import proba_on_device
    from steelyard.gpu.device_codes import codes_to_device

    # Intervals are differences of two tails, which lose digits on both.
    for clf, n_classes, with_text, atol in (
        (sy.WeightedNB(numeric="gaussian"), 2, True, 1e-12),
        (sy.NaiveBayes(numeric="gaussian-weka"), 3, False, 1e-9),
        (
            sy.ShrinkageNB(strength=(10.0, 40.0, 10.0), interactions=None),
            3,
            True,
            1e-12,
        ),
    ):
        X, y = numbers(n_classes, with_text=with_text)
        clf.fit(X, y)
        codes = clf.encoder_.encode(_as_table(X))
        found = proba_on_device(clf.model_, codes_to_device(codes)).copy_to_host()
        assert_allclose(found, clf.model_.summed.proba(codes), rtol=0, atol=atol)


def test_the_default_fits_numbers_as_the_cpu_does():
    X, y = numbers(2, n_rows=60 if IS_SIMULATED else 5_000)
    settings = {"strength": (10.0, 40.0, 10.0), "interactions": None}
    settings["tol"] = 1e-2 if IS_SIMULATED else 1e-10
    cpu = sy.ShrinkageNB(**settings).fit(X, y)
    gpu = sy.ShrinkageNB(**settings, device="cuda").fit(X, y)
    assert_allclose(gpu.predict_proba(X), cpu.predict_proba(X), rtol=0, atol=1e-7)


@real
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_default_without_settings_fits_numbers(n_classes):
    X, y = numbers(n_classes, n_rows=5_000)
    cpu, gpu = sy.ShrinkageNB().fit(X, y), sy.ShrinkageNB(device="cuda").fit(X, y)
    assert_allclose(gpu.predict_proba(X), cpu.predict_proba(X), rtol=0, atol=1e-4)


# ----------------------------------------------------------------------------- refusals


def test_a_table_that_does_not_fit_is_refused_with_the_size_it_would_need(monkeypatch):
    from numba import cuda

    X, y = table(2)
    context = type(cuda.current_context())
    monkeypatch.setattr(context, "get_memory_info", lambda self: (4000, 8000))
    # Four columns, joint codes of as many at most, and 20 bytes beside.
    size = f"{len(y) * 28 / 1e9:.3g} GB there, of which 4e-06 GB are free"
    with pytest.raises(ValueError, match=f"needs about {size}"):
        sy.NaiveBayes(device="cuda").fit(X, y)
    with pytest.warns(UserWarning, match=f"uses the CPU.*needs about {size}"):
        sy.NaiveBayes(device="auto").fit(X, y)


@real
def test_an_array_on_the_device_is_refused_with_the_size_of_its_joint_codes(
    monkeypatch,
):
    from numba import cuda

    X, y = whole_numbers(2, np.uint8)
    X, y = X[:160], y[:160]
    there = cuda.to_device(np.asfortranarray(X))
    context = type(cuda.current_context())
    monkeypatch.setattr(context, "get_memory_info", lambda self: (10, 8000))
    settings = {"categorical_features": "all", "device": "cuda"}
    with pytest.raises(ValueError, match=r"needs about 4\.16e-06 GB there"):
        sy.WeightedNB(**settings).fit(there, y)


def test_more_classes_than_a_byte_names_are_refused_in_words():
    y = np.repeat(np.arange(260), 2)
    X = (y % 7).astype(str).reshape(-1, 1)
    with pytest.raises(ValueError, match="260 classes, more than 256"):
        sy.NaiveBayes(device="cuda").fit(X, y)
    with pytest.warns(UserWarning, match="uses the CPU"):
        sy.NaiveBayes(device="auto").fit(X, y)


# ------------------------------------------------------------ arrays of other libraries


def whole_numbers(n_classes, dtype):
    rng = np.random.default_rng(3)
    y = rng.integers(0, n_classes, 20_000)
    X = rng.integers(0, 7, (len(y), 6))
    X[:, 0] = np.where(rng.random(len(y)) < 0.4, y % 7, X[:, 0])
    return X.astype(dtype), y


class Simulated:
    """An array of a library that the simulator does not know."""

    def __init__(self, values):
        from numba import cuda

        self.there = cuda.to_device(values)
        self.__cuda_array_interface__ = {"version": 3}

    def __len__(self):
        return self.there.shape[0]


@pytest.fixture
def there(monkeypatch):
    """Return a function that puts an array on the simulated device."""
    from numba import cuda

    if not IS_SIMULATED:
        pytest.skip("libraries have arrays of their own")

    def known(array):
        return array.there if isinstance(array, Simulated) else array

    monkeypatch.setattr(cuda, "as_cuda_array", known, raising=False)
    return Simulated


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_an_array_on_a_simulated_device_stays_there(there, class_weight):
    X, y = whole_numbers(3, np.int64)
    X, y = X[:160], y[:160]
    settings = {"categorical_features": "all", "class_weight": class_weight}
    cpu = sy.NaiveBayes(**settings).fit(X, y)
    gpu = sy.NaiveBayes(**settings, device="cuda").fit(there(X), y)
    assert np.array_equal(cpu.counts_.by_code, gpu.counts_.by_code)
    proba = gpu.predict_proba(there(X)).copy_to_host()
    assert_allclose(proba, cpu.predict_proba(X), rtol=0, atol=1e-12)
    assert np.array_equal(gpu.predict(there(X)), cpu.predict(X))


def test_what_an_array_on_a_device_cannot_do_is_refused_in_words(there):
    X, y = whole_numbers(2, np.uint8)
    X, y = there(X[:160]), y[:160]
    with pytest.raises(ValueError, match="memory of a GPU, and device='cpu'"):
        sy.NaiveBayes(categorical_features="all").fit(X, y)
    with pytest.raises(ValueError, match="Set categorical_features='all'"):
        sy.NaiveBayes(device="cuda").fit(X, y)
    clf = sy.NaiveBayes(categorical_features="all", device="cuda").fit(X, y)
    for method in ("predict_log_proba", "predict_joint_log_proba"):
        with pytest.raises(ValueError, match=f"{method} of an array .* not there yet"):
            getattr(clf, method)(X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cells_that_are_averaged_over_are_refused_on_the_device(there, n_classes):
    X, y = whole_numbers(n_classes, np.int64)
    X, y = X[:160], y[:160]
    settings = {"strength": (1.0, 4.0, 1.0), "interactions": None}
    clf = sy.ShrinkageNB(categorical_features="all", **settings).fit(X, y)
    proba = clf.predict_proba(there(X)).copy_to_host()
    assert_allclose(proba, clf.predict_proba(X), rtol=0, atol=1e-12)
    new = X.copy()
    new[5, 2] = X[:, 2].max() + 3
    with pytest.raises(ValueError, match=r"Column 2 has the value .* unknown='sum'"):
        clf.predict_proba(there(new))
    clf.set_params(unknown="sum")
    proba = clf.predict_proba(there(new)).copy_to_host()
    assert_allclose(proba, clf.predict_proba(new), rtol=0, atol=1e-12)


@real
@pytest.mark.parametrize("library", ["cupy", "torch"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_on_the_device_give_the_model_of_the_host(library, dtype, order):
    module = pytest.importorskip(library)
    X, y = whole_numbers(3, dtype)
    settings = {"categorical_features": "all", "lam": 0.1}
    cpu = sy.WeightedNB(**settings).fit(X, y)
    if library == "cupy":
        there, labels = module.asarray(X, order=order), module.asarray(y)
    else:
        there, labels = module.as_tensor(X).cuda(), module.as_tensor(y).cuda()
        there = there.t().contiguous().t() if order == "F" else there
    gpu = sy.WeightedNB(**settings, device="cuda").fit(there, labels)
    assert np.array_equal(cpu.counts_.by_code, gpu.counts_.by_code)
    assert_allclose(gpu.attribute_weights_, cpu.attribute_weights_, rtol=0, atol=1e-9)
    proba = gpu.predict_proba(there)
    assert type(proba) is type(there)
    proba = proba.get() if library == "cupy" else proba.cpu().numpy()
    assert_allclose(proba, gpu.predict_proba(X), rtol=0, atol=1e-12)
    assert np.array_equal(gpu.predict(there), gpu.predict(X))


@real
@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_never_seen_say_nothing_on_the_device(n_classes):
    cupy = pytest.importorskip("cupy")
    X, y = whole_numbers(n_classes, np.uint8)
    settings = {"categorical_features": "all", "device": "cuda"}
    clf = sy.NaiveBayes(**settings).fit(cupy.asarray(X), cupy.asarray(y))
    new = X.copy()
    new[::3, 2] = 200
    found = clf.predict_proba(cupy.asarray(new)).get()
    assert_allclose(found, clf.predict_proba(new), rtol=0, atol=1e-12)


@real
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_weights_of_many_rows_agree_to_nine_digits(n_classes):
    X, y = table(n_classes, n_rows=300_000)
    settings = {"weighting": "class-attribute", "lam": 1.0, "tol": 1e-12}
    cpu = sy.WeightedNB(**settings).fit(X, y)
    gpu = sy.WeightedNB(**settings, device="cuda").fit(X, y)
    again = sy.WeightedNB(**settings, device="cuda").fit(X, y)
    found = gpu.class_attribute_weights_
    assert_allclose(found, cpu.class_attribute_weights_, rtol=0, atol=1e-9)
    assert np.array_equal(found, again.class_attribute_weights_)
    assert_allclose(gpu.predict_proba(X[:1000]), cpu.predict_proba(X[:1000]), atol=1e-9)
