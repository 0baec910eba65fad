"""Rows of ShrinkageNB: given and automatic strengths, mixed tables, prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.data import frame, labelled_codes, labelled_numbers, n_rows
from benchmarks.registry import (
    Case,
    Target,
    at_least,
    at_most,
    row,
    within_seconds,
)
from steelyard import ShrinkageNB
from steelyard.fitting.default.interactions import score_columns
from steelyard.weighting.filters.information import pair_information

STRENGTH = (2.5, 10.0, 2.5)


def against_trees(name: str, target: Target, **settings: Any) -> None:
    # The trees take half a minute: no run of theirs is wasted.
    @row(
        f"SHNB 100,000 x 50, 2 classes, {name}",
        target,
        rounds=2,
        memory=False,
        warm_up=False,
    )
    def _(scale: float) -> Case:
        X, y = labelled_codes(n_rows(100_000, scale), 50, 2)
        trees = HistGradientBoostingClassifier(categorical_features=[True] * 50)

        def ours() -> Any:
            return ShrinkageNB(categorical_features="all", n_jobs=2, **settings).fit(
                X, y
            )

        def confirm() -> None:
            often = np.bincount(y).max() / len(y)
            fitted = ours()
            assert fitted.score(X, y) > often, "no better than the most frequent class"
            assert fitted.n_iter_ < fitted.max_iter, "stopped early"

        return Case(
            ours, {"HistGradientBoosting": lambda: trees.fit(X, y)}, confirm=confirm
        )


against_trees("given strengths", at_least(20), strength=STRENGTH)
against_trees(
    "automatic strengths, one resolution, no interactions",
    at_least(6),
    resolutions=1,
    interactions=None,
)
against_trees("automatic strengths and interactions", at_least(1))


def wide_table(n: int, d: int, n_classes: int) -> tuple[Any, Any]:
    """Numbers around a mean of each class."""
    random = np.random.default_rng(0)
    y = random.integers(0, n_classes, n)
    means = random.normal(0.0, 0.6, (n_classes, d))
    return means[y] + random.normal(size=(n, d)), y


def of_wide_table(n: int, d: int, n_classes: int, seconds: float) -> None:
    @row(
        f"SHNB {n:,} x {d} numbers, {n_classes} classes, automatic strengths and "
        "interactions",
        within_seconds(seconds),
        rounds=2,
    )
    def _(scale: float) -> Case:
        # Too small to be made smaller.
        X, y = wide_table(n, d, n_classes)
        return Case(lambda: ShrinkageNB(n_jobs=2).fit(X, y))


of_wide_table(2_000, 40, 11, 5.0)
of_wide_table(1_000, 300, 5, 8.0)
of_wide_table(252, 751, 2, 6.0)


@row("ranking of all interactions, 100,000 x 50, 2 classes", at_most(3), rounds=3)
def _(scale: float) -> Case:
    X, y = labelled_codes(n_rows(100_000, scale), 50, 2)
    recipe = ShrinkageNB(categorical_features="all", n_jobs=2)._recipe()
    training = recipe.encode(X, y)
    share = np.full((len(y), 2), 0.5)
    residual = np.stack([y == 0, y == 1], axis=1) - share
    ends = np.linspace(0, len(y), 6).astype(np.int64)[1:]
    deals = [(slice(0, len(y)), ends)]
    return Case(
        lambda: score_columns(training, residual, share * (1.0 - share), deals),
        {"mutual information": lambda: pair_information(training)},
    )


def mixed_table(n: int) -> tuple[Any, Any]:
    """Twelve columns of text and eight of numbers."""
    X, y = frame(n, "object")
    return X.iloc[:, [*range(12), *range(30, 38)]], y


@row("SHNB 1,000 x 20, mixed table, automatic strengths", within_seconds(0.5))
def _(scale: float) -> Case:
    # Too small to be made smaller.
    X, y = mixed_table(1_000)

    def confirm() -> None:
        fitted = ShrinkageNB(n_jobs=2).fit(X, y)
        assert len(fitted.strength_path_) > 1, "no strengths were compared"

    return Case(lambda: ShrinkageNB(n_jobs=2).fit(X, y), confirm=confirm)


@row("SHNB predict_proba 100,000 x 20, mixed frame", at_least(3))
def _(scale: float) -> Case:
    X, y = mixed_table(n_rows(100_000, scale))
    few = slice(0, 10_000)
    text = [name for name in X.columns if name.startswith("text")]
    numbers = [name for name in X.columns if name.startswith("number")]
    logistic = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), numbers)
        ),
        LogisticRegression(max_iter=1000),
    ).fit(X[few], y[few])
    ours = ShrinkageNB(strength=STRENGTH, n_jobs=2).fit(X[few], y[few])
    return Case(
        lambda: ours.predict_proba(X),
        {"LogisticRegression, ColumnTransformer": lambda: logistic.predict_proba(X)},
    )


def of_missing_cells(name: str, n_patterns: int, target: Target) -> None:
    """Rows with missing cells beside complete ones; no pattern: complete rows."""

    @row(f"SHNB predict_proba 100,000 x 30 numbers, {name}", target)
    def _(scale: float) -> Case:
        X, y = labelled_numbers(n_rows(100_000, scale), 30)
        few = slice(0, 5_000)
        ours = ShrinkageNB(n_jobs=1).fit(X[few], y[few])
        if n_patterns == 0:
            sums = ShrinkageNB(n_jobs=1, unknown="sum").fit(X[few], y[few])
            return Case(
                lambda: ours.predict_proba(X),
                {'unknown="sum"': lambda: sums.predict_proba(X)},
            )
        random = np.random.default_rng(0)
        patterns = random.random((n_patterns, 30)) < 0.5
        partial = np.where(
            patterns[random.integers(n_patterns, size=len(X))], np.nan, X
        )
        return Case(
            lambda: ours.predict_proba(partial),
            {"complete rows": lambda: ours.predict_proba(X)},
        )


of_missing_cells("moments of missing cells", 0, at_most(1.02))
of_missing_cells("one pattern of missing cells", 1, at_most(2))
of_missing_cells("1,000 patterns of missing cells", 1_000, at_most(5))


def of_moments(name: str, n: int, d: int) -> None:
    """Fits with the moments that rows with missing cells need, beside those without."""

    @row(f"SHNB {name}, moments of missing cells", at_most(1.05), rounds=3)
    def _(scale: float) -> Case:
        if d:
            X, y = labelled_numbers(n_rows(n, scale) if n > 5_000 else n, d)
        else:
            X, y = load_breast_cancer(return_X_y=True)
        return Case(
            lambda: ShrinkageNB(n_jobs=1).fit(X, y),
            {'unknown="sum"': lambda: ShrinkageNB(n_jobs=1, unknown="sum").fit(X, y)},
        )


of_moments("breast cancer", 569, 0)
of_moments("5,000 x 20 numbers, 2 classes", 5_000, 20)
of_moments("100,000 x 50 numbers, 2 classes", 100_000, 50)
