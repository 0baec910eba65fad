"""A fitted model as a web service: rows in, classes and probabilities out.

The application is built on Starlette; ``steelyard serve`` runs it with uvicorn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from steelyard import __version__
from steelyard._common.html import read_asset
from steelyard._common.text import did_you_mean, shortened
from steelyard.exceptions import ColumnError, ParameterError
from steelyard.export import row_schema
from steelyard.table.columns import ObjectColumn
from steelyard.table.frames import Table

__all__ = ["create_app"]

# With more rows other requests are answered in the meantime.
_MAX_AT_ONCE = 50

# Characters of a name or cell that an error repeats.
_MAX_SHOWN = 60


class _RequestError(ValueError):
    """A request that is refused, with its status."""

    def __init__(self, status: int, message: str, **where: Any) -> None:
        super().__init__(message)
        self.status, self.where = status, where


class _Constant:
    """NaN or Infinity, which Python's reader takes and JSON does not have."""

    def __init__(self, name: str) -> None:
        self.name = name


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}

_NESTED: dict[type, str] = {dict: "an object", list: "a list"}


class _JSON(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        # In ASCII: errors repeat text, which may hold half of a surrogate pair.
        return json.dumps(content, separators=(",", ":")).encode("ascii")


def create_app(
    clf: Any, *, max_rows: int = 1_000, max_bytes: int = 10_000_000
) -> Starlette:
    """Return a web service of a fitted classifier, as an ASGI application.

    ``POST /predict`` takes a row, a JSON object, or a list of rows and returns the
    label and probabilities of each. ``?reasons=3`` adds the largest contributions and
    ``?interval=0.9`` intervals of the probabilities. ``GET /schema`` returns the JSON
    Schema of a row, ``/health`` what is served, ``/openapi.json`` the description of
    the service.

    Parameters
    ----------
    clf : classifier
        A fitted classifier that has a ``scorer``.
    max_rows : int, default=1000
        Rows of a request at most.
    max_bytes : int, default=10,000,000
        Bytes of a request at most.

    Returns
    -------
    starlette.applications.Starlette
        The application, for uvicorn and other ASGI servers.

    Examples
    --------
    >>> import pandas as pd, steelyard as sy
    >>> from starlette.testclient import TestClient
    >>> X = pd.DataFrame({"sky": ["sun", "rain"] * 4, "degrees": [21.0, 12.0] * 4})
    >>> client = TestClient(create_app(sy.NaiveBayes().fit(X, ["play", "stay"] * 4)))
    >>> client.post("/predict", json={"sky": "rain", "degrees": None}).json()["label"]
    'stay'
    >>> client.post("/predict", json={"sky": 1}).json()["error"]
    "Column 'sky' takes string or null, got 1."
    """
    model = _Model(clf)

    async def predict(request: Request) -> Response:
        n_reasons = _number(request, "reasons", int, lambda n: 0 <= n <= 1_000) or 0
        level = _number(request, "interval", float, lambda level: 0.0 < level < 1.0)
        rows = _parsed(await _body(request, max_bytes))
        is_batch = isinstance(rows, list)
        rows = rows if is_batch else [rows]
        if len(rows) > max_rows:
            many = f"{len(rows):,} rows are more than the {max_rows:,} of a request."
            raise _RequestError(422, many)
        if len(rows) > _MAX_AT_ONCE:
            answers = await run_in_threadpool(model.answers, rows, n_reasons, level)
        else:
            answers = model.answers(rows, n_reasons, level)
        return _JSON(answers if is_batch else answers[0])

    about = {
        "status": "ok",
        "model": type(clf).__name__,
        "classes": model.score.classes,
        "version": __version__,
    }
    return Starlette(
        routes=[
            Route("/predict", predict, methods=["POST"]),
            Route("/schema", _returning(model.schema)),
            Route("/health", _returning(about)),
            Route("/openapi.json", _returning(_openapi(model, max_rows))),
        ],
        exception_handlers={
            _RequestError: _refusal,
            HTTPException: _refusal,
            ParameterError: _refusal,
            # Nobody reads the answer.
            ClientDisconnect: _refusal,
        },
    )


class _Model:
    """What answers rows of JSON."""

    def __init__(self, clf: Any) -> None:
        self.clf, self.score, self.schema = clf, clf.scorer(), row_schema(clf)
        self.has_intervals = hasattr(clf, "uncertainty_") and not hasattr(clf, "edits_")
        columns = self.schema["properties"]
        self.words = {name: column["type"] for name, column in columns.items()}
        self.types = {
            name: frozenset(kind for word in words for kind in _TYPES[word])
            for name, words in self.words.items()
        }
        # The first row takes longest: programs are made of the model.
        self.answers([{}], 1, 0.9 if self.has_intervals else None)

    def answers(
        self, rows: list[Any], n_reasons: int, level: float | None
    ) -> list[dict[str, Any]]:
        """Return what is answered to each row; the first that is wrong is an error."""
        result = []
        for k, row in enumerate(rows):
            try:
                self._check(row)
                label, proba = self.score.answer(row)
            except ColumnError as error:
                message = str(error).replace("Pass None", "Pass null")
                raise _RequestError(422, message, row=k) from None
            by_class = dict(zip(self.score.classes, proba, strict=True))
            answer = {"label": label, "probabilities": by_class}
            if n_reasons:
                amounts = self.score.reasons(row, n_reasons).items()
                answer["reasons"] = [{"column": j, "log_odds": x} for j, x in amounts]
            result.append(answer)
        if level is not None and rows:
            for answer, ends in zip(result, self._intervals(rows, level), strict=True):
                answer["interval"] = dict(zip(self.score.classes, ends, strict=True))
        return result

    def _check(self, row: Any) -> None:
        """Raise an error if a row is not as its schema says."""
        if type(row) is not dict:
            raise ColumnError(f"A row is an object of columns, not {_shown(row)}.")
        for name, cell in row.items():
            allowed = self.types.get(name)
            if allowed is None:
                short = shortened(name, _MAX_SHOWN)
                meant = did_you_mean(short, self.types)
                raise ColumnError(f"The model has no column {short!r}.{meant}")
            if type(cell) not in allowed:
                words = " or ".join(self.words[name])
                raise ColumnError(f"Column {name!r} takes {words}, got {_shown(cell)}.")

    def _intervals(self, rows: list[dict[str, Any]], level: float) -> Any:
        """Return low and high for each class of each row."""
        cells = [self.score._whole(row) for row in rows]
        columns: list[Any] = []
        for j, name in enumerate(self.score.columns):
            values = np.empty(len(cells), object)
            values[:] = [row[name] for row in cells]
            columns.append(ObjectColumn(j, name, values))
        names = self.clf.encoder_.schema_.names
        table = Table(columns, len(cells), names)
        return self.clf.predict_interval(table, level).tolist()


def _shown(value: Any) -> str:
    """Return a value of JSON in few words."""
    if isinstance(value, _Constant):
        return value.name
    return _NESTED.get(type(value), "") or shortened(json.dumps(value), _MAX_SHOWN)


_ALLOWED = {"reasons": "from 0 to 1000", "interval": "above 0 and below 1"}


def _number(
    request: Request,
    name: str,
    kind: Callable[[str], Any],
    is_allowed: Callable[[Any], bool],
) -> Any:
    """Return a number of the query, None if it is absent."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not is_allowed(value):
        message = f"{name} must be {_ALLOWED[name]}, got {_shown(text)}."
        raise _RequestError(400, message)
    return value


async def _body(request: Request, max_bytes: int) -> bytes:
    """Read the body of a request up to a limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            message = f"The request has more than {max_bytes:,} bytes."
            raise _RequestError(413, message)
    return bytes(body)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_Constant)
    except RecursionError:
        raise _RequestError(400, "The body is nested too deeply.") from None
    except ValueError as error:
        raise _RequestError(400, f"The body is not JSON: {error}.") from None


def _refusal(request: Request, error: Any) -> Response:
    """Return an error as JSON; of Starlette's, such as 404, the status is theirs."""
    if isinstance(error, HTTPException):
        content = {"error": error.detail}
        return _JSON(content, error.status_code, headers=error.headers)
    status, where = getattr(error, "status", 400), getattr(error, "where", {})
    return _JSON({"error": str(error), **where}, status)


def _returning(document: dict[str, Any]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return _JSON(document)

    return answer


def _openapi(model: _Model, max_rows: int) -> Any:
    """Return the description of the service, by OpenAPI 3.1."""
    document: dict[str, Any] = json.loads(
        read_asset("steelyard.export", "openapi.json")
    )
    document["info"] = {"title": type(model.clf).__name__, "version": __version__}
    schemas = document["components"]["schemas"]
    schemas["Row"] = model.schema
    schemas["Rows"]["oneOf"][1]["maxItems"] = max_rows
    schemas["Answer"]["properties"]["label"] = {"enum": model.score.classes}
    if not model.has_intervals:
        parameters = document["paths"]["/predict"]["post"]["parameters"]
        del parameters[1]
    return document
