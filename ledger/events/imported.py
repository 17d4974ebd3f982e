"""Iceberg's, Paimon's and Delta's parts of events, for imported tables.

Names and meanings of Iceberg's are those of its REST updates and metadata files; ids, numbers and
times are the table's own. An event holds snapshots, refs, statistics files, keys and log entries
in Iceberg's JSON, as a metadata file does.
Snapshots, tags, expiry, columns and layouts of tables imported from Paimon and Delta use the
events of all tables; schemas with given ids and rollbacks use Iceberg's. The rest is how far the
source was followed, and Delta's own metadata of a table.

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


class ImportedPaimonTable(
    Struct,
    frozen=True,
    rename="camel",
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
    tag="paimon",
):
    """Origin of a table imported from Paimon, or created by an engine of Paimon.

    `source` names the source, without secrets; `location` is the table's folder there, which keeps
    holding its engines' manifests and data files; `schema_id` is the id of its first schema. Both
    are `.` for a table whose engines write into its own folder, wherever that is moved.
    """

    source: str
    location: str
    schema_id: int = 0


class PaimonBranchUpdated(Record, frozen=True, tag="updateBranch", kw_only=True):
    """Files of a branch of a Paimon table were added or removed.

    A branch has schemas, snapshots and tags of its own, whose ids repeat those of the main line.
    `added` are the texts of its files, by their paths below the branch's folder. A branch without
    files is deleted. A branch that was `renamed_from` another name begins with that one's files.
    """

    branch_name: str
    renamed_from: str | UnsetType = UNSET
    added: dict[str, str] | UnsetType = UNSET
    removed: tuple[str, ...] = ()


class ImportedDeltaTable(
    Struct,
    frozen=True,
    rename="camel",
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
    tag="delta",
):
    """Origin of a table imported from Delta.

    `source` names the source, without secrets; `table_id` is the id of its first metadata there.
    """

    source: str
    table_id: str


class DeltaFollowed(Record, frozen=True, tag="syncDelta", kw_only=True):
    """A version of the source has been imported completely, up to and including this transaction.

    `timestamp_millis` is its own; the effective time may be later, since that never decreases.
    `sha256` is of its commit file, in hex; absent where only a checkpoint recorded it. `protocol`
    and `metadata` are their JSON in the source, where it is new. `columns` gives the new columns
    their field ids, by the path of their physical names. `txns` are the newest versions of
    applications (Delta's `txn` actions), where new. `operation` is the source's name for what was
    done; everything else in its commit info is a property, which may be erased.
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
    """Part of a table's metadata, as events carry it and the state keeps it."""


class IcebergSchema(_Part, frozen=True, kw_only=True):
    """A schema with its Iceberg id, which need not be the current one.

    `text` is the schema's JSON where the ledger's types cannot express it, such as `fixed[16]`.
    """

    schema_id: int
    fields: tuple[FieldObject, ...]
    identifier_field_ids: tuple[int, ...] = ()
    text: str | UnsetType = field(default=UNSET, name="schemaJson")


class ImportedIcebergTable(_Part, frozen=True, kw_only=True, tag_field="type", tag="iceberg"):
    """Origin of a table imported from Iceberg, at its creation, besides its first schema.

    `source` names the source, without secrets; `location` is Iceberg's, which need not be the
    ledger's; `schema_id` is the first schema's, and `text` as in `IcebergSchema`.
    """

    source: str
    location: str
    format_version: int
    schema_id: int
    table_uuid: str | UnsetType = UNSET
    text: str | UnsetType = field(default=UNSET, name="schemaJson")


class SnapshotAdded(Record, frozen=True, tag="addSnapshot"):
    """A snapshot was added; no ref need reach it."""

    snapshot: IcebergSnapshot


class SnapshotReplaced(Record, frozen=True, tag="replaceSnapshot"):
    """An existing snapshot has other metadata, such as no parent any more; it is not a new one."""

    snapshot: IcebergSnapshot


class BranchBase(_Part, frozen=True, kw_only=True):
    """Start of a branch: the commit of its first snapshot, and the sums over its files."""

    version: int
    record_count: int
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int | UnsetType = UNSET


class SnapshotRefSet(Record, frozen=True, tag="setSnapshotRef"):
    """A branch or a tag points to a snapshot, which may be older than before.

    In the ledger's own tables the ref is a branch, which begins with `base`.
    """

    ref_name: str
    ref: SnapshotRef
    base: BranchBase | UnsetType = UNSET


class SnapshotRefRemoved(Record, frozen=True, tag="removeSnapshotRef"):
    """A branch or a tag was removed; without `main` there is no current snapshot."""

    ref_name: str


class SnapshotsRemoved(Record, frozen=True, tag="removeSnapshots"):
    """Snapshots were removed, by id, with their statistics and the refs that point to them."""

    snapshot_ids: tuple[int, ...]


class SchemaReplaced(Record, frozen=True, tag="replaceSchema"):
    """The columns were replaced: a step that no sequence of SchemaChanges expresses."""

    fields: tuple[FieldObject, ...]
    identifier_field_ids: tuple[int, ...] = ()


class SchemaNamed(Record, frozen=True, tag="assignSchemaId"):
    """The current columns became the schema of this id, which is the current one.

    `text` as in `IcebergSchema`. `time_millis` is the time that the schema has in Paimon; absent:
    that of its transaction.
    """

    schema_id: int
    text: str | UnsetType = field(default=UNSET, name="schemaJson")
    time_millis: int | UnsetType = UNSET


class SchemaAdded(Record, frozen=True, tag="addSchema"):
    """A schema was added and did not become the current one."""

    schema: IcebergSchema


class CurrentSchemaSet(Record, frozen=True, tag="setCurrentSchema"):
    """An existing schema became the current one, with its columns and their field ids."""

    schema_id: int


class SchemasRemoved(Record, frozen=True, tag="removeSchemas"):
    """Schemas were removed, none of them the current one."""

    schema_ids: tuple[int, ...]


class LayoutsRemoved(Record, frozen=True, tag="removeSpecsAndOrders", kw_only=True):
    """Partition specs and sort orders were removed, none of them a default."""

    spec_ids: tuple[int, ...] = ()
    order_ids: tuple[int, ...] = ()


class StatisticsSet(Record, frozen=True, tag="setStatistics"):
    """A snapshot has a Puffin file of statistics, which replaces an earlier one."""

    statistics: StatisticsFile


class StatisticsRemoved(Record, frozen=True, tag="removeStatistics", kw_only=True):
    """Statistics files of snapshots were removed: Puffin files, or those by partition."""

    snapshot_ids: tuple[int, ...] = ()
    of_partitions: tuple[int, ...] = field(default=(), name="partitionStatisticsSnapshotIds")


class EncryptionKeyAdded(Record, frozen=True, tag="addEncryptionKey"):
    """An encryption key was added."""

    encryption_key: EncryptionKey


class EncryptionKeyRemoved(Record, frozen=True, tag="removeEncryptionKey"):
    """An encryption key was removed."""

    key_id: str


class SnapshotLogUpdated(Record, frozen=True, tag="updateSnapshotLog", kw_only=True):
    """The snapshot log lost its `dropped` oldest entries and gained `added` ones."""

    dropped: int = 0
    added: tuple[SnapshotLogEntry, ...] = ()


class MetadataLogUpdated(Record, frozen=True, tag="updateMetadataLog", kw_only=True):
    """The metadata log lost its `dropped` oldest entries and gained `added` ones."""

    dropped: int = 0
    added: tuple[MetadataLogEntry, ...] = ()


class TableFactsSet(Record, frozen=True, tag="setTableMetadata", kw_only=True):
    """Fields and counters of the table changed that the events before it do not determine."""

    format_version: int | UnsetType = UNSET
    table_uuid: str | UnsetType = UNSET
    location: str | UnsetType = UNSET
    last_column_id: int | UnsetType = UNSET
    last_partition_id: int | UnsetType = UNSET
    last_sequence_number: int | UnsetType = UNSET
    next_row_id: int | UnsetType = UNSET


class SourceFollowed(Record, frozen=True, tag="syncSource"):
    """A metadata file of the source has been imported completely.

    `last_updated_millis` is its own; the effective time may be later, since that never decreases.
    """

    metadata_file: str
    last_updated_millis: int


IcebergEvent = (
    SnapshotAdded
    | SnapshotReplaced
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
"""Every event with Iceberg's meaning: of tables imported from it, and a few of other tables."""
