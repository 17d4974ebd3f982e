"""Replay of commits in order, along the hash chain.

Long ranges are read from sealed segments, short ones and the newest commits from commit files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice, repeat
from typing import Any, Generic, TypeVar

from msgspec import UNSET, Raw, Struct

from ledger.events.commit import Commit
from ledger.log.codec import Codec, Sketch, digest
from ledger.log.layout import CommitKeys, Layout
from ledger.log.segments import AHEAD, Segments, TrustedBodies, split_at_segments
from ledger.model.errors import DamagedLogError
from ledger.stores import Store
from ledger.stores.concurrency import answers

E = TypeVar("E")
D = TypeVar("D", Sketch, Commit[Raw], Commit[Any])

_FIRST_CHUNK = 128
"""Number of commits after which a reader without a last version begins to use segments."""

MOST_KEPT = 128
"""Number of newest commit files cached in memory."""
_LARGEST_KEPT = 16 * 1024
"""Largest commit file that is cached in memory, in bytes."""

_NOTHING = (-1, b"")

_STRIDES = (1, 2, 4, 8, 16, 32, 64, 100)


class Position(Struct, frozen=True):
    """Position of a reader: after commit `version`, whose file has this digest.

    Before version 0 it is `Position(-1, "")`. An empty digest is not checked.
    """

    version: int
    digest: str


START = Position(-1, "")


class Read(Struct, Generic[E], frozen=True):
    """A commit that was read, its file, and the file's digest."""

    commit: Commit[E]
    body: bytes
    digest: str


class NewestCommitFiles:
    """In-memory cache of the newest commit files: deciding a change reads them repeatedly.

    It has only files that this process read from the log or wrote to it; they never change.
    """

    def __init__(self) -> None:
        # A ring: each takes the place of the one that is `MOST_KEPT` commits older.
        self._places: dict[int, tuple[int, bytes]] = {}
        self._highest = -1

    def keep(self, files: Sequence[tuple[int, bytes]]) -> None:
        """Add commit files, except large ones and those older than the one in their place.

        Args:
            files: Versions and files, oldest first; one or more.
        """
        held, newest = self._places, files[-1][0]
        if files[0][0] <= self._highest:
            # Another thread has added some of them, or newer ones.
            files = [each for each in files if held.get(each[0] % MOST_KEPT, _NOTHING)[0] < each[0]]
        held.update({each[0] % MOST_KEPT: each for each in files if len(each[1]) <= _LARGEST_KEPT})
        self._highest = max(self._highest, newest)

    def get(self, version: int) -> bytes | None:
        """Return a commit's file if it is cached, else None."""
        found, body = self._places.get(version % MOST_KEPT, _NOTHING)
        return body if found == version else None

    def among(self, versions: range) -> dict[int, bytes]:
        """Return the cached ones of a range of commit files, by version."""
        if versions.start > self._highest:
            # The common case: a reader looks for newer commits than these.
            return {}
        return {each: body for each in versions if (body := self.get(each)) is not None}


Passes = Callable[[int, bytes], bool]
"""Predicate on a commit's version and file: True skips the commit without decoding the file.

It is called only for commits in segments; all others are decoded.
"""


def skip_no_commit(_version: int, _body: bytes) -> bool:
    """Return False: skip no commit."""
    return False


class Reader(Generic[E]):
    """Reader of a stream's commits.

    Args:
        store: The stream's store.
        layout: The stream's keys.
        codec: Decodes its commits.
        newest: Cache of the newest commit files; None: all are read from the store.
    """

    def __init__(
        self, store: Store, layout: Layout, codec: Codec[E], newest: NewestCommitFiles | None = None
    ) -> None:
        self._store = store
        self._layout = layout
        self._codec = codec
        self._segments = Segments(store, layout)
        self._newest = newest

    def after(self, position: Position, last: int | None = None) -> Iterator[Read[E]]:
        """Yield the commits after `position`, in order.

        Args:
            position: The position to begin after.
            last: The last version to read, which must exist; None: read up to the newest.

        Raises:
            DamagedLogError: A commit is missing, torn, or does not follow the one before.
            UpgradeRequiredError: A commit was written by a newer version.
        """
        parent = position.digest
        for version, body, known in self._read_versions(position.version + 1, last):
            if body is None:
                self._refuse_gap(version, last)
                return
            # The key is needed for the error only.
            commit = self._codec.known(body)
            if commit is None:
                commit = self._codec.decode(body, self._layout.commit(version))
            self._check_place(commit, version, parent)
            parent = known or digest(body)
            yield Read(commit, body, parent)

    def _read_versions(
        self, version: int, last: int | None
    ) -> Iterator[tuple[int, bytes | None, str]]:
        """Yield versions, their commit files, and the files' digests.

        The file is None where it is missing, the digest empty where it is not computed yet.
        """
        if last is None:
            newest = self._read_commit_files(version, version + _FIRST_CHUNK - 1)
            yield from zip(count(version), newest, repeat(""), strict=False)
            version += _FIRST_CHUNK
        for first, found in self._runs(version, last):
            if isinstance(found, TrustedBodies):
                yield from zip(count(first), found.bodies, found.digests, strict=False)
            else:
                yield from zip(count(first), found, repeat(""), strict=False)

    def _runs(
        self, version: int, last: int | None
    ) -> Iterator[tuple[int, TrustedBodies | Iterator[bytes | None]]]:
        """Yield runs of commit files from `version` on, each with its first version."""
        parts = split_at_segments(version, last)
        # Where the end of the log is not known, read ahead more each time.
        ahead = 1 if last is None else AHEAD
        while some := list(islice(parts, ahead)):
            for (first, end), found in zip(some, self._segments.read(some), strict=True):
                yield first, self._read_commit_files(first, end) if found is None else found
            ahead = min(ahead * 2, AHEAD)

    def _read_commit_files(self, first: int, last: int) -> Iterator[bytes | None]:
        wanted = range(first, last + 1)
        kept = {} if self._newest is None else self._newest.among(wanted)
        if not kept:
            return self._store.read_many(CommitKeys(self._layout, wanted))
        return self._read_missing_files(wanted, kept)

    def _read_missing_files(
        self, wanted: range, kept: Mapping[int, bytes]
    ) -> Iterator[bytes | None]:
        missing = [each for each in wanted if each not in kept]
        found = self._store.read_many(CommitKeys(self._layout, missing))
        for version in wanted:
            body = kept.get(version)
            yield next(found) if body is None else body

    def sketches(
        self, first: int, last: int, passes: Passes = skip_no_commit
    ) -> Iterator[tuple[Sketch, bytes]]:
        """Yield the commits `first` to `last` without the content of events, each with its file.

        Args:
            first: The first version.
            last: The last version.
            passes: Tells which commits to skip.

        Raises:
            DamagedLogError: A commit is missing, torn, or does not follow the one before.
            UpgradeRequiredError: A commit was written by a newer version.
        """
        return self._decode_each(first, last, self._codec.sketch, passes)

    def sketches_of(self, versions: Sequence[int]) -> Iterator[tuple[Sketch, bytes]]:
        """Yield single commits as `sketches` does, read from their own files."""
        bodies = self._store.read_many([*map(self._layout.commit, versions)])
        for version, body in zip(versions, bodies, strict=True):
            if body is None:
                self._refuse_gap(version, version)
                return
            yield self._decode_and_check_place(self._codec.sketch, body, version, ""), body

    def wanted(self, first: int, last: int, passes: Passes) -> Iterator[Commit[E]]:
        """Yield the commits `first` to `last` that are not skipped, decoded; see `sketches`."""
        return (found for found, _ in self._decode_each(first, last, self._codec.decode, passes))

    def decode_with_raw_events(self, first: int, last: int) -> Iterator[Commit[Raw]]:
        """Yield the commits `first` to `last` with their events as undecoded JSON."""
        return (
            found for found, _ in self._decode_each(first, last, self._codec.decode_with_raw_events)
        )

    def _decode_each(
        self,
        first: int,
        last: int,
        decode: Callable[[bytes, str], D],
        passes: Passes = skip_no_commit,
    ) -> Iterator[tuple[D, bytes]]:
        parent = ""
        for begin, run in self._runs(first, last):
            if isinstance(run, TrustedBodies):
                # The hash chain inside a segment is verified already.
                bodies = enumerate(run.bodies, begin)
                for version, body in [each for each in bodies if not passes(*each)]:
                    before = parent if version == begin else ""
                    yield self._decode_and_check_place(decode, body, version, before), body
                parent = run.digests[-1]
                continue
            for version, line in enumerate(run, begin):
                if line is None:
                    self._refuse_gap(version, last)
                    return
                yield self._decode_and_check_place(decode, line, version, parent), line
                parent = digest(line)

    def _decode_and_check_place(
        self, decode: Callable[[bytes, str], D], body: bytes, version: int, parent: str
    ) -> D:
        found = decode(body, self._layout.commit(version))
        self._check_place(found, version, parent)
        return found

    def _check_place(self, commit: Commit[Any] | Sketch, version: int, parent: str) -> None:
        """Check that a commit has the expected version and parent.

        Args:
            commit: The commit.
            version: The version of its file name.
            parent: The digest of the commit file before; empty where that is not known.
        """
        if commit.version != version:
            key = self._layout.commit(version)
            raise DamagedLogError(f"{key} says it is version {commit.version}", key)
        if parent and commit.parent != parent:
            key, before = self._layout.commit(version), self._layout.commit(version - 1)
            raise DamagedLogError(
                f"{key} names another parent than {before} is: one of the two was changed after "
                "it was written. Compare both with a backup",
                before,
            )
        if version == 0 and commit.parent is not UNSET:
            key = self._layout.commit(version)
            raise DamagedLogError(f"{key} is version 0 and names a parent", key)

    def _refuse_gap(self, version: int, last: int | None) -> None:
        missing = self._layout.commit(version)
        if last is not None:
            raise DamagedLogError(f"{missing} is missing, but version {last} exists", missing)

    def refuse_hidden_gap(self, version: int, strides: Sequence[int] = _STRIDES) -> None:
        """Check that nothing follows `version`, the first that does not exist.

        Checks a few versions ahead with growing strides, since listing a long log costs more than
        the commit that it would protect; `verify` lists the log.

        Raises:
            DamagedLogError: A later commit exists.
        """
        missing = self._layout.commit(version)
        later_ones = self._layout.commits(version + ahead for ahead in strides)
        for later, is_there in zip(later_ones, self._check_existence(later_ones), strict=True):
            # In this order: a writer may have created both since `version` was found missing.
            if is_there and not self._store.exists(missing):
                raise DamagedLogError(
                    f"{missing} is missing, but {later} exists: the log has a gap. Restore the "
                    "file from a backup; nothing was skipped",
                    missing,
                )

    def _check_existence(self, keys: Sequence[str]) -> Iterable[bool]:
        """Return for each key whether it exists; concurrently on a remote store."""
        exists = self._store.exists
        return map(exists, keys) if self._store.is_near else answers(exists, keys)
