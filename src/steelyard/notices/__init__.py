"""What is suspicious about rows: at fit, in new rows, in rows to evaluate on.

``notice`` has the one kind of object, how lists of them are put in order, and the rules
for new rows, with the standard library alone. ``check`` reads tables for them, and has
hashes of rows; ``training`` has the rules at fit, from what is counted already.
``record`` has what a model keeps of its training rows.
"""
