"""Experiments: reading data sets, and later running and reporting comparisons."""
