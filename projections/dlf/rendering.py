"""Objects to JSON: one cattrs converter a style, its rules outside the classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from cattrs import Converter
from cattrs.preconf.msgspec import make_converter

from ledger.model.errors import UnsupportedError
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
)
from ledger.model.types import DataField
from projections.dlf.data_types import field_json
from projections.dlf.keys import ATTRIBUTES, PRINTED_NULLS, key_of
from projections.dlf.style import Style
from projections.dlf.views import GetTableResponse

_STRINGS_IN_DLF = frozenset({"is_external", "schema_id"})


def render(view: object, style: Style = Style.DLF) -> dict[str, Any]:
    """Return an object of the metadata API as JSON, keys in the API's order.

    Optional keys without a value are left out.

    Args:
        view: A view of this package, or one of the model's values: Schema, ViewSchema, Snapshot,
            Identifier, DataField, SnapshotInstant, TagInstant.
        style: Whose spelling.

    Raises:
        UnsupportedError: The style has no word for it; the message names the column or instant.

    Example:
        >>> from ledger.model.identifier import Identifier
        >>> render(Identifier("shop", "orders"))
        {'databaseName': 'shop', 'tableName': 'orders'}
        >>> render(TagInstant("v1"), Style.PAIMON_REST)
        {'type': 'tag', 'tagName': 'v1'}
    """
    rendered: dict[str, Any] = _converter(style).unstructure(view)
    return rendered


@cache
def _converter(style: Style) -> Converter:
    converter: Converter = make_converter()
    for kind in ATTRIBUTES[style]:
        converter.register_unstructure_hook(kind, _keys_hook(kind, style, converter))
    for instant in (SnapshotInstant, TagInstant, VersionInstant, TimestampInstant):
        converter.register_unstructure_hook(instant, partial(_instant_json, style=style))
    converter.register_unstructure_hook(DataField, partial(field_json, style=style))
    return converter


def _keys_hook(kind: type, style: Style, converter: Converter) -> Callable[[Any], dict[str, Any]]:
    keys = [(name, key_of(kind, name, style)) for name in ATTRIBUTES[style][kind]]
    as_text = _STRINGS_IN_DLF if style is Style.DLF and kind is GetTableResponse else frozenset()

    def unstructure(view: Any) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for name, key in keys:
            value = getattr(view, name)
            if value is None and name not in PRINTED_NULLS[style]:
                continue
            plain = _plain(value, converter)
            content[key] = str(plain).lower() if name in as_text else plain
        return content

    return unstructure


def _plain(value: Any, converter: Converter) -> Any:
    if isinstance(value, dict):
        # The order of a map means nothing, so one order gives one text; JSON's keys are strings.
        return {str(key): value[key] for key in sorted(value)}
    if isinstance(value, tuple):
        return [_plain(each, converter) for each in value]
    return converter.unstructure(value)


def _instant_json(instant: Instant, style: Style) -> dict[str, Any]:
    content: dict[str, Any]
    match instant:
        case SnapshotInstant(snapshot_id=snapshot_id):
            name, content = "snapshot", {"snapshotId": snapshot_id}
        case TagInstant(tag_name=tag_name):
            name, content = "tag", {"tagName": tag_name}
        case _:
            raise UnsupportedError(
                f"{instant} has no {style.value} form: an Instant is a snapshot or a tag; "
                "look up the snapshot that was current then"
            )
    return {f"{name}Instant": content} if style is Style.DLF else {"type": name, **content}
