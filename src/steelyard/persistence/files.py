"""Saving and loading: the document, its checksum, and its content as a whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from numpy.typing import NDArray

from steelyard._common.files import atomic_write
from steelyard.exceptions import ModelFileError, ParameterError
from steelyard.persistence.codec import (
    ReadRecord,
    Sizes,
    built,
    read_fields,
)
from steelyard.persistence.declarations import (
    declaration,
    declared_table,
    read_settings,
)
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import model_of
from steelyard.persistence.reader import InvalidContentError, ObjectReader
from steelyard.persistence.table import read_classes, read_schema

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

__all__ = ["load", "read", "save"]

Result = TypeVar("Result")

FORMAT = "steelyard model"
VERSION = 1


def save(estimator: BaseNB, path: str | PathLike[str]) -> None:
    """Write the fitted model to one JSON file, whole or not at all.

    See ``docs/model_file.md`` for the format.

    Parameters
    ----------
    path : str or path-like
        Where to write. An existing file is replaced in one step: the document is
        written to a temporary file in the same folder, flushed to the disk and renamed,
        so that an interruption leaves either the old file or the new one.
    """
    text = _text_of(estimator)
    document = (
        f'{{"format": "{FORMAT}", "version": {VERSION}, '
        f'"checksum": "{_checksum(VERSION, text)}", "content": {text}}}\n'
    )
    atomic_write(path, document.encode("ascii"))


def checksum_of(estimator: Any) -> str:
    """Return the checksum in the file of a model, whether or not it was saved."""
    known = getattr(estimator, "checksum", None)
    return known or _checksum(VERSION, _text_of(estimator))


def _text_of(estimator: Any) -> str:
    """Return the content of a model file as text."""
    from sklearn.utils.validation import check_is_fitted

    from steelyard.persistence.content import content_of

    check_is_fitted(estimator)
    content = content_of(estimator)
    try:
        text = _canonical(content)
    except ValueError:
        raise ParameterError(
            "This model cannot be saved: it holds numbers that are not finite."
        ) from None
    # JSON joins halves of a surrogate pair that Python keeps separate.
    if "\\ud" in text and json.loads(text) != content:
        raise ParameterError(
            "This model cannot be saved: a name or value holds two surrogate code "
            "points in a row, which JSON cannot tell from one character."
        )
    return text


def load(path: str | PathLike[str]) -> BaseNB:
    """Read a classifier written by ``save``.

    Nothing in the file is executed: it is parsed as JSON, compared with its checksum
    and checked piece by piece, and only classes of this package are created.

    Parameters
    ----------
    path : str or path-like
        A model file.

    Returns
    -------
    classifier
        Fitted, with the predictions of the saved one to the last bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, edited, of a newer version, or not a model file.

    Examples
    --------
    >>> import os, tempfile
    >>> import steelyard as sy
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = sy.NaiveBayes().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.json")
    ...     clf.save(path)
    ...     again = sy.load(path)
    >>> bool((again.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    from steelyard.persistence import content

    # Found when it is called, and the classes with it: files are read without them.
    return _read(path, lambda document: content.estimator_from(document))


def load_fitted(path: str | PathLike[str]) -> Any:
    """Read a model file for predictions, explanations and exports.

    A classifier that reads cells by other rules comes as itself.
    """
    checked = read(path)
    if checked.estimator == "SPSSNaiveBayes":
        return load(path)
    from steelyard.classifiers.fitted import LoadedModel

    attributes = {
        name: partial(built, value) for name, value in checked.attributes.items()
    }
    kind = type(checked.estimator, (LoadedModel,), {"checksum": checked.checksum})
    return kind(checked.model.build(), checked.settings["n_jobs"], attributes)


def read(path: str | PathLike[str]) -> ReadContent:
    """Read and check a file as ``load`` does, and load no classes.

    Raises
    ------
    ModelFileError
        Whenever ``load`` raises it, and with the same message.
    """
    return _read(path, read_content)


def _read(path: str | PathLike[str], read: Callable[[Any], Result]) -> Result:
    """Return what is read of the content of a file, whose wrapping is checked here."""
    path = Path(path)
    document = _parse(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a steelyard model file.")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{path} has no valid version number.")
    if version > VERSION:
        raise ModelFileError(
            f"{path} is of format version {version}, but this release reads version "
            f"{VERSION}. Upgrade steelyard to load it."
        )
    if set(document) != {"format", "version", "checksum", "content"}:
        raise ModelFileError(f"{path} is not a model file: it has other entries.")
    content = document["content"]
    try:
        text = _canonical(content)
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path} holds values no model has.") from None
    if document["checksum"] != _checksum(version, text):
        raise ModelFileError(
            f"{path} does not match its checksum: it is damaged or was edited. Save "
            "the model again from its source."
        )
    try:
        result = read(content)
        if isinstance(result, ReadContent):
            result = replace(result, checksum=document["checksum"])
        return result
    except InvalidContentError as error:
        raise ModelFileError(f"{path} is not a valid model: {error}.") from None
    except Exception as error:
        # A matching checksum proves nothing about who made the file. Whatever else a
        # made-up document may provoke, callers have one class of error to expect.
        raise ModelFileError(
            f"{path} is not a valid model: {type(error).__name__} ({_one_line(error)})."
        ) from error


def _parse(path: Path) -> Any:
    data = path.read_bytes()
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_distinct_keys,
            parse_constant=_no_constant,
        )
    except UnicodeDecodeError as error:
        raise ModelFileError(
            f"{path} is not a model file: it is not UTF-8 text (byte {error.start})."
        ) from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is not a model file, or was cut short: {_one_line(error)}."
        ) from None


def _canonical(content: Any) -> str:
    """Spell a content in the one way that the checksum is taken of."""
    # ASCII, which is the default.
    return json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _checksum(version: int, text: str) -> str:
    """Hash version and canonical content: white space and order of keys are free."""
    digest = hashlib.sha256(f"{FORMAT} {version} {text}".encode("ascii"))
    return "sha256:" + digest.hexdigest()


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key occurs twice")
    return entries


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number that JSON knows")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__


@dataclass(frozen=True)
class ReadContent:
    """The content of a file, with every type, shape and range checked."""

    estimator: str
    settings: dict[str, Any]
    """Of the classifier, with parts as they are described."""

    classes: NDArray[Any]
    model: ReadRecord
    """With the schema of the table, and the classes."""

    attributes: dict[str, Any]
    """Fitted attributes by name; ``built`` makes arrays and objects of them."""

    checksum: str = ""
    """That of the file."""


def read_content(content: Any) -> ReadContent:
    """Return the checked content of a file; InvalidContentError says what is wrong."""
    reader = ObjectReader(content, "content")
    reader.text("library")
    estimator = reader.text("estimator", list(declared_table()["estimators"]))
    declared = declaration(estimator)
    settings = read_settings(reader.inner("settings"), estimator)
    classes = read_classes(reader.inner("classes"))
    sizes = Sizes(read_schema(reader), classes)
    model = model_of(*declared.models).read(reader, "model", sizes)
    fitted = reader.inner("fitted")
    fields = {
        name: ATTRIBUTES[name]
        for name, is_optional in declared.attributes.items()
        if not is_optional or fitted.has(name)
    }
    n_models = len(getattr(model, "models", [model]))
    sizes = replace(sizes, n=n_models, by_pair=model.kind == "pairs")
    attributes = read_fields(fitted, fields, sizes)
    reader.finish()
    return ReadContent(estimator, settings, classes, model, attributes)
