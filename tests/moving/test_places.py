"""Ledgers that are found elsewhere: moved, copied, or mounted another way."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve
from msgspec.structs import replace

import ledger
from ledger import (
    AddColumn,
    CommitConflictError,
    FileChange,
    Identifier,
    InvalidChangeError,
    Ledger,
    Schema,
    SetOption,
    Table,
)
from ledger.decide import AliasLedger, CatalogIntent, CopyLedger, MoveLedger
from ledger.events import LedgerMoved
from ledger.history.verifying import Subject, Verification
from ledger.history.verifying.surroundings import CatalogedTables
from ledger.ledger_handle import LedgerHandle
from ledger.log import Commit, Transaction
from ledger.opening.context import TableSetting
from ledger.relocation.moving import location_references_of
from ledger.state import EMPTY_CATALOG, CatalogStream, TableState
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.iceberg import verify
from projections.source.data_source import feed_of
from projections.source.read_options import ReadOptions
from tests.evolution.born import builder_of
from tests.faults import Died, Mortal
from tests.lakes import lake_on, memory, orders
from tests.moving.test_lines import brought, exported
from tests.readers.lakehouse import add_rows, folder_of

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("pyiceberg")


def made(root: Path, *, format_version: str = "2", formats: str = "iceberg") -> Table:
    lake = ledger.open(str(root), author="me")
    lake.create_database("shop")
    options = {"ledger.formats": formats, "format-version": format_version}
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, options=options))
    add_rows(table, "data/1.parquet", [{"id": 1}, {"id": 2}, {"id": 3}])
    return table


def with_deletes(table: Table, position: int = 1) -> Table:
    """Delete the row at a position of the table's first file."""
    named = pa.table({"file_path": [f"{table.location}/data/1.parquet"], "pos": [position]})
    name = f"data/d{position}.parquet"
    parquet.write_table(named, folder_of(table) / name)
    deletes = FileChange(
        path=name,
        record_count=1,
        file_size_in_bytes=(folder_of(table) / name).stat().st_size,
        content="position-deletes",
        field_ids=True,
    )
    table.append([deletes])
    return table


def at(root: Path) -> Ledger:
    return ledger.open(str(root), author="me")


def ids(table: Table, **instant: Any) -> list[int]:
    return sorted(each["id"] for each in table.at(**instant).to_arrow().to_pylist())


ADD = AddColumn(("n",), "INT")
_FILE_PATH, _POSITION = 2147483546, 2147483545
"""The field ids of what position deletes name."""


def test_a_ledger_that_nothing_ties_to_a_place_just_works_elsewhere(tmp_path: Path) -> None:
    made(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    lake = at(tmp_path / "there")
    table = lake.table("shop.t")
    table.alter([ADD])
    assert ids(table) == [1, 2, 3]
    found = lake.inspect_location()
    assert (found.verdict, found.ties, found.next_step) == ("moved", (), "")


@pytest.mark.parametrize("tie", ["projection", "position-deletes", "external"])
def test_what_is_tied_to_a_place_is_read_and_not_written_until_it_is_said_what_happened(
    tmp_path: Path, tie: str
) -> None:
    table = made(tmp_path / "here")
    name = "shop.t"
    if tie == "projection":
        table.project("iceberg")
    elif tie == "position-deletes":
        with_deletes(table)
    else:
        name = "shop.ext"
        options = {"ledger.formats": "iceberg"}
        at(tmp_path / "here").create_table(
            name, Schema.of({"id": "BIGINT"}, options=options), location=str(tmp_path / "ext")
        )
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    lake = at(tmp_path / "there")
    there = lake.table(name)
    version = there.state.version
    with pytest.raises(InvalidChangeError, match=r"here.*lakeledger move"):
        there.alter([ADD])
    assert there.state.version == version
    assert there.at().schema.names == ("id",)
    if tie == "projection":
        assert ids(there) == [1, 2, 3]
    found = lake.inspect_location()
    assert (found.verdict, [each.kind for each in found.ties]) == ("copied", [tie])
    # The original was never asked.
    at(tmp_path / "here").table(name).alter([ADD])
    if tie == "position-deletes":
        return
    lake.record_move()
    # A handle from before continues, too.
    there.alter([AddColumn(("m",), "INT")])
    assert at(tmp_path / "there").inspect_location().verdict == "here"


def test_moved_twice_it_is_clean_and_its_rows_are_the_same(tmp_path: Path) -> None:
    with_deletes(made(tmp_path / "0")).project("iceberg")
    for number in (1, 2):
        shutil.move(tmp_path / str(number - 1), tmp_path / str(number))
        lake = at(tmp_path / str(number))
        assert lake.inspect_location().verdict == "moved"
        with pytest.raises(InvalidChangeError, match=r"shop\.t: its position deletes .*--rewrite"):
            lake.record_move()
        lake.record_move(rewrites=True)
        table = at(tmp_path / str(number)).table("shop.t")
        with_deletes_here = number == 2
        if with_deletes_here:
            add_rows(table, "data/2.parquet", [{"id": 4}])
        table.project("iceberg")
        assert verify(handle_of(table)).is_empty
        wanted = [1, 3, 4] if with_deletes_here else [1, 3]
        assert ids(table) == by_static_table(table) == wanted
        assert at(tmp_path / str(number)).inspect_location().verdict == "here"


def test_deletes_that_are_written_anew_have_no_bounds_of_the_names_that_they_had(
    tmp_path: Path,
) -> None:
    table = made(tmp_path / "here")
    with_deletes(table)
    named = f"{table.location}/data/1.parquet".encode().hex()
    (deletes,) = [each for each in table.at().files if each.content == "position-deletes"]
    bounds = {_FILE_PATH: named, _POSITION: "0100000000000000"}
    bounded = replace(deletes, kind="ADD", path="data/bounded.parquet", lower_bounds=bounds)
    shutil.copy(folder_of(table) / deletes.path, folder_of(table) / bounded.path)
    table.append([bounded])
    shutil.move(tmp_path / "here", tmp_path / "there")
    at(tmp_path / "there").record_move(rewrites=True)

    there = at(tmp_path / "there").table("shop.t").at().files
    kept = [each.lower_bounds for each in there if each.content == "position-deletes"]
    assert {_POSITION: "0100000000000000"} in kept
    assert not any(_FILE_PATH in each for each in kept if isinstance(each, dict))


def by_static_table(table: Table) -> list[int]:
    from pyiceberg.table import StaticTable

    folder = folder_of(table) / "metadata"
    version = (folder / "version-hint.text").read_text()
    found = StaticTable.from_metadata(str(folder / f"v{version}.metadata.json"))
    return sorted(found.scan().to_arrow()["id"].to_pylist())


def test_deletes_that_cannot_be_written_anew_are_refused_by_name(tmp_path: Path) -> None:
    table = with_deletes(made(tmp_path / "here"))
    named = pa.table({"file_path": ["/nowhere/x.parquet"], "pos": [1]})
    parquet.write_table(named, folder_of(table) / "data/d1.parquet")
    shutil.move(tmp_path / "here", tmp_path / "there")
    lake = at(tmp_path / "there")
    with pytest.raises(InvalidChangeError, match=r"shop\.t.*/nowhere/x\.parquet"):
        lake.record_move(rewrites=True)
    assert lake.inspect_location().verdict == "moved"


def with_whole_urls(root: Path) -> Table:
    """Return a table that names two of its files by whole URLs, one outside of its own folder."""
    table = made(root)
    (root / "landing").mkdir()
    for number, folder in ((4, f"{table.location}/data"), (5, f"file://{root}/landing")):
        body = parquet_of(table, [{"id": number}, {"id": number + 10}])
        url = f"{folder}/{number}.parquet"
        Path(url.removeprefix("file://")).write_bytes(body)
        table.append([file_at(url, len(body))])
    return table


def parquet_of(table: Table, rows: list[dict[str, int]]) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(rows, schema=table.at().schema.to_arrow()), sink)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def file_at(path: str, size: int, content: str = "data") -> FileChange:
    return FileChange(
        path=path, record_count=2, file_size_in_bytes=size, content=content, field_ids=True
    )


def delete_by_url(table: Table, url: str) -> None:
    """Delete the first row of a file, in deletes that are named by a whole URL, too."""
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"file_path": [url], "pos": [0]}), sink)
    body = sink.getvalue().to_pybytes()
    (folder_of(table) / "data/by-url.parquet").write_bytes(body)
    path = f"{table.location}/data/by-url.parquet"
    table.append([file_at(path, len(body), "position-deletes")])


def test_files_by_whole_urls_of_the_old_place_are_named_by_their_new_one(tmp_path: Path) -> None:
    table = with_whole_urls(tmp_path / "0")
    delete_by_url(table, f"file://{tmp_path}/0/landing/5.parquet")
    delete_by_url_here = with_deletes(table)
    assert ids(delete_by_url_here) == [1, 3, 4, 14, 15]
    table.project("iceberg")
    for number in (1, 2):
        shutil.move(tmp_path / str(number - 1), tmp_path / str(number))
        lake = at(tmp_path / str(number))
        with pytest.raises(InvalidChangeError, match=r"shop\.t: its .* name.*--rewrite"):
            lake.record_move()
        lake.record_move(rewrites=True)
        moved = lake.table("shop.t")
        moved.project("iceberg")
        assert ids(moved) == by_static_table(moved) == [1, 3, 4, 14, 15]
        assert verify(handle_of(moved)).is_empty
        assert lake.inspect_location().verdict == "here"
        assert not [each.path for each in moved.at().files if f"/{number - 1}/" in each.path]
    (kept,) = (each.path for each in moved.at().files if "landing" in each.path)
    assert kept == f"file://{tmp_path}/2/landing/5.parquet"


def test_a_file_by_a_whole_url_that_did_not_come_along_is_refused_by_name(tmp_path: Path) -> None:
    with_whole_urls(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    (tmp_path / "there/landing/5.parquet").unlink()
    lake = at(tmp_path / "there")
    before = lake.table("shop.t").state.version
    with pytest.raises(InvalidChangeError, match=r"none at file://.*/there/landing/5\.parquet"):
        lake.record_move(rewrites=True)
    assert at(tmp_path / "there").table("shop.t").state.version == before
    assert lake.inspect_location().verdict == "moved"


def test_files_whose_equality_deletes_would_not_follow_are_refused_by_name(tmp_path: Path) -> None:
    table = with_deletes(with_whole_urls(tmp_path / "here"))
    # As an older lakeledger took them.
    newest = (
        folder_of(table)
        / handle_of(table).log.layout.commit(table.state.version).partition("/t/")[2]
    )
    newest.write_bytes(newest.read_bytes().replace(b'"position-deletes"', b'"equality-deletes"'))
    shutil.move(tmp_path / "here", tmp_path / "there")
    with pytest.raises(InvalidChangeError, match=r"shop\.t: its file .*data/d1\.parquet would not"):
        at(tmp_path / "there").record_move(rewrites=True)


def test_a_kill_at_any_write_of_a_move_by_whole_urls_is_healed_by_asking_again(
    tmp_path: Path,
) -> None:
    table = with_whole_urls(tmp_path / "here")
    delete_by_url(table, f"file://{tmp_path}/here/landing/5.parquet")
    for writes in range(100):
        there = tmp_path / str(writes)
        shutil.copytree(tmp_path / "here", there)
        try:
            mortal = Mortal(LocalStore(there), writes)
            Ledger(LedgerHandle(TableSetting(mortal, {}, author="me"))).record_move(rewrites=True)
        except Died:
            lake = at(there)
            lake.record_move(rewrites=True)
            assert ids(lake.table("shop.t")) == [1, 2, 3, 4, 14, 15]
            assert lake.inspect_location().verdict == "here"
        else:
            assert writes >= 3
            return
    pytest.fail("it never came to an end")


def test_an_alias_is_remembered_and_files_go_on_being_named_by_the_place(tmp_path: Path) -> None:
    real, alias = tmp_path / "real", tmp_path / "alias"
    table = made(real)
    table.project("iceberg")
    # As if another mount led there: a link that cannot be followed back by its text.
    alias.symlink_to(real)
    lake = at(alias)
    assert lake.inspect_location().verdict == "here"
    other = lake.table("shop.t")
    assert other.location == table.location
    other.alter([ADD])
    other.project("iceberg")
    assert ids(other) == [1, 2, 3]
    assert verify(handle_of(at(real).table("shop.t"))).is_empty


def test_another_url_of_the_same_storage_is_an_alias_once_it_is_said(tmp_path: Path) -> None:
    table = made(tmp_path / "here")
    with_deletes(table).project("iceberg")
    lake = Ledger(LedgerHandle(TableSetting(Mounted(tmp_path / "here"), {}, author="me")))
    mounted = lake.table("shop.t")
    with pytest.raises(InvalidChangeError, match="move --alias"):
        mounted.alter([ADD])
    found = lake.inspect_location()
    assert (found.verdict, found.next_step) == ("alias", "lakeledger move --alias")
    with pytest.raises(InvalidChangeError, match="the same storage"):
        lake.record_copy()
    lake.record_alias()
    version = lake.record_alias().version
    assert not handle_of(lake).log.commit_at(version).transactions[0].events
    assert lake.state.aliases == ("file:///mnt/elsewhere",)
    mounted.alter([ADD])
    assert mounted.location == table.location
    again = Ledger(LedgerHandle(TableSetting(Mounted(tmp_path / "here"), {}, author="me")))
    assert again.inspect_location().verdict == "here"
    again.table("shop.t").project("iceberg")
    assert verify(handle_of(at(tmp_path / "here").table("shop.t"))).is_empty
    assert ids(at(tmp_path / "here").table("shop.t")) == [1, 3]


class Mounted(LocalStore):
    """A folder that was mounted elsewhere, which only this store knows."""

    @property
    def url(self) -> str:
        return "file:///mnt/elsewhere"


def test_a_place_where_another_copy_is_is_no_alias(tmp_path: Path) -> None:
    made(tmp_path / "here").project("iceberg")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    with pytest.raises(InvalidChangeError, match="no alias"):
        at(tmp_path / "there").record_alias()


def test_a_copy_has_an_identity_of_its_own_and_leaves_what_lies_outside(tmp_path: Path) -> None:
    made(tmp_path / "here").project("iceberg")
    original = at(tmp_path / "here")
    original.create_table("shop.ext", Schema.of({"id": "INT"}), location=str(tmp_path / "ext"))
    with pytest.raises(InvalidChangeError, match="is no copy"):
        original.record_copy()
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    copy = at(tmp_path / "there")
    done = copy.record_copy(commit_id="c")
    assert copy.record_copy(commit_id="c").version == done.version
    assert copy.ledger_id != original.ledger_id == copy.state.copied_from
    assert at(tmp_path / "there").ledger_id == copy.ledger_id
    assert copy.tables("shop") == ["t"]
    assert original.tables("shop") == ["ext", "t"]
    copy.table("shop.t").alter([ADD])
    assert at(tmp_path / "there").inspect_location().verdict == "here"


def copied_with_a_table_left(folder: Path) -> tuple[Ledger, str]:
    """A copy, its log's newest commits its own, and the id of the table that it left behind."""
    made(folder / "here").project("iceberg")
    original = at(folder / "here")
    columns = Schema.of({"id": "INT"})
    left = original.create_table("shop.ext", columns, location=str(folder / "ext"))
    shutil.copytree(folder / "here", folder / "there")
    copy = at(folder / "there")
    copy.record_copy()
    left.alter([SetOption("k", "the original's")])
    copy.create_table("shop.ext", columns).alter([ADD])
    return copy, left.state.table_id


def in_the_log(lake: Ledger) -> list[str]:
    found = [each for each in lake.entries() if each.table and each.commit.version == 0]
    return [event.table_id for each in found for event in each.transaction.events]


def in_cataloged_tables(lake: Ledger) -> list[str]:
    return [each.table_id for each in CatalogedTables.of(lake.events())]


def in_the_feed(lake: Ledger) -> list[str]:
    feed = feed_of(ReadOptions.of({"path": lake.url, "table": "*", "view": "commits"}))
    return [*feed.latest()["tables"]]


@pytest.mark.parametrize("listed", [in_the_log, in_cataloged_tables, in_the_feed])
def test_what_a_copy_left_with_its_original_is_nowhere_in_the_copy(
    tmp_path: Path, listed: Callable[[Ledger], list[str]]
) -> None:
    copy, left = copied_with_a_table_left(tmp_path)
    own = [each.table_id for each in copy.state.tables.values()]
    assert sorted(listed(copy)) == sorted(own)
    assert left not in own
    assert left in listed(at(tmp_path / "here"))


def test_a_feed_that_began_before_goes_on_without_what_a_copy_left(tmp_path: Path) -> None:
    made(tmp_path / "here").project("iceberg")
    original = at(tmp_path / "here")
    columns = Schema.of({"id": "INT"})
    left = original.create_table("shop.ext", columns, location=str(tmp_path / "ext"))
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    feed = feed_of(
        ReadOptions.of({"path": str(tmp_path / "there"), "table": "*", "view": "commits"})
    )
    before = feed.latest()
    table_id = left.state.table_id
    assert before["tables"][table_id] == 0
    at(tmp_path / "there").record_copy()
    left.alter([SetOption("k", "the original's")])
    after = feed.latest()
    assert after["tables"][table_id] == 0
    assert feed.spans(before, after) == []


def test_where_no_ledger_can_be_read_at_the_old_place_any_more_it_was_moved(
    tmp_path: Path,
) -> None:
    made(tmp_path / "here").project("iceberg")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    assert at(tmp_path / "there").inspect_location().verdict == "copied"
    (tmp_path / "here" / "_ledger" / "ledger.json").write_text("nothing of ours")
    assert at(tmp_path / "there").inspect_location().verdict == "moved"


def test_a_kill_at_any_write_of_a_move_is_healed_by_asking_again(tmp_path: Path) -> None:
    with_deletes(with_deletes(made(tmp_path / "here"), 0)).project("iceberg")
    writes = 0
    while True:
        there = tmp_path / str(writes)
        shutil.copytree(tmp_path / "here", there)
        mortal = Mortal(LocalStore(there), writes)
        try:
            Ledger(LedgerHandle(TableSetting(mortal, {}, author="me"))).record_move(rewrites=True)
            break
        except Died:
            writes += 1
        lake = at(there)
        lake.record_move(rewrites=True)
        table = lake.table("shop.t")
        assert ids(table) == [3]
        assert lake.inspect_location().verdict == "here"
    assert writes >= 4


def test_a_kill_at_any_write_of_a_copy_leaves_one_identity_after_asking_again(
    tmp_path: Path,
) -> None:
    table = made(tmp_path / "here")
    table.project("iceberg")
    at(tmp_path / "here").create_table(
        "shop.ext", Schema.of({"id": "INT"}), location=str(tmp_path / "ext")
    )
    original = at(tmp_path / "here").ledger_id
    for writes in range(100):
        there = tmp_path / str(writes)
        shutil.copytree(tmp_path / "here", there)
        try:
            mortal = Mortal(LocalStore(there), writes)
            Ledger(LedgerHandle(TableSetting(mortal, {}, author="me"))).record_copy(commit_id="c")
        except Died:
            lake = at(there)
            lake.record_copy(commit_id="c")
            assert at(there).ledger_id == lake.ledger_id != original == lake.state.copied_from
            assert lake.tables("shop") == ["t"]
            assert lake.inspect_location().verdict == "here"
        else:
            assert writes >= 1
            return
    pytest.fail("it never came to an end")


def test_a_kill_at_any_write_of_an_alias_is_healed_by_asking_again(tmp_path: Path) -> None:
    made(tmp_path / "here").project("iceberg")
    for writes in range(100):
        there = tmp_path / f"again {writes}"
        shutil.copytree(tmp_path / "here", there)
        at(there).record_move()
        mortal = Mortal(Mounted(there), writes)
        try:
            Ledger(LedgerHandle(TableSetting(mortal, {}, author="me"))).record_alias()
        except Died:
            lake = Ledger(LedgerHandle(TableSetting(Mounted(there), {}, author="me")))
            lake.record_alias()
            assert lake.state.aliases == ("file:///mnt/elsewhere",)
            assert lake.inspect_location().verdict == "here"
        else:
            assert writes >= 1
            return
    pytest.fail("it never came to an end")


def test_two_concurrent_different_statements_do_not_both_succeed(tmp_path: Path) -> None:
    made(tmp_path / "here").project("iceberg")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    one, two = at(tmp_path / "there"), at(tmp_path / "there")
    two.record_copy()
    with pytest.raises(InvalidChangeError, match="is no copy"):
        one.record_copy()


def test_of_two_places_that_are_said_at_once_one_stands() -> None:
    before = EMPTY_CATALOG
    moved = evolve(before, version=0, place="file:///a", placed_version=0)
    event = LedgerMoved("file:///a")
    written = Transaction(asked="", id="1", events=(event,))
    won = Commit(format=3, version=0, time_millis=1, transactions=(written,))
    for request in (
        MoveLedger("file:///b", ""),
        AliasLedger("file:///b", "file:///c", ""),
        CopyLedger("file:///b", "id", "other", ""),
    ):
        intent = CatalogIntent(request)
        intent.decide(before, ())
        with pytest.raises(CommitConflictError, match="moveLedger in catalog version 0"):
            intent.decide(moved, (won,))
    assert CatalogIntent(MoveLedger("file:///a", "")).decide(moved, (won,)) == ()


def test_a_state_that_went_about_comes_back_from_its_record() -> None:
    state = evolve(
        EMPTY_CATALOG,
        version=3,
        place="file:///a",
        placed_version=2,
        aliases=("file:///b",),
        ledger_id="y",
        copied_from="x",
    )
    stream = CatalogStream()
    assert stream.decode_state(stream.encode_state(state)) == state
    assert b"place" not in stream.encode_state(evolve(EMPTY_CATALOG, version=3))


def test_an_imported_copy_is_at_home_wherever_its_original_went(tmp_path: Path) -> None:
    made(tmp_path / "0").project("iceberg")
    shutil.copytree(tmp_path / "0", tmp_path / "1")
    lake = at(tmp_path / "1")
    lake.record_move()
    copy = LocalStore(tmp_path / "copy")
    brought(exported(LocalStore(tmp_path / "1")), copy, as_copy=True)
    assert at(tmp_path / "copy").inspect_location().verdict == "here"
    assert at(tmp_path / "copy").ledger_id != lake.ledger_id
    same = LocalStore(tmp_path / "same")
    brought(exported(LocalStore(tmp_path / "1")), same)
    assert at(tmp_path / "same").inspect_location().verdict == "copied"
    at(tmp_path / "same").table("shop.t").alter([ADD])


def test_a_copy_and_its_original_written_at_once_never_mix(tmp_path: Path) -> None:
    made(tmp_path / "here").project("iceberg")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    at(tmp_path / "there").record_copy()
    barrier = threading.Barrier(2)

    def write(root: str, first: int) -> None:
        table = at(tmp_path / root).table("shop.t")
        barrier.wait()
        for number in range(first, first + 8):
            add_rows(table, f"data/{number}.parquet", [{"id": number}])
            table.project("iceberg")

    threads = [
        threading.Thread(target=write, args=each) for each in (("here", 100), ("there", 200))
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for root, first in (("here", 100), ("there", 200)):
        lake = at(tmp_path / root)
        table = lake.table("shop.t")
        wanted = [1, 2, 3, *range(first, first + 8)]
        assert ids(table) == by_static_table(table) == wanted
        assert verify(handle_of(table)).is_empty
        for log in (handle_of(lake).log, handle_of(table).log):
            looked: Verification[Any, Any] = Verification(
                Subject("it", log, has_files=log is handle_of(table).log)
            )
            assert not [each for each in looked.run() if each.fails]
    # Neither takes the other's commits.
    for source, target in (("here", "there"), ("there", "here")):
        with pytest.raises(ledger.AlreadyExistsError):
            brought(exported(LocalStore(tmp_path / source)), LocalStore(tmp_path / target))


@define
class Found:
    """A table of engines, as it was found."""

    identifier: Identifier
    path: str
    location: str
    log: Any
    live: Any
    state: TableState

    def read_file(self, path: str) -> bytes | None:
        """Engines' files are nothing that is looked at."""
        raise AssertionError(path)


@pytest.mark.parametrize("life", ["iceberg", "paimon"])
def test_manifests_of_engines_tie_a_table_to_the_root_that_they_lie_in(life: str) -> None:
    table = orders(lake_on(memory()))
    state = evolve(builder_of(life=life).freeze(), snapshot=None)
    found = Found(
        table.identifier,
        "shop.db/orders",
        table.location,
        handle_of(table).log,
        handle_of(table).live,
        state,
    )

    (tie,) = location_references_of(found, ["file:/other", "file:/lake"])

    assert (tie.kind, tie.place) == ("manifests", "file:/lake/t")
    assert "its manifests are those of the table at file:/lake/t" in str(tie)
    assert list(location_references_of(found, ["file:/other", "file:/lake/t/deeper"])) == []
