"""What is decided about a column, and what has to be known of it for that.

A table in memory is a summary of one chunk; chunks of a source and partitions of a
cluster have summaries that add up. The rules are the same: they ask a column.

- ``column_rules``: the treatment of a column by the settings of an encoder; kind,
  values, cut points, what takes the place of missing cells, and whether a column looks
  like an identifier.
- ``whole_column``: `WholeColumn`, a column in memory, which answers by its cells, and
  where the numbers of a column lie.
- ``chunked_column``: `ChunkedColumn`, which answers by what its chunks held.
- ``number_cells``: numbers by class in bounded memory, and a second reading of those
  that lie too close together.
- ``table_summary``: `TableSummary`, all columns of the chunks of a table.
"""
