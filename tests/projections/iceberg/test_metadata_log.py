"""Every file that a metadata log names exists, and is the metadata of its version."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyiceberg.catalog import Catalog
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadata

import ledger
from ledger import AddColumn, FileChange, Schema, SetOption, Table
from ledger.stores import Durability, LocalStore, Store
from ledger.table_handle import handle_of
from projections.iceberg import Names, expected, rebuild, verify
from projections.iceberg.materialise import project
from projections.materialising import PendingDeletes, outputs_of
from tests.erasing.lives import holding
from tests.faults import Died, DiesAfter, Wrapped
from tests.lakes import lake_on, memory, orders
from tests.projections.iceberg.importing.writing import COLUMNS, appended, created, sql_catalog
from tests.projections.iceberg.projecting import Left, go_on, is_metadata, random_table

MOST = "write.metadata.previous-versions-max"


def parsed(uri: str) -> TableMetadata:
    return StaticTable.from_metadata(uri).metadata


def newest_uri(table: Table) -> str:
    state = table.state
    return f"{table.location}/{Names(state.table_id).metadata(state.version)}"


def logged(table: Table, *uris: str) -> set[str]:
    """Return the files that metadata files name, and that those name, after opening them all.

    Each has the time that the log gives it, is in order, and is the ledger's table at its version.
    """
    files: dict[str, TableMetadata] = {}
    found, waiting = set[str](), [*uris]
    while waiting:
        metadata = files.get(uri := waiting.pop()) or files.setdefault(uri, parsed(uri))
        times = [each.timestamp_ms for each in metadata.metadata_log]
        assert times == sorted(times)
        assert not times or times[-1] <= metadata.last_updated_ms
        for each in metadata.metadata_log:
            is_new = each.metadata_file not in files
            file = files[each.metadata_file] if not is_new else parsed(each.metadata_file)
            files[each.metadata_file] = file
            assert file.last_updated_ms == each.timestamp_ms
            assert file.table_uuid == metadata.table_uuid
            found.add(each.metadata_file)
            if is_new and each.metadata_file.startswith(f"{table.location}/"):
                assert_is_of_its_version(table, each.metadata_file, file)
                waiting.append(each.metadata_file)
    return found


def assert_is_of_its_version(table: Table, uri: str, file: TableMetadata) -> None:
    version = Names(table.state.table_id).version_of(uri.removeprefix(f"{table.location}/"))
    assert version is not None
    then = table.at(version=version).state
    assert (file.current_snapshot_id or 0) == then.last_snapshot_id
    assert tuple(each.name for each in file.schema().fields) == tuple(then.schema.names)


def assert_all_logs_are_true(table: Table) -> None:
    """Open whatever any metadata file in the table's folder names."""
    folder = Path(table.location.removeprefix("file://")) / "metadata"
    logged(table, *(f"file://{each}" for each in folder.glob("*.metadata.json")))


def lived(folder: Path, seed: int) -> Table:
    """Return a table of one of three format versions, with tags, expiries and rollbacks."""
    return random_table(seed, LocalStore(folder, durable=Durability.NONE), 5)


def follow(table: Table, rng: random.Random) -> Table:
    for _ in range(35):
        go_on(table, rng, 1)
        project(handle_of(table))
    return table


def catch_up(table: Table, rng: random.Random) -> Table:
    for steps in (1, 3, 30):
        go_on(table, rng, steps)
        project(handle_of(table))
        assert_all_logs_are_true(table)
    return table


def write_again(table: Table, rng: random.Random) -> Table:
    catch_up(table, rng)
    store, path = handle_of(table).log.store, handle_of(table).path
    for each in list(Left.by(table).files):
        store.delete(f"{path}/{each}")
    rebuild(handle_of(table))
    return table


def move(table: Table, rng: random.Random) -> Table:
    catch_up(table, rng)
    here = Path(handle_of(table).ledger_url.removeprefix("file://"))
    there = here.with_name("elsewhere")
    shutil.move(here, there)
    lake = ledger.open(str(there))
    lake.record_move()
    moved = lake.table(str(table.identifier))
    project(handle_of(moved))
    return moved


LIVES = {"followed": follow, "caught up": catch_up, "rebuilt": write_again, "moved": move}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("life", LIVES)
def test_every_file_that_any_log_names_is_the_metadata_of_its_version(
    tmp_path: Path, life: str, seed: int
) -> None:
    table = LIVES[life](lived(tmp_path / "lake", seed), random.Random(seed))
    assert_all_logs_are_true(table)
    assert Left.by(table).newest(table) == expected(handle_of(table))
    assert verify(handle_of(table)).is_empty


@pytest.mark.parametrize("seed", range(3))
def test_a_rebuilt_log_has_the_same_bytes_as_a_followed_one(tmp_path: Path, seed: int) -> None:
    table = lived(tmp_path / "lake", seed)
    rng = random.Random(seed)
    for _ in range(25):
        go_on(table, rng, 1)
        project(handle_of(table))
        named = {
            path.removeprefix(f"{table.location}/") for path in logged(table, newest_uri(table))
        }
        wanted = expected(handle_of(table))
        assert {path: Left.by(table).files[path] for path in named} == {
            path: wanted[path] for path in named
        }


def file(path: str, schema_id: int = 0) -> FileChange:
    return FileChange(
        path=path, record_count=1, file_size_in_bytes=10, field_ids=True, schema_id=schema_id
    )


def declared(folder: Path, **options: str) -> Table:
    given = {"ledger.formats": "iceberg"} | options
    store = LocalStore(folder, durable=Durability.NONE)
    return orders(lake_on(store), Schema.of({"id": "INT"}, options=given))


def log_length(table: Table) -> int:
    project(handle_of(table))
    return len(parsed(newest_uri(table)).metadata_log)


@pytest.mark.parametrize("projected_every", [1, 4, 40])
def test_a_log_whose_length_the_owner_changes_stays_true(
    tmp_path: Path, projected_every: int
) -> None:
    table = declared(tmp_path / "lake")
    for number, most in enumerate(["3", "1", "7", "2", "100", "5"] * 7):
        table.alter([SetOption(MOST, most), SetOption("n", str(number))])
        if number % projected_every == projected_every - 1:
            assert log_length(table) <= int(most)
            assert_all_logs_are_true(table)
    assert log_length(table) <= 5
    assert_all_logs_are_true(table)
    assert verify(handle_of(table)).is_empty


@pytest.mark.parametrize("is_followed", [True, False])
def test_versions_that_iceberg_has_no_metadata_of_are_not_named(
    tmp_path: Path, *, is_followed: bool
) -> None:
    table = declared(tmp_path / "lake", **{"ledger.formats": "paimon,iceberg"})

    def go() -> None:
        if is_followed:
            project(handle_of(table))

    table.append([file("a.parquet")])
    go()
    table.alter([SetOption("ledger.formats", "paimon")])
    table.alter([AddColumn(("m",), "TIMESTAMP(9)")])
    table.alter([ledger.DropColumn(("m",))])
    table.alter([SetOption("ledger.formats", "paimon,iceberg")])
    go()
    table.alter([SetOption("n", "1")])
    assert log_length(table) == 1
    assert_all_logs_are_true(table)
    assert verify(handle_of(table)).is_empty


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_log_begins_anew_where_a_clock_was_corrected(
    tmp_path: Path, *, is_followed: bool
) -> None:
    now = [1_700_000_000_000]
    lake = lake_on(LocalStore(tmp_path / "lake", durable=Durability.NONE), lambda: now[0])
    table = orders(lake, Schema.of({"id": "INT"}, options={"ledger.formats": "iceberg"}))
    for number in range(4):
        now[0] += 10_000 if number < 2 else 10**9
        table.append([file(f"{number}")])
        if is_followed:
            project(handle_of(table))
    now[0] = 1_700_000_030_000
    table.correct_clock()
    assert log_length(table) == 0
    table.append([file("next")])
    assert log_length(table) == 1
    assert_all_logs_are_true(table)


def test_branches_and_expired_snapshots_leave_the_log_true(tmp_path: Path) -> None:
    table = declared(tmp_path / "lake", **{"ledger.reader-grace": "0"})
    for number in range(5):
        table.append([file(f"{number}")])
    table.create_branch("audit")
    for number in range(5, 16):
        table.branch("audit").append([file(f"branch-{number}")])
        table.append([file(f"{number}")])
        table.expire_snapshots(before=number)
        if number % 4 == 0:
            project(handle_of(table))
            assert_all_logs_are_true(table)
    table.branch("audit").delete()
    assert log_length(table) > 0
    assert_all_logs_are_true(table)
    assert verify(handle_of(table)).is_empty


@pytest.mark.parametrize("version", [7, 21, 30])
def test_a_version_on_request_keeps_the_files_of_its_log(tmp_path: Path, version: int) -> None:
    table = declared(tmp_path / "lake", **{"ledger.reader-grace": "0"})
    for number in range(30):
        table.append([file(f"{number}")])
        if number in {4, 19, 29}:
            project(handle_of(table))
    project(handle_of(table), version=version)
    for number in range(30, 80):
        table.append([file(f"{number}")])
        project(handle_of(table))
        Left.by(table).assert_logs_are_true()
    name = Names(table.state.table_id).metadata(version)
    assert name in Left.by(table).files


def request_before_first_run(table: Table) -> None:
    append_more(table, 8)
    project(handle_of(table), version=REQUESTED)


def request_ahead(table: Table) -> None:
    append_more(table, 3)
    project(handle_of(table))
    request_before_first_run(table)


def request_behind(table: Table) -> None:
    append_more(table, 8)
    project(handle_of(table))
    append_more(table, 8)
    project(handle_of(table))
    project(handle_of(table), version=REQUESTED)


def request_regularly(table: Table) -> None:
    append_more(table, 16)
    project(handle_of(table), every=REQUESTED)


REQUESTED = 5
REQUESTS = [request_before_first_run, request_ahead, request_behind, request_regularly]


def append_more(table: Table, files: int) -> None:
    for _ in range(files):
        table.append([file(f"{table.state.version}")])


def stay(table: Table) -> Table:
    return table


def rebuild_all(table: Table) -> Table:
    rebuild(handle_of(table))
    return table


def lose_newest(table: Table) -> Table:
    project(handle_of(table))
    outputs = outputs_of(handle_of(table))
    outputs.remove(Names(table.state.table_id).metadata(table.state.version))
    return table


def go_elsewhere(table: Table, *, is_copied: bool) -> Table:
    here = Path(handle_of(table).ledger_url.removeprefix("file://"))
    there = here.with_name(f"{here.name}-elsewhere")
    (shutil.copytree if is_copied else shutil.move)(here, there)
    lake = ledger.open(str(there))
    if is_copied:
        lake.record_copy()
    else:
        lake.record_move()
    return lake.table(str(table.identifier))


def move_away(table: Table) -> Table:
    return go_elsewhere(table, is_copied=False)


def copy_twice(table: Table) -> Table:
    copied = go_elsewhere(table, is_copied=True)
    project(handle_of(copied))
    return go_elsewhere(copied, is_copied=True)


def move_and_rebuild(table: Table) -> Table:
    return rebuild_all(move_away(table))


LATER = [stay, rebuild_all, lose_newest, move_away, move_and_rebuild, copy_twice]
# A rebuild writes no versions ahead of the files at the new location.
FORGOTTEN = (request_ahead, move_and_rebuild)


@pytest.mark.parametrize(
    ("request_version", "then"), [each for each in product(REQUESTS, LATER) if each != FORGOTTEN]
)
def test_no_later_run_deletes_a_version_on_request(
    tmp_path: Path,
    request_version: Callable[[Table], None],
    then: Callable[[Table], Table],
) -> None:
    table = declared(tmp_path / "lake", **{"ledger.reader-grace": "0"})
    request_version(table)
    table = then(table)
    for files in (1, 9, 3, 14):
        append_more(table, files)
        project(handle_of(table))
        Left.by(table).assert_logs_are_true()
    assert_all_logs_are_true(table)
    assert Names(table.state.table_id).metadata(REQUESTED) in Left.by(table).files
    rebuild(handle_of(table))
    assert Names(table.state.table_id).metadata(REQUESTED) in Left.by(table).files
    assert verify(handle_of(table)).is_empty


def test_no_later_run_deletes_regular_versions_of_a_moved_ledger(tmp_path: Path) -> None:
    table = declared(tmp_path / "lake", **{"ledger.reader-grace": "0"})
    append_more(table, 22)
    project(handle_of(table))
    table = move_away(table)
    project(handle_of(table), every=6)
    for _ in range(3):
        append_more(table, 9)
        project(handle_of(table))
    assert_all_logs_are_true(table)
    names, files = Names(table.state.table_id), Left.by(table).files
    assert all(names.metadata(each) in files for each in (0, 6, 12, 18))


@pytest.mark.parametrize("grace", ["0", "1 h"])
def test_no_killed_request_leaves_a_log_that_names_a_missing_file(grace: str) -> None:
    writes, is_killed = 0, True
    while is_killed:
        store = memory()
        options = {"ledger.formats": "iceberg", "ledger.reader-grace": grace}
        table = orders(lake_on(store), Schema.of({"id": "INT"}, options=options))
        for files in (6, 8):
            append_more(table, files)
            project(handle_of(table))
        is_killed = dies_after(writes, lambda on: project(handle_of(on), version=8), table, store)
        table.alter([SetOption("ledger.reader-grace", "0")])
        for files in (1, 9, 3):
            append_more(table, files)
            project(handle_of(table))
            Left.by(table).assert_logs_are_true()
        assert verify(handle_of(table)).is_empty
        writes += 1
    assert writes > 3


@pytest.mark.parametrize("every", [1, 4, 25])
def test_regular_versions_keep_the_files_of_their_logs(tmp_path: Path, every: int) -> None:
    table = declared(tmp_path / "lake", **{"ledger.reader-grace": "0"})
    for number in range(60):
        table.append([file(f"{number}")])
        if number % 13 == 0:
            project(handle_of(table), every=every)
    project(handle_of(table), every=every)
    assert_all_logs_are_true(table)
    names, files = Names(table.state.table_id), Left.by(table).files
    assert all(names.metadata(each) in files for each in range(0, 61, every))


def test_no_killed_run_leaves_a_log_that_names_a_missing_file() -> None:
    writes, is_killed = 0, True
    while is_killed:
        store = memory()
        table = random_table(5, store, 4)
        project(handle_of(table))
        go_on(table, random.Random(2), 25)
        table.alter([SetOption("ledger.reader-grace", "0")])
        is_killed = dies_after(writes, lambda on: project(handle_of(on)), table, store)
        Left.by(table).assert_logs_are_true()
        go_on(table, random.Random(3), 14)
        project(handle_of(table))
        Left.by(table).assert_logs_are_true()
        assert Left.by(table).newest(table) == expected(handle_of(table))
        writes += 3
    assert writes > 15


class DiesAt(Wrapped):
    """Dies before the first write of a key with an ending."""

    def __init__(self, inner: Store, ending: str) -> None:
        super().__init__(inner)
        self._ending = ending

    def create(self, key: str, body: bytes) -> bool:
        self._die_at(key)
        return super().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        self._die_at(key)
        super().replace(key, body)

    def _die_at(self, key: str) -> None:
        if key.endswith(self._ending):
            raise Died


def promoted(tmp_path: Path) -> Table:
    theirs = created(tmp_path / "t", version=2)
    appended(theirs, 1, name=["a"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("shop.orders", theirs.metadata_location)
    lake.promote("shop.orders")
    return lake.table("shop.orders")


def advanced(table: Table, versions: int) -> None:
    for _ in range(versions):
        table.alter([SetOption("n", str(table.state.version))])
    project(handle_of(table))


@pytest.mark.parametrize("is_promoted", [False, True])
@pytest.mark.parametrize(
    "dies_at", ["-v.metadata.json", "version-hint.text", "projections/iceberg.json"]
)
@pytest.mark.parametrize(("before", "killed"), [(6, 3), (2, 3)])
@pytest.mark.parametrize("steps", [(5, 2, 12), (3, 4, 2)])
def test_files_of_a_killed_run_are_deleted_before_those_that_they_name(
    tmp_path: Path,
    before: int,
    killed: int,
    steps: tuple[int, ...],
    dies_at: str,
    *,
    is_promoted: bool,
) -> None:
    table = promoted(tmp_path) if is_promoted else declared(tmp_path / "lake")
    table.alter([SetOption("ledger.reader-grace", "0")])
    advanced(table, before - 1)
    store = LocalStore(tmp_path / "lake", durable=Durability.NONE)
    ending = dies_at.replace("-v", f"/v{table.state.version + killed}")
    with pytest.raises(Died):
        advanced(lake_on(DiesAt(store, ending)).table("shop.orders"), killed)
    for each in steps:
        advanced(table, each)
        assert_all_logs_are_true(table)
        assert verify(handle_of(table)).is_empty
    assert len([*filter(is_metadata, Left.by(table).files)]) < 3 * 12


def dies_after(writes: int, act: Callable[[Table], object], table: Table, store: Any) -> bool:
    try:
        act(lake_on(DiesAfter(store, writes)).table(str(table.identifier)))
    except Died:
        return True
    return False


def changes(table: Table) -> Iterator[str]:
    for number in range(14):
        table.alter([SetOption("n", str(number))])
        yield "an option"
        table.append([file(f"{table.location}/data/{number}", table.state.schema.id)])
        yield "a file"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("projected_every", [1, 5, 40])
def test_a_promoted_tables_log_goes_on_after_its_owners(
    tmp_path: Path, projected_every: int, version: int
) -> None:
    theirs = created(tmp_path / "t", version=version)
    for number in range(3):
        appended(theirs, number, name=["a"])
    owners = [each.metadata_file for each in theirs.metadata.metadata_log]
    owners.append(theirs.metadata_location)
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    table = lake.table("a.b")
    project(handle_of(table))
    assert [each.metadata_file for each in parsed(newest_uri(table)).metadata_log] == owners
    for number, _ in enumerate(changes(table), 1):
        if number % projected_every == 0:
            project(handle_of(table))
            assert_all_logs_are_true(table)
            if number < 7:
                files = [each.metadata_file for each in parsed(newest_uri(table)).metadata_log]
                assert files[: len(owners)] == owners
                assert len(files) == len(owners) + number
    assert 0 < log_length(table) <= 10
    assert_all_logs_are_true(table)
    assert Left.by(table).newest(table) == expected(handle_of(table))
    assert verify(handle_of(table)).is_empty


def name_newest(log: list[dict[str, Any]], newest: dict[str, Any]) -> None:
    log.append(newest)


def name_newest_early(log: list[dict[str, Any]], newest: dict[str, Any]) -> None:
    log.insert(0, newest | {"timestamp-ms": log[0]["timestamp-ms"]})


def name_twice(log: list[dict[str, Any]], _newest: dict[str, Any]) -> None:
    log.append(log[-1])


def spell_twice(log: list[dict[str, Any]], _newest: dict[str, Any]) -> None:
    path = log[0]["metadata-file"].removeprefix("file://")
    log.insert(0, log[0] | {"metadata-file": path})


def swap(log: list[dict[str, Any]], _newest: dict[str, Any]) -> None:
    log[0], log[1] = log[1], log[0]


def date_ahead(log: list[dict[str, Any]], newest: dict[str, Any]) -> None:
    log[0]["timestamp-ms"] = newest["timestamp-ms"] + 30_000


@pytest.mark.parametrize("projected_every", [1, 3])
@pytest.mark.parametrize(
    "damage", [name_newest, name_newest_early, name_twice, spell_twice, swap, date_ahead]
)
def test_a_promoted_tables_log_names_each_file_of_an_odd_owner_once_and_in_order(
    tmp_path: Path,
    damage: Callable[[list[dict[str, Any]], dict[str, Any]], None],
    projected_every: int,
) -> None:
    theirs = created(tmp_path / "t", version=2)
    for number in range(3):
        appended(theirs, number, name=["a"])
    path = Path(theirs.metadata_location.removeprefix("file://"))
    body = json.loads(path.read_bytes())
    newest = {"timestamp-ms": body["last-updated-ms"], "metadata-file": theirs.metadata_location}
    damage(body["metadata-log"], newest)
    path.write_text(json.dumps(body))
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    table = lake.table("a.b")
    for number in range(1, 5):
        table.alter([SetOption("n", str(number))])
        if number % projected_every == 0:
            project(handle_of(table))
    project(handle_of(table))
    log = parsed(newest_uri(table)).metadata_log
    names = [each.metadata_file.rpartition("/")[2] for each in log]
    assert len(names) == len({*names})
    assert path.name in names
    assert len(names) >= 5
    assert_all_logs_are_true(table)
    assert verify(handle_of(table)).is_empty


def test_a_catalog_that_points_to_a_promoted_table_finds_every_file_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here: Catalog = sql_catalog(tmp_path, monkeypatch)
    theirs = here.create_table("s.t", COLUMNS)
    appended(theirs, 1, name=["a"])
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", "here:s.t")
    lake.promote("a.b")
    table = lake.table("a.b")
    table.alter([SetOption("ledger.reader-grace", "0")])
    for _ in changes(table):
        table.project("iceberg")
        # The catalog still points to the file of the run before.
        logged(table, here.load_table("s.t").metadata_location)
        lake.promote("a.b")
        logged(table, here.load_table("s.t").metadata_location)


def test_an_erasure_writes_the_files_of_the_log_again(tmp_path: Path) -> None:
    secret = "ann-0123456789abcdef"  # noqa: S105 - a name
    store = LocalStore(tmp_path / "lake", durable=Durability.NONE)
    lake = lake_on(store)
    lake.init(erasable=True)
    options = {"ledger.formats": "iceberg", "ledger.personal": "mail"}
    columns = {"id": "INT", "mail": "STRING"}
    table = orders(lake, Schema.of(columns, partition_keys=["mail"], options=options))
    for number in range(8):
        mail = secret if number % 3 else "bob"
        table.append([replace(file(f"{number}"), partition=(mail,))])
        if number in {3, 7}:
            project(handle_of(table))
    names = Names(table.state.table_id)
    before = {names.metadata(each): Left.by(table).files[names.metadata(each)] for each in range(9)}
    assert any("-m0.avro" in each for each in holding(store, secret))

    assert lake.erase(table="shop.orders", column="mail", value=secret).remaining == ()
    assert holding(store, secret) == []
    assert_all_logs_are_true(table)
    assert log_length(table) == 8
    assert Left.by(table).newest(table) == expected(handle_of(table))
    assert PendingDeletes(handle_of(table), "iceberg").paths() == frozenset()
    assert before.keys() <= Left.by(table).files.keys()
    table.append([replace(file("next"), partition=("bob",))])
    assert log_length(table) == 9
    assert_all_logs_are_true(table)
    assert verify(handle_of(table)).is_empty
