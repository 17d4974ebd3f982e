"""TableState: what folding a prefix of a table's stream gives.

It stays small however long the history is: live files, older schemas, older snapshots and commit
ids are found through the log, not kept here.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ledger.events.born.iceberg import IcebergStatistics
from ledger.evolution.table.born.delta import DeltaTable
from ledger.evolution.table.born.iceberg import BornTable
from ledger.evolution.table.born.paimon import PaimonTable
from ledger.model.errors import NotFoundError
from ledger.model.instant import ClockCorrection
from ledger.model.messages.similar import meant
from ledger.model.partition import (
    FIRST_PARTITION_FIELD_ID,
    PartitionSpec,
    SomeSpecs,
    SortOrder,
    spec_by_id,
)
from ledger.model.schema import Schema
from ledger.model.snapshot import (
    BRANCH_IDS,
    Branch,
    Snapshot,
    StatisticsFile,
    Tag,
    Totals,
    branch_number,
)

Origin = BornTable | PaimonTable | DeltaTable
"""What a table has that was born elsewhere."""


@frozen(kw_only=True)
class TableState:
    """A table right after one commit.

    Attributes:
        version: That commit's number.
        time_millis: Its time, Unix milliseconds.
        effective_millis: The newest effective time up to it; equal to `time_millis` unless
            history was imported or a clock was corrected.
        table_id: The table's UUID.
        path: Its location, relative to the ledger's root unless it is external.
        is_external: Whether the location was given by the user.
        schema: The current schema.
        specs: Every partition spec, oldest first.
        default_spec_id: The one that files are written with from now on.
        last_partition_id: The highest partition field id ever given out.
        sort_orders: Every sort order, oldest first.
        default_order_id: The one that files are sorted by from now on.
        snapshot: The latest snapshot, if any.
        earliest_snapshot_id: Snapshots before it were expired.
        totals: Sums over the live files.
        tags: By name.
        partition_statistics: Files of statistics by partition, by the id of their snapshot; they
            go with it.
        statistics: Puffin files of statistics, by the id of their snapshot; they go with it. What
            was born in Iceberg has its own in `born`.
        named_schema_ids: The schemas whose names files without field ids use, or ever used.
        created_at: Effective time of the creation.
        created_by: Its author.
        updated_at: Effective time of the last commit.
        updated_by: Its author.
        dropped: Whether the stream is sealed.
        corrections: What is known of clocks that were ahead, oldest first.
        format_rules: By a format's name, the highest number of its rules that the table was ever
            changed by; 1 where none is named.
        keeps_outside: Whether authors, messages and properties are kept outside of the lines;
            `created_by` and `updated_by` then say where.
        born: What it has that was born in Iceberg; None for others. Its snapshot is then the head
            of `main`, its schema's id the source's.
        paimon: What it has that was born in Paimon; None for others. Ids are the source's, too.
        delta: What it has besides that was born in Delta; None for others.
        branches: The branches of a table of the ledger's own, by name.
        last_branch_number: How many branches it ever had.
        on_branch: The branch that it is seen on, whose `snapshot` and `totals` these are then;
            None: main. Never so in the log's own states.
    """

    version: int
    time_millis: int
    effective_millis: int
    table_id: str
    path: str
    is_external: bool = False
    schema: Schema
    specs: SomeSpecs
    default_spec_id: int = 0
    last_partition_id: int = FIRST_PARTITION_FIELD_ID - 1
    sort_orders: tuple[SortOrder, ...] = (SortOrder(),)
    default_order_id: int = 0
    snapshot: Snapshot | None = None
    earliest_snapshot_id: int = 1
    totals: Totals = Totals()
    tags: Mapping[str, Tag] = field(factory=dict, hash=False)
    partition_statistics: Mapping[int, StatisticsFile] = field(factory=dict, hash=False)
    statistics: Mapping[int, IcebergStatistics] = field(factory=dict, hash=False)
    named_schema_ids: tuple[int, ...] = ()
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    dropped: bool = False
    corrections: tuple[ClockCorrection, ...] = ()
    format_rules: Mapping[str, int] = field(factory=dict, hash=False)
    keeps_outside: bool = False
    born: BornTable | None = None
    paimon: PaimonTable | None = None
    delta: DeltaTable | None = None
    branches: Mapping[str, Branch] = field(factory=dict, hash=False)
    last_branch_number: int = 0
    on_branch: str | None = None

    @property
    def followed(self) -> str | None:
        """Whose the table is that others own; None for the ledger's own."""
        found = self.mirrored
        return None if found is None else found.source

    @property
    def origin(self) -> Origin | None:
        """What it has that was born elsewhere, wherever that was; None for what the ledger made."""
        return self.born or self.paimon or self.delta

    @property
    def of_engines(self) -> BornTable | PaimonTable | None:
        """What it has of a source whose engines' manifests list files; None without such a source.

        Of others the ledger lists all files that there ever were.
        """
        return self.born or self.paimon

    @property
    def mirrored(self) -> Origin | None:
        """What is known of the source of a table that others own; None for the ledger's own."""
        origin = self.origin
        return None if origin is None or origin.promoted_in >= 0 else origin

    @property
    def promoted_from(self) -> str | None:
        """Whose the table was that the ledger owns now; None for one that it made, or follows."""
        origin = self.origin
        return None if origin is None or origin.promoted_in < 0 else origin.source

    def line_of(self, snapshot_id: int) -> int:
        """Return the number of the branch that a snapshot's id is of; 0 for main's.

        Where others gave the ids they tell nothing of branches.
        """
        return 0 if self.born is not None else branch_number(snapshot_id)

    @property
    def lists_files(self) -> bool:
        """Whether the ledger lists the live files itself; no: an engine's manifests do."""
        if self.snapshot is None:
            return True
        if self.born is not None:
            return self.born.promoted_in >= 0 and self.snapshot.id > self.born.followed_last_id
        return self.paimon is None or self.paimon.is_own(self.snapshot.id)

    @property
    def last_snapshot_id(self) -> int:
        """The newest snapshot id given out; 0 before the first."""
        return self.snapshot.id if self.snapshot else 0

    @property
    def puffin_files(self) -> Mapping[int, IcebergStatistics]:
        """Puffin files of statistics, by the id of their snapshot, wherever the table was born."""
        return self.statistics if self.born is None else self.born.statistics

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return self.spec_by_id(self.default_spec_id)

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """Return a partition spec.

        Raises:
            NotFoundError: There is none of that id.
        """
        return spec_by_id(self.specs, spec_id)

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order."""
        for each in self.sort_orders:
            if each.order_id == self.default_order_id:
                return each
        raise NotFoundError(f"sort order {self.default_order_id} does not exist")

    def tag(self, name: str) -> Tag:
        """Return the tag of that name.

        Raises:
            NotFoundError: There is none; the message lists those that there are.
        """
        try:
            return self.tags[name]
        except KeyError:
            raise NotFoundError(
                f"tag {name!r} does not exist; {meant(name, sorted(self.tags))}"
            ) from None

    def branch(self, name: str) -> Branch:
        """Return the branch of that name.

        Raises:
            NotFoundError: There is none; the message lists those that there are.
        """
        try:
            return self.branches[name]
        except KeyError:
            ref = None if self.born is None else self.born.refs.get(name)
            if ref is not None:
                raise NotFoundError(
                    f"{name!r} is a {ref.ref_type} of the table's source, no branch of the "
                    f"ledger's; what it shows is at snapshot {ref.snapshot_id}"
                ) from None
            raise NotFoundError(
                f"branch {name!r} does not exist; {meant(name, sorted(self.branches))}"
            ) from None

    def branch_numbered(self, number: int) -> Branch | None:
        """Return the branch of that number, if it is there."""
        return next((each for each in self.branches.values() if each.number == number), None)

    @property
    def seen_branch(self) -> Branch | None:
        """The branch that the state is seen on; None: main."""
        return None if self.on_branch is None else self.branches[self.on_branch]

    @property
    def held_snapshot_ids(self) -> frozenset[int]:
        """The snapshots of main that tags and branches keep, expired or not."""
        tagged = (each.snapshot_id for each in self.tags.values())
        return frozenset((*tagged, *(each.base_snapshot_id for each in self.branches.values())))

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of the snapshots that can be read, newest first: of main, or on the branch."""
        if self.born is not None:
            return tuple(reversed(self.born.snapshots))
        if self.paimon is not None:
            return tuple(sorted(self.paimon.every, reverse=True))
        branch = self.seen_branch
        if branch is not None:
            return (*reversed(branch.snapshot_ids), branch.base_snapshot_id)
        kept = range(self.earliest_snapshot_id, self.last_snapshot_id + 1)
        return tuple(sorted(self.held_snapshot_ids.union(kept), reverse=True))

    def reachable(self, snapshot_id: int) -> bool:
        """Whether a snapshot can be read: not expired, or kept by a tag or a branch."""
        if self.born is not None:
            return snapshot_id in self.born.snapshots
        if self.paimon is not None:
            return snapshot_id in self.paimon.every
        if snapshot_id >= BRANCH_IDS:
            found = self.branch_numbered(branch_number(snapshot_id))
            return found is not None and snapshot_id in found.snapshot_ids
        if self.earliest_snapshot_id <= snapshot_id <= self.last_snapshot_id:
            return True
        return snapshot_id in self.held_snapshot_ids
