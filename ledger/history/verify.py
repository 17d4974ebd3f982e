"""Verifying a stream: everything that stands there against what the commits say.

The log is read once from the beginning, commit by commit; nothing that is read stays in memory.
What is found is yielded as it is found, and nothing on the store is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ledger.events.commit import Commit
from ledger.evolution.stream import StateLike
from ledger.history.chain import Chain, Link, extent
from ledger.history.finding import REPAIR, Expected, Finding
from ledger.history.sealing import sealed_last
from ledger.history.shadow import Shadow, last_of
from ledger.history.subject import Subject
from ledger.log.checkpoint import Head
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
from ledger.model.errors import LedgerError

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

Progress = Callable[[int, int], None]
"""Told how many commits were looked at, of how many."""

MOST_DAMAGES = 100
"""After so many damages the rest of a log is not looked at: it is another log, or none."""

_FOREIGN_ADVICE = "look at it and move it away; the ledger neither reads nor removes it"


class Verification(Generic[S, E]):
    """One pass over a stream.

    Args:
        subject: The stream.
        expected: Heads noted elsewhere; those that the log holds are in `met` afterwards.
        on_commit: Told each commit that fits, in order.

    Attributes:
        version: The last commit in the log's folder; -1 when there is none.
        digest: Its file's digest; None when it does not fit.
        first_digest: That of version 0.
        state: After the last commit; None unless the whole log fits.
        met: The expected heads that are still there.
    """

    def __init__(
        self,
        subject: Subject[S, E],
        expected: Iterable[Expected] = (),
        on_commit: Callable[[Commit[E]], object] = lambda _: None,
    ) -> None:
        self._subject = subject
        self._expected = tuple(expected)
        self._digests = {each.digest for each in self._expected}
        self._on_commit = on_commit
        self._shadow = Shadow(subject)
        # Once something does not fit, what follows from it cannot be compared.
        self._is_sound = True
        self._boundary: Head[S] | None = None
        self.version = -1
        self.digest: str | None = None
        self.first_digest: str | None = None
        self.state: S | None = None
        self.met: set[Expected] = set()

    def run(self, on_progress: Progress = lambda _done, _of: None) -> Iterator[Finding]:
        """Yield everything that does not fit, the log's in the order of its versions."""
        found = extent(self._subject)
        self.version = found.last
        for key in found.foreign:
            yield Finding("damage", "no commit has such a name", key, None, _FOREIGN_ADVICE)
        damages = 0
        for finding in self._commits(on_progress):
            yield finding
            damages += finding.kind == "damage"
            if damages == MOST_DAMAGES:
                said = f"{damages} damages were found; the rest of the log was not looked at"
                yield Finding("damage", said, finding.file, finding.version)
                return
        yield from self._leftovers()
        yield from self._hint()

    def _commits(self, on_progress: Progress) -> Iterator[Finding]:
        layout, log = self._subject.layout, self._subject.log
        builder = log.stream.builder(None)
        for each in Chain(self._subject, self.version).walk():
            if isinstance(each, Finding):
                self._is_sound = False
                yield each
                continue
            commit = each.commit
            self._note(each)
            try:
                self._subject.read_lists(commit)
                if self._is_sound:
                    log.fold(builder, commit)
            except LedgerError as error:
                self._is_sound = False
                key = str(getattr(error, "file", layout.commit(commit.version)))
                said = error.message.removeprefix(f"{key} ").split(". ")[0]
                yield Finding("damage", said, key, commit.version)
            if self._is_sound:
                self._on_commit(commit)
                if commit.version and commit.version % CHECKPOINT_INTERVAL == 0:
                    self._boundary = Head(builder.freeze(), each.digest)
                    yield from self._shadow.compare(self._boundary, each)
            on_progress(commit.version + 1, self.version + 1)
        if self._is_sound and self.version >= 0:
            self.state = builder.freeze()

    def _note(self, link: Link[E]) -> None:
        version = link.commit.version
        if link.digest in self._digests:
            noted = (Expected(link.digest), Expected(link.digest, version))
            self.met.update(each for each in self._expected if each in noted)
        if version == 0:
            self.first_digest = link.digest
        if version == self.version:
            self.digest = link.digest

    def _leftovers(self) -> Iterator[Finding]:
        """Look at the names beside the caches: whatever came after the last commit?"""
        layout, store = self._subject.layout, self._subject.store
        hints = {layout.hint, layout.shared.hint}
        segments = layout.segment(0, 0).rpartition("/")[0] + "/"
        folders = {each.removesuffix("LATEST"): last_of for each in sorted(hints)}
        newest = (-1, "")
        for folder, last_by in {**folders, segments: sealed_last}.items():
            for key in store.walk(folder):
                last = last_by(key.removeprefix(folder))
                if last is None and key not in hints:
                    yield Finding("foreign", "no cache has such a name", key, None, _FOREIGN_ADVICE)
                elif last is not None:
                    newest = max(newest, (last, key))
        yield from self._cut(*newest)

    def _cut(self, last: int, key: str) -> Iterator[Finding]:
        """Look whether something was made from a commit that is not there."""
        # Others may have gone on since the log's folder was looked at.
        if last > self.version and not self._subject.store.exists(
            self._subject.layout.commit(last)
        ):
            said = f"the log ends at version {self.version}, but this was made from version {last}"
            yield Finding("damage", said, key, self.version + 1)

    def _hint(self) -> Iterator[Finding]:
        layout, store = self._subject.layout, self._subject.store
        boundary = self._boundary.state.version if self._boundary else 0
        if not self._is_sound or not boundary:
            return
        right = b"%d\n" % boundary
        # Where older clients committed, theirs is as good.
        found = {each: store.read(each.hint) for each in (layout, layout.shared)}
        if set(found.values()) == {None}:
            said, remedy = "the hint at the newest checkpoint is not there", ((layout.hint, right),)
            yield Finding("absent", said, layout.hint, boundary, REPAIR, remedy)
        for each, body in found.items():
            if body is not None and not self._leads_somewhere(body.strip(), each):
                said = "the hint at the newest checkpoint leads nowhere"
                yield Finding("derived", said, each.hint, None, REPAIR, ((each.hint, right),))

    def _leads_somewhere(self, text: bytes, layout: Layout) -> bool:
        if not text.isdigit() or int(text) % CHECKPOINT_INTERVAL:
            return False
        checkpoint = layout.checkpoint(int(text))
        return int(text) <= self.version or self._subject.store.exists(checkpoint)


def unmet(
    expected: Iterable[Expected],
    verified: Sequence[tuple[Subject[Any, Any], Verification[Any, Any]]],
) -> Iterator[Finding]:
    """Yield a finding for each noted head that none of some streams holds any more.

    A cut tail, and a log rewritten whole with a valid chain, show nowhere else.
    """
    met = {each for _, verification in verified for each in verification.met}
    for each in expected:
        if each in met:
            continue
        if len(verified) > 1 or not verified:
            said = f"no log holds the commit noted as {each}: one was cut or rewritten"
            yield Finding("damage", said, "", None)
            continue
        subject, verification = verified[0]
        newest = verification.version
        version = newest if each.version is None else min(each.version, newest + 1)
        said = f"the log does not hold the commit noted as {each}: it was cut or rewritten"
        if each.version is not None and each.version > newest:
            said = f"version {each.version} was noted elsewhere, but the log ends at {newest}"
        yield Finding("damage", said, subject.layout.commit(max(0, version)), version)


def repair(subject: Subject[Any, Any], finding: Finding) -> bool:
    """Restore what a finding is about, if it is derived; return whether it was.

    Writes caches only: a finding about the log has no remedy.

    Raises:
        OSError: The store failed; asking again goes on from there.
    """
    for key, body in finding.remedy:
        subject.store.replace(key, body)
    return bool(finding.remedy)
