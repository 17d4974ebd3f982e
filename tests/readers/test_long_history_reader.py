"""PyIceberg's view of each version of a table, compared with the ledger's states and a model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import define, field
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import StructType

from ledger import DataField
from ledger.state import TableBuilder, TableState
from ledger.table_handle import handle_of
from projections.iceberg import Names
from projections.iceberg.materialise import project
from tests.readers.iceberg_life import LongLife
from tests.readers.lakehouse import by_id
from tests.readers.logical_columns import ordered

_PLAINLY_EVERY = 25
"""A file is opened with an empty cache once in this many times."""


@define
class Parsed:
    """PyIceberg's own parsing, each JSON object that many files share once."""

    known: dict[tuple[Any, str], Any] = field(factory=dict)

    def metadata(self, body: bytes) -> TableMetadata:
        raw = json.loads(body)
        raw["schemas"] = [self._part(Schema, each) for each in raw["schemas"]]
        raw["snapshots"] = [self._part(Snapshot, each) for each in raw["snapshots"]]
        if raw["format-version"] > 1:
            raw["partition-specs"] = [
                self._part(PartitionSpec, each) for each in raw["partition-specs"]
            ]
        return TableMetadataUtil.parse_obj(raw)

    def _part(self, kind: Any, raw: Any) -> Any:
        key = kind, json.dumps(raw)
        if key not in self.known:
            self.known[key] = kind.model_validate(raw)
        return self.known[key]


@define
class Reader:
    """Projects a table now and then, each version of it, and reads what is new.

    Attributes:
        life: The table, and what its rows have to be.
        seen: How much of what was compared.
        columns: The table's, by version.
    """

    life: LongLife
    seen: Counter[str] = field(factory=Counter)
    columns: list[tuple[DataField, ...]] = field(factory=list)
    _fold: TableBuilder = field(factory=TableBuilder)
    _done: int = -1
    _parsed: Parsed = field(factory=Parsed)
    _ledger_id: int = -1
    _schema_id: int = -1
    _struct: StructType = field(factory=StructType)
    _schemas: dict[int, StructType] = field(factory=dict)
    _found: dict[int, Schema] = field(factory=dict)
    _schema_ids: dict[str, int] = field(factory=dict)
    _snapshots: dict[int, tuple[Any, ...]] = field(factory=dict)
    _read: tuple[int, int] = (0, -1)

    def catch_up(self) -> None:
        """Compare every version since the last time; all of their snapshots can be read yet."""
        table = self.life.table
        for read in handle_of(table).log.commits(
            self._done + 1, project(handle_of(table), every=1)
        ):
            self._fold.commit(read.commit)
            self._done = read.commit.version
            self._check(self._fold.freeze())

    def _check(self, state: TableState) -> None:
        table, version = self.life.table, state.version
        self._learn(state)
        self.columns.append(state.schema.fields)
        location = f"{table.location}/{Names(state.table_id).metadata(version)}"
        body = Path(location.removeprefix("file://")).read_bytes()
        metadata = self._parsed.metadata(body)
        if version % _PLAINLY_EVERY == 0:
            assert StaticTable.from_metadata(location).metadata == metadata
            assert table.at(version=version).state == state
        assert str(metadata.table_uuid) == state.table_id
        assert metadata.last_updated_ms == state.effective_millis
        self._check_columns(metadata, state)
        self._check_layout(metadata, state)
        self._check_snapshots(metadata, state)
        self.seen["versions"] += 1
        self.seen[f"v{state.schema.options['format-version']}"] += 1
        kinds = {bool(each.names) for each in self.life.moments[version][0]}
        self.seen["versions with both kinds"] += len(kinds) == 2
        current = state.last_snapshot_id, metadata.current_schema_id
        is_new = current[0] != self._read[0]
        # Every snapshot when it is new, and every other schema that comes after it.
        if is_new or (current != self._read and version % 2):
            self.seen["snapshots read"] += is_new
            self._check_rows(metadata, location, version)
            self._read = current

    def _learn(self, state: TableState) -> None:
        """Remember what a version adds to the schemas and snapshots of all later ones."""
        if state.schema.id != self._ledger_id:
            self._ledger_id = state.schema.id
            self._struct = pyarrow_to_schema(state.schema.to_arrow()).as_struct()
            # Iceberg's id is that of the first schema with the same columns.
            text = self._struct.model_dump_json()
            self._schema_id = self._schema_ids.setdefault(text, state.schema.id)
            self._schemas.setdefault(self._schema_id, self._struct)
        snapshot = state.snapshot
        if snapshot is not None:
            parent, records = snapshot.id - 1 or None, str(snapshot.total_record_count)
            self._snapshots.setdefault(
                snapshot.id, (parent, snapshot.time_millis, self._schema_id, records)
            )

    def _check_columns(self, metadata: TableMetadata, state: TableState) -> None:
        found = {each.schema_id: each for each in metadata.schemas}
        assert list(found) == list(self._schemas)
        for schema_id, schema in found.items():
            # The same object as in the version before needs no second look.
            if self._found.get(schema_id) is not schema:
                assert schema.as_struct() == self._schemas[schema_id]
        self._found = found
        self.seen["schemas"] += len(found)
        assert metadata.current_schema_id == self._schema_id
        assert metadata.schema().as_struct() == self._struct
        assert metadata.last_column_id == state.schema.highest_field_id

    def _check_layout(self, metadata: TableMetadata, state: TableState) -> None:
        assert {
            spec.spec_id: [
                (each.field_id, each.source_id, str(each.transform), each.name)
                for each in spec.fields
            ]
            for spec in metadata.partition_specs
        } == {
            spec.spec_id: [
                (each.field_id, each.source_id, each.transform, each.name) for each in spec.fields
            ]
            for spec in state.specs
        }
        assert metadata.default_spec_id == state.default_spec_id
        assert {
            order.order_id: [
                (each.source_id, str(each.transform), each.direction.value, each.null_order.value)
                for each in order.fields
            ]
            for order in metadata.sort_orders
        } == {
            order.order_id: [
                (each.source_id, each.transform, each.direction, each.null_order)
                for each in order.fields
            ]
            for order in state.sort_orders
        }
        assert metadata.default_sort_order_id == state.default_order_id

    def _check_snapshots(self, metadata: TableMetadata, state: TableState) -> None:
        last = state.last_snapshot_id
        reachable = [each for each in range(1, last + 1) if state.reachable(each)]
        assert {
            each.snapshot_id: (
                each.parent_snapshot_id,
                each.timestamp_ms,
                each.schema_id,
                each.summary and each.summary["total-records"],
            )
            for each in metadata.snapshots
        } == {each: self._snapshots[each] for each in reachable}
        self.seen["snapshots"] += len(reachable)
        assert metadata.current_snapshot_id == (last or None)
        main = {"main": last} if last else {}
        assert {name: each.snapshot_id for name, each in metadata.refs.items()} == main | {
            name: each.snapshot_id for name, each in state.tags.items()
        }

    def _check_rows(self, metadata: TableMetadata, location: str, version: int) -> None:
        table = StaticTable(
            identifier=("static", location),
            metadata=metadata,
            metadata_location=location,
            io=load_file_io(location=location),
            catalog=NoopCatalog("static"),
        )
        rows = by_id(table.scan().to_arrow().to_pylist())
        assert ordered(rows) == ordered(self.life.rows_at(version))
        self.seen["reads"] += 1
        self.seen["rows"] += len(rows)
