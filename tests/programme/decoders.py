"""Every decoder of the code base, with real inputs to begin from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import fsspec
import msgspec
from attrs import frozen
from hypothesis import strategies as st

from ledger import Identifier, schema_change_from_json, schema_from_json
from ledger.events import ChangesReference
from ledger.files import load_changes, read_footer, write_changes
from ledger.files.partition_values import path_keys
from ledger.files.runs import RunStore
from ledger.log import (
    Checkpoints,
    Codec,
    KeyFilter,
    KeyIndex,
    Layout,
    Segments,
    is_same_segment,
    write_segment,
)
from ledger.model import parse_type, read_type, transform_of, type_from_json
from ledger.model.names import parse_column_path
from ledger.model.types.sql import read_spark_type
from ledger.sql.statement import parse
from ledger.state import FOLD_VERSION, CatalogStream, TableStream
from ledger.stores import MemoryStore, open_store
from projections.dlf import GetTableResponse, read
from projections.iceberg import read_metadata, requirement_from_json, table_update_from_json
from projections.iceberg.metadata_schema import primitive_type
from projections.iceberg.schema_json import schema_from_json as iceberg_schema
from projections.manifest_files.container import read_container
from projections.paimon import (
    consumer_from_json,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
    snapshot_from_json,
    statistics_from_json,
    tag_from_json,
)
from projections.paimon import schema_from_json as paimon_schema
from tests.lakes import data_file, lake_on, memory, orders
from tests.programme.mutations import documents, files, texts

DATA = Path(__file__).parents[1] / "data"


@frozen
class Decoder:
    """One decoder.

    Attributes:
        decode: Takes an input; raises a LedgerError for a bad one, and nothing else.
        inputs: Draws inputs.
    """

    decode: Callable[[Any], object]
    inputs: Callable[[], st.SearchStrategy[Any]]


@lru_cache
def ledger_bodies() -> dict[str, bytes]:
    """Return a ledger whose table has every kind of cache and a Paimon projection."""
    store = memory()
    lake = lake_on(store)
    table = orders(lake)
    for number in range(101):
        table.append([data_file(f"f{number}.parquet")], message="é", properties={"a": "b"})
    table.create_tag("t", time_retained_millis=10_000)
    table.sql("ALTER TABLE shop.orders ADD COLUMN s STRUCT<a: INT, b: ARRAY<STRING>>")
    table.rollback(snapshot=3)
    table.expire_snapshots(before=2)
    table.project("paimon")
    return {key: store.read(key) or b"" for key in store.keys("")}


def bodies(*parts: str) -> list[bytes]:
    """Return the files of that ledger whose keys contain all of some parts."""
    found = [b for key, b in ledger_bodies().items() if all(each in key for each in parts)]
    assert found, parts
    return found[-8:]


def documents_in(*patterns: str) -> list[bytes]:
    """Return files of the test data."""
    found = [path.read_bytes() for pattern in patterns for path in sorted(DATA.glob(pattern))]
    assert found, patterns
    return found[:12]


def checkpoint(body: bytes) -> object:
    """Load a checkpoint whose state is `body` and whose check fits."""
    store, layout = MemoryStore("fuzzed-checkpoint"), Layout.of_fold("t/_ledger", FOLD_VERSION)
    stream = TableStream()
    file = {
        "format": 3,
        "foldVersion": stream.fold_version,
        "version": 100,
        "head": "x",
        "check": hashlib.sha256(body).hexdigest(),
    }
    whole = json.dumps(file).encode()[:-1] + b',"state":' + body + b"}"
    store.replace(layout.checkpoint(100), whole)
    store.replace(layout.hint, body or b"1")
    checkpoints = Checkpoints(store, layout, stream)
    return checkpoints.newest(), checkpoints.at_or_before(100)


def raw_checkpoint(body: bytes) -> object:
    store, layout = MemoryStore("fuzzed-raw-checkpoint"), Layout.of_fold("t/_ledger", FOLD_VERSION)
    store.replace(layout.checkpoint(100), body or b" ")
    return Checkpoints(store, layout, TableStream()).at_or_before(100)


def key_index(body: bytes) -> object:
    whole = b"LLKEYS1\n" + body
    return KeyIndex.from_bytes(body), KeyIndex.from_bytes(whole + hashlib.sha256(whole).digest())


def key_filter(body: bytes) -> object:
    whole = b"LLFILT1\n" + body
    return KeyFilter.from_bytes(body), KeyFilter.from_bytes(whole + hashlib.sha256(whole).digest())


def run(body: bytes) -> object:
    store, layout = MemoryStore("fuzzed-run"), Layout("t/_ledger")
    store.replace(layout.file_run(0, 100), body or b" ")
    return RunStore(store, layout).load(0, 100)


@lru_cache
def segment_bodies() -> list[bytes]:
    """Return a segment of 801 commits, long ones among them."""
    commits = bodies("orders/_ledger/log/")[-1:] * 801
    return [write_segment(commits)]


def segment(body: bytes) -> object:
    """Read a segment whose last commit is the log's own."""
    store, layout = MemoryStore("fuzzed-segment"), Layout("t/_ledger")
    store.replace(layout.segment(0, 800), body or b" ")
    store.replace(layout.commit(800), bodies("orders/_ledger/log/")[-1])
    return list(Segments(store, layout).read([(0, 800)])), is_same_segment(
        segment_bodies()[0], body
    )


def changes(body: bytes) -> object:
    store, layout = MemoryStore("fuzzed-changes"), Layout("t/_ledger")
    store.replace(layout.changes("c"), body or b" ")
    check = hashlib.sha256(body or b" ").hexdigest()
    return load_changes(store, layout, ChangesReference("changes/c", check, 2))


def footer(body: bytes) -> object:
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/fuzzed.parquet", body)
    return read_footer("/fuzzed.parquet", filesystem=filesystem)


def last_commit(body: bytes) -> object:
    """Open a table whose newest commit is `body`, and read all that it holds."""
    store = MemoryStore("fuzzed-log")
    for key in list(store.keys("")):
        store.delete(key)
    for key, each in _short().items():
        store.replace(key, each)
    last = max(key for key in _short() if "orders/_ledger/log" in key)
    store.replace(last, body or b" ")
    table = lake_on(store).table("shop.orders")
    return table.at().files, list(table.schemas())


@lru_cache
def _short() -> dict[str, bytes]:
    store = memory()
    table = orders(lake_on(store))
    table.append([data_file("a.parquet")])
    return {key: store.read(key) or b"" for key in store.keys("")}


def state_record() -> list[bytes]:
    class File(msgspec.Struct):
        state: msgspec.Raw

    return [
        bytes(msgspec.json.decode(each, type=File).state)
        for each in bodies("orders/_ledger/caches/", ".json")
    ]


def short_commits() -> list[bytes]:
    return [each for key, each in _short().items() if "orders/_ledger/log" in key]


TYPES = ("INT NOT NULL", "ROW<a INT, `b c` ARRAY<STRING>>", "DECIMAL(10, 2)", "MAP<INT, BYTES>")
STATEMENTS = (
    "ALTER TABLE shop.orders ADD COLUMN a INT COMMENT 'x' AFTER id",
    "ALTER TABLE shop.orders ALTER COLUMN a TYPE DECIMAL(10, 2)",
    "ALTER TABLE shop.orders SET TBLPROPERTIES ('a'='b')",
    "ALTER TABLE shop.orders ADD PARTITION FIELD bucket(16, id) AS b",
    "ALTER TABLE shop.orders WRITE ORDERED BY a DESC NULLS LAST",
    "ALTER TABLE shop.orders CREATE TAG t AS OF VERSION 3 RETAIN 5 DAYS",
)
CHANGES = (
    {"action": "addColumn", "fieldNames": ["a", "b"], "dataType": "INT", "comment": None},
    {"action": "renameColumn", "fieldNames": ["a"], "newName": "b"},
    {"action": "updateColumnPosition", "move": {"fieldName": "a", "type": "FIRST"}},
    {"action": "setOption", "key": "a", "value": "b"},
)
SCHEMA: dict[str, Any] = {
    "fields": [
        {"id": 0, "name": "a", "type": "INT NOT NULL"},
        {
            "id": 1,
            "name": "r",
            "type": {"type": "ROW", "fields": [{"id": 2, "name": "x", "type": "INT"}]},
        },
        {"id": 3, "name": "l", "type": {"type": "ARRAY", "element": "STRING"}},
    ],
    "partitionKeys": ["a"],
    "primaryKeys": ["a"],
    "options": {"bucket": "1"},
    "comment": "c",
}
# Not gs:// and abfs://, whose clients look for credentials on the network when they are made.
URLS = (
    "s3://bucket/folder",
    "memory://a/b",
    "file:///a",
    "simplecache::s3://b",
    "/a",
    "~",
    "c:\\a",
)
UPDATES = (
    {"action": "set-location", "location": "s3://a"},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-properties", "updates": {"a": "b"}},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
)


def _of(make: Callable[[], Sequence[Any]], draw: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: draw(make())


def iceberg_files() -> list[bytes]:
    return documents_in("iceberg/generated/java-life/*/0[0-9].metadata.json", "iceberg/java/*.json")


DECODERS: dict[str, Decoder] = {
    "table commit": Decoder(
        lambda body: Codec[Any](TableStream().event_types).decode(body, "f"),
        _of(lambda: bodies("orders/_ledger/log"), files),
    ),
    "catalog commit": Decoder(
        lambda body: Codec[Any](CatalogStream().event_types).decode(body, "f"),
        _of(lambda: [b for k, b in ledger_bodies().items() if k.startswith("_ledger/log")], files),
    ),
    "newest commit of a log": Decoder(last_commit, _of(short_commits, files)),
    "checkpoint": Decoder(raw_checkpoint, _of(lambda: bodies("/caches/", ".json"), files)),
    "checkpoint's state": Decoder(checkpoint, _of(state_record, files)),
    "key index": Decoder(key_index, _of(lambda: bodies("caches/3/keys"), files)),
    "filter": Decoder(key_filter, _of(lambda: bodies("caches/3/filters"), files)),
    "sealed segment": Decoder(segment, _of(segment_bodies, files)),
    "run of files": Decoder(run, _of(lambda: bodies("caches/3/files"), files)),
    "change file": Decoder(
        changes,
        _of(lambda: [write_changes([data_file("a.parquet"), data_file("b.parquet")])], files),
    ),
    "Parquet footer": Decoder(
        footer,
        _of(lambda: [write_changes([data_file("a.parquet")]), *bodies("caches/3/files")], files),
    ),
    "type text": Decoder(parse_type, _of(lambda: TYPES, texts)),
    "SQL type": Decoder(read_type, _of(lambda: TYPES, texts)),
    "Spark type": Decoder(read_spark_type, _of(lambda: TYPES, texts)),
    "Iceberg type": Decoder(primitive_type, _of(lambda: ("decimal(9, 2)", "fixed[4]"), texts)),
    "transform": Decoder(transform_of, _of(lambda: ("bucket[16]", "truncate[4]", "day"), texts)),
    "statement": Decoder(parse, _of(lambda: STATEMENTS, texts)),
    "identifier": Decoder(Identifier.parse, _of(lambda: ("shop.orders", "a.b.c"), texts)),
    "column path": Decoder(parse_column_path, _of(lambda: ("a.b", "`a.b`.c"), texts)),
    "hive path": Decoder(path_keys, _of(lambda: ("a=1/b=%2F/f.parquet",), texts)),
    "URL": Decoder(open_store, _of(lambda: URLS, texts)),
    "type JSON": Decoder(
        type_from_json,
        _of(lambda: [each["type"] for each in SCHEMA["fields"]], documents),
    ),
    "schema JSON": Decoder(schema_from_json, _of(lambda: [SCHEMA], documents)),
    "change JSON": Decoder(schema_change_from_json, _of(lambda: CHANGES, documents)),
    "DLF table": Decoder(
        lambda obj: read(obj, GetTableResponse),
        _of(lambda: [{"id": "1", "name": "t", "schemaId": 0, "schema": SCHEMA}], documents),
    ),
    "Paimon schema": Decoder(paimon_schema, _of(lambda: bodies("orders/schema/"), files)),
    "Paimon snapshot": Decoder(
        snapshot_from_json, _of(lambda: bodies("snapshot/snapshot-"), files)
    ),
    "Paimon tag": Decoder(tag_from_json, _of(lambda: bodies("tag/tag-"), files)),
    "Paimon statistics": Decoder(
        statistics_from_json,
        _of(lambda: [b'{"snapshotId":1,"schemaId":0,"mergedRecordCount":3,"colStats":{}}'], files),
    ),
    "Paimon consumer": Decoder(consumer_from_json, _of(lambda: [b'{"nextSnapshot":3}'], files)),
    "Paimon manifest": Decoder(
        lambda body: read_manifest(body, "f"), _of(lambda: manifests()[0], files)
    ),
    "Paimon manifest list": Decoder(
        lambda body: read_manifest_list(body, "f"), _of(lambda: manifests()[1], files)
    ),
    "Paimon index manifest": Decoder(
        lambda body: read_index_manifest(body, "f"), _of(lambda: manifests()[1], files)
    ),
    "Avro container": Decoder(
        lambda body: list(read_container(body, "f")), _of(lambda: manifests()[0], files)
    ),
    "Iceberg metadata": Decoder(read_metadata, _of(iceberg_files, files)),
    "Iceberg update": Decoder(table_update_from_json, _of(lambda: UPDATES, documents)),
    "Iceberg requirement": Decoder(
        requirement_from_json,
        _of(lambda: [{"type": "assert-ref-snapshot-id", "ref": "a", "snapshot-id": 1}], documents),
    ),
    "Iceberg schema": Decoder(
        iceberg_schema,
        _of(lambda: [json.loads(each)["schemas"][0] for each in with_schemas()], documents),
    ),
}


def with_schemas() -> list[bytes]:
    return documents_in("iceberg/generated/java-life/v2/0[0-9].metadata.json")


def manifests() -> tuple[list[bytes], list[bytes]]:
    """Return Paimon's manifests and manifest lists."""
    lists: list[bytes] = []
    entries: list[bytes] = []
    for key, body in ledger_bodies().items():
        if "orders/manifest/" in key:
            (lists if "list" in key else entries).append(body)
    assert lists
    assert entries
    return entries[-3:], lists[-3:]
