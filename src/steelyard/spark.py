"""A stage for pipelines of Spark ML; frames go to ``fit`` and ``predict`` as well."""

from __future__ import annotations

from typing import Any

from pyspark.ml.base import Estimator, Model
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.ml.param import Param, Params
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasLabelCol,
    HasPredictionCol,
    HasProbabilityCol,
    HasWeightCol,
)
from sklearn.base import clone

from steelyard.exceptions import ColumnError
from steelyard.scale.spark import quoted, scored

__all__ = ["SteelyardClassificationModel", "SteelyardClassifier"]


class _Columns(
    HasFeaturesCol, HasLabelCol, HasWeightCol, HasPredictionCol, HasProbabilityCol
):
    """Names of columns, and which of them are learned from."""

    classifier: Any = Param(
        Params._dummy(), "classifier", "a classifier of steelyard, not fitted"
    )
    columns: Any = Param(
        Params._dummy(), "columns", "names of columns, in place of a vector"
    )

    def _table(self, frame: Any, size: int | None = None) -> tuple[Any, list[str]]:
        """Return a frame with a column for each feature, and their names."""
        if self.isSet(self.columns):
            return frame, list(self.getOrDefault(self.columns))
        name = self.getFeaturesCol()
        if name not in frame.columns:
            raise ColumnError(
                f"The frame has no column {name!r}. Give `features_col`, a vector, or "
                "`columns`, a list of names."
            )
        if size is None:
            size = len(frame.select(quoted(name)).first()[0])
        array, names = (
            vector_to_array(frame[quoted(name)]),
            [f"{name}_{k}" for k in range(size)],
        )
        by_class = {value: array[k] for k, value in enumerate(names)}
        return frame.withColumns(by_class), names


class SteelyardClassifier(Estimator[Any], _Columns):
    """A classifier as a stage of ``Pipeline`` and ``CrossValidator`` of Spark ML.

    Rows stay on the executors. Settings are those of the classifier, which is a
    parameter itself: ``ParamGridBuilder().addGrid(stage.classifier, [...])``.

    Parameters
    ----------
    classifier : classifier, default=None
        What is fitted, ``ShrinkageNB()`` by default.
    columns : list of str, default=None
        Columns to learn from, of any type; None for the vector in ``features_col``.
    features_col, label_col, weight_col : str
        Columns of the frame; no weights by default.
    prediction_col, probability_col : str
        Columns that a fitted model adds: a class, and a vector.
    """

    def __init__(
        self,
        *,
        classifier: Any = None,
        columns: list[str] | None = None,
        features_col: str = "features",
        label_col: str = "label",
        weight_col: str | None = None,
        prediction_col: str = "prediction",
        probability_col: str = "probability",
    ) -> None:
        super().__init__()
        if classifier is None:
            from steelyard import ShrinkageNB

            classifier = ShrinkageNB()
        given = {
            "classifier": classifier,
            "columns": columns,
            "featuresCol": features_col,
            "labelCol": label_col,
            "weightCol": weight_col,
            "predictionCol": prediction_col,
            "probabilityCol": probability_col,
        }
        self._set(**{name: value for name, value in given.items() if value is not None})

    def _fit(self, dataset: Any) -> SteelyardClassificationModel:
        frame, names = self._table(dataset)
        weight = self.getWeightCol() if self.isSet(self.weightCol) else None
        roles = [self.getLabelCol(), *([] if weight is None else [weight])]
        rows = frame.select(*map(quoted, [*names, *roles]))
        fitted = clone(self.getOrDefault(self.classifier)).fit(rows, *roles)
        model = SteelyardClassificationModel(fitted, len(names))
        return self._copyValues(model)


class SteelyardClassificationModel(Model, _Columns):
    """What ``SteelyardClassifier`` fits; ``fitted`` is the model itself."""

    def __init__(self, fitted: Any, n_columns: int = 0) -> None:
        super().__init__()
        self.fitted, self._n_columns = fitted, n_columns

    def _transform(self, dataset: Any) -> Any:
        frame, names = self._table(dataset, self._n_columns)
        probability = self.getProbabilityCol()
        scored_frame = scored(self.fitted, frame, self.getPredictionCol(), probability)
        if not self.isSet(self.columns):
            scored_frame = scored_frame.drop(*names)
        return scored_frame.withColumn(
            probability, array_to_vector(scored_frame[probability])
        )
