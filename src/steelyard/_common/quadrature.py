"""Points and weights for means over normal numbers, without NumPy."""

from __future__ import annotations

import math

Points = tuple[tuple[float, float], ...]

# Gauss-Hermite quadrature for a standard normal: the positive half of 20 nodes.
_HERMITE = (
    (0.3469641570813559, 0.2607930634495548),
    (1.042945348802751, 0.16173933398400003),
    (1.7452473208141268, 0.06150637206397696),
    (2.458663611172368, 0.013997837447100996),
    (3.1890148165533896, 0.0018301031310804924),
    (3.9439673506573163, 0.00012882627996192942),
    (4.734581334046055, 4.4021210902308646e-06),
    (5.5787388058932015, 6.127490259982928e-08),
    (6.510590157013654, 2.4820623623151797e-10),
    (7.619048541679758, 1.2578006724379264e-13),
)

HERMITE: Points = (*((-x, w) for x, w in reversed(_HERMITE)), *_HERMITE)
"""Nodes and weights, in order."""


def radii(n: int) -> Points:
    """Return distances of cubature points on each of ``n`` axes, and their weights.

    They have the second and fourth moments of the length of n normal numbers. There are
    two points at each distance, on both sides.

    >>> round(sum(6 * weight * radius**2 for radius, weight in radii(3)), 9)
    3.0
    """
    spread = math.sqrt(2.0 * n + 4.0)
    near, far = n + 2.0 - spread, n + 2.0 + spread
    share = (n - near) / (far - near)
    return (
        (math.sqrt(near), (1.0 - share) / (2.0 * n)),
        (math.sqrt(far), share / (2.0 * n)),
    )
