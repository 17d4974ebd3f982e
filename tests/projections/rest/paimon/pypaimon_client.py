"""The client pypaimon: a catalog of files, or its `RESTCatalog`."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa
from attrs import define
from pypaimon import CatalogFactory
from pypaimon.common.identifier import Identifier
from pypaimon.common.json_util import JSON
from pypaimon.schema import schema_change as changes
from pypaimon.schema.data_types import (
    AtomicInteger,
    DataField,
    DataTypeParser,
    PyarrowFieldParser,
    reassign_field_id,
)
from pypaimon.schema.schema import Schema
from pypaimon.table.instant import Instant

from tests.projections.rest.paimon.paimon_clients import Json, Row, TableSpec, TableView, in_order
from tests.readers.java_core import text

DATABASE = "shop"


@define
class PypaimonClient:
    """One catalog; its tables are in one database."""

    catalog: Any
    is_served: bool

    @classmethod
    def of_files(cls, warehouse: str) -> PypaimonClient:
        """Open a catalog of files."""
        return cls(CatalogFactory.create({"warehouse": warehouse}), is_served=False)

    @classmethod
    def of_server(cls, uri: str, warehouse: str) -> PypaimonClient:
        """Open a catalog behind a server."""
        options = {"metastore": "rest", "uri": uri, "warehouse": warehouse}
        token = {"token.provider": "bear", "token": "any"}
        return cls(CatalogFactory.create({**options, **token}), is_served=True)

    def create_database(self) -> None:
        """Create the database of the tables."""
        self.catalog.create_database(DATABASE, ignore_if_exists=False)

    def create_table(self, name: str, spec: TableSpec) -> None:
        """Create a table."""
        ids = AtomicInteger(-1)
        columns = []
        for column, kind in spec.columns.items():
            number = ids.increment_and_get()
            columns.append(DataField(number, column, reassign_field_id(_data_type(kind), ids)))
        schema = Schema(
            columns,
            list(spec.partition_keys),
            list(spec.primary_keys),
            dict(spec.options),
            spec.comment,
        )
        self.catalog.create_table(identifier(name), schema, ignore_if_exists=False)

    def alter(self, name: str, *changes: Json) -> None:
        """Change a table's schema, by changes as Paimon's JSON has them."""
        wanted = [_change(each, is_served=self.is_served) for each in changes]
        self.catalog.alter_table(identifier(name), wanted)

    def write(self, name: str, rows: Sequence[Row], options: Mapping[str, str] = {}) -> None:
        """Write rows in a batch job."""
        table = self.table(name, options)
        builder = table.new_batch_write_builder()
        self._write(table, builder, rows)

    def overwrite(self, name: str, partition: Mapping[str, Any], rows: Sequence[Row]) -> None:
        """Replace the rows of a partition, or of the table."""
        table = self.table(name)
        builder = table.new_batch_write_builder().overwrite(dict(partition))
        self._write(table, builder, rows)

    def stream(self, name: str, user: str, commits: Mapping[int, Sequence[Row]]) -> None:
        """Write rows in a streaming job, a commit an identifier."""
        table = self.table(name)
        builder = table.new_stream_write_builder()._with_commit_user(user)
        writer, commit = builder.new_write(), builder.new_commit()
        for number, rows in commits.items():
            writer.write_arrow(self.arrow(table, rows))
            commit.commit(writer.prepare_commit(number), number)
        writer.close()
        commit.close()

    def upsert(self, name: str, key: str, rows: Sequence[Row]) -> None:
        """Update the rows with the same value of a column, and append the others."""
        table = self.table(name)
        builder = table.new_batch_write_builder()
        update = builder.new_update()
        messages = update.upsert_by_arrow_with_key(self.arrow(table, rows), [key])
        builder.new_commit().commit(messages)

    def delete(self, name: str, column: str, value: Any) -> None:
        """Delete the rows with a value of a column."""
        builder = self.table(name).new_batch_write_builder()
        update = builder.new_update()
        predicate = update.new_predicate_builder().equal(column, value)
        builder.new_commit().commit(update.delete_by_predicate(predicate))

    def truncate(self, name: str, partitions: Sequence[Mapping[str, str]] = ()) -> None:
        """Remove all rows, or those of some partitions."""
        table = self.table(name)
        commit = table.new_batch_write_builder().new_commit()
        if partitions:
            kinds = {each.name: str(each.type) for each in table.fields}
            # pypaimon compares a day with its text where it has no other value.
            found = [
                {
                    key: dt.date.fromisoformat(value) if kinds[key].startswith("DATE") else value
                    for key, value in each.items()
                }
                for each in partitions
            ]
            commit.truncate_partitions(found)
        else:
            commit.truncate_table()
        commit.close()

    def create_tag(
        self, name: str, tag: str, snapshot: int | None = None, retained: str | None = None
    ) -> None:
        """Tag a snapshot, or the newest."""
        self.catalog.create_tag(identifier(name), tag, snapshot, retained)

    def delete_tag(self, name: str, tag: str) -> None:
        """Delete a tag."""
        self.catalog.delete_tag(identifier(name), tag)

    def create_branch(self, name: str, branch: str, tag: str | None = None) -> None:
        """Create a branch, at a tag or empty."""
        self.catalog.create_branch(identifier(name), branch, tag)

    def drop_branch(self, name: str, branch: str) -> None:
        """Drop a branch."""
        self.catalog.drop_branch(identifier(name), branch)

    def rename_branch(self, name: str, branch: str, other: str) -> None:
        """Rename a branch."""
        self.catalog.rename_branch(identifier(name), branch, other)

    def fast_forward(self, name: str, branch: str) -> None:
        """Let the main branch be another one."""
        self.catalog.fast_forward(identifier(name), branch)

    def roll_back(self, name: str, to: int | str) -> None:
        """Return to a snapshot or a tag."""
        if self.is_served:
            instant = Instant.snapshot(to) if isinstance(to, int) else Instant.tag(to)
            self.catalog.rollback_to(identifier(name), instant)
        else:
            self.table(name).rollback_to(to)

    def rename_table(self, name: str, other: str) -> None:
        """Rename a table."""
        self.catalog.rename_table(identifier(name), identifier(other))

    def drop_table(self, name: str) -> None:
        """Drop a table."""
        self.catalog.drop_table(identifier(name))

    def tables(self) -> list[str]:
        """Return the names of the tables."""
        return sorted(self.catalog.list_tables(DATABASE))

    def rows(self, name: str, options: Mapping[str, str] = {}) -> list[str]:
        """Return rows as text, in order, with options such as `scan.snapshot-id`."""
        return _rows(self.table(name, options))

    def changes(self, name: str, options: Mapping[str, str], plans: int) -> list[list[str]]:
        """Return what a streaming job reads, a list a plan; each row has its kind before it."""
        builder = self.table(name).new_stream_read_builder().with_include_row_kind()
        if "consumer-id" in options:
            builder = builder.with_consumer_id(options["consumer-id"])
        found = []
        for plan in builder.new_streaming_scan().stream_sync():
            rows = builder.new_read().to_arrow(plan.splits()).to_pylist()
            found.append(in_order(f"{each.pop('_row_kind')} {text(each)}" for each in rows))
            if len(found) == plans:
                break
        return found

    def partitions(self, name: str) -> list[tuple[Any, ...]]:
        """Return each partition with its rows, files and bytes, as the catalog lists them."""
        found, token = [], None
        while True:
            page = self.catalog.list_partitions_paged(identifier(name), page_token=token)
            found += page.elements
            token = page.next_page_token
            if not token:
                break
        return sorted(
            (
                sorted(each.spec.items()),
                each.record_count,
                each.file_count,
                each.file_size_in_bytes,
            )
            for each in found
        )

    def view(self, name: str) -> TableView:
        """Load a table, and return what there is of it."""
        table = self.table(name)
        manager, tags = table.schema_manager, table.tag_manager()
        schemas = [manager.get_schema(each) for each in range(manager.latest().id + 1)]
        found = {each: tags.get(each) for each in tags.list_tags()}
        return TableView(
            [_json(each) for each in schemas],
            [_json(each) for each in table.snapshot_manager().list_snapshots()],
            [{**_json(tag), "name": each} for each, tag in found.items()],
            list(self.catalog.list_branches(identifier(name))),
            lambda options: _rows(table.copy(dict(options)) if options else table),
        )

    def table(self, name: str, options: Mapping[str, str] = {}) -> Any:
        """Load a table."""
        table = self.catalog.get_table(identifier(name))
        return table.copy(dict(options)) if options else table

    def _write(self, table: Any, builder: Any, rows: Sequence[Row]) -> None:
        writer, commit = builder.new_write(), builder.new_commit()
        if rows:
            writer.write_arrow(self.arrow(table, rows))
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def arrow(self, table: Any, rows: Sequence[Row]) -> pa.Table:
        """Return rows with the types of a table's columns."""
        schema = PyarrowFieldParser.from_paimon_schema(table.fields)
        found = [dict(zip(schema.names, each, strict=True)) for each in rows]
        return pa.Table.from_pylist(found, schema)


def identifier(name: str) -> Identifier:
    """Return a table's identifier."""
    return Identifier.from_string(f"{DATABASE}.{name}")


def _rows(table: Any) -> list[str]:
    builder = table.new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return in_order(map(text, found.to_pylist()))


def _json(value: Any) -> Json:
    found: Json = json.loads(JSON.to_json(value))
    return found


def _data_type(kind: Any) -> Any:
    return DataTypeParser.parse_data_type(kind)


def _change(change: Json, *, is_served: bool) -> Any:
    kind = _CHANGES[change["action"]]
    names = {each.metadata["json_name"]: each.name for each in fields(kind)}
    found = {names[key]: value for key, value in change.items() if key != "action"}
    for key in ("data_type", "new_data_type"):
        if key in found:
            found[key] = _data_type(found[key])
    if kind is changes.AddColumn:
        found = {"comment": None, "move": None, **found}
    if kind is changes.UpdateColumnType:
        found = {"keep_nullability": False, **found}
    if found.get("move") is not None:
        move = found["move"]
        # pypaimon 2.1 cannot send its own enumeration to a server.
        where = move["type"] if is_served else changes.MoveType(move["type"])
        found["move"] = changes.Move(move["fieldName"], move["referenceFieldName"], where)
    return kind(**found)


_CHANGES: Mapping[str, Any] = {
    "setOption": changes.SetOption,
    "removeOption": changes.RemoveOption,
    "updateComment": changes.UpdateComment,
    "addColumn": changes.AddColumn,
    "renameColumn": changes.RenameColumn,
    "dropColumn": changes.DropColumn,
    "updateColumnType": changes.UpdateColumnType,
    "updateColumnNullability": changes.UpdateColumnNullability,
    "updateColumnComment": changes.UpdateColumnComment,
    "updateColumnDefaultValue": changes.UpdateColumnDefaultValue,
    "updateColumnPosition": changes.UpdateColumnPosition,
}
