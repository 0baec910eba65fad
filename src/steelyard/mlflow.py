"""Models in MLflow, as their JSON file: logged, registered, loaded and served."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema
from mlflow.types.schema import AnyType

from steelyard import __version__
from steelyard.exceptions import ParameterError, check_fitted
from steelyard.export import row_schema
from steelyard.persistence import load

__all__ = ["load_model", "log_model", "save_model", "signature_of"]

_FILE = "model.json"
_METHODS = ("predict", "predict_proba", "predict_log_proba")


def log_model(clf: Any, name: str | None = None, **settings: Any) -> Any:
    """Log a fitted classifier as a model of MLflow, under the active run.

    Parameters
    ----------
    clf : classifier
        A fitted classifier.
    name : str, default=None
        What MLflow calls the model.
    **settings
        Of ``mlflow.pyfunc.log_model``, such as ``registered_model_name`` and
        ``input_example``. The signature is that of ``signature_of`` by default, and
        ``pip_requirements`` this version of steelyard.

    Returns
    -------
    mlflow.models.model.ModelInfo
        With ``model_uri``, for ``load_model`` and ``mlflow models serve``.
    """
    return _written(mlflow.pyfunc.log_model, clf, settings, name=name)


def save_model(clf: Any, path: Any, **settings: Any) -> None:
    """Save a fitted classifier as a model of MLflow, in a new folder.

    Parameters
    ----------
    clf : classifier
        A fitted classifier.
    path : str or path-like
        The folder.
    **settings
        Of ``mlflow.pyfunc.save_model``, as for ``log_model``.
    """
    _written(mlflow.pyfunc.save_model, clf, settings, path=str(path))


def load_model(model_uri: str) -> Any:
    """Load the classifier itself; ``mlflow.pyfunc.load_model`` loads its predictions.

    Parameters
    ----------
    model_uri : str
        Such as ``models:/churn/3``, ``runs:/…/model``, or a folder.

    Returns
    -------
    classifier
        Fitted, as ``steelyard.load`` returns it.
    """
    folder = mlflow.artifacts.download_artifacts(str(model_uri))
    return load(Path(folder, "data", _FILE))


def signature_of(clf: Any) -> ModelSignature:
    """Return the signature of a model: its columns, its answer, and what is asked.

    Columns may be left out, which is a missing cell. The parameter ``method`` chooses
    between classes and probabilities.

    Parameters
    ----------
    clf : classifier
        A fitted classifier, with names of columns.

    Returns
    -------
    mlflow.models.ModelSignature
        For ``log_model``, which uses it by default.
    """
    columns = []
    for name, cell in row_schema(clf)["properties"].items():
        is_text = cell["type"] == ["string", "null"] and "pattern" not in cell
        # MLflow takes whole numbers for "long" alone, gaps for "double" alone, dates
        # as such or as text. The model takes all of them, and checks them.
        kind = "string" if is_text else AnyType()
        columns.append(ColSpec(kind, name, required=False))
    labels = {"i": "long", "u": "long", "f": "double", "b": "boolean"}
    label = ColSpec(labels.get(clf.classes_.dtype.kind, "string"))
    method = ParamSpec("method", "string", _METHODS[0])
    return ModelSignature(Schema(columns), Schema([label]), ParamSchema([method]))


def _written(
    write: Callable[..., Any], clf: Any, settings: dict[str, Any], **where: Any
) -> Any:
    check_fitted(clf)
    settings = {
        "pip_requirements": [f"steelyard=={__version__}"],
        "signature": signature_of(clf) if hasattr(clf, "feature_names_in_") else None,
        **settings,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, _FILE)
        clf.save(file)
        return write(
            loader_module="steelyard.mlflow", data_path=str(file), **settings, **where
        )


class _Predictions:
    """What MLflow loads as a ``pyfunc``."""

    def __init__(self, clf: Any) -> None:
        self.clf = clf
        has_names = hasattr(clf, "feature_names_in_")
        self.columns = row_schema(clf)["properties"] if has_names else {}

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> Any:
        """Return classes, or a frame of probabilities with a column for each class."""
        method = (params or {}).get("method", _METHODS[0])
        if method not in _METHODS:
            raise ParameterError(f"`method` is one of {_METHODS}. Got {method!r}.")
        if isinstance(rows, pd.DataFrame) and self.columns:
            rows = rows.reindex(columns=list(self.columns))
            # JSON has dates as text.
            for name, cell in self.columns.items():
                if "pattern" in cell:
                    rows[name] = pd.to_datetime(rows[name], format="ISO8601")
        answer = getattr(self.clf, method)(rows)
        if method == "predict":
            return answer
        return pd.DataFrame(answer, columns=[str(c) for c in self.clf.classes_])


def _load_pyfunc(path: str) -> _Predictions:
    """Load a model for MLflow, which calls this."""
    return _Predictions(load(path))
