"""Tables go from the ledger to engines and back: each reads what the other has written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger.cli import main
from ledger.table_handle import handle_of
from projections.iceberg import expire_snapshots, rebuild, verify
from projections.iceberg.rest_commit import commit_updates
from tests.projections.iceberg.importing.test_promoting import raised
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.iceberg.serving.served_table import COLUMNS, Served

ORIGINS = ("created", "imported", "promoted", "promoted 3")


def owned_by_engines(origin: str, folder: Path) -> Served:
    if origin == "created":
        served = Served.created(folder)
        served.engine_appends(1, 2)
        return served
    theirs = created(folder / "theirs", COLUMNS)
    appended(theirs, 1, 2, day=["x", "x"])
    lake = ledger.open(folder / "lake", allowed_locations=[str(folder / "theirs")])
    lake.import_table("a.b", raised(theirs) if origin == "promoted 3" else theirs.metadata_location)
    if origin == "imported":
        lake.promote("a.b", protocol="iceberg")
        return Served(lake)
    lake.promote("a.b")
    served = Served(lake)
    served.table.add_files(served.file("own.parquet", 3))
    served.table.delete_files(next(each for each in served.paths() if "theirs" in each))
    served.table.start_serving()
    return served


def is_clean(served: Served) -> bool:
    found = verify(handle_of(served.table))
    sound = main(["verify", "--ledger", served.lake.url])
    return not (found.missing or found.changed or found.foreign) and sound == 0


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_table_goes_to_engines_and_back_and_to_engines_again(origin: str, tmp_path: Path) -> None:
    served = owned_by_engines(origin, tmp_path)
    table, then = served.table, {}

    def check() -> None:
        then[table.state.last_snapshot_id] = rows = served.rows()
        assert table.state.totals.record_count == len(rows)
        assert sum(each.record_count for each in table.at().files) == len(rows)
        for snapshot_id, expected in then.items():
            assert served.rows(snapshot=snapshot_id) == expected
            if table.state.owner.kind == "served":
                assert served.rows_of_engine(snapshot_id) == expected

    def engine_writes(first: int) -> None:
        if origin == "promoted 3":
            table.add_files(served.file(f"{first}.parquet", first, first + 1))
            table.delete_files(next(p for p in served.paths() if p.endswith(f"{first}.parquet")))
            table.add_files(served.file(f"{first}b.parquet", first))
        else:
            served.engine_appends(first, first + 1)
            served.engine().delete(f"id = {first + 1}")
        check()

    check()
    for turn in range(2):
        first = 10 * (turn + 1)
        engine_writes(first)
        table.stop_serving()
        assert table.state.lists_files
        check()
        new = table.data_files(served.file(f"l{turn}.parquet", first + 5))
        table.append(new)
        check()
        table.delete_files(next(p for p in served.paths() if p.endswith(f"l{turn}.parquet")))
        table.rollback(snapshot=[*then][-1])
        check()
        assert first + 5 in served.rows()
        table.project("iceberg")
        table.start_serving()
        check()
    engine_writes(90)
    table.project("iceberg")
    assert is_clean(served)
    rebuild(handle_of(table))
    assert is_clean(served)
    check()


@pytest.mark.parametrize("is_lost", [False, True])
def test_engines_find_the_lists_of_snapshots_that_the_ledger_made(
    tmp_path: Path, *, is_lost: bool
) -> None:
    served = owned_by_engines("promoted", tmp_path)
    assert served.rows_of_engine() == [3]
    if is_lost:
        metadata = Path(served.table.location.removeprefix("file://")) / "metadata"
        for each in metadata.glob("snap-*.avro"):
            each.unlink()
        served = Served(ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)]))
    assert served.rows_of_engine() == [3]
    for each in served.engine().snapshots():
        assert served.rows_of_engine(each.snapshot_id) == served.rows(snapshot=each.snapshot_id)


def test_manifests_that_engines_list_stay_when_the_ledgers_snapshots_expire(
    tmp_path: Path,
) -> None:
    served = owned_by_engines("promoted", tmp_path)
    served.table.project("iceberg")
    served.engine_appends(7)
    served.table.expire_snapshots(before=served.table.state.last_snapshot_id)
    served.table.alter([ledger.SetOption("ledger.reader-grace", "0")])
    for number in range(3):
        served.table.alter([ledger.SetOption("k", str(number))])
        served.table.project("iceberg")
    assert [len(served.engine().snapshots()), served.rows_of_engine()] == [1, [3, 7]]
    rebuild(handle_of(served.table))
    assert served.rows_of_engine() == served.rows() == [3, 7]
    assert is_clean(served)


@pytest.mark.parametrize("where", ["older", "none"])
def test_the_live_files_are_those_of_the_snapshot_that_engines_point_main_to(
    where: str, tmp_path: Path
) -> None:
    served = owned_by_engines("promoted", tmp_path)
    table = served.table
    first = served.engine().snapshots()[-2].snapshot_id
    update: Any = (
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": first}
        if where == "older"
        else {"action": "remove-snapshot-ref", "ref-name": "main"}
    )
    rows = [] if where == "none" else served.rows(snapshot=first)
    commit_updates(handle_of(table), [update])
    assert served.rows() == served.rows_of_engine() == rows
    assert not table.state.lists_files
    table.stop_serving()
    assert served.rows() == rows
    table.add_files(served.file("new.parquet", 50))
    assert served.rows() == [*rows, 50]
    table.start_serving()
    assert served.rows_of_engine() == [*rows, 50]
    assert table.state.totals.record_count == len(rows) + 1


@pytest.mark.parametrize("owner", ["ledger", "engines"])
def test_files_of_a_later_schema_are_deleted_after_the_older_one_is_current_again(
    owner: str, tmp_path: Path
) -> None:
    served = owned_by_engines("promoted", tmp_path)
    table = served.table
    if owner == "ledger":
        table.stop_serving()
    first = table.state.schema.id
    table.alter([ledger.RenameColumn(("day",), "date")])
    table.append(
        [
            ledger.FileChange(
                path=served.file("later.parquet", 8),
                record_count=1,
                file_size_in_bytes=9,
                schema_id=table.state.schema.id,
                field_ids=True,
            )
        ]
    )
    table.alter([ledger.RenameColumn(("date",), "day")])
    assert table.state.schema.id == first
    table.delete_files(next(each for each in served.paths() if "later" in each))
    assert served.rows() == [3]
    table.project("iceberg")
    assert is_clean(served)


def test_a_handover_that_is_rejected_writes_nothing(tmp_path: Path) -> None:
    served = owned_by_engines("promoted", tmp_path)
    served.table.stop_serving()
    served.table.add_files(served.file("more.parquet", 4))
    newest = served.table.state.last_snapshot_id
    folder = Path(served.table.location.removeprefix("file://")) / "metadata"
    with pytest.raises(ledger.InvalidChangeError, match="the table declares"):
        served.table.start_serving("paimon")
    assert not [*folder.glob(f"snap-{newest}-*.avro")]
    served.table.start_serving()
    assert [*folder.glob(f"snap-{newest}-*.avro")]


def test_retention_rules_expire_snapshots_of_engines_and_of_the_library(tmp_path: Path) -> None:
    served = owned_by_engines("created", tmp_path)
    served.table.add_files(served.file("a.parquet", 5))
    served.engine_appends(6)
    now = served.table.state.effective_millis + 1
    expire_snapshots(served.table, now, older_than_ms=now, retain_last=1)
    assert [each.snapshot_id for each in served.engine().snapshots()] == [
        served.table.state.last_snapshot_id
    ]
    assert served.rows() == served.rows_of_engine() == [1, 2, 5, 6]
