"""One way from files and streams of rows to columns, whole or chunk by chunk.

``dialect``, ``numbers``, ``paths`` and ``lines`` need the standard library alone; names
are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.io.chunks import Chunk, Place
    from steelyard.io.recognise import as_source, open_files, scan

_HOMES = {
    "Chunk": "chunks",
    "Place": "chunks",
    "as_source": "recognise",
    "open_files": "recognise",
    "scan": "recognise",
}

__all__ = ["Chunk", "Place", "as_source", "open_files", "scan"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'steelyard.io' has no attribute {name!r}")
    return getattr(import_module(f"steelyard.io.{_HOMES[name]}"), name)
