"""The kernels that run on a GPU: how they are started, and what they share.

Scattering, gathering, and passes that do both: like their neighbours on the CPU they
are plain functions over arrays, here over arrays of the device. Codes are by column,
four rows to a 32-bit word, so that threads side by side read words side by side.
Nothing here is imported before a device, or the simulator of numba, is asked for.

Sums are the same bits in every run: counts are whole numbers, soft counts are whole
numbers in units of a power of two, and both may be added in any order; losses are added
in the order of threads. Sums are in fixed point: 64-bit whole numbers as two 32-bit
halves in shared memory. Two additions of 32 bits with a carry are 2.4 times as fast
there as one of 64 (13 against 5.3 ms a pass over 100,000,000 rows of 25 joint codes on
an H200).

The text of a loss is that of ``kernels.losses``, compiled for the device with its own
exponential. The deviance has separate loops, as it has there, and so has the squared
error of a mixture.
"""
