"""The facts that changes of layout became: the same name and shape, every id resolved."""

from msgspec import Struct

from ledger.events.spec_changes import ReplaceSortOrder, UpdatePartitionSpec
from ledger.model.partition import Direction, NullOrder


class PartitionFieldRecord(
    Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True
):
    """One field of a partition spec, as Iceberg's table metadata has it."""

    source_id: int
    field_id: int
    name: str
    transform: str


class SortFieldRecord(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """One field of a sort order, as Iceberg's table metadata has it."""

    source_id: int
    transform: str
    direction: Direction
    null_order: NullOrder


class PartitionSpecUpdated(
    UpdatePartitionSpec, frozen=True, tag="updatePartitionSpec", kw_only=True
):
    """The spec `spec_id` has these fields; it is new, or an older one that became default again."""

    spec_id: int
    fields: tuple[PartitionFieldRecord, ...]


class SortOrderReplaced(ReplaceSortOrder, frozen=True, tag="replaceSortOrder", kw_only=True):
    """The order `order_id` has these fields; 0 is unsorted.

    It is new, or an older one that became default again. With `set_default` off, a new order is
    kept beside the default one.
    """

    set_default: bool = True
    order_id: int
    fields: tuple[SortFieldRecord, ...]


SpecEvent = PartitionSpecUpdated | SortOrderReplaced
"""Every fact that changes a table's layout."""
