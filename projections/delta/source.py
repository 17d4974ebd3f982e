"""Delta tables as sources of an import.

Source: the Delta transaction protocol, "Delta Log Entries", "Checkpoints" and "Metadata Cleanup".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from attrs import evolve, frozen

from ledger.locations import below
from ledger.model.errors import InvalidInputError, NotFoundError, StoreError
from ledger.stores.file_access import FileAccess
from projections.delta.actions import FOLDER
from projections.delta.log_reading import LogActions, read_lines, read_parquet
from projections.importing.trial import SourceFiles, canonical_source, canonical_url

_is_uri = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/").match
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint\.(?:(?P<part>\d{10})\.(?P<parts>\d{10})\.)?"
    r"(?:(?P<uuid>[0-9A-Fa-f-]{36})\.)?(?P<kind>parquet|json)"
)


@frozen
class SourceVersion:
    """One version of a source.

    Attributes:
        number: The version number.
        since: The first version whose changes it has: its own, or the first of those that were left
            out before it.
        file: The name of the commit or checkpoint file.
        actions: The commit's actions; those of the whole state if `is_whole`.
        commit: The content of its commit file; empty if that was deleted.
        is_whole: Whether it was read from a checkpoint, since earlier commits were deleted.
        written_millis: The modification time of its file on the storage; Unix milliseconds.
        sha256: The digest of its commit file; empty if that was deleted.
    """

    number: int
    since: int
    file: str
    actions: LogActions
    commit: LogActions
    is_whole: bool
    written_millis: int
    sha256: str

    @property
    def is_single(self) -> bool:
        """True if it has the changes of one commit."""
        return self.since == self.number and not self.is_whole

    def with_next(self, later: SourceVersion) -> SourceVersion:
        """Return the next version with the changes of both; this one cannot be used any more."""
        self.actions.add_commit(later.actions)
        return evolve(later, since=self.since, actions=self.actions, is_whole=self.is_whole)


class DeltaSource:
    """A Delta table at the source of an import.

    Args:
        place: Its folder, without secrets.
        access: Permission to open files, and the options of the storage client.

    Attributes:
        name: Its display name.

    Raises:
        InvalidInputError: The folder is not a Delta table.
        NotFoundError: The folder does not exist.
        StoreError: The folder cannot be read.
    """

    def __init__(self, place: str, access: FileAccess) -> None:
        self.name = canonical_url(canonical_source(place))
        self._files = SourceFiles(access.below(self.name))
        self._written = self._log_file_times()
        self._commits: dict[int, str] = {}
        self._checkpoints: dict[int, list[str]] = {}
        self._index_log_files()

    def _index_log_files(self) -> None:
        parts: dict[tuple[int, str, int], list[str]] = {}
        for name in self._written:
            if commit := _COMMIT.fullmatch(name):
                self._commits[int(commit[1])] = name
            elif found := _CHECKPOINT.fullmatch(name):
                key = int(found["version"]), found["uuid"] or "", int(found["parts"] or 1)
                parts.setdefault(key, []).append(name)
        for (version, _, count), names in sorted(parts.items()):
            # A multi-part checkpoint counts only if complete; any of several will do.
            if len(names) == count:
                self._checkpoints[version] = sorted(names)
        if not self._commits and not self._checkpoints:
            raise InvalidInputError(f"{self.name}/{FOLDER} holds no version of a Delta table")

    def _log_file_times(self) -> dict[str, int]:
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
        """Return the name of a version's commit or checkpoint file, below the table."""
        name = self._commits.get(version) or self._checkpoints[version][0]
        return f"{FOLDER}/{name}"

    def versions(self, known: int) -> Iterator[SourceVersion]:
        """Yield the versions after a known one, oldest first; after -1, all that are left.

        The state before the first commit that is left is one version.

        Raises:
            InvalidInputError: The log has a gap that no checkpoint covers.
        """
        if known >= self.newest:
            return
        first = known + 1
        if not self._has_all_commits_from(first):
            first = self._first_checkpoint_after(known)
            yield self._read_checkpoint_version(first)
            first += 1
        for number in range(first, self.newest + 1):
            yield self._read_commit_version(number)

    def _has_all_commits_from(self, first: int) -> bool:
        return all(each in self._commits for each in range(first, self.newest + 1))

    def _first_checkpoint_after(self, known: int) -> int:
        for each in sorted(self._checkpoints):
            if each > known and self._has_all_commits_from(each + 1):
                return each
        missing = next(each for each in range(self.newest, known, -1) if each not in self._commits)
        raise InvalidInputError(
            f"the log of {self.name} lacks version {missing}, and no checkpoint covers it"
        )

    def _read_checkpoint_version(self, number: int) -> SourceVersion:
        names = self._checkpoints[number]
        actions, commit = self._read_checkpoint(number), LogActions()
        name, digest = self._commits.get(number), ""
        if name is not None:
            body = self.read(f"{FOLDER}/{name}")
            commit = read_lines(body, f"{self.name}/{FOLDER}/{name}")
            digest = hashlib.sha256(body).hexdigest()
        return SourceVersion(
            number,
            number,
            f"{FOLDER}/{names[0]}",
            actions,
            commit,
            is_whole=True,
            written_millis=self._written[name or names[0]],
            sha256=digest,
        )

    def _read_checkpoint(self, number: int) -> LogActions:
        found = LogActions()
        for name in self._checkpoints[number]:
            read = read_lines if name.endswith(".json") else read_parquet
            read(self.read(f"{FOLDER}/{name}"), name, found)
        for path in found.sidecars:
            place = path if "/" in path else f"{FOLDER}/_sidecars/{path}"
            read_parquet(self.read(place), path, found)
        if not found.protocol or not found.metadata:
            name = self._checkpoints[number][0]
            raise InvalidInputError(f"{name} has no protocol or metadata, and is not a checkpoint")
        return found

    def _read_commit_version(self, number: int) -> SourceVersion:
        name = self._commits[number]
        body = self.read(f"{FOLDER}/{name}")
        digest = hashlib.sha256(body).hexdigest()
        actions = read_lines(body, f"{self.name}/{FOLDER}/{name}")
        return SourceVersion(
            number,
            number,
            f"{FOLDER}/{name}",
            actions,
            actions,
            is_whole=False,
            written_millis=self._written[name],
            sha256=digest,
        )

    def digest(self, version: int) -> str | None:
        """Return the SHA-256 of a version's commit file; None if that was deleted."""
        name = self._commits.get(version)
        return None if name is None else hashlib.sha256(self.read(f"{FOLDER}/{name}")).hexdigest()

    def read(self, path: str) -> bytes:
        """Return a file's bytes.

        Args:
            path: Relative to the table, or absolute.

        Raises:
            NotFoundError: The file does not exist.
            StoreError: The file cannot be read.
        """
        try:
            return self._files.read(self.absolute(path))
        except FileNotFoundError as error:
            raise NotFoundError(f"{path} of {self.name} does not exist") from error
        except OSError as error:
            raise StoreError(f"{path} of {self.name} cannot be read: {error}") from error

    def absolute(self, path: str) -> str:
        """Return a data file's location, from its path in the ledger."""
        # In a Delta log a URI of any scheme may have a single slash.
        return path if _is_uri(path) else below(self.name, path)
