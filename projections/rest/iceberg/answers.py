"""Answers with a table's metadata, and the locations that updates may name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, Literal, get_args

import msgspec
from attrs import evolve

from ledger.model.messages import excerpt
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg import served
from projections.iceberg.rest_updates import (
    AddSnapshot,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetStatistics,
    TableUpdate,
)
from projections.iceberg.served import Loaded
from projections.iceberg.table_json import write_metadata
from projections.iceberg.table_metadata import TableMetadata
from projections.locations import check_location
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.requests import Call, Reply, RequestError
from projections.rest.served_ledger import StorageConfig

Snapshots = Literal["all", "refs"]
"""The snapshots that a load returns: all, or those that branches and tags point to."""

_LOCATION_PROPERTIES: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""Properties with a location that writers, or the server, put files to."""


def snapshots_mode(call: Call) -> Snapshots:
    """Return the snapshots that a load asks for.

    Raises:
        RequestError: It is none of the modes.
    """
    asked = call.query.get("snapshots", "all").lower()
    if asked == "all":
        return "all"
    if asked == "refs":
        return "refs"
    known = ", ".join(get_args(Snapshots))
    raise RequestError(400, f"snapshots={excerpt(asked)} is none of {known}")


def entity_tag(catalog: IcebergCatalog, state: TableState, mode: Snapshots) -> str:
    """Return the ETag of the answer to a load: of a version, a mode and the storage's config."""
    words = (state.table_id, state.version, mode, catalog.ledger.storage.digest)
    return f'"{hashlib.sha256(msgspec.json.encode(words)).hexdigest()[:32]}"'


def is_unchanged(call: Call, tag: str) -> bool:
    """Return whether the client has the answer with a tag."""
    known = [each.strip().removeprefix("W/") for each in _known_tags(call)]
    return tag in known or "*" in known


def _known_tags(call: Call) -> list[str]:
    return call.headers.get("if-none-match", "").split(",")


def table_reply(
    catalog: IcebergCatalog, table: TableHandle, state: TableState, mode: Snapshots = "all"
) -> Reply:
    """Return the answer with a table's metadata at a state, from the cache where it is there.

    Raises:
        LedgerError: The metadata file cannot be written, or Iceberg cannot express the table.
    """
    key = (state.table_id, state.version, mode)
    body = catalog.answers.get(key)
    if body is None:
        with catalog.rendering(state.table_id):
            body = catalog.answers.get(key)
            if body is None:
                made = _body_of(catalog.ledger.storage, served.load(table, state), mode)
                body = catalog.answers.put(key, made)
    return Reply(200, body, {"etag": entity_tag(catalog, state, mode)})


def staged_reply(catalog: IcebergCatalog, metadata: TableMetadata) -> Reply:
    """Return the answer with the metadata of a table that does not exist yet."""
    return Reply(
        200, _load_result(catalog.ledger.storage, metadata, write_metadata(metadata), None)
    )


def _body_of(storage: StorageConfig, loaded: Loaded, mode: Snapshots) -> bytes:
    metadata, content = loaded.metadata, loaded.body
    if mode == "refs":
        metadata = with_referenced_snapshots(metadata)
        content = write_metadata(metadata)
    return _load_result(storage, metadata, content, loaded.location)


def with_referenced_snapshots(metadata: TableMetadata) -> TableMetadata:
    """Return metadata with the snapshots that branches and tags point to, and no others."""
    referenced = {each.snapshot_id for each in metadata.refs.values()}
    kept = tuple(each for each in metadata.snapshots if each.snapshot_id in referenced)
    return evolve(metadata, snapshots=kept)


class _LoadTableResult(msgspec.Struct, rename="kebab", omit_defaults=True):
    metadata_location: str | None
    metadata: msgspec.Raw
    config: dict[str, str]
    storage_credentials: list[dict[str, object]] = []


def _load_result(
    storage: StorageConfig, metadata: TableMetadata, content: bytes, location: str | None
) -> bytes:
    found = storage.of(metadata.location)
    config: dict[str, str] = {}
    for _, properties in found:
        config.update(properties)
    result = _LoadTableResult(location, msgspec.Raw(content), config, storage_credentials(found))
    return msgspec.json.encode(result)


def storage_credentials(
    found: Iterable[tuple[str, object]],
) -> list[dict[str, object]]:
    """Return client configuration by prefix, as the protocol lists it."""
    return [{"prefix": prefix, "config": config} for prefix, config in found]


def check_locations(catalog: IcebergCatalog, updates: Iterable[TableUpdate]) -> None:
    """Check the locations that updates name.

    Raises:
        UnsupportedError: One is outside of the allowed locations.
        InvalidInputError: One is not a location of files.
    """
    for location in _locations_of(updates):
        check_location(catalog.handle, location, "location")


def _locations_of(updates: Iterable[TableUpdate]) -> Iterator[str]:
    for update in updates:
        if isinstance(update, SetLocation):
            yield update.location
        elif isinstance(update, SetProperties):
            yield from (
                update.updates[key] for key in _LOCATION_PROPERTIES if key in update.updates
            )
        elif isinstance(update, AddSnapshot):
            snapshot = update.snapshot
            yield from (snapshot.manifests or ())
            if snapshot.manifest_list is not None:
                yield snapshot.manifest_list
        elif isinstance(update, SetStatistics):
            yield update.statistics.statistics_path
        elif isinstance(update, SetPartitionStatistics):
            yield update.partition_statistics.statistics_path
