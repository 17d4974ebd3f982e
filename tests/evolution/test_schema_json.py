"""A schema from JSON that contradicts itself is rejected when it is read, with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidChangeError, InvalidInputError, schema_from_json
from ledger.cli import main
from ledger.decide import create_schema
from ledger.model.types import walk_fields
from tests.lakes import lake_on, memory

Json = Any


def row(*fields: Json) -> Json:
    return {"type": "ROW", "fields": [*fields]}


def column(field_id: int, name: str, data_type: Json = "INT") -> Json:
    return {"id": field_id, "name": name, "type": data_type}


NESTINGS: dict[str, Callable[..., Json]] = {
    "row": row,
    "array": lambda *fields: {"type": "ARRAY", "element": row(*fields)},
    "map": lambda *fields: {"type": "MAP", "key": "STRING", "value": row(*fields)},
    "multiset": lambda *fields: {"type": "MULTISET", "element": row(*fields)},
    "deep": lambda *fields: row(column(9, "around", {"type": "ARRAY", "element": row(*fields)})),
    "wrapped": lambda *fields: {"rowType": row(*fields)},
}
PLAIN = {"fields": [column(0, "a"), column(1, "b")]}
BROKEN: list[tuple[str, Json, str, str]] = [
    (
        "two columns of one id",
        {"fields": [column(0, "a"), column(0, "b")]},
        r"\$\.fields\[1\]: column b has the id 0 of column a",
        "RUNTIME",
    ),
    (
        "two columns of one name",
        {"fields": [column(0, "a"), column(1, "b"), column(2, "a")]},
        r"\$\.fields\[2\]\.name: 'a' is the name of \$\.fields\[0\], too",
        "ILLEGAL_STATE",
    ),
    (
        "an unknown partition key",
        {**PLAIN, "partitionKeys": ["a", "B"]},
        r"\$\.partitionKeys: 'B' is no column; did you mean 'b'",
        "ILLEGAL_STATE",
    ),
    (
        "an unknown primary key",
        {**PLAIN, "primaryKeys": ["nope"]},
        r"\$\.primaryKeys: 'nope' is no column; there are: 'a', 'b'",
        "ILLEGAL_STATE",
    ),
    (
        "an unknown primary key as an option",
        {**PLAIN, "options": {"primary-key": "a, nope"}},
        r"\$\.options\.primary-key: 'nope' is no column",
        "ILLEGAL_STATE",
    ),
    (
        "an unknown partition key as an option",
        {**PLAIN, "options": {"partition": "nope"}},
        r"\$\.options\.partition: 'nope' is no column",
        "ILLEGAL_STATE",
    ),
    (
        "a key as a list and as an option",
        {**PLAIN, "primaryKeys": ["a"], "options": {"primary-key": "a"}},
        r"\$\.options: primary-key is defined twice",
        "RUNTIME",
    ),
    (
        "a repeated partition key",
        {**PLAIN, "partitionKeys": ["b", "b"]},
        r"\$\.partitionKeys: names column 'b' twice",
        "ILLEGAL_STATE",
    ),
    (
        "a repeated primary key",
        {**PLAIN, "primaryKeys": ["a", "b", "a"]},
        r"\$\.primaryKeys: names column 'a' twice",
        "ILLEGAL_STATE",
    ),
    (
        "a member as a key",
        {"fields": [column(0, "a", row(column(1, "x")))], "primaryKeys": ["x"]},
        r"\$\.primaryKeys: 'x' is no column",
        "ILLEGAL_STATE",
    ),
    (
        "a highest id below that of a column",
        {**PLAIN, "highestFieldId": 0},
        r"\$\.highestFieldId: is 0, below the id 1 in column b; give at least 1",
        "RUNTIME",
    ),
    (
        "a negative highest id",
        {**PLAIN, "highestFieldId": -1},
        r"\$\.highestFieldId: is -1, below the id 1",
        "RUNTIME",
    ),
    (
        "a highest id that is a text",
        {**PLAIN, "highestFieldId": "7"},
        r"\$\.highestFieldId: is '7', no whole number",
        "ILLEGAL_ARGUMENT",
    ),
    *(
        (
            f"a highest id of {number}",
            {**PLAIN, "highestFieldId": number},
            rf"\$\.highestFieldId: .* {number} is not between -1 and 2147483647",
            "ILLEGAL_ARGUMENT",
        )
        for number in (2**31, 2**40, -2)
    ),
    (
        "columns without ids",
        {"fields": [{"name": "a", "type": "INT"}, {"name": "b", "type": "INT"}]},
        r"\$\.fields\[0\]\.id: is missing: every column",
        "ILLEGAL_ARGUMENT",
    ),
    *(
        case
        for name, nest in NESTINGS.items()
        for case in (
            (
                f"a member without an id, {name}",
                {"fields": [column(0, "a", nest({"name": "x", "type": "INT"}))]},
                r"\$\.fields\[0\]\.type.*\.id: is missing: every column and every member",
                "ILLEGAL_ARGUMENT",
            ),
            (
                f"a member of a column's id, {name}",
                {"fields": [column(0, "a"), column(1, "b", nest(column(2, "x"), column(0, "y")))]},
                r"\$\.fields\[1\]: column b\.[a-z.]*y has the id 0 of column a",
                "RUNTIME",
            ),
            (
                f"two members of one id, {name}",
                {"fields": [column(0, "a"), column(1, "b", nest(column(2, "x"), column(2, "y")))]},
                r"\$\.fields\[1\]: column b\.[a-z.]*y has the id 2 of column b\.[a-z.]*x",
                "RUNTIME",
            ),
            (
                f"two members of one name, {name}",
                {"fields": [column(0, "a"), column(1, "b", nest(column(2, "x"), column(3, "x")))]},
                r"\$\.fields\[1\]\.type.*: ROW names 'x' twice",
                "ILLEGAL_ARGUMENT",
            ),
            (
                f"a highest id below that of a member, {name}",
                {
                    "fields": [column(0, "a"), column(1, "b", nest(column(20, "x")))],
                    "highestFieldId": 19,
                },
                r"\$\.highestFieldId: is 19, below the id 20 in column b",
                "RUNTIME",
            ),
        )
    ),
]


@pytest.mark.parametrize(
    ("schema", "message", "kind"),
    [pytest.param(*case, id=name) for name, *case in BROKEN],
)
def test_a_schema_that_contradicts_itself_is_rejected_with_its_place(
    schema: Json, message: str, kind: str
) -> None:
    with pytest.raises(InvalidChangeError, match=message) as refusal:
        schema_from_json(schema)
    assert refusal.value.kind == kind
    lake = lake_on(memory())
    lake.create_database("shop")
    with pytest.raises(InvalidInputError, match=message):
        lake.create_table("shop.made", schema)


def test_the_command_line_names_the_file_and_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({**PLAIN, "highestFieldId": 0}), "utf-8")

    lake = ["--ledger", str(tmp_path / "lake")]
    assert main(["init", str(tmp_path / "lake")]) == 0
    assert main(["create", "shop", *lake]) == 0

    code = main(["create", "shop.made", "--schema", str(file), *lake])

    assert code != 0
    assert f"{file}.highestFieldId: is 0, below the id 1 in column b" in capsys.readouterr().err


@given(
    ids=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    names=st.lists(st.sampled_from("abcA"), min_size=4, max_size=4),
    key=st.lists(st.sampled_from("abcA"), max_size=2),
    highest=st.none() | st.integers(-1, 6),
)
def test_exactly_the_schemas_without_a_contradiction_are_read(
    ids: list[int], names: list[str], key: list[str], highest: int | None
) -> None:
    used = names[: len(ids)]
    document = {
        "fields": [column(*each) for each in zip(ids, used, strict=True)],
        "primaryKeys": key,
        "highestFieldId": highest,
    }
    is_sound = (
        len(set(ids)) == len(ids)
        and len(set(used)) == len(used)
        and len(set(key)) == len(key)
        and set(key) <= set(used)
        and (highest is None or highest >= max(ids))
    )

    if not is_sound:
        with pytest.raises(InvalidChangeError):
            schema_from_json(document)
        return
    read = schema_from_json(document)
    assert [each.id for each in read.fields] == ids
    assert read.highest_field_id == (max(ids) if highest is None else highest)


def test_a_nullable_primary_key_becomes_not_null_as_in_paimon() -> None:
    read = schema_from_json({**PLAIN, "primaryKeys": ["a"]})

    assert read.field("a").type.nullable
    assert not create_schema(read).field("a").type.nullable
    assert [each.id for each in walk_fields(read.fields)] == [0, 1]
