"""Commands about snapshots and refs: `tag`, `branch`, `rollback`, `snapshots`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from attrs import evolve
from cyclopts import Parameter

from ledger.audit.listings import ListedSnapshot, listed, tags_of
from ledger.cli.commands.show import BRANCH_COLUMNS, branch_document, branch_row
from ledger.cli.exits import UsageError
from ledger.cli.families import view
from ledger.cli.options import (
    CommitFlags,
    Confirmed,
    InstantFlags,
    LedgerFlags,
    OnBranch,
    TableName,
    branches_of,
    check_one_or_more,
    read_instant,
)
from ledger.cli.output import Cell, Screen, id_cell
from ledger.cli.phrases import committed, print_unchanged
from ledger.model.instant import SnapshotInstant, TagInstant
from ledger.model.messages import moment
from ledger.model.snapshot import EngineBranch, Tag
from ledger.state.table import TableState
from ledger.table import Table
from ledger.table_handle import handle_of

_Drop = Annotated[
    bool,
    Parameter(negative="", show_default=False, help="Drop it; without --yes, show the plan."),
]


def tag(  # noqa: PLR0913 - each is an option of the command
    name: TableName,
    tag_name: Annotated[str, Parameter(help="Name of the tag.")],
    /,
    *,
    at: Annotated[
        str | None,
        Parameter(help="Snapshot to tag: snapshot:3, tag:NAME, a version or time; default: now."),
    ] = None,
    replace: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Move an existing tag to another snapshot."
        ),
    ] = False,
    drop: _Drop = False,
    yes: Confirmed = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Create, replace or drop a tag; tagged snapshots survive expiry.

    Example:
        lakeledger tag shop.flights january --at snapshot:1
    """
    if drop and (replace or at is not None):
        raise UsageError("--drop cannot be combined with --replace or --at")
    if yes and not drop:
        raise UsageError("--yes confirms --drop; omit it")
    table = place.table(name)
    if drop and not yes:
        _show_tag_drop(place.screen, table, table.state.tag(tag_name))
        return
    if drop:
        appended = table.delete_tag(tag_name, **writing.options())
    else:
        begin = table.replace_tag if replace else table.create_tag
        appended = writing.once(
            table,
            ["tag", tag_name, at, "replace" if replace else "create"],
            lambda options: begin(tag_name, snapshot=_snapshot_id_at(table, at), **options),
        )
    committed(place.screen, table, appended, writing)


def _show_tag_drop(screen: Screen, table: Table, tag: Tag) -> None:
    state, name, snapshot_id = table.state, tag.name, tag.snapshot_id
    without = evolve(state, tags={key: each for key, each in state.tags.items() if key != name})
    is_kept = without.reachable(snapshot_id)
    document = {
        "table": str(table.identifier),
        "dryRun": True,
        "tagName": name,
        "snapshotId": snapshot_id,
        "isSnapshotKept": is_kept,
    }

    def text(to: Screen) -> None:
        to.line(f"dropping tag {name} of {table.identifier}; nothing was written")
        if is_kept:
            to.line(
                f"snapshot {snapshot_id} is kept; create the tag again with: lakeledger tag "
                f"{table.identifier} {name} --at snapshot:{snapshot_id}"
            )
        else:
            to.line(f"only the tag keeps snapshot {snapshot_id}, which cannot be restored")
        to.line("to commit this plan, add --yes")

    screen.result(document, text)


def rollback(
    name: TableName,
    /,
    *,
    to: Annotated[
        str, Parameter(help="Snapshot to restore: snapshot:3, tag:NAME, a version or time.")
    ],
    branch: OnBranch = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Restore a snapshot's contents as a new snapshot; keeps history and schema.

    Example:
        lakeledger rollback shop.flights --to tag:january \
            --message "the whole month was wanted"
    """
    wanted = read_instant(to)
    if wanted is None:
        raise UsageError("--to must be a snapshot before now")
    table = place.table(name)
    if branch is not None:
        if not isinstance(wanted, SnapshotInstant):
            raise UsageError("rollback of a branch needs one of its snapshots: --to snapshot:N")
        snapshot = wanted.snapshot_id
        appended = table.branch(branch).rollback(snapshot=snapshot, **writing.options())
        committed(place.screen, table, appended, writing)
        return
    # Repeated runs of a job make no snapshots if nothing changes.
    if not writing.commit_id and _is_current_snapshot(table.state, **_snapshot_or_tag(table, to)):
        newest = table.state.last_snapshot_id
        print_unchanged(place.screen, table, f"snapshot {newest} is already its newest")
        return
    appended = writing.once(
        table,
        ["rollback", to],
        lambda options: table.rollback(**_snapshot_or_tag(table, to), **options),
    )
    committed(place.screen, table, appended, writing)


def _snapshot_or_tag(table: Table, text: str) -> dict[str, Any]:
    """Return the snapshot or tag at an instant, as an argument of `Table.rollback`."""
    wanted = read_instant(text)
    if isinstance(wanted, TagInstant):
        return {"tag": wanted.tag_name}
    if isinstance(wanted, SnapshotInstant):
        return {"snapshot": wanted.snapshot_id}
    return {"snapshot": _snapshot_id_at(table, text)}


def _is_current_snapshot(
    state: TableState, snapshot: int | None = None, tag: str | None = None
) -> bool:
    target = snapshot if tag is None else state.tag(tag).snapshot_id
    return state.snapshot is not None and target == state.last_snapshot_id


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
            negative="",
            show_default=False,
            help="Reset an existing branch to the base snapshot; without --yes, show the plan.",
        ),
    ] = False,
    fast_forward: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Fast-forward main to the branch."),
    ] = False,
    drop: _Drop = False,
    yes: Confirmed = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Create, list, reset, fast-forward or drop a branch; commits to it do not change main.

    Commit to it with the option --branch of append, add-files, overwrite, delete-files and
    rollback; read it with --at branch:NAME.

    Example:
        lakeledger branch shop.flights audit

        lakeledger branch shop.flights

        lakeledger branch shop.flights audit --drop --yes
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
    if yes and not (drop or reset):
        raise UsageError("--yes confirms --drop or --reset; omit it")
    if (drop or reset) and not yes:
        _show_branch_plan(place.screen, table, branch_name, "dropping" if drop else "resetting")
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


def _show_branch_plan(screen: Screen, table: Table, name: str, what: str) -> None:
    branch = table.branch(name).state
    head_id = branch.head_id
    has_own = head_id != branch.base_snapshot_id
    is_kept = isinstance(branch, EngineBranch)
    document = {
        "table": str(table.identifier),
        "dryRun": True,
        "branch": branch_document(branch),
        "isLosingSnapshots": has_own and not is_kept,
    }

    def text(to: Screen) -> None:
        to.line(f"{what} branch {name} of {table.identifier}; nothing was written")
        to.table(BRANCH_COLUMNS, [branch_row(branch)])
        if not has_own:
            to.line("it has no snapshots of its own")
        elif is_kept:
            to.line(
                "its own snapshots stay until they expire; create the branch again with: "
                f"lakeledger branch {table.identifier} {name} --at snapshot:{head_id}"
            )
        else:
            to.line(
                "its own snapshots cannot be restored; to keep them, fast-forward main: "
                f"lakeledger branch {table.identifier} {name} --fast-forward"
            )
        to.line("to commit this plan, add --yes")

    screen.result(document, text)


def _snapshot_id_at(table: Table, text: str | None) -> int | None:
    """Return the id of main's snapshot at an instant; None for the newest."""
    if text is None:
        return None
    at = InstantFlags(at=text).of(table)
    if at.snapshot is None:
        raise UsageError(f"{text}: there was no snapshot yet")
    return at.snapshot.id


def _list_branches(table: Table, screen: Screen) -> None:
    found = [*table.state.all_branches.values()]

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
    ids = state.snapshot_ids_on(branch)
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
            id_cell(snapshot.id),
            version,
            moment(snapshot.time_millis),
            snapshot.commit_kind,
            snapshot.schema_id,
            snapshot.total_record_count,
            f"{snapshot.delta_record_count:+,}",
            ", ".join(tags_of(state, snapshot.id)),
        )
