"""A ledger as lines: out, back in, and out again, whatever happens on the way."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AlreadyExistsError,
    DamagedLogError,
    Identifier,
    InvalidInputError,
    Ledger,
    LedgerError,
    NotFoundError,
    Schema,
    SetOption,
    UnsupportedError,
    UpgradeRequiredError,
)
from ledger.history.verifying import Subject, Verification
from ledger.opening.context import TableSetting
from ledger.relocation.exporting import export, read
from ledger.relocation.importing import ImportSummary, import_lines
from ledger.stores import MemoryStore, Store
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter, Mortal
from tests.histories import random_change, start_schema
from tests.lakes import data_file, lake_on, memory, no_time, orders, ticking
from tests.thorough import some


def setting_of(store: Store) -> TableSetting:
    return TableSetting(store, {}, author="", retry_policy=no_time())


def exported(store: Store, *tables: str, version: int | None = None) -> bytes:
    out = io.BytesIO()
    export(setting_of(store), out, [*map(Identifier.parse, tables)], version=version)
    return out.getvalue()


def brought(lines: bytes, store: Store, *, as_copy: bool = False) -> ImportSummary:
    return import_lines(setting_of(store), io.BytesIO(lines), as_copy=as_copy)


def files(store: Store) -> dict[str, bytes]:
    """Return what is truth in a store: roots, logs and what these name."""
    beside = ("/log/", "/changes/", "_ledger/ledger.json")
    return {
        key: store.read(key) or b"" for key in store.keys("") if any(each in key for each in beside)
    }


def live(lake: Ledger, rng: random.Random, steps: int) -> None:
    """Let tables come, change and go."""
    lake.create_database("shop")
    names: list[str] = []
    for step in range(steps):
        what = rng.randrange(10)
        if what < 2 or not names:
            names.append(f"shop.t{step}")
            lake.create_table(names[-1], rng.choice([start_schema(), Schema.of({"id": "INT"})]))
            continue
        name = rng.choice(names)
        table = lake.table(name)
        try:
            match what:
                case 2:
                    lake.drop_table(name)
                    names.remove(name)
                case 3:
                    lake.rename_table(name, f"shop.r{step}")
                    names[names.index(name)] = f"shop.r{step}"
                case 4 | 5:
                    count = rng.choice([1, 3, 1_001])
                    table.append([data_file(f"{step}-{each}.parquet") for each in range(count)])
                case _:
                    table.alter([random_change(rng, table.state.schema)])
        except LedgerError:
            continue


@given(seed=st.integers(0, 2**32), steps=st.integers(0, 25))
@settings(max_examples=12, deadline=None)
def test_out_and_in_and_out_again_is_the_same(seed: int, steps: int) -> None:
    store, other = memory(), memory()
    lake = lake_on(store)
    lake.init()
    live(lake, random.Random(seed), steps)
    lines = exported(store)
    brought(lines, other)
    assert exported(other) == lines
    # A commit that was rejected leaves a list of files that none names.
    assert {
        key for key, _ in files(store).items() ^ files(other).items() if "/changes/" not in key
    } == set()


def shop(store: Store | None = None) -> Store:
    """Return a ledger with three tables, one of them dropped, and a list of files next to a log."""
    store = store or memory()
    lake = lake_on(store)
    table = orders(lake)
    table.append([data_file(f"{each}.parquet") for each in range(1_001)])
    table.append([data_file("one.parquet")])
    for name in ("shop.items", "shop.gone"):
        lake.create_table(name, Schema.of({"id": "INT"})).alter([SetOption("a", "b")])
    lake.drop_table("shop.gone")
    return store


def test_an_export_of_another_format_is_rejected_before_anything_is_written() -> None:
    lines = exported(shop())
    for number, kind in ((2, UnsupportedError), (4, UpgradeRequiredError)):
        other = memory()
        root = b'{\\"format\\":3,', b'{\\"format\\":%d,' % number
        assert lines.count(root[0]) == 1
        with pytest.raises(kind, match=f"has format {number}"):
            brought(lines.replace(*root), other)
        assert files(other) == {}


def test_some_tables_come_and_the_others_are_named_and_not_begun_anew() -> None:
    store, other = shop(), memory()
    lines = exported(store, "shop.items")
    assert brought(lines, other).absent == ("shop.orders",)
    assert lake_on(other).table("shop.items").state.version == 1
    with pytest.raises(DamagedLogError, match="restore the folder from a backup"):
        lake_on(other).table("shop.orders")
    assert exported(other, "shop.items") == lines
    assert brought(exported(store), other).absent == ()
    assert files(other) == files(store)


def test_a_table_up_to_a_version_ends_there_and_a_later_export_goes_on() -> None:
    store, other = shop(), memory()
    brought(exported(store, "shop.orders", version=1), other)
    assert lake_on(other).table("shop.orders").state.version == 1
    brought(exported(store, "shop.orders"), other)
    assert lake_on(other).table("shop.orders").state.version == 2


def test_before_a_hole_a_table_can_be_exported_up_to_a_version() -> None:
    store, other = shop(), memory()
    store.delete("shop.db/orders/_ledger/log/00000000000000000001.json")
    with pytest.raises(DamagedLogError):
        exported(store, "shop.orders")
    brought(exported(store, "shop.orders", version=0), other)
    assert lake_on(other).table("shop.orders").state.version == 0


@pytest.mark.parametrize(("tables", "version"), [((), 1), (("shop.orders", "shop.items"), 1)])
def test_a_version_is_one_tables(tables: tuple[str, ...], version: int) -> None:
    with pytest.raises(InvalidInputError, match="one table's"):
        exported(shop(), *tables, version=version)


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(NotFoundError, match=r"did you mean shop\.orders"):
        exported(shop(), "shop.order")
    with pytest.raises(NotFoundError, match="has 0 to 2"):
        exported(shop(), "shop.orders", version=3)
    with pytest.raises(NotFoundError, match="there is no ledger"):
        exported(memory())


def test_a_copy_has_an_identity_of_its_own_and_goes_its_own_way() -> None:
    store, copy = shop(), memory()
    lines = exported(store)
    done = brought(lines, copy, as_copy=True)
    assert done.copied_from == lake_on(store).ledger_id != done.ledger_id
    assert lake_on(copy).ledger_id == done.ledger_id
    lake_on(copy).table("shop.orders").alter([SetOption("of", "the copy")])
    lake_on(store).table("shop.orders").alter([SetOption("of", "the original")])
    with pytest.raises(AlreadyExistsError):
        brought(exported(store), copy, as_copy=True)
    with pytest.raises(AlreadyExistsError, match="holds the ledger"):
        brought(lines, copy)
    assert b"the original" not in exported(copy)


def test_another_ledger_is_never_written_into() -> None:
    other = shop()
    before = files(other)
    with pytest.raises(AlreadyExistsError):
        brought(exported(shop()), other)
    assert files(other) == before


def test_a_kill_at_any_write_leaves_no_ledger_or_all_of_it_and_asking_again_goes_on() -> None:
    store = shop()
    lines, right = exported(store), files(store)
    for writes in range(100):
        other = memory()
        try:
            brought(lines, Mortal(other, writes))
        except Died:
            if lake_on(other).ledger_id is not None:
                assert files(other) == right
            brought(lines, other)
        else:
            assert writes > 10
            break
        assert files(other) == right
    else:
        raise AssertionError("it never came through")


def test_an_export_that_was_killed_at_any_write_is_no_ledger_and_its_place_takes_a_whole_one() -> (
    None
):
    store = shop()
    lines, right = exported(store), files(store)
    ends = [0, *(at + 1 for at, byte in enumerate(lines) if byte == ord("\n"))]
    for cut in (*ends[:-1], *(end - 1 for end in ends[1:])):
        other = memory()
        with pytest.raises(LedgerError):
            brought(lines[:cut], other)
        assert other.read("_ledger/ledger.json") is None
        brought(lines, other)
        assert files(other) == right


@pytest.mark.parametrize("seed", some(range(30), 10))
def test_changed_lines_are_refused_and_leave_no_ledger(seed: int) -> None:
    rng = random.Random(seed)
    lines = exported(shop()).splitlines(keepends=True)
    at = rng.randrange(len(lines))
    match seed % 5:
        case 0:
            del lines[at:]
        case 1:
            del lines[at]
        case 2:
            lines.insert(at, lines[rng.randrange(len(lines))])
        case 3:
            body = bytearray(lines[at])
            place = rng.randrange(len(body) - 1)
            body[place] = body[place] ^ 1 or 1
            lines[at] = bytes(body)
        case _:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    changed = b"".join(lines)
    if changed == exported(shop()):
        return
    other_store = memory()
    with pytest.raises(LedgerError):
        brought(changed, other_store)
    assert other_store.read("_ledger/ledger.json") is None


def test_a_file_that_leads_elsewhere_is_refused() -> None:
    lines = exported(shop()).splitlines(keepends=True)
    for path in ("../../x", "log/00000000000000000009.json", "changes/../../../x", "/etc/x"):
        said = {"lakeledger": "file", "path": path, "sha256": "", "body": ""}
        body = b"evil"
        said["body"] = base64.b64encode(body).decode()
        said["sha256"] = hashlib.sha256(body).hexdigest()
        other = memory()
        with pytest.raises(LedgerError):
            brought(b"".join([*lines[:2], json.dumps(said).encode() + b"\n", *lines[2:]]), other)
        assert not [key for key in other.keys("") if "x" in key.rsplit("/", 1)[-1][:1]]


@pytest.mark.parametrize("cut", [b'{"lakeledger":"commit"', b'{"lakeledger":"a\xff"}\n'])
def test_a_line_that_ends_too_soon_or_is_no_text_is_reported_with_its_place(cut: bytes) -> None:
    with pytest.raises(DamagedLogError, match=r"line 7 is no line of an export"):
        read(cut, "line 7")


def test_lines_of_a_newer_format_are_refused_with_upgrade() -> None:
    lines = exported(shop()).replace(b'"format":1', b'"format":9', 1)
    with pytest.raises(UpgradeRequiredError, match="upgrade lakeledger"):
        brought(lines, memory())


def test_a_line_of_a_newer_format_that_nobody_here_can_read_is_refused_with_upgrade_too() -> None:
    line = b'{"lakeledger":"bundle","format":9,"holds":[]}\n'

    with pytest.raises(UpgradeRequiredError, match="line 3 has format 9"):
        read(line, "line 3")


def test_an_external_table_is_named_and_not_carried() -> None:
    store = memory()
    lake = lake_on(store)
    lake.create_database("shop")
    elsewhere = memory()
    lake.create_table("shop.far", Schema.of({"id": "INT"}), location=elsewhere.url)
    with pytest.raises(InvalidInputError, match=r"shop\.far lies outside"):
        brought(exported(store), memory())


def test_a_damaged_log_gives_no_export() -> None:
    store = shop()
    key = "shop.db/orders/_ledger/log/00000000000000000001.json"
    store.replace(key, (store.read(key) or b"")[:-9] + b"\n")
    out = io.BytesIO()
    with pytest.raises(DamagedLogError):
        export(setting_of(store), out)
    with pytest.raises(LedgerError):
        brought(out.getvalue(), memory())


def test_a_table_that_its_creator_had_not_begun_yet_is_begun_in_the_other_place_too() -> None:
    store, other = memory(), memory()
    lake_on(store).create_database("shop")
    with pytest.raises(Died):
        lake_on(DiesAfter(store, 1)).create_table("shop.t", Schema.of({"id": "INT"}))
    came = brought(exported(store), other)
    assert came.absent == ()
    for each in (other, store):
        assert lake_on(each).table("shop.t").state.version == 0
    assert files(other) == files(store)


def test_a_log_that_is_lost_is_not_exported_as_one_that_has_not_begun() -> None:
    store = shop()
    for key in list(store.keys("shop.db/items/_ledger")):
        store.delete(key)
    with pytest.raises(DamagedLogError, match="restore it from a backup"):
        exported(store)
    brought(exported(store, "shop.orders"), memory())
    lake_on(store).drop_table("shop.items")
    brought(exported(store), memory())


def test_the_cut_is_consistent_alongside_writers() -> None:
    store = MemoryStore("cut-beside-writers")
    lake = lake_on(store)
    lake.create_database("shop")
    done = threading.Event()

    def write() -> None:
        mine = lake_on(store, ticking())
        number = 0
        while not done.is_set() and number < 400:
            number += 1
            table = mine.create_table(f"shop.t{number}", Schema.of({"id": "INT"}))
            table.alter([SetOption("k", str(number))])
            if number % 3 == 0:
                mine.drop_table(f"shop.t{number}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            lines, other = exported(store), memory()
            brought(lines, other)
            there = lake_on(other)
            for name in there.tables("shop"):
                try:
                    table = there.table(f"shop.{name}")
                except NotFoundError:
                    # A drop that was under way: looking finished it.
                    continue
                looked: Verification[Any, Any] = Verification(
                    Subject(name, handle_of(table).log, has_files=True)
                )
                assert not [each for each in looked.run() if each.fails]
    finally:
        done.set()
        writer.join()
