"""Tables that others made come into a ledger that can forget, and are projected as ever."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from ledger import Ledger
from ledger.stores import Durability, LocalStore
from tests.erasing.column_lives import holding_deep
from tests.erasing.lives import findings, holding
from tests.lakes import lake_on
from tests.projections.delta.importing.test_following import (
    ID,
    PROTOCOL,
    add,
    info,
    metadata,
    now,
    remove,
    write,
)
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.paimon.importing.test_paimon_import import DATA

ANN, WHY = "ann-0123456789abcdef", "asked by bob-0123456789abcdef"


def erasable(folder: Path) -> Ledger:
    lake = lake_on(LocalStore(folder, durable=Durability.NONE), clock=now)
    lake.init(erasable=True)
    return lake


def operations(folder: Path) -> list[Any]:
    logs = sorted((folder / "_delta_log").glob("*.json"))
    lines = (json.loads(line) for log in logs for line in log.read_text().splitlines())
    return [each["commitInfo"]["operation"] for each in lines if "commitInfo" in each]


def test_a_table_from_delta_says_what_was_done_and_forgets_who_did_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write(source, 0, info(10, userName=ANN), PROTOCOL, metadata(ID), add("a"), add("b"))
    write(source, 1, info(20, operation="DELETE", userMetadata=WHY), remove("a"))
    lake = erasable(tmp_path / "lake")
    lake.import_table("a.b", str(source), format_name="delta")
    table = lake.table("a.b")
    table.project("delta")
    assert operations(tmp_path / "lake" / table.path) == ["WRITE", "DELETE"]
    assert ANN in [each.transaction.author for each in table.entries()]

    store = lake._setting.store
    for text in (ANN, WHY):
        assert all(key.startswith("_ledger/personal/") for key in holding(store, text))
        assert lake.erase(text=text).standing == ()
        assert holding(store, text) == []
    table.project("delta")
    write(source, 2, info(30, userName=ANN), add("c"))
    lake.import_table("a.b", str(source), format_name="delta")
    table.project("delta")
    assert operations(tmp_path / "lake" / table.path) == ["WRITE", "DELETE", "WRITE"]
    assert [each.path.rpartition("/")[2] for each in lake.table("a.b").at().files] == ["b", "c"]
    assert findings(lake, store) == []


def test_a_table_from_iceberg_is_followed_and_projected_and_forgets_who_brought_it(
    tmp_path: Path,
) -> None:
    theirs = created(tmp_path / "source")
    appended(theirs, 0, name=["x"])
    came_and_is_forgotten(tmp_path, "iceberg", lambda: theirs.metadata_location)
    appended(theirs, 1, name=["y"])
    follows(tmp_path, "iceberg", theirs.metadata_location)


@pytest.mark.parametrize("source", sorted(DATA.glob("pypaimon_wh/ledger.db/*"))[:1], ids=str)
def test_a_table_from_paimon_is_projected_and_forgets_who_brought_it(
    source: Path, tmp_path: Path
) -> None:
    came_and_is_forgotten(tmp_path, "paimon", lambda: str(source))
    follows(tmp_path, "paimon", str(source))


def came_and_is_forgotten(folder: Path, kind: str, source: Callable[[], str]) -> None:
    lake = Ledger(evolve(erasable(folder / "lake")._setting, author=ANN))
    lake.import_table("a.b", source(), format_name=kind)
    lake.table("a.b").project(kind)
    store = lake._setting.store
    assert all(key.startswith("_ledger/personal/") for key in holding(store, ANN))
    assert lake.erase(author=ANN).values > 0
    assert holding(store, ANN) == []
    assert findings(lake, store) == []


def follows(folder: Path, kind: str, source: str) -> None:
    lake = lake_on(LocalStore(folder / "lake", durable=Durability.NONE), clock=now)
    lake.import_table("a.b", source, format_name=kind)
    lake.table("a.b").project(kind)
    assert lake.table("a.b").state.keeps_outside
    assert findings(lake, lake._setting.store) == []


KEPT = "kind-0123456789abcdef"
MAIL = {"name": "mail", "type": "string", "nullable": True, "metadata": {}}
KIND = {"name": "kind", "type": "string", "nullable": True, "metadata": {}}


def of(path: str, mail: str, kind: str) -> dict[str, Any]:
    stats = {"numRecords": 2, "minValues": {"mail": mail}, "maxValues": {"mail": mail}}
    return add(path, partitionValues={"kind": kind}, stats=json.dumps(stats))


def test_columns_that_a_delta_table_calls_personal_are_kept_outside_of_lines(
    tmp_path: Path,
) -> None:
    source = tmp_path / "source"
    marked = metadata(
        ID, MAIL, KIND, partitionColumns=["kind"], configuration={"ledger.personal": "mail, kind"}
    )
    many = (of(str(number), WHY, KEPT) for number in range(1_001))
    write(source, 0, info(10), PROTOCOL, marked, of("a", ANN, KEPT), of("b", ANN, "other"))
    write(source, 1, info(20), remove("a"), of("c", ANN, KEPT))
    lake = erasable(tmp_path / "lake")
    lake.import_table("a.b", str(source), format_name="delta")
    write(source, 2, info(30), remove("b"), *many)
    lake.import_table("a.b", str(source), format_name="delta")
    table, store = lake.table("a.b"), lake._setting.store
    assert {each.partition for each in table.at().files} == {(KEPT,)}
    for text in (KEPT, ANN[:14], WHY[:14]):
        found = holding_deep(store, text)
        assert found
        assert all("/personal/columns/" in key for key in found)
    table.project("delta")

    assert lake.erase(table="a.b", column="kind", value=KEPT).unrendered == ()
    assert holding_deep(store, KEPT) == []
    assert [each.file.path for each in table.at().plan("kind = 'other'").files]
    write(source, 3, info(40), remove("c"), of("d", ANN, "other"))
    lake.import_table("a.b", str(source), format_name="delta")
    assert table.at().totals.file_count == 1_002
    assert findings(lake, store) == []


def test_columns_that_an_iceberg_table_calls_personal_are_kept_outside_when_it_is_promoted(
    tmp_path: Path,
) -> None:
    theirs = created(tmp_path / "source")
    with theirs.transaction() as change:
        change.set_properties({"ledger.personal": "name"})
    for number in range(2):
        appended(theirs, number, name=[f"{KEPT[:-1]}{number}"])
    lake = erasable(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    store = lake._setting.store
    lake.promote("a.b")
    table = lake.table("a.b")
    table.project("iceberg")
    told = [(each.lower_bounds or {}).get(2) for each in table.at().files]
    assert sorted(bytes.fromhex(str(each)).decode()[:8] for each in told) == [KEPT[:8]] * 2
    assert all("/personal/columns/" in key for key in holding_deep(store, KEPT[:14]))

    assert lake.erase(table="a.b", column="name").values == 2
    assert holding_deep(store, KEPT[:14]) == []
    assert findings(lake, store) == []
