"""Words and numbers that classes, model files and exports have in common.

They stand apart from the classes, which need not be loaded to read a file.
"""

from __future__ import annotations

FORMS = ("adaboost-m1", "elkan")
"""Forms of boosting."""

KERNELS = ("linear", "epanechnikov", "tricube", "inverse", "gauss", "constant")
"""How the weights of neighbours fall with their distance."""

SEARCH_ENDS = ("complete", "time limit", "interrupted")
"""How a search for attributes may come to its end."""

N_BARS = 20
"""Bars of a histogram, all of one width."""

MOST_HASHES, HASH_BYTES = 256, 6
"""How many hashes of training rows a model keeps, and how long they are."""

MOST_KEPT, LEAST_OF_WIDE, MOST_KEPT_CELLS = 40_000, 10_000, 1_000_000
"""How many rows a model keeps at most to go on learning from.

Of a wide table, of more cells than that, fewer.
"""

# Weights of rows and of classes, and sums of their products, stay finite in single
# precision, which preconditioners have.
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-15, 1e15

# Deviations on a grid are a sixth of its step, and their inverses finite.
LEAST_STEP = 1e-300

# Relative densities: how far evidence may go against a class.
DENSITY_DEPTH = 20.0

# Linear attributes: deviations from the mean beyond which a number says no more.
SLOPE_LIMIT = 4.0


SHAPES = {
    "increasing": "never go down",
    "decreasing": "never go up",
    "convex": "bend upwards, by the centres of bins",
    "concave": "bend downwards, by the centres of bins",
    "peak": "go up, then down",
    "valley": "go down, then up",
}
"""Names of shapes, and what log-odds do along the column."""
