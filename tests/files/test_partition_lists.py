"""Long lists of partition changes are kept in files, without loss."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from pyarrow import parquet

from ledger import DamagedLogError, UpgradeRequiredError
from ledger.events import PartitionChange, PartitionsUpdated
from ledger.events.partitions import INLINE_CHARACTERS, INLINE_PARTITIONS
from ledger.files.change_lists import write_changes
from ledger.files.partition_lists import (
    partition_changes,
    read_partition_changes,
    store_long_partition_list,
    write_partition_changes,
)
from ledger.log import Layout
from tests.lakes import memory

LAYOUT = Layout("t")
_long = st.one_of(st.just(UNSET), st.integers(-(2**63), 2**63 - 1))
changes = st.builds(
    PartitionChange,
    spec=st.dictionaries(st.text(), st.text(), max_size=3),
    action=st.sampled_from(["ADD", "REPLACE", "CREATE", "DROP", "MARK_DONE"]),
    records=_long,
    size_in_bytes=_long,
    files=_long,
    last_file_creation_time=_long,
    total_buckets=_long,
)


@given(st.lists(changes))
def test_a_list_is_read_as_it_was_written(some: list[PartitionChange]) -> None:
    assert read_partition_changes(write_partition_changes(some), len(some)) == tuple(some)


def _event(count: int) -> PartitionsUpdated:
    return PartitionsUpdated(
        snapshot_id=1,
        partitions=tuple(
            PartitionChange(spec={"d": str(each)}, records=each, files=1) for each in range(count)
        ),
    )


def test_a_short_list_stays_in_its_event_and_a_long_one_goes_to_a_file() -> None:
    store = memory()
    short, long = _event(INLINE_PARTITIONS), _event(INLINE_PARTITIONS + 1)
    assert store_long_partition_list(store, LAYOUT, short, 1) is short
    kept = store_long_partition_list(store, LAYOUT, long, 1)
    assert not kept.partitions
    assert kept.changes is not UNSET
    assert kept.changes.count == INLINE_PARTITIONS + 1
    assert partition_changes(store, LAYOUT, kept) == long.partitions
    assert partition_changes(store, LAYOUT, short) == short.partitions


def test_a_short_list_of_long_values_goes_to_a_file() -> None:
    long = PartitionsUpdated(partitions=(PartitionChange(spec={"d": "x" * INLINE_CHARACTERS}),))
    longer = PartitionsUpdated(
        partitions=(PartitionChange(spec={"d": "x" * INLINE_CHARACTERS, "h": "y"}),)
    )
    store = memory()
    assert store_long_partition_list(store, LAYOUT, long, 1) is long
    kept = store_long_partition_list(store, LAYOUT, longer, 1)
    assert not kept.partitions
    assert partition_changes(store, LAYOUT, kept) == longer.partitions


def test_a_lost_or_another_file_is_damage() -> None:
    store = memory()
    kept = store_long_partition_list(store, LAYOUT, _event(INLINE_PARTITIONS + 1), 1)
    assert kept.changes is not UNSET
    with pytest.raises(DamagedLogError, match="is missing"):
        partition_changes(memory(), LAYOUT, kept)
    with pytest.raises(DamagedLogError, match="torn or was changed"):
        partition_changes(
            store, LAYOUT, replace(kept, changes=replace(kept.changes, sha256="0" * 64))
        )
    with pytest.raises(DamagedLogError, match="1001 partition changes, not 7"):
        partition_changes(store, LAYOUT, replace(kept, changes=replace(kept.changes, count=7)))


@pytest.mark.parametrize("body", [b"", b"PAR1", write_changes([])])
def test_another_file_is_no_list(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"Parquet|does not declare"):
        read_partition_changes(body)


def test_a_newer_format_asks_for_an_upgrade() -> None:
    table = parquet.read_table(pa.BufferReader(write_partition_changes([])), use_threads=False)
    sink = pa.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata({b"lakeledger.partitions": b"9"}), sink)
    with pytest.raises(UpgradeRequiredError, match="upgrade lakeledger"):
        read_partition_changes(bytes(sink.getvalue()))
