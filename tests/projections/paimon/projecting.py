"""Random histories of tables that Paimon can read, and what a projection left on a store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache, partial

from attrs import evolve, frozen
from msgspec.structs import replace

from ledger import AlreadyExistsError, FileChange, InvalidInputError, NotFoundError, Schema, Table
from ledger.model import Snapshot
from ledger.state import TableState
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.materialising import outputs_of
from projections.paimon import (
    ManifestEntry,
    bucket_path,
    decode_row,
    file_change,
    manifest_path,
    read_manifest,
    read_manifest_list,
    snapshot_from_json,
    tag_from_json,
)
from projections.paimon.paths import FOLDERS
from projections.paimon.row_values import scalar
from projections.partition_text import PartitionText
from tests.histories import random_changes
from tests.lakes import data_file, lake_on, orders, reader_grace

DAYS = ("2013-01-01", "2013-01-02", None)


def random_table(seed: int, store: Store, steps: int = 40) -> Table:
    rng = random.Random(seed)
    columns = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}
    schema = Schema.of(columns, partition_keys=["day"], options=reader_grace(seed))
    table = orders(lake_on(store), schema)
    go_on(table, rng, steps)
    return table


def go_on(table: Table, rng: random.Random, steps: int) -> None:
    for _ in range(steps):
        try:
            step(table, rng)
        except (InvalidInputError, NotFoundError, AlreadyExistsError):
            continue


def step(table: Table, rng: random.Random) -> None:
    state = table.state
    some_snapshot = rng.randint(state.earliest_snapshot_id, max(1, state.last_snapshot_id))
    match rng.randrange(14):
        case 0 | 1:
            table.alter(random_changes(rng, state.schema, length=rng.randrange(1, 3)))
        case 2 | 3 | 4 | 5 | 6:
            table.append(new_files(state, rng))
        case 7 | 8:
            live = [each.path for each in table.at().files]
            table.delete_files(rng.sample(live, min(len(live), 2)))
        case 9:
            table.rollback(snapshot=some_snapshot)
        case 10:
            table.create_tag(f"t{rng.randrange(4)}", snapshot=some_snapshot)
        case 11:
            table.replace_tag(f"t{rng.randrange(4)}", snapshot=some_snapshot)
        case 12:
            table.delete_tag(f"t{rng.randrange(4)}")
        case _:
            table.expire_snapshots(before=some_snapshot)


def new_files(state: TableState, rng: random.Random) -> Iterator[FileChange]:
    """Yield files, some of them where Paimon would put them and some elsewhere."""
    keys = state.schema.partition_keys
    for number in range(rng.randrange(1, 4)):
        day = rng.choice(DAYS)
        spec = PartitionText.of(state.schema).spec(keys, (day,))
        folder = f"{bucket_path(spec, 0)}/" if rng.random() < 0.5 else ""
        name = f"{folder}f{state.version}-{number}.parquet"
        yield replace(data_file(name, day, rng.randrange(1, 9)), schema_id=state.schema.id)


# The same few files are read again and again.
_metas = lru_cache(maxsize=None)(partial(read_manifest_list, file="a list"))
_entries = lru_cache(maxsize=None)(partial(read_manifest, file="a manifest"))


@frozen
class Left:
    """The files of one table's projection that are on a store, by path below its location."""

    files: dict[str, bytes]

    @classmethod
    def by(cls, table: Table, store: Store | None = None) -> Left:
        """Read them all, also through another store than the table's own."""
        outputs = evolve(outputs_of(handle_of(table)), store=store or handle_of(table).log.store)
        paths = [path for folder in FOLDERS for path in outputs.paths(folder)]
        return cls({path: outputs.read(path) or b"" for path in paths})

    def snapshots(self) -> dict[str, Snapshot]:
        """Return what every snapshot and tag file names."""
        return {
            path: tag_from_json(body).snapshot
            if path.startswith("tag/")
            else snapshot_from_json(body)
            for path, body in self.files.items()
            if path.startswith(("snapshot/snapshot-", "tag/"))
        }

    def entries(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return all that a snapshot's manifests hold; KeyError names a file that is missing."""
        found: list[ManifestEntry] = []
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        sizes = (snapshot.base_manifest_list_size, snapshot.delta_manifest_list_size)
        for name, size in zip(lists, sizes, strict=True):
            body = self.files[manifest_path(str(name))]
            assert len(body) == size
            for meta in _metas(body):
                manifest = self.files[manifest_path(meta.file_name)]
                assert len(manifest) == meta.file_size
                entries = _entries(manifest)
                kinds = [each.kind for each in entries]
                assert kinds.count("ADD") == meta.num_added_files
                assert kinds.count("DELETE") == meta.num_deleted_files
                found += entries
        return found

    def live(self, table: Table, snapshot: Snapshot) -> list[str]:
        """Return the paths of the files that Paimon reads at a snapshot, sorted.

        As in Paimon, an entry that any manifest deletes is gone, wherever the deletion stands.
        """
        schemas = {each.id: each for each in table.schemas()}
        added: list[str] = []
        deleted: set[str] = set()
        for entry in self.entries(snapshot):
            schema = schemas[entry.file.schema_id]
            keys = schema.partition_keys
            types = [schema.field(name).type for name in keys]
            values = map(scalar, decode_row(entry.partition, types), types)
            change = file_change(
                entry,
                spec_types=types,
                columns=schema.fields,
                folder=bucket_path(PartitionText.of(schema).spec(keys, list(values)), entry.bucket),
                location=table.location,
            )
            if change.kind == "DELETE":
                deleted.add(change.path)
            else:
                added.append(change.path)
        return sorted(path for path in added if path not in deleted)


def is_consistent(left: Left) -> bool:
    """Return whether every snapshot and tag that a reader may find is whole; else KeyError."""
    for snapshot in left.snapshots().values():
        assert f"schema/schema-{snapshot.schema_id}" in left.files
        for entry in left.entries(snapshot):
            assert f"schema/schema-{entry.file.schema_id}" in left.files
    return True
