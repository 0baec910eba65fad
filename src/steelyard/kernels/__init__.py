"""Compiled loops over rows. They take arrays, or tuples of them, and nothing else.

Every kernel is plain Python that numba compiles on first use and keeps on disk; with
``NUMBA_DISABLE_JIT=1`` the same code runs uncompiled. Indices into tables are unsigned
on purpose: numba tests every signed index for being negative, which costs a factor of
two to five in these loops.
"""
