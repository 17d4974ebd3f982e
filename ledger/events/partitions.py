"""The event of a Paimon table's partitions: their sums, and which of them exist.

A commit of an engine reports by how much it changed each partition; that is recorded together with
its snapshot, so that partitions are listed without reading manifests.

Source: Paimon's PartitionStatistics, Partition and the partition requests of its REST catalog.
"""

from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType, field

from ledger.events.commit import Record
from ledger.events.snapshots import ChangesReference

PartitionAction = Literal["ADD", "REPLACE", "CREATE", "DROP", "MARK_DONE"]

INLINE_PARTITIONS: Final = 1000
"""Maximum number of partition changes in a commit; a longer list is written to a change file."""


INLINE_CHARACTERS: Final = 1 << 18
"""Maximum length of all values' texts in a commit; longer ones are in a change file, too."""


class PartitionChange(
    Struct,
    frozen=True,
    gc=False,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
):
    """A change of one partition.

    `spec` maps each partition key, in the order of the keys, to its value's text. `action` says
    what happened: ADD adds the counts to the partition's, which exists afterwards; REPLACE sets
    them; CREATE makes the partition exist, with unknown counts; DROP makes it and its counts go;
    MARK_DONE marks it as complete. A count that is absent was not reported: it stays as it is.
    `last_file_creation_time` is Unix milliseconds; ADD keeps the later one. `total_buckets` is the
    newest that was reported.
    """

    spec: dict[str, str]
    action: PartitionAction = "ADD"
    records: int | UnsetType = field(default=UNSET, name="recordCount")
    size_in_bytes: int | UnsetType = field(default=UNSET, name="fileSizeInBytes")
    files: int | UnsetType = field(default=UNSET, name="fileCount")
    last_file_creation_time: int | UnsetType = UNSET
    total_buckets: int | UnsetType = UNSET


class PartitionsUpdated(Record, frozen=True, tag="updatePartitions", kw_only=True):
    """Partitions of a Paimon table were changed, in the order of the list.

    With `snapshot_id` they are the changes that this snapshot made, which is of the same
    transaction; a rollback that removes it takes them back. A snapshot without such an event made
    changes that are not known. `branch_name` names the branch that they belong to, if it is not
    the main line. `changes` names a longer list on the store instead of `partitions`.
    """

    branch_name: str | UnsetType = UNSET
    snapshot_id: int | UnsetType = UNSET
    partitions: tuple[PartitionChange, ...] = ()
    changes: ChangesReference | UnsetType = UNSET
