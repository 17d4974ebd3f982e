"""Names, paths and links that lead out of the ledger's folder: rejected, or kept as they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import ledger
from ledger import AddColumn, Identifier, LedgerError, Schema, SetOption, Table
from ledger.stores import LocalStore
from tests.lakes import data_file, lake_on, no_time, orders

SECRET = b"not yours"
ESCAPING = (
    *("..", "../x", "a/../../x", "/etc/passwd", "a/b", "a\\..\\b", "a\0b", "a\nb", ".", "", " "),
    *("\ud800", "x" * 300, "a\x7f", "\u202e", "_ledger", ".lock", ".tmp-1", "$branch", "a\tb", "~"),
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder next to the ledger, which nothing may touch."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(SECRET)
    return folder


def everything_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def attempts(lake: ledger.Ledger, table: Table, name: str) -> list[Callable[[], object]]:
    schema = Schema.of({"id": "INT"})
    return [
        lambda: lake.create_database(name),
        lambda: lake.create_table(Identifier("shop", name), schema),
        lambda: lake.create_table(Identifier(name, "t"), schema),
        lambda: lake.rename_table("shop.orders", Identifier("shop", name)),
        lambda: table.create_tag(name),
        lambda: table.alter([AddColumn((name,), "INT")]),
        lambda: table.alter([SetOption("k", name)], commit_id=name or "x", author=name),
        lambda: table.append([data_file(name)]),
        lambda: table.at(tag=name),
    ]


@pytest.mark.parametrize("name", ESCAPING, ids=ascii)
def test_no_name_reaches_out_of_the_ledger(name: str, tmp_path: Path, outside: Path) -> None:
    root = tmp_path / "root"
    lake = lake_on(LocalStore(root))
    table = orders(lake)
    table.append([data_file("a.parquet")])
    for number in range(len(attempts(lake, table, name))):
        with suppress(LedgerError):
            attempts(lake, table, name)[number]()
    names = {path.name for path in tmp_path.iterdir()}

    assert names == {"root", "outside"}
    assert everything_below(outside) == {"secret": SECRET}
    again = ledger.open(str(root))
    for database in again.databases():
        for found in again.tables(database):
            state = again.table(Identifier(database, found)).state
            assert state.version >= 0


@pytest.mark.parametrize("name", ESCAPING, ids=ascii)
def test_no_projected_name_reaches_out_of_the_table(name: str, tmp_path: Path) -> None:
    """Tags and paths that the ledger accepts are in Paimon's files, or those reject them."""
    root = tmp_path / "root"
    table = orders(lake_on(LocalStore(root)))
    table.append([data_file("a.parquet")])
    for attempt in (
        lambda: table.create_tag(name),
        lambda: table.append([data_file(f"{name}.parquet", day=None)]),
        lambda: table.project("paimon"),
    ):
        with suppress(LedgerError):
            attempt()
    assert {path.name for path in tmp_path.iterdir()} == {"root"}
    assert {path.name for path in root.iterdir()} <= {"_ledger", "shop.db"}
    assert {path.name for path in (root / "shop.db").iterdir()} == {"orders"}


def test_a_link_to_a_folder_outside_is_not_listed(tmp_path: Path, outside: Path) -> None:
    root = tmp_path / "root"
    store = LocalStore(root)
    store.create("t/log/0", b"1")
    (root / "t" / "link").symlink_to(outside)
    (root / "t" / "loop").symlink_to(root)

    assert list(store.keys("")) == ["t/log/0"]


def test_a_commit_never_goes_through_a_link_of_its_name(tmp_path: Path, outside: Path) -> None:
    """Somebody laid a link where the next commit goes; its target stays as it is."""
    root = tmp_path / "root"
    table = orders(lake_on(LocalStore(root), retry_policy=no_time()))
    log = root / "shop.db" / "orders" / "_ledger" / "log"
    for target in (outside / "secret", outside / "missing", outside):
        link = log / f"{1:020d}.json"
        link.symlink_to(target)
        with pytest.raises((LedgerError, OSError)):
            table.alter([SetOption("k", "v")])
        link.unlink()
        assert everything_below(outside) == {"secret": SECRET}
    assert lake_on(LocalStore(root)).table("shop.orders").alter([SetOption("k", "w")]).version == 1


def test_a_cache_never_goes_through_a_link_of_its_name(tmp_path: Path, outside: Path) -> None:
    store = LocalStore(tmp_path / "root")
    store.create("c/a", b"1")
    (tmp_path / "root" / "c" / "hint").symlink_to(outside / "secret")
    store.replace("c/hint", b"new")

    assert store.read("c/hint") == b"new"
    assert everything_below(outside) == {"secret": SECRET}
