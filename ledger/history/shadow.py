"""The caches as they should be: made by the code that makes them, beside those that stand there.

A shadow store reads the log from the real one and takes every write into memory. At a checkpoint's
version the stream saves its caches onto it, and what it wrote is compared with what stands there.
Larger pieces are merged from smaller ones, which were compared before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Generic, TypeVar

import msgspec

from ledger.evolution.stream import StateLike
from ledger.files.runs import Runs
from ledger.history.chain import Link, nearly
from ledger.history.finding import FROM_BACKUP, REPAIR, Finding
from ledger.history.subject import Subject
from ledger.log.checkpoint import Head, named_digest
from ledger.log.layout import Layout
from ledger.log.lookup import tiles
from ledger.log.segment import is_same_segment, segment_of
from ledger.stores import Store
from ledger.stores.base import Draft
from ledger.stores.clock import Clock

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

_CHECK: Final = ".sha256"
_piece_of = re.compile(
    r"(?:keys|ids|files)/(\d{20})-(\d{20})\.(?:idx|\d{4,}\.idx|parquet|parquet\.sha256)"
).fullmatch
_checkpoint_of = re.compile(r"(\d{20})\.json").fullmatch


def last_of(name: str) -> int | None:
    """Return the version that a cache ends at, by its name below `checkpoints/`; None: no cache.

    Example:
        >>> last_of("00000000000000000100.json"), last_of("notes.txt")
        (100, None)
    """
    found = _checkpoint_of(name)
    if found:
        return int(found[1])
    piece = _piece_of(name)
    return int(piece[2]) if piece else None


class _ShadowStore:
    """A store that reads from another one and keeps what is written to itself."""

    def __init__(self, inner: Store, caches: str) -> None:
        self._inner = inner
        self._caches = caches
        self.version = -1
        self.written: dict[str, bytes] = {}

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def is_near(self) -> bool:
        return self._inner.is_near

    def clock(self) -> Clock | None:
        return self._inner.clock()

    def ask_clock(self) -> Clock | None:
        return self._inner.ask_clock()

    def read(self, key: str) -> bytes | None:
        if key in self.written:
            return self.written[key]
        # What ends here was not compared yet.
        if key.startswith(self._caches) and self._ends_here(key):
            return None
        return self._inner.read(key)

    def _ends_here(self, key: str) -> bool:
        last = last_of(key.removeprefix(self._caches))
        return last is None or last >= self.version

    def replace(self, key: str, body: bytes) -> None:
        self.written[key] = body

    def create(self, key: str, body: bytes) -> bool:
        self.written[key] = body
        return True

    def confirm(self, key: str) -> bytes | None:
        return self.read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return self._inner.read_many(keys)

    def exists(self, key: str) -> bool:
        return self.read(key) is not None

    def keys(self, prefix: str) -> Iterator[str]:
        return self._inner.keys(prefix)

    def walk(self, prefix: str) -> Iterator[str]:
        return self._inner.walk(prefix)

    def delete(self, key: str) -> None:
        self.written.pop(key, None)

    def drafts(self, prefix: str) -> Iterator[Draft]:
        return self._inner.drafts(prefix)

    def discard(self, draft: Draft) -> None:
        """Nothing of the real store is removed."""

    def lock(self, key: str) -> AbstractContextManager[None]:
        return self._inner.lock(key)


class _Envelope(msgspec.Struct, rename="camel"):
    """As much of a checkpoint as tells who reads it."""

    fold_version: int


class Shadow(Generic[S, E]):
    """Compares a stream's caches, one checkpoint's version after the other.

    Args:
        subject: The stream; its commits were found sound as far as the shadow is asked.
    """

    def __init__(self, subject: Subject[S, E]) -> None:
        self._subject = subject
        self._folder = subject.layout.shared.hint.removesuffix("LATEST")
        self._store = _ShadowStore(subject.store, self._folder)

    def compare(self, head: Head[S], link: Link[E]) -> Iterator[Finding]:
        """Yield what is wrong with the caches that end at a checkpoint's version.

        Args:
            head: The state after that commit, replayed.
            link: The commit.
        """
        store = self._store
        store.version = version = head.state.version
        before = set(store.written)
        # A stream opened anew, so that no index stays in memory.
        log = self._subject.on(store)
        log.advance(head, link.commit)
        log.keep_next()
        # The hint is looked at once, in the end.
        for each, body in log.checkpoints.bodies(head):
            key = each.checkpoint(version)
            store.written.pop(each.hint, None)
            is_due = store.written.pop(key, None) is not None
            if is_due or self._subject.store.exists(key):
                yield from self._checkpoint(head, each, body)
        yield from self._segment(version)
        for key in sorted(set(store.written) - before):
            if not key.endswith(_CHECK) or key.removesuffix(_CHECK) not in store.written:
                yield from self._piece(key, version)
        self._forget(before, version)

    def _forget(self, before: set[str], version: int) -> None:
        """Keep only what is other than on the real store, and is still to be merged."""
        written, real = self._store.written, self._subject.store
        for key in set(written) - before:
            if real.read(key) == written[key]:
                del written[key]
        first, _ = next(tiles(version))
        for key in before & set(written):
            piece = _piece_of(key.removeprefix(self._folder))
            if piece and int(piece[1]) >= first:
                del written[key]

    def _segment(self, version: int) -> Iterator[Finding]:
        span = segment_of(version)
        if span[1] != version:
            return
        key = self._subject.layout.segment(*span)
        self._store.written.pop(key, None)
        right, there = self._subject.log.segments.made(*span), self._subject.store.read(key)
        if right is None:
            if there is not None:
                said = "its commits are too long for a segment, and it is passed over"
                yield Finding("foreign", said, key, version, "remove it; the log holds them all")
        elif there is None:
            said = "the segment is not there"
            yield Finding("absent", said, key, version, REPAIR, ((key, right),))
        elif there != right and not is_same_segment(right, there):
            said = "the segment is other than the log makes it"
            yield Finding("derived", said, key, version, REPAIR, ((key, right),))

    def _piece(self, key: str, version: int) -> Iterator[Finding]:
        """Compare a key index, or a run and its check."""
        right, real = self._store.written, self._subject.store
        keys = [key, key + _CHECK] if key + _CHECK in right else [key]
        wrong = [each for each in keys if real.read(each) != right[each]]
        if not wrong or (key.endswith(".parquet") and self._holds_the_same(version)):
            return
        what = "the key index" if key.endswith(".idx") else "the run of file changes"
        remedy = tuple((each, right[each]) for each in wrong)
        if all(real.read(each) is None for each in wrong):
            yield Finding("absent", f"{what} is not there", key, version, REPAIR, remedy)
        else:
            said = f"{what} is other than the log makes it"
            yield Finding("derived", said, key, version, REPAIR, remedy)

    def _holds_the_same(self, version: int) -> bool:
        """Whether the run there says the same in other bytes, as another library writes them."""
        span = next(tiles(version))
        there = Runs(self._subject.store, self._subject.layout).load(*span)
        return there is not None and there == Runs(self._store, self._subject.layout).load(*span)

    def _checkpoint(self, head: Head[S], layout: Layout, right: bytes) -> Iterator[Finding]:
        """Compare a checkpoint.

        Args:
            head: What it is of.
            layout: Where it belongs: among this version's, or among those of older clients.
            right: What it should be.
        """
        version = head.state.version
        key = layout.checkpoint(version)
        there = self._subject.store.read(key)
        remedy = ((key, right),)
        if there is None:
            # Where older clients committed, theirs is as good.
            if layout != self._subject.layout or not self._is_shared(version):
                yield Finding("absent", "the checkpoint is not there", key, version, REPAIR, remedy)
        elif self._is_of_another_fold(there, right):
            said = "another version of lakeledger made the checkpoint; this one passes it over"
            yield Finding("absent", said, key, version, "nothing needs to be done")
        elif _is_of_another_log(there, head):
            said = "the checkpoint was made from another commit of that version"
            yield Finding("damage", said, key, version, f"the log was changed: {FROM_BACKUP}")
        elif there != right:
            said = "the checkpoint is other than replaying the log makes it"
            yield Finding("derived", said, key, version, REPAIR, remedy)

    def _is_shared(self, version: int) -> bool:
        return self._subject.store.exists(self._subject.layout.shared.checkpoint(version))

    def _is_of_another_fold(self, there: bytes, right: bytes) -> bool:
        try:
            found = msgspec.json.decode(there, type=_Envelope)
        except (msgspec.DecodeError, ValueError):
            return False
        return found.fold_version != msgspec.json.decode(right, type=_Envelope).fold_version


def _is_of_another_log(there: bytes, head: Head[Any]) -> bool:
    """Whether a checkpoint is whole, of the head's version, and names another commit's digest."""
    found = named_digest(there, head.state.version)
    return found is not None and found != head.digest and not nearly(found, head.digest)
