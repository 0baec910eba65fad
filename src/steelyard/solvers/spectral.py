"""Spectral projected gradients in the units of a rough Hessian."""

from __future__ import annotations

from typing import Any

from steelyard._common.arrays import Floats
from steelyard._common.settings import number, setting, whole
from steelyard._common.threads import one_blas_thread
from steelyard.solvers.base import (
    AnyObjective,
    Box,
    Metric,
    Solution,
    Solver,
    Status,
    note_iteration,
    runaway,
)
from steelyard.solvers.lbfgs import LBFGS

# A step has to go below the largest of so many values (Grippo, Lampariello & Lucidi,
# 1986).
_REMEMBERED = 10
_ARMIJO = 1e-4
_MIN_STEP = 1e-10
_LONGEST = 1e6

# The length of a step goes up and down by powers of ten: what it promises has to be
# this much less than what is asked for.
_CAUTION = 0.01


class SpectralGradient(Solver):
    r"""Spectral projected gradients (Birgin, Martínez & Raydan, 2000) in a metric.

    .. math:: d = \arg\min_{l \le w + d \le u}\; g^\top d + \tfrac1{2\alpha} d^\top P d

    with the rough Hessian P of the objective, and :math:`\alpha` the length that fits
    the last step (Barzilai & Borwein, 1988). One class's weights of many attributes
    move its scores alike: along that direction the objective bends a million times more
    than along others, and bounds cut steps off that were balanced. P knows of it.
    """

    tol: float = setting(
        default=1e-10,
        allowed=number(0.0),
        about="Stop when a step promises to lower the objective by less than a "
        "hundredth of this share of it.",
    )
    max_iter: int = setting(
        default=1000, allowed=whole(1), about="Largest number of iterations."
    )

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, within bounds."""
        metric = None if box.is_open.any() else objective.units(start, box)
        if isinstance(metric, Metric):
            with one_blas_thread():
                found = self._minimize(objective, box.clip(start), box, metric)
            if found.status != "stalled":
                return found
            start = found.weights
        return LBFGS(self.tol, self.max_iter).minimize(objective, start, box)

    def _minimize(
        self, objective: AnyObjective, x: Floats, box: Box, metric: Metric
    ) -> Solution:
        records: list[dict[str, Any]] = []
        value, gradient = objective(x)
        values, length, status = [value], 1.0, runaway(objective, value, box)
        end: Status = "iterations"
        while status is None and len(records) < self.max_iter:
            step = metric.step(length * gradient, box.lower - x, box.upper - x)
            slope = float(gradient @ step)
            if slope >= -_CAUTION * self.tol * abs(value):
                status = "converged"
                break
            found = _search(objective, x, step, slope, value, max(values))
            if found is None:
                end = "stalled"
                break
            t, new_value, new_gradient = found
            bend = t * float(step @ (new_gradient - gradient))
            length = _LONGEST
            if bend > 0.0:
                length = min(t * t * metric.square(step) / bend, _LONGEST)
            x, value, gradient = box.clip(x + t * step), new_value, new_gradient
            values = [*values[1 - _REMEMBERED :], value]
            note_iteration(records, objective, value, box.projected(x, gradient), t)
            status = runaway(objective, value, box)
        if status is None:
            flat = box.is_flat(x, value, gradient, self.tol)
            status = "converged" if flat else end
        return Solution(x, value, status, len(records), records)


def _search(
    objective: AnyObjective,
    x: Floats,
    step: Floats,
    slope: float,
    value: float,
    largest: float,
) -> tuple[float, float, Floats] | None:
    """Shorten a step until the objective is below the largest of the last values."""
    t = 1.0
    while t >= _MIN_STEP:
        new, gradient = objective(x + t * step)
        if new <= largest + _ARMIJO * t * slope:
            return t, new, gradient
        # The minimum of the parabola through what is known, within limits.
        above = new - value - t * slope
        best = -0.5 * t * t * slope / above if above > 0.0 else 0.0
        t = min(max(best, 0.1 * t), 0.5 * t)
    return None
