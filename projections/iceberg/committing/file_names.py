"""Where metadata files lie and how they are called.

Source: the Iceberg table specification, "File System Tables" and "Metastore Tables"; Java's
BaseMetastoreTableOperations class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from projections.iceberg.metadata.table import TableMetadata

METADATA_PATH = "write.metadata.path"
COMPRESSION = "write.metadata.compression-codec"

_CATALOG_NAME = re.compile(r"([0-9]{1,9})-.*")
_FILE_SYSTEM_NAME = re.compile(r"v([0-9]{1,9})(?:\.gz)?\.metadata\.json(?:\.gz)?")
_METADATA_NAME = re.compile(r".*\.metadata\.json(?:\.gz)?")


def file_version(location: str) -> int | None:
    """Return the number in a metadata file's name; None if it has none.

    Example:
        >>> file_version("s3://b/t/metadata/00007-0b7c.metadata.json"), file_version("v3.txt")
        (7, None)
    """
    name = location.rsplit("/", 1)[-1]
    found = _FILE_SYSTEM_NAME.fullmatch(name)
    if found is None and _METADATA_NAME.fullmatch(name):
        found = _CATALOG_NAME.fullmatch(name)
    return int(found[1]) if found else None


def metadata_file_name(version: int, uuid: str, properties: Mapping[str, str]) -> str:
    """Return the name of a catalog table's metadata file.

    Args:
        version: 0 for the first file, then one more each time.
        uuid: A new one for each attempt to commit.
        properties: The table's, which say whether it is compressed.

    Example:
        >>> metadata_file_name(0, "0b7c", {})
        '00000-0b7c.metadata.json'
    """
    gzip = properties.get(COMPRESSION, "none").lower() == "gzip"
    return f"{version:05}-{uuid}{'.gz' if gzip else ''}.metadata.json"


def file_system_name(version: int) -> str:
    """Return the name of a file system table's metadata file.

    Example:
        >>> file_system_name(3)
        'v3.metadata.json'
    """
    return f"v{version}.metadata.json"


def metadata_folder(metadata: TableMetadata) -> str:
    """Return where a table's metadata files lie."""
    path = metadata.properties.get(METADATA_PATH, f"{metadata.location}/metadata")
    return path.removesuffix("/")


def next_location(metadata: TableMetadata, previous_location: str | None, uuid: str) -> str:
    """Return where the next metadata file of a catalog table goes.

    Args:
        metadata: What it will hold.
        previous_location: Where the one before is; None for a new table. A name without a number
            counts as none.
        uuid: A new one for each attempt to commit.
    """
    last = None if previous_location is None else file_version(previous_location)
    name = metadata_file_name(0 if last is None else last + 1, uuid, metadata.properties)
    return f"{metadata_folder(metadata)}/{name}"
