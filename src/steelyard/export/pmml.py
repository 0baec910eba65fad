"""Write a plan as PMML 4.4: regression models with softmax."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from steelyard.exceptions import ParameterError
from steelyard.export.plan import (
    UNKNOWN_CELLS,
    Bins,
    Column,
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
    refuse_large,
    refuse_large_categories,
    sums_of,
)
from steelyard.export.reading import plan_of

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

Element = ElementTree.Element

# The score of an impossible class, below all others.
_NEVER = -1e300
_MAX_DISTANCE = "1e100"
_UNWRITTEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_pmml(clf: BaseNB, target: str = "class") -> bytes:
    """Return a classifier as PMML 4.4, for JPMML and others.

    Every class has a table of coefficients; a missing or unseen category adds nothing.
    The outputs are ``prediction`` and ``p(...)`` of every class. Models that average
    over unknown cells have ``unknown_cells`` as well: rows in which it is not 0 are
    answered as with ``unknown="sum"``. Ties are decided by the engine.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    target : str, default="class"
        Name of the predicted field, which no column may have.

    Returns
    -------
    bytes
        XML in UTF-8.

    Examples
    --------
    >>> import steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 5, ["no", "yes"] * 5)
    >>> b'<CategoricalPredictor name="x0" value="a"' in to_pmml(clf)
    True
    """
    plan = plan_of(clf)
    refuse_intervals(plan, "PMML")
    refuse_large(plan, "PMML")
    refuse_large_categories(plan, "PMML")
    _refuse(plan, target)
    root = _PmmlWriter(plan, target).document()
    ElementTree.indent(root)
    made: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    # As it is, a carriage return is read as a line feed; attributes have it escaped.
    return made.replace(b"\r", b"&#13;") + b"\n"


def _refuse(plan: Plan, target: str) -> None:
    """Raise an error for names and values that PMML does not support."""
    if not isinstance(target, str) or not target:
        raise ParameterError(f"target must be the name of a field, got {target!r}.")
    names = [column.name for column in plan.columns]
    if target in names:
        raise ParameterError(
            f"{target!r} is a column of the model. Set target to another name."
        )
    if "" in names:
        raise ParameterError("A field in PMML has a name: name the column ''.")
    for label in plan.classes:
        if isinstance(label, int) and abs(label) >= 2**53:
            raise ParameterError(
                f"The class {label} is too large: PMML has whole numbers of 32 bits, "
                "and doubles, which are not exact from 2**53 on. Turn the labels into "
                "text."
            )
    for text in (target, *plan.texts()):
        if _UNWRITTEN.search(text):
            raise ParameterError(
                f"{text!r} has a character that XML 1.0 cannot hold. Replace it in the "
                "table, or use another format."
            )


class _PmmlWriter:
    """Writes a plan as elements of XML."""

    def __init__(self, plan: Plan, target: str) -> None:
        self.plan, self.target = plan, target
        self.dictionary = Element("TransformationDictionary")
        self.fields = Fields(plan, target, self.dictionary)

    def document(self) -> Element:
        """Return the whole document."""
        output = Element("Output")
        name = self.fields.unique("prediction")
        _child(output, "OutputField", **self._predicted(name))
        for label in map(_text, self.plan.classes):
            name = self.fields.unique(f"p({label})")
            _child(output, "OutputField", **_probability(name, label))
        if counted := self.plan.counted():
            name = self.fields.unique(UNKNOWN_CELLS)
            kind = {"optype": "continuous", "dataType": "integer"}
            kind["feature"] = "transformedValue"
            field = _child(output, "OutputField", name=name, **kind)
            cells = [self.fields.is_unknown(j, of) for j, of in counted.items()]
            field.append(_apply("sum", *map(_field, cells)))
        model = self._node(self.plan.root, output)
        root = Element("PMML", xmlns="http://www.dmg.org/PMML-4_4", version="4.4")
        header = _child(root, "Header", description=about(self.plan))
        _child(header, "Application", name="steelyard", version=library_version())
        dictionary = _child(root, "DataDictionary")
        for column in self.plan.columns:
            _child(dictionary, "DataField", name=column.name, **_type(column))
        kind = {"optype": "categorical", "dataType": _label_type(self.plan.classes)}
        field = _child(dictionary, "DataField", name=self.target, **kind)
        for label in self.plan.classes:
            _child(field, "Value", value=_text(label))
        if len(self.dictionary):
            root.append(self.dictionary)
        root.append(model)
        return root

    def _predicted(self, name: str) -> dict[str, str]:
        """Return the attributes of an output: the predicted class."""
        kind = {"optype": "categorical", "feature": "predictedValue"}
        return {"name": name, **kind, "dataType": _label_type(self.plan.classes)}

    # --------------------------------------------------------------------------- models

    def _node(self, node: Node, output: Element | None) -> Element:
        """Return the element of a model."""
        if isinstance(node, Sum):
            return self._sum(node, output)
        if isinstance(node, Mixture):
            model, segments = self._mining(node, output, "weightedAverage")
            for part, share in zip(node.parts, node.shares, strict=True):
                segment = self._segment(segments, weight=repr(share))
                segment.append(self._node(part, None))
            return model
        if isinstance(node, Pairs):
            return self._pairs(node, output)
        return self._vote(node, output)

    def _mining(
        self, node: Node, output: Element | None, method: str
    ) -> tuple[Element, Element]:
        """Return a model that is made of others, and the element for these."""
        model = self._model("MiningModel", self._names(sums_of(node)), output)
        return model, _child(model, "Segmentation", multipleModelMethod=method)

    def _segment(self, segments: Element, **attributes: str) -> Element:
        segment = _child(segments, "Segment", id=str(len(segments) + 1), **attributes)
        _child(segment, "True")
        return segment

    def _pairs(self, node: Pairs, output: Element | None) -> Element:
        """Chain the models of pairs; the last averages the probabilities of classes."""
        model, segments = self._mining(node, None, "modelChain")
        share = repr(1.0 / len(node.parts))
        inputs: list[list[tuple[str, str]]] = [[] for _ in node.classes]
        for pair, part in zip(node.pairs, node.parts, strict=True):
            labels = [_text(self.plan.classes[node.classes[c]]) for c in pair]
            outputs = Element("Output")
            for c, label in zip(pair, labels, strict=True):
                name = self.fields.unique(f"p({label}), {' or '.join(labels)}")
                _child(outputs, "OutputField", **_probability(name, label))
                inputs[c].append((name, share))
            self._segment(segments).append(self._node(part, outputs))
        names = [name for pairs in inputs for name, _ in pairs]
        last = self._regression(names, output, "none")
        for c, of in zip(node.classes, inputs, strict=True):
            table = self._table(last, c, 0.0)
            for name, coefficient in of:
                _numeric(table, name, coefficient)
        self._segment(segments).append(last)
        return model

    def _vote(self, node: Vote, output: Element | None) -> Element:
        """Chain the voters; the last model adds up their votes."""
        model, segments = self._mining(node, None, "modelChain")
        is_elkan = node.form == "elkan"
        labels = [_text(self.plan.classes[c]) for c in node.classes]
        voters = []
        for t, part in enumerate(node.parts, 1):
            name, part_output = self.fields.unique(f"voter {t}"), Element("Output")
            attributes = (
                _probability(name, labels[1]) if is_elkan else self._predicted(name)
            )
            _child(part_output, "OutputField", **attributes)
            self._segment(segments).append(self._node(part, part_output))
            voters.append(name)
        last = self._regression(voters, output, "softmax")
        for c, label in zip(node.classes, labels, strict=True):
            is_second = is_elkan and c == node.classes[1]
            table = self._table(last, c, -sum(node.votes) if is_second else 0.0)
            for name, vote in zip(voters, node.votes, strict=True):
                if is_second:
                    _numeric(table, name, repr(2.0 * vote))
                elif not is_elkan:
                    _categorical(table, name, label, vote)
        self._segment(segments).append(last)
        return model

    def _sum(self, node: Sum, output: Element | None) -> Element:
        model = self._regression(self._names([node]), output, "softmax")
        tables = [
            self._table(model, c, node.scale * max(base, _NEVER))
            for c, base in zip(node.classes, node.base, strict=True)
        ]
        # In PMML numbers come first.
        for term in sorted(node.terms, key=lambda term: not isinstance(term, Density)):
            self._term(term, node.scale, tables)
        return model

    def _names(self, sums: Iterable[Sum]) -> list[str]:
        """Return the columns that sums read, in order."""
        used = {c for node in sums for term in node.terms for c in term.columns}
        used |= self.plan.counted().keys()
        return [self.plan.columns[c].name for c in sorted(used)]

    def _regression(
        self, names: Sequence[str], output: Element | None, method: str
    ) -> Element:
        return self._model("RegressionModel", names, output, normalizationMethod=method)

    def _model(
        self, tag: str, names: Sequence[str], output: Element | None, **attributes: str
    ) -> Element:
        """Return an empty model that reads the fields of some names."""
        model = _element(tag, functionName="classification", **attributes)
        schema = _child(model, "MiningSchema")
        _child(schema, "MiningField", name=self.target, usageType="target")
        for name in names:
            # Values never seen are kept, and match no coefficient.
            _child(schema, "MiningField", name=name, invalidValueTreatment="asIs")
        if output is not None:
            model.append(output)
        return model

    def _table(self, model: Element, c: int, intercept: float) -> Element:
        label = _text(self.plan.classes[c])
        return _child(
            model, "RegressionTable", intercept=repr(intercept), targetCategory=label
        )

    # ---------------------------------------------------------------------------- terms

    def _term(self, term: Term, scale: float, tables: list[Element]) -> None:
        """Add the coefficients of a term to the table of every class."""
        if isinstance(term, Density):
            names = self.fields.density(term)
            for table, name, w in zip(tables, names, term.weight, strict=True):
                if w:
                    _numeric(table, name, repr(scale * w))
            return
        name, values, rows = self._coefficients(term)
        for value, row in zip(values, rows, strict=True):
            for table, amount in zip(tables, row, strict=True):
                _categorical(table, name, value, scale * amount)
        if not isinstance(term, Interaction) and any(term.missing):
            name = self.fields.missing(term.column)
            for table, amount in zip(tables, term.missing, strict=True):
                _categorical(table, name, "yes", scale * amount)

    def _coefficients(
        self, term: Lookup | Bins | Interaction
    ) -> tuple[str, Sequence[str], Sequence[Sequence[float]]]:
        """Return a field, its values, and their contributions to the classes."""
        if isinstance(term, Lookup):
            name = self.plan.columns[term.column].name
            return name, list(map(_text, term.values)), term.rows
        if isinstance(term, Bins):
            return *self.fields.bins(term.column, term.edges), term.rows
        cells = [row for rows in term.rows for row in rows]
        return *self.fields.interaction(term), cells


class Fields:
    """Derived fields, each written once into a dictionary."""

    def __init__(self, plan: Plan, target: str, dictionary: Element) -> None:
        self.plan, self.dictionary = plan, dictionary
        self._taken = {target, *(column.name for column in plan.columns)}
        self._names: dict[bytes, str] = {}

    def unique(self, name: str) -> str:
        """Return a name that no field has."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def missing(self, column: int) -> str:
        """Return the field of whether a cell is missing: yes or no."""
        name = self.plan.columns[column].name
        is_missing = _apply("isMissing", _field(name))
        yes, no = _constant("yes", "string"), _constant("no", "string")
        expression = _apply("if", is_missing, yes, no)
        return self._add(f"missing({name})", "string", expression)

    def is_unknown(self, column: int, by_missing: bool) -> str:
        """Return the field that is 1 for an unknown cell, and 0 for others."""
        of, name = self.plan.columns[column], self.plan.columns[column].name
        if of.kind == "number":
            flags = _constant(1, "integer"), _constant(0, "integer")
            expression = _apply("if", _apply("isMissing", _field(name)), *flags)
        else:
            known = dict.fromkeys(map(_text, of.values), 0)
            expression = _mapped(name, known, default=1, missing=int(by_missing))
        return self._add(f"unknown({name})", "integer", expression)

    def bins(self, column: int, edges: tuple[float, ...]) -> tuple[str, list[str]]:
        """Return the field of the interval of a number, and the names of intervals.

        Without cut points there is one, of all numbers that are not missing.
        """
        name = self.plan.columns[column].name
        if not edges:
            return self.missing(column), ["no"]
        bounds: list[str | None] = [None, *map(repr, edges), None]
        discretize = Element("Discretize", field=name)
        labels = []
        for low, high in pairwise(bounds):
            label = f"({low or '-inf'}, " + (f"{high}]" if high else "inf)")
            labels.append(label)
            interval = Element("Interval", closure="openClosed" if high else "openOpen")
            if low:
                interval.set("leftMargin", low)
            if high:
                interval.set("rightMargin", high)
            discretize.append(_element("DiscretizeBin", interval, binValue=label))
        return self._add(f"bin({name})", "string", discretize, labels), labels

    def density(self, term: Density) -> list[str]:
        """Return the fields of the log-density of each class, before its weight."""
        name = self.plan.columns[term.column].name
        labels = range(1, len(term.mean) + 1)
        if term.form == "linear":
            return [
                self._number(f"slope({name}, {c})", term, self._slope(term, c - 1))
                for c in labels
            ]
        logs = [
            self._number(f"density({name}, {c})", term, self._log(term, c - 1))
            for c in labels
        ]
        if term.form == "plain":
            return logs
        top = _apply("max", *map(_field, logs))
        top_name = self._add(f"top({name})", "double", top)
        depth = _constant(-term.depth)
        return [
            self._add(
                f"relative({name}, {c})",
                "double",
                _apply("max", _apply("-", _field(log), _field(top_name)), depth),
            )
            for c, log in zip(labels, logs, strict=True)
        ]

    def interaction(self, term: Interaction) -> tuple[str, list[str]]:
        """Return the field of the groups of two columns, and its values."""
        first, second = map(self._group, term.sides)
        name = self.plan.attributes[term.attribute]
        between = _constant(" & ", "string")
        joined = _apply("concat", _field(first), between, _field(second))
        rows, columns = (range(side.n_groups) for side in term.sides)
        labels = [f"{a} & {b}" for a in rows for b in columns]
        return self._add(f"interaction({name})", "string", joined), labels

    # --------------------------------------------------------------------------- pieces

    def _number(self, name: str, term: Density, expression: Element) -> str:
        """Add a field of a number, 0 if the cell is missing."""
        if term.fill is None:
            cell = _field(self.plan.columns[term.column].name)
            is_missing = _apply("isMissing", cell)
            expression = _apply("if", is_missing, _constant(0.0), expression)
        return self._add(name, "double", expression)

    def _distance(self, term: Density, c: int) -> Element:
        name = self.plan.columns[term.column].name
        if term.fill is not None:
            filled = Element("FieldRef", field=name, mapMissingTo=repr(term.fill))
            name = self._add(f"filled({name})", "double", filled)
        return _apply("-", _field(name), _constant(term.mean[c]))

    def _slope(self, term: Density, c: int) -> Element:
        t = _apply("*", self._distance(term, c), _constant(term.scale[c]))
        limited = _apply("max", t, _constant(-term.limit))
        return _apply("min", limited, _constant(term.limit))

    def _log(self, term: Density, c: int) -> Element:
        far = _apply("abs", self._distance(term, c))
        t = _apply("*", far, _constant(term.scale[c]))
        t = _apply("min", t, _constant(_MAX_DISTANCE))
        half = _apply("*", _constant(0.5), _apply("pow", t, _constant(2.0)))
        return _apply("-", _constant(term.constant[c]), half)

    def _group(self, side: Grouping) -> str:
        """Return the field of the group of a cell."""
        name = self.plan.columns[side.column].name
        if self.plan.columns[side.column].kind == "category":
            keys, source = list(map(_text, side.values)), name
        else:
            source, keys = self.bins(side.column, side.edges)
        groups = dict(zip(keys, side.groups, strict=False))
        if keys == ["no"] and source != name:
            groups["yes"] = side.missing
        mapping = _mapped(source, groups, default=0, missing=side.missing)
        return self._add(f"group({name})", "string", mapping)

    def _add(
        self, name: str, kind: str, expression: Element, values: list[str] | None = None
    ) -> str:
        """Add a field, unless there is an equal one."""
        key = ElementTree.tostring(expression) + kind.encode()
        if key not in self._names:
            self._names[key] = name = self.unique(name)
            optype = "categorical" if kind == "string" else "continuous"
            attributes = {"name": name, "optype": optype, "dataType": kind}
            field = _child(self.dictionary, "DerivedField", **attributes)
            field.append(expression)
            # Some engines refuse values that are not listed.
            for value in values or []:
                _child(field, "Value", value=value)
        return self._names[key]


def _element(tag: str, *children: Element, **attributes: str) -> Element:
    made = Element(tag, attributes)
    made.extend(children)
    return made


def _child(parent: Element, tag: str, **attributes: str) -> Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _apply(function: str, *arguments: Element) -> Element:
    return _element("Apply", *arguments, function=function)


def _mapped(
    field: str, groups: Mapping[str, int], default: int, missing: int
) -> Element:
    """Return the number of the group of a field's value."""
    attributes = {"outputColumn": "group", "defaultValue": str(default)}
    mapping = Element("MapValues", attributes, mapMissingTo=str(missing))
    _child(mapping, "FieldColumnPair", field=field, column="value")
    table = _child(mapping, "InlineTable")
    for key, group in groups.items():
        row = _child(table, "row")
        _child(row, "value").text = key
        _child(row, "group").text = str(group)
    return mapping


def _field(name: str) -> Element:
    return Element("FieldRef", field=name)


def _constant(value: float | str, kind: str = "double") -> Element:
    made = Element("Constant", dataType=kind)
    made.text = str(value)
    return made


def _text(value: Any) -> str:
    """Write a value or a class as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _probability(name: str, label: str) -> dict[str, str]:
    """Return the attributes of an output: the probability of a class."""
    attributes = {"name": name, "optype": "continuous", "dataType": "double"}
    return {**attributes, "feature": "probability", "value": label}


def _numeric(table: Element, name: str, coefficient: str) -> None:
    _child(table, "NumericPredictor", name=name, coefficient=coefficient)


def _categorical(table: Element, name: str, value: str, amount: float) -> None:
    if amount:
        of_value = {"name": name, "value": value, "coefficient": repr(amount)}
        _child(table, "CategoricalPredictor", **of_value)


def _type(column: Column) -> dict[str, str]:
    """Return the type of the field of a column."""
    if column.kind == "number":
        return {"optype": "continuous", "dataType": "double"}
    kinds = {"booleans": "boolean", "numbers": "double"}
    return {"optype": "categorical", "dataType": kinds.get(column.cells, "string")}


def _label_type(classes: Sequence[Any]) -> str:
    kinds = {type(label) for label in classes}
    # An integer has 32 bits in JPMML.
    is_small = int not in kinds or max(map(abs, classes)) < 2**31
    names = {str: "string", bool: "boolean", int: "integer" if is_small else "double"}
    return names.get(kinds.pop(), "double") if len(kinds) == 1 else "double"
