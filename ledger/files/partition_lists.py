"""Change files of partitions: long lists of partition changes as Parquet files next to the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UnsetType
from msgspec.structs import replace

from ledger.events.commit import FORMAT
from ledger.events.partitions import (
    INLINE_CHARACTERS,
    INLINE_PARTITIONS,
    PartitionChange,
    PartitionsUpdated,
)
from ledger.files.change_lists import (
    check_format_version,
    load_change_file,
    store_change_file,
    table_to_parquet,
)
from ledger.log.layout import Layout
from ledger.model.arrow_types import string_array_of_utf8
from ledger.model.errors import DamagedLogError
from ledger.model.parquet_limits import open_checked_parquet
from ledger.stores import Store

_FORMAT_KEY = b"lakeledger.partitions"
_FORMAT = b"%d" % FORMAT
_NOUN: Final = "a list of partition changes"
_COLUMN: Final = "change"
_DECODER: Final = msgspec.json.Decoder(tuple[PartitionChange, ...])


def write_partition_changes(changes: Sequence[PartitionChange]) -> bytes:
    """Return a list of partition changes as the bytes of a Parquet file, each as its JSON."""
    import pyarrow as pa

    column = string_array_of_utf8([*map(msgspec.json.encode, changes)])
    table = pa.table({_COLUMN: column})
    return table_to_parquet(table.replace_schema_metadata({_FORMAT_KEY: _FORMAT}))


def read_partition_changes(body: bytes, count: int | None = None) -> tuple[PartitionChange, ...]:
    """Return the partition changes in a change file's bytes; see `write_partition_changes`.

    Args:
        body: The bytes.
        count: The expected number of changes, if known; checked before rows are read.

    Raises:
        ValueError: The bytes are not such a file.
        UpgradeRequiredError: A newer version wrote them.
    """
    import pyarrow as pa

    try:
        file = open_checked_parquet(body, "the list of partition changes", None)
        metadata = file.arrow.metadata
        check_format_version((metadata.metadata or {}).get(_FORMAT_KEY, b""), _NOUN)
        if count not in {None, metadata.num_rows}:
            raise ValueError(f"it holds {metadata.num_rows} partition changes, not {count}")
        texts = file.table()[_COLUMN].to_pylist()
        changes = _DECODER.decode(f"[{','.join(texts)}]")
    except (pa.ArrowException, OSError, KeyError, TypeError) as error:
        raise ValueError(f"they are no Parquet file of partition changes: {error}") from error
    if len(changes) != len(texts):
        raise ValueError(f"it holds {len(texts)} texts of {len(changes)} partition changes")
    return changes


def store_long_partition_list(
    store: Store, layout: Layout, event: PartitionsUpdated, written_millis: int
) -> PartitionsUpdated:
    """Return an event with its list in a change file, written durably, if it is too long.

    Args:
        store: The store of the log.
        layout: The keys of the stream's files.
        event: The event, whose list is in it.
        written_millis: The current Unix time in milliseconds, by the clock of the commit.

    Raises:
        OSError: It is unknown whether the file was written; nothing was committed, so retry.
        DamagedLogError: A file of that name has another content.
    """
    if not is_long_partition_list(event):
        return event
    changes = event.partitions
    body = write_partition_changes(changes)
    reference = store_change_file(store, layout, body, len(changes), written_millis)
    return replace(event, partitions=(), changes=reference)


def is_long_partition_list(event: PartitionsUpdated) -> bool:
    """Return whether an event's list is too long for a commit."""
    changes = event.partitions
    return len(changes) > INLINE_PARTITIONS or _text_size(changes) > INLINE_CHARACTERS


def _text_size(changes: Sequence[PartitionChange]) -> int:
    return sum(len(value) for each in changes for value in each.spec.values())


def partition_changes(
    store: Store, layout: Layout, event: PartitionsUpdated
) -> tuple[PartitionChange, ...]:
    """Return the partition changes of an event, from it or from its change file.

    Raises:
        DamagedLogError: The change file is missing, changed or invalid.
        UpgradeRequiredError: A newer version wrote it.
    """
    reference = event.changes
    if isinstance(reference, UnsetType):
        return event.partitions
    body = load_change_file(store, layout, reference)
    try:
        return read_partition_changes(body, reference.count)
    except ValueError as error:
        key = f"{layout.root}/{reference.path}"
        raise DamagedLogError(
            f"{key} does not hold the partition changes that its commit names: {error}", key
        ) from error
