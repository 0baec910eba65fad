"""Fields that PMML derives from columns: intervals, densities, interactions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from steelyard.export.plan import Density, Grouping, Interaction, Plan

Element = ElementTree.Element

_MAX_DISTANCE = "1e100"


def text_of(value: Any) -> str:
    """Write a value or a class as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


class Fields:
    """Derived fields, each written once into a dictionary.

    Parameters
    ----------
    plan : Plan
        The model.
    target : str
        Name of the predicted field.
    dictionary : Element
        The element that the fields are added to.
    """

    def __init__(self, plan: Plan, target: str, dictionary: Element) -> None:
        self.plan, self.dictionary = plan, dictionary
        self._taken = {target, *(column.name for column in plan.columns)}
        self._known: dict[bytes, str] = {}

    def unique(self, name: str) -> str:
        """Return a name that no field has."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def missing(self, column: int) -> str:
        """Return the field of whether a cell is missing: yes or no."""
        name = self.plan.columns[column].name
        expression = _apply(
            "if",
            _apply("isMissing", _field(name)),
            _constant("yes", "string"),
            _constant("no", "string"),
        )
        return self._add(f"missing({name})", "string", expression)

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
            given = Element("DiscretizeBin", binValue=label)
            closure = "openClosed" if high else "openOpen"
            interval = ElementTree.SubElement(given, "Interval", closure=closure)
            if low:
                interval.set("leftMargin", low)
            if high:
                interval.set("rightMargin", high)
            discretize.append(given)
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
        depth = _constant(repr(-term.depth))
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
        joined = _apply(
            "concat", _field(first), _constant(" & ", "string"), _field(second)
        )
        rows, columns = (range(side.n_groups) for side in term.sides)
        labels = [f"{a} & {b}" for a in rows for b in columns]
        return self._add(f"interaction({name})", "string", joined), labels

    # --------------------------------------------------------------------------- pieces

    def _number(self, name: str, term: Density, expression: Element) -> str:
        """Add a field of a number, 0 if the cell is missing."""
        if term.fill is None:
            cell = _field(self.plan.columns[term.column].name)
            expression = _apply(
                "if", _apply("isMissing", cell), _constant("0.0"), expression
            )
        return self._add(name, "double", expression)

    def _distance(self, term: Density, c: int) -> Element:
        name = self.plan.columns[term.column].name
        if term.fill is not None:
            filled = Element("FieldRef", field=name, mapMissingTo=repr(term.fill))
            name = self._add(f"filled({name})", "double", filled)
        return _apply("-", _field(name), _constant(repr(term.mean[c])))

    def _slope(self, term: Density, c: int) -> Element:
        t = _apply("*", self._distance(term, c), _constant(repr(term.scale[c])))
        high, low = (_constant(repr(limit)) for limit in (term.limit, -term.limit))
        return _apply("min", _apply("max", t, low), high)

    def _log(self, term: Density, c: int) -> Element:
        far = _apply("abs", self._distance(term, c))
        t = _apply("*", far, _constant(repr(term.scale[c])))
        t = _apply("min", t, _constant(_MAX_DISTANCE))
        half = _apply("*", _constant("0.5"), _apply("pow", t, _constant("2.0")))
        return _apply("-", _constant(repr(term.constant[c])), half)

    def _group(self, side: Grouping) -> str:
        """Return the field of the group of a cell."""
        name = self.plan.columns[side.column].name
        if self.plan.columns[side.column].kind == "category":
            keys, source = list(map(text_of, side.values)), name
        else:
            source, keys = self.bins(side.column, side.edges)
        groups = dict(zip(keys, side.groups, strict=False))
        if keys == ["no"] and source != name:
            groups["yes"] = side.missing
        mapping = Element(
            "MapValues",
            outputColumn="group",
            defaultValue="0",
            mapMissingTo=str(side.missing),
        )
        ElementTree.SubElement(mapping, "FieldColumnPair", field=source, column="value")
        table = ElementTree.SubElement(mapping, "InlineTable")
        for key, group in groups.items():
            row = ElementTree.SubElement(table, "row")
            ElementTree.SubElement(row, "value").text = key
            ElementTree.SubElement(row, "group").text = str(group)
        return self._add(f"group({name})", "string", mapping)

    def _add(
        self, name: str, kind: str, expression: Element, values: list[str] | None = None
    ) -> str:
        """Add a field, unless there is an equal one."""
        key = ElementTree.tostring(expression) + kind.encode()
        if key not in self._known:
            field = ElementTree.SubElement(
                self.dictionary,
                "DerivedField",
                name=self.unique(name),
                optype="continuous" if kind == "double" else "categorical",
                dataType=kind,
            )
            field.append(expression)
            # Some engines refuse values that are not listed.
            for value in values or []:
                ElementTree.SubElement(field, "Value", value=value)
            self._known[key] = field.get("name", name)
        return self._known[key]


def _apply(function: str, *arguments: Element) -> Element:
    made = Element("Apply", function=function)
    made.extend(arguments)
    return made


def _field(name: str) -> Element:
    return Element("FieldRef", field=name)


def _constant(text: str, kind: str = "double") -> Element:
    made = Element("Constant", dataType=kind)
    made.text = text
    return made
