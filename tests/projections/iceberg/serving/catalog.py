"""A catalog of PyIceberg that commits in this process through the functions of the server."""

from __future__ import annotations

from typing import Any

import msgspec
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from ledger.ledger_handle import LedgerHandle
from ledger.log.request import fresh_id
from ledger.model.names import Identifier
from ledger.table_handle import TableHandle
from projections.iceberg.creation_updates import creation_updates
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.rest_updates import table_update_from_json
from projections.iceberg.schema_json import schema_from_json
from projections.iceberg.served import Loaded, create_table, load


class ServedCatalog(NoopCatalog):
    """Creates and loads tables of a ledger, and commits to them; nothing else is implemented."""

    def __init__(self, ledger: LedgerHandle) -> None:
        super().__init__("served")
        self.ledger = ledger

    def create_table(
        self,
        identifier: Any,
        schema: Any,
        location: str | None = None,
        partition_spec: Any = UNPARTITIONED_PARTITION_SPEC,
        sort_order: Any = UNSORTED_SORT_ORDER,
        properties: Any = None,
    ) -> Table:
        """Create a table."""
        made = assign_fresh_schema_ids(Catalog._convert_schema_if_needed(schema))
        spec = {"action": "add-spec", "spec": _json(partition_spec)}
        order = {"action": "add-sort-order", "sort-order": _json(sort_order)}
        updates = creation_updates(
            schema_from_json(_json(made)),
            uuid=fresh_id(),
            location=location or f"{self.ledger.url}/{identifier.replace('.', '.db/')}",
            spec=table_update_from_json(spec).spec,  # type: ignore[union-attr]
            order=table_update_from_json(order).sort_order,  # type: ignore[union-attr]
            properties=properties or {},
        )
        create_table(self.ledger, Identifier.parse(identifier), updates)
        return self.load_table(identifier)

    def load_table(self, identifier: Any) -> Table:
        """Load a table."""
        name = identifier if isinstance(identifier, str) else ".".join(identifier)
        handle = self.handle(name)
        handle.log.refresh()
        loaded = load(handle, handle.state)
        return Table(
            tuple(name.split(".")),
            TableMetadataUtil.parse_raw(loaded.body.decode()),
            loaded.location,
            load_file_io({}, loaded.location),
            self,
        )

    def handle(self, name: str) -> TableHandle:
        """Return a table's handle."""
        return self.ledger.table(name)

    def commit_table(
        self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> CommitTableResponse:
        """Commit updates."""
        handle = self.handle(".".join(table.name()))
        commit_updates(handle, [*map(_json, updates)], [*map(_json, requirements)])
        loaded = load(handle, handle.state)
        return response(loaded)


def response(loaded: Loaded) -> CommitTableResponse:
    """Return the answer of a commit."""
    return CommitTableResponse.model_validate(
        {"metadata": msgspec.json.decode(loaded.body), "metadata-location": loaded.location}
    )


def _json(model: Any) -> Any:
    return msgspec.json.decode(model.model_dump_json(by_alias=True, exclude_none=True))
