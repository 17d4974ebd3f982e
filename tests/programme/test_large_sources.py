"""Tables of a million files are imported: limits are for files that no writer makes."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid5

import fastavro
import pyarrow as pa
import pytest

import ledger
from tests.programme.foreign_bombs import (
    adds,
    checkpoint_table,
    peak_mib,
    record,
    write_iceberg_metadata,
    written,
)
from tests.programs import output_of

NAMESPACE = UUID("7d6c1f9e-0000-4000-8000-000000000001")
FILES = 1_000_000
SNAPSHOTS = 5_000


def files_alike(files: int) -> tuple[list[str], list[str]]:
    """Return paths that count, and the same statistics for each: the smallest checkpoint."""
    paths = [f"part-{each:08}.parquet" for each in range(files)]
    return paths, ['{"numRecords":9,"minValues":{"id":1},"maxValues":{"id":9}}'] * files


def files_as_written(files: int) -> tuple[list[str], list[str]]:
    """Return paths with UUIDs, and statistics that differ."""
    paths = [f"part-{each:05}-{uuid5(NAMESPACE, str(each))}.parquet" for each in range(files)]
    return paths, [
        f'{{"numRecords":9,"minValues":{{"id":{each}}},"maxValues":{{"id":{each + 9}}}}}'
        for each in range(files)
    ]


def delta_table(folder: Path, paths: list[str], statistics: list[str]) -> None:
    """Write a Delta table whose checkpoint lists some files."""
    files = len(paths)
    body = written(checkpoint_table(adds(files, path=pa.array(paths), stats=pa.array(statistics))))
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020d}.checkpoint.parquet").write_bytes(body)


def iceberg_table(folder: Path, files: int, snapshots: int) -> None:
    """Write an Iceberg table with a manifest a snapshot."""
    (folder / "metadata").mkdir()
    partition = {**record(), "name": "r102"}
    data_file = {
        **record(("file_path", "string"), ("partition", partition), ("record_count", "long")),
        "name": "r2",
    }
    entry = {
        **record(("status", "int"), ("snapshot_id", ["null", "long"]), ("data_file", data_file)),
        "name": "manifest_entry",
    }
    listed = record(
        ("manifest_path", "string"),
        ("manifest_length", "long"),
        ("partition_spec_id", "int"),
        ("added_snapshot_id", "long"),
    )
    manifests = []
    for number in range(1, snapshots + 1):
        path = folder / "metadata" / f"{uuid5(NAMESPACE, str(number))}-m0.avro"
        out = io.BytesIO()
        said = (
            {"file_path": f"{folder}/{number}-{each}.parquet", "partition": {}, "record_count": 9}
            for each in range(files // snapshots)
        )
        records = [{"status": 1, "snapshot_id": number, "data_file": each} for each in said]
        fastavro.writer(out, entry, records, codec="deflate")
        path.write_bytes(out.getvalue())
        manifests.append((str(path), len(out.getvalue()), 0, number))
    names = [each["name"] for each in listed["fields"]]
    out = io.BytesIO()
    fastavro.writer(out, listed, [dict(zip(names, each, strict=True)) for each in manifests])
    (folder / "metadata" / "snap.avro").write_bytes(out.getvalue())
    total = files // snapshots
    listed_snapshots = [
        {
            "snapshot-id": each,
            **({"parent-snapshot-id": each - 1} if each > 1 else {}),
            "sequence-number": each,
            "timestamp-ms": 1_700_000_000_000 + each,
            "manifest-list": str(folder / "metadata" / "snap.avro"),
            "summary": {
                "operation": "append",
                "added-data-files": str(total),
                "total-data-files": str(total * each),
                "total-records": str(9 * total * each),
            },
            "schema-id": 0,
        }
        for each in range(1, snapshots + 1)
    ]
    log = [
        {"snapshot-id": n, "timestamp-ms": 1_700_000_000_000 + n} for n in range(1, snapshots + 1)
    ]
    write_iceberg_metadata(folder, listed_snapshots, **{"snapshot-log": log})


def imported(folder: Path, format_name: str) -> None:
    own = "tests.programme.test_large_sources"
    sys.stdout.write(output_of("-m", own, format_name, folder, timeout_s=3_000))


@pytest.mark.parametrize("make", [files_alike, files_as_written])
@pytest.mark.parametrize(
    "files", [100_000, pytest.param(FILES, marks=pytest.mark.long)], ids=["quick", "long"]
)
def test_a_checkpoint_of_many_files_is_within_the_limits(
    tmp_path: Path, files: int, make: Callable[[int], tuple[list[str], list[str]]]
) -> None:
    delta_table(tmp_path, *make(files))
    name = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet"

    from projections.delta.log_reading import read_parquet

    assert len(read_parquet(name.read_bytes(), name.name).added) == files


@pytest.mark.long
def test_a_delta_table_of_a_million_files_is_imported(tmp_path: Path) -> None:
    delta_table(tmp_path, *files_as_written(FILES))
    imported(tmp_path, "delta")


@pytest.mark.long
def test_an_iceberg_table_of_a_million_files_and_many_snapshots_is_imported(tmp_path: Path) -> None:
    iceberg_table(tmp_path, FILES, SNAPSHOTS)
    imported(tmp_path, "iceberg")


def main(format_name: str, folder: str) -> None:
    before = peak_mib()
    begun, processor = time.monotonic(), time.process_time()
    ledger.open(f"{folder}/lake").import_table("d.t", folder, format_name=format_name)
    grown = peak_mib() - before
    sys.stdout.write(
        f"{format_name}: {time.monotonic() - begun:.1f} s, {time.process_time() - processor:.1f} s "
        f"of CPU, {grown} MiB\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
