"""A reader that knows FORMAT.md alone comes to the same state at every version, and sees damage."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

import ledger
from ledger import (
    FileChange,
    Identifier,
    Ledger,
    LedgerError,
    SetIdentifierFields,
    SetOption,
    Table,
)
from ledger.events import AddDefinition, AddDialect, DropDefinition, UpdateDefinition
from ledger.model import BlobMetadata, type_from_json
from ledger.model.types import ArrayType, MapType, RowType, VarCharType
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.iceberg.served_views import create_view, update_view
from tests.files.test_later_facts import data, table_on, vector
from tests.files.test_later_facts import lived as lived_with_deletes
from tests.histories import random_changes, start_schema
from tests.independent.agreeing import agrees
from tests.independent.replayer import (
    BrokenError,
    Catalog,
    commits,
    people,
    tables,
    with_values,
)
from tests.independent.replayer import Table as Replayed
from tests.lakes import lake_on
from tests.projections.iceberg.metadata.test_views import (
    COLUMN,
    CREATION,
    current,
    properties,
    schema,
    version,
)
from tests.projections.iceberg.test_served_views import batch, location

DATA = Path(__file__).parents[1] / "data"
ICEBERG_ALONE = {"ledger.formats": "iceberg"}
COMMITS = 150
SQL = ledger.SqlFunctionDefinition("a * b")
ROW = type_from_json(
    {
        "type": "ROW",
        "fields": [
            {"name": "a", "type": "INT"},
            {"name": "b", "type": {"type": "ARRAY", "element": "STRING"}},
        ],
    }
)
COLUMNS = ledger.Schema.of(
    {
        "id": "BIGINT NOT NULL",
        "amount": "DECIMAL(9, 2)",
        "place": ROW,
        "list": ArrayType(ROW),
        "map": MapType(VarCharType(9), ROW),
        "day": "DATE",
    },
    options={"ledger.formats": "iceberg"},
)


def courses(rng: random.Random, table: Table, number: int) -> list[Callable[[], object]]:
    """Return what may be done to a table."""
    head = table.state
    some = rng.randint(1, max(1, head.last_snapshot_id))
    file = FileChange(
        path=f"{number}.parquet", record_count=rng.randrange(9), file_size_in_bytes=100 + number
    )
    tag, column = f"t{rng.randrange(3)}", rng.choice(head.schema.names)
    later = msgspec.structs.replace(file, path=f"{number}-b.parquet", creation_time=number)
    return [
        lambda: table.alter(random_changes(rng, head.schema, length=rng.randint(1, 3))),
        lambda: table.alter(random_changes(rng, head.schema, length=1)),
        lambda: table.alter(random_changes(rng, head.schema, length=1)),
        lambda: table.append([file]),
        lambda: table.append([file, later]),
        lambda: table.create_tag(tag, snapshot=some, time_retained_millis=86_400_000),
        lambda: table.replace_tag(tag, snapshot=some),
        lambda: table.delete_tag(tag),
        lambda: table.rollback(snapshot=some),
        lambda: table.expire_snapshots(before=max(1, some - 5)),
        lambda: table.delete_files([rng.choice(table.at().files).path]),
        lambda: table.update_spec().add_field(column).commit(),
        lambda: table.replace_sort_order().asc(column).commit(),
        lambda: table.set_partition_statistics(some, f"stats-{number}.parquet", 10),
        lambda: table.alter([SetIdentifierFields((("id",),))]),
        lambda: table.alter([SetOption(f"k{rng.randrange(3)}", str(number))]),
    ]


def branching(rng: random.Random, table: Table, new: FileChange) -> list[Callable[[], object]]:
    """Return what may be done to a table and its branches."""
    branch = table.branch(rng.choice(["audit", "other"]))
    return [
        *[lambda: branch.append([new])] * 4,
        lambda: branch.delete_files(rng.choice(branch.at().files).path),
        lambda: branch.overwrite([new]),
        *[branch.fast_forward] * 3,
        branch.reset,
        branch.delete,
        *[branch.create] * 2,
        lambda: branch.rollback(snapshot=rng.choice(branch.state.snapshot_ids)),
        lambda: branch.expire_snapshots(before=table.state.branch(branch.name).next_id - 1),
        lambda: table.append([new]),
        lambda: table.expire_snapshots(before=table.state.last_snapshot_id),
    ]


def engines_change_views(lake: Ledger) -> None:
    """Let engines replace a view of the ledger and create one, so that all updates are recorded."""
    handle, name = handle_of(lake), Identifier("db", "y")
    create_view(handle, name, batch(*CREATION, location(lake), properties({"b": "1", "a": "2"})))
    for of in (name, Identifier("db", "v")):
        update_view(handle, of, [], batch(properties({"version.history.num-entries": "2"})))
        for number in range(3):
            query = version(f"select {number}", "default", "spark", schema_id=0)
            update_view(handle, of, [], batch(query, current(), location(lake, f"w{number}")))
    wide = schema(COLUMN, {**COLUMN, "id": 2, "name": "m", "type": "fixed[4]"})
    removal = {"action": "remove-properties", "removals": ["b"]}
    update_view(handle, name, [], batch(removal, wide, version("select 9", "default", "spark")))
    lake.alter_view("db.y", [SetOption("k", "1")])
    lake.drop_view("db.y")


def a_life(lake: Ledger, seed: int) -> None:
    """Let a ledger have databases, views, and tables with every kind of change."""
    rng = random.Random(seed)
    lake.create_database("db", {"a": "1", "b": "2"})
    lake.create_database("gone")
    lake.alter_database("db", removals=["a"], updates={"c": "3"})
    lake.drop_database("gone")
    view = ledger.ViewSchema(fields=start_schema().fields, query="SELECT 1")
    lake.create_view("db.v", view)
    lake.create_view("db.x", view)
    lake.alter_view("db.v", [SetOption("k", "1"), AddDialect("spark", "SELECT 2")])
    engines_change_views(lake)
    lake.create_function("db.v", ledger.Function(input_params=start_schema().fields))
    lake.alter_function("db.v", [SetOption("k", "1"), AddDefinition("spark", SQL)])
    lake.alter_function("db.v", [UpdateDefinition("spark", ledger.FileFunctionDefinition())])
    lake.create_function("db.f", ledger.Function(definitions={"spark": SQL}))
    lake.alter_function("db.f", [DropDefinition("spark")])
    lake.drop_function("db.f")
    lake.rename_view("db.v", "db.w")
    lake.drop_view("db.x")
    table = lake.create_table("db.t", COLUMNS)
    for number in range(COMMITS):
        # What the rules refuse is no change.
        with suppress(LedgerError, IndexError):
            rng.choice(courses(rng, table, number))()
    lake.rename_table("db.t", "db.u")
    keyed = lake.create_table(
        "db.keyed", ledger.Schema.of({"k": "INT NOT NULL"}, primary_keys=["k"])
    )
    keyed.alter([ledger.RenameColumn(("k",), "key")])
    keyed.alter([ledger.DropPrimaryKey()])
    lake.drop_table("db.keyed")
    lake.undrop_table("db.keyed", "db.restored").alter([SetOption("k", "1")])
    lake.drop_table("db.restored", purge=True)
    lake.create_table("db.twice", {"id": "INT"})
    for _ in range(2):
        lake.drop_table("db.twice")
        lake.undrop_table("db.twice")
    other = lake.create_table("db.t", {"id": "INT", "day": "DATE"})
    other.alter([SetOption("partition", "day"), SetOption("primary-key", "id,day")])
    served = lake.create_table("db.s", ledger.Schema.of({"id": "INT"}, options=ICEBERG_ALONE))
    served.start_serving()
    served.alter([SetOption("k", "1")])
    served.stop_serving()
    served.start_serving("iceberg")
    other = lake.create_table("db.long", {"id": "INT"})
    many = [
        FileChange(path=f"{number}.parquet", record_count=1, file_size_in_bytes=9)
        for number in range(1_001)
    ]
    other.append(many)
    other.overwrite([msgspec.structs.replace(many[0], path="all.parquet")], where={})


NOT_MADE_HERE = {
    *("correctClock", "raiseFormatRules", "undropColumn"),
    *("moveLedger", "aliasLedger", "copyLedger"),
    *("setSnapshotRef", "removeSnapshotRef", "commitToBranch"),
    *("eraseValues", "setStatistics", "purgeTable"),
}
"""They need a clock that is off, or later rules.

Columns that come back, branches, Puffin files and ledgers that go about have tests of their own.
"""


def events_of(other: type) -> set[str]:
    return {name for name in vars(other) if name != name.lower() or name == "rollback"}


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    roots = []
    for seed in range(4):
        root = tmp_path_factory.mktemp("lived")
        a_life(lake_on(LocalStore(root)), seed)
        roots.append(root)
    return roots


def test_every_kind_of_event_happened(lived: list[Path]) -> None:
    streams = [each for root in lived for each in (root / "_ledger", *tables(root))]
    seen = {
        event["type"]
        for stream in streams
        for commit in commits(stream)
        for transaction in commit["transactions"]
        for event in transaction.get("events", [])
    }
    assert events_of(Replayed) | events_of(Catalog) == seen | NOT_MADE_HERE


def test_a_reader_of_the_format_alone_comes_to_the_same_state_at_every_version(
    lived: list[Path],
) -> None:
    assert sum(agrees(root, lake_on(LocalStore(root))) for root in lived) > COMMITS


def test_a_column_that_came_back_is_read_the_same(tmp_path: Path) -> None:
    lake = lake_on(LocalStore(tmp_path))
    lake.create_database("db")
    row = ledger.Schema.of({"x": "INT", "y": "STRING", "z": "INT"}).fields
    table = lake.create_table("db.t", {"id": "INT", "r": RowType(row), "b": "INT NOT NULL"})
    for name in (("r", "y"), ("r",), ("b",)):
        table.alter([ledger.DropColumn(name)])
    table.append([FileChange(path="1.parquet", record_count=1, file_size_in_bytes=9)])
    for name in (("b",), ("r",), ("r", "y")):
        table.alter([ledger.UndropColumn(name)])
    table.alter([ledger.UpdateColumnComment(("b",), "back"), ledger.DropColumn(("b",))])
    table.alter([ledger.UndropColumn(("again",), field_id=table.column_id("b"))])

    assert agrees(tmp_path, lake) > 8


def test_what_files_say_of_order_and_deletes_is_read_the_same(tmp_path: Path) -> None:
    table = table_on(LocalStore(tmp_path))
    lived_with_deletes(table, random.Random(1), 20)
    many = [data(f"many-{number}.parquet", sort_order_id=0) for number in range(1_001)]
    table.append([*many, vector(many[0].path, 44, "many.puffin")])

    assert agrees(tmp_path, lake_on(LocalStore(tmp_path))) > 20


def test_branches_are_read_the_same(tmp_path: Path) -> None:
    rng, lake = random.Random(5), lake_on(LocalStore(tmp_path))
    lake.create_database("db")
    table = lake.create_table("db.t", COLUMNS)
    table.append([FileChange(path="a.parquet", record_count=2, file_size_in_bytes=9)])
    table.branch("audit").create(min_snapshots_to_keep=2, max_ref_age_millis=5)
    for number in range(60):
        new = FileChange(path=f"{number}.parquet", record_count=number, file_size_in_bytes=9)
        # What the rules refuse is no change.
        with suppress(LedgerError, IndexError):
            rng.choice(branching(rng, table, new))()

    assert agrees(tmp_path, lake) > 20
    seen = {
        event["type"]
        for commit in commits(next(tables(tmp_path)))
        for transaction in commit["transactions"]
        for event in transaction.get("events", [])
    }
    assert {"setSnapshotRef", "removeSnapshotRef", "commitToBranch"} <= seen
    other = Replayed(next(tables(tmp_path)))
    for commit in commits(other.folder):
        other.fold(commit)
    for name in table.state.branches:
        assert other.lines[name].keys() == {each.path for each in table.at(branch=name).files}


def test_puffin_files_are_read_the_same_until_their_snapshots_are_gone(tmp_path: Path) -> None:
    lake = lake_on(LocalStore(tmp_path))
    lake.create_database("db")
    table = lake.create_table("db.t", COLUMNS)
    for number in range(1, 6):
        table.append([FileChange(path=f"{number}", record_count=2, file_size_in_bytes=9)])
        blob = BlobMetadata(
            type="apache-datasketches-theta-v1",
            snapshot_id=number,
            sequence_number=number,
            fields=(0,),
            properties={"ndv": str(number)},
        )
        table.set_statistics(number, f"{number}.stats", 90, 40, [blob])
        table.set_statistics(number, f"{number}-b.stats", 90, 40, [blob] * (number % 2))
    table.create_tag("one", snapshot=1)
    table.branch("two").create(snapshot=2)
    table.expire_snapshots(before=4)
    table.delete_tag("one")
    table.branch("two").delete()

    assert sorted(table.state.statistics) == [4, 5]
    assert agrees(tmp_path, lake) == table.state.version + 1


def test_author_and_message_are_read_the_same_where_lines_do_not_hold_them(tmp_path: Path) -> None:
    lake = lake_on(LocalStore(tmp_path))
    lake.init(erasable=True)
    lake.create_database("db", author="ann", message="for all")
    table = lake.create_table("db.t", {"id": "INT"}, author="bob", properties={"a": '"1"'})
    table.alter([SetOption("k", "1")], author="ann", message="\u00e4")
    table.alter([SetOption("k", "2")], author="", message="bob asked")
    lake.erase(author="bob", by="desk")

    assert agrees(tmp_path, lake) == len(list(table.events()))
    for stream, mine in ((tmp_path / "_ledger", lake), (next(tables(tmp_path)), table)):
        for commit, logged in zip(commits(stream), mine.events(), strict=True):
            theirs = people(tmp_path, commit["transactions"][0])
            said = {key: "erased" if value is None else value for key, value in theirs.items()}
            if said.get("properties") == "erased":
                said["properties"] = {"erased": ""}
            (transaction,) = logged.transactions
            assert said.get("author", "") == transaction.author
            assert said.get("message", "") == transaction.message
            assert said.get("properties", {}) == transaction.properties
    seen = [people(tmp_path, each["transactions"][0]) for each in commits(next(tables(tmp_path)))]
    assert [each.get("message") for each in seen] == [None, "\u00e4", None]
    assert seen[0] == {"author": None, "properties": None}


def test_a_ledger_that_went_about_is_read_the_same(tmp_path: Path) -> None:
    a_life(lake_on(LocalStore(tmp_path / "0")), 1)
    for number, log_event in enumerate((Ledger.record_move, Ledger.record_copy), 1):
        shutil.copytree(tmp_path / str(number - 1), tmp_path / str(number))
        there = lake_on(LocalStore(tmp_path / str(number)))
        log_event(there)
        read = Catalog()
        for commit in commits(tmp_path / str(number) / "_ledger"):
            read.fold(commit)
        state = there.state
        assert (read.place, read.ledger_id) == (state.place, state.ledger_id)
        assert read.place == f"file://{tmp_path / str(number)}"
        assert agrees(tmp_path / str(number), lake_on(LocalStore(tmp_path / str(number)))) > 0


def bodies(root: Path) -> Iterator[Path]:
    for stream in (root / "_ledger", *tables(root)):
        yield from sorted((stream / "log").glob("*.json"))


def test_a_flipped_bit_in_any_commit_but_the_newest_is_seen(tmp_path: Path) -> None:
    lake = lake_on(LocalStore(tmp_path))
    lake.create_database("db")
    table = lake.create_table("db.t", {"id": "INT"})
    for number in range(4):
        table.alter([SetOption("k", str(number))])
    paths = list(bodies(tmp_path))
    newest = {max(each.parent.glob("*.json")) for each in paths}
    rng = random.Random(1)
    for path in set(paths) - newest:
        whole = path.read_bytes()
        spoilt = bytearray(whole)
        spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(7)
        path.write_bytes(spoilt)
        with pytest.raises((BrokenError, ValueError, KeyError)):
            list(commits(path.parent.parent))
        path.write_bytes(whole)


def test_values_of_personal_columns_are_read_the_same_and_erased_for_both(tmp_path: Path) -> None:
    lake = lake_on(LocalStore(tmp_path))
    lake.init(erasable=True)
    lake.create_database("db")
    options = {"ledger.personal": "mail, kind", "ledger.formats": "iceberg"}
    columns = {"id": "INT", "mail": "STRING", "kind": "STRING"}
    schema = ledger.Schema.of(columns, partition_keys=["kind"], options=options)
    table = lake.create_table("db.t", schema)
    for number, who in enumerate(("ann", "bob", "ann")):
        text = who.encode().hex()
        file = FileChange(
            path=str(number),
            partition=(f"of {who}",),
            record_count=1,
            file_size_in_bytes=9,
            field_ids=True,
            lower_bounds={0: "01000000", 1: text},
            upper_bounds={0: "02000000", 1: text},
        )
        table.append([file])
    lake.erase(table="db.t", column="mail", value="ann")
    lake.erase(table="db.t", column="kind", value="of bob")

    assert agrees(tmp_path, lake) == 4
    (stream,) = tables(tmp_path)
    listed = [
        with_values(tmp_path, table.state.table_id, change)
        for commit in commits(stream)
        for transaction in commit["transactions"]
        for event in transaction.get("events", [])
        for change in event.get("files", [])
    ]
    assert [(each["lowerBounds"], each["partition"]) for each in listed] == [
        ({"0": "01000000"}, ["of ann"]),
        ({"0": "01000000", "1": b"bob".hex()}, [None]),
        ({"0": "01000000"}, ["of ann"]),
    ]
    assert [each.lower_bounds for each in table.at().files] == [
        {int(key): bound for key, bound in each["lowerBounds"].items()} for each in listed
    ]
