"""Changes of layout from plain JSON; those of the schema are `changes`'.

Strict, since no other program writes them: a key that is unknown is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ledger.events.schema_changes import SchemaChange
from ledger.events.spec_changes import ReplaceSortOrder, SpecChange, UpdatePartitionSpec
from ledger.evolution.wire.changes import as_change, schema_change_from_json, well_formed
from ledger.model.errors import InvalidChangeError

_KINDS: dict[str, type[UpdatePartitionSpec | ReplaceSortOrder]] = {
    "updatePartitionSpec": UpdatePartitionSpec,
    "replaceSortOrder": ReplaceSortOrder,
}
# What msgspec knows of these classes is built here, since building it is not safe among threads.
_BUILT = [msgspec.json.Decoder(each) for each in _KINDS.values()]


def as_table_change(
    given: SchemaChange | SpecChange | Mapping[str, Any],
) -> SchemaChange | SpecChange:
    """Return a change of the schema or the layout, given as such or as its JSON object.

    Raises:
        InvalidChangeError: It is neither.
    """
    if isinstance(given, UpdatePartitionSpec | ReplaceSortOrder):
        return well_formed(given)
    if isinstance(given, Mapping):
        return table_change_from_json(given)
    return as_change(given)


def table_change_from_json(obj: Any, *, path: str = "$") -> SchemaChange | SpecChange:
    """Read a change of the schema or the layout from decoded JSON.

    Args:
        obj: What the JSON decoder gave.
        path: Where `obj` stands in the document, for messages.

    Raises:
        InvalidChangeError: No such change; the message names the place.

    Example:
        >>> change = table_change_from_json({
        ...     "type": "updatePartitionSpec",
        ...     "updates": [
        ...         {"type": "addPartitionField", "source": ["ts"], "transform": "day"},
        ...         {"type": "removePartitionField", "name": "ts_hour"},
        ...         {"type": "renamePartitionField", "name": "shard", "newName": "part"},
        ...     ],
        ... })
        >>> change.updates[0].transform
        'day'
    """
    kind = _KINDS.get(obj["type"]) if _says_type(obj) else None
    if kind is None:
        return schema_change_from_json(obj, path=path)
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError as error:
        rule, _, place = str(error).partition(" - at `$")
        raise InvalidChangeError(f"{path}{place.rstrip('`')}: {rule}") from error


def _says_type(obj: object) -> bool:
    return isinstance(obj, Mapping) and isinstance(obj.get("type"), str)
