"""Difference of two table states as rows, and the changes that lead from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from attrs import field, frozen

from ledger.audit.migration import Change, Migration, plan_migration
from ledger.audit.views import DIFFERENCES, rows_of_attributes
from ledger.model.iceberg_layout import PartitionSpec, SortOrder
from ledger.model.messages import first_few, html_table
from ledger.model.schema import Schema
from ledger.model.types import DataField, DataType, TypePlace, type_places
from ledger.model.types.text import format_type
from ledger.state.columns import PastColumns
from ledger.state.table import TableState

if TYPE_CHECKING:
    import pyarrow as pa


@frozen(slots=False, repr=False)
class TableDiff:
    """Difference between two states of a table, or of two tables.

    Attributes:
        before: The first state.
        after: The second state.
    """

    before: TableState
    after: TableState
    _past: Callable[[], PastColumns | None] = field(default=lambda: None, kw_only=True, eq=False)

    def __repr__(self) -> str:
        shown = [(each.what, each.before, each.after) for each in self.rows]
        span = f"versions {self.before.version} to {self.after.version}"
        return f"{type(self).__name__}({span}: {first_few(shown)})"

    def _repr_html_(self) -> str:
        shown = [(each.what, each.before, each.after) for each in self.rows]
        span = f"version {self.before.version} to {self.after.version}"
        return html_table(("what", "before", "after"), shown, caption=span)

    @cached_property
    def migration(self) -> Migration:
        """The migration of schema and layout from the first state to the second."""
        return plan_migration(self.before, self.after, self._past())

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes for `alter` from the first state to the second; ids are kept if possible."""
        return self.migration.changes

    @property
    def rows(self) -> tuple[DiffRow, ...]:
        """The differing columns, by field id, then the differing settings."""
        return tuple(differences(self.before, self.after))

    def __bool__(self) -> bool:
        return any(self.rows)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return rows_of_attributes(DIFFERENCES, self.rows).to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as an Arrow stream to another engine."""
        return rows_of_attributes(DIFFERENCES, self.rows).__arrow_c_stream__(requested_schema)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the changes as JSON objects that `alter` takes."""
        return as_json(self.changes)


def as_json(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return changes as JSON objects that `alter` takes."""
    plain: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(changes))
    return plain


@frozen
class DiffRow:
    """One difference: a column or setting, its text before and after; None if it is absent."""

    what: str
    before: str | None
    after: str | None


def differences(before: TableState, after: TableState) -> Iterator[DiffRow]:
    """Yield the differences between two states, columns by field id first.

    Example:
        >>> one, two = Schema.of({"a": "INT"}), Schema.of({"b": "INT"})
        >>> [(each.what, each.before, each.after) for each in _column_differences(one, two)]
        [('field 0', 'a INT', 'b INT')]
    """
    one, two = before.schema, after.schema
    yield from _column_differences(one, two)
    yield from _text_difference(
        "column order", _common_column_order(one, two), _common_column_order(two, one)
    )
    yield from _text_difference(
        "primary key", _join_names(one.primary_keys), _join_names(two.primary_keys)
    )
    yield from _text_difference(
        "partition keys", _join_names(one.partition_keys), _join_names(two.partition_keys)
    )
    yield from _text_difference(
        "identifier fields", _identifier_field_names(one), _identifier_field_names(two)
    )
    yield from _mapping_differences("option ", one.options, two.options)
    yield from _text_difference("comment", one.comment, two.comment)
    yield from _text_difference(
        "partition spec", _describe_spec(before.spec, one), _describe_spec(after.spec, two)
    )
    yield from _text_difference(
        "sort order",
        _describe_sort_order(before.sort_order, one),
        _describe_sort_order(after.sort_order, two),
    )
    yield from _mapping_differences("tag ", _tag_texts(before), _tag_texts(after))
    yield from _mapping_differences("branch ", _branch_texts(before), _branch_texts(after))
    yield from _mapping_differences("", _content_texts(before), _content_texts(after))


def _column_differences(before: Schema, after: Schema) -> Iterator[DiffRow]:
    yield from _mapping_differences("field ", _column_texts(before), _column_texts(after))


def _column_texts(schema: Schema) -> dict[int, str]:
    return {
        place.field.id: _describe_column(place, place.field)
        for place in type_places(schema.fields)
        if place.field is not None
    }


def _describe_column(place: TypePlace, column: DataField) -> str:
    text = f"{place.name} {_type_text(column.type)}"
    if column.initial_default is not None:
        text += f" INITIAL DEFAULT {column.initial_default!r}"
    if column.default_value is not None:
        text += f" DEFAULT {column.default_value!r}"
    if column.description is not None:
        text += f" COMMENT {column.description!r}"
    return text


def _type_text(data_type: DataType) -> str:
    if not data_type.depth:
        return format_type(data_type)
    # Members of a ROW are separate rows; other nested types are shown whole.
    _, *inside = type_places([DataField(0, "", data_type)])
    if all(each.field is None for each in inside):
        return format_type(data_type)
    return data_type.root if data_type.nullable else f"{data_type.root} NOT NULL"


def _mapping_differences(
    noun: str,
    before: Mapping[int, str] | Mapping[str, str],
    after: Mapping[int, str] | Mapping[str, str],
) -> Iterator[DiffRow]:
    old = {str(key): value for key, value in before.items()}
    new = {str(key): value for key, value in after.items()}
    for key in dict.fromkeys((*old, *new)):
        yield from _text_difference(f"{noun}{key}", old.get(key), new.get(key))


def _tag_texts(state: TableState) -> dict[str, str]:
    return {name: f"snapshot {each.snapshot_id}" for name, each in state.tags.items()}


def _branch_texts(state: TableState) -> dict[str, str]:
    return {name: f"snapshot {each.head_id}" for name, each in state.branches.items()}


def _content_texts(state: TableState) -> dict[str, str]:
    totals = state.totals
    return {
        "snapshot": "none" if state.snapshot is None else str(state.snapshot.id),
        "earliest snapshot": str(state.earliest_snapshot_id),
        "rows": f"{totals.record_count:,}",
        "files": f"{totals.file_count:,}",
        "bytes": f"{totals.file_size_in_bytes:,}",
    }


def _text_difference(what: str, before: str | None, after: str | None) -> Iterator[DiffRow]:
    if before != after:
        yield DiffRow(what, before, after)


def _common_column_order(schema: Schema, other: Schema) -> str:
    kept = {each.id for each in other.fields}
    return " ".join(str(each.id) for each in schema.fields if each.id in kept)


def _join_names(names: Sequence[str]) -> str | None:
    return ", ".join(names) or None


def _identifier_field_names(schema: Schema) -> str | None:
    names = _names_by_field_id(schema)
    return _join_names([names.get(each, str(each)) for each in schema.identifier_field_ids])


def _describe_spec(spec: PartitionSpec, schema: Schema) -> str:
    names = _names_by_field_id(schema)
    fields = (
        f"{each.name}={each.transform}({names.get(each.source_id, each.source_id)})"
        for each in spec.fields
    )
    return f"spec {spec.spec_id}: {', '.join(fields) or 'unpartitioned'}"


def _describe_sort_order(order: SortOrder, schema: Schema) -> str:
    names = _names_by_field_id(schema)
    fields = (
        f"{each.transform}({names.get(each.source_id, each.source_id)}) {each.direction} "
        f"{each.null_order}"
        for each in order.fields
    )
    return f"order {order.order_id}: {', '.join(fields) or 'unsorted'}"


def _names_by_field_id(schema: Schema) -> dict[int, str]:
    return {each.field.id: each.name for each in type_places(schema.fields) if each.field}
