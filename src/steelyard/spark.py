"""A stage for pipelines of Spark ML; frames go to ``fit`` and ``predict`` as well."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyspark import keyword_only
from pyspark.ml.classification import (
    ProbabilisticClassificationModel,
    ProbabilisticClassifier,
)
from pyspark.ml.functions import array_to_vector
from pyspark.ml.linalg import DenseVector, VectorUDT
from pyspark.ml.param import Param, Params
from pyspark.ml.param.shared import HasWeightCol
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType
from pyspark.sql.utils import is_remote
from scipy.special import logsumexp

from steelyard.exceptions import ColumnError, ParameterError
from steelyard.io.paths import find_column
from steelyard.persistence import load
from steelyard.persistence.content import describe_unfitted, unfitted
from steelyard.scale.spark import (
    array_of,
    quoted,
    type_of_labels,
    vector_names,
    with_answers,
)

__all__ = ["SteelyardClassificationModel", "SteelyardClassifier"]

# Labels 0, 1, 2, … up to here are positions in vectors, as in Spark ML.
_MAX_CLASSES = 100


def _described(classifier: Any) -> dict[str, Any]:
    """Return a classifier as JSON has it, so that stages with it can be written."""
    if isinstance(classifier, dict):
        return classifier
    return describe_unfitted(classifier)


def _one_or_several(columns: Any) -> str | list[str]:
    return columns if isinstance(columns, str) else [str(name) for name in columns]


def _error_or_skip(how: Any) -> Any:
    if how not in ("error", "skip"):
        raise TypeError(f"It is 'error' or 'skip', not {how!r}.")
    return how


class _Shared(HasWeightCol, MLWritable, MLReadable[Any]):
    """Parameters of the stage and its model, and how both are written."""

    featuresCol: Any = Param(
        Params._dummy(),
        "featuresCol",
        "a column of vectors, or a list of columns of any type",
        typeConverter=_one_or_several,
    )
    handleInvalid: Any = Param(
        Params._dummy(),
        "handleInvalid",
        "what is done about rows without a label or weight, or with an infinite "
        "number: 'error' or 'skip'",
        typeConverter=_error_or_skip,
    )

    def getHandleInvalid(self) -> str:
        """Return what is done about invalid rows."""
        return self.getOrDefault(self.handleInvalid)

    def setHandleInvalid(self, value: str) -> Any:
        """Set what is done about invalid rows, "error" or "skip"."""
        return self._set(handleInvalid=value)

    def write(self) -> MLWriter:
        """Return a writer, as all of Spark ML have one."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return a reader, as all of Spark ML have one."""
        return _Reader(cls)

    def _features(self, frame: Any) -> tuple[Any, list[str]]:
        """Return a frame in which features are columns or one of vectors; its names."""
        features = self.getFeaturesCol()
        names = [features] if isinstance(features, str) else features
        for name in names:
            hint = " Set featuresCol to a column of vectors or a list of columns."
            find_column(name, frame.columns, "The Spark frame", hint)
        if isinstance(features, str):
            kind = frame.schema[features].dataType
            if isinstance(kind, ArrayType):
                cell = F.col(quoted(features))
                numbers = F.transform(cell, _number)
                vector = F.when(cell.isNotNull(), array_to_vector(numbers))
                frame = frame.withColumn(features, vector)
            elif not isinstance(kind, VectorUDT):
                raise ColumnError(
                    f"featuresCol={features!r} is not a column of vectors, but of "
                    f"{kind.simpleString()}. To learn from that column alone, give a "
                    f"list, [{features!r}]."
                )
        return frame, names

    def _without_invalid(self, frame: Any, names: list[str], roles: list[str]) -> Any:
        """Leave out rows with invalid cells, if asked for; else they raise an error."""
        if self.getHandleInvalid() == "error":
            return frame
        kinds = {field.name: field.dataType for field in frame.schema.fields}
        for name in [*names, *roles]:
            cell, kind, invalid = F.col(quoted(name)), kinds[name], []
            if isinstance(kind, DoubleType | FloatType):
                invalid.append(_is_infinite(cell))
            if isinstance(kind, VectorUDT):
                invalid.append(F.exists(array_of(cell), _is_infinite))
            if name in roles:
                invalid.append(cell.isNull())
                if isinstance(kind, DoubleType | FloatType):
                    invalid.append(F.isnan(cell))
            for is_invalid in invalid:
                frame = frame.where(~F.coalesce(is_invalid, F.lit(False)))
        return frame


def _number(cell: Any) -> Any:
    return F.coalesce(cell.cast("double"), F.lit(float("nan")))


def _is_infinite(number: Any) -> Any:
    return F.abs(number) == float("inf")


class SteelyardClassifier(_Shared, ProbabilisticClassifier):
    """A classifier of steelyard as a classifier of Spark ML.

    Rows stay on the executors. Settings are those of ``classifier``, which is a
    parameter itself: ``ParamGridBuilder().addGrid(stage.classifier, [...])``.

    Parameters
    ----------
    classifier : classifier, default=None
        What is fitted, ``ShrinkageNB()`` by default.
    featuresCol : str or list of str, default="features"
        A column of vectors or arrays of numbers, or columns of any type. Cells may be
        missing.
    labelCol : str, default="label"
        The column of classes: numbers 0, 1, 2 … as other classifiers and the evaluators
        of Spark ML have them, or of any type.
    predictionCol, probabilityCol, rawPredictionCol : str
        Columns that a fitted model adds: a class, a vector of probabilities, and one of
        log-odds of each class against the others. "" for none.
    weightCol : str, default=None
        A column of weights.
    thresholds : list of float, default=None
        One for each class. That with the largest probability divided by its threshold
        is predicted.
    handleInvalid : {"error", "skip"}, default="error"
        What is done about rows without a label or weight, or with an infinite number.
    """

    classifier: Any = Param(
        Params._dummy(),
        "classifier",
        "a classifier of steelyard, not fitted",
        typeConverter=_described,
    )

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        classifier: Any = None,
        featuresCol: str | Sequence[str] = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        rawPredictionCol: str = "rawPrediction",
        weightCol: str | None = None,
        thresholds: Sequence[float] | None = None,
        handleInvalid: str = "error",
    ) -> None:
        super().__init__()
        from steelyard import ShrinkageNB

        self._setDefault(classifier=ShrinkageNB(), handleInvalid="error")
        self.setParams(**self._input_kwargs)

    def setParams(self, **given: Any) -> SteelyardClassifier:
        """Set parameters by name; None leaves them as they are."""
        return self._set(
            **{k: value for k, value in given.items() if value is not None}
        )

    def setWeightCol(self, value: str) -> SteelyardClassifier:
        """Set the column of weights."""
        return self._set(weightCol=value)

    def setClassifier(self, value: Any) -> SteelyardClassifier:
        """Set what is fitted."""
        return self._set(classifier=value)

    def getClassifier(self) -> Any:
        """Return what is fitted."""
        return unfitted(self.getOrDefault(self.classifier))

    def _fit(self, dataset: Any) -> SteelyardClassificationModel:
        label = find_column(self.getLabelCol(), dataset.columns, "The Spark frame")
        weight = self.isSet(self.weightCol) and self.getWeightCol()
        roles = [label, *([weight] if weight else [])]
        frame, names = self._features(dataset)
        frame = self._without_invalid(frame, names, roles)
        rows = frame.select(*map(quoted, [*names, *roles]))
        fitted = self.getClassifier().fit(rows, *roles)
        about = dataset.schema[label].metadata.get("ml_attr", {})
        model = SteelyardClassificationModel(fitted, len(about.get("vals", ())))
        self._copyValues(model)
        model._check_thresholds()
        return model


class SteelyardClassificationModel(_Shared, ProbabilisticClassificationModel):
    """What ``SteelyardClassifier`` fits; ``fitted`` is the model itself.

    Parameters
    ----------
    fitted : classifier
        A fitted one.
    n_labels : int, default=0
        Classes there are, if labels are 0, 1, 2 … and some have no row.
    """

    def __init__(self, fitted: Any, n_labels: int = 0) -> None:
        super().__init__()
        self._setDefault(handleInvalid="error")
        self.fitted, self._n_labels = fitted, n_labels

    @property
    def numClasses(self) -> int:
        """Number of classes, the size of vectors of probabilities."""
        return self._places[1]

    @property
    def numFeatures(self) -> int:
        """Number of columns, or the size of vectors, that were learned from."""
        names = self.getFeaturesCol()
        return len(self._names) if isinstance(names, str) else len(names)

    @property
    def _names(self) -> list[str]:
        return [str(name) for name in self.fitted.feature_names_in_]

    @property
    def _places(self) -> tuple[Any, int]:
        """Position of each class in vectors, and their size.

        As in Spark ML labels 0, 1, 2 … are positions, even if some have no row.
        """
        classes = self.fitted.classes_
        if classes.dtype.kind in "iuf":
            n = max(_MAX_CLASSES, self._n_labels)
            if all(c in range(n) for c in classes.tolist()):
                places = classes.astype(int)
                return places, max(int(places.max()) + 1, self._n_labels)
        return np.arange(len(classes)), len(classes)

    def _check_thresholds(self) -> Any:
        """Return thresholds as an array, None of none."""
        if not self.isSet(self.thresholds):
            return None
        thresholds = np.array(self.getThresholds())
        is_valid = thresholds.min() >= 0 and sum(thresholds == 0) <= 1
        if len(thresholds) != self.numClasses or not is_valid:
            raise ParameterError(
                f"thresholds must be {self.numClasses} numbers, one for each class, "
                f"above 0, of which one may be 0. Got {thresholds.tolist()}."
            )
        return thresholds

    def _answers(self, cells: Any) -> dict[str, Any]:
        """Return classes, and vectors of probabilities and of log-odds."""
        methods = ["predict", "predict_proba", "predict_log_proba"]
        label, proba, log_proba = self.fitted._answers(cells, *methods)
        places, n = self._places
        probability = np.zeros((len(label), n))
        raw = np.full((len(label), n), -np.inf)
        probability[:, places] = proba
        for k, place in enumerate(places):
            others = np.delete(log_proba, k, axis=1)
            raw[:, place] = log_proba[:, k] - logsumexp(others, axis=1)
        thresholds = self._check_thresholds()
        if thresholds is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = np.nan_to_num(probability / thresholds, nan=-1, posinf=np.inf)
            label = self.fitted.classes_[np.argmax(shares[:, places], axis=1)]
        return {"class": label, "proba": [*probability], "raw": [*raw]}

    def _transform(self, dataset: Any) -> Any:
        self._check_thresholds()
        frame, names = self._features(dataset)
        frame = self._without_invalid(frame, names, [])
        if isinstance(self.getFeaturesCol(), str):
            vectors = {names[0]: self._names}
        else:
            vectors = vector_names(frame.select(*map(quoted, names)), self._names)
        kind = type_of_labels(self.fitted.classes_)
        outputs = {
            self.getRawPredictionCol(): ("raw", "array<double>"),
            self.getProbabilityCol(): ("proba", "array<double>"),
            self.getPredictionCol(): ("class", "double" if kind == "bigint" else kind),
        }
        outputs.pop("", None)
        result = with_answers(self.fitted, frame, self._answers, outputs, vectors)
        for name, (key, _) in outputs.items():
            if key != "class":
                vector = array_to_vector(F.col(quoted(name)))
                result = result.withColumn(name, vector)
        return result

    def _answer(self, value: Any) -> dict[str, Any]:
        """Return the answers to one row: a vector, or a ``Row`` of columns."""
        import pandas as pd

        features = self.getFeaturesCol()
        if isinstance(features, str):
            numbers = getattr(value, features, value)
            return self._answers(pd.DataFrame([numbers.toArray()], columns=self._names))
        return self._answers(pd.DataFrame([value.asDict()])[features])

    def predict(self, value: Any) -> Any:
        """Predict the class of one row: a vector, or a ``Row`` of columns."""
        return self._answer(value)["class"].tolist()[0]

    def predictProbability(self, value: Any) -> DenseVector:
        """Return the probability of each class for one row."""
        return DenseVector(self._answer(value)["proba"][0])

    def predictRaw(self, value: Any) -> DenseVector:
        """Return the log-odds of each class for one row."""
        return DenseVector(self._answer(value)["raw"][0])


class _Writer(MLWriter):
    """Writes parameters as Spark ML does, and of a model its file beside them."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def _handleOverwrite(self, path: str) -> None:
        # Spark's own deletes the folder by way of Java, which Spark Connect does not
        # have: there files are replaced.
        if not is_remote():
            super()._handleOverwrite(path)

    def saveImpl(self, path: str) -> None:
        instance = self.instance
        more = {"n_labels": getattr(instance, "_n_labels", 0)}
        session = self.sparkSession
        metadata = DefaultParamsWriter._get_metadata_to_save(instance, session, more)
        self._write(metadata, path, "metadata")
        if isinstance(instance, SteelyardClassificationModel):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "model.json")
                instance.fitted.save(file)
                self._write(file.read_text().strip(), path, "model")

    def _write(self, text: str, *path: str) -> None:
        """Write a text of one line, to where Spark writes."""
        lines = self.sparkSession.createDataFrame([(text,)], ["value"]).coalesce(1)
        mode = "overwrite" if self.shouldOverwrite else "error"
        lines.write.mode(mode).text("/".join(path))


class _Reader(MLReader[Any]):
    def __init__(self, kind: type) -> None:
        super().__init__()
        self._kind = kind

    def load(self, path: str) -> Any:
        name = f"{self._kind.__module__}.{self._kind.__name__}"
        text = self._read(path, "metadata")
        metadata = DefaultParamsReader._parseMetaData(text, name)
        if self._kind is SteelyardClassifier:
            instance = self._kind()
        else:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "model.json")
                file.write_text(self._read(path, "model"))
                instance = self._kind(load(file), metadata["n_labels"])
        instance._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance

    def _read(self, *path: str) -> str:
        return self.sparkSession.read.text("/".join(path)).first()[0]
