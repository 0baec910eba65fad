"""Codes of two columns joined into one."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def join(a, b, parts_a, parts_b, out):
    """Write what two codes of every row add up to: out[i] = parts_a[a] + parts_b[b].

    a, b (n,) unsigned codes, parts by code, out (n,) unsigned.
    """
    for i in range(out.shape[0]):
        out[i] = parts_a[a[i]] + parts_b[b[i]]
