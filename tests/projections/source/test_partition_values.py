from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from ledger import InvalidInputError, Schema
from ledger.model import PartitionField, PartitionSpec
from projections.source.columns import (
    Column,
    arrow_type,
    as_text,
    partition_field_names,
    typed,
    typed_column,
)

SCHEMA = Schema.of(
    {
        "id": "BIGINT",
        "day": "DATE",
        "price": "DECIMAL(10, 2)",
        "at": "TIMESTAMP(6)",
        "zoned": "TIMESTAMP_LTZ(6)",
        "open": "BOOLEAN",
        "hour": "TIME",
        "name": "STRING",
    }
)


def spec(spec_id: int, *fields: tuple[int, str, str]) -> PartitionSpec:
    return PartitionSpec(
        spec_id,
        tuple(
            PartitionField(name, t, source, field_id=1000 + n)
            for n, (source, name, t) in enumerate(fields)
        ),
    )


def test_every_value_has_its_own_type() -> None:
    fields = [(place, each, "identity") for place, each in enumerate(SCHEMA.names)]
    column = typed_column(SCHEMA, [spec(0, *fields)])
    assert column is not None
    values = (
        7,
        "2024-01-01",
        "2.50",
        "2024-01-01T10:00:00.5",
        "2024-01-01T10:00:00",
        False,
        "10:00:00",
        None,
    )
    assert typed(column, as_text(partition_field_names([spec(0, *fields)])[0], values)) == {
        "id": 7,
        "day": date(2024, 1, 1),
        "price": Decimal("2.50"),
        "at": datetime(2024, 1, 1, 10, 0, 0, 500_000),  # noqa: DTZ001 - has no zone
        "zoned": datetime(2024, 1, 1, 10, tzinfo=UTC),
        "open": False,
        "hour": "10:00:00",
        "name": None,
    }
    assert arrow_type(column).num_fields == 8


def test_results_of_transforms_have_the_transforms_type() -> None:
    fields = [(0, "shard", "bucket[4]"), (1, "month", "month"), (3, "on", "day"), (0, "x", "void")]
    column = typed_column(SCHEMA, [spec(0, *fields)])
    assert column is not None
    assert [(each.name, each.kind) for each in column.members] == [
        ("shard", "int"),
        ("month", "int"),
        ("on", "date"),
    ]


def test_a_name_that_two_specs_use_for_different_types_is_text() -> None:
    column = typed_column(SCHEMA, [spec(0, (0, "k", "identity")), spec(1, (1, "k", "identity"))])
    assert column is not None
    assert [each.kind for each in column.members] == ["string"]


def test_without_partitions_there_is_no_such_column() -> None:
    assert typed_column(SCHEMA, [spec(0)]) is None


def test_a_value_that_is_none_of_its_type_is_named() -> None:
    column = Column("partition_values", "struct", members=(Column("day", "date"),))
    with pytest.raises(InvalidInputError, match="'soon' of day is no date"):
        typed(column, [("day", "soon")])
