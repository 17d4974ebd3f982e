"""Reading commits in order, along the hash chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from attrs import frozen
from msgspec import UNSET

from ledger.events.commit import Commit
from ledger.log.codec import Codec, digest
from ledger.log.layout import Layout
from ledger.model.errors import DamagedLogError
from ledger.stores import Store

E = TypeVar("E")

_FIRST_CHUNK = 128
_CHUNK = 2048
_STRIDES = (1, 2, 4, 8, 16, 32, 64, 100)


@frozen
class Position:
    """Where a reader stands: after commit `version`, whose file has this digest.

    Before version 0 it is `Position(-1, "")`. An empty digest is not checked.
    """

    version: int
    digest: str


START = Position(-1, "")


@frozen
class Read(Generic[E]):
    """One commit read, and the digest of its file."""

    commit: Commit[E]
    digest: str


class Reader(Generic[E]):
    """Reads one stream's commits."""

    def __init__(self, store: Store, layout: Layout, codec: Codec[E]) -> None:
        self._store = store
        self._layout = layout
        self._codec = codec

    def after(self, position: Position, last: int | None = None) -> Iterator[Read[E]]:
        """Yield the commits after `position`, in order.

        Args:
            position: Where to begin.
            last: The last version to read, which must exist; None to read until there is no next.

        Raises:
            DamagedLogError: A commit is missing, torn, or does not follow the one before.
            UpgradeRequiredError: A commit was written by a newer version.
        """
        parent = position.digest
        version = position.version + 1
        size = _FIRST_CHUNK
        while last is None or version <= last:
            end = version + size if last is None else min(version + size, last + 1)
            keys = [self._layout.commit(each) for each in range(version, end)]
            for key, body in zip(keys, self._store.read_many(keys), strict=False):
                if body is None:
                    self._refuse_gap(version, last)
                    return
                found = self._checked(body, key, version, parent)
                yield found
                parent = found.digest
                version += 1
            size = _CHUNK

    def _checked(self, body: bytes, key: str, version: int, parent: str) -> Read[E]:
        commit = self._codec.decode(body, key)
        if commit.version != version:
            raise DamagedLogError(f"{key} says it is version {commit.version}", key)
        if parent and commit.parent != parent:
            before = self._layout.commit(version - 1)
            raise DamagedLogError(
                f"{key} names another parent than {before} is: one of the two was changed after "
                "it was written. Compare both with a backup",
                before,
            )
        if version == 0 and commit.parent is not UNSET:
            raise DamagedLogError(f"{key} is version 0 and names a parent", key)
        return Read(commit, digest(body))

    def _refuse_gap(self, version: int, last: int | None) -> None:
        missing = self._layout.commit(version)
        if last is not None:
            raise DamagedLogError(f"{missing} is missing, but version {last} exists", missing)

    def refuse_hole(self, version: int, strides: Sequence[int] = _STRIDES) -> None:
        """Check that nothing follows `version`, the first that does not exist.

        Looks a few steps ahead with growing strides, since listing a long log costs more than
        the commit that it would protect; `verify` lists.

        Raises:
            DamagedLogError: A later commit exists.
        """
        missing = self._layout.commit(version)
        for ahead in strides:
            later = self._layout.commit(version + ahead)
            # In this order: a writer may have created both since `version` was found missing.
            if self._store.exists(later) and not self._store.exists(missing):
                raise DamagedLogError(
                    f"{missing} is missing, but {later} exists: the log has a gap. Restore the "
                    "file from a backup; nothing was skipped",
                    missing,
                )
