"""Iceberg's, Paimon's and Delta's parts of events, for imported tables.

Names and meanings of Iceberg's are those of its REST updates and metadata files; ids, numbers and
times are the table's own. Snapshots, refs, statistics files, keys and log entries are in an event
as in a metadata file, in Iceberg's JSON.

Snapshots, tags, expiry, columns and layouts of tables imported from Paimon and Delta are in the
events of all tables; schemas under their own ids and rollbacks are in Iceberg's. What is left is
how far the source was followed, and Delta's own metadata of a table.

Source: the Iceberg table specification and its REST catalog specification; Paimon's file layout;
the Delta transaction protocol.
"""

from msgspec import UNSET, Struct, UnsetType, field

from ledger.events.commit import Record
from ledger.model.iceberg_objects import (
    EncryptionKey,
    IcebergSnapshot,
    MetadataLogEntry,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
from ledger.model.types.wire import FieldObject


class PaimonBirth(
    Struct,
    frozen=True,
    rename="camel",
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
    tag="paimon",
):
    """Where a table that comes from Paimon comes from.

    `source` says whose it is, without secrets; `location` is its folder there, below which its
    engines' manifests and data files stay; `schema_id` is the id of its first schema.
    """

    source: str
    location: str
    schema_id: int = 0


class PaimonBranchUpdated(Record, frozen=True, tag="updateBranch", kw_only=True):
    """A branch of a Paimon table has these files now, and those no more.

    A branch has schemas, snapshots and tags of its own, whose ids are those of the main line over
    again. `added` are their files' texts, by their paths below the branch's folder. A branch
    without files is gone.
    """

    branch_name: str
    added: dict[str, str] | UnsetType = UNSET
    removed: tuple[str, ...] = ()


class DeltaBirth(
    Struct,
    frozen=True,
    rename="camel",
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
    tag="delta",
):
    """Where a table that comes from Delta comes from.

    `source` says whose it is, without secrets; `table_id` is the id of its first metadata there.
    """

    source: str
    table_id: str


class DeltaFollowed(Record, frozen=True, tag="syncDelta", kw_only=True):
    """All that a version of the source says has come in, up to and with this transaction.

    `timestamp_millis` is its own; the time of effect may be later, since that never goes back.
    `sha256` is of its commit file, in hex; absent where only a checkpoint told of it. `protocol`
    and `metadata` are the JSON that stands there, where it is new. `columns` gives the columns that
    are new their field ids, by the path of their physical names. `txns` are how far writers with
    keys of their own have come, where that is new. `operation` is what the source calls what was
    done; all else that it says of the commit is a property, which may be erased.
    """

    delta_version: int
    timestamp_millis: int
    sha256: str | UnsetType = UNSET
    protocol: str | UnsetType = UNSET
    metadata: str | UnsetType = UNSET
    columns: dict[str, int] | UnsetType = UNSET
    txns: dict[str, int] | UnsetType = UNSET
    operation: str | UnsetType = UNSET


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
