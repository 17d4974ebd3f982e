"""What may stand in a log once, and whether it does: ids, snapshots' keys, files that are live.

Every name is remembered by its hash alone, eight bytes in a file beside, so that memory does not
grow with the log. Hashes that stand where they may not are looked up in the log itself, which says
whether it was the same name.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import IO, Any, Final

from ledger.events.commit import Commit
from ledger.events.snapshot_events import RolledBack
from ledger.files.live import file_key
from ledger.history.verifying.subject import CommitColumns, Listed, Listings
from ledger.log.caches.lookup import hashed, hashed_all, id_key
from ledger.model.messages.excerpt import excerpt
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, branch_number

_PARTS: Final = 64
_BLOCK: Final = 1024
"""So many hashes of a part are written at a time."""
_IN_MEMORY_BYTES: Final = 4 * 1024 * 1024
_CAME: Final = 1
_SIZE: Final = 8


Usual = Callable[[str], str]
"""Says what a file is called, whatever its path's spelling; one text a file."""

UsualOfAll = Callable[[list[str]], list[str]]
"""Says the same of some files."""


class Hashes:
    """Hashes in the order in which they came, those of one name together; on disk when many."""

    def __init__(self) -> None:
        self._open: list[array[int]] = [array("Q") for _ in range(_PARTS)]
        self._blocks: list[list[int]] = [[] for _ in range(_PARTS)]
        self._file: IO[bytes] | None = None

    def extend(self, hashes: Iterable[int]) -> None:
        """Take in further hashes."""
        parts = self._open
        for each in hashes:
            # Not by the lowest bit, which says whether a file came or went.
            part = parts[each >> 1 & _PARTS - 1]
            part.append(each)
            if len(part) == _BLOCK:
                self._keep(each >> 1 & _PARTS - 1)

    def _keep(self, number: int) -> None:
        if self._file is None:
            self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - closed below
        self._blocks[number].append(self._file.tell())
        self._file.write(self._open[number].tobytes())
        self._open[number] = array("Q")

    def parts(self) -> Iterator[array[int]]:
        """Yield all of them, part by part: the same hashes are in one; and forget them."""
        for number in range(_PARTS):
            part = array("Q")
            for block in self._blocks[number]:
                if self._file is not None:
                    self._file.seek(block)
                    part.frombytes(self._file.read(_BLOCK * _SIZE))
            part.extend(self._open[number])
            yield part
        if self._file is not None:
            self._file.close()


class Repeats:
    """What some commits named that may be named once, as hashes.

    Attributes:
        once: Of ids and of snapshots' keys.
        files: Of the files that came and went, in their order; the lowest bit is 1 for one that
            came.
    """

    def __init__(self) -> None:
        self.once: array[int] = array("Q")
        self.files: array[int] = array("Q")

    def learn(
        self, columns: CommitColumns, listings: Listings, usual_of_all: UsualOfAll
    ) -> list[tuple[int, int]]:
        """Take in some commits.

        Args:
            columns: They.
            listings: What they list.
            usual_of_all: What files are called.

        Returns:
            The (hash, version) that the key index remembers of them.
        """
        transactions, versions = columns.transactions, columns.versions
        hashes = hashed_all([id_key(each.id) for each in transactions])
        named = [*zip(hashes, versions, strict=True)]
        snapshots = _snapshot_keys(listings)
        snapshot_hashes = hashed_all([key for _, key in snapshots])
        self.once.extend(hashes + snapshot_hashes)
        named += zip(snapshot_hashes, (version for version, _ in snapshots), strict=True)
        return named + self._files(columns, listings, usual_of_all)

    def _files(
        self, columns: CommitColumns, listings: Listings, usual_of_all: UsualOfAll
    ) -> list[tuple[int, int]]:
        """Take in the files of some commits; return the (hash, version) of each."""
        main = listings.main
        paths = [each.change.path for each in main]
        usuals = usual_of_all(paths)
        names = hashed_all([*map(file_key, paths)])
        # Most stand there by their usual names.
        known = names if usuals == paths else hashed_all([*map(file_key, usuals)])
        self.files.extend(
            [
                found | _CAME if each.change.kind == "ADD" else found & ~_CAME
                for found, each in zip(known, main, strict=True)
            ]
        )
        keys = zip(names, (each.version for each in main), strict=True)
        return [*keys, *_branches_files(listings)] if columns.has_branches else [*keys]


def _branches_files(listings: Listings) -> Iterator[tuple[int, int]]:
    for version, branch, each in listings.branches:
        yield hashed(file_key(each.path, branch)), version


def _snapshot_keys(listings: Listings) -> list[tuple[int, str]]:
    """Return the keys of the snapshots of some commits, and the version of each."""
    return [
        (version, key)
        for version, (event, _) in zip(listings.versions, listings.listed, strict=True)
        # What has this one has no key.
        if event.commit_identifier != BATCH_COMMIT_IDENTIFIER
        and not isinstance(event, RolledBack)
        and (key := event.key) is not None
    ]


def suspects(once: Hashes, files: Hashes) -> tuple[set[int], set[int]]:
    """Return the hashes that were named twice, and those of files that came or went out of turn."""
    twice: set[int] = set()
    for part in once.parts():
        if len(set(part)) < len(part):
            seen: set[int] = set()
            for each in part:
                (twice if each in seen else seen).add(each)
    out_of_turn: set[int] = set()
    for part in files.parts():
        live: set[int] = set()
        for each in part:
            name = each & ~_CAME
            if (name in live) == bool(each & _CAME):
                out_of_turn.add(name)
            (live.add if each & _CAME else live.discard)(name)
    return twice, out_of_turn


class Culprits:
    """Reads a log again for the names behind some hashes.

    Args:
        twice: Of ids and snapshots' keys.
        out_of_turn: Of files.
        usual: What a file is called.
    """

    def __init__(self, twice: Collection[int], out_of_turn: Collection[int], usual: Usual) -> None:
        self._usual = usual
        self._twice = twice
        self._out_of_turn = out_of_turn
        self._named: dict[str, int] = {}
        self._live: dict[str, int] = {}

    def problems(self, commit: Commit[Any], listed: Listed) -> Iterator[str]:
        """Yield what the next commit names that it may not."""
        version = commit.version
        for key, what in _once(commit, listed) if self._twice else ():
            if hashed(key) in self._twice:
                first = self._named.get(key)
                self._named.setdefault(key, version)
                if first is not None:
                    yield f"{what} was used in version {first} already"
        for event, files in listed if self._out_of_turn else ():
            for each in () if branch_number(event.snapshot_id) else files:
                name = self._usual(each.path)
                if hashed(file_key(name)) & ~_CAME not in self._out_of_turn:
                    continue
                since = self._live.get(name)
                if each.kind == "ADD":
                    self._live[name] = version
                    if since is not None:
                        yield (
                            f"it adds the file {excerpt(each.path)}, which is live since version "
                            f"{since}"
                        )
                elif self._live.pop(name, None) is None:
                    yield f"it removes the file {excerpt(each.path)}, which is not live"


def _once(commit: Commit[Any], listed: Listed) -> Iterator[tuple[str, str]]:
    """Yield each key of a commit that may be used once, and what it is for people."""
    for transaction in commit.transactions:
        yield id_key(transaction.id), f"the commit id {excerpt(transaction.id)}"
    for event, _ in listed:
        key = None if isinstance(event, RolledBack) else event.key
        if key is not None:
            yield key, f"the snapshot's key {excerpt(key)}"
