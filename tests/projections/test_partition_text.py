from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidInputError, Schema
from projections.partition_text import PartitionText, partition_path

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data/paimon/partition_paths.json").read_text(encoding="utf-8")
)
SCALARS: dict[str, Callable[[str], Any]] = {
    "INT": int,
    "BIGINT": int,
    "TINYINT": int,
    "SMALLINT": int,
    "BOOLEAN": json.loads,
}


def path_of(vector: dict[str, Any], legacy: str) -> str:
    names = [f"k{index}" for index in range(len(vector["types"]))]
    schema = Schema.of(
        dict(zip(names, vector["types"], strict=True)), options={"partition.legacy-name": legacy}
    )
    values = [
        None if text is None else SCALARS.get(kind, str)(text)
        for kind, text in zip(vector["types"], vector["values"], strict=True)
    ]
    return partition_path(PartitionText.of(schema).spec(names, values)) + "/"


@pytest.mark.parametrize("vector", VECTORS, ids=lambda each: f"{each['types']}{each['values']}")
def test_paths_are_those_of_paimons_java(vector: dict[str, Any]) -> None:
    assert path_of(vector, "true") == vector["partitionPathLegacy"]
    assert path_of(vector, "false") == vector["partitionPathNonLegacy"]


def test_null_and_blank_take_the_tables_default_name() -> None:
    schema = Schema.of({"a": "STRING"}, options={"partition.default-name": "none"})
    text = PartitionText.of(schema)

    assert [text.spec(["a"], [value]) for value in (None, "", "  ")] == [{"a": "none"}] * 3


def test_a_full_hour_is_written_without_seconds_as_java_does() -> None:
    schema = Schema.of({"at": "TIMESTAMP(3)"})

    assert PartitionText.of(schema).spec(["at"], ["2013-01-01T05:00:00"]) == {
        "at": "2013-01-01T05:00"
    }


def test_a_partition_field_that_is_no_column_is_written_as_it_is() -> None:
    assert PartitionText.of(Schema.of({"id": "INT"})).spec(["id_bucket"], [3]) == {"id_bucket": "3"}


@pytest.mark.parametrize(
    ("names", "values"), [(["day"], ["tomorrow"]), (["day"], []), (["day"], ["a", "b"])]
)
def test_a_partition_that_does_not_fit_is_rejected_by_name(
    names: list[str], values: list[str]
) -> None:
    with pytest.raises(InvalidInputError, match="day"):
        PartitionText.of(Schema.of({"day": "DATE"})).spec(names, values)


SPECS = st.dictionaries(st.text("a=/%", min_size=1), st.text("a=/%\x01"), max_size=3)


@given(one=SPECS, other=SPECS)
def test_different_specs_have_different_paths(one: dict[str, str], other: dict[str, str]) -> None:
    same = list(one.items()) == list(other.items())

    assert (partition_path(one) == partition_path(other)) is same
