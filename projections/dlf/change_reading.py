"""Reading what is told apart by a tag: changes of tables, views and functions, and definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

import msgspec
from cattrs import Converter

from ledger.events.catalog_events import ViewChange
from ledger.events.schema_changes import Move, SchemaChange, UpdateColumnPosition
from ledger.evolution.wire.changes import schema_change_from_json
from ledger.model.errors import InvalidChangeError, InvalidInputError
from projections.dlf.functions import FunctionChange, FunctionDefinition
from projections.dlf.objects import CHANGES, DEFINITIONS, change_tag, changes_by_tag
from projections.dlf.strict import checked, member, present
from projections.dlf.wrappers import check_wrappers

T = TypeVar("T")

_TAG_KEYS = ("action", "type")


def register_changes(converter: Converter) -> None:
    """Let a converter read changes and definitions, alone or as a member of their unions."""
    for kind in CHANGES:
        # Three changes of a view are changes of a table, too.
        of_tables = kind in get_args(SchemaChange)
        converter.register_structure_hook(kind, _table_change if of_tables else _dialect_change)
    converter.register_structure_hook(Move, _move)
    _register_union(converter, SchemaChange, lambda obj, _: _table_change(obj, object))
    for union in (ViewChange, FunctionChange):
        by_tag = changes_by_tag(union)
        _register_union(converter, union, _tagged(converter, by_tag, _TAG_KEYS))
    _register_union(converter, FunctionDefinition, _tagged(converter, DEFINITIONS, ("type",)))


def _register_union(converter: Converter, union: Any, read: Callable[[Any, Any], Any]) -> None:
    converter.register_structure_hook_func(lambda kind: kind == union, read)


def _table_change(obj: Any, kind: type[T]) -> T:
    members = checked(obj, dict)
    for key in ("dataType", "newDataType"):
        check_wrappers(members.get(key), f"$.{key}")
    change = schema_change_from_json(members)
    if not isinstance(change, kind):
        raise InvalidInputError(f"$: is {change_tag(type(change))}, not {change_tag(kind)}")
    return change


def _move(obj: Any, _: object) -> Move:
    try:
        change = schema_change_from_json({"type": "updateColumnPosition", "move": obj})
    except InvalidChangeError as error:
        raise ValueError(f"${error.message.removeprefix('$.move')}") from error
    assert isinstance(change, UpdateColumnPosition)  # noqa: S101 - what was asked for just above
    return change.move


def _dialect_change(obj: Any, kind: Any) -> Any:
    content = present(obj)
    tag = _tag_of(content, _TAG_KEYS)
    if tag != change_tag(kind):
        raise ValueError(f"$: is {tag!r:.80}, not {change_tag(kind)}")
    return kind(*(member(content, each.name, str) for each in msgspec.structs.fields(kind)))


def _tagged(
    converter: Converter, by_tag: Mapping[str, type], keys: tuple[str, ...]
) -> Callable[[Any, Any], Any]:
    def read(obj: Any, _: object) -> Any:
        content = present(obj)
        tag = _tag_of(content, keys)
        if tag not in by_tag:
            raise ValueError(f"$.{keys[-1]}: is {tag!r:.80}; use one of {', '.join(by_tag)}")
        return converter.structure(content, by_tag[tag])

    return read


def _tag_of(content: dict[str, Any], keys: tuple[str, ...]) -> str:
    tags = [member(content, key, str) for key in keys if key in content]
    if not tags:
        raise ValueError(f"$.{keys[-1]}: is missing")
    if len(set(tags)) > 1:
        raise ValueError(f"$: {' and '.join(keys)} contradict each other; give one of them")
    return tags[0]
