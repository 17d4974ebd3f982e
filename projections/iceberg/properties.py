"""A table's properties: its options and comment, without what Iceberg keeps elsewhere."""

from __future__ import annotations

import re

from ledger.model.schema import Schema

PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
DEFAULT_PREVIOUS_VERSIONS = 100

_WHOLE = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_RESERVED = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)


def properties(schema: Schema) -> dict[str, str]:
    """Return a table's properties, by name.

    Example:
        >>> properties(Schema.of({"a": "INT"}, options={"format-version": "3"}, comment="orders"))
        {'comment': 'orders'}
    """
    found = {key: value for key, value in schema.options.items() if key not in _RESERVED}
    if schema.comment is not None:
        found["comment"] = schema.comment
    return dict(sorted(found.items()))


def most_previous_versions(schema: Schema) -> int:
    """Return how many earlier metadata files the log names."""
    text = schema.options.get(PREVIOUS_VERSIONS, "")
    return int(text) if _WHOLE.fullmatch(text) else DEFAULT_PREVIOUS_VERSIONS
