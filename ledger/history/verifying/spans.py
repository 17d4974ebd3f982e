"""Verification of one span of commits, in worker processes.

A span starts from the state of the checkpoint before it (the first from version 0) and ends at its
last commit. The result of the previous span shows later whether that checkpoint was right, so spans
can be verified in parallel.

Each worker opens the store itself, so that processes share only the stored bytes. The work of a
process that dies is done in the calling process.
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
from ledger.events.partitions import PartitionsUpdated
from ledger.events.snapshots import RolledBack
from ledger.files.runs import Placed
from ledger.history.verifying.caches import Caches, Tile, is_merged_tile, tile_ending_at
from ledger.history.verifying.commits import (
    Chain,
    ChainLink,
    Gap,
    TableFacts,
    UniqueNameHashes,
    all_fit,
    numbers_out_of_range,
)
from ledger.history.verifying.partitions import partition_list_problems
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
"""Encoded state that a span starts from; None for the checkpoint before the span."""

_ADVICE: Final = (
    "lakeledger never writes this: find the writer by the commit's author, and correct it by a "
    "later commit or from a backup"
)


@frozen
class VerifiedSpan:
    """Interval of commits to verify together.

    Attributes:
        first: The first version.
        last: The last version.
        newest: The last version of the stream.
        gaps: Gaps, intervals of missing versions.
        start: The state to start from.
        folds: True to compute states; False after damage.
    """

    first: int
    last: int
    newest: int
    gaps: tuple[Gap, ...] = ()
    start: Start = None
    folds: bool = True


@define
class SpanReport(Generic[E]):
    """Result of the verification of a span.

    Attributes:
        findings: The findings, in order; True with those that hold regardless of earlier spans.
        began: SHA-256 of the encoded state that it started from; None without a state.
        ended: The encoded state after its last commit; None without a state.
        damaged: True if its commits are damaged.
        digests: The requested digests of commit files, by version.
        repeats: Hashes of its names that must be unique.
        boundary: The version of the last checkpoint in it; 0 for none.
        commits: Its commits, if requested.
    """

    findings: list[tuple[bool, Finding]] = field(factory=list)
    began: str | None = None
    ended: bytes | None = None
    damaged: bool = False
    digests: dict[int, str] = field(factory=dict)
    repeats: UniqueNameHashes = field(factory=UniqueNameHashes)
    boundary: int = 0
    commits: list[Commit[E]] = field(factory=list)


def state_digest(record: bytes) -> str:
    """Return the digest of an encoded state, as `SpanReport.began` has it.

    Example:
        >>> state_digest(b"{}")[:8]
        '44136fa3'
    """
    return hashlib.sha256(record).hexdigest()


def span_from_end_state(span: VerifiedSpan, start: bytes | None) -> VerifiedSpan:
    """Return a span that starts from the previous one's end state; without one it does not fold."""
    return evolve(span, start=start, folds=span.first == 0 or start is not None)


class SpanVerification(Generic[S, E]):
    """Verification of spans of one stream.

    Args:
        subject: The stream.
        wanted: Digests recorded outside of the ledger, to look for.
        mends: True if findings shall contain the bytes that restore a cache.
        keeps_commits: True if reports shall contain the commits.
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
        # Cached, so that the next span does not decode the state.
        self._ended: tuple[bytes, S | None] = (b"", None)

    def verify_consecutive_spans(self, spans: Sequence[VerifiedSpan]) -> list[SpanReport[E]]:
        """Verify consecutive spans, each from the end state of the previous one.

        Raises:
            OSError: The store failed.
        """
        reports: list[SpanReport[E]] = []
        for each in spans:
            span = span_from_end_state(each, reports[-1].ended) if reports else each
            reports.append(self.run(span))
        return reports

    def run(self, span: VerifiedSpan) -> SpanReport[E]:
        """Verify a span and return its report.

        Raises:
            OSError: The store failed.
        """
        report: SpanReport[E] = SpanReport()
        fold = self._start_fold(span, report) if span.folds else None
        chain: Chain[S, E] = Chain(self._subject, span.newest)
        for each in chain.walk(span.first, span.last, span.gaps):
            if isinstance(each, Finding):
                report.findings.append((True, each))
                report.damaged = True
                continue
            links = each if isinstance(each, list) else [each]
            report.damaged |= any(low < links[0].commit.version for low, _ in span.gaps)
            self._record_wanted_digests(links, span, report)
            columns = CommitColumns([link.commit for link in links])
            listed = self._files_of_commits(columns, report)
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

    def _start_fold(self, span: VerifiedSpan, report: SpanReport[E]) -> _Fold[S, E] | None:
        stream, log = self._subject.log.stream, self._subject.log
        if span.first == 0:
            return _Fold(self._subject, self._caches, span, report, None, self._keeps_commits)
        if span.start is not None:
            record, state = self._ended
            if record != span.start or state is None:
                state = stream.decode_state(span.start)
            report.began = state_digest(span.start)
        else:
            found = log.checkpoints.at(span.first - 1)
            if found is None:
                return None
            state = found.state
            report.began = state_digest(stream.encode_state(state))
        return _Fold(self._subject, self._caches, span, report, state, self._keeps_commits)

    def _record_wanted_digests(
        self, links: Sequence[ChainLink[E]], span: VerifiedSpan, report: SpanReport[E]
    ) -> None:
        # Those of the log's first and last commit, and those recorded elsewhere.
        asked = links if self._wanted else (links[0], links[-1])
        for link in asked:
            version = link.commit.version
            if version in {0, span.newest} or link.digest in self._wanted:
                report.digests[version] = link.digest

    def _files_of_commits(self, columns: CommitColumns, report: SpanReport[E]) -> list[Listed]:
        """Return the commits' lists of files.

        Unreadable lists are reported; the result ends before the first of them.
        """
        if self._live is None:
            return [()] * len(columns.commits)
        live = self._live
        self._check_partition_lists(columns, report)
        with suppress(LedgerError):
            return columns.listed(live)
        found: list[Listed] = []
        is_whole = True
        for commit in columns.commits:
            try:
                some = live.listed(commit)
            except LedgerError as error:
                report.findings.append((True, finding_for_error(self._subject, commit, error)))
                is_whole = False
            if is_whole:
                found.append(some)
        return found

    def _check_partition_lists(self, columns: CommitColumns, report: SpanReport[E]) -> None:
        """Report change files of partitions that are damaged or hold an invalid number."""
        if PartitionsUpdated not in columns.kinds:
            return
        log = self._subject.log
        for commit in columns.commits:
            try:
                problem = next(partition_list_problems(log.store, log.layout, commit), None)
            except LedgerError as error:
                report.findings.append((True, finding_for_error(self._subject, commit, error)))
                continue
            if problem is not None:
                report.findings.append(
                    (False, contradiction(self._subject, commit.version, problem))
                )


def finding_for_error(
    subject: Subject[Any, Any], commit: Commit[Any], error: LedgerError
) -> Finding:
    """Return the finding for an error about a commit."""
    key = str(getattr(error, "file", subject.layout.commit(commit.version)))
    said = error.message.removeprefix(f"{key} ").split(". ")[0]
    return Finding("damage", said, key, commit.version)


def contradiction(subject: Subject[Any, Any], version: int, said: str) -> Finding:
    """Return the finding for a commit with contradictory contents."""
    return Finding("contradiction", said, subject.layout.commit(version), version, _ADVICE)


def _has_rollback(listed: Listed) -> bool:
    return any(isinstance(event, RolledBack) for event, _ in listed)


class _Fold(Generic[S, E]):
    """Fold of a span's commits, with the checks that need their states."""

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
        self, columns: CommitColumns, links: Sequence[ChainLink[E]], listed: Sequence[Listed]
    ) -> None:
        """Fold the next commits, at most up to a checkpoint's, and compare the caches there."""
        listings = Listings(columns, listed)
        folded = self._fold_and_check(columns, listed, listings)
        if folded < len(links):
            columns, links = CommitColumns(columns.commits[:folded]), links[:folded]
            listings = Listings(columns, listed[:folded])
        self._collect_cache_data(columns, links, listings)
        if not folded or self._report.damaged:
            return
        version = links[-1].commit.version
        if version and version % CHECKPOINT_INTERVAL == 0:
            self._compare_caches_at(version, links[-1].digest)

    def _fold_and_check(
        self, columns: CommitColumns, listed: Sequence[Listed], listings: Listings
    ) -> int:
        """Fold commits and check their contents; return the number of valid ones."""
        builder, facts = self._builder, self._facts
        is_plain = all_fit(columns, listings)
        are_plainly_valid = is_plain and (facts is None or facts.are_plainly_valid(listings.listed))
        goes_back = RolledBack in columns.kinds
        for number, (commit, some) in enumerate(zip(columns.commits, listed, strict=True)):
            before = builder.freeze() if goes_back and _has_rollback(some) else None
            try:
                builder.commit(commit)
            except LedgerError as error:
                self._record_fold_error(commit, error)
                return number
            if are_plainly_valid or (is_plain and (facts is None or facts.are_plainly_valid(some))):
                continue
            self._check_facts(commit, some, before, is_plain=is_plain)
            if self._report.damaged:
                return number
        return len(columns.commits)

    def _record_fold_error(self, commit: Commit[Any], error: LedgerError) -> None:
        if isinstance(error, InvalidInputError):
            error = self._subject.log.contradiction(commit, error)
        self._report.findings.append((False, finding_for_error(self._subject, commit, error)))
        self._report.damaged = True

    def _collect_cache_data(
        self, columns: CommitColumns, links: Sequence[ChainLink[E]], listings: Listings
    ) -> None:
        """Collect the data that caches are built from."""
        self._pairs += self._report.repeats.add_commits(
            columns, listings, self._subject.normalize_paths
        )
        self._rows += listings.main
        self._lines += [each.body for each in links]
        if self._keeps_commits:
            self._report.commits += columns.commits

    def _check_facts(
        self, commit: Commit[Any], listed: Listed, before: Any, *, is_plain: bool
    ) -> None:
        wrong = [] if is_plain else [*numbers_out_of_range(commit, listed)]
        # No cache can store such a number.
        self._report.damaged = bool(wrong)
        if not wrong and self._facts is not None:
            wrong += self._facts.problems(listed, before)
        if not is_plain:
            events = (event for each in commit.transactions for event in each.events)
            wrong += (problem for event in events for problem in path_problems(event))
        for each in wrong:
            finding = contradiction(self._subject, commit.version, each)
            self._report.findings.append((False, finding))

    def _compare_caches_at(self, version: int, digest: str) -> None:
        report, caches = self._report, self._caches
        report.boundary = version
        self._add_findings(caches.checkpoint(Head(self._builder.freeze(), digest)))
        tile = tile_ending_at(version)
        is_end = version == segment_of(version)[1]
        keys_from, rows_from = (0, 0) if is_end else self._tile_start
        if not is_merged_tile(tile):
            self._add_findings(caches.index(tile, KeyIndex.of(self._pairs[keys_from:])))
            self._tiles.append((tile, slice(rows_from, len(self._rows))))
        self._tile_start = len(self._pairs), len(self._rows)
        if is_end:
            self._add_findings(caches.segment(*segment_of(version), self._lines))

    def _add_findings(self, findings: Iterator[Finding]) -> None:
        self._report.findings.extend((False, each) for each in findings)

    def compare_runs(self) -> None:
        """Compare the runs of file changes that end in the span."""
        if self._subject.has_files:
            self._add_findings(self._caches.runs(self._rows, self._tiles))

    def end(self) -> tuple[bytes, S]:
        """Return the encoded state at the span's end, and the state."""
        state: S = self._builder.freeze()
        return self._subject.log.stream.encode_state(state), state


_OBJECTS: Final = 200_000

WORTH: Final = 30_000
"""Minimum number of commits that makes starting worker processes worthwhile."""


@frozen
class SpanTask:
    """Parameters that all spans of one stream share, sent to worker processes.

    Attributes:
        url: The URL of the stream's store.
        options: The options for opening the store.
        root: The stream's `_ledger` folder.
        stream: The stream's kind, which decodes and folds its events.
        name: The stream's name for messages.
        has_files: True if its commits list data files.
        wanted: Digests recorded outside of the ledger, to look for.
        mends: True if findings shall contain the bytes that restore a cache.
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
    """Pool of worker processes; a context manager, which ends them.

    Args:
        options: Returns the options for opening the store of a URL.
        count: Number of processes; None for the number of usable processors.
    """

    def __init__(
        self, options: Callable[[str], Mapping[str, Any]], count: int | None = None
    ) -> None:
        self._options = options
        self.count = count or _processor_count()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def is_worth_processes(self, subject: Subject[Any, Any], count: int) -> bool:
        """Return True if verifying so many commits of a stream is worth starting processes.

        A store in memory cannot be read by other processes.
        """
        return count >= WORTH and not subject.store.url.startswith("memory:")

    def task(self, subject: Subject[Any, Any], wanted: frozenset[str], *, mends: bool) -> SpanTask:
        """Return the parameters that all spans of a stream share."""
        url = subject.store.url
        return SpanTask(
            url,
            dict(self._options(url)),
            subject.layout.root,
            subject.log.stream,
            subject.name,
            subject.has_files,
            wanted,
            mends,
        )

    def verify(
        self, task: SpanTask, spans: Sequence[VerifiedSpan]
    ) -> Future[list[SpanReport[Any]]]:
        """Submit consecutive spans for verification by one process."""
        return self._start_pool_once().submit(_verify_spans, task, spans)

    def _start_pool_once(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Never forked: a fork inherits locks held by other threads.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, context, initializer=_initialize_worker)
        return self._pool


Died = BrokenProcessPool
"""Error raised by a future whose process died."""


def _processor_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _initialize_worker() -> None:
    # Ctrl-C reaches all processes; the calling process ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A span creates many objects without reference cycles.
    gc.freeze()
    gc.set_threshold(_OBJECTS)


_subjects: dict[tuple[str, str], Subject[Any, Any]] = {}
"""Cache of the stream that this process verifies, so that its store is opened once."""


def _subject(task: SpanTask) -> Subject[Any, Any]:
    key = task.url, task.root
    if key not in _subjects:
        _subjects.clear()
        store = open_store(task.url, task.options)
        log: StreamLog[Any, Any] = StreamLog(store, task.root, task.stream)
        _subjects[key] = Subject(task.name, log, task.has_files)
    return _subjects[key]


def _verify_spans(task: SpanTask, spans: Sequence[VerifiedSpan]) -> list[SpanReport[Any]]:
    found: SpanVerification[Any, Any] = SpanVerification(
        _subject(task), task.wanted, mends=task.mends
    )
    return found.verify_consecutive_spans(spans)
