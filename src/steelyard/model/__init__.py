"""Training sets, and fitted models.

- ``base``: the interface of all models, derivatives of posteriors in the scores of
  rows, what methods keep of their rows, and backends of rows.
- ``training`` has training sets; ``streamed`` makes them of a source, chunk by chunk.
- ``table_model`` is a sum over attributes, ``uncertainty`` the variances of its
  log-odds, ``edits`` changes by hand. ``combined`` has models that are made of such
  sums, ``lazy`` those that keep their training rows.
"""
