"""Program that commits rows to a Paimon table by pypaimon, and reports what was acknowledged.

Arguments: the catalog's options as JSON, the table, the writer's number, the number of rows of a
commit, and the number of commits, or 0 to commit until a second line comes on standard input. It
writes `ready`, waits for a line, then commits.
"""

from __future__ import annotations

import json
import select
import sys
import time
from typing import Any, Final

import pyarrow as pa
from pypaimon import CatalogFactory

SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.int64())])


FILLER: Final = -1
"""Id of the rows of a commit after its first."""


def commit_rows(table: Any, row: int, writer: int, rows: int) -> None:
    """Write a row of a given id, and fillers, and commit them."""
    ids = [row, *[FILLER] * (rows - 1)]
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    try:
        write.write_arrow(pa.table({"id": ids, "writer": [writer] * rows}, schema=SCHEMA))
        commit.commit(write.prepare_commit())
    finally:
        write.close()
        commit.close()


def main(options: str, name: str, writer: int, rows: int, commits: int) -> None:
    """Commit, and print the acknowledged rows, the failures and the latencies as JSON."""
    table = CatalogFactory.create(json.loads(options)).get_table(name)
    print("ready", flush=True)
    sys.stdin.readline()
    kept: list[int] = []
    took_ms: list[float] = []
    failed = nth = 0
    while nth < commits or not commits:
        if not commits and select.select([sys.stdin], [], [], 0)[0]:
            break
        row = writer * 10_000_000 + nth
        nth += 1
        start = time.perf_counter()
        try:
            commit_rows(table, row, writer, rows)
        except Exception:  # noqa: BLE001 - whatever a client raises, its row may be there or not
            failed += 1
            continue
        took_ms.append((time.perf_counter() - start) * 1e3)
        kept.append(row)
    print(json.dumps({"rows": kept, "failed": failed, "took_ms": took_ms}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
