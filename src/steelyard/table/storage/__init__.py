"""Encoded rows that need not fit in memory.

- ``workspace``: where arrays as long as the table are put, in memory or in files.
- ``store``: `Store`, which takes encoded rows chunk by chunk.
"""
