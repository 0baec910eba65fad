"""Filters: attribute weights that are computed from counts, not optimised."""
