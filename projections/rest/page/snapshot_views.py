"""Views of a table's snapshots, and of its branches and tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen

from ledger.audit.listings import ListedSnapshot, listed, tags_of
from ledger.audit.report import Curve, growth_curves, text
from ledger.audit.snapshot_list import is_expired
from ledger.history.older import state_at_snapshot
from ledger.model.snapshot import UNKNOWN_TOTALS
from ledger.state.native_origin import ListedRef
from ledger.state.snapshots import MAIN
from ledger.state.table import TableState
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.rest.page.queries import ListPage, PageQuery, page_of

SNAPSHOTS_OF_A_PAGE: Final = 50
REFS_OF_A_PAGE: Final = 100
_MOST_TAGS: Final = 5
_MOST_BRANCHES: Final = 100


@frozen
class ListedSnapshotRow:
    """A snapshot in the list.

    Attributes:
        id: Its id.
        version: Version of its commit.
        time_millis: Its time.
        kind: APPEND, OVERWRITE, COMPACT or ANALYZE.
        rows: Rows in all live files.
        change: Rows that it added, less those that it removed.
        tags: Names of its tags, up to a limit.
    """

    id: int
    version: int
    time_millis: int
    kind: str
    rows: int
    change: int
    tags: tuple[str, ...]


@frozen
class SnapshotsView:
    """A page of a table's snapshots.

    Attributes:
        branch: The branch; `main` for the main line.
        branches: Names of the branches that can be chosen, up to a limit.
        snapshots: The snapshots, newest first.
        position: The page of the list.
        growth: The rows through time, of the page's snapshots; None for fewer than two.
    """

    branch: str
    branches: tuple[str, ...]
    snapshots: tuple[ListedSnapshotRow, ...]
    position: ListPage
    growth: Curve | None


def snapshots_view(table: Table, query: PageQuery) -> SnapshotsView:
    """Return a page of the snapshots of main, or of a branch.

    Raises:
        NotFoundError: The branch does not exist.
        RequestError: A parameter is out of bounds.
    """
    head = table.state
    branch = query.text("branch") or MAIN
    state = head if branch == MAIN else table.at(branch=branch).state
    position, ids = page_of(state.snapshot_ids_on(branch), query.page(), SNAPSHOTS_OF_A_PAGE)
    found = _listed(table, state, ids) if ids else []
    summaries = tuple(_summary(state, each) for each in found)
    refs = sorted(each.name for each in head.refs if each.ref_type == "branch")
    names = [each for each in refs if each != MAIN][:_MOST_BRANCHES]
    curves = growth_curves([(each.time_millis, each.rows, 0) for each in reversed(summaries)])
    return SnapshotsView(branch, (MAIN, *names), summaries, position, curves[0] if curves else None)


def _listed(table: Table, state: TableState, ids: Sequence[int]) -> list[ListedSnapshot]:
    handle = handle_of(table)
    corrections = state.corrections
    if state.on_branch is None and state.origin.listed_snapshot(ids[0]) is None:
        # Commits after the page's newest snapshot are not read.
        until = state_at_snapshot(handle.log, ids[0]).version
        return listed(handle.log, evolve(state, version=until), ids, corrections)
    return listed(handle.log, state, ids, corrections)


def _summary(state: TableState, found: ListedSnapshot) -> ListedSnapshotRow:
    each = found.snapshot
    tags = tuple(map(text, tags_of(state, each.id)[:_MOST_TAGS]))
    return ListedSnapshotRow(
        each.id,
        found.version,
        each.time_millis,
        each.commit_kind,
        each.total_record_count,
        each.delta_record_count,
        tags,
    )


@frozen
class RefRow:
    """A branch or a tag.

    Attributes:
        name: Its name.
        kind: `branch` or `tag`.
        snapshot_id: Its snapshot.
        created_millis: Time at which a tag was created; None if it is not known.
        rows: Rows on a branch; None for a tag, or if they are unknown.
        files: Files on a branch; None for a tag, or if they are unknown.
        note: A remark on the snapshot.
    """

    name: str
    kind: str
    snapshot_id: int
    created_millis: int | None
    rows: int | None
    files: int | None
    note: str


@frozen
class RefsView:
    """A page of a table's branches and tags."""

    refs: tuple[RefRow, ...]
    position: ListPage


def refs_view(table: Table, query: PageQuery) -> RefsView:
    """Return a page of the branches and tags of a table.

    Raises:
        RequestError: A parameter is out of bounds.
    """
    state = table.state
    every = sorted(state.refs, key=lambda each: (each.ref_type, each.name))
    position, shown = page_of(every, query.page(), REFS_OF_A_PAGE)
    return RefsView(tuple(_ref_row(state, each) for each in shown), position)


def _ref_row(state: TableState, ref: ListedRef) -> RefRow:
    branch = state.all_branches.get(ref.name) if ref.ref_type == "branch" else None
    tag = state.tags.get(ref.name) if ref.ref_type == "tag" else None
    base_id = None if branch is None else branch.base_snapshot_id
    base = "" if base_id is None else f"from snapshot {base_id}"
    totals = UNKNOWN_TOTALS if branch is None else branch.totals
    return RefRow(
        ref.name,
        ref.ref_type,
        ref.snapshot_id,
        None if tag is None else tag.create_time_millis,
        None if totals.record_count < 0 else totals.record_count,
        None if totals.file_count < 0 else totals.file_count,
        "keeps an expired snapshot" if is_expired(ref.snapshot_id, state) else base,
    )
