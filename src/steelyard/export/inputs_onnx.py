"""ONNX graphs: nodes and constants without duplicates, and inputs for columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError
from steelyard.export.plan import (
    Column,
    Density,
    Grouping,
    Interaction,
    Plan,
    Sum,
    refuse_intervals,
    refuse_large_categories,
)

_ML = "ai.onnx.ml"


def load_onnx() -> Any:
    """Import the package onnx, or raise an error on how to install it."""
    try:
        onnx = import_module("onnx")
        import_module("onnx.checker")
    except ImportError as error:
        raise ParameterError(
            "Writing ONNX needs the package onnx, which is not installed. Install it "
            "with `pip install steelyard[onnx]`."
        ) from error
    return onnx


class Graph:
    """Nodes and constants; equal ones are written once.

    Parameters
    ----------
    taken : iterable of str
        Names that are in use: those of the columns.
    prefix : str
        Prefix of the names of nodes.
    """

    def __init__(self, taken: Iterable[str], prefix: str = "steelyard_") -> None:
        self.onnx = load_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[Any, str] = {}
        taken = list(taken)
        self._prefix = prefix
        while any(name.startswith(self._prefix) for name in taken):
            self._prefix += "_"

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        key = (op, inputs, repr(sorted(attributes.items())))
        if key not in self._known:
            name = self._known[key] = self._name(op)
            self.add(op, inputs, name, **attributes)
        return self._known[key]

    def add(self, op: str, inputs: Iterable[str], output: str, **given: Any) -> None:
        """Add a node with a given name of its output."""
        domain = _ML if op == "LabelEncoder" else None
        made = self.onnx.helper.make_node(
            op, list(inputs), [output], name=f"{output}_node", domain=domain, **given
        )
        self.nodes.append(made)

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Add a constant and return its name. Text has the type object."""
        array = np.asarray(values, dtype=dtype)
        content = repr(array.tolist()) if array.dtype == object else array.tobytes()
        key = (array.dtype.str, array.shape, content)
        if key not in self._known:
            name = self._known[key] = self._name("constant")
            self.constants.append(self._tensor(array, name))
        return self._known[key]

    def _tensor(self, array: NDArray[Any], name: str) -> Any:
        if array.dtype == object:
            text = [value.encode() for value in array.tolist()]
            kind = self.onnx.TensorProto.STRING
            return self.onnx.helper.make_tensor(name, kind, array.shape, text)
        return self.onnx.numpy_helper.from_array(array, name)

    def _name(self, op: str) -> str:
        return f"{self._prefix}{op}_{len(self._known)}"


FORMS = ("columns", "vectors", "matrix")
NUMBER_TYPES = {"double": np.float64, "float": np.float32, "int64": np.int64}

# None and NaN among text in Python are these to onnxruntime.
_NO_TEXT = ("None", "nan")

# A file holds at most 2 GB.
_MAX_NUMBERS = 200_000_000


class Inputs:
    """Inputs of a graph, and the cells of columns: of shape (n, 1), text or doubles.

    Parameters
    ----------
    plan : Plan
        What is written.
    graph : Graph
        Where nodes go.
    form : {"columns", "vectors", "matrix"}
        Inputs of shape (n, 1) or (n,) for each column, or one of shape (n, d).
    number_type : {"double", "float", "int64"}
        Type of numbers.
    missing_text : str
        Text that stands for a missing cell.
    names : sequence of str or None
        Names of the inputs; those of the columns by default.
    """

    def __init__(
        self,
        plan: Plan,
        graph: Graph,
        form: str,
        number_type: str,
        missing_text: str,
        names: Sequence[str] | None = None,
    ) -> None:
        self.plan, self.graph, self.form = plan, graph, form
        self.missing_text = missing_text
        self.names = list(names or input_names(plan, form))
        self.kinds = [input_type(column, number_type) for column in plan.columns]
        """Types of the cells of columns."""

    def declared(self) -> list[Any]:
        """Return the inputs of a model."""
        onnx, n_columns = self.graph.onnx, len(self.plan.columns)
        shape = {"columns": ["n", 1], "vectors": ["n"], "matrix": ["n", n_columns]}
        of = [0] if self.form == "matrix" else entering(self.plan)
        types = {j: getattr(onnx.TensorProto, self.kinds[j].upper()) for j in of}
        return [
            onnx.helper.make_tensor_value_info(self.names[j], kind, shape[self.form])
            for j, kind in types.items()
        ]

    def cells(self, column: int) -> str:
        """Return the cells of a column, of shape (n, 1)."""
        node, constant = self.graph.node, self.graph.constant
        name = self.names[0 if self.form == "matrix" else column]
        if self.form == "vectors":
            name = node("Unsqueeze", name, constant([1], np.int64))
        elif self.form == "matrix" and len(self.plan.columns) > 1:
            name = node("Gather", name, constant([column], np.int64), axis=1)
        if self.kinds[column] in ("string", "double"):
            return name
        return node("Cast", name, to=self.graph.onnx.TensorProto.DOUBLE)

    def keys(self, values: Sequence[str], places: Sequence[int]) -> dict[str, Any]:
        """Return how text is encoded: values, then missing cells in several forms."""
        codes = dict(zip([*values, self.missing_text], places, strict=True))
        codes = {**codes, **{gap: codes.get(gap, places[-1]) for gap in _NO_TEXT}}
        return {
            "keys_strings": list(codes),
            "values_int64s": list(codes.values()),
            "default_int64": 0,
        }


def input_type(column: Column, number_type: str = "double") -> str:
    """Return the type of the input of a column."""
    return "string" if column.cells == "text" else number_type


def entering(plan: Plan) -> list[int]:
    """Return the columns that are inputs, at least one.

    Columns without cells at fit are not, nor are identifiers.
    """
    with_cells = {
        j for j, column in enumerate(plan.columns) if column.cells != "nothing"
    }
    return sorted({*with_cells, *plan.used()}) or [0]


def missing_texts(plan: Plan, missing_text: str = "") -> dict[str, list[str]]:
    """Return texts taken for missing cells, by column, if they change predictions.

    onnxruntime turns None and NaN into such texts, so that cells with these texts look
    missing. Mostly that is harmless: missing and unseen values both add nothing.
    """
    texts: dict[str, list[str]] = {}
    for term in plan.terms():
        for cell in term.sides if isinstance(term, Interaction) else (term,):
            column = plan.columns[cell.column]
            if column.cells != "text" or isinstance(cell, Density):
                continue
            counts = cell.missing if isinstance(cell, Grouping) else any(cell.missing)
            words = [w for w in (missing_text, *_NO_TEXT) if w not in column.values]
            if counts and words:
                texts[column.name] = words
    return texts


def input_names(plan: Plan, form: str) -> list[str]:
    """Return the names of the inputs."""
    return ["X"] if form == "matrix" else [column.name for column in plan.columns]


def refuse(
    plan: Plan, missing_text: str, form: str, number_type: str, contributions: bool
) -> None:
    """Raise an error for models and options that ONNX does not support."""
    refuse_intervals(plan, "ONNX")
    refuse_large_categories(plan, "ONNX")
    _refuse_options(plan, missing_text, form, number_type)
    if contributions and not isinstance(plan.root, Sum):
        raise ParameterError(
            f"{plan.estimator} is not one sum here, and has no contributions. Leave "
            "the option out, or use a method that is one sum."
        )
    if plan.n_numbers() > _MAX_NUMBERS:
        raise ParameterError(
            f"The model has {plan.n_numbers():,} numbers; a file of ONNX holds at most "
            "2 GB. Use `save`."
        )
    for text in plan.texts():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ParameterError(
                f"{text!r} holds a character that text in ONNX cannot hold. Replace it "
                "in the table, and fit again."
            ) from None
    for column in plan.columns:
        if not column.name:
            raise ParameterError("An input in ONNX has a name: name the column ''.")
        if missing_text in column.values:
            raise ParameterError(
                f"{missing_text!r} is a value of column {column.name!r}, and would "
                "stand for missing cells as well: text in ONNX cannot be null. Set "
                "missing_text to text that is not a value."
            )


def _refuse_options(plan: Plan, missing_text: str, form: str, kind: str) -> None:
    if not isinstance(missing_text, str):
        raise ParameterError(f"missing_text must be text, got {missing_text!r}.")
    for name, given, allowed in (
        ("inputs", form, FORMS),
        ("number_type", kind, NUMBER_TYPES),
    ):
        if given not in allowed:
            raise ParameterError(
                f"{name} must be one of {', '.join(allowed)}, got {given!r}."
                f"{did_you_mean(str(given), allowed)}"
            )
    text = [column.name for column in plan.columns if column.cells == "text"]
    if form == "matrix" and 0 < len(text) < len(plan.columns):
        raise ParameterError(
            f"Column {text[0]!r} holds text and others do not: a matrix has one type. "
            "Use inputs='columns'."
        )
