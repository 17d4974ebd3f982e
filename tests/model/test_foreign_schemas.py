"""Schemas and frames of other libraries, wherever a schema is taken."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import ledger
from ledger import InvalidInputError, InvalidTypeError, LedgerError, Schema
from ledger.model import format_type

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="Polars is not installed")

ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.date32()),
        pa.field("tags", pa.list_(pa.struct([("a", pa.int32()), ("b c", pa.string())]))),
        pa.field("m", pa.map_(pa.string(), pa.decimal128(9, 2))),
        pa.field("at", pa.timestamp("us", tz="UTC")),
    ]
)
FRAME = pl.DataFrame({"id": [1], "day": [date(2024, 1, 1)], "tags": [[{"a": 1, "b": "x"}]]})


class _OnlyStream:
    """A frame with nothing but Arrow's stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ARROW.empty_table().__arrow_c_stream__(requested_schema)


class _OnlySchema:
    """A schema with nothing but Arrow's schema interface."""

    def __arrow_c_schema__(self) -> object:
        return ARROW.__arrow_c_schema__()


class _LikePyIceberg:
    def as_arrow(self) -> Any:
        return ARROW


def _pyiceberg_schema() -> Any:
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.types import DateType, ListType, LongType, NestedField, StringType

    return IcebergSchema(
        NestedField(11, "id", LongType(), required=True),
        NestedField(12, "day", DateType(), required=False),
        NestedField(13, "tags", ListType(14, StringType(), element_required=False)),
    )


GIVEN: dict[str, Callable[[], Any]] = {
    "Arrow schema": lambda: ARROW,
    "Arrow table": ARROW.empty_table,
    "Arrow batch": lambda: pa.RecordBatch.from_pylist([], schema=ARROW),
    "pandas frame": lambda: pd.DataFrame({"id": [1], "day": [date(2024, 1, 1)], "x": [1.5]}),
    "pandas frame of Arrow": lambda: ARROW.empty_table().to_pandas(types_mapper=pd.ArrowDtype),
    "Polars frame": lambda: FRAME,
    "Polars schema": lambda: FRAME.schema,
    "PyIceberg schema": _pyiceberg_schema,
    "Arrow's stream interface": _OnlyStream,
    "Arrow's schema interface": _OnlySchema,
    "an Arrow schema inside": _LikePyIceberg,
}
_numbers = itertools.count()


@pytest.mark.parametrize("given", GIVEN)
def test_schema_of_takes_what_create_table_takes(given: str) -> None:
    lake = ledger.open(f"memory://foreign-{next(_numbers)}", author="ada")
    lake.create_database("shop")
    created = lake.create_table("shop.a", GIVEN[given]()).schema
    schema = Schema.of(GIVEN[given](), options={"owner": "ada"})
    again = lake.create_table("shop.b", schema).schema
    assert schema.fields == created.fields == again.fields
    assert again.options["owner"] == "ada"


@pytest.mark.parametrize("given", GIVEN)
def test_keys_and_comment_go_with_columns_of_another_library(given: str) -> None:
    schema = Schema.of(GIVEN[given](), partition_keys=["day"], primary_keys=["id"], comment="why")
    assert (schema.partition_keys, schema.primary_keys) == (("day",), ("id",))
    assert schema.comment == "why"
    assert schema.fields[0].id == 0


def test_members_of_another_library_are_numbered_as_those_of_a_text() -> None:
    texts = {each.name: format_type(each.type) for each in Schema.of(ARROW).fields}
    assert Schema.of(texts) == Schema.of(ARROW)
    assert Schema.of(texts).highest_field_id == Schema.of(ARROW).highest_field_id


@pytest.mark.parametrize(
    "given", [7, None, "id INT", ["id"], [("id", "INT")], {"id": 7}, {7: "INT"}, object()]
)
def test_anything_else_is_rejected(given: Any) -> None:
    with pytest.raises(InvalidInputError, match="columns"):
        Schema.of(given)


def test_a_column_that_no_type_holds_is_named() -> None:
    with pytest.raises(LedgerError, match="Arrow's uint8 of small"):
        Schema.of(pa.schema([("id", pa.int64()), ("small", pa.uint8())]))
    with pytest.raises(InvalidTypeError, match="column small: cannot read type 'uint8'"):
        Schema.of({"id": "int64", "small": "uint8"})
