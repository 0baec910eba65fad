"""What every classifier shares: one way to fit.

Some share more: ``chunked`` learns from rows that come in chunks, ``selection`` makes a
transformer of what selects columns, ``prior`` gives a fitted one other priors.
"""
