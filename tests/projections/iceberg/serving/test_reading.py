"""The library reads tables that engines write: plans, rows, files, at snapshots, tags, branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyiceberg.types as ty
import pytest
from attrs import frozen
from pyiceberg import expressions
from pyiceberg.schema import Schema
from pyiceberg.table import Table as EngineTable

from ledger import Ledger, NotFoundError, Table
from ledger.log.request import now_millis
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from tests.lakes import lake_on
from tests.projections.iceberg.serving.catalog import ServedCatalog
from tests.projections.rest.test_planning import spec
from tests.projections.rest.written import Row, append, partition_of, write_file

e: Any = expressions

COLUMNS = Schema(
    ty.NestedField(1, "id", ty.IntegerType(), required=False),
    ty.NestedField(2, "name", ty.StringType(), required=False),
)


@frozen
class Served:
    """A table that an engine writes through the ledger.

    Attributes:
        lake: The ledger.
        engine: The engine's table.
    """

    lake: Ledger
    engine: EngineTable

    @property
    def table(self) -> Table:
        return self.lake.table("shop.orders")

    def append(self, *ids: int) -> int:
        """Append rows as the engine, and return its snapshot."""
        append(self.engine, [{self.names[1]: str(each), "id": each} for each in ids])
        return self.snapshot

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.engine.schema().fields]

    @property
    def snapshot(self) -> int:
        found = self.engine.current_snapshot()
        assert found is not None
        return found.snapshot_id


@pytest.fixture(params=[1, 2], ids=lambda each: f"version {each}")
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Served:
    """A table in each format version that PyIceberg writes, partitioned by bucket of `id`."""
    lake = lake_on(LocalStore(str(tmp_path)), clock=now_millis)
    lake.init()
    lake.create_database("shop")
    catalog = ServedCatalog(handle_of(lake))
    version = {"format-version": str(request.param)}
    made = catalog.create_table(
        "shop.orders", COLUMNS, partition_spec=spec("bucket[4] id"), properties=version
    )
    return Served(lake, made)


def ids(rows: Any) -> list[int]:
    found: list[int] = sorted(rows["id"].to_pylist())
    return found


def test_an_empty_table_has_no_rows_and_files(served: Served) -> None:
    now = served.table.at()
    assert now.files == ()
    assert now.plan("id > 3").files == ()
    assert now.to_arrow().num_rows == 0
    assert now.head().num_rows == 0


def test_the_newest_rows_are_read_and_planned(served: Served) -> None:
    served.append(1, 2, 3)
    served.append(10, 11)
    now = served.table.at()
    assert ids(now.to_arrow()) == [1, 2, 3, 10, 11]
    assert ids(now.to_arrow("id > 2", columns=["id"])) == [3, 10, 11]
    assert now.head(2).num_rows == 2
    assert now.totals.record_count == 5
    assert now.totals.file_count == len(now.files)
    assert sum(each.record_count for each in now.files) == 5
    planned = {each.file.path for each in now.plan("id = 11").files}
    wanted = {task.file.file_path for task in served.engine.scan("id = 11").plan_files()}
    assert planned == wanted
    assert ids(now.scan("id = 11").to_arrow()) == [11]


def test_every_snapshot_of_an_engine_is_read(served: Served) -> None:
    first = served.append(1, 2)
    second = served.append(3)
    served.engine.delete(e.EqualTo("id", 3))
    third = served.snapshot
    for snapshot, wanted in ((first, [1, 2]), (second, [1, 2, 3]), (third, [1, 2])):
        then = served.table.at(snapshot=snapshot)
        assert ids(then.to_arrow()) == wanted
        assert then.totals.record_count == len(wanted)
        assert sum(each.record_count for each in then.files) == len(wanted)
        assert then.snapshot is not None
        assert then.snapshot.id == snapshot
        assert len(then.plan("id = 1").files) == 1
    with pytest.raises(NotFoundError, match="snapshot 5 does not exist"):
        served.table.at(snapshot=5)


def test_tags_and_branches_of_an_engine_are_read(served: Served) -> None:
    first = served.append(1)
    with served.engine.manage_snapshots() as change:
        change.create_tag(first, "v1")
        change.create_branch(first, "audit")
    served.append(2)
    append_to_branch(served, "audit", 30)
    table = served.table
    assert ids(table.at(tag="v1").to_arrow()) == [1]
    assert ids(table.at().to_arrow()) == [1, 2]
    assert table.state.tags["v1"].snapshot_id == first
    on_branch = served.engine.refs()["audit"].snapshot_id
    assert on_branch != served.snapshot
    there = table.at(snapshot=on_branch)
    assert ids(there.to_arrow()) == [1, 30]
    with served.engine.update_schema() as change:
        change.add_column("extra", ty.LongType())
    table = served.table
    for found in (there, table.at(branch="audit"), table.branch("audit").at()):
        assert ids(found.to_arrow()) == [1, 30]
        assert ids(found.to_arrow("id > 2")) == [30]
        assert found.head(1).num_rows == 1
        assert len(found.plan("id = 30").files) == 1
        assert sum(each.record_count for each in found.files) == found.totals.record_count == 2
    # A snapshot is read with its schema, a branch with the table's.
    assert there.schema.names == ("id", "name")
    assert table.at(branch="audit").to_arrow()["extra"].to_pylist() == [None, None]
    assert ids(table.at(branch="main").to_arrow()) == [1, 2]
    version = table.state.version
    append_to_branch(served, "audit", 31)
    assert ids(served.table.at(branch="audit").to_arrow()) == [1, 30, 31]
    assert ids(served.table.at(branch="audit", version=version).to_arrow()) == [1, 30]
    with pytest.raises(NotFoundError, match="branch 'nope' does not exist"):
        table.at(branch="nope")


def append_to_branch(served: Served, branch: str, number: int) -> None:
    rows: list[Row] = [dict.fromkeys(served.names) | {"id": number, "name": str(number)}]
    file = write_file(served.engine, rows, partition_of(served.engine, rows[0]))
    with (
        served.engine.transaction() as change,
        change.update_snapshot(branch=branch).fast_append() as snapshot,
    ):
        snapshot.append_data_file(file)


def test_rows_are_read_by_the_names_of_their_snapshot(served: Served) -> None:
    first = served.append(1)
    with served.engine.update_schema() as change:
        change.rename_column("name", "label")
        change.add_column("extra", ty.LongType())
    served.append(2)
    then, now = served.table.at(snapshot=first), served.table.at()
    assert then.schema.names == ("id", "name")
    assert now.schema.names == ("id", "label", "extra")
    assert then.to_arrow("name = '1'").to_pylist() == [{"id": 1, "name": "1"}]
    assert sorted(now.to_arrow()["label"].to_pylist()) == ["1", "2"]
    assert len(now.plan("label = '2'").files) == 1


def test_versions_of_the_ledger_are_read(served: Served) -> None:
    served.append(1)
    version = served.table.state.version
    served.append(2)
    assert ids(served.table.at(version=version).to_arrow()) == [1]
    assert ids(served.table.at(version=0).to_arrow()) == []


def test_a_table_rolled_back_by_an_engine_has_its_earlier_rows(served: Served) -> None:
    first = served.append(1)
    second = served.append(2)
    with served.engine.manage_snapshots() as change:
        change.rollback_to_snapshot(first)
    assert ids(served.table.at().to_arrow()) == [1]
    assert ids(served.table.at(snapshot=second).to_arrow()) == [1, 2]
    served.append(3)
    assert ids(served.table.at().to_arrow()) == [1, 3]
    assert len(served.table.at().files) == 2


def test_expired_snapshots_are_not_read(served: Served) -> None:
    first = served.append(1)
    served.append(2)
    served.engine.maintenance.expire_snapshots().by_id(first).commit()
    with pytest.raises(NotFoundError, match=f"snapshot {first} does not exist or was expired"):
        served.table.at(snapshot=first)
    assert ids(served.table.at().to_arrow()) == [1, 2]
