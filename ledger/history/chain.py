"""The commits of a stream along their hashes, with everything that does not fit on the way.

A broken link says that one of two files was changed. Which one: a digest that is wrong in a few
places only was itself damaged, and a file whose links on both sides are broken is the changed one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Generic, TypeVar

from attrs import frozen
from msgspec import UNSET

from ledger.events.commit import Commit
from ledger.evolution.stream import StateLike
from ledger.history.finding import Finding
from ledger.history.subject import Subject
from ledger.log.codec import digest, encode
from ledger.model.errors import DamagedLogError, UpgradeRequiredError

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")

_CHUNK = 256
_MOST_WRONG_DIGITS = 32
"""Two digests of different contents agree in half of their digits once in many ages."""

_version_of = re.compile(r"(\d{20})\.json").fullmatch


@frozen
class Link(Generic[E]):
    """One commit that can be read, and the digest of its file."""

    commit: Commit[E]
    digest: str


@frozen
class Extent:
    """What stands in a log's folder.

    Attributes:
        last: The highest version; -1 when there is none.
        foreign: Keys that are no commits', the first few.
    """

    last: int
    foreign: tuple[str, ...]


def extent(subject: Subject[S, E], *, most_foreign: int = 20) -> Extent:
    """Look through a log's folder, without holding it."""
    last = -1
    foreign: list[str] = []
    for key, version in _versions(subject):
        if version is not None:
            last = max(last, version)
        elif len(foreign) < most_foreign:
            foreign.append(key)
    return Extent(last, tuple(sorted(foreign)))


def _versions(subject: Subject[S, E]) -> Iterator[tuple[str, int | None]]:
    folder = subject.layout.commit(0).rpartition("/")[0]
    for key in subject.store.walk(folder):
        found = _version_of(key.removeprefix(f"{folder}/"))
        yield key, int(found[1]) if found else None


class Chain(Generic[S, E]):
    """One walk along a stream's hash chain.

    Args:
        subject: The stream.
        last: The last version to read; it exists.
    """

    def __init__(self, subject: Subject[S, E], last: int) -> None:
        self._subject = subject
        self._last = last
        self._before: Link[E] | None = None
        self._blamed: set[int] = set()

    def walk(self) -> Iterator[Link[E] | Finding]:
        """Yield each commit that can be read, in order, and a finding before what does not fit.

        A version is blamed once. After a gap or an unreadable file the walk goes on behind it.
        """
        version = 0
        while version <= self._last:
            bodies = self._bodies(version)
            for body in bodies:
                if body is None:
                    end = self._next_after(version)
                    yield from self._blame(version, self._gap(version, end))
                    version = end
                    break
                yield from self._commit(version, body)
                version += 1

    def _bodies(self, version: int) -> Iterator[bytes | None]:
        end = min(version + _CHUNK, self._last + 1)
        keys = [self._subject.layout.commit(each) for each in range(version, end)]
        return self._subject.store.read_many(keys)

    def _blame(self, version: int, what: str) -> Iterator[Finding]:
        """Yield a finding, unless the version was blamed before; the next link is not checked."""
        self._before = None
        if version not in self._blamed:
            self._blamed.add(version)
            yield Finding("damage", what, self._subject.layout.commit(version), version)

    def _gap(self, version: int, end: int) -> str:
        if end == version + 1:
            return f"the commit is missing, but version {end} exists"
        return f"the commits {version} to {end - 1} are missing, but version {end} exists"

    def _next_after(self, version: int) -> int:
        found = (each for _, each in _versions(self._subject) if each is not None)
        return min((each for each in found if version < each <= self._last), default=self._last + 1)

    def _commit(self, version: int, body: bytes) -> Iterator[Link[E] | Finding]:
        commit = self._decoded(version, body)
        if isinstance(commit, str):
            yield from self._blame(version, commit)
            return
        link = Link(commit, digest(body))
        before = self._before
        if before is not None and commit.parent != before.digest:
            yield from self._broken(version, before, link)
        elif version == 0 and commit.parent is not UNSET:
            yield from self._blame(0, "it is version 0 and names a parent")
        elif version > 0 and commit.parent is UNSET:
            yield from self._blame(version, "it names no parent")
        if encode(commit) != body:
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
            return f"it says that it is version {commit.version}"
        return commit

    def _broken(self, version: int, before: Link[E], link: Link[E]) -> Iterator[Finding]:
        named = link.commit.parent
        if named is UNSET or nearly(named, before.digest):
            yield from self._blame(version, f"the parent that it names is damaged: {named}")
        elif self._is_unlinked_behind(version, link):
            yield from self._blame(
                version, f"it follows another version {version - 1}, and another follows it"
            )
        else:
            yield from self._blame(
                version - 1, f"it was changed: version {version} names another file as its parent"
            )

    def _is_unlinked_behind(self, version: int, link: Link[E]) -> bool:
        if version == self._last:
            return False
        body = self._subject.store.read(self._subject.layout.commit(version + 1))
        follower = None if body is None else self._decoded(version + 1, body)
        return isinstance(follower, Commit) and follower.parent != link.digest


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
