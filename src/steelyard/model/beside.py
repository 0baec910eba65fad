r"""What stands beside a model that is a sum: uncertainty, and a record of edits.

How uncertain log-odds are, a table by code says. Those of class c against the others
have the variance

.. math:: v_c(x) = b_c + \sum_j D_{j,x_j,c}
          + \sum_r \Bigl(\sum_j F^{(r)}_{j,x_j,c}\Bigr)^2

over the cells of a row, pairs included, and an interval is
:math:`\sigma(\operatorname{logit} p_c \pm z \sqrt{v_c})`. All that is needed is plain
data: ``base`` b (C,), ``variances`` D (V, C) and ``factors`` F (R, V, C), with a row
for each row of the model's own table and a column for each class, but a single one for
two classes, whose log-odds are as uncertain. So a page or another program makes the
same interval: it adds up rows of D and of each F by the codes of a row, as it does for
scores, squares the sums of the F, and adds all up. `Uncertainty.data` gives the tables
as plain lists. What some cells add, less the mean m over the training rows
(`Uncertainty.centres`), has the variance :math:`\sum D + \sum_r (\sum F^{(r)} - m_r)^2`
over these cells alone: that of a contribution or a point of a curve. There are no F but
in files of earlier versions, whose importances take them too; ``means`` (d, C) has the
variance of each importance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces
from steelyard.kernels import scoring
from steelyard.model.table_model import NBModel, spread_table
from steelyard.proba.counts import Counts
from steelyard.table.codes import Codes, FeatureTable

LEVEL = 0.9
"""Level of the intervals of explanations."""


def half_width(variances: Floats, level: float = LEVEL) -> Floats:
    """Return half the width of intervals of log-odds with some variances."""
    return np.asarray(ndtri(0.5 + level / 2.0) * np.sqrt(np.maximum(variances, 0.0)))


@dataclass(frozen=True)
class Uncertainty:
    """Variances of log-odds, as tables by code."""

    base: Floats
    """What every row has, shape (C,): a column for each class, one for two classes."""

    variances: Floats
    """What each code has of its own, shape (V, C)."""

    factors: Floats
    """What codes share, shape (R, V, C): R is 0, and was 12 in earlier files."""

    means: Floats | None = None
    """Of the mean size of what attributes add, shape (d, C)."""

    def of_rows(self, codes: Codes) -> Floats:
        """Return the variance of the log-odds of rows, shape (n, C)."""
        tables = np.concatenate([self.variances[None], self.factors])
        n_tables, n_codes, n_columns = tables.shape
        flat = np.ascontiguousarray(np.moveaxis(tables, 0, 1))
        flat = flat.reshape(n_codes, n_tables * n_columns)
        blocks = [(b, *spread_table(b, codes, flat)) for b in codes.blocks]
        out = np.empty((codes.n_rows, n_columns))
        for rows in pieces(slice(0, codes.n_rows)):
            sums = np.zeros((rows.stop - rows.start, n_tables * n_columns))
            for block, starts, table in blocks:
                scoring.gather(block.values[rows], starts, table, sums)
            by_table = sums.reshape(-1, n_tables, n_columns)
            shared = (by_table[:, 1:] ** 2).sum(axis=1)
            out[rows] = self.base + by_table[:, 0] + shared
        return out

    def intervals(self, codes: Codes, log_proba: Floats, level: float) -> Floats:
        """Return low and high of probabilities, given their logarithms: (n, K, 2)."""
        half = half_width(self.of_rows(codes), level)
        share = np.exp(log_proba)
        # The others have what is left; of two classes exactly.
        rest = share.sum(axis=1, keepdims=True) - share
        with np.errstate(divide="ignore"):
            odds = log_proba - np.log(rest)
        return np.asarray(expit(np.stack([odds - half, odds + half], axis=-1)))

    def centres(self, counts: Counts) -> Floats:
        """Return means of the factors of attributes over training rows, (d, R, C)."""
        rows = counts.by_code.sum(axis=1)[:, None, None] / max(counts.total, 1e-300)
        table = FeatureTable(self.variances, counts.schema.offsets)
        return table.collect(rows * np.moveaxis(self.factors, 0, 1))

    def of_cells(self, cells: Ints, centre: Floats) -> Floats:
        """Return variances of what m cells add beyond their mean: (n, m) to (n, C).

        Cells are rows of the table, and the mean has shape (R, C).
        """
        factors = self.factors[:, cells].sum(axis=2) - centre[:, None]
        return self.variances[cells].sum(axis=1) + (factors**2).sum(axis=0)

    def of_evidence(
        self, codes: Codes, counts: Counts, views: list[list[int]]
    ) -> tuple[Floats, Floats]:
        """Return variances of what columns of rows say (n, d, K), and of all (n, K).

        A column has one or more views, its attributes.
        """
        cells = codes.schema.offsets[:-1] + codes.by_column().T.astype(np.int64)
        centres = self.centres(counts)
        each = [self.of_cells(cells[:, v], centres[v].sum(axis=0)) for v in views]
        zeros = np.zeros(len(counts.by_class))
        return np.stack(each, axis=1) + zeros, self.of_rows(codes) + zeros

    def of_mean(self, cells: Ints, centre: Floats, shares: Floats) -> Floats:
        """Return variances of means of what cells add, by shares (n, C): shape (C,)."""
        factors = self.factors[:, cells].sum(axis=2) - centre[:, None]
        alone = (shares**2 * self.variances[cells].sum(axis=1)).sum(axis=0)
        return np.asarray(alone + ((shares * factors).sum(axis=1) ** 2).sum(axis=0))

    def data(self) -> dict[str, list[Any]]:
        """Return the tables as lists, for other programs: see the module."""
        own = {key: value for key, value in vars(self).items() if value is not None}
        return {key: value.tolist() for key, value in own.items()}


@dataclass(frozen=True, eq=False)
class Edit:
    """One change of a model that is a sum, with all that undoing it needs."""

    attribute: str
    """The column, or pair of columns; empty for the start of the sum."""

    text: str
    """What was done, in words."""

    asked: str
    """What was asked for, as JSON."""

    reason: str
    when: str
    """Date and time, UTC."""

    values: list[str]
    """The values that were changed."""

    before: list[float]
    """Evidence of each of them before, in log-odds."""

    after: list[float]
    """The same after it."""

    places: list[int]
    """Entries of the table of the model that were changed, counted along its rows."""

    table: list[float]
    """What these entries were."""

    log_prior: Floats
    """What the log prior was."""

    centre: Floats | None
    """What the means over the training rows were; None if there were none."""

    factors: Floats | None
    """What the factors of densities were; None if there were none."""

    def __str__(self) -> str:
        """Say in one line what was done, why and when."""
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.text}{why}, {self.when}"


def difference(old: NBModel, new: NBModel) -> dict[str, Any]:
    """Return what undoing takes: the entries of the old model."""
    places = np.flatnonzero((old.table != new.table).ravel())
    return {
        "places": places.tolist(),
        "table": old.table.ravel()[places].tolist(),
        "log_prior": old.log_prior,
        "centre": old.centre,
        "factors": old.gaussian.weight,
    }


def undone(model: NBModel, edit: Edit) -> NBModel:
    """Return the model as it was before an edit, to the bit."""
    table = model.table.copy()
    table.ravel()[edit.places] = edit.table
    return replace(
        model,
        table=table,
        log_prior=edit.log_prior,
        centre=edit.centre,
        gaussian=replace(model.gaussian, weight=edit.factors),
    )
