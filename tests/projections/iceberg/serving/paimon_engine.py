"""An engine of Paimon (pypaimon) that writes a served table, and its commits in the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import ledger
from ledger import Ledger, Schema, Table
from ledger.events import SchemaChange
from ledger.model.names import Identifier
from ledger.table_handle import TableHandle, handle_of
from projections.paimon.served import alter_table, create_table
from projections.paimon.served_commits import SnapshotRequest, commit_snapshot
from projections.paimon.snapshot_file import snapshot_of_request
from tests.pypaimon_or_skip import CatalogFactory

COLUMNS = {"id": "BIGINT", "kind": "STRING", "name": "STRING"}


class PaimonEngine:
    """An engine that writes the table `a.b`, whose snapshots a ledger records.

    Args:
        folder: The folder of the ledger.
        schema: The table's schema.
    """

    def __init__(self, folder: Path, schema: Schema | None = None) -> None:
        self.lake: Ledger = ledger.open(folder)
        self.lake.create_database("a")
        made = schema or Schema.of(COLUMNS, partition_keys=("kind",))
        self.handle: TableHandle = create_table(handle_of(self.lake), Identifier("a", "b"), made)
        self.folder = folder / "a.db" / "b"
        self._catalog = CatalogFactory.create({"warehouse": str(folder)})

    @property
    def table(self) -> Table:
        return self.lake.table("a.b")

    @property
    def engine(self) -> Any:
        return self._catalog.get_table("a.b")

    def alter(self, *changes: SchemaChange) -> None:
        """Change the schema."""
        alter_table(self.handle, changes)

    def append(self, *ids: int) -> None:
        """Append rows, and commit the snapshot."""
        self._write(self.engine.new_batch_write_builder(), ids)

    def overwrite(self, *ids: int) -> None:
        """Replace all rows, and commit the snapshot."""
        self._write(self.engine.new_batch_write_builder().overwrite(), ids)

    def update(self, identifier: int, name: str) -> None:
        """Write the new name of a row into a file of its own, as data evolution does."""
        builder = self.engine.new_batch_write_builder()
        update = builder.new_update().with_update_type(["name"])
        wanted = update.new_predicate_builder().equal("id", identifier)
        self._commit(builder, update.update_by_predicate(wanted, {"name": name}))

    def delete(self, identifier: int) -> None:
        """Delete a row by a deletion vector."""
        builder = self.engine.new_batch_write_builder()
        update = builder.new_update()
        wanted = update.new_predicate_builder().equal("id", identifier)
        self._commit(builder, update.delete_by_predicate(wanted))

    def _write(self, builder: Any, ids: tuple[int, ...]) -> None:
        write = builder.new_write()
        write.write_arrow(self._rows(ids))
        self._commit(builder, write.prepare_commit())
        write.close()

    def _commit(self, builder: Any, messages: Any) -> None:
        commit = builder.new_commit()
        commit.commit(messages)
        commit.close()
        self.record()

    def _rows(self, ids: tuple[int, ...]) -> pa.Table:
        schema = self.table.schema.to_arrow()
        texts = pa.array([str(each) for each in ids])
        arrays = [
            pa.array(["ab"[each % 2] for each in ids]) if each.name == "kind" else texts
            for each in schema
        ]
        return pa.Table.from_arrays(
            [pc.cast(each, field.type) for each, field in zip(arrays, schema, strict=True)],
            schema=pa.schema([pa.field(each.name, each.type, each.nullable) for each in schema]),
        )

    def record(self) -> None:
        """Commit the newest snapshot of the engine to the ledger, as the REST API does."""
        newest = max(self.folder.glob("snapshot/snapshot-*"), key=lambda each: int(each.name[9:]))
        content = json.loads(newest.read_bytes())
        state = self.handle.state
        before = state.snapshot
        request = SnapshotRequest(
            table_id=state.table_id,
            snapshot=snapshot_of_request(content),
            base_snapshot_uuid=None if before is None else before.uuid,
        )
        assert commit_snapshot(self.handle, request)

    def rows(self, **options: str) -> list[str]:
        """Return all rows as the engine reads them."""
        builder = self.engine.copy(options).new_read_builder()
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        return texts_of(found)


def texts_of(rows: pa.Table) -> list[str]:
    """Return rows as sorted texts."""
    return sorted(map(str, rows.to_pylist()))
