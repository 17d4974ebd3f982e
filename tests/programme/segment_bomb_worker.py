"""Makes, or reads, one segment that is far bigger than it looks: `make|read CASE PATH`.

Reading prints one JSON object: whether anything was read of it, whether it passed for the right
one, the file's size, and by how much the process grew in MiB.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from ledger.log import Layout, Segments, is_same_segment, write_segment
from ledger.stores import MemoryStore

LIMIT_BYTES: Final = 6 << 30
ROWS: Final = 801
LAST: Final = (
    b'{"format":3,"version":800,"timeMillis":1,'
    b'"transactions":[{"id":"a","author":"b","requestDigest":""}]}\n'
)


def honest() -> bytes:
    return write_segment([LAST] * ROWS)


def _with(name: str, column: pa.Array, **given: Any) -> bytes:
    table = parquet.read_table(pa.BufferReader(honest()))
    table = table.set_column(table.schema.get_field_index(name), name, column)
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", **given)
    return bytes(sink.getvalue())


def lines_of_a_dictionary() -> bytes:
    """Return 801 lines of a megabyte, stored once."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), ["a" * 1_000_000])
    return _with("line", column, dictionary_pagesize_limit=1 << 30)


def long_lines() -> bytes:
    """Return 801 lines of half a megabyte, which pack well."""
    return _with("line", pa.array(["a" * 500_000] * ROWS), use_dictionary=False)


def authors_of_a_dictionary() -> bytes:
    """Return a segment whose lines are as they should be, and whose authors are long."""
    table = parquet.read_table(pa.BufferReader(honest()))
    rows = table.column("transactions").to_pylist()
    for row in rows:
        row[0]["author"] = "a" * 300_000
    column = pa.array(rows, table.schema.field("transactions").type)
    return _with(
        "transactions",
        column,
        dictionary_pagesize_limit=1 << 30,
        use_dictionary=["transactions.list.element.author"],
    )


CASES: Final[dict[str, Callable[[], bytes]]] = {
    each.__name__: each for each in (lines_of_a_dictionary, long_lines, authors_of_a_dictionary)
}


def main(what: str, case: str, path: str) -> None:
    if what == "make":
        Path(path).write_bytes(CASES[case]())
        return
    body = Path(path).read_bytes()
    store, layout = MemoryStore("bomb"), Layout("t/_ledger")
    store.create(layout.segment(0, 800), body)
    store.create(layout.commit(800), LAST)
    own = honest()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (lines,) = Segments(store, layout).read([(0, 800)])
    found = {
        "case": case,
        "read": lines is not None,
        "same": is_same_segment(own, body),
        "bytes": len(body),
        "grown_mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
