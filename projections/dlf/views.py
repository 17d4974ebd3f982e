"""The objects of the DLF metadata API that are more than a value of the model.

`Schema`, `Snapshot`, `Identifier`, `DataField`, `Instant` and `ViewSchema` are the model's own.
Names and meanings are those of the DLF page; how they are spelled stands in `keys`.
Times are Unix time in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.view import ViewSchema


@frozen(kw_only=True)
class GetTableResponse:
    """A table at one instant.

    Attributes:
        id: The table's UUID.
        name: Its name, without the database.
        path: Its location as an absolute URL.
        schema_id: The id of `schema`.
        database: Only Paimon's REST spelling has it.
    """

    id: str
    name: str
    path: str
    is_external: bool
    schema_id: int
    schema: Schema
    owner: str | None = None
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None
    database: str | None = None


@frozen(kw_only=True)
class GetViewResponse:
    """A view. The DLF page has no owner and no audit; Paimon's REST spelling does."""

    id: str
    name: str
    schema: ViewSchema
    owner: str | None = None
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None


@frozen(kw_only=True)
class TableSnapshot:
    """A snapshot with sums over its live files."""

    snapshot: Snapshot
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None = None


@frozen(kw_only=True)
class Partition:
    """A partition with sums over its live files.

    Attributes:
        spec: Partition key to the value's text, as `projections.partition_text` renders it.
        last_file_creation_time: Maximum over every file ever added or removed.
        total_buckets: This and all that follow: only Paimon's REST spelling has them.
    """

    spec: Mapping[str, str] = field(hash=False)
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None = None
    total_buckets: int = 0
    done: bool = False
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None
    options: Mapping[str, str] | None = field(default=None, hash=False)
