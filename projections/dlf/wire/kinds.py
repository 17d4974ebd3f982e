"""The registry: every object that `read` and `render` know, besides data types and columns."""

from __future__ import annotations

from typing import Any, get_args

from ledger.events.catalog_events import ViewChange
from ledger.events.schema_changes import Move, SchemaChange
from ledger.model.identifier import Identifier
from ledger.model.schema import Schema, ViewSchema
from ledger.model.snapshot import Snapshot
from projections.dlf.objects import (
    databases,
    functions,
    partitions,
    refs,
    service,
    snapshots,
    tables,
    views,
)

_RESOURCES = (databases, functions, partitions, refs, service, snapshots, tables, views)

VIEWS: frozenset[type] = frozenset(
    each
    for resource in _RESOURCES
    for each in vars(resource).values()
    if isinstance(each, type) and each.__module__ == resource.__name__
)
"""The attrs classes of this package."""

VALUES: frozenset[type] = frozenset({Schema, ViewSchema, Snapshot})
"""The model's own values that are objects of the page, key by key."""

CHANGES: frozenset[type] = frozenset({*get_args(SchemaChange), *get_args(ViewChange)})
"""The ledger's own records of what is asked of a table or a view."""

RENDERED: frozenset[type] = VIEWS | VALUES | CHANGES | {Identifier, Move}
"""What is rendered key by key; data types, columns and instants have forms of their own."""

DEFINITIONS: dict[str, type] = {
    "file": functions.FileFunctionDefinition,
    "sql": functions.SqlFunctionDefinition,
    "lambda": functions.LambdaFunctionDefinition,
}
"""Definitions of functions by their `type`, which both styles call so."""

_FUNCTION_CHANGES: dict[type, str] = {
    functions.AddDefinition: "addDefinition",
    functions.UpdateDefinition: "updateDefinition",
    functions.DropDefinition: "dropDefinition",
}


def change_tag(kind: type) -> str | None:
    """Return what tells this kind of change from the others; None for anything else.

    Example:
        >>> from ledger.events.schema_changes import AddColumn
        >>> change_tag(AddColumn)
        'addColumn'
    """
    if kind in CHANGES:
        record: Any = kind
        return str(record.__struct_config__.tag)
    return _FUNCTION_CHANGES.get(kind)


def changes_by_tag(union: object) -> dict[str, type]:
    """Return the members of a union of changes by their tags."""
    return {tag: each for each in get_args(union) if (tag := change_tag(each)) is not None}
