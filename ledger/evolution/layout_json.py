"""Changes of layout, and what only Iceberg has, from plain JSON; the rest is `change_json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.events.schema_changes import SchemaChange
from ledger.events.spec_changes import ReplaceSortOrder, SpecChange, UpdatePartitionSpec
from ledger.evolution.change_json import as_change


def as_table_change(
    given: SchemaChange | SpecChange | Mapping[str, Any],
) -> SchemaChange | SpecChange:
    """Return a change of the schema or the layout, given as such or as its JSON object.

    Raises:
        InvalidChangeError: It is neither.
    """
    if isinstance(given, UpdatePartitionSpec | ReplaceSortOrder):
        return given
    return as_change(given)
