"""Decisions on partition specs and sort orders, by Iceberg's rules.

Source: Iceberg's UpdatePartitionSpec. Every update is resolved against the default spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from msgspec.structs import replace

from ledger.decide.operation import Cell, Cells, LayoutOperation
from ledger.events.schema import (
    AddPartitionField,
    PartitionSpecUpdated,
    RemovePartitionField,
    RenamePartitionField,
    ReplaceSortOrder,
    SortColumn,
    SortOrderReplaced,
    SpecUpdate,
    UpdatePartitionSpec,
)
from ledger.model.errors import InvalidChangeError
from ledger.model.iceberg_layout import PartitionField, PartitionSpec, SortField, SortOrder
from ledger.model.names import quote_path
from ledger.model.schema import Schema
from ledger.model.transforms import (
    Bucket,
    Period,
    Transform,
    Truncate,
    UnknownTransform,
    Void,
    transform_of,
)
from ledger.model.types import RowType
from ledger.model.types.text import format_type
from ledger.state.columns import dotted
from ledger.state.declared_formats import Rules
from ledger.state.layout import LayoutTrail, SourceColumn, SourceColumnFinder, walk_source_columns


def default_field_name(source: SourceColumn, transform: Transform) -> str:
    """Return Iceberg's default name of a partition field.

    Example:
        >>> column = next(walk_source_columns(Schema.of({"id": "INT"})))
        >>> default_field_name(column, Bucket(8))
        'id_bucket_8'
    """
    column = dotted(source.path)
    match transform:
        case Bucket(count=count):
            return f"{column}_bucket_{count}"
        case Truncate(width=width):
            return f"{column}_trunc_{width}"
        case Period(unit=unit):
            return f"{column}_{unit}"
        case Void():
            return f"{column}_null"
        case _:
            return column


def writable_transform(text: str, source: SourceColumn) -> Transform:
    """Return a transform of a source, checked to be one that files can be written with.

    Raises:
        InvalidChangeError: It is unknown, or does not accept the source's type.
    """
    transform = transform_of(text)
    if isinstance(transform, UnknownTransform):
        raise InvalidChangeError(
            f"transform {text!r} is unknown, so no file can be written with it; there are "
            "identity, bucket[N], truncate[W], year, month, day, hour, void"
        )
    if not transform.accepts(source.type):
        raise InvalidChangeError(
            f"transform {transform.text} does not accept column {dotted(source.path)} "
            f"{_type_text(source)}; choose another transform or column"
        )
    return transform


def _type_text(source: SourceColumn) -> str:
    # A ROW's members would hide the rule.
    return "ROW" if isinstance(source.type, RowType) else format_type(source.type)


class SpecDraft:
    """The updates of one batch so far, on the default partition spec.

    Args:
        layout: The specs before.
        format_version: Iceberg's. Version 1 keeps a removed field in its position, as void, since
            its field ids are positions.
    """

    def __init__(self, layout: LayoutTrail, *, format_version: int) -> None:
        self._fields = layout.spec.fields
        self._keeps_voids = format_version == 1
        newest_first = sorted(layout.specs, key=lambda each: each.spec_id, reverse=True)
        self._past = [each for spec in newest_first for each in spec.fields]
        self._last_id = layout.last_partition_id
        self._adds: list[PartitionField] = []
        self._deleted: set[int] = set()
        self._renames: dict[str, str] = {}

    def add(self, source: SourceColumn, transform: Transform, name: str | None) -> None:
        """Add a field; one that this batch removes is kept instead, renamed if a name is given.

        Raises:
            InvalidChangeError: The spec has it, or the batch adds it twice, or its name is taken.
        """
        there = self._find_by_transform(source.id, transform.text)
        if there is not None and there.field_id in self._deleted:
            self._deleted.discard(there.field_id)
            if name not in (None, there.name):
                self.rename(there.name, str(name))
            return
        existing = there or _find_matching_field(self._adds, source.id, transform.text)
        if existing is not None:
            raise InvalidChangeError(
                f"partition field {existing.name} is {transform.text} of {dotted(source.path)} "
                "already; keep it, or rename it"
            )
        added = self._find_older_spec_field(source.id, transform.text, name) or PartitionField(
            default_field_name(source, transform) if name is None else name,
            transform.text,
            source.id,
            field_id=self._last_id + 1,
        )
        self._check_redundant_field(added, transform)
        self._resolve_name_clash(added)
        self._last_id = max(self._last_id, added.field_id)
        self._adds.append(added)

    def remove(self, name: str) -> None:
        """Remove the field of a name.

        Raises:
            InvalidChangeError: There is none, or this batch adds or renames it.
        """
        if any(each.name == name for each in self._adds):
            raise InvalidChangeError(
                f"partition field {name} is added by this batch; leave both out instead"
            )
        self._delete_field(self._find_by_name(name))

    def remove_transform(self, source: SourceColumn, transform: Transform) -> None:
        """Remove the field that is a transform of a source.

        Raises:
            InvalidChangeError: As `remove`.
        """
        if _find_matching_field(self._adds, source.id, transform.text) is not None:
            raise InvalidChangeError(
                f"{transform.text} of {dotted(source.path)} is added by this batch; leave both "
                "out instead"
            )
        field = self._find_by_transform(source.id, transform.text)
        if field is None:
            raise self._missing_field_error(f"that is {transform.text} of {dotted(source.path)}")
        self._delete_field(field)

    def rename(self, name: str, new_name: str) -> None:
        """Rename a field; a void field that has the name gets another one.

        Raises:
            InvalidChangeError: There is no such field, or this batch adds or removes it.
        """
        if any(each.name == name for each in self._adds):
            raise InvalidChangeError(
                f"partition field {name} is added by this batch; add it under the new name instead"
            )
        field = self._find_by_name(name)
        if field.field_id in self._deleted:
            raise InvalidChangeError(
                f"partition field {name} is removed by this batch, so it cannot be renamed; do one"
            )
        holder = next((each for each in self._fields if each.name == new_name), None)
        if holder is not None and holder is not field and holder.transform == "void":
            self._rename_void_field(holder)
        self._renames[name] = new_name

    def fields(self, schema: Schema) -> tuple[PartitionField, ...]:
        """Return the fields of the new spec.

        Raises:
            InvalidChangeError: A name is empty, taken twice or another column's, or a transform
                does not accept its source.
        """
        found: list[PartitionField] = []
        for each in self._fields:
            renamed = replace(each, name=self._renames.get(each.name, each.name))
            if each.field_id not in self._deleted:
                found.append(renamed)
            elif self._keeps_voids:
                found.append(replace(renamed, transform="void"))
        found.extend(self._adds)
        _check_partition_fields(found, schema)
        return tuple(found)

    def _find_by_transform(self, source_id: int, transform: str) -> PartitionField | None:
        return _find_matching_field(self._fields, source_id, transform)

    def _find_by_name(self, name: str) -> PartitionField:
        for each in self._fields:
            if each.name == name:
                return each
        raise self._missing_field_error(name)

    def _missing_field_error(self, what: str) -> InvalidChangeError:
        known = [f"{each.name} ({each.transform})" for each in self._fields]
        return InvalidChangeError(f"partition field {what} does not exist; there are: {known}")

    def _delete_field(self, field: PartitionField) -> None:
        if field.name in self._renames:
            raise InvalidChangeError(
                f"partition field {field.name} is renamed by this batch, so it cannot be removed; "
                "do one"
            )
        self._deleted.add(field.field_id)

    def _find_older_spec_field(
        self, source_id: int, transform: str, name: str | None
    ) -> PartitionField | None:
        """Return the field as an older spec had it, so that its id is used again."""
        if self._keeps_voids:
            return None
        staying = {each.field_id for each in self._fields} - self._deleted
        for each in self._past:
            is_same = (each.source_id, each.transform) == (source_id, transform)
            # An upgraded table may still hold the id as a void.
            if is_same and name in (None, each.name) and each.field_id not in staying:
                return each
        return None

    def _check_redundant_field(self, added: PartitionField, transform: Transform) -> None:
        for each in self._adds:
            is_time = isinstance(transform, Period) and isinstance(
                transform_of(each.transform), Period
            )
            if is_time and each.source_id == added.source_id:
                raise InvalidChangeError(
                    f"partition fields {each.name} and {added.name} are two time units of one "
                    "column; add the finer one only"
                )

    def _resolve_name_clash(self, added: PartitionField) -> None:
        if any(each.name == added.name for each in self._adds):
            raise _duplicate_name_error(added.name)
        holder = next((each for each in self._fields if each.name == added.name), None)
        if holder is None:
            return
        if holder.field_id not in self._deleted and holder.transform != "void":
            raise _duplicate_name_error(added.name)
        self._rename_void_field(holder)

    def _rename_void_field(self, holder: PartitionField) -> None:
        self._renames[holder.name] = f"{holder.name}_{holder.field_id}"


def _find_matching_field(
    fields: tuple[PartitionField, ...] | list[PartitionField], source_id: int, transform: str
) -> PartitionField | None:
    wanted = (source_id, transform)
    return next((each for each in fields if (each.source_id, each.transform) == wanted), None)


def _duplicate_name_error(name: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"two partition fields would be called {name}; give one of them another name"
    )


def _check_partition_fields(fields: list[PartitionField], schema: Schema) -> None:
    sources = {each.id: each for each in walk_source_columns(schema)}
    columns = {dotted(each.path): each.id for each in sources.values()}
    seen: set[str] = set()
    for each in fields:
        if not each.name:
            raise InvalidChangeError("a partition field has an empty name; give it one")
        if each.name in seen:
            raise _duplicate_name_error(each.name)
        seen.add(each.name)
        source = sources.get(each.source_id)
        if source is None:
            # The column was dropped: nothing is left to check.
            continue
        if columns.get(each.name, each.source_id) != each.source_id:
            raise InvalidChangeError(
                f"partition field {each.name} would have the name of another column than its "
                f"source {dotted(source.path)}; give it another name"
            )
        writable_transform(each.transform, source)


LayoutEvent = PartitionSpecUpdated | SortOrderReplaced
_Shape = tuple[tuple[int, str, str], ...]


def decide_spec(
    layout: LayoutTrail,
    change: UpdatePartitionSpec,
    schema: Schema,
    sources: SourceColumnFinder,
    rules: Rules,
) -> PartitionSpecUpdated | None:
    """Return the spec that updates make of the default one; None when it is the default already.

    Args:
        layout: The specs and orders at this point of the transaction.
        change: The requested change.
        schema: The schema at this point of the transaction.
        sources: Resolves columns.
        rules: The rules that apply.

    Raises:
        InvalidChangeError: A rule forbids it.
    """
    draft = SpecDraft(layout, format_version=rules.format_version)
    for update in change.updates:
        _apply_spec_update(draft, update, schema, sources)
    fields = draft.fields(schema)
    wanted = spec_comparison_key(fields)
    # A table has as many specs as it ever had layouts.
    alike = (each for each in layout.specs if len(each.fields) == len(fields))
    there = next((each for each in alike if spec_comparison_key(each.fields) == wanted), None)
    if there is not None and (not change.set_default or there.spec_id == layout.default_spec_id):
        return None
    next_id = max(each.spec_id for each in layout.specs) + 1
    spec = there or PartitionSpec(next_id, fields)
    return PartitionSpecUpdated(
        updates=change.updates,
        set_default=change.set_default,
        spec_id=spec.spec_id,
        fields=spec.fields,
    )


def spec_comparison_key(fields: Sequence[PartitionField]) -> _Shape:
    """Return the key by which Iceberg compares specs: without the field ids."""
    return tuple((each.source_id, each.name, each.transform) for each in fields)


def _apply_spec_update(
    draft: SpecDraft, update: SpecUpdate, schema: Schema, sources: SourceColumnFinder
) -> None:
    match update:
        case AddPartitionField():
            source = sources.find(schema, update.source)
            draft.add(source, writable_transform(update.transform, source), update.name)
        case RemovePartitionField(name=str(name), source=None, transform=None):
            draft.remove(name)
        case RemovePartitionField(name=None, source=tuple(path), transform=transform):
            found = sources.find(schema, path)
            draft.remove_transform(found, transform_of(transform or "identity"))
        case RemovePartitionField():
            raise InvalidChangeError(
                "a partition field is removed by its name or by its source and transform; "
                "give one of the two"
            )
        case RenamePartitionField():
            draft.rename(update.name, update.new_name)
        case _:
            assert_never(update)


def decide_order(
    layout: LayoutTrail,
    change: ReplaceSortOrder,
    schema: Schema,
    sources: SourceColumnFinder,
    _rules: Rules,
) -> SortOrderReplaced | None:
    """Return the new default sort order; None when it is the default already.

    The arguments are those of `decide_spec`.

    Raises:
        InvalidChangeError: A source is missing, or a transform does not accept it.
    """
    fields = tuple(_resolve_sort_field(each, schema, sources) for each in change.columns)
    there = next((each for each in layout.sort_orders if each.fields == fields), None)
    if there is not None and there.order_id == layout.default_order_id:
        return None
    # Id 0 is always the unsorted order's.
    next_id = max(each.order_id for each in layout.sort_orders) + 1 if fields else 0
    order = there or SortOrder(next_id, fields)
    return SortOrderReplaced(columns=change.columns, order_id=order.order_id, fields=order.fields)


def _resolve_sort_field(
    column: SortColumn, schema: Schema, sources: SourceColumnFinder
) -> SortField:
    source = sources.find(schema, column.source)
    transform = writable_transform(column.transform, source)
    nulls = column.null_order or ("nulls-first" if column.direction == "asc" else "nulls-last")
    return SortField(
        transform=transform.text, source_id=source.id, direction=column.direction, null_order=nulls
    )


def _spec_cells(fact: PartitionSpecUpdated) -> Iterator[tuple[Cell, Any]]:
    layout = tuple((each.source_id, each.transform, each.name) for each in fact.fields)
    yield ("partitionSpec",), (fact.set_default, *layout)


def _sort_order_cells(fact: SortOrderReplaced) -> Iterator[tuple[Cell, Any]]:
    order = (
        (each.source_id, each.transform, each.direction, each.null_order) for each in fact.fields
    )
    yield ("sortOrder",), tuple(order)


def _make_layout_claims(sets: Cells) -> Cells:
    """Return the claims of a layout: the cells that it sets, and that its columns exist."""

    def claims(fact: Any) -> Iterator[tuple[Cell, Any]]:
        yield from sets(fact)
        for each in fact.fields:
            yield ("column", each.source_id, "exists"), True

    return claims


def _describe_spec(fact: UpdatePartitionSpec) -> str:
    if not isinstance(fact, PartitionSpecUpdated):
        # A planned change has no spec yet.
        said = "changed the partition spec" if fact.set_default else "added a partition spec"
        return f"{said}: {', '.join(map(_describe_update, fact.updates)) or 'no field'}"
    fields = ", ".join(f"{each.name}={each.transform}" for each in fact.fields)
    said = "files are partitioned by" if fact.set_default else "added"
    return f"{said} partition spec {fact.spec_id}: {fields or 'unpartitioned'}"


def _describe_update(update: SpecUpdate) -> str:
    match update:
        case AddPartitionField(source=source, transform=transform, name=name):
            return f"add {_describe_field(source, transform)}{f' as {name}' if name else ''}"
        case RemovePartitionField(name=str() as name):
            return f"remove {name}"
        case RemovePartitionField(source=source, transform=transform):
            return f"remove {_describe_field(source or (), transform or 'identity')}"
        case RenamePartitionField(name=name, new_name=new_name):
            return f"rename {name} to {new_name}"
        case _:
            assert_never(update)


def _describe_field(source: tuple[str, ...], transform: str) -> str:
    path = quote_path(source)
    return path if transform == "identity" else f"{transform} of {path}"


def _describe_order(fact: ReplaceSortOrder) -> str:
    fields = ", ".join(
        f"{_describe_field(each.source, each.transform)} {each.direction}" for each in fact.columns
    )
    if not isinstance(fact, SortOrderReplaced):
        return f"files are sorted by: {fields}" if fields else "files are unsorted"
    said = "files are sorted by" if fact.set_default else "added sort"
    return f"{said} order {fact.order_id}: {fields or 'unsorted'}"


LAYOUT_OPERATIONS: tuple[LayoutOperation, ...] = (
    LayoutOperation(
        asked=UpdatePartitionSpec,
        facts=(PartitionSpecUpdated,),
        decide=decide_spec,
        sets=_spec_cells,
        claims=_make_layout_claims(_spec_cells),
        says=_describe_spec,
    ),
    LayoutOperation(
        asked=ReplaceSortOrder,
        facts=(SortOrderReplaced,),
        decide=decide_order,
        sets=_sort_order_cells,
        claims=_make_layout_claims(_sort_order_cells),
        says=_describe_order,
    ),
)
