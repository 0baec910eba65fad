"""Models as files: one JSON document, checked in full before anything is built.

- ``files``: the document, its checksum, and one class of error; ``reader`` is checked
  access to it, and ``codec`` says how values are described, read and built.
- ``checked``: the whole content, checked and plain: ``table`` has classes and
  attributes, ``models`` the models, ``fitted`` what else was learned. Nothing but the
  standard library is loaded so far.
- ``declarations``: what settings may be, by the classes or by the table of what these
  declare; ``migrations``: what files of earlier releases have otherwise.
- ``content``: a classifier of a content, and the content of a classifier; ``settings``
  has the classes that it may name.
"""

from steelyard.persistence.files import load, read, save

__all__ = ["load", "read", "save"]
