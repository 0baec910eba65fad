"""A graph of ONNX that grows: nodes and constants, each written once."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError

_ML = "ai.onnx.ml"


def load_onnx() -> Any:
    """Return the package onnx, or say how it is installed."""
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
    """Nodes and constants. What is asked for twice is written once.

    Parameters
    ----------
    taken : iterable of str
        Names that nothing else may have: those of the columns.
    prefix : str
        What names of nodes begin with.
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
        """Add a node whose output has a name of its own."""
        domain = _ML if op == "LabelEncoder" else None
        made = self.onnx.helper.make_node(
            op, list(inputs), [output], name=f"{output}_node", domain=domain, **given
        )
        self.nodes.append(made)

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Add a constant and return its name. Text has the type object."""
        array = np.asarray(values, dtype=dtype)
        told = repr(array.tolist()) if array.dtype == object else array.tobytes()
        key = (array.dtype.str, array.shape, told)
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
