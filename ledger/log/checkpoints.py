"""Checkpoints: folded state at every hundredth commit; a cache.

Each fold version has its own folder. A checkpoint that is missing, torn or changed is ignored: the
log is the truth. Long mappings of a state are in pages beside it, files named by their content,
that checkpoints share; a page that is missing is taken from a replay of the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from ledger.events.commit import FORMAT
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
from ledger.state.paged_map import page_name
from ledger.state.stream import EncodedCheckpoint, StateLike, Stream
from ledger.stores import Store
from ledger.stores.concurrency import run_concurrently

S = TypeVar("S", bound=StateLike)

_MOST_KEPT = 16
"""Number of checkpoints cached in memory: binary searches probe the same few again and again."""

_MOST_REACHED = 4
"""Number of recently requested states cached in memory: each projection of a table requests the
state at its own position, and later ones from there on."""

_MOST_OUTLINES = 256
"""Number of state outlines cached in memory; they are small, and most searches need no more."""


class _CheckpointHeader(Struct, frozen=True, rename="camel"):
    """Header of a checkpoint file."""

    format: int
    fold_version: int
    version: int
    head: str
    check: str


_DECODER = msgspec.json.Decoder(_CheckpointHeader)
_STATE = b',"state":'
_END = b"}"


def _split_checkpoint(body: bytes) -> tuple[_CheckpointHeader, memoryview] | None:
    """Return a checkpoint file's header and its encoded state; None when it is torn or changed.

    The state is not decoded here: it may be long, and the stream knows its schema.
    """
    begin = body.find(_STATE)
    front = body if begin < 0 else body[:begin]
    try:
        found = _DECODER.decode(front + _END)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    # A view, so that opening a table does not copy a long state.
    record = memoryview(body)[begin + len(_STATE) : -len(_END)]
    is_whole = begin >= 0 and body.endswith(_END)
    return (found, record) if is_whole and _checksum_of(record) == found.check else None


def _checksum_of(record: bytes | memoryview) -> str:
    return hashlib.sha256(record).hexdigest()


def read_commit_digest(body: bytes, version: int) -> str | None:
    """Return the commit digest in a checkpoint file; None when the file is torn or changed.

    Args:
        body: The file's bytes.
        version: The version that the checkpoint must be of.
    """
    parted = _split_checkpoint(body)
    return parted[0].head if parted is not None and parted[0].version == version else None


def _ignore_version(_version: int) -> None:
    """Do nothing."""


class Head(Struct, Generic[S], frozen=True):
    """A state, and the digest of the file of its last commit."""

    state: S
    digest: str


class _PagesOfCheckpoint(Generic[S]):
    """Page files of one checkpoint, and the state that replaces missing ones."""

    def __init__(
        self, store: Store, layout: Layout, version: int, replay: Callable[[int], S] | None
    ) -> None:
        self._store = store
        self._layout = layout
        self._version = version
        self._replay = replay
        self._replayed: S | None = None

    def read(self, names: Sequence[str]) -> list[bytes | None]:
        """Return the bytes of pages; None for one whose file is missing, torn or changed."""
        bodies = self._store.read_many([self._layout.page(each) for each in names])
        return [
            body if body is not None and page_name(body) == name else None
            for name, body in zip(names, bodies, strict=True)
        ]

    def replayed(self) -> S:
        """Return the state of the checkpoint's version, folded from the log once.

        Raises:
            OSError: The log could not be read.
        """
        if self._replayed is None:
            if self._replay is None:
                raise LookupError("this stream's checkpoints have no pages")
            self._replayed = self._replay(self._version)
        return self._replayed


class Checkpoints(Generic[S]):
    """One stream's checkpoints.

    Args:
        store: The stream's store.
        layout: The stream's keys.
        stream: Encodes and decodes its states.
        replay: Returns the state of a version, folded from the log's beginning; None for a stream
            whose checkpoints have no pages.
    """

    def __init__(
        self,
        store: Store,
        layout: Layout,
        stream: Stream[S, Any],
        replay: Callable[[int], S] | None = None,
    ) -> None:
        self._store = self._page_store = store
        self._layout = layout
        self._stream = stream
        self._replay = replay
        self._kept: dict[int, Head[S]] = {}
        self._outlines: dict[int, S] = {}
        self._reached: tuple[Head[S], ...] = ()

    def save(self, head: Head[S]) -> None:
        """Write the checkpoint of `head`, and point the hint file to it.

        Raises:
            OSError: It could not be written; the log is unaffected.
        """
        version = head.state.version
        body, encoded = self._encode(head)
        run_concurrently(
            lambda page: self._store.replace(self._layout.page(page[0]), page[1]),
            encoded.pages.items(),
        )
        self._store.replace(self._layout.checkpoint(version), body)
        encoded.mark_stored()
        self._store.replace(self._layout.hint, b"%d\n" % version)

    def files(self, head: Head[S]) -> dict[str, bytes]:
        """Return the files of the checkpoint of `head` by key: new pages, then the checkpoint."""
        body, encoded = self._encode(head)
        pages = {self._layout.page(name): page for name, page in encoded.pages.items()}
        return {**pages, self._layout.checkpoint(head.state.version): body}

    def _encode(self, head: Head[S]) -> tuple[bytes, EncodedCheckpoint]:
        encoded = self._stream.encode_checkpoint(head.state)
        state = encoded.record
        front = _CheckpointHeader(
            format=FORMAT,
            fold_version=self._stream.fold_version,
            version=head.state.version,
            head=head.digest,
            check=_checksum_of(state),
        )
        whole = b"".join((msgspec.json.encode(front)[: -len(_END)], _STATE, state, _END))
        return whole, encoded

    def read_through(self, store: Store) -> Checkpoints[S]:
        """Return these checkpoints read through another store; the memory caches are shared."""
        other = Checkpoints(store, self._layout, self._stream, self._replay)
        # Pages are read later, when another store's answers are not those of this opening.
        other._page_store = self._page_store
        other._kept, other._outlines = self._kept, self._outlines
        return other

    def newest(self, hinted: Callable[[int], None] = _ignore_version) -> Head[S] | None:
        """Return the newest checkpoint that can be found without listing.

        Args:
            hinted: Called with the version where the search begins; 0: the log's beginning.
        """
        start = self.read_hint() // CHECKPOINT_INTERVAL
        hinted(start * CHECKPOINT_INTERVAL)
        if start and not self._checkpoint_exists(start):
            start = 0
        return self.at_or_before(self._find_run_end(start) * CHECKPOINT_INTERVAL)

    def at_or_before(self, version: int) -> Head[S] | None:
        """Return the newest usable checkpoint not after `version`, or None."""
        for step in range(version // CHECKPOINT_INTERVAL, 0, -1):
            at = step * CHECKPOINT_INTERVAL
            found = self._kept.pop(at, None) or self.at(at)
            if found is not None:
                self._kept[at] = found
                for oldest in list(self._kept)[:-_MOST_KEPT]:
                    self._kept.pop(oldest, None)
                return found
        return None

    def nearest(self, version: int) -> Head[S] | None:
        """Return the newest cached or checkpointed state not after `version`, or None.

        Cached states are those that `cache_head` was given lately.
        """
        step = version - version % CHECKPOINT_INTERVAL
        lately = [each for each in self._reached if step <= each.state.version <= version]
        if lately:
            return max(lately, key=lambda each: each.state.version)
        return self.at_or_before(version)

    def cache_head(self, head: Head[S]) -> None:
        """Cache a folded state in memory, to fold later versions from it."""
        version = head.state.version
        others = (each for each in self._reached if each.state.version != version)
        # One assignment, so that no thread needs a lock.
        self._reached = (head, *others)[:_MOST_REACHED]

    def outline_at_or_before(self, version: int) -> S | None:
        """Return the outline of the newest usable checkpoint not after `version`, or None.

        An outline has only the fields that searches read; see `Stream.decode_outline`.
        """
        for step in range(version // CHECKPOINT_INTERVAL, 0, -1):
            at = step * CHECKPOINT_INTERVAL
            found = self._outlines.pop(at, None) or self._read_outline(at)
            if found is not None:
                self._outlines[at] = found
                for oldest in list(self._outlines)[:-_MOST_OUTLINES]:
                    self._outlines.pop(oldest, None)
                return found
        return None

    def _read_outline(self, version: int) -> S | None:
        kept = self._kept.get(version)
        if kept is not None:
            return kept.state
        found = self._read_checkpoint(version, self._stream.decode_outline)
        return None if found is None else found[0]

    def read_hint(self) -> int:
        """Return the version of a recent checkpoint; 0 if there is none, or it is not known."""
        hint = self._store.read(self._layout.hint)
        try:
            return max(0, int(hint or b"0"))
        except ValueError:
            return 0

    def _checkpoint_exists(self, step: int) -> bool:
        return self._store.exists(self._layout.checkpoint(step * CHECKPOINT_INTERVAL))

    def _find_run_end(self, start: int) -> int:
        """Return the last number of a run of existing checkpoints that begins at `start`."""
        low, stride = start, 1
        while self._checkpoint_exists(low + stride):
            low, stride = low + stride, stride * 2
        while stride > 1:
            stride //= 2
            if self._checkpoint_exists(low + stride):
                low += stride
        return low

    def at(self, version: int) -> Head[S] | None:
        """Return the checkpoint of a version; None when none is usable."""
        pages = _PagesOfCheckpoint(self._page_store, self._layout, version, self._replay)
        found = self._read_checkpoint(
            version, lambda record: self._stream.decode_checkpoint(record, pages)
        )
        return None if found is None else Head(*found)

    def has(self, version: int) -> bool:
        """Return whether a usable checkpoint of a version exists, by its header and checksum."""
        return self._read_checkpoint_file(version) is not None

    def _read_checkpoint(
        self, version: int, decode: Callable[[memoryview], S]
    ) -> tuple[S, str] | None:
        """Return the decoded state of a checkpoint, and the commit digest in its header."""
        found = self._read_checkpoint_file(version)
        if found is None:
            return None
        front, record = found
        try:
            return decode(record), front.head
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None

    def _read_checkpoint_file(self, version: int) -> tuple[_CheckpointHeader, memoryview] | None:
        body = self._store.read(self._layout.checkpoint(version))
        found = None if body is None else _split_checkpoint(body)
        if found is None:
            return None
        front = found[0]
        wanted = (FORMAT, self._stream.fold_version, version)
        return found if (front.format, front.fold_version, front.version) == wanted else None
