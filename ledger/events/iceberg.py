"""Iceberg's parts of events: schemas, snapshots, refs, logs of imported tables.

Names and meanings are those of Iceberg's REST updates and metadata files; ids, numbers and times
are the table's own. Snapshots, refs, statistics files, keys and log entries stand in an event as
in a metadata file, in Iceberg's JSON.

Source: the Iceberg table specification and its REST catalog specification.
"""

from msgspec import UNSET, Struct, UnsetType, field

from ledger.events.base import Record
from ledger.model.iceberg_objects import (
    EncryptionKey,
    IcebergSnapshot,
    MetadataLogEntry,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
from ledger.model.types.wire import FieldObject


class _Part(Struct, frozen=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True):
    """A part of a table's metadata, as events carry it and the state keeps it."""


class IcebergSchema(_Part, frozen=True, kw_only=True):
    """A schema under Iceberg's id, which need not be the current one.

    `text` is the schema's JSON where the ledger's types do not say all of it, as of `fixed[16]`.
    """

    schema_id: int
    fields: tuple[FieldObject, ...]
    identifier_field_ids: tuple[int, ...] = ()
    text: str | UnsetType = field(default=UNSET, name="schemaJson")


class IcebergBirth(_Part, frozen=True, kw_only=True, tag_field="type", tag="iceberg"):
    """What a table that comes from Iceberg begins with, beside its first schema.

    `source` says whose it is, without secrets; `location` is Iceberg's, which need not be the
    ledger's; `schema_id` is the first schema's, and `text` as in `IcebergSchema`.
    """

    source: str
    location: str
    format_version: int
    schema_id: int
    table_uuid: str | UnsetType = UNSET
    text: str | UnsetType = field(default=UNSET, name="schemaJson")


class SnapshotAdded(Record, frozen=True, tag="addSnapshot"):
    """There is a snapshot; whether a ref reaches it is another matter."""

    snapshot: IcebergSnapshot


class BranchBase(_Part, frozen=True, kw_only=True):
    """What a branch begins with: the commit of its snapshot, and the sums over its files."""

    version: int
    record_count: int
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int | UnsetType = UNSET


class SnapshotRefSet(Record, frozen=True, tag="setSnapshotRef"):
    """A branch or a tag points to a snapshot, an older one than before, too.

    In the ledger's own tables it is a branch, which begins with `base`.
    """

    ref_name: str
    ref: SnapshotRef
    base: BranchBase | UnsetType = UNSET


class SnapshotRefRemoved(Record, frozen=True, tag="removeSnapshotRef"):
    """A branch or a tag is gone; without `main` there is no current snapshot."""

    ref_name: str


class SnapshotsRemoved(Record, frozen=True, tag="removeSnapshots"):
    """Snapshots are gone, by id, with their statistics and the refs that point to them."""

    snapshot_ids: tuple[int, ...]


class SchemaReplaced(Record, frozen=True, tag="replaceSchema"):
    """The columns are these: a step that SchemaChanges do not say."""

    fields: tuple[FieldObject, ...]
    identifier_field_ids: tuple[int, ...] = ()


class SchemaNamed(Record, frozen=True, tag="assignSchemaId"):
    """The columns as they stand are the schema of this id, which is the current one.

    `text` as in `IcebergSchema`.
    """

    schema_id: int
    text: str | UnsetType = field(default=UNSET, name="schemaJson")


class SchemaAdded(Record, frozen=True, tag="addSchema"):
    """There is a schema beside the current one."""

    schema: IcebergSchema


class CurrentSchemaSet(Record, frozen=True, tag="setCurrentSchema"):
    """A schema that is there is the current one: its columns stand, dropped ids included."""

    schema_id: int


class SchemasRemoved(Record, frozen=True, tag="removeSchemas"):
    """Schemas are gone, none of them the current one."""

    schema_ids: tuple[int, ...]


class LayoutsRemoved(Record, frozen=True, tag="removeSpecsAndOrders", kw_only=True):
    """Partition specs and sort orders are gone, none of them a default."""

    spec_ids: tuple[int, ...] = ()
    order_ids: tuple[int, ...] = ()


class StatisticsSet(Record, frozen=True, tag="setStatistics"):
    """A snapshot has a Puffin file of statistics; it takes the place of an earlier one."""

    statistics: StatisticsFile


class StatisticsRemoved(Record, frozen=True, tag="removeStatistics", kw_only=True):
    """Snapshots have no statistics file any more, or none by partition."""

    snapshot_ids: tuple[int, ...] = ()
    of_partitions: tuple[int, ...] = field(default=(), name="partitionStatisticsSnapshotIds")


class EncryptionKeyAdded(Record, frozen=True, tag="addEncryptionKey"):
    """There is a key."""

    encryption_key: EncryptionKey


class EncryptionKeyRemoved(Record, frozen=True, tag="removeEncryptionKey"):
    """A key is gone."""

    key_id: str


class SnapshotLogUpdated(Record, frozen=True, tag="updateSnapshotLog", kw_only=True):
    """The log of current snapshots lost its `dropped` oldest entries and got these at its end."""

    dropped: int = 0
    added: tuple[SnapshotLogEntry, ...] = ()


class MetadataLogUpdated(Record, frozen=True, tag="updateMetadataLog", kw_only=True):
    """The log of metadata files lost its `dropped` oldest entries and got these at its end."""

    dropped: int = 0
    added: tuple[MetadataLogEntry, ...] = ()


class TableFactsSet(Record, frozen=True, tag="setTableMetadata", kw_only=True):
    """Facts and counters of the table, where the events before it do not say them already."""

    format_version: int | UnsetType = UNSET
    table_uuid: str | UnsetType = UNSET
    location: str | UnsetType = UNSET
    last_column_id: int | UnsetType = UNSET
    last_partition_id: int | UnsetType = UNSET
    last_sequence_number: int | UnsetType = UNSET
    next_row_id: int | UnsetType = UNSET


class SourceFollowed(Record, frozen=True, tag="syncSource"):
    """All that a metadata file of the source says has come in.

    `last_updated_millis` is its own; the time of effect may be later, since that never goes back.
    """

    metadata_file: str
    last_updated_millis: int


IcebergEvent = (
    SnapshotAdded
    | SnapshotRefSet
    | SnapshotRefRemoved
    | SnapshotsRemoved
    | SchemaReplaced
    | SchemaNamed
    | SchemaAdded
    | CurrentSchemaSet
    | SchemasRemoved
    | LayoutsRemoved
    | StatisticsSet
    | StatisticsRemoved
    | EncryptionKeyAdded
    | EncryptionKeyRemoved
    | SnapshotLogUpdated
    | MetadataLogUpdated
    | TableFactsSet
    | SourceFollowed
)
"""Every fact in Iceberg's words: of tables that were born there, and a few of others."""
