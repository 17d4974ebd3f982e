"""Every number from outside is rejected, or every reader of the log can represent it."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledger
from ledger import (
    AddColumn,
    DataField,
    DropColumn,
    FileChange,
    InvalidChangeError,
    InvalidInputError,
    LedgerError,
    Schema,
    SnapshotPlan,
    Table,
    ViewSchema,
)
from ledger.decide import (
    CommitSnapshot,
    CorrectClock,
    CreateTag,
    ExpireSnapshots,
    FastForward,
    OtherChange,
    ReplaceTag,
    Rollback,
    SetBranch,
    SetPartitionStatistics,
    bounds,
    create_schema,
)
from ledger.decide.bounds import COUNTS_BY_FIELD, FACTS, NUMBERS, TEXT_FACTS, Bound
from ledger.events import CommittedFacts, SnapshotCommitted, SnapshotFacts
from ledger.model import BlobMetadata, StatisticsFile, parse_type, type_to_wire
from ledger.model.arrow_types import element_id, key_id
from ledger.model.types import STRING, ArrayType, DataType, MapType, RowType, walk_ids
from ledger.state import TableStream
from tests.thorough import examples

INT = parse_type("INT")
NEW_FILE: dict[str, Any] = {"record_count": 1, "file_size_in_bytes": 9, "field_ids": True}


def new_file(path: str, **facts: Any) -> FileChange:
    return FileChange(path=f"{path}.parquet", **{**NEW_FILE, **facts})


def a_table(root: Path) -> Table:
    """A table with two snapshots and the tag `there`."""
    lake = ledger.open(str(root), author="ada")
    lake.create_database("d")
    table = lake.create_table("d.t", Schema.of({"id": "INT"}))
    table.append([new_file("a")])
    table.append([new_file("b")])
    table.create_tag("there", snapshot=1)
    return table


def adds(table: Table, facts: dict[str, Any]) -> None:
    table.append([new_file("c", **facts)])


def snapshot(table: Table, facts: dict[str, Any], **more: Any) -> None:
    plan = SnapshotPlan("APPEND", (new_file("c"),), commit_user="u", facts=facts, **more)
    table.commit_snapshot(plan)


def tags(table: Table, facts: dict[str, Any]) -> None:
    named = {"snapshot": facts.pop("snapshot_id", None), **facts}
    table.create_tag("new", **named)


def retags(table: Table, facts: dict[str, Any]) -> None:
    named = {"snapshot": facts.pop("snapshot_id", None), **facts}
    table.replace_tag("there", **named)


def statistics(table: Table, facts: dict[str, Any]) -> None:
    given = {"snapshot_id": 1, "file_size_in_bytes": 9, **facts}
    table.set_partition_statistics(given["snapshot_id"], "p", given["file_size_in_bytes"])


def sketches(table: Table, facts: dict[str, Any]) -> None:
    given = {"snapshot_id": 1, "file_size_in_bytes": 9, "file_footer_size_in_bytes": 3, **facts}
    table.set_statistics(
        given["snapshot_id"],
        "p",
        given["file_size_in_bytes"],
        given["file_footer_size_in_bytes"],
        [],
    )


def blobs(table: Table, facts: dict[str, Any]) -> None:
    given = {"type": "t", "snapshot_id": 1, "sequence_number": 1, "fields": (0,), **facts}
    table.set_statistics(1, "p", 9, 3, [BlobMetadata(**given)])


def branches(table: Table, facts: dict[str, Any]) -> None:
    named = {"snapshot": facts.pop("snapshot_id", None), **facts}
    table.branch("new").create(**named)


def evolves(_: Table, facts: dict[str, Any]) -> None:
    ledger.evolve(attrs.evolve(Schema.of({"id": "INT"}), **facts), [AddColumn(("n",), "INT")])


Ask = Callable[[Table, dict[str, Any]], object]

DOORS: dict[type, Ask] = {
    FileChange: adds,
    CommitSnapshot: lambda table, facts: snapshot(table, {}, **facts),
    Rollback: lambda table, facts: table.rollback(snapshot=facts["target_snapshot_id"]),
    CreateTag: tags,
    ReplaceTag: retags,
    ExpireSnapshots: lambda table, facts: table.expire_snapshots(
        before=facts["earliest_snapshot_id"]
    ),
    SetBranch: branches,
    SetPartitionStatistics: statistics,
    StatisticsFile: sketches,
    BlobMetadata: blobs,
    Schema: evolves,
}
"""The entry point of each kind of record."""


def cases() -> Iterator[tuple[str, Ask, str, Bound]]:
    for kind, row in NUMBERS.items():
        # The ledger itself looks up what main is forwarded to.
        for name, bound in row.items() if kind is not FastForward else ():
            yield f"{kind.__name__}.{name}", DOORS[kind], name, bound
    for name, bound in FACTS.items():
        yield f"facts.{name}", snapshot, name, bound
    for name in COUNTS_BY_FIELD:
        yield (
            f"FileChange.{name}",
            lambda t, f: adds(t, {k: {0: v} for k, v in f.items()}),
            name,
            (bounds.COUNT),
        )


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case[0])
def test_a_number_at_its_bounds_is_refused_or_said_by_everything(
    case: tuple[str, Ask, str, Bound], tmp_path: Path
) -> None:
    _, ask, name, bound = case
    wanted: dict[str, object] = {
        "least": bound.least,
        "most": bound.most,
        "below": bound.least - 1,
        "above": bound.most + 1,
    }
    if ask is not DOORS[Rollback]:
        # A rollback looks its target up before it is decided.
        wanted |= {"text": "1", "flag": True}
    for what, value in wanted.items():
        table = a_table(tmp_path / what)
        before = table.at().version
        error = refusal(table, ask, {name: value})
        if error is None:
            assert what in {"least", "most"}
            said_by_everything(table, tmp_path / what)
        else:
            assert not isinstance(error, ledger.CommitUnknownError)
            assert table.at().version == before


def refusal(table: Table, ask: Ask, facts: dict[str, Any]) -> LedgerError | None:
    try:
        ask(table, facts)
    except LedgerError as error:
        return error
    return None


def said_by_everything(table: Table, root: Path) -> None:
    table.project("paimon")
    table.project("iceberg")
    state = table.at().state
    stream = TableStream()
    assert stream.decode_state(stream.encode_state(state)) == state
    assert ledger.open(str(root)).table("d.t").at().state == state


def integers(kind: type) -> set[str]:
    hints = typing.get_type_hints(kind)
    return {name for name, hint in hints.items() if hint is int or int in get_args(hint)}


def test_every_number_of_a_change_of_files_snapshots_and_tags_has_a_bound() -> None:
    # The ledger itself works out what a correction of clocks says, and what a branch begins with.
    for kind in {FileChange, *get_args(OtherChange)} - {CorrectClock}:
        assert integers(kind) - {"base_version"} == set(NUMBERS.get(kind, {})), kind


def test_every_number_of_a_snapshots_further_facts_has_a_bound() -> None:
    decided = {each.name for each in msgspec.structs.fields(SnapshotFacts)}
    # A server checks the time that an engine gives a snapshot.
    assert integers(SnapshotCommitted) - decided - {"time_millis"} == set(FACTS)


def test_every_text_of_a_snapshots_further_facts_is_known_as_one() -> None:
    decided = {each.name for each in msgspec.structs.fields(SnapshotFacts)}
    hints = typing.get_type_hints(CommittedFacts)
    texts = {name for name, hint in hints.items() if str in get_args(hint)}
    assert texts - decided == set(TEXT_FACTS)


@pytest.mark.parametrize("bytes_of", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("name", [*TEXT_FACTS, "snapshot_properties"])
@pytest.mark.parametrize("formats", ["iceberg", "delta", "paimon,iceberg"])
def test_bytes_are_no_text(name: str, bytes_of: Callable[[bytes], Any], formats: str) -> None:
    lake = ledger.open(f"memory://texts-{name}-{bytes_of.__name__}-{formats}")
    lake.create_database("d")
    options = {"ledger.formats": formats}
    table = lake.create_table("d.t", Schema.of({"id": "INT"}, options=options))
    value = bytes_of(b"x")
    with pytest.raises(InvalidInputError):
        snapshot(table, {name: {"a": value} if name == "snapshot_properties" else value})
    assert table.at().version == 0


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**5000], ids=["above", "below", "huge"])
def test_a_whole_number_in_a_partition_has_64_bits(value: int) -> None:
    with pytest.raises(InvalidInputError, match="partition value .* is not between"):
        bounds.check_partition_values([new_file("a", partition=("x", value))])
    bounds.check_partition_values([new_file("a", partition=(None, True, -(2**63), 2**63 - 1))])


def test_a_partition_value_that_no_format_knows_the_type_of_has_64_bits() -> None:
    lake = ledger.open("memory://bounds-of-partitions")
    lake.create_database("d")
    options = {"ledger.formats": "iceberg"}
    schema = Schema.of({"id": "INT", "p": "BIGINT"}, options=options)
    table = lake.create_table("d.t", schema)
    table.update_spec().add_field("p").commit()
    table.update_spec().remove_field("p").commit()
    table.alter([DropColumn(("p",))])
    said = {"spec_id": 1, "schema_id": table.schema.id}
    with pytest.raises(InvalidInputError, match="partition value 9223372036854775808 is not"):
        table.append([new_file("a", partition=(2**63,), **said)])
    table.append([new_file("a", partition=(2**63 - 1,), **said)])


@pytest.mark.parametrize("name", ["record_count", "file_size_in_bytes"])
def test_sums_that_no_format_can_say_are_refused(name: str, tmp_path: Path) -> None:
    table = a_table(tmp_path)
    most = 2**63 - 1
    before = table.at().version
    with pytest.raises(InvalidInputError, match="rows|bytes"):
        table.append([new_file("c", **{name: most}), new_file("d", **{name: most})])
    with pytest.raises(InvalidInputError, match="in total"):
        table.append([new_file("c", **{name: most})])
    assert table.at().version == before


def test_the_newest_snapshot_is_named_by_none_alone(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    with pytest.raises(InvalidInputError, match="tag 'v': snapshot id 0 is not between 1 and"):
        table.create_tag("v", snapshot=0)
    with pytest.raises(InvalidInputError, match="tag 'v': .*leave it out to keep it for ever"):
        table.create_tag("v", time_retained_millis=-5)
    table.create_tag("v")
    assert table.at().state.tags["v"].snapshot_id == 2


KINDS: tuple[DataType, ...] = (
    INT,
    RowType((DataField(0, "p", INT), DataField(1, "q", INT))),
    ArrayType(ArrayType(INT)),
    MapType(parse_type("STRING NOT NULL"), RowType((DataField(0, "p", INT),))),
)
IDS = st.one_of(
    st.integers(0, 10),
    st.integers(2**30 - 6, 2**30 + 2),
    st.integers(2**31 - 205, 2**31 - 1),
    st.sampled_from([2**29 - 1 + 1024 * 3 + 1, 2**29 - 1 - 1024 * 3 - 1, 524_286, 524_287]),
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.tuples(IDS, st.sampled_from(KINDS[:1] + KINDS[2:3])), min_size=1, max_size=3),
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    st.sampled_from(["paimon", "iceberg"]),
)
def test_wherever_a_callers_ids_stand_no_column_vanishes_and_no_id_repeats(
    given_columns: list[tuple[int, DataType]], added: list[DataType], policy: str
) -> None:
    columns = tuple(DataField(each, f"c{i}", kind) for i, (each, kind) in enumerate(given_columns))
    lake = ledger.open("memory://bounds")
    name = f"d.t{id(columns)}"
    lake.init()
    if "d" not in lake.databases():
        lake.create_database("d")
    asked = Schema(fields=columns, field_id_policy=policy)  # type: ignore[arg-type] # one of two
    options = {"ledger.formats": "iceberg"} if policy == "iceberg" else {}
    try:
        table = lake.create_table(name, asked.with_options(options))
    except InvalidInputError:
        return
    expected = [each.name for each in columns]
    ids: set[int] = {found for each in table.at().schema.fields for found in every_id(each)}
    for number, kind in enumerate(added):
        try:
            table.alter([AddColumn((f"n{number}",), type_to_wire(kind))])
        except InvalidInputError:
            break
        expected.append(f"n{number}")
        new = table.at().schema.fields[-1]
        assert ids.isdisjoint(every_id(new))
        ids.update(every_id(new))
    schema = table.at().schema
    assert list(schema.names) == expected
    all_ids = [found for each in schema.fields for found in every_id(each)]
    assert len(set(all_ids)) == len(all_ids)
    foreign = (
        [made for *_, made in bounds.list_map_member_ids(schema.fields)]
        if policy == "paimon"
        else []
    )
    assert len({*all_ids, *foreign}) == len(all_ids) + len(foreign)
    lake.drop_table(name)


def every_id(field: DataField) -> list[int]:
    return [field.id, *walk_ids(field.type)]


def test_a_schema_that_lies_about_its_highest_id_is_not_evolved() -> None:
    lying = attrs.evolve(Schema.of({"a": "INT", "b": "INT"}), highest_field_id=0)
    with pytest.raises(InvalidInputError, match="its highest field id is 0, and a column has 1"):
        ledger.evolve(lying, [AddColumn(("c",), "INT")])


@pytest.mark.parametrize("field_id", [-1, 2**31, 2**70])
def test_a_views_columns_have_ids_that_formats_can_say(field_id: int) -> None:
    lake = ledger.open("memory://bounds-of-views")
    lake.init()
    if "d" not in lake.databases():
        lake.create_database("d")
    view = ViewSchema((DataField(field_id, "a", INT),), "SELECT 1")
    with pytest.raises(InvalidInputError, match="column a: field id .* is not between 0 and"):
        lake.create_view("d.v", view)


@pytest.mark.parametrize(
    ("holder", "made"),
    [
        (ArrayType(INT), element_id(0, 1)),
        (MapType(STRING, ArrayType(INT)), element_id(0, 1)),
        (MapType(STRING, ArrayType(INT)), element_id(0, 2)),
        (MapType(STRING, ArrayType(INT)), key_id(0, 1)),
    ],
)
def test_no_column_has_an_id_that_paimon_gives_a_member(holder: DataType, made: int) -> None:
    held = DataField(0, "held", holder)
    with pytest.raises(InvalidChangeError, match=f"members Paimon gives id {made}, which is a col"):
        create_schema(Schema((held, DataField(made, "b", INT))))
    # A list has no keys.
    plain = Schema((DataField(0, "held", ArrayType(INT)), DataField(key_id(0, 1), "b", INT)))
    assert create_schema(plain).highest_field_id == key_id(0, 1)


def test_ids_that_met_before_a_change_are_left_as_they_are() -> None:
    # Paimon gives the element of column 0's list an id of its own; column `met` has it already.
    listed = DataField(0, "listed", ArrayType(STRING))
    met = DataField(element_id(0, 1), "met", STRING)
    fields = (listed, met)

    bounds.check_column_ids(fields, "paimon", is_in_paimon=True, new=range(1, met.id))
    for new in (range(met.id), range(met.id, met.id + 1)):
        with pytest.raises(InvalidChangeError, match="number the columns anew"):
            bounds.check_column_ids(fields, "paimon", is_in_paimon=True, new=new)
