"""Small foreign files that declare or unpack to gigabytes, and the public calls that read them.

`python -m tests.programme.foreign_bombs CASE FOLDER` reads one that was built before, in a process
of its own, so that what building takes is not counted. It prints one JSON object: the classes of
the error, its message, by how much the process grew in MiB, and its CPU seconds.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import lzma
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import fastavro
import msgspec
import pyarrow as pa
from attrs import frozen
from pyarrow import parquet

import ledger
from ledger.cli import main as main_of_cli
from ledger.events.commit import FORMAT
from ledger.files import to_table
from ledger.files.live import read_named_data_files
from ledger.relocation.importing import import_lines
from ledger.table_handle import handle_of

MANY: Final = 3_000_000
SYNC: Final = b"0123456789abcdef"
_PROTOCOL: Final = {"minReaderVersion": 1, "minWriterVersion": 2}
_SCHEMA: Final = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}],
}
_METADATA: Final = {
    "id": "7d6c1f9e-0000-4000-8000-000000000001",
    "format": {"provider": "parquet"},
    "schemaString": json.dumps(_SCHEMA),
    "partitionColumns": [],
    "createdTime": 1_700_000_000_000,
}
_ADD: Final = {"path": "a.parquet", "size": 1, "modificationTime": 1, "dataChange": True}


@frozen
class Bomb:
    """A file and the call that reads it.

    Attributes:
        build: Writes it into a folder.
        read: Reads it from there.
        name: What the error's message has to name.
        most_mib: By how much the process that reads it may grow.
    """

    build: Callable[[Path], object]
    read: Callable[[Path], object]
    name: str
    most_mib: int = 512


# Parquet


def written(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    given = {"compression": "zstd", "store_schema": False, **options}
    with parquet.ParquetWriter(sink, table.schema, **given) as writer:
        writer.write_table(table, row_group_size=1 << 30)
        writer.add_key_value_metadata(table.schema.metadata or {})
    return bytes(sink.getvalue())


def filled(first: Any, rest: Any) -> pa.Array:
    """Return a column that begins with a value and goes on with an array."""
    return pa.concat_arrays([pa.array([first], rest.type), rest])


def checkpoint_table(add: pa.Array) -> pa.Table:
    """Return a checkpoint whose first row is the protocol and whose second the metadata."""
    protocol = pa.struct([(each, pa.int32()) for each in _PROTOCOL])
    metadata = pa.struct(
        [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string())])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("createdTime", pa.int64()),
        ]
    )
    count = len(add) + 1
    return pa.table(
        {
            "protocol": filled(_PROTOCOL, pa.nulls(count, protocol)),
            "metaData": pa.concat_arrays(
                [pa.nulls(1, metadata), filled(_METADATA, pa.nulls(len(add), metadata))]
            ),
            "add": pa.concat_arrays([pa.nulls(2, add.type), add]),
        }
    )


def adds(count: int, **members: Any) -> pa.Array:
    """Return adds that repeat one value each, or have the arrays given."""
    said = {**_ADD, **members}
    arrays = {
        key: each if isinstance(each, pa.Array) else pa.repeat(pa.scalar(each), count)
        for key, each in said.items()
    }
    return pa.StructArray.from_arrays([*arrays.values()], [*arrays])


def checkpoint(make: Callable[[], pa.Array], **options: Any) -> Bomb:
    """Return a Delta table whose checkpoint lists some adds."""
    name = f"{0:020d}.checkpoint.parquet"

    def build(folder: Path) -> None:
        log = folder / "_delta_log"
        log.mkdir()
        (log / name).write_bytes(written(checkpoint_table(make()), **options))

    return Bomb(build, imported("delta"), name)


def sidecar() -> Bomb:
    """Return a Delta table whose checkpoint is small, and names a sidecar that is not."""

    def build(folder: Path) -> None:
        (folder / "_delta_log" / "_sidecars").mkdir(parents=True)
        lines = [
            {"protocol": _PROTOCOL},
            {"metaData": _METADATA},
            {"sidecar": {"path": "bomb.parquet", "sizeInBytes": 1, "modificationTime": 1}},
        ]
        path = (
            folder / "_delta_log" / f"{0:020d}.checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.json"
        )
        path.write_text("\n".join(map(json.dumps, lines)))
        body = written(pa.table({"add": pa.nulls(MANY, adds(1).type)}))
        (folder / "_delta_log" / "_sidecars" / "bomb.parquet").write_bytes(body)

    return Bomb(build, imported("delta"), "bomb.parquet")


def maps() -> pa.Array:
    """Return one add with 24 million partition values."""
    count = 8 * MANY
    texts = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()).take(zeros(count)), ["a"])
    texts = texts.cast(pa.string())
    values = pa.MapArray.from_arrays(pa.array([0, count], pa.int32()), texts, texts)
    return adds(1, partitionValues=values)


def zeros(count: int) -> pa.Array:
    return pa.repeat(pa.scalar(0, pa.int32()), count)


def long_texts(count: int, length: int) -> pa.Array:
    """Return rows that share a long text, which the file holds once."""
    return pa.DictionaryArray.from_arrays(zeros(count), ["a" * length])


def long_statistics() -> pa.Array:
    paths = pa.array([f"{each}.parquet" for each in range(50_000)])
    return adds(50_000, path=paths, stats=long_texts(50_000, 1_000_000))


def thrift_footer(schema: bytes, after: bytes = b"") -> bytes:
    """Return a Parquet file with a footer only: its version, its schema, and what follows."""
    footer = b"\x15\x02" + b"\x19" + schema + after
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def elements(*written_elements: bytes) -> bytes:
    return b"\xfc" + number(len(written_elements)) + b"".join(written_elements)


GROUP: Final = b"\x48\x01a\x15\x02\x00"
"""A schema element named `a` with one child."""
LEAF: Final = b"\x15\x02\x25\x02\x18\x01a\x00"
"""An element of integers named `a`."""


def number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def deep_footer() -> bytes:
    return thrift_footer(elements(*[GROUP] * 100_000, LEAF), b"\x16\x00\x19\x0c\x00")


def footer_of_many_groups() -> bytes:
    """Return a footer that declares two billion row groups."""
    return thrift_footer(
        elements(GROUP, LEAF), b"\x16\x00\x19\xfc" + number((1 << 31) - 1) + b"\x00"
    )


def footer_that_lies() -> bytes:
    """Return a Parquet file whose footer claims two gigabytes."""
    return b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7f" + b"PAR1"


def data_file(make: Callable[[], bytes]) -> Bomb:
    """Return a data file that is registered."""
    return Bomb(
        lambda folder: (folder / "bomb.parquet").write_bytes(make()),
        registered,
        "bomb.parquet",
        most_mib=256,
    )


def registered(folder: Path) -> object:
    lake = ledger.open(str(folder / "lake"))
    lake.create_database("d")
    table = lake.create_table("d.t", ledger.Schema.of({"a": "INT"}))
    return table.add_files([str(folder / "bomb.parquet")])


# A hostile ledger


def nothing_but_nulls() -> pa.Table:
    one = to_table([ledger.FileChange(path="a", record_count=1, file_size_in_bytes=1)])
    arrays = [pa.concat_arrays([*each.chunks, pa.nulls(MANY, each.type)]) for each in one.columns]
    return pa.Table.from_arrays(arrays, names=one.column_names).replace_schema_metadata(
        one.schema.metadata
    )


def one_path() -> pa.Table:
    """Return a list that names a path of a megabyte a thousand times."""
    count = 60_000
    one = to_table([ledger.FileChange(path="a", record_count=1, file_size_in_bytes=1)])
    table = one.take(zeros(count))
    place = table.column_names.index("path")
    return table.set_column(place, "path", long_texts(count, 1_000_000))


def list_of_changes(make: Callable[[], pa.Table], read: Callable[[Path], object]) -> Bomb:
    """Return a ledger whose newest commit names a list that is not what it looks like."""

    def build(folder: Path) -> None:
        lake = ledger.open(str(folder / "lake"))
        lake.create_database("d")
        table = lake.create_table("d.t", ledger.Schema.of({"a": "INT"}))
        table.append(
            [
                ledger.FileChange(path=f"{each}.parquet", record_count=1, file_size_in_bytes=1)
                for each in range(2_000)
            ]
        )
        found = make()
        body = written(found, dictionary_pagesize_limit=1 << 30)
        log = folder / "lake" / "d.db" / "t" / "_ledger"
        (listed,) = (log / "changes").iterdir()
        listed.unlink()
        name = f"{listed.name[:13]}-{hashlib.sha256(body).hexdigest()}.parquet"
        (log / "changes" / name).write_bytes(body)
        newest = max((log / "log").glob("*.json"))
        text = newest.read_text().replace(listed.name, name)
        text = text.replace(listed.name[14:-8], hashlib.sha256(body).hexdigest())
        text = text.replace('"count":2000', f'"count":{len(found)}')
        newest.chmod(0o644)
        newest.write_text(text)

    return Bomb(build, read, "changes/", most_mib=256)


def listed_files(folder: Path) -> object:
    return len(ledger.open(str(folder / "lake")).table("d.t").at().files)


def verified(folder: Path) -> object:
    """Let the command line verify, and raise what it prints."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main_of_cli(["verify", "--ledger", str(folder / "lake")])
    if code:
        raise ledger.DamagedLogError(said.getvalue(), "verified")
    return None


def deletes() -> Bomb:
    table = pa.table({"file_path": long_texts(60_000, 1_000_000), "pos": zeros(60_000)})

    def build(folder: Path) -> None:
        rows = pa.concat_tables([table] * 200)
        (folder / "d.parquet").write_bytes(written(rows, dictionary_pagesize_limit=1 << 30))

    return Bomb(build, lambda at: read_named_data_files((at / "d.parquet").read_bytes()), "deletes")


# Delta and Iceberg in JSON


def imported(format_name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        lake = ledger.open(str(folder / "lake"))
        return lake.import_table("d.t", str(folder), format_name=format_name)

    return read


def delta_log(add: str = json.dumps(_ADD), schema: str | None = None) -> Bomb:
    """Return a Delta table of one commit with an add, and perhaps another schema."""
    name = f"{0:020d}.json"

    def build(folder: Path) -> None:
        (folder / "_delta_log").mkdir()
        metadata = {**_METADATA, "schemaString": schema or json.dumps(_SCHEMA)}
        lines = [json.dumps({"protocol": _PROTOCOL}), json.dumps({"metaData": metadata})]
        (folder / "_delta_log" / name).write_text("\n".join([*lines, f'{{"add":{add}}}']))

    return Bomb(build, imported("delta"), "")


def deep(depth: int) -> str:
    return "[" * depth + "]" * depth


def nested_schema(depth: int) -> str:
    head = '{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},"type":'
    return head * depth + '"long"' + "}]}" * depth


def statistics(text: str) -> Bomb:
    return delta_log(json.dumps({**_ADD, "stats": text}))


def iceberg(make: Callable[[], Iterator[bytes]], name: str = "v1.gz.metadata.json") -> Bomb:
    """Return a folder with a metadata file, compressed."""

    def build(folder: Path) -> None:
        (folder / "metadata").mkdir()
        packer = zlib.compressobj(9, wbits=31)
        body = b"".join(map(packer.compress, make())) + packer.flush()
        (folder / "metadata" / name).write_bytes(body)

    return Bomb(build, imported("iceberg"), name)


def spaces() -> Iterator[bytes]:
    yield b'{"format-version":2,'
    yield from (b" " * (1 << 20) for _ in range(400))


def values() -> Iterator[bytes]:
    yield b'{"format-version":2,"schemas":[{}'
    yield from (b",{}" * 100_000 for _ in range(40))
    yield b"]}"


# Avro


def avro(schema: dict[str, Any], blocks: Iterator[tuple[int, bytes]], codec: str = "null") -> bytes:
    body = io.BytesIO()
    fastavro.writer(body, schema, [], codec=codec, sync_marker=SYNC)
    for count, block in blocks:
        body.write(number(count << 1) + number(len(block) << 1) + block + SYNC)
    return body.getvalue()


def packed(content: bytes, times: int = 1) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return b"".join([packer.compress(content) for _ in range(times)]) + packer.flush()


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    listed = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "manifest_file", "fields": listed}


def zeros_in_zstandard() -> bytes:
    """Return 288 megabytes of zeros, packed."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packer:
        for _ in range(288):
            packer.write(b"\0" * (1 << 20))
    return bytes(sink.getvalue())


def text_of_mib(mib: int) -> bytes:
    """Return a text of a length in megabytes."""
    size = mib << 20
    return number(size << 1) + b"\0" * size


TEXT: Final = record(("manifest_path", "string"))
PAIRS: Final = record(
    ("manifest_path", "string"),
    ("found", {"type": "array", "items": {**record(("k", "int"), ("v", "int")), "name": "pair"}}),
)

AVROS: Final[dict[str, Callable[[], bytes]]] = {
    "zeros": lambda: avro(TEXT, iter([(1, packed(b"\0" * (1 << 20), 800))]), "deflate"),
    "zeros_in_bzip2": lambda: avro(
        TEXT, iter([(1, bz2.compress(b"\0" * (32 << 20)) * 9)]), "bzip2"
    ),
    "zeros_in_xz": lambda: avro(
        TEXT, iter([(1, lzma.compress(b"\0" * (32 << 20), preset=1) * 9)]), "xz"
    ),
    "zeros_in_zstandard": lambda: avro(TEXT, iter([(1, zeros_in_zstandard())]), "zstandard"),
    "promise_in_snappy": lambda: avro(
        TEXT, iter([(1, b"\xff\xff\xff\xff\x0f" + b"\0" * 20)]), "snappy"
    ),
    "many_blocks": lambda: avro(TEXT, repeat((1, packed(text_of_mib(8))), 100), "deflate"),
    "many_records": lambda: avro(TEXT, iter([(MANY, packed(b"\0" * MANY))]), "deflate"),
    "long_text": lambda: avro(TEXT, iter([(1, number(1 << 62) + b"a")])),
    "endless_count": lambda: avro(TEXT, iter([(1 << 60, b"\0")])),
    "endless_array": lambda: avro(PAIRS, iter([(1, b"\2a" + number(1 << 60) + b"\0" * 1_000)])),
    "long_array": lambda: avro(
        PAIRS,
        iter([(1, packed(b"\2a" + number(MANY << 1) + b"\0" * (2 * MANY) + b"\0"))]),
        "deflate",
    ),
    "nulls": lambda: avro(
        record(*((f"n{each}", "null") for each in range(10_000)), ("manifest_path", "string")),
        iter([(50_000, packed(b"\0" * 50_000))]),
        "deflate",
    ),
    "no_bytes": lambda: avro(record(("n", "null")), iter([(1_000_000, b"")])),
    "endless_nulls": lambda: avro(
        record(("n", {"type": "array", "items": "null"})), iter([(1, number(1 << 40) + b"\0")])
    ),
}


def write_iceberg_metadata(folder: Path, snapshots: list[dict[str, Any]], **more: Any) -> None:
    """Write the metadata file of an Iceberg table with a column `a`, at its last snapshot."""
    last = snapshots[-1]
    column = {"id": 1, "name": "a", "type": "int", "required": False}
    metadata = {
        "format-version": 2,
        "table-uuid": "7d6c1f9e-0000-4000-8000-000000000001",
        "location": str(folder),
        "last-sequence-number": last["sequence-number"],
        "last-updated-ms": last["timestamp-ms"],
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [column]}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "current-snapshot-id": last["snapshot-id"],
        "snapshots": snapshots,
        "refs": {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}},
        **more,
    }
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(metadata))


def manifest_list(make: Callable[[], bytes]) -> Bomb:
    """Return an Iceberg table whose branch names a manifest list."""

    def build(folder: Path) -> None:
        (folder / "metadata").mkdir()
        (folder / "metadata" / "bomb.avro").write_bytes(make())
        snapshot = {
            "snapshot-id": 1,
            "sequence-number": 1,
            "timestamp-ms": 1_700_000_000_000,
            "manifest-list": str(folder / "metadata" / "bomb.avro"),
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        write_iceberg_metadata(folder, [snapshot])

    return Bomb(build, imported("iceberg"), "bomb.avro", most_mib=256)


def paimon(schema: str) -> Bomb:
    """Return a Paimon table with a schema file."""

    def build(folder: Path) -> None:
        (folder / "schema").mkdir()
        (folder / "schema" / "schema-0").write_text(schema)

    return Bomb(build, imported("paimon"), "schema-0")


def export(line: bytes) -> Bomb:
    """Return an export whose second line is one of a kind."""

    def build(folder: Path) -> None:
        ledger_id = "0190aaaa-0000-7000-8000-000000000001"
        root = f'{{"format":{FORMAT},"ledgerId":"{ledger_id}"}}\n'
        first = {"lakeledger": "export", "format": 1, "root": root}
        said = {"lakeledger": "stream", "name": "catalog", "last": 0, "head": ""}
        lines = [json.dumps(each, separators=(",", ":")).encode() for each in (first, said)]
        (folder / "export.jsonl").write_bytes(b"\n".join([*lines, line]) + b"\n")

    return Bomb(build, brought, "line 3")


def brought(folder: Path) -> object:
    with (folder / "export.jsonl").open("rb") as lines:
        return import_lines(handle_of(ledger.open(str(folder / "lake"))).setting, lines)


CASES: Final[dict[str, Bomb]] = {
    "delta_null_rows": checkpoint(lambda: pa.nulls(MANY, adds(1).type)),
    "delta_some_null_rows": checkpoint(lambda: pa.nulls(150_000, adds(1).type), compression="none"),
    "delta_same_file": checkpoint(lambda: adds(60_000)),
    "delta_same_rows": checkpoint(lambda: adds(MANY)),
    "delta_long_map": checkpoint(maps),
    "delta_long_statistics": checkpoint(long_statistics, dictionary_pagesize_limit=1 << 30),
    "delta_long_page": checkpoint(
        lambda: adds(1, stats=pa.array(["a" * 100_000_000])), use_dictionary=False
    ),
    "delta_sidecar": sidecar(),
    "delta_deep_line": delta_log(deep(500_000)),
    "delta_deep_schema": delta_log(schema=nested_schema(5_000)),
    "delta_nested_schema": delta_log(schema=nested_schema(300)),
    "delta_deep_statistics": statistics(deep(500_000)),
    "delta_long_number": delta_log(json.dumps(_ADD)[:-1] + f',"size":{"9" * 1_000_000}}}'),
    "delta_statistics_number": statistics('{"numRecords":' + "9" * 1_000_000 + "}"),
    "data_file_deep_schema": data_file(deep_footer),
    "data_file_lying_footer": data_file(footer_that_lies),
    "data_file_many_groups": data_file(footer_of_many_groups),
    "changes_nulls": list_of_changes(nothing_but_nulls, listed_files),
    "changes_one_path": list_of_changes(one_path, listed_files),
    "changes_verified": list_of_changes(one_path, verified),
    "iceberg_spaces": iceberg(spaces),
    "iceberg_values": iceberg(values),
    "iceberg_deep": iceberg(
        lambda: iter([b'{"format-version":2,"schemas":', deep(10**6).encode()])
    ),
    "paimon_deep": paimon(deep(500_000)),
    "export_deep": export(b'{"lakeledger":' + deep(500_000).encode()),
    "export_deep_commit": export(b'{"format":1,"x":' + deep(500_000).encode()),
    "deletes": deletes(),
    **{f"avro_{name}": manifest_list(make) for name, make in AVROS.items()},
}


def peak_mib() -> int:
    """Return the largest resident memory of this process; `getrusage` has its parent's, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(each for each in lines if each.startswith("VmHWM:")).split()[1]) // 1024


@contextmanager
def measured(into: dict[str, Any]) -> Iterator[None]:
    before, begun = peak_mib(), time.process_time()
    yield
    into["seconds"] = time.process_time() - begun
    into["grown_mib"] = peak_mib() - before


def main(case: str, folder: str) -> None:
    bomb, at = CASES[case], Path(folder)
    # What is imported when it is first needed is the interpreter's.
    read_named_data_files(written(pa.table({"file_path": ["a"], "pos": [0]})))
    said: dict[str, Any] = {"error": None}
    with measured(said):
        try:
            bomb.read(at)
        except Exception as error:  # noqa: BLE001 - the test says which one it has to be
            said["error"] = [kind.__name__ for kind in type(error).__mro__]
            said["message"] = str(error)[:1000]
    sys.stdout.buffer.write(msgspec.json.encode(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
