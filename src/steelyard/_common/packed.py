"""Numbers as text: their bytes, compressed, in base64. The standard library alone."""

from __future__ import annotations

import base64
import zlib

# Codes of single bytes take a bit at least: what is unpacked is at most so many times
# as long, whoever packed it.
_MOST_TIMES = 8


def pack(raw: bytes) -> str:
    """Return float64 numbers, given by their bytes, as text.

    The first bytes of all numbers come first, then the second, and so on: sign and
    exponent are much the same in a table, and digits are not. Repetitions are not
    looked for, which numbers hardly have.
    """
    planes = b"".join(raw[k::8] for k in range(8))
    deflate = zlib.compressobj(6, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
    return base64.b64encode(deflate.compress(planes) + deflate.flush()).decode("ascii")


def unpack(text: str, n_numbers: int) -> bytes:
    """Return the bytes of so many numbers; ValueError if the text holds anything else.

    Nothing is set aside before the text is long enough for it.
    """
    size = 8 * n_numbers
    data = base64.b64decode(text, validate=True)
    if not 0 < size <= _MOST_TIMES * len(data):
        raise ValueError(f"the text is too short for {n_numbers} numbers")
    inflate = zlib.decompressobj()
    try:
        planes = inflate.decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(planes) != size or not inflate.eof or inflate.unused_data:
        raise ValueError(f"the text does not hold {n_numbers} numbers")
    raw = bytearray(size)
    for k in range(8):
        raw[k::8] = planes[k * n_numbers : (k + 1) * n_numbers]
    return bytes(raw)
