"""The service behind the endpoints: the served ledger, and the configuration of clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import define, field

from ledger.ledger_handle import LedgerHandle
from ledger.locations import with_scheme
from ledger.model.names import Identifier
from ledger.state.catalog import CatalogState
from ledger.table_handle import TableHandle
from projections.dlf.objects import AuthTableQueryResponse, ConfigResponse
from projections.rest.paimon.errors import no_such_database, no_such_table
from projections.rest.paimon.file_access import default_options
from projections.rest.served_ledger import ServedLedger

PREFIX: Final = "lakeledger"
"""Prefix in the configuration of clients; every other one is accepted as well."""

QueryPolicy = Callable[[str | None, Identifier, tuple[str, ...] | None], AuthTableQueryResponse]
"""Returns the filters and masks with which a principal may read columns of a table; all of its
columns if none are given. Raises a RequestError of status 403 if it may not."""


def allow_every_query(
    principal: str | None, table: Identifier, select: tuple[str, ...] | None
) -> AuthTableQueryResponse:
    """Return no filters and no masks: each authenticated principal may read everything."""
    del principal, table, select
    return AuthTableQueryResponse(filter=(), column_masking={})


@define(eq=False)
class PaimonCatalog:
    """A ledger that is served by Paimon's protocol.

    Attributes:
        ledger: The served ledger.
        config: The configuration that clients get.
        query_policy: Decides about reading.
    """

    ledger: ServedLedger
    config: ConfigResponse = field()
    query_policy: QueryPolicy = allow_every_query

    @config.default
    def _client_config(self) -> ConfigResponse:
        home = with_scheme(self.handle.setting.home)
        defaults = default_options(self.ledger.storage, home)
        return ConfigResponse(defaults=defaults, overrides={"prefix": PREFIX})

    @property
    def handle(self) -> LedgerHandle:
        """The ledger's handle."""
        return self.ledger.handle

    @property
    def state(self) -> CatalogState:
        """The newest state of the catalog."""
        return self.ledger.state

    def table(self, identifier: Identifier) -> TableHandle:
        """Return the handle of a table.

        Raises:
            RequestError: There is no such table.
        """
        found = self.ledger.table(identifier)
        if found is None:
            raise no_such_table(identifier)
        return found

    def check_database(self, name: str) -> None:
        """Check that a database exists.

        Raises:
            RequestError: It does not.
        """
        if name not in self.state.databases:
            raise no_such_database(name)
