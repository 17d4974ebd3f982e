"""Reads one file that is far bigger than it looks; `python -m tests.programme.bomb_worker CASE`.

Prints one JSON object: the error that came of it, the file's size, and by how much the process grew
in MiB.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import lzma
import resource
import sys
import zlib
from collections.abc import Callable
from typing import Any, Final

import fastavro
import fsspec
import pyarrow as pa
from pyarrow import parquet

from ledger.events.snapshots import ChangesReference
from ledger.files.change_lists import load_changes, to_table
from ledger.files.footers import read_footer
from ledger.log.layout import Layout
from ledger.stores import MemoryStore
from projections.manifest_files.container import read_container
from tests.lakes import data_file

LIMIT_BYTES: Final = 6 << 30
SYNC: Final = b"0123456789abcdef"


def swollen_changes() -> Callable[[], object]:
    """Return the reading of 400 paths of a megabyte, stored once, where a commit names one."""
    rows = 400
    table = to_table([data_file("a.parquet")]).take(pa.array([0] * rows))
    place = table.column_names.index("path")
    paths = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["a" * 1_000_000])
    table = table.set_column(place, "path", paths)
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        store_schema=False,
        dictionary_pagesize_limit=1 << 30,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(table.schema.metadata)
    body = bytes(sink.getvalue())
    store, layout = MemoryStore("bomb"), Layout("t/_ledger")
    store.create(layout.changes("bomb"), body)
    named = ChangesReference("changes/bomb", hashlib.sha256(body).hexdigest(), 1)
    say["bytes"] = len(body)
    return lambda: load_changes(store, layout, named)


def footer_that_lies() -> Callable[[], object]:
    """Return the reading of a Parquet file whose footer claims four gigabytes."""
    body = b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7f" + b"PAR1"
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/lies.parquet", body)
    say["bytes"] = len(body)
    return lambda: read_footer("/lies.parquet", filesystem=filesystem)


def avro(codec: str, block: bytes, count: int = 1, *, times: int = 1) -> Callable[[], object]:
    """Return the reading of a file with a block of `count` records, so many `times`."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]}
    head = io.BytesIO()
    fastavro.writer(head, schema, [], codec=codec, sync_marker=SYNC)
    body = head.getvalue() + (_number(count) + _number(len(block)) + block + SYNC) * times
    say["bytes"] = len(body)
    return lambda: list(read_container(body, "bomb"))


def _number(value: int) -> bytes:
    raw, out = value << 1, bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def nothing(mib: int) -> bytes:
    """Return a record that is so many megabytes long."""
    size = mib << 20
    return _number(size) + b"\0" * size


def deflated() -> Callable[[], object]:
    """Return the reading of 288 megabytes of nothing, deflated."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    block = b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(288)) + packer.flush()
    return avro("deflate", block)


def many_deflated() -> Callable[[], object]:
    """Return the reading of 100 blocks of eight megabytes each, none of them too big."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return avro("deflate", packer.compress(nothing(8)) + packer.flush(), times=100)


def bzipped() -> Callable[[], object]:
    """Return the reading of 288 megabytes of nothing in streams of 32."""
    return avro("bzip2", bz2.compress(b"\0" * (32 << 20)) * 9)


def xz() -> Callable[[], object]:
    """Return the reading of 288 megabytes of nothing in streams of 32."""
    return avro("xz", lzma.compress(b"\0" * (32 << 20), preset=1) * 9)


def zstandard() -> Callable[[], object]:
    """Return the reading of 288 megabytes of nothing, as Zstandard."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packer:
        for _ in range(288):
            packer.write(b"\0" * (1 << 20))
    return avro("zstandard", bytes(sink.getvalue()))


def snappy_promise() -> Callable[[], object]:
    """Return the reading of a block that says it will be four gigabytes."""
    return avro("snappy", b"\xff\xff\xff\xff\x0f" + b"\0" * 20)


def endless_count() -> Callable[[], object]:
    """Return the reading of a block that claims more records than it has bits."""
    return avro("null", b"\0", count=1 << 60)


say: Final[dict[str, Any]] = {}
CASES: Final = {
    each.__name__: each
    for each in (
        swollen_changes,
        footer_that_lies,
        deflated,
        many_deflated,
        bzipped,
        xz,
        zstandard,
        snappy_promise,
        endless_count,
    )
}


def main(case: str) -> None:
    read = CASES[case]()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    say["error"] = None
    try:
        read()
    except Exception as error:  # noqa: BLE001 - the test says which one it has to be
        say["error"] = [kind.__name__ for kind in type(error).__mro__]
        say["message"] = str(error)[:500]
    say["grown_mib"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    sys.stdout.write(json.dumps(say))


if __name__ == "__main__":
    main(*sys.argv[1:])
