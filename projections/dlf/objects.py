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
from ledger.events.schema import RemoveOption, SchemaChange, SetOption, UpdateComment
from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.model.names import Identifier
from ledger.model.schema import Schema, ViewSchema
from ledger.model.snapshot import Snapshot
from ledger.model.types import DataField


@frozen(kw_only=True)
class Audited:
    """Who owns something, who made it and who changed it last."""

    owner: str | None = None
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None


@frozen(kw_only=True)
class Page:
    """One page of a list; `next_page_token` asks for the next one and is None on the last."""

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
    """Take options away from a database and set others.

    Example:
        >>> AlterDatabaseRequest(updates={"comment": "sales"}).removals
        ()
    """

    removals: tuple[str, ...] = ()
    updates: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class AlterDatabaseResponse:
    """Which options went, which were set, and which could not go since they were not there."""

    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@frozen(kw_only=True)
class ListDatabasesResponse(Page):
    """Names of databases."""

    databases: tuple[str, ...] = ()


@frozen
class FunctionFileResource:
    """A file that holds a function's code, such as a jar."""

    resource_type: str
    uri: str


@frozen
class FileFunctionDefinition:
    """A function in a class of files of code."""

    file_resources: tuple[FunctionFileResource, ...]
    language: str | None = None
    class_name: str | None = None
    function_name: str | None = None


@frozen
class SqlFunctionDefinition:
    """A function as an SQL expression.

    Example:
        >>> AddDefinition("trino", SqlFunctionDefinition("length * width")).definition
        SqlFunctionDefinition(definition='length * width')
    """

    definition: str


@frozen
class LambdaFunctionDefinition:
    """A function as an expression of a programming language."""

    definition: str
    language: str | None = None


FunctionDefinition = FileFunctionDefinition | SqlFunctionDefinition | LambdaFunctionDefinition


@frozen
class AddDefinition:
    """Define a function for one more engine."""

    name: str
    definition: FunctionDefinition


@frozen
class UpdateDefinition:
    """Define a function anew for an engine."""

    name: str
    definition: FunctionDefinition


@frozen
class DropDefinition:
    """Take away a function's definition for an engine."""

    name: str


FunctionChange = (
    SetOption | RemoveOption | UpdateComment | AddDefinition | UpdateDefinition | DropDefinition
)
"""What a writer may ask of a function."""


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
    """Change a function, one change after the other, all or none."""

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
        spec: Which one.
        last_file_creation_time: Maximum over every file ever added or removed, Unix milliseconds.
        total_buckets: This and all that follow: only Paimon's REST spelling has them.

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
    """What one commit adds to a partition's sums; counts may be negative."""

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
    """Make partitions known before they hold a file.

    Attributes:
        partition_specs: Which ones.
        ignore_if_exists: Whether one that exists is no error.
        partition_statistics: Their sums; a negative number means unknown.
        replace_statistics: Whether these take the place of known sums.
    """

    partition_specs: tuple[PartitionSpec, ...]
    ignore_if_exists: bool = True
    partition_statistics: tuple[PartitionStatistics, ...] | None = None
    replace_statistics: bool | None = None


@frozen
class CreatePartitionsResponse:
    """Which partitions are new and which were there already."""

    created: tuple[PartitionSpec, ...] = ()
    existed: tuple[PartitionSpec, ...] = ()


@frozen
class DropPartitionsRequest:
    """Drop partitions with all that they hold."""

    partition_specs: tuple[PartitionSpec, ...]
    ignore_if_not_exists: bool = True


@frozen
class DropPartitionsResponse:
    """Which partitions are gone and which were not there."""

    dropped: tuple[PartitionSpec, ...] = ()
    missing: tuple[PartitionSpec, ...] = ()


@frozen
class MarkDonePartitionsRequest:
    """Say that partitions are complete."""

    specs: tuple[PartitionSpec, ...]


@frozen
class ListPartitionsByNamesRequest:
    """Ask for certain partitions."""

    specs: tuple[PartitionSpec, ...]


@frozen
class ListPartitionsByFilterRequest:
    """Ask for the partitions that a predicate, as Paimon's JSON text, lets through."""

    filter: str
    partition_name_pattern: str | None = None
    max_results: int | None = None
    page_token: str | None = None


@frozen
class CreateTagRequest:
    """Name a snapshot.

    Attributes:
        tag_name: The name.
        snapshot_id: Which one; the latest unless given.
        time_retained: How long it is kept, as Paimon spells durations (`1 d`); None for ever.

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
        snapshot: The snapshot that it names.
        tag_create_time: Unix milliseconds; None where the tag was made without a retention.
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
    """Make a branch, of a tag's snapshot or empty."""

    branch: str
    from_tag: str | None = None


@frozen
class RenameBranchRequest:
    """Give a branch another name."""

    to_branch: str


@frozen
class ForwardBranchRequest:
    """Let the main branch take over a branch; the request's path names it."""


@frozen
class ListBranchesResponse:
    """Names of a table's branches; None where Paimon says nothing instead of an empty list."""

    branches: tuple[str, ...] | None = None


@frozen
class ConsumerInfo:
    """How far a reader has read; the snapshots from there on do not expire."""

    consumer_id: str
    next_snapshot: int | None = None


@frozen(kw_only=True)
class ListConsumersResponse(Page):
    """A table's consumers."""

    consumers: tuple[ConsumerInfo, ...] = ()


@frozen
class ResetConsumerRequest:
    """Set how far a reader has read; None forgets the reader."""

    consumer_id: str
    next_snapshot_id: int | None = None


@frozen
class ConfigResponse:
    """What a client has to know first.

    Attributes:
        defaults: Options that the client's own win over.
        overrides: Options that win over the client's own.
    """

    defaults: Mapping[str, str] = field(factory=dict, hash=False)
    overrides: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class ErrorResponse:
    """Why a request failed.

    Gateways answer with `Message` and `Code`; these are read, too.

    Attributes:
        resource_type: TABLE, COLUMN, SNAPSHOT, ...; None when it is about none.
        resource_name: Which one.
        message: For people.
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
    """Ask what may be read of a table; None stands for all its columns."""

    select: tuple[str, ...] | None = None


@frozen
class AuthTableQueryResponse:
    """What must be done to what is read: predicates and masks, each as Paimon's JSON text."""

    filter: tuple[str, ...] | None = None
    column_masking: Mapping[str, str] | None = field(default=None, hash=False)


ApiInstant = SnapshotInstant | TagInstant
"""The page's Instant: exactly one of these two."""


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
    """The snapshot that a table stands at."""

    snapshot: TableSnapshot


@frozen
class GetVersionSnapshotResponse:
    """The snapshot that a version names: EARLIEST, LATEST, a number or a tag."""

    snapshot: Snapshot


@frozen(kw_only=True)
class ListSnapshotsResponse(Page):
    """Snapshots of one table."""

    snapshots: tuple[Snapshot, ...] = ()


@frozen(kw_only=True)
class CommitTableRequest:
    """Add a snapshot if the table still stands where the writer left it.

    Attributes:
        table_id: The table's UUID, which a new table of the same name does not have.
        base_snapshot_uuid: UUID of the snapshot built upon; None for the first one.
        snapshot: The new snapshot.
        statistics: What it adds to each partition; counts may be negative.
    """

    table_id: str
    base_snapshot_uuid: str | None = None
    snapshot: Snapshot
    statistics: tuple[PartitionStatistics, ...] = ()


@frozen
class CommitTableResponse:
    """Whether the snapshot was added; False when somebody else was first."""

    success: bool


@frozen
class RollbackTableRequest:
    """Go back to an older snapshot.

    Attributes:
        instant: Where to.
        from_snapshot: The snapshot that must be the latest for this to happen; None for any.

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
        database: Only Paimon's REST spelling has it.

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
    """Change a table's schema, one change after the other, all or none."""

    changes: tuple[SchemaChange, ...]


@frozen
class ReplaceTableRequest:
    """Empty a table and give it another schema."""

    schema: Schema


@frozen
class RenameRequest:
    """Give a table or a view another name. Paimon's class is RenameTableRequest for both."""

    source: Identifier
    destination: Identifier


@frozen
class RegisterTableRequest:
    """Make a table known that exists at `path` already."""

    identifier: Identifier
    path: str


@frozen
class RollbackSchemaRequest:
    """Go back to an older schema."""

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
    """A view. The DLF page has no owner and no audit; Paimon's REST spelling does.

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
    """Change a view, one change after the other, all or none."""

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
