"""Materialisation: a format's files beside a table's log.

One `Materialisation` holds all that does not depend on the format: the lock, the position, going on
from it, following, what is done about a log that was cut or exchanged, about files that are lost,
damaged, somebody else's, an older renderer's or half a run's, verifying, rebuilding, and how far
behind the log the files are. A format gives the rest as one `FileFormat`:

- what it is called, the folders that are its own, and the hints among their files;
- its `FilesPosition`: a frozen attrs class that says how far a run came, kept by a `PositionFile`;
- `run`: the pure projection of a stretch of the log onto outputs, incremental and idempotent. It
  writes new files first and pointers last, reads the log by `new_commits`, and only says in its
  position what is to be taken away, since the position until then may still need it;
- `rebuild_reason` and `renew`: files that an older version made are projected again;
- `compare`: what stands on the store against what the log makes of it, mostly by `difference`;
- `lost`: what a reader of the newest version needs and does not find;
- `make_way` and `projected`: what happens to a file in the way, and which files are the ledger's.

A format then offers `Materialisation(ItsFormat())` as the part `kept` of its object (see
`ledger.formats`); its flags on the command line are in `projections.command`.

What leaves in one run is noted in one small file beside the log, before the position says that the
run was. How long it stays is counted in the times of the table's own commits, from the first one
after the pointers had moved on: whoever opened the table until then has that long. No clock of
this machine is asked, so a table that nobody commits to keeps what leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, Generic, Protocol

from attrs import define, evolve, field, frozen

from ledger.decide.format_rules import Refusal, declared_by
from ledger.events import TableEvent
from ledger.following.files import STEP_COMMITS
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
    FilesPosition,
    Gathering,
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
"""Stands for a time where nothing leaves."""

UNKNOWN: Final = 0
"""Stands for a time where nobody has looked."""


@frozen
class Gone:
    """What one run found that nothing names any more.

    Attributes:
        newest: The log's newest version when the run had moved its pointers.
        paths: The files, below the table's location, in the order in which they are to go.
    """

    newest: int
    paths: tuple[str, ...]


@frozen
class PendingDeletes:
    """What of a format's files leaves a table.

    Attributes:
        table: The table.
        name: The format's.
    """

    table: TableHandle
    name: str

    def note(self, version: int, gone: Gone) -> None:
        """Remember what a run to a version leaves behind."""
        key = self._key(version)
        before = self._load(key)
        if before is not None:
            # A run that was killed, or one more to the same version.
            paths = dict.fromkeys((*before.paths, *gone.paths))
            gone = Gone(max(before.newest, gone.newest), tuple(paths))
        save_position(self.table.log.store, key, gone)

    def paths(self) -> frozenset[str]:
        """Return all files that leave."""
        return frozenset(path for _, gone in self._notes() for path in gone.paths)

    def since(self, newest: TableState) -> int:
        """Return since when the oldest of what leaves has been leaving.

        Args:
            newest: The table's newest state.
        """
        return next((self._since(gone, newest) for _, gone in self._notes()), NOTHING)

    def due(
        self, until: int, newest: TableState, grace_millis: int
    ) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield what has stayed long enough, oldest first: the version of its run, and the files.

        Args:
            until: The version that the format's files stand at; what a killed run noted beyond it
                is still needed.
            newest: The table's newest state, whose time counts.
            grace_millis: How long files stay.
        """
        for version, gone in self._notes():
            is_due = newest.time_millis - self._since(gone, newest) >= grace_millis
            if version > until or not is_due:
                return
            yield version, gone.paths

    def forget(self, version: int) -> None:
        """Forget what a run to a version left behind: it is gone."""
        self.table.log.store.delete(self._key(version))

    def stay(self, paths: Collection[str]) -> None:
        """Let files stay that are wanted again."""
        for version, gone in self._notes():
            left = tuple(path for path in gone.paths if path not in paths)
            if left != gone.paths:
                key, changed = self._key(version), evolve(gone, paths=left)
                save_position(self.table.log.store, key, changed)

    def forget_all(self) -> None:
        """Forget everything; whoever begins anew finds what stands and is not wanted."""
        for key in list(self.table.log.store.keys(self._folder)):
            self.table.log.store.delete(key)

    def _since(self, gone: Gone, newest: TableState) -> int:
        if gone.newest >= newest.version:
            # Whatever comes is no earlier.
            return newest.time_millis
        (first,) = self.table.log.commits(gone.newest + 1, gone.newest + 1)
        return first.commit.time_millis

    @property
    def _folder(self) -> str:
        return f"{self.table.log.layout.root}/pending-deletes/{self.name}"

    def _key(self, version: int) -> str:
        return f"{self._folder}/{version:0{_DIGITS}}.json"

    def _notes(self) -> Iterator[tuple[int, Gone]]:
        """Yield what runs left behind, oldest first; one that is damaged is as good as none."""
        for key in self.table.log.store.keys(self._folder):
            digits = key.removeprefix(f"{self._folder}/").removesuffix(".json")
            gone = self._load(key)
            if gone is not None and digits.isdecimal():
                yield int(digits), gone

    def _load(self, key: str) -> Gone | None:
        return load_position(self.table.log.store, key, Gone)


_MOST_DIGITS = 20
_FEW = 64

FIRST_COMMITS = STEP_COMMITS
"""Files that are far behind go on by so many commits at first, and by more where that is soon done.
"""

STEP_S = 4.0
"""About so long a step takes: whoever is killed meanwhile loses no more."""

Progress = Callable[[int, int], None]
"""Told how many things of how many are done."""


def nobody(_done: int, _of: int) -> None:
    """Tell nobody."""


def _more_or_fewer(commits: int, took_s: float) -> int:
    """Return how many commits the next step takes, given what the last one took.

    Example:
        >>> _more_or_fewer(256, 0.1), _more_or_fewer(256, 9.0), _more_or_fewer(64, 9.0)
        (512, 128, 64)
    """
    return commits * 2 if took_s < STEP_S else max(FIRST_COMMITS, commits // 2)


@define
class _Going:
    """Tells of all steps together what each tells of itself; never less than it told before.

    Attributes:
        report: Who is told.
        total: How much there is to do, as far as is known: a step that begins anew does more.
        before: How much earlier steps did.
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
    """Where the files on a store are not what the ledger says.

    Attributes:
        missing: Paths of files that should be there.
        changed: Paths of files that are other bytes.
        foreign: Paths of files in the format's folders that the ledger did not project.
        reason: What else there is to say, as the rest of a sentence about the files.
        damage: The error that the log is not the one any more that the files were made of.
        unsaid: What the format has no word for, in a sentence each: readers of the files lack it.
    """

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    reason: str = ""
    damage: DamagedLogError | None = None
    unsaid: tuple[str, ...] = field(default=(), eq=False)

    @property
    def is_empty(self) -> bool:
        """Whether everything is as it should be; foreign files do no harm."""
        return not self.missing and not self.changed

    def without(self, known: Collection[str]) -> Difference:
        """Return this difference with some files taken for ours."""
        return evolve(self, foreign=tuple(each for each in self.foreign if each not in known))


@frozen
class Compared:
    """What stands on a store, against what should.

    Attributes:
        difference: What is wrong.
        wanted: The files that should be there, by path.
        in_the_way: Of what the difference calls changed, files of somebody else's in places that
            are or will be the ledger's.
        rebuilt: The state whose files a rebuild makes.
    """

    difference: Difference
    wanted: Mapping[str, bytes]
    in_the_way: tuple[str, ...]
    rebuilt: TableState


@frozen
class RebuildReason:
    """That files were made in another way than they are now.

    Attributes:
        event: What is logged when they are made anew.
        facts: What is logged with it.
    """

    event: str
    facts: Mapping[str, object]


class FileFormat(Protocol[P]):
    """What a format gives, so that its files can be kept beside a table's log."""

    @property
    def name(self) -> str:
        """In commands and keys, such as `paimon`."""

    @property
    def title(self) -> str:
        """In sentences, such as `Paimon`."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders, below a table's location, whose files the ledger projects."""

    @property
    def hints(self) -> Mapping[str, str]:
        """Files that a reader may miss, and that may lead further than a position.

        By path, the file that each leads to, as a text to put the hint's number into.
        """

    @property
    def positions(self) -> PositionFile[P]:
        """Where a position is kept."""

    def is_found(self, path: str) -> bool:
        """Whether readers come upon a file of the format's that no other file names to them.

        Such files show one after the other, and after all that they may name.
        """

    def run(
        self,
        table: TableHandle,
        outputs: Outputs,
        start: P,
        target: TableState,
        on_progress: Progress,
    ) -> P:
        """Write what a stretch of the log brings; return the new position.

        Args:
            table: The table.
            outputs: Where its files go.
            start: Where the run before stopped.
            target: The state at the version to reach.
            on_progress: Told how many commits of how many were applied.

        Raises:
            DamagedLogError: What the run before left is gone or damaged, or the log is.
            StoreError: A file that the ledger did not project stands in a place of its own.
            UnsupportedError: The format has no such files.
        """

    def rebuild_reason(self, table: TableHandle, saved: P) -> RebuildReason | None:
        """Return how files were made otherwise than now; None if a run can go on from them."""

    def renew(self, table: TableHandle, older: P, target: TableState, on_progress: Progress) -> P:
        """Make files anew that were made otherwise, where they stand; return the new position.

        Can be killed anywhere and begun again; a reader finds whole tables meanwhile.
        """

    def compare(self, table: TableHandle, saved: P, at: TableState) -> Compared:
        """Compare what stands on the store with what the log makes of it.

        What a run that was killed left or took away is as it should be.

        Args:
            table: The table.
            saved: Where its files stand.
            at: The state to compare at: theirs, or the newest where the log does not have it.

        Raises:
            NotFoundError: The files were made otherwise, and cannot be compared.
        """

    def lost(self, table: TableHandle, saved: P) -> Mapping[str, bytes]:
        """Return what readers need of the version that stands and do not find, by path."""

    def make_way(self, outputs: StoreOutputs, path: str) -> None:
        """Put away a file of somebody else's that stands in a place of the ledger's."""

    def projected(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return the files on a store that are known for the ledger's own by what names them."""

    def marked(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return the files on a store that carry the ledger's mark.

        Nothing where names follow from commits alone, whatever values were erased.
        """


@frozen
class Lag:
    """How far behind the log a table's files are.

    Attributes:
        version: The version that they stand at; -1 without files.
        newest: The log's newest.
        problem: Why they are not files of this log; None where nothing says so.
    """

    version: int
    newest: int
    problem: str | None = None

    @property
    def behind(self) -> int:
        """How many versions they lack."""
        return self.newest - self.version


@frozen
class Materialisation(Generic[P]):
    """A format's files, kept beside the logs of tables.

    Attributes:
        format: What the format gives.
    """

    format: FileFormat[P]

    def key(self, table: TableHandle) -> str:
        """Return where a table's position is kept; its lock is of the same name."""
        return self.format.positions.key(table.log.layout)

    def position(self, table: TableHandle) -> P:
        """Return where a table's files stand."""
        return self.format.positions.load(table.log.store, table.log.layout)

    def has_files(self, table: TableHandle) -> bool:
        """Whether a table has files of the format, finished or not."""
        if self.position(table).version >= 0:
            return True
        outputs = outputs_of(table)
        return any(True for folder in self.format.folders for _ in outputs.paths(folder))

    def freshness(self, table: TableHandle) -> Lag:
        """Return how far behind the log a table's files are."""
        saved, newest = self.position(table), target_state(table, None).version
        is_newest = saved.version == newest and saved.commit in {"", _digest(table, newest)}
        # Only where it looks so, as this reads on: an older state than the position is no proof.
        problem = None if saved.version < newest or is_newest else self._cut(table, saved)
        said = None if problem is None else str(self._damage(table, saved, problem))
        return Lag(saved.version, newest, said)

    def refuse_undeclared(self, table: TableHandle, at: TableState) -> None:
        """Refuse new files of a format that a table need not stay expressible in.

        Files that stand may be verified and restored, whatever is declared since.

        Raises:
            UnsupportedError: The state does not declare the format.
        """
        if not self._declares(at):
            name, title = self.format.name, self.format.title
            article, origin = "an" if title[0] in "AEIOU" else "a", at.origin.format_name
            way = (
                f"it was born in {origin.title()}, and others own it; read it by {origin}"
                if at.is_mirrored
                else f"add {name} to its option {FORMATS_OPTION}"
            )
            raise UnsupportedError(
                f"{table.identifier} is not declared to be {article} {title} table: {way}"
            )

    def _declares(self, at: TableState) -> bool:
        return self.format.name in declared_by(at.schema.options).formats

    def project(
        self, table: TableHandle, *, version: int | None = None, on_progress: Progress = nobody
    ) -> int:
        """Bring a table's files up to a version; return the version that they stand at.

        Where nothing is new, what readers need of the files that stand is made again if it is lost
        or damaged. Files of an older renderer are made anew.

        Args:
            table: The table.
            version: None for the newest. One before the position that stands is refused.
            on_progress: Told how many commits of how many were applied.

        Raises:
            DamagedLogError: The files stand at a version that the log does not have any more.
            InvalidInputError: The files stand at a later version.
            NotFoundError: The table does not have that version.
            StoreError: A file that the ledger did not project stands in a place of its own.
            UnsupportedError: The table does not declare the format, or it has no such files.
        """
        with table.log.store.lock(self.key(table)):
            start, target = self._start_and_target(table, version)
            if target.version < start.version:
                raise InvalidInputError(
                    f"the {self.format.title} files of {table.identifier} stand at version "
                    f"{start.version}, after {target.version}; they only go forward"
                )
            reached = self._advance(table, start, target, on_progress)
            if reached is None:
                self._mend(table, start, on_progress)
            return target.version if reached is None else reached

    def settle(self, table: TableHandle) -> None:
        """Complete the files of a table that was moved: render them for the place where it is.

        They are brought up to the newest version; those of a format that it does not declare stay
        at theirs.

        Raises:
            DamagedLogError: The files stand at a version that the log does not have any more.
            StoreError: A file that the ledger did not project stands in a place of its own.
            UnsupportedError: The format has no such files.
        """
        if self._declares(target_state(table, None)):
            self.project(table)
        else:
            self.rebuild(table)

    def advance(
        self, table: TableHandle, *, version: int | None = None, on_progress: Progress = nobody
    ) -> int:
        """Bring the files up to a version, the newest if None; return the version they stand at.

        Looks at nothing that stands already; files that stand at a later version stay as they are.
        """
        with table.log.store.lock(self.key(table)):
            start, target = self._start_and_target(table, version)
            reached = self._advance(table, start, target, on_progress)
            return start.version if reached is None else reached

    def step(self, table: TableHandle, *, commits: int) -> int:
        """Bring the files on by some commits; return the version that they stand at.

        Further where the format is not declared on the way, or has no words for the table.

        Args:
            table: The table.
            commits: How many; those that there are, if they are fewer.

        Raises:
            DamagedLogError: The files stand at a version that the log does not have any more.
            StoreError: A file that the ledger did not project stands in a place of its own.
            UnsupportedError: The newest version does not declare the format, or has no such files.
        """
        with table.log.store.lock(self.key(table)):
            start, target = self._start_and_target(table, None)
            reached = self._stepped(table, start, target, commits, nobody)
            return start.version if reached is None else reached

    def follow(
        self,
        table: TableHandle,
        *,
        interval_s: float = 1.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[int]:
        """Project whenever something new was committed; yield each version reached, for ever."""
        reached = -1
        while True:
            newest = self.advance(table)
            if newest != reached:
                reached = newest
                yield reached
            sleep(interval_s)

    def expected(self, table: TableHandle, *, version: int | None = None) -> dict[str, bytes]:
        """Return every file that a table has at a version, by path below its location.

        Raises:
            UnsupportedError: The table does not declare the format, or it has no such files.
        """
        target = target_state(table, version)
        self.refuse_undeclared(table, target)
        return files_of(self.format, table, target)

    def replay(
        self, table: TableHandle, store: Store, *, version: int, on_progress: Progress = nobody
    ) -> None:
        """Make a table's files at a version in a folder that holds nothing else.

        Args:
            table: It, shown at that folder.
            store: The folder.
            version: The version.
            on_progress: Told how many commits of how many were applied.

        Raises:
            NotFoundError: The table does not have that version.
            StoreError: Other files stand there.
            UnsupportedError: The table does not declare the format, or it has no such files.
        """
        outputs, target = StoreOutputs(store, ""), target_state(table, version)
        self.refuse_undeclared(table, target)
        self._put(table, outputs, self.format.positions.start, target, on_progress)

    def verify(self, table: TableHandle) -> Difference:
        """Compare what stands on the store with what the ledger says, byte for byte.

        A hint may be missing, and may lead further than the files that stand. Where the log was cut
        below the position or exchanged, the position is told as changed, with the log's damage.

        Raises:
            NotFoundError: The files were made otherwise than now, and cannot be compared.
        """
        saved = self.position(table)
        if saved.version < 0:
            # Whose files they are, nobody has to remember: the ledger's own are made again alike.
            return self._without_position(table)
        return self._compared(table, saved).difference

    def rebuild(self, table: TableHandle, *, on_progress: Progress = nobody) -> Difference:
        """Restore lost and damaged files, and take leftovers away; return what was found wrong.

        Others' files in places that the ledger needs make way. Where the newest version does not
        declare the format any more, the files stay at theirs.

        Raises:
            UnsupportedError: There are none of this log's, and the format is not declared.
        """
        with table.log.store.lock(self.key(table)):
            saved = self.position(table)
            is_cut = self._cut(table, saved) is not None
            if saved.version < 0 or is_cut:
                self.refuse_undeclared(table, target_state(table, None))
            other = self.format.rebuild_reason(table, saved)
            if other is not None:
                self._tell(table, saved, other)
                saved = self._renewed(table, saved, on_progress)
            elif not is_cut:
                # The new position would not list what the last run has still to remove.
                saved = self._swept(table, saved)
            compared = self._compared(table, saved)
            if not self._declares(compared.rebuilt):
                compared = evolve(compared, rebuilt=target_state(table, saved.version))
            outputs = outputs_of(table)
            # Of commits that are not in the log any more, nothing else tells.
            of_cut = self.format.projected(outputs, compared.rebuilt) if is_cut else ()
            for path in compared.in_the_way:
                self.format.make_way(outputs, path)
            _restore(table, self._lost(compared), on_progress)
            # From the beginning, as what a run that was killed left behind is found only then.
            start = self.format.positions.start
            reached = self._put(table, outputs, start, compared.rebuilt, nobody)
            if is_cut:
                # Some of it may be wanted again; what is not, the run has found.
                self._pending_deletes(table).forget_all()
            self._stay(table, outputs.met)
            reached = self._left(table, start, reached)
            gone = {*of_cut} - compared.wanted.keys()
            if gone:
                # Nobody may come upon what is not in the log, not even for a while.
                gone -= set(self.format.projected(outputs, compared.rebuilt))
                garbage = tuple(sorted({*reached.garbage, *gone}))
                reached = reached.with_pending_deletes(garbage, reached.leaving_since)
            self._save(table, reached)
            self._swept(table, reached)
        return compared.difference

    def render_anew(self, table: TableHandle) -> None:
        """Make files anew after values were erased, so that none is left that holds one.

        What stays for readers that came before goes at once, too. A power loss after the call
        brings none of it back.

        Raises:
            UnsupportedError: The format has no such files any more; those that stand stay.
        """
        self.rebuild(table)
        with table.log.store.lock(self.key(table)):
            saved, outputs = self.position(table), outputs_of(table)
            compared, pending_deletes = self._compared(table, saved), self._pending_deletes(table)
            known = {*pending_deletes.paths(), *saved.garbage}
            known.update(self.format.marked(outputs, compared.rebuilt))
            known.update(self.format.projected(outputs, compared.rebuilt))
            for path in known - compared.wanted.keys() - self.format.hints.keys():
                outputs.remove(path)
            pending_deletes.forget_all()
            self._save(table, saved.with_pending_deletes((), NOTHING))
            there = (each for folder in self.format.folders for each in outputs.paths(folder))
            confirm_folders(outputs.store, map(outputs.key, there))

    def _start_and_target(self, table: TableHandle, version: int | None) -> tuple[P, TableState]:
        """Return where the files stand, and the state to reach.

        Raises:
            DamagedLogError: The log ends before, or its newest commit is another.
            UnsupportedError: That state does not declare the format.
        """
        start = self.position(table)
        target = target_state(table, version)
        if start.version >= head_state(table.log).version:
            # Where there is more, the run looks itself at what comes next.
            self._refuse_cut(table, start)
        self.refuse_undeclared(table, target)
        return start, target

    def _advance(
        self, table: TableHandle, start: P, target: TableState, on_progress: Progress
    ) -> int | None:
        """Return the version that files were brought to; None if there was nothing to bring.

        In steps, each of which stands whatever comes of the next.
        """
        first, commits = start.version, FIRST_COMMITS
        report = _Going(on_progress, target.version - first)
        while True:
            begun_s = time.monotonic()
            reached = self._stepped(table, start, target, commits, report)
            if reached is None and start.version > first:
                # Somebody else brought them there meanwhile, where the store cannot lock.
                return start.version
            if reached is None or reached >= target.version:
                return reached
            commits = _more_or_fewer(commits, time.monotonic() - begun_s)
            start = self.position(table)
            report.before = start.version - first

    def _stepped(
        self, table: TableHandle, start: P, target: TableState, commits: int, on_progress: Progress
    ) -> int | None:
        while start.version + commits < target.version:
            state = target_state(table, start.version + commits)
            if not self._declares(state):
                commits *= 2
                continue
            try:
                return self._advanced(table, start, state, on_progress)
            except UnsupportedError:
                # What there is no word for may have gone by then.
                break
        return self._advanced(table, start, target, on_progress)

    def _advanced(
        self, table: TableHandle, start: P, target: TableState, on_progress: Progress
    ) -> int | None:
        """Return the version that files were brought to; None if there was nothing to bring."""
        other = self.format.rebuild_reason(table, start)
        if other is not None:
            self._tell(table, start, other)
            if target.version < start.version:
                target = target_state(table, start.version)
            return self._reach(table, start, target, on_progress)
        start = self._swept(table, start)
        if target.version <= start.version:
            return None
        return self._reach(table, start, target, on_progress)

    def _reach(
        self, table: TableHandle, start: P, target: TableState, on_progress: Progress
    ) -> int:
        return traced_projection(
            lambda: self._reached(table, start, target, on_progress),
            table=str(table.identifier),
            format_name=self.format.name,
            from_version=start.version,
            lag_s=lambda: _lag_s(table, start.version + 1),
        )

    def _reached(
        self, table: TableHandle, start: P, target: TableState, on_progress: Progress
    ) -> int:
        """Project until nobody else did so meanwhile, which only a store that cannot lock allows.

        Whoever was behind may have put back what the other had taken away. Between the last look
        and the save nobody notices; that is for `rebuild`.
        """
        met = start
        while True:
            other = self.format.rebuild_reason(table, start)
            reached = self._run(table, start, target, other, on_progress)
            found = self.position(table)
            if found == met:
                # Before anything is taken away: the position until now may still need it.
                reached = self._left(table, met, reached, other)
                self._save(table, reached)
                self._swept(table, reached)
                return target.version
            met = found
            start = min(start, found, key=_version)
            if found.version > target.version:
                target = target_state(table, found.version)

    def _run(
        self,
        table: TableHandle,
        start: P,
        target: TableState,
        other: RebuildReason | None,
        on_progress: Progress,
    ) -> P:
        if other is not None:
            return self._anew(table, start, target, on_progress)
        outputs = outputs_of(table)
        try:
            reached = self._put(table, outputs, start, target, on_progress)
        except DamagedLogError:
            if start.version < 0:
                raise
            self._refuse_cut(table, start)
            # What the run before left is gone or changed; the log has all of it.
            _restore(table, self._lost(self._compared(table, start)), nobody)
            beginning = self.format.positions.start
            reached = self._put(table, outputs, beginning, target, on_progress)
        self._stay(table, outputs.met)
        return reached

    def _put(
        self,
        table: TableHandle,
        outputs: StoreOutputs,
        start: P,
        target: TableState,
        on_progress: Progress,
    ) -> P:
        """Run, with many files written at a time."""
        gathering = Gathering(outputs, self.format.is_found)
        reached = self.format.run(table, gathering, start, target, on_progress)
        gathering.write()
        return reached

    def _anew(self, table: TableHandle, older: P, target: TableState, on_progress: Progress) -> P:
        reached = self.format.renew(table, older, target, on_progress)
        if older.leaving_since != NOTHING:
            self._stay(table, files_of(self.format, table, target).keys())
        return reached

    def _renewed(self, table: TableHandle, saved: P, on_progress: Progress) -> P:
        version = None if self._cut(table, saved) else saved.version
        other = self.format.rebuild_reason(table, saved)
        reached = self._anew(table, saved, target_state(table, version), on_progress)
        reached = self._left(table, saved, reached, other)
        self._save(table, reached)
        return self._swept(table, reached)

    def _mend(self, table: TableHandle, saved: P, on_progress: Progress) -> None:
        lost = self.format.lost(table, saved)
        if lost:
            name = str(table.identifier)
            facts = {"format": self.format.name, "version": saved.version}
            warn(self._logger, "files_restored", table=name, **facts)
            _restore(table, lost, on_progress)

    def _compared(self, table: TableHandle, saved: P) -> Compared:
        problem = self._cut(table, saved)
        version = None if saved.version < 0 or problem is not None else saved.version
        compared = self.format.compare(table, saved, target_state(table, version))
        found = compared.difference
        if found.foreign:
            found = found.without({*saved.garbage, *self._pending_deletes(table).paths()})
            compared = evolve(compared, difference=found)
        if problem is None:
            return compared
        changed = tuple(sorted((*found.changed, self.key(table))))
        report = evolve(found, changed=changed, damage=self._damage(table, saved, problem))
        return evolve(compared, difference=report)

    def _lost(self, compared: Compared) -> dict[str, bytes]:
        found, wanted = compared.difference, compared.wanted
        return {path: wanted[path] for path in (*found.missing, *found.changed) if path in wanted}

    def _without_position(self, table: TableHandle) -> Difference:
        """Return what is wrong where no position stands: nothing, or that one should.

        One should where a file is the ledger's own. A hint is a number that anybody may have
        written.
        """
        outputs = outputs_of(table)
        there = [path for folder in self.format.folders for path in outputs.paths(folder)]
        if not there:
            return Difference()
        try:
            wanted = self.expected(table)
        except UnsupportedError:
            # What cannot be projected, nobody projected.
            return Difference(foreign=tuple(there))
        checked_paths = wanted.keys() - set(self.format.hints)
        ours = any(path in checked_paths and outputs.read(path) == wanted[path] for path in there)
        key = (self.key(table),)
        return Difference(missing=key) if ours else Difference(foreign=tuple(there))

    def _cut(self, table: TableHandle, saved: P) -> str | None:
        """Return how a log is other than the one that files were made of; None if it goes on."""
        table.log.refresh()
        newest = head_state(table.log).version
        files = f"the {self.format.title} files of {table.identifier}"
        if saved.version > newest:
            return (
                f"{files} stand at version {saved.version}, and its log ends at version {newest}: "
                "it was cut, commits were taken away"
            )
        if saved.version >= 0 and saved.commit and _digest(table, saved.version) != saved.commit:
            return (
                f"{files} were made of another commit {saved.version} than the one in its log: "
                "commits were exchanged"
            )
        return None

    def _refuse_cut(self, table: TableHandle, saved: P) -> None:
        problem = self._cut(table, saved)
        if problem is not None:
            raise self._damage(table, saved, problem)

    def _damage(self, table: TableHandle, saved: P, problem: str) -> DamagedLogError:
        key = table.log.layout.commit(min(saved.version, head_state(table.log).version + 1))
        return DamagedLogError(
            f"{problem}. Restore {key} from a backup, or make the files of what the log holds: "
            f"lakeledger project {self.format.name} {table.identifier} --rebuild",
            key,
        )

    @property
    def _logger(self) -> str:
        return f"projections.{self.format.name}"

    def _tell(self, table: TableHandle, saved: P, other: RebuildReason) -> None:
        name = str(table.identifier)
        facts = {"format": self.format.name, "version": saved.version, **other.facts}
        warn(self._logger, other.event, table=name, **facts)

    def _save(self, table: TableHandle, position: P) -> None:
        self.format.positions.save(table.log.store, table.log.layout, position)

    def _pending_deletes(self, table: TableHandle) -> PendingDeletes:
        return PendingDeletes(table, self.format.name)

    def _stay(self, table: TableHandle, paths: AbstractSet[str]) -> None:
        """Let files stay that a run wants: what merges anew may be what stood before."""
        wanted = paths - self.format.hints.keys()
        if wanted:
            self._pending_deletes(table).stay(wanted)

    def _left(
        self, table: TableHandle, met: P, reached: P, other: RebuildReason | None = None
    ) -> P:
        """Note what stays a while for its readers; return the position that says so.

        Args:
            table: The table.
            met: The position before the run.
            reached: The one that the run returned, with all that it found to be garbage.
            other: How files were made before, if otherwise than now.
        """
        since, gone = met.leaving_since, reached.garbage
        grace = reader_grace_millis(head_state(table.log).schema.options)
        if other is not None:
            # What was made otherwise, or for another place, serves no reader that comes here.
            pending_deletes = self._pending_deletes(table).paths() - set(gone)
            return reached.with_pending_deletes((*gone, *sorted(pending_deletes)), NOTHING)
        if not gone or not grace:
            return reached.with_pending_deletes(gone, since)
        if met.version < 0 or len(gone) > _FEW:
            # Most of what came and went was never written, or leaves already.
            gone = self._existing(table, gone)
        # After the pointers have moved: who comes now does not find what is gone.
        table.log.refresh()
        newest = head_state(table.log)
        if gone:
            self._pending_deletes(table).note(reached.version, Gone(newest.version, gone))
        return reached.with_pending_deletes((), newest.time_millis if since == NOTHING else since)

    def _existing(self, table: TableHandle, paths: tuple[str, ...]) -> tuple[str, ...]:
        outputs, pending_deletes = outputs_of(table), self._pending_deletes(table).paths()
        there = {path for folder in self.format.folders for path in outputs.paths(folder)}
        return tuple(path for path in paths if path in there and path not in pending_deletes)

    def _swept(self, table: TableHandle, position: P) -> P:
        """Take away what need not stay or has stayed long enough, and forget it."""
        newest, since = head_state(table.log), position.leaving_since
        grace = reader_grace_millis(newest.schema.options)
        outputs, pending_deletes = outputs_of(table), self._pending_deletes(table)
        for path in position.garbage:
            outputs.remove(path)
        if position.garbage:
            # A note of a path that is gone would remove what is written there later.
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
        self._save(table, clean)
        return clean


def _version(position: FilesPosition) -> int:
    return position.version


def _digest(table: TableHandle, version: int) -> str:
    head = table.log.head
    if head is not None and head.state.version == version:
        return head.digest
    (read,) = table.log.commits(version, version)
    return read.digest


def _restore(table: TableHandle, bodies: Mapping[str, bytes], on_progress: Progress) -> None:
    """Write what is lost or other than it should be; whatever stands there is the ledger's own."""
    outputs = outputs_of(table)
    for done, (path, body) in enumerate(bodies.items(), 1):
        outputs.restore(path, body)
        on_progress(done, len(bodies))


def outputs_of(table: TableHandle) -> StoreOutputs:
    """Return where a table's files are."""
    return StoreOutputs(table.log.store, table.log.layout.folder)


def _lag_s(table: TableHandle, version: int) -> float:
    """Return how long ago a commit came; 0.0 where the log does not go so far."""
    if version > head_state(table.log).version:
        return 0.0
    (read,) = table.log.known_commits(version, version)
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
    """Return every file that a table has at a state, by path below its location."""
    outputs = MemoryOutputs()
    file_format.run(table, outputs, file_format.positions.start, target, nobody)
    return outputs.files


def refuse(table: TableHandle, problems: Iterable[Refusal]) -> None:
    """Refuse to project a table for what its format's rules say of it.

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
        table: Whose.
        start: The position.
        target: The state.
        on_progress: Told when one is done with, that is when the next is asked for.

    Raises:
        DamagedLogError: The first does not follow the commit that files were made of.
    """
    total = target.version - start.version
    for done, read in enumerate(table.log.commits(start.version + 1, target.version), 1):
        is_next = read.commit.version == start.version + 1
        if is_next and start.commit and read.commit.parent != start.commit:
            key = table.log.layout.commit(start.version)
            raise DamagedLogError(f"{key} is not the commit that files were made of", key)
        yield read
        on_progress(done, total)


def refuse_beyond(table: TableHandle, version: int, key: str) -> None:
    """Check that the log has the version that files stand at.

    Args:
        table: Theirs.
        version: The one that a position states, read before the log is.
        key: The position's.

    Raises:
        DamagedLogError: The log ends before it: its newest commits are gone.
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
    """Compare the files in some folders with what should be there, byte for byte.

    Hints are not compared; see `misleading`.
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


def misleading(
    outputs: StoreOutputs, wanted: Mapping[str, bytes], hints: Mapping[str, str]
) -> Iterator[str]:
    """Yield the hints that lead neither where they should nor further.

    One may be missing, and may lead to what somebody has projected since.

    Args:
        outputs: Where files are.
        wanted: What should be there, by path.
        hints: The file that each leads to, as a text to put the hint's number into.
    """
    for path, to in hints.items():
        body = outputs.read(path) if path in wanted else None
        if body not in {None, wanted.get(path)} and not _leads_further(outputs, wanted, to, body):
            yield path


def _leads_further(
    outputs: StoreOutputs, wanted: Mapping[str, bytes], to: str, hint: bytes
) -> bool:
    """Whether a hint leads to a file that is there, and is none of those that are wanted."""
    if not hint.isdigit() or len(hint) > _MOST_DIGITS or hint != b"%d" % int(hint):
        return False
    path = to.format(int(hint))
    return path not in wanted and outputs.read(path) is not None
