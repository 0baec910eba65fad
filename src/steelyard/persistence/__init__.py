"""Models as files: one JSON document, checked in full before anything is built.

- ``files``: ``save`` and ``load``, the document and its checksum.
- ``reader`` checks types, shapes and ranges of parsed JSON; ``codec`` is fields, each
  of which describes a value and reads it.
- ``table`` has classes and attributes of tables, ``models`` the models, ``fitted`` the
  fitted attributes.
- ``declarations``: the settings and fitted attributes that classes declare, by
  ``declared.json``.
- ``content``: from a classifier to the content of its file and back.

All but ``content`` load no library but NumPy, and no classifier.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.persistence.files import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.persistence",
    files="load read save",
)
