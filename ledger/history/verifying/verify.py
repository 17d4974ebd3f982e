"""Verification of a stream: commits, change files and caches.

The log is read once from the beginning, span by span, or several spans in parallel by worker
processes; nothing that is read stays in memory. Findings are yielded in the order of the log, and
the store is not changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, Generic, TypeVar

from attrs import evolve

from ledger.events.commit import Commit
from ledger.history.verifying.caches import (
    Caches,
    is_merged_tile,
    key_filter_findings,
    last_version_of_name,
    last_version_of_segment,
    names_cache_findings,
    tile_ending_at,
)
from ledger.history.verifying.commits import (
    DuplicateNameSearch,
    Gap,
    Hashes,
    LogFolderContents,
    list_log_folder,
    suspicious_hashes,
)
from ledger.history.verifying.spans import (
    Died,
    SpanReport,
    SpanVerification,
    VerifiedSpan,
    Workers,
    contradiction,
    span_from_end_state,
    state_digest,
)
from ledger.history.verifying.subject import REPAIR, Expected, Finding, Subject
from ledger.log.layout import CHECKPOINT_INTERVAL, SEGMENT_LENGTH, Layout
from ledger.log.replay import START, Position
from ledger.log.segments import segment_of
from ledger.log.stream_log import StreamLog
from ledger.model.errors import LedgerError
from ledger.state.stream import StateLike

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

Progress = Callable[[int, int], None]
"""Called with the number of commits verified, and of all."""

MOST_DAMAGES = 100
"""Maximum number of damages; after them the rest of a log is not verified."""

_FOREIGN_ADVICE = "check it and move it away; the ledger neither reads nor removes it"
_FROM_SEGMENTS = (
    "segments may hold it: lakeledger verify --repair restores it from them, byte for byte; else "
    "restore it from a backup"
)
_MOST_DIGITS = 20
_TOGETHER = 4
"""Number of consecutive spans that one process verifies, starting once."""
_AHEAD = 2
"""Number of tasks queued for each process, so that none is idle."""


class Verification(Generic[S, E]):
    """Verification of one stream, in one pass.

    Args:
        subject: The stream.
        expected: Heads recorded elsewhere; those that the log has are in `met` afterwards.
        on_commit: Called with each valid commit, in order; disables worker processes.
        mends: True if findings about caches shall contain the bytes that restore them, which takes
            time.
        workers: Worker processes for a long log.

    Attributes:
        version: The last version in the log's folder; -1 when there is none.
        digest: The digest of that version's file; None if it is damaged.
        first_digest: The digest of version 0.
        state: The state after the last commit; None unless the whole log is valid.
        met: The expected heads that the log has.
    """

    def __init__(
        self,
        subject: Subject[S, E],
        expected: Iterable[Expected] = (),
        on_commit: Callable[[Commit[E]], object] | None = None,
        *,
        mends: bool = True,
        workers: Workers | None = None,
    ) -> None:
        # Readers choose to trust caches or not; here the caches themselves are verified.
        subject = subject.with_caches()
        self._subject = subject
        self._expected = tuple(expected)
        self._on_commit = on_commit
        self._mends = mends
        self._workers = None if on_commit else workers
        self._wanted = frozenset(each.digest for each in self._expected)
        self._here: SpanVerification[S, E] = SpanVerification(
            subject, self._wanted, mends=mends, keeps_commits=on_commit is not None
        )
        # After a damage, caches of later commits cannot be compared.
        self._is_sound = True
        self._sound_until = -1
        self._ended: bytes | None = None
        self._boundary = 0
        self._blamed: set[int | None] = set()
        self._wrong_caches: set[str] = set()
        self._once, self._files = Hashes(), Hashes()
        self.version = -1
        self.digest: str | None = None
        self.first_digest: str | None = None
        self.state: S | None = None
        self.met: set[Expected] = set()

    def run(self, on_progress: Progress = lambda _done, _of: None) -> Iterator[Finding]:
        """Yield all findings, those about the log in the order of its versions.

        Raises:
            OSError: The store failed.
        """
        found = list_log_folder(self._subject, most=MOST_DAMAGES)
        self.version = found.last
        for key in found.foreign:
            yield Finding("damage", "no commit has such a name", key, None, _FOREIGN_ADVICE)
        damages = 0
        for finding in self._commits(found, on_progress):
            yield finding
            damages += finding.kind == "damage"
            if damages == MOST_DAMAGES:
                said = f"{damages} damages were found; the rest of the log was not verified"
                yield Finding("damage", said, finding.file, finding.version)
                return
        if self._is_sound and self._ended is not None:
            self.state = self._subject.log.stream.decode_state(self._ended)
        if self._is_sound and self._boundary:
            caches = Caches(self._subject, self._mends)
            yield from key_filter_findings(caches, self._boundary, frozenset(self._wrong_caches))
        if self._is_sound and self._ended is not None and self._subject.has_files:
            caches = Caches(self._subject, self._mends)
            yield from names_cache_findings(caches, frozenset(self._wrong_caches))
        yield from self._repeats()
        yield from self._leftovers()
        yield from self._hint()

    def _commits(self, found: LogFolderContents, on_progress: Progress) -> Iterator[Finding]:
        workers = self._workers
        several = workers is not None and workers.is_worth_processes(self._subject, found.last)
        run = self._by_workers if several else self._one_by_one
        for span, report in run(found):
            yield from self._findings(span, report)
            yield from self._merged(span, report)
            on_progress(span.last + 1, found.last + 1)

    def _one_by_one(self, found: LogFolderContents) -> Iterator[tuple[VerifiedSpan, SpanReport[E]]]:
        for span in _spans(found):
            yield span, self._alone(span)

    def _alone(self, span: VerifiedSpan) -> SpanReport[E]:
        """Verify a span from the end state of the previous one, in this process."""
        return self._here.run(span_from_end_state(span, self._ended if self._is_sound else None))

    def _by_workers(self, found: LogFolderContents) -> Iterator[tuple[VerifiedSpan, SpanReport[E]]]:
        workers = self._workers
        if workers is None:
            raise AssertionError("no processes were given")
        task = workers.task(self._subject, self._wanted, mends=self._mends)
        lane = _Lane(self._subject)
        pending: deque[tuple[list[VerifiedSpan], Future[list[SpanReport[E]]]]] = deque()
        spans = _spans(found)
        is_alive = True
        begun = -1
        while True:
            while is_alive and len(pending) < _AHEAD * workers.count:
                # Smaller tasks towards the end, so that all processes finish together.
                left = (found.last - begun) // (SEGMENT_LENGTH * _AHEAD * workers.count)
                some = [*islice(spans, min(max(left, 1), _TOGETHER))]
                if not some:
                    break
                begun = some[-1].last
                some[0] = (
                    lane.begun(some[0]) if self._is_sound else span_from_end_state(some[0], None)
                )
                pending.append((some, workers.verify(task, some)))
            if not pending:
                break
            some, future = pending.popleft()
            try:
                reports = future.result()
            except Died:
                is_alive = False
                yield from ((span, self._alone(span)) for span in some)
            else:
                for span, report in zip(some, reports, strict=True):
                    yield span, self._fitting(span, report)
        for span in spans:
            yield span, self._alone(span)

    def _fitting(self, span: VerifiedSpan, report: SpanReport[E]) -> SpanReport[E]:
        """Return the report if it started from the previous span's end state, or verify again."""
        if not self._is_sound or span.first == 0 or self._ended is None:
            return report
        return report if report.began == state_digest(self._ended) else self._alone(span)

    def _findings(self, span: VerifiedSpan, report: SpanReport[E]) -> Iterator[Finding]:
        """Yield the findings of a span's report, and add its results."""
        for holds_anyway, each in _in_order(self._subject, span, report):
            if holds_anyway:
                # Adjacent spans both check the commit between them.
                if each.version in self._blamed:
                    continue
                self._blamed.add(each.version)
            elif not self._is_sound:
                continue
            elif each.kind in {"absent", "derived"}:
                self._wrong_caches.add(each.file)
            yield each
        self._note(report)
        if self._is_sound:
            self._once.extend(report.repeats.once)
            self._files.extend(report.repeats.files)
            self._boundary = report.boundary or self._boundary
            self._ended = report.ended
            self._is_sound = report.ended is not None and not report.damaged
            if self._on_commit is not None:
                for commit in report.commits:
                    self._on_commit(commit)
        if self._is_sound:
            self._sound_until = span.last

    def _note(self, report: SpanReport[E]) -> None:
        for version, digest in report.digests.items():
            noted = (Expected(digest), Expected(digest, version))
            self.met.update(each for each in self._expected if each in noted)
            if version == 0:
                self.first_digest = digest
            if version == self.version:
                self.digest = digest

    def _merged(self, span: VerifiedSpan, report: SpanReport[E]) -> Iterator[Finding]:
        """Compare the caches that end with a span and merge smaller ones."""
        if not self._is_sound or not report.boundary or report.boundary != span.last:
            return
        tile = tile_ending_at(span.last)
        if not is_merged_tile(tile):
            return
        wrong = frozenset(self._wrong_caches)
        for each in Caches(self._subject, self._mends).merged(tile, wrong):
            self._wrong_caches.add(each.file)
            yield each

    def _repeats(self) -> Iterator[Finding]:
        """Yield findings about duplicate names, as far as the log is valid."""
        twice, out_of_turn = suspicious_hashes(self._once, self._files)
        if not twice and not out_of_turn:
            return
        culprits = DuplicateNameSearch(twice, out_of_turn, self._subject.usual)
        live = self._subject.live
        log: StreamLog[Any, Any] = self._subject.log
        for read in log.reader.after(START, self._sound_until):
            listed = [*live.listed(read.commit)] if live else []
            for said in culprits.problems(read.commit, listed):
                yield contradiction(self._subject, read.commit.version, said)

    def _leftovers(self) -> Iterator[Finding]:
        """Yield findings about caches of versions after the last commit, and foreign files."""
        layout, store = self._subject.layout, self._subject.store
        known = {layout.hint, layout.names, layout.heads}
        folders = {
            layout.hint.removesuffix("LATEST"): last_version_of_name,
            layout.segment(0, 0).rpartition("/")[0] + "/": last_version_of_segment,
        }
        newest = (-1, "")
        for folder, last_by in folders.items():
            for key in store.walk(folder):
                last = last_by(key.removeprefix(folder))
                if last is None and key not in known and not layout.is_page(key):
                    yield Finding("foreign", "no cache has such a name", key, None, _FOREIGN_ADVICE)
                elif last is not None:
                    newest = max(newest, (last, key))
        yield from self._cut(*newest)

    def _cut(self, last: int, key: str) -> Iterator[Finding]:
        """Yield a finding if a cache was written for a commit that does not exist."""
        # Other writers may have appended since the log's folder was listed.
        if last > self.version and not self._subject.store.exists(
            self._subject.layout.commit(last)
        ):
            said = f"the log ends at version {self.version}, but this was written at version {last}"
            yield Finding("damage", said, key, self.version + 1)

    def _hint(self) -> Iterator[Finding]:
        layout, store = self._subject.layout, self._subject.store
        boundary = self._boundary
        if not self._is_sound or not boundary:
            return
        right = b"%d\n" % boundary
        body, remedy = store.read(layout.hint), ((layout.hint, right),)
        if body is None:
            said = "the hint at the newest checkpoint is missing"
            yield Finding("absent", said, layout.hint, boundary, REPAIR, remedy)
        elif not self._leads_somewhere(body.strip(), layout):
            said = "the hint at the newest checkpoint names none that exists"
            yield Finding("derived", said, layout.hint, None, REPAIR, remedy)

    def _leads_somewhere(self, text: bytes, layout: Layout) -> bool:
        if not text.isdigit() or len(text) > _MOST_DIGITS or int(text) % CHECKPOINT_INTERVAL:
            return False
        checkpoint = layout.checkpoint(int(text))
        return int(text) <= self.version or self._subject.store.exists(checkpoint)


def _spans(found: LogFolderContents) -> Iterator[VerifiedSpan]:
    """Yield the spans of a log, one for the commits of each segment, without empty ones.

    Example:
        >>> far = segment_of(10**15)[0]
        >>> [each.first for each in _spans(LogFolderContents(far, (), ((5, far - 1),)))] == [0, far]
        True
    """
    first = 0
    while first <= found.last:
        inside = next((gap for gap in found.gaps if gap[0] <= first <= gap[1]), None)
        begin, end = segment_of(first)
        if inside is not None and inside[1] >= end:
            # A long gap: skip whole segments.
            first = segment_of(inside[1] + 1)[0]
            continue
        end = min(end, found.last)
        gaps = tuple(gap for gap in found.gaps if gap[0] <= end and gap[1] >= begin)
        yield VerifiedSpan(begin, end, found.last, gaps)
        first = end + 1


def _in_order(
    subject: Subject[Any, Any], span: VerifiedSpan, report: SpanReport[Any]
) -> list[tuple[bool, Finding]]:
    """Return a report's findings with the gaps that begin in its span, by version."""
    found = [*((True, _gap(subject, gap)) for gap in span.gaps), *report.findings]
    return sorted(found, key=lambda each: -1 if each[1].version is None else each[1].version)


def _gap(subject: Subject[Any, Any], gap: Gap) -> Finding:
    first, last = gap
    said = f"the commit is missing, but version {last + 1} exists"
    if last > first:
        said = f"the commits {first} to {last} are missing, but version {last + 1} exists"
    segments = {segment_of(each) for each in (first, last)}
    if any(subject.store.exists(subject.layout.segment(*each)) for each in segments):
        return Finding("damage", said, subject.layout.commit(first), first, _FROM_SEGMENTS)
    return Finding("damage", said, subject.layout.commit(first), first)


class _Lane(Generic[S, E]):
    """Start states of spans without a checkpoint before them, computed by folding the log.

    Args:
        subject: The stream.
    """

    def __init__(self, subject: Subject[S, E]) -> None:
        self._log = subject.log
        self._builder: Any = None
        self._position = START

    def begun(self, span: VerifiedSpan) -> VerifiedSpan:
        """Return a span with its start state, if no checkpoint has it."""
        before = span.first - 1
        if before < 0 or self._log.checkpoints.has(before):
            return evolve(span, start=None)
        try:
            return evolve(span, start=self._log.stream.encode_state(self._at(before)))
        except (LedgerError, OverflowError):
            # The verification of the earlier commits reports the error.
            return evolve(span, start=None, folds=False)

    def _at(self, version: int) -> S:
        nearest = self._log.checkpoints.at_or_before(version)
        if nearest is not None and nearest.state.version > self._position.version:
            self._builder = self._log.stream.builder(nearest.state)
            self._position = Position(nearest.state.version, nearest.digest)
        elif self._builder is None:
            self._builder = self._log.stream.builder(None)
        for read in self._log.reader.after(self._position, version):
            self._log.fold(self._builder, read.commit)
            self._position = Position(read.commit.version, read.digest)
        state: S = self._builder.freeze()
        return state


def unmet(
    expected: Iterable[Expected],
    verified: Sequence[tuple[Subject[Any, Any], Verification[Any, Any]]],
) -> Iterator[Finding]:
    """Yield a finding for each recorded head that none of the streams has any more.

    This is the only check that finds a truncated log, or one rewritten whole with a valid chain.
    """
    met = {each for _, verification in verified for each in verification.met}
    for each in expected:
        if each in met:
            continue
        if len(verified) > 1 or not verified:
            said = f"no log has the commit recorded as {each}: one was cut or rewritten"
            yield Finding("damage", said, "", None)
            continue
        subject, verification = verified[0]
        newest = verification.version
        version = newest if each.version is None else min(each.version, newest + 1)
        said = f"the log does not have the commit recorded as {each}: it was cut or rewritten"
        if each.version is not None and each.version > newest:
            said = f"version {each.version} was recorded elsewhere, but the log ends at {newest}"
        yield Finding("damage", said, subject.layout.commit(max(0, version)), version)


def repair(subject: Subject[Any, Any], finding: Finding) -> bool:
    """Restore the derived file of a finding; return whether there was one to restore.

    Writes caches only: a finding about the log has no remedy.

    Raises:
        OSError: The store failed; a retry continues.
    """
    for key, body in finding.remedy:
        subject.store.replace(key, body)
    return bool(finding.remedy)
