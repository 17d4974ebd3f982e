"""Updates and requirements of views in Iceberg's REST catalog, and the metadata after them.

Source: the Iceberg REST catalog specification, ViewUpdate and ViewRequirement; Java's
ViewMetadata.Builder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, assert_never, get_args

from attrs import Factory, define, evolve, frozen
from msgspec import Struct
from msgspec.structs import replace

from ledger.events.iceberg_views import (
    CurrentViewVersionSet,
    IcebergViewUpdate,
    ViewFormatUpgraded,
    ViewLocationSet,
    ViewPropertiesRemoved,
    ViewPropertiesSet,
    ViewSchemaAdded,
    ViewUuidAssigned,
    ViewVersionAdded,
    ViewVersionsRemoved,
)
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.iceberg_layout import NO_ID
from ledger.model.iceberg_objects import IcebergViewVersion, Int, ViewLogEntry
from projections.iceberg.imported_metadata import ledger_schema
from projections.iceberg.metadata_schema import Schema, is_same_schema
from projections.iceberg.rest_updates import (
    AddSchema,
    AssignUuid,
    RemoveProperties,
    SetLocation,
    SetProperties,
    SharedUpdate,
    StaleBaseError,
    UpgradeFormatVersion,
    table_update_from_json,
)
from projections.iceberg.schema_json import (
    boolean_property,
    convert_record,
    integer_property,
    kebab_case,
)
from projections.iceberg.view_metadata import (
    SCHEMA_RULES,
    VIEW_FORMAT_VERSION,
    ViewMetadata,
    recorded_location,
)

HISTORY_SIZE: Final = "version.history.num-entries"
DEFAULT_HISTORY_SIZE: Final = 10
DROP_DIALECT_ALLOWED: Final = "replace.drop-dialect.allowed"


class _ViewUpdate(
    Struct, frozen=True, kw_only=True, rename="kebab", tag_field="action", tag=kebab_case
):
    pass


class AddViewVersion(_ViewUpdate, frozen=True):
    """Add a version; its id is replaced if it is taken, and an equal version is reused."""

    view_version: IcebergViewVersion


class SetCurrentViewVersion(_ViewUpdate, frozen=True):
    """Make a version the current one; -1 is the version added last in the same batch."""

    view_version_id: Int


_VersionUpdate: TypeAlias = AddViewVersion | SetCurrentViewVersion
ViewUpdate: TypeAlias = SharedUpdate | AddSchema | _VersionUpdate

_VERSION_UPDATES: Any = _VersionUpdate
_TAGS: Final = {str(each.__struct_config__.tag) for each in get_args(_VersionUpdate)}
_SHARED_TAGS: Final = {
    str(each.__struct_config__.tag) for each in (*get_args(SharedUpdate), AddSchema)
}


class AssertViewUuid(Struct, frozen=True, rename="kebab", tag_field="type", tag=kebab_case):
    """Require that the view has a UUID."""

    uuid: str


def view_update_from_json(obj: Any) -> ViewUpdate:
    """Read an update of a view.

    Args:
        obj: The update as decoded JSON.

    Raises:
        InvalidInputError: It is not one; the message names the place.

    Example:
        >>> view_update_from_json({"action": "set-current-view-version", "view-version-id": -1})
        SetCurrentViewVersion(view_version_id=-1)
    """
    action = obj.get("action") if isinstance(obj, dict) else None
    if action in _TAGS:
        found: ViewUpdate = convert_record(obj, _VERSION_UPDATES, f"update {action}")
        return found
    if action not in _SHARED_TAGS:
        raise InvalidInputError(
            f"{action!r:.80} is no update of a view; use one of "
            f"{', '.join(sorted(_TAGS | _SHARED_TAGS))}"
        )
    return table_update_from_json(obj)  # type: ignore[return-value] # by its tag


def view_requirement_from_json(obj: Any) -> AssertViewUuid:
    """Read a requirement of a commit to a view.

    Raises:
        InvalidInputError: It is not one; the message names the place.
    """
    return convert_record(obj, AssertViewUuid, "requirement of a view")


def check_view_requirements(base: ViewMetadata, requirements: Iterable[AssertViewUuid]) -> None:
    """Check that all requirements hold for a view.

    Raises:
        StaleBaseError: A requirement does not hold.
    """
    for each in requirements:
        if each.uuid.lower() != base.view_uuid.lower():
            raise StaleBaseError(
                f"Requirement failed: view UUID does not match: expected {each.uuid}, the view has "
                f"{base.view_uuid}; load it again"
            )


@frozen
class ViewChange:
    """The effect of a batch of updates.

    Attributes:
        metadata: The metadata after it.
        recorded: The updates as events have them; none if the batch changes nothing.
    """

    metadata: ViewMetadata
    recorded: tuple[IcebergViewUpdate, ...]


@define
class _Batch:
    """State of a batch of updates.

    Attributes:
        now_ms: The time of the commit, in milliseconds since 1970.
        home: The recorded URL of the ledger.
        uuid: The view's UUID; None until it is assigned.
        location: Its location; None until it is set.
        properties: Its properties.
        schemas: Its schemas.
        versions: Its versions, by id.
        log: Its version log, without the entry of this batch.
        current_id: The id of the current version; None before the first.
        entry: The entry of this batch in the version log.
        last_schema_id: The schema that -1 refers to.
        last_version_id: The version that -1 refers to.
        added: The ids of the versions that the batch added.
        recorded: The updates as events have them.
    """

    now_ms: int
    home: str
    uuid: str | None = None
    location: str | None = None
    properties: dict[str, str] = Factory(dict)
    schemas: tuple[Schema, ...] = ()
    versions: dict[int, IcebergViewVersion] = Factory(dict)
    log: tuple[ViewLogEntry, ...] = ()
    current_id: int | None = None
    entry: ViewLogEntry | None = None
    last_schema_id: int | None = None
    last_version_id: int | None = None
    added: set[int] = Factory(set)
    recorded: list[IcebergViewUpdate] = Factory(list)


def apply_view_updates(
    base: ViewMetadata | None, updates: Iterable[ViewUpdate], *, home: str, now_ms: int
) -> ViewChange:
    """Return the metadata after a batch of updates, and the updates to record.

    Args:
        base: The metadata before, or None for a new view. The updates of a new one must give it
            a uuid, a location, a schema and a version.
        updates: The updates, in their order.
        home: The recorded URL of the ledger: locations below it are recorded relative to it.
        now_ms: The time of the commit, in milliseconds since 1970.

    Raises:
        UnsupportedError: The format version is not supported, or a type of a column.
        InvalidInputError: An update contradicts the view or the updates before it.
    """
    batch = _begin_batch(base, home, now_ms)
    for update in updates:
        _apply_update(batch, update)
    return _finish_batch(batch, base)


def _begin_batch(base: ViewMetadata | None, home: str, now_ms: int) -> _Batch:
    if base is None:
        return _Batch(now_ms, home, recorded=[ViewFormatUpgraded(VIEW_FORMAT_VERSION)])
    return _Batch(
        now_ms=now_ms,
        home=home,
        uuid=base.view_uuid,
        location=base.location,
        properties=dict(base.properties),
        schemas=base.schemas,
        versions=dict(base.versions_by_id),
        log=base.version_log,
        current_id=base.current_version_id,
    )


def _apply_update(batch: _Batch, update: ViewUpdate) -> None:  # noqa: C901 - one arm for each
    match update:
        case AssignUuid(uuid=uuid):
            _assign_uuid(batch, uuid)
        case UpgradeFormatVersion(format_version=version):
            if version != VIEW_FORMAT_VERSION:
                raise UnsupportedError(f"a view cannot be of format version {version}; use 1")
        case SetLocation(location=location):
            if location != batch.location:
                batch.location = location
                batch.recorded.append(ViewLocationSet(recorded_location(location, batch.home)))
        case SetProperties(updates=changed):
            _set_properties(batch, dict(changed))
        case RemoveProperties(removals=removals):
            _remove_properties(batch, removals)
        case AddSchema(schema=schema):
            _add_schema(batch, schema)
        case AddViewVersion(view_version=version_added):
            _add_version(batch, version_added)
        case SetCurrentViewVersion(view_version_id=version_id):
            _set_current_version(batch, version_id)
        case _:
            assert_never(update)


def _assign_uuid(batch: _Batch, uuid: str) -> None:
    if batch.uuid is None:
        batch.uuid = uuid
        batch.recorded.append(ViewUuidAssigned(uuid))
    elif uuid != batch.uuid:
        raise InvalidInputError(f"Cannot reassign uuid: the view's is {batch.uuid}, not {uuid}")


def _set_properties(batch: _Batch, updates: dict[str, str]) -> None:
    changed = {key: text for key, text in updates.items() if batch.properties.get(key) != text}
    if changed:
        batch.properties = {**batch.properties, **changed}
        batch.recorded.append(ViewPropertiesSet(changed))


def _remove_properties(batch: _Batch, removals: tuple[str, ...]) -> None:
    removed = tuple(each for each in dict.fromkeys(removals) if each in batch.properties)
    if removed:
        kept = batch.properties.items()
        batch.properties = {key: text for key, text in kept if key not in removed}
        batch.recorded.append(ViewPropertiesRemoved(removed))


def _add_schema(batch: _Batch, schema: Schema) -> None:
    if any(is_same_schema(each, schema) for each in batch.schemas):
        return
    schema_id = max((each.schema_id + 1 for each in batch.schemas), default=0)
    added = evolve(schema, schema_id=schema_id)
    batch.schemas = (*batch.schemas, added)
    batch.last_schema_id = schema_id
    batch.recorded.append(ViewSchemaAdded(ledger_schema(added, SCHEMA_RULES)))


def _add_version(batch: _Batch, version: IcebergViewVersion) -> None:
    # As in Java, a version with -1 as its schema equals none: its schema is new.
    same = [each for each in batch.versions.values() if _content(each) == _content(version)]
    if same:
        known = same[0].version_id
        batch.last_version_id = known if known in batch.added else None
        return
    if version.schema_id == NO_ID:
        if batch.last_schema_id is None:
            raise InvalidInputError("Cannot set last added schema: no schema has been added")
        version = replace(version, schema_id=batch.last_schema_id)
    if all(each.schema_id != version.schema_id for each in batch.schemas):
        raise InvalidInputError(f"Cannot add version with unknown schema: {version.schema_id}")
    for dialect in version.dialects:
        if version.dialects.count(dialect) > 1:
            raise InvalidInputError(
                f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            )
    newest = max(batch.versions, default=version.version_id - 1)
    version = replace(version, version_id=max(version.version_id, newest + 1))
    batch.versions[version.version_id] = version
    batch.last_version_id = version.version_id
    batch.added.add(version.version_id)
    batch.recorded.append(ViewVersionAdded(version))


def _content(version: IcebergViewVersion) -> IcebergViewVersion:
    return replace(version, version_id=0, timestamp_ms=0)


def _set_current_version(batch: _Batch, version_id: int) -> None:
    wanted = batch.last_version_id if version_id == NO_ID else version_id
    if wanted is None:
        raise InvalidInputError("Cannot set last version id: no current version id has been set")
    if wanted == batch.current_id:
        return
    if wanted not in batch.versions:
        raise InvalidInputError(f"Cannot set current version to unknown version: {wanted}")
    is_new = wanted in batch.added
    since_ms = batch.versions[wanted].timestamp_ms if is_new else batch.now_ms
    batch.current_id, batch.entry = wanted, ViewLogEntry(since_ms, wanted)
    # As in Java, several moves in one batch are one entry of the log: the last one's.
    batch.recorded = [
        replace(each, timestamp_ms=None) if isinstance(each, CurrentViewVersionSet) else each
        for each in batch.recorded
    ]
    batch.recorded.append(CurrentViewVersionSet(wanted, since_ms))


def _finish_batch(batch: _Batch, base: ViewMetadata | None) -> ViewChange:
    uuid, location, current_id = batch.uuid, batch.location, batch.current_id
    if uuid is None or location is None or current_id is None:
        raise InvalidInputError(
            "a new view needs assign-uuid, set-location, add-schema, add-view-version and "
            "set-current-view-version"
        )
    if base is not None:
        _check_kept_dialects(batch, base, batch.versions[current_id])
    removed = _expired_versions(batch, current_id)
    if removed:
        batch.recorded.append(ViewVersionsRemoved(removed))
    log = (*batch.log, batch.entry) if batch.entry else batch.log
    # With a gap, the log would name a wrong version for the time in between.
    gaps = [at for at, each in enumerate(log) if each.version_id in removed]
    metadata = ViewMetadata(
        view_uuid=uuid,
        location=location,
        properties=batch.properties,
        schemas=batch.schemas,
        current_version_id=current_id,
        versions=tuple(v for v in batch.versions.values() if v.version_id not in removed),
        version_log=log[gaps[-1] + 1 :] if gaps else log,
    )
    return ViewChange(metadata, tuple(batch.recorded))


def _check_kept_dialects(batch: _Batch, base: ViewMetadata, current: IcebergViewVersion) -> None:
    if boolean_property(batch.properties, DROP_DIALECT_ALLOWED, default=False):
        return
    before, after = set(base.current_version.dialects), set(current.dialects)
    if not before <= after:
        raise InvalidInputError(
            f"Cannot replace view due to loss of view dialects ({DROP_DIALECT_ALLOWED}=false): "
            f"previous dialects: {sorted(before)}, new dialects: {sorted(after)}"
        )


def _expired_versions(batch: _Batch, current_id: int) -> tuple[int, ...]:
    """Return the versions beyond the limit; those of the batch and the current one are kept."""
    limit = integer_property(batch.properties, HISTORY_SIZE, DEFAULT_HISTORY_SIZE)
    if limit < 1:
        raise InvalidInputError(f"{HISTORY_SIZE} must be positive but was {limit}")
    most = max(limit, len(batch.added | {current_id}))
    if len(batch.versions) <= most:
        return ()
    newest = sorted(batch.versions.keys() - {current_id}, reverse=True)
    return tuple(sorted(newest[most - 1 :]))
