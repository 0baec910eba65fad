"""Models as files: one JSON document, checked in full before anything is built.

- ``files``: the document, its checksum, one class of error, and the whole content,
  checked and plain; ``reader`` is checked access to it, and ``codec`` says how values
  are described, read and built. ``table`` has classes and attributes, ``models`` the
  models, ``fitted`` what else was learned, of which ``records`` are some. Nothing but
  the standard library is loaded so far.
- ``declarations``: what settings may be, by the classes or by the table of what these
  declare, and what files of earlier releases have otherwise.
- ``content``: a classifier of a content, the content of a classifier, and the classes
  that it may name. ``loaded`` is a model without its classifier.
"""

from steelyard.persistence.files import load, read, save

__all__ = ["load", "read", "save"]
