"""Manifests of a table: file changes as entries and back, and manifest lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import evolve
from msgspec.structs import replace

from ledger.files.runs import Net, Placed
from ledger.history.older import schema_by_id, state_at_snapshot
from ledger.locations import below
from ledger.model.errors import DamagedLogError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.types import DataType
from ledger.state.table import TableState
from ledger.table import Table
from projections.outputs import Outputs
from projections.paimon.manifest_avro import (
    ManifestEntry,
    ManifestFileMeta,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from projections.paimon.manifest_entries import manifest_entry, manifest_file_meta
from projections.paimon.paths import Lines, Names, Tile, bucket_path, manifest_path
from projections.partition_text import PartitionText, key_places


class Manifests:
    """Writes the manifests that snapshots read, each once.

    Args:
        table: Whose log they are made from.
        names: Of their files.
        outputs: Where they go.
        known: Those of earlier snapshots that the next ones read again, by name.
        lines: Of the snapshots; whoever goes through the log adds the rollbacks.
        projected: The newest snapshot whose files an earlier run left; 0 for none.
    """

    def __init__(
        self,
        table: Table,
        names: Names,
        outputs: Outputs,
        *,
        known: dict[str, ManifestFileMeta | None],
        lines: Lines,
        projected: int,
    ) -> None:
        self._table = table
        self._names = names
        self._outputs = outputs
        self.known = dict(known)
        self._lines = lines
        self._projected = projected
        self.versions: dict[int, int] = {}
        self._schemas: dict[int, Schema] = {}
        self._key_places: dict[tuple[int, int], tuple[int, ...]] = {}

    def learn_schema(self, schema: Schema) -> None:
        """Remember a schema, so that the history need not be searched for it."""
        self._schemas[schema.id] = schema

    def lists(self, snapshot_id: int) -> tuple[bytes, bytes]:
        """Return a snapshot's base and delta list, after writing every manifest in them."""
        keep = self._outputs.point if snapshot_id <= self._projected else self._outputs.put
        bodies = self._bodies(snapshot_id, [*map(self._tile, self._lines.tiles(snapshot_id))])
        for name, body in zip(self._list_names(snapshot_id), bodies, strict=True):
            keep(manifest_path(name), body)
        return bodies

    def named(self, snapshot: Snapshot, lists: tuple[bytes, bytes] | None = None) -> Snapshot:
        """Return a snapshot with its lists, after writing all that it names.

        Args:
            snapshot: As the log has it.
            lists: Its base and delta list, where they stand already.
        """
        base, delta = lists or self.lists(snapshot.id)
        base_name, delta_name = self._list_names(snapshot.id)
        return evolve(
            snapshot,
            uuid=snapshot.uuid or self._names.snapshot_uuid(snapshot.id),
            base_manifest_list=base_name,
            base_manifest_list_size=len(base),
            delta_manifest_list=delta_name,
            delta_manifest_list_size=len(delta),
        )

    def recall(self, state: TableState) -> tuple[bytes, bytes] | None:
        """Return the lists of a state's snapshot as an earlier run left them, and remember them.

        What stands there is believed only as far as it is what the ledger would write; None where
        it is not.
        """
        snapshot_id = state.last_snapshot_id
        if snapshot_id > self._projected:
            return None
        found = [self._outputs.read(manifest_path(n)) for n in self._list_names(snapshot_id)]
        base, delta = found
        if base is None or delta is None:
            return None
        try:
            metas = {
                each.file_name: each
                for body in (base, delta)
                for each in read_manifest_list(body, f"a list of snapshot {snapshot_id}")
            }
        except (DamagedLogError, UnsupportedError):
            return None
        names = [self._names.tile(each) for each in self._lines.tiles(snapshot_id)]
        files = sum(each.num_added_files - each.num_deleted_files for each in metas.values())
        told = [metas.get(name) for name in names]
        # One without entries is not listed: whether one was left out wrongly, the sum tells.
        is_whole = files == state.totals.file_count
        if not is_whole or self._bodies(snapshot_id, told) != (base, delta):
            return None
        self.known.update(zip(names, told, strict=True))
        return base, delta

    def list_paths(self, snapshot_id: int) -> Iterator[str]:
        """Yield the paths of a snapshot's lists, which no other snapshot reads."""
        return map(manifest_path, self._list_names(snapshot_id))

    def tile_path(self, tile: Tile) -> str:
        """Return the path of a tile's manifest."""
        return manifest_path(self._names.tile(tile))

    def forget_others(self, snapshot_id: int) -> None:
        """Keep in mind only the manifests that the snapshots after one may read."""
        names = {self._names.tile(each) for each in self._lines.tiles(snapshot_id)}
        self.known = {name: meta for name, meta in self.known.items() if name in names}

    def _list_names(self, snapshot_id: int) -> tuple[str, str]:
        return self._names.lists(snapshot_id)

    def _bodies(
        self, snapshot_id: int, metas: Sequence[ManifestFileMeta | None]
    ) -> tuple[bytes, bytes]:
        """Return a snapshot's lists of its manifests, given newest first."""
        own = 0 if self._lines.is_rollback(snapshot_id) else 1
        names = self._list_names(snapshot_id)
        return self._list(names[0], metas[own:]), self._list(names[1], metas[:own])

    def _list(self, name: str, metas: Sequence[ManifestFileMeta | None]) -> bytes:
        present = [each for each in reversed(metas) if each is not None]
        return write_manifest_list(present, sync_marker=self._names.sync_marker(name))

    def _tile(self, tile: Tile) -> ManifestFileMeta | None:
        name = self._names.tile(tile)
        if name not in self.known:
            net = Net()
            for begin, last in self._lines.runs(tile):
                first = begin
                if self._lines.begins_anew(begin):
                    state = state_at_snapshot(self._table.log, begin)
                    net = Net(self._table.live.placed_at_state(state).values())
                    first = begin + 1
                    if last == begin:
                        continue
                versions = self._version(first), self._version(last)
                net.apply(self._table.live.snapshot_changes(first, last, *versions))
            keep = self._outputs.point if tile.last <= self._projected else self._outputs.put
            self.known[name] = self._manifest(name, net.rows(), keep)
        return self.known[name]

    def _version(self, snapshot_id: int) -> int:
        if snapshot_id not in self.versions:
            state = state_at_snapshot(self._table.log, snapshot_id)
            self.versions[snapshot_id] = state.version
        return self.versions[snapshot_id]

    def _manifest(
        self, name: str, rows: Iterable[Placed], keep: Callable[[str, bytes], None]
    ) -> ManifestFileMeta | None:
        """Write a manifest; one without entries is left out of every list."""
        told = self._table.log.personal.columns.rendered(each.change for each in rows)
        changes = sorted(told, key=_order)
        if not changes:
            return None
        entries = [self._entry(each) for each in changes]
        body = write_manifest(entries, sync_marker=self._names.sync_marker(name))
        keep(manifest_path(name), body)
        types = self._partition_types(self._schema(changes[0].schema_id))
        return manifest_file_meta(name, len(body), entries, partition_types=types)

    def _entry(self, change: FileChange) -> ManifestEntry:
        # The schema that it was written with, also for its removal: both must name it alike.
        schema = self._schema(change.schema_id)
        places = self._places(change.schema_id, change.spec_id)
        change = replace(change, partition=tuple(change.partition[each] for each in places))
        spec = PartitionText.of(schema).spec(schema.partition_keys, change.partition)
        return manifest_entry(
            change,
            spec_types=self._partition_types(schema),
            columns=schema.fields,
            folder=bucket_path(spec, change.bucket),
            external_path=below(self._table.data_location, change.path),
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
            self._schemas[schema_id] = schema_by_id(self._table.log, schema_id)
        return self._schemas[schema_id]


def _order(change: FileChange) -> tuple[str, str]:
    # Removals of older files first, as a reader that goes from the top would want them.
    return ("0" if change.kind == "DELETE" else "1", change.path)
