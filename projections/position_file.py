"""Position file: the version that a projection reflects."""

from __future__ import annotations

import hashlib
from typing import Generic, Protocol, Self, TypeVar

import msgspec
from attrs import frozen

from ledger.events.commit import FORMAT
from ledger.log.layout import Layout
from ledger.stores import Store

_T = TypeVar("_T")


class FilesPosition(Protocol):
    """How far a format's files have come; what else a run needs to go on is the format's own."""

    @property
    def version(self) -> int:
        """The last commit applied; -1 before the first."""

    @property
    def commit(self) -> str:
        """The digest of that commit; empty where it was not kept."""

    @property
    def garbage(self) -> tuple[str, ...]:
        """Files that nothing names any more and that are still to be taken away.

        In what a run returns: all that it found. In what is kept: those that need not stay.
        """

    @property
    def leaving_since(self) -> int:
        """Since when the oldest of the files that stay a while has been leaving.

        A time of the table's commits, or one of `projections.leaving`'s words for none.
        """

    def with_leaving(self, garbage: tuple[str, ...], since: int) -> Self:
        """Return this position with other garbage and another such time."""


P = TypeVar("P", bound=FilesPosition)


class _File(msgspec.Struct, rename="camel"):
    format: int
    check: str
    position: msgspec.Raw


def load_position(store: Store, key: str, kind: type[_T]) -> _T | None:
    """Return the position kept under a key; None when none can be used.

    Args:
        store: The table's.
        key: Where the file is.
        kind: What it holds.
    """
    body = store.read(key)
    if body is None:
        return None
    try:
        file = msgspec.json.decode(body, type=_File)
        content = bytes(file.position)
        if file.format != FORMAT or hashlib.sha256(content).hexdigest() != file.check:
            return None
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, ValueError):
        return None


def save_position(store: Store, key: str, position: object) -> None:
    """Keep a position, after everything up to it was written."""
    content = msgspec.json.encode(position)
    check = hashlib.sha256(content).hexdigest()
    store.replace(key, msgspec.json.encode(_File(FORMAT, check, msgspec.Raw(content))))


@frozen
class PositionFile(Generic[P]):
    """Where a format remembers how far it has come: a checked file beside the table's log.

    A cache: without it a run begins anew, and finds what it would write there already.

    Attributes:
        name: The format's.
        start: The position before the first commit.
    """

    name: str
    start: P

    def key(self, layout: Layout) -> str:
        """Return where a table's position is kept."""
        return f"{layout.root}/projections/{self.name}.json"

    def load(self, store: Store, layout: Layout) -> P:
        """Return the position kept for a table; the beginning when none can be used."""
        return load_position(store, self.key(layout), type(self.start)) or self.start

    def save(self, store: Store, layout: Layout, position: P) -> None:
        """Keep a position, after everything up to it was written."""
        save_position(store, self.key(layout), position)
