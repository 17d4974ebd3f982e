"""SnapshotTable: what a table holds: its files, snapshots and tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Unpack

import msgspec
from attrs import evolve

from ledger.commit_options import CommitOptions, fresh_id
from ledger.events.snapshot_events import ChangesReference
from ledger.evolution.state import TableState
from ledger.evolution.stream import Landed
from ledger.files.change_file import INLINE_LIMIT, store_changes
from ledger.log.request import Appended
from ledger.model import arguments as its
from ledger.model.arguments import takes
from ledger.model.errors import InvalidInputError
from ledger.model.excerpt import excerpt
from ledger.model.file_change import FileChange
from ledger.model.instant import instant_of
from ledger.snapshot_search import schemas
from ledger.table_handle import TableHandle, load_what_commits_need
from ledger.table_setting import Progress, no_progress

if TYPE_CHECKING:
    from ledger.evolution.table.changes import Isolation, TableChange
    from ledger.model.file_change import PartitionValue
    from ledger.snapshot_plan import SnapshotPlan

Paths = str | PurePath | Iterable[str | PurePath]

FILES = its.many("a sequence of FileChanges")
# Without the module, which only writing needs.
_PLAN = its.Form("a SnapshotPlan", lambda value: type(value).__name__ == "SnapshotPlan")


def its_files(files: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return files that are FileChanges, every field of them of its type.

    Raises:
        InvalidInputError: One is not; the message says which, and what of it.
    """
    given = tuple(files)
    for index, each in enumerate(given):
        if type(each) is not FileChange:
            raise InvalidInputError(
                f"files[{index}]={excerpt(each)} is no FileChange; write FileChange(path=..., "
                "record_count=..., file_size_in_bytes=...)"
            )
    try:
        # Bytes and moments would be written as texts, and read as if those had been given.
        plain = msgspec.to_builtins(given, builtin_types=(bytes, bytearray, date, datetime))
        return msgspec.convert(plain, tuple[FileChange, ...])
    except (msgspec.ValidationError, TypeError, OverflowError) as error:
        raise InvalidInputError(f"files: {error}") from error


class SnapshotTable(TableHandle):
    """The half of a table that writes snapshots and tags; `Table` is what a user holds."""

    @takes(files=FILES)
    def append(
        self, files: Iterable[FileChange], **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot that adds files.

        Raises:
            InvalidChangeError: A file is live already, or does not fit the table.
        """
        load_what_commits_need()
        from ledger.snapshot_plan import SnapshotPlan

        return self.commit_snapshot(SnapshotPlan("APPEND", tuple(files)), **options)

    @takes(paths=its.paths, on_progress=its.callback)
    def add_files(
        self,
        paths: Paths,
        on_progress: Progress = no_progress,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Register existing Parquet files as one snapshot; their footers are read, not their rows.

        Args:
            paths: Files, folders or patterns; one, or several.
            on_progress: Told how many footers were read, of how many.
            options: See CommitOptions.

        Raises:
            InvalidChangeError: A file's columns, field ids or partition do not fit the table.
        """
        return self.append(self.data_files(paths, on_progress), **options)

    @takes(paths=its.paths, on_progress=its.callback)
    def data_files(
        self, paths: Paths, on_progress: Progress = no_progress
    ) -> tuple[FileChange, ...]:
        """Return what `add_files` would register, without registering it."""
        from ledger.files.register import data_files

        return data_files(
            its.path_texts(paths),
            state=self.state,
            history=schemas(self.log),
            location=self.location,
            storage_options=dict(self._setting.storage_options),
            on_progress=on_progress,
        )

    @takes(paths=its.paths)
    def delete_files(self, paths: Paths, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit a snapshot that takes live files out of the table; nothing is deleted on disk.

        Raises:
            InvalidChangeError: A path is not live.
        """
        load_what_commits_need()
        from ledger.snapshot_plan import SnapshotPlan

        return self.commit_snapshot(
            SnapshotPlan("OVERWRITE", delete=tuple(its.path_texts(paths))), **options
        )

    @takes(
        files=FILES, where=its.by_name.or_none(), isolation=its.one_of("serializable", "snapshot")
    )
    def overwrite(
        self,
        files: Iterable[FileChange],
        *,
        where: Mapping[str, PartitionValue] | None = None,
        isolation: Isolation = "serializable",
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Commit a snapshot that replaces what is in some partitions, or everything.

        Args:
            files: What is there afterwards.
            where: Values of partition keys; every live file that has them goes. None: all files.
            isolation: With "serializable" a file that somebody else adds there meanwhile is a
                conflict; with "snapshot" it stays.
            options: See CommitOptions.
        """
        load_what_commits_need()
        from ledger.snapshot_plan import SnapshotPlan

        plan = SnapshotPlan("OVERWRITE", tuple(files), where=where or {}, isolation=isolation)
        return self.commit_snapshot(plan, **options)

    @takes(plan=_PLAN)
    def commit_snapshot(
        self, plan: SnapshotPlan, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Commit a snapshot of any kind.

        Raises:
            InvalidChangeError: A file to add is live, or one to delete is not.
        """
        plan = evolve(plan, files=its_files(plan.files))

        def planned(head: TableState) -> list[TableChange] | Landed:
            known = self._known_snapshot(plan)
            return known or [plan.on(head, self.live, self._outsourced)]

        return self._commit(["snapshot", plan], options, planned)

    def _outsourced(self, files: Sequence[FileChange]) -> ChangesReference | None:
        if len(files) <= INLINE_LIMIT:
            return None
        # By the time that its commit will have, should that be ahead of this machine's clock.
        head = self.log.head
        newest = head.state.time_millis if head else 0
        now = max(self._setting.now_millis(), newest)
        return store_changes(self.log.store, self.log.layout, files, now)

    def _known_snapshot(self, plan: SnapshotPlan) -> Landed | None:
        if plan.key is None:
            return None
        self.log.refresh()
        for version in self.log.last_named(plan.key):
            if plan.key in self.live.keys_of(self.log.commit_at(version)):
                return Landed(version)
        return None

    @takes(snapshot=its.whole.or_none(), tag=its.text.or_none())
    def rollback(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Put a snapshot's contents back as a new snapshot; history stays as it was.

        The schema stays the current one. A snapshot that others commit meanwhile is a conflict.

        Raises:
            NotFoundError: The snapshot or tag does not exist, or was expired without a tag.
        """
        from ledger.evolution.table.changes import Rollback

        if (snapshot is None) == (tag is None):
            raise InvalidInputError("rollback takes one of snapshot= and tag=")

        def plan(head: TableState) -> list[TableChange]:
            then = self._at(head, instant_of(snapshot=snapshot, tag=tag))
            files = self.live.difference(head, then.state)
            target = then.state.last_snapshot_id
            return [
                Rollback(
                    target_snapshot_id=target,
                    target_tag_name=tag,
                    commit_user=fresh_id(),
                    files=files,
                    reference=self._outsourced(files),
                )
            ]

        return self._commit(["rollback", snapshot, tag], options, plan)

    @takes(name=its.text, snapshot=its.whole.or_none(), time_retained_millis=its.whole.or_none())
    def create_tag(
        self,
        name: str,
        *,
        snapshot: int | None = None,
        time_retained_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Name a snapshot (the newest when None); a tagged one outlives expiry."""
        from ledger.evolution.table.changes import CreateTag

        change = CreateTag(name, snapshot, time_retained_millis)
        return self._commit(["createTag", change], options, lambda _: [change])

    @takes(name=its.text, snapshot=its.whole.or_none(), time_retained_millis=its.whole.or_none())
    def replace_tag(
        self,
        name: str,
        *,
        snapshot: int | None = None,
        time_retained_millis: int | None = None,
        **options: Unpack[CommitOptions],
    ) -> Appended[TableState]:
        """Let an existing tag name another snapshot (the newest when None)."""
        from ledger.evolution.table.changes import ReplaceTag

        change = ReplaceTag(name, snapshot, time_retained_millis)
        return self._commit(["replaceTag", change], options, lambda _: [change])

    @takes(name=its.text)
    def delete_tag(self, name: str, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Take a tag away; its snapshot stays unless it was expired."""
        from ledger.evolution.table.changes import DeleteTag

        return self._commit(["deleteTag", name], options, lambda _: [DeleteTag(name)])

    @takes(before=its.count)
    def expire_snapshots(
        self, *, before: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Expire the snapshots with ids below `before`; tagged ones stay, no file is deleted."""
        from ledger.evolution.table.changes import ExpireSnapshots

        return self._commit(
            ["expireSnapshots", before], options, lambda _: [ExpireSnapshots(before)]
        )

    @takes(snapshot=its.whole, path=its.text, file_size_in_bytes=its.whole)
    def set_partition_statistics(
        self, snapshot: int, path: str, file_size_in_bytes: int, **options: Unpack[CommitOptions]
    ) -> Appended[TableState]:
        """Let a snapshot have a file of statistics by partition, which stands on the store already.

        Args:
            snapshot: Its id.
            path: Of the file: below the table's location, or absolute.
            file_size_in_bytes: Of the file.
            options: See CommitOptions.

        Raises:
            NotFoundError: The snapshot does not exist, or was expired.
        """
        from ledger.evolution.table.changes import SetPartitionStatistics

        change = SetPartitionStatistics(snapshot, path, file_size_in_bytes)
        asked = ["setPartitionStatistics", snapshot, path, file_size_in_bytes]
        return self._commit(asked, options, lambda _: [change])
