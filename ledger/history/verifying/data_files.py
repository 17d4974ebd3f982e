"""The data files that a table names, against what its log says of them: there, as long, as many.

Only footers are read, never rows. A file counts as the table's while a snapshot that can be read
holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from attrs import frozen

from ledger.evolution.state import TableState
from ledger.files.live import LiveFiles
from ledger.files.registering.footers import read_footer
from ledger.history.verifying.finding import FROM_BACKUP, Finding
from ledger.locations import below
from ledger.model.errors import InvalidInputError, NotFoundError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.stores.file_access import FileAccess
from ledger.stores.objects.answers import reading

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_AT_ONCE: Final = 16
_BATCH: Final = 256


@frozen
class DataFiles:
    """Looks at the data files of one table.

    Attributes:
        live: The table's.
        at_snapshot: Gives the state right after a snapshot.
        location: Its absolute URL.
        access: Permission to open the files that the log names.
    """

    live: LiveFiles
    at_snapshot: Callable[[int], TableState]
    location: str
    access: FileAccess

    def problems(
        self, state: TableState, on_progress: Callable[[int, int], None]
    ) -> Iterator[Finding]:
        """Yield what is wrong with the files of all snapshots that can be read.

        Args:
            state: The newest one.
            on_progress: Told how many files were looked at, of how many.
        """
        files = self._reachable(state)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="data-files") as pool:
            done = 0
            for some in _parts(list(files.values()), _BATCH):
                for found in pool.map(self._problem, some):
                    if found is not None:
                        yield found
                done += len(some)
                on_progress(done, len(files))

    def _reachable(self, state: TableState) -> dict[str, FileChange]:
        """Return the files that some readable snapshot holds, by path."""
        live = self.live
        found = live.at_state(state)
        newest, earliest = state.last_snapshot_id, state.earliest_snapshot_id
        for each in state.held_snapshot_ids | {earliest}:
            if 1 <= each < newest:
                found = live.at_state(self.at_snapshot(each)) | found
        if earliest < newest:
            first = self.at_snapshot(earliest).version
            for placed in live.snapshot_changes(earliest, newest, first, state.version):
                if placed.change.kind == "ADD":
                    found.setdefault(placed.change.path, placed.change)
        for branch in state.branches.values():
            for placed in live.branch_changes(branch, state.version):
                if placed.change.kind == "ADD":
                    found.setdefault(placed.change.path, placed.change)
        return found

    def _problem(self, file: FileChange) -> Finding | None:
        """Return what is wrong with one file."""
        url = below(self.location, file.stored_at)
        said = self._said(file, url)
        return None if said is None else Finding("data", said, file.path, None, FROM_BACKUP)

    def _said(self, file: FileChange, url: str) -> str | None:
        try:
            return _difference(file, *self.access.open(url))
        except NotFoundError:
            return "the data file is missing"
        except (InvalidInputError, UnsupportedError) as error:
            return f"the data file cannot be read: {error.message}"


def _difference(file: FileChange, filesystem: AbstractFileSystem, path: str) -> str | None:
    """Return where a file is other than the log says.

    Raises:
        NotFoundError: It does not exist.
        InvalidInputError: It is no Parquet file, and should be one.
        StoreError: Its place does not answer.
    """
    with reading("the data file"):
        info = filesystem.info(path)
    if info.get("type") == "directory":
        return "a folder stands in the data file's place"
    said, found = file.file_size_in_bytes, info["size"]
    if found != said:
        return f"the data file has {found} bytes, and the log says {said}"
    if file.format.lower() != "parquet":
        return None
    rows = read_footer(path, filesystem=filesystem, info=info).record_count
    if rows != file.record_count:
        return f"the data file has {rows} rows, and the log says {file.record_count}"
    return None


def _parts(files: list[FileChange], length: int) -> Iterable[list[FileChange]]:
    return (files[start : start + length] for start in range(0, len(files), length))
