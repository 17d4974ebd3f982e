"""Delta tables as sources of an import.

Source: the Delta transaction protocol, "Delta Log Entries", "Checkpoints" and "Metadata Cleanup".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from attrs import frozen

from ledger.locations import below
from ledger.model.errors import InvalidInputError, NotFoundError, StoreError
from ledger.stores.file_access import FileAccess
from projections.delta.actions import FOLDER
from projections.delta.log_reading import Actions, read_lines, read_parquet
from projections.importing.trial import SourceFiles, place_of_source, plain

_is_uri = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/").match
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint\.(?:(?P<part>\d{10})\.(?P<parts>\d{10})\.)?"
    r"(?:(?P<uuid>[0-9A-Fa-f-]{36})\.)?(?P<kind>parquet|json)"
)


@frozen
class Version:
    """One version of a source.

    Attributes:
        number: Which.
        file: The file that tells of it.
        actions: What its commit does; what all up to it add up to where `is_whole`.
        commit: What its commit file says; nothing where that is gone.
        is_whole: Whether a checkpoint tells it, since commits before it are gone.
        written_millis: When its file was written, as the storage says; Unix milliseconds.
        sha256: Of its commit file; empty where that is gone.
    """

    number: int
    file: str
    actions: Actions
    commit: Actions
    is_whole: bool
    written_millis: int
    sha256: str


class Source:
    """A Delta table of somebody else.

    Args:
        place: Its folder; without secrets.
        access: Permission to open files, and the options of their client.

    Attributes:
        name: As people know it.

    Raises:
        InvalidInputError: The place holds something else.
        NotFoundError: There is nothing.
        StoreError: It may not be read.
    """

    def __init__(self, place: str, access: FileAccess) -> None:
        self.name = plain(place_of_source(place))
        self._files = SourceFiles(access.below(self.name))
        self._written = self._listed()
        self._commits: dict[int, str] = {}
        self._checkpoints: dict[int, list[str]] = {}
        self._list()

    def _list(self) -> None:
        parts: dict[tuple[int, str, int], list[str]] = {}
        for name in self._written:
            if commit := _COMMIT.fullmatch(name):
                self._commits[int(commit[1])] = name
            elif found := _CHECKPOINT.fullmatch(name):
                key = int(found["version"]), found["uuid"] or "", int(found["parts"] or 1)
                parts.setdefault(key, []).append(name)
        for (version, _, count), names in sorted(parts.items()):
            # Half of a checkpoint is none; of several, any will do.
            if len(names) == count:
                self._checkpoints[version] = sorted(names)
        if not self._commits and not self._checkpoints:
            raise InvalidInputError(f"{self.name}/{FOLDER} holds no version of a Delta table")

    def _listed(self) -> dict[str, int]:
        try:
            return self._files.written(f"{self.name}/{FOLDER}")
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFoundError(
                f"{self.name} holds no Delta table: it has no folder {FOLDER}/"
            ) from error
        except OSError as error:
            raise StoreError(f"{self.name} cannot be read: {error}") from error

    @property
    def newest(self) -> int:
        """The newest version."""
        return max((*self._commits, *self._checkpoints))

    def file(self, version: int) -> str:
        """Return the file that tells of a version, below the table."""
        name = self._commits.get(version) or self._checkpoints[version][0]
        return f"{FOLDER}/{name}"

    def versions(self, known: int) -> Iterator[Version]:
        """Yield the versions after a known one, oldest first; -1: all that are left.

        What happened before the first one that is left comes as one.

        Raises:
            InvalidInputError: The log has a gap that no checkpoint ends.
        """
        if known >= self.newest:
            return
        first = known + 1
        if not self._follows(first):
            first = self._start(known)
            yield self._whole(first)
            first += 1
        for number in range(first, self.newest + 1):
            yield self._commit(number)

    def _follows(self, first: int) -> bool:
        return all(each in self._commits for each in range(first, self.newest + 1))

    def _start(self, known: int) -> int:
        for each in sorted(self._checkpoints):
            if each > known and self._follows(each + 1):
                return each
        missing = next(each for each in range(self.newest, known, -1) if each not in self._commits)
        raise InvalidInputError(
            f"the log of {self.name} lacks version {missing}, and no checkpoint stands for it"
        )

    def _whole(self, number: int) -> Version:
        names = self._checkpoints[number]
        actions, commit = self._read_checkpoint(number), Actions()
        name, digest = self._commits.get(number), ""
        if name is not None:
            body = self.read(f"{FOLDER}/{name}")
            commit = read_lines(body, f"{self.name}/{FOLDER}/{name}")
            digest = hashlib.sha256(body).hexdigest()
        return Version(
            number,
            f"{FOLDER}/{names[0]}",
            actions,
            commit,
            is_whole=True,
            written_millis=self._written[name or names[0]],
            sha256=digest,
        )

    def _read_checkpoint(self, number: int) -> Actions:
        found = Actions()
        for name in self._checkpoints[number]:
            read = read_lines if name.endswith(".json") else read_parquet
            read(self.read(f"{FOLDER}/{name}"), name, found)
        for path in found.sidecars:
            place = path if "/" in path else f"{FOLDER}/_sidecars/{path}"
            read_parquet(self.read(place), path, found)
        if not found.protocol or not found.metadata:
            name = self._checkpoints[number][0]
            raise InvalidInputError(f"{name} has no protocol or no metadata, and is no checkpoint")
        return found

    def _commit(self, number: int) -> Version:
        name = self._commits[number]
        body = self.read(f"{FOLDER}/{name}")
        digest = hashlib.sha256(body).hexdigest()
        actions = read_lines(body, f"{self.name}/{FOLDER}/{name}")
        return Version(
            number,
            f"{FOLDER}/{name}",
            actions,
            actions,
            is_whole=False,
            written_millis=self._written[name],
            sha256=digest,
        )

    def digest(self, version: int) -> str | None:
        """Return the SHA-256 of a version's commit file; None where that is gone."""
        name = self._commits.get(version)
        return None if name is None else hashlib.sha256(self.read(f"{FOLDER}/{name}")).hexdigest()

    def read(self, path: str) -> bytes:
        """Return a file's bytes.

        Args:
            path: Below the table, or absolute.

        Raises:
            NotFoundError: It is gone.
            StoreError: It may not be read.
        """
        try:
            return self._files.read(self.absolute(path))
        except FileNotFoundError as error:
            raise NotFoundError(f"{path} of {self.name} is gone") from error
        except OSError as error:
            raise StoreError(f"{path} of {self.name} cannot be read: {error}") from error

    def absolute(self, path: str) -> str:
        """Return where a data file is, by its path as the ledger has it."""
        # A URI of any scheme may have one slash in a log of Delta's.
        return path if _is_uri(path) else below(self.name, path)
