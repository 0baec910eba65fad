"""Sources of rows that need not fit into memory, read chunk by chunk."""

from steelyard.table.sources.chunks import Chunk, Place
from steelyard.table.sources.recognise import as_source, is_dask, scan

__all__ = ["Chunk", "Place", "as_source", "is_dask", "scan"]
