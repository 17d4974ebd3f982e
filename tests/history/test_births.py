from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ledger import Identifier, Ledger, Schema, Table
from ledger.history.verifying import Finding, Subject, Verification
from ledger.history.verifying.surroundings import (
    CatalogedTable,
    CatalogedTables,
    catalog_contradictions,
)
from ledger.stores import Durability, LocalStore
from ledger.table_handle import TableHandle, handle_of
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, orders


def _lake(folder: Path) -> Ledger:
    return lake_on(LocalStore(folder, durable=Durability.NONE))


def _findings(lake: Ledger, table_of_log: CatalogedTable) -> list[Finding]:
    table = Table(TableHandle(table_of_log.identifier, table_of_log.path, handle_of(lake).setting))
    subject: Subject[Any, Any] = Subject(table_of_log.name, handle_of(table).log, has_files=True)
    verification: Verification[Any, Any] = Verification(subject)
    found = list(verification.run())
    return [*found, *catalog_contradictions(table_of_log, subject, verification)]


def _cataloged_tables(lake: Ledger) -> CatalogedTables:
    return CatalogedTables.of(lake.events())


def test_every_table_that_ever_was_is_known_by_its_newest_name(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    orders(lake)
    lake.rename_table("shop.orders", "shop.sales")
    orders_again = lake.create_table("shop.orders", Schema.of({"id": "INT"}))
    lake.drop_table("shop.orders")

    tables = _cataloged_tables(lake)

    assert [each.name for each in tables] == ["shop.sales", "shop.orders (dropped)"]
    assert tables.named(Identifier("shop", "orders")) is None
    assert [_findings(lake, each) for each in tables] == [[], []]
    assert handle_of(orders_again).path in {each.path for each in tables}


def test_a_table_without_its_stream_is_found(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    orders(lake)
    shutil.rmtree(tmp_path / "shop.db" / "orders")

    (found,) = _findings(lake, *_cataloged_tables(lake))

    assert (found.kind, found.version) == ("damage", 0)
    assert "no stream" in found.what


def test_a_stream_of_another_table_is_found(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    orders(lake)
    lake.create_table("shop.other", Schema.of({"id": "INT"}))
    shutil.rmtree(tmp_path / "shop.db" / "orders")
    shutil.copytree(tmp_path / "shop.db" / "other", tmp_path / "shop.db" / "orders")

    first, other = _cataloged_tables(lake)

    (found,) = _findings(lake, first)
    assert (found.kind, found.version) == ("damage", 0)
    assert _findings(lake, other) == []


def test_a_drop_left_half_done_is_reported_and_is_no_failure(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    table = orders(lake)
    store = DiesAfter(handle_of(lake).log.store, 1)
    with pytest.raises(Died):
        lake_on(store).drop_table("shop.orders")

    (found,) = _findings(lake, *_cataloged_tables(lake))

    assert table.state.dropped
    assert (found.kind, found.fails) == ("unfinished", False)


def test_a_dropped_table_whose_seal_is_gone_is_found(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    table = orders(lake)
    lake.drop_table("shop.orders")
    (tmp_path / handle_of(table).log.layout.commit(1)).unlink()

    (found,) = _findings(lake, *_cataloged_tables(lake))

    assert (found.kind, found.version) == ("damage", 1)
