"""Answers of the page: their headers, and the pages of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen
from starlette.requests import Request
from starlette.responses import Response

from ledger.model.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    UnsupportedError,
)
from ledger.observing.telemetry import warn
from projections.rest.app import LOGGER
from projections.rest.page.rendering import render
from projections.rest.requests import RequestError

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer."""

METHODS: Final = ("GET", "HEAD")
"""The methods that are answered."""

_UNAUTHENTICATED: Final = 401
_WRONG_METHOD: Final = 405
_FAILED: Final = 500
_HEADERS_BY_STATUS: Final[Mapping[int, Mapping[str, str]]] = {
    _UNAUTHENTICATED: {"WWW-Authenticate": 'Basic realm="lakeledger", charset="UTF-8"'},
    _WRONG_METHOD: {"Allow": ", ".join(METHODS)},
}
_TITLES: Final = {
    400: "The request is not valid",
    _UNAUTHENTICATED: "A token is needed",
    403: "Not allowed",
    404: "Not found",
    _WRONG_METHOD: "Read only",
    _FAILED: "Something failed",
    503: "Not available",
}
_STATUSES: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NotFoundError, 404),
    (ColumnNotFoundError, 404),
    (InvalidInputError, 400),
    (UnsupportedError, 400),
    (LedgerError, 503),
    (OSError, 503),
)
"""Statuses of errors that views raise; the first class that fits counts."""


@frozen
class PageAnswer:
    """The body of an answer, with its content type and what caches may do with it."""

    body: bytes
    content_type: str = "text/html; charset=utf-8"
    cache_control: str = "no-store"


def response_of(answer: PageAnswer, status: int) -> Response:
    """Return the response of an answer, with the headers of its status."""
    more = _HEADERS_BY_STATUS.get(status, {})
    headers = {**HEADERS, **more, "Cache-Control": answer.cache_control}
    return Response(answer.body, status, headers, answer.content_type)


def error_response(request: Request, error: Exception) -> Response:
    """Return the page of an error, which names neither the ledger nor the cause of a failure.

    Failures are logged with their cause.
    """
    status, message = _status_and_message(error)
    if status >= _FAILED and not isinstance(error, RequestError):
        said = f"{type(error).__name__}: {error}"
        method, path = request.method, request.scope["path"]
        warn(LOGGER, "request_failed", method=method, path=path, error=said)
    page = render("error", title=_TITLES[status], message=message)
    return response_of(PageAnswer(page), status)


def _status_and_message(error: Exception) -> tuple[int, str]:
    if isinstance(error, RequestError):
        return error.status, error.message
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status, str(error)
    return _FAILED, "the page could not be made; the log of the server names the reason"
