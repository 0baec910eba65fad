"""Write a plan as an ONNX model, in doubles throughout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._common.loading import import_optional
from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError
from steelyard.export.plan import (
    UNKNOWN_CELLS,
    Bins,
    Density,
    Grouping,
    Interaction,
    Lookup,
    Mixture,
    Node,
    Pairs,
    Plan,
    Sum,
    Term,
    Vote,
    about,
    library_version,
    refuse_intervals,
    refuse_large_categories,
)
from steelyard.export.reading import plan_of

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

_ML = "ai.onnx.ml"
_OPSETS = (("", 18), (_ML, 2))
_IR_VERSION = 8  # of the same age as the operators

# Below all scores that differ, and finite: inf - inf is not a number.
_NEVER = -1e300
_MAX_DISTANCE = 1e100

# Up to this many values, a number is compared with all values of a category.
_MAX_COMPARED = 1000
_WHOLE = 2**53

# None and NaN among text in Python are these to onnxruntime.
_NO_TEXT = ("None", "nan")

# A file has at most 2 GB.
_MAX_NUMBERS = 200_000_000

_FORMS = ("columns", "matrix")


def to_onnx(
    clf: BaseNB,
    missing_text: str = "",
    inputs: str = "columns",
    contributions: bool = False,
) -> Any:
    """Return a classifier as an ONNX model.

    It has an input of shape (n, 1) for every column, with its name: text as ``string``,
    numbers and booleans as ``double``, NaN for missing ones. Columns that the fit left
    out, such as identifiers, are no inputs. The outputs are ``label`` of shape (n,) and
    ``probabilities`` of shape (n, K). Models that average over unknown cells have
    ``unknown_cells`` of shape (n,) as well: rows in which it is not 0 are answered as
    with ``unknown="sum"``.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    missing_text : str, default=""
        Text that means a missing cell: text in ONNX cannot be null. None and NaN
        among text, which onnxruntime takes for the texts None and nan, are missing too,
        unless these are values of the column: a cell that holds such text is missing
        in ONNX, and a value never seen to ``predict``.
    inputs : {"columns", "matrix"}, default="columns"
        An input of shape (n, 1) for every column, or one input ``X`` of shape (n, d),
        if all columns are numbers or all are text.
    contributions : bool, default=False
        Whether there is an output ``contributions`` of shape (n, attributes, K): what
        each column, or interaction, adds to the scores, relative to the average
        training row.

    Returns
    -------
    onnx.ModelProto
        A model that was checked by ``onnx.checker``.

    Examples
    --------
    >>> import steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 5, ["no", "yes"] * 5)
    >>> [value.name for value in to_onnx(clf).graph.output]
    ['label', 'probabilities']
    """
    plan = plan_of(clf)
    _refuse(plan, missing_text, inputs, contributions)
    writer = _OnnxWriter(plan, missing_text, inputs == "matrix", contributions)
    model = writer.model()
    writer.graph.onnx.checker.check_model(model, full_check=True)
    return model


def missing_texts(plan: Plan, missing_text: str = "") -> dict[str, list[str]]:
    """Return texts taken for missing cells, by column, if they change predictions.

    onnxruntime turns None and NaN into such texts, so that cells with these texts look
    missing. Mostly that is harmless: missing and unseen values both add nothing.
    """
    texts: dict[str, list[str]] = {}
    counted = plan.counted()
    for term in plan.terms():
        for cell in term.sides if isinstance(term, Interaction) else (term,):
            column = plan.columns[cell.column]
            if column.cells != "text" or isinstance(cell, Density):
                continue
            counts = cell.missing if isinstance(cell, Grouping) else any(cell.missing)
            # A value never seen is counted, and such a missing cell is not.
            counts = counts or not counted.get(cell.column, True)
            words = [w for w in (missing_text, *_NO_TEXT) if w not in column.values]
            if counts and words:
                texts[column.name] = words
    return texts


def input_columns(plan: Plan) -> list[int]:
    """Return the columns that are inputs, at least one.

    Columns without cells at fit are not, nor are identifiers.
    """
    with_cells = {
        j for j, column in enumerate(plan.columns) if column.cells != "nothing"
    }
    return sorted({*with_cells, *plan.used()}) or [0]


def _refuse(plan: Plan, missing_text: str, form: str, contributions: bool) -> None:
    """Raise an error for models and options that ONNX does not support."""
    refuse_intervals(plan, "ONNX")
    refuse_large_categories(plan, "ONNX")
    if not isinstance(missing_text, str):
        raise ParameterError(f"missing_text must be text, got {missing_text!r}.")
    if form not in _FORMS:
        raise ParameterError(
            f"inputs must be one of {', '.join(_FORMS)}, got {form!r}."
            f"{did_you_mean(str(form), _FORMS)}"
        )
    text = [column.name for column in plan.columns if column.cells == "text"]
    if form == "matrix" and 0 < len(text) < len(plan.columns):
        raise ParameterError(
            f"Column {text[0]!r} holds text and others do not: a matrix has one type. "
            "Use inputs='columns'."
        )
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
    for column in plan.columns:
        if not column.name:
            raise ParameterError("An input in ONNX has a name: name the column ''.")
        if missing_text in column.values:
            raise ParameterError(
                f"{missing_text!r} is a value of column {column.name!r}, and would "
                "stand for missing cells as well: text in ONNX cannot be null. Set "
                "missing_text to text that is not a value."
            )
    for name in plan.texts():
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise ParameterError(
                f"{name!r} holds a character that text in ONNX cannot hold. Replace it "
                "in the table, and fit again."
            ) from None


class _Graph:
    """Nodes and constants; equal ones are written once, and no name is taken."""

    def __init__(self, taken: Sequence[str]) -> None:
        self.onnx = import_optional("onnx", "ONNX files need", "steelyard[onnx]")
        import_module("onnx.checker")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names: dict[Any, str] = {}
        self._prefix = "steelyard_"
        while any(name.startswith(self._prefix) for name in taken):
            self._prefix += "_"

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        key = (op, inputs, repr(sorted(attributes.items())))
        if key not in self._names:
            name = self._names[key] = self._name(op)
            self.add(op, inputs, name, **attributes)
        return self._names[key]

    def add(self, op: str, inputs: Iterable[str], output: str, **given: Any) -> None:
        """Add a node whose output has a given name."""
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
        if key not in self._names:
            name = self._names[key] = self._name("constant")
            if array.dtype == object:
                text = [value.encode() for value in array.tolist()]
                kind = self.onnx.TensorProto.STRING
                made = self.onnx.helper.make_tensor(name, kind, array.shape, text)
            else:
                made = self.onnx.numpy_helper.from_array(array, name)
            self.constants.append(made)
        return self._names[key]

    def _name(self, op: str) -> str:
        return f"{self._prefix}{op}_{len(self._names)}"


class _OnnxWriter:
    """Writes a plan as nodes of a graph: a label, probabilities and further outputs."""

    def __init__(
        self, plan: Plan, missing_text: str, is_matrix: bool, contributions: bool
    ) -> None:
        self.plan, self.missing_text, self.is_matrix = plan, missing_text, is_matrix
        inputs = ["X"] if is_matrix else [column.name for column in plan.columns]
        names = ["label", "probabilities"]
        names += [UNKNOWN_CELLS] if plan.counted() else []
        names += ["contributions"] if contributions else []
        while {*inputs} & {*names}:
            names = [f"{name}_" for name in names]
        self.names, self.contributions = names, contributions
        self.graph = _Graph([*inputs, *self.names])
        self.node, self.constant = self.graph.node, self.graph.constant

    def _write(self) -> list[Any]:
        """Add all nodes, and return the types and shapes of the outputs."""
        root = self.plan.root
        if isinstance(root, Sum):
            scores = self._scores(root)
            proba = self._softmax(root, scores)
        else:
            scores = proba = self._posterior(root)
        winner = self._best(root, scores)
        classes = [self.plan.classes[c] for c in root.tie_order]
        text = isinstance(classes[0], str)
        dtype = np.asarray(classes).dtype
        labels = self.constant(classes, object if text else dtype)
        onnx, k = self.graph.onnx, len(self.plan.classes)
        real, whole = onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64
        kind = onnx.TensorProto.STRING
        if not text:
            kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
        self.graph.add("Gather", [labels, winner], self.names[0])
        self.graph.add("Identity", [proba], self.names[1])
        outputs = [(kind, ["n"]), (real, ["n", k])]
        if self.plan.counted():
            self.graph.add("Identity", [self._unknown_cells()], self.names[2])
            outputs.append((whole, ["n"]))
        if self.contributions:
            assert isinstance(root, Sum)
            self.graph.add("Identity", [self._contributions(root)], self.names[-1])
            outputs.append((real, ["n", len(self.plan.attributes), k]))
        return outputs

    def model(self) -> Any:
        """Return the whole model."""
        helper, kinds = self.graph.onnx.helper, self._write()
        info = helper.make_tensor_value_info
        outputs = [info(n, *of) for n, of in zip(self.names, kinds, strict=True)]
        inputs, nodes = self._inputs(), self.graph.nodes
        constants = self.graph.constants
        graph = helper.make_graph(nodes, "steelyard", inputs, outputs, constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(*opset) for opset in _OPSETS],
            ir_version=_IR_VERSION,
            producer_name="steelyard",
            producer_version=library_version(),
            doc_string=about(self.plan),
        )
        helper.set_model_props(model, self._metadata())
        return model

    def _inputs(self) -> list[Any]:
        """Return the inputs of the model."""
        columns, onnx = self.plan.columns, self.graph.onnx
        used = [(columns[j].name, columns[j], 1) for j in input_columns(self.plan)]
        if self.is_matrix:
            used = [("X", columns[0], len(columns))]
        text, real = onnx.TensorProto.STRING, onnx.TensorProto.DOUBLE
        info = onnx.helper.make_tensor_value_info
        return [
            info(name, text if column.cells == "text" else real, ["n", width])
            for name, column, width in used
        ]

    def _metadata(self) -> dict[str, str]:
        entries = {
            "steelyard": library_version(),
            "estimator": self.plan.estimator,
            "classes": json.dumps(self.plan.classes),
            "missing_text": self.missing_text,
        }
        if self.is_matrix:
            entries["columns"] = json.dumps(
                [column.name for column in self.plan.columns]
            )
        if self.contributions:
            entries["attributes"] = json.dumps(self.plan.attributes)
        return entries

    def _unknown_cells(self) -> str:
        """Return the number of unknown cells, of shape (n,)."""
        one, integer = self.constant([1], np.int64), self.graph.onnx.TensorProto.INT64
        parts = []
        for j, by_missing in self.plan.counted().items():
            column = self.plan.columns[j]
            if column.kind == "number":
                part = self.node("Cast", self._is_missing(j), to=integer)
            else:
                # 0 for values never seen.
                known = [*[1] * len(column.values), 1 - by_missing]
                at = self._position(j, column.values, known)
                part = self.node("Sub", self.constant(1, np.int64), at)
            parts.append(self.node("Unsqueeze", part, one))
        joined = self.node("Concat", *parts, axis=1)
        return self.node("ReduceSum", joined, one, keepdims=0)

    def _contributions(self, root: Sum) -> str:
        """Return contributions of attributes to scores, of shape (n, attributes, K)."""
        by_attribute: dict[int, list[str]] = {}
        for term in root.terms:
            by_attribute.setdefault(term.attribute, []).append(self._term(term))
        nothing = self.node("Mul", self._scores(root), self.constant(0.0))
        parts = []
        for j in range(len(self.plan.attributes)):
            part = self._added(by_attribute.get(j, [nothing]))
            if root.centre:
                part = self.node("Sub", part, self.constant([root.centre[j]]))
            parts.append(self.node("Unsqueeze", part, self.constant([1], np.int64)))
        stacked = self.node("Concat", *parts, axis=1)
        scale = 1.0 if self.plan.unit else root.scale
        return self.node("Mul", stacked, self.constant(scale))

    # --------------------------------------------------------------------------- models

    def _best(self, node: Node, scores: str) -> str:
        """Return the first position of the largest score in the order of ties."""
        order = node.tie_order
        if list(order) != sorted(order):
            scores = self.node("Gather", scores, self.constant(order, np.int64), axis=1)
        return self.node("ArgMax", scores, axis=1, keepdims=0)

    def _posterior(self, node: Node) -> str:
        if isinstance(node, Sum):
            return self._softmax(node, self._scores(node))
        if isinstance(node, Mixture):
            parts = [self._posterior(part) for part in node.parts]
            weighted = zip(map(self.constant, node.shares), parts, strict=True)
            return self._added([self.node("Mul", *both) for both in weighted])
        if isinstance(node, Pairs):
            return self._pairs(node)
        return self._elkan(node) if node.form == "elkan" else self._votes(node)

    def _softmax(self, node: Sum, scores: str) -> str:
        if node.scale != 1.0:
            scores = self.node("Mul", scores, self.constant(node.scale))
        return self.node("Softmax", scores, axis=1)

    def _pairs(self, node: Pairs) -> str:
        """Return the mean of each class's probabilities against the others."""
        parts = [self._posterior(part) for part in node.parts]
        zero, one = (self.constant([c], np.int64) for c in (0, 1))
        by_class: list[list[str]] = [[] for _ in node.classes]
        for (a, b), part in zip(node.pairs, parts, strict=True):
            by_class[a].append(self.node("Gather", part, zero, axis=1))
            by_class[b].append(self.node("Gather", part, one, axis=1))
        sums = self.node("Concat", *map(self._added, by_class), axis=1)
        return self.node("Div", sums, self.constant(float(len(parts))))

    def _votes(self, node: Vote) -> str:
        """Add up the votes of the classes that the voters choose."""
        parts = []
        for vote, part in zip(node.votes, node.parts, strict=True):
            table = vote * np.eye(len(node.classes))[list(part.tie_order)]
            chosen = self._best(part, self._scores(part))
            parts.append(self.node("Gather", self.constant(table), chosen))
        return self.node("Softmax", self._added(parts), axis=1)

    def _elkan(self, node: Vote) -> str:
        second, one = self.constant([1], np.int64), self.constant(1.0)
        parts = []
        for vote, part in zip(node.votes, node.parts, strict=True):
            h = self.node("Gather", self._posterior(part), second, axis=1)
            parts.append(self.node("Mul", h, self.constant(2.0 * vote)))
        total = self.constant(sum(node.votes))
        odds = self.node("Sub", total, self._added(parts))
        odds = self.node("Clip", odds, self.constant(-700.0), self.constant(700.0))
        p = self.node("Div", one, self.node("Add", one, self.node("Exp", odds)))
        return self.node("Concat", self.node("Sub", one, p), p, axis=1)

    def _added(self, parts: list[str]) -> str:
        return self.node("Sum", *parts) if len(parts) > 1 else parts[0]

    # ---------------------------------------------------------------------------- terms

    def _scores(self, node: Sum) -> str:
        base = self.constant([[b if b > _NEVER else _NEVER for b in node.base]])
        if node.terms:
            return self._added([base, *map(self._term, node.terms)])
        first = self._input(input_columns(self.plan)[0])
        shape = self.node("Shape", first)
        one = self.constant([len(node.base)], np.int64)
        return self.node("Expand", base, self.node("Concat", shape, one, axis=0))

    def _term(self, term: Term) -> str:
        if isinstance(term, Lookup):
            zero = (0.0,) * len(term.missing)
            positions = range(1, len(term.values) + 2)
            at = self._position(term.column, term.values, list(positions))
            return self._gather([zero, *term.rows, term.missing], at)
        if isinstance(term, Bins):
            at = self._interval(term.column, term.edges)
            last = self.constant(len(term.rows), np.int64)
            at = self.node("Where", self._is_missing(term.column), last, at)
            return self._gather([*term.rows, term.missing], at)
        if isinstance(term, Interaction):
            first, second = map(self._group, term.sides)
            factor = self.constant(term.sides[1].n_groups, np.int64)
            at = self.node("Add", self.node("Mul", first, factor), second)
            return self._gather([row for rows in term.rows for row in rows], at)
        return self._density(term)

    def _gather(self, rows: list[Any], at: str) -> str:
        return self.node("Gather", self.constant(rows), at)

    def _input(self, column: int, wide: bool = False) -> str:
        """Return the cells of a column, of shape (n,) or (n, 1)."""
        cells = self.plan.columns[column].name
        if self.is_matrix:
            cells = "X"
            if len(self.plan.columns) > 1:
                at = self.constant([column], np.int64)
                cells = self.node("Gather", cells, at, axis=1)
        if wide:
            return cells
        return self.node("Squeeze", cells, self.constant([1], np.int64))

    def _is_missing(self, column: int, wide: bool = False) -> str:
        return self.node("IsNaN", self._input(column, wide))

    def _position(self, column: int, values: Any, positions: list[int]) -> str:
        """Return the position of a cell's value, the last if missing, 0 if unseen."""
        if self.plan.columns[column].cells == "text":
            codes = dict(zip([*values, self.missing_text], positions, strict=True))
            codes = {
                **codes,
                **{gap: codes.get(gap, positions[-1]) for gap in _NO_TEXT},
            }
            table = {"keys_strings": list(codes), "values_int64s": [*codes.values()]}
            return self.node(
                "LabelEncoder", self._input(column), **table, default_int64=0
            )
        is_whole = all(float(value).is_integer() for value in values)
        if len(values) > _MAX_COMPARED and is_whole:
            at = self._encoded(column, list(map(int, values)), positions[:-1])
        else:
            at = self._compared(column, list(map(float, values)), positions[:-1])
        last = self.constant(positions[-1], np.int64)
        return self.node("Where", self._is_missing(column), last, at)

    def _compared(self, column: int, values: list[float], positions: list[int]) -> str:
        """Return the position of a number by comparing it with all values."""
        zero = self.constant(0, np.int64)
        if not values:
            return zero
        is_equal = self.node("Equal", self._input(column, True), self.constant(values))
        all_positions = self.constant(positions, np.int64)
        matches = self.node("Where", is_equal, all_positions, zero)
        return self.node("ReduceMax", matches, self.constant([1], np.int64), keepdims=0)

    def _encoded(self, column: int, values: list[int], positions: list[int]) -> str:
        """Return the position of a whole number by a table; others become 2**53."""
        x, limit = self._input(column), self.constant(float(_WHOLE))
        is_whole = self.node("Equal", self.node("Floor", x), x)
        is_near = self.node("Less", self.node("Abs", x), limit)
        key = self.node("Where", self.node("And", is_whole, is_near), x, limit)
        whole = self.node("Cast", key, to=self.graph.onnx.TensorProto.INT64)
        table = {"keys_int64s": values, "values_int64s": positions, "default_int64": 0}
        return self.node("LabelEncoder", whole, **table)

    def _interval(self, column: int, edges: tuple[float, ...]) -> str:
        """Return the number of cut points below each number, 0 for a missing one."""
        is_above = self.node("Greater", self._input(column, True), self.constant(edges))
        one = self.node("Cast", is_above, to=self.graph.onnx.TensorProto.INT64)
        return self.node("ReduceSum", one, self.constant([1], np.int64), keepdims=0)

    def _group(self, side: Grouping) -> str:
        if self.plan.columns[side.column].kind == "category":
            return self._position(
                side.column, side.values, [*side.groups, side.missing]
            )
        at = self._interval(side.column, side.edges)
        last = self.constant(len(side.groups), np.int64)
        at = self.node("Where", self._is_missing(side.column), last, at)
        groups = self.constant([*side.groups, side.missing], np.int64)
        return self.node("Gather", groups, at)

    def _density(self, term: Density) -> str:
        x = self._input(term.column, True)
        is_missing = self._is_missing(term.column, True)
        if term.fill is not None:
            x = self.node("Where", is_missing, self.constant(term.fill), x)
        x = self.node("Sub", x, self.constant(term.mean))
        t = self.node("Mul", x, self.constant(term.scale))
        if term.form == "linear":
            limits = map(self.constant, (-term.limit, term.limit))
            score = self.node("Clip", t, *limits)
        else:
            t = self.node("Min", self.node("Abs", t), self.constant(_MAX_DISTANCE))
            half = self.node("Mul", self.node("Mul", t, t), self.constant(0.5))
            score = self.node("Sub", self.constant(term.constant), half)
        if term.form == "relative":
            top = self.node(
                "ReduceMax", score, self.constant([1], np.int64), keepdims=1
            )
            score = self.node("Sub", score, top)
            score = self.node("Max", score, self.constant(-term.depth))
        score = self.node("Mul", score, self.constant(term.weight))
        if term.fill is not None:
            return score
        return self.node("Where", is_missing, self.constant(0.0), score)
