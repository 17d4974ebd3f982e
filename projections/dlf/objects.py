"""Objects of the metadata API. Source: Paimon's REST classes.

Source: the DLF page's Partition; Paimon's Partition, PartitionStatistics and REST classes. A spec
maps a partition key to its value's text, as `projections.partition_text` renders it.

Source: Paimon's REST classes.

Source: the DLF page's TableSnapshot and Instant; Paimon's REST classes for the rest.

Source: the DLF page's GetTableResponse; Paimon's REST classes for the rest.

Source: the DLF page's GetViewResponse and ViewSchema; Paimon's REST classes for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ledger.events.catalog import ViewChange
from ledger.events.functions import FunctionChange
from ledger.events.schema import SchemaChange
from ledger.model.functions import FunctionDefinition
from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.model.names import Identifier
from ledger.model.schema import Schema, ViewSchema
from ledger.model.snapshot import Snapshot
from ledger.model.types import DataField


@frozen(kw_only=True)
class Audited:
    """Owner, creator and last editor of an object, with times."""

    owner: str | None = None
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None


@frozen(kw_only=True)
class Page:
    """One page of a list; `next_page_token` requests the next one and is None on the last."""

    next_page_token: str | None = None


@frozen
class CreateDatabaseRequest:
    """Create a database."""

    name: str
    options: Mapping[str, str] = field(factory=dict, hash=False)


@frozen(kw_only=True)
class GetDatabaseResponse(Audited):
    """A database; `location` is an absolute URL."""

    id: str
    name: str
    location: str | None = None
    options: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class AlterDatabaseRequest:
    """Remove options of a database and set others.

    Example:
        >>> AlterDatabaseRequest(updates={"comment": "sales"}).removals
        ()
    """

    removals: tuple[str, ...] = ()
    updates: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class AlterDatabaseResponse:
    """Options that were removed, set, and missing, so that they could not be removed."""

    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListDatabasesResponse(Page):
    """Names of databases."""

    databases: tuple[str, ...] = ()


@frozen(kw_only=True)
class CreateFunctionRequest:
    """Create a function; `definitions` are by engine."""

    name: str
    input_params: tuple[DataField, ...] | None = None
    return_params: tuple[DataField, ...] | None = None
    deterministic: bool = False
    definitions: Mapping[str, FunctionDefinition] = field(factory=dict, hash=False)
    comment: str | None = None
    options: Mapping[str, str] = field(factory=dict, hash=False)


@frozen(kw_only=True)
class GetFunctionResponse(Audited):
    """A function."""

    uuid: str
    name: str
    input_params: tuple[DataField, ...] | None = None
    return_params: tuple[DataField, ...] | None = None
    deterministic: bool = False
    definitions: Mapping[str, FunctionDefinition] = field(factory=dict, hash=False)
    comment: str | None = None
    options: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class AlterFunctionRequest:
    """Change a function; the changes are applied in order, all or none."""

    changes: tuple[FunctionChange, ...]


@frozen(kw_only=True)
class ListFunctionsResponse(Page):
    """Names of the functions of one database."""

    functions: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListFunctionDetailsResponse(Page):
    """The functions of one database, in full."""

    function_details: tuple[GetFunctionResponse, ...] = ()


@frozen(kw_only=True)
class ListFunctionsGloballyResponse(Page):
    """Full names of functions in any database."""

    functions: tuple[Identifier, ...] = ()


PartitionSpec = Mapping[str, str]


@frozen(kw_only=True)
class Partition:
    """A partition with sums over its live files.

    Attributes:
        spec: The partition's spec.
        last_file_creation_time: Maximum over every file ever added or removed, Unix milliseconds.
        total_buckets: This and all that follow: only in Paimon's REST spelling.

    Example:
        >>> Partition(
        ...     spec={"year": "2025"}, record_count=1, file_size_in_bytes=1024, file_count=1
        ... ).done
        False
    """

    spec: PartitionSpec = field(hash=False)
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


@frozen(kw_only=True)
class PartitionStatistics:
    """Change of a partition's sums by one commit; counts may be negative."""

    spec: PartitionSpec = field(hash=False)
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None = None
    total_buckets: int = 0


@frozen(kw_only=True)
class ListPartitionsResponse(Page):
    """Partitions of one table."""

    partitions: tuple[Partition, ...] = ()


@frozen
class CreatePartitionsRequest:
    """Create partitions before they hold a file.

    Attributes:
        partition_specs: The partitions' specs.
        ignore_if_exists: Whether an existing one is no error.
        partition_statistics: Their sums; a negative number means unknown.
        replace_statistics: Whether these replace known sums.
    """

    partition_specs: tuple[PartitionSpec, ...]
    ignore_if_exists: bool = True
    partition_statistics: tuple[PartitionStatistics, ...] | None = None
    replace_statistics: bool | None = None


@frozen
class CreatePartitionsResponse:
    """Partitions that were created, and those that existed already."""

    created: tuple[PartitionSpec, ...] = ()
    existed: tuple[PartitionSpec, ...] = ()


@frozen
class DropPartitionsRequest:
    """Drop partitions with all their files."""

    partition_specs: tuple[PartitionSpec, ...]
    ignore_if_not_exists: bool = True


@frozen
class DropPartitionsResponse:
    """Partitions that were dropped, and those that did not exist."""

    dropped: tuple[PartitionSpec, ...] = ()
    missing: tuple[PartitionSpec, ...] = ()


@frozen
class MarkDonePartitionsRequest:
    """Mark partitions as complete."""

    specs: tuple[PartitionSpec, ...]


@frozen
class ListPartitionsByNamesRequest:
    """List the partitions with given specs."""

    specs: tuple[PartitionSpec, ...]


@frozen
class ListPartitionsByFilterRequest:
    """List the partitions that match a predicate, given as Paimon's JSON text."""

    filter: str
    partition_name_pattern: str | None = None
    max_results: int | None = None
    page_token: str | None = None


@frozen
class CreateTagRequest:
    """Create a tag.

    Attributes:
        tag_name: The name.
        snapshot_id: The tagged snapshot; the latest unless given.
        time_retained: The retention in Paimon's spelling of durations (`1 d`); None for ever.

    Example:
        >>> CreateTagRequest("v1", snapshot_id=3).time_retained is None
        True
    """

    tag_name: str
    snapshot_id: int | None = None
    time_retained: str | None = None


@frozen
class GetTagResponse:
    """A tag and its snapshot.

    Attributes:
        tag_name: The name.
        snapshot: The tagged snapshot.
        tag_create_time: Unix milliseconds; None for a tag without retention.
        tag_time_retained: An ISO 8601 duration, such as `PT24H`; None for ever.
    """

    tag_name: str
    snapshot: Snapshot
    tag_create_time: int | None = None
    tag_time_retained: str | None = None


@frozen(kw_only=True)
class ListTagsResponse(Page):
    """Names of a table's tags."""

    tags: tuple[str, ...] = ()


@frozen
class CreateBranchRequest:
    """Create a branch, from a tag's snapshot or empty."""

    branch: str
    from_tag: str | None = None


@frozen
class RenameBranchRequest:
    """Rename a branch."""

    to_branch: str


@frozen
class ForwardBranchRequest:
    """Fast-forward the main branch to a branch; the request's path names it."""


@frozen
class ListBranchesResponse:
    """Names of a table's branches; None where Paimon leaves out an empty list."""

    branches: tuple[str, ...] | None = None


@frozen
class ConsumerInfo:
    """Read position of a consumer; snapshots from there on do not expire."""

    consumer_id: str
    next_snapshot: int | None = None


@frozen(kw_only=True)
class ListConsumersResponse(Page):
    """A table's consumers."""

    consumers: tuple[ConsumerInfo, ...] = ()


@frozen
class ResetConsumerRequest:
    """Set a consumer's read position; None removes the consumer."""

    consumer_id: str
    next_snapshot_id: int | None = None


@frozen
class ConfigResponse:
    """Configuration that a client reads at startup.

    Attributes:
        defaults: Options that the client's own override.
        overrides: Options that override the client's own.
    """

    defaults: Mapping[str, str] = field(factory=dict, hash=False)
    overrides: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class ErrorResponse:
    """Error of a failed request.

    Gateways answer with `Message` and `Code`; these are read as well.

    Attributes:
        resource_type: TABLE, COLUMN, SNAPSHOT, ...; None if it concerns no resource.
        resource_name: The resource's name.
        message: A message for the user.
        code: The HTTP status.

    Example:
        >>> ErrorResponse("TABLE", "orders", "there is no such table", code=404).code
        404
    """

    resource_type: str | None = None
    resource_name: str | None = None
    message: str | None = None
    code: int = field(kw_only=True)


@frozen
class GetTableTokenResponse:
    """Credentials for a table's files, good until `expires_at_millis` (Unix milliseconds)."""

    token: Mapping[str, str] = field(hash=False, repr=False)
    expires_at_millis: int


@frozen
class AuthTableQueryRequest:
    """Request the filters and masks for reading a table; None means all its columns."""

    select: tuple[str, ...] | None = None


@frozen
class AuthTableQueryResponse:
    """Filters and masks to apply when reading: predicates, each as Paimon's JSON text."""

    filter: tuple[str, ...] | None = None
    column_masking: Mapping[str, str] | None = field(default=None, hash=False)


ApiInstant = SnapshotInstant | TagInstant
"""The page's Instant: exactly one of the two is given."""


@frozen(kw_only=True)
class TableSnapshot:
    """A snapshot with sums over its live files.

    `last_file_creation_time` is Unix time in milliseconds; None before the first file.
    """

    snapshot: Snapshot
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None = None


@frozen
class GetTableSnapshotResponse:
    """The current snapshot of a table."""

    snapshot: TableSnapshot


@frozen
class GetVersionSnapshotResponse:
    """The snapshot of a version: EARLIEST, LATEST, a number or a tag."""

    snapshot: Snapshot


@frozen(kw_only=True)
class ListSnapshotsResponse(Page):
    """Snapshots of one table."""

    snapshots: tuple[Snapshot, ...] = ()


@frozen(kw_only=True)
class CommitTableRequest:
    """Commit a snapshot if the table is unchanged since the writer read it.

    Attributes:
        table_id: The table's UUID; a new table of the same name has another one.
        base_snapshot_uuid: UUID of the snapshot that it is based on; None for the first one.
        snapshot: The new snapshot.
        statistics: Its changes of each partition's sums; counts may be negative.
    """

    table_id: str
    base_snapshot_uuid: str | None = None
    snapshot: Snapshot
    statistics: tuple[PartitionStatistics, ...] = ()


@frozen
class CommitTableResponse:
    """Result of a snapshot commit; False if another writer was first."""

    success: bool


@frozen
class RollbackTableRequest:
    """Roll back to an older snapshot.

    Attributes:
        instant: The target.
        from_snapshot: The snapshot that must be the latest one; None for any.

    Example:
        >>> RollbackTableRequest(TagInstant("v1")).instant
        TagInstant(tag_name='v1')
    """

    instant: ApiInstant
    from_snapshot: int | None = None


@frozen(kw_only=True)
class GetTableResponse(Audited):
    """A table at one instant.

    Attributes:
        id: The table's UUID.
        name: Its name, without the database.
        path: Its location as an absolute URL.
        schema_id: The id of `schema`.
        database: Only in Paimon's REST spelling.

    Example:
        >>> table = GetTableResponse(
        ...     id="1", name="orders", path="oss://lake/orders", is_external=True, schema_id=0,
        ...     schema=Schema.of({"id": "BIGINT"}),
        ... )
        >>> table.owner is None
        True
    """

    id: str
    name: str
    path: str
    is_external: bool
    schema_id: int
    schema: Schema
    database: str | None = None


@frozen
class CreateTableRequest:
    """Create a table; the schema's field ids are the caller's proposal."""

    identifier: Identifier
    schema: Schema


@frozen
class AlterTableRequest:
    """Change a table's schema; the changes are applied in order, all or none."""

    changes: tuple[SchemaChange, ...]


@frozen
class ReplaceTableRequest:
    """Remove all rows of a table and replace its schema."""

    schema: Schema


@frozen
class RenameRequest:
    """Rename a table or a view. Paimon's class is RenameTableRequest for both."""

    source: Identifier
    destination: Identifier


@frozen
class RegisterTableRequest:
    """Register a table that exists at `path` already."""

    identifier: Identifier
    path: str


@frozen
class RollbackSchemaRequest:
    """Roll back to an older schema."""

    schema_id: int


@frozen(kw_only=True)
class ListTablesResponse(Page):
    """Names of the tables of one database."""

    tables: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListTableDetailsResponse(Page):
    """The tables of one database, in full."""

    table_details: tuple[GetTableResponse, ...] = ()


@frozen(kw_only=True)
class ListTablesGloballyResponse(Page):
    """Full names of tables in any database."""

    tables: tuple[Identifier, ...] = ()


@frozen(kw_only=True)
class GetViewResponse(Audited):
    """A view. Owner and audit are only in Paimon's REST spelling, not on the DLF page.

    Example:
        >>> GetViewResponse(id="1", name="view_demo", schema=ViewSchema((), "SELECT 1")).name
        'view_demo'
    """

    id: str
    name: str
    schema: ViewSchema


@frozen
class CreateViewRequest:
    """Create a view."""

    identifier: Identifier
    schema: ViewSchema


@frozen
class AlterViewRequest:
    """Change a view; the changes are applied in order, all or none."""

    changes: tuple[ViewChange, ...]


@frozen(kw_only=True)
class ListViewsResponse(Page):
    """Names of the views of one database."""

    views: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListViewDetailsResponse(Page):
    """The views of one database, in full."""

    view_details: tuple[GetViewResponse, ...] = ()


@frozen(kw_only=True)
class ListViewsGloballyResponse(Page):
    """Full names of views in any database."""

    views: tuple[Identifier, ...] = ()
