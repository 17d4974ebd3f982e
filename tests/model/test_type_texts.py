"""Type texts: each spelling that is shown can be typed, at each place that takes a type."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import AddColumn, InvalidInputError, InvalidTypeError, Schema, UpdateColumnType
from ledger.cli.changes import changes_from_options, read_column
from ledger.model import format_type, from_arrow_type, parse_type, read_type
from ledger.model import types as t
from ledger.model.types import assign_field_ids, parts_of, with_parts
from ledger.model.types.parser import MAX_TYPE_TEXT
from ledger.model.types.sql import read_leading_type, read_spark_type
from ledger.model.types.text import PAIMON_READERS
from tests.model.test_types import all_types

SPELLINGS = [
    ("int64", "BIGINT"),
    ("text", "STRING"),
    ("bool", "BOOLEAN"),
    ("long NOT NULL", "BIGINT NOT NULL"),
    ("timestamptz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("timestamp_ntz", "TIMESTAMP(6)"),
    ("timestamp_ns", "TIMESTAMP(9)"),
    ("timestamp[us, tz=UTC]", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("timestamp[ms]", "TIMESTAMP(3)"),
    ("date32[day]", "DATE"),
    ("time64[us]", "TIME(6)"),
    ("decimal128(10, 2)", "DECIMAL(10, 2)"),
    ("fixed[16]", "BINARY(16)"),
    ("fixed_size_binary[3]", "BINARY(3)"),
    ("binary", "BYTES"),
    ("void", "UNKNOWN"),
    ("extension<arrow.uuid>", "UUID"),
    ("dictionary<values=string, indices=int32, ordered=0>", "STRING"),
    ("ARRAY<INT>", "ARRAY<INT>"),
    ("INT NOT NULL ARRAY", "ARRAY<INT NOT NULL>"),
    ("MULTISET<DECIMAL(10,2)> NOT NULL", "MULTISET<DECIMAL(10, 2)> NOT NULL"),
    ("ROW<a INT, `b c` ROW<d BYTES>>", "ROW<`a` INT, `b c` ROW<`d` BYTES>>"),
    ("STRUCT<a: INT, b:array<long>>", "ROW<`a` INT, `b` ARRAY<BIGINT>>"),
    ("struct<a:int>", "ROW<`a` INT>"),
    ("struct<1: a: optional long, 2: b: required uuid>", "ROW<`a` BIGINT, `b` UUID NOT NULL>"),
    ("struct<a b: int32 not null, c:d: int8>", None),
    ("list<item: int64>", "ARRAY<BIGINT>"),
    ("large_list<element: string not null>", "ARRAY<STRING NOT NULL>"),
    ("fixed_size_list<item: float>[4]", "VECTOR<FLOAT, 4>"),
    ("map<string, int>", "MAP<STRING, INT>"),
    ("map<string ('k'), int32 ('v'), keys_sorted>", "MAP<STRING, INT>"),
    ("ROW<a INT NOT NULL COMMENT 'it''s <, >' DEFAULT 5>", None),
    ("ROW<`a``b` INT COMMENT 'x' NOT NULL>", "ROW<`a``b` INT NOT NULL COMMENT 'x'>"),
    ("ROW<`:<>,` GEOMETRY('EPSG 4326')>", "ROW<`:<>,` GEOMETRY('EPSG 4326')>"),
    ('{"type": "ARRAY", "element": "struct<a: int64>"}', "ARRAY<ROW<`a` BIGINT>>"),
]
READABLE = [(text, read) for text, read in SPELLINGS if read is not None]
WRONG = [
    ("", 0),
    ("ARRAY", 5),
    ("ARRAY<INT", 9),
    ("ARRAY<INT>>", 10),
    ("ARRAY<INTT>", 6),
    ("ROW<a>", 4),
    ("ROW<a INT,>", 10),
    ("ROW<a INT b INT>", 10),
    ("ROW<`a INT>", 4),
    ("ROW<a INT, a INT>", 0),
    ("ROW<a INT COMMENT x>", 18),
    ("ROW<a INT COMMENT 'x' COMMENT 'y'>", 22),
    ("ROW<a INT NULL NOT NULL>", 15),
    ("MAP<INT>", 0),
    ("MAP<INT, INT, INT>", 0),
    ("struct<a b: int32, c:d: int8>", 21),
    ("id: BIGINT", 0),
    ("timestamp[weeks]", 10),
    ("DECIMAL(99, 2)", 0),
    ("ROW<a DECIMAL(99, 2)>", 6),
    ("VARCHAR", 0),
    ("list<item: uint64>", 11),
    ("extension<arrow.json>", 0),
    ("INT \ud800", 0),
    ("x" * 400 + " INT", 0),
    ("struct<1: a: optional int (x>", 26),
    ("ARRAY<" * 101 + "INT" + ">" * 101, 600),
    ("ARRAY<" * 90_000, 600),
    ("STRUCT<a:" * 90_000, 900),
    (" " * MAX_TYPE_TEXT + "INT", 0),
]


def numbered(data_type: t.DataType) -> t.DataType:
    return assign_field_ids(data_type, -1)[0]


@pytest.mark.parametrize(("text", "read"), READABLE)
def test_a_spelling_is_read(text: str, read: str) -> None:
    assert format_type(read_type(text)) == read


@pytest.mark.parametrize(("text", "position"), WRONG, ids=lambda each: str(each)[:30])
def test_a_text_that_is_no_type_is_rejected_with_the_position(text: str, position: int) -> None:
    for read in (read_type, read_spark_type):
        with pytest.raises(InvalidTypeError, match=f" at position {position}: ") as rejected:
            read(text)
        assert len(str(rejected.value)) < 500


@given(all_types)
def test_a_printed_type_reads_back_as_the_type(data_type: t.DataType) -> None:
    assert numbered(read_type(format_type(data_type))) == numbered(data_type)


@given(all_types, st.sampled_from(["", " COMMENT 'x'", " AFTER b", " DEFAULT 5"]))
def test_a_printed_type_ends_where_a_column_definition_continues(
    data_type: t.DataType, rest: str
) -> None:
    read, after = read_leading_type(format_type(data_type) + rest)
    assert (numbered(read), after) == (numbered(data_type), rest.strip())


def test_members_are_numbered_in_reading_order() -> None:
    read = read_type("ROW<a ROW<x INT, y INT>, b INT>")
    assert isinstance(read, t.RowType)
    assert [each.id for each in t.walk_fields(read.fields)] == [0, 1, 2, 3]


def test_a_hundred_levels_are_read_and_one_more_is_not() -> None:
    deepest = "struct<a: " * t.MAX_DEPTH + "int" + ">" * t.MAX_DEPTH
    assert read_type(deepest).depth == t.MAX_DEPTH
    with pytest.raises(InvalidTypeError, match="nests deeper than 100"):
        read_type(f"ROW<a {deepest}>")


TOKENS = st.sampled_from(
    [
        *("ROW<", "struct<", "a", "`a b`", ":", "<", ">", ",", "(", ")", "[", "]", "INT", "map<"),
        *(
            "list<item:",
            "NOT NULL",
            "NULL",
            "COMMENT",
            "'x'",
            '"',
            "DEFAULT",
            "5",
            " ",
            "timestamp",
        ),
        *("[us, tz=", "1: a: optional ", "decimal(", "VECTOR<", "ARRAY", "\\", "'", "`", "\n", "{"),
    ]
)


@given(st.lists(TOKENS, max_size=25).map("".join) | st.text())
def test_every_text_is_a_type_or_is_rejected_as_one(text: str) -> None:
    for read in (read_type, read_spark_type, parse_type):
        try:
            found = read(text)
        except InvalidTypeError as error:
            assert str(error)  # noqa: PT017 - either outcome is right
        else:
            assert numbered(read_type(format_type(found))) == numbered(found)


ARROW_ATOMS = [
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()),
    *(pa.binary_view(), pa.binary(16), pa.date32(), pa.date64(), pa.null(), pa.uuid()),
    *(pa.decimal128(9, 2), pa.decimal256(38, 38), pa.time32("s"), pa.time64("ns")),
    *map(pa.timestamp, ("s", "ms", "us", "ns")),
    *(pa.timestamp("us", tz=zone) for zone in ("UTC", "+02:00", "Europe/Berlin")),
    pa.dictionary(pa.int32(), pa.string()),
]
ARROW_NAMES = st.text("ab c.-$ä", min_size=1, max_size=4).filter(lambda each: each == each.strip())


def _arrow_nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    part = st.builds(
        lambda name, kind, nullable: pa.field(name, kind, nullable or pa.types.is_null(kind)),
        *(ARROW_NAMES, inner, st.booleans()),
    )
    return st.one_of(
        st.builds(pa.list_, part),
        st.builds(pa.large_list, part),
        st.builds(pa.map_, inner.filter(lambda key: not pa.types.is_null(key)), inner),
        st.lists(part, max_size=3, unique_by=lambda each: each.name).map(pa.struct),
        st.builds(
            pa.list_, st.builds(pa.field, ARROW_NAMES, st.just(pa.float32())), st.integers(1, 9)
        ),
    )


def _with_nullable_keys(data_type: t.DataType) -> t.DataType:
    """Return a type with nullable map keys: Arrow does not print that they never are."""
    parts = [
        part._replace(
            type=_with_nullable_keys(part.type).with_nullability(
                nullable=part.type.nullable or (part.name == "key" and part.field is None)
            )
        )
        for part in parts_of(data_type)
    ]
    return with_parts(data_type, parts) if parts else data_type


@given(st.recursive(st.sampled_from(ARROW_ATOMS), _arrow_nested, max_leaves=6))
def test_a_type_that_arrow_prints_is_read_as_the_arrow_type_is(arrow_type: Any) -> None:
    wanted = _with_nullable_keys(from_arrow_type(arrow_type))
    assert numbered(read_type(str(arrow_type))) == numbered(wanted)


SPARK_ATOMS = [
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"),
    *("date", "timestamp", "timestamp_ntz", "decimal(9,2)", "char(3)", "varchar(7)", "variant"),
    "void",
]


def _spark_text(data_type: t.DataType) -> str:  # noqa: PLR0911 - one case a kind
    """Return a type as Spark's DDL prints it: quoted names, colons, escapes with backslashes."""
    match data_type:
        case t.RowType(fields=fields):
            return f"STRUCT<{', '.join(map(_spark_member, fields))}>"
        case t.ArrayType(element=element):
            return f"ARRAY<{_spark_text(element)}>"
        case t.MapType(key=key, value=value):
            return f"MAP<{_spark_text(key)}, {_spark_text(value)}>"
        case t.TimestampType():
            return "TIMESTAMP_NTZ"
        case t.LocalZonedTimestampType():
            return "TIMESTAMP"
        case t.VarBinaryType():
            return "BINARY"
        case t.UnknownType():
            return "VOID"
        case _:
            return format_type(data_type.with_nullability(nullable=True))


def _spark_member(member: t.DataField) -> str:
    name = member.name.replace("`", "``")
    text = f"`{name}`: {_spark_text(member.type)}"
    if not member.type.nullable:
        text += " NOT NULL"
    if member.description is not None:
        text += " COMMENT '" + member.description.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return text


def _spark_nested(inner: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    names = st.text(min_size=1, max_size=4).filter(str.strip)
    comments = st.none() | st.text("a'\\\n\"`", max_size=4)
    members = st.builds(
        lambda name, kind, comment, nullable: t.DataField(
            0,
            name,
            kind if isinstance(kind, t.UnknownType) else kind.with_nullability(nullable),
            comment,
        ),
        *(names, inner, comments, st.booleans()),
    )
    return st.one_of(
        st.builds(t.ArrayType, inner),
        st.builds(t.MapType, inner, inner),
        st.builds(t.RowType, st.lists(members, max_size=3, unique_by=lambda each: each.name)),
    )


SPARK_TYPES = st.recursive(
    st.sampled_from(list(map(read_spark_type, SPARK_ATOMS))), _spark_nested, max_leaves=6
)


@given(SPARK_TYPES)
def test_a_type_that_spark_prints_reads_back_in_a_statement(data_type: t.DataType) -> None:
    assert numbered(read_spark_type(_spark_text(data_type))) == numbered(data_type)


@pytest.mark.parametrize("text", SPARK_ATOMS)
def test_sparks_simple_strings_mean_the_same_outside_of_statements(text: str) -> None:
    nested = f"struct<a:{text},b:array<map<string,{text}>>>"
    if text == "timestamp":
        assert read_type(text) != read_spark_type(text)
    else:
        assert read_type(nested) == read_spark_type(nested)


def test_icebergs_types_are_read_as_pyiceberg_prints_them() -> None:
    from pyiceberg import types as theirs

    printed = {
        theirs.BooleanType(): "BOOLEAN",
        theirs.IntegerType(): "INT",
        theirs.LongType(): "BIGINT",
        theirs.FloatType(): "FLOAT",
        theirs.DoubleType(): "DOUBLE",
        theirs.DateType(): "DATE",
        theirs.TimestampType(): "TIMESTAMP(6)",
        theirs.TimestamptzType(): "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        theirs.StringType(): "STRING",
        theirs.UUIDType(): "UUID",
        theirs.BinaryType(): "BYTES",
        theirs.FixedType(16): "BINARY(16)",
        theirs.DecimalType(9, 2): "DECIMAL(9, 2)",
        theirs.ListType(1, theirs.LongType(), element_required=False): "ARRAY<BIGINT>",
        theirs.MapType(1, theirs.StringType(), 2, theirs.IntegerType()): "MAP<STRING, INT>",
        theirs.StructType(
            theirs.NestedField(1, "a b", theirs.LongType(), required=True),
            theirs.NestedField(2, "c", theirs.TimestamptzType(), required=False),
        ): "ROW<`a b` BIGINT NOT NULL, `c` TIMESTAMP(6) WITH LOCAL TIME ZONE>",
    }
    for kind, wanted in printed.items():
        assert format_type(read_type(str(kind))) == wanted


@pytest.mark.parametrize("doc", ["hi", "a (b), c>", "3", "x, y", "it's", "a\nb", "UTC)"])
def test_the_comments_that_iceberg_prints_are_read(doc: str) -> None:
    from pyiceberg import types as theirs

    kinds: list[theirs.IcebergType] = [
        theirs.StringType(),
        theirs.TimestampType(),
        theirs.TimestamptzType(),
        theirs.TimeType(),
        theirs.BinaryType(),
        theirs.FixedType(16),
        theirs.DecimalType(9, 2),
        theirs.ListType(90, theirs.TimestampType(), element_required=False),
        theirs.MapType(91, theirs.StringType(), 92, theirs.BinaryType(), value_required=False),
        theirs.StructType(
            theirs.NestedField(93, "c", theirs.BinaryType(), doc="in", required=False)
        ),
    ]
    members = [
        theirs.NestedField(i, f"m{i}", kind, required=i % 2 == 0, doc=None if i == 2 else doc)
        for i, kind in enumerate(kinds)
    ]
    read = read_type(str(theirs.StructType(*members)))
    assert isinstance(read, t.RowType)
    assert [each.description for each in read.fields] == [each.doc for each in members]
    assert [each.type.nullable for each in read.fields] == [not each.required for each in members]
    assert read.fields[6].type == t.DecimalType(9, 2, nullable=False)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("character varying(10)", "VARCHAR(10)"),
        ("char varying(3)", "VARCHAR(3)"),
        ("CHARACTER VARYING", "VARCHAR(20)"),
        ("binary varying(5)", "VARBINARY(5)"),
    ],
)
def test_the_name_of_a_varying_type_is_advised(text: str, advice: str) -> None:
    with pytest.raises(InvalidTypeError) as rejected:
        read_type(f"ARRAY<{text}>")
    assert str(rejected.value).endswith(f"write {advice}")


def test_a_text_of_the_log_means_the_same_to_users_unless_it_lacks_its_length() -> None:
    differ = {name for name in PAIMON_READERS if _readings(name, read_type, parse_type)}
    assert differ == {"BINARY", "CHAR", "VARCHAR", "VARBINARY"}


def _readings(name: str, *readers: Callable[[str], t.DataType]) -> bool:
    found: list[object] = []
    for read in readers:
        try:
            found.append(read(name))
        except InvalidTypeError:
            found.append(None)
    return found[0] != found[1]


_numbers = itertools.count()


def a_table() -> ledger.Table:
    lake = ledger.open(f"memory://type-texts-{next(_numbers)}", author="ada")
    lake.create_database("shop")
    options = {"ledger.formats": "paimon"}
    return lake.create_table("shop.t", Schema.of({"id": "INT"}, options=options))


def _in_a_mapping(text: str) -> t.DataType:
    return Schema.of({"x": text}).field("x").type


def _in_a_first_schema(text: str) -> t.DataType:
    lake = ledger.open(f"memory://type-texts-{next(_numbers)}", author="ada")
    lake.create_database("shop")
    columns = [{"id": 7, "name": "x", "type": text}, {"id": 8, "name": "id", "type": "INT"}]
    document = {"fields": columns, "options": {"ledger.formats": "paimon"}}
    table = lake.create_table("shop.t", document)
    ids = [each.id for each in t.walk_fields(table.schema.fields)]
    assert len(ids) == len(set(ids))
    return table.schema.field("x").type


def _planned(changes: Sequence[Any]) -> t.DataType:
    return a_table().plan(changes).after.schema.field("x").type


def _in_a_change(text: str) -> t.DataType:
    return _planned([AddColumn("x", text)])


def _in_json(text: str) -> t.DataType:
    return _planned([{"type": "addColumn", "fieldNames": ["x"], "dataType": text}])


def _inside_json(text: str) -> t.DataType:
    wrapped = {"type": "ROW", "fields": [{"name": "y", "type": text}]}
    row = _planned([{"type": "addColumn", "fieldNames": ["x"], "dataType": wrapped}])
    assert isinstance(row, t.RowType)
    return row.fields[0].type


def _in_an_update(text: str) -> t.DataType:
    return a_table().update_schema().add_column("x", text).apply().field("x").type


def _on_the_command_line(text: str) -> t.DataType:
    return _planned(changes_from_options([("--add", f"x {text}")]))


def _after_a_colon(text: str) -> t.DataType:
    return read_column(f"x: {text} COMMENT 'why'").type


def _in_a_statement(text: str) -> t.DataType:
    return a_table().sql(f"ALTER TABLE shop.t ADD COLUMN x {text}").state.schema.field("x").type


PLACES = [
    *(_in_a_mapping, _in_a_first_schema, _in_a_change, _in_json, _inside_json, _in_an_update),
    *(_on_the_command_line, _after_a_colon, _in_a_statement),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
@pytest.mark.parametrize(
    "text",
    [
        *("int64", "text", "timestamptz", "ARRAY<INT>", "ROW<a INT>", "STRUCT<a: INT>"),
        *("struct<a:int>", "list<item: int64>", "map<string, int>", "MULTISET<INT>"),
        *("DECIMAL(10,2)", "timestamp[us, tz=UTC]", "ROW<`a b:c` ARRAY<INT> COMMENT 'x, >'>"),
    ],
)
def test_a_text_is_read_wherever_a_type_is_taken(
    place: Callable[[str], t.DataType], text: str
) -> None:
    read = place(text).with_nullability(nullable=True)
    assert numbered(read) == numbered(read_type(text))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
def test_a_wrong_text_is_rejected_with_its_position_wherever_a_type_is_taken(
    place: Callable[[str], t.DataType],
) -> None:
    with pytest.raises(InvalidInputError, match="at position 10: INTT is not read as a type"):
        place("struct<a: INTT>")


def test_a_schema_takes_the_json_of_types() -> None:
    row = {"type": "ROW NOT NULL", "fields": [{"id": 7, "name": "a", "type": "int64"}]}
    columns: dict[str, Any] = {"x": {"type": "ARRAY", "element": "INT"}, "y": row, "z": "INT"}
    wanted = Schema.of({"x": "ARRAY<INT>", "y": "ROW<a BIGINT> NOT NULL", "z": "INT"})
    assert Schema.of(columns) == wanted
    lake = ledger.open("memory://types-in-json")
    lake.create_database("s")
    assert lake.create_table("s.t", columns).schema.fields == wanted.fields
    with pytest.raises(InvalidTypeError, match="^column x: "):
        Schema.of({"x": {"type": "ARR"}})


def test_a_column_takes_another_type_by_any_spelling() -> None:
    table = a_table()
    table.alter([AddColumn("x", "int32")])
    for change in (
        UpdateColumnType("x", "int64"),
        {"type": "updateColumnType", "fieldNames": ["x"], "newDataType": "int64"},
    ):
        assert table.plan([change]).after.schema.field("x").type == t.BigIntType()
    assert (
        table.update_schema().update_column("x", "int64").apply().field("x").type.root == "BIGINT"
    )


def test_a_retried_request_may_spell_its_type_as_the_log_does() -> None:
    table = a_table()
    first = table.alter([AddColumn("x", "int")], commit_id="k")
    again = table.alter([AddColumn("x", "int")], commit_id="k")
    assert (again.version, again.repeated) == (first.version, True)
