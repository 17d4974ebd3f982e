"""Branches as Iceberg's refs: each leads to what the ledger says, by itself and by PyIceberg."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.table import StaticTable

import ledger
from ledger import SetOption, Table
from ledger.events import BranchHead, SnapshotCommitted
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, expected, verify
from projections.iceberg import manifest_writing as layout
from projections.iceberg.snapshots import BranchRunStates
from projections.materialising import Difference
from tests.branch_lives import Life, file, table_with
from tests.lakes import lake_on, memory, orders
from tests.projections.iceberg.projecting import DELETED, Left, metadata_names
from tests.thorough import some

NOTHING = Difference()


@pytest.fixture(autouse=True, params=[2, 10_000], ids=["small manifests", "large manifests"])
def _most_entries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_ENTRIES", request.param)


def projected(seed: int) -> Table:
    """Return a table after a random life, projected now and then."""
    life = Life(seed, 1 + seed % 3)
    rng = random.Random(seed)
    for _ in range(40):
        life.step()
        if rng.random() < 0.2:
            ICEBERG.project(handle_of(life.table))
    ICEBERG.project(handle_of(life.table))
    return life.table


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_every_snapshot_that_a_ref_reaches_lists_the_live_files(seed: int) -> None:
    table = projected(seed)
    left, state = Left.by(table), table.state
    metadata = left.metadata(state.version, table)

    heads = {name: each.head_id for name, each in state.branches.items()}
    assert {name: each["snapshot-id"] for name, each in metadata["refs"].items()} == {
        "main": state.last_snapshot_id,
        **heads,
    }
    listed = {each["snapshot-id"]: each for each in metadata["snapshots"]}
    own = {each for branch in state.branches.values() for each in branch.snapshot_ids}
    assert listed.keys() == {*state.snapshot_ids, *own}
    for snapshot_id, snapshot in listed.items():
        then = table.at(snapshot=snapshot_id)
        live = Counter(e["path"] for e in left.entries(snapshot) if e["status"] != DELETED)
        assert live == Counter(f"{table.location}/{each.path}" for each in then.files)
        assert int(snapshot["summary"]["total-records"]) == then.totals.record_count
    for branch in state.branches.values():
        before = branch.base_snapshot_id
        for each in range(branch.first_snapshot_id, branch.next_id):
            if each in listed:
                assert listed[each]["parent-snapshot-id"] == before
                last = metadata.get("last-sequence-number", 0)
                assert last >= listed[each].get("sequence-number", 0)
            before = each


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_what_a_projector_went_on_with_is_what_it_makes_at_once(seed: int) -> None:
    table = projected(seed)
    assert verify(handle_of(table)) == NOTHING
    left = Left.by(table).newest(table)
    assert left == Left.wanted(table).newest(table)
    assert set(left) <= set(expected(handle_of(table)))


def test_a_branch_that_begins_before_the_run_goes_on_from_what_that_snapshot_listed() -> None:
    table = table_with(*(f"{number}.parquet" for number in range(9)))
    ICEBERG.project(handle_of(table))
    table.branch("old").create(snapshot=5, min_snapshots_to_keep=7, max_snapshot_age_millis=8)
    table.branch("old").delete_files("2.parquet")
    table.expire_snapshots(before=9)
    ICEBERG.project(handle_of(table))
    assert verify(handle_of(table)) == NOTHING
    metadata = Left.by(table).metadata(table.state.version, table)
    assert metadata["refs"]["old"] == {
        "snapshot-id": 1_000_000_000_001,
        "type": "branch",
        "min-snapshots-to-keep": 7,
        "max-snapshot-age-ms": 8,
    }
    table.branch("old").delete()
    ICEBERG.project(handle_of(table))
    assert verify(handle_of(table)) == NOTHING
    snapshots = Left.by(table).metadata(table.state.version, table)["snapshots"]
    assert [each["snapshot-id"] for each in snapshots] == [9]


def test_a_branch_without_an_age_never_goes_by_that_of_the_tables_tags() -> None:
    table = table_with("a.parquet")
    table.create_branch("kept")
    ICEBERG.project(handle_of(table))
    refs = Left.by(table).metadata(table.state.version, table)["refs"]
    assert "max-ref-age-ms" not in refs["kept"]
    table.alter([SetOption("history.expire.max-ref-age-ms", "5")])
    ICEBERG.project(handle_of(table))
    refs = Left.by(table).metadata(table.state.version, table)["refs"]
    assert refs["kept"]["max-ref-age-ms"] == 2**63 - 1


def test_main_is_listed_as_if_there_were_no_branch() -> None:
    def keys(of: Table) -> list[Any]:
        ICEBERG.project(handle_of(of))
        metadata = Left.by(of).metadata(of.state.version, of)
        main = [each for each in metadata["snapshots"] if each["snapshot-id"] < 100]
        return [(e["snapshot-id"], e.get("parent-snapshot-id"), e["summary"]) for e in main]

    plain, branched = table_with("a"), table_with("a")
    branched.create_branch("audit")
    for table in (plain, branched):
        table.append([file("b")])
        if table is branched:
            table.branch("audit").append([file("c")])
        table.delete_files("a")
    assert keys(plain) == keys(branched)


def rows_of(folder: Path, name: str, *ids: int) -> Path:
    path = folder / name
    parquet.write_table(pa.table({"id": list(ids)}), path)
    return path


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_the_rows_of_every_ref(tmp_path: Path, version: int) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg", "format-version": str(version)}
    table = lake.create_table("shop.visits", ledger.Schema.of({"id": "BIGINT"}, options=options))
    table.add_files(rows_of(tmp_path, "a.parquet", 1, 2))
    for name in ("audit", "other"):
        table.create_branch(name)
        table.branch(name).add_files(rows_of(tmp_path, f"{name}.parquet", len(name), 9))
    table.branch("other").delete_files([str(each.path) for each in table.at().files])
    table.add_files(rows_of(tmp_path, "b.parquet", 3))
    table.create_tag("v1", snapshot=1)

    ICEBERG.project(handle_of(table))
    name = metadata_names(table, table.state.version)[0]
    read = StaticTable.from_metadata(f"{table.location}/{name}")
    found = {}
    for ref, pointed in read.metadata.refs.items():
        rows = read.scan(snapshot_id=pointed.snapshot_id).to_arrow()
        found[ref] = sorted(rows.column("id").to_pylist())
    assert found == {"main": [1, 2, 3], "audit": [1, 2, 5, 9], "other": [5, 9], "v1": [1, 2]}
    for ref in ("audit", "other"):
        assert sorted(table.at(branch=ref).to_arrow().column("id").to_pylist()) == found[ref]


@pytest.mark.parametrize("formats", ["delta", "paimon", "paimon,delta", "paimon,iceberg"])
@pytest.mark.parametrize("trust", ["all", "log"])
def test_branches_are_read_where_the_metadata_is_made_in_memory(
    tmp_path: Path, formats: str, trust: Any
) -> None:
    lake = ledger.open(tmp_path / "lake", trust=trust)
    lake.create_database("shop")
    schema = ledger.Schema.of({"id": "BIGINT"}, options={"ledger.formats": formats})
    table = lake.create_table("shop.visits", schema)
    table.append([{"id": 1}])
    branch = table.branch("audit")
    branch.create()
    branch.append([{"id": 2}])
    table.append([{"id": 3}])

    def ids(at: ledger.TableAt) -> list[int]:
        return sorted(at.to_arrow()["id"].to_pylist())

    assert (ids(branch.at()), ids(table.at(branch="audit")), ids(table.at())) == (
        [1, 2],
        [1, 2],
        [1, 3],
    )
    branch.overwrite([{"id": 9}])
    assert (ids(branch.at()), ids(branch.at(version=2)), ids(table.at())) == ([9], [1], [1, 3])


def test_a_branch_that_goes_with_its_own_fast_forward_has_no_line() -> None:
    table = orders(lake_on(memory()))
    lines = BranchRunStates(handle_of(table), cast("Any", None), None, cast("Any", None))
    event = SnapshotCommitted(
        snapshot_id=2,
        schema_id=0,
        commit_user="ann",
        total_record_count=0,
        delta_record_count=0,
        commit_kind="APPEND",
        fast_forward_to=BranchHead("gone", 1),
    )

    lines.learn(event, {})

    assert lines.lines == {}
