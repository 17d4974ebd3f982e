"""Limits of valid metadata: depth of nested types, targets of refs, range of days."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger import InvalidInputError
from projections.iceberg import read_metadata
from projections.iceberg.metadata_schema import primitive_type
from projections.iceberg.schema_json import DEEPEST, check_default, type_from_json
from tests.projections.iceberg.metadata.cases import DATA

TABLE = (DATA / "generated/java-life/v3/12.metadata.json").read_bytes()


def nested(depth: int) -> Any:
    found: Any = "int"
    for number in range(depth):
        found = {
            "type": "list",
            "element-id": number,
            "element-required": True,
            "element": found,
        }
    return found


def test_types_nest_to_the_limit_and_not_beyond() -> None:
    type_from_json(nested(DEEPEST + 1))
    with pytest.raises(InvalidInputError, match=f"more than {DEEPEST} deep"):
        type_from_json(nested(DEEPEST + 2))


def test_a_ref_to_a_snapshot_that_is_missing_is_rejected_by_its_name() -> None:
    content = json.loads(TABLE)
    content.setdefault("refs", {})["audit"] = {"type": "branch", "snapshot-id": 424242}

    with pytest.raises(InvalidInputError, match=r"\$\.refs\.audit: 424242 is not among"):
        read_metadata(json.dumps(content))


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("date", "2012-02-29", True),
        ("date", "2013-02-29", False),
        ("date", "1900-02-29", False),
        ("date", "2000-02-29", True),
        ("date", "2013-13-01", False),
        ("date", "2013-00-01", False),
        ("date", "2013-1-01", False),
        ("date", "+10000-02-29", True),
        ("date", "+10001-02-29", False),
        ("date", "-0004-02-29", True),
        ("date", 15706, False),
        ("date", "2013-01-01T00:00:00", False),
        ("time", "23:59:59.999999", True),
        ("time", "24:00:00", False),
        ("time", "23:60:00", False),
        ("timestamp", "2012-02-29T23:59:59", True),
        ("timestamp", "2013-02-29T23:59:59", False),
        ("timestamp", "2012-02-29T24:00:00", False),
        ("timestamp", "2012-02-29T23:59:59+00:00", False),
        ("timestamptz", "2012-02-29T23:59:59+00:00", True),
        ("timestamptz", "2012-02-29T23:59:59", False),
    ],
)
def test_a_default_is_a_day_and_a_time_that_there_are(
    kind: str, value: object, *, fits: bool
) -> None:
    if fits:
        check_default(primitive_type(kind), value)
    else:
        with pytest.raises(InvalidInputError, match="is no default of type"):
            check_default(primitive_type(kind), value)
