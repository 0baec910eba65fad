"""Labels: any column of classes becomes sorted classes and a number per row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import LARGEST_WEIGHT, MIN_WEIGHT
from steelyard._common.arrays import Floats
from steelyard._common.one_cell import by_spelling, one_spelling
from steelyard._common.text import listed
from steelyard._common.threads import pieces, run_blocks
from steelyard.exceptions import ParameterError, TableError, warn_user
from steelyard.table.columns import TableColumn
from steelyard.table.frames import as_series

# Whole numbers of more values than this are measurements, unless they run on.
MAX_NUMBERS = 20


def as_label_column(y: Any) -> Any:
    """Return labels as a NumPy array or a series of some frame library, 1D."""
    # Commands that fit nothing start without scikit-learn.
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils import column_or_1d

    if y is None:
        raise TableError(
            "The classifier requires y to be passed, but the target y is None. Pass "
            "the labels as fit(X, y)."
        )
    if isinstance(y, str):
        raise TableError(
            f"y is the text {y!r}, not labels. If it names a column of the table, "
            f"pass that column, X[{y!r}], and the table without it."
        )
    if hasattr(y, "toarray") and hasattr(y, "nnz"):
        raise TypeError("Labels in a sparse matrix are not supported; use .toarray().")
    if not isinstance(y, np.ndarray):
        native = nw.from_native(y, allow_series=True, pass_through=True)
        if isinstance(native, nw.Series):
            return y
        if isinstance(native, nw.DataFrame) and len(native.columns) == 1:
            return native[native.columns[0]].to_native()
        if isinstance(y, (list, tuple)):
            y = _array_from_list(y)
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        # The wording is scikit-learn's, whose own warning would point here.
        warn_user(
            "A column-vector y was passed when a 1d array was expected. Please change "
            "the shape of y to (n_samples, ), for example using ravel().",
            DataConversionWarning,
        )
    return column_or_1d(values)


def labels_of_rows(y: Any, n_rows: int) -> Any:
    """Return labels as ``as_label_column`` does, one for each row."""
    y = as_label_column(y)
    check_n_labels(len(y), n_rows)
    return y


def check_n_labels(n_labels: int, n_rows: int) -> None:
    """Refuse labels if their number is not that of the rows."""
    if n_labels != n_rows:
        raise TableError(
            "Found input variables with inconsistent numbers of samples: the table has "
            f"{n_rows} rows, but there are {n_labels} labels."
        )


def _array_from_list(y: Any) -> NDArray[Any]:
    """Make an array of a list without turning None, NaN or numbers into text."""
    kinds = {issubclass(kind, str) for kind in set(map(type, y))}
    try:
        return np.asarray(y, dtype=object if len(kinds) > 1 else None)
    except ValueError:
        raise TableError(
            "y should be a 1d array of labels, got lists of different lengths."
        ) from None


def encode_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Return the sorted classes and the position of every label among them.

    Labels that differ by blanks at their ends are one class, with a warning.
    """
    return joined_labels(as_label_column(y))[:2]


def joined_labels(
    values: Any, n_jobs: int | None = None, warns: bool = True
) -> tuple[NDArray[Any], NDArray[np.uint32], str]:
    """Return the same, and a clause on labels that became one class, if any.

    Labels are as ``as_label_column`` makes them.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.size:
        low, high = int(values.min()), int(values.max())
        if low >= 0 and high <= 255:
            return *_small_integers(values, low, high, n_jobs), ""
    column = as_series(values)
    factor = column.factor()
    held, n_missing = factor.held()
    if n_missing:
        first = int(np.argmax(factor.indices < 0))
        raise TableError(
            f"Input y contains NaN or another missing value in {n_missing} of "
            f"{len(factor.indices)} rows (first in row {first}). Drop those rows: "
            "a row without a label cannot be learned from."
        )
    if column.cells == "numbers" and any(isinstance(v, float) for v in factor.values):
        _check_whole(np.array(factor.values, dtype=np.float64))
    classes, joined = sorted(set(one_spelling(held))), ""
    codes = np.array(_places(factor.values, classes, 0), dtype=np.uint32)
    if others := sorted({*held}.difference(classes)):
        shown = listed(map(repr, others), 4)
        joined = f"labels that differ from others by blanks only: {shown}"
        if warns:
            text = f"y has {joined}. They are taken as one class each; strip "
            text += "the blanks (`y.str.strip()`) to compare with them."
            warn_user(text, UserWarning)
    return _as_classes(classes, values, column), codes[factor.indices], joined


def _places(
    labels: Sequence[Any], classes: Sequence[Any], unknown: int | None
) -> list[Any]:
    """Return positions of labels among classes; blanks at their ends do not matter."""
    allowed = {value: k for k, value in enumerate(classes)}
    plain = by_spelling(allowed)
    return [
        allowed.get(label, plain.get(str(label).strip(), unknown)) for label in labels
    ]


def _small_integers(
    values: NDArray[Any], low: int, high: int, n_jobs: int | None
) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Encode whole numbers from 0 to 255: the labels of most large sets."""
    present = np.zeros(256, dtype=bool)
    present[values[:4096]] = True
    skips = present.sum() != high - low + 1
    if skips:
        present = np.bincount(values.astype(np.uint8), minlength=256) > 0
        skips = present.sum() != high - low + 1
    codes = (np.cumsum(present) - 1).astype(np.uint32)
    labels = np.empty(len(values), dtype=np.uint32)

    def encode(rows: slice) -> None:
        if skips:
            labels[rows] = codes[values[rows]]
        else:  # a difference takes a tenth of the time of a look-up
            np.subtract(values[rows], low, out=labels[rows], casting="unsafe")

    run_blocks(encode, len(values), n_jobs)
    return np.flatnonzero(present).astype(values.dtype), labels


def known_labels(
    y: Any,
    classes: NDArray[Any],
    where: str = "y",
    advice: str = "Announce all classes at the first call.",
) -> NDArray[np.uint32]:
    """Return the position of every label among given classes."""
    present, codes, _ = joined_labels(as_label_column(y), warns=False)
    labels = present.tolist()
    places = _places(labels, classes.tolist(), None)
    if unknown := [v for v, k in zip(labels, places, strict=True) if k is None]:
        raise TableError(
            f"The target label(s) {unknown} in {where} do not exist in the initial "
            f"classes {classes.tolist()}. {advice}"
        )
    return np.array(places, dtype=np.uint32)[codes]


def _as_classes(classes: list[Any], values: Any, column: TableColumn) -> NDArray[Any]:
    if isinstance(values, np.ndarray):
        return np.array(classes, dtype=values.dtype)
    if column.holds_objects or column.cells == "text":
        return np.array(classes, dtype=object)
    is_float = nw.from_native(values, series_only=True).dtype.is_float()
    return np.array(classes, dtype=np.float64 if is_float else None)


def _check_whole(values: Floats) -> None:
    if np.isinf(values).any():
        raise TableError(
            "Input y contains infinity or a value too large for dtype('float64')."
        )
    if (values != np.floor(values)).any():
        raise TableError(
            "Unknown label type: continuous. A classifier needs classes, but y holds "
            "numbers with fractions; bin them, or use a regressor."
        )


# ---------------------------------------------------------------------------- classes


def refuse_no_labels(y: Any, owner: object) -> None:
    """Refuse a fit without labels, in scikit-learn's words."""
    if y is None:
        raise TableError(
            f"{type(owner).__name__} requires y to be passed, but the target y is "
            "None. Pass the labels as the second argument."
        )


def check_two_classes(classes: NDArray[Any]) -> None:
    """Refuse labels that are all the same."""
    if len(classes) < 2:
        raise TableError(
            "Classifier can't train when only one class is present: every label is "
            f"{classes.tolist()[0]!r}. At least two classes are needed."
        )


def is_measured(classes: Any) -> bool:
    """Whether classes are whole numbers that are measured: many, and with gaps.

    >>> is_measured(np.arange(40)), is_measured(np.arange(2700, 6300, 25))
    (False, True)
    """
    if classes.dtype.kind not in "iu" or len(classes) <= MAX_NUMBERS:
        return False
    return int(classes[-1]) - int(classes[0]) + 1 > len(classes)


def class_factors(class_weight: Any, classes: NDArray[Any], totals: Floats) -> Floats:
    r"""Return the factor on each class that ``class_weight`` asks for, shape (K,).

    "balanced" is :math:`U / (q N_c)` over the classes that have rows.
    """
    if isinstance(class_weight, Mapping):
        allowed = classes.tolist()
        if unknown := [c for c in class_weight if c not in allowed]:
            raise ParameterError(
                f"`class_weight` names {unknown}, which are not among the classes "
                f"{allowed}."
            )
        factors = np.array([float(class_weight.get(c, 1.0)) for c in allowed])
        if factors.max() > LARGEST_WEIGHT or factors.min() < MIN_WEIGHT:
            raise ParameterError(
                f"`class_weight` must hold numbers from {MIN_WEIGHT:g} to "
                f"{LARGEST_WEIGHT:g}. Got {class_weight!r}."
            )
        return factors
    present = totals > 0
    balanced = totals.sum() / (present.sum() * np.where(present, totals, 1.0))
    return np.where(present, balanced, 1.0)


def class_places(classes: NDArray[Any], among: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions of classes among others, which include them."""
    return np.array(_places(classes.tolist(), among.tolist(), None), dtype=np.intp)


def united_classes(of_models: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the classes of several models or chunks, sorted."""
    if not of_models:
        return np.empty(0)
    allowed = {**dict.fromkeys("iuf", "numbers"), **dict.fromkeys("UOST", "text")}
    kinds = {allowed.get(c.dtype.kind, c.dtype.kind) for c in of_models}
    if len(kinds) > 1:
        shown = " and ".join(str(classes.tolist()[:3]) for classes in of_models[:2])
        raise TableError(
            f"The classes are of different kinds: {shown}. Labels must be text "
            "throughout, or numbers throughout."
        )
    kept: list[Any] = []
    for classes in of_models:
        kept = one_spelling(classes.tolist(), kept)
    union, one_each = np.unique(np.concatenate(of_models)), set(kept)
    return union[[label in one_each for label in union.tolist()]]


def class_totals(
    labels: NDArray[Any], weights: Floats | None, n_classes: int
) -> Floats:
    """Total weight of each class, shape (K,)."""
    totals = np.zeros(n_classes)
    for rows in pieces(slice(0, len(labels))):
        u = None if weights is None else weights[rows]
        totals += np.bincount(labels[rows], u, minlength=n_classes)
    return totals
