"""View metadata: everything that one view metadata file says, and the file.

Source: the Iceberg view specification; the order of keys is that of Java's ViewMetadataParser.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
from attrs import field, frozen

from ledger.model.errors import InvalidInputError, UpgradeRequiredError
from ledger.model.iceberg.snapshot import Int, Long
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.schema_json import schema_from_json, schema_to_json
from projections.iceberg.metadata.wire import decoded, encoded, inflated, not_a

SUPPORTED_VIEW_VERSION = 1


class ViewRepresentation(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One way to say what a view shows; of type `sql` it is a query in a dialect."""

    type: str
    sql: str | None = None
    dialect: str | None = None

    def __post_init__(self) -> None:
        if self.type == "sql" and (self.sql is None or self.dialect is None):
            raise InvalidInputError("a representation of type sql needs a sql and a dialect")


class ViewVersion(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """What a view was at one time.

    Attributes:
        version_id: Its number.
        timestamp_ms: When it was made, in milliseconds since 1970.
        schema_id: The columns that it returns; -1 in an update is the schema added last.
        summary: Facts about the change, such as the engine's name.
        default_catalog: Where names without a catalog are looked up.
        default_namespace: Where names without a namespace are looked up.
        representations: Its queries.
    """

    version_id: Int
    timestamp_ms: Long
    schema_id: Int
    summary: Mapping[str, str]
    default_catalog: str | None = None
    default_namespace: tuple[str, ...]
    representations: tuple[ViewRepresentation, ...]

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects of its queries, in lower case."""
        return tuple(each.dialect.lower() for each in self.representations if each.dialect)


class ViewLogEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """Since when a version was the current one."""

    timestamp_ms: Long
    version_id: Int


@frozen(kw_only=True)
class ViewMetadata:
    """A view as one metadata file describes it.

    Attributes:
        view_uuid: It never changes.
        format_version: 1.
        location: Base URI.
        properties: What was set.
        schemas: All of them, oldest first.
        current_version_id: Which of `versions` is the current one.
        versions: The newest ones.
        version_log: Which version was current since when, oldest first.
    """

    view_uuid: str
    format_version: int = SUPPORTED_VIEW_VERSION
    location: str
    properties: Mapping[str, str] = field(factory=dict)
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewLogEntry, ...] = ()

    @cached_property
    def versions_by_id(self) -> Mapping[int, ViewVersion]:
        """All versions by their ids."""
        return {each.version_id: each for each in self.versions}

    @property
    def current_version(self) -> ViewVersion:
        """What the view is now."""
        return self.versions_by_id[self.current_version_id]

    @property
    def schema(self) -> Schema:
        """The columns that it returns now."""
        wanted = self.current_version.schema_id
        return next(each for each in self.schemas if each.schema_id == wanted)

    def __attrs_post_init__(self) -> None:
        versions = {each.version_id: each for each in self.versions}
        current = versions.get(self.current_version_id)
        if current is None:
            raise InvalidInputError(
                f"$.current-version-id: {self.current_version_id} is not among $.versions"
            )
        if all(each.schema_id != current.schema_id for each in self.schemas):
            raise InvalidInputError(
                f"$.versions: the current one has schema {current.schema_id}, which is not among "
                "$.schemas"
            )


_WHAT = "view metadata"


class _Version(msgspec.Struct, rename="kebab"):
    format_version: Int


class _ViewFile(msgspec.Struct, kw_only=True, rename="kebab", omit_defaults=True):
    view_uuid: str
    format_version: Int
    location: str
    properties: Mapping[str, str] = {}
    schemas: list[Any]
    current_version_id: Int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewLogEntry, ...]


def read_view_metadata(content: bytes | str) -> ViewMetadata:
    """Read a view metadata file, compressed with gzip or not, and check it as Java does.

    Raises:
        UpgradeRequiredError: It is of a newer format version than 1.
        InvalidInputError: It is no view metadata, or contradicts itself.
    """
    text = inflated(content)
    version = decoded(text, _Version, _WHAT).format_version
    if version > SUPPORTED_VIEW_VERSION:
        raise UpgradeRequiredError(
            f"the view is of format version {version}, and {SUPPORTED_VIEW_VERSION} is the newest "
            "that this lakeledger reads; upgrade it"
        )
    if version < 1:
        raise not_a(_WHAT, f"$.format-version: {version} is below 1")
    file = decoded(text, _ViewFile, _WHAT)
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
    return encoded(_ViewFile(schemas=schemas, **values))
