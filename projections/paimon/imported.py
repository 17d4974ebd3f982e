"""Paimon projection of tables that were imported from Paimon.

Schemas, snapshots, tags and branches are those of the source. Data files stay where they are, so
the engines' manifests are written again with the whole path of each; their names and all else that
they say stay. Everything is a function of the state and of those manifests, which never change.

Once the ledger owns the table its own snapshots follow; see `projections.paimon.imported`.

They follow the source's snapshots by their ids. The first one lists all files that were live at the
promotion, so that no list of the ledger's reads a manifest of an engine, which may be gone one day;
from there on manifests merge as of any table. A rollback to a snapshot of the source lists anew all
that it brings back.
"""

from __future__ import annotations

import io
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Self

from attrs import define, evolve

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import RolledBack, SnapshotEvent, snapshot_events
from ledger.history.older import state_at_snapshot
from ledger.locations import with_scheme
from ledger.log.time_travel import at_version
from ledger.model.errors import NotFoundError, StoreError
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.state.declared_formats import FORMATS_OPTION
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table import Table
from projections.importing.trial import SourceFiles
from projections.manifest_files.container import read_container, write_container
from projections.materialising import Progress, new_commits
from projections.outputs import Outputs
from projections.paimon.binary_row import decode_row
from projections.paimon.manifest_writing import Manifests
from projections.paimon.paths import (
    EARLIEST,
    LATEST,
    Lines,
    Names,
    Tile,
    bucket_path,
    manifest_path,
    schema_path,
    snapshot_path,
    statistics_path,
    tag_path,
)
from projections.paimon.position import PaimonPosition
from projections.paimon.row_values import scalar
from projections.paimon.schema_file import paimon_json, schema_file
from projections.paimon.snapshot_file import snapshot_file, tag_file
from projections.partition_text import PartitionText


@define
class OwnSnapshots:
    """The ledger's own snapshots of one table, in one run over its log.

    Attributes:
        table: The table.
        target: The state that the run goes to.
        last_followed: The last snapshot of its source.
        projected: The newest own snapshot whose files an earlier run left; 0 for none.
        lines: The line of each.
        manifests: Theirs.
    """

    table: Table
    target: TableState
    last_followed: int
    projected: int
    lines: Lines
    manifests: Manifests

    @classmethod
    def at(
        cls,
        table: Table,
        outputs: Outputs,
        start: PaimonPosition,
        before: TableState | None,
        target: TableState,
    ) -> Self:
        """Return those of a position."""
        paimon = target.imported_from(PaimonOrigin)
        projected = 0
        if before is not None and before.snapshot is not None and before.lists_files:
            projected = before.last_snapshot_id
        lines = Lines(start.rollbacks, paimon.source_last_id)
        manifests = Manifests(
            table,
            Names(target.table_id),
            outputs,
            known=start.manifests,
            lines=lines,
            projected=projected,
        )
        return cls(table, target, paimon.source_last_id, projected, lines, manifests)

    def learn(self, commit: Commit[TableEvent]) -> None:
        """Take in a commit's snapshots."""
        if commit.version < self.target.imported_from(PaimonOrigin).promoted_in:
            return
        for event in snapshot_events(commit):
            self._learn(event, commit.version)

    def _learn(self, event: SnapshotEvent, version: int) -> None:
        self.manifests.versions[event.snapshot_id] = version
        if isinstance(event, RolledBack):
            target = event.target_snapshot_id
            self.lines.add(event.snapshot_id, target)
            if self.last_followed < target <= self.projected:
                self.manifests.recall(state_at_snapshot(self.table.log, target))

    def named(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with its lists, after writing all that it names."""
        lists = None
        if snapshot.id <= self.projected:
            lists = self.manifests.recall(state_at_snapshot(self.table.log, snapshot.id))
        return self.manifests.named(snapshot, lists)

    def gone(self, before: TableState) -> Iterator[str]:
        """Yield what only snapshots read that are no longer reachable.

        Those that came and went meanwhile are among them, since a run that was killed may have
        written them.
        """
        since = max(before.earliest_snapshot_id, self.last_followed + 1)
        expired = range(since, self.target.earliest_snapshot_id)
        held = (each for each in before.held_snapshot_ids if each > self.last_followed)
        gone = sorted(each for each in {*held, *expired} if not self.target.reachable(each))
        yield from map(snapshot_path, expired)
        for each in gone:
            yield from self.manifests.list_paths(each)
        for tile in sorted({tile for each in gone for tile in self.lines.tiles(each)}):
            if not self._is_read(tile):
                yield self.manifests.tile_path(tile)

    def _is_read(self, tile: Tile) -> bool:
        """Whether a snapshot that can still be read reads a tile."""
        there = sorted(self.target.imported_from(PaimonOrigin).every)
        return any(
            bisect_left(there, first) < bisect_right(there, last)
            for first, last in self.lines.readers(tile)
        )

    def position(self, reached: PaimonPosition) -> PaimonPosition:
        """Return a position that knows what the next own snapshot needs."""
        self.manifests.forget_others(self.target.last_snapshot_id)
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


def project_born(
    table: Table,
    outputs: Outputs,
    start: PaimonPosition,
    target: TableState,
    on_progress: Progress,
) -> PaimonPosition:
    """Write what a stretch of the log brings; see `projections.paimon.project.Projection`.

    Raises:
        NotFoundError: The source took away what a snapshot reads.
        UnsupportedError: The source may not be read.
    """
    before = at_version(table.log, start.version) if start.version >= 0 else None
    own = None
    if target.is_promoted:
        own = OwnSnapshots.at(table, outputs, start, before, target)
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
        table: Table,
        outputs: Outputs,
        before: TableState | None,
        target: TableState,
        own: OwnSnapshots | None,
    ) -> None:
        self._outputs = outputs
        self._target = target
        self._paimon = paimon = target.imported_from(PaimonOrigin)
        self._state_before = before
        self._tags_before = before.tags if before else {}
        self._before = before.imported_from(PaimonOrigin) if before else None
        self._own = own
        self._engine = _EngineFiles(table, outputs, target.schema, paimon.location)

    def run(self) -> list[str]:
        """Write new files, then pointers; return what nothing names any more."""
        self._schemas()
        self._snapshots()
        self._tags()
        self._branches()
        live = self._paimon.snapshots
        if live:
            self._outputs.point(LATEST, b"%d" % max(live))
            self._outputs.point(EARLIEST, b"%d" % min(live))
        if self._before is None or self._state_before is None:
            return []
        gone = [*self._gone(self._before)]
        return gone if self._own is None else [*gone, *self._own.gone(self._state_before)]

    def _named(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with its lists as they stand here, after writing all that it names."""
        if self._own is not None and self._paimon.lists_files(snapshot.id):
            return self._own.named(snapshot)
        return self._engine.named(snapshot)

    def _schemas(self) -> None:
        known = self._before.schemas if self._before else {}
        for number, each in self._paimon.schemas.items():
            if known.get(number) != each:
                schema = self._paimon.schema(number)
                options = {key: it for key, it in schema.options.items() if key != FORMATS_OPTION}
                body = schema_file(evolve(schema, options=options))
                self._outputs.point(schema_path(number), body)

    def _snapshots(self) -> None:
        known = self._before.snapshots if self._before else {}
        for number, each in sorted(self._paimon.snapshots.items()):
            if known.get(number) != each:
                body = snapshot_file(self._named(each))
                self._outputs.point(snapshot_path(number), body)

    def _tags(self) -> None:
        every = self._paimon.every
        known = self._before.every if self._before else {}
        for name, tag in sorted(self._target.tags.items()):
            snapshot = every[tag.snapshot_id]
            if self._tags_before.get(name) != tag or known.get(snapshot.id) != snapshot:
                body = tag_file(
                    self._named(snapshot),
                    create_time_millis=tag.create_time_millis,
                    time_retained_millis=tag.time_retained_millis,
                )
                self._outputs.point(tag_path(name), body)

    def _branches(self) -> None:
        for path, text in sorted(_branch_files(self._paimon).items()):
            if self._before is None or _branch_files(self._before).get(path) != text:
                self._outputs.point(path, self._engine.branch_file(path, text))

    def _gone(self, before: PaimonOrigin) -> Iterator[str]:
        """Yield what the source has no more, and what only that read.

        What readers find by its name alone goes at once: they would take it for the table's.
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
    """Return the manifest lists and index manifests that something in a table names."""
    found = {
        name
        for each in paimon.every.values()
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
    """The manifests of a source's engines, as they stand in the ledger's place.

    Args:
        table: The table.
        outputs: Where they go.
        schema: The table's; partition keys never change.
        location: The source's folder.
    """

    def __init__(self, table: Table, outputs: Outputs, schema: Schema, location: str) -> None:
        self._table = table
        self._outputs = outputs
        self._schema = schema
        self._location = location
        self._names = Names(table.state.table_id)
        self._sizes: dict[str, int] = {}
        self._folders: dict[tuple[bytes, int], str] = {}

    def named(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with its lists as they stand here, after writing all that it names."""
        sizes: dict[str, Any] = {}
        for key in _LISTS:
            name = getattr(snapshot, key)
            if name is not None:
                size = self._list(name)
                if getattr(snapshot, f"{key}_size") is not None:
                    sizes[f"{key}_size"] = size
        if snapshot.index_manifest is not None:
            self._index_manifest(snapshot.index_manifest)
        if snapshot.statistics is not None:
            path = statistics_path(snapshot.statistics)
            self._outputs.put(path, self._read(path))
        return evolve(snapshot, **sizes)

    def branch_file(self, path: str, text: str) -> bytes:
        """Return a branch's file as it stands here, after writing all that it names."""
        if "/schema/" in path:
            return text.encode()
        content: dict[str, Any] = json.loads(text)
        for key in _LIST_KEYS:
            name = content.get(key)
            if name and key != "indexManifest":
                size = self._list(name)
                if content.get(f"{key}Size") is not None:
                    content[f"{key}Size"] = size
            elif name:
                self._index_manifest(name)
        return paimon_json(content).encode()

    def listed(self, name: str) -> set[str]:
        """Return the manifests that a list which stands here names; none if it is gone."""
        body = self._outputs.read(manifest_path(name))
        if body is None:
            return set()
        found = (each.get("_FILE_NAME") for each in read_container(body, name))
        return {str(each) for each in found if each}

    def _list(self, name: str) -> int:
        """Write a manifest list and all that it names; return its size in bytes."""

        def here(record: dict[str, Any]) -> dict[str, Any]:
            return {**record, "_FILE_SIZE": self._manifest(record["_FILE_NAME"])}

        return self._kept(name, here)

    def _manifest(self, name: str) -> int:
        def here(record: dict[str, Any]) -> dict[str, Any]:
            file = record["_FILE"]
            if file.get(_WHOLE_PATH) is not None:
                return record
            folder = self._folder(record["_PARTITION"], record["_BUCKET"])
            return {**record, "_FILE": {**file, _WHOLE_PATH: f"{folder}/{file['_FILE_NAME']}"}}

        return self._kept(name, here)

    def _index_manifest(self, name: str) -> int:
        def here(record: dict[str, Any]) -> dict[str, Any]:
            path = record.get(_WHOLE_PATH) or f"{self._uri}/index/{record['_FILE_NAME']}"
            return {**record, _WHOLE_PATH: path}

        return self._kept(name, here)

    def _kept(self, name: str, here: Any) -> int:
        """Write one of the engine's files with its records as they are here; return its size."""
        if name not in self._sizes:
            path = manifest_path(name)
            body = self._outputs.read(path)
            if body is None:
                source = self._read(path)
                body = write_container(
                    _with_whole_paths(_writer_schema(source)),
                    [here(each) for each in read_container(source, name)],
                    sync_marker=self._names.sync_marker(name),
                )
                self._outputs.put(path, body)
            self._sizes[name] = len(body)
        return self._sizes[name]

    def _folder(self, partition: bytes, bucket: int) -> str:
        found = self._folders.get((partition, bucket))
        if found is None:
            keys = self._schema.partition_keys
            types = [self._schema.field(each).type for each in keys]
            values = list(map(scalar, decode_row(partition, types), types))
            spec = PartitionText.of(self._schema).spec(keys, values)
            inside = self._schema.options.get("data-file.path-directory", "").strip("/")
            parts = (self._uri, inside, bucket_path(spec, bucket))
            found = "/".join(each for each in parts if each)
            self._folders[partition, bucket] = found
        return found

    @cached_property
    def _uri(self) -> str:
        return with_scheme(self._location)

    @cached_property
    def _files(self) -> SourceFiles:
        access = self._table.file_access
        access.check(self._uri)
        return SourceFiles(access)

    def _read(self, path: str) -> bytes:
        url = f"{self._location}/{path}"
        try:
            return self._files.read(url)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"{url}, which a snapshot reads, is gone: its owner let snapshots expire since; "
                "take over what is new first (lakeledger import paimon)"
            ) from error
        except OSError as error:
            raise StoreError(f"{url} cannot be read: {error}") from error


def _writer_schema(body: bytes) -> dict[str, Any]:
    import fastavro

    schema: Any = fastavro.block_reader(io.BytesIO(body)).writer_schema
    return {key: each for key, each in schema.items() if not key.startswith("__")}


def _with_whole_paths(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest's schema with a place for whole paths, which older writers had none."""
    return {**schema, "fields": list(_fields(schema["fields"]))}


def _fields(fields: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in fields:
        yield {**each, "type": _file_type(each["type"])} if each["name"] == "_FILE" else each
    names = {each["name"] for each in fields}
    if "_INDEX_TYPE" in names and _WHOLE_PATH not in names:
        yield _WHOLE_PATH_FIELD


def _file_type(record: dict[str, Any]) -> dict[str, Any]:
    if any(each["name"] == _WHOLE_PATH for each in record["fields"]):
        return record
    return {**record, "fields": [*record["fields"], _WHOLE_PATH_FIELD]}


_WHOLE_PATH_FIELD: Final = {"name": _WHOLE_PATH, "type": ["null", "string"], "default": None}
