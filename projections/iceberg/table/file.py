"""A table's metadata at one version: the state, and what its history left in the trail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ledger.evolution.state import TableState
from ledger.model.errors import UnsupportedError
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.iceberg.snapshot import MAIN, SnapshotRef
from ledger.model.snapshot import BRANCH_IDS, Branch, Tag
from projections.iceberg.manifests.facts import UNLAID, TableFacts
from projections.iceberg.metadata.properties import MAX_REF_AGE, NEVER_MS
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.table import TableMetadata
from projections.iceberg.table.properties import NAME_MAPPING, name_mapping, properties
from projections.iceberg.table.statistics_files import partition_statistics, puffin_files
from projections.iceberg.table.trail import Trail


def metadata_file(
    state: TableState,
    trail: Trail,
    facts: TableFacts,
    *,
    next_row_id: int,
    named_schema_ids: Iterable[int],
) -> bytes:
    """Return the bytes of a table's metadata file at a version.

    Args:
        state: The table right after the version's commit.
        trail: Its schemas, snapshots and logs up to it.
        facts: Its location, format version and specs.
        next_row_id: The first row id that no row has.
        named_schema_ids: Iceberg's ids of the schemas whose names files without field ids use, last
            used last.

    Raises:
        UnsupportedError: Iceberg cannot say the table.
    """
    last = state.last_snapshot_id
    metadata = TableMetadata(
        format_version=facts.format_version,
        table_uuid=state.table_id,
        location=facts.location,
        last_sequence_number=facts.sequence_number(_highest_id(state)),
        last_updated_ms=state.effective_millis,
        last_column_id=max(0, state.schema.highest_field_id),
        current_schema_id=trail.schema_id,
        # What stands in it comes from the trail.
        schemas=(Schema(trail.schema_id),),
        default_spec_id=state.default_spec_id,
        partition_specs=_specs(state),
        last_partition_id=state.last_partition_id,
        default_sort_order_id=state.default_order_id,
        sort_orders=state.sort_orders,
        properties=_properties(state, trail, named_schema_ids),
        current_snapshot_id=last or None,
        next_row_id=next_row_id,
        refs=_refs(state, trail),
        statistics=puffin_files(state, facts),
        partition_statistics=partition_statistics(state, facts),
        snapshot_log=tuple(trail.snapshot_log),
        metadata_log=tuple(trail.metadata_log),
    )
    return trail.render(metadata)


def _specs(state: TableState) -> tuple[PartitionSpec, ...]:
    # Always the same for a table, whatever was erased of it by now.
    may_lack = state.keeps_outside and any(each.fields for each in state.specs)
    return (*state.specs, UNLAID) if may_lack else tuple(state.specs)


def _highest_id(state: TableState) -> int:
    """Return a number that no snapshot's id exceeds, on main or any branch that ever was."""
    ever = state.last_branch_number
    return (ever + 1) * BRANCH_IDS - 1 if ever else state.last_snapshot_id


def _properties(state: TableState, trail: Trail, named: Iterable[int]) -> Mapping[str, str]:
    found = properties(state.schema)
    schemas = tuple(named)
    if schemas:
        used = [trail.schema(each) for each in schemas if each != trail.schema_id]
        found[NAME_MAPPING] = name_mapping([*used, trail.schema(trail.schema_id)])
    return dict(sorted(found.items()))


def _refs(state: TableState, trail: Trail) -> dict[str, SnapshotRef]:
    if MAIN in state.tags:
        raise UnsupportedError(
            f"tag {MAIN!r} cannot stand in an Iceberg table, whose branch has that name: name the "
            "tag otherwise"
        )
    refs = {}
    if state.last_snapshot_id:
        refs[MAIN] = SnapshotRef(snapshot_id=state.last_snapshot_id, type="branch")
    for name, tag in sorted(state.tags.items()):
        refs[name] = SnapshotRef(
            snapshot_id=tag.snapshot_id, type="tag", max_ref_age_ms=_age(tag, state, trail)
        )
    for name, branch in sorted(state.branches.items()):
        refs[name] = SnapshotRef(
            snapshot_id=branch.head_id,
            type="branch",
            min_snapshots_to_keep=branch.min_snapshots_to_keep,
            max_snapshot_age_ms=branch.max_snapshot_age_millis,
            max_ref_age_ms=_branch_age(branch, state),
        )
    return refs


def _branch_age(branch: Branch, state: TableState) -> int | None:
    if branch.max_ref_age_millis is None and MAX_REF_AGE in state.schema.options:
        return NEVER_MS
    return branch.max_ref_age_millis


def _age(tag: Tag, state: TableState, trail: Trail) -> int | None:
    """Return how old a tag's snapshot is when the tag ends; None where it never does.

    Iceberg counts from the snapshot, and the ledger from the tag, which may be much younger.
    """
    retained = tag.time_retained_millis
    if retained is None:
        return NEVER_MS if MAX_REF_AGE in state.schema.options else None
    age_then = tag.create_time_millis - trail.timestamp_ms(tag.snapshot_id)
    return min(max(1, age_then + retained), NEVER_MS)
