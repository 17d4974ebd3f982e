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
"""Limit of buffered bytes, so that a long run needs no more memory than a short one."""


class Outputs(Protocol):
    """Destination of files, by their path below the table's location."""

    def put(self, path: str, body: bytes) -> None:
        """Write an immutable file."""

    def point(self, path: str, body: bytes) -> None:
        """Write a file that may be replaced later: a hint, or a tag."""

    def remove(self, path: str) -> None:
        """Delete a file; a missing file is ignored."""

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file; None if it is missing."""

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder."""


@frozen
class MemoryOutputs:
    """Files in memory, by path."""

    files: dict[str, bytes] = field(factory=dict)

    def put(self, path: str, body: bytes) -> None:
        """Write an immutable file."""
        self.files[path] = body

    def point(self, path: str, body: bytes) -> None:
        """Write a file that may be replaced later."""
        self.files[path] = body

    def remove(self, path: str) -> None:
        """Delete a file; a missing file is ignored."""
        self.files.pop(path, None)

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file; None if it is missing."""
        return self.files.get(path)

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder."""
        return (path for path in self.files if path.startswith(f"{folder}/"))


@frozen
class StoreOutputs:
    """Files in a table's folder on its store; a foreign file is never overwritten.

    Attributes:
        store: The table's.
        root: The table's folder, relative to the store's root; empty when it is the root.
        met: The paths of written files that existed already with the same bytes.
    """

    store: Store
    root: str
    met: set[str] = field(factory=set, eq=False)

    def key(self, path: str) -> str:
        """Return a file's key."""
        return f"{self.root}/{path}" if self.root else path

    def put(self, path: str, body: bytes) -> None:
        """Write an immutable file.

        Raises:
            StoreError: Another file exists there.
        """
        if not self.store.create(self.key(path), body):
            self._check_existing_file(self.key(path), body)

    def put_many(self, steps: Sequence[Mapping[str, bytes]]) -> None:
        """Write files, those of a step in any order, and later steps only after earlier ones.

        Raises:
            StoreError: Another file exists in the place of one.
        """
        below = [{self.key(path): body for path, body in step.items()} for step in steps]
        self.store.create_many(below, self._check_existing_file)

    def _check_existing_file(self, key: str, body: bytes) -> None:
        if self.store.read(key) != body:
            raise StoreError(
                f"{key} is not the file that the ledger projects there, and is left "
                "as it is: inspect it, then move it away or rebuild the projection",
                kind="FOREIGN_FILE",
            )
        self.met.add(key[len(self.key("")) :])

    def point(self, path: str, body: bytes) -> None:
        """Write a file that may be replaced later."""
        found = self.store.read(self.key(path))
        if found is not None:
            self.met.add(path)
        if found != body:
            self.store.replace(self.key(path), body)

    def restore(self, path: str, body: bytes) -> None:
        """Replace one of the ledger's own files, durably."""
        self.store.replace_durably(self.key(path), body)

    def remove(self, path: str) -> None:
        """Delete a file; a missing file is ignored."""
        self.store.delete(self.key(path))

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file; None if it is missing."""
        return self.store.read(self.key(path))

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder of the table."""
        prefix = f"{self.root}/" if self.root else ""
        return (each.removeprefix(prefix) for each in self.store.keys(self.key(folder)))


@frozen
class BufferedOutputs:
    """Buffers a run's new files, and writes many at a time with one fsync.

    Files that readers discover appear in the order of the calls, and only after all earlier files,
    as if written one by one. Reads see buffered files, and any other operation flushes the buffer
    first.

    Attributes:
        inner: Destination of the files.
        is_found: Returns whether readers discover a file by its name, without a pointer to it.
    """

    inner: StoreOutputs
    is_found: Callable[[str], bool]
    _named: dict[str, bytes] = field(factory=dict, init=False, eq=False)
    _found: dict[str, bytes] = field(factory=dict, init=False, eq=False)

    def put(self, path: str, body: bytes) -> None:
        """Buffer an immutable file."""
        if self._buffered_body(path) not in {None, body}:
            self.write()
        (self._found if self.is_found(path) else self._named)[path] = body
        files = *self._named.values(), *self._found.values()
        if len(files) >= _MOST_FILES or sum(map(len, files)) >= _MOST_BYTES:
            self.write()

    def write(self) -> None:
        """Write the buffered files.

        Raises:
            StoreError: Another file exists in the place of one.
        """
        steps = [self._named.copy(), *({path: body} for path, body in self._found.items())]
        self._named.clear()
        self._found.clear()
        if any(steps):
            self.inner.put_many([step for step in steps if step])

    def point(self, path: str, body: bytes) -> None:
        """Write a file that may be replaced later."""
        self.write()
        self.inner.point(path, body)

    def remove(self, path: str) -> None:
        """Delete a file; a missing file is ignored."""
        self.write()
        self.inner.remove(path)

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, written or buffered; None if it is missing."""
        body = self._buffered_body(path)
        return self.inner.read(path) if body is None else body

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder of the table."""
        self.write()
        return self.inner.paths(folder)

    def _buffered_body(self, path: str) -> bytes | None:
        return self._named.get(path, self._found.get(path))


_T = TypeVar("_T")


class FilesPosition(Protocol):
    """Progress of a format's files through the log; further attributes are the format's own."""

    @property
    def version(self) -> int:
        """The last commit applied; -1 before the first."""

    @property
    def commit(self) -> str:
        """The digest of that commit; empty where it was not stored."""

    @property
    def garbage(self) -> tuple[str, ...]:
        """Obsolete files that are still to be deleted.

        In the result of a run: all that it found. In a saved position: those without retention.
        """

    @property
    def leaving_since(self) -> int:
        """Time of the oldest pending delete.

        A commit time of the table, or a constant of `projections.materialising` for none.
        """

    def with_pending_deletes(self, garbage: tuple[str, ...], since: int) -> Self:
        """Return this position with other garbage and another time of the oldest delete."""


P = TypeVar("P", bound=FilesPosition)


class _PositionFileBody(msgspec.Struct, rename="camel"):
    format: int
    check: str
    position: msgspec.Raw


def load_position(store: Store, key: str, kind: type[_T]) -> _T | None:
    """Return the position stored under a key; None if it is missing or not usable.

    Args:
        store: The table's.
        key: The key of the file.
        kind: The type of the position.
    """
    body = store.read(key)
    if body is None:
        return None
    try:
        file = msgspec.json.decode(body, type=_PositionFileBody)
        content = bytes(file.position)
        if file.format != FORMAT or hashlib.sha256(content).hexdigest() != file.check:
            return None
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, ValueError):
        return None


def save_position(store: Store, key: str, position: object) -> None:
    """Store a position, after everything up to it was written."""
    content = msgspec.json.encode(position)
    check = hashlib.sha256(content).hexdigest()
    store.replace(key, msgspec.json.encode(_PositionFileBody(FORMAT, check, msgspec.Raw(content))))


@frozen
class PositionFile(Generic[P]):
    """Storage of a format's position: a checksummed file next to the table's log.

    A cache: without it a run starts from the first commit and finds its files written already.

    Attributes:
        name: The format's.
        start: The position before the first commit.
    """

    name: str
    start: P

    def key(self, layout: Layout) -> str:
        """Return the key of a table's position."""
        return f"{layout.root}/projections/{self.name}.json"

    def load(self, store: Store, layout: Layout) -> P:
        """Return the stored position of a table; `start` if it is missing or not usable."""
        return load_position(store, self.key(layout), type(self.start)) or self.start

    def save(self, store: Store, layout: Layout, position: P) -> None:
        """Store a position, after everything up to it was written."""
        save_position(store, self.key(layout), position)
