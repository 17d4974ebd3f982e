from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger import InvalidInputError, Schema
from projections.paimon import paimon_json, schema_file, schema_from_json, schema_to_json

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data/paimon/schema_files.json").read_text(encoding="utf-8")
)
READABLE = [case for case in CASES["read"] if "schema" in case["expect"]]
MINIMAL: dict[str, Any] = {
    "version": 3,
    "id": 0,
    "fields": [{"id": 0, "name": "a", "type": "INT"}],
    "highestFieldId": 0,
    "partitionKeys": [],
    "primaryKeys": [],
    "options": {},
}


def options_sorted(text: str) -> str:
    """Return a file's text with the options in order, everything else untouched."""
    content = json.loads(text)
    before = paimon_json({"options": content["options"]})[2:-2]
    after = paimon_json({"options": dict(sorted(content["options"].items()))})[2:-2]
    assert before in text
    return text.replace(before, after)


@pytest.mark.parametrize("name", CASES["java"])
def test_what_java_wrote_is_written_again_byte_for_byte(name: str) -> None:
    text = CASES["java"][name]

    assert schema_file(schema_from_json(text)).decode() == options_sorted(text)


@pytest.mark.parametrize("case", READABLE, ids=lambda case: str(case.get("note")))
def test_old_and_odd_files_read_as_java_reads_them(case: dict[str, Any]) -> None:
    expected = dict(case["expect"]["schema"])
    if expected.get("comment") == "null":
        # Java turns an explicit null into this text; here it reads as absent.
        del expected["comment"]

    assert schema_to_json(schema_from_json(case["input"])) == expected


def test_a_column_without_an_id_is_rejected_by_its_place() -> None:
    [case] = [each for each in CASES["read"] if "error" in each["expect"]]

    with pytest.raises(InvalidInputError, match=r"\$\.fields\[0\]\.id"):
        schema_from_json(case["input"])


def test_explicit_nulls_read_as_absent() -> None:
    fields = [{"id": 0, "name": "a", "type": "INT", "description": None, "defaultValue": None}]

    schema = schema_from_json({**MINIMAL, "fields": fields, "comment": None})

    assert (schema.comment, schema.fields[0].description) == (None, None)
    assert schema.fields[0].default_value is None


def test_an_absent_version_means_the_first() -> None:
    schema = schema_from_json({key: MINIMAL[key] for key in MINIMAL if key != "version"})

    assert schema.version == 1
    assert schema.options == {"bucket": "1", "file.format": "orc"}


def test_a_file_of_pypaimon_reads_with_its_extra_keys() -> None:
    text = CASES["pypaimon"]["nested_evo/schema/schema-4"]

    schema = schema_from_json(text.encode())

    assert schema.id == 4
    assert schema.highest_field_id == json.loads(text)["highestFieldId"]


@pytest.mark.parametrize("key", [key for key in MINIMAL if key != "version"])
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(InvalidInputError, match=key):
        schema_from_json({each: MINIMAL[each] for each in MINIMAL if each != key})


@pytest.mark.parametrize("torn", [b"", b'{"id": 0', b"[]", '{"id": "0"}'])
def test_a_torn_file_is_rejected(torn: bytes | str) -> None:
    with pytest.raises(InvalidInputError, match="not a Paimon schema file"):
        schema_from_json(torn)


def test_the_order_of_options_does_not_change_the_bytes() -> None:
    one = Schema.of({"a": "INT"}, options={"x": "1", "b": "2"}, comment="")
    other = Schema.of({"a": "INT"}, options={"b": "2", "x": "1"}, comment="")

    assert schema_file(one) == schema_file(other)
    assert b'"comment" : ""' in schema_file(one)


def test_texts_are_escaped_as_jackson_escapes_them() -> None:
    assert paimon_json('é"\\\n\x1f/') == '"é\\"\\\\\\n\\u001F/"'


def test_a_new_schema_is_of_the_file_version_that_paimon_writes() -> None:
    assert schema_to_json(Schema.of({"a": "INT"}))["version"] == 3
