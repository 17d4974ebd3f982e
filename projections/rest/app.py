"""ASGI application of protocols: routing, body limits, authentication, access log, health.

Each protocol is mounted at a path, one of them at the root. What no endpoint answers is answered as
an error of the protocol whose path the request begins with.

Handlers are plain functions that run in the worker pool. Everything that can be checked without a
log is checked before a handler runs: authentication, the number of waiting requests, the size of
the body and of all bodies that are held.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Generic, TypeVar
from urllib.parse import unquote

from attrs import define, evolve, field, frozen
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ledger.model.messages import excerpt
from ledger.observing.telemetry import log_event, warn
from projections.rest.authentication import Authenticate, Caller, RequestHead
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

_BODIES: Final = 8
_BODY_TIMEOUT_S: Final = 60.0
_NO_BODY: Final = frozenset({204, 304})
_SERVER_ERROR: Final = 500
_UNSUPPORTED: Final = 501


@frozen
class Protocol(Generic[S]):
    """A catalog protocol.

    Attributes:
        endpoints: Its rows, with the paths that they are routed by.
        service: The object that the rows' handlers take.
        answer_error: Returns the answer to an error that a request of an effect raised.
        check_ready: Raises if requests cannot be answered.
        endpoints_hint: Says where the endpoints are listed, for the answer to an unknown one.
    """

    endpoints: Sequence[Endpoint[S]]
    service: S
    answer_error: Callable[[Exception, Effect], Reply]
    check_ready: Callable[[], object]
    endpoints_hint: str


@define
class BodyReader:
    """Reader of bodies, which bounds their sizes and times; used in one event loop.

    Attributes:
        most_bytes: Size beyond which a body is rejected.
        most_held_bytes: Sum of the sizes of bodies that requests hold, beyond which a body is
            rejected.
        timeout_s: Seconds that a client has to send a body.
    """

    most_bytes: int
    most_held_bytes: int
    timeout_s: float
    _held_bytes: int = field(default=0, init=False)

    @asynccontextmanager
    async def reading(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body of a request, which counts as held until the end.

        Raises:
            RequestError: It is too large, by its header or as it comes; too much is held; or it
                does not come in time.
        """
        self._check(_said_length(request))
        parts: list[bytes] = []
        size = 0
        try:
            try:
                async with asyncio.timeout(self.timeout_s):
                    async for part in request.stream():
                        self._check(size + len(part), held=size)
                        size += len(part)
                        self._held_bytes += len(part)
                        parts.append(part)
            except TimeoutError:
                raise self._too_slow_error() from None
            body = b"".join(parts)
            parts.clear()
            yield body
        finally:
            self._held_bytes -= size

    def _check(self, size: int, held: int = 0) -> None:
        """Check that a body may have a size, of which a part is held already."""
        if size > self.most_bytes:
            raise RequestError(
                400,
                f"the body has more than {self.most_bytes:,} bytes, which is the most that this "
                "server reads; nothing was changed. Split the request, or start the server with a "
                "larger --max-body-bytes",
            )
        if self._held_bytes - held + size > self.most_held_bytes:
            raise RequestError(
                503,
                f"the requests under way have bodies of {self.most_held_bytes:,} bytes, which is "
                "the most that this server holds, and this one was rejected before it did "
                "anything; send it again later",
            )

    def _too_slow_error(self) -> RequestError:
        return RequestError(
            400,
            f"the body did not come within {self.timeout_s:g} seconds; nothing was changed. Send "
            "the request again",
        )


def _said_length(request: Request) -> int:
    """Return the length of a body by its header; 0 without one."""
    said = request.headers.get("content-length", "0")
    if not said.isascii() or not said.isdecimal():
        raise RequestError(400, f"Content-Length {excerpt(said)} is no number of bytes")
    return int(said[:20])


@frozen
class Serving:
    """Settings of the application.

    Attributes:
        pool: The pool that handlers run in.
        authenticate: Authenticates requests, but for health and readiness.
        most_body_bytes: Size beyond which a body is rejected.
        body_timeout_s: Seconds that a client has to send a body.
        bodies: Reads bodies, of which requests hold at most eight of that size.
    """

    pool: WorkerPool = field(factory=WorkerPool)
    authenticate: Authenticate = field(kw_only=True)
    most_body_bytes: int = field(default=MOST_BODY_BYTES, kw_only=True)
    body_timeout_s: float = field(default=_BODY_TIMEOUT_S, kw_only=True)
    bodies: BodyReader = field(init=False)

    @bodies.default
    def _reader_of_bodies(self) -> BodyReader:
        most = self.most_body_bytes
        return BodyReader(most, _BODIES * most, self.body_timeout_s)


def create_app(
    mounts: Mapping[str, Protocol[Any]], serving: Serving, pages: Sequence[BaseRoute] = ()
) -> Starlette:
    """Return the application that serves protocols.

    Args:
        mounts: The protocols by the paths that their endpoints begin with; "" is the root.
        serving: Its settings.
        pages: Routes that check their requests themselves.
    """
    routes = [
        Route(path, partial(_answer, _Route(mount, protocol, rows), serving), methods=[*rows])
        for mount, protocol in mounts.items()
        for path, rows in _rows_by_path(mount, protocol).items()
    ]
    health = Route(HEALTH, _answer_health)
    ready = Route(READY, partial(_answer_ready, [*mounts.values()], serving))
    app = Starlette(
        routes=[*routes, health, ready, *pages],
        exception_handlers={HTTPException: partial(_answer_unknown_route, mounts)},
        middleware=[Middleware(_decode_names)],
    )
    # A redirect to another spelling of a path would lose the body of some clients.
    app.router.redirect_slashes = False
    return app


def _rows_by_path(mount: str, protocol: Protocol[Any]) -> dict[str, dict[str, Endpoint[Any]]]:
    """Return a protocol's rows by their paths as Starlette takes them, and by their methods."""
    rows: dict[str, dict[str, Endpoint[Any]]] = {}
    for each in protocol.endpoints:
        rows.setdefault(mount + _route_path(each.path), {})[each.method] = each
    return rows


def _decode_names(app: ASGIApp) -> ASGIApp:
    """Return an application that decodes names in paths as Java's clients encode them.

    A blank comes as `+`, and a plus sign as `%2B`. A name with a slash is routed as one name, which
    keeps its `%2F`; no table, view or namespace can have it, so that none is found.
    Source: Iceberg's RESTUtil.encodeString.
    """

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if b"+" in raw or b"%2f" in raw.lower():
            names = _ENCODED_SLASH.sub(b"%252F", raw).replace(b"+", b"%20")
            scope = {**scope, "path": unquote(names.decode("ascii"))}
        await app(scope, receive, send)

    return route


_PREFIX: Final = "prefix"
"""Parameter of a path that says nothing: there is one ledger, whatever prefix a client has."""

_ENCODED_SLASH: Final = re.compile(rb"%2f", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"\{([^}]*)\}")


def _route_path(path: str) -> str:
    """Return a specification's path as Starlette takes it."""
    return _PARAMETER.sub(lambda found: "{" + found[1].replace("-", "_") + "}", path)


@frozen
class _Route:
    """A path of a protocol: its mount, and its endpoints by method."""

    mount: str
    protocol: Protocol[Any]
    rows: Mapping[str, Endpoint[Any]]


async def _answer(route: _Route, serving: Serving, request: Request) -> Response:
    begun_s = time.monotonic()
    endpoint = route.rows.get(request.method) or route.rows["GET"]
    try:
        reply = await _run(route, serving, endpoint, request)
    except ClientDisconnect:
        # Nothing ran, and nobody reads the answer.
        reply = Reply(400)
    except Exception as error:  # noqa: BLE001 - each error has an answer
        reply = route.protocol.answer_error(error, endpoint.effect)
        # A request that was rejected for the load of the server has no cause.
        cause = error.__cause__ if isinstance(error, RequestError) else error
        if _SERVER_ERROR <= reply.status != _UNSUPPORTED and cause is not None:
            said = f"{type(cause).__name__}: {cause}"
            method, path = request.method, request.scope["path"]
            warn(LOGGER, "request_failed", method=method, path=path, error=said)
    log_request(request, reply.status, begun_s)
    return _response(reply)


async def _run(route: _Route, serving: Serving, endpoint: Endpoint[Any], request: Request) -> Reply:
    head = head_of(request, route.mount)
    caller = serving.authenticate(head)
    values = {name: value for name, value in request.path_params.items() if name != _PREFIX}
    with serving.pool.place(tuple(values.values())) as run:
        async with serving.bodies.reading(request) as body:
            call = Call(values, dict(request.query_params), head.headers, body, caller.principal)
            return await run(partial(_handle, endpoint, route.protocol.service, caller, call))


def head_of(request: Request, mount: str) -> RequestHead:
    """Return the head of a request, whose path is the part that follows the mount."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return RequestHead(
        request.method,
        raw.decode("latin-1").removeprefix(mount),
        request.scope["query_string"].decode("latin-1"),
        {name.lower(): value for name, value in request.headers.items()},
    )


def _handle(endpoint: Endpoint[S], service: S, caller: Caller, call: Call) -> Reply:
    """Answer a call whose body is the one that was signed, if any was; runs in a worker thread."""
    caller.check_body(call.body)
    return endpoint.handle(service, call)


def log_request(request: Request, status: int, begun_s: float) -> None:
    """Log a request; never its query, headers and body, which may contain secrets."""
    seconds = round(time.monotonic() - begun_s, 6)
    method, path = request.method, request.scope["path"]
    log_event(LOGGER, "request_answered", method=method, path=path, status=status, seconds=seconds)


def _response(reply: Reply) -> Response:
    content_type = None if reply.status in _NO_BODY else "application/json"
    return Response(reply.body, reply.status, dict(reply.headers), content_type)


async def _answer_health(_request: Request) -> Response:
    return _response(Reply.of({"status": "up"}))


async def _answer_ready(
    protocols: Sequence[Protocol[Any]], serving: Serving, _request: Request
) -> Response:
    try:
        # A key of its own: no table can use up its share.
        for each in protocols:
            await serving.pool.run(READY, each.check_ready)
    except Exception as error:  # noqa: BLE001 - whatever it is, the server is not ready
        # The class only: the message may name paths, and nobody is authenticated here.
        content = {"status": "not ready", "reason": type(error).__name__}
        return _response(Reply.of(content, 503))
    return _response(Reply.of({"status": "ready"}))


def _answer_unknown_route(
    mounts: Mapping[str, Protocol[Any]], request: Request, error: Exception
) -> Response | Awaitable[Response]:
    begun_s = time.monotonic()
    status = error.status_code if isinstance(error, HTTPException) else _SERVER_ERROR
    method, path = request.method, request.scope["path"]
    mount = _mount_of(mounts, path)
    message = f"no endpoint answers {method} {path}; {mounts[mount].endpoints_hint}"
    reply = mounts[mount].answer_error(RequestError(status, message), "read")
    log_request(request, status, begun_s)
    # A method that is not there is answered with those that are, in Allow.
    allowed = (error.headers if isinstance(error, HTTPException) else None) or {}
    return _response(evolve(reply, headers={**reply.headers, **allowed}))


def _mount_of(mounts: Mapping[str, Protocol[Any]], path: str) -> str:
    """Return the longest path of a mount that a request's path begins with; else the first."""
    found = [each for each in mounts if f"{path}/".startswith(f"{each}/")]
    return max(found, key=len, default=next(iter(mounts)))
