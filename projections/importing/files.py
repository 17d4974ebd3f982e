"""The files of a source, wherever it lies: read and listed, never written."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from ledger.locations import is_url, local_path, place_of
from ledger.model.errors import InvalidInputError
from ledger.model.messages.credentials import advice, carries_credentials
from ledger.stores.file_access import FileAccess, absolute


@frozen
class SourceFiles:
    """Reads files by their URLs.

    Attributes:
        access: Permission to open them.
    """

    access: FileAccess

    def read(self, url: str) -> bytes:
        """Return a file's bytes; errors as of `FileAccess.read`."""
        return self.access.read(url)

    def names(self, folder: str) -> list[str]:
        """Return the names of what lies in a folder, sorted.

        Raises:
            FileNotFoundError: There is no such folder.
            OSError: It may not be listed.
            UnsupportedError: It lies outside of the permitted locations.
            InvalidInputError: It is no URL that files are opened at.
        """
        return sorted(self.written(folder))

    def written(self, folder: str) -> dict[str, int]:
        """Return what lies in a folder: when each was written, Unix milliseconds, by its name.

        A storage that does not say has 0.

        Raises:
            OSError: As of `names`.
            UnsupportedError: As of `names`.
            InvalidInputError: As of `names`.
        """
        files, path = self.access.open(folder)
        # What a mirror looks at changes between two looks.
        files.invalidate_cache()
        try:
            found: list[dict[str, Any]] = files.ls(path, detail=True)
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        named = ((posixpath.basename(str(each["name"]).rstrip("/")), each) for each in found)
        return {name: _millis(each) for name, each in named if name}


def place_of_source(source: str) -> str:
    """Return where a source is: its URL, or its local path from the root, without `..`; links stay.

    Raises:
        InvalidInputError: It holds a password or a key.
    """
    if carries_credentials(source):
        raise InvalidInputError(f"source {advice(source)}")
    if is_url(source):
        return source.rstrip("/")
    return f"/{place_of(str(absolute(plain(source)))).path}"


def plain(url: str) -> str:
    """Return a URL by which local places compare, however their scheme is written.

    Example:
        >>> plain("FILE:///lake/t/"), plain("/lake/t"), plain("s3://b/t")
        ('/lake/t', '/lake/t', 's3://b/t')
    """
    return (local_path(url) or url).rstrip("/")


_WRITTEN = ("mtime", "LastModified", "last_modified", "updated", "created")
"""What storages call the time at which a file was written."""


def _millis(entry: Mapping[str, Any]) -> int:
    found = next((entry[each] for each in _WRITTEN if entry.get(each)), 0)
    if isinstance(found, str):
        found = datetime.fromisoformat(found)
    return int((found.timestamp() if isinstance(found, datetime) else found) * 1000)
