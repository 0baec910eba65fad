"""Filters: attribute weights that are computed from counts, not optimised.

They are a start, or the answer itself. One of them is by a subset that
correlation-based selection (CFS) chooses. ``information`` has what filters are made of,
``trees`` those that grow trees.
"""
