"""Verification of one span of commits, in worker processes.

A span begins at the state of the checkpoint before it, or of none, and ends at its last commit.
Whether it began at the right one shows when the span before it has come to its end; so spans can
be verified side by side. Version 0 begins the first.

Each opens the store anew, so that nothing is shared but the bytes there. A process that dies takes
nothing with it: what it was to do is done here.
"""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, Final, Generic, Self, TypeVar

from attrs import define, evolve, field, frozen

from ledger.decide.recorded_values import path_problems
from ledger.events.commit import Commit
from ledger.events.snapshots import RolledBack
from ledger.files.runs import Placed
from ledger.history.verifying.caches import Caches, Tile, is_merged, tile_of
from ledger.history.verifying.commits import (
    Chain,
    Gap,
    Link,
    Repeats,
    TableFacts,
    all_fit,
    numbers_out_of_range,
)
from ledger.history.verifying.subject import CommitColumns, Finding, Listed, Listings, Subject
from ledger.log.checkpoints import Head
from ledger.log.key_index import KeyIndex
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.segments import segment_of
from ledger.log.stream_log import StreamLog
from ledger.model.errors import InvalidInputError, LedgerError
from ledger.state.stream import StateLike, Stream
from ledger.state.table_builder import TableBuilder
from ledger.stores import open_store

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

Start = bytes | None
"""A state's record; None for that of the checkpoint before the span."""

_ADVICE: Final = (
    "no lakeledger writes this: find out who did, by its author, and correct it by a later commit "
    "or from a backup"
)


@frozen
class VerifiedSpan:
    """What is to be verified.

    Attributes:
        first: The first version.
        last: The last version.
        newest: The last version that the stream has.
        gaps: Runs of missing versions.
        start: Where to begin.
        folds: Whether its states are asked for: not behind a damage.
    """

    first: int
    last: int
    newest: int
    gaps: tuple[Gap, ...] = ()
    start: Start = None
    folds: bool = True


@define
class SpanReport(Generic[E]):
    """What a span came to.

    Attributes:
        findings: What does not fit, in order; True with those that hold whatever came before.
        began: SHA-256 of the state's record that it began at; None where it had none.
        ended: The record of the state after its last commit; None where it has none.
        damaged: Whether its commits do not fit.
        digests: Those of its commits' files that were asked for, by version.
        repeats: What it named that may be named once.
        boundary: The last checkpoint's version in it; 0 for none.
        commits: Its commits, where they are asked for.
    """

    findings: list[tuple[bool, Finding]] = field(factory=list)
    began: str | None = None
    ended: bytes | None = None
    damaged: bool = False
    digests: dict[int, str] = field(factory=dict)
    repeats: Repeats = field(factory=Repeats)
    boundary: int = 0
    commits: list[Commit[E]] = field(factory=list)


def checked(record: bytes) -> str:
    """Return what a span says of the state that it began at.

    Example:
        >>> checked(b"{}")[:8]
        '44136fa3'
    """
    return hashlib.sha256(record).hexdigest()


def following(span: VerifiedSpan, start: bytes | None) -> VerifiedSpan:
    """Return a span that begins where the one before it ended; None where that ended nowhere."""
    return evolve(span, start=start, folds=span.first == 0 or start is not None)


class SpanVerification(Generic[S, E]):
    """Verifies spans of one stream.

    Args:
        subject: The stream.
        wanted: The digests that somebody noted elsewhere.
        mends: Whether findings bring what restores them.
        keeps_commits: Whether reports hold the commits.
    """

    def __init__(
        self,
        subject: Subject[S, E],
        wanted: frozenset[str] = frozenset(),
        *,
        mends: bool = True,
        keeps_commits: bool = False,
    ) -> None:
        self._subject = subject
        self._wanted = wanted
        self._keeps_commits = keeps_commits
        self._caches = Caches(subject, mends)
        self._live = subject.live
        # So that a span that follows decodes nothing.
        self._ended: tuple[bytes, S | None] = (b"", None)

    def run_on(self, spans: Sequence[VerifiedSpan]) -> list[SpanReport[E]]:
        """Return what spans come to that follow one another, each from where the last one ended.

        Raises:
            OSError: The store failed.
        """
        reports: list[SpanReport[E]] = []
        for each in spans:
            span = following(each, reports[-1].ended) if reports else each
            reports.append(self.run(span))
        return reports

    def run(self, span: VerifiedSpan) -> SpanReport[E]:
        """Return what a span comes to.

        Raises:
            OSError: The store failed.
        """
        report: SpanReport[E] = SpanReport()
        fold = self._begun(span, report) if span.folds else None
        chain: Chain[S, E] = Chain(self._subject, span.newest)
        for each in chain.walk(span.first, span.last, span.gaps):
            if isinstance(each, Finding):
                report.findings.append((True, each))
                report.damaged = True
                continue
            links = each if isinstance(each, list) else [each]
            report.damaged |= any(low < links[0].commit.version for low, _ in span.gaps)
            self._note(links, span, report)
            columns = CommitColumns([link.commit for link in links])
            listed = self._listed(columns, report)
            if len(listed) < len(links):
                columns = CommitColumns(columns.commits[: len(listed)])
            if fold is not None and not report.damaged:
                fold.take(columns, links[: len(listed)], listed)
            report.damaged |= len(listed) < len(links)
        report.damaged |= bool(span.gaps)
        if fold is not None:
            fold.compare_runs()
        if fold is not None and not report.damaged:
            self._ended = fold.end()
            report.ended = self._ended[0]
        return report

    def _begun(self, span: VerifiedSpan, report: SpanReport[E]) -> _Fold[S, E] | None:
        stream, log = self._subject.log.stream, self._subject.log
        if span.first == 0:
            return _Fold(self._subject, self._caches, span, report, None, self._keeps_commits)
        if span.start is not None:
            record, state = self._ended
            if record != span.start or state is None:
                state = stream.decode_state(span.start)
            report.began = checked(span.start)
        else:
            found = log.checkpoints.at(span.first - 1)
            if found is None:
                return None
            state = found.state
            report.began = checked(stream.encode_state(state))
        return _Fold(self._subject, self._caches, span, report, state, self._keeps_commits)

    def _note(self, links: Sequence[Link[E]], span: VerifiedSpan, report: SpanReport[E]) -> None:
        # They stand at the ends of the log, but for those that somebody noted.
        asked = links if self._wanted else (links[0], links[-1])
        for link in asked:
            version = link.commit.version
            if version in {0, span.newest} or link.digest in self._wanted:
                report.digests[version] = link.digest

    def _listed(self, columns: CommitColumns, report: SpanReport[E]) -> list[Listed]:
        """Return the commits' lists of files.

        What cannot be read is reported; the lists end before the first of them.
        """
        if self._live is None:
            return [()] * len(columns.commits)
        live = self._live
        with suppress(LedgerError):
            return columns.listed(live)
        found: list[Listed] = []
        is_whole = True
        for commit in columns.commits:
            try:
                some = live.listed(commit)
            except LedgerError as error:
                report.findings.append((True, of_error(self._subject, commit, error)))
                is_whole = False
            if is_whole:
                found.append(some)
        return found


def of_error(subject: Subject[Any, Any], commit: Commit[Any], error: LedgerError) -> Finding:
    """Return the finding that an error about a commit is."""
    key = str(getattr(error, "file", subject.layout.commit(commit.version)))
    said = error.message.removeprefix(f"{key} ").split(". ")[0]
    return Finding("damage", said, key, commit.version)


def contradiction(subject: Subject[Any, Any], version: int, said: str) -> Finding:
    """Return the finding that a commit says what cannot be."""
    return Finding("contradiction", said, subject.layout.commit(version), version, _ADVICE)


def _goes_back(listed: Listed) -> bool:
    return any(isinstance(event, RolledBack) for event, _ in listed)


class _Fold(Generic[S, E]):
    """The commits of a span folded one after the other, and what rests on their states."""

    def __init__(
        self,
        subject: Subject[S, E],
        caches: Caches[S, E],
        span: VerifiedSpan,
        report: SpanReport[E],
        state: S | None,
        keeps_commits: bool,  # noqa: FBT001 - private
    ) -> None:
        self._subject = subject
        self._caches = caches
        self._span = span
        self._report = report
        self._keeps_commits = keeps_commits
        builder: Any = subject.log.stream.builder(state)
        self._builder = builder
        self._facts = TableFacts(builder) if isinstance(builder, TableBuilder) else None
        self._pairs: list[tuple[int, int]] = []
        self._rows: list[Placed] = []
        self._tile_start = (0, 0)
        self._tiles: list[tuple[Tile, slice]] = []
        self._lines: list[bytes] = []

    def take(
        self, columns: CommitColumns, links: Sequence[Link[E]], listed: Sequence[Listed]
    ) -> None:
        """Fold the next commits, at most up to a checkpoint's, and compare the caches there."""
        listings = Listings(columns, listed)
        folded = self._folded(columns, listed, listings)
        if folded < len(links):
            columns, links = CommitColumns(columns.commits[:folded]), links[:folded]
            listings = Listings(columns, listed[:folded])
        self._keep(columns, links, listings)
        if not folded or self._report.damaged:
            return
        version = links[-1].commit.version
        if version and version % CHECKPOINT_INTERVAL == 0:
            self._boundary(version, links[-1].digest)

    def _folded(self, columns: CommitColumns, listed: Sequence[Listed], listings: Listings) -> int:
        """Fold commits and look at their facts; return how many fit."""
        builder, facts = self._builder, self._facts
        is_plain = all_fit(columns, listings)
        are_plain = is_plain and (facts is None or facts.are_plain(listings.listed))
        goes_back = RolledBack in columns.kinds
        for number, (commit, some) in enumerate(zip(columns.commits, listed, strict=True)):
            before = builder.freeze() if goes_back and _goes_back(some) else None
            try:
                builder.commit(commit)
            except LedgerError as error:
                self._refused(commit, error)
                return number
            if are_plain or (is_plain and (facts is None or facts.are_plain(some))):
                continue
            self._check_facts(commit, some, before, is_plain=is_plain)
            if self._report.damaged:
                return number
        return len(columns.commits)

    def _refused(self, commit: Commit[Any], error: LedgerError) -> None:
        if isinstance(error, InvalidInputError):
            error = self._subject.log.contradiction(commit, error)
        self._report.findings.append((False, of_error(self._subject, commit, error)))
        self._report.damaged = True

    def _keep(self, columns: CommitColumns, links: Sequence[Link[E]], listings: Listings) -> None:
        """Remember what caches are made of."""
        self._pairs += self._report.repeats.learn(columns, listings, self._subject.usual_of_all)
        self._rows += listings.main
        self._lines += [each.body for each in links]
        if self._keeps_commits:
            self._report.commits += columns.commits

    def _check_facts(
        self, commit: Commit[Any], listed: Listed, before: Any, *, is_plain: bool
    ) -> None:
        wrong = [] if is_plain else [*numbers_out_of_range(commit, listed)]
        # No cache can hold such a number.
        self._report.damaged = bool(wrong)
        if not wrong and self._facts is not None:
            wrong += self._facts.problems(listed, before)
        if not is_plain:
            events = (event for each in commit.transactions for event in each.events)
            wrong += (problem for event in events for problem in path_problems(event))
        for each in wrong:
            finding = contradiction(self._subject, commit.version, each)
            self._report.findings.append((False, finding))

    def _boundary(self, version: int, digest: str) -> None:
        report, caches = self._report, self._caches
        report.boundary = version
        self._find(caches.checkpoint(Head(self._builder.freeze(), digest)))
        tile = tile_of(version)
        is_end = version == segment_of(version)[1]
        keys_from, rows_from = (0, 0) if is_end else self._tile_start
        if not is_merged(tile):
            self._find(caches.index(tile, KeyIndex.of(self._pairs[keys_from:])))
            self._tiles.append((tile, slice(rows_from, len(self._rows))))
        self._tile_start = len(self._pairs), len(self._rows)
        if is_end:
            self._find(caches.segment(*segment_of(version), self._lines))

    def _find(self, findings: Iterator[Finding]) -> None:
        self._report.findings.extend((False, each) for each in findings)

    def compare_runs(self) -> None:
        """Compare the runs of file changes that end in the span."""
        if self._subject.has_files:
            self._find(self._caches.runs(self._rows, self._tiles))

    def end(self) -> tuple[bytes, S]:
        """Return the record of the state at the span's end, and that."""
        state: S = self._builder.freeze()
        return self._subject.log.stream.encode_state(state), state


_OBJECTS: Final = 200_000

WORTH: Final = 30_000
"""A log of fewer commits is verified before other processes have begun."""


@frozen
class Task:
    """What every span of one stream has in common.

    Attributes:
        url: Its store's.
        options: What opening that takes.
        root: Its `_ledger` folder.
        stream: What its events mean.
        name: What people call it.
        has_files: Whether its commits list data files.
        wanted: The digests that somebody noted elsewhere.
        mends: Whether findings bring what restores them.
    """

    url: str
    options: Mapping[str, Any] = field(repr=False)
    root: str
    stream: Stream[Any, Any]
    name: str
    has_files: bool
    wanted: frozenset[str]
    mends: bool


class Workers:
    """Some processes; with `with`, so that none is left.

    Args:
        options: What opening the store of a URL takes.
        count: How many; None for as many as this one may use processors.
    """

    def __init__(
        self, options: Callable[[str], Mapping[str, Any]], count: int | None = None
    ) -> None:
        self._options = options
        self.count = count or _processors()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def pays(self, subject: Subject[Any, Any], count: int) -> bool:
        """Whether so many commits of a stream are worth the time that processes take to begin.

        What is in this process's memory alone, no other sees.
        """
        return count >= WORTH and not subject.store.url.startswith("memory:")

    def task(self, subject: Subject[Any, Any], wanted: frozenset[str], *, mends: bool) -> Task:
        """Return what spans of a stream have in common."""
        url = subject.store.url
        return Task(
            url,
            dict(self._options(url)),
            subject.layout.root,
            subject.log.stream,
            subject.name,
            subject.has_files,
            wanted,
            mends,
        )

    def verify(self, task: Task, spans: Sequence[VerifiedSpan]) -> Future[list[SpanReport[Any]]]:
        """Begin to verify spans that follow one another, all by one process."""
        return self._started().submit(_verify, task, spans)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Never forked: a fork keeps locks that other threads hold.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, context, initializer=_ready)
        return self._pool


Died = BrokenProcessPool
"""Raised by a future whose process died."""


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ready() -> None:
    # Ctrl-C goes to all of them; the one that asked ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A span makes many objects and no circles of them.
    gc.freeze()
    gc.set_threshold(_OBJECTS)


_subjects: dict[tuple[str, str], Subject[Any, Any]] = {}
"""The stream that this process looks at, so that its store is opened once."""


def _subject(task: Task) -> Subject[Any, Any]:
    key = task.url, task.root
    if key not in _subjects:
        _subjects.clear()
        store = open_store(task.url, task.options)
        log: StreamLog[Any, Any] = StreamLog(store, task.root, task.stream)
        _subjects[key] = Subject(task.name, log, task.has_files)
    return _subjects[key]


def _verify(task: Task, spans: Sequence[VerifiedSpan]) -> list[SpanReport[Any]]:
    found: SpanVerification[Any, Any] = SpanVerification(
        _subject(task), task.wanted, mends=task.mends
    )
    return found.run_on(spans)
