"""Verification of the sums by partition, which engines reported, by the files that they wrote."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.events.partitions import PartitionChange, PartitionsUpdated
from ledger.files.partition_lists import partition_changes
from ledger.model.messages import excerpt
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.partition_counts import manifest_partitions
from projections.paimon.partitions import PartitionIndex, PartitionSums


def partition_problems(table: TableHandle, state: TableState) -> Iterator[str]:
    """Yield the partitions whose sums in the log differ from those of the manifests.

    The main line is compared, at the newest snapshot, if the log has the statistics of each of its
    snapshots; otherwise its sums come from the manifests anyhow. Partitions that were dropped from
    the list count as if they were in it, since their files are deleted by later commits or stay.

    Args:
        table: The table.
        state: Its state.

    Raises:
        NotFoundError: A manifest is missing, or outside of the permitted locations.
        DamagedLogError: A commit, change file or manifest is damaged.
    """
    origin = state.origin
    if not isinstance(origin, PaimonOrigin) or origin.is_promoted or state.snapshot is None:
        return
    index = PartitionIndex(state.schema.partition_keys)
    log = table.log

    def read(event: PartitionsUpdated) -> list[PartitionChange]:
        changes = partition_changes(log.store, log.layout, event)
        return [each for each in changes if each.action != "DROP"]

    for each in log.commits(0, state.version):
        index.apply(each.commit, read, log.commit_at)
    if index.needs_manifests:
        return
    written = {each.name: each for each in manifest_partitions(table, state)}
    for sums in index.descending():
        there = written.pop(sums.name, None)
        if (there is None and not sums.is_unknown) or (there and _counts(there) != _counts(sums)):
            yield (
                f"partition {excerpt(sums.name)} has {_shown(sums)} by the statistics of its "
                f"commits, and {_shown(there)} in the manifests of snapshot {state.snapshot.id}"
            )
    for name, there in written.items():
        yield (
            f"partition {excerpt(name)} is not listed, and has {_shown(there)} in the manifests of "
            f"snapshot {state.snapshot.id}"
        )


def _counts(sums: PartitionSums) -> tuple[int | None, int | None, int | None]:
    return sums.records, sums.size_in_bytes, sums.files


def _shown(sums: PartitionSums | None) -> str:
    if sums is None:
        return "no files"
    return f"{sums.records} rows, {sums.size_in_bytes} bytes and {sums.files} files"
