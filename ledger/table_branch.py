"""TableBranch: the handle on a branch of a table, a line of snapshots beside main."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from ledger.events.snapshots import ChangesReference
from ledger.history.older import TableLog, on_branch, state_at_snapshot
from ledger.log.request import Appended, CommitOptions, fresh_id
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.model.instant import Instant, instant_of
from ledger.model.messages import html_table
from ledger.model.names import Identifier
from ledger.model.snapshot import Branch, CommitKind, branch_number
from ledger.opening.context import Plan, Progress, no_progress
from ledger.state.table import TableState
from ledger.table_at import TableAt

if TYPE_CHECKING:
    from ledger.decide.changes import Isolation, TableChange
    from ledger.files.live import LiveFiles
    from ledger.files.snapshot_plan import SnapshotPlan
    from ledger.model.file_change import PartitionValue

Paths = str | PurePath | Iterable[str | PurePath]


class Trunk(Protocol):
    """The table that a branch is of."""

    identifier: Identifier
    log: TableLog
    live: LiveFiles

    @property
    def state(self) -> TableState:
        """The newest state."""

    def at(
        self,
        *,
        version: int | None,
        timestamp: datetime | int | str | None,
        branch: str | None,
    ) -> TableAt:
        """Return the table at an instant."""

    def state_at(self, head: TableState, instant: Instant | None) -> TableState:
        """Return the state at an instant, as a head sees it."""

    def data_files(self, paths: Paths, on_progress: Progress) -> tuple[FileChange, ...]:
        """Return what `add_files` would register."""

    def snapshot_plan(self, kind: CommitKind, *args: Any, **more: Any) -> SnapshotPlan:
        """Return what a snapshot is asked for by."""

    def outsourced(self, files: Sequence[FileChange]) -> ChangesReference | None:
        """Return where a long list of file changes stands."""

    def commit_files(
        self, plan: SnapshotPlan, options: CommitOptions, *, branch: str | None
    ) -> Appended[TableState]:
        """Commit a snapshot to main or a branch."""

    def commit_planned(
        self, asked: Any, options: CommitOptions, plan: Plan
    ) -> Appended[TableState]:
        """Commit what a plan means."""

    def landed_before(self, commit_id: str | None, asked: Any) -> Appended[TableState] | None:
        """Return what was asked in these words under an id, if it landed."""


class TableBranch:
    """One branch of a table, which need not be there yet.

    Commits to it are seen on it alone: main, its snapshots and whatever reads them stay as they
    are until main is fast-forwarded. Schema, options and layout are the table's, one for all.

    In the examples, `orders` is the table of `Table`'s.
    """

    def __init__(self, table: Trunk, name: str) -> None:
        self.table = table
        self.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.table.identifier)!r}, {self.name!r})"

    def _repr_html_(self) -> str:
        found = self.table.state.branches.get(self.name)
        if found is None:
            rows: list[tuple[str, object]] = [("", "not there yet; create() makes it")]
        else:
            rows = [
                ("newest snapshot", found.head_id),
                ("begun at snapshot", found.base_snapshot_id),
                ("rows", self.at().totals.record_count),
            ]
        return html_table(("", ""), rows, caption=f"{self.table.identifier}, branch {self.name}")

    @property
    def state(self) -> Branch:
        """What the newest state of the table says of it.

        Raises:
            NotFoundError: It is not there.

        Example:
            >>> _ = orders.create_branch("audit")
            >>> orders.branch("audit").state.base_snapshot_id
            1
        """
        return self.table.state.branch(self.name)

    def at(
        self,
        *,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
    ) -> TableAt:
        """Return the table as it is on the branch, or was; the schema is the table's then.

        Args:
            version: Right after that commit.
            timestamp: As of a datetime or an ISO text with a time zone, or Unix milliseconds.

        Raises:
            NotFoundError: The branch, or the version, does not exist (did not exist then).

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.at().totals.record_count, orders.at().totals.record_count
            (0, 2)
        """
        return self.table.at(version=version, timestamp=timestamp, branch=self.name)

    @takes(
        snapshot=its.whole.or_none(),
        tag=its.text.or_none(),
        min_snapshots_to_keep=its.whole.or_none(),
        max_snapshot_age_millis=its.whole.or_none(),
        max_ref_age_millis=its.whole.or_none(),
    )
    def create(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_millis: int | None = None,
        max_ref_age_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Make the branch, with a snapshot of main: the newest, where nothing is given.

        That snapshot is kept from expiring. The rest is what an engine that expires snapshots and
        refs by itself is told to keep; the ledger expires nothing by itself.

        Args:
            snapshot: A snapshot of main.
            tag: A tag, for its snapshot.
            min_snapshots_to_keep: How many of the branch's snapshots are kept.
            max_snapshot_age_millis: How long they are kept.
            max_ref_age_millis: How long the branch is kept.
            options: See CommitOptions.

        Raises:
            AlreadyExistsError: There is a branch, or a tag, of that name.
            InvalidChangeError: There is no snapshot yet, or it is one of a branch.
            NotFoundError: The snapshot or tag does not exist, or was expired.

        Example:
            >>> sorted(orders.branch("audit").create(tag="v1").state.branches)
            ['audit']
        """
        kept = (min_snapshots_to_keep, max_snapshot_age_millis, max_ref_age_millis)
        return self._begin("createBranch", snapshot, tag, kept, options)

    @takes(snapshot=its.whole.or_none(), tag=its.text.or_none())
    def reset(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Let the branch begin anew with a snapshot of main: the newest, where nothing is given.

        Its own snapshots cannot be read by their ids any more; how long engines keep what it has
        stays as it is. To go back to one of its own, use `rollback`.

        Raises:
            NotFoundError: The branch, the snapshot or the tag does not exist.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.reset().state.branches["audit"].totals.record_count
            2
        """
        return self._begin("resetBranch", snapshot, tag, None, options)

    def _begin(
        self,
        asked: str,
        snapshot: int | None,
        tag: str | None,
        kept: tuple[int | None, int | None, int | None] | None,
        options: CommitOptions,
    ) -> Appended[TableState]:
        from ledger.decide.changes import SetBranch

        instant = instant_of(snapshot=snapshot, tag=tag)
        log = self.table.log

        def plan(head: TableState) -> list[TableChange]:
            then = self.table.state_at(head, instant)
            if then.snapshot is None:
                raise InvalidChangeError(
                    f"branch {self.name!r} has nothing to begin with: no snapshot yet; commit one "
                    "to main first"
                )
            made = state_at_snapshot(log, then.snapshot.id)
            least, age, ref_age = kept or _kept_of(head.branch(self.name))
            return [
                SetBranch(
                    name=self.name,
                    snapshot_id=then.snapshot.id,
                    base_version=made.version,
                    totals=made.totals,
                    resets=kept is None,
                    min_snapshots_to_keep=least,
                    max_snapshot_age_millis=age,
                    max_ref_age_millis=ref_age,
                )
            ]

        said = [asked, self.name, snapshot, tag, *(kept or ())]
        return self.table.commit_planned(said, options, plan)

    @takes()
    def append(
        self, files: Iterable[FileChange], **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot to the branch that adds files; see `Table.append`.

        Raises:
            InvalidChangeError: A file is live on the branch already, or does not fit the table.
            NotFoundError: The branch does not exist.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> new = ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)
            >>> audit.append([new]).state.branches["audit"].totals.record_count
            5
        """
        return self.commit_snapshot(self.table.snapshot_plan("APPEND", tuple(files)), **options)

    @takes(paths=its.paths, on_progress=its.callback)
    def add_files(
        self,
        paths: Paths,
        on_progress: Progress = no_progress,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Register existing Parquet files as one snapshot of the branch; see `Table.add_files`.

        Example:
            >>> _ = orders.create_branch("audit")
            >>> _ = orders.branch("audit").add_files(new_file)
            >>> orders.at(branch="audit").totals.record_count
            4
        """
        wanted = its.path_texts(paths)
        asked = options.setdefault("asked", ["addFiles", wanted, "branch", self.name])
        landed = self.table.landed_before(options.get("commit_id"), asked)
        return landed or self.append(self.table.data_files(wanted, on_progress), **options)

    @takes(paths=its.paths)
    def delete_files(self, paths: Paths, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit a snapshot that takes files out of the branch; see `Table.delete_files`.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> audit.delete_files("a.parquet").state.branches["audit"].totals.file_count
            0
        """
        plan = self.table.snapshot_plan("OVERWRITE", delete=tuple(its.path_texts(paths)))
        return self.commit_snapshot(plan, **options)

    def overwrite(
        self,
        files: Iterable[FileChange],
        *,
        where: Mapping[str, PartitionValue] | None = None,
        isolation: Isolation = "serializable",
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Commit a snapshot that replaces what is on the branch; see `Table.overwrite`.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> new = ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)
            >>> audit.overwrite([new]).state.branches["audit"].totals.record_count
            3
        """
        plan = self.table.snapshot_plan(
            "OVERWRITE", tuple(files), where=where or {}, isolation=isolation
        )
        return self.commit_snapshot(plan, **options)

    def commit_snapshot(
        self, plan: SnapshotPlan, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot of any kind to the branch; see `Table.commit_snapshot`.

        The same (user, identifier, kind) on main, or on another branch, is another snapshot.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> new = ledger.FileChange(path="b.parquet", record_count=2, file_size_in_bytes=80)
            >>> plan = ledger.SnapshotPlan("COMPACT", (new,), delete=("a.parquet",))
            >>> audit.commit_snapshot(plan).state.branches["audit"].snapshot.id
            1000000000001
        """
        return self.table.commit_files(plan, options, branch=self.name)

    @takes(snapshot=its.whole)
    def rollback(self, *, snapshot: int, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Put the contents of one of the branch's snapshots back, as a new one.

        Args:
            snapshot: One of its own, or the one of main that it begins with.
            options: See CommitOptions.

        Raises:
            NotFoundError: The branch does not hold the snapshot.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.rollback(snapshot=1).state.branches["audit"].totals.record_count
            2
        """
        from ledger.decide.changes import MetBranch, Rollback

        table = self.table

        def plan(head: TableState) -> list[TableChange]:
            branch = head.branch(self.name)
            holds = snapshot in (*branch.snapshot_ids, branch.base_snapshot_id)
            files: tuple[FileChange, ...] = ()
            if holds:
                then = state_at_snapshot(table.log, snapshot)
                files = table.live.difference(on_branch(table.log, head, self.name), then)
            return [
                Rollback(
                    target_snapshot_id=snapshot,
                    commit_user=fresh_id(),
                    files=tuple(table.log.personal.columns.rendered(files)),
                    written=files,
                    reference=table.outsourced(files),
                    branch=MetBranch(branch.name, branch.number),
                )
            ]

        return table.commit_planned(["rollbackBranch", self.name, snapshot], options, plan)

    def fast_forward(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Let main have what the branch shows, as one more snapshot of main.

        The branch begins with that snapshot then, and can go on.

        Raises:
            InvalidChangeError: Main went on since the branch began, or the branch added nothing.
            CommitConflictError: Somebody else committed to main or the branch meanwhile.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> state = audit.fast_forward(message="the audit found nothing").state
            >>> state.totals.record_count, state.snapshot.id, audit.state.head_id
            (0, 2, 2)
        """
        from ledger.decide.changes import FastForward, MetBranch

        table = self.table

        def plan(head: TableState) -> list[TableChange]:
            branch = head.branch(self.name)
            files: tuple[FileChange, ...] = ()
            if branch.base_snapshot_id == head.last_snapshot_id:
                files = table.live.difference(head, on_branch(table.log, head, self.name))
            return [
                FastForward(
                    branch=MetBranch(branch.name, branch.number),
                    snapshot_id=branch.head_id,
                    commit_user=fresh_id(),
                    files=tuple(table.log.personal.columns.rendered(files)),
                    written=files,
                    reference=table.outsourced(files),
                )
            ]

        return table.commit_planned(["fastForward", self.name], options, plan)

    @takes(before=its.count)
    def expire_snapshots(
        self, *, before: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Expire the branch's own snapshots with ids below `before`; no file is deleted.

        Raises:
            InvalidChangeError: `before` is no snapshot of the branch's own.
            NotFoundError: The branch does not exist.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> _ = audit.rollback(snapshot=1)
            >>> _ = audit.expire_snapshots(before=1_000_000_000_002)
            >>> list(audit.state.snapshot_ids)
            [1000000000002]
        """
        from ledger.decide.changes import ExpireSnapshots

        def plan(head: TableState) -> list[TableChange]:
            branch = head.branch(self.name)
            if branch_number(before) != branch.number:
                raise InvalidChangeError(
                    f"snapshot {before} is none of branch {self.name!r}'s own, which are "
                    f"{[*branch.snapshot_ids]}; main's expire by the table's expire_snapshots"
                )
            return [ExpireSnapshots(before)]

        return self.table.commit_planned(["expireSnapshots", before], options, plan)

    def delete(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Take the branch away; what main has stays, and no file is deleted.

        Example:
            >>> _ = orders.create_branch("audit")
            >>> dict(orders.branch("audit").delete().state.branches)
            {}
        """
        from ledger.decide.changes import DeleteBranch

        return self.table.commit_planned(
            ["deleteBranch", self.name], options, lambda _: [DeleteBranch(self.name)]
        )


def _kept_of(branch: Branch) -> tuple[int | None, int | None, int | None]:
    return (
        branch.min_snapshots_to_keep,
        branch.max_snapshot_age_millis,
        branch.max_ref_age_millis,
    )
