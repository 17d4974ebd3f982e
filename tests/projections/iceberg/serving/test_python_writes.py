"""The library writes to tables that engines own: data as manifests, branches, tags, columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from msgspec.structs import replace
from pyarrow import parquet
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import BucketTransform

import ledger
import projections.iceberg.rest_updates as u
from ledger import FileChange
from ledger.table_handle import handle_of
from projections.iceberg.expiry import set_ref
from projections.iceberg.imported_metadata import differing_fields
from projections.iceberg.metadata_update import apply_updates
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.served import load
from projections.iceberg.table_metadata import TableMetadata
from tests.projections.iceberg.serving.served_table import ARROW, BY_DAY, Served


@pytest.fixture(params=[1, 2])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Served:
    return Served.created(tmp_path, version=request.param)


def test_engines_and_the_library_append_in_turn(served: Served) -> None:
    then = {}
    for number in range(3):
        served.engine_appends(10 * number)
        then[served.table.state.last_snapshot_id] = served.rows()
        served.table.add_files(served.file(f"{number}.parquet", 10 * number + 1))
        then[served.table.state.last_snapshot_id] = served.rows()
    assert served.rows() == served.rows_of_engine() == [0, 1, 10, 11, 20, 21]
    assert len(then) == len(served.engine().snapshots()) == 6
    for snapshot_id, rows in then.items():
        assert served.rows(snapshot=snapshot_id) == served.rows_of_engine(snapshot_id) == rows


def test_a_snapshot_of_the_library_has_what_iceberg_requires(served: Served) -> None:
    served.engine_appends(1, 2)
    before = served.engine().metadata
    served.table.add_files(served.file("a.parquet", 3, 4, 5))
    after = served.engine().metadata
    parent, made = before.current_snapshot(), after.current_snapshot()
    assert made.parent_snapshot_id == parent.snapshot_id
    assert made.snapshot_id > 2**32
    if after.format_version > 1:
        assert made.sequence_number == parent.sequence_number + 1 == after.last_sequence_number
    assert made.summary.operation.value == "append"
    counts = {"added-data-files": "1", "added-records": "3", "total-records": "5"}
    assert counts.items() <= made.summary.additional_properties.items()
    assert [each.snapshot_id for each in after.snapshot_log][-2:] == [
        parent.snapshot_id,
        made.snapshot_id,
    ]
    assert made.timestamp_ms == after.snapshot_log[-1].timestamp_ms


def test_files_of_engines_are_deleted_and_others_stay_in_their_manifests(served: Served) -> None:
    served.engine_appends(1)
    (first,) = served.paths()
    served.engine_appends(2)
    served.engine_appends(3)
    older = {each.manifest_path for each in manifests(served)}
    served.table.delete_files(first)
    assert served.rows() == served.rows_of_engine() == [2, 3]
    listed = manifests(served)
    kept = [each for each in listed if each.manifest_path in older]
    (new,) = [each for each in listed if each.manifest_path not in older]
    assert (len(kept), new.deleted_files_count, new.existing_files_count) == (2, 1, 0)
    assert served.engine().current_snapshot().summary.operation.value == "delete"
    served.engine_appends(4)
    assert served.rows() == served.rows_of_engine() == [2, 3, 4]


def manifests(served: Served) -> list[Any]:
    table = served.engine()
    return list(table.current_snapshot().manifests(table.io))


def test_a_rewritten_manifest_keeps_the_other_files_as_they_were_added(served: Served) -> None:
    one, two = served.file("1.parquet", 1), served.file("2.parquet", 2)
    served.table.add_files([one, two])
    added = served.table.state.last_snapshot_id
    served.engine_appends(3)
    served.table.delete_files(one)
    (entry,) = [
        each
        for manifest in manifests(served)
        for each in manifest.fetch_manifest_entry(served.engine().io)
        if each.data_file.file_path == two
    ]
    assert entry.snapshot_id == added
    number = served.engine().snapshot_by_id(added).sequence_number
    assert entry.sequence_number == (number or 0)
    assert served.rows() == served.rows_of_engine() == [2, 3]


def test_overwrite_replaces_the_files_of_a_partition(tmp_path: Path) -> None:
    served = Served.created(tmp_path, spec=BY_DAY)
    served.engine_appends(1, day="x")
    served.engine_appends(2, day="y")
    new = served.table.data_files(served.file("n.parquet", 7, day="x"))
    served.table.overwrite(new, where={"day": "x"})
    assert served.rows() == served.rows_of_engine() == [2, 7]
    assert served.engine().scan("day == 'x'").to_arrow()["id"].to_pylist() == [7]
    served.table.overwrite(served.table.data_files(served.file("m.parquet", 8, day="z")))
    assert served.rows() == served.rows_of_engine() == [8]


def test_a_file_is_added_once_and_only_live_files_are_deleted(served: Served) -> None:
    served.engine_appends(1)
    (there,) = served.paths()
    path = served.file("a.parquet", 2)
    served.table.add_files(path)
    version = served.table.state.version
    with pytest.raises(ledger.InvalidChangeError, match="is a live file already"):
        served.table.add_files(path)
    with pytest.raises(ledger.InvalidChangeError, match="is not a live file"):
        served.table.delete_files("nothing.parquet")
    assert served.table.new_files([path, there]) == []
    assert served.table.state.version == version


def test_an_append_is_made_for_the_snapshot_that_it_meets(served: Served) -> None:
    stale = ledger.open(served.lake.url).table("a.b")
    assert stale.state.snapshot is None
    served.engine_appends(1)
    stale.add_files(served.file("a.parquet", 2))
    assert served.rows() == served.rows_of_engine() == [1, 2]
    made = served.engine().current_snapshot()
    assert made.parent_snapshot_id == served.engine().snapshots()[0].snapshot_id


@pytest.mark.parametrize("by_filter", [True, False])
def test_a_file_that_an_engine_removed_meanwhile_is_a_conflict(
    tmp_path: Path, *, by_filter: bool
) -> None:
    served = Served.created(tmp_path, spec=BY_DAY)
    served.engine_appends(1)
    stale = ledger.open(served.lake.url).table("a.b")
    (first,) = (each.path for each in stale.at().files)
    served.engine().delete(AlwaysTrue())
    with pytest.raises(ledger.CommitConflictError):
        stale.overwrite([], where={"day": "x"}) if by_filter else stale.delete_files(first)
    assert served.rows() == served.rows_of_engine() == []


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_file_that_an_engine_adds_to_overwritten_partitions_is_a_conflict_or_stays(
    tmp_path: Path, isolation: Any
) -> None:
    served = Served.created(tmp_path, spec=BY_DAY)
    served.engine_appends(1)
    stale = ledger.open(served.lake.url).table("a.b")
    new = stale.data_files(served.file("n.parquet", 9))
    served.engine_appends(2)
    if isolation == "serializable":
        with pytest.raises(ledger.CommitConflictError):
            stale.overwrite(new, where={"day": "x"}, isolation=isolation)
        assert served.rows_of_engine() == [1, 2]
    else:
        stale.overwrite(new, where={"day": "x"}, isolation=isolation)
        assert served.rows() == served.rows_of_engine() == [2, 9]


@pytest.mark.parametrize("again", ["commit id", "key"])
def test_the_same_request_is_committed_once(served: Served, again: str) -> None:
    served.engine_appends(1)
    files = served.table.data_files(served.file("a.parquet", 2))
    key: Any = {"commit_user": "job", "commit_identifier": 7} if again == "key" else {}
    options: Any = {"commit_id": "c"} if again == "commit id" else {}
    plan = ledger.SnapshotPlan("APPEND", files, **key)
    first = served.table.commit_snapshot(plan, **options)
    served.engine_appends(3)
    assert served.table.commit_snapshot(plan, **options).version == first.version
    assert served.rows() == served.rows_of_engine() == [1, 2, 3]


def test_a_rollback_is_a_new_snapshot_with_the_older_files(served: Served) -> None:
    served.engine_appends(1)
    first = served.table.state.last_snapshot_id
    served.table.create_tag("kept")
    served.engine_appends(2)
    served.table.rollback(tag="kept")
    assert served.rows() == served.rows_of_engine() == [1]
    assert served.engine().current_snapshot().summary["total-records"] == "1"
    served.engine_appends(3)
    served.table.rollback(snapshot=first)
    assert served.rows() == served.rows_of_engine() == [1]
    assert len(served.engine().snapshots()) == 5


def test_branches_of_a_served_table_are_refs_that_engines_continue(served: Served) -> None:
    served.engine_appends(1)
    branch = served.table.branch("audit")
    branch.create(max_ref_age_millis=1000)
    branch.add_files(served.file("a.parquet", 2))
    assert served.rows() == served.rows_of_engine() == [1]
    ref = served.engine().refs()["audit"]
    assert (ref.snapshot_ref_type.value, ref.max_ref_age_ms) == ("branch", 1000)
    assert served.rows_of_engine(ref.snapshot_id) == [1, 2]
    assert sorted(branch.at().to_arrow()["id"].to_pylist()) == [1, 2]
    rows = pa.Table.from_pylist([{"id": 3, "day": "x"}], ARROW)
    served.engine().append(rows, branch="audit")
    branch.fast_forward()
    assert served.rows() == served.rows_of_engine() == [1, 2, 3]
    branch.rollback(snapshot=ref.snapshot_id)
    assert sorted(branch.at().to_arrow()["id"].to_pylist()) == [1, 2]
    branch.reset()
    assert sorted(branch.at().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    branch.delete()
    assert [*served.engine().refs()] == ["main"]
    with pytest.raises(ledger.NotFoundError, match="audit"):
        branch.add_files(served.file("b.parquet", 4))


def changes_of_metadata(served: Served) -> dict[str, Callable[[], Any]]:
    table = served.table
    place = "ROW<street STRING, codes ARRAY<INT>>"

    def expire() -> None:
        table.expire_snapshots(before=table.state.last_snapshot_id)

    return {
        "add": lambda: table.alter([ledger.AddColumn(("note",), "STRING", "why")]),
        "nested": lambda: table.alter([ledger.AddColumn(("place",), place)]),
        "member": lambda: table.alter([ledger.AddColumn(("place", "city"), "STRING")]),
        "rename": lambda: table.alter([ledger.RenameColumn(("note",), "remark")]),
        "back": lambda: table.alter([ledger.RenameColumn(("remark",), "note")]),
        "move": lambda: table.alter([ledger.UpdateColumnPosition(ledger.Move("note", "FIRST"))]),
        "drop": lambda: table.alter([ledger.DropColumn(("note",))]),
        "option": lambda: table.alter([ledger.SetOption("k", "v")]),
        "no option": lambda: table.alter([ledger.RemoveOption("k")]),
        "spec": lambda: table.update_spec().add_field("day").commit(),
        "spec gone": lambda: table.update_spec().remove_field("day").commit(),
        "order": lambda: table.replace_sort_order().asc("id").commit(),
        "tag": lambda: table.create_tag("t", time_retained_millis=5000),
        "retag": lambda: table.replace_tag("t"),
        "untag": lambda: table.delete_tag("t"),
        "expire": expire,
    }


def property_updates(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[TableUpdate]:
    new = {key: value for key, value in after.items() if before.get(key) != value}
    if new:
        yield u.SetProperties(updates=new)
    gone = tuple(key for key in before if key not in after)
    if gone:
        yield u.RemoveProperties(removals=gone)


def updates_between(before: TableMetadata, after: TableMetadata) -> Iterator[TableUpdate]:
    """Yield the updates by which an engine asks for the same change."""
    if after.schema != before.schema:
        if after.current_schema_id not in before.schemas_by_id:
            yield u.AddSchema(schema=after.schema)
        yield u.SetCurrentSchema(schema_id=after.current_schema_id)
    if after.spec != before.spec:
        if after.default_spec_id not in before.specs_by_id:
            yield u.AddSpec(spec=after.spec)
        yield u.SetDefaultSpec(spec_id=after.default_spec_id)
    if after.sort_order != before.sort_order:
        yield u.AddSortOrder(sort_order=after.sort_order)
        yield u.SetDefaultSortOrder(sort_order_id=-1)
    yield from property_updates(before.properties, after.properties)
    for name, ref in after.refs.items():
        if before.refs.get(name) != ref:
            yield set_ref(name, ref)
    yield from (u.RemoveSnapshotRef(ref_name=e) for e in before.refs if e not in after.refs)
    removed = tuple(e for e in before.snapshots_by_id if e not in after.snapshots_by_id)
    if removed:
        yield u.RemoveSnapshots(snapshot_ids=removed)


def test_each_change_of_metadata_is_that_of_an_engine_which_then_continues(tmp_path: Path) -> None:
    served = Served.created(tmp_path)
    served.engine_appends(1)
    handle, rows = handle_of(served.table), [1]
    for name, change in changes_of_metadata(served).items():
        before = load(handle, handle.state).metadata
        change()
        after = load(handle, handle.state).metadata
        updates = [*updates_between(before, after)]
        wanted = apply_updates(before, updates, now_ms=after.last_updated_ms)
        assert updates, name
        assert differing_fields(wanted, evolve(after, metadata_log=wanted.metadata_log)) == [], name
        rows.append(len(rows) + 1)
        served.engine_appends(rows[-1])
        assert served.rows() == served.rows_of_engine() == rows, name


def test_a_schema_that_the_table_had_before_keeps_its_id(served: Served) -> None:
    first = served.engine().metadata.current_schema_id
    served.table.alter([ledger.RenameColumn(("day",), "date")])
    assert served.engine().metadata.current_schema_id == first + 1
    served.table.alter([ledger.RenameColumn(("date",), "day")])
    metadata = served.engine().metadata
    assert (metadata.current_schema_id, len(metadata.schemas)) == (first, 2)


def test_expired_snapshots_leave_the_metadata_and_its_log_as_iceberg_says(served: Served) -> None:
    for each in range(4):
        served.engine_appends(each)
    ids = [each.snapshot_id for each in served.engine().snapshots()]
    served.table.create_tag("kept", snapshot=ids[0])
    served.table.expire_snapshots(before=ids[2])
    metadata = served.engine().metadata
    assert [each.snapshot_id for each in metadata.snapshots] == [ids[0], *ids[2:]]
    assert [each.snapshot_id for each in metadata.snapshot_log] == ids[2:]
    served.engine_appends(9)
    assert served.rows() == served.rows_of_engine() == [0, 1, 2, 3, 9]


def test_row_ids_of_version_3_are_assigned_and_kept(tmp_path: Path) -> None:
    served = Served.created(tmp_path, version=3)
    one, two = served.file("1.parquet", 1, 2), served.file("2.parquet", 3)
    served.table.add_files([one, two])
    served.table.add_files(served.file("3.parquet", 4, 5, 6))
    served.table.delete_files(one)
    loaded = load(handle_of(served.table), served.table.state).metadata
    assert [(each.first_row_id, each.added_rows) for each in loaded.snapshots] == [
        (0, 3),
        (3, 3),
        (6, 0),
    ]
    assert loaded.next_row_id == 6
    kept = {each.path.rpartition("/")[2]: each.first_row_id for each in served.table.at().files}
    assert kept == {"2.parquet": 2, "3.parquet": 3}
    assert served.rows() == [3, 4, 5, 6]


def test_files_without_field_ids_are_found_by_the_name_mapping(served: Served) -> None:
    path = Path(served.table.location.removeprefix("file://")) / "plain.parquet"
    parquet.write_table(pa.Table.from_pylist([{"id": 5, "day": "x"}], ARROW), path)
    served.table.add_files(str(path))
    assert "schema.name-mapping.default" in served.engine().properties
    served.table.alter([ledger.RenameColumn(("id",), "number")])
    assert served.engine().scan().to_arrow()["number"].to_pylist() == [5]


def test_a_snapshot_takes_only_what_iceberg_has(served: Served) -> None:
    new = (FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9, field_ids=True),)
    plan = ledger.SnapshotPlan("APPEND", new, facts={"watermark": 5})
    with pytest.raises(ledger.InvalidChangeError, match="watermark"):
        served.table.commit_snapshot(plan)
    named = {"snapshot_properties": {"wap.id": "7"}}
    served.table.commit_snapshot(ledger.SnapshotPlan("APPEND", new, facts=named))
    assert served.engine().current_snapshot().summary["wap.id"] == "7"


def test_writers_that_append_at_the_same_time_are_all_committed(tmp_path: Path) -> None:
    served = Served.created(tmp_path)
    files = {number: served.file(f"{number}.parquet", number) for number in range(12)}

    def append(writer: int) -> None:
        table = ledger.open(served.lake.url).table("a.b")
        for number in range(writer, 12, 4):
            table.add_files(files[number])

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(append, range(4))]
    assert served.rows() == served.rows_of_engine() == [*range(12)]
    snapshots = served.engine().snapshots()
    parents = [None, *(each.snapshot_id for each in snapshots[:-1])]
    assert [each.parent_snapshot_id for each in snapshots] == parents
    assert [each.sequence_number for each in snapshots] == [*range(1, 13)]


def test_deletes_by_position_apply_to_the_rows_that_they_name(tmp_path: Path) -> None:
    served = Served.created(tmp_path)
    served.engine_appends(1, 2, 3)
    (data,) = served.paths()
    path = Path(served.table.location.removeprefix("file://")) / "data" / "deletes.parquet"
    names = {"file_path": 2147483546, "pos": 2147483545}
    schema = pa.schema(
        [
            pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(names[name])})
            for name, kind in (("file_path", pa.string()), ("pos", pa.int64()))
        ]
    )
    parquet.write_table(pa.table({"file_path": [data], "pos": [1]}, schema), path)
    served.table.append(
        [
            FileChange(
                path=f"file://{path}",
                record_count=1,
                file_size_in_bytes=path.stat().st_size,
                content="position-deletes",
                field_ids=True,
            )
        ]
    )
    assert served.rows() == served.rows_of_engine() == [1, 3]
    summary = served.engine().current_snapshot().summary
    assert (summary.operation.value, summary["total-position-deletes"]) == ("overwrite", "1")
    served.table.delete_files(f"file://{path}")
    assert served.rows() == served.rows_of_engine() == [1, 2, 3]


def test_manifests_hold_no_bounds_of_personal_columns(tmp_path: Path) -> None:
    ledger.open(tmp_path / "lake").init(erasable=True)
    served = Served.created(tmp_path)
    assert served.table.state.keeps_outside
    served.engine_appends(1)
    served.table.alter([ledger.SetOption("ledger.personal", "day")])
    served.table.add_files(served.file("a.parquet", 2, day="ann@example.com"))
    (new,) = (each for each in served.table.at().files if each.path.endswith("/a.parquet"))
    assert [*new.lower_bounds] == [*new.upper_bounds] == [1]  # type: ignore[misc]
    assert served.rows() == served.rows_of_engine() == [1, 2]


@pytest.mark.parametrize("by", ["name", "values", "options"])
@pytest.mark.parametrize("request_of", ["plain", "commit id", "key"])
@pytest.mark.parametrize(
    "deletes", ["position", "named position", "bounded position", "equality", "vector"]
)
def test_a_file_whose_rows_were_deleted_meanwhile_is_not_replaced(
    tmp_path: Path, deletes: str, request_of: str, by: str
) -> None:
    version = 3 if deletes == "vector" else 2
    served = Served.created(tmp_path, version=version, spec=BY_DAY)
    served.table.add_files(served.file("f.parquet", 1, 2, 3))
    (first,) = served.paths()
    stale = ledger.open(served.lake.url).table("a.b")
    new = tuple(stale.data_files(served.file("c.parquet", 1, 2, 3)))
    served.table.append([row_delete(deletes, first)])
    head = served.table.state.version
    key: Any = {"commit_user": "job", "commit_identifier": 7} if request_of == "key" else {}
    options: Any = {"commit_id": "c"} if request_of == "commit id" else {}
    plans = {
        "name": ledger.SnapshotPlan("COMPACT", new, delete=(first,), **key),
        "values": ledger.SnapshotPlan(
            "OVERWRITE", new, where={"day": "x"}, isolation="snapshot", **key
        ),
        "options": ledger.SnapshotPlan("OVERWRITE", delete=(first,), **key),
    }
    with pytest.raises(ledger.CommitConflictError, match="deletes rows of a data file"):
        stale.commit_snapshot(plans[by], **options)
    assert served.table.state.version == head
    # A writer that has read the row's delete replaces the file.
    assert served.table.commit_snapshot(plans["name"]).version == head + 1


@pytest.mark.parametrize("deletes", ["position", "named position", "bounded position", "equality"])
def test_deletes_of_rows_of_other_files_do_not_keep_a_file_from_being_replaced(
    tmp_path: Path, deletes: str
) -> None:
    served = Served.created(tmp_path, spec=BY_DAY)
    served.table.add_files(served.file("f.parquet", 1))
    (first,) = served.paths()
    other = served.file("other.parquet", 2, day="y")
    served.table.add_files(other)
    served.table.append([row_delete(deletes, other, day="y", name="old")])
    stale = ledger.open(served.lake.url).table("a.b")
    new = tuple(stale.data_files(served.file("c.parquet", 1)))
    served.table.append([row_delete(deletes, other, day="y")])
    stale.commit_snapshot(ledger.SnapshotPlan("COMPACT", new, delete=(first,)))
    names = {each.rpartition("/")[2] for each in served.paths()}
    assert names == {"c.parquet", "other.parquet", "old.parquet", "deletes.parquet"}


def test_equality_deletes_without_a_partition_apply_to_every_file(tmp_path: Path) -> None:
    served = Served.created(tmp_path)
    served.table.add_files(served.file("f.parquet", 1))
    served.table.update_spec().add_field("day").commit()
    (first,) = served.paths()
    stale = ledger.open(served.lake.url).table("a.b")
    served.table.append([replace(row_delete("equality", first), spec_id=0, partition=())])
    with pytest.raises(ledger.CommitConflictError):
        stale.delete_files(first)


@pytest.mark.parametrize("options", [{}, {"commit_id": "c"}], ids=["plain", "commit id"])
def test_a_file_is_not_replaced_by_a_writer_whose_snapshot_was_deleted(
    tmp_path: Path, options: Any
) -> None:
    served = Served.created(tmp_path)
    served.table.add_files(served.file("f.parquet", 1, 2))
    (first,) = served.paths()
    stale = ledger.open(served.lake.url).table("a.b")
    new = tuple(stale.data_files(served.file("c.parquet", 1, 2)))
    read = served.engine().current_snapshot().manifest_list
    served.table.append([replace(row_delete("position", first), partition=())])
    served.table.expire_snapshots(before=served.table.state.last_snapshot_id)
    Path(read.removeprefix("file://")).unlink()
    with pytest.raises(ledger.CommitConflictError, match="read the table again"):
        stale.commit_snapshot(ledger.SnapshotPlan("COMPACT", new, delete=(first,)), **options)


def row_delete(kind: str, path: str, day: str = "x", name: str = "deletes") -> FileChange:
    """Return a file that deletes rows of a data file."""
    bounds = {2147483546: path.encode().hex()}
    all_facts: dict[str, dict[str, Any]] = {
        "position": {},
        "named position": {"referenced_data_file": path},
        "bounded position": {"lower_bounds": bounds, "upper_bounds": bounds},
        "equality": {"content": "equality-deletes", "equality_ids": (1,)},
        "vector": {
            "path": f"{name}.puffin#4",
            "format": "puffin",
            "referenced_data_file": path,
            "content_offset": 4,
            "content_size_in_bytes": 40,
        },
    }
    usual: dict[str, Any] = {"path": f"{name}.parquet", "content": "position-deletes"}
    spec: dict[str, Any] = {"spec_id": 0, "partition": (day,), "field_ids": True}
    return FileChange(record_count=1, file_size_in_bytes=90, **spec, **(usual | all_facts[kind]))


@pytest.mark.parametrize("owner", ["engines", "ledger"])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("n", ledger.AddColumn(("n",), "INT")),
        ("n", ledger.RenameColumn(("day",), "n")),
        ("x.n", ledger.AddColumn(("x",), "ROW<n INT>")),
        ("x.element", ledger.AddColumn(("x",), "ARRAY<INT>")),
        ("x.key", ledger.AddColumn(("x",), "MAP<STRING, INT>")),
        ("x.value", ledger.AddColumn(("x",), "MAP<STRING, INT>")),
        ("x.n", ledger.AddColumn(("x",), "ARRAY<ROW<n INT>>")),
        ("x.element.n", ledger.AddColumn(("x",), "ARRAY<ROW<n INT>>")),
        ("x.n", ledger.AddColumn(("x",), "MAP<STRING, ROW<n INT>>")),
        ("x.n.m", ledger.AddColumn(("x",), "ARRAY<ROW<n MAP<INT, ROW<m INT>>>>")),
    ],
)
def test_no_column_gets_the_name_of_a_partition_field_of_another_column(
    tmp_path: Path, name: str, change: Any, owner: str
) -> None:
    by_id = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), name))
    served = Served.created(tmp_path, spec=by_id)
    if owner == "ledger":
        served.lake.promote("a.b")
    with pytest.raises(ledger.FormatError, match="a partition field, bucket"):
        served.table.alter([change])
    served.table.alter([ledger.AddColumn(("y",), "ARRAY<ROW<n INT>>")])
