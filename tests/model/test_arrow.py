from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ledger import InvalidTypeError, UnsupportedError
from ledger.model import from_arrow_type, parse_type
from ledger.model import types as t
from ledger.model.arrow_types import FIELD_ID_KEY, fields_from_arrow, fields_to_arrow, to_arrow_type
from ledger.model.types import assign_field_ids
from tests.programs import output_of

# What Arrow holds without loss.
exact_types = st.one_of(
    st.sampled_from(
        [
            *(t.STRING, t.BYTES, t.BooleanType(), t.TinyIntType(), t.SmallIntType(), t.IntType()),
            *(t.BigIntType(), t.FloatType(), t.DoubleType(), t.DateType(), t.UnknownType()),
            *(t.TimeType(3), t.TimeType(6), t.TimeType(9)),
            *(t.TimestampType(3), t.TimestampType(6), t.TimestampType(9)),
            *(t.LocalZonedTimestampType(3), t.LocalZonedTimestampType(9)),
        ]
    ),
    st.integers(1, 38).flatmap(lambda p: st.builds(t.DecimalType, st.just(p), st.integers(0, p))),
)


def _constructed(inner: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    members = st.lists(st.tuples(st.text("abc", min_size=1), inner), unique_by=lambda each: each[0])
    keys = inner.filter(lambda each: each.root != "UNKNOWN")
    return st.one_of(
        st.builds(t.ArrayType, inner),
        # Arrow's map keys are never null.
        st.builds(t.MapType, keys.map(lambda key: key.with_nullability(nullable=False)), inner),
        st.builds(t.VectorType, st.just(t.FloatType()), st.integers(1, 100)),
        members.map(
            lambda pairs: t.RowType(t.DataField(0, name, inside) for name, inside in pairs)
        ),
    )


columns = st.lists(
    st.builds(
        lambda data_type, nullable: (
            data_type
            if data_type.root == "UNKNOWN"
            else data_type.with_nullability(nullable=nullable)
        ),
        st.recursive(exact_types, _constructed, max_leaves=6),
        st.booleans(),
    ),
    max_size=4,
)


def _numbered(types: list[t.DataType], first_id: int) -> tuple[t.DataField, ...]:
    fields, next_id = [], first_id
    for index, data_type in enumerate(types):
        numbered, highest = assign_field_ids(data_type, next_id)
        fields.append(t.DataField(next_id, f"c{index}", numbered))
        next_id = highest + 1
    return tuple(fields)


@given(columns, st.integers(0, 5))
def test_what_arrow_holds_comes_back_as_it_was(types: list[t.DataType], first_id: int) -> None:
    fields = _numbered(types, first_id)
    assert fields_from_arrow(fields_to_arrow(fields), first_id) == fields


def _children(arrow_type: pa.DataType) -> list[tuple[str, pa.Field]]:
    if pa.types.is_map(arrow_type):
        return [("key", arrow_type.key_field), ("value", arrow_type.item_field)]
    if pa.types.is_list(arrow_type):
        return [("element", arrow_type.value_field)]
    return [(child.name, child) for child in arrow_type] if pa.types.is_struct(arrow_type) else []


def test_every_field_carries_its_id_into_parquet(tmp_path: Path) -> None:
    inner = t.RowType((t.DataField(5, "x", t.IntType()),))
    schema = fields_to_arrow(
        [
            t.DataField(2, "a", t.ArrayType(t.IntType(nullable=False))),
            t.DataField(3, "m", t.MapType(t.STRING, t.ArrayType(inner))),
            t.DataField(4, "bag", t.MultisetType(t.IntType())),
        ]
    )
    parquet.write_table(schema.empty_table(), tmp_path / "ids.parquet")

    read = parquet.read_schema(tmp_path / "ids.parquet")

    ids: dict[str, int] = {}

    def collect(field: pa.Field, path: str) -> None:
        ids[path] = int(field.metadata[FIELD_ID_KEY])
        for name, child in _children(field.type):
            collect(child, f"{path}.{name}")

    for each in read:
        collect(each, each.name)
    # The first four of these were read in files that Paimon wrote.
    assert ids == {
        "a.element": 536872960,
        "m.key": 536867838,
        "m.value": 536873984,
        "m.value.element": 536873985,
        "a": 2,
        "m": 3,
        "m.value.element.x": 5,
        "bag": 4,
        "bag.key": 536870911 - 4096 - 1,
        "bag.value": 536870911 + 4096 + 1,
    }


@pytest.mark.parametrize(
    ("text", "arrow_type"),
    [
        ("CHAR(3)", pa.string()),
        ("BINARY(3)", pa.binary()),
        ("TIME(0)", pa.time32("ms")),
        ("TIME(4)", pa.time64("us")),
        ("TIMESTAMP(0)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP(7)", pa.timestamp("ns")),
        ("TIMESTAMP_LTZ(6)", pa.timestamp("us", tz="UTC")),
        ("DECIMAL(9, 2)", pa.decimal128(9, 2)),
        ("VECTOR<FLOAT, 3>", pa.list_(pa.field("element", pa.float32()), 3)),
        ("INT MULTISET", pa.map_(pa.int32(), pa.field("value", pa.int32(), nullable=False))),
    ],
)
def test_types_become_the_smallest_arrow_type_that_holds_them(
    text: str, arrow_type: pa.DataType
) -> None:
    assert to_arrow_type(parse_type(text)) == arrow_type


@pytest.mark.parametrize(
    ("arrow_type", "text"),
    [
        (pa.large_string(), "STRING"),
        (pa.binary(16), "BINARY(16)"),
        (pa.timestamp("s"), "TIMESTAMP(0)"),
        (pa.timestamp("ns"), "TIMESTAMP(9)"),
        (pa.timestamp("us", tz="Europe/Paris"), "TIMESTAMP_LTZ(6)"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.large_list(pa.int64()), "BIGINT ARRAY"),
        (pa.decimal256(38, 2), "DECIMAL(38, 2)"),
    ],
)
def test_arrows_other_spellings_are_read(arrow_type: pa.DataType, text: str) -> None:
    assert from_arrow_type(arrow_type) == parse_type(text)


@pytest.mark.parametrize("text", ["VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"])
def test_what_arrow_cannot_say_is_refused_by_name(text: str) -> None:
    row = t.RowType((t.DataField(1, "inner", t.ArrayType(parse_type(text))),))
    with pytest.raises(UnsupportedError, match=rf"{text}.* of outer\.inner\.element"):
        fields_to_arrow([t.DataField(0, "outer", row)])


def test_what_no_type_holds_is_refused_by_name() -> None:
    struct = pa.struct([pa.field("n", pa.list_(pa.uint64()))])
    with pytest.raises(UnsupportedError, match=r"uint64 of s\.n\.element"):
        fields_from_arrow(pa.schema([pa.field("s", struct)]))
    with pytest.raises(InvalidTypeError, match="Arrow column d: DECIMAL precision 76"):
        fields_from_arrow(pa.schema([pa.field("d", pa.decimal256(76, 0))]))


def test_a_uuid_comes_back_as_a_uuid() -> None:
    assert from_arrow_type(to_arrow_type(t.UuidType())) == t.UuidType()


def test_the_types_are_imported_without_arrow() -> None:
    program = "import sys, ledger.model.arrow_types; sys.exit('pyarrow' in sys.modules)"
    output_of("-c", program)
