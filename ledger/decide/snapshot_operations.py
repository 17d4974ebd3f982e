"""Operation rows of snapshots, tags, branches, statistics and a table's lifecycle.

A branch begins with a snapshot of main; once main has newer snapshots, it cannot be fast-forwarded
to the branch. Commits to a branch are decided as on main, and conflict with nothing on other lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

import ledger.decide.changes as asked
from ledger.decide.bounds import check_numbers
from ledger.decide.changes import (
    CommitSnapshot,
    CorrectClock,
    ExpireSnapshots,
    FastForward,
    MetBranch,
    Rollback,
    SetBranch,
    decide_clock_correction,
)
from ledger.decide.format_rules import Formats, refuse_inexpressible_tag
from ledger.decide.imported_operations import (
    describe_ref,
    describe_removed_ref,
    ref_cells,
    removed_ref_cells,
)
from ledger.decide.operation import Cell, DecisionContext, Operation, StateOperation, no_cells
from ledger.decide.snapshots import (
    check_snapshot_readable,
    decide_partition_statistics,
    decide_puffin_statistics,
    decide_snapshot,
    decide_snapshot_expiry,
    decide_tag_change,
    file_commit_facts,
    is_tag_as_requested,
    snapshot_listing_facts,
)
from ledger.events.imported import (
    BranchBase,
    SnapshotRefRemoved,
    SnapshotRefSet,
    SnapshotsRemoved,
    StatisticsSet,
)
from ledger.events.snapshots import (
    BranchCommitted,
    BranchHead,
    CommittedFacts,
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
from ledger.events.table import (
    ClockCorrected,
    FormatRulesRaised,
    OwnerSet,
    TableCreated,
    TableDropped,
    TableName,
    TablePromoted,
    TableUndropped,
)
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    NotFoundError,
    UnsupportedError,
)
from ledger.model.iceberg_objects import SnapshotRef
from ledger.model.messages import counted, moment, size
from ledger.model.names import checked_name
from ledger.model.snapshot import Branch, branch_number
from ledger.state.owner import ANY_OWNER, DATA_OWNERS, METADATA_OWNERS, refuse_unservable_options
from ledger.state.paimon_origin import OWN_FOLDER, PaimonOrigin
from ledger.state.snapshots import MAIN
from ledger.state.table import TableState

T = TypeVar("T")


def _unset_if_none(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


def resolve_seen_branch(state: TableState, branch: MetBranch) -> Branch:
    """Return the branch that a writer saw.

    Raises:
        NotFoundError: It was deleted, or another one has its name.
    """
    found = state.branch(branch.name)
    if found.number != branch.number:
        raise NotFoundError(
            f"branch {branch.name!r} was deleted, and another one has its name; check it, then "
            "retry"
        )
    return found


def decide_branch_snapshot(
    state: TableState,
    branch: Branch,
    change: CommitSnapshot | Rollback,
    formats: Formats,
    schema_id: int,
) -> BranchCommitted:
    """Return the snapshot of a branch that a change becomes.

    Args:
        state: The state to decide on.
        branch: The branch in it.
        change: The requested change.
        formats: The installed formats.
        schema_id: The schema current at this point of the transaction.

    Raises:
        InvalidChangeError: A file is named twice, or does not fit the table.
        FormatError: The table's formats cannot express a file.
        NotFoundError: The snapshot to roll back to cannot be read on the branch.
    """
    common = snapshot_listing_facts(
        state,
        change,
        formats,
        snapshot_id=branch.next_id,
        schema_id=schema_id,
        before=branch.totals,
    )
    line: dict[str, Any] = {"branch_name": branch.name, "parent_snapshot_id": branch.head_id}
    if isinstance(change, CommitSnapshot):
        said = file_commit_facts(change, branch.snapshot, schema_id)
        return BranchCommitted(**common, **said, **line)
    target = change.target_snapshot_id
    if target not in branch.snapshot_ids and target != branch.base_snapshot_id:
        raise NotFoundError(
            f"branch {branch.name!r} cannot be rolled back to snapshot {target}: it holds "
            f"{branch_snapshots_text(branch)}"
        )
    return BranchCommitted(**common, **line, commit_kind="OVERWRITE", target_snapshot_id=target)


def decide_fast_forward(
    state: TableState,
    branch: Branch,
    change: FastForward,
    formats: Formats,
    *,
    snapshot_id: int,
    schema_id: int,
) -> SnapshotCommitted:
    """Return the snapshot that fast-forwards main to a branch.

    Args:
        state: The state to decide on.
        branch: The branch in it.
        change: The requested change.
        formats: The installed formats.
        snapshot_id: Main's next snapshot id.
        schema_id: The schema current at this point of the transaction.

    Raises:
        InvalidChangeError: Main changed since the branch began, or the branch since the request.
        FormatError: The table's formats cannot express a file.
    """
    _refuse_diverged(state, branch, change)
    common = snapshot_listing_facts(
        state,
        change,
        formats,
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        before=state.totals,
    )
    return SnapshotCommitted(
        **common,
        commit_kind="OVERWRITE" if any(e.kind == "DELETE" for e in change.files) else "APPEND",
        fast_forward_to=BranchHead(branch.name, change.snapshot_id),
    )


def branch_snapshots_text(branch: Branch) -> str:
    """Return the snapshots that a branch holds, as display text."""
    own = branch.snapshot_ids
    said = f"snapshot {branch.base_snapshot_id}, which it begins with"
    return f"{said}, and its own {own[0]} to {own[-1]}" if own else said


def _refuse_diverged(state: TableState, branch: Branch, change: FastForward) -> None:
    """Reject a fast-forward if main's head is no ancestor of the branch, or nothing is new.

    Raises:
        InvalidChangeError: It is not, or the branch's head has changed since the request.
    """
    newest = state.last_snapshot_id
    if branch.base_snapshot_id != newest:
        raise InvalidChangeError(
            f"main cannot be fast-forwarded to branch {branch.name!r}, which begins with snapshot "
            f"{branch.base_snapshot_id}: main has moved to snapshot {newest} since. Reset the "
            "branch to main's head and commit its files there again, or commit them to main",
            kind="DIVERGED",
        )
    if branch.snapshot is None:
        raise InvalidChangeError(
            f"main equals branch {branch.name!r}: snapshot {newest}, with which the branch "
            "begins and to which it added nothing"
        )
    if branch.head_id != change.snapshot_id:
        raise InvalidChangeError(
            f"branch {branch.name!r} has moved to snapshot {branch.head_id} since; check it, "
            "then retry"
        )


def decide_set_branch(state: TableState, change: SetBranch, formats: Formats) -> SnapshotRefSet:
    """Return the event that begins a branch.

    Raises:
        AlreadyExistsError: A new branch was requested and its name exists; or a tag has the name.
        NotFoundError: A reset was requested of a missing branch, or the snapshot cannot be read.
        InvalidChangeError: The snapshot is of a branch.
        InvalidNameError: The name is not safe as a folder's.
        FormatError: One of the table's formats cannot have the name.
    """
    checked_name(change.name, "branch")
    origin = state.origin
    if not origin.has_branches:
        raise UnsupportedError(
            f"the table was imported from {origin.format_name.title()}, and the ledger commits to "
            f"its main only: {change.name!r} cannot begin here"
        )
    check_numbers(change, f"branch {change.name!r}")
    if change.resets:
        state.branch(change.name)
    elif change.name in state.branches:
        raise AlreadyExistsError(
            f"branch {change.name!r} exists and shows snapshot "
            f"{state.branches[change.name].head_id}; reset it or take another name"
        )
    if change.name == MAIN or change.name in state.tags:
        what = "what every table begins with" if change.name == MAIN else "a tag"
        raise AlreadyExistsError(f"{change.name!r} is {what}; give the branch another name")
    refuse_inexpressible_tag(state, change.name, formats)
    check_snapshot_readable(state, change.snapshot_id)
    if state.branch_number(change.snapshot_id):
        raise InvalidChangeError(
            f"snapshot {change.snapshot_id} is of a branch, and branches begin with snapshots of "
            "main: fast-forward main to it first, or begin with the snapshot that it begins with"
        )
    return SnapshotRefSet(change.name, _snapshot_ref(change), _branch_base(change))


def _snapshot_ref(change: SetBranch) -> SnapshotRef:
    return SnapshotRef(
        snapshot_id=change.snapshot_id,
        type="branch",
        min_snapshots_to_keep=change.min_snapshots_to_keep,
        max_snapshot_age_ms=change.max_snapshot_age_millis,
        max_ref_age_ms=change.max_ref_age_millis,
    )


def _branch_base(change: SetBranch) -> BranchBase:
    totals = change.totals
    return BranchBase(
        version=change.base_version,
        record_count=totals.record_count,
        file_size_in_bytes=totals.file_size_in_bytes,
        file_count=totals.file_count,
        last_file_creation_time=_unset_if_none(totals.last_file_creation_time),
    )


def is_branch_as_requested(state: TableState, change: SetBranch) -> bool:
    """Return whether a branch already begins as requested, without snapshots of its own."""
    there = state.branches.get(change.name)
    asked = (
        change.snapshot_id,
        change.min_snapshots_to_keep,
        change.max_snapshot_age_millis,
        change.max_ref_age_millis,
    )
    return there is not None and asked == (
        there.head_id,
        there.min_snapshots_to_keep,
        there.max_snapshot_age_millis,
        there.max_ref_age_millis,
    )


def decide_branch_expiry(state: TableState, change: ExpireSnapshots) -> SnapshotsExpired | None:
    """Return the expiry of a branch's own snapshots, or None when they are expired already.

    Raises:
        InvalidChangeError: None would be left.
        NotFoundError: No branch has the snapshot.
    """
    earliest = change.earliest_snapshot_id
    branch = state.branch_numbered(branch_number(earliest))
    if branch is None:
        raise NotFoundError(f"snapshot {earliest} is of no existing branch")
    if earliest <= branch.earliest_snapshot_id:
        return None
    if earliest not in branch.snapshot_ids:
        raise InvalidChangeError(
            f"expiring what is before snapshot {earliest} would leave branch {branch.name!r} "
            f"none; it holds {branch_snapshots_text(branch)}"
        )
    return SnapshotsExpired(earliest_snapshot_id=earliest)


def _decide_snapshot(
    context: DecisionContext, change: asked.CommitSnapshot | asked.Rollback
) -> ListingEvent:
    state, schema = context.state, context.schema
    context.refuse_names(state, schema, change)
    if change.branch is not None:
        branch = resolve_seen_branch(state, change.branch)
        return decide_branch_snapshot(state, branch, change, context.formats, schema.id)
    context.snapshot_id = state.origin.next_snapshot_id(context.snapshot_id)
    event = decide_snapshot(
        state,
        change,
        context.formats,
        snapshot_id=context.snapshot_id,
        schema_id=schema.id,
        records=context.records,
    )
    context.records = event.total_record_count
    return event


def _decide_fast_forward(context: DecisionContext, change: asked.FastForward) -> SnapshotCommitted:
    state, schema = context.state, context.schema
    context.refuse_names(state, schema, change)
    context.snapshot_id = state.origin.next_snapshot_id(context.snapshot_id)
    return decide_fast_forward(
        state,
        resolve_seen_branch(state, change.branch),
        change,
        context.formats,
        snapshot_id=context.snapshot_id,
        schema_id=schema.id,
    )


def _decide_expiry(
    context: DecisionContext, change: asked.ExpireSnapshots
) -> SnapshotsExpired | SnapshotsRemoved | None:
    origin = context.state.origin
    is_of_engines = isinstance(origin, PaimonOrigin) and not origin.is_promoted
    if context.state.owner.kind == "served" and is_of_engines:
        raise InvalidChangeError(
            "engines expire the snapshots of this table, whose files are in the folder that they "
            "write into; set their options of retention, or call their expire_snapshots. Nothing "
            "was committed",
            kind="SERVED",
        )
    of_branch = context.state.branch_number(change.earliest_snapshot_id)
    if of_branch:
        return decide_branch_expiry(context.state, change)
    return decide_snapshot_expiry(context.state, change)


def _decide_tag(
    context: DecisionContext, change: asked.TagChange
) -> TagCreated | TagReplaced | TagDeleted | None:
    if not context.is_first and is_tag_as_requested(context.state, change):
        return None
    return decide_tag_change(context.state, change, context.formats)


def _decide_branch(context: DecisionContext, change: asked.SetBranch) -> SnapshotRefSet | None:
    if (change.resets or not context.is_first) and is_branch_as_requested(context.state, change):
        return None
    return decide_set_branch(context.state, change, context.formats)


def _decide_branch_deletion(
    context: DecisionContext, change: asked.DeleteBranch
) -> SnapshotRefRemoved | None:
    if not context.is_first and change.name not in context.state.branches:
        return None
    return SnapshotRefRemoved(context.state.branch(change.name).name)


def _decide_table_drop(context: DecisionContext, change: asked.DropTable) -> TableDropped:
    name = TableName(change.database, change.name)
    return TableDropped(identifier=name, table_id=context.state.table_id, purge=change.purge)


def _decide_owner_change(context: DecisionContext, change: asked.SetOwner) -> OwnerSet | None:
    state, owner = context.state, context.state.owner
    if (owner.kind, owner.protocol) == (change.owner, change.protocol):
        return None
    if change.protocol is None:
        if not state.lists_files:
            raise InvalidChangeError(
                "the manifests of engines list the table's live files: the ledger has to list them "
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
    refuse_unservable_options(context.schema.options, change.protocol)
    return OwnerSet(owner="served", protocol=change.protocol)


def _clock_cells(fact: ClockCorrected) -> Iterator[tuple[Cell, Any]]:
    yield ("clock",), fact.true_time_millis


def _format_rule_cells(fact: FormatRulesRaised) -> Iterator[tuple[Cell, Any]]:
    for name, number in fact.rules.items():
        yield ("formatRules", name), number


def _promotion_cells(_fact: TablePromoted) -> Iterator[tuple[Cell, Any]]:
    yield ("owner",), "ledger"


def _owner_cells(fact: OwnerSet) -> Iterator[tuple[Cell, Any]]:
    served = fact.protocol is not UNSET
    yield ("owner",), f"{fact.owner} ({fact.protocol})" if served else fact.owner


def _describe_promotion(fact: TablePromoted) -> str:
    swapped = f"; {fact.catalog} leads here" if fact.catalog is not UNSET else ""
    return f"promoted: the ledger owns the table, which followed {fact.source}{swapped}"


def _describe_owner(fact: OwnerSet) -> str:
    if fact.owner == "served":
        return f"served: engines commit data through the {fact.protocol} protocol"
    return "taken back: the ledger commits data, and engines no longer do"


def _describe_rules(fact: FormatRulesRaised) -> str:
    named = ", ".join(f"{name} {number}" for name, number in sorted(fact.rules.items()))
    return f"the rules of its formats are at least {named} from now on"


def _snapshot_cells(fact: SnapshotFacts) -> Iterator[tuple[Cell, Any]]:
    yield ("snapshots",), fact.snapshot_id


def _fast_forward_claims(fact: SnapshotCommitted) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells by which main and the branch must not have changed; nothing for a commit."""
    head = fact.fast_forward_to
    if not isinstance(head, UnsetType):
        yield ("snapshots",), fact.snapshot_id - 1
        yield ("branch", head.branch_name), head.snapshot_id
        yield ("ref", head.branch_name), None


def _branch_snapshot_cells(fact: BranchCommitted) -> Iterator[tuple[Cell, Any]]:
    yield ("branch", fact.branch_name), fact.snapshot_id


def _branch_claims(fact: BranchCommitted) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells by which the branch must not have been reset or, for a rollback, changed."""
    yield ("ref", fact.branch_name), None
    if fact.target_snapshot_id is not UNSET:
        yield ("branch", fact.branch_name), fact.parent_snapshot_id


def _describe_branch_commit(fact: BranchCommitted) -> str:
    done: str = fact.commit_kind
    if fact.target_snapshot_id is not UNSET:
        done = f"rolled back to snapshot {fact.target_snapshot_id}"
    return (
        f"branch {fact.branch_name}: snapshot {fact.snapshot_id}: {done}, {_size_change_text(fact)}"
    )


def _describe_snapshot(fact: SnapshotCommitted) -> str:
    done: str = fact.commit_kind
    if not isinstance(fact.fast_forward_to, UnsetType):
        head = fact.fast_forward_to
        done = f"fast-forwarded to branch {head.branch_name} (snapshot {head.snapshot_id})"
    return f"snapshot {fact.snapshot_id}: {done}, {_size_change_text(fact)}"


def _unseen_snapshot_claims(fact: RolledBack) -> Iterator[tuple[Cell, Any]]:
    """Yield the cell by which main must not have a snapshot that the rollback would undo unseen."""
    yield ("snapshots",), fact.snapshot_id - 1


def _tag_cells(fact: TagCreated | TagReplaced) -> Iterator[tuple[Cell, Any]]:
    yield ("tag", fact.tag_name), (fact.snapshot_id, fact.time_retained_millis)


def _deleted_tag_cells(fact: TagDeleted) -> Iterator[tuple[Cell, Any]]:
    yield ("tag", fact.tag_name), None


def _expiry_cells(fact: SnapshotsExpired) -> Iterator[tuple[Cell, Any]]:
    yield ("earliestSnapshot",), fact.earliest_snapshot_id


def _partition_statistics_cells(fact: PartitionStatisticsSet) -> Iterator[tuple[Cell, Any]]:
    file = fact.partition_statistics
    yield ("partitionStatistics", file.snapshot_id), (file.statistics_path, file.file_size_in_bytes)


def _puffin_statistics_cells(fact: StatisticsSet) -> Iterator[tuple[Cell, Any]]:
    yield ("statistics", fact.statistics.snapshot_id), fact.statistics


def _created_table_cells(_fact: TableCreated) -> Iterator[tuple[Cell, Any]]:
    yield ("table",), "created"


def _dropped_table_cells(_fact: TableDropped) -> Iterator[tuple[Cell, Any]]:
    yield ("table",), "dropped"


def _undropped_table_cells(_fact: TableUndropped) -> Iterator[tuple[Cell, Any]]:
    yield ("table",), "restored"


def _size_change_text(fact: SnapshotFacts) -> str:
    rows, files = fact.delta_record_count, fact.delta_file_count
    if isinstance(fact, CommittedFacts) and fact.delta_manifest_list is not UNSET and not files:
        # An engine's manifests list its files.
        return _signed(rows, "row")
    sign = "-" if fact.delta_file_size_in_bytes < 0 else "+"
    change = f"{sign}{size(abs(fact.delta_file_size_in_bytes))}"
    return f"{_signed(rows, 'row')}, {_signed(files, 'file')}, {change}"


def _signed(count: int, noun: str) -> str:
    return f"{'-' if count < 0 else '+'}{counted(abs(count), noun)}"


def _describe_rollback(fact: RolledBack) -> str:
    tag = "" if fact.target_tag_name is UNSET else f" (tag {fact.target_tag_name})"
    return (
        f"snapshot {fact.snapshot_id}: rolled back to snapshot {fact.target_snapshot_id}{tag}, "
        f"{_size_change_text(fact)}"
    )


def describe_table_creation(fact: TableCreated) -> str:
    """Return the display text of a table's creation, with its source."""
    columns = counted(len(fact.schema.fields), "column")
    said = f"created table {_dotted_name(fact.identifier)} with {columns}"
    origin = fact.origin
    if isinstance(origin, UnsetType):
        return said
    if fact.protocol is not UNSET:
        said += f", which engines own through the {fact.protocol} protocol"
    if origin.source == OWN_FOLDER:
        return said
    return f"{said}, from {str(type(origin).__struct_config__.tag).title()}'s {origin.source}"


def describe_table_drop(fact: TableDropped) -> str:
    """Return the display text of a table's drop."""
    purge = "; its files are to be deleted" if fact.purge else ""
    return f"dropped table {_dotted_name(fact.identifier)}{purge}"


def describe_table_undrop(fact: TableUndropped) -> str:
    """Return the display text of a table's restoration."""
    return f"restored table {_dotted_name(fact.identifier)}"


def describe_clock_correction(fact: ClockCorrected) -> str:
    """Return the display text of a clock's correction."""
    return (
        f"corrected the clock: the commits from version {fact.first_version} on took effect by "
        f"{moment(fact.true_time_millis)}"
    )


def _dotted_name(name: TableName) -> str:
    return f"{name.database_name}.{name.table_name}"


TABLE_OPERATIONS: tuple[Operation, ...] = (
    StateOperation(
        asked=asked.CommitSnapshot,
        facts=(SnapshotCommitted,),
        decide=_decide_snapshot,
        asks_formats=True,
        owners=DATA_OWNERS,
        sets=_snapshot_cells,
        claims=_fast_forward_claims,
        says=_describe_snapshot,
        alters=False,
    ),
    StateOperation(
        asked=asked.FastForward,
        # Its event is that of a commit to main.
        facts=(),
        decide=_decide_fast_forward,
        asks_formats=True,
        owners=DATA_OWNERS,
        sets=_snapshot_cells,
        claims=_fast_forward_claims,
        says=_describe_snapshot,
        alters=False,
    ),
    Operation(
        facts=(BranchCommitted,),
        sets=_branch_snapshot_cells,
        claims=_branch_claims,
        says=_describe_branch_commit,
        alters=False,
    ),
    StateOperation(
        asked=asked.SetBranch,
        facts=(SnapshotRefSet,),
        decide=_decide_branch,
        asks_formats=True,
        owners=METADATA_OWNERS,
        sets=ref_cells,
        says=describe_ref,
        alters=False,
    ),
    StateOperation(
        asked=asked.DeleteBranch,
        facts=(SnapshotRefRemoved,),
        decide=_decide_branch_deletion,
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=removed_ref_cells,
        says=describe_removed_ref,
        alters=False,
    ),
    StateOperation(
        asked=asked.Rollback,
        facts=(RolledBack,),
        decide=_decide_snapshot,
        asks_formats=True,
        owners=DATA_OWNERS,
        sets=_snapshot_cells,
        claims=_unseen_snapshot_claims,
        says=_describe_rollback,
        alters=False,
    ),
    StateOperation(
        asked=asked.CreateTag,
        facts=(TagCreated,),
        decide=_decide_tag,
        asks_formats=True,
        owners=METADATA_OWNERS,
        sets=_tag_cells,
        says=lambda it: f"tagged snapshot {it.snapshot_id} as {it.tag_name}",
        alters=False,
    ),
    StateOperation(
        asked=asked.ReplaceTag,
        facts=(TagReplaced,),
        decide=_decide_tag,
        asks_formats=True,
        owners=METADATA_OWNERS,
        sets=_tag_cells,
        says=lambda it: f"moved tag {it.tag_name} to snapshot {it.snapshot_id}",
        alters=False,
    ),
    StateOperation(
        asked=asked.DeleteTag,
        facts=(TagDeleted,),
        decide=_decide_tag,
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_deleted_tag_cells,
        says=lambda it: f"deleted tag {it.tag_name}",
        alters=False,
    ),
    StateOperation(
        asked=asked.ExpireSnapshots,
        facts=(SnapshotsExpired,),
        decide=_decide_expiry,
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_expiry_cells,
        # It only moves a bound forward.
        claims=no_cells,
        says=lambda it: f"expired the snapshots before {it.earliest_snapshot_id}",
        alters=False,
    ),
    StateOperation(
        asked=asked.SetPartitionStatistics,
        facts=(PartitionStatisticsSet,),
        decide=lambda context, change: decide_partition_statistics(context.state, change),
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_partition_statistics_cells,
        says=lambda it: (
            f"published partition statistics of snapshot {it.partition_statistics.snapshot_id}"
        ),
        alters=False,
    ),
    StateOperation(
        asked=asked.SetStatistics,
        facts=(StatisticsSet,),
        decide=lambda context, change: decide_puffin_statistics(context.state, change),
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_puffin_statistics_cells,
        says=lambda it: f"published statistics of snapshot {it.statistics.snapshot_id}",
        alters=False,
    ),
    Operation(
        facts=(TablePromoted,),
        sets=_promotion_cells,
        says=_describe_promotion,
    ),
    StateOperation(
        asked=asked.SetOwner,
        facts=(OwnerSet,),
        decide=_decide_owner_change,
        asks_formats=False,
        owners=METADATA_OWNERS,
        sets=_owner_cells,
        says=_describe_owner,
    ),
    Operation(
        facts=(FormatRulesRaised,),
        sets=_format_rule_cells,
        claims=no_cells,
        says=_describe_rules,
    ),
    StateOperation(
        asked=CorrectClock,
        facts=(ClockCorrected,),
        decide=lambda context, change: decide_clock_correction(context.state, change),
        asks_formats=False,
        owners=ANY_OWNER,
        sets=_clock_cells,
        says=describe_clock_correction,
    ),
    StateOperation(
        asked=asked.DropTable,
        facts=(TableDropped,),
        decide=_decide_table_drop,
        asks_formats=False,
        owners=ANY_OWNER,
        sets=_dropped_table_cells,
        claims=no_cells,
        says=describe_table_drop,
    ),
    Operation(
        facts=(TableUndropped,),
        sets=_undropped_table_cells,
        claims=no_cells,
        says=describe_table_undrop,
    ),
    Operation(
        facts=(TableCreated,),
        sets=_created_table_cells,
        says=describe_table_creation,
    ),
)
