"""TableBranch: the public class for a branch, a line of snapshots separate from main."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Unpack

from ledger.log.request import Appended, CommitOptions
from ledger.model import arguments as its
from ledger.model.arguments import validate_arguments
from ledger.model.instant import instant_from_arguments
from ledger.model.messages import html_table
from ledger.model.snapshot import Branch, EngineBranch
from ledger.opening.context import Progress, no_progress
from ledger.state.table import TableState
from ledger.table_at import TableAt, resolve_table_at
from ledger.table_handle import TableHandle

if TYPE_CHECKING:
    from ledger.decide.changes import Isolation
    from ledger.files.snapshot_plan import SnapshotPlan
    from ledger.model.file_change import PartitionValue
    from ledger.rows.row_input import GivenData

Paths = str | PurePath | Iterable[str | PurePath]


class TableBranch:
    """A branch of a table, which may not exist yet: a line of snapshots separate from main.

    Commits to it are visible only on it until main is fast-forwarded. All branches share the
    table's schema, options and layout.

    In the examples, `orders` is the table of the examples of `Table`.

    Attributes:
        name: The branch's name.
    """

    def __init__(self, handle: TableHandle, name: str) -> None:
        self._handle = handle
        self.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._handle.identifier)!r}, {self.name!r})"

    def _repr_html_(self) -> str:
        found = self._handle.state.all_branches.get(self.name)
        if found is None:
            rows: list[tuple[str, object]] = [("", "does not exist yet; create() creates it")]
        else:
            rows = [
                ("newest snapshot", found.head_id),
                ("base snapshot", found.base_snapshot_id),
                ("rows", found.totals.record_count),
            ]
        return html_table(("", ""), rows, caption=f"{self._handle.identifier}, branch {self.name}")

    @property
    def state(self) -> Branch | EngineBranch:
        """The branch's newest state: its base, snapshots, totals and retention.

        An EngineBranch if the table is from Iceberg or Paimon.

        Raises:
            NotFoundError: The branch does not exist.

        Example:
            >>> _ = orders.create_branch("audit")
            >>> orders.branch("audit").state.base_snapshot_id
            1
        """
        head = self._handle.state
        return head.all_branches.get(self.name) or head.branch(self.name)

    @validate_arguments(
        instant=its.instant.or_none(), version=its.whole.or_none(), timestamp=its.moment.or_none()
    )
    def at(
        self,
        instant: str | int | datetime | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
    ) -> TableAt:
        """Return the branch's data at an instant, with the table's schema at that instant.

        Args:
            instant: A version or a time, as for `Table.at`.
            version: The version of a commit: the branch right after it. None: the newest.
            timestamp: As for `Table.at`.

        Raises:
            NotFoundError: The version does not exist, or the branch did not exist then.
            InvalidInputError: More than one was given, or a tag, a snapshot or another branch.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.at().totals.record_count, orders.at().totals.record_count
            (0, 2)
        """
        return resolve_table_at(
            self._handle, instant, version=version, timestamp=timestamp, branch=self.name
        )

    @validate_arguments(
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
        """Create the branch from a snapshot of main, by default the newest.

        That snapshot does not expire while the branch uses it. The retention arguments are for
        engines that expire snapshots and refs by themselves; the ledger expires nothing by itself.

        Args:
            snapshot: Id of a snapshot of main.
            tag: Name of a tag, for its snapshot.
            min_snapshots_to_keep: Minimum number of the branch's snapshots to keep.
            max_snapshot_age_millis: Maximum age of the branch's snapshots, in milliseconds.
            max_ref_age_millis: Maximum age of the branch, in milliseconds.
            options: See CommitOptions.

        Raises:
            AlreadyExistsError: A branch or tag of that name exists.
            InvalidChangeError: Main has no snapshot yet, or the snapshot is one of a branch.
            NotFoundError: The snapshot or tag does not exist, or was expired.

        Example:
            >>> sorted(orders.branch("audit").create(tag="v1").state.branches)
            ['audit']
        """
        from ledger.table_writes import begin_branch

        kept = (min_snapshots_to_keep, max_snapshot_age_millis, max_ref_age_millis)
        asked = ["createBranch", self.name, snapshot, tag, *kept]
        instant = instant_from_arguments(snapshot=snapshot, tag=tag)
        return begin_branch(self._handle, self.name, instant, kept, asked, options)

    @validate_arguments(snapshot=its.whole.or_none(), tag=its.text.or_none())
    def reset(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Reset the branch to a snapshot of main, by default the newest.

        Its own snapshots cannot be read by their ids any more; its retention stays as it is. To
        return to one of its own snapshots, use `rollback`.

        Raises:
            NotFoundError: The branch, the snapshot or the tag does not exist.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.reset().state.branches["audit"].totals.record_count
            2
        """
        from ledger.table_writes import begin_branch

        asked = ["resetBranch", self.name, snapshot, tag]
        instant = instant_from_arguments(snapshot=snapshot, tag=tag)
        return begin_branch(self._handle, self.name, instant, None, asked, options)

    def append(self, data: GivenData, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit a snapshot to the branch that adds rows or files; see `Table.append`.

        Raises:
            InvalidInputError: A row does not fit the table.
            InvalidChangeError: A file is live on the branch already, or does not match the table.
            NotFoundError: The branch does not exist.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> new = ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)
            >>> audit.append([new]).state.branches["audit"].totals.record_count
            5
        """
        from ledger.rows.row_commits import append

        return append(self._handle, data, options, branch=self.name)

    @validate_arguments(paths=its.paths, on_progress=its.callback)
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
        from ledger.table_writes import add_files

        wanted = its.path_texts(paths)
        return add_files(self._handle, wanted, on_progress, options, branch=self.name)

    @validate_arguments(paths=its.paths)
    def delete_files(self, paths: Paths, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit a snapshot that removes files from the branch; see `Table.delete_files`.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> audit.delete_files("a.parquet").state.branches["audit"].totals.file_count
            0
        """
        from ledger.files.snapshot_plan import SnapshotPlan

        deleted = tuple(its.path_texts(paths))
        return self.commit_snapshot(SnapshotPlan("OVERWRITE", delete=deleted), **options)

    def overwrite(
        self,
        data: GivenData,
        *,
        where: Mapping[str, PartitionValue] | None = None,
        isolation: Isolation = "serializable",
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Commit a snapshot that replaces files of the branch; see `Table.overwrite`.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> new = ledger.FileChange(path="b.parquet", record_count=3, file_size_in_bytes=95)
            >>> audit.overwrite([new]).state.branches["audit"].totals.record_count
            3
        """
        from ledger.rows.row_commits import overwrite

        return overwrite(
            self._handle, data, options, where=where, isolation=isolation, branch=self.name
        )

    def commit_snapshot(
        self, plan: SnapshotPlan, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot of any kind to the branch; see `Table.commit_snapshot`.

        Snapshots are deduplicated by (user, identifier, kind) on each branch separately.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> new = ledger.FileChange(path="b.parquet", record_count=2, file_size_in_bytes=80)
            >>> plan = ledger.SnapshotPlan("COMPACT", (new,), delete=("a.parquet",))
            >>> audit.commit_snapshot(plan).state.branches["audit"].snapshot.id
            1000000000001
        """
        from ledger.table_writes import commit_snapshot

        return commit_snapshot(self._handle, plan, options, branch=self.name)

    @validate_arguments(snapshot=its.whole)
    def rollback(self, *, snapshot: int, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Restore the data of an earlier snapshot of the branch as a new snapshot.

        Args:
            snapshot: Id of one of its own snapshots, or of its base snapshot on main.
            options: See CommitOptions.

        Raises:
            NotFoundError: The branch does not have the snapshot.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> audit.rollback(snapshot=1).state.branches["audit"].totals.record_count
            2
        """
        from ledger.table_writes import rollback_branch

        return rollback_branch(self._handle, self.name, snapshot, options)

    def fast_forward(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Fast-forward main to the branch: commit its data as one more snapshot of main.

        That snapshot becomes the branch's base, and the branch can be used further.

        Raises:
            InvalidChangeError: Main has newer snapshots than the branch's base, or the branch has
                no snapshot of its own.
            CommitConflictError: A concurrent commit changed main or the branch.

        Example:
            >>> audit = orders.branch("audit")
            >>> _ = audit.create()
            >>> _ = audit.delete_files("a.parquet")
            >>> state = audit.fast_forward(message="the audit found nothing").state
            >>> state.totals.record_count, state.snapshot.id, audit.state.head_id
            (0, 2, 2)
        """
        from ledger.table_writes import fast_forward

        return fast_forward(self._handle, self.name, options)

    @validate_arguments(before=its.count)
    def expire_snapshots(
        self, *, before: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Expire the branch's own snapshots with ids below `before`; no file is deleted.

        Raises:
            InvalidChangeError: `before` is not the id of one of the branch's own snapshots.
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
        from ledger.table_writes import expire_branch_snapshots

        return expire_branch_snapshots(self._handle, self.name, before, options)

    def delete(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Delete the branch; main stays as it is, and no file is deleted.

        Example:
            >>> _ = orders.create_branch("audit")
            >>> dict(orders.branch("audit").delete().state.branches)
            {}
        """
        from ledger.table_writes import delete_branch

        return delete_branch(self._handle, self.name, options)
