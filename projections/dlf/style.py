"""The two spellings of the same objects on the wire."""

from __future__ import annotations

from enum import Enum


class Style(Enum):
    """Whose spelling an object is written in; reading takes both without being told.

    | | `DLF` | `PAIMON_REST` |
    |---|---|---|
    | identifier | databaseName, tableName | database, object |
    | isExternal, schemaId | strings | boolean, number |
    | data type | `{"primitiveType": "INT"}` | `"INT"` |
    | instant | `{"snapshotInstant": {...}}` | `{"type": "snapshot", ...}` |
    | snapshot | has logOffsets | has uuid, writerVersion, properties, nextRowId, operation |
    | partition | spec and sums | also totalBuckets, done, options, who and when |
    """

    DLF = "DLF"
    PAIMON_REST = "Paimon REST"
