from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger import (
    AddColumn,
    DropColumn,
    InvalidChangeError,
    InvalidInputError,
    InvalidTypeError,
    Move,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.cli.changes import CHANGE_OPTIONS, changes_from_options
from ledger.cli.exits import UsageError

CASES: list[tuple[str, str, list[SchemaChange]]] = [
    ("--add", "a.b INT", [AddColumn(("a", "b"), "INT")]),
    (
        "--add",
        "a INT NOT NULL COMMENT 'x' FIRST",
        [AddColumn(("a",), "INT NOT NULL", "x", Move("a", "FIRST"))],
    ),
    (
        "--add",
        "a INT DEFAULT 5",
        [AddColumn(("a",), "INT"), UpdateColumnDefaultValue(("a",), "5")],
    ),
    ("--drop", "`a.b`", [DropColumn(("a.b",))]),
    ("--undrop", "a.b", [UndropColumn(("a", "b"))]),
    ("--undrop", "a.b=7", [UndropColumn(("a", "b"), 7)]),
    ("--rename", "a.b=c", [RenameColumn(("a", "b"), "c")]),
    ("--type", "a BIGINT", [UpdateColumnType(("a",), "BIGINT", keep_nullability=True)]),
    ("--type", "a BIGINT NOT NULL", [UpdateColumnType(("a",), "BIGINT NOT NULL")]),
    ("--type", "a BIGINT NULL", [UpdateColumnType(("a",), "BIGINT")]),
    ("--nullable", "a", [UpdateColumnNullability(("a",), new_nullability=True)]),
    ("--not-null", "a", [UpdateColumnNullability(("a",), new_nullability=False)]),
    ("--column-comment", "a=b=c", [UpdateColumnComment(("a",), "b=c")]),
    ("--column-comment", "a", [UpdateColumnComment(("a",))]),
    ("--default", "a=", [UpdateColumnDefaultValue(("a",), "")]),
    ("--default", "a", [UpdateColumnDefaultValue(("a",))]),
    ("--move", "a after b", [UpdateColumnPosition(Move("a", "AFTER", "b"))]),
    ("--move", "a.b last", [UpdateColumnPosition(Move("b", "LAST"), ("a", "b"))]),
    ("--set", "k=v=w", [SetOption("k", "v=w")]),
    ("--unset", "k", [RemoveOption("k")]),
    ("--comment", "text", [UpdateComment("text")]),
    ("--change", '{"type":"dropColumn","fieldNames":["a"]}', [DropColumn(("a",))]),
    ("--change", '{"action":"updateComment"}', [UpdateComment()]),
]


@pytest.mark.parametrize(("option", "value", "changes"), CASES)
def test_an_option_means_its_change(option: str, value: str, changes: list[SchemaChange]) -> None:
    assert changes_from_options([(option, value)]) == changes


def test_every_option_is_tried_here() -> None:
    assert {option for option, _, _ in CASES} | {"--changes"} == set(CHANGE_OPTIONS)


def test_changes_keep_the_order_in_which_they_are_written() -> None:
    options = [(option, value) for option, value, _ in reversed(CASES)]

    assert changes_from_options(options) == [
        each for _, _, some in reversed(CASES) for each in some
    ]


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_file_holds_changes(tmp_path: Path, *, wrapped: bool) -> None:
    changes = [{"type": "dropColumn", "fieldNames": ["a"]}, {"action": "removeOption", "key": "k"}]
    file = tmp_path / "changes.json"
    file.write_text(json.dumps({"changes": changes} if wrapped else changes))

    assert changes_from_options([("--changes", str(file))]) == [
        DropColumn(("a",)),
        RemoveOption("k"),
    ]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--add", "a"),
        ("--drop", "a b"),
        ("--undrop", "a=b"),
        ("--rename", "a"),
        ("--rename", "a="),
        ("--rename", "a=b.c"),
        ("--type", "a INT COMMENT 'x'"),
        ("--move", "a"),
        ("--move", "a after"),
        ("--move", "a first b"),
        ("--set", "k"),
        ("--change", "{"),
    ],
)
def test_a_value_without_its_form_is_rejected_by_option(option: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^{option}: "):
        changes_from_options([(option, value)])


def test_what_only_the_content_shows_is_invalid_input(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(InvalidTypeError, match="column a: .*STRNG"):
        changes_from_options([("--add", "a STRNG")])
    with pytest.raises(InvalidChangeError, match="unknown change 'addColum'"):
        changes_from_options([("--change", '{"type":"addColum"}')])
    with pytest.raises(InvalidInputError, match="is not JSON"):
        changes_from_options([("--changes", str(broken))])
    with pytest.raises(InvalidInputError, match="cannot be read"):
        changes_from_options([("--changes", str(tmp_path / "missing.json"))])
    broken.write_text("7")
    with pytest.raises(InvalidInputError, match="has no list of changes"):
        changes_from_options([("--changes", str(broken))])


@pytest.mark.parametrize(
    "change",
    [
        {"type": "updateColumnNullability", "fieldNames": ["a"]},
        {"action": "updateColumnNullability", "fieldNames": ["a"], "newNullability": None},
    ],
)
def test_a_change_without_its_value_is_rejected_on_the_command_line(
    change: dict[str, object], tmp_path: Path
) -> None:
    file = tmp_path / "changes.json"
    file.write_text(json.dumps([change]), "utf-8")

    for option in (("--change", json.dumps(change)), ("--changes", str(file))):
        with pytest.raises(InvalidInputError, match=r"newNullability: is missing; give true or"):
            changes_from_options([option])
