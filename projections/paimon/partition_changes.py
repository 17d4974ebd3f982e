"""Requests of engines about partitions, as the changes that the log records.

Source: Paimon's PartitionStatistics and the partition requests of its REST catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from attrs import frozen
from msgspec import UNSET, UnsetType

from ledger.events.partitions import PartitionAction, PartitionChange, PartitionsUpdated
from ledger.files.partition_values import value_of
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.types import CharType, VarCharType
from projections.partition_text import PartitionText

PartitionSpec = Mapping[str, str]
"""Each partition key with its value's text."""


class ReportedStatistics(Protocol):
    """Statistics of a partition as an engine reports them, such as the DLF API's."""

    @property
    def spec(self) -> PartitionSpec:
        """The partition."""

    @property
    def record_count(self) -> int:
        """Number of rows."""

    @property
    def file_size_in_bytes(self) -> int:
        """Size of its files."""

    @property
    def file_count(self) -> int:
        """Number of its files."""

    @property
    def last_file_creation_time(self) -> int | None:
        """Unix milliseconds."""

    @property
    def total_buckets(self) -> int:
        """Number of its buckets; 0 if unknown."""


_NO_VALUE: Final = "None"
"""Text of NULL in pypaimon's statistics."""


@frozen
class SpecReader:
    """Reader of the specs in requests, which clients spell differently.

    Java's client writes a DATE as its day number unless `partition.legacy-name` is false; pypaimon
    writes the calendar day, and NULL as `None`. The log and answers have Java's form.

    Attributes:
        keys: The table's partition keys.
        text: The table's text form of partition values.

    Example:
        >>> days = Schema.of({"day": "DATE", "hour": "INT"}, partition_keys=["day", "hour"])
        >>> SpecReader.of(days).read({"hour": "None", "day": "2024-01-01"})
        {'day': '19723', 'hour': '__DEFAULT_PARTITION__'}
    """

    keys: tuple[str, ...]
    text: PartitionText

    @classmethod
    def of(cls, schema: Schema) -> SpecReader:
        """Return the reader for a table with this schema."""
        return cls(schema.partition_keys, PartitionText.of(schema))

    def read(self, spec: Mapping[str, Any]) -> dict[str, str]:
        """Return a partition's spec with its keys in the table's order.

        A text that is not a value of its column's type stays as it is.

        Raises:
            InvalidInputError: It has other keys, or a value that is not text.
        """
        if len(spec) != len(self.keys) or any(key not in spec for key in self.keys):
            raise InvalidInputError(
                f"partition {excerpt(str(dict(spec)))} does not have exactly the table's partition "
                f"keys {list(self.keys)}; give one value for each"
            )
        return {key: self._value_text(key, spec[key]) for key in self.keys}

    def has_unclear_null(self, spec: Mapping[str, Any]) -> bool:
        """Return whether a text may be that of NULL or the word None, of a column of texts."""
        return any(
            spec.get(key) == _NO_VALUE and isinstance(self.text.types[key], CharType | VarCharType)
            for key in self.keys
        )

    def _value_text(self, key: str, given: Any) -> str:
        if not isinstance(given, str):
            raise InvalidInputError(
                f"partition key {excerpt(key)} has the value {excerpt(repr(given))}; give text"
            )
        data_type = self.text.types[key]
        is_text = isinstance(data_type, CharType | VarCharType)
        if given == self.text.default_name or (is_text and given.strip()):
            return given
        try:
            value = None if given == _NO_VALUE and not is_text else value_of(given, data_type)
            return self.text.spec([key], [value])[key]
        except (ValueError, UnsupportedError, InvalidInputError):
            return given


def partitions_event(
    statistics: Sequence[ReportedStatistics] | None,
    reader: SpecReader,
    snapshot_id: int,
    branch: str | None = None,
) -> PartitionsUpdated | None:
    """Return the event that records the statistics of an engine's commit with its snapshot.

    Its list may be too long for a commit: see `store_long_partition_list`.

    Args:
        statistics: Those of the request, whose counts may be negative; None if it has none, which
            means that they are unknown. An empty list means that no partition changed.
        reader: Reads the specs of the table's partitions.
        snapshot_id: The snapshot of the same transaction.
        branch: The branch that the snapshot is committed to; None for the main line.

    Returns:
        The event; None without statistics, or where a spec does not tell which partition it is.

    Raises:
        InvalidInputError: A spec does not have the table's partition keys, or occurs twice.
    """
    if statistics is None or any(reader.has_unclear_null(each.spec) for each in statistics):
        return None
    changes = tuple(_deltas(statistics, reader))
    return PartitionsUpdated(
        branch_name=UNSET if branch is None else branch,
        snapshot_id=snapshot_id,
        partitions=changes,
    )


def _deltas(
    statistics: Sequence[ReportedStatistics], reader: SpecReader
) -> Iterator[PartitionChange]:
    seen: set[tuple[str, ...]] = set()
    for each in statistics:
        spec = reader.read(each.spec)
        values = tuple(spec.values())
        if values in seen:
            raise InvalidInputError(
                f"the statistics have partition {excerpt(str(spec))} twice; send their sum"
            )
        seen.add(values)
        yield PartitionChange(
            spec=spec,
            records=each.record_count,
            size_in_bytes=each.file_size_in_bytes,
            files=each.file_count,
            last_file_creation_time=_known_time(each.last_file_creation_time),
            total_buckets=each.total_buckets or UNSET,
        )


def observed_change(
    statistics: ReportedStatistics, reader: SpecReader, action: PartitionAction
) -> PartitionChange:
    """Return the change of a partition whose counts a client observed: negative ones are unknown.

    Args:
        statistics: The counts.
        reader: Reads the specs of the table's partitions.
        action: ADD if they are of new files, REPLACE if they are of the whole partition.

    Raises:
        InvalidInputError: The spec does not have the table's partition keys.
    """
    return PartitionChange(
        spec=reader.read(statistics.spec),
        action=action,
        records=_known_count(statistics.record_count),
        size_in_bytes=_known_count(statistics.file_size_in_bytes),
        files=_known_count(statistics.file_count),
        last_file_creation_time=_known_time(statistics.last_file_creation_time),
    )


def _known_count(count: int) -> int | UnsetType:
    return count if count >= 0 else UNSET


def _known_time(millis: int | None) -> int | UnsetType:
    return UNSET if millis is None or millis <= 0 else millis
