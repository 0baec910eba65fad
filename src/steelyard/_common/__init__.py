"""What every folder may use.

``settings`` declares and checks settings, by what is ``allowed``, which also has words
and numbers that classes, files and exports have in common. ``arrays`` has names of
arrays and where rows are, ``threads`` blocks of rows, ``progress`` bars, ``files``
atomic writes and temporary folders, ``text`` and ``html`` their output, ``loading``
modules that are loaded when they are first used, and ``one_cell`` rules for a single
cell.
"""

from steelyard._common.loading import Later, import_optional, names_of, np

__all__ = ["Later", "import_optional", "names_of", "np"]
