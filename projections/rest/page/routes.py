"""Routes of the page: requests are checked, and views run in worker threads.

Only GET and HEAD are answered. A browser sends no bearer token by itself, so a page takes it as the
password of HTTP Basic. The endpoints of the protocols take no such credentials: a browser that has
them cannot be made to commit by another site.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from attrs import evolve, field, frozen
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from ledger.model.errors import NotFoundError
from ledger.model.names import MAX_NAME_LENGTH, Identifier
from ledger.table import Table
from ledger.table_handle import TableHandle
from projections.rest.app import head_of, log_request
from projections.rest.authentication import BEARER, Authenticate, RequestHead
from projections.rest.page.answers import METHODS, PageAnswer, error_response, response_of
from projections.rest.page.history_views import blame_view, diff_view, history_view, newest_changes
from projections.rest.page.instants import INSTANT_EXAMPLES
from projections.rest.page.ledger_views import database_view, ledger_overview, short_name
from projections.rest.page.queries import LONGEST_QUERY, Deadline, PageQuery
from projections.rest.page.rendering import HOME, PREFIX, render, static_files
from projections.rest.page.snapshot_views import refs_view, snapshots_view
from projections.rest.page.table_views import columns_view, partitions_view, projections_view
from projections.rest.requests import RequestError
from projections.rest.served_ledger import ServedLedger
from projections.rest.worker_pool import PoolLimits, WorkerPool

PAGE_THREADS: Final = 4
"""Number of threads that views run in: pages take none from the endpoints of the protocols."""

VIEW_SECONDS: Final = 10.0
"""Seconds after which a view shows what it has read."""

ANSWER_SECONDS: Final = 30.0
"""Seconds after which a request is answered with an error."""

MOST_PAGE_BYTES: Final = 8 << 20
"""Size of a page beyond which an error is answered."""

_MOST_WAITING: Final = 64
_NEWEST_ON_TABLE: Final = 5


def page_pool() -> WorkerPool:
    """Return a pool for the views of a page."""
    return WorkerPool(PoolLimits(PAGE_THREADS, PAGE_THREADS, _MOST_WAITING, _MOST_WAITING))


@frozen
class PageSite:
    """The page of a ledger.

    Attributes:
        served: The ledger.
        authenticate: Authenticates requests.
        pool: The pool that views run in.
        answer_seconds: Seconds after which a request is answered with an error.
    """

    served: ServedLedger
    authenticate: Authenticate
    pool: WorkerPool = field(factory=page_pool)
    answer_seconds: float = ANSWER_SECONDS


@frozen
class PageCall:
    """A checked request for a page.

    Attributes:
        served: The ledger.
        names: Names of the path.
        query: The query.
        deadline: Time after which the view shows what it has read.
    """

    served: ServedLedger
    names: Mapping[str, str]
    query: PageQuery
    deadline: Deadline

    @property
    def identifier(self) -> Identifier:
        """The table that the path names."""
        return Identifier(self.names["database"], self.names["table"])

    def handle(self) -> TableHandle:
        """Return the handle of the table that the path names.

        Raises:
            NotFoundError: It does not exist; the message names similar ones.
        """
        self.served.state.table(self.identifier)
        found = self.served.table(self.identifier)
        if found is None:
            raise NotFoundError(f"table {self.identifier} was dropped meanwhile")
        return found


View = Callable[[PageCall], PageAnswer]


def page_routes(site: PageSite) -> list[BaseRoute]:
    """Return the routes of a page: `/`, and all below `/ui`."""
    table = f"{PREFIX}/tables/{{database}}/{{table}}"
    views: dict[str, View] = {
        HOME: _ledger_page,
        f"{PREFIX}/databases/{{database}}": _database_page,
        table: _columns_page,
        **{f"{table}/{section}": partial(_table_page, section) for section in _TABLE_VIEWS},
        **{f"{PREFIX}/{name}": partial(_static_file, name) for name in static_files()},
        PREFIX: _unknown_page,
        f"{PREFIX}/{{rest:path}}": _unknown_page,
    }
    return [Route(path, PageEndpoint(site, view)) for path, view in views.items()]


def page_application(site: PageSite) -> Starlette:
    """Return the application of a server that has nothing but the page."""
    unknown = Route("/{rest:path}", PageEndpoint(site, _unknown_page))
    app = Starlette(routes=[*page_routes(site), unknown])
    app.router.redirect_slashes = False
    return app


@frozen
class PageEndpoint:
    """ASGI application that answers the requests for one view."""

    site: PageSite
    view: View

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        begun_s = time.monotonic()
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
            response = response_of(answer, 200)
        except Exception as error:  # noqa: BLE001 - each error has a page
            response = error_response(request, error)
        log_request(request, response.status_code, begun_s)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> PageAnswer:
        _check_request(request)
        head = with_bearer_token(head_of(request, mount=""))
        self.site.authenticate(head).check_body(b"")
        call = PageCall(
            self.site.served,
            request.path_params,
            PageQuery(dict(request.query_params)),
            Deadline.after(VIEW_SECONDS),
        )
        try:
            async with asyncio.timeout(self.site.answer_seconds) as limit:
                answer = await self.site.pool.run(PREFIX, partial(self.view, call))
        except TimeoutError:
            if not limit.expired():
                raise
            raise RequestError(
                503,
                f"the page was not ready within {self.site.answer_seconds:g} seconds; narrow the "
                "question, or use the command line",
            ) from None
        if len(answer.body) > MOST_PAGE_BYTES:
            raise RequestError(503, f"the page has more than {MOST_PAGE_BYTES:,} bytes")
        return answer


def _check_request(request: Request) -> None:
    """Check what needs neither authentication nor the ledger.

    Raises:
        RequestError: The method, the length of the query or of a name, or the site that sends it.
    """
    if request.method not in METHODS:
        raise RequestError(405, "the page only reads; send GET or HEAD")
    if len(request.scope["query_string"]) > LONGEST_QUERY:
        raise RequestError(400, f"the query has more than {LONGEST_QUERY:,} bytes; shorten it")
    names = {key: each for key, each in request.path_params.items() if key != "rest"}
    if any(len(each.encode("utf-8", "replace")) > MAX_NAME_LENGTH for each in names.values()):
        raise RequestError(404, f"a name has more than {MAX_NAME_LENGTH} bytes; there is none such")
    fetched_by = request.headers.get("sec-fetch-site"), request.headers.get("sec-fetch-mode")
    if fetched_by[0] == "cross-site" and fetched_by[1] != "navigate":
        raise RequestError(403, "another site asked for a part of this page; open it by itself")


def with_bearer_token(head: RequestHead) -> RequestHead:
    """Return the head of a request with the password of HTTP Basic as its bearer token.

    The user's name is not looked at: the token has its principal.

    Raises:
        RequestError: The credentials cannot be decoded.

    Example:
        >>> head = RequestHead(headers={"authorization": "Basic YW5uOnNlY3JldA=="})
        >>> with_bearer_token(head).headers["authorization"]
        'bearer secret'
    """
    scheme, _, encoded = head.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return head
    try:
        _, _, token = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise RequestError(
            401, "the credentials are not those of HTTP Basic; type them again"
        ) from None
    return evolve(head, headers={**head.headers, "authorization": f"{BEARER} {token}"})


def _page(call: PageCall, template: str, **values: object) -> PageAnswer:
    return PageAnswer(render(template, ledger=short_name(call.served.handle.url), **values))


def _ledger_page(call: PageCall) -> PageAnswer:
    return _page(call, "ledger", view=ledger_overview(call.served, call.query))


def _database_page(call: PageCall) -> PageAnswer:
    view = database_view(call.served, call.names["database"], call.query, call.deadline)
    return _page(call, "database", view=view)


def _columns_page(call: PageCall) -> PageAnswer:
    handle = call.handle()
    view = columns_view(Table(handle), call.query)
    return _page(
        call,
        "columns",
        view=view,
        table=call.identifier,
        section="",
        examples=INSTANT_EXAMPLES,
        changes=newest_changes(handle, view.instant.version, _NEWEST_ON_TABLE),
    )


def _table_page(section: str, call: PageCall) -> PageAnswer:
    handle = call.handle()
    view = _TABLE_VIEWS[section](handle, call)
    return _page(
        call, section, view=view, table=call.identifier, section=section, examples=INSTANT_EXAMPLES
    )


_TABLE_VIEWS: Final[Mapping[str, Callable[[TableHandle, PageCall], object]]] = {
    "history": lambda handle, call: history_view(handle, call.query, call.deadline),
    "blame": lambda handle, call: blame_view(handle, call.query),
    "diff": lambda handle, call: diff_view(Table(handle), call.query),
    "snapshots": lambda handle, call: snapshots_view(Table(handle), call.query),
    "refs": lambda handle, call: refs_view(Table(handle), call.query),
    "partitions": lambda handle, call: partitions_view(Table(handle), call.query),
    "projections": lambda handle, _: projections_view(Table(handle)),
}


def _static_file(name: str, call: PageCall) -> PageAnswer:
    del call
    body, content_type = static_files()[name]
    return PageAnswer(body, content_type, "private, max-age=3600")


def _unknown_page(call: PageCall) -> PageAnswer:
    del call
    raise RequestError(404, "there is no page at this address; begin at the list of databases")
