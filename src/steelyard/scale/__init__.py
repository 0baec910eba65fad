"""Rows on other machines. Loaded when a Dask or Spark frame is met, never before."""
