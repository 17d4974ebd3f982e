from __future__ import annotations

import hashlib
import io
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import DamagedLogError, MissingDependencyError, UnsupportedError
from projections.manifest_files.container import decompress_block
from projections.paimon import (
    ManifestEntry,
    ManifestFileMeta,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
)
from projections.paimon import manifest_avro as avro
from projections.paimon.manifest_avro import (
    DataFileMeta,
    DeletionVectorRange,
    GlobalIndex,
    IndexManifestEntry,
    SimpleStats,
    write_index_manifest,
    write_manifest,
    write_manifest_list,
)
from tests.thorough import examples

ROOT = Path(__file__).parents[2] / "data/paimon"
WAREHOUSES = [ROOT / "java_wh", ROOT / "pypaimon_wh"]
FILES = sorted(each for root in WAREHOUSES for each in root.glob("*/*/manifest/*"))
LISTS = [each for each in FILES if each.name.startswith("manifest-list-")]
MANIFESTS = [each for each in FILES if each not in LISTS]
JAVA_MANIFEST = next(each for each in MANIFESTS if "java_wh" in each.parts)
JAVA_LIST = next(each for each in LISTS if "java_wh" in each.parts)
MARKER = bytes(range(16))

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
STATS = st.builds(
    SimpleStats,
    st.binary(),
    st.binary(),
    st.none() | st.lists(st.none() | INT64, max_size=3).map(tuple),
)
NAMES = st.lists(st.text(), max_size=3).map(tuple)
DATA_FILES = st.builds(
    DataFileMeta,
    file_name=st.text(),
    file_size=INT64,
    row_count=INT64,
    min_key=st.binary(),
    max_key=st.binary(),
    key_stats=STATS,
    value_stats=STATS,
    min_sequence_number=INT64,
    max_sequence_number=INT64,
    schema_id=INT64,
    level=INT32,
    extra_files=NAMES,
    creation_time=st.none() | INT64,
    delete_row_count=st.none() | INT64,
    embedded_file_index=st.none() | st.binary(),
    file_source=st.none() | INT32,
    value_stats_cols=st.none() | NAMES,
    external_path=st.none() | st.text(),
    first_row_id=st.none() | INT64,
    write_cols=st.none() | NAMES,
    write_cols_sequences=st.none() | st.lists(INT64, max_size=3).map(tuple),
)
KINDS = st.sampled_from(["ADD", "DELETE"])
ENTRIES = st.builds(
    ManifestEntry,
    kind=KINDS,
    partition=st.binary(),
    bucket=INT32,
    total_buckets=INT32,
    file=DATA_FILES,
)
INDEX_ENTRIES = st.builds(
    IndexManifestEntry,
    kind=KINDS,
    partition=st.binary(),
    bucket=INT32,
    index_type=st.text(),
    file_name=st.text(),
    file_size=INT64,
    row_count=INT64,
    deletions_vectors_ranges=st.none()
    | st.lists(
        st.builds(DeletionVectorRange, st.text(), INT32, INT32, st.none() | INT64), max_size=2
    ).map(tuple),
    external_path=st.none() | st.text(),
    global_index=st.none()
    | st.builds(
        GlobalIndex,
        row_range_start=INT64,
        row_range_end=INT64,
        index_field_id=INT32,
        extra_field_ids=st.none() | st.lists(INT32, max_size=2).map(tuple),
        index_meta=st.none() | st.binary(),
    ),
)
SLOW = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(50))
ENTRY = ManifestEntry(
    kind="ADD",
    partition=bytes(12),
    bucket=0,
    total_buckets=-1,
    file=DataFileMeta(file_name="a.parquet", file_size=900, row_count=2, creation_time=1),
)


def packed(
    schema: Any, records: list[dict[str, Any]], codec: str = "null", **options: Any
) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec, **options)
    return out.getvalue()


def raw(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [each for each in fastavro.reader(file) if isinstance(each, dict)]


def schema_inside(body: bytes) -> Any:
    return fastavro.reader(io.BytesIO(body)).writer_schema


def without_order(schema: Any) -> Any:
    """Return a schema in which the order of keys, but not that of fields, is lost."""
    return json.loads(json.dumps(schema, sort_keys=True))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda each: each.name)
def test_manifests_of_others_read_and_are_written_again_field_by_field(path: Path) -> None:
    entries = read_manifest(path.read_bytes(), path.name)

    written = write_manifest(entries, sync_marker=MARKER)

    known = schema_inside(written)["fields"][5]["type"]["fields"]
    assert list(fastavro.reader(io.BytesIO(written))) == raw(path)
    assert {each["name"] for each in known} >= set(raw(path)[0]["_FILE"])
    assert read_manifest(written, "again") == entries != ()


@pytest.mark.parametrize("path", LISTS, ids=lambda each: each.name)
def test_lists_of_others_read_and_are_written_again_field_by_field(path: Path) -> None:
    manifests = read_manifest_list(path.read_bytes(), path.name)

    written = write_manifest_list(manifests, sync_marker=MARKER)

    extra = ("_TOTAL_BUCKETS", "_EXTRA_FILES")  # pypaimon alone writes them
    kept = [{key: row[key] for key in row if key not in extra} for row in raw(path)]
    assert list(fastavro.reader(io.BytesIO(written))) == kept
    assert read_manifest_list(written, "again") == manifests


def test_a_list_names_its_manifests_with_their_size_and_counts() -> None:
    sizes = {each.name: each.stat().st_size for each in MANIFESTS}

    for path in LISTS:
        for meta in read_manifest_list(path.read_bytes(), path.name):
            assert meta.file_size == sizes[meta.file_name]


def test_schemas_are_those_of_java() -> None:
    manifest, listed = (
        write_manifest([], sync_marker=MARKER),
        write_manifest_list([], sync_marker=MARKER),
    )

    for ours, javas in ((manifest, JAVA_MANIFEST), (listed, JAVA_LIST)):
        theirs = schema_inside(javas.read_bytes())
        assert without_order(schema_inside(ours)) == without_order(theirs)


@SLOW
@given(st.lists(ENTRIES, max_size=3))
def test_every_manifest_reads_as_it_was_written(entries: list[ManifestEntry]) -> None:
    body = write_manifest(entries, sync_marker=MARKER)

    assert read_manifest(body, "m") == tuple(entries)


@SLOW
@given(st.lists(INDEX_ENTRIES, max_size=3))
def test_every_index_manifest_reads_as_it_was_written(entries: list[IndexManifestEntry]) -> None:
    body = write_index_manifest(entries, sync_marker=MARKER)

    assert read_index_manifest(body, "i") == tuple(entries)


def test_an_empty_list_is_a_file_without_records() -> None:
    assert read_manifest_list(write_manifest_list([], sync_marker=MARKER), "l") == ()


def test_the_bytes_never_change() -> None:
    body = write_manifest([ENTRY], sync_marker=MARKER)

    assert body == write_manifest([ENTRY], sync_marker=MARKER)
    assert body.endswith(MARKER)
    assert (
        hashlib.sha256(body).hexdigest()
        == "baa3858a4f12d6e1c7b2087a479f5f07ee4d5f31feff564cda9697e53bd2cfa4"
    )


def test_a_sync_marker_has_sixteen_bytes() -> None:
    with pytest.raises(ValueError, match="16 bytes, not 3"):
        write_manifest([], sync_marker=b"abc")


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_every_codec_reads(codec: str) -> None:
    rows = raw(JAVA_MANIFEST)

    body = packed(avro.MANIFEST, rows, codec)

    expected = read_manifest(JAVA_MANIFEST.read_bytes(), "java")
    assert read_manifest(body, codec) == expected


def test_missing_nullable_fields_read_as_none_and_unknown_ones_are_ignored() -> None:
    fields = [each for each in avro.MANIFEST_LIST["fields"] if "default" not in each]
    schema = {
        "type": "record",
        "name": "other",
        "fields": [*fields, {"name": "_NEW", "type": {"type": "array", "items": "string"}}],
    }
    [row, *_] = (row for path in LISTS for row in raw(path))

    [meta] = read_manifest_list(packed(schema, [{**row, "_NEW": ["x"]}]), "old")

    assert (meta.file_name, meta.min_bucket, meta.max_row_id) == (row["_FILE_NAME"], None, None)


def test_a_missing_required_field_is_damage() -> None:
    fields = [each for each in avro.MANIFEST["fields"] if each["name"] != "_PARTITION"]
    schema = {"type": "record", "name": "other", "fields": fields}

    with pytest.raises(DamagedLogError, match="partition") as raised:
        read_manifest(packed(schema, raw(JAVA_MANIFEST)), "torn")
    assert raised.value.file == "torn"


def test_an_unknown_kind_is_damage() -> None:
    for kind in (2, -3):
        rows = [{**row, "_KIND": kind} for row in raw(JAVA_MANIFEST)]
        with pytest.raises(DamagedLogError, match="torn"):
            read_manifest(packed(avro.MANIFEST, rows), "torn")


def test_another_version_is_rejected_by_number() -> None:
    rows = [{**row, "_VERSION": 3} for row in raw(JAVA_MANIFEST)]

    with pytest.raises(UnsupportedError, match="newer holds records of version 3"):
        read_manifest(packed(avro.MANIFEST, rows), "newer")


def test_a_file_cut_anywhere_is_rejected_by_name() -> None:
    body = JAVA_MANIFEST.read_bytes()
    header = next(iter(fastavro.block_reader(io.BytesIO(body)))).offset

    for end in set(range(0, len(body), 7)) | {len(body) - 1, header - 1, header + 1}:
        if end == header:
            continue  # a whole container without blocks
        with pytest.raises(DamagedLogError, match="cut") as raised:
            read_manifest(body[:end], "cut")
        assert raised.value.file == "cut"


@given(st.data())
@settings(max_examples=examples(200))
def test_changed_bytes_never_fail_otherwise_than_by_name(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([JAVA_MANIFEST, JAVA_LIST]))
    body = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        body = bytearray(write_manifest([ENTRY], sync_marker=MARKER))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    with suppress(DamagedLogError, UnsupportedError):
        read_manifest(bytes(body), "changed")


def varint(number: int) -> bytes:
    raw_number = number << 1 ^ number >> 63
    out = bytearray()
    while raw_number > 127:
        out.append(raw_number & 127 | 128)
        raw_number >>= 7
    return bytes([*out, raw_number])


def test_a_codec_without_its_library_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(MissingDependencyError, match="with snappy: install cramjam to read it"):
        decompress_block("snappy", bytes(8), 100)


def with_block(schema: Any, count: int, content: bytes, codec: str = "null") -> bytes:
    header = packed(schema, [], codec, sync_marker=MARKER)
    return header + varint(count) + varint(len(content)) + content + MARKER


@pytest.mark.parametrize(
    ("codec", "content"),
    [
        ("null", b""),
        ("null", varint(2**30)),
        ("snappy", bytes.fromhex("8080808004") + b"x"),
        ("zstandard", bytes.fromhex("28b52ffda000000040") + bytes.fromhex("0b000078")),
    ],
)
def test_a_gigabyte_that_is_only_declared_is_rejected(codec: str, content: bytes) -> None:
    for count in (1, 2**40, -1):
        body = with_block(avro.MANIFEST, count, content, codec)
        with pytest.raises(DamagedLogError, match="bomb"):
            read_manifest(body, "bomb")


def test_a_block_longer_than_its_file_is_rejected() -> None:
    header = packed(avro.MANIFEST, [], sync_marker=MARKER)

    with pytest.raises(DamagedLogError, match="does not end in its mark"):
        read_manifest(header + varint(1) + varint(2**30) + b"x" * 100, "long")


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": {"type": "record", "name": "empty", "fields": []}},
        {"type": "array", "items": {"type": "fixed", "name": "nothing", "size": 0}},
        {
            "type": "record",
            "name": "loop",
            "fields": [{"name": "again", "type": "loop"}, {"name": "x", "type": "int"}],
        },
    ],
    ids=str,
)
def test_a_schema_that_makes_values_of_nothing_is_rejected(inner: Any) -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "_VERSION", "type": "int"}, {"name": "_X", "type": inner}],
    }
    body = with_block(schema, 1, varint(2) + varint(2**50) + b"\0")

    with pytest.raises(DamagedLogError, match="its schema"):
        read_manifest(body, "endless")


def test_a_manifest_list_keeps_all_of_its_fields() -> None:
    meta = ManifestFileMeta(
        file_name="manifest-0",
        file_size=1,
        num_added_files=2,
        num_deleted_files=3,
        partition_stats=SimpleStats(b"a", b"b", (None, 4)),
        schema_id=5,
        min_bucket=6,
        max_bucket=7,
        min_level=8,
        max_level=9,
        min_row_id=10,
        max_row_id=11,
    )

    assert read_manifest_list(write_manifest_list([meta], sync_marker=MARKER), "l") == (meta,)
