"""The fold of views: a view's metadata after a batch of REST updates.

Source: Java's ViewMetadata.Builder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec
from attrs import Factory, define, evolve

from ledger.model.errors import InvalidInputError, UnsupportedError
from projections.iceberg.committing import updates
from projections.iceberg.committing.updates import ViewUpdate
from projections.iceberg.metadata.layout import NO_ID
from projections.iceberg.metadata.schema import Schema, same_schema
from projections.iceberg.metadata.view import (
    SUPPORTED_VIEW_VERSION,
    ViewLogEntry,
    ViewMetadata,
    ViewVersion,
)
from projections.iceberg.metadata.wire import truth, whole_number

HISTORY_SIZE = "version.history.num-entries"
DEFAULT_HISTORY_SIZE = 10
DROP_DIALECT_ALLOWED = "replace.drop-dialect.allowed"


@define
class _Batch:
    """A view on its way; `added` are the ids of the versions that the batch added."""

    now_ms: int
    uuid: str | None = None
    location: str | None = None
    properties: dict[str, str] = Factory(dict)
    schemas: tuple[Schema, ...] = ()
    versions: dict[int, ViewVersion] = Factory(dict)
    log: tuple[ViewLogEntry, ...] = ()
    current_id: int | None = None
    entry: ViewLogEntry | None = None
    last_schema_id: int | None = None
    last_version_id: int | None = None
    added: set[int] = Factory(set)


def apply_view_updates(
    base: ViewMetadata | None, batch: Iterable[ViewUpdate], *, now_ms: int
) -> ViewMetadata:
    """Return the metadata after a batch of updates; equal to `base` if they change nothing.

    Args:
        base: The metadata before, or None for a new view. The updates of a new one must give it
            a uuid, a location, a schema and a version.
        batch: The updates, in their order.
        now_ms: When the commit is made, in milliseconds since 1970.

    Raises:
        UnsupportedError: The format version is not supported.
        InvalidInputError: An update contradicts the view or the updates before it.
    """
    state = _started(base, now_ms)
    for update in batch:
        _apply(state, update)
    return _finished(state, base)


def _started(base: ViewMetadata | None, now_ms: int) -> _Batch:
    if base is None:
        return _Batch(now_ms)
    return _Batch(
        now_ms=now_ms,
        uuid=base.view_uuid,
        location=base.location,
        properties=dict(base.properties),
        schemas=base.schemas,
        versions=dict(base.versions_by_id),
        log=base.version_log,
        current_id=base.current_version_id,
    )


def _apply(state: _Batch, update: ViewUpdate) -> None:
    match update:
        case updates.AssignUuid(uuid=uuid):
            _assign(state, uuid)
        case updates.UpgradeFormatVersion(format_version=version):
            _check_version(version)
        case updates.SetLocation(location=location):
            state.location = location
        case updates.SetProperties(updates=changed):
            state.properties = {**state.properties, **changed}
        case updates.RemoveProperties(removals=gone):
            kept = state.properties.keys() - set(gone)
            state.properties = {
                key: state.properties[key] for key in state.properties if key in kept
            }
        case updates.AddSchema(schema=schema):
            _add_schema(state, schema)
        case updates.AddViewVersion(view_version=version_added):
            _add_version(state, version_added)
        case updates.SetCurrentViewVersion(view_version_id=version_id):
            _set_current(state, version_id)
        case _:
            assert_never(update)


def _assign(state: _Batch, uuid: str) -> None:
    if state.uuid is not None and state.uuid != uuid:
        raise InvalidInputError(f"the view's uuid is {state.uuid} and cannot change")
    state.uuid = uuid


def _check_version(version: int) -> None:
    if version != SUPPORTED_VIEW_VERSION:
        raise UnsupportedError(f"a view cannot be of format version {version}")


def _add_schema(state: _Batch, schema: Schema) -> None:
    if any(same_schema(each, schema) for each in state.schemas):
        return
    schema_id = max((each.schema_id + 1 for each in state.schemas), default=0)
    state.schemas = (*state.schemas, evolve(schema, schema_id=schema_id))
    state.last_schema_id = schema_id


def _add_version(state: _Batch, version: ViewVersion) -> None:
    if version.schema_id == NO_ID and state.last_schema_id is not None:
        version = msgspec.structs.replace(version, schema_id=state.last_schema_id)
    same = [each for each in state.versions.values() if _fingerprint(each) == _fingerprint(version)]
    if same:
        known = same[0].version_id
        state.last_version_id = known if known in state.added else None
        return
    if all(each.schema_id != version.schema_id for each in state.schemas):
        raise InvalidInputError(f"the version has schema {version.schema_id}, which the view lacks")
    if len(set(version.dialects)) < len(version.dialects):
        raise InvalidInputError(f"one query for each dialect, not {', '.join(version.dialects)}")
    version_id = version.version_id
    if state.versions:
        version_id = max(version_id, max(state.versions) + 1)
    state.versions[version_id] = msgspec.structs.replace(version, version_id=version_id)
    state.last_version_id = version_id
    state.added.add(version_id)


def _set_current(state: _Batch, version_id: int) -> None:
    wanted = state.last_version_id if version_id == NO_ID else version_id
    if wanted is None:
        raise InvalidInputError("-1 stands for the version added last, and the batch added none")
    if wanted == state.current_id:
        return
    if wanted not in state.versions:
        raise InvalidInputError(f"the current version cannot be {wanted}: the view has none such")
    added = wanted in state.added
    since_ms = state.versions[wanted].timestamp_ms if added else state.now_ms
    state.current_id = wanted
    state.entry = ViewLogEntry(since_ms, wanted)


def _finished(state: _Batch, base: ViewMetadata | None) -> ViewMetadata:
    if state.uuid is None or state.location is None or state.current_id is None:
        raise InvalidInputError(
            "a new view needs assign-uuid, set-location, add-schema, add-view-version and "
            "set-current-view-version"
        )
    current = state.versions[state.current_id]
    if base is not None and not truth(state.properties, DROP_DIALECT_ALLOWED, default=False):
        lost = set(base.current_version.dialects) - set(current.dialects)
        if lost:
            raise InvalidInputError(
                f"the view would lose its query for {', '.join(sorted(lost))}; keep it, or set "
                f"{DROP_DIALECT_ALLOWED}"
            )
    versions = _kept_versions(state, current)
    log = (*state.log, state.entry) if state.entry else state.log
    return ViewMetadata(
        view_uuid=state.uuid,
        location=state.location,
        properties=state.properties,
        schemas=state.schemas,
        current_version_id=current.version_id,
        versions=versions,
        version_log=log if len(versions) == len(state.versions) else _kept_log(log, versions),
    )


def _kept_versions(state: _Batch, current: ViewVersion) -> tuple[ViewVersion, ...]:
    most = whole_number(state.properties, HISTORY_SIZE, DEFAULT_HISTORY_SIZE)
    if most < 1:
        raise InvalidInputError(f"property {HISTORY_SIZE} is {most} and should be at least 1")
    most = max(most, len(state.added | {current.version_id}))
    if len(state.versions) <= most:
        return tuple(state.versions.values())
    newest = sorted(state.versions.keys() - {current.version_id}, reverse=True)[: most - 1]
    kept = {current.version_id, *newest}
    return tuple(each for each in state.versions.values() if each.version_id in kept)


def _kept_log(
    log: tuple[ViewLogEntry, ...], versions: tuple[ViewVersion, ...]
) -> tuple[ViewLogEntry, ...]:
    known = {each.version_id for each in versions}
    # With a gap, the log would name a wrong version for the time in between.
    gone = [index for index, entry in enumerate(log) if entry.version_id not in known]
    return log[gone[-1] + 1 :] if gone else log


def _fingerprint(version: ViewVersion) -> ViewVersion:
    return msgspec.structs.replace(version, version_id=0, timestamp_ms=0)
