"""Commits of Iceberg REST updates to tables that the ledger created, in its own changes.

The updates are applied to the metadata that the ledger projects, and the difference is requested as
`Table.alter` requests it. It is committed only if the columns and the
properties would be those that the updates ask for, and only to the version that was compared.

Source: the Iceberg REST catalog specification, CommitTableRequest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import evolve

import projections.iceberg.rest_updates as u
from ledger.decide.changes import CreateTag, DeleteTag, ReplaceTag, TableChange
from ledger.events import SchemaChange, SpecChange
from ledger.events.imported import SchemaReplaced
from ledger.events.schema import (
    ColumnUndropped,
    RemoveOption,
    SchemaEvent,
    SetOption,
    UpdateComment,
)
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import CommitConflictError, InvalidChangeError, UnsupportedError
from ledger.model.iceberg_objects import SnapshotRef
from ledger.model.types.wire import field_from_wire
from ledger.state.declared_formats import OWN_PREFIX
from ledger.state.iceberg_origin import FORMAT_VERSION
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.foreign_tables import refuse_foreign_commit
from projections.iceberg.imported_metadata import ledger_schema
from projections.iceberg.metadata_update import apply_updates
from projections.iceberg.rest_updates import TableRequirement, TableUpdate, check_requirements
from projections.iceberg.served import load
from projections.iceberg.table_facts import iceberg_schema
from projections.iceberg.table_file import properties
from projections.iceberg.table_metadata import TableMetadata
from projections.importing.deriving import derive_schema_events

_COMMENT: Final = "comment"
_MOST_TRIES: Final = 10

_METADATA_UPDATES: Final = (
    u.AssignUuid,
    u.UpgradeFormatVersion,
    u.AddSchema,
    u.SetCurrentSchema,
    u.SetSnapshotRef,
    u.RemoveSnapshotRef,
    u.SetProperties,
    u.RemoveProperties,
)
"""The updates that the ledger has changes for."""


def commit_native_updates(
    table: TableHandle,
    batch: Sequence[TableUpdate],
    required: Sequence[TableRequirement],
    asked: Any,
    options: CommitOptions,
) -> Appended[TableState]:
    """Commit updates of metadata to a table that the ledger created; all of them, or none.

    Args:
        table: A table that declares Iceberg.
        batch: The updates.
        required: The conditions under which they are committed.
        asked: Contents of the request, to compare it with earlier ones of the same commit id.
        options: See CommitOptions.

    Raises:
        InvalidChangeError: An update is not allowed here, or a rule of the table forbids it.
        StaleBaseError: A requirement does not hold.
        UnsupportedError: The ledger cannot make the table what the updates ask for.
        CommitConflictError: Other writers committed each time.
    """
    refuse_foreign_commit(table.state if table.log.head is None else table.log.head.state)
    _refuse_other_updates(batch)
    found = table.committed_before(options.get("commit_id"), asked)
    if found is not None:
        return found
    for _ in range(_MOST_TRIES):
        state = table.state
        changes = _changes_on(table, state, batch, required)
        if not changes:
            return Appended(state, state.version)
        try:
            return table.commit(
                asked,
                {"expect_version": state.version, **options},
                lambda _, changes=changes: changes,  # type: ignore[misc]
            )
        except CommitConflictError as error:
            if "expect_version" in options or table.state.version == state.version:
                raise
            lost = error
    raise lost


def _refuse_other_updates(batch: Sequence[TableUpdate]) -> None:
    moved = "main" in {
        each.ref_name for each in batch if isinstance(each, u.SetSnapshotRef | u.RemoveSnapshotRef)
    }
    if moved or any(isinstance(each, u.AddSnapshot) for each in batch):
        raise InvalidChangeError(
            "the ledger commits the data of a table that was created in it (Table.append), and "
            "nothing was committed. For engines that commit data, create or register the table "
            "through the server, or hand over a table from Iceberg: lakeledger serve-table",
            kind="NOT_SERVED",
        )
    other = next((each for each in batch if not isinstance(each, _METADATA_UPDATES)), None)
    if other is not None:
        raise InvalidChangeError(
            f"the ledger owns the table, and {type(other).__name__} cannot be committed to it "
            "through the server; use Table.alter and the other calls of the library, or "
            "lakeledger serve-table for a table from Iceberg"
        )


def _changes_on(
    table: TableHandle,
    state: TableState,
    batch: Sequence[TableUpdate],
    required: Sequence[TableRequirement],
) -> list[TableChange]:
    """Return the changes that updates are on a state; raises as `commit_native_updates`."""
    before = load(table, state).metadata
    check_requirements(before, required)
    after = apply_updates(before, batch, now_ms=max(state.effective_millis, before.last_updated_ms))
    if after is before:
        return []
    if after.table_uuid != before.table_uuid:
        raise InvalidChangeError("the updates cannot change the uuid, by which readers know it")
    beside = after.schemas_by_id.keys() - before.schemas_by_id.keys() - {after.current_schema_id}
    if beside:
        raise UnsupportedError(
            "a schema that does not become the current one cannot be added to this table; add "
            "set-current-schema"
        )
    altered = [*_schema_changes(state, before, after), *_option_changes(before, after)]
    if altered:
        _check_equal(table.plan(altered).after, after)
    return [*altered, *_tag_changes(before.refs, after.refs)]


def _schema_changes(
    state: TableState, before: TableMetadata, after: TableMetadata
) -> Iterator[SchemaChange]:
    if after.current_schema_id == before.current_schema_id:
        return
    older, newer = (ledger_schema(each.schema, after.format_version) for each in (before, after))
    fields = tuple(map(field_from_wire, older.fields))
    start = evolve(state.schema, fields=fields, identifier_field_ids=older.identifier_field_ids)
    wanted = tuple(map(field_from_wire, newer.fields))
    for event in derive_schema_events(start, wanted, newer.identifier_field_ids):
        if isinstance(event, SchemaReplaced | ColumnUndropped):
            raise UnsupportedError(
                "the ledger has no changes that lead to the schema that the updates ask for; "
                "nothing was committed: change the columns one by one"
            )
        yield _as_requested(event)


def _as_requested(event: SchemaEvent) -> Any:
    """Return the change that an event is the result of; a new column asks for its id."""
    asked = type(event).__base__
    if asked is None or not issubclass(asked, msgspec.Struct):
        raise TypeError(event)
    return asked(**{name: getattr(event, name) for name in asked.__struct_fields__})


def _option_changes(
    before: TableMetadata, after: TableMetadata
) -> Iterator[SchemaChange | SpecChange]:
    had, has = before.properties, after.properties
    changed = [key for key in {**had, **has} if had.get(key) != has.get(key)]
    own = next((key for key in changed if key.startswith(OWN_PREFIX)), None)
    if own is not None:
        raise InvalidChangeError(
            f"property {own} is an option of the ledger, and engines cannot set it; use "
            "lakeledger alter"
        )
    for key in changed:
        if key == _COMMENT:
            yield UpdateComment(has.get(key))
        elif key in has:
            yield SetOption(key, has[key])
        else:
            yield RemoveOption(key)
    if after.format_version != before.format_version:
        yield SetOption(FORMAT_VERSION, str(after.format_version))


def _check_equal(made: TableState, after: TableMetadata) -> None:
    """Check that a table would have the columns and properties of some metadata.

    Raises:
        UnsupportedError: It would not; the message names what differs.
    """
    schema = iceberg_schema(made.schema, schema_id=0, format_version=after.format_version)
    found = {
        "columns": schema.fields == after.schema.fields,
        "identifier fields": schema.identifier_field_ids == after.schema.identifier_field_ids,
        "properties": properties(made.schema) == dict(after.properties),
    }
    wrong = [name for name, is_equal in found.items() if not is_equal]
    if wrong:
        raise UnsupportedError(
            f"the ledger cannot commit these updates to a table that was created in it: "
            f"{', '.join(wrong)} would differ from what they ask for; nothing was committed. It "
            "numbers the elements of lists and maps itself: add such a column with Table.alter"
        )


def _tag_changes(
    before: Mapping[str, SnapshotRef], after: Mapping[str, SnapshotRef]
) -> Iterator[TableChange]:
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if "branch" in {each.type for each in (old, new) if each is not None}:
            raise InvalidChangeError(
                f"{name!r} is a branch, and branches of a table that was created in the ledger are "
                "changed by Table.branch"
            )
        if new is None:
            yield DeleteTag(name)
        else:
            kind = CreateTag if old is None else ReplaceTag
            yield kind(name, new.snapshot_id, new.max_ref_age_ms)
