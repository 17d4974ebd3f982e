"""Iceberg projection of tables imported from Iceberg.

Engines' manifest lists, manifests and data files are not moved, so a metadata file, a function of
the state at its version, is all there is to project. After the table is promoted, the ledger's own
snapshots add manifests.

Their lists start with the engines' manifests, which are not moved: each list names them until a
snapshot removes files from one; that one is then rewritten next to the ledger's own. A rollback
lists the manifests of its target.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial

import msgspec
from attrs import Factory, define, evolve
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.commit import Transaction
from ledger.events.imported import SnapshotsRemoved
from ledger.events.snapshots import RolledBack, SnapshotEvent, SnapshotFacts
from ledger.events.table import OwnerSet, TablePromoted
from ledger.files.change_lists import event_files
from ledger.locations import below
from ledger.log.replay import Read
from ledger.log.time_travel import at_version
from ledger.model.errors import DamagedLogError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_objects import IcebergSnapshot, MetadataLogEntry
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.table_handle import TableHandle
from projections.iceberg.engine_files import (
    EngineManifests,
    column_types_by_id,
    listed_manifests,
)
from projections.iceberg.imported_metadata import metadata_of, source_schema
from projections.iceberg.manifest_entry import ManifestEntry, TableFacts, entry_of
from projections.iceberg.manifest_list import ManifestFile, unmergeable_manifest
from projections.iceberg.manifest_writing import (
    CurrentManifests,
    ManifestListContent,
    SnapshotFileChanges,
)
from projections.iceberg.metadata_log import (
    MetadataLog,
    Wants,
    declares_iceberg,
    max_logged_versions,
    may_be_named,
)
from projections.iceberg.position import FOLDER, HINT, IcebergPosition, Names
from projections.iceberg.schema_json import schema_to_json
from projections.iceberg.snapshots import FileAdders
from projections.iceberg.table_json import write_metadata
from projections.iceberg.table_metadata import TableMetadata
from projections.manifest_files.container import read_container
from projections.materialising import Progress, new_commits
from projections.outputs import Outputs

_DELETES = 1


@define
class PromotedManifests:
    """The manifests of the ledger's own snapshots of a table, in order.

    Attributes:
        table: The table.
        manifests: The manifests of the newest snapshot.
        adders: Lookup of the snapshot that first added a file.
        target: The state at the end of the run.
        listed: The content of the lists of this run's snapshots, by snapshot.
        gone: The ledger's own snapshots that expired in this run.
    """

    table: TableHandle
    manifests: CurrentManifests
    adders: FileAdders
    target: TableState
    listed: dict[int, tuple[ManifestFile, ...]] = Factory(dict)
    gone: list[int] = Factory(list)

    @classmethod
    def at(
        cls, table: TableHandle, outputs: Outputs, start: IcebergPosition, target: TableState
    ) -> PromotedManifests:
        """Return the manifests at a position."""
        names = Names(target.table_id)
        manifests = CurrentManifests(
            names,
            outputs,
            start.manifests,
            start.next_row_id,
            start.list_check,
            read_engines=_reader_of(table, outputs),
        )
        return cls(table, manifests, FileAdders(table, start.version), target)

    def learn(self, transaction: Transaction[TableEvent], state: TableState) -> None:
        """Apply a transaction's snapshots.

        Args:
            transaction: The transaction.
            state: The table right after the transaction.

        Raises:
            DamagedLogError: A needed manifest is missing or damaged.
            NotFoundError: A manifest of an engine does not exist.
        """
        origin = state.origin_of_kind(IcebergOrigin)
        # A snapshot in a transaction that changes the owner lists the engines' earlier manifests.
        is_first = any(isinstance(each, TablePromoted | OwnerSet) for each in transaction.events)
        for event in transaction.events:
            if isinstance(event, SnapshotsRemoved):
                own = filter(origin.lists_files, event.snapshot_ids)
                self.gone.extend(own)
            elif isinstance(event, SnapshotEvent):
                snapshot = origin.snapshots[event.snapshot_id]
                facts = facts_of(self.table, state, origin, snapshot)
                given = snapshot.first_row_id
                self.manifests.next_row_id = given or 0
                found = self._list_after_event(
                    event, is_first=is_first, at=(state, origin), facts=facts
                )
                self._store_snapshot_list(found, snapshot, facts)

    def garbage(self) -> tuple[str, ...]:
        """Return the lists of expired snapshots, and manifests that no other list names."""
        if not self.gone:
            return ()
        origin = self.target.origin_of_kind(IcebergOrigin)
        own = filter(origin.lists_files, origin.snapshots)
        kept = {path for each in own for path in self._manifests_named_by(each)}
        kept |= self.listed_by_engines
        dropped = {path for each in self.gone for path in self._manifests_named_by(each)}
        lists = map(self.manifests.names.manifest_list, self.gone)
        return (*lists, *sorted(dropped - kept))

    @cached_property
    def listed_by_engines(self) -> frozenset[str]:
        """The ledger's manifests in lists that engines wrote since they own the table's data."""
        origin = self.target.origin_of_kind(IcebergOrigin)
        if not origin.ledger_ids:
            return frozenset()
        engines = self._engine_manifests(self.target)
        place, found = f"{self.table.location}/", set[str]()
        for snapshot_id, snapshot in origin.snapshots.items():
            is_later = origin.added_in[snapshot_id] > origin.promoted_in
            if is_later and not origin.lists_files(snapshot_id):
                url = engines.list_url(snapshot)
                found.update(each.path for each in listed_manifests(engines.body(url), url))
        return frozenset(each.removeprefix(place) for each in found if each.startswith(place))

    def _engine_manifests(self, state: TableState) -> EngineManifests:
        origin = state.origin_of_kind(IcebergOrigin)
        return EngineManifests(state, origin, self.table.location, self.manifests.read_engines)

    def _manifests_named_by(self, snapshot_id: int) -> Iterator[str]:
        """Yield the ledger's manifests that a snapshot's list names."""
        path = self.manifests.names.manifest_list(snapshot_id)
        body = self.manifests.outputs.read(path)
        place = f"{self.table.location}/"
        for each in read_container(body, path) if body is not None else ():
            if str(each["manifest_path"]).startswith(place):
                yield str(each["manifest_path"]).removeprefix(place)

    def _list_after_event(
        self,
        event: SnapshotEvent,
        *,
        is_first: bool,
        at: tuple[TableState, IcebergOrigin],
        facts: TableFacts,
    ) -> ManifestListContent:
        state, origin = at
        log = self.table.log
        kept = event_files(log.store, log.layout, event)
        files = tuple(log.personal.columns.rendered(kept))
        if is_first:
            self.adders.learn([each.path for each in files], event.snapshot_id)
            parent = origin.snapshots[event.snapshot_id].parent_snapshot_id
            there = () if parent is None else self._manifests_of_snapshot(parent, state)
            return self.manifests.apply_existing_list(there, facts)
        if isinstance(event, RolledBack):
            there = self._manifests_of_snapshot(event.target_snapshot_id, state)
            return self.manifests.apply_existing_list(there, facts)
        return self.manifests.snapshot(
            self._snapshot_changes(event.snapshot_id, files, facts), facts
        )

    def _manifests_of_snapshot(self, snapshot_id: int, state: TableState) -> Iterable[ManifestFile]:
        engines = self._engine_manifests(state)
        if snapshot_id not in engines.origin.snapshots:
            raise DamagedLogError(
                f"version {state.version} of {self.table.identifier} refers to snapshot "
                f"{snapshot_id}, which does not exist or was expired",
                self.table.log.layout.commit(state.version),
            )
        if not engines.origin.lists_files(snapshot_id):
            return engines.listed(engines.origin.snapshots[snapshot_id])
        found = self.listed.get(snapshot_id)
        if found is None:
            path = self.manifests.names.manifest_list(snapshot_id)
            body = self.manifests.outputs.read(path)
            if body is None:
                raise DamagedLogError(f"{path} is not the manifest list that was projected", path)
            found = tuple(listed_manifests(body, path))
        # A list does not show how its manifests were formed.
        return (
            unmergeable_manifest(each, place) for place, each in enumerate(found) if each.live_files
        )

    def _snapshot_changes(
        self, snapshot_id: int, files: tuple[FileChange, ...], facts: TableFacts
    ) -> SnapshotFileChanges:
        gone = [each for each in files if each.kind == "DELETE"]
        # A file that only a rollback restored is in an engine's manifest, which may hold any key.
        adders = dict.fromkeys((each.path for each in gone), snapshot_id)
        adders |= self.adders.of_added_by_ledger(list(adders))
        removed = {
            facts.data_uri(each.path): (
                adders[each.path],
                (each.spec_id, 0 if each.content == "data" else _DELETES),
            )
            for each in gone
        }
        come = [each for each in files if each.kind == "ADD"]
        self.adders.learn([each.path for each in come], snapshot_id)
        return SnapshotFileChanges(
            snapshot_id, tuple(_added_file_entries(snapshot_id, come, facts)), removed
        )

    def _store_snapshot_list(
        self, found: ManifestListContent, snapshot: IcebergSnapshot, facts: TableFacts
    ) -> None:
        self.listed[snapshot.snapshot_id] = found.manifests
        if self.target.reachable(snapshot.snapshot_id):
            parent = snapshot.parent_snapshot_id
            self.manifests.write(found, snapshot.snapshot_id, facts, parent or 0)
        elif not self.listed_by_engines.isdisjoint(found.paths):
            self.manifests.write_manifests(self.listed_by_engines.intersection(found.paths))


def _reader_of(table: TableHandle, outputs: Outputs) -> Callable[[str], bytes | None]:
    """Return a function that reads a manifest or a list by its URL; the ledger's own from a run."""
    place = f"{table.location}/"

    def read(url: str) -> bytes | None:
        own = outputs.read(url.removeprefix(place)) if url.startswith(place) else None
        return table.read_file(url) if own is None else own

    return read


def _added_file_entries(
    snapshot_id: int, come: Iterable[FileChange], facts: TableFacts
) -> Iterator[ManifestEntry]:
    for each in come:
        yield entry_of(
            each,
            facts.struct(each.spec_id),
            uri_of=facts.data_uri,
            origin=facts.origin(each, snapshot_id),
        )


def facts_of(
    table: TableHandle, state: TableState, origin: IcebergOrigin, snapshot: IcebergSnapshot
) -> TableFacts:
    """Return the table facts that the manifests of one of the ledger's snapshots need.

    Args:
        table: The table.
        state: Its state with the snapshot.
        origin: Its Iceberg metadata from the source.
        snapshot: The snapshot.
    """
    schema = source_schema(origin.schemas[origin.schema_id], origin.format_version)
    return TableFacts(
        location=table.location,
        data_location=table.data_location,
        format_version=origin.format_version,
        first_sequenced=1 if snapshot.sequence_number else 0,
        schema=msgspec.json.encode(schema_to_json(schema)),
        specs={each.spec_id: each for each in state.specs},
        types=column_types_by_id(state, origin),
        before_sequence=snapshot.snapshot_id - snapshot.sequence_number,
    )


_OF_FILES = SnapshotFacts | SnapshotsRemoved


def metadata_of_imported(
    table: TableHandle,
    state: TableState,
    metadata_log: tuple[MetadataLogEntry, ...] | None = None,
) -> bytes:
    """Return the metadata file of an imported table at a version.

    Manifest lists of the ledger's snapshots, and statistics published since, are below the
    ledger's location of the table.

    Args:
        table: The table.
        state: Its state at the version.
        metadata_log: Its earlier metadata files; None for those of its source.
    """
    names = Names(state.table_id)
    said = metadata_of(state, lambda each: f"{table.location}/{names.manifest_list(each)}")
    log = said.metadata_log if metadata_log is None else metadata_log
    return write_metadata(with_statistics_urls(evolve(said, metadata_log=log), table.location))


_has_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:").match


def with_statistics_urls(metadata: TableMetadata, location: str) -> TableMetadata:
    """Return metadata whose statistics files have URLs; the ledger names its own by their paths.

    Args:
        metadata: The metadata.
        location: The ledger's location of the table.
    """

    def uri(path: str) -> str:
        # An engine's URL may have a scheme that the ledger does not know.
        return path if _has_scheme(path) else below(location, path)

    return evolve(
        metadata,
        statistics=tuple(
            replace(each, statistics_path=uri(each.statistics_path)) for each in metadata.statistics
        ),
        partition_statistics=tuple(
            replace(each, statistics_path=uri(each.statistics_path))
            for each in metadata.partition_statistics
        ),
    )


def render_imported(
    table: TableHandle, outputs: Outputs, target: TableState, on_progress: Progress
) -> None:
    """Write a version's metadata file and the ledger's files for it, without pointers."""
    run = _ImportedProjectionRun(table, outputs, IcebergPosition(), target)
    if target.is_promoted:
        for read in new_commits(table, IcebergPosition(), target, on_progress):
            run.commit(read)
    outputs.put(Names(target.table_id).metadata(target.version), run.renderer(target)())


def project_imported(
    table: TableHandle,
    outputs: Outputs,
    start: IcebergPosition,
    target: TableState,
    wants: Wants,
    on_progress: Progress,
) -> IcebergPosition:
    """Write the versions between two states; see `projections.iceberg.project.Projection`."""
    run = _ImportedProjectionRun(table, outputs, start, target)
    if start.version < 0:
        run.log.add_found(outputs.paths(FOLDER))
    for read in new_commits(table, start, target, on_progress):
        run.commit(read)
        if read.commit.version != target.version:
            run.put_or_log(read.commit.version, wants)
    body = run.put_metadata(target)
    outputs.put(Names(target.table_id).hadoop(target.version), body)
    outputs.point(HINT, b"%d" % target.version)
    if wants(target.version):
        run.log.request(target.version)
    run.log.find_skipped(outputs, start, target.version)
    manifests, files = run.own.manifests, run.log.retained(start, target.version)
    return IcebergPosition(
        version=target.version,
        check=hashlib.sha256(body).hexdigest(),
        metadata_versions=files.versions,
        requested_versions=files.requested,
        metadata_log=tuple(run.log.entries),
        manifests=manifests.current,
        next_row_id=manifests.next_row_id,
        location=table.location,
        commit=run.reached,
        list_check=manifests.list_check,
        garbage=(*files.obsolete, *run.own.garbage()),
    )


class _ImportedProjectionRun:
    def __init__(
        self, table: TableHandle, outputs: Outputs, start: IcebergPosition, target: TableState
    ) -> None:
        self._table, self._outputs, self._target = table, outputs, target
        before = at_version(table.log, start.version) if start.version >= 0 else None
        self._builder = TableBuilder(before)
        self.own = PromotedManifests.at(table, outputs, start, target)
        self.log = MetadataLog.at(start, table.location, Names(target.table_id))
        if before is not None and before.is_promoted:
            self.log.add_file(before.version, before.effective_millis)
        self.reached = start.commit

    def commit(self, read: Read[TableEvent]) -> None:
        """Project one commit."""
        commit, self.reached = read.commit, read.digest
        self._builder.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            self._builder.add(transaction)
            if any(isinstance(each, _OF_FILES) for each in transaction.events):
                self.own.learn(transaction, self._builder.freeze())
        if commit.version == self._origin.promoted_in:
            self.log.begin_after_owner(_owner_files(self._origin))
        self.log.advance(
            commit.version,
            most=max_logged_versions(self._builder.schema),
            updated_ms=self._builder.effective_millis,
        )

    def put_or_log(self, version: int, wants: Wants) -> None:
        """Write the metadata file of a version that is not the newest, or only log it."""
        render = None
        if wants(version):
            self.put_metadata(self._builder.freeze())
            self.log.request(version)
        elif may_be_named(version, self._target, wants):
            render = self.renderer(self._builder.freeze())
        if self._is_promoted(version) and declares_iceberg(self._builder.schema):
            self.log.add_file(version, self._builder.effective_millis, render)

    def renderer(self, state: TableState) -> Callable[[], bytes]:
        """Return a function that renders the metadata file of the current version."""
        log = tuple(self.log.entries) if self._is_promoted(state.version) else None
        return partial(metadata_of_imported, self._table, state, log)

    def put_metadata(self, state: TableState) -> bytes:
        """Write the metadata file of the current version, after those that its log names."""
        body = self.renderer(state)()
        self.log.put_files(self._outputs)
        self._outputs.put(Names(state.table_id).metadata(state.version), body)
        return body

    @property
    def _origin(self) -> IcebergOrigin:
        return self._target.origin_of_kind(IcebergOrigin)

    def _is_promoted(self, version: int) -> bool:
        return 0 <= self._origin.promoted_in <= version


def _owner_files(origin: IcebergOrigin) -> Iterator[MetadataLogEntry]:
    """Yield the metadata files of a promoted table's former owner, oldest first, each once.

    Engines' logs may also name the newest file itself, or have times out of order, which readers
    of Iceberg reject.
    """
    names, time_millis = {posixpath.basename(origin.metadata_file)}, 0
    for each in origin.metadata_log:
        name = posixpath.basename(each.metadata_file)
        if name not in names and time_millis <= each.timestamp_ms <= origin.last_updated_millis:
            names.add(name)
            time_millis = each.timestamp_ms
            yield each
    if origin.metadata_file:
        yield MetadataLogEntry(origin.last_updated_millis, origin.metadata_file)
