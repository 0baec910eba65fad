"""What the rules of ``table/learning`` ask of a table that comes in chunks.

Chunks of a source and partitions of a cluster have summaries of bounded size that add
up, in any order.

- ``chunked_column``: `ChunkedColumn`, which answers by what its chunks held.
- ``number_cells``: numbers by class in bounded memory, and a second reading of those
  that lie too close together.
- ``table_summary``: `TableSummary`, all columns of the chunks of a table.
"""
