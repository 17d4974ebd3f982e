"""Outputs of a projection: a table's folder or memory, and the position file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Generic, Protocol, Self, TypeVar

import msgspec
from attrs import field, frozen

from ledger.events.commit import FORMAT
from ledger.log.layout import Layout
from ledger.model.errors import StoreError
from ledger.stores import Store

_MOST_FILES: Final = 256
_MOST_BYTES: Final = 8 << 20
"""As much is kept back at most, so that a long run needs no more memory than a short one."""


class Outputs(Protocol):
    """Takes files by their path below the table's location."""

    def put(self, path: str, body: bytes) -> None:
        """Keep a file that never changes again."""

    def point(self, path: str, body: bytes) -> None:
        """Keep a file that may point elsewhere later: a hint, or a tag."""

    def remove(self, path: str) -> None:
        """Take a file away; one that is absent is fine."""

    def read(self, path: str) -> bytes | None:
        """Return a file that was kept."""

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder."""


@frozen
class MemoryOutputs:
    """Files in memory, by path."""

    files: dict[str, bytes] = field(factory=dict)

    def put(self, path: str, body: bytes) -> None:
        """Keep a file."""
        self.files[path] = body

    def point(self, path: str, body: bytes) -> None:
        """Keep a file."""
        self.files[path] = body

    def remove(self, path: str) -> None:
        """Take a file away."""
        self.files.pop(path, None)

    def read(self, path: str) -> bytes | None:
        """Return a file."""
        return self.files.get(path)

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder."""
        return (path for path in self.files if path.startswith(f"{folder}/"))


@frozen
class StoreOutputs:
    """Files in a table's folder on its store; what somebody else put there is never overwritten.

    Attributes:
        store: The table's.
        root: The table's folder, relative to the store's root; empty when it is the root.
        met: The paths of files that were kept and stood there already.
    """

    store: Store
    root: str
    met: set[str] = field(factory=set, eq=False)

    def key(self, path: str) -> str:
        """Return a file's key."""
        return f"{self.root}/{path}" if self.root else path

    def put(self, path: str, body: bytes) -> None:
        """Keep a file.

        Raises:
            StoreError: Another file stands there.
        """
        if not self.store.create(self.key(path), body):
            self._met(self.key(path), body)

    def put_many(self, steps: Sequence[Mapping[str, bytes]]) -> None:
        """Keep files, those of a step in any order, and later steps only after earlier ones.

        Raises:
            StoreError: Another file stands in the place of one.
        """
        below = [{self.key(path): body for path, body in step.items()} for step in steps]
        self.store.create_many(below, self._met)

    def _met(self, key: str, body: bytes) -> None:
        if self.store.read(key) != body:
            raise StoreError(
                f"{key} is not the file that the ledger projects there, and is left "
                "as it is: look at it, then move it away or rebuild the projection",
                kind="FOREIGN_FILE",
            )
        self.met.add(key[len(self.key("")) :])

    def point(self, path: str, body: bytes) -> None:
        """Keep a file that may point elsewhere later."""
        found = self.store.read(self.key(path))
        if found is not None:
            self.met.add(path)
        if found != body:
            self.store.replace(self.key(path), body)

    def restore(self, path: str, body: bytes) -> None:
        """Put a file of the ledger's own in the place of another of its own, durably."""
        self.store.replace_durably(self.key(path), body)

    def remove(self, path: str) -> None:
        """Take a file away."""
        self.store.delete(self.key(path))

    def read(self, path: str) -> bytes | None:
        """Return a file."""
        return self.store.read(self.key(path))

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder of the table."""
        prefix = f"{self.root}/" if self.root else ""
        return (each.removeprefix(prefix) for each in self.store.keys(self.key(folder)))


@frozen
class Gathering:
    """Keeps a run's new files back, to write many at a time: their disk is waited for once.

    What readers come upon shows in the order in which it was put, and only after all that was put
    before it, as it does where files are written one by one. Whoever asks for a file that is kept
    back gets it, and whatever else is done to files waits until all of them are written.

    Attributes:
        inner: Where they go.
        is_found: Whether readers come upon a file that no other file names to them.
    """

    inner: StoreOutputs
    is_found: Callable[[str], bool]
    _named: dict[str, bytes] = field(factory=dict, init=False, eq=False)
    _found: dict[str, bytes] = field(factory=dict, init=False, eq=False)

    def put(self, path: str, body: bytes) -> None:
        """Keep a file back that never changes again."""
        if self._kept_back(path) not in {None, body}:
            self.write()
        (self._found if self.is_found(path) else self._named)[path] = body
        files = *self._named.values(), *self._found.values()
        if len(files) >= _MOST_FILES or sum(map(len, files)) >= _MOST_BYTES:
            self.write()

    def write(self) -> None:
        """Write what is kept back.

        Raises:
            StoreError: Another file stands in the place of one.
        """
        steps = [self._named.copy(), *({path: body} for path, body in self._found.items())]
        self._named.clear()
        self._found.clear()
        if any(steps):
            self.inner.put_many([step for step in steps if step])

    def point(self, path: str, body: bytes) -> None:
        """Keep a file that may point elsewhere later."""
        self.write()
        self.inner.point(path, body)

    def remove(self, path: str) -> None:
        """Take a file away."""
        self.write()
        self.inner.remove(path)

    def read(self, path: str) -> bytes | None:
        """Return a file, written or kept back."""
        body = self._kept_back(path)
        return self.inner.read(path) if body is None else body

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder of the table."""
        self.write()
        return self.inner.paths(folder)

    def _kept_back(self, path: str) -> bytes | None:
        return self._named.get(path, self._found.get(path))


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

        A time of the table's commits, or one of `projections.materialising`'s words for none.
        """

    def with_pending_deletes(self, garbage: tuple[str, ...], since: int) -> Self:
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
