"""View metadata files: reading and writing.

Source: the Iceberg view specification; the order of keys is that of Java's ViewMetadataParser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ledger.model.errors import UpgradeRequiredError
from projections.iceberg.metadata.schema_json import schema_from_json, schema_to_json
from projections.iceberg.metadata.view import (
    SUPPORTED_VIEW_VERSION,
    ViewLogEntry,
    ViewMetadata,
    ViewVersion,
)
from projections.iceberg.metadata.wire import Int, decoded, encoded, inflated, not_a

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
