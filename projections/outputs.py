"""Outputs of a projection: a table's folder or memory, and the position file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from attrs import field, frozen

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
