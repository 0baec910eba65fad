"""Models as files: one JSON document, checked in full before anything is built.

- Here are the document, its checksum, one class of error, and the whole content,
  checked and plain; ``reader`` is checked access to it, and ``codec`` says how values
  are described, read and built. ``table`` has classes and attributes, ``models`` the
  models, ``fitted`` what else was learned, of which ``records`` are some. Nothing but
  the standard library is loaded so far, and nothing of a classifier.
- ``declarations``: what settings may be, by the classes or by the table of what these
  declare.
- ``content``: a classifier of a content, the content of a classifier, and the classes
  that it may name.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.persistence.files import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.persistence",
    files="load read save",
)
