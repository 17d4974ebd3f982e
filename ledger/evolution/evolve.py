"""Paimon's schema evolution as one pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.events.schema_changes import SchemaChange
from ledger.evolution.bounds import check_numbers
from ledger.evolution.columns.batch import decide_schema
from ledger.evolution.refusals import runtime
from ledger.evolution.wire.changes import as_change
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.schema import Schema, highest_field_id


@takes(
    schema=its.a("a Schema", Schema),
    changes=its.many('a sequence of changes, such as [AddColumn("day", "DATE")]'),
    has_snapshots=its.switch,
)
def evolve(
    schema: Schema,
    changes: Sequence[SchemaChange | Mapping[str, Any]],
    *,
    has_snapshots: bool = False,
) -> Schema:
    """Return the schema after a batch of changes, by Paimon's rules alone.

    The result has the next id and schema-file version 3. An empty batch, too, makes a next schema.

    Args:
        schema: The schema before.
        changes: Applied one after the other; all of them or none. Each may be a JSON object.
        has_snapshots: Whether the table has snapshots, which locks some options.

    Raises:
        InvalidChangeError: A rule forbids it; `kind` is the cause that Paimon would give.

    Example:
        >>> from ledger.events.schema_changes import RenameColumn
        >>> before = Schema.of({"id": "INT", "v": "STRING"})
        >>> after = evolve(before, [RenameColumn(("v",), "value")])
        >>> after.id, after.field("value").id
        (1, 1)
    """
    check_numbers(schema, "the schema")
    highest = highest_field_id(schema.fields)
    if schema.highest_field_id < highest:
        raise runtime(
            f"broken schema: its highest field id is {schema.highest_field_id}, and a column has "
            f"{highest}"
        )
    asked = [as_change(each) for each in changes]
    return decide_schema(schema, asked, has_snapshots=has_snapshots).schema
