"""Latency of importing an Iceberg table, and one more snapshot, by length of history.

A table of many snapshots and schemas is imported at once; then its owner commits, one snapshot at a
time, and each is imported by a process that has just opened the ledger. The lower bound of each is
the time to read the bytes of that metadata file, as JSON and as the checked values that an import
needs. Then the same with a ledger that stays open, as when following, in processor time; its lower
bound is finding the parts of the JSON, since no more is read. All of it for a short history, too.
The files are apart from their table, so that no manifest is read.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import cyclopts
import msgspec
from attrs import frozen

import ledger
from benchmarks.measure import Figure, Output, Report, processor_ns, question_of, show
from projections.iceberg.table_json import read_metadata

SHORT = 50
_TABLE = UUID(int=7)
_BEGIN_MILLIS = 1_700_000_000_000
_NAME = "lake.t"


def metadata_files(snapshots: int, schemas: int, more: int) -> Iterator[bytes]:
    """Yield a table's metadata files: after some snapshots, and after each of a few more."""
    fields: list[dict[str, Any]] = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    found: list[dict[str, Any]] = []
    listed = [{"type": "struct", "schema-id": 0, "fields": list(fields)}]
    for number in range(1, snapshots + more + 1):
        if number <= snapshots and number * schemas // snapshots > len(listed) - 1:
            added = len(listed)
            fields.append(
                {"id": added + 1, "name": f"c{added}", "required": False, "type": "string"}
            )
            listed.append({"type": "struct", "schema-id": added, "fields": list(fields)})
        found.append(_snapshot(number, len(listed) - 1))
        if number >= snapshots:
            yield json.dumps(_metadata(found, listed, len(fields))).encode()


def _snapshot(number: int, schema_id: int) -> dict[str, Any]:
    sums = {"total-records": 10, "total-files-size": 1000, "total-data-files": 1}
    parent = {} if number == 1 else {"parent-snapshot-id": _snapshot_id(number - 1)}
    return {
        "snapshot-id": _snapshot_id(number),
        **parent,
        "sequence-number": number,
        "timestamp-ms": _BEGIN_MILLIS + 1000 * number,
        "summary": {
            "operation": "append",
            "spark.app.id": "local-1",
            "added-data-files": "1",
            "added-records": "10",
            "added-files-size": "1000",
            **{key: str(number * each) for key, each in sums.items()},
        },
        "manifest-list": f"s3://lake/t/metadata/snap-{number}.avro",
        "schema-id": schema_id,
    }


def _snapshot_id(number: int) -> int:
    return uuid5(_TABLE, str(number)).int >> 66


def _metadata(
    snapshots: list[dict[str, Any]], schemas: list[dict[str, Any]], columns: int
) -> dict[str, Any]:
    newest = snapshots[-1]
    return {
        "format-version": 2,
        "table-uuid": str(_TABLE),
        "location": "s3://lake/t",
        "last-sequence-number": newest["sequence-number"],
        "last-updated-ms": newest["timestamp-ms"],
        "last-column-id": columns,
        "current-schema-id": len(schemas) - 1,
        "schemas": schemas,
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": newest["snapshot-id"],
        "refs": {"main": {"snapshot-id": newest["snapshot-id"], "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": [
            {"timestamp-ms": each["timestamp-ms"], "snapshot-id": each["snapshot-id"]}
            for each in snapshots
        ],
        "metadata-log": [],
    }


@frozen
class _Taken:
    """Durations of an import, in seconds; `json` and `values` are bounds of one more snapshot.

    `followed` is one more in a ledger that stays open, without reading the parts of its file,
    `followed_all` with it.
    """

    whole: float
    more: float
    json: float
    values: float
    followed: float
    followed_all: float
    transactions: int


def _take(workdir: Path, snapshots: int, schemas: int, repeats: int) -> _Taken:
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        place, root = Path(folder) / "t.metadata.json", f"{folder}/lake"
        more, as_json, as_values = [], [], []
        whole, transactions = 0.0, 0
        bodies = metadata_files(snapshots, schemas, 2 * repeats + 2)
        for number, body in enumerate(itertools.islice(bodies, repeats + 1)):
            place.with_name(f"{number:05d}.metadata.json").write_bytes(body)
            source = str(place.with_name(f"{number:05d}.metadata.json"))
            start = time.perf_counter()
            with ledger.open(root) as lake:
                done = lake.import_table(_NAME, source)
                took = time.perf_counter() - start
            transactions += done.transactions
            if not number:
                whole = took
                continue
            more.append(took)
            start = time.perf_counter()
            json.loads(Path(source).read_bytes())
            as_json.append(time.perf_counter() - start)
            start = time.perf_counter()
            read_metadata(Path(source).read_bytes())
            as_values.append(time.perf_counter() - start)
        followed, parts = _followed(root, place, bodies)
    middle = statistics.median
    both = middle(followed), middle(parts)
    floors = middle(as_json), middle(as_values)
    return _Taken(whole, middle(more), *floors, both[0] - both[1], both[0], transactions)


def _followed(root: str, place: Path, bodies: Iterator[bytes]) -> tuple[list[float], list[float]]:
    """Return the duration of each new file's import in an open ledger, and its lower bound.

    The first of them is read completely, as nothing is cached yet.
    """
    looks, parts = [], []
    with ledger.open(root) as lake:
        for number, body in enumerate(bodies):
            source = place.with_name(f"more-{number:05d}.metadata.json")
            source.write_bytes(body)
            start = processor_ns()
            lake.import_table(_NAME, str(source))
            looks.append((processor_ns() - start) / 1e9)
            start = processor_ns()
            msgspec.json.decode(source.read_bytes(), type=dict[str, msgspec.Raw])
            parts.append((processor_ns() - start) / 1e9)
    return looks[1:], parts[1:]


def run(workdir: Path, *, snapshots: int, schemas: int, repeats: int) -> Report:
    """Import a long and a short history, and later commits."""
    workdir.mkdir(parents=True, exist_ok=True)
    few = max(1, schemas * SHORT // snapshots)
    short = _take(workdir, min(SHORT, snapshots), few, repeats)
    long = _take(workdir, snapshots, schemas, repeats)
    own = 1000 * (long.more - long.values)
    figures = (
        Figure(f"{snapshots} snapshots, {schemas} schemas come in", long.whole, "s", at_most=10),
        Figure("one more", 1000 * long.more, "ms"),
        Figure("floor: its file as checked values", 1000 * long.values, "ms"),
        Figure("floor: its file as JSON", 1000 * long.json, "ms"),
        Figure("one more, beyond reading its file", own, "ms", at_most=100),
        Figure("one more after a short history", 1000 * short.more, "ms"),
        Figure("beyond reading, short", 1000 * (short.more - short.values), "ms"),
        Figure("one more in a ledger that stays open", 1000 * long.followed_all, "ms"),
        Figure("the same after a short history", 1000 * short.followed_all, "ms"),
        Figure(
            "beyond finding its file's parts, long / short", long.followed / short.followed, "x"
        ),
    )
    return Report(
        question_of(__doc__), f"{long.transactions} and {short.transactions} transactions", figures
    )


def main(
    *, size: int = 1000, schemas: int = 200, repeats: int = 9, output: Output = "text"
) -> None:
    """Run it."""
    with tempfile.TemporaryDirectory() as folder:
        show(run(Path(folder), snapshots=size, schemas=schemas, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
