"""Consumers of tables: list them, and set where one reads on."""

from __future__ import annotations

from typing import Final

from ledger.model.errors import NotFoundError
from projections.dlf.objects import ConsumerInfo, ListConsumersResponse, ResetConsumerRequest
from projections.paimon.served_consumers import consumers, reset_consumer
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import no_such_snapshot
from projections.rest.paimon.lines import missing_as_table, open_line
from projections.rest.paimon.paging import page_of
from projections.rest.paimon.requests import EMPTY, decode, reply
from projections.rest.requests import Call, Endpoint, Reply


def list_consumers(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the consumers of a table or branch, by id."""
    line = open_line(catalog, call)
    found = [ConsumerInfo(*each) for each in consumers(line.table, line.whole, line.branch)]
    page = page_of(call, found, lambda each: each.consumer_id)
    return reply(ListConsumersResponse(consumers=page.items, next_page_token=page.token))


def reset(catalog: PaimonCatalog, call: Call) -> Reply:
    """Set the next snapshot of a consumer; without one the consumer is removed."""
    wanted = decode(call, ResetConsumerRequest)
    line = open_line(catalog, call)
    snapshot_id = wanted.next_snapshot_id
    try:
        with missing_as_table(line.identifier):
            reset_consumer(line.table, line.whole, wanted.consumer_id, snapshot_id, line.branch)
    except NotFoundError as error:
        raise no_such_snapshot(snapshot_id, line.identifier) from error
    return EMPTY


_ONE: Final = "/v1/{prefix}/databases/{database}/tables/{table}"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", f"{_ONE}/consumers", list_consumers),
    Endpoint("POST", f"{_ONE}/consumers/reset", reset, "write"),
)
