"""Limits on the depth of a schema inside an Avro file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from projections.manifest_files.container import readable_schema

DEEPEST = 16
"""The highest number of types nested below the record's own."""


def below(depth: int, nest: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a record whose column nests so many types."""
    column: Any = "int"
    for _ in range(depth - 1):
        column = nest(column)
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": column}]}


@pytest.mark.parametrize(
    "nest",
    [
        lambda inner: {"type": inner},
        lambda inner: {"type": "array", "items": inner},
        lambda inner: {"type": "map", "values": inner},
    ],
)
def test_a_schema_nests_as_deep_as_may_be_and_no_deeper(nest: Callable[[Any], Any]) -> None:
    assert readable_schema(below(DEEPEST, nest))["type"] == "record"
    with pytest.raises(ValueError, match=f"nests more than {DEEPEST} types"):
        readable_schema(below(DEEPEST + 1, nest))


def test_records_and_unions_count_as_types() -> None:
    def nest(inner: Any) -> Any:
        name = f"r{len(str(inner))}"
        return ["null", {"type": "record", "name": name, "fields": [{"name": "b", "type": inner}]}]

    # Each is two types: the union, and the record in it.
    assert readable_schema(below(8, nest))["type"] == "record"
    with pytest.raises(ValueError, match=f"nests more than {DEEPEST} types"):
        readable_schema(below(9, nest))


@pytest.mark.parametrize("kind", ["enum", "fixed"])
def test_a_named_type_may_be_named_again(kind: str) -> None:
    said: Any = {"enum": {"symbols": ["x"]}, "fixed": {"size": 4}}[kind]
    named = {"type": kind, "name": "n", "doc": "left out", **said}
    fields = [{"name": "a", "type": named}, {"name": "b", "type": {"type": "n"}}]
    found = readable_schema({"type": "record", "name": "r", "fields": fields})
    assert found["fields"][0]["type"] == {"type": kind, "name": "n", **said}
    assert found["fields"][1]["type"] == "n"


def test_a_list_of_records_is_read_when_one_of_their_members_takes_bytes() -> None:
    def rows_of(*kinds: str) -> dict[str, Any]:
        members = [{"name": f"m{number}", "type": each} for number, each in enumerate(kinds)]
        items = {"type": "record", "name": "row", "fields": members}
        return {
            "type": "record",
            "name": "r",
            "fields": [{"name": "a", "type": {"type": "array", "items": items}}],
        }

    assert readable_schema(rows_of("null", "int"))["type"] == "record"
    with pytest.raises(ValueError, match="values without bytes"):
        readable_schema(rows_of("null", "null"))
