"""A GPU: rows that are counted, passed over and predicted in its memory.

This file is what the rest of the library meets, by the name that ``fitting.recipe`` has
of it: whether there is a device, and rows on one. It is loaded if ``device=`` asks
for one or an array lives there; all else, and numba's CUDA with it, once a device is
used. ``arrays`` takes arrays of CuPy and PyTorch, and predicts; ``device_place`` says
what is done to training rows, in ``device_codes``, ``device_counts`` and
``device_rows`` (passes). The kernels are in ``kernels.cuda``.
"""
