"""The files of a source, wherever it lies: read and listed, never written."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from ledger.locations import is_url, local_path
from ledger.model.errors import InvalidInputError, StoreError
from ledger.model.messages.credentials import advice, carries_credentials


@frozen
class SourceFiles:
    """Reads files by their URLs.

    Attributes:
        options: What fsspec takes for them.
    """

    options: Mapping[str, Any]

    def read(self, url: str) -> bytes:
        """Return a file's bytes.

        Raises:
            OSError: It is not there, or may not be read.
            StoreError: Nothing that is installed reads such a place.
        """
        files, path = self._open(url)
        try:
            body: bytes = files.cat_file(path)
        except OSError:
            raise
        except Exception as error:
            # Every kind of storage has errors of its own.
            raise OSError(f"{type(error).__name__}: {error}") from error
        return body

    def names(self, folder: str) -> list[str]:
        """Return the names of what lies in a folder, sorted.

        Raises:
            FileNotFoundError: There is no such folder.
            OSError: It may not be listed.
            StoreError: As of `read`.
        """
        return sorted(self.written(folder))

    def written(self, folder: str) -> dict[str, int]:
        """Return what lies in a folder: when each was written, Unix milliseconds, by its name.

        A storage that does not say has 0.

        Raises:
            OSError: As of `names`.
            StoreError: As of `read`.
        """
        files, path = self._open(folder)
        try:
            found: list[dict[str, Any]] = files.ls(path, detail=True)
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        named = ((posixpath.basename(str(each["name"]).rstrip("/")), each) for each in found)
        return {name: _millis(each) for name, each in named if name}

    def _open(self, url: str) -> tuple[Any, str]:
        import fsspec

        try:
            found: tuple[Any, str] = fsspec.core.url_to_fs(
                re.sub(r"^s3[an]:", "s3:", url), **self.options
            )
        except (ImportError, ValueError, RecursionError) as error:
            raise StoreError(f"{url} cannot be opened: {error}") from error
        # What a mirror looks at changes between two looks.
        found[0].invalidate_cache()
        return found


def place_of_source(source: str) -> str:
    """Return where a source is: its URL, or its local path from the root; links stay.

    Raises:
        InvalidInputError: It holds a password or a key.
    """
    if carries_credentials(source):
        raise InvalidInputError(f"source {advice(source)}")
    if is_url(source):
        return source.rstrip("/")
    return str(Path(plain(source)).expanduser().absolute())


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
