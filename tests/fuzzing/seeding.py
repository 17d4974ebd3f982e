"""Writes the seeds anew: `python -m tests.fuzzing.seeding`. The ids in them differ each time."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import deltalake
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

import ledger
from ledger import AddColumn, FileChange, RenameColumn, Schema, ViewSchema, schema_from_json
from ledger.relocation.exporting import export
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.fuzzing.cases import LOCATION, SEEDS, source_folder
from tests.lakes import lake_on
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.importing.test_hostile_metadata import COLUMNS, new_file

DATA = Path(__file__).parents[1] / "data"


def save(name: str, folder: Path) -> None:
    """Keep the metadata files below a folder as a seed."""
    with zipfile.ZipFile(SEEDS / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for each in sorted(folder.rglob("*")):
            if each.is_dir() or each.name.startswith("."):
                continue
            path = each.relative_to(folder).as_posix()
            body = uncompressed(each.read_bytes()).replace(str(folder).encode(), LOCATION.encode())
            out.writestr(zipfile.ZipInfo(path), body, zipfile.ZIP_DEFLATED)


def uncompressed(body: bytes) -> bytes:
    """Return an Avro file with its blocks unpacked, so that paths in it can be replaced."""
    if not body.startswith(b"Obj\x01"):
        return body
    reader: Any = fastavro.reader(io.BytesIO(body))
    records = list(reader)
    rest = {key: each for key, each in reader.metadata.items() if not key.startswith("avro.")}
    schema = json.loads(reader.metadata["avro.schema"])
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="null", metadata=rest, sync_marker=b"s" * 16)
    return out.getvalue()


def projected(folder: Path, format_name: str) -> None:
    """A table of the ledger's, as one format has it."""
    lake = ledger.open(str(folder).removesuffix("s" * len("/d.db/t")), author="ada")
    lake.create_database("d")
    options = {"ledger.formats": format_name}
    schema = schema_from_json({"fields": COLUMNS, "options": options, "partitionKeys": ["p"]})
    table = lake.create_table("d.t", schema)
    table.append([new_file("a"), new_file("b")])
    table.alter([AddColumn(("n",), "BIGINT")])
    table.create_tag("v1")
    table.append([new_file("c")])
    table.project(format_name)
    there = Path(handle_of(table).folder.removeprefix("file:"))
    shutil.rmtree(there / "_ledger")
    rename_table(there, folder)


def rename_table(there: Path, folder: Path) -> None:
    """Move a table to a path of the same length."""
    for each in there.rglob("*"):
        if each.is_file():
            each.write_bytes(each.read_bytes().replace(str(there).encode(), str(folder).encode()))
    there.rename(folder)


def by_pyiceberg(folder: Path) -> None:
    """A table of PyIceberg's."""
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
    table = created(folder, spec=spec)
    appended(table, 1, 2)
    table.manage_snapshots().create_tag(appended(table, 3), "v1").commit()
    with table.update_schema() as update:
        update.rename_column("name", "title")
    table.delete("id = 1")
    shutil.rmtree(folder / "data")


def by_delta_rs(folder: Path) -> None:
    """A table of delta-rs, with a checkpoint."""
    rows = pa.table({"id": [1, 2], "day": ["a", "b"], "s": [{"x": 1.5}, {"x": None}]})
    for mode in ("error", "append", "overwrite"):
        deltalake.write_deltalake(str(folder), rows, mode=mode, partition_by=["day"])
    deltalake.DeltaTable(str(folder)).create_checkpoint()
    deltalake.write_deltalake(str(folder), rows, mode="append", partition_by=["day"])
    (folder / "_delta_log" / f"{0:020}.json").unlink()
    for each in folder.rglob("part-*"):
        each.unlink()


def with_sidecar(folder: Path) -> None:
    """A table with column mapping, whose log begins with a checkpoint of version 2."""
    log = folder / "_delta_log"
    (log / "_sidecars").mkdir(parents=True)
    physical = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    column = {"name": "id", "type": "long", "nullable": True, "metadata": physical}
    features = {"readerFeatures": ["v2Checkpoint", "columnMapping"]}
    features |= {"writerFeatures": [*features["readerFeatures"], "invariants"]}
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    lines: list[dict[str, Any]] = [
        {"checkpointMetadata": {"version": 1}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {
            "metaData": {
                "id": "0e4b0b9c-4b26-4a4c-8a09-6f5a4b7a7f11",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": [column]}),
                "partitionColumns": [],
                "configuration": mapping,
                "createdTime": 1_700_000_000_000,
            }
        },
        {"txn": {"appId": "a", "version": 7}},
        {"sidecar": {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 1}},
    ]
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    (log / f"{1:020}.checkpoint.01234567-89ab-cdef-0123-456789abcdef.json").write_text(text)
    added = {"path": "a.parquet", "size": 9, "modificationTime": 1, "dataChange": False}
    added["stats"] = json.dumps({"numRecords": 2, "minValues": {"col-1": 1}, "nullCount": {}})
    pq.write_table(pa.Table.from_pylist([{"add": added}]), log / "_sidecars" / "s.parquet")
    later = [
        {"commitInfo": {"timestamp": 1_700_000_001_000, "operation": "WRITE", "userName": "ann"}},
        {"add": {**added, "path": "b.parquet", "partitionValues": {}}},
        {"remove": {"path": "a.parquet", "dataChange": True}},
    ]
    text = "".join(f"{json.dumps(each)}\n" for each in later)
    (log / f"{2:020}.json").write_text(text)
    (log / "_last_checkpoint").write_text('{"version":1,"size":5}')


def exported(folder: Path, *, erasable: bool) -> None:
    """The lines of a ledger."""
    lake = lake_on(MemoryStore(f"seed-{erasable}"))
    lake.init(erasable=erasable)
    lake.create_database("d")
    table = lake.create_table("d.t", {"id": "BIGINT", "name": "STRING"})
    table.append([FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)])
    table.alter([AddColumn(("n",), "INT"), RenameColumn(("name",), "title")], message="why")
    table.create_tag("v1")
    columns = Schema.of({"id": "BIGINT"}).fields
    lake.create_view("d.v", ViewSchema(columns, "SELECT id FROM t"))
    lines = io.BytesIO()
    export(handle_of(lake).setting, lines)
    folder.mkdir()
    (folder / "ledger.jsonl").write_bytes(lines.getvalue())


def parquet(folder: Path) -> None:
    """Data files of others."""
    (folder / "p=a").mkdir(parents=True)
    rows = pa.table({"id": [1, 2], "name": ["a", None], "s": [[1], None]})
    pq.write_table(rows, folder / "p=a" / "1.parquet", compression="none")


def main() -> None:
    """Write all seeds."""
    SEEDS.mkdir(parents=True, exist_ok=True)
    made: dict[str, Any] = {
        "iceberg-projected": lambda to: projected(to, "iceberg"),
        "delta-projected": lambda to: projected(to, "delta"),
        "paimon-projected": lambda to: projected(to, "paimon"),
        "iceberg-pyiceberg": by_pyiceberg,
        "delta-rs": by_delta_rs,
        "delta-sidecar": with_sidecar,
        "export-plain": lambda to: exported(to, erasable=False),
        "export-erasable": lambda to: exported(to, erasable=True),
        "parquet-pyarrow": parquet,
    }
    for name, make in made.items():
        with tempfile.TemporaryDirectory() as root:
            folder = source_folder(Path(root))
            make(folder)
            save(name, folder)
    save("paimon-java-keyed", DATA / "paimon/java_wh/j.db/pk")
    save("paimon-java-parts", DATA / "paimon/java_wh/j.db/append_p")
    save("paimon-pypaimon", DATA / "paimon/pypaimon_wh/ledger.db/nested_evo")
    for version in ("v1", "v3"):
        with tempfile.TemporaryDirectory() as root:
            there = sorted((DATA / "iceberg/generated/java-life" / version).glob("*.metadata.json"))
            to = Path(root) / "metadata"
            to.mkdir()
            for each in there[-3:]:
                shutil.copy(each, to / f"v{each.name}")
            save(f"iceberg-java-{version}", Path(root))


if __name__ == "__main__":
    main()
