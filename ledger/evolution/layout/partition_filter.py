"""PartitionFilter: the partition values that files have to have, whatever their specs."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ledger.model.file_change import FileChange, PartitionValue, kept_at
from ledger.model.iceberg.layout import PartitionSpec


class PartitionFilter(Struct, frozen=True):
    """Values by what they derive from, since each spec keeps them in other places.

    Attributes:
        values: By source field id and transform, such as `(3, "identity")`; empty: every file.
    """

    values: Mapping[tuple[int, str], PartitionValue]

    def matches(self, file: FileChange, spec: PartitionSpec) -> bool | None:
        """Return whether a file has the values; None when its spec does not say.

        Args:
            file: Written with `spec`.
            spec: The one that the file names.

        Example:
            >>> from ledger.model.iceberg.layout import PartitionField
            >>> spec = PartitionSpec(0, (PartitionField("day", "identity", 3, field_id=1000),))
            >>> file = FileChange(path="a", partition=("d",), record_count=1, file_size_in_bytes=9)
            >>> PartitionFilter({(3, "identity"): "d"}).matches(file, spec)
            True
            >>> PartitionFilter({(4, "identity"): "x"}).matches(file, spec) is None
            True
        """
        there = {
            (each.source_id, each.transform): value
            for each, value in zip(spec.fields, file.partition, strict=True)
        }
        # Of one that was erased, or is kept elsewhere, nobody here knows what it was.
        there = {each: value for each, value in there.items() if kept_at(value) is None}
        if any(there[each] != value for each, value in self.values.items() if each in there):
            return False
        return None if self.values.keys() - there.keys() else True
