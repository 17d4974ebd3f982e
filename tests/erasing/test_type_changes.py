"""A value is erased under whichever type its column had when it was written."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AddPartitionField,
    DropColumn,
    FileChange,
    InvalidInputError,
    Ledger,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UndropColumn,
    UpdateColumnDefaultValue,
    UpdateColumnType,
)
from ledger.history.value_matcher import (
    ValueMatcher,
    cast_value,
    parse_possible_values,
    spellings,
    text_of,
)
from ledger.model import Value, can_alter, can_promote, parse_type
from ledger.model import types as t
from ledger.model.arrow_types import element_id
from ledger.planning import value_to_bytes
from tests.lakes import lake_on, memory
from tests.thorough import examples

TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("55", "56"),
    "SMALLINT": ("5551", "5552"),
    "INT": ("1755512", "1855512"),
    "BIGINT": ("1755551234", "1855551234"),
    "FLOAT": ("5551.25", "6551.25"),
    "DOUBLE": ("5551234.125", "6551234.125"),
    "DECIMAL(10, 2)": ("5551.25", "6551.75"),
    "DECIMAL(12, 3)": ("55512.250", "65512.750"),
    "DATE": ("1989-03-02", "1991-07-04"),
    "TIME(3)": ("10:20:30.123", "11:21:31.321"),
    "TIMESTAMP(3)": ("1989-03-02 10:20:30.123", "1991-07-04 11:21:31.321"),
    "TIMESTAMP(6)": ("1989-03-02 10:20:30.123456", "1991-07-04 11:21:31.654321"),
    "TIMESTAMP(9)": ("1989-03-02 10:20:30.123456789", "1991-07-04 11:21:31.987654321"),
    "TIMESTAMP_LTZ(6)": ("1989-03-02 10:20:30.123456", "1991-07-04 11:21:31.654321"),
    "CHAR(20)": ("ann-0123456789abcdef", "bob-0123456789abcdef"),
    "VARCHAR(30)": ("ann-0123456789abcdefghij", "bob-0123456789abcdefghij"),
    "STRING": ("ann-0123456789abcdefghij", "bob-0123456789abcdefghij"),
    "BINARY(20)": ("ann-0123456789abcdef", "bob-0123456789abcdef"),
    "VARBINARY(30)": ("ann-0123456789abcdefghij", "bob-0123456789abcdefghij"),
}
"""Two values of each type."""

TYPES: Final = {name: parse_type(name) for name in TEXTS}
OF_TEXT: Final = ("CHAR(20)", "VARCHAR(30)", "STRING")
CUT: Final = 16


def altered() -> Iterator[tuple[str, str]]:
    """Yield every pair of types that Paimon lets a column go between."""
    for one, other in itertools.product(TYPES, TYPES):
        if can_alter(TYPES[one], TYPES[other], explicit_allowed=True) and one != other:
            yield one, other


def promoted() -> Iterator[tuple[str, str]]:
    """Yield every pair of types that Iceberg lets a column go between."""
    for one, other in itertools.product(TYPES, TYPES):
        if can_promote(TYPES[one], TYPES[other], format_version=2) and one != other:
            yield one, other


def written(source: str, target: str) -> tuple[Value, Value]:
    """Return two values of a type, texts such as the other type reads."""
    like = target if source in OF_TEXT and target not in OF_TEXT else source
    if like in ("BINARY(20)", "VARBINARY(30)"):
        one, two = TEXTS[like]
        return (one, two) if source in OF_TEXT else (one.encode(), two.encode())
    found = [parse_possible_values(text, TYPES[like])[0] for text in TEXTS[like]]
    if like != source:
        found = [text_of(each, TYPES[like]) for each in found]
    return found[0], found[1]


def bounds(value: Value, name: str) -> tuple[str, str]:
    """Return a value's bounds as Iceberg's writers keep them: cut, and the upper one raised."""
    body = value_to_bytes(value, TYPES[name])
    if isinstance(value, str | bytes) and len(body) > CUT:
        return body[:CUT].hex(), (body[: CUT - 1] + bytes([body[CUT - 1] + 1])).hex()
    return body.hex(), body.hex()


def typed(value: Value, source: str, target: str) -> set[str]:
    """Return what a person may type for a value that is shown as either type."""
    read = cast_value(value, TYPES[source], TYPES[target])
    texts = {*spellings(value, TYPES[source])}
    if read is not None:
        texts |= {*spellings(read, TYPES[target])}
    if isinstance(value, bytes) or isinstance(read, bytes):
        # Hex and text are two readings of bytes.
        texts = {each for each in texts if len(each) > CUT}
    return texts


def file(path: str, found: Mapping[int, tuple[str, str]], *partition: str | int) -> FileChange:
    return FileChange(
        path=path,
        partition=partition,
        record_count=1,
        file_size_in_bytes=9,
        field_ids=True,
        lower_bounds={key: each[0] for key, each in found.items()},
        upper_bounds={key: each[1] for key, each in found.items()},
    )


def table_of(columns: Mapping[str, str | t.DataType], formats: str) -> tuple[Ledger, Table]:
    lake = lake_on(memory())
    lake.init(erasable=True)
    lake.create_database("d")
    marked = {"ledger.personal": ",".join(columns), "ledger.formats": formats}
    return lake, lake.create_table("d.t", Schema.of(columns, options=marked))


def kept(table: Table) -> dict[str, set[int]]:
    """Return the columns that files have bounds of."""
    files = table.at().files
    return {f.path: {*(f.lower_bounds if isinstance(f.lower_bounds, dict) else {})} for f in files}


PAIRS: Final = [
    *(("paimon", *pair) for pair in altered()),
    *(("iceberg", *pair) for pair in promoted()),
]


def by_source() -> list[tuple[str, str, tuple[str, ...]]]:
    grouped = itertools.groupby(PAIRS, lambda pair: pair[:2])
    return [(*key, tuple(pair[2] for pair in pairs)) for key, pairs in grouped]


def test_every_type_is_gone_between_somewhere() -> None:
    assert {each for _, *pair in PAIRS for each in pair} == {*TYPES}
    assert len(PAIRS) > 200


@pytest.mark.parametrize(("formats", "source", "targets"), by_source(), ids=str)
def test_a_bound_from_before_a_type_change_is_erased_by_every_spelling_of_its_value(
    formats: str, source: str, targets: tuple[str, ...]
) -> None:
    columns = {f"c{place}": source for place in range(len(targets))}
    lake, table = table_of(columns, formats)
    ids = {name: table.column_id(name) for name in columns}
    values = {name: written(source, each) for name, each in zip(columns, targets, strict=True)}
    table.append(
        [
            file(path, {ids[name]: bounds(values[name][which], source) for name in columns})
            for which, path in enumerate(("a.parquet", "b.parquet"))
        ]
    )
    table.alter(
        [UpdateColumnType((name,), each) for name, each in zip(columns, targets, strict=True)]
    )
    for name, target in zip(columns, targets, strict=True):
        sought, other = values[name]
        reads = {cast_value(each, TYPES[source], TYPES[target]) for each in (sought, other)}
        for text in typed(sought, source, target):
            plan = lake.plan_erasure(table="d.t", column=name, value=text)
            assert 1 <= plan.values <= 3 - len(reads), (source, target, text)
        lake.erase(table="d.t", column=name, value=text)
        there = kept(table)
        assert ids[name] not in there["a.parquet"]
        assert (ids[name] in there["b.parquet"]) or len(reads) == 1, (source, target)


@settings(max_examples=examples(1000), deadline=None)
@given(st.data())
def test_a_value_is_found_after_any_chain_of_type_changes(data: st.DataObject) -> None:
    names = [data.draw(st.sampled_from([*TYPES]))]
    for _ in range(data.draw(st.integers(1, 4))):
        following = [other for one, other in altered() if one == names[-1]]
        names.append(data.draw(st.sampled_from(following)))
    place = data.draw(st.integers(0, len(names) - 1))
    value: Value | None = written(names[place], names[min(place + 1, len(names) - 1)])[0]
    assert value is not None
    stored = bounds(value, names[place])
    types = [TYPES[each] for each in names]
    for before, after in itertools.pairwise(types[place:]):
        if value is not None:
            value = cast_value(value, before, after)
    if value is None or value in ("", b""):
        return
    text = value.hex() if isinstance(value, bytes) else text_of(value, types[-1])
    matcher = ValueMatcher(text, types)
    assert all(map(matcher.may_be_bound, stored)), (names, place, text)


def test_other_values_stay_that_begin_or_end_alike() -> None:
    before, after = [t.STRING, t.IntType()], [t.IntType(), t.STRING]
    texts = [each.encode().hex() for each in ("55512345", "12345551", "555123", "15551234")]
    number = (5_551_235).to_bytes(4, "little").hex()

    assert not any(map(ValueMatcher("5551234", before).may_be_bound, [*texts, number]))
    assert not ValueMatcher("5551234", after).may_be_bound(number)


@pytest.mark.parametrize(
    ("types", "text", "value", "transform"),
    [
        (("INT", "BIGINT"), "5551234", 5_551_234, "identity"),
        (("INT", "BIGINT"), "5551234.00", 5_551_200, "truncate[100]"),
        (("DECIMAL(10, 2)", "DECIMAL(20, 2)"), "55512", "55512.00", "identity"),
        (("DATE", "TIMESTAMP(6)"), "1989-03-02 00:00:00", "1989-03-02", "identity"),
        (("DATE", "TIMESTAMP(6)"), "1989-03-02 00:00:00.000000", "1989-03-02", "day"),
        (("DATE", "TIMESTAMP(6)"), "1989-03-02T00:00:00", 230, "month"),
        (("DATE", "TIMESTAMP(6)"), "7000", 19, "year"),
        (("INT", "STRING"), "5551234", 5_551_234, "identity"),
        (("INT", "STRING", "DECIMAL(12, 2)"), "5551234.00", 5_551_234, "identity"),
        (("BOOLEAN", "STRING"), "true", True, "identity"),
        (("STRING", "INT"), "42", "0042", "identity"),
        (("VARCHAR(9)", "STRING"), "ann@example.com", "ann", "truncate[3]"),
        (("FLOAT", "DOUBLE"), "0.1", "0.10000000149011612", "identity"),
    ],
)
def test_a_partition_value_is_found_under_an_earlier_type(
    types: tuple[str, ...], text: str, value: str | int, transform: str
) -> None:
    assert ValueMatcher(text, map(parse_type, types)).matches_partition_value(value, transform)
    assert not ValueMatcher("2", map(parse_type, types)).matches_partition_value(value, transform)


def test_a_partition_value_from_before_a_promotion_is_erased() -> None:
    columns = {"n": "INT"}
    lake = lake_on(memory())
    lake.init(erasable=True)
    lake.create_database("d")
    options = {"ledger.personal": "n", "ledger.formats": "iceberg"}
    spec = [AddPartitionField(("n",), "identity")]
    schema = Schema.of(columns, options=options)
    table = lake.create_table("d.t", schema, partition_spec=spec)
    table.append([file("a", {}, 5_551_234), file("b", {}, 5_551_235)])
    table.alter([UpdateColumnType(("n",), "BIGINT"), RenameColumn(("n",), "number")])

    assert lake.erase(table="d.t", column="number", value="5551234.0").values == 1
    left = {each.path: each.partition for each in table.at().files}
    assert left["b"] == (5_551_235,) != left["a"]


def test_a_nested_field_and_one_that_was_dropped_and_restored_keep_their_earlier_types() -> None:
    who = t.RowType((t.DataField(0, "n", t.IntType()), t.DataField(1, "m", t.IntType())))
    lake, table = table_of({"who": who}, "iceberg")
    number = table.column_id("who.n")
    table.append([file("a", {number: bounds(5_551_234, "INT")})])
    table.alter([UpdateColumnType(("who", "n"), "BIGINT")])
    table.append([file("b", {number: bounds(5_551_234, "BIGINT")})])
    table.alter([DropColumn(("who", "n"))])
    gone = lake.plan_erasure(table="d.t", column="who.n", value="5551234")
    table.alter([UndropColumn(("who", "n")), RenameColumn(("who", "n"), "number")])

    assert gone.values == 2
    for name in ("who.number", "who.n"):
        assert lake.plan_erasure(table="d.t", column=name, value="5551234.0").values == 2
    assert lake.erase(table="d.t", column="who").values == 2


def test_elements_of_a_list_go_with_their_column_after_it_became_text() -> None:
    for value, count in ((None, 1), ("[ann@example.com]", 1)):
        lake, table = table_of({"tags": t.ArrayType(t.STRING), "n": "INT"}, "paimon")
        found = {element_id(table.column_id("tags"), 1): bounds("ann@example.com"[:8], "STRING")}
        table.append([file("a.parquet", found)])
        assert lake.plan_erasure(table="d.t", column="n").values == 0
        assert lake.plan_erasure(table="d.t", column="tags").values == 1
        table.alter([UpdateColumnType(("tags",), "STRING")])

        assert lake.erase(table="d.t", column="tags", value=value).values == count
        assert kept(table) == {"a.parquet": set()}


def test_a_schema_that_has_gone_from_the_table_counts_where_values_were_written_under_it() -> None:
    lake, table = table_of({"n": "INT"}, "paimon")
    table.append([file("a.parquet", {0: bounds(5_551_234, "INT")})])
    for each in ("STRING", "BIGINT", "STRING", "DECIMAL(12, 2)"):
        table.alter([UpdateColumnType(("n",), each)])

    assert lake.erase(table="d.t", column="n", value="5551234.00").values == 1


def test_lines_that_hold_the_value_as_a_default_are_listed() -> None:
    lake, table = table_of({"n": "INT", "m": "INT"}, "paimon")
    table.alter([UpdateColumnDefaultValue(("n",), "5551234")])
    table.alter([UpdateColumnDefaultValue(("m",), "5551234")])
    table.alter([UpdateColumnDefaultValue(("n",), "7"), SetOption("k", "5551234")])
    table.alter([UpdateColumnType(("n",), "STRING")])

    for value, versions in (("5551234", (1,)), ("7", (3,)), (None, (1, 3))):
        (line,) = lake.plan_erasure(table="d.t", column="n", value=value).remaining
        assert line.versions == versions
    assert lake.plan_erasure(table="d.t", column="n", value="8").remaining == ()


@pytest.mark.parametrize("text", ["soon", "", "12.5", "1e999", "0x10"])
def test_a_text_that_no_type_of_the_column_reads_is_rejected(text: str) -> None:
    lake, table = table_of({"n": "INT"}, "iceberg")
    table.alter([UpdateColumnType(("n",), "BIGINT")])

    with pytest.raises(InvalidInputError, match="is no value of column n BIGINT"):
        lake.plan_erasure(table="d.t", column="n", value=text)
