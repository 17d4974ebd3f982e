"""From the options of `lakeledger alter` to changes, in the order they were written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ledger.cli.column_text import read_column, read_place
from ledger.cli.exits import UsageError
from ledger.cli.paths import key_and_value, leading_path, path_and_value, whole_path
from ledger.events.schema_changes import (
    AddColumn,
    DropColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.events.spec_changes import SpecChange
from ledger.evolution.wire.layout import table_change_from_json
from ledger.model.errors import InvalidInputError
from ledger.model.type_json import type_to_wire


def changes_of(options: Sequence[tuple[str, str]]) -> list[SchemaChange | SpecChange]:
    """Return the changes that options mean.

    Args:
        options: Option and value, such as ("--rename", "old=new"), in the order of the line.

    Raises:
        UsageError: A value does not have its option's form.
        InvalidInputError: A type or a change's JSON cannot be read.

    Example:
        >>> changes_of([("--rename", "addr=address"), ("--drop", "fax")])
        [RenameColumn(field_names=('addr',), new_name='address'), DropColumn(field_names=('fax',))]
    """
    changes: list[SchemaChange | SpecChange] = []
    for option, value in options:
        try:
            changes.extend(_READERS[option](value))
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from error
    return changes


def read_json(path: Path) -> Any:
    """Return what a JSON file holds.

    Raises:
        InvalidInputError: The file cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInputError(f"file {path} is no JSON: {error}") from error


def _add(text: str) -> list[SchemaChange]:
    column = read_column(text)
    added = AddColumn(column.path, type_to_wire(column.type), column.comment, column.move)
    if column.default is None:
        return [added]
    return [added, UpdateColumnDefaultValue(column.path, column.default)]


def _type(text: str) -> list[SchemaChange]:
    column = read_column(text)
    if column.comment is not None or column.default is not None or column.move is not None:
        raise UsageError(f"{text!r} says more than a type; use the options for the rest")
    keep = not column.says_nullability
    return [UpdateColumnType(column.path, type_to_wire(column.type), keep)]


def _rename(text: str) -> list[SchemaChange]:
    path, new_name = path_and_value(text)
    if not new_name:
        raise UsageError(f"{text!r} is not OLD=NEW")
    names = whole_path(new_name)
    if len(names) > 1:
        raise UsageError(f"{new_name!r} is a path; the new name is the last segment only")
    return [RenameColumn(path, names[0])]


def _move(text: str) -> list[SchemaChange]:
    path, place = leading_path(text.strip())
    move = read_place(path[-1], place)
    return [UpdateColumnPosition(move, path if len(path) > 1 else ())]


def _json_change(text: str) -> list[SchemaChange | SpecChange]:
    try:
        return [table_change_from_json(json.loads(text), path="--change")]
    except json.JSONDecodeError as error:
        raise UsageError(f"{text!r} is no JSON: {error}") from error


def _json_file(text: str) -> list[SchemaChange | SpecChange]:
    decoded = read_json(Path(text))
    if isinstance(decoded, dict):
        decoded = decoded.get("changes")
    if not isinstance(decoded, list):
        raise InvalidInputError(f'file {text} holds no list of changes; write [...] or "changes"')
    return [
        table_change_from_json(each, path=f"{text}[{index}]") for index, each in enumerate(decoded)
    ]


_READERS: dict[str, Callable[[str], Sequence[SchemaChange | SpecChange]]] = {
    "--add": _add,
    "--drop": lambda text: [DropColumn(whole_path(text))],
    "--rename": _rename,
    "--type": _type,
    "--nullable": lambda text: [UpdateColumnNullability(whole_path(text), True)],  # noqa: FBT003 - the value
    "--not-null": lambda text: [UpdateColumnNullability(whole_path(text), False)],  # noqa: FBT003 - the value
    "--column-comment": lambda text: [UpdateColumnComment(*path_and_value(text))],
    "--default": lambda text: [UpdateColumnDefaultValue(*path_and_value(text))],
    "--move": _move,
    "--set": lambda text: [SetOption(*key_and_value(text))],
    "--unset": lambda text: [RemoveOption(text)],
    "--comment": lambda text: [UpdateComment(text)],
    "--change": _json_change,
    "--changes": _json_file,
}

CHANGE_OPTIONS: tuple[str, ...] = tuple(_READERS)
"""The options of `alter` that mean changes."""
