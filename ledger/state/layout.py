"""Partition specs and sort orders: fold, records and source columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from msgspec import Struct

from ledger.events.schema import PartitionSpecUpdated, SortOrderReplaced
from ledger.model.errors import ColumnNotFoundError, InvalidChangeError
from ledger.model.file_change import FileChange, PartitionValue, sidecar_location_of
from ledger.model.iceberg_layout import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
    SomeSpecs,
    SortField,
    SortOrder,
    check_ledger_fields,
    order_by_id,
    spec_by_id,
    spec_of_id,
)
from ledger.model.messages import name_hint
from ledger.model.schema import Schema
from ledger.model.types import ArrayType, DataField, DataType, MapType, MultisetType, RowType
from ledger.state.columns import dotted
from ledger.state.table import TableState


def identity_spec(schema: Schema) -> PartitionSpec:
    """Return spec 0 of a table: identity over its partition keys.

    Example:
        >>> identity_spec(Schema.of({"day": "DATE"}, partition_keys=["day"])).fields[0].name
        'day'
    """
    fields = (
        PartitionField(
            name, "identity", schema.field(name).id, field_id=FIRST_PARTITION_FIELD_ID + index
        )
        for index, name in enumerate(schema.partition_keys)
    )
    return PartitionSpec(0, tuple(fields))


def build_checked_spec(spec_id: int, fields: tuple[PartitionField, ...]) -> PartitionSpec:
    """Return the spec that an event records.

    Raises:
        UnsupportedError, InvalidInputError: As of `check_ledger_fields`.
    """
    check_ledger_fields(fields, f"partition spec {spec_id}")
    return PartitionSpec(spec_id, fields)


def build_checked_order(order_id: int, fields: tuple[SortField, ...]) -> SortOrder:
    """Return the sort order that an event records.

    Raises:
        UnsupportedError, InvalidInputError: As of `check_ledger_fields`.
    """
    check_ledger_fields(fields, f"sort order {order_id}")
    return SortOrder(order_id, fields)


class LayoutTrail:
    """Specs and orders while commits are folded; attributes as in `TableState`."""

    __slots__ = (
        "default_order_id",
        "default_spec_id",
        "last_partition_id",
        "sort_orders",
        "specs",
    )

    def __init__(
        self, specs: SomeSpecs, sort_orders: tuple[SortOrder, ...] = (SortOrder(0),)
    ) -> None:
        self.specs = specs
        self.sort_orders = sort_orders
        self.default_spec_id = specs[-1].spec_id
        self.default_order_id = sort_orders[-1].order_id
        self.last_partition_id = _highest_field_id(specs)

    @classmethod
    def of(cls, state: TableState) -> Self:
        """Return the layout of a state, to be continued."""
        # Every commit calls it, and few change the layout: nothing is computed again.
        layout = cls.__new__(cls)
        layout.specs = state.specs
        layout.sort_orders = state.sort_orders
        layout.default_spec_id = state.default_spec_id
        layout.default_order_id = state.default_order_id
        layout.last_partition_id = state.last_partition_id
        return layout

    @property
    def spec(self) -> PartitionSpec:
        """The default spec."""
        return spec_by_id(self.specs, self.default_spec_id)

    @property
    def sort_order(self) -> SortOrder:
        """The default order."""
        return order_by_id(self.sort_orders, self.default_order_id)

    def apply(self, event: PartitionSpecUpdated | SortOrderReplaced) -> None:
        """Fold one event; see `update_spec` and `replace_order`."""
        if isinstance(event, PartitionSpecUpdated):
            self.update_spec(event)
        else:
            self.replace_order(event)

    def update_spec(self, event: PartitionSpecUpdated) -> None:
        """Add a spec, or make an existing one the default.

        Raises:
            InvalidChangeError: Another spec has that id.
        """
        spec = build_checked_spec(event.spec_id, event.fields)
        there = spec_of_id(self.specs, spec.spec_id)
        if there is None:
            self.specs = self.specs + (spec,)  # noqa: RUF005 - which decodes none
            self.last_partition_id = max(self.last_partition_id, _highest_field_id((spec,)))
        elif there != spec:
            raise _id_taken_error("partition spec", spec.spec_id)
        if event.set_default:
            self.default_spec_id = spec.spec_id

    def replace_order(self, event: SortOrderReplaced) -> None:
        """Add an order, or make an existing one the default.

        Raises:
            InvalidChangeError: Another order has that id.
        """
        order = build_checked_order(event.order_id, event.fields)
        there = next((each for each in self.sort_orders if each.order_id == order.order_id), None)
        if there is None:
            self.sort_orders = (*self.sort_orders, order)
        elif there != order:
            raise _id_taken_error("sort order", order.order_id)
        if event.set_default:
            self.default_order_id = order.order_id

    def remove(self, spec_ids: tuple[int, ...], order_ids: tuple[int, ...]) -> None:
        """Remove specs and orders.

        Raises:
            InvalidChangeError: One does not exist, or is a default.
        """
        for each in spec_ids:
            if each == self.default_spec_id or all(each != spec.spec_id for spec in self.specs):
                raise _irremovable_error("partition spec", each)
        for each in order_ids:
            if each == self.default_order_id or all(
                each != order.order_id for order in self.sort_orders
            ):
                raise _irremovable_error("sort order", each)
        self.specs = tuple(each for each in self.specs if each.spec_id not in spec_ids)
        self.sort_orders = tuple(
            each for each in self.sort_orders if each.order_id not in order_ids
        )


def _irremovable_error(noun: str, number: int) -> InvalidChangeError:
    return InvalidChangeError(
        f"{noun} {number} is the default or does not exist, and cannot be removed",
        kind="ILLEGAL_STATE",
    )


def _highest_field_id(specs: SomeSpecs) -> int:
    return max((each.last_field_id for each in specs), default=FIRST_PARTITION_FIELD_ID - 1)


def _id_taken_error(noun: str, number: int) -> InvalidChangeError:
    return InvalidChangeError(f"{noun} {number} has other fields already", kind="ILLEGAL_STATE")


class SourceColumn(Struct, frozen=True):
    """A column, or a member of a ROW, with its current path."""

    path: tuple[str, ...]
    field: DataField

    @property
    def id(self) -> int:
        """Its field id."""
        return self.field.id

    @property
    def type(self) -> DataType:
        """Its type."""
        return self.field.type


class SourceColumnFinder:
    """Finds the source columns of a layout; once found, they are followed by id.

    Args:
        highest: The highest field id that the writer saw. Columns above it are its own new ones,
            whose ids may change when the change is decided again.
    """

    def __init__(self, highest: int) -> None:
        self._highest_field_id = highest
        self._pins: dict[tuple[str, ...], int] = {}

    def find(self, schema: Schema, path: Sequence[str]) -> SourceColumn:
        """Return the column at a path, or the column that was first found there, by its id.

        Raises:
            ColumnNotFoundError: There is none, or it was dropped.
            InvalidChangeError: It is inside a list or a map, where a row has many values.
        """
        asked = tuple(path)
        pinned = self._pins.get(asked)
        if pinned is None:
            found = _find_source_column(schema, asked)
            if found.id <= self._highest_field_id:
                self._pins[asked] = found.id
            return found
        for each in walk_source_columns(schema):
            if each.id == pinned:
                return each
        raise ColumnNotFoundError(f"column {dotted(asked)} does not exist any more")


def walk_source_columns(schema: Schema) -> Iterator[SourceColumn]:
    """Yield every column and every member of a ROW, but nothing inside lists and maps.

    Example:
        >>> row = RowType([DataField(1, "b", ArrayType(RowType([])))])
        >>> [each.path for each in walk_source_columns(Schema.of({"a": row}))]
        [('a',), ('a', 'b')]
    """
    yield from _walk_members((), schema.fields)


def _walk_members(path: tuple[str, ...], members: Sequence[DataField]) -> Iterator[SourceColumn]:
    for each in members:
        yield SourceColumn((*path, each.name), each)
        if isinstance(each.type, RowType):
            yield from _walk_members((*path, each.name), each.type.fields)


def _find_source_column(schema: Schema, path: tuple[str, ...]) -> SourceColumn:
    for each in walk_source_columns(schema):
        if each.path == path:
            return each
        is_around = each.path == path[: len(each.path)]
        if is_around and isinstance(each.type, ArrayType | MapType | MultisetType):
            raise InvalidChangeError(
                f"column {dotted(path)} is inside {dotted(each.path)}, where one row has many "
                "values; take a column, or a member of a ROW, as the source"
            )
    raise ColumnNotFoundError(
        f"column {dotted(path)} does not exist; {name_hint(dotted(path), schema.names)}"
    )


class PartitionFilter(Struct, frozen=True):
    """Partition values by source and transform, since each spec stores them in other places.

    Attributes:
        values: By source field id and transform, such as `(3, "identity")`; empty: every file.
    """

    values: Mapping[tuple[int, str], PartitionValue]

    def matches(self, file: FileChange, spec: PartitionSpec) -> bool | None:
        """Return whether a file has the values; None when its spec does not determine it.

        Args:
            file: A file written with `spec`.
            spec: The spec that the file names.

        Example:
            >>> from ledger.model.iceberg_layout import PartitionField
            >>> spec = PartitionSpec(0, (PartitionField("day", "identity", 3, field_id=1000),))
            >>> file = FileChange(path="a", partition=("d",), record_count=1, file_size_in_bytes=9)
            >>> PartitionFilter({(3, "identity"): "d"}).matches(file, spec)
            True
            >>> PartitionFilter({(4, "identity"): "x"}).matches(file, spec) is None
            True
        """
        return self.matches_partition(file.partition, spec)

    def matches_partition(
        self, partition: tuple[PartitionValue, ...], spec: PartitionSpec
    ) -> bool | None:
        """Return the same of a file with some partition values."""
        there = {
            (each.source_id, each.transform): value
            for each, value in zip(spec.fields, partition, strict=True)
        }
        # An erased value, or one kept in a sidecar, is unknown here.
        there = {each: value for each, value in there.items() if sidecar_location_of(value) is None}
        if any(there[each] != value for each, value in self.values.items() if each in there):
            return False
        return None if self.values.keys() - there.keys() else True
