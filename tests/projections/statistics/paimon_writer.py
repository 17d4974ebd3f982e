"""A table that pypaimon writes, and its snapshots recorded in a ledger as its engine names them."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

import ledger
from ledger import Schema, SnapshotPlan, Table
from ledger.files.partition_values import DEFAULT_NAME
from ledger.table_handle import handle_of
from tests.pypaimon_or_skip import CatalogFactory
from tests.pypaimon_or_skip import Schema as PaimonSchema

NAME = "shop.orders"
COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("kind", pa.string())])
KEYS = ["day", "kind"]

FACTS = {
    "baseManifestList": "base_manifest_list",
    "baseManifestListSize": "base_manifest_list_size",
    "deltaManifestList": "delta_manifest_list",
    "deltaManifestListSize": "delta_manifest_list_size",
}

Partitions = dict[tuple[str, ...], tuple[int, int, int]]
"""Rows, bytes and files of each partition, by the text of its values."""


def a_ledger_table(root: Path, name: str = NAME) -> Table:
    lake = ledger.open(str(root))
    lake.init()
    if "shop" not in lake.databases():
        lake.create_database("shop")
    columns = {"id": "BIGINT", "day": "DATE", "kind": "STRING"}
    options = {"ledger.formats": "paimon"}
    return lake.create_table(name, Schema.of(columns, partition_keys=KEYS, options=options))


class PaimonWriter:
    """Writes with pypaimon into a ledger table's own place."""

    def __init__(self, table: Table, root: Path, *, exists: bool = False) -> None:
        self.table = table
        self.place = root / handle_of(table).path
        self._name = str(table.identifier)
        self._catalog = CatalogFactory.create({"warehouse": str(root)})
        if not exists:
            self._catalog.create_database("shop", ignore_if_exists=True)
            schema = PaimonSchema.from_pyarrow_schema(COLUMNS, partition_keys=KEYS)
            self._catalog.create_table(self._name, schema, ignore_if_exists=False)

    def write(self, rows: list[Row], overwrite: dict[str, Any] | None = None) -> None:
        """Commit one snapshot with pypaimon, and record it."""
        builder = self._catalog.get_table(self._name).new_batch_write_builder()
        if overwrite is not None:
            builder = builder.overwrite(overwrite)
        write, commit = builder.new_write(), builder.new_commit()
        columns = [list(each) for each in zip(*rows, strict=True)]
        write.write_arrow(pa.table(columns, schema=COLUMNS))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()
        self.record()

    def record(self) -> None:
        """Commit the newest snapshot that pypaimon wrote to the ledger."""
        said = self.snapshot(self.table.state.last_snapshot_id + 1)
        facts = {ours: said[theirs] for theirs, ours in FACTS.items() if theirs in said}
        plan = SnapshotPlan(said["commitKind"], commit_user=said["commitUser"], facts=facts)
        self.table.commit_snapshot(plan)

    def snapshot(self, snapshot_id: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.place / f"snapshot/snapshot-{snapshot_id}").read_bytes()
        )
        return found

    def partitions(self) -> Partitions:
        """Return what pypaimon's own partitions table says of the newest snapshot."""
        builder = self._catalog.get_table(f"{self._name}$partitions").new_read_builder()
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
        return {
            _values(row["partition"]): (
                row["record_count"],
                row["file_size_in_bytes"],
                row["file_count"],
            )
            for row in rows
        }

    def forget_before(self, snapshot_id: int) -> None:
        """Take away what only older snapshots need, as Paimon's expiry does."""
        kept: set[str] = set()
        newest = max(int(each.name[9:]) for each in self.place.glob("snapshot/snapshot-*"))
        for each in range(snapshot_id, newest + 1):
            said = self.snapshot(each)
            for name in (said["baseManifestList"], said["deltaManifestList"]):
                kept |= {name, *manifests_of(self.place / "manifest" / name)}
        for path in self.place.glob("manifest/*"):
            if path.name not in kept:
                path.unlink()
        for each in range(1, snapshot_id):
            (self.place / f"snapshot/snapshot-{each}").unlink(missing_ok=True)


Row = tuple[int, dt.date | None, str | None]


def rows(count: int, start: int = 0) -> list[Row]:
    """Return rows of six partitions."""
    return [
        (each, dt.date(2024, 1, 1 + each % 3), "ab"[each % 2])
        for each in range(start, start + count)
    ]


def manifests_of(path: Path) -> set[str]:
    import fastavro

    with path.open("rb") as file:
        return {each["_FILE_NAME"] for each in fastavro.reader(file)}  # type: ignore[call-overload, index]  # a dict


def _values(text: str) -> tuple[str, ...]:
    values = (each.partition("=")[2] for each in text.split("/"))
    return tuple(_legacy(each) for each in values)


def _legacy(value: str) -> str:
    """Return a value as the ledger shows it: a day by its number."""
    if value == "None":
        return DEFAULT_NAME
    if value.startswith("20"):
        return str(dt.date.fromisoformat(value).toordinal() - dt.date(1970, 1, 1).toordinal())
    return value
