"""Fluent updates of a table: schema, partition spec, sort order.

Each notes what is asked and ends with `.apply()`, which writes nothing, or `.commit()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import BoundArguments, signature
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Unpack

from attrs import evolve, frozen
from msgspec import UNSET

from ledger.decide.changes import AllowIncompatibleChanges, TableChange
from ledger.decide.schema_update import SchemaUpdate
from ledger.events.schema import (
    AddPartitionField,
    RemovePartitionField,
    RenamePartitionField,
    ReplaceSortOrder,
    SchemaEvent,
    SortColumn,
    SpecUpdate,
    UpdatePartitionSpec,
)
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg_layout import Direction, NullOrder, PartitionSpec, SortOrder
from ledger.model.messages import excerpt, first_few
from ledger.model.schema import Schema
from ledger.model.types import DataType
from ledger.model.types.text import format_type
from ledger.model.types.wire import field_to_wire
from ledger.state.schema_builder import SchemaBuilder
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from ledger.transforms import Column, Term, term_of

if TYPE_CHECKING:
    pass

P = ParamSpec("P")


@frozen
class _SchemaCall:
    """A call to be made on a `SchemaUpdate`."""

    method: Callable[..., SchemaUpdate]
    given: BoundArguments

    def on(self, update: SchemaUpdate) -> None:
        """Make the call."""
        self.method(update, *self.given.args[1:], **self.given.kwargs)

    def plain(self) -> list[Any]:
        """Return what was asked, as plain data: the same however it was written."""
        named = {
            key: _to_plain_data(value)
            for key, value in self.given.arguments.items()
            if key != "self" and value is not UNSET
        }
        return [self.method.__name__, named]


def _record_call(
    method: Callable[Concatenate[SchemaUpdate, P], SchemaUpdate],
) -> Callable[Concatenate[UpdateSchema, P], UpdateSchema]:
    """Return the same call, noted for later."""
    parameters = signature(method)

    @wraps(method)
    def noted(update: UpdateSchema, /, *args: P.args, **kwargs: P.kwargs) -> UpdateSchema:
        given = parameters.bind(update, *args, **kwargs)
        given.apply_defaults()
        update.calls.append(_SchemaCall(method, given))
        return update

    return noted


class UpdateSchema:
    """An update of one table's schema: request changes, then `commit`.

    Calls are recorded, and carried out by `apply` and `commit`, which reject what is not allowed:
    an update that is retried under its commit id finds its own commit. Names are resolved when the
    update begins; it is rebased onto concurrent commits, as in `Table.alter`.

    Example:
        >>> from ledger import open
        >>> lake = open("memory://update-schema-example")
        >>> _ = lake.create_database("shop")
        >>> orders = lake.create_table("shop.orders", Schema.of({"id": "INT", "note": "STRING"}))
        >>> update = orders.update_schema().update_column("id", "BIGINT").move_first("note")
        >>> update.commit().state.schema.names
        ('note', 'id')
    """

    def __init__(self, base: TableState, handle: TableHandle) -> None:
        self.calls: list[_SchemaCall] = []
        self._base = base
        self._handle = handle

    def __repr__(self) -> str:
        return f"{type(self).__name__}({first_few(each.method.__name__ for each in self.calls)})"

    add_column = _record_call(SchemaUpdate.add_column)
    delete_column = _record_call(SchemaUpdate.delete_column)
    rename_column = _record_call(SchemaUpdate.rename_column)
    update_column = _record_call(SchemaUpdate.update_column)
    make_optional = _record_call(SchemaUpdate.make_optional)
    require = _record_call(SchemaUpdate.require)
    move_first = _record_call(SchemaUpdate.move_first)
    move_before = _record_call(SchemaUpdate.move_before)
    move_after = _record_call(SchemaUpdate.move_after)
    set_identifier_fields = _record_call(SchemaUpdate.set_identifier_fields)
    union_by_name = _record_call(SchemaUpdate.union_by_name)
    allow_incompatible_changes = _record_call(SchemaUpdate.allow_incompatible_changes)
    case_sensitive = _record_call(SchemaUpdate.case_sensitive)

    def apply(self) -> Schema:
        """Return the schema that the table would have; nothing is written.

        Raises:
            InvalidChangeError: As `commit`.

        Example:
            >>> orders.update_schema().add_column("zip", "STRING").apply().names
            ('id', 'addr', 'zip')
            >>> orders.state.schema.names
            ('id', 'addr')
        """
        intent = self._handle.intent(self._base, self._plan_changes)
        events = () if isinstance(intent, AlreadyCommitted) else intent.decide(self._base, ())
        facts = () if isinstance(events, AlreadyCommitted) else events
        changed = [each for each in facts if isinstance(each, SchemaEvent)]
        before = self._base.schema
        builder = SchemaBuilder(before)
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

        Example:
            >>> orders.update_schema().rename_column("addr", "address").commit().state.schema.names
            ('id', 'address')
        """
        asked = ["updateSchema", [each.plain() for each in self.calls]]
        return self._handle.commit(asked, options, self._plan_changes, self._base)

    def _plan_changes(self, base: TableState) -> Sequence[TableChange]:
        update = SchemaUpdate(base.schema)
        for each in self.calls:
            each.on(update)
        allowed = [AllowIncompatibleChanges()] if update.allows_incompatible else []
        return [*update.changes(), *allowed]


def _to_plain_data(value: Any) -> Any:
    match value:
        case DataType():
            return format_type(value)
        case Schema():
            return [field_to_wire(each) for each in value.fields]
        case _:
            return value


@frozen
class UpdateSpec:
    """Partition layout of files written from now on; each call returns a new update.

    Files that are there keep their layout. All updates are resolved against the default spec that
    the table has when they are committed, as Iceberg does.

    Attributes:
        updates: The updates so far, in order.
        set_default: Whether the new spec becomes the default.

    Example:
        >>> import ledger
        >>> from ledger.transforms import bucket
        >>> lake = ledger.open("memory://update-spec")
        >>> _ = lake.create_database("shop")
        >>> table = lake.create_table("shop.orders", ledger.Schema.of({"id": "BIGINT"}))
        >>> table.update_spec().add_field(bucket("id", 8)).apply().fields[0].name
        'id_bucket_8'
    """

    _handle: TableHandle
    updates: tuple[SpecUpdate, ...] = ()
    set_default: bool = True

    def add_field(self, source: Term | Column, name: str | None = None) -> UpdateSpec:
        """Add a partition field.

        Args:
            source: A column, or a transform of one.
            name: None for Iceberg's own, such as `id_bucket_8`.

        Example:
            >>> from ledger.transforms import bucket
            >>> update = orders.update_spec().add_field(bucket("id", 8)).add_field("addr", "city")
            >>> [each.name for each in update.apply().fields]
            ['id_bucket_8', 'city']
        """
        term = term_of(source)
        return self._with_addition(AddPartitionField(term.source, term.transform, name))

    def remove_field(self, field: str | Term) -> UpdateSpec:
        """Remove a partition field, by its name or by what it is of.

        Example:
            >>> from ledger.transforms import bucket
            >>> _ = orders.update_spec().add_field(bucket("id", 8)).commit()
            >>> orders.update_spec().remove_field(bucket("id", 8)).apply().fields
            ()
        """
        if isinstance(field, Term):
            return self._with_addition(
                RemovePartitionField(source=field.source, transform=field.transform)
            )
        return self._with_addition(RemovePartitionField(name=field))

    def rename_field(self, name: str, new_name: str) -> UpdateSpec:
        """Give a partition field another name.

        Example:
            >>> _ = orders.update_spec().add_field("addr").commit()
            >>> orders.update_spec().rename_field("addr", "city").apply().fields[0].name
            'city'
        """
        return self._with_addition(RenamePartitionField(name, new_name))

    def add_non_default_spec(self) -> UpdateSpec:
        """Keep the new spec beside the default one.

        Example:
            >>> update = orders.update_spec().add_field("addr").add_non_default_spec()
            >>> update.commit().state.spec.fields
            ()
        """
        return evolve(self, set_default=False)

    def _with_addition(self, update: SpecUpdate) -> UpdateSpec:
        return evolve(self, updates=(*self.updates, update))

    @property
    def change(self) -> UpdatePartitionSpec:
        """The change as `table.alter` takes it.

        Example:
            >>> orders.alter([orders.update_spec().add_field("addr").change]).version
            3
        """
        return UpdatePartitionSpec(self.updates, self.set_default)

    def apply(self) -> PartitionSpec:
        """Return the spec that would come out, without committing it.

        Raises:
            InvalidChangeError: A rule forbids an update.

        Example:
            >>> orders.update_spec().add_field("addr").apply().spec_id, orders.state.version
            (1, 2)
        """
        for refusal in self._handle.plan([self.change]).refusals:
            raise refusal
        # As a default it would be the same spec.
        return self._handle.plan([UpdatePartitionSpec(self.updates)]).after.spec

    def commit(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit the updates; all land or none.

        Raises:
            InvalidChangeError: A rule forbids an update; nothing was written.
            CommitConflictError: Somebody else changed the spec otherwise meanwhile.
            CommitUnknownError: The store gave no answer.

        Example:
            >>> orders.update_spec().add_field("addr").commit(message="by city").version
            3
        """
        return self._handle.alter([self.change], options)


Nulls = Literal["first", "last"]
_NULL_ORDERS: dict[str | None, NullOrder | None] = {
    None: None,
    "first": "nulls-first",
    "last": "nulls-last",
}


@frozen
class ReplaceOrder:
    """Sort order of rows in files written from now on; each call returns a new update.

    Without columns: not at all.

    Attributes:
        columns: The sort columns so far, in order.

    Example:
        >>> import ledger
        >>> from ledger.transforms import day
        >>> lake = ledger.open("memory://replace-sort-order")
        >>> _ = lake.create_database("shop")
        >>> schema = ledger.Schema.of({"id": "BIGINT", "ts": "TIMESTAMP(6)"})
        >>> order = lake.create_table("shop.orders", schema).replace_sort_order()
        >>> order.asc("id", nulls="last").desc(day("ts")).apply().order_id
        1
    """

    _handle: TableHandle
    columns: tuple[SortColumn, ...] = ()

    def asc(self, source: Term | Column, nulls: Nulls | None = None) -> ReplaceOrder:
        """Order by a column, or a transform of one, the least first; nulls first by default.

        Example:
            >>> orders.replace_sort_order().asc("id").apply().fields[0].null_order
            'nulls-first'
        """
        return self._with_addition(source, "asc", nulls)

    def desc(self, source: Term | Column, nulls: Nulls | None = None) -> ReplaceOrder:
        """Order by a column, or a transform of one, the greatest first; nulls last by default.

        Example:
            >>> orders.replace_sort_order().desc("id").apply().fields[0].null_order
            'nulls-last'
        """
        return self._with_addition(source, "desc", nulls)

    def _with_addition(
        self, source: Term | Column, direction: Direction, nulls: Nulls | None
    ) -> ReplaceOrder:
        # A list cannot be looked up.
        if not any(nulls == each for each in _NULL_ORDERS):
            raise InvalidInputError(
                f"nulls={excerpt(nulls)} is no place for nulls; give first or last"
            )
        term = term_of(source)
        column = SortColumn(term.source, term.transform, direction, _NULL_ORDERS[nulls])
        return evolve(self, columns=(*self.columns, column))

    @property
    def change(self) -> ReplaceSortOrder:
        """The change as `table.alter` takes it.

        Example:
            >>> orders.alter([orders.replace_sort_order().asc("id").change]).version
            3
        """
        return ReplaceSortOrder(self.columns)

    def apply(self) -> SortOrder:
        """Return the order that would come out, without committing it.

        Raises:
            InvalidChangeError: A rule forbids a column.

        Example:
            >>> orders.replace_sort_order().asc("id").apply().order_id, orders.state.version
            (1, 2)
        """
        plan = self._handle.plan([self.change])
        for refusal in plan.refusals:
            raise refusal
        return plan.after.sort_order

    def commit(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit the order.

        Raises:
            InvalidChangeError: A rule forbids a column; nothing was written.
            CommitConflictError: Somebody else set another order meanwhile.
            CommitUnknownError: The store gave no answer.

        Example:
            >>> orders.replace_sort_order().asc("id").commit(message="for lookups").version
            3
        """
        return self._handle.alter([self.change], options)
