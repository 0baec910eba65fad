"""From a user's table to codes: any frame becomes a `Table`, a `Table` becomes `Codes`.

Nothing outside this folder knows what library a table came from, and no step goes back
to the user's frame: `Table.take` makes a table of some rows.

Reading
    - ``frames``: any frame or array becomes a `Table` of columns, or is refused.
    - ``columns``: one column: numbers, text, Python objects, or categories.
    - ``factors``: the distinct values of a column and where they are.
    - ``dates``: a column of dates as columns of numbers.
    - ``labels``: the sorted classes, and a number for every row.
    - ``rows``: a table with its labels and weights, and which rows are left out.

Deciding
    - ``schema``: what a model knows of its table: names, kinds, values, cut points.
    - ``treatments``: what the settings of an encoder ask of each column.
    - ``discretizers``: cut points of numeric columns, as scikit-learn transformers.
    - ``learning``: the rules that give a column its schema; ``identifiers`` says which
      columns look like names of rows, ``ranges`` where numbers lie.
    - ``summary``: what the rules ask of a table that comes in chunks.

Encoding
    - ``encoder``: `TableEncoder`, which learns a schema and encodes tables by it.
    - ``encoding``: from a table to codes by a schema; matrices of small whole numbers
      are taken without a copy.
    - ``codes``: `Codes`, the encoded table, made of blocks of columns; interactions of
      columns are joined from their codes.
    - ``packing``: several small codes in one byte, for the loops of a fit.
    - ``storage``: encoded rows in files, for tables larger than memory.
"""
