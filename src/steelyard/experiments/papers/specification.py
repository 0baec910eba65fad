"""Read the description of a document from its file."""

from __future__ import annotations

import tomllib
from functools import partial
from importlib import import_module, resources
from typing import Any

from steelyard.experiments.papers.engine import Comparison, Paper

__all__ = ["FUNCTIONS", "read_paper"]

_MODULES = "sections plots filters rnb cwnb exponential spss"
FUNCTIONS = {
    name: getattr(module, name)
    for module in (import_module(f"{__package__}.{name}") for name in _MODULES.split())
    for name in module.__all__
}
"""What a file may name as a ``kind``."""


def read_paper(name: str, *, quick: bool = False) -> Paper:
    """Read the description of a document, for a full run or a quick one."""
    file = resources.files(__package__).joinpath(f"{name}.toml")
    entries = _resolved(tomllib.loads(file.read_text(encoding="utf-8")), quick)
    parts = entries.pop("comparisons", {})
    comparisons = {part: Comparison(**spec) for part, spec in parts.items()}
    return Paper(name=name, comparisons=comparisons, **entries)


def _resolved(node: Any, quick: bool) -> Any:
    """Choose between values for full and quick runs, and look up functions.

    A table with a ``kind`` is that function with the other entries as arguments. TOML
    has no None: the word stands for it.
    """
    if isinstance(node, list):
        return [_resolved(entry, quick) for entry in node]
    if not isinstance(node, dict):
        return None if node == "None" else node
    if node.keys() == {"full", "quick"}:
        return _resolved(node["quick" if quick else "full"], quick)
    entries = {key: _resolved(value, quick) for key, value in node.items()}
    if "kind" in entries:
        return partial(FUNCTIONS[entries.pop("kind")], **entries)
    return entries
