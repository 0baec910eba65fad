"""What is told to somebody who waits at a terminal.

Apart from what takes the time, so that a command can say so before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Callable

before_compiling: Callable[[], None] | None = None
"""Called once, before a process compiles its first kernel."""
