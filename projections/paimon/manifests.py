"""A table's manifests and manifest lists, made from its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ledger.files.runs import Net, Placed
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.types import DataType
from ledger.snapshot_search import schemas, state_at_snapshot
from ledger.table import Table
from projections.outputs import Outputs
from projections.paimon.manifest_avro import write_manifest, write_manifest_list
from projections.paimon.manifest_entries import manifest_entry, manifest_file_meta
from projections.paimon.manifest_records import ManifestEntry, ManifestFileMeta
from projections.paimon.names import Names
from projections.paimon.paths import bucket_path, manifest_path
from projections.paimon.tiers import Era, Tile
from projections.partition_text import PartitionText, key_places

MOST_ENTRIES = 20_000
"""How many files one manifest of a rollback lists."""


class Manifests:
    """Writes the manifests that snapshots read, each once.

    Args:
        table: Whose log they are made from.
        names: Of their files.
        outputs: Where they go.
        known: Those of earlier snapshots that the next ones read again, by name.
    """

    def __init__(
        self,
        table: Table,
        names: Names,
        outputs: Outputs,
        known: dict[str, ManifestFileMeta | None],
    ) -> None:
        self._table = table
        self._names = names
        self._outputs = outputs
        self.known = dict(known)
        self.versions: dict[int, int] = {}
        self._schemas: dict[int, Schema] = {}
        self._live_parts: dict[int, int] = {}
        self._key_places: dict[tuple[int, int], tuple[int, ...]] = {}

    def learn_schema(self, schema: Schema) -> None:
        """Remember a schema, so that the history need not be searched for it."""
        self._schemas[schema.id] = schema

    def lists(self, snapshot_id: int, era: Era) -> tuple[bytes, bytes]:
        """Return a snapshot's base and delta list, after writing every manifest in them."""
        base = [*self._live(era.rollback), *map(self._tile, era.base(snapshot_id))]
        own = snapshot_id != era.rollback
        delta = [self._tile(Tile(snapshot_id, snapshot_id))] if own else []
        return (
            self._list(self._names.base_list(snapshot_id), base),
            self._list(self._names.delta_list(snapshot_id), delta),
        )

    def paths(self, snapshot_id: int, era: Era) -> Iterator[str]:
        """Yield the paths of all that a snapshot reads."""
        yield manifest_path(self._names.base_list(snapshot_id))
        yield manifest_path(self._names.delta_list(snapshot_id))
        names = (self._names.tile(each) for each in era.tiles(snapshot_id))
        yield from (manifest_path(name) for name in (*names, *self._live_names(era.rollback)))

    def forget_others(self, snapshot_id: int, era: Era) -> None:
        """Keep in mind only the manifests that the snapshots after one may read."""
        names = {self._names.tile(each) for each in era.tiles(snapshot_id)}
        names.update(self._live_names(era.rollback))
        self.known = {name: meta for name, meta in self.known.items() if name in names}

    def _live_names(self, rollback: int) -> list[str]:
        if rollback == 0:
            return []
        if rollback not in self._live_parts:
            files = state_at_snapshot(self._table.log, rollback).totals.file_count
            self._live_parts[rollback] = -(-files // MOST_ENTRIES)
        return [self._names.live(rollback, part) for part in range(self._live_parts[rollback])]

    def _list(self, name: str, metas: Iterable[ManifestFileMeta | None]) -> bytes:
        present = [each for each in metas if each is not None]
        body = write_manifest_list(present, sync_marker=self._names.sync_marker(name))
        self._outputs.put(manifest_path(name), body)
        return body

    def _tile(self, tile: Tile) -> ManifestFileMeta | None:
        name = self._names.tile(tile)
        if name not in self.known:
            first, last = self._version(tile.first), self._version(tile.last)
            net = Net(self._table.live.snapshot_changes(tile.first, tile.last, first, last))
            self.known[name] = self._manifest(name, net.rows())
        return self.known[name]

    def _version(self, snapshot_id: int) -> int:
        if snapshot_id not in self.versions:
            state = state_at_snapshot(self._table.log, snapshot_id)
            self.versions[snapshot_id] = state.version
        return self.versions[snapshot_id]

    def _live(self, rollback: int) -> list[ManifestFileMeta | None]:
        names = self._live_names(rollback)
        if not all(name in self.known for name in names):
            state = state_at_snapshot(self._table.log, rollback)
            placed = self._table.live.placed_at_state(state).values()
            ordered = sorted(placed, key=lambda each: each.change.path)
            for part, name in enumerate(names):
                rows = ordered[part * MOST_ENTRIES : (part + 1) * MOST_ENTRIES]
                self.known[name] = self._manifest(name, rows)
        return [self.known[name] for name in names]

    def _manifest(self, name: str, rows: Iterable[Placed]) -> ManifestFileMeta | None:
        """Write a manifest; one without entries is left out of every list."""
        changes = sorted((each.change for each in rows), key=_order)
        if not changes:
            return None
        entries = [self._entry(each) for each in changes]
        body = write_manifest(entries, sync_marker=self._names.sync_marker(name))
        self._outputs.put(manifest_path(name), body)
        types = self._partition_types(self._schema(changes[0].schema_id))
        return manifest_file_meta(name, len(body), entries, partition_types=types)

    def _entry(self, change: FileChange) -> ManifestEntry:
        # The schema that it was written with, also for its removal: both must name it alike.
        schema = self._schema(change.schema_id)
        places = self._places(change.schema_id, change.spec_id)
        change = replace(change, partition=tuple(change.partition[each] for each in places))
        spec = PartitionText.of(schema).spec(schema.partition_keys, change.partition)
        inside = "://" not in change.path and not change.path.startswith("/")
        return manifest_entry(
            change,
            spec_types=self._partition_types(schema),
            columns=schema.fields,
            folder=bucket_path(spec, change.bucket),
            external_path=f"{self._table.location}/{change.path}" if inside else change.path,
        )

    def _places(self, schema_id: int, spec_id: int) -> tuple[int, ...]:
        """Return where files of a spec keep what Paimon knows of their partitions."""
        known = self._key_places.get((schema_id, spec_id))
        if known is None:
            spec = self._table.state.spec_by_id(spec_id)
            known = key_places(self._schema(schema_id), spec)
            self._key_places[schema_id, spec_id] = known
        return known

    @staticmethod
    def _partition_types(schema: Schema) -> list[DataType]:
        return [schema.field(name).type for name in schema.partition_keys]

    def _schema(self, schema_id: int) -> Schema:
        if schema_id not in self._schemas:
            for schema in schemas(self._table.log):
                self._schemas.setdefault(schema.id, schema)
        return self._schemas[schema_id]


def _order(change: FileChange) -> tuple[str, str]:
    # Removals of older files first, as a reader that goes from the top would want them.
    return ("0" if change.kind == "DELETE" else "1", change.path)
