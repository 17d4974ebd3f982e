"""Difference of two table states as rows, and the changes that lead from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from attrs import field, frozen

from ledger.audit.column_migration import ColumnMatch
from ledger.audit.migration import Change, Migration, default_column_match, plan_migration
from ledger.audit.views import DIFFERENCES, rows_of_attributes
from ledger.model.messages import first_few, html_table
from ledger.model.names import quote_path
from ledger.model.schema import Schema
from ledger.model.types import DataField, DataType, TypePlace, type_places
from ledger.model.types.text import format_type
from ledger.state.columns import PastColumns
from ledger.state.table import TableState

if TYPE_CHECKING:
    import pyarrow as pa


@frozen
class DiffSide:
    """One side of a comparison, by name.

    Attributes:
        table: The table's full name; empty if it is unknown.
        version: The version of its latest commit.
        named: The tag, branch or snapshot that was requested, by its kind.
    """

    table: str
    version: int
    named: Mapping[str, str | int] = field(factory=dict)

    @property
    def instant(self) -> str:
        """The instant in words: `version 3`, or `tag v1 (version 3)`."""
        words = " ".join(f"{kind} {name}" for kind, name in self.named.items())
        return f"{words} (version {self.version})" if words else f"version {self.version}"

    def to_json(self) -> dict[str, Any]:
        """Return the side as JSON."""
        return {"table": self.table, "version": self.version, **self.named}


@frozen(slots=False, repr=False)
class TableDiff:
    """Difference between two states of a table, or of two tables.

    Attributes:
        before: The first state.
        after: The second state.
        match: The rule by which columns are matched: "id", or "name" for unrelated tables.
        sides: The names of the first and the second state.
    """

    before: TableState
    after: TableState
    match: ColumnMatch = field(kw_only=True)
    sides: tuple[DiffSide, DiffSide] = field(kw_only=True, eq=False)
    _past: Callable[[], PastColumns | None] = field(default=lambda: None, kw_only=True, eq=False)

    @match.default
    def _default_match(self) -> ColumnMatch:
        return default_column_match(self.before, self.after)

    @sides.default
    def _default_sides(self) -> tuple[DiffSide, DiffSide]:
        return DiffSide("", self.before.version), DiffSide("", self.after.version)

    def __repr__(self) -> str:
        shown = [(each.what, each.before, each.after) for each in self.rows]
        return f"{type(self).__name__}({_span_text('versions', *self.sides)}: {first_few(shown)})"

    def _repr_html_(self) -> str:
        shown = [(each.what, each.before, each.after) for each in self.rows]
        return html_table(("what", "before", "after"), shown, caption=self.span)

    @property
    def span(self) -> str:
        """Both sides in words: `version 0 to 2`, `shop.a version 3 to shop.b version 0`."""
        return _span_text("version", *self.sides)

    @cached_property
    def migration(self) -> Migration:
        """The migration of schema and layout from the first state to the second."""
        return plan_migration(self.before, self.after, self._past(), self.match)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes for `alter` from the first state to the second; ids are kept if possible."""
        return self.migration.changes

    @property
    def rows(self) -> tuple[DiffRow, ...]:
        """The differing columns, by field id or name, then the differing settings."""
        return tuple(differences(self.before, self.after, self.match))

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


def _span_text(noun: str, one: DiffSide, two: DiffSide) -> str:
    if one.table != two.table:
        return f"{one.table} {one.instant} to {two.table} {two.instant}"
    if one.named or two.named:
        return f"{_instant_on_line(one, two)} to {_instant_on_line(two, one)}"
    return f"{noun} {one.version} to {two.version}"


def _instant_on_line(side: DiffSide, other: DiffSide) -> str:
    """Return a side's instant, with the line of snapshots if the other one is of a branch."""
    if "branch" in other.named and not side.named:
        return f"main (version {side.version})"
    return side.instant


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


def differences(before: TableState, after: TableState, match: ColumnMatch) -> Iterator[DiffRow]:
    """Yield the differences between two states, columns first.

    Args:
        before: The first state.
        after: The second state.
        match: The rule to match columns. By name, ids of columns, specs and orders do not count.

    Example:
        >>> one, two = Schema.of({"a": "INT"}), Schema.of({"b": "INT"})
        >>> [(each.what, each.before, each.after) for each in _column_differences(one, two, "id")]
        [('field 0', 'a INT', 'b INT')]
        >>> [each.what for each in _column_differences(one, two, "name")]
        ['column a', 'column b']
    """
    one, two = before.schema, after.schema
    yield from _column_differences(one, two, match)
    yield from _text_difference("column order", *_common_column_orders(one, two, match))
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
        "partition spec", _describe_spec(before, match), _describe_spec(after, match)
    )
    yield from _text_difference(
        "sort order", _describe_sort_order(before, match), _describe_sort_order(after, match)
    )
    yield from _mapping_differences("tag ", _tag_texts(before), _tag_texts(after))
    yield from _mapping_differences("branch ", _branch_texts(before), _branch_texts(after))
    yield from _mapping_differences("", _content_texts(before), _content_texts(after))


def _column_differences(before: Schema, after: Schema, match: ColumnMatch) -> Iterator[DiffRow]:
    one, two = (_column_texts(each, match) for each in (before, after))
    yield from _mapping_differences("", one, two)


def _column_texts(schema: Schema, match: ColumnMatch) -> dict[str, str]:
    return {
        _column_key(place, place.field, match): _describe_column(place, place.field)
        for place in type_places(schema.fields)
        if place.field is not None
    }


def _column_key(place: TypePlace, column: DataField, match: ColumnMatch) -> str:
    return f"field {column.id}" if match == "id" else f"column {quote_path(place.path)}"


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
    before: Mapping[str, str],
    after: Mapping[str, str],
) -> Iterator[DiffRow]:
    for key in dict.fromkeys((*before, *after)):
        yield from _text_difference(f"{noun}{key}", before.get(key), after.get(key))


def _tag_texts(state: TableState) -> dict[str, str]:
    return {name: f"snapshot {each.snapshot_id}" for name, each in state.tags.items()}


def _branch_texts(state: TableState) -> dict[str, str]:
    return {name: f"snapshot {each.head_id}" for name, each in state.all_branches.items()}


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


def _common_column_orders(one: Schema, two: Schema, match: ColumnMatch) -> tuple[str, str]:
    """Return the order of the columns that both schemas have, for each of them."""
    keys = [
        [str(each.id) if match == "id" else each.name for each in schema.fields]
        for schema in (one, two)
    ]
    common = set(keys[0]) & set(keys[1])
    first, second = (" ".join(key for key in some if key in common) for some in keys)
    return first, second


def _join_names(names: Sequence[str]) -> str | None:
    return ", ".join(names) or None


def _identifier_field_names(schema: Schema) -> str | None:
    names = _names_by_field_id(schema)
    return _join_names([names.get(each, str(each)) for each in schema.identifier_field_ids])


def _describe_spec(state: TableState, match: ColumnMatch) -> str:
    names, spec = _names_by_field_id(state.schema), state.spec
    fields = (
        f"{each.name}={each.transform}({names.get(each.source_id, each.source_id)})"
        for each in spec.fields
    )
    text = ", ".join(fields) or "unpartitioned"
    return f"spec {spec.spec_id}: {text}" if match == "id" else text


def _describe_sort_order(state: TableState, match: ColumnMatch) -> str:
    names, order = _names_by_field_id(state.schema), state.sort_order
    fields = (
        f"{each.transform}({names.get(each.source_id, each.source_id)}) {each.direction} "
        f"{each.null_order}"
        for each in order.fields
    )
    text = ", ".join(fields) or "unsorted"
    return f"order {order.order_id}: {text}" if match == "id" else text


def _names_by_field_id(schema: Schema) -> dict[int, str]:
    return {each.field.id: each.name for each in type_places(schema.fields) if each.field}
