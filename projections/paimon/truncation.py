"""Snapshots without rows, which delete all live files of the snapshot before.

Engines find the deleted files in the manifests when they expire snapshots, so that each is named.

Source: Paimon's FileStoreCommitImpl.truncateTable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from ledger.log.request import fresh_id
from ledger.model.errors import DamagedLogError
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ledger.model.types import DataType
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.engine_files import EngineFileReader
from projections.paimon.manifest_avro import (
    ManifestEntry,
    ManifestFileMeta,
    read_manifest,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from projections.paimon.manifest_writing import manifest_file_meta
from projections.paimon.paths import manifest_path

_MOST_ENTRIES: Final = 10_000
"""Number of entries of a manifest."""


@frozen
class Truncation:
    """A snapshot without rows, and the files that it names.

    Attributes:
        snapshot: The snapshot.
        manifests: The bytes of its manifests, by path.
        lists: Those of its manifest lists, which name the manifests.
    """

    snapshot: Snapshot
    manifests: Mapping[str, bytes]
    lists: Mapping[str, bytes]


def truncate(
    table: TableHandle, state: TableState, commit_user: str, now_millis: int
) -> Truncation | None:
    """Return the truncation of a table's newest snapshot; None if it has no live files.

    Args:
        table: The table.
        state: Its state.
        commit_user: The user of the new snapshot.
        now_millis: The current time, Unix milliseconds.

    Raises:
        NotFoundError: A manifest is missing.
        DamagedLogError: A manifest is damaged.
    """
    before = state.snapshot
    if before is None:
        return None
    reader = EngineFileReader(table, state, state.origin_of_kind(PaimonOrigin))
    kept = [*_manifests_of(reader, before)]
    live = _live_entries(reader, kept)
    if not live:
        return None
    keys = state.schema.partition_keys
    manifests, metas = _deleting_manifests(live, [state.schema.field(each).type for each in keys])
    base, delta = (f"manifest-list-{fresh_id()}-{each}" for each in (0, 1))
    base_body, delta_body = (
        write_manifest_list(each, sync_marker=_sync_marker()) for each in (kept, metas)
    )
    rows = sum(each.file.row_count for each in live)
    snapshot = Snapshot(
        id=before.id + 1,
        uuid=fresh_id(),
        schema_id=state.schema.id,
        base_manifest_list=base,
        base_manifest_list_size=len(base_body),
        delta_manifest_list=delta,
        delta_manifest_list_size=len(delta_body),
        commit_user=commit_user,
        commit_identifier=BATCH_COMMIT_IDENTIFIER,
        commit_kind="OVERWRITE",
        time_millis=max(now_millis, before.time_millis),
        total_record_count=before.total_record_count - rows,
        delta_record_count=-rows,
        watermark=before.watermark,
        next_row_id=before.next_row_id,
    )
    lists = {manifest_path(base): base_body, manifest_path(delta): delta_body}
    return Truncation(snapshot, manifests, lists)


def _manifests_of(reader: EngineFileReader, snapshot: Snapshot) -> Iterator[ManifestFileMeta]:
    for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
        if name is not None:
            yield from read_manifest_list(reader.read_manifest_file(name), name)


def _live_entries(
    reader: EngineFileReader, manifests: Sequence[ManifestFileMeta]
) -> list[ManifestEntry]:
    found: dict[tuple[bytes, int, int, str], ManifestEntry] = {}
    for each in manifests:
        name = each.file_name
        for entry in read_manifest(reader.read_manifest_file(name), name):
            file = entry.file
            key = (entry.partition, entry.bucket, file.level, file.file_name)
            if entry.kind == "ADD":
                found[key] = entry
            elif found.pop(key, None) is None:
                raise DamagedLogError(f"{name} deletes {file.file_name}, which was not live", name)
    return [*found.values()]


def _deleting_manifests(
    live: Sequence[ManifestEntry], partition_types: Sequence[DataType]
) -> tuple[dict[str, bytes], list[ManifestFileMeta]]:
    """Return the manifests that delete files, by path, and their entries in a list."""
    bodies: dict[str, bytes] = {}
    metas: list[ManifestFileMeta] = []
    for start in range(0, len(live), _MOST_ENTRIES):
        entries = [evolve(each, kind="DELETE") for each in live[start : start + _MOST_ENTRIES]]
        name = f"manifest-{fresh_id()}-0"
        body = write_manifest(entries, sync_marker=_sync_marker())
        bodies[manifest_path(name)] = body
        metas.append(manifest_file_meta(name, len(body), entries, partition_types=partition_types))
    return bodies, metas


def _sync_marker() -> bytes:
    return bytes.fromhex(fresh_id().replace("-", ""))
