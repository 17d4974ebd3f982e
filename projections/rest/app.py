"""ASGI application of a protocol: routing, body limits, authentication, access log, health.

Handlers are plain functions that run in the worker pool. Everything that can be checked without a
log is checked before a handler runs: authentication, the size of the body, the number of waiting
requests.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from attrs import evolve, field, frozen
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ledger.observing.telemetry import log_event, warn
from projections.rest.authentication import Authenticate
from projections.rest.requests import (
    MOST_BODY_BYTES,
    Call,
    Effect,
    Endpoint,
    Reply,
    RequestError,
)
from projections.rest.worker_pool import WorkerPool

S = TypeVar("S")

LOGGER: Final = "projections.rest"

HEALTH: Final = "/health"
"""Path that answers 200 while the process runs."""

READY: Final = "/ready"
"""Path that answers 200 if the catalog's log can be read, and 503 otherwise."""

_NO_BODY: Final = frozenset({204, 304})
_SERVER_ERROR: Final = 500


@frozen
class Protocol(Generic[S]):
    """A catalog protocol.

    Attributes:
        endpoints: Its rows.
        service: The object that the rows' handlers take.
        answer_error: Returns the answer to an error that a request of an effect raised.
        check_ready: Raises if requests cannot be answered.
    """

    endpoints: Sequence[Endpoint[S]]
    service: S
    answer_error: Callable[[Exception, Effect], Reply]
    check_ready: Callable[[], object]


@frozen
class Serving:
    """Settings of the application.

    Attributes:
        pool: The pool that handlers run in.
        authenticate: Authenticates requests, but for health and readiness.
        most_body_bytes: Size beyond which a body is rejected.
    """

    pool: WorkerPool = field(factory=WorkerPool)
    authenticate: Authenticate = field(kw_only=True)
    most_body_bytes: int = field(default=MOST_BODY_BYTES, kw_only=True)


def create_app(protocol: Protocol[Any], serving: Serving) -> Starlette:
    """Return the application that serves a protocol."""
    rows: dict[str, dict[str, Endpoint[Any]]] = {}
    for each in protocol.endpoints:
        rows.setdefault(_route_path(each.path), {})[each.method] = each
    routes = [
        Route(path, partial(_answer, protocol, serving, by_method), methods=[*by_method])
        for path, by_method in rows.items()
    ]
    health = Route(HEALTH, _answer_health)
    ready = Route(READY, partial(_answer_ready, protocol, serving))
    app = Starlette(
        routes=[*routes, health, ready],
        exception_handlers={HTTPException: partial(_answer_unknown_route, protocol)},
    )
    # A redirect to another spelling of a path would lose the body of some clients.
    app.router.redirect_slashes = False
    return app


_PREFIX: Final = "/{prefix}"
_PARAMETER: Final = re.compile(r"\{([^}]*)\}")


def _route_path(path: str) -> str:
    """Return a specification's path as Starlette takes it; a ledger is served without a prefix."""
    return _PARAMETER.sub(
        lambda found: "{" + found[1].replace("-", "_") + "}", path.replace(_PREFIX, "")
    )


async def _answer(
    protocol: Protocol[Any],
    serving: Serving,
    rows: Mapping[str, Endpoint[Any]],
    request: Request,
) -> Response:
    begun_s = time.monotonic()
    endpoint = rows.get(request.method) or rows["GET"]
    try:
        reply = await _run(protocol, serving, endpoint, request)
    except ClientDisconnect:
        # Nothing ran, and nobody reads the answer.
        reply = Reply(400)
    except Exception as error:  # noqa: BLE001 - each error has an answer
        reply = protocol.answer_error(error, endpoint.effect)
        # A request that was rejected for the load of the server has no cause.
        cause = error.__cause__ if isinstance(error, RequestError) else error
        if reply.status >= _SERVER_ERROR and cause is not None:
            said = f"{type(cause).__name__}: {cause}"
            method, path = request.method, request.scope["path"]
            warn(LOGGER, "request_failed", method=method, path=path, error=said)
    _log(request, reply.status, begun_s)
    return _response(reply)


async def _run(
    protocol: Protocol[Any], serving: Serving, endpoint: Endpoint[Any], request: Request
) -> Reply:
    headers = {name.lower(): value for name, value in request.headers.items()}
    principal = serving.authenticate(headers)
    call = Call(
        dict(request.path_params),
        dict(request.query_params),
        headers,
        await _read_body(request, serving.most_body_bytes),
        principal,
    )
    key = tuple(call.values.values())
    return await serving.pool.run(key, partial(endpoint.handle, protocol.service, call))


async def _read_body(request: Request, most: int) -> bytes:
    """Return the body of a request.

    Raises:
        RequestError: It is larger than `most` bytes, by its header or as it comes.
    """
    said = request.headers.get("content-length", "0")
    if not said.isascii() or not said.isdecimal() or int(said[:20]) > most:
        raise _too_large_error(most)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large_error(most)
        parts.append(part)
    return b"".join(parts)


def _too_large_error(most: int) -> RequestError:
    return RequestError(
        400,
        f"the body has more than {most:,} bytes, which is the most that this server reads; "
        "nothing was changed. Split the request, or start the server with a larger "
        "--max-body-bytes",
    )


def _log(request: Request, status: int, begun_s: float) -> None:
    """Log a request; never its query, headers and body, which may contain secrets."""
    seconds = round(time.monotonic() - begun_s, 6)
    method, path = request.method, request.scope["path"]
    log_event(LOGGER, "request_answered", method=method, path=path, status=status, seconds=seconds)


def _response(reply: Reply) -> Response:
    content_type = None if reply.status in _NO_BODY else "application/json"
    return Response(reply.body, reply.status, dict(reply.headers), content_type)


async def _answer_health(_request: Request) -> Response:
    return _response(Reply.of({"status": "up"}))


async def _answer_ready(protocol: Protocol[Any], serving: Serving, _request: Request) -> Response:
    try:
        # A key of its own: no table can use up its share.
        await serving.pool.run(READY, protocol.check_ready)
    except Exception as error:  # noqa: BLE001 - whatever it is, the server is not ready
        # The class only: the message may name paths, and nobody is authenticated here.
        content = {"status": "not ready", "reason": type(error).__name__}
        return _response(Reply.of(content, 503))
    return _response(Reply.of({"status": "ready"}))


def _answer_unknown_route(
    protocol: Protocol[Any], request: Request, error: Exception
) -> Response | Awaitable[Response]:
    begun_s = time.monotonic()
    status = error.status_code if isinstance(error, HTTPException) else _SERVER_ERROR
    method, path = request.method, request.scope["path"]
    said = f"no endpoint answers {method} {path}; GET /v1/config lists those that exist"
    reply = protocol.answer_error(RequestError(status, said), "read")
    _log(request, status, begun_s)
    # A method that is not there is answered with those that are, in Allow.
    allowed = (error.headers if isinstance(error, HTTPException) else None) or {}
    return _response(evolve(reply, headers={**reply.headers, **allowed}))
