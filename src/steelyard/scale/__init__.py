"""Rows on other machines. Loaded when a Dask collection is met, never before."""
