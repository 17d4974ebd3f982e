"""Local files through fsspec; devices, pipes and sockets are rejected."""

from __future__ import annotations

import os
import stat
from typing import Any

from fsspec.implementations.local import LocalFileSystem


class RegularFiles(LocalFileSystem):  # type: ignore[misc]
    """fsspec's local file system, except that only regular files can be opened for reading.

    Reading a device may never end, and opening a pipe may block; a path in foreign metadata may
    lead to either. Writing and listing are fsspec's own.
    """

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if not set(mode).isdisjoint("wax+"):
            return super()._open(path, mode, **options)
        return open_regular(path)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Return the bytes of a file, or of a part; negative offsets count from its end.

        Raises:
            OSError: It is not a regular file, or cannot be read.
        """
        with open_regular(self._strip_protocol(path)) as file:
            size = os.fstat(file.fileno()).st_size
            first = _clamp_offset(0 if start is None else start, size)
            last = _clamp_offset(size if end is None else end, size)
            file.seek(first)
            body: bytes = file.read(max(last - first, 0))
        return body


def _clamp_offset(offset: int, size: int) -> int:
    return min(offset, size) if offset >= 0 else max(size + offset, 0)


def open_regular(path: str) -> Any:
    """Open a local file for reading bytes.

    Raises:
        OSError: It is not a regular file, or cannot be opened.
    """
    # Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(number, "rb")
    os.close(number)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder, not a file; name a file")
    raise OSError(f"{path} is not a regular file, and only those are read; name another file")
