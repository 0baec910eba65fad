"""What is suspicious about rows: at fit, in new rows, in rows to evaluate on.

``notice`` has the one kind of object, how lists of them are put in order, and the rules
for new rows, with the standard library alone. ``check`` reads tables for them, and has
hashes of rows; ``training`` has the rules at fit, from what is counted already.
``record`` has what a model keeps of its training rows.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.notices.notice import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.notices",
    notice="Notice",
)
