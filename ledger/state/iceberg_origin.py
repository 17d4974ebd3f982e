"""Origin of a table imported from Iceberg.

It holds what Iceberg's own metadata file lists: every existing schema and snapshot, refs, logs and
counters. While the table follows its source all ids and numbers are the source's. Once the ledger
owns it, it remains an Iceberg table: its schemas have Iceberg's ids, each snapshot has Iceberg's
summary, and single snapshots expire.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import ClassVar, Final

from msgspec import UNSET, UnsetType, field

from ledger.events import imported as e
from ledger.model.errors import AlreadyExistsError, InvalidChangeError, NotFoundError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_objects import (
    MAIN,
    EncryptionKey,
    IcebergSnapshot,
    MetadataLogEntry,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
from ledger.model.schema import Schema
from ledger.model.snapshot import (
    BATCH_COMMIT_IDENTIFIER,
    BRANCH_IDS,
    CommitKind,
    EngineBranch,
    Snapshot,
    Tag,
    Totals,
)
from ledger.model.types import LONG_MAX
from ledger.model.types.wire import field_from_wire, field_to_wire
from ledger.state.iceberg_summary import FileCounts, FileTotals
from ledger.state.native_origin import (
    ImportedOrigin,
    ListedRef,
    ListedSchemas,
    OriginSnapshot,
    SchemaChangeEffects,
    SnapshotState,
    abbreviate_ids,
    missing_branch_error,
)

UNKNOWN: Final = -1
"""Value of a count that the source does not give."""

FORMAT_VERSION: Final = "format-version"

ROW_IDS_SINCE: Final = 3
"""The format version of Iceberg since which rows have ids."""

_KINDS: Final[Mapping[str, CommitKind]] = {"append": "APPEND", "replace": "COMPACT"}


SnapshotIdRanges = tuple[tuple[int, int], ...]
"""Set of snapshot ids: first and last id of each run of consecutive ones, ascending."""


def is_id_in_ranges(snapshot_id: int, ranges: SnapshotIdRanges) -> bool:
    """Return True if a set has an id.

    Example:
        >>> is_id_in_ranges(2, ((1, 3), (5, 5))), is_id_in_ranges(4, ((1, 3), (5, 5)))
        (True, False)
    """
    following = bisect_right(ranges, (snapshot_id, LONG_MAX))
    return following > 0 and snapshot_id <= ranges[following - 1][1]


def ranges_with_next_id(ranges: SnapshotIdRanges, snapshot_id: int) -> SnapshotIdRanges:
    """Return a set with another id, which is above all of its ids.

    Example:
        >>> ranges_with_next_id(((1, 2),), 3), ranges_with_next_id(((1, 2),), 5)
        (((1, 3),), ((1, 2), (5, 5)))
    """
    if ranges and ranges[-1][1] == snapshot_id - 1:
        return (*ranges[:-1], (ranges[-1][0], snapshot_id))
    return (*ranges, (snapshot_id, snapshot_id))


def next_ledger_snapshot_id(last_assigned_id: int, taken: Container[int]) -> int:
    """Return the next snapshot id that the ledger assigns: above its last, and free.

    Example:
        >>> next_ledger_snapshot_id(2, {3})
        4
    """
    return next(each for each in itertools.count(last_assigned_id + 1) if each not in taken)


class IcebergOrigin(ImportedOrigin, frozen=True, kw_only=True, tag="iceberg"):
    """Origin of a table that was imported from Iceberg; names as in the metadata file.

    Attributes:
        location: Iceberg's.
        format_version: Iceberg's.
        table_uuid: None only in old version 1 tables.
        schemas: By Iceberg's id, in the order of their import.
        schema_id: The current one's id.
        snapshots: By id, in the order of their import.
        added_in: The commit of the ledger that added each snapshot.
        refs: Branches and tags, by name.
        tagged_at: When each tag was set, Unix milliseconds.
        statistics: Puffin files, by the id of their snapshot.
        encryption_keys: By id.
        snapshot_log: Which snapshot was current since when.
        metadata_log: The metadata files before the newest.
        last_sequence_number: The highest one of any snapshot, removed ones included.
        next_row_id: The first row id that no row has.
        last_updated_millis: When the newest imported metadata file was written.
        metadata_file: That file; empty until one was imported completely.
        synced_in: The commit of the ledger that completed it; -1 before the first.
        promoted_in: The commit by which the ledger became its owner; -1 while it is mirrored.
        source_last_id: The highest snapshot id that its source gave below those of branches; the
            ledger's are between.
        last_assigned_id: The highest snapshot id that the ledger assigned since then; before the
            first, `source_last_id`.
        ledger_ids: The ids of the snapshots that the ledger made, whose files its log lists.
    """

    format_name: ClassVar[str] = "iceberg"

    has_ordered_ids: ClassVar[bool] = False
    """See `LedgerNumberedOrigin`: snapshot ids are random, and schemas come in any order."""

    names_schemas: ClassVar[bool] = True
    """See `LedgerNumberedOrigin`."""

    physical_names: ClassVar[Mapping[int, str]] = {}
    """See `LedgerNumberedOrigin`: the files have field ids, or a name mapping."""

    last_physical_schema_id: ClassVar[int] = -1
    """See `LedgerNumberedOrigin`."""

    has_branches: ClassVar[bool] = False
    """See `LedgerNumberedOrigin`: branches are the source's, and the ledger commits to main."""

    location: str
    format_version: int
    table_uuid: str | None = None
    schemas: dict[int, e.IcebergSchema]
    schema_id: int
    snapshots: dict[int, IcebergSnapshot] = field(default_factory=dict)
    added_in: dict[int, int] = field(default_factory=dict, name="addedVersions")
    refs: dict[str, SnapshotRef] = field(default_factory=dict)
    tagged_at: dict[str, int] = field(default_factory=dict, name="tagTimes")
    statistics: dict[int, StatisticsFile] = field(default_factory=dict)
    encryption_keys: dict[str, EncryptionKey] = field(default_factory=dict)
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    last_sequence_number: int = 0
    next_row_id: int = 0
    last_updated_millis: int = 0
    metadata_file: str = ""
    synced_in: int = field(default=-1, name="syncedVersion")
    promoted_in: int = field(default=-1, name="promotedVersion")
    source_last_id: int = field(default=0, name="sourceLastSnapshotId")
    last_assigned_id: int = field(default=0, name="lastAssignedSnapshotId")
    ledger_ids: SnapshotIdRanges = field(default=(), name="ledgerSnapshotIds")

    @property
    def current(self) -> IcebergSnapshot | None:
        """The head of `main`."""
        main = self.refs.get(MAIN)
        return None if main is None else self.snapshots[main.snapshot_id]

    def manifest_folder(self, own: str) -> str:
        """See `LedgerNumberedOrigin`."""
        del own
        return self.location

    @property
    def lists_files_since(self) -> int:
        """See `LedgerNumberedOrigin`."""
        return max(0, self.promoted_in)

    def lists_files(self, snapshot_id: int) -> bool:
        """Return True if the ledger made a snapshot, and so lists its files itself."""
        return is_id_in_ranges(snapshot_id, self.ledger_ids)

    def lists_live_files(self, state: SnapshotState) -> bool:
        """See `LedgerNumberedOrigin`; engines may point `main` to an older snapshot, or to none."""
        if state.snapshot is None:
            return not self.ledger_ids
        snapshot_id = state.snapshot.id
        is_newest = snapshot_id == self.last_assigned_id
        return self.lists_files(snapshot_id) and (
            is_newest or self.added_in.get(snapshot_id) == state.version
        )

    def counted_since_version(self, snapshot_id: int) -> int | None:
        """See `LedgerNumberedOrigin`; every snapshot is listed here, the ledger's own included."""
        del snapshot_id
        return None

    def listed_snapshot(self, snapshot_id: int) -> OriginSnapshot | None:
        """See `LedgerNumberedOrigin`."""
        found = self.snapshots.get(snapshot_id)
        if found is None:
            return None
        return OriginSnapshot(
            self.added_in[snapshot_id],
            iceberg_snapshot(found, UNKNOWN),
            iceberg_totals(found),
            found.schema_id is not None,
        )

    def listed_schemas(self, newest: Schema) -> ListedSchemas:
        """See `LedgerNumberedOrigin`."""
        return ListedSchemas(self.schemas, lambda schema_id: self.schema_of(schema_id, newest))

    def highest_schema_id(self, current_id: int) -> int:
        """See `LedgerNumberedOrigin`; the current schema may be an older one again."""
        return max(current_id, *self.schemas)

    def snapshot_ids(self, state: SnapshotState) -> tuple[int, ...]:
        """Return the ids of the existing snapshots, the last added one first."""
        del state
        return tuple(reversed(self.snapshots))

    def is_readable(self, state: SnapshotState, snapshot_id: int) -> bool:
        """Return True if a snapshot exists."""
        del state
        return snapshot_id in self.snapshots

    def readable_range_text(self, state: SnapshotState) -> str:
        """See `LedgerNumberedOrigin`."""
        return abbreviate_ids(self.snapshot_ids(state))

    def branch_number(self, snapshot_id: int) -> int:
        """Return 0: the ids are the source's and encode no branch."""
        del snapshot_id
        return 0

    def last_used_snapshot_id(self, state: SnapshotState) -> int:
        """Return the highest id taken since the ledger owns the table; 0 before that."""
        del state
        return self.last_assigned_id

    def next_snapshot_id(self, last_id: int) -> int:
        """Return the next id of the ledger's own that no snapshot has."""
        return next_ledger_snapshot_id(last_id, self.snapshots)

    def puffin_files(self, state: SnapshotState) -> Mapping[int, StatisticsFile]:
        """See `LedgerNumberedOrigin`."""
        del state
        return self.statistics

    def all_refs(self, state: SnapshotState) -> tuple[ListedRef, ...]:
        """Return the branches, main included, and the tags, by name."""
        del state
        refs = sorted(self.refs.items())
        return tuple(ListedRef(name, each.type, each.snapshot_id) for name, each in refs)

    def all_branches(self, state: SnapshotState) -> Mapping[str, EngineBranch]:
        """See `LedgerNumberedOrigin`."""
        del state
        main = self.refs.get(MAIN)
        of_main = () if main is None else self.snapshot_lineage(main.snapshot_id)
        refs = {name: ref for name, ref in sorted(self.refs.items()) if ref.type == "branch"}
        refs.pop(MAIN, None)
        return {name: self._branch(name, ref, frozenset(of_main)) for name, ref in refs.items()}

    def _branch(self, name: str, ref: SnapshotRef, of_main: Container[int]) -> EngineBranch:
        line = self.snapshot_lineage(ref.snapshot_id)
        shared = [each for each in line if each in of_main]
        return EngineBranch(
            name=name,
            base_snapshot_id=shared[-1] if shared else None,
            snapshot_ids=line[len(shared) :],
            totals=iceberg_totals(self.snapshots[ref.snapshot_id]),
            min_snapshots_to_keep=ref.min_snapshots_to_keep,
            max_snapshot_age_millis=ref.max_snapshot_age_ms,
            max_ref_age_millis=ref.max_ref_age_ms,
        )

    def branch_not_found_error(self, state: SnapshotState, name: str) -> NotFoundError:
        """Return the error that the ledger commits to no branch of a name, though engines may."""
        ref = self.refs.get(name)
        if ref is None or name == MAIN:
            return missing_branch_error(name, self.all_branches(state))
        if ref.type == "tag":
            return NotFoundError(f"{name!r} is a tag, no branch; read it by the instant tag:{name}")
        return NotFoundError(
            f"branch {name!r} is Iceberg's, and the ledger itself commits to main only; read it by "
            f"the instant branch:{name}"
        )

    def check_tag_name(self, name: str) -> None:
        """Reject the name of a tag that a branch of the table has.

        Raises:
            AlreadyExistsError: It does.
        """
        there = self.refs.get(name)
        if there is not None and there.type != "tag":
            raise AlreadyExistsError(
                f"{name!r} is a branch of the table; take another name for the tag"
            )

    def expiry(self, state: SnapshotState, earliest_snapshot_id: int) -> e.SnapshotsRemoved | None:
        """Return the event that removes the snapshots added before one; None if there are none.

        Snapshots that a branch or a tag points to stay, with ancestors that a side branch retains.

        Raises:
            NotFoundError: There is no such snapshot.
        """
        if not self.snapshots and earliest_snapshot_id <= state.earliest_snapshot_id:
            return None
        if earliest_snapshot_id not in self.snapshots:
            raise NotFoundError(
                f"snapshot {earliest_snapshot_id} does not exist or was expired; there are "
                f"{', '.join(map(str, list(self.snapshots)[-5:]))}"
            )
        kept = set(self._protected_snapshot_ids())
        before: list[int] = []
        for each in self.snapshots:
            if each == earliest_snapshot_id:
                break
            if each not in kept:
                before.append(each)
        return e.SnapshotsRemoved(tuple(before)) if before else None

    def _protected_snapshot_ids(self) -> Iterator[int]:
        for name, ref in self.refs.items():
            yield ref.snapshot_id
            step: int | None = ref.snapshot_id
            while name != MAIN and ref.type == "branch" and step in self.snapshots:
                yield step
                step = self.snapshots[step].parent_snapshot_id

    def snapshot_summary(
        self, files: Iterable[FileChange], kind: CommitKind, properties: Mapping[str, str]
    ) -> dict[str, str]:
        """Return Iceberg's summary of a snapshot that the ledger makes.

        Args:
            files: The snapshot's changes of files.
            kind: Its commit kind.
            properties: The properties that its writer gave.
        """
        return summary_after(self.current, files, kind, properties)

    def next_row_id_after(self, files: Iterable[FileChange]) -> int | UnsetType:
        """See `LedgerNumberedOrigin`."""
        if self.format_version < ROW_IDS_SINCE:
            return UNSET
        return next_row_id(self.next_row_id, files)

    def schemas_to_map(self, schema_ids: Iterable[int], newest: Schema) -> tuple[Schema, ...]:
        """Return the schemas of files without field ids, oldest first, and then the newest one."""
        known = [each for each in sorted({*schema_ids}) if each in self.schemas]
        found = (self.schema_of(each, newest) for each in known if each != newest.id)
        return (*found, newest) if known else ()

    def schema_change_effects(self, before: Schema, after: Schema) -> SchemaChangeEffects:
        """Return the Iceberg id of a changed schema, and a raised format version.

        Raises:
            InvalidChangeError: The ledger's types cannot express all of the schema, or a lower
                format version is requested.
        """
        named, raised = (
            self._schema_named_event(before, after),
            self._format_version_event(before, after),
        )
        schema_id = self.schema_id if named is None else named.schema_id
        return SchemaChangeEffects(
            tuple(each for each in (named, raised) if each is not None), schema_id
        )

    def _schema_named_event(self, before: Schema, after: Schema) -> e.SchemaNamed | None:
        columns = (before.fields, before.identifier_field_ids)
        if columns == (after.fields, after.identifier_field_ids):
            return None
        if self.schemas[self.schema_id].text is not UNSET:
            raise InvalidChangeError(
                f"schema {self.schema_id} has types that the ledger does not know, such as "
                "fixed[16], and its columns cannot change here: write the data into a table "
                "without them"
            )
        fields = tuple(map(field_to_wire, after.fields))
        # As Iceberg does: a schema that the table has already keeps its id.
        known = (
            schema_id
            for schema_id, each in self.schemas.items()
            if each.text is UNSET
            and (each.fields, each.identifier_field_ids) == (fields, after.identifier_field_ids)
        )
        return e.SchemaNamed(next(known, max(self.schemas) + 1))

    def _format_version_event(self, before: Schema, after: Schema) -> e.TableFactsSet | None:
        asked = after.options.get(FORMAT_VERSION)
        if asked is None or asked == before.options.get(FORMAT_VERSION):
            return None
        if not asked.isdecimal() or int(asked) < self.format_version:
            raise InvalidChangeError(
                f"option {FORMAT_VERSION} cannot be {asked!r}: the table is of Iceberg's format "
                f"version {self.format_version}, which only rises"
            )
        wanted = int(asked)
        return e.TableFactsSet(format_version=wanted) if wanted > self.format_version else None

    def snapshot_lineage(self, snapshot_id: int) -> tuple[int, ...]:
        """Return the existing ancestors of a snapshot and the snapshot itself, oldest first."""
        found = [snapshot_id]
        parent = self.snapshots[snapshot_id].parent_snapshot_id
        while parent is not None and parent in self.snapshots:
            found.append(parent)
            parent = self.snapshots[parent].parent_snapshot_id
        return tuple(reversed(found))

    def has_parent(self, snapshot_id: int) -> bool:
        """Return True if a snapshot has a parent, though that may have been removed."""
        # Some engines remove a parent's id with the parent; the summary still implies one.
        snapshot = self.snapshots[snapshot_id]
        is_named = snapshot.parent_snapshot_id is not None
        its_own = iceberg_delta_totals(snapshot).file_count
        return is_named or iceberg_totals(snapshot).file_count not in {UNKNOWN, its_own}

    def snapshot_time_millis(self, snapshot_id: int) -> int:
        """Return when a snapshot was made, Unix milliseconds."""
        return self.snapshots[snapshot_id].timestamp_ms

    @property
    def tags(self) -> dict[str, Tag]:
        """The tags, by name, with Iceberg's retention."""
        return {
            name: Tag(name, ref.snapshot_id, self.tagged_at[name], ref.max_ref_age_ms)
            for name, ref in self.refs.items()
            if ref.type == "tag"
        }

    def schema_of(self, schema_id: int, like: Schema) -> Schema:
        """Return one of the schemas, with everything but the columns from another one."""
        found = self.schemas[schema_id]
        return Schema(
            fields=tuple(map(field_from_wire, found.fields)),
            options=like.options,
            comment=like.comment,
            id=schema_id,
            highest_field_id=like.highest_field_id,
            time_millis=like.time_millis,
            identifier_field_ids=found.identifier_field_ids,
            field_id_policy=like.field_id_policy,
        )


def summary_after(
    before: IcebergSnapshot | None,
    files: Iterable[FileChange],
    kind: CommitKind,
    properties: Mapping[str, str],
) -> dict[str, str]:
    """Return Iceberg's summary of a snapshot of the ledger or of the library.

    Args:
        before: The snapshot that it follows.
        files: The snapshot's changes of files.
        kind: Its commit kind.
        properties: The properties that its writer gave.
    """
    counted = FileCounts.of(files)
    return counted.summary(kind, _totals_after(before, counted.net), properties)


def _totals_after(before: IcebergSnapshot | None, net: FileTotals) -> dict[str, int]:
    """Return the totals after a snapshot, where the snapshot before has them.

    As in Iceberg, a total that would be below 0 was never correct and is left out.
    """
    if before is None:
        return net.named
    summary = _summary_or_empty(before)
    known = {key: count_of(summary, key, UNKNOWN) for key in net.named}
    after = {key: known[key] + changed for key, changed in net.named.items()}
    return {key: total for key, total in after.items() if total >= 0 and known[key] != UNKNOWN}


def _summary_or_empty(snapshot: IcebergSnapshot) -> Mapping[str, str]:
    return snapshot.summary or {}


def iceberg_snapshot(snapshot: IcebergSnapshot, schema_id: int) -> Snapshot:
    """Return an Iceberg snapshot as the ledger's readers get it; unknown counts are -1.

    Args:
        snapshot: Iceberg's.
        schema_id: The id to use where the snapshot names no schema.
    """
    summary = _summary_or_empty(snapshot)
    return Snapshot(
        id=snapshot.snapshot_id,
        schema_id=schema_id if snapshot.schema_id is None else snapshot.schema_id,
        commit_kind=_KINDS.get(summary.get("operation", ""), "OVERWRITE"),
        commit_user=author_of(summary),
        commit_identifier=BATCH_COMMIT_IDENTIFIER,
        time_millis=snapshot.timestamp_ms,
        total_record_count=count_of(summary, "total-records", UNKNOWN),
        delta_record_count=iceberg_delta_totals(snapshot).record_count,
        base_manifest_list=snapshot.manifest_list,
        properties=dict(summary),
        operation=summary.get("operation"),
    )


def iceberg_totals(snapshot: IcebergSnapshot | None) -> Totals:
    """Return the sums after a snapshot, from its summary; unknown ones are -1."""
    if snapshot is None:
        return Totals()
    summary = _summary_or_empty(snapshot)
    return Totals(
        count_of(summary, "total-records", UNKNOWN),
        count_of(summary, "total-files-size", UNKNOWN),
        count_of(summary, "total-data-files", UNKNOWN),
    )


def iceberg_delta_totals(snapshot: IcebergSnapshot) -> Totals:
    """Return a snapshot's changes of the sums, from its summary; 0 where it has none."""
    summary = _summary_or_empty(snapshot)

    def more(of: str, deleted: str = "deleted") -> int:
        return count_of(summary, f"added-{of}") - count_of(summary, f"{deleted}-{of}")

    return Totals(more("records"), more("files-size", "removed"), more("data-files"))


def count_of(summary: Mapping[str, str], key: str, absent: int = 0) -> int:
    """Return a value of a summary, if it is a count that Iceberg could hold."""
    text = summary.get(key, "")
    is_count = text.isascii() and text.isdigit() and len(text) <= len(str(LONG_MAX))
    return int(text) if is_count and int(text) <= LONG_MAX else absent


_AUTHORS: Final = ("author", "commit-user", "user", "user.name", "username", "trino_user", "owner")
_ENGINES: Final = ("spark.app.id", "flink.job-id", "trino_query_id", "engine-name", "app-id")


def author_of(summary: Mapping[str, str]) -> str:
    """Return the author of a snapshot by its summary: a user, or else an engine's job.

    Example:
        >>> author_of({"operation": "append", "spark.app.id": "local-1"})
        'local-1'
    """
    return next((summary[key] for key in (*_AUTHORS, *_ENGINES) if summary.get(key)), "")


def highest_main_snapshot_id(snapshot_ids: Iterable[int]) -> int:
    """Return the highest of some snapshot ids below those of branches; 0 without one.

    >>> highest_main_snapshot_id([5, 7_000_000_000_000_000_001])
    5
    """
    return max((each for each in snapshot_ids if each < BRANCH_IDS), default=0)


def next_row_id(first: int, files: Iterable[FileChange]) -> int:
    """Return the first row id that no row has after some files were added.

    Files that give their rows' ids keep them; the others' rows get the next ones after all of
    those.

    Args:
        first: The value before.
        files: The added and removed files.

    Example:
        >>> one = FileChange(path="a", record_count=5, file_size_in_bytes=9, first_row_id=10)
        >>> two = FileChange(path="b", record_count=2, file_size_in_bytes=9)
        >>> next_row_id(3, [one, two])
        17
    """
    new, last = 0, first
    for each in files:
        if each.kind != "ADD" or each.content != "data":
            continue
        if isinstance(each.first_row_id, UnsetType):
            new += each.record_count
        else:
            last = max(last, each.first_row_id + each.record_count)
    return last + new
