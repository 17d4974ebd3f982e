"""UpdateSchema: Iceberg's way to change a table's schema, as `Table.update_schema` gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import BoundArguments, signature
from typing import Any, Concatenate, ParamSpec, Protocol, Unpack

from attrs import frozen
from msgspec import UNSET

from ledger.commit_options import CommitOptions
from ledger.events.schema_events import SchemaEvent
from ledger.evolution.schema_builder import SchemaBuilder
from ledger.evolution.state import TableState
from ledger.evolution.stream import Landed
from ledger.evolution.table.changes import AllowIncompatibleChanges, TableChange
from ledger.evolution.table.intent import TableIntent
from ledger.evolution.update.update import SchemaUpdate
from ledger.log.request import Appended
from ledger.model.schema import Schema
from ledger.model.type_json import field_to_wire
from ledger.model.type_text import format_type
from ledger.model.types import DataType
from ledger.table_setting import Plan

P = ParamSpec("P")


class _Commit(Protocol):
    """Commits a plan as one transaction, resolved on `base`."""

    def __call__(
        self, asked: Any, options: CommitOptions, plan: Plan, base: TableState
    ) -> Appended[TableState]: ...


@frozen
class _Call:
    """A call to be made on a `SchemaUpdate`."""

    method: Callable[..., SchemaUpdate]
    given: BoundArguments

    def on(self, update: SchemaUpdate) -> None:
        """Make the call."""
        self.method(update, *self.given.args[1:], **self.given.kwargs)

    def plain(self) -> list[Any]:
        """Return what was asked, as plain data: the same however it was written."""
        named = {
            key: _plain(value)
            for key, value in self.given.arguments.items()
            if key != "self" and value is not UNSET
        }
        return [self.method.__name__, named]


def _later(
    method: Callable[Concatenate[SchemaUpdate, P], SchemaUpdate],
) -> Callable[Concatenate[UpdateSchema, P], UpdateSchema]:
    """Return the same call, noted for later."""
    parameters = signature(method)

    @wraps(method)
    def noted(update: UpdateSchema, /, *args: P.args, **kwargs: P.kwargs) -> UpdateSchema:
        given = parameters.bind(update, *args, **kwargs)
        given.apply_defaults()
        update.calls.append(_Call(method, given))
        return update

    return noted


class UpdateSchema:
    """An update of one table's schema: ask for changes, then `commit`.

    Calls are noted, and carried out by `apply` and `commit`, which refuse what cannot be: so an
    update that is asked again under its commit id finds that it landed. Names mean what they meant
    when the update was begun; what others commit meanwhile is rebased upon, as in `Table.alter`.

    Example:
        >>> from ledger.catalog import open
        >>> lake = open("memory://update-schema-example")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", Schema.of({"id": "INT", "note": "STRING"}))
        >>> update = orders.update_schema().update_column("id", "BIGINT").move_first("note")
        >>> update.commit().state.schema.names
        ('note', 'id')
    """

    def __init__(
        self,
        base: TableState,
        commit: _Commit,
        intend: Callable[[TableState, Plan], TableIntent | Landed],
    ) -> None:
        self.calls: list[_Call] = []
        self._base = base
        self._commit = commit
        self._intend = intend

    add_column = _later(SchemaUpdate.add_column)
    delete_column = _later(SchemaUpdate.delete_column)
    rename_column = _later(SchemaUpdate.rename_column)
    update_column = _later(SchemaUpdate.update_column)
    make_optional = _later(SchemaUpdate.make_optional)
    require = _later(SchemaUpdate.require)
    move_first = _later(SchemaUpdate.move_first)
    move_before = _later(SchemaUpdate.move_before)
    move_after = _later(SchemaUpdate.move_after)
    set_identifier_fields = _later(SchemaUpdate.set_identifier_fields)
    union_by_name = _later(SchemaUpdate.union_by_name)
    allow_incompatible_changes = _later(SchemaUpdate.allow_incompatible_changes)
    case_sensitive = _later(SchemaUpdate.case_sensitive)

    def apply(self) -> Schema:
        """Return the schema that the table would have; nothing is written.

        Raises:
            InvalidChangeError: As `commit`.
        """
        intent = self._intend(self._base, self._plan)
        events = () if isinstance(intent, Landed) else intent.decide(self._base, ())
        facts = () if isinstance(events, Landed) else events
        changed = [each for each in facts if isinstance(each, SchemaEvent)]
        before = self._base.schema
        builder = SchemaBuilder.of(before)
        for each in changed:
            builder.apply(each)
        next_id = before.id + 1 if changed else before.id
        return builder.freeze(schema_id=next_id, time_millis=before.time_millis)

    def commit(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit the update as one transaction; one that changes nothing has no events.

        Raises:
            InvalidChangeError: A call contradicts the schema or another call, or a rule of the
                table's formats forbids the result; nothing was written.
            CommitConflictError: Somebody else set the same thing to another value meanwhile.
            CommitUnknownError: The store gave no answer.
        """
        asked = ["updateSchema", [each.plain() for each in self.calls]]
        return self._commit(asked, options, self._plan, self._base)

    def _plan(self, base: TableState) -> Sequence[TableChange]:
        update = SchemaUpdate(base.schema)
        for each in self.calls:
            each.on(update)
        allowed = [AllowIncompatibleChanges()] if update.allows_incompatible else []
        return [*update.changes(), *allowed]


def _plain(value: Any) -> Any:
    match value:
        case DataType():
            return format_type(value)
        case Schema():
            return [field_to_wire(each) for each in value.fields]
        case _:
            return value
