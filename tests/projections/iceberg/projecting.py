"""Random histories of Iceberg tables, and what a projection left on a store."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from typing import Any

import fastavro
from attrs import frozen

from ledger import AlreadyExistsError, InvalidInputError, NotFoundError, Schema, SetOption, Table
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.iceberg import Names, expected, position
from projections.iceberg.position import FOLDER, HINT
from projections.materialising import PendingDeletes, outputs_of
from tests.lakes import lake_on, orders, reader_grace
from tests.projections.paimon.projecting import step

EXISTING, ADDED, DELETED = 0, 1, 2


def random_table(seed: int, store: Store, steps: int = 40) -> Table:
    rng = random.Random(seed)
    columns = {"id": "BIGINT NOT NULL", "day": "DATE", "amount": "INT"}
    options = {"format-version": str(1 + seed % 3)} | reader_grace(seed + 1)
    table = orders(lake_on(store), Schema.of(columns, partition_keys=["day"], options=options))
    go_on(table, rng, steps)
    return table


def go_on(table: Table, rng: random.Random, steps: int) -> None:
    for _ in range(steps):
        try:
            if rng.random() < 0.05:
                table.alter([_iceberg_option(rng)])
            else:
                step(table, rng)
        except (InvalidInputError, NotFoundError, AlreadyExistsError):
            continue


def _iceberg_option(rng: random.Random) -> SetOption:
    if rng.random() < 0.5:
        return SetOption("write.metadata.previous-versions-max", str(rng.randrange(8)))
    return SetOption("format-version", str(rng.randrange(1, 4)))


@frozen
class Left:
    """The files of one table's projection that are on a store, by path below its location."""

    files: dict[str, bytes]
    location: str

    @classmethod
    def by(cls, table: Table) -> Left:
        outputs = outputs_of(handle_of(table))
        paths = list(outputs.paths(FOLDER))
        return cls({path: outputs.read(path) or b"" for path in paths}, table.location)

    @classmethod
    def wanted(cls, table: Table, version: int | None = None) -> Left:
        return cls(expected(handle_of(table), version=version), table.location)

    def newest(self, table: Table) -> dict[str, bytes]:
        """Return the files without earlier metadata that the position's metadata does not name.

        What only stays a while for older readers is left out, too.
        """
        leaving = PendingDeletes(handle_of(table), "iceberg").paths()
        store, layout = handle_of(table).log.store, handle_of(table).log.layout
        stands = position.FILE.load(store, layout).version
        current = {*metadata_names(table, stands)} & self.files.keys()
        named = {path for each in current for path, _ in self.logged(each)}
        return {
            path: body
            for path, body in self.files.items()
            if path not in leaving and (not is_metadata(path) or path in current | named)
        }

    def logged(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the metadata files that one of them names, and the times that it gives them.

        The names in the table's folder: the table may be elsewhere than it was.
        """
        for each in json.loads(self.files[path])["metadata-log"]:
            uri: str = each["metadata-file"]
            yield f"{FOLDER}/{uri.rpartition('/')[2]}", each["timestamp-ms"]

    def assert_logs_are_true(self) -> None:
        """Assert that each metadata file names only files that exist and are of that time."""
        for path in filter(is_metadata, self.files):
            for logged, time_ms in self.logged(path):
                assert json.loads(self.files[logged])["last-updated-ms"] == time_ms, (path, logged)

    def metadata(self, version: int, table: Table) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.files[metadata_names(table, version)[0]])
        return found

    def under(self, uri: str) -> bytes:
        return self.files[uri.removeprefix(f"{self.location}/")]

    def data_files(self, snapshot: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what a snapshot's manifests say of files, as it stands there."""
        for manifest in records(self.under(snapshot["manifest-list"])):
            for each in records(self.under(manifest["manifest_path"])):
                yield each["data_file"]

    def entries(self, snapshot: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield all that a snapshot's manifests hold, inherited values filled in.

        KeyError names a file that is missing.
        """
        for manifest in records(self.under(snapshot["manifest-list"])):
            body = self.under(manifest["manifest_path"])
            assert len(body) == manifest["manifest_length"]
            found = list(records(body))
            for status, what in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
                of = [
                    each["data_file"]["record_count"] for each in found if each["status"] == status
                ]
                assert len(of) == manifest[f"{what}_files_count"]
                assert sum(of) == manifest[f"{what}_rows_count"]
            yield from inherited(found, manifest)


def inherited(found: list[dict[str, Any]], manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    next_row_id = manifest.get("first_row_id")
    for each in found:
        assert (each["status"] == ADDED) == (each.get("sequence_number") is None) or (
            "sequence_number" not in each
        )
        row_id = each["data_file"].get("first_row_id")
        if row_id is None and next_row_id is not None and each["status"] != DELETED:
            row_id, next_row_id = next_row_id, next_row_id + each["data_file"]["record_count"]
        sequence = each.get("sequence_number")
        yield {
            "path": each["data_file"]["file_path"],
            "status": each["status"],
            "snapshot_id": each["snapshot_id"],
            "sequence_number": manifest.get("sequence_number", 0) if sequence is None else sequence,
            "row_id": row_id,
            "records": each["data_file"]["record_count"],
            "manifest": manifest["manifest_path"],
        }


def records(body: bytes) -> list[dict[str, Any]]:
    return [dict(each) for each in fastavro.reader(io.BytesIO(body)) if isinstance(each, dict)]


def metadata_names(table: Table, version: int) -> tuple[str, str]:
    names = Names(table.state.table_id)
    return names.metadata(version), names.hadoop(version)


def is_metadata(path: str) -> bool:
    return path.endswith(".metadata.json")


def is_consistent(left: Left) -> bool:
    """Return whether the files behind the hint are whole; KeyError names a missing one."""
    left.assert_logs_are_true()
    if HINT not in left.files:
        return True
    hinted = int(left.files[HINT])
    newest = json.loads(left.files[f"metadata/v{hinted}.metadata.json"])
    for snapshot in newest["snapshots"]:
        list(left.entries(snapshot))
    return True
