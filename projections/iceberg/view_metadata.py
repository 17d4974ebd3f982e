"""Metadata of Iceberg views, its file, and its form in the catalog's state and events.

A view that was created and changed through the ledger only is an Iceberg view with one version:
its current definition, with the time of its last change. Its plain query is the first
representation, in the dialect `default`, followed by those of its dialects.

Source: the Iceberg view specification; keys are in the order of Java's ViewMetadataParser.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
from attrs import field, frozen

from ledger.events.iceberg_views import (
    CurrentViewVersionSet,
    IcebergViewUpdate,
    ViewFormatUpgraded,
    ViewLocationSet,
    ViewPropertiesSet,
    ViewSchemaAdded,
    ViewUuidAssigned,
    ViewVersionAdded,
)
from ledger.locations import below, is_absolute, with_scheme
from ledger.model.errors import InvalidInputError, UnsupportedError, UpgradeRequiredError
from ledger.model.iceberg_objects import (
    IcebergViewVersion,
    Int,
    ViewLogEntry,
    ViewRepresentation,
)
from ledger.state.catalog import ViewEntry
from ledger.state.iceberg_view import COMMENT_PROPERTY, DEFAULT_DIALECT, IcebergView
from projections.iceberg.imported_metadata import ledger_schema, source_schema
from projections.iceberg.metadata_schema import Schema
from projections.iceberg.position import metadata_folder
from projections.iceberg.schema_json import (
    decode_record,
    encode_record,
    inflate_if_gzip,
    schema_from_json,
    schema_to_json,
)
from projections.iceberg.table_facts import iceberg_column

VIEW_FORMAT_VERSION: Final = 1

SCHEMA_RULES: Final = 3
"""The format version of tables whose types and defaults schemas of views may have."""

_WHAT: Final = "view metadata"
_NATIVE_SUMMARY: Final = {"engine-name": "lakeledger"}


@frozen(kw_only=True)
class ViewMetadata:
    """The contents of one view metadata file.

    Attributes:
        view_uuid: Its UUID, which never changes.
        format_version: Its format version.
        location: Its base location.
        properties: Its properties.
        schemas: Its schemas, oldest first.
        current_version_id: The id of the current version.
        versions: Its versions that are kept, oldest first.
        version_log: The version that was current, by time.
    """

    view_uuid: str
    format_version: int = VIEW_FORMAT_VERSION
    location: str
    properties: Mapping[str, str] = field(factory=dict)
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[IcebergViewVersion, ...]
    version_log: tuple[ViewLogEntry, ...] = ()

    def __attrs_post_init__(self) -> None:
        current = self.versions_by_id.get(self.current_version_id)
        if current is None:
            raise InvalidInputError(
                f"$.current-version-id: {self.current_version_id} is not among $.versions"
            )
        if all(each.schema_id != current.schema_id for each in self.schemas):
            raise InvalidInputError(
                f"$.versions: the current one has schema {current.schema_id}, which is not among "
                "$.schemas"
            )

    @cached_property
    def versions_by_id(self) -> Mapping[int, IcebergViewVersion]:
        """The versions by their ids."""
        return {each.version_id: each for each in self.versions}

    @property
    def current_version(self) -> IcebergViewVersion:
        """The current version."""
        return self.versions_by_id[self.current_version_id]


class _VersionOfFormat(msgspec.Struct, rename="kebab"):
    format_version: Int


class _ViewFile(msgspec.Struct, kw_only=True, rename="kebab", omit_defaults=True):
    view_uuid: str
    format_version: Int
    location: str
    properties: Mapping[str, str] = {}
    schemas: list[Any]
    current_version_id: Int
    versions: tuple[IcebergViewVersion, ...]
    version_log: tuple[ViewLogEntry, ...]


def read_view_metadata(content: bytes | str) -> ViewMetadata:
    """Read a view metadata file, compressed with gzip or not, and check it as Java does.

    Raises:
        UpgradeRequiredError: It is of a newer format version than 1.
        InvalidInputError: It is not view metadata, or contradicts itself.
        TooLargeError: It is too large.
    """
    text = inflate_if_gzip(content)
    version = decode_record(text, _VersionOfFormat, _WHAT).format_version
    if version > VIEW_FORMAT_VERSION:
        raise UpgradeRequiredError(
            f"the view is of format version {version}, and {VIEW_FORMAT_VERSION} is the newest "
            "that this lakeledger reads; upgrade it"
        )
    if version < 1:
        raise InvalidInputError(f"not Iceberg {_WHAT}: $.format-version: {version} is below 1")
    file = decode_record(text, _ViewFile, _WHAT)
    values = {key: getattr(file, key) for key in file.__struct_fields__ if key != "schemas"}
    schemas = tuple(
        schema_from_json(each, f"$.schemas[{index}]") for index, each in enumerate(file.schemas)
    )
    return ViewMetadata(schemas=schemas, **values)


def write_view_metadata(metadata: ViewMetadata) -> bytes:
    """Return the bytes of a view metadata file: compact JSON."""
    values = {
        key: getattr(metadata, key) for key in _ViewFile.__struct_fields__ if key != "schemas"
    }
    schemas = [schema_to_json(each) for each in metadata.schemas]
    return encode_record(_ViewFile(schemas=schemas, **values))


def view_metadata_location(metadata: ViewMetadata, content: bytes) -> str:
    """Return the location of a view's metadata file.

    The name follows from the contents, so every server gives the same file the same name, and a
    file is never replaced.

    Args:
        metadata: The metadata; property `write.metadata.path` names the folder, if it is set.
        content: Its file's bytes.
    """
    folder = metadata_folder(metadata.properties, metadata.location)
    name = uuid.UUID(bytes=hashlib.sha256(content).digest()[:16])
    return f"{folder}/{metadata.current_version_id:05}-{name}.metadata.json"


def view_metadata_of(entry: ViewEntry, home: str) -> ViewMetadata:
    """Return the Iceberg metadata of a view.

    Args:
        entry: The view in the catalog's state.
        home: The recorded URL of the ledger, which relative locations are below.

    Raises:
        UnsupportedError: Iceberg has no such view: a column's type, or two dialects of one name.
    """
    if entry.iceberg is None:
        return _native_view_metadata(entry, home)
    return metadata_of_iceberg_view(entry.iceberg, home)


def metadata_of_iceberg_view(view: IcebergView, home: str) -> ViewMetadata:
    """Return the metadata of a view from its Iceberg state; see `view_metadata_of`."""
    return ViewMetadata(
        view_uuid=view.uuid,
        format_version=view.format_version,
        location=below(with_scheme(home), view.location),
        properties=view.properties,
        schemas=tuple(source_schema(each, SCHEMA_RULES) for each in view.schemas),
        current_version_id=view.current_version_id,
        versions=view.versions,
        version_log=view.version_log,
    )


def _native_view_metadata(entry: ViewEntry, home: str) -> ViewMetadata:
    view, since = entry.schema, entry.audit.updated_at
    comment = {} if view.comment is None else {COMMENT_PROPERTY: view.comment}
    columns = tuple(iceberg_column(each, SCHEMA_RULES) for each in view.fields)
    queries = [(DEFAULT_DIALECT, view.query), *sorted(view.dialects.items())]
    version = IcebergViewVersion(
        version_id=1,
        timestamp_ms=since,
        schema_id=0,
        summary=dict(_NATIVE_SUMMARY),
        default_namespace=(entry.identifier.database,),
        representations=tuple(ViewRepresentation("sql", sql, name) for name, sql in queries),
    )
    if len(set(version.dialects)) < len(version.dialects):
        raise UnsupportedError(
            f"view {entry.identifier} has two queries of one dialect in Iceberg, which ignores "
            f"case: {', '.join(name for name, _ in queries)}; drop one of them"
        )
    return ViewMetadata(
        view_uuid=entry.view_id,
        location=f"{with_scheme(home)}/views/{entry.view_id}",
        properties={**view.options, **comment},
        schemas=(Schema(0, columns),),
        current_version_id=1,
        versions=(version,),
        version_log=(ViewLogEntry(since, 1),),
    )


def recorded_location(location: str, home: str) -> str:
    """Return a location as events have it: relative if it is below the ledger's root.

    Example:
        >>> [recorded_location(each, "/lake") for each in ("file:///lake/a.db/v", "s3://lake/v")]
        ['a.db/v', 's3://lake/v']
    """
    inside = location.removeprefix(f"{with_scheme(home)}/")
    return location if not inside or is_absolute(inside) else inside


def updates_of_metadata(metadata: ViewMetadata, home: str) -> tuple[IcebergViewUpdate, ...]:
    """Return the updates to record for a view that has metadata already.

    Raises:
        UnsupportedError: The ledger has no such type of a column.
        InvalidInputError: A version, or an entry of the version log, refers to what the file lacks.
    """
    schema_ids = {each.schema_id for each in metadata.schemas}
    _check_ids("version", {each.schema_id for each in metadata.versions}, "schema", schema_ids)
    logged = {each.version_id for each in metadata.version_log}
    _check_ids("version-log entry", logged, "version", metadata.versions_by_id.keys())
    current = metadata.current_version_id
    log = [CurrentViewVersionSet(it.version_id, it.timestamp_ms) for it in metadata.version_log]
    if not log or log[-1].view_version_id != current:
        log.append(CurrentViewVersionSet(current))
    properties = dict(sorted(metadata.properties.items()))
    return (
        ViewUuidAssigned(metadata.view_uuid),
        ViewFormatUpgraded(metadata.format_version),
        ViewLocationSet(recorded_location(metadata.location, home)),
        *((ViewPropertiesSet(properties),) if properties else ()),
        *(ViewSchemaAdded(ledger_schema(each, SCHEMA_RULES)) for each in metadata.schemas),
        *map(ViewVersionAdded, metadata.versions),
        *log,
    )


def _check_ids(what: str, named: Iterable[int], kind: str, known: Iterable[int]) -> None:
    missing = sorted(set(named) - set(known))
    if missing:
        raise InvalidInputError(
            f"a {what} of the view names {kind} {missing[0]}, which its metadata lacks"
        )
