"""Folded state, saved at every hundredth commit: a cache that may always be deleted.

A checkpoint that cannot be used (absent, torn, changed, of another fold version) is passed over;
the log is the truth.
"""

from __future__ import annotations

import hashlib
from typing import Any, Generic, TypeVar

import msgspec
from attrs import frozen
from msgspec import Raw, Struct

from ledger.evolution.stream import StateLike, Stream
from ledger.log.layout import CHECKPOINT_INTERVAL, Layout
from ledger.stores import Store

S = TypeVar("S", bound=StateLike)
FORMAT = 1


class _File(Struct, frozen=True, rename="camel"):
    """A checkpoint's file: what stands at its front is enough to search by bisection."""

    format: int
    fold_version: int
    version: int
    head: str
    check: str
    state: Raw


_DECODER = msgspec.json.Decoder(_File)


@frozen
class Head(Generic[S]):
    """A state, and the digest of the commit file that it stands at."""

    state: S
    digest: str


class Checkpoints(Generic[S]):
    """One stream's checkpoints."""

    def __init__(self, store: Store, layout: Layout, stream: Stream[S, Any]) -> None:
        self._store = store
        self._layout = layout
        self._stream = stream

    def body(self, head: Head[S]) -> bytes:
        """Return the file of a checkpoint."""
        state = self._stream.encode_state(head.state)
        return msgspec.json.encode(
            _File(
                format=FORMAT,
                fold_version=self._stream.fold_version,
                version=head.state.version,
                head=head.digest,
                check=hashlib.sha256(state).hexdigest(),
                state=Raw(state),
            )
        )

    def save(self, head: Head[S]) -> None:
        """Keep `head`, and hint at it.

        Raises:
            OSError: It could not be kept; that harms nothing.
        """
        self._store.replace(self._layout.checkpoint(head.state.version), self.body(head))
        self._store.replace(self._layout.hint, b"%d\n" % head.state.version)

    def newest(self) -> Head[S] | None:
        """Return the newest checkpoint that can be found without listing."""
        start = self._hinted() // CHECKPOINT_INTERVAL
        if not self._exists(start):
            start = 0
        return self.at_or_before(self._gallop(start) * CHECKPOINT_INTERVAL)

    def at_or_before(self, version: int) -> Head[S] | None:
        """Return the newest usable checkpoint not after `version`, or None."""
        for step in range(version // CHECKPOINT_INTERVAL, 0, -1):
            found = self.at(step * CHECKPOINT_INTERVAL)
            if found is not None:
                return found
        return None

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
        file = self._file(version)
        if file is None:
            return None
        try:
            state = bytes(file.state)
            if hashlib.sha256(state).hexdigest() != file.check:
                return None
            return Head(self._stream.decode_state(state), file.head)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None

    def has(self, version: int) -> bool:
        """Whether there is a checkpoint of a version that this fold may use, by what it says."""
        return self._file(version) is not None

    def _file(self, version: int) -> _File | None:
        body = self._store.read(self._layout.checkpoint(version))
        try:
            file = None if body is None else _DECODER.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        wanted = (FORMAT, self._stream.fold_version, version)
        fits = file is not None and (file.format, file.fold_version, file.version) == wanted
        return file if fits else None
