"""Delayed deletion of files that nothing references any more.

What leaves in one run is noted in one small file beside the log, before the position says that the
run was. How long it stays is counted in the times of the table's own commits, from the first one
after the pointers had moved on: whoever opened the table until then has that long. No clock of
this machine is asked, so a table that nobody commits to keeps what leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from attrs import evolve, frozen

from ledger.state.table import TableState
from ledger.table import Table
from projections.position_file import load_position, save_position

_DIGITS: Final = 20

NOTHING: Final = -1
"""Stands for a time where nothing leaves."""

UNKNOWN: Final = 0
"""Stands for a time where nobody has looked."""


@frozen
class Gone:
    """What one run found that nothing names any more.

    Attributes:
        newest: The log's newest version when the run had moved its pointers.
        paths: The files, below the table's location, in the order in which they are to go.
    """

    newest: int
    paths: tuple[str, ...]


@frozen
class Leaving:
    """What of a format's files leaves a table.

    Attributes:
        table: The table.
        name: The format's.
    """

    table: Table
    name: str

    def note(self, version: int, gone: Gone) -> None:
        """Remember what a run to a version leaves behind."""
        key = self._key(version)
        before = self._load(key)
        if before is not None:
            # A run that was killed, or one more to the same version.
            paths = dict.fromkeys((*before.paths, *gone.paths))
            gone = Gone(max(before.newest, gone.newest), tuple(paths))
        save_position(self.table.log.store, key, gone)

    def paths(self) -> frozenset[str]:
        """Return all files that leave."""
        return frozenset(path for _, gone in self._notes() for path in gone.paths)

    def since(self, newest: TableState) -> int:
        """Return since when the oldest of what leaves has been leaving.

        Args:
            newest: The table's newest state.
        """
        return next((self._since(gone, newest) for _, gone in self._notes()), NOTHING)

    def due(
        self, until: int, newest: TableState, grace_millis: int
    ) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield what has stayed long enough, oldest first: the version of its run, and the files.

        Args:
            until: The version that the format's files stand at; what a killed run noted beyond it
                is still needed.
            newest: The table's newest state, whose time counts.
            grace_millis: How long files stay.
        """
        for version, gone in self._notes():
            is_due = newest.time_millis - self._since(gone, newest) >= grace_millis
            if version > until or not is_due:
                return
            yield version, gone.paths

    def forget(self, version: int) -> None:
        """Forget what a run to a version left behind: it is gone."""
        self.table.log.store.delete(self._key(version))

    def stay(self, paths: Collection[str]) -> None:
        """Let files stay that are wanted again."""
        for version, gone in self._notes():
            left = tuple(path for path in gone.paths if path not in paths)
            if left != gone.paths:
                key, changed = self._key(version), evolve(gone, paths=left)
                save_position(self.table.log.store, key, changed)

    def forget_all(self) -> None:
        """Forget everything; whoever begins anew finds what stands and is not wanted."""
        for key in list(self.table.log.store.keys(self._folder)):
            self.table.log.store.delete(key)

    def _since(self, gone: Gone, newest: TableState) -> int:
        if gone.newest >= newest.version:
            # Whatever comes is no earlier.
            return newest.time_millis
        (first,) = self.table.log.commits(gone.newest + 1, gone.newest + 1)
        return first.commit.time_millis

    @property
    def _folder(self) -> str:
        return f"{self.table.log.layout.root}/pending-deletes/{self.name}"

    def _key(self, version: int) -> str:
        return f"{self._folder}/{version:0{_DIGITS}}.json"

    def _notes(self) -> Iterator[tuple[int, Gone]]:
        """Yield what runs left behind, oldest first; one that is damaged is as good as none."""
        for key in self.table.log.store.keys(self._folder):
            digits = key.removeprefix(f"{self._folder}/").removesuffix(".json")
            gone = self._load(key)
            if gone is not None and digits.isdecimal():
                yield int(digits), gone

    def _load(self, key: str) -> Gone | None:
        return load_position(self.table.log.store, key, Gone)
