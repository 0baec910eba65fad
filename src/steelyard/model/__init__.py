"""What is learned from, and what comes out.

``training`` has training sets; ``streamed`` makes them of a source, chunk by chunk.
``base`` says what every model answers, what methods keep of their rows and where these
are, and has what scores, losses and weightings share; ``table_model`` is a sum over
attributes, ``beside`` how uncertain it is and what was changed by hand; ``combined``
are models made of such sums, ``lazy`` those that keep their training rows.
"""
