"""Locations of tables, the right to begin a log there, and errors when one is gone."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import ledger
from ledger import (
    DamagedLogError,
    FileChange,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    NotFoundError,
    Schema,
    SetOption,
    StoreError,
    UnsupportedError,
)
from ledger.cli import main
from ledger.opening.context import TableSetting
from ledger.stores import open_store
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, memory

_SCHEMA = Schema.of({"id": "BIGINT"}, options={"ledger.formats": "iceberg"})


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    lake = ledger.open(str(tmp_path / "lake"), author="me")
    lake.create_database("shop")
    lake.create_table("shop.orders", _SCHEMA)
    lake.create_table("shop.ext", _SCHEMA, location=str(tmp_path / "ext"))
    return lake


@pytest.mark.parametrize(
    "place",
    [
        "lake",
        "lake/shop.db/orders",
        "lake/shop.db/orders/deeper",
        "lake/_ledger/log",
        "lake/anywhere",
        "LAKE",
        ".",
        "ext",
        "ext/deeper",
        "EXT",
        "link",
        "link/shop.db/orders",
        "to-ext/deeper",
        "other",
        "other/shop.db/orders",
    ],
)
@pytest.mark.parametrize("spell", ["{}", "file://{}", "{}/"])
def test_a_place_that_is_taken_is_refused_before_the_catalog_knows(
    lake: Ledger, tmp_path: Path, place: str, spell: str
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    (tmp_path / "to-ext").symlink_to(tmp_path / "ext")
    other = ledger.open(str(tmp_path / "other"))
    other.create_database("shop")
    other.create_table("shop.orders", _SCHEMA)
    version = lake.state.version
    path = str(tmp_path if place == "." else tmp_path / place)

    with pytest.raises(InvalidInputError, match="choose another"):
        lake.create_table("shop.new", _SCHEMA, location=spell.format(path))
    assert lake.state.version == version
    assert lake.tables("shop") == ["ext", "orders"]


def test_a_place_that_cannot_be_written_to_is_refused_before_the_catalog_knows(
    lake: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    version = lake.state.version
    for place in (tmp_path / "file", tmp_path / "file/t", Path("/proc/no-such-place/t")):
        with pytest.raises(StoreError, match="Nothing was written"):
            lake.create_table("shop.new", _SCHEMA, location=str(place))
    assert lake.state.version == version


def test_a_free_place_is_taken_and_left_as_it_was(lake: Ledger, tmp_path: Path) -> None:
    table = lake.create_table("shop.new", _SCHEMA, location=f"file://{tmp_path}/new")
    assert table.state.version == 0
    assert [each.name for each in (tmp_path / "new").rglob("*") if each.is_file()] == [
        f"{0:020d}.json"
    ]


def _forged(lake: Ledger, path: str, name: str = "ext") -> None:
    """Let the catalog say that a table is elsewhere."""
    folder = Path(lake.url.removeprefix("file://")) / "_ledger/log"
    for each in folder.glob("*.json"):
        commit = json.loads(each.read_text())
        for event in (event for one in commit["transactions"] for event in one["events"]):
            if event["type"] == "createTable" and name in event["identifier"].values():
                event["path"] = path
                each.write_text(json.dumps(commit, separators=(",", ":")) + "\n")
                return
    raise AssertionError("no such table")


def _last_first(lake: Ledger, tmp_path: Path, path: str) -> Ledger:
    """Return a ledger whose last commit creates a table at a forged path."""
    lake.create_table("shop.last", _SCHEMA, location=str(tmp_path / "honest"))
    _forged(lake, path, "last")
    return ledger.open(lake.url, author="me")


@pytest.mark.parametrize("spell", ["{}", "file://{}"])
def test_opening_an_untrusted_ledger_writes_and_deletes_nothing_outside(
    lake: Ledger, tmp_path: Path, spell: str
) -> None:
    victim = tmp_path / "victim"
    (victim / "_ledger/log").mkdir(parents=True)
    (victim / "_ledger/log/.tmp-0123456789abcdef").write_bytes(b"old")
    (victim / "mine").write_bytes(b"mine")
    before = sorted(victim.rglob("*"))
    os.utime(victim / "_ledger/log/.tmp-0123456789abcdef", (0, 0))
    forged = _last_first(lake, tmp_path, spell.format(victim))
    # Another process keeps no record of a creation that did not happen.
    shutil.rmtree(tmp_path / "lake/_ledger/tables")

    with pytest.raises(DamagedLogError, match="only the call that creates a table writes one"):
        forged.table("shop.last")
    for words in (
        ["show"],
        ["show", "shop.last"],
        ["verify"],
        ["verify", "--repair"],
        ["maintain"],
    ):
        main([*words, "--ledger", lake.url])
    assert sorted(victim.rglob("*")) == before
    forged.drop_table("shop.last")
    assert forged.tables("shop") == ["ext", "orders"]
    assert sorted(victim.rglob("*")) == before


def test_the_creators_own_call_asked_again_begins_an_external_log(tmp_path: Path) -> None:
    store = memory()
    lake_on(store).create_database("shop")

    def create(lake: Ledger) -> object:
        return lake.create_table("shop.t", _SCHEMA, location=str(tmp_path / "t"), commit_id="c")

    create(lake_on(store, allowed=[str(tmp_path)]))
    # As if its creator had died before the table's own log was begun.
    shutil.rmtree(tmp_path / "t")
    for each in list(store.keys("_ledger/tables")):
        store.delete(each)
    with pytest.raises(DamagedLogError, match="same commit id"):
        lake_on(store, allowed=[str(tmp_path)]).table("shop.t")
    create(lake_on(store, allowed=[str(tmp_path)]))
    assert lake_on(store, allowed=[str(tmp_path)]).table("shop.t").state.version == 0


def test_a_creation_that_died_half_way_is_finished_by_the_next_opener() -> None:
    store = memory()
    lake_on(store).create_database("shop")
    with pytest.raises(Died):
        lake_on(DiesAfter(store, 1)).create_table("shop.t", _SCHEMA)
    assert lake_on(store).table("shop.t").state.version == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda lake: lake.table("shop.orders"),
        lambda lake: lake.table("shop.ext"),
        lambda lake: lake.table("shop.orders").alter([SetOption("k", "v")]),
    ],
)
def test_a_lost_log_is_reported_and_does_not_begin_anew(
    lake: Ledger, tmp_path: Path, ask: Callable[[Ledger], object]
) -> None:
    for each in ("lake/shop.db/orders", "ext"):
        shutil.rmtree(tmp_path / each)
    with pytest.raises(DamagedLogError, match="is missing: restore the folder from a backup"):
        ask(ledger.open(lake.url))
    assert not (tmp_path / "ext").exists()
    assert not (tmp_path / "lake/shop.db/orders").exists()
    again = ledger.open(lake.url)
    for name in ("shop.orders", "shop.ext"):
        again.drop_table(name)
    assert again.tables("shop") == []
    with pytest.raises(NotFoundError):
        again.table("shop.orders")


def test_a_lost_root_file_is_reported_and_never_made_anew(
    lake: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "lake/_ledger/ledger.json"
    kept = root.read_bytes()
    root.unlink()
    without = ledger.open(lake.url)
    for ask in (without.init, lambda: without.create_database("more")):
        with pytest.raises(DamagedLogError, match="ledger.json is missing"):
            ask()
    for words in (["init"], ["show"], ["log", "shop.orders"]):
        assert main([*words, "--ledger", lake.url]) == 6
    said = capsys.readouterr().err
    assert "Restore the file from a backup" in said
    assert "begin one with" not in said
    assert not root.exists()
    root.write_bytes(kept)
    assert ledger.open(lake.url).create_database("more").version > 0


def test_what_may_be_read_is_the_ledgers_own_kind_of_storage_and_what_was_allowed(
    lake: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table("shop.orders")
    for place in ("/elsewhere/a", "file:///elsewhere/a", f"{table.location}/a"):
        assert handle_of(table).may_read_from(place)
    outside = "http://host/data/a"
    for place in (outside, "s3://b/a", "memory://m/a", "simplecache::file:///a"):
        assert not handle_of(table).may_read_from(place)
    named = ledger.open(lake.url, allowed_locations=["http://host/data", "s3a://b"])
    assert handle_of(named.table("shop.orders")).may_read_from(outside)
    assert handle_of(named.table("shop.orders")).may_read_from("s3://b/a")
    assert not handle_of(named.table("shop.orders")).may_read_from("http://host/database/a")
    assert not handle_of(named.table("shop.orders")).may_read_from("http://host.evil/data/a")
    assert not handle_of(named.table("shop.orders")).may_read_from(
        "simplecache::http://host/data/a"
    )
    monkeypatch.setenv("LAKELEDGER_ALLOWED_LOCATIONS", "s3://c; http://host/data")
    assert handle_of(ledger.open(lake.url).table("shop.orders")).may_read_from(outside)
    with pytest.raises(InvalidInputError, match="is not several texts"):
        ledger.open(lake.url, allowed_locations="s3://c")
    with pytest.raises(InvalidInputError, match="relative"):
        ledger.open(lake.url, allowed_locations=["data"])


def test_a_scan_contacts_no_host_that_the_log_alone_names(lake: Ledger) -> None:
    pytest.importorskip("pyiceberg")
    table = lake.table("shop.orders")
    table.append([FileChange(path="http://127.0.0.1:9/a", record_count=1, file_size_in_bytes=9)])
    with pytest.raises(UnsupportedError, match="allowed_locations"):
        table.at().to_arrow()


def test_two_external_tables_of_racing_creators_do_not_share_a_place(tmp_path: Path) -> None:
    store = memory()
    lake_on(store).create_database("shop")
    lake_on(store, allowed=[str(tmp_path)]).create_table(
        "shop.a", _SCHEMA, location=str(tmp_path / "t")
    )
    with pytest.raises(InvalidChangeError, match=r"meets the folder of table shop\.a"):
        lake_on(store, allowed=[str(tmp_path)]).create_table(
            "shop.b", _SCHEMA, location=f"file://{tmp_path}/t/u"
        )
    assert open_store(str(tmp_path / "t")).exists(f"_ledger/log/{0:020d}.json")


def test_a_table_on_another_service_than_its_ledger_has_to_be_allowed(tmp_path: Path) -> None:
    store, location = memory(), str(tmp_path / "t")
    lake_on(store).create_database("shop")
    with pytest.raises(UnsupportedError, match="allowed_locations"):
        lake_on(store).create_table("shop.a", _SCHEMA, location=location)
    lake_on(store, allowed=[location]).create_table("shop.a", _SCHEMA, location=location)
    with pytest.raises(UnsupportedError, match="allowed_locations"):
        lake_on(store).table("shop.a")
    assert lake_on(store, allowed=[location]).table("shop.a").state.version == 0


def test_a_table_on_another_service_does_not_get_the_ledgers_credentials() -> None:
    setting = TableSetting(store=memory(), storage_options={"key": "secret"}, author="me")

    assert setting.options_for("memory://elsewhere/t") == {"key": "secret"}
    for far in ("s3://bucket/t", "file:///lake/t", "/lake/t"):
        assert setting.options_for(far) == {}
