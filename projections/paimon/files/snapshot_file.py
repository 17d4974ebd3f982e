"""Paimon's `snapshot/snapshot-N` files: reading every version that was ever written, writing 3.

Source: Paimon's Snapshot class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from ledger.model.snapshot import CommitKind, Snapshot
from projections.paimon.files.json import decoded, paimon_json

NO_WATERMARK = -(2**63)
"""What older writers stored for "no watermark": Java's Long.MIN_VALUE."""

_PRINTED_WHEN_NULL = ("baseManifestList", "deltaManifestList", "commitUser")
_Id = Annotated[int, msgspec.Meta(ge=0)]


class _SnapshotFile(msgspec.Struct, kw_only=True, rename="camel"):
    """The keys of the file, in Paimon's order."""

    version: int | None = None
    uuid: str | None = None
    id: _Id
    schema_id: int | None = None
    base_manifest_list: str | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list: str | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    commit_user: str | None = None
    writer_version: str | None = None
    commit_identifier: int | None = None
    commit_kind: CommitKind
    time_millis: int | None = None
    log_offsets: dict[int, int] | None = None
    total_record_count: int | None = None
    delta_record_count: int | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: dict[str, str] | None = None
    next_row_id: int | None = None
    operation: str | None = None


_NAMES = {each.encode_name: each.name for each in msgspec.structs.fields(_SnapshotFile)}

SNAPSHOT_KEYS = frozenset(_NAMES)
"""The keys of a snapshot file that this reads."""


def snapshot_from_json(obj: Mapping[str, Any] | str | bytes) -> Snapshot:
    """Read a snapshot file of any version.

    As in Paimon, a missing or null number reads as 0 and unknown keys are ignored. A null
    `commitUser` reads as empty, and the Long.MIN watermark of old writers as none.

    Args:
        obj: The file's bytes or text, or what a JSON decoder made of them.

    Raises:
        InvalidInputError: It is no snapshot file; the message names the place.

    Example:
        >>> snapshot = snapshot_from_json('{"id": 1, "commitKind": "APPEND", "watermark": null}')
        >>> snapshot.id, snapshot.total_record_count, snapshot.base_manifest_list
        (1, 0, None)
    """
    file = decoded(obj, _SnapshotFile, "snapshot file")
    found = msgspec.structs.asdict(file)
    numbers = ("version", "schema_id", "commit_identifier", "time_millis")
    counts = ("total_record_count", "delta_record_count")
    return Snapshot(
        **{
            **found,
            **{name: found[name] or 0 for name in (*numbers, *counts)},
            "commit_user": file.commit_user or "",
            "watermark": None if file.watermark == NO_WATERMARK else file.watermark,
            "log_offsets": file.log_offsets or None,
            "properties": file.properties or None,
        }
    )


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return the content of a snapshot file, keys in Paimon's order.

    What is None is left out but for the manifest lists, which Paimon prints as null; so are empty
    properties. `logOffsets`, which Paimon dropped, is written where the snapshot has some.
    """
    content: dict[str, Any] = {key: getattr(snapshot, name) for key, name in _NAMES.items()}
    content["logOffsets"] = {
        str(bucket): offset for bucket, offset in sorted((snapshot.log_offsets or {}).items())
    }
    content["properties"] = dict(sorted((snapshot.properties or {}).items()))
    return {
        key: value
        for key, value in content.items()
        if key in _PRINTED_WHEN_NULL or (value is not None and value != {})
    }


def snapshot_file(snapshot: Snapshot) -> bytes:
    """Return the bytes of a snapshot file, as Paimon's Java writes them."""
    return paimon_json(snapshot_to_json(snapshot)).encode()
