"""The commits of a stream along their hashes, with everything that does not fit on the way.

A broken link says that one of two files was changed. Which one: a digest that is wrong in a few
places only was itself damaged, and a file whose links on both sides are broken is the changed one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, Generic, NamedTuple, TypeVar

from attrs import frozen
from msgspec import UNSET

from ledger.events.commit import Commit
from ledger.evolution.stream import StateLike
from ledger.history.verifying.finding import Finding
from ledger.history.verifying.subject import Subject
from ledger.log.codec import digest, encode, encode_all
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.model.errors import DamagedLogError, UpgradeRequiredError
from ledger.model.messages.excerpt import excerpt

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

_DIGITS = 20
_MOST_VERSIONS = f"{2**63 - 1:020d}"
_TOGETHER = 1_000
"""So many keys of a log's folder are looked at together."""
_MOST_WRONG_DIGITS = 32
"""Two digests of different contents agree in half of their digits once in many ages."""

Gap = tuple[int, int]
"""The first and last version of a run."""


class Link(NamedTuple, Generic[E]):
    """One commit that can be read, its file, and that file's digest."""

    commit: Commit[E]
    digest: str
    body: bytes


@frozen
class Extent:
    """What stands in a log's folder.

    Attributes:
        last: The highest version; -1 when there is none.
        foreign: Keys that are no commits', the first few.
        gaps: The first and last version of each run of missing ones before `last`, the first few.
    """

    last: int
    foreign: tuple[str, ...]
    gaps: tuple[Gap, ...] = ()


def extent(subject: Subject[S, E], *, most: int = 100) -> Extent:
    """Look through a log's folder, without holding it.

    Args:
        subject: The stream.
        most: How many foreign keys, and how many gaps, to tell.
    """
    newest, count = "", 0
    foreign: list[str] = []
    is_commit, are_commits = _is_commit(subject), _are_commits(subject)
    keys = iter(subject.store.walk(_folder(subject)))
    while some := [*islice(keys, _TOGETHER)]:
        commits = some if are_commits(some) else [*filter(is_commit, some)]
        count += len(commits)
        newest = max([newest, *commits])
        if len(commits) < len(some) and len(foreign) < most:
            strange = (each for each in some if not is_commit(each))
            foreign += islice(strange, most - len(foreign))
    last = _version(newest) if newest else -1
    gaps = () if count == last + 1 else tuple(islice(_gaps(subject), most))
    return Extent(last, tuple(sorted(foreign)), gaps)


def _gaps(subject: Subject[S, E]) -> Iterator[Gap]:
    keys = filter(_is_commit(subject), subject.store.walk(_folder(subject)))
    for before, after in pairwise([-1, *sorted(map(_version, keys))]):
        if after > before + 1:
            yield before + 1, after - 1


def _folder(subject: Subject[S, E]) -> str:
    return subject.layout.commit(0).rpartition("/")[0]


def _is_commit(subject: Subject[S, E]) -> Callable[[str], object]:
    """Return what tells the keys of commits from others in their folder."""
    most = f"{_folder(subject)}/{_MOST_VERSIONS}.json"
    matches = re.compile(rf"{re.escape(_folder(subject))}/[0-9]{{{_DIGITS}}}\.json").fullmatch
    return lambda key: matches(key) and key <= most


def _are_commits(subject: Subject[S, E]) -> Callable[[Sequence[str]], bool]:
    """Return what tells whether several keys are commits' alone, as a quick look tells."""
    one = rf"{re.escape(_folder(subject))}/[0-9]{{{_DIGITS}}}\.json"
    # No key has a line's end in it.
    matches = re.compile(rf"{one}(?:\n{one})*+").fullmatch
    newest = f"{_folder(subject)}/{_MOST_VERSIONS}.json"
    return lambda keys: matches("\n".join(keys)) is not None and max(keys) <= newest


def _version(key: str) -> int:
    return int(key[-_DIGITS - len(".json") : -len(".json")])


class Chain(Generic[S, E]):
    """One walk along a part of a stream's hash chain.

    Args:
        subject: The stream.
        newest: The last version that the stream has.
    """

    def __init__(self, subject: Subject[S, E], newest: int) -> None:
        self._subject = subject
        self._newest = newest
        self._before: Link[E] | None = None
        self._blamed: set[int] = set()

    def walk(
        self, first: int, last: int, gaps: Sequence[Gap] = ()
    ) -> Iterator[list[Link[E]] | Link[E] | Finding]:
        """Yield each commit that can be read, in order, and a finding before what does not fit.

        Those up to a checkpoint's version come together where all of them fit. A version is blamed
        once.

        Args:
            first: The first version; the one before it is only looked at, to follow it.
            last: The last version.
            gaps: Runs of versions that are known to be missing, and told by somebody else.
        """
        missing = {
            each for low, high in gaps for each in range(max(low, first), min(high, last) + 1)
        }
        versions = [each for each in range(first, last + 1) if each not in missing]
        if first and versions[:1] == [first]:
            self._before = self._read(first - 1)
        keys = map(self._subject.layout.commit, versions)
        bodies = self._subject.store.read_many([*keys])
        expected = first
        for some in _batches(versions):
            read = [*islice(bodies, len(some))]
            if some[0] != expected:
                self._before = None
            fitting = self._fitting(some, read)
            if fitting is None:
                yield from self._one_by_one(some, read, expected)
            else:
                yield fitting
            expected = some[-1] + 1

    def _fitting(self, versions: list[int], bodies: list[bytes | None]) -> list[Link[E]] | None:
        """Return commits that follow one another, where nothing is wrong with any of them.

        None where one has to be looked at more closely, or follows nothing that is known.
        """
        before, there = self._before, [each for each in bodies if each is not None]
        if before is None or len(there) < len(versions) or versions[-1] - versions[0] >= len(there):
            return None
        commits = self._subject.log.codec.decode_all(there)
        if commits is None:
            return None
        # So that what one file lacks at its end does not stand at the beginning of the next.
        are_lines = b"".join([each[-1:] for each in there]) == b"\n" * len(there)
        try:
            is_written_so = are_lines and encode_all(commits) == b"".join(there)
        except (OverflowError, UnicodeEncodeError, RecursionError):
            # A number of more than 64 bits was never written.
            return None
        digests = [*map(digest, there)]
        fits = (
            is_written_so
            and [each.version for each in commits] == versions
            and [each.parent for each in commits] == [before.digest, *digests[:-1]]
        )
        if not fits:
            return None
        links = [*map(Link, commits, digests, there)]
        self._before = links[-1]
        return links

    def _one_by_one(
        self, versions: list[int], bodies: list[bytes | None], expected: int
    ) -> Iterator[Link[E] | Finding]:
        for version, body in zip(versions, bodies, strict=True):
            if version != expected:
                self._before = None
            if body is None:
                yield from self._blame(version, "the commit is missing, but later ones exist")
            else:
                yield from self._commit(version, body)
            expected = version + 1

    def _read(self, version: int) -> Link[E] | None:
        """Return a commit, whatever is wrong around it; None where it cannot be read."""
        body = self._subject.store.read(self._subject.layout.commit(version))
        commit = None if body is None else self._decoded(version, body)
        return Link(commit, digest(body), body) if body and isinstance(commit, Commit) else None

    def _blame(self, version: int, what: str) -> Iterator[Finding]:
        """Yield a finding, unless the version was blamed before; the next link is not checked."""
        self._before = None
        if version not in self._blamed:
            self._blamed.add(version)
            yield Finding("damage", what, self._subject.layout.commit(version), version)

    def _commit(self, version: int, body: bytes) -> Iterator[Link[E] | Finding]:
        commit = self._decoded(version, body)
        if isinstance(commit, str):
            yield from self._blame(version, commit)
            return
        link = Link(commit, digest(body), body)
        before = self._before
        if before is not None and commit.parent != before.digest:
            yield from self._broken(version, before, link)
        elif version == 0 and commit.parent is not UNSET:
            yield from self._blame(0, "it is version 0 and names a parent")
        elif version > 0 and commit.parent is UNSET:
            yield from self._blame(version, "it names no parent")
        if not _is_written_so(commit, body):
            yield from self._blame(version, "it is not written as lakeledger writes a commit")
        self._before = link
        yield link

    def _decoded(self, version: int, body: bytes) -> Commit[E] | str:
        """Return the commit, or what is wrong with its file."""
        key = self._subject.layout.commit(version)
        try:
            commit = self._subject.log.codec.decode(body, key)
        except (DamagedLogError, UpgradeRequiredError) as error:
            return error.message.removeprefix(f"{key} ").split(". ")[0]
        if commit.version != version:
            return f"it says that it is version {excerpt(commit.version)}"
        return commit

    def _broken(self, version: int, before: Link[E], link: Link[E]) -> Iterator[Finding]:
        named = link.commit.parent
        if named is UNSET or nearly(named, before.digest):
            yield from self._blame(
                version, f"the parent that it names is damaged: {excerpt(named)}"
            )
        elif self._is_unlinked_behind(version, link):
            yield from self._blame(
                version, f"it follows another version {version - 1}, and another follows it"
            )
        else:
            yield from self._blame(
                version - 1, f"it was changed: version {version} names another file as its parent"
            )

    def _is_unlinked_behind(self, version: int, link: Link[E]) -> bool:
        if version == self._newest:
            return False
        follower = self._read(version + 1)
        return follower is not None and follower.commit.parent != link.digest


def _batches(versions: Sequence[int]) -> Iterator[list[int]]:
    """Yield versions, those up to each checkpoint's together; version 0 stands alone."""
    begin = 0
    while begin < len(versions):
        boundary = -(-versions[begin] // CHECKPOINT_INTERVAL) * CHECKPOINT_INTERVAL
        end = bisect_right(versions, boundary, lo=begin)
        yield [*versions[begin:end]]
        begin = end


def _is_written_so(commit: Commit[Any], body: bytes) -> bool:
    try:
        return encode(commit) == body
    except (OverflowError, UnicodeEncodeError, RecursionError):
        # A number of more than 64 bits was never written.
        return False


def nearly(named: str, digest_before: str) -> bool:
    """Whether a digest is another one with a few places damaged.

    Example:
        >>> nearly("sha256:00ff", "sha256:00fe")
        True
    """
    if len(named) != len(digest_before):
        return True
    wrong = sum(a != b for a, b in zip(named, digest_before, strict=True))
    return 0 < wrong < _MOST_WRONG_DIGITS
