"""One way from files and streams of rows to columns, whole or chunk by chunk.

``dialect``, ``numbers``, ``paths`` and ``lines`` need the standard library alone; names
are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.io.chunks import *  # noqa: F403
    from steelyard.io.recognise import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.io", chunks="Chunk Place", recognise="as_source open_files scan"
)
