"""Rows of ShrinkageNB: given and automatic strengths, mixed tables, prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.data import frame, labelled_codes, n_rows
from benchmarks.registry import Case, Target, at_least, row, within_seconds
from steelyard import ShrinkageNB

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
against_trees("automatic strengths", at_least(3))


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
