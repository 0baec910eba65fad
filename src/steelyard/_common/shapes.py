"""Shapes that the curve of a column may be asked to have."""

from __future__ import annotations

SHAPES = {
    "increasing": "never go down",
    "decreasing": "never go up",
    "convex": "bend upwards, by the centres of bins",
    "concave": "bend downwards, by the centres of bins",
    "peak": "go up, then down",
    "valley": "go down, then up",
}
"""Names of shapes, and what log-odds do along the column."""
