"""From a user's table to codes: any frame becomes a `Table`, a `Table` becomes `Codes`.

Nothing outside this folder knows what library a table came from, and no step goes back
to the user's frame: `Table.take` makes a table of some rows.

Reading
    - ``frames``: any frame or array becomes a `Table` of columns, or is refused.
    - ``columns``: one column, of NumPy, Python objects or a frame library.
    - ``factors``: the distinct values of a column and where they are.
    - ``labels``: the classes and a number for every row; rows that have no label or no
      weight are left out.

Deciding
    - ``schema``: what a model knows of its table: names, kinds, values, cut points.
    - ``discretizers``: cut points of numeric columns, as scikit-learn transformers.
    - ``summary``: what is known of a column, in memory or from chunks, and the rules
      that make a schema of it.

Encoding
    - ``encoder``: `TableEncoder`, which learns a schema and encodes tables by it;
      ``by_schema`` is its part that encodes, by column, and matrices of small whole
      numbers without a copy.
    - ``codes``: `Codes`, the encoded table, made of blocks of columns; interactions of
      columns are joined from their codes.
    - ``packing``: several small codes in one byte, for the loops of a fit.
    - ``storage``: encoded rows in files, for tables larger than memory.
"""
