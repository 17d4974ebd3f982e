"""Paimon projection of native and imported tables: incremental, restartable.

New files come first and pointers last. The output depends only on the log, so concurrent or
restarted projectors write the same bytes.

Schemas, snapshots, tags and branches of an imported table are those of the source. Data files keep
their places, so the engines' manifests are rewritten with the absolute path of each; their names
and all other contents are kept. Manifests of engines never change, so the output depends only on
the state and on them.

Once the ledger owns an imported table, its own snapshots continue the ids of the source's. The
first one lists all files that were live at the promotion, so that no list of the ledger's refers to
a manifest of an engine, which may be deleted one day; later manifests merge as in any table. A
rollback to a snapshot of the source lists all files that it restores.
"""

from __future__ import annotations

import io
import json
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Self

from attrs import define, evolve, field, frozen

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import (
    RolledBack,
    SnapshotEvent,
    TagCreated,
    TagReplaced,
    snapshot_events,
)
from ledger.history.older import state_at_snapshot
from ledger.locations import with_scheme
from ledger.log.replay import Read
from ledger.log.time_travel import at_version, effective_millis, head_state
from ledger.model.errors import InvalidInputError, NotFoundError, StoreError, UnsupportedError
from ledger.model.instant import corrected_commit_millis
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.snapshots import snapshot_of
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.table_handle import TableHandle
from projections.importing.deriving import properties_of_options
from projections.importing.trial import SourceFiles
from projections.manifest_files.container import read_container, write_container
from projections.manifest_files.lists import UnlistedFiles
from projections.materialising import Progress, new_commits, refuse_problems
from projections.outputs import Outputs, PositionFile
from projections.paimon.binary_row import decode_row
from projections.paimon.manifest_avro import ManifestFileMeta
from projections.paimon.manifest_writing import ManifestWriter
from projections.paimon.paths import (
    EARLIEST,
    FOLDERS,
    LATEST,
    PaimonFileNames,
    SnapshotLines,
    Tile,
    bucket_path,
    manifest_path,
    schema_path,
    snapshot_path,
    statistics_path,
    tag_path,
)
from projections.paimon.row_values import scalar
from projections.paimon.rules import origin_problems
from projections.paimon.schema_file import paimon_json, schema_file
from projections.paimon.snapshot_file import snapshot_file, tag_file, tag_from_json
from projections.partition_text import PartitionText

RENDERER = 2
"""Version of the file layout; files of another version are rewritten. Version 1 listed, for every
rollback, all files that were live then; without rollbacks its files are the same."""


@frozen
class PaimonPosition:
    """Progress of a projection.

    Attributes:
        version: The last commit applied; -1 before the first.
        rollbacks: The ids of all rollbacks so far and of their targets, ascending.
        manifests: By name, those that the next snapshot may read; None for one without entries.
        unlisted: See `UnlistedFiles.flips`.
        renderer: The version of the file layout; for an older one only version and rollbacks are
            set here, the latter without their targets.
        commit: The digest of the commit at that version; empty where it was not stored.
        garbage: Obsolete files that are still to be deleted.
        location: The table's URL, by which manifests name files that are not in their bucket's
            folder; empty where it was not stored.
        leaving_since: See `projections.outputs.FilesPosition`.
    """

    version: int = -1
    rollbacks: tuple[tuple[int, int], ...] = ()
    manifests: dict[str, ManifestFileMeta | None] = field(factory=dict, hash=False)
    unlisted: tuple[int, ...] = ()
    renderer: int = RENDERER
    commit: str = ""
    garbage: tuple[str, ...] = ()
    location: str = ""
    leaving_since: int = 0

    @property
    def has_older_layout(self) -> bool:
        """Return whether the files have an older layout."""
        return self.renderer != RENDERER

    def with_pending_deletes(self, garbage: tuple[str, ...], since: int) -> PaimonPosition:
        """Return this position with other garbage and another time of the oldest delete."""
        return evolve(self, garbage=garbage, leaving_since=since)


FILE = PositionFile("paimon", PaimonPosition())


@define
class NativeSnapshots:
    """The ledger's own snapshots of one table, in one run over its log.

    Attributes:
        table: The table.
        target: The state to reach.
        last_followed: The last snapshot of its source.
        projected: The newest own snapshot whose files an earlier run wrote; 0 for none.
        lines: The line of each snapshot.
        manifests: Their manifests.
    """

    table: TableHandle
    target: TableState
    last_followed: int
    projected: int
    lines: SnapshotLines
    manifests: ManifestWriter

    @classmethod
    def at(
        cls,
        table: TableHandle,
        outputs: Outputs,
        start: PaimonPosition,
        before: TableState | None,
        target: TableState,
    ) -> Self:
        """Return the snapshots at a position."""
        paimon = target.origin_of_kind(PaimonOrigin)
        projected = 0
        if before is not None and before.snapshot is not None and before.lists_files:
            projected = before.last_snapshot_id
        lines = SnapshotLines(start.rollbacks, paimon.source_last_id)
        manifests = ManifestWriter(
            table,
            PaimonFileNames(target.table_id),
            outputs,
            known=start.manifests,
            lines=lines,
            projected=projected,
        )
        return cls(table, target, paimon.source_last_id, projected, lines, manifests)

    def learn(self, commit: Commit[TableEvent]) -> None:
        """Process a commit's snapshots."""
        if commit.version < self.target.origin_of_kind(PaimonOrigin).promoted_in:
            return
        for event in snapshot_events(commit):
            self._process_snapshot(event, commit.version)

    def _process_snapshot(self, event: SnapshotEvent, version: int) -> None:
        self.manifests.versions[event.snapshot_id] = version
        if isinstance(event, RolledBack):
            target = event.target_snapshot_id
            self.lines.add(event.snapshot_id, target)
            if self.last_followed < target <= self.projected:
                self.manifests.restore_lists(state_at_snapshot(self.table.log, target))

    def named(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with its lists, after writing all that it names."""
        lists = None
        if snapshot.id <= self.projected:
            lists = self.manifests.restore_lists(state_at_snapshot(self.table.log, snapshot.id))
        return self.manifests.named(snapshot, lists)

    def gone(self, before: TableState) -> Iterator[str]:
        """Yield the files that only unreachable snapshots read.

        Snapshots that were made and removed since are included, since a killed run may have written
        their files.
        """
        since = max(before.earliest_snapshot_id, self.last_followed + 1)
        expired = range(since, self.target.earliest_snapshot_id)
        held = (each for each in before.held_snapshot_ids if each > self.last_followed)
        gone = sorted(each for each in {*held, *expired} if not self.target.reachable(each))
        yield from map(snapshot_path, expired)
        for each in gone:
            yield from self.manifests.list_paths(each)
        for tile in sorted({tile for each in gone for tile in self.lines.tiles(each)}):
            if not self._is_tile_read(tile):
                yield self.manifests.tile_path(tile)

    def _is_tile_read(self, tile: Tile) -> bool:
        """Return whether a reachable snapshot reads a tile."""
        there = sorted(self.target.origin_of_kind(PaimonOrigin).readable_snapshots)
        return any(
            bisect_left(there, first) < bisect_right(there, last)
            for first, last in self.lines.readers(tile)
        )

    def position(self, reached: PaimonPosition) -> PaimonPosition:
        """Return a position with the data that the next own snapshot needs."""
        self.manifests.prune_cache(self.target.last_snapshot_id)
        return PaimonPosition(
            reached.version,
            self.lines.rollbacks,
            self.manifests.known,
            commit=reached.commit,
            garbage=reached.garbage,
            location=self.table.location,
        )


_LISTS: Final = ("base_manifest_list", "delta_manifest_list", "changelog_manifest_list")
_WHOLE_PATH: Final = "_EXTERNAL_PATH"


def project_imported(
    table: TableHandle,
    outputs: Outputs,
    start: PaimonPosition,
    target: TableState,
    on_progress: Progress,
) -> PaimonPosition:
    """Project a range of the log; see `projections.paimon.project.PaimonProjection`.

    Raises:
        NotFoundError: The source deleted a file that a snapshot reads.
        UnsupportedError: The source may not be read.
    """
    before = at_version(table.log, start.version) if start.version >= 0 else None
    own = None
    if target.is_promoted:
        own = NativeSnapshots.at(table, outputs, start, before, target)
    commit = start.commit
    for read in new_commits(table, start, target, on_progress):
        commit = read.digest
        if own is not None:
            own.learn(read.commit)
    gone = _ImportedRun(table, outputs, before, target, own).run()
    reached = PaimonPosition(version=target.version, commit=commit, garbage=tuple(gone))
    return reached if own is None else own.position(reached)


class _ImportedRun:
    def __init__(
        self,
        table: TableHandle,
        outputs: Outputs,
        before: TableState | None,
        target: TableState,
        own: NativeSnapshots | None,
    ) -> None:
        self._outputs = outputs
        self._target = target
        self._paimon = paimon = target.origin_of_kind(PaimonOrigin)
        self._state_before = before
        self._tags_before = before.tags if before else {}
        self._before = before.origin_of_kind(PaimonOrigin) if before else None
        self._own = own
        self._engine = _EngineFiles(
            table, outputs, target.schema, paimon.folder(table.data_location)
        )

    def run(self) -> list[str]:
        """Write new files, then pointers; return the obsolete files."""
        self._write_schemas()
        self._write_snapshots()
        self._write_tags()
        self._write_branches()
        live = self._paimon.snapshots
        if live:
            self._outputs.point(LATEST, b"%d" % max(live))
            self._outputs.point(EARLIEST, b"%d" % min(live))
        if self._before is None or self._state_before is None:
            return []
        gone = [*self._obsolete_files(self._before)]
        return gone if self._own is None else [*gone, *self._own.gone(self._state_before)]

    def _named(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with its lists rewritten, after writing all that it names."""
        if self._own is not None and self._paimon.lists_files(snapshot.id):
            return self._own.named(snapshot)
        return self._engine.named(snapshot)

    def _write_schemas(self) -> None:
        known = self._before.schemas if self._before else {}
        for number, each in self._paimon.schemas.items():
            if known.get(number) != each:
                schema = self._paimon.schema(number)
                options = properties_of_options(schema.options)
                body = schema_file(evolve(schema, options=options))
                self._outputs.point(schema_path(number), body)

    def _write_snapshots(self) -> None:
        known = self._before.snapshots if self._before else {}
        for number, each in sorted(self._paimon.snapshots.items()):
            if known.get(number) != each:
                body = snapshot_file(self._named(each))
                self._outputs.point(snapshot_path(number), body)

    def _write_tags(self) -> None:
        readable_snapshots = self._paimon.readable_snapshots
        known = self._before.readable_snapshots if self._before else {}
        for name, tag in sorted(self._target.tags.items()):
            snapshot = readable_snapshots[tag.snapshot_id]
            if self._tags_before.get(name) != tag or known.get(snapshot.id) != snapshot:
                body = tag_file(
                    self._named(snapshot),
                    create_time_millis=tag.create_time_millis,
                    time_retained_millis=tag.time_retained_millis,
                )
                self._outputs.point(tag_path(name), body)

    def _write_branches(self) -> None:
        for path, text in sorted(_branch_files(self._paimon).items()):
            if self._before is None or _branch_files(self._before).get(path) != text:
                self._outputs.point(path, self._engine.branch_file(path, text))

    def _obsolete_files(self, before: PaimonOrigin) -> Iterator[str]:
        """Yield files that the source has no more, or that only those read.

        Files that readers discover by name are deleted at once, so that readers ignore them.
        """
        paimon, outputs = self._paimon, self._outputs
        oldest = min(paimon.snapshots, default=0)
        snapshots = sorted(before.snapshots.keys() - paimon.snapshots.keys())
        found = [
            *(schema_path(each) for each in before.schemas.keys() - paimon.schemas.keys()),
            *(snapshot_path(each) for each in snapshots if each >= oldest),
            *(tag_path(each) for each in self._tags_before.keys() - self._target.tags.keys()),
            *(_branch_files(before).keys() - _branch_files(paimon).keys()),
        ]
        for each in sorted(found):
            outputs.remove(each)
        yield from (snapshot_path(each) for each in snapshots if each < oldest)
        unread = _named(before) - _named(paimon)
        if not unread:
            return
        read = {each for name in _named(paimon) for each in self._engine.listed(name)}
        for name in sorted(unread):
            yield from (manifest_path(each) for each in sorted(self._engine.listed(name) - read))
            yield manifest_path(name)


def _branch_files(paimon: PaimonOrigin) -> dict[str, str]:
    return {
        f"branch/branch-{name}/{path}": text
        for name, files in paimon.branches.items()
        for path, text in files.items()
    }


def _named(paimon: PaimonOrigin) -> set[str]:
    """Return the manifest lists and index manifests that a table's metadata names."""
    found = {
        name
        for each in paimon.readable_snapshots.values()
        for name in (*(getattr(each, key) for key in _LISTS), each.index_manifest)
        if name is not None
    }
    for path, text in _branch_files(paimon).items():
        if "/schema/" not in path:
            content = json.loads(text)
            found.update(content[key] for key in _LIST_KEYS if content.get(key))
    return found


_LIST_KEYS: Final = (
    "baseManifestList",
    "deltaManifestList",
    "changelogManifestList",
    "indexManifest",
)


class _EngineFiles:
    """The manifests of a source's engines, rewritten for the ledger's location.

    Args:
        table: The table.
        outputs: Destination of the files.
        schema: The table's schema; partition keys never change.
        location: The source's folder.
    """

    def __init__(self, table: TableHandle, outputs: Outputs, schema: Schema, location: str) -> None:
        self._table = table
        self._outputs = outputs
        self._schema = schema
        self._location = location
        self._names = PaimonFileNames(table.state.table_id)
        self._sizes: dict[str, int] = {}
        self._folders: dict[tuple[bytes, int], str] = {}

    def named(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with its lists rewritten, after writing all that it names."""
        sizes: dict[str, Any] = {}
        for key in _LISTS:
            name = getattr(snapshot, key)
            if name is not None:
                size = self._write_list(name)
                if getattr(snapshot, f"{key}_size") is not None:
                    sizes[f"{key}_size"] = size
        if snapshot.index_manifest is not None:
            self._write_index_manifest(snapshot.index_manifest)
        if snapshot.statistics is not None:
            path = statistics_path(snapshot.statistics)
            self._outputs.put(path, self._read_source_file(path))
        return evolve(snapshot, **sizes)

    def branch_file(self, path: str, text: str) -> bytes:
        """Return a branch's rewritten file, after writing all that it names."""
        if "/schema/" in path:
            return text.encode()
        content: dict[str, Any] = json.loads(text)
        for key in _LIST_KEYS:
            name = content.get(key)
            if name and key != "indexManifest":
                size = self._write_list(name)
                if content.get(f"{key}Size") is not None:
                    content[f"{key}Size"] = size
            elif name:
                self._write_index_manifest(name)
        return paimon_json(content).encode()

    def listed(self, name: str) -> set[str]:
        """Return the manifests in a list at this location; none if it is missing."""
        body = self._outputs.read(manifest_path(name))
        if body is None:
            return set()
        found = (each.get("_FILE_NAME") for each in read_container(body, name))
        return {str(each) for each in found if each}

    def _write_list(self, name: str) -> int:
        """Write a manifest list and all that it names; return its size in bytes."""

        def here(record: dict[str, Any]) -> dict[str, Any]:
            return {**record, "_FILE_SIZE": self._write_manifest(record["_FILE_NAME"])}

        return self._rewrite_manifest(name, here)

    def _write_manifest(self, name: str) -> int:
        def here(record: dict[str, Any]) -> dict[str, Any]:
            file = record["_FILE"]
            if file.get(_WHOLE_PATH) is not None:
                return record
            folder = self._bucket_folder(record["_PARTITION"], record["_BUCKET"])
            return {**record, "_FILE": {**file, _WHOLE_PATH: f"{folder}/{file['_FILE_NAME']}"}}

        return self._rewrite_manifest(name, here)

    def _write_index_manifest(self, name: str) -> int:
        def here(record: dict[str, Any]) -> dict[str, Any]:
            path = record.get(_WHOLE_PATH) or f"{self._source_uri}/index/{record['_FILE_NAME']}"
            return {**record, _WHOLE_PATH: path}

        return self._rewrite_manifest(name, here)

    def _rewrite_manifest(self, name: str, here: Any) -> int:
        """Write an engine's file with its records rewritten; return its size."""
        if name not in self._sizes:
            path = manifest_path(name)
            body = self._outputs.read(path)
            if body is None:
                source = self._read_source_file(path)
                body = write_container(
                    _with_external_paths(_writer_schema(source)),
                    [here(each) for each in read_container(source, name)],
                    sync_marker=self._names.sync_marker(name),
                )
                self._outputs.put(path, body)
            self._sizes[name] = len(body)
        return self._sizes[name]

    def _bucket_folder(self, partition: bytes, bucket: int) -> str:
        found = self._folders.get((partition, bucket))
        if found is None:
            keys = self._schema.partition_keys
            types = [self._schema.field(each).type for each in keys]
            values = list(map(scalar, decode_row(partition, types), types))
            spec = PartitionText.of(self._schema).spec(keys, values)
            inside = self._schema.options.get("data-file.path-directory", "").strip("/")
            parts = (self._source_uri, inside, bucket_path(spec, bucket))
            found = "/".join(each for each in parts if each)
            self._folders[partition, bucket] = found
        return found

    @cached_property
    def _source_uri(self) -> str:
        return with_scheme(self._location)

    @cached_property
    def _source_files(self) -> SourceFiles:
        access = self._table.file_access
        access.check(self._source_uri)
        return SourceFiles(access)

    def _read_source_file(self, path: str) -> bytes:
        url = f"{self._location}/{path}"
        try:
            return self._source_files.read(url)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"{url}, which a snapshot reads, is missing: its owner expired snapshots since; "
                "import new commits first (lakeledger import paimon)"
            ) from error
        except OSError as error:
            raise StoreError(f"{url} cannot be read: {error}") from error


def _writer_schema(body: bytes) -> dict[str, Any]:
    import fastavro

    schema: Any = fastavro.block_reader(io.BytesIO(body)).writer_schema
    return {key: each for key, each in schema.items() if not key.startswith("__")}


def _with_external_paths(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest's schema with the field for external paths, which older writers lacked."""
    return {**schema, "fields": list(_external_path_fields(schema["fields"]))}


def _external_path_fields(fields: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in fields:
        yield {**each, "type": _with_path_field(each["type"])} if each["name"] == "_FILE" else each
    names = {each["name"] for each in fields}
    if "_INDEX_TYPE" in names and _WHOLE_PATH not in names:
        yield _WHOLE_PATH_FIELD


def _with_path_field(record: dict[str, Any]) -> dict[str, Any]:
    if any(each["name"] == _WHOLE_PATH for each in record["fields"]):
        return record
    return {**record, "fields": [*record["fields"], _WHOLE_PATH_FIELD]}


_WHOLE_PATH_FIELD: Final = {"name": _WHOLE_PATH, "type": ["null", "string"], "default": None}


@frozen
class PaimonProjection:
    """One run over a table's log, from a position to a version.

    Attributes:
        table: The table.
        outputs: Destination of the files.
        start: The position of the previous run.
        target: The state at the version to reach.
    """

    table: TableHandle
    outputs: Outputs
    start: PaimonPosition
    target: TableState

    def run(self, on_progress: Progress) -> PaimonPosition:
        """Write new files and delete expired ones; return the new position.

        Raises:
            DamagedLogError: The log does not continue from the previous run's position.
            StoreError: A foreign file is in a place of the ledger's.
            UnsupportedError: Paimon has no such files.
        """
        refuse_problems(self.table, origin_problems(self.target))
        if isinstance(self.target.origin, PaimonOrigin):
            return project_imported(self.table, self.outputs, self.start, self.target, on_progress)
        run = _NativeRun(self)
        for read in new_commits(self.table, self.start, self.target, on_progress):
            run.commit(read)
        return run.finish()


def _names(body: bytes | None, snapshot_ids: Collection[int]) -> bool:
    """Return whether a file is a tag's that names one of some snapshots."""
    try:
        return body is not None and tag_from_json(body).snapshot.id in snapshot_ids
    except InvalidInputError:
        return False


class _NativeRun:
    def __init__(self, projection: PaimonProjection) -> None:
        self._table = projection.table
        self._outputs = projection.outputs
        self._target = projection.target
        self._start = projection.start
        self._commit = projection.start.commit
        started = self._start.version >= 0
        self._before = at_version(self._table.log, self._start.version) if started else None
        self._builder = TableBuilder(self._before)
        self._projected = self._before.last_snapshot_id if self._before else 0
        self._begins_empty = self._before is None and not any(
            any(self._outputs.paths(folder)) for folder in FOLDERS
        )
        self._lines = SnapshotLines(self._start.rollbacks)
        self._tag_names = set(self._before.tags if self._before else ())
        self._names = PaimonFileNames(self._target.table_id)
        self._manifests = ManifestWriter(
            self._table,
            self._names,
            self._outputs,
            known=self._start.manifests,
            lines=self._lines,
            projected=self._projected,
        )
        self._unlisted = UnlistedFiles(self._start.unlisted)
        self._schema_id = self._before.schema.id if self._before else -1
        if self._before is not None:
            self._manifests.learn_schema(self._before.schema)

    def commit(self, read: Read[TableEvent]) -> None:
        """Project one commit's schemas and snapshots."""
        commit, self._commit = read.commit, read.digest
        self._builder.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            self._builder.add(transaction)
            self._schema()
            for event in transaction.events:
                if isinstance(event, SnapshotEvent):
                    self._write_snapshot(event, commit)
                elif isinstance(event, TagCreated):
                    self._tag_names.add(event.tag_name)

    def _schema(self) -> None:
        if self._builder.schema_id == self._schema_id:
            return
        schema = self._builder.freeze().schema
        self._schema_id = schema.id
        self._manifests.learn_schema(schema)
        self._outputs.put(schema_path(schema.id), schema_file(schema))

    def _write_snapshot(self, event: SnapshotEvent, commit: Commit[TableEvent]) -> None:
        snapshot_id = event.snapshot_id
        self._manifests.versions[snapshot_id] = commit.version
        if isinstance(event, RolledBack):
            self._record_rollback(snapshot_id, event.target_snapshot_id)
        self._unlisted.learn(event)
        if self._target.reachable(snapshot_id):
            moment = effective_millis(commit, self._target.corrections)
            content = snapshot_file(self._named(snapshot_of(event, moment)))
            if snapshot_id >= self._target.earliest_snapshot_id:
                self._put_snapshot(event, commit, content)

    def _put_snapshot(
        self, event: SnapshotEvent, commit: Commit[TableEvent], content: bytes
    ) -> None:
        """Write a snapshot's file, also over the one from before a clock correction.

        Paimon searches its snapshots by their times, which must not go back.
        """
        path = snapshot_path(event.snapshot_id)
        known = self._target.corrections
        for since, each in enumerate(known):
            moment = effective_millis(commit, known[:since])
            if commit.version < each.version and moment > each.true_time_millis:
                before = snapshot_file(self._named(snapshot_of(event, moment)))
                if self._outputs.read(path) == before:
                    self._outputs.point(path, content)
        self._outputs.put(path, content)

    def _record_rollback(self, snapshot_id: int, target: int) -> None:
        self._lines.add(snapshot_id, target)
        if target <= self._projected:
            # The target's lists name its files: the log need not be read again.
            self._manifests.restore_lists(state_at_snapshot(self._table.log, target))

    def _named(self, snapshot: Snapshot, lists: tuple[bytes, bytes] | None = None) -> Snapshot:
        """Return a snapshot with its lists, after writing all that it names.

        Args:
            snapshot: As the log has it.
            lists: Its base and delta list, where they exist already.
        """
        if snapshot.base_manifest_list is not None:
            # Its engine wrote its own manifests.
            return snapshot
        if self._target.schema.primary_keys:
            raise UnsupportedError(
                f"snapshot {snapshot.id} of {self._table.identifier} lists files of a table with a "
                "primary key, whose keys and levels only its engine knows: let the engine commit "
                "with manifest lists of its own"
            )
        if self._unlisted.held_by(snapshot.id):
            raise UnsupportedError(
                f"snapshot {snapshot.id} of {self._table.identifier} holds files that only "
                "manifests of their engine list, and names no manifest lists itself, so that "
                "Paimon's readers would miss them: let the engine make such snapshots (append, "
                "overwrite, roll back) and record the lists that it writes"
            )
        return self._manifests.named(snapshot, lists)

    def finish(self) -> PaimonPosition:
        """Write tags and hints; return the position with the files no longer reachable."""
        self._write_tags()
        latest = self._target.last_snapshot_id
        if latest:
            self._outputs.point(LATEST, b"%d" % latest)
            self._outputs.point(EARLIEST, b"%d" % self._target.earliest_snapshot_id)
            self._manifests.prune_cache(latest)
        return PaimonPosition(
            self._target.version,
            self._lines.rollbacks,
            self._manifests.known,
            self._unlisted.flips,
            commit=self._commit,
            garbage=tuple(self._expired_files()) if latest else (),
            location=self._table.location,
        )

    def _write_tags(self) -> None:
        before = self._before.tags if self._before else {}
        for name, tag in sorted(self._target.tags.items()):
            if before.get(name) != tag or self._before is None:
                self._put_tag(name, self._tag_file(tag))
        # Also tags made and removed since: a killed run may have written them.
        for name in sorted(self._tag_names - set(self._target.tags)):
            there = self._outputs.read(tag_path(name))
            if there is not None and (
                self._is_own_tag_file(name) or _names(there, self._snapshots_of_tag(name))
            ):
                self._outputs.remove(tag_path(name))

    def _put_tag(self, name: str, body: bytes) -> None:
        """Write a tag's file, also over its previous version; a foreign file is kept.

        Its previous version is that of the position, or one that a killed run wrote for a later
        commit; for a tag that was set once it can only equal this one.
        """
        path = tag_path(name)
        there = self._outputs.read(path)
        if there not in {None, body}:
            named = () if self._is_own_tag_file(name) else self._snapshots_of_tag(name)
            if self._is_own_tag_file(name) or (len(named) > 1 and _names(there, named)):
                self._outputs.point(path, body)
                return
        self._outputs.put(path, body)

    def _is_own_tag_file(self, name: str) -> bool:
        """Return whether the file in a tag's place is the ledger's, in any version."""
        if self._before is not None and name in self._before.tags:
            return True
        # A clock that was corrected since changes files that exist already.
        corrected = head_state(self._table.log).corrections
        return any(each.version > self._start.version for each in corrected)

    def _snapshots_of_tag(self, name: str) -> list[int]:
        """Return the snapshots that a tag was set to since the position, to the log's end."""
        log = self._table.log
        return [
            event.snapshot_id
            for read in log.commits(self._start.version + 1, head_state(log).version)
            for transaction in read.commit.transactions
            for event in transaction.events
            if isinstance(event, TagCreated | TagReplaced) and event.tag_name == name
        ]

    def _tag_file(self, tag: Tag) -> bytes:
        state = state_at_snapshot(self._table.log, tag.snapshot_id)
        snapshot = state.snapshot
        if snapshot is None:
            raise UnsupportedError(f"tag {tag.name!r} names a snapshot that does not exist")
        moment = corrected_commit_millis(
            self._target.corrections, state.version, snapshot.time_millis
        )
        return tag_file(
            self._named(evolve(snapshot, time_millis=moment), self._manifests.restore_lists(state)),
            create_time_millis=tag.create_time_millis,
            time_retained_millis=tag.time_retained_millis,
        )

    def _expired_files(self) -> Iterator[str]:
        """Yield the files that only unreachable snapshots read.

        Snapshots that were made and removed since are included, since a killed run may have written
        their files.
        """
        if self._begins_empty:
            return
        before = self._before
        since = before.earliest_snapshot_id if before else 1
        expired = range(since, self._target.earliest_snapshot_id)
        held = before.held_snapshot_ids if before else frozenset()
        gone = [each for each in held.union(expired) if not self._target.reachable(each)]
        for snapshot_id in expired:
            yield snapshot_path(snapshot_id)
        for snapshot_id in gone:
            yield from self._manifests.list_paths(snapshot_id)
        for tile in sorted({tile for each in gone for tile in self._lines.tiles(each)}):
            if not self._is_tile_read(tile):
                yield self._manifests.tile_path(tile)

    def _is_tile_read(self, tile: Tile) -> bool:
        """Return whether a reachable snapshot reads a tile."""
        target, held = self._target, self._held_snapshot_ids
        for first, last in self._lines.readers(tile):
            if max(first, target.earliest_snapshot_id) <= min(last, target.last_snapshot_id):
                return True
            if bisect_left(held, first) < bisect_right(held, last):
                return True
        return False

    @cached_property
    def _held_snapshot_ids(self) -> list[int]:
        return sorted(self._target.held_snapshot_ids)
