"""TableState: what folding a prefix of a table's stream gives.

It stays small however long the history is: live files, older schemas, older snapshots and commit
ids are found through the log, not kept here.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ledger.model.errors import NotFoundError
from ledger.model.partition import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
    SortOrder,
)
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag, Totals


def identity_spec(schema: Schema) -> PartitionSpec:
    """Return spec 0 of a table: identity over its partition keys.

    Example:
        >>> identity_spec(Schema.of({"day": "DATE"}, partition_keys=["day"])).fields[0].name
        'day'
    """
    fields = (
        PartitionField(schema.field(name).id, FIRST_PARTITION_FIELD_ID + index, name)
        for index, name in enumerate(schema.partition_keys)
    )
    return PartitionSpec(0, tuple(fields))


@frozen(kw_only=True)
class TableState:
    """A table right after one commit.

    Attributes:
        version: That commit's number.
        time_millis: Its time, Unix milliseconds.
        effective_millis: The newest effective time up to it; equal to `time_millis` unless
            history was imported.
        table_id: The table's UUID.
        path: Its location, relative to the ledger's root unless it is external.
        is_external: Whether the location was given by the user.
        schema: The current schema.
        specs: Every partition spec, oldest first; the last is the default.
        sort_order: The default sort order.
        snapshot: The latest snapshot, if any.
        earliest_snapshot_id: Snapshots before it were expired.
        totals: Sums over the live files.
        tags: By name.
        created_at: Effective time of the creation.
        created_by: Its author.
        updated_at: Effective time of the last commit.
        updated_by: Its author.
        dropped: Whether the stream is sealed.
    """

    version: int
    time_millis: int
    effective_millis: int
    table_id: str
    path: str
    is_external: bool = False
    schema: Schema
    specs: tuple[PartitionSpec, ...]
    sort_order: SortOrder = SortOrder()
    snapshot: Snapshot | None = None
    earliest_snapshot_id: int = 1
    totals: Totals = Totals()
    tags: Mapping[str, Tag] = field(factory=dict, hash=False)
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    dropped: bool = False

    @property
    def last_snapshot_id(self) -> int:
        """The newest snapshot id given out; 0 before the first."""
        return self.snapshot.id if self.snapshot else 0

    def tag(self, name: str) -> Tag:
        """Return the tag of that name.

        Raises:
            NotFoundError: There is none; the message lists those that there are.
        """
        try:
            return self.tags[name]
        except KeyError:
            raise NotFoundError(
                f"tag {name!r} does not exist; there are: {sorted(self.tags)}"
            ) from None

    def reachable(self, snapshot_id: int) -> bool:
        """Whether a snapshot can be read: not expired, or kept by a tag."""
        if self.earliest_snapshot_id <= snapshot_id <= self.last_snapshot_id:
            return True
        return any(tag.snapshot_id == snapshot_id for tag in self.tags.values())
