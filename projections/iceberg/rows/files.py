"""RowFiles: PyIceberg's way to a table's files, by the same clients that the ledger has.

A ledger that was copied or moved has position deletes that name files at the other place: a reader
would find that none of them applies, and show deleted rows.
"""

from __future__ import annotations

import atexit
import io
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from weakref import WeakSet

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
from pyiceberg.io.fsspec import FsspecInputFile

from ledger.files.deletes import lost_names, named_files, names_files
from ledger.locations import below
from ledger.model.errors import NotFoundError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.stores.file_access import FileAccess
from ledger.table import Table

_LONGEST_WAIT_S = 5.0

# Whoever takes some rows only leaves Arrow's threads reading ahead, which abort a process that
# ends while they are inside one of its files.
_read: WeakSet[Any] = WeakSet()


@atexit.register
def _let_readers_finish() -> None:
    until = time.monotonic() + _LONGEST_WAIT_S
    while _read and time.monotonic() < until:
        time.sleep(0.001)


class RowFiles(FileIO):
    """Reads files where they are, and some from memory; writes none.

    Args:
        access: Permission to open the files that the log names.
        made: Files that are nowhere but here, by their URL.
        reached: How a place is reached by the way that the ledger was opened.
    """

    def __init__(
        self,
        access: FileAccess,
        made: Mapping[str, bytes],
        reached: Callable[[str], str],
    ) -> None:
        super().__init__()
        self._access = access
        self._made = made
        self._reached = reached

    def new_input(self, location: str) -> InputFile:
        """Return a file to read; whether it exists shows when it is opened.

        Raises:
            UnsupportedError: It lies outside of the permitted locations.
            InvalidInputError: It is no URL that files are opened at.
        """
        body = self._made.get(location)
        if body is not None:
            return _MadeFile(location, body)
        filesystem, inside = self._access.open(self._reached(location))
        return _File(inside, filesystem)

    def new_output(self, location: str) -> OutputFile:
        """Refuse to write."""
        raise _only_read(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Refuse to delete."""
        raise _only_read(location)


def _only_read(location: object) -> UnsupportedError:
    return UnsupportedError(
        f"{location} cannot be changed through a scan: commit to the ledger instead"
    )


class _File(FsspecInputFile):
    def open(self, seekable: bool = True) -> InputStream:  # noqa: FBT001, FBT002 - PyIceberg's
        """Open the file.

        Raises:
            NotFoundError: It is gone.
        """
        try:
            stream = super().open(seekable)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"file {self.location} of the table does not exist: put it back, or take it out "
                "of the table with delete_files"
            ) from error
        _read.add(stream)
        return stream


class _MadeFile(InputFile):
    def __init__(self, location: str, body: bytes) -> None:
        super().__init__(location=location)
        self._body = body

    def __len__(self) -> int:
        return len(self._body)

    def exists(self) -> bool:
        """Return that it does."""
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT001, FBT002 - PyIceberg's
        """Open the file."""
        return io.BytesIO(self._body)


def refuse_lost_deletes(table: Table, files: Iterable[FileChange], io: RowFiles) -> None:
    """Refuse to read where a delete file names a file that was never in the table.

    Args:
        table: The table.
        files: Those that are to be read.
        io: Reads them.

    Raises:
        NotFoundError: A delete file is gone.
        UnsupportedError: One names a file of another place.
    """
    for each in files:
        if not names_files(each):
            continue
        uri = table_uri(table, each.path)
        with io.new_input(uri).open() as body:
            lost = lost_names(table, named_files(body.read(), uri))
        if lost:
            raise UnsupportedError(
                f"{uri} deletes rows of {lost[0]}, which was never in {table.identifier} at "
                f"{table.location}: the ledger was copied or moved from another place after "
                "the deletes were written, and no reader would apply them; read the table "
                "where it was, or say that it was moved and have them written anew: lakeledger "
                "move --rewrite"
            )


def table_uri(table: Table, path: str) -> str:
    """Return where a file is whose path the log has."""
    return below(table.location, path)
