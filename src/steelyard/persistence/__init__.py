"""Models as files: one JSON document, checked in full before anything is built.

- ``files``: ``save`` and ``load``, the document and its checksum. ``reader`` checks
  types, shapes and ranges of parsed JSON; ``codec`` is fields, each written, read and
  built. ``table`` has classes and attributes, ``models`` the models, ``fitted`` the
  fitted attributes, and ``records`` those that are objects. These load nothing but the
  standard library, and no classifier.
- ``declarations``: the settings and fitted attributes that classes declare, from the
  classes or from ``declared.json``.
- ``content``: from a classifier to the content of its file and back.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.persistence.files import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.persistence",
    files="load read save",
)
