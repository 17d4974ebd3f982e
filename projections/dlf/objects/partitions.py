"""Partitions: what the metadata API says of them and what can be asked.

Source: the DLF page's Partition; Paimon's Partition, PartitionStatistics and REST classes. A spec
maps a partition key to its value's text, as `projections.partition_text` renders it.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from projections.dlf.objects.parts import Page

PartitionSpec = Mapping[str, str]


@frozen(kw_only=True)
class Partition:
    """A partition with sums over its live files.

    Attributes:
        spec: Which one.
        last_file_creation_time: Maximum over every file ever added or removed, Unix milliseconds.
        total_buckets: This and all that follow: only Paimon's REST spelling has them.

    Example:
        >>> Partition(
        ...     spec={"year": "2025"}, record_count=1, file_size_in_bytes=1024, file_count=1
        ... ).done
        False
    """

    spec: PartitionSpec = field(hash=False)
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None = None
    total_buckets: int = 0
    done: bool = False
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None
    options: Mapping[str, str] | None = field(default=None, hash=False)


@frozen(kw_only=True)
class PartitionStatistics:
    """What one commit adds to a partition's sums; counts may be negative."""

    spec: PartitionSpec = field(hash=False)
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None = None
    total_buckets: int = 0


@frozen(kw_only=True)
class ListPartitionsResponse(Page):
    """Partitions of one table."""

    partitions: tuple[Partition, ...] = ()


@frozen
class CreatePartitionsRequest:
    """Make partitions known before they hold a file.

    Attributes:
        partition_specs: Which ones.
        ignore_if_exists: Whether one that exists is no error.
        partition_statistics: Their sums; a negative number means unknown.
        replace_statistics: Whether these take the place of known sums.
    """

    partition_specs: tuple[PartitionSpec, ...]
    ignore_if_exists: bool = True
    partition_statistics: tuple[PartitionStatistics, ...] | None = None
    replace_statistics: bool | None = None


@frozen
class CreatePartitionsResponse:
    """Which partitions are new and which were there already."""

    created: tuple[PartitionSpec, ...] = ()
    existed: tuple[PartitionSpec, ...] = ()


@frozen
class DropPartitionsRequest:
    """Drop partitions with all that they hold."""

    partition_specs: tuple[PartitionSpec, ...]
    ignore_if_not_exists: bool = True


@frozen
class DropPartitionsResponse:
    """Which partitions are gone and which were not there."""

    dropped: tuple[PartitionSpec, ...] = ()
    missing: tuple[PartitionSpec, ...] = ()


@frozen
class MarkDonePartitionsRequest:
    """Say that partitions are complete."""

    specs: tuple[PartitionSpec, ...]


@frozen
class ListPartitionsByNamesRequest:
    """Ask for certain partitions."""

    specs: tuple[PartitionSpec, ...]


@frozen
class ListPartitionsByFilterRequest:
    """Ask for the partitions that a predicate, as Paimon's JSON text, lets through."""

    filter: str
    partition_name_pattern: str | None = None
    max_results: int | None = None
    page_token: str | None = None
