"""The facts that changes of layout became: the same name and shape, every id resolved."""

from ledger.events.spec_changes import ReplaceSortOrder, UpdatePartitionSpec
from ledger.model.iceberg.layout import PartitionField, SortField


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
