"""Classifiers within pipelines that skl2onnx converts."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from steelyard.exceptions import ParameterError
from steelyard.export.inputs_onnx import Graph, Inputs, refuse
from steelyard.export.onnx import OPSETS, OnnxWriter
from steelyard.export.reading import plan_of

_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
}
_KINDS = {
    "FloatTensorType": "float",
    "DoubleTensorType": "double",
    "Int64TensorType": "int64",
    "BooleanTensorType": "bool",
    "StringTensorType": "string",
}


def register_skl2onnx() -> None:
    """Let skl2onnx convert the classifiers of this package, alone or in pipelines.

    The numbers that reach a classifier are those of the steps before it, in single
    precision unless the inputs are doubles; the classifier itself computes in doubles.
    Probabilities are of the type of the inputs.

    Examples
    --------
    >>> import numpy as np, steelyard as sy
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), sy.NaiveBayes()).fit(X, y)
    >>> register_skl2onnx()
    >>> made = to_onnx(pipeline, X[:1], options={"zipmap": False}, target_opset=18)
    >>> [output.name for output in made.graph.output]
    ['label', 'probabilities']
    """
    try:
        register = import_module("skl2onnx").update_registered_converter
    except ImportError as error:
        raise ParameterError(
            "Converting pipelines needs the package skl2onnx, which is not installed. "
            "Install it with `pip install skl2onnx`."
        ) from error
    from steelyard.classifiers.registry import methods

    for kind in {entry.estimator for entry in methods()}:
        name = f"Steelyard{kind.__name__}"
        register(kind, name, _set_shapes, _convert, options=_OPTIONS)


def _set_shapes(operator: Any) -> None:
    """Set the types and shapes of the outputs of a classifier."""
    types = import_module("skl2onnx.common.data_types")
    first, classes = operator.inputs[0], operator.raw_operator.classes_
    n = first.get_first_dimension()
    is_text = isinstance(classes.tolist()[0], str)
    label = types.StringTensorType if is_text else types.Int64TensorType
    operator.outputs[0].type = label([n])
    operator.outputs[1].type = types.guess_tensor_type(first.type)
    operator.outputs[1].type.shape = [n, len(classes)]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a classifier to those of a pipeline."""
    plan = plan_of(operator.raw_operator)
    given = [_KINDS.get(type(value.type).__name__, "") for value in operator.inputs]
    form = "matrix" if len(given) == 1 else "columns"
    refuse(plan, "", "columns", "double", contributions=False)
    for domain, opset in OPSETS:
        if container.target_opset_any_domain(domain) < opset:
            raise ParameterError(
                f"A classifier of steelyard needs operators of version {opset} of "
                f"{domain or 'ONNX'}: call to_onnx with target_opset={OPSETS[0][1]} or "
                "later."
            )
    kinds = given * (len(plan.columns) if form == "matrix" else 1)
    if len(kinds) != len(plan.columns):
        raise ParameterError(
            f"{plan.estimator} was fitted to {len(plan.columns)} columns and is given "
            f"{len(kinds)} inputs. Hand it one matrix, or an input for each column."
        )
    for column, kind in zip(plan.columns, kinds, strict=True):
        is_text = column.cells == "text"
        if column.cells != "nothing" and (not kind or is_text != (kind == "string")):
            wanted = "text" if column.cells == "text" else "numbers"
            raise ParameterError(
                f"Column {column.name!r} takes {wanted}, and the step before hands on "
                f"{kind or 'something else'}."
            )
    names = [value.onnx_name for value in operator.inputs]
    label, proba = (value.onnx_name for value in operator.outputs)
    graph = Graph([], scope.get_unique_variable_name("steelyard") + "_")
    inputs = Inputs(plan, graph, form, "double", "", names)
    inputs.kinds = kinds
    names_as_fitted = [f"{name}_as_fitted" for name in (label, proba)]
    OnnxWriter(plan, graph, inputs, names_as_fitted).write()
    types, real = graph.onnx.TensorProto, type(operator.outputs[1].type).__name__
    is_text = isinstance(plan.classes[0], str)
    graph.add(
        "Cast", names_as_fitted[:1], label, to=types.STRING if is_text else types.INT64
    )
    graph.add(
        "Cast", names_as_fitted[1:], proba, to=getattr(types, _KINDS[real].upper())
    )
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets.update(OPSETS)
