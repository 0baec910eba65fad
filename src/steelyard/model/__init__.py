"""What is learned from, and what comes out.

Here is what every fitted model answers: predictions, and questions about itself. Also
what models and methods share: derivatives of posteriors in the scores of rows, and what
methods keep of their rows, from which follows which tables they learn from; and where
rows are.

``training`` has training sets; ``streamed`` makes them of a source, chunk by chunk.
``table_model`` is a sum over attributes, ``beside`` how uncertain it is and what was
changed by hand; ``combined`` are models made of such sums, ``lazy`` those that keep
their training rows.
"""
