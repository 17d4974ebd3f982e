"""The updates of Iceberg's REST catalog: the changes of a commit to a table, one by one.

Each class is one `action`; `NO_ID`, -1, stands for the schema, spec or order that was
added last in the same batch.

Source: the Iceberg REST catalog specification, TableUpdate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, Union, cast, get_args

import msgspec

from ledger.model.errors import InvalidInputError
from ledger.model.iceberg.layout import PartitionSpec, SortOrder
from ledger.model.iceberg.snapshot import (
    EncryptionKey,
    IcebergSnapshot,
    Int,
    Long,
    PartitionStatisticsFile,
    RefType,
    SnapshotRef,
    StatisticsFile,
    checked_ref,
    checked_snapshot,
)
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.schema_json import schema_from_json, schema_to_json
from projections.iceberg.metadata.wire import converted, encoded, kebab


class _Update(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="kebab",
    omit_defaults=True,
    tag_field="action",
    tag=kebab,
):
    pass


class AssignUuid(_Update, frozen=True):
    """The table is the one of this uuid."""

    uuid: str


class UpgradeFormatVersion(_Update, frozen=True):
    """It is of a newer format version."""

    format_version: Int


class AddSchema(_Update, frozen=True):
    """It has a schema; its id is replaced unless it is free, and an equal schema is used again."""

    schema: Schema


class SetCurrentSchema(_Update, frozen=True):
    """A schema is the current one."""

    schema_id: Int


class AddSpec(_Update, frozen=True):
    """It has a partition spec; ids as in `AddSchema`."""

    spec: PartitionSpec


class SetDefaultSpec(_Update, frozen=True):
    """New files have a partition spec."""

    spec_id: Int


class AddSortOrder(_Update, frozen=True):
    """It has a sort order; ids as in `AddSchema`."""

    sort_order: SortOrder


class SetDefaultSortOrder(_Update, frozen=True):
    """New files should have a sort order."""

    sort_order_id: Int


class AddSnapshot(_Update, frozen=True):
    """It has a snapshot, which no ref points to yet."""

    snapshot: IcebergSnapshot


class SetSnapshotRef(_Update, frozen=True):
    """A branch or tag points to a snapshot; the attributes are those of `SnapshotRef`."""

    ref_name: str
    snapshot_id: Long
    type: RefType
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None

    @property
    def ref(self) -> SnapshotRef:
        """The branch or tag."""
        return SnapshotRef(
            snapshot_id=self.snapshot_id,
            type=self.type,
            min_snapshots_to_keep=self.min_snapshots_to_keep,
            max_snapshot_age_ms=self.max_snapshot_age_ms,
            max_ref_age_ms=self.max_ref_age_ms,
        )


class RemoveSnapshots(_Update, frozen=True):
    """Snapshots are gone, and with them what names them."""

    snapshot_ids: tuple[Long, ...]


class RemoveSnapshotRef(_Update, frozen=True):
    """A branch or tag is gone."""

    ref_name: str


class SetLocation(_Update, frozen=True):
    """Its base URI."""

    location: str


class SetProperties(_Update, frozen=True):
    """Properties have values."""

    updates: Mapping[str, str]


class RemoveProperties(_Update, frozen=True):
    """Properties are gone."""

    removals: tuple[str, ...]


class SetStatistics(_Update, frozen=True):
    """A snapshot has a statistics file."""

    statistics: StatisticsFile


class RemoveStatistics(_Update, frozen=True):
    """A snapshot has no statistics file."""

    snapshot_id: Long


class SetPartitionStatistics(_Update, frozen=True):
    """A snapshot has a file of statistics by partition."""

    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatistics(_Update, frozen=True):
    """A snapshot has no file of statistics by partition."""

    snapshot_id: Long


class RemovePartitionSpecs(_Update, frozen=True):
    """Partition specs are gone that no file has."""

    spec_ids: tuple[Int, ...]


class RemoveSchemas(_Update, frozen=True):
    """Schemas are gone that no snapshot has."""

    schema_ids: tuple[Int, ...]


class AddEncryptionKey(_Update, frozen=True):
    """It has a key."""

    encryption_key: EncryptionKey


class RemoveEncryptionKey(_Update, frozen=True):
    """A key is gone."""

    key_id: str


SharedUpdate: TypeAlias = (
    AssignUuid | UpgradeFormatVersion | SetLocation | SetProperties | RemoveProperties
)
LayoutUpdate: TypeAlias = (
    AddSchema
    | SetCurrentSchema
    | RemoveSchemas
    | AddSpec
    | SetDefaultSpec
    | RemovePartitionSpecs
    | AddSortOrder
    | SetDefaultSortOrder
)
SnapshotUpdate: TypeAlias = (
    AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
)
KeyUpdate: TypeAlias = AddEncryptionKey | RemoveEncryptionKey
TableUpdate: TypeAlias = SharedUpdate | LayoutUpdate | SnapshotUpdate | KeyUpdate

# msgspec would read a schema by its attributes, so `schema_json` does it.
_TABLE_RECORDS: Any = Union[tuple(set(get_args(TableUpdate)) - {AddSchema})]  # noqa: UP007
_ADD_SCHEMA = kebab(AddSchema.__name__)
_OLD_NAMES = {
    "set-properties": ("updated", "updates"),
    "remove-properties": ("removed", "removals"),
}


def table_update_from_json(obj: Any) -> TableUpdate:
    """Read an update of a table.

    Args:
        obj: What a JSON decoder made of it.

    Raises:
        InvalidInputError: It is none; the message names the place.

    Example:
        >>> table_update_from_json({"action": "remove-snapshots", "snapshot-ids": [1]})
        RemoveSnapshots(snapshot_ids=(1,))
    """
    return cast("TableUpdate", _from_json(obj))


def update_to_json(update: TableUpdate) -> dict[str, Any]:
    """Return an update's JSON."""
    if isinstance(update, AddSchema):
        return {"action": _ADD_SCHEMA, "schema": schema_to_json(update.schema)}
    content: dict[str, Any] = msgspec.json.decode(encoded(update))
    return content


def _from_json(obj: Any) -> Any:
    action = obj.get("action") if isinstance(obj, dict) else None
    if action == _ADD_SCHEMA:
        if "schema" not in obj:
            raise InvalidInputError(f"not an Iceberg update: $.schema of {action} is missing")
        return AddSchema(schema=schema_from_json(obj["schema"], "$.schema"))
    if isinstance(action, str) and action in _OLD_NAMES:
        old, name = _OLD_NAMES[action]
        obj = {name: obj[old], **obj} if old in obj else obj
    found = converted(obj, _TABLE_RECORDS, f"update {action}" if action else "update")
    if isinstance(found, AddSnapshot):
        return AddSnapshot(snapshot=checked_snapshot(found.snapshot))
    if isinstance(found, SetSnapshotRef):
        checked_ref(found.ref)
    return found
