"""Whatever happens to an Iceberg table: what came in says that, all of it and nothing else."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from ledger import Ledger, Table
from ledger.audit.blame import Blame, flatten_blames
from ledger.events import PartitionSpecUpdated, PartitionStatisticsSet, SortOrderReplaced
from ledger.events import imported as e
from ledger.events import schema as c
from ledger.events import schema as s
from ledger.model.types import type_places
from ledger.state import IcebergOrigin, TableBuilder, TableState
from ledger.stores import LocalStore
from projections.iceberg import metadata_of, write_metadata
from tests.independent.agreeing import agrees
from tests.lakes import lake_on, memory
from tests.projections.iceberg.importing.lived import (
    COUNTERS,
    UPDATES,
    Fact,
    Json,
    Source,
    by_id,
    changed,
)
from tests.projections.importing.what_came import now
from tests.thorough import examples

Update = tuple[str, int, int]
_updates = st.tuples(st.sampled_from(sorted(UPDATES)), st.integers(0, 63), st.integers(0, 63))
_lives = st.lists(st.lists(_updates, min_size=1, max_size=4), min_size=1, max_size=12)
_single = st.lists(_updates.map(lambda each: [each]), min_size=1, max_size=20)


def normalized(said: Json) -> Json:
    """The content of a metadata file, without differences of order and absence."""
    lists = ("schemas", "partition-specs", "sort-orders", "snapshots", "encryption-keys")
    more = ("statistics", "partition-statistics")
    # Version 1 says the current schema and the default spec twice.
    found = {key: each for key, each in said.items() if key not in ("schema", "partition-spec")}
    found |= {key: by_id({key: [], **said}, key) for key in (*lists, *more)}
    for each in found["snapshots"].values():
        if not each.get("sequence-number"):
            each.pop("sequence-number", None)
    if found["current-snapshot-id"] == -1:
        found["current-snapshot-id"] = None
    return found


def recorded(events: list[Any], before: Json) -> Iterator[Fact]:
    """Yield what events say, in the words of `changed`."""
    specs, orders = by_id(before, "partition-specs"), by_id(before, "sort-orders")
    for each in events:
        match each:
            case PartitionSpecUpdated():
                yield from _layout("spec", each.spec_id, specs, each)
            case SortOrderReplaced():
                yield from _layout("order", each.order_id, orders, each)
            case _ if type(each) in _FACTS:
                yield from _FACTS[type(each)](each)
            case _:
                yield "column", each.field_id


def _layout(noun: str, number: int, there: Json | dict[int, Json], event: Any) -> Iterator[Fact]:
    if number not in there:
        yield "add", noun, number
    if getattr(event, "set_default", True):
        yield "set", f"default {noun}", number


def _removed(noun: str, ids: Iterable[Any]) -> list[Fact]:
    return [("remove", noun, each) for each in ids]


def _said(it: e.TableFactsSet) -> list[Fact]:
    names = (each for each in it.__struct_fields__ if getattr(it, each) is not UNSET)
    return [(each.replace("_", "-"),) for each in names]


_FACTS: dict[type, Callable[[Any], list[Fact]]] = {
    e.SchemaNamed: lambda it: [
        ("add", "schema", it.schema_id),
        ("set", "current schema", it.schema_id),
    ],
    e.SchemaAdded: lambda it: [("add", "schema", it.schema.schema_id)],
    e.CurrentSchemaSet: lambda it: [("set", "current schema", it.schema_id)],
    e.SchemasRemoved: lambda it: _removed("schema", it.schema_ids),
    s.ColumnMoved: lambda _: [("column order",)],
    s.IdentifierFieldsSet: lambda _: [("identifier fields",)],
    e.LayoutsRemoved: lambda it: [
        *_removed("spec", it.spec_ids),
        *_removed("order", it.order_ids),
    ],
    e.SnapshotAdded: lambda it: [("add", "snapshot", it.snapshot.snapshot_id)],
    e.SnapshotReplaced: lambda it: [("set", "snapshot", it.snapshot.snapshot_id)],
    e.SnapshotsRemoved: lambda it: _removed("snapshot", it.snapshot_ids),
    e.SnapshotRefSet: lambda it: [("set", "ref", it.ref_name)],
    e.SnapshotRefRemoved: lambda it: [("remove", "ref", it.ref_name)],
    e.StatisticsSet: lambda it: [("set", "statistics", it.statistics.snapshot_id)],
    PartitionStatisticsSet: lambda it: [
        ("set", "partition-statistics", it.partition_statistics.snapshot_id)
    ],
    e.StatisticsRemoved: lambda it: [
        *_removed("statistics", it.snapshot_ids),
        *_removed("partition-statistics", it.of_partitions),
    ],
    c.SetOption: lambda it: [("set", "property", it.key)],
    c.RemoveOption: lambda it: [("remove", "property", it.key)],
    e.EncryptionKeyAdded: lambda it: [("add", "key", it.encryption_key.key_id)],
    e.EncryptionKeyRemoved: lambda it: [("remove", "key", it.key_id)],
    e.SnapshotLogUpdated: lambda _: [("snapshot-log",)],
    e.MetadataLogUpdated: lambda _: [("metadata-log",)],
    e.TableFactsSet: _said,
    e.SourceFollowed: lambda _: [],
}


def required(before: Json, after: Json) -> set[Fact]:
    """Events to record: a known schema implies its columns, and counters count themselves."""
    found = changed(before, after)
    if after["current-schema-id"] in by_id(before, "schemas"):
        columns = ("column", "column order", "identifier fields")
        found = {each for each in found if each[0] not in columns}
    return {each for each in found if each[0] not in COUNTERS}


def states_of(table: Table) -> list[TableState]:
    """Return the table at every version."""
    builder, states = TableBuilder(), []
    for commit in table.events():
        builder.commit(commit)
        states.append(builder.freeze())
    return states


def assert_blamed(table: Table, states: list[TableState]) -> None:
    """Nothing names a commit that left it as it was."""
    for blame in flatten_blames(table.blame()):
        for origin in blame.origins:
            version = origin.cause.version
            if version and blame.subject != "column order":
                one, other = (thing(each, blame) for each in states[version - 1 : version + 1])
                assert one != other, (blame.subject, origin)


def thing(state: TableState, blame: Blame) -> Any:
    """Return what a blame is about, at a version."""
    if blame.field_id is not None:
        members = (each.field for each in type_places(state.schema.fields))
        return [each for each in members if each is not None and each.id == blame.field_id]
    what, _, name = blame.subject.rpartition(" ")
    origin = state.origin_of_kind(IcebergOrigin)
    things: dict[str, Callable[[], Any]] = {
        "partition spec": lambda: state.spec,
        "sort order": lambda: state.sort_order,
        "identifier fields": lambda: state.schema.identifier_field_ids,
    }
    of_one: dict[str, Callable[[], Any]] = {
        "partition spec": lambda: [each for each in state.specs if str(each.spec_id) == name],
        "sort order": lambda: [each for each in state.sort_orders if str(each.order_id) == name],
        "option": lambda: state.schema.options.get(name),
        "ref": lambda: origin.refs.get(name),
        "encryptionKey": lambda: origin.encryption_keys.get(name),
    }
    return (things.get(blame.subject) or of_one[what])()


def assert_followed(lake: Ledger, files: list[Json], folder: Path) -> None:
    """Import the newest of some files after the first, and assert that its content is kept."""
    lake.init()
    is_new = "a" not in lake.databases()
    known = 0 if is_new else lake.table("a.b").state.version
    source = folder / f"{files[-1]['last-updated-ms']}.metadata.json"
    source.write_text(json.dumps(files[-1]))
    lake.import_table("a.b", str(source))
    table = lake.table("a.b")
    assert normalized(json.loads(write_metadata(metadata_of(table.state)))) == normalized(files[-1])
    came = [each for commit in table.events(known + 1) for each in commit.transactions]
    said = Counter(recorded([each for one in came for each in one.events], files[0]))
    assert said.keys() <= set[Fact]().union(*map(changed, files, files[1:]))
    if len(files) == 2:
        # Several things of one column, or moves of several, may change at once.
        assert {each for key, each in said.items() if not key[0].startswith("column")} <= {1}
    if not is_new:
        # A new table begins with some of what its first file says.
        assert required(files[0], files[-1]) <= said.keys()
        rows = {each.what for each in table.diff(known).rows if each.what.startswith("field ")}
        assert rows == {
            f"field {it[1]}" for it in changed(files[0], files[-1]) if it[0] == "column"
        }


def live(version: int, life: list[list[Update]]) -> None:
    """Let a table live, and follow it after each of its parts."""
    with tempfile.TemporaryDirectory() as place:
        root, folder = Path(place) / "lake", Path(place) / "theirs"
        folder.mkdir()
        lake = lake_on(LocalStore(root), clock=now)
        source = Source.created(version)
        files = [source.said]
        for part in life:
            for update in part:
                source.update(*update)
                files.append(source.said)
            assert_followed(lake, files, folder)
            files = files[-1:]
        table = lake.table("a.b")
        assert_blamed(table, states_of(table))
        agrees(root, lake)


NOT_CURRENT: list[list[Update]] = [[("add-schema", 0, 0)], [("set-current-schema", 1, 0)]]


@settings(deadline=None, max_examples=examples(120))
@example(version=2, life=[[("add-schema", 0, 0)]])
@example(version=2, life=[[("add-sort-order", 0, 0)]])
@example(version=2, life=[*NOT_CURRENT, [("set-current-schema", 0, 0)]])
@given(version=st.integers(1, 3), life=_single)
def test_each_update_of_a_table_is_recorded_as_exactly_itself(
    version: int, life: list[list[Update]]
) -> None:
    live(version, [[], *life])


@settings(deadline=None, max_examples=examples(120))
@given(version=st.integers(1, 3), life=_lives)
def test_updates_that_come_in_together_are_recorded_as_what_they_changed(
    version: int, life: list[list[Update]]
) -> None:
    live(version, life)


def alone(tmp_path: Path, *updates: Update) -> list[Any]:
    """Return the schema, snapshot and ref events of a table imported from only its last file."""
    source = Source.created(2)
    for update in updates:
        source.update(*update)
    (tmp_path / "9.metadata.json").write_text(json.dumps(source.said))
    lake = lake_on(memory(), clock=now)
    lake.import_table("a.b", str(tmp_path / "9.metadata.json"))
    kinds = (e.SchemaNamed, e.SchemaAdded, e.SnapshotAdded, e.SnapshotRefSet)
    came = (each for commit in lake.table("a.b").events(1) for each in commit.transactions)
    return [each for one in came for each in one.events if isinstance(each, kinds)]


ADD_COLUMN: Update = ("add-schema", 1, 0)
COMMIT: Update = ("commit", 0, 0)


def test_a_schema_that_a_snapshot_of_main_was_made_under_was_the_current_one(
    tmp_path: Path,
) -> None:
    events = alone(tmp_path, ADD_COLUMN, COMMIT, ADD_COLUMN, ("set-properties", 0, 0))
    first, snapshot, main, second = events
    assert (first, second) == (e.SchemaNamed(1), e.SchemaNamed(3))
    assert snapshot.snapshot.schema_id == 1
    assert main.ref.snapshot_id == snapshot.snapshot.snapshot_id


def test_no_other_schema_is_recorded_as_a_former_current_one(tmp_path: Path) -> None:
    events = alone(tmp_path, ADD_COLUMN, ("add-snapshot", 0, 0), ADD_COLUMN, COMMIT)
    assert [type(each) for each in events if not isinstance(each, e.SnapshotRefSet)] == [
        e.SnapshotAdded,
        e.SchemaAdded,
        e.SchemaNamed,
        e.SnapshotAdded,
    ]


def test_main_keeps_its_retention_on_the_way_to_a_snapshot(tmp_path: Path) -> None:
    lake, source = lake_on(memory(), clock=now), Source.created(2)
    for updates in ([COMMIT, ("set-snapshot-ref", 0, 1)], [COMMIT, COMMIT]):
        for update in updates:
            source.update(*update)
        path = tmp_path / f"{source.said['last-updated-ms']}.metadata.json"
        path.write_text(json.dumps(source.said))
        lake.import_table("a.b", str(path))
    events = [
        each
        for commit in lake.table("a.b").events()
        for one in commit.transactions
        for each in one.events
    ]
    refs = [each.ref.min_snapshots_to_keep for each in events if isinstance(each, e.SnapshotRefSet)]
    assert refs == [2, 2, 2]
