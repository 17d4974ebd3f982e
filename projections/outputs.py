"""Where a projection's files go: a table's folder, or memory to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from attrs import field, frozen

from ledger.model.errors import StoreError
from ledger.stores import Store


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
        if self.store.create(self.key(path), body):
            return
        if self.store.read(self.key(path)) != body:
            raise StoreError(
                f"{self.key(path)} is not the file that the ledger projects there, and is left "
                "as it is: look at it, then move it away or rebuild the projection",
                kind="FOREIGN_FILE",
            )
        self.met.add(path)

    def point(self, path: str, body: bytes) -> None:
        """Keep a file that may point elsewhere later."""
        found = self.store.read(self.key(path))
        if found is not None:
            self.met.add(path)
        if found != body:
            self.store.replace(self.key(path), body)

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
