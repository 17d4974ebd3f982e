"""Manifest lists that others wrote: Paimon's Java, pypaimon, the Iceberg projection."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pytest
from attrs import evolve

import ledger
from ledger import FileChange, LedgerError, Schema, SnapshotPlan, Table
from ledger.model import PartitionValue
from ledger.table_handle import handle_of
from ledger.transforms import bucket, hour, month, truncate
from projections.iceberg import ICEBERG
from projections.iceberg import engine_files as of_iceberg
from projections.paimon import engine_files as of_paimon
from projections.paimon import schema_from_json
from projections.statistics import Kept, query, refresh, verify
from projections.statistics.engine_files import ManifestPart
from tests.projections.statistics.lives import listed_partitions
from tests.projections.statistics.paimon_writer import FACTS

DATA = Path(__file__).parents[2] / "data/paimon"
TABLES = sorted(path.parent for path in DATA.glob("*_wh/*/*/snapshot") if "branch" not in str(path))

Counts = tuple[int, int, int]


def snapshots(place: Path) -> list[dict[str, Any]]:
    paths = sorted(place.glob("snapshot/snapshot-*"), key=lambda path: int(path.name[9:]))
    return [json.loads(path.read_bytes()) for path in paths]


def records(place: Path, name: str) -> Iterator[dict[str, Any]]:
    with (place / "manifest" / name).open("rb") as file:
        yield from fastavro.reader(file)  # type: ignore[misc]  # dicts


def live_counts(place: Path, said: dict[str, Any]) -> list[Counts]:
    """Fold a snapshot's base and delta list to live files; return each partition's counts."""
    live: dict[Any, Any] = {}
    for name in (said["baseManifestList"], said["deltaManifestList"]):
        for manifest in records(place, name):
            for entry in records(place, manifest["_FILE_NAME"]):
                file = entry["_FILE"]
                partition, bucket_number = entry["_PARTITION"], entry["_BUCKET"]
                key = (partition, bucket_number, file["_LEVEL"], file["_FILE_NAME"])
                if entry["_KIND"] == 0:
                    live[key] = file
                else:
                    del live[key]
    sums: dict[bytes, Counter[str]] = {}
    for (partition, *_), file in live.items():
        found = sums.setdefault(partition, Counter())
        found.update(rows=file["_ROW_COUNT"], size=file["_FILE_SIZE"], files=1)
    return sorted((each["rows"], each["size"], each["files"]) for each in sums.values())


def recorded(place: Path, root: Path, said: list[dict[str, Any]]) -> Table:
    """Record snapshots of a Paimon table in a ledger table with the same files."""
    lake = ledger.open(str(root))
    lake.create_database("shop")
    theirs = schema_from_json((place / "schema/schema-0").read_bytes())
    options = {**theirs.options, "ledger.formats": "paimon"}
    table = lake.create_table("shop.t", evolve(theirs, options=options))
    shutil.copytree(place / "manifest", root / handle_of(table).path / "manifest")
    for each in said:
        facts = {ours: each[key] for key, ours in FACTS.items() if each.get(key) is not None}
        user = f"{each['commitUser']}-{each['id']}"
        table.commit_snapshot(SnapshotPlan(each["commitKind"], commit_user=user, facts=facts))
    return table


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("place", TABLES, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_every_snapshot_holds_what_its_lists_fold_to(
    place: Path, first: int, tmp_path: Path
) -> None:
    said = snapshots(place)[first:]
    table = recorded(place, tmp_path, said)
    kept = Kept.of(handle_of(table).log)
    assert said

    for each, totals in zip(said, query.totals(kept, table.at()), strict=True):
        found = listed_partitions(kept, table.at(version=totals.version))
        counts = sorted((p.record_count, p.file_size_in_bytes, p.file_count) for p in found)
        assert counts == live_counts(place, each), each["id"]
        assert totals.record_count == each["totalRecordCount"]
    refresh(handle_of(table).log)
    assert verify(handle_of(table).log).is_empty


COLUMNS = {
    "id": "BIGINT",
    "day": "DATE",
    "amount": "DECIMAL(9, 2)",
    "ts": "TIMESTAMP(6)",
    "at": "TIMESTAMP_LTZ(6)",
    "name": "STRING",
    "code": "BYTES",
    "yes": "BOOLEAN",
}


def many_specs(lake: ledger.Ledger, name: str) -> Iterator[Table]:
    """Yield a table under one partition spec after the other."""
    options = {"ledger.formats": "iceberg"}
    schema = Schema.of(COLUMNS, partition_keys=["day", "amount"], options=options)
    table = lake.create_table(name, schema)
    yield table
    table.update_spec().add_field(bucket("id", 8)).add_field(month("ts")).commit()
    yield table
    table.update_spec().remove_field("id_bucket_8").add_field(truncate("name", 2)).commit()
    yield table
    table.update_spec().add_field("code").add_field("yes").add_field(hour("at")).commit()
    yield table


VALUES: dict[str, tuple[PartitionValue, ...]] = {
    "identity-day": ("2024-01-01", None, "1969-12-31"),
    "identity-amount": ("14.20", "-0.05", None),
    "bucket[8]-id": (3, 0, None),
    "month-ts": (648, -1, None),
    "truncate[2]-name": ("ab", "é", None),
    "identity-code": ("00ff", "", None),
    "identity-yes": (True, False, None),
    "hour-at": (420034, None, -1),
}


def some_files(table: Table) -> list[FileChange]:
    state = table.state
    names = {each.id: each.name for each in state.schema.fields}
    contents = ("data", "data", "position-deletes")
    return [
        FileChange(
            path=f"f{state.default_spec_id}-{number}.parquet",
            partition=tuple(
                VALUES[f"{each.transform}-{names[each.source_id]}"][number]
                for each in state.spec.fields
            ),
            spec_id=state.default_spec_id,
            schema_id=state.schema.id,
            record_count=10 + number,
            file_size_in_bytes=1000 + number,
            content=contents[number],
            field_ids=True,
        )
        for number in range(3)
    ]


def test_partitions_of_every_transform_and_type_are_those_of_the_log(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    listing = mirror = None
    for listing, mirror in zip(
        many_specs(lake, "shop.listing"), many_specs(lake, "shop.mirror"), strict=True
    ):
        listing.append(some_files(listing))
        _mirrored(listing, mirror)
    assert listing is not None
    assert mirror is not None
    listing.delete_files(["f0-0.parquet", "f2-1.parquet", "f1-2.parquet"])
    _mirrored(listing, mirror)

    columns = ["spec_id", "partition", "content", "record_count", "file_size_in_bytes"]
    found, wanted = (
        query.partition_sums(Kept.of(handle_of(each).log), each.at().state).select(
            [*columns, "file_count"]
        )
        for each in (mirror, listing)
    )
    assert len(wanted) == 12
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))


def _mirrored(listing: Table, mirror: Table) -> None:
    """Let a table name the list that another's Iceberg projection writes."""
    ICEBERG.project(handle_of(listing))
    folder = Path(listing.location.removeprefix("file://")) / "metadata"
    snapshot_id = listing.state.last_snapshot_id
    (name,) = folder.glob(f"snap-{snapshot_id}-*.avro")
    facts = {"base_manifest_list": f"file://{name}"}
    mirror.commit_snapshot(SnapshotPlan("APPEND", commit_user="x", facts=facts))


def spoiled(body: bytes, count: int) -> Iterator[bytes]:
    """Yield a file with bytes changed, cut out or doubled."""
    rng = random.Random(7)
    for _ in range(count):
        place, width = rng.randrange(len(body)), rng.randrange(1, 9)
        middle = rng.choice([rng.randbytes(width), b"", body[place : place + width] * 2])
        yield body[:place] + middle + body[place + width :]


def test_spoiled_manifests_give_entries_or_typed_errors_and_nothing_else(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    *_, table = many_specs(lake, "shop.listing")
    table.append(some_files(table))
    ICEBERG.project(handle_of(table))
    folder = Path(table.location.removeprefix("file://")) / "metadata"
    iceberg = of_iceberg.ICEBERG.reader(table.state, lambda: iter(()))
    place = DATA / "java_wh/j.db/append_p"
    paimon_table = recorded(place, tmp_path / "other", [])
    paimon = of_paimon.PAIMON.reader(paimon_table.state, lambda: iter(()))
    manifest = next(records(place, snapshots(place)[0]["deltaManifestList"]))["_FILE_NAME"]
    part = partial(ManifestPart, version=0, snapshot_id=1, compared=1)
    readers: list[tuple[Path, Callable[[bytes, str], Any]]] = [
        (next(folder.glob("snap-*.avro")), of_iceberg.manifest_list),
        (
            next(folder.glob("*-m0.avro")),
            lambda body, file: list(iceberg(body, part(dialect="iceberg", file=file, spec_id=3))),
        ),
        (
            place / "manifest" / snapshots(place)[0]["deltaManifestList"],
            of_paimon.listed_manifests,
        ),
        (
            place / "manifest" / manifest,
            lambda body, file: list(paimon(body, part(dialect="paimon", file=file))),
        ),
    ]
    for path, read in readers:
        assert read(path.read_bytes(), path.name)
        refused: list[str] = []
        for body in spoiled(path.read_bytes(), 150):
            try:
                read(body, path.name)
            except LedgerError as error:
                refused.append(str(error))
        assert len(refused) > 50
        assert all(path.name in each for each in refused)
