"""The rows of what can be asked of a table's snapshots, tags and statistics, and of its life."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, UnsetType

from ledger.events.born.iceberg import (
    SnapshotRefRemoved,
    SnapshotRefSet,
    SnapshotsRemoved,
    StatisticsSet,
)
from ledger.events.clock_events import ClockCorrected
from ledger.events.rules_events import FormatRulesRaised
from ledger.events.snapshot_events import (
    BranchCommitted,
    ListingEvent,
    PartitionStatisticsSet,
    RolledBack,
    SnapshotCommitted,
    SnapshotFacts,
    SnapshotsExpired,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events.table_events import (
    OwnerSet,
    TableCreated,
    TableDropped,
    TableName,
    TablePromoted,
)
from ledger.evolution.decide_clock import CorrectClock, decide_clock
from ledger.evolution.operation import Cell, Course, Operation, StateOperation, no_cells
from ledger.evolution.table import changes as asked
from ledger.evolution.table.branches import (
    branch_holds,
    decide_branch,
    decide_branch_expiry,
    decide_fast_forward,
    decide_on_branch,
    met,
)
from ledger.evolution.table.origin.operations import (
    no_ref_cells,
    ref_cells,
    says_no_ref,
    says_ref,
)
from ledger.evolution.table.owner import (
    ANY_OWNER,
    DATA_OWNERS,
    METADATA_OWNERS,
    refuse_unservable,
)
from ledger.evolution.table.snapshots import (
    decide_expiry,
    decide_puffin,
    decide_snapshot,
    decide_statistics,
    decide_tag,
    tag_holds,
)
from ledger.model.errors import InvalidChangeError
from ledger.model.messages.excerpt import moment, size


def _decide_snapshot(course: Course, change: asked.CommitSnapshot | asked.Rollback) -> ListingEvent:
    state, schema = course.state, course.schema
    course.refuse_names(state, schema, change)
    if change.branch is not None:
        branch = met(state, change.branch)
        return decide_on_branch(state, branch, change, course.formats, schema.id)
    course.snapshot_id += 1
    event = decide_snapshot(
        state,
        change,
        course.formats,
        snapshot_id=course.snapshot_id,
        schema_id=schema.id,
        records=course.records,
    )
    course.records = event.total_record_count
    return event


def _decide_fast_forward(course: Course, change: asked.FastForward) -> SnapshotCommitted:
    state, schema = course.state, course.schema
    course.refuse_names(state, schema, change)
    course.snapshot_id += 1
    return decide_fast_forward(
        state,
        met(state, change.branch),
        change,
        course.formats,
        snapshot_id=course.snapshot_id,
        schema_id=schema.id,
    )


def _decide_expiry(
    course: Course, change: asked.ExpireSnapshots
) -> SnapshotsExpired | SnapshotsRemoved | None:
    of_branch = course.state.branch_number(change.earliest_snapshot_id)
    if of_branch:
        return decide_branch_expiry(course.state, change)
    return decide_expiry(course.state, change)


def _decide_tag(
    course: Course, change: asked.TagChange
) -> TagCreated | TagReplaced | TagDeleted | None:
    if not course.is_first and tag_holds(course.state, change):
        return None
    return decide_tag(course.state, change, course.formats)


def _decide_branch(course: Course, change: asked.SetBranch) -> SnapshotRefSet | None:
    if (change.resets or not course.is_first) and branch_holds(course.state, change):
        return None
    return decide_branch(course.state, change, course.formats)


def _decide_no_branch(course: Course, change: asked.DeleteBranch) -> SnapshotRefRemoved | None:
    if not course.is_first and change.name not in course.state.branches:
        return None
    return SnapshotRefRemoved(course.state.branch(change.name).name)


def _decide_drop(course: Course, change: asked.DropTable) -> TableDropped:
    name = TableName(change.database, change.name)
    return TableDropped(identifier=name, table_id=course.state.table_id)


def _decide_owner(course: Course, change: asked.SetOwner) -> OwnerSet | None:
    state, owner = course.state, course.state.owner
    if (owner.kind, owner.protocol) == (change.owner, change.protocol):
        return None
    if change.protocol is None:
        if not state.lists_files:
            raise InvalidChangeError(
                "the manifests of engines list the table's live files: the ledger lists them "
                "itself before it takes the table back (Table.stop_serving does both)",
                kind="SERVED",
            )
        return OwnerSet(owner="ledger")
    if owner.kind == "served":
        raise InvalidChangeError(
            f"the table is served through the {owner.protocol} protocol already: take it back "
            "first (lakeledger serve-table --back)",
            kind="SERVED",
        )
    refuse_unservable(course.schema.options, change.protocol)
    return OwnerSet(owner="served", protocol=change.protocol)


def _clock(fact: ClockCorrected) -> Iterator[tuple[Cell, Any]]:
    yield ("clock",), fact.true_time_millis


def _rules(fact: FormatRulesRaised) -> Iterator[tuple[Cell, Any]]:
    for name, number in fact.rules.items():
        yield ("formatRules", name), number


def _promoted(_fact: TablePromoted) -> Iterator[tuple[Cell, Any]]:
    yield ("owner",), "ledger"


def _owner(fact: OwnerSet) -> Iterator[tuple[Cell, Any]]:
    served = fact.protocol is not UNSET
    yield ("owner",), f"{fact.owner} ({fact.protocol})" if served else fact.owner


def _says_promotion(fact: TablePromoted) -> str:
    swapped = f"; {fact.catalog} leads here" if fact.catalog is not UNSET else ""
    return f"promoted: the ledger owns the table, which followed {fact.source}{swapped}"


def _says_owner(fact: OwnerSet) -> str:
    if fact.owner == "served":
        return f"served: engines commit data through the {fact.protocol} protocol"
    return "taken back: the ledger commits data, and engines commit no more"


def _says_rules(fact: FormatRulesRaised) -> str:
    named = ", ".join(f"{name} {number}" for name, number in sorted(fact.rules.items()))
    return f"the rules of its formats are at least {named} from now on"


def _snapshot(fact: SnapshotFacts) -> Iterator[tuple[Cell, Any]]:
    yield ("snapshots",), fact.snapshot_id


def _fast_forward(fact: SnapshotCommitted) -> Iterator[tuple[Cell, Any]]:
    """Yield that neither main nor the branch went on which main is brought to; else nothing."""
    head = fact.fast_forward_to
    if not isinstance(head, UnsetType):
        yield ("snapshots",), fact.snapshot_id - 1
        yield ("branch", head.branch_name), head.snapshot_id
        yield ("ref", head.branch_name), None


def _of_branch(fact: BranchCommitted) -> Iterator[tuple[Cell, Any]]:
    yield ("branch", fact.branch_name), fact.snapshot_id


def _needs_branch(fact: BranchCommitted) -> Iterator[tuple[Cell, Any]]:
    """Yield that the branch was not made to begin elsewhere, and that no snapshot goes unseen."""
    yield ("ref", fact.branch_name), None
    if fact.target_snapshot_id is not UNSET:
        yield ("branch", fact.branch_name), fact.parent_snapshot_id


def _says_on_branch(fact: BranchCommitted) -> str:
    done: str = fact.commit_kind
    if fact.target_snapshot_id is not UNSET:
        done = f"rolled back to snapshot {fact.target_snapshot_id}"
    return f"branch {fact.branch_name}: snapshot {fact.snapshot_id}: {done}, {_difference(fact)}"


def _says_snapshot(fact: SnapshotCommitted) -> str:
    done: str = fact.commit_kind
    if not isinstance(fact.fast_forward_to, UnsetType):
        head = fact.fast_forward_to
        done = f"fast-forwarded to branch {head.branch_name} (snapshot {head.snapshot_id})"
    return f"snapshot {fact.snapshot_id}: {done}, {_difference(fact)}"


def _unseen(fact: RolledBack) -> Iterator[tuple[Cell, Any]]:
    """Yield that no snapshot came which the rollback would take back unseen."""
    yield ("snapshots",), fact.snapshot_id - 1


def _tagged(fact: TagCreated | TagReplaced) -> Iterator[tuple[Cell, Any]]:
    yield ("tag", fact.tag_name), (fact.snapshot_id, fact.time_retained_millis)


def _untagged(fact: TagDeleted) -> Iterator[tuple[Cell, Any]]:
    yield ("tag", fact.tag_name), None


def _expired(fact: SnapshotsExpired) -> Iterator[tuple[Cell, Any]]:
    yield ("earliestSnapshot",), fact.earliest_snapshot_id


def _statistics(fact: PartitionStatisticsSet) -> Iterator[tuple[Cell, Any]]:
    file = fact.partition_statistics
    yield ("partitionStatistics", file.snapshot_id), (file.statistics_path, file.file_size_in_bytes)


def _puffin(fact: StatisticsSet) -> Iterator[tuple[Cell, Any]]:
    yield ("statistics", fact.statistics.snapshot_id), fact.statistics


def _created(_fact: TableCreated) -> Iterator[tuple[Cell, Any]]:
    yield ("table",), "created"


def _dropped(_fact: TableDropped) -> Iterator[tuple[Cell, Any]]:
    yield ("table",), "dropped"


def _difference(fact: SnapshotFacts) -> str:
    rows, files = fact.delta_record_count, fact.delta_file_count
    changed = f"{rows:+,} rows, {files:+,} {'file' if abs(files) == 1 else 'files'}"
    sign = "-" if fact.delta_file_size_in_bytes < 0 else "+"
    return f"{changed}, {sign}{size(abs(fact.delta_file_size_in_bytes))}"


def _says_rollback(fact: RolledBack) -> str:
    tag = "" if fact.target_tag_name is UNSET else f" (tag {fact.target_tag_name})"
    return (
        f"snapshot {fact.snapshot_id}: rolled back to snapshot {fact.target_snapshot_id}{tag}, "
        f"{_difference(fact)}"
    )


def says_creation(fact: TableCreated) -> str:
    """Return that a table was created, and from what."""
    said = f"created table {_name(fact.identifier)} with {len(fact.schema.fields)} columns"
    origin = fact.origin
    if isinstance(origin, UnsetType):
        return said
    return f"{said}, from {str(type(origin).__struct_config__.tag).title()}'s {origin.source}"


def says_drop(fact: TableDropped) -> str:
    """Return that a table was dropped."""
    return f"dropped table {_name(fact.identifier)}"


def says_correction(fact: ClockCorrected) -> str:
    """Return what a clock's correction says."""
    return (
        f"corrected the clock: the commits from version {fact.first_version} on took effect by "
        f"{moment(fact.true_time_millis)}"
    )


def _name(name: TableName) -> str:
    return f"{name.database_name}.{name.table_name}"


TABLE_OPERATIONS: tuple[Operation, ...] = (
    StateOperation(
        asked=asked.CommitSnapshot,
        facts=(SnapshotCommitted,),
        decide=_decide_snapshot,
        asks_formats=True,
        owners=DATA_OWNERS,
        sets=_snapshot,
        claims=_fast_forward,
        says=_says_snapshot,
        alters=False,
    ),
    StateOperation(
        asked=asked.FastForward,
        # Its fact is that of a commit to main.
        facts=(),
        decide=_decide_fast_forward,
        asks_formats=True,
        owners=DATA_OWNERS,
        sets=_snapshot,
        claims=_fast_forward,
        says=_says_snapshot,
        alters=False,
    ),
    Operation(
        facts=(BranchCommitted,),
        sets=_of_branch,
        claims=_needs_branch,
        says=_says_on_branch,
        alters=False,
    ),
    StateOperation(
        asked=asked.SetBranch,
        facts=(SnapshotRefSet,),
        decide=_decide_branch,
        asks_formats=True,
        owners=METADATA_OWNERS,
        sets=ref_cells,
        claims=ref_cells,
        says=says_ref,
        alters=False,
    ),
    StateOperation(
        asked=asked.DeleteBranch,
        facts=(SnapshotRefRemoved,),
        decide=_decide_no_branch,
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=no_ref_cells,
        claims=no_ref_cells,
        says=says_no_ref,
        alters=False,
    ),
    StateOperation(
        asked=asked.Rollback,
        facts=(RolledBack,),
        decide=_decide_snapshot,
        asks_formats=True,
        owners=DATA_OWNERS,
        sets=_snapshot,
        claims=_unseen,
        says=_says_rollback,
        alters=False,
    ),
    StateOperation(
        asked=asked.CreateTag,
        facts=(TagCreated,),
        decide=_decide_tag,
        asks_formats=True,
        owners=METADATA_OWNERS,
        sets=_tagged,
        claims=_tagged,
        says=lambda it: f"tagged snapshot {it.snapshot_id} as {it.tag_name}",
        alters=False,
    ),
    StateOperation(
        asked=asked.ReplaceTag,
        facts=(TagReplaced,),
        decide=_decide_tag,
        asks_formats=True,
        owners=METADATA_OWNERS,
        sets=_tagged,
        claims=_tagged,
        says=lambda it: f"moved tag {it.tag_name} to snapshot {it.snapshot_id}",
        alters=False,
    ),
    StateOperation(
        asked=asked.DeleteTag,
        facts=(TagDeleted,),
        decide=_decide_tag,
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_untagged,
        claims=_untagged,
        says=lambda it: f"deleted tag {it.tag_name}",
        alters=False,
    ),
    StateOperation(
        asked=asked.ExpireSnapshots,
        facts=(SnapshotsExpired,),
        decide=_decide_expiry,
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_expired,
        # It only moves a bound forward.
        claims=no_cells,
        says=lambda it: f"expired the snapshots before {it.earliest_snapshot_id}",
        alters=False,
    ),
    StateOperation(
        asked=asked.SetPartitionStatistics,
        facts=(PartitionStatisticsSet,),
        decide=lambda course, change: decide_statistics(course.state, change),
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_statistics,
        claims=_statistics,
        says=lambda it: (
            f"published partition statistics of snapshot {it.partition_statistics.snapshot_id}"
        ),
        alters=False,
    ),
    StateOperation(
        asked=asked.SetStatistics,
        facts=(StatisticsSet,),
        decide=lambda course, change: decide_puffin(course.state, change),
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_puffin,
        claims=_puffin,
        says=lambda it: f"published statistics of snapshot {it.statistics.snapshot_id}",
        alters=False,
    ),
    Operation(
        facts=(TablePromoted,),
        sets=_promoted,
        claims=_promoted,
        says=_says_promotion,
        alters=True,
    ),
    StateOperation(
        asked=asked.SetOwner,
        facts=(OwnerSet,),
        decide=_decide_owner,
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_owner,
        claims=_owner,
        says=_says_owner,
        alters=True,
    ),
    Operation(
        facts=(FormatRulesRaised,),
        sets=_rules,
        claims=no_cells,
        says=_says_rules,
        alters=True,
    ),
    StateOperation(
        asked=CorrectClock,
        facts=(ClockCorrected,),
        decide=lambda course, change: decide_clock(course.state, change),
        asks_formats=False,
        owners=ANY_OWNER,
        sets=_clock,
        claims=_clock,
        says=says_correction,
        alters=True,
    ),
    StateOperation(
        asked=asked.DropTable,
        facts=(TableDropped,),
        decide=_decide_drop,
        asks_formats=False,
        owners=ANY_OWNER,
        sets=_dropped,
        claims=no_cells,
        says=says_drop,
        alters=True,
    ),
    Operation(
        facts=(TableCreated,),
        sets=_created,
        claims=_created,
        says=says_creation,
        alters=True,
    ),
)
