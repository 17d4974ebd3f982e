"""The page of a ledger, served by a thread of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from httpx import Client

from ledger import Ledger
from ledger.table_handle import handle_of
from projections.rest.authentication import Authenticate, authenticate_local_program
from projections.rest.page.rendering import SECTIONS
from projections.rest.page.routes import ANSWER_SECONDS, PageSite, page_application
from projections.rest.served_ledger import ServedLedger
from tests.projections.rest.application import served

ORDERS = "/ui/tables/shop/orders"
EVERY_PAGE = (
    *("/", "/?q=ord", "/ui/databases/shop", "/ui/databases/shop?q=ord"),
    *(f"{ORDERS}/{each}".rstrip("/") for each in SECTIONS),
    *(f"{ORDERS}?version=0", f"{ORDERS}/partitions?version=1", f"{ORDERS}/blame?column=id"),
    *(f"{ORDERS}/history?author=tester", f"{ORDERS}/diff?before=version:0"),
)
"""Pages of a ledger with the table shop.orders, of every kind."""


@contextmanager
def page_client(
    lake: Ledger,
    authenticate: Authenticate = authenticate_local_program,
    answer_seconds: float = ANSWER_SECONDS,
) -> Iterator[Client]:
    """Yield a client of the page of a ledger."""
    site = PageSite(ServedLedger(handle_of(lake)), authenticate, answer_seconds=answer_seconds)
    with served(page_application(site)) as uri, Client(base_url=uri) as client:
        yield client
    site.pool.close(10)
