"""Updates and requirements of Iceberg's REST catalog.

Each class is one `action`; `NO_ID`, -1, refers to the schema, spec or order that was
added last in the same batch.

Source: the Iceberg REST catalog specification, TableUpdate.

Source: the Iceberg REST catalog specification, TableRequirement; the requirements of each update
are those of Java's UpdateRequirements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, Union, assert_never, cast, get_args

import msgspec

from ledger.model.errors import InvalidInputError, LedgerError
from ledger.model.iceberg_layout import PartitionSpec, SortOrder
from ledger.model.iceberg_objects import (
    MAIN,
    EncryptionKey,
    IcebergSnapshot,
    Int,
    Long,
    PartitionStatisticsFile,
    RefType,
    SnapshotRef,
    StatisticsFile,
    validate_foreign_ref,
    validate_foreign_snapshot,
)
from projections.iceberg.metadata_schema import Schema
from projections.iceberg.schema_json import (
    convert_record,
    encode_record,
    kebab_case,
    schema_from_json,
    schema_to_json,
)
from projections.iceberg.table_metadata import TableMetadata


class _Update(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="kebab",
    omit_defaults=True,
    tag_field="action",
    tag=kebab_case,
):
    pass


class AssignUuid(_Update, frozen=True):
    """Assign the table's UUID."""

    uuid: str


class UpgradeFormatVersion(_Update, frozen=True):
    """Upgrade the format version."""

    format_version: Int


class AddSchema(_Update, frozen=True):
    """Add a schema; its id is replaced if it is taken, and an equal schema is reused."""

    schema: Schema


class SetCurrentSchema(_Update, frozen=True):
    """Make a schema the current one."""

    schema_id: Int


class AddSpec(_Update, frozen=True):
    """Add a partition spec; ids as in `AddSchema`."""

    spec: PartitionSpec


class SetDefaultSpec(_Update, frozen=True):
    """Make a partition spec the default one."""

    spec_id: Int


class AddSortOrder(_Update, frozen=True):
    """Add a sort order; ids as in `AddSchema`."""

    sort_order: SortOrder


class SetDefaultSortOrder(_Update, frozen=True):
    """Make a sort order the default one."""

    sort_order_id: Int


class AddSnapshot(_Update, frozen=True):
    """Add a snapshot, without a ref to it."""

    snapshot: IcebergSnapshot


class SetSnapshotRef(_Update, frozen=True):
    """Set a branch or tag; the attributes are those of `SnapshotRef`."""

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
    """Remove snapshots, and refs and statistics of them."""

    snapshot_ids: tuple[Long, ...]


class RemoveSnapshotRef(_Update, frozen=True):
    """Remove a branch or tag."""

    ref_name: str


class SetLocation(_Update, frozen=True):
    """Set the table's base URI."""

    location: str


class SetProperties(_Update, frozen=True):
    """Set properties."""

    updates: Mapping[str, str]


class RemoveProperties(_Update, frozen=True):
    """Remove properties."""

    removals: tuple[str, ...]


class SetStatistics(_Update, frozen=True):
    """Set a snapshot's statistics file."""

    statistics: StatisticsFile


class RemoveStatistics(_Update, frozen=True):
    """Remove a snapshot's statistics file."""

    snapshot_id: Long


class SetPartitionStatistics(_Update, frozen=True):
    """Set a snapshot's partition statistics file."""

    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatistics(_Update, frozen=True):
    """Remove a snapshot's partition statistics file."""

    snapshot_id: Long


class RemovePartitionSpecs(_Update, frozen=True):
    """Remove partition specs that no file uses."""

    spec_ids: tuple[Int, ...]


class RemoveSchemas(_Update, frozen=True):
    """Remove schemas that no snapshot uses."""

    schema_ids: tuple[Int, ...]


class AddEncryptionKey(_Update, frozen=True):
    """Add an encryption key."""

    encryption_key: EncryptionKey


class RemoveEncryptionKey(_Update, frozen=True):
    """Remove an encryption key."""

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

# msgspec would decode a schema by its attributes, so `schema_json` reads it.
_TABLE_RECORDS: Any = Union[tuple(set(get_args(TableUpdate)) - {AddSchema})]  # noqa: UP007
_ADD_SCHEMA = kebab_case(AddSchema.__name__)
_OLD_NAMES = {
    "set-properties": ("updated", "updates"),
    "remove-properties": ("removed", "removals"),
}


def table_update_from_json(obj: Any) -> TableUpdate:
    """Read an update of a table.

    Args:
        obj: The update as decoded JSON.

    Raises:
        InvalidInputError: It is not an update; the message names the place.

    Example:
        >>> table_update_from_json({"action": "remove-snapshots", "snapshot-ids": [1]})
        RemoveSnapshots(snapshot_ids=(1,))
    """
    return cast("TableUpdate", _update_from_json(obj))


def update_to_json(update: TableUpdate) -> dict[str, Any]:
    """Return an update's JSON."""
    if isinstance(update, AddSchema):
        return {"action": _ADD_SCHEMA, "schema": schema_to_json(update.schema)}
    content: dict[str, Any] = msgspec.json.decode(encode_record(update))
    return content


def _update_from_json(obj: Any) -> Any:
    action = obj.get("action") if isinstance(obj, dict) else None
    if action == _ADD_SCHEMA:
        if "schema" not in obj:
            raise InvalidInputError(f"not an Iceberg update: $.schema of {action} is missing")
        return AddSchema(schema=schema_from_json(obj["schema"], "$.schema"))
    if isinstance(action, str) and action in _OLD_NAMES:
        old, name = _OLD_NAMES[action]
        obj = {name: obj[old], **obj} if old in obj else obj
    found = convert_record(obj, _TABLE_RECORDS, f"update {action}" if action else "update")
    if isinstance(found, AddSnapshot):
        return AddSnapshot(snapshot=validate_foreign_snapshot(found.snapshot))
    if isinstance(found, SetSnapshotRef):
        validate_foreign_ref(found.ref)
    return found


class _Requirement(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", tag_field="type", tag=kebab_case
):
    pass


class AssertCreate(_Requirement, frozen=True):
    """Require that the table does not exist."""


class AssertTableUuid(_Requirement, frozen=True):
    """Require that the table has a UUID."""

    uuid: str


class AssertRefSnapshotId(_Requirement, frozen=True):
    """Require that a ref points to a snapshot, or does not exist if that is None."""

    ref: str
    snapshot_id: Long | None


class AssertLastAssignedFieldId(_Requirement, frozen=True):
    """Require that the last assigned field id is unchanged."""

    last_assigned_field_id: Int


class AssertCurrentSchemaId(_Requirement, frozen=True):
    """Require that the current schema is unchanged."""

    current_schema_id: Int


class AssertLastAssignedPartitionId(_Requirement, frozen=True):
    """Require that the last assigned partition field id is unchanged."""

    last_assigned_partition_id: Int


class AssertDefaultSpecId(_Requirement, frozen=True):
    """Require that the default partition spec is unchanged."""

    default_spec_id: Int


class AssertDefaultSortOrderId(_Requirement, frozen=True):
    """Require that the default sort order is unchanged."""

    default_sort_order_id: Int


_OfTheBase: TypeAlias = (
    AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)
TableRequirement: TypeAlias = AssertCreate | _OfTheBase
_RECORDS: Any = TableRequirement


def requirement_from_json(obj: Any) -> TableRequirement:
    """Read a requirement.

    Args:
        obj: The requirement as decoded JSON.

    Raises:
        InvalidInputError: It is not a requirement; the message names the place.

    Example:
        >>> requirement_from_json({"type": "assert-default-spec-id", "default-spec-id": 0})
        AssertDefaultSpecId(default_spec_id=0)
    """
    return cast("TableRequirement", convert_record(obj, _RECORDS, "requirement"))


def requirement_to_json(requirement: TableRequirement) -> dict[str, Any]:
    """Return a requirement's JSON."""
    content: dict[str, Any] = msgspec.json.decode(encode_record(requirement))
    return content


def check_requirements(
    base: TableMetadata | None, requirements: Iterable[TableRequirement]
) -> None:
    """Check that all requirements hold for a table.

    Args:
        base: The table's metadata, or None if there is no such table.
        requirements: The requirements.

    Raises:
        StaleBaseError: A requirement does not hold.
    """
    for requirement in requirements:
        _check_requirement(base, requirement)


def requirements_of(
    base: TableMetadata | None, batch: Iterable[TableUpdate]
) -> list[TableRequirement]:
    """Return the requirements of a batch of updates that is based on `base`.

    Without `base`, only that the table does not exist.
    """
    if base is None:
        return [AssertCreate()]
    required: list[TableRequirement] = [AssertTableUuid(uuid=base.table_uuid or "")]
    for update in batch:
        # A ref is required at its first position, however often the batch moves it.
        required.extend(
            each for each in _requirements_of_update(base, update) if each not in required
        )
    return required


def requirements_of_replacement(
    base: TableMetadata, batch: Iterable[TableUpdate]
) -> list[TableRequirement]:
    """Return the requirements of a batch that replaces a table: only that new ids are unused."""
    kept = (AssertTableUuid, AssertLastAssignedFieldId, AssertLastAssignedPartitionId)
    return [each for each in requirements_of(base, batch) if isinstance(each, kept)]


def _requirements_of_update(  # noqa: PLR0911 - one return per case
    base: TableMetadata, update: TableUpdate
) -> list[TableRequirement]:
    match update:
        case SetSnapshotRef(ref_name=name):
            ref = base.refs.get(name)
            return [AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id if ref else None)]
        case AddSchema():
            return [AssertLastAssignedFieldId(last_assigned_field_id=base.last_column_id)]
        case SetCurrentSchema():
            return [AssertCurrentSchemaId(current_schema_id=base.current_schema_id)]
        case AddSpec():
            return [
                AssertLastAssignedPartitionId(last_assigned_partition_id=base.last_partition_id)
            ]
        case SetDefaultSpec():
            return [AssertDefaultSpecId(default_spec_id=base.default_spec_id)]
        case SetDefaultSortOrder():
            return [AssertDefaultSortOrderId(default_sort_order_id=base.default_sort_order_id)]
        case RemoveSchemas():
            return [
                AssertCurrentSchemaId(current_schema_id=base.current_schema_id),
                *_require_other_branches(base),
            ]
        case RemovePartitionSpecs():
            return [
                AssertDefaultSpecId(default_spec_id=base.default_spec_id),
                *_require_other_branches(base),
            ]
        case _:
            return []


def _require_other_branches(base: TableMetadata) -> list[AssertRefSnapshotId]:
    """Require all branches but `main` to be unchanged, so none uses what is being removed."""
    return [
        AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id)
        for name, ref in base.refs.items()
        if ref.type == "branch" and name != MAIN
    ]


def _check_requirement(base: TableMetadata | None, requirement: TableRequirement) -> None:
    if isinstance(requirement, AssertCreate):
        if base is not None:
            raise StaleBaseError(
                "Requirement failed: table already exists; load it and commit to it"
            )
        return
    if base is None:
        raise StaleBaseError("Requirement failed: the table does not exist, so none on it can hold")
    wanted, found, what = _required_and_actual(base, requirement)
    if wanted != found:
        raise _stale_base_error(what, wanted, found)


def _required_and_actual(  # noqa: PLR0911 - one return per case
    base: TableMetadata, requirement: _OfTheBase
) -> tuple[object, object, str]:
    match requirement:
        case AssertTableUuid(uuid=uuid):
            return uuid.lower(), (base.table_uuid or "").lower(), "UUID does not match"
        case AssertRefSnapshotId(ref=name, snapshot_id=snapshot_id):
            ref = base.refs.get(name)
            kind = "branch" if ref is None else ref.type
            what = "was created concurrently" if snapshot_id is None else "has changed"
            return snapshot_id, ref.snapshot_id if ref else None, f"{kind} {name} {what}"
        case AssertLastAssignedFieldId(last_assigned_field_id=number):
            return number, base.last_column_id, "last assigned field id changed"
        case AssertCurrentSchemaId(current_schema_id=number):
            return number, base.current_schema_id, "current schema changed"
        case AssertLastAssignedPartitionId(last_assigned_partition_id=number):
            return number, base.last_partition_id, "last assigned partition id changed"
        case AssertDefaultSpecId(default_spec_id=number):
            return number, base.default_spec_id, "default partition spec changed"
        case AssertDefaultSortOrderId(default_sort_order_id=number):
            return number, base.default_sort_order_id, "default sort order changed"
        case _:
            assert_never(requirement)


def _stale_base_error(what: str, wanted: object, found: object) -> StaleBaseError:
    return StaleBaseError(
        f"Requirement failed: {what}: expected {wanted}, found {found}; load the table again"
    )


class StaleBaseError(LedgerError):
    """A requirement did not hold: reload the table, decide and commit again."""

    kind = "STALE_BASE"
