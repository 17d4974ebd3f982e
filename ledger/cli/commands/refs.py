"""Commands about snapshots and refs: `tag`, `branch`, `rollback`, `expire`, `snapshots`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from typing import Annotated, Any

from attrs import frozen
from cyclopts import Parameter

from ledger.audit.listings import ListedSnapshot, listed, tags_of
from ledger.cli.commands.show import BRANCH_COLUMNS, branch_document, branch_row
from ledger.cli.exits import UsageError
from ledger.cli.families import view
from ledger.cli.options import (
    CommitFlags,
    InstantFlags,
    LedgerFlags,
    OnBranch,
    TableName,
    branches_of,
    check_one_or_more,
    read_time,
)
from ledger.cli.output import Cell, Screen
from ledger.cli.phrases import committed, print_unchanged
from ledger.decide.changes import ExpireSnapshots
from ledger.decide.snapshots import decide_snapshot_expiry
from ledger.events.imported import SnapshotsRemoved
from ledger.events.snapshots import SnapshotsExpired
from ledger.model.errors import NotFoundError
from ledger.model.messages import moment
from ledger.state.table import TableState
from ledger.table import Table
from ledger.table_handle import handle_of


def tag(  # noqa: PLR0913 - each is an option of the command
    name: TableName,
    tag_name: Annotated[str, Parameter(help="Name of the tag.")],
    /,
    *,
    snapshot: Annotated[int | None, Parameter(help="Snapshot id; the newest if omitted.")] = None,
    replace: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Move an existing tag to another snapshot."
        ),
    ] = False,
    delete: Annotated[
        bool, Parameter(negative="", show_default=False, help="Delete the tag.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Create, replace or delete a tag; tagged snapshots survive expiry.

    Example:
        lakeledger tag shop.flights january --snapshot 1
    """
    if delete and (replace or snapshot is not None):
        raise UsageError("--delete cannot be combined with --replace or --snapshot")
    table = place.table(name)
    if delete:
        appended = table.delete_tag(tag_name, **writing.options())
    elif replace:
        appended = table.replace_tag(tag_name, snapshot=snapshot, **writing.options())
    else:
        appended = table.create_tag(tag_name, snapshot=snapshot, **writing.options())
    committed(place.screen, table, appended, writing)


def rollback(
    name: TableName,
    /,
    *,
    snapshot: Annotated[int | None, Parameter(help="Id of the snapshot to restore.")] = None,
    tag: Annotated[str | None, Parameter(help="Tag of the snapshot to restore.")] = None,
    branch: OnBranch = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Restore a snapshot's contents as a new snapshot; keeps history and schema.

    Example:
        lakeledger rollback shop.flights --tag january \
            --message "the whole month was wanted"
    """
    if (snapshot is None) == (tag is None):
        raise UsageError("no snapshot to restore; give either --snapshot N or --tag NAME")
    table = place.table(name)
    if branch is not None:
        if snapshot is None:
            raise UsageError("rollback of a branch needs one of its snapshots: --snapshot N")
        appended = table.branch(branch).rollback(snapshot=snapshot, **writing.options())
        committed(place.screen, table, appended, writing)
        return
    # Repeated runs of a job make no snapshots if nothing changes.
    if not writing.commit_id and _is_current_snapshot(table.state, snapshot, tag):
        newest = table.state.last_snapshot_id
        print_unchanged(place.screen, table, f"snapshot {newest} is already its newest")
        return
    appended = table.rollback(snapshot=snapshot, tag=tag, **writing.options())
    committed(place.screen, table, appended, writing)


def _is_current_snapshot(state: TableState, snapshot: int | None, tag: str | None) -> bool:
    target = snapshot if tag is None else state.tag(tag).snapshot_id
    return state.snapshot is not None and target == state.last_snapshot_id


@frozen
class ExpiryEffect:
    """Effect of an expiry.

    Attributes:
        before: Snapshots with smaller ids expire.
        gone: Ids of the snapshots that can no longer be read, in order.
        tagged: Ids of the snapshots that only their tags keep, by tag. Base snapshots of branches
            are kept too.
    """

    before: int
    gone: tuple[int, ...]
    tagged: dict[str, int]

    @classmethod
    def of(
        cls, state: TableState, before: int, fact: SnapshotsExpired | SnapshotsRemoved | None
    ) -> ExpiryEffect:
        """Return the effect of expiring the snapshots before one in a state.

        Args:
            state: State before the expiry.
            before: Id of the oldest snapshot to keep.
            fact: Event to commit; None if nothing expires.
        """
        older = [] if fact is None else [*_snapshots_before(state, before)]
        tagged = {
            name: tag.snapshot_id
            for name, tag in sorted(state.tags.items())
            if tag.snapshot_id in older
        }
        kept = state.held_snapshot_ids
        gone = tuple(each for each in older if each not in kept)
        return cls(
            before, fact.snapshot_ids if isinstance(fact, SnapshotsRemoved) else gone, tagged
        )

    @classmethod
    def of_commit(cls, table: Table, version: int) -> ExpiryEffect:
        """Return the effect of a committed expiry."""
        state = table.at(version=version - 1).state
        for transaction in handle_of(table).log.commit_at(version).transactions:
            for event in transaction.events:
                if isinstance(event, SnapshotsExpired):
                    return cls.of(state, event.earliest_snapshot_id, event)
                if isinstance(event, SnapshotsRemoved):
                    return cls(max(event.snapshot_ids) + 1, tuple(sorted(event.snapshot_ids)), {})
        return cls.of(state, state.earliest_snapshot_id, None)


def _snapshots_before(state: TableState, before: int) -> Iterator[int]:
    """Yield the unexpired snapshots before one, oldest first."""
    ids = reversed(state.snapshot_ids)
    if not state.origin.has_ordered_ids:
        return takewhile(lambda each: each != before, ids)
    return (each for each in ids if state.earliest_snapshot_id <= each < before)


def expire(  # noqa: PLR0913 - each is an option of the command
    name: TableName,
    /,
    *,
    before: Annotated[int | None, Parameter(help="Expire snapshots with smaller ids.")] = None,
    keep: Annotated[
        int | None,
        Parameter(validator=check_one_or_more, help="Number of newest snapshots to keep."),
    ] = None,
    older_than: Annotated[
        str | None,
        Parameter(help="Expire snapshots replaced before a time or age, such as 30d."),
    ] = None,
    dry_run: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Only show the snapshots that would expire."
        ),
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Expire a table's oldest snapshots; keeps tagged ones and deletes no files.

    The contents of an expired snapshot can still be read by --version.

    Example:
        lakeledger expire shop.flights --keep 10 --dry-run

        lakeledger expire shop.flights --older-than 30d
    """
    if sum(each is not None for each in (before, keep, older_than)) != 1:
        raise UsageError(
            "no snapshots to expire; give one of --before N, --keep N and --older-than TIME"
        )
    table = place.table(name)
    first_kept = partial(_oldest_snapshot_to_keep, table, before, keep, older_than)
    document: dict[str, Any] = {"table": str(table.identifier), "dryRun": dry_run}
    if dry_run or not writing.commit_id:
        state = table.state
        oldest = first_kept()
        fact = decide_snapshot_expiry(state, ExpireSnapshots(oldest))
        effect = ExpiryEffect.of(state, oldest, fact)
        # Repeated runs of a job make no commits if nothing expires.
        if dry_run or fact is None:
            document |= {**_expiry_facts(effect), "version": state.version}
            title = f"{name} would expire"
            if not dry_run:
                title = f"{name} stays at version {state.version}: there is nothing to expire;"
            place.screen.result(document, lambda to: _print_expiry(to, title, effect))
            return
    appended = writing.once(
        table,
        ["expire", before, keep, older_than],
        lambda options: table.expire_snapshots(before=first_kept(), **options),
    )
    effect = ExpiryEffect.of_commit(table, appended.version)
    document |= {
        **_expiry_facts(effect),
        "version": appended.version,
        "repeated": appended.repeated,
    }
    title = f"{name} version {appended.version} expired"
    if appended.repeated:
        title = f"{name} version {appended.version}, committed before; nothing was written now;"
    place.screen.result(document, lambda to: _print_expiry(to, title, effect))


def _oldest_snapshot_to_keep(
    table: Table, before: int | None, keep: int | None, older_than: str | None
) -> int:
    """Return the id of the oldest snapshot to keep."""
    if before is not None:
        return before
    state = table.state
    newest = state.last_snapshot_id
    first = newest + 1 - keep if keep else _current_snapshot_at(table, read_time(older_than or ""))
    return max(state.earliest_snapshot_id, first)


def _current_snapshot_at(table: Table, moment: int) -> int:
    """Return the id of the current snapshot at a time; 0 if there was none."""
    try:
        return table.at(timestamp=moment).state.last_snapshot_id
    except NotFoundError:
        return 0


def _expiry_facts(effect: ExpiryEffect) -> dict[str, Any]:
    return {
        "before": effect.before,
        "expired": list(effect.gone),
        "keptByTags": [
            {"tagName": name, "snapshotId": snapshot_id}
            for name, snapshot_id in effect.tagged.items()
        ],
    }


def _print_expiry(screen: Screen, title: str, effect: ExpiryEffect) -> None:
    count = len(effect.gone)
    said = f"{count:,} {'snapshot' if count == 1 else 'snapshots'}"
    if count:
        said += f" before {effect.before}: {_format_id_ranges(effect.gone)}"
    screen.line(f"{title} {said}")
    screen.table(("kept by tag", "snapshot"), effect.tagged.items())


def _format_id_ranges(ids: tuple[int, ...]) -> str:
    """Format ascending ids as ranges.

    >>> _format_id_ranges((1, 2, 3, 7))
    '1 to 3, 7'
    """
    runs: list[list[int]] = []
    for each in ids:
        if runs and runs[-1][-1] == each - 1:
            runs[-1][1:] = [each]
        else:
            runs.append([each])
    return ", ".join(" to ".join(map(str, run)) for run in runs)


def branch(  # noqa: PLR0913 - each is an option of the command
    name: TableName,
    branch_name: Annotated[
        str | None,
        Parameter(help="Name of the branch; if omitted, list all.", completer=branches_of),
    ] = None,
    /,
    *,
    at: Annotated[
        str | None,
        Parameter(help="Base snapshot: tag:NAME, snapshot:3, a version or time; default: now."),
    ] = None,
    reset: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Reset an existing branch to the base snapshot."
        ),
    ] = False,
    fast_forward: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Fast-forward main to the branch."),
    ] = False,
    drop: Annotated[
        bool, Parameter(negative="", show_default=False, help="Drop the branch.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Create, list, reset, fast-forward or drop a branch; commits to it do not change main.

    Commit to it with the option --branch of add-files, overwrite, delete-files and rollback; read
    it with --at branch:NAME.

    Example:
        lakeledger branch shop.flights audit

        lakeledger branch shop.flights

        lakeledger branch shop.flights audit --drop
    """
    table = place.table(name)
    if sum((reset, fast_forward, drop)) > 1 or (at is not None and (fast_forward or drop)):
        raise UsageError(
            "give one of --reset, --fast-forward and --drop; --at is for new and reset branches"
        )
    if branch_name is None:
        if at is not None or reset or fast_forward or drop:
            raise UsageError("no branch is given; name it after the table")
        _list_branches(table, place.screen)
        return
    found = table.branch(branch_name)
    options = writing.options()
    if drop:
        appended = found.delete(**options)
    elif fast_forward:
        appended = found.fast_forward(**options)
    else:
        begin = found.reset if reset else found.create
        appended = writing.once(
            table,
            ["branch", branch_name, at, "reset" if reset else "create"],
            lambda options: begin(snapshot=_snapshot_id_at(table, at), **options),
        )
    committed(place.screen, table, appended, writing)


def _snapshot_id_at(table: Table, text: str | None) -> int | None:
    """Return the id of main's snapshot at an instant; None for the newest."""
    if text is None:
        return None
    at = InstantFlags(at=text).of(table)
    if at.snapshot is None:
        raise UsageError(f"--at {text}: there was no snapshot yet")
    return at.snapshot.id


def _list_branches(table: Table, screen: Screen) -> None:
    found = [each for _, each in sorted(table.state.branches.items())]

    def text(to: Screen) -> None:
        if not found:
            to.line(f"{table.identifier} has no branches")
        to.table(BRANCH_COLUMNS, map(branch_row, found))

    about = {"table": str(table.identifier)}
    screen.results("branches", map(branch_document, found), text, about)


COLUMNS = ("snapshot", "version", "time (UTC)", "kind", "schema", "rows", "change", "tags")


def snapshots(
    name: TableName,
    /,
    *,
    limit: Annotated[
        int,
        Parameter(alias="-n", validator=check_one_or_more, help="How many at most."),
    ] = 50,
    branch: OnBranch = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """List a table's snapshots, newest first: unexpired ones and those kept by a tag.

    In JSON, each `snapshot` is the DLF metadata API's object, `version` the commit it came with;
    with --output jsonl, each snapshot is one line.

    Example:
        lakeledger snapshots shop.flights --limit 10
    """
    table = place.table(name)
    state = table.state if branch is None else table.at(branch=branch).state
    ids = list(state.snapshot_ids)
    found = listed(handle_of(table).log, state, ids[:limit], table.state.corrections)
    screen = place.screen
    documents = (
        {
            "version": each.version,
            "tags": tags_of(state, each.snapshot.id),
            "snapshot": view("json")(each.snapshot),
        }
        for each in found
    )

    def text(to: Screen) -> None:
        if not found:
            to.line(f"{table.identifier} has no snapshots yet")
        to.table(COLUMNS, rows(state, found))

    screen.results("snapshots", documents, text, {"table": str(table.identifier)})
    if len(ids) > limit:
        screen.notice(
            f"{len(ids) - limit:,} more are not shown; to show all, use --limit {len(ids)}"
        )


def rows(state: TableState, found: list[ListedSnapshot]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row of `COLUMNS` for every snapshot."""
    for version, snapshot in found:
        yield (
            # An id is there to be copied, and Iceberg's have nineteen digits.
            str(snapshot.id),
            version,
            moment(snapshot.time_millis),
            snapshot.commit_kind,
            snapshot.schema_id,
            snapshot.total_record_count,
            f"{snapshot.delta_record_count:+,}",
            ", ".join(tags_of(state, snapshot.id)),
        )
