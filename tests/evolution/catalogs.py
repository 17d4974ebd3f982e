"""A catalog in memory, and what is asked of it."""

from __future__ import annotations

import pytest

from ledger import CommitConflictError, Identifier, LedgerError, ViewSchema
from ledger.decide import CatalogIntent, CatalogRequest, CreateDatabase, CreateTable
from ledger.events import CatalogEvent, SchemaRecord
from ledger.log import Commit, Transaction
from ledger.state import CatalogBuilder, CatalogState

SCHEMA = SchemaRecord(fields=(), highest_field_id=-1)
ORDERS = Identifier("shop", "orders")
SALES = Identifier("shop", "sales")
RECENT = Identifier("shop", "recent")
VIEW = ViewSchema((), "SELECT 1", {"spark": "SELECT 1L"}, "old", {"a": "1"})


class Catalog:
    """A catalog in memory: each request is committed at once."""

    def __init__(self) -> None:
        self.state: CatalogState | None = None
        self.commits: list[Commit[CatalogEvent]] = []

    def ask(self, request: CatalogRequest, author: str = "ana") -> tuple[CatalogEvent, ...]:
        events = CatalogIntent(request).decide(self.state, ())
        version = len(self.commits)
        transaction: Transaction[CatalogEvent] = Transaction(
            asked="", id=f"c{version}", author=author, events=events
        )
        commit: Commit[CatalogEvent] = Commit(
            format=3, version=version, time_millis=1 + version, transactions=(transaction,)
        )
        builder = CatalogBuilder(self.state)
        builder.commit(commit)
        self.state = builder.freeze()
        self.commits.append(commit)
        return events

    def path(self, identifier: Identifier) -> str:
        assert self.state is not None
        return self.state.table(identifier).path


def table(
    identifier: Identifier, table_id: str = "aaaaaaaa-1111", external_path: str | None = None
) -> CreateTable:
    return CreateTable(identifier, table_id, SCHEMA, external_path)


def shop(*requests: CatalogRequest) -> Catalog:
    catalog = Catalog()
    for request in (CreateDatabase("shop", {"a": "1"}), *requests):
        catalog.ask(request)
    return catalog


def refusal(catalog: Catalog, request: CatalogRequest) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        catalog.ask(request)
    assert not isinstance(caught.value, CommitConflictError)
    return caught.value
