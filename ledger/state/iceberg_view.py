"""Iceberg metadata of a view: its state and the fold of its updates.

Source: the Iceberg view specification.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

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
from ledger.events.imported import IcebergSchema
from ledger.model.errors import InvalidChangeError
from ledger.model.iceberg_objects import IcebergViewVersion, ViewLogEntry
from ledger.model.schema import ViewSchema
from ledger.model.types.wire import field_from_wire

COMMENT_PROPERTY: Final = "comment"
"""The property that engines keep a view's comment in."""

DEFAULT_DIALECT: Final = "default"
"""The dialect of the plain query of a view that was created through the ledger."""

_NO_VERSION: Final = -1


class IcebergView(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    forbid_unknown_fields=True,
):
    """Iceberg metadata of a view.

    Attributes:
        uuid: Its UUID, which never changes.
        location: Its base location; a relative one is below the ledger's root.
        format_version: Its format version.
        properties: Its properties, sorted.
        schemas: Its schemas, in the order in which they were added.
        versions: Its versions that are kept, in the order in which they were added.
        current_version_id: The id of the current version.
        version_log: The version that was current, by time.
    """

    uuid: str = ""
    location: str = ""
    format_version: int = 1
    properties: dict[str, str] = {}
    schemas: tuple[IcebergSchema, ...] = ()
    versions: tuple[IcebergViewVersion, ...] = ()
    current_version_id: int = _NO_VERSION
    version_log: tuple[ViewLogEntry, ...] = ()

    @property
    def current_version(self) -> IcebergViewVersion:
        """The current version."""
        return next(each for each in self.versions if each.version_id == self.current_version_id)

    @property
    def definition(self) -> ViewSchema:
        """The current version as a view of the DLF metadata API.

        Its query is the first one, which engines read that find none of their own dialect. One of
        the dialect `default` is that only.
        """
        now = self.current_version
        queries = [(each.dialect, each.sql) for each in now.representations]
        columns = next(each for each in self.schemas if each.schema_id == now.schema_id).fields
        rest = {key: text for key, text in self.properties.items() if key != COMMENT_PROPERTY}
        return ViewSchema(
            fields=tuple(map(field_from_wire, columns)),
            query=queries[0][1] if queries else "",
            dialects=dict(sorted(each for each in queries if each[0] != DEFAULT_DIALECT)),
            comment=self.properties.get(COMMENT_PROPERTY),
            options=rest,
        )


def fold_view_updates(
    view: IcebergView | None, updates: Iterable[IcebergViewUpdate]
) -> IcebergView:
    """Return a view after the updates of one event.

    Args:
        view: The view before; None for one that has no Iceberg metadata yet.
        updates: The updates, in their order.

    Raises:
        InvalidChangeError: An update contradicts the view, or a part of the view is missing.

    Example:
        >>> seen = fold_view_updates(
        ...     None,
        ...     [
        ...         ViewUuidAssigned("f3"),
        ...         ViewLocationSet("shop.db/view-f3"),
        ...         ViewSchemaAdded(IcebergSchema(schema_id=0, fields=())),
        ...         ViewVersionAdded(IcebergViewVersion(
        ...             version_id=1, timestamp_ms=5, schema_id=0, summary={},
        ...             default_namespace=("shop",), representations=())),
        ...         CurrentViewVersionSet(1, 5),
        ...     ],
        ... )
        >>> seen.current_version_id, seen.version_log
        (1, (ViewLogEntry(timestamp_ms=5, version_id=1),))
    """
    made = view or IcebergView()
    for each in updates:
        made = _apply_update(made, each)
    if not made.uuid or not made.location or made.current_version_id == _NO_VERSION:
        raise _contradiction("a view needs a uuid, a location and a current version")
    return made


def _apply_update(  # noqa: C901, PLR0911 - one arm for each update
    view: IcebergView, update: IcebergViewUpdate
) -> IcebergView:
    match update:
        case ViewUuidAssigned(uuid=uuid):
            return replace(view, uuid=uuid)
        case ViewFormatUpgraded(format_version=version):
            return replace(view, format_version=version)
        case ViewLocationSet(location=location):
            return replace(view, location=location)
        case ViewPropertiesSet(updates=changed):
            return replace(view, properties=dict(sorted((view.properties | changed).items())))
        case ViewPropertiesRemoved(removals=removals):
            kept = {key: each for key, each in view.properties.items() if key not in removals}
            return replace(view, properties=kept)
        case ViewSchemaAdded(schema=schema):
            if schema.schema_id in _schema_ids(view):
                raise _contradiction(f"schema {schema.schema_id} exists already")
            return replace(view, schemas=(*view.schemas, schema))
        case ViewVersionAdded(view_version=version):
            return _add_version(view, version)
        case CurrentViewVersionSet():
            return _set_current_version(view, update)
        case ViewVersionsRemoved(version_ids=version_ids):
            return _remove_versions(view, version_ids)
        case _:
            assert_never(update)


def _add_version(view: IcebergView, version: IcebergViewVersion) -> IcebergView:
    if version.version_id in _version_ids(view):
        raise _contradiction(f"version {version.version_id} exists already")
    if version.schema_id not in _schema_ids(view):
        raise _contradiction(f"schema {version.schema_id} of a version does not exist")
    # A record of the state sorts it, too: a projected file does not depend on checkpoints.
    sorted_version = replace(version, summary=dict(sorted(version.summary.items())))
    return replace(view, versions=(*view.versions, sorted_version))


def _set_current_version(view: IcebergView, update: CurrentViewVersionSet) -> IcebergView:
    version_id, since = update.view_version_id, update.timestamp_ms
    if version_id not in _version_ids(view):
        raise _contradiction(f"version {version_id} does not exist")
    entries = () if since is None else (ViewLogEntry(since, version_id),)
    return replace(view, current_version_id=version_id, version_log=(*view.version_log, *entries))


def _remove_versions(view: IcebergView, version_ids: tuple[int, ...]) -> IcebergView:
    gone = set(version_ids)
    if not gone <= _version_ids(view) or view.current_version_id in gone:
        raise _contradiction(f"versions {sorted(gone)} cannot be removed")
    # With a gap, the log would name a wrong version for the time in between.
    gaps = [at for at, each in enumerate(view.version_log) if each.version_id in gone]
    return replace(
        view,
        versions=tuple(each for each in view.versions if each.version_id not in gone),
        version_log=view.version_log[gaps[-1] + 1 :] if gaps else view.version_log,
    )


def _version_ids(view: IcebergView) -> set[int]:
    return {each.version_id for each in view.versions}


def _schema_ids(view: IcebergView) -> set[int]:
    return {each.schema_id for each in view.schemas}


def _contradiction(message: str) -> InvalidChangeError:
    return InvalidChangeError(message, kind="ILLEGAL_STATE")
