"""The kernels that run on a GPU: scattering, gathering, and passes that do both.

Like their neighbours on the CPU they are plain functions over arrays, here over arrays
of the device. Codes lie by column, four rows to a 32-bit word, so that threads side by
side read words side by side. Nothing here is imported before a device is asked for.

Sums are the same bits in every run: counts are whole numbers, soft counts are whole
numbers in units of a power of two, and both may be added in any order; losses are added
in the order of threads.
"""
