"""The command line: parses, calls a public function, prints what it returns.

Here are its parser, and what becomes of errors. ``fit``, ``predict`` and ``explain``
have a file each; ``evaluate`` has ``monitor`` too, ``export`` the card and edits,
``experiments`` what runs many fits, and ``methods`` lists. ``options``, ``inputs``
and ``output`` are shared; ``quick`` predicts small files.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.cli.run import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.cli",
    run="main",
)
