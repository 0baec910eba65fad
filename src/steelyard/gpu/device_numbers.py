"""Numeric attributes of rows in the memory of a GPU: moments, densities, slopes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.kernels.cuda import densities
from steelyard.kernels.cuda.launching import (
    FEW_THREADS,
    blocks_for,
    launch,
    to_device,
    zeros,
)
from steelyard.proba.counts import Moments
from steelyard.proba.gaussian import GaussianTable


def moments_on_device(
    values: Any, labels: Any, weights: Any, n_rows: int, n_classes: int
) -> Moments:
    """Moments of numbers on the device, (g, n and more), by class."""
    shared, grid = _grid(3, values.shape[0], n_classes)
    parts = zeros((grid[0], 3, *grid[1:]), np.float64)
    rows = values, labels, weights, n_rows, parts
    launch(densities.moments, grid, shared, *rows, threads=FEW_THREADS)
    total = Moments.zeros(*grid[1:])
    for part in parts.copy_to_host():
        total += Moments(*part)
    return total


@dataclass(frozen=True)
class DeviceNumbers:
    """Numbers of rows on a device, and what they say of classes."""

    values: Any
    """Numbers by column, (g, n and more) on the device."""

    gaussian: GaussianTable

    def add(self, factors: Any, row: int, n_rows: int, scores: Any) -> None:
        """Add log-densities of some rows, times factors (g, C), to scores (C, r)."""
        given = self.values, *self._forms, factors, row, n_rows, scores
        launch(densities.add_densities, blocks_for(0), 0, *given)

    def sums(self, width: int) -> Any:
        """Return zeros that ``collect`` adds to."""
        return zeros(self._grid(width)[1], np.float64)

    def collect(self, row: int, n_rows: int, units: Any, sums: Any) -> None:
        """Add up gradients of some rows, (C, r) in units, times their densities."""
        shared, grid = self._grid(units.shape[0])
        given = self.values, *self._forms, row, n_rows, units, sums
        launch(densities.collect_densities, grid, shared, *given, threads=FEW_THREADS)

    def _grid(self, width: int) -> tuple[int, tuple[int, int, int]]:
        return _grid(1, self.values.shape[0], width)

    @cached_property
    def _forms(self) -> tuple[Any, Any]:
        """What kernels know of the attributes."""
        mean, scale, constant, half_width, _, depth, limit = self.gaussian.forms
        return (
            to_device(np.stack([mean, scale, constant])),
            to_device(np.stack([half_width, depth, limit])),
        )


def _grid(n_sums: int, n_numbers: int, width: int) -> tuple[int, tuple[int, int, int]]:
    """Shared memory and blocks for sums of each number and class."""
    shared = 8 * n_sums * FEW_THREADS
    n_blocks = blocks_for(shared, FEW_THREADS) // (n_numbers * width)
    return shared, (max(2, n_blocks), n_numbers, width)
