"""A reader that opened a table before its snapshots expired scans it during the grace period."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ledger import InvalidChangeError, Ledger, RemoveOption, Schema, SetOption, Table
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.delta import DELTA
from projections.iceberg import ICEBERG
from projections.materialising import Materialisation, PendingDeletes
from projections.paimon import PAIMON
from tests.faults import Died, Mortal
from tests.lakes import START_MILLIS, lake_on, memory
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.lakehouse import add_rows, folder_of

deltalake = pytest.importorskip("deltalake")
pyiceberg_table = pytest.importorskip("pyiceberg.table")

Read = Callable[[], list[int]]

KEPT: tuple[Materialisation[Any], ...] = (ICEBERG, PAIMON, DELTA)
MINUTE = 60_000
OPTION = "ledger.reader-grace"


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.millis = START_MILLIS

    def __call__(self) -> int:
        return self.millis


def table_in(folder: Path, clock: Clock, grace: str | None) -> Table:
    """Return a table of three formats with four snapshots of a row each, projected one by one."""
    lake = lake_on(LocalStore(folder), clock)
    lake.create_database("shop")
    options = {
        "ledger.formats": "iceberg,paimon,delta",
        "write-only": "true",
        "write.metadata.previous-versions-max": "1",
    }
    schema = {"id": "BIGINT"}
    table = lake.create_table("shop.t", schema_of(schema, options, grace))
    for number in range(1, 5):
        add_rows(table, f"{number}.parquet", [{"id": number}])
        project(table)
    return table


def schema_of(columns: dict[str, str], options: dict[str, str], grace: str | None) -> Any:
    given = options if grace is None else options | {OPTION: grace}
    return Schema.of(columns, options=given)


def project(table: Table) -> None:
    for each in KEPT:
        each.project(handle_of(table))


def pass_minutes(table: Table, clock: Clock, minutes: int) -> None:
    """Let time pass until the next commit, and bring the files on."""
    clock.millis += minutes * MINUTE
    table.alter([SetOption("n", str(clock.millis))])
    project(table)


def opened(table: Table) -> dict[str, Read]:
    """Open the second snapshot and the newest with readers of each format, and scan nothing yet."""
    metadata = folder_of(table) / "metadata"
    hint = (metadata / "version-hint.text").read_text()
    iceberg = pyiceberg_table.StaticTable.from_metadata(str(metadata / f"v{hint}.metadata.json"))
    catalog = CatalogFactory.create({"warehouse": str(folder_of(table).parents[1])})
    paimon = catalog.get_table("shop.t").copy({"scan.snapshot-id": "2"})
    delta = deltalake.DeltaTable(folder_of(table))
    old, newest = version_of(delta, 2), version_of(delta, 4)
    duck = duckdb.connect()

    def by_pypaimon() -> list[int]:
        builder = paimon.new_read_builder()
        return ids(builder.new_read().to_arrow(builder.new_scan().plan().splits()))

    def by_delta_rs() -> list[int]:
        delta.load_as_version(old)
        return ids(delta.to_pyarrow_table())

    def by_duckdb() -> list[int]:
        query = f"SELECT id FROM delta_scan('{folder_of(table)}', version := {old})"  # noqa: S608 - written here
        return sorted(each for (each,) in duck.execute(query).fetchall())

    def newest_by_delta_rs() -> list[int]:
        delta.load_as_version(newest)
        return ids(delta.to_pyarrow_table())

    found: dict[str, Read] = {
        "pyiceberg": lambda: ids(iceberg.scan(snapshot_id=2).to_arrow()),
        "pyiceberg, newest": lambda: ids(iceberg.scan().to_arrow()),
        "pypaimon": by_pypaimon,
        "delta-rs": by_delta_rs,
        "delta-rs, newest": newest_by_delta_rs,
    }
    if can_scan_delta(duck):
        found["duckdb"] = by_duckdb
    return found


def can_scan_delta(duck: duckdb.DuckDBPyConnection) -> bool:
    """Return whether DuckDB's extension, which DuckDB fetches, is there and reads old versions."""
    try:
        duck.execute("LOAD delta")
        found = duck.execute(
            "SELECT parameters FROM duckdb_functions() WHERE function_name = 'delta_scan'"
        ).fetchall()
    except duckdb.Error:
        return False
    return any("version" in names for (names,) in found)


def version_of(delta: Any, snapshot: int) -> int:
    """Return the Delta version of a snapshot."""
    (found,) = (
        int(each["version"])
        for each in delta.history()
        if str(each.get("operationParameters", {}).get("snapshotId")) == str(snapshot)
    )
    return found


def ids(rows: Any) -> list[int]:
    return sorted(rows["id"].to_pylist())


def rows_of(reads: dict[str, Read]) -> dict[str, list[int]]:
    return {name: read() for name, read in reads.items()}


def right(reads: dict[str, Read]) -> dict[str, list[int]]:
    return {name: [1, 2, 3, 4] if "newest" in name else [1, 2] for name in reads}


def standing(table: Table, kept: Materialisation[Any]) -> set[str]:
    folder = folder_of(table)
    return {
        str(path.relative_to(folder))
        for each in kept.format.folders
        for path in (folder / each).rglob("*")
        if path.is_file()
    }


def assert_exact(table: Table) -> None:
    newest = table.state.version
    for each in KEPT:
        # The metadata of the run before and of its log stays until the next run.
        earlier = [
            name
            for version in (newest - 2, newest - 1)
            for name in (f"/{version:05}-", f"/v{version}.metadata.json")
        ]
        wanted = each.expected(handle_of(table)).keys()
        assert wanted <= standing(table, each)
        left = standing(table, each) - wanted
        assert {path for path in left if not any(it in path for it in earlier)} == set()
        assert each.verify(handle_of(table)).is_empty
        assert each.verify(handle_of(table)).foreign == ()


@pytest.mark.parametrize(("grace", "minutes"), [(None, 60), ("10 min", 10)])
def test_a_reader_that_opened_before_an_expiry_scans_until_the_grace_period_ends(
    tmp_path: Path, grace: str | None, minutes: int
) -> None:
    clock = Clock()
    table = table_in(tmp_path, clock, grace)
    reads = opened(table)
    clock.millis += 500 * MINUTE
    table.expire_snapshots(before=4)
    project(table)
    # Nobody who comes now finds what expired, and nothing is wrong.
    for each in KEPT:
        assert each.verify(handle_of(table)).is_empty
        assert each.verify(handle_of(table)).foreign == ()
    assert rows_of(reads) == right(reads)

    # The time begins with the first commit after the files were brought on, however late.
    pass_minutes(table, clock, 500)
    assert rows_of(reads) == right(reads)
    pass_minutes(table, clock, minutes - 1)
    assert rows_of(reads) == right(reads)

    pass_minutes(table, clock, 1)
    for name in ("pyiceberg", "pypaimon", "delta-rs"):
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever a reader says of a lost file
            reads[name]()
    table.alter([SetOption(OPTION, "0")])
    project(table)
    assert_exact(table)


def test_without_a_time_for_readers_what_expired_goes_at_once(tmp_path: Path) -> None:
    table = table_in(tmp_path, Clock(), "0")
    table.expire_snapshots(before=4)
    project(table)
    assert_exact(table)
    assert not (folder_of(table) / "_ledger/pending-deletes").exists()


def test_a_shorter_time_holds_for_what_leaves_already(tmp_path: Path) -> None:
    clock = Clock()
    table = table_in(tmp_path, clock, "1 d")
    table.expire_snapshots(before=4)
    project(table)
    pass_minutes(table, clock, 60)
    assert all(PendingDeletes(handle_of(table), each.format.name).paths() for each in KEPT)
    table.alter([SetOption(OPTION, "0")])
    project(table)
    assert_exact(table)


def test_a_rebuild_leaves_what_readers_hold_too(tmp_path: Path) -> None:
    clock = Clock()
    table = table_in(tmp_path, clock, None)
    reads = opened(table)
    table.expire_snapshots(before=4)
    for _ in range(2):
        for each in KEPT:
            each.rebuild(handle_of(table))
            assert each.verify(handle_of(table)).is_empty
        assert rows_of(reads) == right(reads)
    # A position that was lost takes nothing along.
    for each in KEPT:
        handle_of(table).log.store.delete(each.key(handle_of(table)))
    project(table)
    assert rows_of(reads) == right(reads)
    for minutes in (1, 60):
        pass_minutes(table, clock, minutes)
    assert not (
        PendingDeletes(handle_of(table), "paimon").paths()
        | PendingDeletes(handle_of(table), "delta").paths()
    )
    table.alter([SetOption(OPTION, "0")])
    project(table)
    assert_exact(table)


def test_a_kill_at_any_write_of_an_expiry_takes_nothing_from_its_readers(tmp_path: Path) -> None:
    clock = Clock()
    place, kept = tmp_path / "lake", tmp_path / "kept"
    table_in(place, clock, "10 min")
    shutil.move(place, kept)
    for writes in range(1000):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(kept, place)
        table = lake_on(LocalStore(place), clock).table("shop.t")
        reads = opened(table)
        table.expire_snapshots(before=4)
        store = Mortal(LocalStore(place), writes)
        try:
            project(lake_on(store, clock).table("shop.t"))
        except Died:
            assert rows_of(reads) == right(reads)
            project(table)
            assert rows_of(reads) == right(reads)
            for minutes in (1, 10):
                pass_minutes(table, clock, minutes)
            table.alter([SetOption(OPTION, "0")])
            project(table)
            assert_exact(table)
            continue
        assert writes > 5
        return
    pytest.fail("it never came to an end")


@pytest.mark.parametrize("text", ["", "soon", "-1 s", "1", "31 d", "1 week", "1.5 h"])
def test_a_malformed_grace_period_is_rejected(text: str) -> None:
    lake = some_lake()
    table = lake.create_table("shop.u", schema_of({"id": "BIGINT"}, {}, None))
    with pytest.raises(InvalidChangeError, match=r"ledger\.reader-grace"):
        table.alter([SetOption(OPTION, text)])
    with pytest.raises(InvalidChangeError, match=r"ledger\.reader-grace"):
        lake.create_table("shop.v", schema_of({"id": "BIGINT"}, {}, text))
    for fine in ("0", "30 d", "90s", "15 min"):
        table.alter([SetOption(OPTION, fine)])
    table.alter([RemoveOption(OPTION)])


def some_lake() -> Ledger:
    lake = lake_on(memory())
    lake.create_database("shop")
    return lake
