"""Materialisation of a format's files next to a table's log.

One `Materialisation` holds all that does not depend on the format: the lock, the position, resuming
from it, following, recovery from a truncated or replaced log and from lost, damaged, foreign,
outdated or incomplete files, verification, rebuilds, and the lag of the files behind the log. A
format provides the rest as one `FileFormat`:

- its name, its folders, and the hint files in them;
- its `FilesPosition`: a frozen attrs class with the progress of a run, kept by a `PositionFile`;
- `run`: the pure projection of a stretch of the log onto outputs, incremental and idempotent. It
  writes new files first and pointers last, reads the log by `new_commits`, and only lists in its
    position the files to delete, since the previous position may still need them;
- `otherwise` and `renew`: detection and replacement of files written by an older renderer;
- `compare`: the files on the store against those expected from the log, mostly by `difference`;
- `lost`: the files that a reader of the newest version needs and that are missing;
- `make_way` and `projected`: removal of a conflicting file, and the files that are the ledger's.

A format then offers `Materialisation(ItsFormat())` as the part `kept` of its object (see
`ledger.formats`); its flags on the command line are in `projections.command`.

Files that a run makes obsolete are recorded in one small file next to the log, before the position
is saved. Their retention is measured in the commit times of the table, from the first commit after
the pointers moved: readers that opened the table earlier have that long. The machine's clock is not
used, so a table without commits keeps its obsolete files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Generic, Protocol

from attrs import define, evolve, field, frozen

from ledger.decide.format_rules import Refusal, declared_rules
from ledger.events import TableEvent
from ledger.following.files import STEP_COMMITS
from ledger.locations import place_of
from ledger.log.personal_data import confirm_folders
from ledger.log.replay import Read
from ledger.log.request import now_millis
from ledger.log.time_travel import at_version, head_state
from ledger.model.errors import DamagedLogError, InvalidInputError, UnsupportedError
from ledger.observing.telemetry import traced_projection, warn
from ledger.state.declared_formats import FORMATS_OPTION, reader_grace_millis
from ledger.state.table import TableState
from ledger.stores import Store
from ledger.table_handle import TableHandle
from projections.outputs import (
    BufferedOutputs,
    FilesPosition,
    MemoryOutputs,
    Outputs,
    P,
    PositionFile,
    StoreOutputs,
    load_position,
    save_position,
)

_DIGITS: Final = 20

NOTHING: Final = -1
"""Time value that means no pending deletes."""

UNKNOWN: Final = 0
"""Time value that means not known yet."""


@frozen
class ObsoleteFiles:
    """Obsolete files of one run, which no metadata names any more.

    Attributes:
        newest: The log's newest version when the run moved its pointers.
        paths: The files, below the table's location, in the order of deletion.
    """

    newest: int
    paths: tuple[str, ...]


@frozen
class PendingDeletes:
    """Pending deletes of a format's files in a table.

    Attributes:
        table: The table.
        name: The format's.
    """

    table: TableHandle
    name: str

    def note(self, version: int, gone: ObsoleteFiles) -> None:
        """Record the obsolete files of a run to a version."""
        key = self._record_key(version)
        before = self._load_record(key)
        if before is not None:
            # A previous run was killed, or ran to the same version.
            paths = dict.fromkeys((*before.paths, *gone.paths))
            gone = ObsoleteFiles(max(before.newest, gone.newest), tuple(paths))
        save_position(self.table.log.store, key, gone)

    def paths(self) -> frozenset[str]:
        """Return all files with a pending delete."""
        return frozenset(path for _, gone in self._read_records() for path in gone.paths)

    def since(self, newest: TableState) -> int:
        """Return the time of the oldest pending delete.

        Args:
            newest: The table's newest state.
        """
        return next(
            (self._oldest_delete_time(gone, newest) for _, gone in self._read_records()), NOTHING
        )

    def due(
        self, until: int, newest: TableState, grace_millis: int
    ) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the expired pending deletes, oldest first: the version of the run, and the files.

        Args:
            until: The version of the format's files; files recorded beyond it by a killed run are
                still needed.
            newest: The table's newest state, whose time is the current time.
            grace_millis: Retention of the files, milliseconds.
        """
        for version, gone in self._read_records():
            is_due = newest.time_millis - self._oldest_delete_time(gone, newest) >= grace_millis
            if version > until or not is_due:
                return
            yield version, gone.paths

    def forget(self, version: int) -> None:
        """Remove the record of a run to a version, whose files are deleted."""
        self.table.log.store.delete(self._record_key(version))

    def stay(self, paths: Collection[str]) -> None:
        """Cancel the pending deletes of files that are needed again."""
        for version, gone in self._read_records():
            left = tuple(path for path in gone.paths if path not in paths)
            if left != gone.paths:
                key, changed = self._record_key(version), evolve(gone, paths=left)
                save_position(self.table.log.store, key, changed)

    def forget_all(self) -> None:
        """Remove all records; a full run finds the unwanted files on the store."""
        for key in list(self.table.log.store.keys(self._records_folder)):
            self.table.log.store.delete(key)

    def _oldest_delete_time(self, gone: ObsoleteFiles, newest: TableState) -> int:
        if gone.newest >= newest.version:
            # A later commit has no earlier time.
            return newest.time_millis
        (first,) = self.table.log.commits(gone.newest + 1, gone.newest + 1)
        return first.commit.time_millis

    @property
    def _records_folder(self) -> str:
        return f"{self.table.log.layout.root}/pending-deletes/{self.name}"

    def _record_key(self, version: int) -> str:
        return f"{self._records_folder}/{version:0{_DIGITS}}.json"

    def _read_records(self) -> Iterator[tuple[int, ObsoleteFiles]]:
        """Yield the records of runs, oldest first; skip damaged ones."""
        for key in self.table.log.store.keys(self._records_folder):
            digits = key.removeprefix(f"{self._records_folder}/").removesuffix(".json")
            gone = self._load_record(key)
            if gone is not None and digits.isdecimal():
                yield int(digits), gone

    def _load_record(self, key: str) -> ObsoleteFiles | None:
        return load_position(self.table.log.store, key, ObsoleteFiles)


_MOST_DIGITS = 20
_FEW = 64

FIRST_COMMITS = STEP_COMMITS
"""Initial number of commits per step for files that are far behind; grows while steps are fast."""

STEP_S = 4.0
"""Target duration of a step, seconds; a killed process loses at most that much work."""

Progress = Callable[[int, int], None]
"""Called with the number of items done, of how many."""


def ignore_progress(_done: int, _of: int) -> None:
    """Ignore progress."""


def _next_step_size(commits: int, took_s: float) -> int:
    """Return the number of commits in the next step, given the duration of the last one.

    Example:
        >>> _next_step_size(256, 0.1), _next_step_size(256, 9.0), _next_step_size(64, 9.0)
        (512, 128, 64)
    """
    return commits * 2 if took_s < STEP_S else max(FIRST_COMMITS, commits // 2)


@define
class _CombinedProgress:
    """Combine the progress of all steps into one; never decreases.

    Attributes:
        report: The callback.
        total: The amount to do, as far as known; a step that restarts adds to it.
        before: The amount that earlier steps did.
    """

    report: Progress
    total: int
    before: int = 0
    _most: int = 0

    def __call__(self, done: int, of: int) -> None:
        self._most = max(self._most, self.before + done)
        self.total = max(self.total, self._most, self.before + of)
        self.report(self._most, self.total)


@frozen
class Difference:
    """Differences between the files on a store and those expected from the log.

    Attributes:
        missing: Paths of files that should be there.
        changed: Paths of files with other bytes.
        foreign: Paths of files in the format's folders that the ledger did not project.
        reason: Further problems, as the rest of a sentence about the files.
        damage: The error if the log is not the one from which the files were made.
        inexpressible: Facts that the format cannot express and readers miss, one sentence each.
    """

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    reason: str = ""
    damage: DamagedLogError | None = None
    inexpressible: tuple[str, ...] = field(default=(), eq=False)

    @property
    def is_empty(self) -> bool:
        """Return whether all files are as expected; foreign files do not count."""
        return not self.missing and not self.changed

    def without(self, known: Collection[str]) -> Difference:
        """Return this difference without foreign files that are known as the ledger's."""
        return evolve(self, foreign=tuple(each for each in self.foreign if each not in known))


@frozen
class ComparisonResult:
    """Result of a comparison of the files on a store with the expected ones.

    Attributes:
        difference: The differences found.
        wanted: The expected files, by path.
        in_the_way: Changed files of the difference that are foreign files in places that are or
            will be the ledger's.
        rebuilt: The state that a rebuild projects.
    """

    difference: Difference
    wanted: Mapping[str, bytes]
    in_the_way: tuple[str, ...]
    rebuilt: TableState


@frozen
class RebuildReason:
    """Reason that files were written by an older renderer or for another location.

    Attributes:
        event: The log event when they are rewritten.
        facts: The fields of that event.
    """

    event: str
    facts: Mapping[str, object]


class FileFormat(Protocol[P]):
    """The format-specific part of a `Materialisation`."""

    @property
    def name(self) -> str:
        """Name in commands and keys, such as `paimon`."""

    @property
    def title(self) -> str:
        """Name in sentences, such as `Paimon`."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders, below a table's location, whose files the ledger projects."""

    @property
    def hints(self) -> Mapping[str, str]:
        """Hint files, which may be missing and may lead further than a position.

        Maps a hint's path to the path of its target, with a placeholder for the hint's number.
        """

    @property
    def positions(self) -> PositionFile[P]:
        """Storage of the format's position."""

    def is_found(self, path: str) -> bool:
        """Return whether readers discover a file by its name, without a pointer to it.

        Such files are written in order, after all files that they may name.
        """

    def run(
        self,
        table: TableHandle,
        outputs: Outputs,
        start: P,
        target: TableState,
        on_progress: Progress,
    ) -> P:
        """Write the files of a range of the log; return the new position.

        Args:
            table: The table.
            outputs: Destination of the files.
            start: The position of the previous run.
            target: The state at the version to reach.
            on_progress: Called with the number of commits applied, of how many.

        Raises:
            DamagedLogError: The files of the previous run, or the log, are missing or damaged.
            StoreError: A foreign file is in a place of the ledger's.
            UnsupportedError: The format has no such files.
        """

    def rebuild_reason(self, table: TableHandle, saved: P) -> RebuildReason | None:
        """Return how files differ from the current renderer's; None if a run can continue."""

    def renew(self, table: TableHandle, older: P, target: TableState, on_progress: Progress) -> P:
        """Rewrite files of an older renderer in place; return the new position.

        Can be interrupted and restarted; concurrent readers find complete tables.
        """

    def compare(self, table: TableHandle, saved: P, at: TableState) -> ComparisonResult:
        """Compare the files on the store with those expected from the log.

        Leftovers and deletions of a killed run are no differences.

        Args:
            table: The table.
            saved: The position of its files.
            at: The state to compare at: of the files, or the newest where the log lacks theirs.

        Raises:
            NotFoundError: The files are of an older renderer and cannot be compared.
        """

    def lost(self, table: TableHandle, saved: P) -> Mapping[str, bytes]:
        """Return the missing files that readers of the current version need, by path."""

    def make_way(self, outputs: StoreOutputs, path: str) -> None:
        """Remove or quarantine a foreign file in a place of the ledger's."""

    def projected(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return the files on a store that are the ledger's by the metadata that names them."""

    def marked(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return the files on a store that carry the ledger's mark.

        Empty where names follow from commits alone, whatever values were erased.
        """

    def engine_folder(self, table: TableHandle) -> EngineFolder | None:
        """Return the folder of a table into which engines and the ledger write.

        None if only the ledger writes the table's files of the format.
        """


class EngineFolder(Protocol):
    """A folder into which engines and the ledger write, whose files follow the newest state."""

    def write(self) -> int:
        """Write the files of the newest state; return its version.

        Raises:
            StoreError: A file cannot be written.
        """

    def compare(self) -> Difference:
        """Compare the files with the newest state.

        Raises:
            StoreError: A file cannot be read.
        """

    def restore(self) -> Difference:
        """Write lost and damaged files again; return the differences found.

        Raises:
            StoreError: A file cannot be written.
        """


@frozen
class Lag:
    """Lag of a table's files behind its log.

    Attributes:
        version: The version of the files; -1 without files.
        newest: The log's newest version.
        problem: The reason that they are not files of this log; None if they are.
    """

    version: int
    newest: int
    problem: str | None = None

    @property
    def behind(self) -> int:
        """Number of versions that the files lack."""
        return self.newest - self.version


@frozen
class Materialisation(Generic[P]):
    """Keeps a format's files up to date next to the logs of tables.

    Attributes:
        format: The format-specific part.
    """

    format: FileFormat[P]

    def key(self, table: TableHandle) -> str:
        """Return the key of a table's position; its lock has the same name."""
        return self.format.positions.key(table.log.layout)

    def position(self, table: TableHandle) -> P:
        """Return the position of a table's files."""
        return self.format.positions.load(table.log.store, table.log.layout)

    def has_files(self, table: TableHandle) -> bool:
        """Return whether a table has files of the format, complete or not."""
        if self.position(table).version >= 0:
            return True
        outputs = outputs_of(table)
        return any(True for folder in self.format.folders for _ in outputs.paths(folder))

    def _write_engine_folder(self, table: TableHandle) -> int | None:
        """Write the files of a table whose engines share its folder; return the version."""
        shared = self.format.engine_folder(table)
        return None if shared is None else shared.write()

    def files(self, table: TableHandle) -> tuple[str, ...]:
        """Return the paths, below a table's location, of the files that the ledger projected.

        Includes files that are retained for earlier readers. The files that name others come
        last, so that deleting them in this order can be interrupted.

        Raises:
            UnsupportedError: The format cannot express the table any more.
        """
        saved = self.position(table)
        if saved.version < 0 or self.format.engine_folder(table) is not None:
            return ()
        outputs, at = outputs_of(table), target_state(table, saved.version)
        found = {*self.expected(table, version=saved.version), *self.format.projected(outputs, at)}
        found |= {*saved.garbage, *self._pending_deletes(table).paths(), *self.format.hints}
        return tuple(sorted(found, reverse=True))

    def freshness(self, table: TableHandle) -> Lag:
        """Return the lag of a table's files behind the log."""
        written = self._write_engine_folder(table)
        if written is not None:
            return Lag(written, written)
        saved, newest = self.position(table), target_state(table, None).version
        is_newest = saved.version == newest and saved.commit in {"", _commit_digest(table, newest)}
        # Checked only on suspicion, since it reads on: an older state proves nothing.
        problem = (
            None if saved.version < newest or is_newest else self._log_divergence(table, saved)
        )
        said = None if problem is None else str(self._divergence_error(table, saved, problem))
        return Lag(saved.version, newest, said)

    def refuse_undeclared(self, table: TableHandle, at: TableState) -> None:
        """Reject new files of a format that a table does not declare.

        Existing files may be verified and restored, whatever is declared since.

        Raises:
            UnsupportedError: The state does not declare the format.
        """
        if not self._declares_format(at):
            name, title = self.format.name, self.format.title
            article = "an" if title[0] in "AEIOU" else "a"
            raise UnsupportedError(
                f"{table.identifier} is not declared to be {article} {title} table: "
                f"{_way_to_read(at, name)}"
            )

    def _declares_format(self, at: TableState) -> bool:
        return self.format.name in declared_rules(at.schema.options).formats

    def project(
        self,
        table: TableHandle,
        *,
        version: int | None = None,
        on_progress: Progress = ignore_progress,
    ) -> int:
        """Project a table's files up to a version; return the version of the files.

        Without new commits, lost or damaged files that readers need are restored. Files of an older
        renderer are rewritten.

        Args:
            table: The table.
            version: None for the newest. A version before the current position is rejected.
            on_progress: Called with the number of commits applied, of how many.

        Raises:
            DamagedLogError: The files are at a version that the log lacks.
            InvalidInputError: The files are at a later version.
            NotFoundError: The table does not have that version.
            StoreError: A foreign file is in a place of the ledger's.
            UnsupportedError: The table does not declare the format, or it has no such files.
        """
        shared = self.format.engine_folder(table)
        if shared is not None:
            shared.restore()
            return shared.write()
        with table.log.store.lock(self.key(table)):
            start, target = self._start_and_target(table, version)
            if target.version < start.version:
                raise InvalidInputError(
                    f"the {self.format.title} files of {table.identifier} are at version "
                    f"{start.version}, after {target.version}; they only go forward"
                )
            reached = self._advance(table, start, target, on_progress)
            if reached is None:
                self._restore_lost_files(table, start, on_progress)
            return target.version if reached is None else reached

    def settle(self, table: TableHandle) -> None:
        """Complete the files of a table that was moved: render them for its new location.

        Files of a declared format are projected up to the newest version; others stay at theirs.

        Raises:
            DamagedLogError: The files are at a version that the log lacks.
            StoreError: A foreign file is in a place of the ledger's.
            UnsupportedError: The format has no such files.
        """
        if self._declares_format(target_state(table, None)):
            self.project(table)
        else:
            self.rebuild(table)

    def advance(
        self,
        table: TableHandle,
        *,
        version: int | None = None,
        on_progress: Progress = ignore_progress,
    ) -> int:
        """Project the files up to a version, the newest if None; return the version of the files.

        Existing files are not checked; files at a later version are unchanged.
        """
        written = self._write_engine_folder(table)
        if written is not None:
            return written
        with table.log.store.lock(self.key(table)):
            start, target = self._start_and_target(table, version)
            reached = self._advance(table, start, target, on_progress)
            return start.version if reached is None else reached

    def step(self, table: TableHandle, *, commits: int) -> int:
        """Project at most some commits; return the version of the files.

        Goes further where the format is undeclared at that version, or cannot express the table.

        Args:
            table: The table.
            commits: The maximum number of commits.

        Raises:
            DamagedLogError: The files are at a version that the log lacks.
            StoreError: A foreign file is in a place of the ledger's.
            UnsupportedError: The newest version does not declare the format, or has no such files.
        """
        written = self._write_engine_folder(table)
        if written is not None:
            return written
        with table.log.store.lock(self.key(table)):
            start, target = self._start_and_target(table, None)
            reached = self._project_in_steps(table, start, target, commits, ignore_progress)
            return start.version if reached is None else reached

    def follow(
        self,
        table: TableHandle,
        *,
        interval_s: float = 1.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[int]:
        """Project after each new commit; yield each version reached, for ever."""
        reached = -1
        while True:
            newest = self.advance(table)
            if newest != reached:
                reached = newest
                yield reached
            sleep(interval_s)

    def expected(self, table: TableHandle, *, version: int | None = None) -> dict[str, bytes]:
        """Return every expected file of a table at a version, by path below its location.

        Raises:
            UnsupportedError: The table does not declare the format, or it has no such files.
        """
        target = target_state(table, version)
        self.refuse_undeclared(table, target)
        return files_of(self.format, table, target)

    def replay(
        self,
        table: TableHandle,
        store: Store,
        *,
        version: int,
        on_progress: Progress = ignore_progress,
    ) -> None:
        """Project a table at a version into an empty folder.

        Args:
            table: The table, located at that folder.
            store: The folder.
            version: The version.
            on_progress: Called with the number of commits applied, of how many.

        Raises:
            NotFoundError: The table does not have that version.
            StoreError: The folder has other files.
            UnsupportedError: The table does not declare the format, or it has no such files.
        """
        outputs, target = StoreOutputs(store, ""), target_state(table, version)
        self.refuse_undeclared(table, target)
        self._write_gathered(table, outputs, self.format.positions.start, target, on_progress)

    def verify(self, table: TableHandle) -> Difference:
        """Compare the files on the store with those expected from the log, byte for byte.

        A hint may be missing, and may lead further than the current files. If the log was truncated
        below the position or replaced, the position is reported as changed, with the log's damage.

        Raises:
            NotFoundError: The files are of an older renderer and cannot be compared.
        """
        shared = self.format.engine_folder(table)
        if shared is not None:
            return shared.compare()
        saved = self.position(table)
        # Ownership of files needs no record: the ledger's own are reproduced byte for byte.
        found = (
            self._difference_if_no_position(table)
            if saved.version < 0
            else self._compare_files(table, saved).difference
        )
        return evolve(found, foreign=()) if _engines_share_folder(table) else found

    def rebuild(self, table: TableHandle, *, on_progress: Progress = ignore_progress) -> Difference:
        """Restore lost and damaged files, and delete leftovers; return the differences found.

        Foreign files in places of the ledger's are moved or removed. If the newest version does not
        declare the format, the files keep their version.

        Raises:
            UnsupportedError: There are no files of this log, and the format is not declared.
        """
        shared = self.format.engine_folder(table)
        if shared is not None:
            return shared.restore()
        with table.log.store.lock(self.key(table)):
            saved = self.position(table)
            is_cut = self._log_divergence(table, saved) is not None
            if saved.version < 0 or is_cut:
                self.refuse_undeclared(table, target_state(table, None))
            other = self.format.rebuild_reason(table, saved)
            if other is not None:
                self._log_renewal(table, saved, other)
                saved = self._rewrite_and_save(table, saved, on_progress)
            elif not is_cut:
                # The new position would not list the files that the last run has still to delete.
                saved = self._delete_expired_files(table, saved)
            compared = self._compare_files(table, saved)
            if not self._declares_format(compared.rebuilt):
                compared = evolve(compared, rebuilt=target_state(table, saved.version))
            outputs = outputs_of(table)
            # Nothing else names files of commits that are no longer in the log.
            of_cut = self.format.projected(outputs, compared.rebuilt) if is_cut else ()
            for path in compared.in_the_way:
                self.format.make_way(outputs, path)
            _restore_files(table, self._files_to_restore(compared), on_progress)
            # From the first commit, since only then leftovers of a killed run are found.
            start = self.format.positions.start
            reached = self._write_gathered(table, outputs, start, compared.rebuilt, ignore_progress)
            if is_cut:
                # Some of it may be needed again; the run has found the rest.
                self._pending_deletes(table).forget_all()
            self._cancel_pending_deletes(table, outputs.met)
            reached = self._record_pending_deletes(table, start, reached)
            gone = {*of_cut} - compared.wanted.keys()
            if gone:
                # Readers must never find a version that is not in the log.
                gone -= set(self.format.projected(outputs, compared.rebuilt))
                garbage = tuple(sorted({*reached.garbage, *gone}))
                reached = reached.with_pending_deletes(garbage, reached.leaving_since)
            self._save_position(table, reached)
            self._delete_expired_files(table, reached)
        return compared.difference

    def rebuild_files(self, table: TableHandle) -> None:
        """Rewrite files after values were erased, so that no file holds an erased value.

        Files retained for earlier readers are deleted at once, too. The deletions are durable when
        the call returns.

        Raises:
            UnsupportedError: The format cannot express the table any more; its files are kept.
        """
        self.rebuild(table)
        if self.format.engine_folder(table) is not None:
            return
        with table.log.store.lock(self.key(table)):
            saved, outputs = self.position(table), outputs_of(table)
            compared, pending_deletes = (
                self._compare_files(table, saved),
                self._pending_deletes(table),
            )
            known = {*pending_deletes.paths(), *saved.garbage}
            known.update(self.format.marked(outputs, compared.rebuilt))
            known.update(self.format.projected(outputs, compared.rebuilt))
            for path in known - compared.wanted.keys() - self.format.hints.keys():
                outputs.remove(path)
            pending_deletes.forget_all()
            self._save_position(table, saved.with_pending_deletes((), NOTHING))
            there = (each for folder in self.format.folders for each in outputs.paths(folder))
            confirm_folders(outputs.store, map(outputs.key, there))

    def _start_and_target(self, table: TableHandle, version: int | None) -> tuple[P, TableState]:
        """Return the position of the files, and the state to reach.

        Raises:
            DamagedLogError: The log ends before the position, or has another commit there.
            UnsupportedError: That state does not declare the format.
        """
        start = self.position(table)
        target = target_state(table, version)
        if start.version >= head_state(table.log).version:
            # If there is more, the run itself reads the next commits.
            self._refuse_divergence(table, start)
        self.refuse_undeclared(table, target)
        return start, target

    def _advance(
        self, table: TableHandle, start: P, target: TableState, on_progress: Progress
    ) -> int | None:
        """Return the version reached; None if nothing was to do.

        Runs in steps, each of which is saved independently of the next.
        """
        first, commits = start.version, FIRST_COMMITS
        report = _CombinedProgress(on_progress, target.version - first)
        while True:
            begun_s = time.monotonic()
            reached = self._project_in_steps(table, start, target, commits, report)
            if reached is None and start.version > first:
                # Another process projected them meanwhile, where the store cannot lock.
                return start.version
            if reached is None or reached >= target.version:
                return reached
            commits = _next_step_size(commits, time.monotonic() - begun_s)
            start = self.position(table)
            report.before = start.version - first

    def _project_in_steps(
        self, table: TableHandle, start: P, target: TableState, commits: int, on_progress: Progress
    ) -> int | None:
        while start.version + commits < target.version:
            state = target_state(table, start.version + commits)
            if not self._declares_format(state):
                commits *= 2
                continue
            try:
                return self._advanced(table, start, state, on_progress)
            except UnsupportedError:
                # What the format cannot express may be gone by then.
                break
        return self._advanced(table, start, target, on_progress)

    def _advanced(
        self, table: TableHandle, start: P, target: TableState, on_progress: Progress
    ) -> int | None:
        """Return the version reached; None if nothing was to do."""
        other = self.format.rebuild_reason(table, start)
        if other is not None:
            self._log_renewal(table, start, other)
            if target.version < start.version:
                target = target_state(table, start.version)
            return self._trace_projection(table, start, target, on_progress)
        start = self._delete_expired_files(table, start)
        if target.version <= start.version:
            return None
        return self._trace_projection(table, start, target, on_progress)

    def _trace_projection(
        self, table: TableHandle, start: P, target: TableState, on_progress: Progress
    ) -> int:
        return traced_projection(
            lambda: self._project_until_stable(table, start, target, on_progress),
            table=str(table.identifier),
            format_name=self.format.name,
            from_version=start.version,
            lag_s=lambda: _lag_s(table, start.version + 1),
        )

    def _project_until_stable(
        self, table: TableHandle, start: P, target: TableState, on_progress: Progress
    ) -> int:
        """Project until no other process did so meanwhile, as on a store that cannot lock.

        The slower process may have restored files that the other deleted. Between the last check
        and the save this is not noticed; `rebuild` repairs it.
        """
        met = start
        while True:
            other = self.format.rebuild_reason(table, start)
            reached = self._run_or_mend(table, start, target, other, on_progress)
            found = self.position(table)
            if found == met:
                # Before any deletion: the previous position may still need the files.
                reached = self._record_pending_deletes(table, met, reached, other)
                self._save_position(table, reached)
                self._delete_expired_files(table, reached)
                return target.version
            met = found
            start = min(start, found, key=_version_of)
            if found.version > target.version:
                target = target_state(table, found.version)

    def _run_or_mend(
        self,
        table: TableHandle,
        start: P,
        target: TableState,
        other: RebuildReason | None,
        on_progress: Progress,
    ) -> P:
        if other is not None:
            return self._rewrite_outdated(table, start, target, on_progress)
        outputs = outputs_of(table)
        try:
            reached = self._write_gathered(table, outputs, start, target, on_progress)
        except DamagedLogError:
            if start.version < 0:
                raise
            self._refuse_divergence(table, start)
            # Files of the previous run are lost or changed; the log has everything.
            _restore_files(
                table, self._files_to_restore(self._compare_files(table, start)), ignore_progress
            )
            beginning = self.format.positions.start
            reached = self._write_gathered(table, outputs, beginning, target, on_progress)
        self._cancel_pending_deletes(table, outputs.met)
        return reached

    def _write_gathered(
        self,
        table: TableHandle,
        outputs: StoreOutputs,
        start: P,
        target: TableState,
        on_progress: Progress,
    ) -> P:
        """Run, and write many files at a time."""
        gathering = BufferedOutputs(outputs, self.format.is_found)
        reached = self.format.run(table, gathering, start, target, on_progress)
        gathering.write()
        return reached

    def _rewrite_outdated(
        self, table: TableHandle, older: P, target: TableState, on_progress: Progress
    ) -> P:
        reached = self.format.renew(table, older, target, on_progress)
        if older.leaving_since != NOTHING:
            self._cancel_pending_deletes(table, files_of(self.format, table, target).keys())
        return reached

    def _rewrite_and_save(self, table: TableHandle, saved: P, on_progress: Progress) -> P:
        is_unknown = saved.version < 0 or self._log_divergence(table, saved) is not None
        version = None if is_unknown else saved.version
        other = self.format.rebuild_reason(table, saved)
        reached = self._rewrite_outdated(table, saved, target_state(table, version), on_progress)
        reached = self._record_pending_deletes(table, saved, reached, other)
        self._save_position(table, reached)
        return self._delete_expired_files(table, reached)

    def _restore_lost_files(self, table: TableHandle, saved: P, on_progress: Progress) -> None:
        lost = self.format.lost(table, saved)
        if lost:
            name = str(table.identifier)
            facts = {"format": self.format.name, "version": saved.version}
            warn(self._logger_name, "files_restored", table=name, **facts)
            _restore_files(table, lost, on_progress)

    def _compare_files(self, table: TableHandle, saved: P) -> ComparisonResult:
        problem = self._log_divergence(table, saved)
        version = None if saved.version < 0 or problem is not None else saved.version
        compared = self.format.compare(table, saved, target_state(table, version))
        found = compared.difference
        if found.foreign:
            found = found.without({*saved.garbage, *self._pending_deletes(table).paths()})
            compared = evolve(compared, difference=found)
        if problem is None:
            return compared
        changed = tuple(sorted((*found.changed, self.key(table))))
        report = evolve(
            found, changed=changed, damage=self._divergence_error(table, saved, problem)
        )
        return evolve(compared, difference=report)

    def _files_to_restore(self, compared: ComparisonResult) -> dict[str, bytes]:
        found, wanted = compared.difference, compared.wanted
        return {path: wanted[path] for path in (*found.missing, *found.changed) if path in wanted}

    def _difference_if_no_position(self, table: TableHandle) -> Difference:
        """Return the difference where no position exists: none, or a missing position.

        A position is missing if a file is the ledger's own. A hint does not count: it is just a
        number.
        """
        outputs = outputs_of(table)
        there = [path for folder in self.format.folders for path in outputs.paths(folder)]
        if not there:
            return Difference()
        try:
            wanted = self.expected(table)
        except UnsupportedError:
            # A table that cannot be projected was never projected.
            return Difference(foreign=tuple(there))
        checked_paths = wanted.keys() - set(self.format.hints)
        ours = any(path in checked_paths and outputs.read(path) == wanted[path] for path in there)
        key = (self.key(table),)
        return Difference(missing=key) if ours else Difference(foreign=tuple(there))

    def _log_divergence(self, table: TableHandle, saved: P) -> str | None:
        """Return how the log differs from the one of the files; None if it continues it."""
        table.log.refresh()
        newest = head_state(table.log).version
        files = f"the {self.format.title} files of {table.identifier}"
        if saved.version > newest:
            return (
                f"{files} are at version {saved.version}, and its log ends at version {newest}: "
                "it was cut, commits were removed"
            )
        if (
            saved.version >= 0
            and saved.commit
            and _commit_digest(table, saved.version) != saved.commit
        ):
            return (
                f"{files} were made of another commit {saved.version} than the one in its log: "
                "commits were replaced"
            )
        return None

    def _refuse_divergence(self, table: TableHandle, saved: P) -> None:
        problem = self._log_divergence(table, saved)
        if problem is not None:
            raise self._divergence_error(table, saved, problem)

    def _divergence_error(self, table: TableHandle, saved: P, problem: str) -> DamagedLogError:
        key = table.log.layout.commit(min(saved.version, head_state(table.log).version + 1))
        return DamagedLogError(
            f"{problem}. Restore {key} from a backup, or project the current log: "
            f"lakeledger project {self.format.name} {table.identifier} --rebuild",
            key,
        )

    @property
    def _logger_name(self) -> str:
        return f"projections.{self.format.name}"

    def _log_renewal(self, table: TableHandle, saved: P, other: RebuildReason) -> None:
        name = str(table.identifier)
        facts = {"format": self.format.name, "version": saved.version, **other.facts}
        warn(self._logger_name, other.event, table=name, **facts)

    def _save_position(self, table: TableHandle, position: P) -> None:
        self.format.positions.save(table.log.store, table.log.layout, position)

    def _pending_deletes(self, table: TableHandle) -> PendingDeletes:
        return PendingDeletes(table, self.format.name)

    def _cancel_pending_deletes(self, table: TableHandle, paths: AbstractSet[str]) -> None:
        """Cancel the pending deletes of files that a run needs, such as equal merged files."""
        wanted = paths - self.format.hints.keys()
        if wanted:
            self._pending_deletes(table).stay(wanted)

    def _record_pending_deletes(
        self, table: TableHandle, met: P, reached: P, other: RebuildReason | None = None
    ) -> P:
        """Record the pending deletes of a run; return the position that lists them.

        Args:
            table: The table.
            met: The position before the run.
            reached: The position that the run returned, with all garbage that it found.
            other: How files were written before, if by an older renderer.
        """
        since, gone = met.leaving_since, reached.garbage
        grace = reader_grace_millis(head_state(table.log).schema.options)
        if other is not None:
            # Files of an older renderer or for another location serve no reader here.
            pending_deletes = self._pending_deletes(table).paths() - set(gone)
            return reached.with_pending_deletes((*gone, *sorted(pending_deletes)), NOTHING)
        if not gone or not grace:
            return reached.with_pending_deletes(gone, since)
        if met.version < 0 or len(gone) > _FEW:
            # Most transient files were never written, or are pending already.
            gone = self._existing_files(table, gone)
        # After the pointers moved: new readers do not find what was deleted.
        table.log.refresh()
        newest = head_state(table.log)
        if gone:
            self._pending_deletes(table).note(reached.version, ObsoleteFiles(newest.version, gone))
        return reached.with_pending_deletes((), newest.time_millis if since == NOTHING else since)

    def _existing_files(self, table: TableHandle, paths: tuple[str, ...]) -> tuple[str, ...]:
        outputs, pending_deletes = outputs_of(table), self._pending_deletes(table).paths()
        there = {path for folder in self.format.folders for path in outputs.paths(folder)}
        return tuple(path for path in paths if path in there and path not in pending_deletes)

    def _delete_expired_files(self, table: TableHandle, position: P) -> P:
        """Delete files that need no retention or whose retention expired, and forget them."""
        newest, since = head_state(table.log), position.leaving_since
        grace = reader_grace_millis(newest.schema.options)
        outputs, pending_deletes = outputs_of(table), self._pending_deletes(table)
        for path in position.garbage:
            outputs.remove(path)
        if position.garbage:
            # A record of a deleted path would delete a file written there later.
            pending_deletes.stay(position.garbage)
        if since != NOTHING and newest.time_millis - since >= grace:
            for version, paths in list(pending_deletes.due(position.version, newest, grace)):
                for path in paths:
                    outputs.remove(path)
                pending_deletes.forget(version)
            since = pending_deletes.since(newest)
        if not position.garbage and since == position.leaving_since:
            return position
        clean = position.with_pending_deletes((), since)
        self._save_position(table, clean)
        return clean


def _version_of(position: FilesPosition) -> int:
    return position.version


def _commit_digest(table: TableHandle, version: int) -> str:
    head = table.log.head
    if head is not None and head.state.version == version:
        return head.digest
    (read,) = table.log.commits(version, version)
    return read.digest


def _restore_files(table: TableHandle, bodies: Mapping[str, bytes], on_progress: Progress) -> None:
    """Write lost or changed files; existing files there are the ledger's own."""
    outputs = outputs_of(table)
    for done, (path, body) in enumerate(bodies.items(), 1):
        outputs.restore(path, body)
        on_progress(done, len(bodies))


def outputs_of(table: TableHandle) -> StoreOutputs:
    """Return the outputs of a table's folder."""
    return StoreOutputs(table.log.store, table.log.layout.folder)


def _way_to_read(at: TableState, name: str) -> str:
    """Return the advice to a reader of a format, by its name, that a table does not declare."""
    origin, protocol = at.origin.format_name, at.owner.protocol
    if at.is_mirrored:
        return f"it was imported from {origin.title()} and is owned there; read it by {origin}"
    if protocol is not None:
        return f"engines commit its data through the {protocol} protocol; read it by {protocol}"
    return f"add {name} to its option {FORMATS_OPTION}"


def _engines_share_folder(table: TableHandle) -> bool:
    """Return whether engines keep their manifests in the table's own folder, beside the ledger."""
    folder = table.state.origin.manifest_folder(table.location)
    return bool(folder) and place_of(folder).meets(place_of(table.location))


def _lag_s(table: TableHandle, version: int) -> float:
    """Return the age of a commit, seconds; 0.0 where the log ends before it."""
    if version > head_state(table.log).version:
        return 0.0
    (read,) = table.log.commits_via_cache(version, version)
    return max(0, now_millis() - read.commit.time_millis) / 1000


def target_state(table: TableHandle, version: int | None) -> TableState:
    """Return the state to project: at a version, or the newest.

    Raises:
        NotFoundError: The table does not have that version.
    """
    table.log.refresh()
    return head_state(table.log) if version is None else at_version(table.log, version)


def files_of(
    file_format: FileFormat[P], table: TableHandle, target: TableState
) -> dict[str, bytes]:
    """Return every file of a table at a state, by path below its location."""
    outputs = MemoryOutputs()
    file_format.run(table, outputs, file_format.positions.start, target, ignore_progress)
    return outputs.files


def refuse_problems(table: TableHandle, problems: Iterable[Refusal]) -> None:
    """Reject a table that the format's rules do not allow.

    Raises:
        UnsupportedError: The first problem.
    """
    for each in problems:
        raise UnsupportedError(f"{table.identifier}: {each.rule}; {each.alternative}")


def new_commits(
    table: TableHandle, start: FilesPosition, target: TableState, on_progress: Progress
) -> Iterator[Read[TableEvent]]:
    """Yield the commits after a position, up to a state.

    Args:
        table: The table.
        start: The position.
        target: The state.
        on_progress: Called after each commit, when the next is requested.

    Raises:
        DamagedLogError: The first does not follow the commit of the position.
    """
    total = target.version - start.version
    for done, read in enumerate(table.log.commits(start.version + 1, target.version), 1):
        is_next = read.commit.version == start.version + 1
        if is_next and start.commit and read.commit.parent != start.commit:
            key = table.log.layout.commit(start.version)
            raise DamagedLogError(f"{key} is not the commit that files were made of", key)
        yield read
        on_progress(done, total)


def refuse_position_beyond_log(table: TableHandle, version: int, key: str) -> None:
    """Check that the log has the version of the files.

    Args:
        table: The table.
        version: The version in the position, which was read before the log.
        key: The key of the position.

    Raises:
        DamagedLogError: The log ends before it: its newest commits are missing.
    """
    newest = target_state(table, None).version
    if version > newest:
        missing = table.log.layout.commit(newest + 1)
        raise DamagedLogError(
            f"{missing} is missing: the log ends at version {newest}, and {key} was made from "
            f"version {version}. Restore the newest commits from a backup",
            missing,
        )


def difference(
    outputs: StoreOutputs,
    wanted: Mapping[str, bytes],
    *,
    folders: Iterable[str],
    hints: Collection[str],
) -> Difference:
    """Compare the files in some folders with the expected ones, byte for byte.

    Hints are not compared; see `misleading_hints`.
    """
    there = {path: outputs.read(path) for path in wanted if path not in hints}
    changed = (p for p, body in there.items() if body is not None and body != wanted[p])
    return Difference(
        missing=tuple(sorted(path for path, body in there.items() if body is None)),
        changed=tuple(sorted(changed)),
        foreign=tuple(
            path for folder in folders for path in outputs.paths(folder) if path not in wanted
        ),
    )


def misleading_hints(
    outputs: StoreOutputs, wanted: Mapping[str, bytes], hints: Mapping[str, str]
) -> Iterator[str]:
    """Yield the hints that lead neither to their target nor further.

    A hint may be missing, and may lead to a later projection.

    Args:
        outputs: Outputs of the table.
        wanted: The expected files, by path.
        hints: The target of each hint, with a placeholder for the hint's number.
    """
    for path, to in hints.items():
        body = outputs.read(path) if path in wanted else None
        if body not in {None, wanted.get(path)} and not _hint_leads_further(
            outputs, wanted, to, body
        ):
            yield path


def _hint_leads_further(
    outputs: StoreOutputs, wanted: Mapping[str, bytes], to: str, hint: bytes
) -> bool:
    """Return whether a hint leads to an existing file that is not among the expected ones."""
    if not hint.isdigit() or len(hint) > _MOST_DIGITS or hint != b"%d" % int(hint):
        return False
    path = to.format(int(hint))
    return path not in wanted and outputs.read(path) is not None
