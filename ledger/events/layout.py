"""Changes and events of partition specs and sort orders.

`source` is a column's path. Transforms are Iceberg's text: `identity`, `bucket[16]`, `truncate[4]`,
`year`, `month`, `day`, `hour`, `void`.
"""

from msgspec import Struct

from ledger.events.base import Record
from ledger.model.iceberg_layout import Direction, NullOrder, PartitionField, SortField


class AddPartitionField(Record, frozen=True, tag="addPartitionField"):
    """Add a partition field; without a name it gets Iceberg's default one."""

    source: tuple[str, ...]
    transform: str = "identity"
    name: str | None = None


class RemovePartitionField(Record, frozen=True, tag="removePartitionField"):
    """Remove the field of that name, or the one that is that transform of that column."""

    name: str | None = None
    source: tuple[str, ...] | None = None
    transform: str | None = None


class RenamePartitionField(Record, frozen=True, tag="renamePartitionField"):
    """Give a partition field another name; its id stays."""

    name: str
    new_name: str


SpecUpdate = AddPartitionField | RemovePartitionField | RenamePartitionField


class UpdatePartitionSpec(Record, frozen=True, tag="updatePartitionSpec"):
    """Change how files written from now on are laid out; older files stay as they are.

    All updates are resolved against the default spec, as Iceberg does. With `set_default` off the
    new spec is kept beside the default one.
    """

    updates: tuple[SpecUpdate, ...]
    set_default: bool = True


class SortColumn(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """One field of a wanted sort order; absent, nulls go first ascending and last descending."""

    source: tuple[str, ...]
    transform: str = "identity"
    direction: Direction = "asc"
    null_order: NullOrder | None = None


class ReplaceSortOrder(Record, frozen=True, tag="replaceSortOrder"):
    """Change how rows of files written from now on are ordered; no columns: not at all."""

    columns: tuple[SortColumn, ...]


SpecChange = UpdatePartitionSpec | ReplaceSortOrder
"""What a writer may ask of a table's layout."""


class PartitionSpecUpdated(
    UpdatePartitionSpec, frozen=True, tag="updatePartitionSpec", kw_only=True
):
    """The spec `spec_id` has these fields; it is new, or an older one that became default again."""

    spec_id: int
    fields: tuple[PartitionField, ...]


class SortOrderReplaced(ReplaceSortOrder, frozen=True, tag="replaceSortOrder", kw_only=True):
    """The order `order_id` has these fields; 0 is unsorted.

    It is new, or an older one that became default again. With `set_default` off, a new order is
    kept beside the default one.
    """

    set_default: bool = True
    order_id: int
    fields: tuple[SortField, ...]


SpecEvent = PartitionSpecUpdated | SortOrderReplaced
"""Every fact that changes a table's layout."""
