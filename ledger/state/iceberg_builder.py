"""Fold of events of tables imported from Iceberg."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ledger.events import imported as e
from ledger.events.snapshots import (
    RolledBack,
    SnapshotCommitted,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.table import TablePromoted
from ledger.model.errors import InvalidChangeError
from ledger.model.iceberg_objects import MAIN, IcebergSnapshot, SnapshotLogEntry, SnapshotRef
from ledger.model.snapshot import BRANCH_IDS
from ledger.model.types import DataField
from ledger.model.types.wire import FieldObject, field_to_wire
from ledger.state.iceberg_origin import (
    ROW_IDS_SINCE,
    IcebergOrigin,
    SnapshotIdRanges,
    highest_main_snapshot_id,
    is_id_in_ranges,
    next_ledger_snapshot_id,
    ranges_with_next_id,
)

_SEQUENCES_SINCE: Final = 2
"""The format version of Iceberg since which snapshots have sequence numbers."""


class IcebergOriginBuilder:
    """Folds events into an `IcebergOrigin`."""

    has_branches: ClassVar[bool] = False
    """See `IcebergOrigin`."""

    __slots__ = (
        "_facts",
        "_is_shared",
        "_last_places",
        "_logs",
        "added_in",
        "refs",
        "schemas",
        "snapshots",
        "tagged_at",
    )

    def __init__(self, table: IcebergOrigin) -> None:
        self._facts: dict[str, Any] = {
            name: getattr(table, name) for name in table.__struct_fields__
        }
        self._is_shared = True
        self._logs: dict[str, deque[Any]] = {}
        self._last_places: tuple[int, dict[int, int]] | None = None
        self._bind_collections()

    def _bind_collections(self) -> None:
        facts = self._facts
        self.schemas: dict[int, e.IcebergSchema] = facts["schemas"]
        self.snapshots: dict[int, IcebergSnapshot] = facts["snapshots"]
        self.added_in: dict[int, int] = facts["added_in"]
        self.refs: dict[str, SnapshotRef] = facts["refs"]
        self.tagged_at: dict[str, int] = facts["tagged_at"]

    @classmethod
    def of_creation(
        cls, creation: e.ImportedIcebergTable, first: Iterable[FieldObject], keys: tuple[int, ...]
    ) -> IcebergOriginBuilder:
        """Return the builder of a new table's origin.

        Args:
            creation: Its origin as the creation records it.
            first: The columns of its first schema.
            keys: The ids of those that identify a row.
        """
        schema = e.IcebergSchema(
            schema_id=creation.schema_id,
            fields=tuple(first),
            identifier_field_ids=keys,
            text=creation.text,
        )
        return cls(
            IcebergOrigin(
                source=creation.source,
                location=creation.location,
                format_version=creation.format_version,
                table_uuid=None if creation.table_uuid is UNSET else creation.table_uuid,
                schemas={creation.schema_id: schema},
                schema_id=creation.schema_id,
            )
        )

    @property
    def schema_id(self) -> int:
        """The current schema's id."""
        found: int = self._facts["schema_id"]
        return found

    def freeze(self) -> IcebergOrigin:
        """Return the origin as it is now."""
        self._is_shared = True
        self._facts |= {name: tuple(log) for name, log in self._logs.items()}
        return IcebergOrigin(**self._facts)

    def _copy_shared_collections(self) -> None:
        """Copy the collections shared with a frozen origin, once before the first change."""
        if self._is_shared:
            for name, value in self._facts.items():
                if isinstance(value, dict):
                    self._facts[name] = dict(value)
            # Deques, so that an event costs the same however long a log is.
            self._logs = {
                name: deque(self._facts[name]) for name in ("snapshot_log", "metadata_log")
            }
            self._last_places = None
            self._bind_collections()
            self._is_shared = False

    def apply(self, event: e.IcebergEvent, version: int, moment: int) -> None:
        """Fold one event.

        Args:
            event: The event.
            version: The commit that holds it.
            moment: When it took effect, Unix milliseconds.

        Raises:
            InvalidChangeError: It contradicts the table.
        """
        self._copy_shared_collections()
        self._RULES[type(event)](self, event, version, moment)

    def promote(self, event: TablePromoted, version: int) -> None:
        """Make the ledger the owner of the table, from a commit on.

        Raises:
            InvalidChangeError: It is already, or ids that it would assign are taken.
        """
        self._copy_shared_collections()
        if self.is_promoted:
            raise _contradiction_error("a table is promoted once")
        last = event.last_snapshot_id
        if last is UNSET or not highest_main_snapshot_id(self.snapshots) <= last < BRANCH_IDS:
            raise _contradiction_error("a promotion needs the highest snapshot id that is taken")
        self.begin_ownership(version, last)

    def begin_ownership(self, version: int, last_id: int) -> None:
        """Let the ledger assign snapshot ids from a commit on.

        Args:
            version: The commit.
            last_id: The number that its ids are above.
        """
        self._facts["promoted_in"] = version
        self._facts["source_last_id"] = self._facts["last_assigned_id"] = last_id

    @property
    def last_assigned_id(self) -> int:
        """The highest snapshot id assigned by the ledger; 0 before it owns the table."""
        found: int = self._facts["last_assigned_id"]
        return found

    @property
    def is_promoted(self) -> bool:
        """True if the ledger owns the table."""
        return bool(self._facts["promoted_in"] >= 0)

    def commit(
        self, event: SnapshotCommitted | RolledBack, schema_id: int, version: int, moment: int
    ) -> None:
        """Fold a snapshot of the ledger's own: the next one of `main`.

        Args:
            event: The event.
            schema_id: The current schema's id.
            version: The commit that holds it.
            moment: When it took effect, Unix milliseconds.

        Raises:
            InvalidChangeError: It contradicts the table.
        """
        self._copy_shared_collections()
        facts, head = self._facts, self.refs.get(MAIN)
        wanted = next_ledger_snapshot_id(facts["last_assigned_id"], self.snapshots)
        if event.snapshot_id != wanted or event.schema_id != schema_id:
            raise _contradiction_error(
                f"snapshot {event.snapshot_id} with schema {event.schema_id} cannot follow "
                f"snapshot {facts['last_assigned_id']} with schema {schema_id}"
            )
        facts["last_assigned_id"] = event.snapshot_id
        facts["ledger_ids"] = ranges_with_next_id(facts["ledger_ids"], event.snapshot_id)
        sequenced = facts["format_version"] >= _SEQUENCES_SINCE
        first_row_id = facts["next_row_id"]
        numbered = facts["format_version"] >= ROW_IDS_SINCE
        given = UNSET if isinstance(event, RolledBack) else event.next_row_id
        added_rows = 0 if given is UNSET else given - first_row_id
        if added_rows < 0:
            raise _contradiction_error(f"snapshot {event.snapshot_id} assigns row ids twice")
        snapshot = IcebergSnapshot(
            snapshot_id=event.snapshot_id,
            parent_snapshot_id=None if head is None else head.snapshot_id,
            sequence_number=facts["last_sequence_number"] + 1 if sequenced else 0,
            timestamp_ms=moment,
            summary=None if event.summary is UNSET else event.summary,
            schema_id=event.schema_id,
            first_row_id=first_row_id if numbered else None,
            added_rows=added_rows if numbered else None,
        )
        self._apply_snapshot_added(e.SnapshotAdded(snapshot), version, moment)
        self.refs[MAIN] = (
            SnapshotRef(snapshot_id=event.snapshot_id, type="branch")
            if head is None
            else replace(head, snapshot_id=event.snapshot_id)
        )
        self._logs["snapshot_log"].append(SnapshotLogEntry(moment, event.snapshot_id))
        if self._last_places is not None:
            first, places = self._last_places
            places[event.snapshot_id] = first + len(self._logs["snapshot_log"]) - 1

    def tag(self, event: TagCreated | TagReplaced | TagDeleted, version: int, moment: int) -> None:
        """Fold a tag of the ledger's own.

        Raises:
            InvalidChangeError: It contradicts the table.
        """
        self._copy_shared_collections()
        there = self.refs.get(event.tag_name)
        if (there is None) != isinstance(event, TagCreated) or (
            there is not None and there.type != "tag"
        ):
            said = "does not exist" if there is None else "exists"
            raise _contradiction_error(f"tag {event.tag_name!r} {said}")
        if isinstance(event, TagDeleted):
            self._remove_ref(e.SnapshotRefRemoved(event.tag_name), version, moment)
            return
        ref = SnapshotRef(
            snapshot_id=event.snapshot_id,
            type="tag",
            max_ref_age_ms=(
                None if event.time_retained_millis is UNSET else event.time_retained_millis
            ),
        )
        self._set_ref(e.SnapshotRefSet(event.tag_name, ref), version, moment)

    def clamp_times(self, latest_millis: int) -> None:
        """Limit the times that the ledger set to a latest one; those of others' snapshots stay.

        The snapshot log is the ledger's once the table follows no source.
        """
        self._copy_shared_collections()
        own: SnapshotIdRanges = self._facts["ledger_ids"]
        for key, snapshot in self.snapshots.items():
            if is_id_in_ranges(key, own) and snapshot.timestamp_ms > latest_millis:
                self.snapshots[key] = replace(snapshot, timestamp_ms=latest_millis)
        if self.is_promoted:
            self._logs["snapshot_log"] = deque(
                replace(each, timestamp_ms=min(each.timestamp_ms, latest_millis))
                for each in self._logs["snapshot_log"]
            )
        for name, moment in self.tagged_at.items():
            self.tagged_at[name] = min(moment, latest_millis)

    def name_schema(
        self, event: e.SchemaNamed, fields: Iterable[DataField], keys: tuple[int, ...]
    ) -> None:
        """Assign an id to the current columns, and make them the current schema."""
        self._copy_shared_collections()
        named = e.IcebergSchema(
            schema_id=event.schema_id,
            fields=tuple(map(field_to_wire, fields)),
            identifier_field_ids=keys,
            text=event.text,
        )
        self._add_schema(named)
        self._facts["schema_id"] = event.schema_id

    def set_current_schema(self, schema_id: int) -> e.IcebergSchema:
        """Make a schema the current one, and return it."""
        self._copy_shared_collections()
        found = self.schemas.get(schema_id)
        if found is None:
            raise _contradiction_error(
                f"schema {schema_id} does not exist and cannot become the current one"
            )
        self._facts["schema_id"] = schema_id
        return found

    def _add_schema(self, schema: e.IcebergSchema) -> None:
        if self.schemas.setdefault(schema.schema_id, schema) != schema:
            raise _contradiction_error(f"schema {schema.schema_id} has other columns already")

    def _apply_schema_added(self, event: e.SchemaAdded, _version: int, _moment: int) -> None:
        self._add_schema(event.schema)

    def _remove_schemas(self, event: e.SchemasRemoved, _version: int, _moment: int) -> None:
        if self.schema_id in event.schema_ids:
            raise _contradiction_error(
                f"schema {self.schema_id} is the current one and cannot be removed"
            )
        for each in event.schema_ids:
            _remove_entry(self.schemas, each, "schema")

    def _add_engine_snapshot(self, event: e.SnapshotAdded, version: int, moment: int) -> None:
        number = event.snapshot.snapshot_id
        if is_id_in_ranges(number, self._facts["ledger_ids"]):
            raise _contradiction_error(f"snapshot id {number} is that of a snapshot of the ledger")
        self._apply_snapshot_added(event, version, moment)

    def _apply_snapshot_added(self, event: e.SnapshotAdded, version: int, _moment: int) -> None:
        snapshot = event.snapshot
        if snapshot.snapshot_id in self.snapshots:
            raise _contradiction_error(f"snapshot {snapshot.snapshot_id} exists already")
        self.snapshots[snapshot.snapshot_id] = snapshot
        self.added_in[snapshot.snapshot_id] = version
        facts = self._facts
        facts["last_sequence_number"] = max(facts["last_sequence_number"], snapshot.sequence_number)
        if snapshot.first_row_id is not None and snapshot.added_rows is not None:
            after = snapshot.first_row_id + snapshot.added_rows
            facts["next_row_id"] = max(facts["next_row_id"], after)

    def _replace_snapshot(self, event: e.SnapshotReplaced, _version: int, _moment: int) -> None:
        key = event.snapshot.snapshot_id
        if key not in self.snapshots or is_id_in_ranges(key, self._facts["ledger_ids"]):
            raise _contradiction_error(f"snapshot {key} is none of the source and cannot change")
        self.snapshots[key] = event.snapshot

    def _remove_snapshots(self, event: e.SnapshotsRemoved, _version: int, _moment: int) -> None:
        for each in event.snapshot_ids:
            _remove_entry(self.snapshots, each, "snapshot")
            self.added_in.pop(each)
            self._facts["statistics"].pop(each, None)
        for name, ref in list(self.refs.items()):
            if ref.snapshot_id not in self.snapshots:
                del self.refs[name]
                self.tagged_at.pop(name, None)
        if self.is_promoted:
            self._shorten_snapshot_log(event.snapshot_ids)

    def _shorten_snapshot_log(self, gone: tuple[int, ...]) -> None:
        """Remove the log's entries up to the last one of some snapshots."""
        log = self._logs["snapshot_log"]
        if self._last_places is None:
            self._last_places = 0, {each.snapshot_id: at for at, each in enumerate(log)}
        first, places = self._last_places
        last = max((places.pop(each, -1) for each in gone), default=-1)
        for _ in range(first, last + 1):
            log.popleft()
        self._last_places = max(first, last + 1), places

    def _set_ref(self, event: e.SnapshotRefSet, _version: int, moment: int) -> None:
        name, ref = event.ref_name, event.ref
        if ref.snapshot_id not in self.snapshots:
            raise _contradiction_error(
                f"{name} cannot point to {ref.snapshot_id}: no such snapshot"
            )
        if name == MAIN and ref.type != "branch":
            raise _contradiction_error("main is a branch and cannot be a tag")
        self.refs[name] = ref
        self.tagged_at.pop(name, None)
        if ref.type == "tag":
            self.tagged_at[name] = moment

    def _remove_ref(self, event: e.SnapshotRefRemoved, _version: int, _moment: int) -> None:
        _remove_entry(self.refs, event.ref_name, "branch or tag")
        self.tagged_at.pop(event.ref_name, None)

    def _set_statistics(self, event: e.StatisticsSet, _version: int, _moment: int) -> None:
        self._facts["statistics"][event.statistics.snapshot_id] = event.statistics

    def _remove_statistics(self, event: e.StatisticsRemoved, _version: int, _moment: int) -> None:
        for each in event.snapshot_ids:
            _remove_entry(self._facts["statistics"], each, "statistics file of snapshot")

    def _add_encryption_key(self, event: e.EncryptionKeyAdded, _version: int, _moment: int) -> None:
        key = event.encryption_key
        if self._facts["encryption_keys"].setdefault(key.key_id, key) != key:
            raise _contradiction_error(
                f"encryption key {key.key_id} exists already with another value"
            )

    def _remove_encryption_key(
        self, event: e.EncryptionKeyRemoved, _version: int, _moment: int
    ) -> None:
        _remove_entry(self._facts["encryption_keys"], event.key_id, "encryption key")

    def _update_log(
        self, event: e.SnapshotLogUpdated | e.MetadataLogUpdated, _version: int, _moment: int
    ) -> None:
        name = "snapshot_log" if isinstance(event, e.SnapshotLogUpdated) else "metadata_log"
        log = self._logs[name]
        if not 0 <= event.dropped <= len(log):
            raise _contradiction_error(f"a log of {len(log)} entries cannot lose {event.dropped}")
        for _ in range(event.dropped):
            log.popleft()
        log.extend(event.added)
        self._last_places = None

    def _set_table_facts(self, event: e.TableFactsSet, _version: int, _moment: int) -> None:
        version = event.format_version
        if version is not UNSET and version < self._facts["format_version"]:
            raise _contradiction_error(
                f"a table of Iceberg's format version {self._facts['format_version']} cannot go "
                f"back to {version}"
            )
        for name in (
            "format_version",
            "table_uuid",
            "location",
            "last_sequence_number",
            "next_row_id",
        ):
            value = getattr(event, name)
            if value is not UNSET:
                self._facts[name] = value

    def _record_source_sync(self, event: e.SourceFollowed, version: int, _moment: int) -> None:
        self._facts["synced_in"] = version
        self._facts["metadata_file"] = event.metadata_file
        self._facts["last_updated_millis"] = event.last_updated_millis

    def _ignore_removed_layouts(
        self, _event: e.LayoutsRemoved, _version: int, _moment: int
    ) -> None:
        """Do nothing: the table's layout folds it."""

    _RULES: ClassVar[dict[type, Callable[[IcebergOriginBuilder, Any, int, int], None]]] = {
        e.SchemaAdded: _apply_schema_added,
        e.SchemasRemoved: _remove_schemas,
        e.SnapshotAdded: _add_engine_snapshot,
        e.SnapshotReplaced: _replace_snapshot,
        e.SnapshotsRemoved: _remove_snapshots,
        e.SnapshotRefSet: _set_ref,
        e.SnapshotRefRemoved: _remove_ref,
        e.StatisticsSet: _set_statistics,
        e.StatisticsRemoved: _remove_statistics,
        e.EncryptionKeyAdded: _add_encryption_key,
        e.EncryptionKeyRemoved: _remove_encryption_key,
        e.SnapshotLogUpdated: _update_log,
        e.MetadataLogUpdated: _update_log,
        e.TableFactsSet: _set_table_facts,
        e.SourceFollowed: _record_source_sync,
        e.LayoutsRemoved: _ignore_removed_layouts,
    }


class ImportedEventsIntent(Struct, frozen=True):
    """Events imported from a source, to be appended; see `ledger.state.stream.Intent`.

    Attributes:
        events: The events, as decided and tried on the base.
        base_version: The version that they follow, and that appending expects.
    """

    events: tuple[Any, ...]
    base_version: int

    def index_winners(self, winners: object) -> None:
        """Prepare nothing; see `Intent`."""

    def decide(self, state: Any, winners: object) -> tuple[Any, ...]:
        """Return the events.

        Raises:
            InvalidChangeError: The ledger owns the table.
        """
        del winners
        if state is None or state.owner.kind == "ledger":
            raise _contradiction_error("the ledger owns the table, which follows no source")
        return self.events


def _remove_entry(there: dict[Any, Any], key: object, what: str) -> None:
    if key not in there:
        raise _contradiction_error(f"{what} {key} does not exist and cannot be removed")
    del there[key]


def _contradiction_error(message: str) -> InvalidChangeError:
    return InvalidChangeError(message, kind="ILLEGAL_STATE")
