"""Tables that others made come into a ledger that can forget, and are projected as ever."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from pyiceberg.types import IntegerType, LongType

import ledger
from ledger import (
    FileChange,
    InvalidChangeError,
    Ledger,
    RenameColumn,
    Schema,
    SetOption,
    UnsupportedError,
)
from ledger.cli import exits, main
from ledger.ledger_handle import LedgerHandle
from ledger.stores import Durability, LocalStore
from ledger.table_handle import handle_of
from tests.erasing.column_lives import holding_deep
from tests.erasing.lives import findings, holding
from tests.lakes import lake_on
from tests.projections.delta.importing.test_following import (
    ID,
    PROTOCOL,
    add,
    info,
    metadata,
    remove,
    write,
)
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.importing.what_came import now
from tests.projections.paimon.importing.test_paimon_import import DATA
from tests.projections.source.reading_all import rows_of

ANN, WHY = "ann-0123456789abcdef", "asked by bob-0123456789abcdef"


def erasable(folder: Path) -> Ledger:
    lake = lake_on(LocalStore(folder, durable=Durability.NONE), clock=now)
    lake.init(erasable=True)
    return lake


def operations(folder: Path) -> list[Any]:
    logs = sorted((folder / "_delta_log").glob("*.json"))
    lines = (json.loads(line) for log in logs for line in log.read_text().splitlines())
    return [each["commitInfo"]["operation"] for each in lines if "commitInfo" in each]


def test_a_table_from_delta_says_what_was_done_and_forgets_the_author(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write(source, 0, info(10, userName=ANN), PROTOCOL, metadata(ID), add("a"), add("b"))
    write(source, 1, info(20, operation="DELETE", userMetadata=WHY), remove("a"))
    lake = erasable(tmp_path / "lake")
    lake.import_table("a.b", str(source), format_name="delta")
    table = lake.table("a.b")
    table.project("delta")
    assert operations(tmp_path / "lake" / handle_of(table).path) == ["WRITE", "DELETE"]
    assert ANN in [each.transaction.author for each in table.entries()]

    store = handle_of(lake).setting.store
    for text in (ANN, WHY):
        assert all(key.startswith("_ledger/personal/") for key in holding(store, text))
        assert lake.erase(text=text).remaining == ()
        assert holding(store, text) == []
    table.project("delta")
    write(source, 2, info(30, userName=ANN), add("c"))
    lake.import_table("a.b", str(source), format_name="delta")
    table.project("delta")
    assert operations(tmp_path / "lake" / handle_of(table).path) == ["WRITE", "DELETE", "WRITE"]
    assert [each.path.rpartition("/")[2] for each in lake.table("a.b").at().files] == ["b", "c"]
    assert findings(lake, store) == []


def test_a_table_from_iceberg_is_followed_and_projected_and_forgets_the_importer(
    tmp_path: Path,
) -> None:
    theirs = created(tmp_path / "source")
    appended(theirs, 0, name=["x"])
    came_and_is_forgotten(tmp_path, "iceberg", lambda: theirs.metadata_location)
    appended(theirs, 1, name=["y"])
    follows(tmp_path, "iceberg", theirs.metadata_location)


@pytest.mark.parametrize("source", sorted(DATA.glob("pypaimon_wh/ledger.db/*"))[:1], ids=str)
def test_a_table_from_paimon_is_projected_and_forgets_the_importer(
    source: Path, tmp_path: Path
) -> None:
    came_and_is_forgotten(tmp_path, "paimon", lambda: str(source))
    follows(tmp_path, "paimon", str(source))


def came_and_is_forgotten(folder: Path, kind: str, source: Callable[[], str]) -> None:
    lake = Ledger(LedgerHandle(evolve(handle_of(erasable(folder / "lake")).setting, author=ANN)))
    lake.import_table("a.b", source(), format_name=kind)
    lake.table("a.b").project(kind)
    store = handle_of(lake).setting.store
    assert all(key.startswith("_ledger/personal/") for key in holding(store, ANN))
    assert lake.erase(author=ANN).values > 0
    assert holding(store, ANN) == []
    assert findings(lake, store) == []


def follows(folder: Path, kind: str, source: str) -> None:
    lake = lake_on(LocalStore(folder / "lake", durable=Durability.NONE), clock=now)
    lake.import_table("a.b", source, format_name=kind)
    lake.table("a.b").project(kind)
    assert lake.table("a.b").state.keeps_outside
    assert findings(lake, handle_of(lake).setting.store) == []


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
    table, store = lake.table("a.b"), handle_of(lake).setting.store
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
    store = handle_of(lake).setting.store
    lake.promote("a.b")
    table = lake.table("a.b")
    table.project("iceberg")
    shown = [(each.lower_bounds or {}).get(2) for each in table.at().files]
    assert sorted(bytes.fromhex(str(each)).decode()[:8] for each in shown) == [KEPT[:8]] * 2
    assert all("/personal/columns/" in key for key in holding_deep(store, KEPT[:14]))

    assert lake.erase(table="a.b", column="name").values == 2
    assert holding_deep(store, KEPT[:14]) == []
    assert findings(lake, store) == []


def test_a_value_from_before_an_imported_table_widened_its_column_is_erased(tmp_path: Path) -> None:
    theirs = created(tmp_path / "source")
    with theirs.transaction() as change:
        change.set_properties({"ledger.personal": "n"})
    with theirs.update_schema() as update:
        update.add_column("n", IntegerType())
    appended(theirs, 0, n=pa.array([5_551_234], pa.int32()))
    with theirs.update_schema() as update:
        update.update_column("n", LongType())
    for number, value in enumerate((5_551_234, 5_551_235), 1):
        appended(theirs, number, n=pa.array([value], pa.int64()))
    lake = erasable(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    table = lake.table("a.b")
    number = table.column_id("n")
    table.alter([RenameColumn(("n",), "number")])

    assert lake.erase(table="a.b", column="number", value="5551234.0").values == 2
    left = [(each.lower_bounds or {}).get(number) for each in table.at().files]
    assert [each for each in left if each] == [(5_551_235).to_bytes(8, "little").hex()]


def test_marking_a_column_of_an_external_table_is_rejected_with_the_place_to_do_it(
    tmp_path: Path,
) -> None:
    source = tmp_path / "source"
    write(source, 0, info(10), PROTOCOL, metadata(ID, MAIL))
    lake = erasable(tmp_path / "lake")
    lake.import_table("a.b", str(source), format_name="delta")
    with pytest.raises(InvalidChangeError, match="set the property ledger.personal there"):
        lake.table("a.b").alter([SetOption("ledger.personal", "mail")])


def test_a_marked_column_that_a_delta_table_renames_stays_marked(tmp_path: Path) -> None:
    source, mode = tmp_path / "source", {"delta.columnMapping.mode": "name"}

    def said(number: int, name: str) -> dict[str, Any]:
        physical = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": f"c{number}",
        }
        kind = "string" if number > 1 else "long"
        return {"name": name, "type": kind, "nullable": True, "metadata": physical}

    def columns(mail: str) -> dict[str, Any]:
        marked = {**mode, "ledger.personal": "mail"}
        return metadata(said(1, "id"), said(2, mail), configuration=marked)

    def file(path: str, mail: str) -> dict[str, Any]:
        return add(path, stats=json.dumps({"numRecords": 2, "minValues": {"c2": mail}}))

    write(source, 0, info(10), PROTOCOL, columns("mail"), file("a", ANN))
    lake = erasable(tmp_path / "lake")
    lake.import_table("a.b", str(source), format_name="delta")
    write(source, 1, info(20), columns("email"), file("b", ANN))
    lake.import_table("a.b", str(source), format_name="delta")
    write(source, 2, info(30), file("c", WHY))
    write(source, 3, info(40), columns("e_mail"), file("d", WHY))
    lake.import_table("a.b", str(source), format_name="delta")
    table, store = lake.table("a.b"), handle_of(lake).setting.store
    assert table.schema.names == ("id", "e_mail")
    assert table.schema.options["ledger.personal"] == "e_mail"
    for text in (ANN[:14], WHY[:14]):
        found = holding_deep(store, text)
        assert found
        assert all("/personal/columns/" in key for key in found)
    assert lake.erase(table="a.b", column="e_mail").values == 4
    assert [holding_deep(store, each[:14]) for each in (ANN, WHY)] == [[], []]
    assert findings(lake, store) == []


def test_an_iceberg_table_that_marks_a_column_it_has_not_is_not_promoted(tmp_path: Path) -> None:
    theirs = created(tmp_path / "source")
    with theirs.transaction() as change:
        change.set_properties({"ledger.personal": "name"})
    with theirs.update_schema() as update:
        update.rename_column("name", "called")
    appended(theirs, 1, called=[KEPT])
    lake = erasable(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    with pytest.raises(UnsupportedError, match="marks name as personal, and has no such column"):
        lake.promote("a.b")
    assert holding_deep(handle_of(lake).setting.store, KEPT[:14]) == []
    with theirs.transaction() as change:
        change.set_properties({"ledger.personal": "called"})
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    found = holding_deep(handle_of(lake).setting.store, KEPT[:14])
    assert found
    assert all("/personal/columns/" in key for key in found)


@pytest.mark.parametrize(
    ("is_erasable", "marked", "shown"),
    [
        (True, "name", []),
        (True, "mail", ["mail is no column"]),
        (False, "name", ["this ledger was created without --erasable, and keeps all in its lines"]),
    ],
)
def test_doctor_reports_external_marks_that_nothing_can_be_erased_by(
    is_erasable: bool,  # noqa: FBT001 - a case
    marked: str,
    shown: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    theirs = created(tmp_path / "source")
    with theirs.transaction() as change:
        change.set_properties({"ledger.personal": marked})
    folder = tmp_path / "lake"
    lake = ledger.open(folder)
    lake.init(erasable=is_erasable)
    lake.import_table("a.b", theirs.metadata_location)
    capsys.readouterr()
    assert main(["doctor", str(folder), "--output", "json"]) == exits.OK
    found = [each["what"] for each in json.loads(capsys.readouterr().out)["idleMarks"]]
    assert [each.partition(": ")[0] for each in found] == shown
    assert main(["doctor", str(folder)]) == exits.OK
    assert ("the personal columns of a.b" in capsys.readouterr().out) == bool(shown)


def test_sparks_views_show_personal_partitions_until_they_are_erased(tmp_path: Path) -> None:
    lake = erasable(tmp_path)
    lake.create_database("s")
    options = {"ledger.personal": "born, kind"}
    columns, keys = {"id": "INT", "born": "DATE", "kind": "STRING"}, ["born", "kind"]
    schema = Schema.of(columns, partition_keys=keys, options=options)
    table = lake.create_table("s.p", schema)
    for number, (day, kind) in enumerate([("1990-02-03", ANN), ("1991-01-01", "b")]):
        path = f"{number}.parquet"
        table.append(
            [FileChange(path=path, partition=(day, kind), record_count=1, file_size_in_bytes=9)]
        )

    def shown(view: str) -> set[str]:
        return {str(each["partition"]) for each in rows_of(lake.table("s.p"), view)}

    views = ("files", "partition_changes", "partitions")
    assert all(any(ANN in each for each in shown(view)) for view in views)
    lake.erase(table="s.p", column="kind", value=ANN)
    lake.erase(table="s.p", column="born", value="1990-02-03")
    for view in views:
        assert shown(view) == {
            "{'born': None, 'kind': None}",
            "{'born': '1991-01-01', 'kind': 'b'}",
        }
