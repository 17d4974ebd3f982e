"""The files of purged tables are deleted late, and only those that nothing else references."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import ledger
from ledger import FileChange, InvalidChangeError, Ledger, Schema, Table
from ledger.log.request import now_millis
from ledger.model.names import Identifier
from ledger.purge import plan_purges, run_purge
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.rest_updates import SetLocation
from projections.iceberg.served import load, register
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, ticking

ALL_FORMATS = {"ledger.formats": "paimon,iceberg,delta"}
FORMATS = ("paimon", "iceberg", "delta")


def table_with_files(lake: Ledger, name: str, count: int = 2) -> Table:
    """Create a table, with data files in its folder."""
    lake.init()
    if "shop" not in lake.databases():
        lake.create_database("shop")
    table = lake.create_table(name, Schema.of({"id": "INT"}, options=ALL_FORMATS))
    for number in range(count):
        table.append([data_in(table, f"{number}.parquet")])
    return table


def data_in(table: Table, name: str) -> FileChange:
    folder = Path(table.location.removeprefix("file://"))
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_bytes(b"data")
    return FileChange(path=name, record_count=1, file_size_in_bytes=4)


def purge(lake: Ledger) -> list[str]:
    """Delete the files of purged tables at once; return their names."""
    handle = handle_of(lake)
    done = [run_purge(handle, each) for each in plan_purges(handle, now_millis() * 2)]
    assert [each.problem for each in done if each.problem] == []
    return sorted(file.key.rpartition("/")[2] for each in done for file in each.files)


def files_in(folder: Path) -> set[str]:
    """Return the files of tables, without those of logs."""
    found = (each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
    return {each.as_posix() for each in found if "_ledger" not in each.parts}


def test_nothing_is_deleted_before_the_retention_ends_and_without_purge(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    table_with_files(lake, "shop.orders")
    table_with_files(lake, "shop.kept")
    lake.drop_table("shop.orders", purge=True)
    lake.drop_table("shop.kept")
    before = files_in(tmp_path)
    dropped = lake.dropped_tables()[1]

    assert dropped.is_purge_requested
    assert list(plan_purges(handle_of(lake), dropped.dropped_at - 1)) == []
    assert files_in(tmp_path) == before
    assert purge(lake) == ["0.parquet", "1.parquet"]
    assert {each.split("/")[1] for each in files_in(tmp_path)} == {"kept"}


def test_a_table_can_be_restored_until_its_files_are_deleted(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    table_with_files(lake, "shop.orders")
    lake.drop_table("shop.orders", purge=True)
    assert len(lake.undrop_table("shop.orders").at().files) == 2
    assert purge(lake) == []
    lake.drop_table("shop.orders", purge=True)
    purge(lake)

    with pytest.raises(InvalidChangeError, match="maintain has deleted its files"):
        lake.undrop_table("shop.orders")
    with pytest.raises(ledger.NotFoundError, match="its files were deleted; create it again"):
        lake.table("shop.orders")
    assert purge(lake) == []


def test_projected_files_of_every_format_are_deleted_with_the_data(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    table = table_with_files(lake, "shop.orders")
    for each in FORMATS:
        table.project(each)
    table.append([data_in(table, "later.parquet")])
    for each in FORMATS:
        table.project(each)
    folder = tmp_path / "shop.db" / "orders"
    (folder / "stranger.txt").write_text("not of the table")
    (folder / "metadata" / "stranger.avro").write_text("not of the table")
    assert len(files_in(folder)) > 12
    lake.drop_table("shop.orders", purge=True)
    purge(lake)

    assert files_in(folder) == {"stranger.txt", "metadata/stranger.avro"}
    assert lake.dropped_tables()[0].is_purged


@pytest.mark.parametrize("spelling", ["absolute", "url", "link"])
@pytest.mark.parametrize("state", ["live", "dropped", "removed from the newest snapshot", "branch"])
def test_files_that_another_table_registered_are_kept(
    tmp_path: Path, spelling: str, state: str
) -> None:
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    table_with_files(lake, "shop.orders")
    other = table_with_files(lake, "shop.other", count=0)
    shared = tmp_path / "lake" / "shop.db" / "orders" / "0.parquet"
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    path = {
        "absolute": str(shared),
        "url": f"file://{shared}",
        "link": str(tmp_path / "link" / "shop.db" / "orders" / "0.parquet"),
    }[spelling]
    change = FileChange(path=path, record_count=1, file_size_in_bytes=4)
    if state == "branch":
        other.append([data_in(other, "own.parquet")])
        other.create_branch("audit")
        other.branch("audit").append([change])
    else:
        other.append([change])
    if state == "removed from the newest snapshot":
        other.delete_files([path])
    if state == "dropped":
        lake.drop_table("shop.other")
    lake.drop_table("shop.orders", purge=True)

    assert purge(lake) == ["1.parquet"]
    assert shared.exists()


def test_files_outside_of_the_tables_location_are_kept(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    table = table_with_files(lake, "shop.orders", count=1)
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(b"data")
    table.append([FileChange(path=str(outside), record_count=1, file_size_in_bytes=4)])
    lake.drop_table("shop.orders", purge=True)

    assert purge(lake) == ["0.parquet"]
    assert outside.exists()


def test_of_an_external_table_only_its_own_files_go(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    lake.create_database("shop")
    location = tmp_path / "elsewhere"
    (location / "metadata").mkdir(parents=True)
    (location / "metadata" / "v1.metadata.json").write_text("somebody's")
    schema = Schema.of({"id": "INT"}, options={"ledger.formats": "delta"})
    table = lake.create_table("shop.orders", schema, location=str(location))
    table.append([data_in(table, "0.parquet")])
    table.project("delta")
    lake.drop_table("shop.orders", purge=True)
    purge(lake)

    assert files_in(location) == {"metadata/v1.metadata.json"}


def test_nothing_is_deleted_while_the_files_of_another_table_are_unknown(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    table_with_files(lake, "shop.orders")
    other = table_with_files(lake, "shop.other")
    lake.drop_table("shop.orders", purge=True)
    (tmp_path / "shop.db/other/_ledger/log" / f"{1:020d}.json").write_text("damaged")
    before = files_in(tmp_path)
    assert other.location

    fresh = handle_of(ledger.open(tmp_path, trust="log"))
    (found,) = [run_purge(fresh, each) for each in plan_purges(fresh, now_millis() * 2)]

    assert found.problem
    assert files_in(tmp_path) == before
    assert ledger.open(tmp_path).undrop_table("shop.orders").state.version > 0


def test_a_lost_table_that_was_dropped_without_purge_stops_no_purge(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    table_with_files(lake, "shop.orders")
    table_with_files(lake, "shop.other")
    for name in ("shop.other", "shop.orders"):
        lake.drop_table(name, purge=name == "shop.orders")
    (tmp_path / "shop.db/other").rename(tmp_path.parent / f"{tmp_path.name}-gone")

    assert purge(ledger.open(tmp_path)) == ["0.parquet", "1.parquet"]


@pytest.mark.parametrize("writes", range(8))
def test_a_purge_that_dies_at_any_write_is_finished_by_the_next(
    tmp_path: Path, writes: int
) -> None:
    store = LocalStore(tmp_path)
    lake = lake_on(store, ticking())
    table_with_files(lake, "shop.orders", count=3)
    lake.table("shop.orders").project("iceberg")
    lake.drop_table("shop.orders", purge=True)
    dying = handle_of(lake_on(DiesAfter(store, writes), ticking(now_millis())))
    before = files_in(tmp_path)
    try:
        for each in plan_purges(dying, now_millis() * 2):
            run_purge(dying, each)
    except Died:
        pass
    (dropped,) = lake_on(store).dropped_tables()
    assert dropped.is_purged or files_in(tmp_path) == before

    purge(lake_on(store, ticking(now_millis())))

    assert files_in(tmp_path) == set()


def test_a_restoration_that_comes_first_keeps_the_files(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    table_with_files(lake, "shop.orders")
    lake.drop_table("shop.orders", purge=True)
    before = files_in(tmp_path)
    (planned,) = plan_purges(handle_of(lake), now_millis() * 2)
    ledger.open(tmp_path).undrop_table("shop.orders")

    done = run_purge(handle_of(lake), planned)
    assert (done.files, "restored since" in (done.problem or "")) == ((), True)
    assert files_in(tmp_path) == before


def test_a_table_of_the_same_name_and_a_purged_one_do_not_touch_each_other(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    table_with_files(lake, "shop.orders")
    lake.drop_table("shop.orders", purge=True)
    second = table_with_files(lake, "shop.orders")
    purge(lake)
    assert {each.path for each in second.at().files} == {"0.parquet", "1.parquet"}
    assert len(files_in(tmp_path)) == 2


def test_a_copied_ledger_deletes_no_external_table_of_the_original(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    lake.create_database("shop")
    location = tmp_path / "elsewhere"
    table = lake.create_table("shop.orders", Schema.of({"id": "INT"}), location=str(location))
    table.append([data_in(table, "0.parquet")])
    lake.drop_table("shop.orders", purge=True)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    copy = ledger.open(tmp_path / "copy", allowed_locations=[str(tmp_path)])
    copy.record_copy()

    assert copy.dropped_tables() == ()
    assert purge(copy) == []
    assert purge(lake) == ["0.parquet"]


def iceberg_table(root: Path) -> tuple[Ledger, Path]:
    """Return a ledger with a table that Iceberg's files describe, and the table's folder."""
    lake = ledger.open(root)
    lake.create_database("shop")
    schema = Schema.of({"id": "INT"}, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.orders", schema)
    for name in ("0.parquet", "1.parquet"):
        table.append([data_in(table, name)])
    table.delete_files(["0.parquet"])
    table.project("iceberg")
    return lake, Path(table.location.removeprefix("file://"))


@pytest.mark.parametrize("owner", ["mirrored", "served"])
def test_files_that_the_manifests_of_another_table_list_are_kept(
    tmp_path: Path, owner: str
) -> None:
    lake, folder = iceberg_table(tmp_path)
    lake.import_table("shop.other", str(folder))
    if owner == "served":
        lake.promote("shop.other", protocol="iceberg")
    (folder / "later.parquet").write_bytes(b"data")
    lake.table("shop.orders").append([data_in(lake.table("shop.orders"), "later.parquet")])
    lake.drop_table("shop.orders", purge=True)
    kept = {"0.parquet", "1.parquet"}
    gone = purge(lake)

    assert {each for each in files_in(folder) if each.endswith(".parquet")} >= kept
    assert lake.table("shop.other").at().files
    # The owner of a mirror may have committed what this ledger has not seen.
    assert ("later.parquet" in gone) == (owner == "served")
    assert not gone or owner == "served"
    assert not {each for each in gone if each.endswith(".avro")}


def test_all_files_of_a_table_that_engines_write_are_found_by_its_manifests(
    tmp_path: Path,
) -> None:
    _, folder = iceberg_table(tmp_path / "source")
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    lake.import_table("shop.engines", str(folder))
    lake.promote("shop.engines", protocol="iceberg")
    (folder / "stranger.parquet").write_bytes(b"data")
    lake.drop_table("shop.engines", purge=True)
    purge(lake)

    left = files_in(folder)
    assert "stranger.parquet" in left
    assert not {each for each in left if each.endswith((".avro", "0.parquet", "1.parquet"))}


def test_a_location_outside_of_the_allowed_ones_is_never_touched(tmp_path: Path) -> None:
    _, folder = iceberg_table(tmp_path / "source")
    allowing = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    allowing.import_table("shop.engines", str(folder))
    allowing.promote("shop.engines", protocol="iceberg")
    allowing.drop_table("shop.engines", purge=True)
    before = files_in(folder)

    purge(ledger.open(tmp_path / "lake"))
    assert files_in(folder) == before


def test_the_projected_files_of_another_table_are_kept(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"id": "INT"}))
    table.append([data_in(table, "0.parquet")])
    loaded = load(handle_of(table), table.state)
    elsewhere = tmp_path / "elsewhere/metadata/old.metadata.json"
    elsewhere.parent.mkdir(parents=True)
    said = json.loads(loaded.body) | {"location": f"{tmp_path}/elsewhere"}
    elsewhere.write_text(json.dumps(said))
    before = files_in(tmp_path)
    copy = register(handle_of(lake), Identifier("shop", "copy"), str(elsewhere))
    # A server refuses it; logs of older ones have such locations.
    commit_updates(copy, [SetLocation(location=loaded.metadata.location)])
    lake.drop_table("shop.copy", purge=True)
    purge(lake)
    assert files_in(tmp_path) >= before
