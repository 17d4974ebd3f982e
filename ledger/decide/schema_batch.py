"""Decision of a batch of SchemaChanges, and `evolve`, Paimon's schema evolution.

The events go through the same fold that replays them later, so that the decided schema and the one
that readers see cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ledger.decide.bounds import SCHEMA_ID, check_column_ids, check_numbers
from ledger.decide.change_json import change_from_input
from ledger.decide.column_draft import ChangeAnchor, SchemaDraft, check_identifier_fields
from ledger.decide.column_rebase import ColumnRebase
from ledger.decide.errors import argument_error, runtime_error, state_error
from ledger.decide.operation import SchemaOperation
from ledger.decide.operations import operation
from ledger.decide.option_changes import (
    check_key_columns,
    keys_are_nullable,
    option_event,
    resolve_key_lists,
)
from ledger.decide.schema_rules import validate_schema
from ledger.decide.table_options import (
    KEY_OPTIONS,
    ColumnNames,
    column_option,
    renamed_keys,
    renamed_options,
    split_option_columns,
    strayed_options,
)
from ledger.events.schema import (
    ColumnNullabilityUpdated,
    RequestedChange,
    SchemaChange,
    SchemaEvent,
    UpdateKeys,
)
from ledger.model import arguments as its
from ledger.model.arguments import validate_arguments
from ledger.model.column_index import column_index_of, columns_around
from ledger.model.schema import Schema, highest_field_id
from ledger.model.types import type_places
from ledger.state.columns import PastOf
from ledger.state.declared_formats import PAIMON_RULES, Rules

__all__ = ["ChangeAnchor", "Decision", "decide_schema", "resolve_schema"]


class Decision(Struct, frozen=True):
    """Result of deciding a batch of changes.

    Attributes:
        events: The events, in order, including those that Paimon derives implicitly.
        anchors: One a change; pass them to decide the same changes on a newer schema.
        schema: The result, with the id after the old schema's, and still the old one's time.
    """

    events: tuple[SchemaEvent, ...]
    anchors: tuple[ChangeAnchor, ...]
    schema: Schema


def decide_schema(
    schema: Schema,
    changes: Sequence[SchemaChange],
    *,
    has_snapshots: bool,
    anchors: Sequence[ChangeAnchor] | None = None,
    rules: Rules = PAIMON_RULES,
    past: PastOf | None = None,
) -> Decision:
    """Decide what a batch of changes means for a schema.

    Args:
        schema: The schema before.
        changes: Applied one after the other; all of them or none.
        has_snapshots: Whether the table's branch has a latest snapshot.
        anchors: Those of an earlier decision of the same changes on an older schema. Paths then
            follow the columns that they meant, by id, and what another writer has done already is
            not done again.
        rules: The rules that apply.
        past: Returns the columns that the table had; None where its history is not available.

    Raises:
        InvalidChangeError: A rule forbids a change, or the batch as a whole; `kind` is Paimon's.

    Example:
        >>> from ledger.events.schema import AddColumn
        >>> decided = decide_schema(
        ...     Schema.of({"id": "INT"}), [AddColumn(("name",), "STRING")], has_snapshots=False
        ... )
        >>> decided.events[0].field_id, decided.schema.names
        (1, ('id', 'name'))
    """
    draft, decided = resolve_schema(
        schema, changes, has_snapshots=has_snapshots, anchors=anchors, rules=rules, past=past
    )
    result = draft.freeze()
    if result.identifier_field_ids:
        around = columns_around(schema.fields, result.identifier_field_ids)
        old_names = {each.field.id: each.name for each in type_places(around) if each.field}
        check_identifier_fields(result.fields, result.identifier_field_ids, old_names)
    SCHEMA_ID.check(result.id, "the table")
    check_column_ids(
        result.fields,
        result.field_id_policy,
        is_in_paimon=rules.paimon,
        new=range(schema.highest_field_id + 1, result.highest_field_id + 1),
    )
    validate_schema(result, rules)
    return Decision(tuple(draft.events), decided, result)


def resolve_schema(
    schema: Schema,
    changes: Sequence[SchemaChange],
    *,
    has_snapshots: bool,
    anchors: Sequence[ChangeAnchor] | None = None,
    rules: Rules = PAIMON_RULES,
    past: PastOf | None = None,
) -> tuple[SchemaDraft, tuple[ChangeAnchor, ...]]:
    """Return the draft of what changes mean, as for `decide_schema`, and one anchor a change.

    The resulting schema is not validated as a whole.

    Raises:
        InvalidChangeError: One of them is not possible.
    """
    if len(column_index_of(schema.fields).by_id) != len(schema.fields):
        raise runtime_error(
            "broken schema: two columns have one field id, so a change could mean either"
        )
    draft = SchemaDraft(schema, has_snapshots=has_snapshots, rules=rules, past=past)
    if anchors is None:
        decided = [operation(each, SchemaOperation).decide(draft, each) for each in changes]
    else:
        decided = _rebase_changes(draft, changes, anchors)
    _apply_renames_to_options(draft)
    _resolve_key_options(draft)
    return draft, tuple(decided)


def _rebase_changes(
    draft: SchemaDraft, changes: Sequence[SchemaChange], anchors: Sequence[ChangeAnchor]
) -> list[ChangeAnchor]:
    rows = [operation(each, SchemaOperation) for each in changes]
    following = ColumnRebase(draft, [each.touches for each in rows], anchors)
    decided: list[ChangeAnchor] = []
    for change, row, anchor in zip(changes, rows, anchors, strict=True):
        followed = row.names(following, change, anchor)
        if followed is None:
            decided.append(anchor)
            continue
        again = operation(followed, SchemaOperation).decide(draft, followed)
        following.map_reassigned_ids(anchor.assigned, again.assigned)
        decided.append(again)
    return decided


def _apply_renames_to_options(draft: SchemaDraft) -> None:
    if not draft.renames:
        return
    _update_followed_options(draft)
    if not draft.rules.paimon:
        # Only Paimon maps old names to new ones once.
        return
    working = draft.working
    options = renamed_options(working.options, draft.renames)
    strayed = next(
        strayed_options(
            working.options,
            draft.renames,
            draft.meant_option_column_ids,
            lambda: ColumnNames(tuple(working.columns.values())),
        ),
        None,
    )
    for key in sorted(working.options.keys() - options.keys()):
        draft.record(option_event(key, None))
    for key, value in options.items():
        if working.options.get(key) != value:
            draft.record(option_event(key, value))
    _check_renamed_key(draft)
    if strayed is not None:
        # Paimon's own checks come first: most of these batches leave an option naming nothing.
        validate_schema(draft.freeze())
        raise argument_error(
            f"renames in this batch would make option {strayed} name another column than before; "
            "use one transaction a rename"
        )


def _update_followed_options(draft: SchemaDraft) -> None:
    """Update the options that are not Paimon's, so that they name the same columns."""
    for key, said in sorted(draft.working.options.items()):
        row = column_option(key)
        option = split_option_columns(key, said) if row is not None and row.followed else None
        if option is None:
            continue
        here = ColumnNames(tuple(draft.working.columns.values()))
        meant = zip(option.mentions, draft.meant_option_column_ids(key), strict=True)
        _, follows = option.said(here.said(each, found) or each.text for each, found in meant)
        if follows != said:
            draft.record(option_event(key, follows))


def _check_renamed_key(draft: SchemaDraft) -> None:
    old = draft.old.primary_keys
    if not draft.working.primary_keys or renamed_keys(old, draft.renames) == (
        draft.working.primary_keys
    ):
        return
    raise state_error(
        f"primary key {list(old)} is renamed more than once in this batch; "
        "use one transaction a rename"
    )


def _resolve_key_options(draft: SchemaDraft) -> None:
    working = draft.working
    primary, partition = resolve_key_lists(
        working.options, working.primary_keys, working.partition_keys
    )
    if primary or partition:
        check_key_columns(tuple(working.names), primary, partition)
    for key in KEY_OPTIONS:
        if key in working.options:
            draft.record(option_event(key, None))
    if (primary, partition) != (working.primary_keys, working.partition_keys):
        draft.record(UpdateKeys(partition_keys=partition, primary_keys=primary))
    nullable = keys_are_nullable(working.options)
    for name in primary:
        column = working.column((name,))
        if column.type.nullable is not nullable:
            draft.record(
                ColumnNullabilityUpdated(
                    field_names=(name,), new_nullability=nullable, field_id=column.id
                )
            )


@validate_arguments(
    schema=its.instance_of("a Schema", Schema),
    changes=its.iterable_of('a sequence of changes, such as [AddColumn("day", "DATE")]'),
    has_snapshots=its.switch,
)
def evolve(
    schema: Schema,
    changes: Iterable[RequestedChange | Mapping[str, Any]],
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
        InvalidChangeError: A rule forbids it; `kind` is that of Paimon's error.

    Example:
        >>> from ledger.events.schema import RenameColumn
        >>> before = Schema.of({"id": "INT", "v": "STRING"})
        >>> after = evolve(before, [RenameColumn(("v",), "value")])
        >>> after.id, after.field("value").id
        (1, 1)
    """
    check_numbers(schema, "the schema")
    highest = highest_field_id(schema.fields)
    if schema.highest_field_id < highest:
        raise runtime_error(
            f"broken schema: its highest field id is {schema.highest_field_id}, and a column has "
            f"{highest}"
        )
    asked = [change_from_input(each) for each in changes]
    return decide_schema(schema, asked, has_snapshots=has_snapshots).schema
