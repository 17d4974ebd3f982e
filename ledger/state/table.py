"""TableState: a table right after one commit.

It stays small however long the history is: live files, older schemas, older snapshots and commit
ids are read from the log, not kept here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from attrs import field, frozen

from ledger.model.errors import NotFoundError, UnsupportedError
from ledger.model.iceberg_layout import (
    FIRST_PARTITION_FIELD_ID,
    PartitionSpec,
    SomeSpecs,
    SortOrder,
    order_by_id,
    spec_by_id,
)
from ledger.model.iceberg_objects import PartitionStatisticsFile, StatisticsFile
from ledger.model.instant import ClockCorrection
from ledger.model.messages import name_hint
from ledger.model.schema import Schema
from ledger.model.snapshot import Branch, EngineBranch, Snapshot, Tag, Totals
from ledger.model.types import type_places
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.native_origin import NATIVE, ListedRef, NativeOrigin
from ledger.state.owner import LEDGER, Owner
from ledger.state.paimon_origin import PaimonOrigin

Origin = NativeOrigin | IcebergOrigin | PaimonOrigin | DeltaOrigin
"""Origin of a table; each class implements the behaviour that depends on it."""

_ImportedT = TypeVar("_ImportedT", IcebergOrigin, PaimonOrigin, DeltaOrigin)


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
        default_spec_id: The spec of files written from now on.
        last_partition_id: The highest partition field id ever assigned.
        sort_orders: Every sort order, oldest first.
        default_order_id: The sort order of files written from now on.
        snapshot: The latest snapshot, if any.
        earliest_snapshot_id: Snapshots before it were expired.
        totals: Sums over the live files.
        tags: By name.
        partition_statistics: Files of statistics by partition, by the id of their snapshot; removed
            with it.
        statistics: Puffin files of statistics, by the id of their snapshot; removed with it. A
            table from Iceberg has its own in `origin`; see `puffin_files`.
        named_schema_ids: The schemas whose names files without field ids use, or ever used.
        created_at: Effective time of the creation.
        created_by: Its author.
        updated_at: Effective time of the last commit.
        updated_by: Its author.
        dropped: Whether the stream is sealed.
        corrections: Corrections of clocks that were ahead, oldest first.
        format_rules: By a format's name, the highest number of its rules that the table was ever
            changed by; 1 where none is named.
        keeps_outside: Whether authors, messages and properties are kept in sidecars; `created_by`
            and `updated_by` then hold digests.
        origin: The table's origin, with what was imported from it. Of a table from Iceberg or
            Paimon the schema's id is the source's, and the snapshot is the head of its main line.
        owner: The party that commits data to it.
        branches: The branches of a table of the ledger's own, by name.
        last_branch_number: How many branches it ever had.
        on_branch: The branch that the state is viewed on, whose `snapshot` and `totals` these are
            then; None: main. Always None in the log's own states.
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
    sort_orders: tuple[SortOrder, ...] = (SortOrder(0),)
    default_order_id: int = 0
    snapshot: Snapshot | None = None
    earliest_snapshot_id: int = 1
    totals: Totals = Totals()
    tags: Mapping[str, Tag] = field(factory=dict, hash=False)
    partition_statistics: Mapping[int, PartitionStatisticsFile] = field(factory=dict, hash=False)
    statistics: Mapping[int, StatisticsFile] = field(factory=dict, hash=False)
    named_schema_ids: tuple[int, ...] = ()
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    dropped: bool = False
    corrections: tuple[ClockCorrection, ...] = ()
    format_rules: Mapping[str, int] = field(factory=dict, hash=False)
    keeps_outside: bool = False
    origin: Origin = NATIVE
    owner: Owner = LEDGER
    branches: Mapping[str, Branch] = field(factory=dict, hash=False)
    last_branch_number: int = 0
    on_branch: str | None = None

    @property
    def is_mirrored(self) -> bool:
        """True if the table is mirrored: it follows its source and takes no commits."""
        return self.owner.kind == "mirrored"

    @property
    def is_promoted(self) -> bool:
        """True if the table was mirrored before the ledger owned it."""
        return self.origin.is_promoted

    @property
    def delta(self) -> DeltaOrigin | None:
        """The position in the source's Delta log; None for a table that is not from Delta."""
        return self.origin if isinstance(self.origin, DeltaOrigin) else None

    def origin_of_kind(self, kind: type[_ImportedT]) -> _ImportedT:
        """Return the origin, which has to be of one format.

        Args:
            kind: The class of that format's origins.

        Raises:
            UnsupportedError: The table has another origin.
        """
        if not isinstance(self.origin, kind):
            raise UnsupportedError(
                f"table {self.table_id} was not imported from {kind.format_name.title()}; its "
                f"origin is {self.origin.format_name}"
            )
        return self.origin

    def branch_number(self, snapshot_id: int) -> int:
        """Return the number of the branch that a snapshot is of, by its id; 0 for main's."""
        return self.origin.branch_number(snapshot_id)

    @property
    def lists_files(self) -> bool:
        """True if the ledger lists the live files; False if an engine's manifests do."""
        return self.origin.lists_live_files(self)

    @property
    def last_snapshot_id(self) -> int:
        """The newest snapshot id assigned; 0 before the first."""
        return self.snapshot.id if self.snapshot else 0

    @property
    def puffin_files(self) -> Mapping[int, StatisticsFile]:
        """Puffin files of statistics, by the id of their snapshot, for every origin."""
        return self.origin.puffin_files(self)

    @property
    def refs(self) -> tuple[ListedRef, ...]:
        """The branches and tags of the table, those of a source in Iceberg included."""
        return self.origin.all_refs(self)

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return self.spec_by_id(self.default_spec_id)

    @property
    def partitioning(self) -> str:
        """The default partition spec in words, such as `country, month(paid_at)`."""
        names = {each.field.id: each.name for each in type_places(self.schema.fields) if each.field}
        fields = ((names.get(each.source_id, each.name), each) for each in self.spec.fields)
        return ", ".join(
            name if each.transform == "identity" else f"{each.transform}({name})"
            for name, each in fields
        )

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """Return a partition spec.

        Raises:
            NotFoundError: There is none of that id.
        """
        return spec_by_id(self.specs, spec_id)

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return order_by_id(self.sort_orders, self.default_order_id)

    def tag(self, name: str) -> Tag:
        """Return the tag of that name.

        Raises:
            NotFoundError: There is none; the message lists the existing ones.
        """
        try:
            return self.tags[name]
        except KeyError:
            raise NotFoundError(
                f"tag {name!r} does not exist; {name_hint(name, sorted(self.tags))}"
            ) from None

    @property
    def all_branches(self) -> Mapping[str, Branch | EngineBranch]:
        """The branches by name, those of Iceberg and Paimon included; main is left out."""
        return self.origin.all_branches(self)

    def branch(self, name: str) -> Branch:
        """Return the branch of that name, which the ledger commits to.

        Raises:
            NotFoundError: There is none; the message lists the existing ones.
        """
        try:
            return self.branches[name]
        except KeyError:
            raise self.origin.branch_not_found_error(self, name) from None

    def branch_numbered(self, number: int) -> Branch | None:
        """Return the branch of that number, if it exists."""
        return next((each for each in self.branches.values() if each.number == number), None)

    @property
    def viewed_branch(self) -> Branch | None:
        """The branch that the state is viewed on; None: main."""
        return None if self.on_branch is None else self.branches[self.on_branch]

    @property
    def held_snapshot_ids(self) -> frozenset[int]:
        """The snapshots of main that tags and branches keep, expired or not."""
        tagged = (each.snapshot_id for each in self.tags.values())
        return frozenset((*tagged, *(each.base_snapshot_id for each in self.branches.values())))

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of the snapshots that can be read, newest first: of main, or on the branch."""
        return self.origin.snapshot_ids(self)

    def snapshot_ids_on(self, branch: str | None) -> tuple[int, ...]:
        """Return the ids of the snapshots to list, newest first: of main, or of a branch.

        Those of a branch end with the one of main that it begins with.

        Args:
            branch: The branch's name; None or `main` for main.
        """
        found = None if branch is None else self.all_branches.get(branch)
        if found is None:
            return self.snapshot_ids
        base = found.base_snapshot_id
        return (*reversed(found.snapshot_ids), *(() if base is None else (base,)))

    @property
    def logged_snapshot_ids(self) -> tuple[tuple[int, ...], range]:
        """The readable snapshots of main whose files the log lists: single ones, then a run.

        The run has no gaps, so that its files are those of its first snapshot and those added since
        then. The newest of these snapshots is its last; it is empty if there are none.
        """
        listed = sorted(filter(self.origin.lists_files, self.origin.snapshot_ids(self)))
        newest = listed[-1] if listed else 0
        first = newest
        while listed and listed[-1] == first:
            listed.pop()
            first -= 1
        return tuple(listed), range(first + 1, newest + 1)

    def reachable(self, snapshot_id: int) -> bool:
        """Return True if a snapshot can be read: not expired, or kept by a tag or a branch."""
        return self.origin.is_readable(self, snapshot_id)
