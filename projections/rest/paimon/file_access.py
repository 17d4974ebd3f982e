"""Properties with which Paimon's clients reach a table's files, from the operator's configuration.

Java's file systems and pypaimon read S3 properties whose names differ from those of Iceberg's
clients, except for `s3.endpoint` and `s3.path-style-access`. One configuration serves both:
Iceberg's names are translated, and properties with Paimon's own names (`fs.oss.accessKeyId`,
`s3.access-key`, `gcs.access-token`) are passed as they are, and win.

A client uses them if its option `data-token.enabled` is true. It is by default where the
configuration holds the ledger itself and names an object store; pypaimon cannot use tokens for
files of this machine.

Source: Paimon's RESTTokenFileIO and S3FileIO; pypaimon's RESTTokenFileIO and PyArrowFileIO.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ledger.locations import place_of
from projections.rest.served_ledger import StorageConfig

_PAIMON_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "s3.access-key-id": ("s3.access-key",),
    "s3.secret-access-key": ("s3.secret-key",),
    "s3.session-token": ("s3.session.token",),
    "s3.region": ("s3.endpoint.region",),
    "client.region": ("s3.region", "s3.endpoint.region"),
}
"""Names of Paimon's clients by that of Iceberg's clients."""


def file_properties(storage: StorageConfig, location: str) -> dict[str, str] | None:
    """Return the properties for the files of a location; None if no configuration holds it.

    Example:
        >>> storage = StorageConfig({"s3://lake/": {"s3.access-key-id": "ann"}})
        >>> file_properties(storage, "s3://lake/shop.db/orders")
        {'s3.access-key': 'ann', 's3.access-key-id': 'ann'}
        >>> file_properties(storage, "s3://other/orders") is None
        True
    """
    found = storage.of(location)
    if not found:
        return None
    configured = {name: value for _, each in found for name, value in each.items()}
    translated = {
        other: value for name, value in configured.items() for other in _PAIMON_NAMES.get(name, ())
    }
    return translated | configured


def default_options(storage: StorageConfig, home: str) -> dict[str, str]:
    """Return options for clients that do not set them.

    Args:
        storage: The configuration.
        home: The location of the ledger.

    Example:
        >>> default_options(StorageConfig({"s3://lake": {"s3.region": "eu"}}), "s3://lake/ledger")
        {'data-token.enabled': 'true'}
    """
    is_held = bool(storage.of(home)) and place_of(home).family != "file"
    return {"data-token.enabled": "true"} if is_held else {}
