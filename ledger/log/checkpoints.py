"""Checkpoints: folded state at every hundredth commit; a cache.

Each fold version has a folder of its own. A checkpoint that cannot be used (absent, torn, changed)
is passed over; the log is the truth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from ledger.events.commit import FORMAT
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
from ledger.state.stream import StateLike, Stream
from ledger.stores import Store

S = TypeVar("S", bound=StateLike)

_MOST_KEPT = 16
"""So many states are kept in memory: searches meet the same few checkpoints again and again."""

_MOST_REACHED = 4
"""So many states that were asked for last are kept: what follows a table asks for a later one each
time, and each format's files stand at one of their own."""

_MOST_OUTLINES = 256
"""So many outlines are kept in memory; they are small, and most searches need no more."""


class _Front(Struct, frozen=True, rename="camel"):
    """What stands at the front of a checkpoint's file: enough to search by bisection."""

    format: int
    fold_version: int
    version: int
    head: str
    check: str


_DECODER = msgspec.json.Decoder(_Front)
_STATE = b',"state":'
_END = b"}"


def _parted(body: bytes) -> tuple[_Front, memoryview] | None:
    """Return a file's front and its state's record; None when it is not whole.

    The record is cut out of it, and read by whoever knows its shape: it may be long.
    """
    begin = body.find(_STATE)
    front = body if begin < 0 else body[:begin]
    try:
        found = _DECODER.decode(front + _END)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    # A view of it: it may be long, and whoever opens a table would copy it again and again.
    record = memoryview(body)[begin + len(_STATE) : -len(_END)]
    is_whole = begin >= 0 and body.endswith(_END)
    return (found, record) if is_whole and _check_of(record) == found.check else None


def _check_of(record: bytes | memoryview) -> str:
    return hashlib.sha256(record).hexdigest()


def named_digest(body: bytes, version: int) -> str | None:
    """Return the commit's digest that a checkpoint's file names; None when it is not whole.

    Args:
        body: The file.
        version: The commit that it has to be of.
    """
    parted = _parted(body)
    return parted[0].head if parted is not None and parted[0].version == version else None


def _heed_not(_version: int) -> None:
    """Do nothing."""


class Head(Struct, Generic[S], frozen=True):
    """A state, and the digest of the commit file that it stands at."""

    state: S
    digest: str


class Checkpoints(Generic[S]):
    """One stream's checkpoints.

    Args:
        store: Where the stream is.
        layout: Under which keys.
        stream: What its states are.
    """

    def __init__(self, store: Store, layout: Layout, stream: Stream[S, Any]) -> None:
        self._store = store
        self._layout = layout
        self._stream = stream
        self._kept: dict[int, Head[S]] = {}
        self._outlines: dict[int, S] = {}
        self._reached: tuple[Head[S], ...] = ()

    def save(self, head: Head[S]) -> None:
        """Keep `head`, and hint at it.

        Raises:
            OSError: It could not be kept; that harms nothing.
        """
        version = head.state.version
        self._store.replace(self._layout.checkpoint(version), self.body(head))
        self._store.replace(self._layout.hint, b"%d\n" % version)

    def body(self, head: Head[S]) -> bytes:
        """Return the file of a state's checkpoint."""
        state = self._stream.encode_state(head.state)
        front = _Front(
            format=FORMAT,
            fold_version=self._stream.fold_version,
            version=head.state.version,
            head=head.digest,
            check=_check_of(state),
        )
        return b"".join((msgspec.json.encode(front)[: -len(_END)], _STATE, state, _END))

    def through(self, store: Store) -> Checkpoints[S]:
        """Return the same as another view of the store has them; what is kept is shared."""
        other = Checkpoints(store, self._layout, self._stream)
        other._kept, other._outlines = self._kept, self._outlines
        return other

    def newest(self, hinted: Callable[[int], None] = _heed_not) -> Head[S] | None:
        """Return the newest checkpoint that can be found without listing.

        Args:
            hinted: Called with the version that the search begins at; 0: with none.
        """
        start = self._hinted() // CHECKPOINT_INTERVAL
        hinted(start * CHECKPOINT_INTERVAL)
        if start and not self._exists(start):
            start = 0
        return self.at_or_before(self._gallop(start) * CHECKPOINT_INTERVAL)

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
        """Return the newest state not after `version` that can be had without folding, or None.

        That is a checkpoint, or what was made of one lately; see `remember`.
        """
        step = version - version % CHECKPOINT_INTERVAL
        lately = [each for each in self._reached if step <= each.state.version <= version]
        if lately:
            return max(lately, key=lambda each: each.state.version)
        return self.at_or_before(version)

    def remember(self, head: Head[S]) -> None:
        """Keep in memory what was asked for: to go on from, instead of from a checkpoint."""
        version = head.state.version
        others = (each for each in self._reached if each.state.version != version)
        # One step, so that no thread waits for another.
        self._reached = (head, *others)[:_MOST_REACHED]

    def outline_at_or_before(self, version: int) -> S | None:
        """Return the state of the newest usable checkpoint not after `version`, or None.

        It is no more than searches ask for; see `Stream.decode_outline`.
        """
        for step in range(version // CHECKPOINT_INTERVAL, 0, -1):
            at = step * CHECKPOINT_INTERVAL
            found = self._outlines.pop(at, None) or self._outline(at)
            if found is not None:
                self._outlines[at] = found
                for oldest in list(self._outlines)[:-_MOST_OUTLINES]:
                    self._outlines.pop(oldest, None)
                return found
        return None

    def _outline(self, version: int) -> S | None:
        kept = self._kept.get(version)
        if kept is not None:
            return kept.state
        found = self._read(version, self._stream.decode_outline)
        return None if found is None else found[0]

    def _hinted(self) -> int:
        hint = self._store.read(self._layout.hint)
        try:
            return max(0, int(hint or b"0"))
        except ValueError:
            return 0

    def _exists(self, step: int) -> bool:
        return self._store.exists(self._layout.checkpoint(step * CHECKPOINT_INTERVAL))

    def _gallop(self, start: int) -> int:
        """Return the last step of a run of existing checkpoints that begins at `start`."""
        low, stride = start, 1
        while self._exists(low + stride):
            low, stride = low + stride, stride * 2
        while stride > 1:
            stride //= 2
            if self._exists(low + stride):
                low += stride
        return low

    def at(self, version: int) -> Head[S] | None:
        """Return the checkpoint of a version; None when there is none to use."""
        found = self._read(version, self._stream.decode_state)
        return None if found is None else Head(*found)

    def has(self, version: int) -> bool:
        """Whether there is a checkpoint of a version that this fold may use, by what it says."""
        return self._file(version) is not None

    def _read(self, version: int, decode: Callable[[memoryview], S]) -> tuple[S, str] | None:
        """Return what is decoded of a checkpoint's record, and the digest that it names."""
        found = self._file(version)
        if found is None:
            return None
        front, record = found
        try:
            return decode(record), front.head
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None

    def _file(self, version: int) -> tuple[_Front, memoryview] | None:
        body = self._store.read(self._layout.checkpoint(version))
        found = None if body is None else _parted(body)
        if found is None:
            return None
        front = found[0]
        wanted = (FORMAT, self._stream.fold_version, version)
        return found if (front.format, front.fold_version, front.version) == wanted else None
