"""The requirements of Iceberg's REST catalog: what must still hold for a commit to be applied.

Source: the Iceberg REST catalog specification, TableRequirement; which updates call for which
ones is as in Java's UpdateRequirements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, assert_never, cast

import msgspec

from ledger.model.errors import LedgerError
from ledger.model.iceberg.snapshot import MAIN, Int, Long
from projections.iceberg.committing import updates
from projections.iceberg.committing.updates import TableUpdate
from projections.iceberg.metadata.table import TableMetadata
from projections.iceberg.metadata.wire import converted, encoded, kebab


class _Requirement(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", tag_field="type", tag=kebab
):
    pass


class AssertCreate(_Requirement, frozen=True):
    """The table does not exist."""


class AssertTableUuid(_Requirement, frozen=True):
    """The table is the one of this uuid."""

    uuid: str


class AssertRefSnapshotId(_Requirement, frozen=True):
    """A ref points to a snapshot, or does not exist if that is None."""

    ref: str
    snapshot_id: Long | None


class AssertLastAssignedFieldId(_Requirement, frozen=True):
    """No field id was given out since."""

    last_assigned_field_id: Int


class AssertCurrentSchemaId(_Requirement, frozen=True):
    """The current schema is the same."""

    current_schema_id: Int


class AssertLastAssignedPartitionId(_Requirement, frozen=True):
    """No partition field id was given out since."""

    last_assigned_partition_id: Int


class AssertDefaultSpecId(_Requirement, frozen=True):
    """The default partition spec is the same."""

    default_spec_id: Int


class AssertDefaultSortOrderId(_Requirement, frozen=True):
    """The default sort order is the same."""

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
        obj: What a JSON decoder made of it.

    Raises:
        InvalidInputError: It is none; the message names the place.

    Example:
        >>> requirement_from_json({"type": "assert-default-spec-id", "default-spec-id": 0})
        AssertDefaultSpecId(default_spec_id=0)
    """
    return cast("TableRequirement", converted(obj, _RECORDS, "requirement"))


def requirement_to_json(requirement: TableRequirement) -> dict[str, Any]:
    """Return a requirement's JSON."""
    content: dict[str, Any] = msgspec.json.decode(encoded(requirement))
    return content


def check_requirements(
    base: TableMetadata | None, requirements: Iterable[TableRequirement]
) -> None:
    """Check that all requirements hold for a table.

    Args:
        base: The table's metadata, or None if there is no such table.
        requirements: What must hold.

    Raises:
        StaleBaseError: One does not.
    """
    for requirement in requirements:
        _check(base, requirement)


def requirements_of(
    base: TableMetadata | None, batch: Iterable[TableUpdate]
) -> list[TableRequirement]:
    """Return what must hold for a batch of updates that was made for `base`.

    Without `base`, only that there is no table yet.
    """
    if base is None:
        return [AssertCreate()]
    required: list[TableRequirement] = [AssertTableUuid(uuid=base.table_uuid or "")]
    for update in batch:
        # A ref is pinned to where it was, however often the batch moves it.
        required.extend(each for each in _called_for(base, update) if each not in required)
    return required


def requirements_of_replacement(
    base: TableMetadata, batch: Iterable[TableUpdate]
) -> list[TableRequirement]:
    """Return what must hold for a batch that replaces a table: only that ids are still free."""
    kept = (AssertTableUuid, AssertLastAssignedFieldId, AssertLastAssignedPartitionId)
    return [each for each in requirements_of(base, batch) if isinstance(each, kept)]


def _called_for(  # noqa: PLR0911 - one return for each case
    base: TableMetadata, update: TableUpdate
) -> list[TableRequirement]:
    match update:
        case updates.SetSnapshotRef(ref_name=name):
            ref = base.refs.get(name)
            return [AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id if ref else None)]
        case updates.AddSchema():
            return [AssertLastAssignedFieldId(last_assigned_field_id=base.last_column_id)]
        case updates.SetCurrentSchema():
            return [AssertCurrentSchemaId(current_schema_id=base.current_schema_id)]
        case updates.AddSpec():
            return [
                AssertLastAssignedPartitionId(last_assigned_partition_id=base.last_partition_id)
            ]
        case updates.SetDefaultSpec():
            return [AssertDefaultSpecId(default_spec_id=base.default_spec_id)]
        case updates.SetDefaultSortOrder():
            return [AssertDefaultSortOrderId(default_sort_order_id=base.default_sort_order_id)]
        case updates.RemoveSchemas():
            return [
                AssertCurrentSchemaId(current_schema_id=base.current_schema_id),
                *_branches(base),
            ]
        case updates.RemovePartitionSpecs():
            return [AssertDefaultSpecId(default_spec_id=base.default_spec_id), *_branches(base)]
        case _:
            return []


def _branches(base: TableMetadata) -> list[AssertRefSnapshotId]:
    """Return that no branch but `main` moved, so that nobody writes what is being removed."""
    return [
        AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id)
        for name, ref in base.refs.items()
        if ref.type == "branch" and name != MAIN
    ]


def _check(base: TableMetadata | None, requirement: TableRequirement) -> None:
    if isinstance(requirement, AssertCreate):
        if base is not None:
            raise StaleBaseError("the table exists; load it and commit to it")
        return
    if base is None:
        raise StaleBaseError("the table does not exist, so nothing of it is as it was")
    wanted, found, what = _compared(base, requirement)
    if wanted != found:
        raise _changed(what, wanted, found)


def _compared(  # noqa: PLR0911 - one return for each case
    base: TableMetadata, requirement: _OfTheBase
) -> tuple[object, object, str]:
    match requirement:
        case AssertTableUuid(uuid=uuid):
            return uuid.lower(), (base.table_uuid or "").lower(), "the table's uuid"
        case AssertRefSnapshotId(ref=name, snapshot_id=snapshot_id):
            ref = base.refs.get(name)
            return snapshot_id, ref.snapshot_id if ref else None, f"the snapshot of ref {name}"
        case AssertLastAssignedFieldId(last_assigned_field_id=number):
            return number, base.last_column_id, "the last field id"
        case AssertCurrentSchemaId(current_schema_id=number):
            return number, base.current_schema_id, "the current schema"
        case AssertLastAssignedPartitionId(last_assigned_partition_id=number):
            return number, base.last_partition_id, "the last partition field id"
        case AssertDefaultSpecId(default_spec_id=number):
            return number, base.default_spec_id, "the default partition spec"
        case AssertDefaultSortOrderId(default_sort_order_id=number):
            return number, base.default_sort_order_id, "the default sort order"
        case _:
            assert_never(requirement)


def _changed(what: str, wanted: object, found: object) -> StaleBaseError:
    return StaleBaseError(f"{what} should be {wanted} and is {found}; load it again")


class StaleBaseError(LedgerError):
    """The table changed since it was loaded: load it again, decide again, commit again."""

    kind = "STALE_BASE"
