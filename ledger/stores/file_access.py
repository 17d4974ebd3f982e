"""Opening files by URL: the only module that passes a URL to a client library.

Foreign table metadata, logs and exports name files by URL, and a URL can do more than reading a
file: chained file systems render templates and unpack archives, other schemes call hosts, a local
path may be a device that never ends. `open_location` therefore opens only schemes on an allow-list,
never a chain, and on this machine only regular files. `FileAccess` restricts locations: a URL that
comes from metadata is opened only below locations that the user named. All code that opens a URL
uses one of the two.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from attrs import evolve, frozen

from ledger.locations import FAMILIES, LOCAL, Place, local_path, place_of
from ledger.model.credentials import carries_credentials, credentials_error_text, shown
from ledger.model.errors import (
    InvalidInputError,
    MissingDependencyError,
    StoreError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


MEMORY: Final = "memory"
_OTHER_SCHEMES: Final = frozenset(
    {"ftp", "hdfs", "http", "https", "oss", "sftp", "smb", "ssh", "webhdfs"}
)
"""Schemes of remote file systems that files can be read from, but that cannot hold a ledger."""

SCHEMES: Final = frozenset({LOCAL, MEMORY, *FAMILIES, *_OTHER_SCHEMES})
"""Schemes that files are read from, by family; see `ledger.locations.FAMILIES`."""

MAX_FILE_BYTES: Final = 2 << 30
"""Size in bytes up to which a metadata file is read whole; manifests and checkpoints of real tables
with millions of files are smaller than a quarter of it."""

_ROOT: Final = Place(LOCAL, "", "")


def open_location(
    url: str, storage_options: Mapping[str, Any] | None = None
) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a path or URL, and the path in it; nothing is read yet.

    A local path may be relative and begin with `~`. On this machine only regular files can be
    opened for reading: a device, a pipe or a socket raises `OSError`.

    Args:
        url: Named by the user, or permitted by a `FileAccess`.
        storage_options: Options of the URL's client, as fsspec or delta-rs name them; local and
            memory file systems take none.

    Raises:
        InvalidInputError: The URL is a chain of file systems, has a scheme that is not on the
            list, contains credentials, or cannot name a file.
        MissingDependencyError: The client library is not installed.
        StoreError: The client rejects the options.
    """
    _check_url(url)
    local = local_file(url)
    if local is not None:
        from ledger.stores.regular_files import RegularFiles

        return RegularFiles(), local
    place = place_of(url, _ROOT)
    if place.family in FAMILIES:
        return _object_storage_client(
            place, storage_options or {}
        ), f"{place.host}/{place.path}".rstrip("/")
    from fsspec.core import url_to_fs

    options = {} if place.family == MEMORY else dict(storage_options or {})
    try:
        filesystem, inside = url_to_fs(url, **options)
    except ImportError as error:
        raise MissingDependencyError(f"{shown(url)} cannot be opened: {error}") from error
    except ValueError as error:
        raise InvalidInputError(f"{shown(url)} cannot be opened: {error}") from error
    return filesystem, inside.rstrip("/") or inside


def absolute(path: str) -> Path:
    """Return the absolute path of a local one, which may begin with `~`; keeps links and `..`."""
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        # There is no such user: it may be the name of a file.
        return Path(path).absolute()


def local_file(url: str) -> str | None:
    """Return the absolute path that a local path or URL names; keeps `..`; None for other URLs."""
    if place_of(url, _ROOT).family != LOCAL:
        return None
    path = local_path(url) or str(absolute(url))
    return path.rstrip("/") or "/"


def _check_url(url: str) -> None:
    if carries_credentials(url):
        raise InvalidInputError(credentials_error_text(url))
    if "::" in url:
        raise InvalidInputError(
            f"{shown(url)!r} is a chain of file systems, and none is opened; name the file itself"
        )
    try:
        is_text = "\0" not in url and bool(url.encode())
    except UnicodeEncodeError:
        is_text = False
    if not is_text:
        raise InvalidInputError(
            f"{url!r} is not a path or URL of a file; check the place that names it"
        )
    place = place_of(url, _ROOT)
    if place.family == LOCAL and place.host:
        raise InvalidInputError(
            f"{shown(url)!r} names another host; write file:///absolute/path for a file of this "
            "machine"
        )
    family = place.family
    if family not in SCHEMES:
        raise InvalidInputError(
            f"{shown(url)!r} cannot be opened: {family or url.partition(':')[0]!r} is not on the "
            f"list of schemes that files are read from ({', '.join(sorted(SCHEMES))})"
        )


def _object_storage_client(place: Place, storage_options: Mapping[str, Any]) -> AbstractFileSystem:
    from ledger.stores.services import client_of

    filesystem: AbstractFileSystem = client_of(place.family, place.host, storage_options)
    return filesystem


Endpoint = tuple[str, str]
"""Service that serves a URL: a family of schemes and a host; empty if the family has just one."""


def endpoint_of(url: str, storage_options: Mapping[str, Any] | None = None) -> Endpoint:
    """Return the service that serves a URL.

    All buckets of S3, and all of Google, have one endpoint; an Azure container has that of its
    account, and other schemes that of their host.

    Args:
        url: An absolute path or URL.
        storage_options: May name the account of Azure URLs that name none.

    Example:
        >>> endpoint_of("s3a://lake/t"), endpoint_of("abfss://c@me.dfs.core.windows.net/t")
        (('s3', ''), ('abfs', 'me.dfs.core.windows.net'))
    """
    return _resolve_endpoint(place_of(url, _ROOT), storage_options or {})


def _resolve_endpoint(place: Place, options: Mapping[str, Any]) -> Endpoint:
    if place.family in {LOCAL, MEMORY, "s3", "gs"}:
        return place.family, ""
    if place.family == "abfs":
        account = options.get("account_name", "")
        named = f"{account}.dfs.core.windows.net" if account else ""
        return place.family, place.host.partition("@")[2] or named
    return place.family, place.host


def resolve_symlinks(place: Place) -> Place:
    """Return a place with the symbolic links of a local path resolved."""
    if place.family != LOCAL:
        return place
    return place_of(os.path.realpath(f"/{place.path}"))


def _has_parent_segments(path: str) -> bool:
    """Return whether a path has `..` segments, by which a server may leave the folder."""
    return ".." in unquote(path).replace("\\", "/").split("/")


@frozen
class FileAccess:
    """Permission to open files by URLs that come from metadata.

    Attributes:
        home: The service that `options` are for.
        options: Options of its client, as fsspec or delta-rs name them.
        endpoints: Services of which every file may be read.
        folders: Locations below which files may be read, on any service.
    """

    home: Endpoint
    options: Mapping[str, Any]
    endpoints: Collection[Endpoint] = ()
    folders: tuple[Place, ...] = ()

    def below(self, folder: str) -> FileAccess:
        """Return a copy with one more location below which files may be read."""
        return evolve(self, folders=(*self.folders, place_of(folder, _ROOT)))

    def permits(self, url: str) -> bool:
        """Return whether a URL may be opened, by its scheme and location.

        Example:
            >>> access = FileAccess(("file", ""), {}).below("/lake/t")
            >>> access.permits("file:///lake/t/a"), access.permits("/lake/t/../b")
            (True, False)
        """
        try:
            _check_url(url)
        except InvalidInputError:
            return False
        return self._is_permitted(url)

    def _is_permitted(self, url: str) -> bool:
        if self._resolve_endpoint(url) in self.endpoints:
            return True
        place = place_of(url, _ROOT)
        real = resolve_symlinks(place)
        if place.family != LOCAL and _has_parent_segments(place.path):
            return False
        return any(resolve_symlinks(each).holds(real) for each in self.folders)

    def check(self, url: str) -> None:
        """Check that a URL may be opened.

        Raises:
            InvalidInputError: As of `open_location`.
            UnsupportedError: It is outside of the permitted locations.
        """
        _check_url(url)
        if not self._is_permitted(url):
            raise UnsupportedError(
                f"{shown(url)} was not opened: it is outside of the locations that may be read "
                "here. If you trust what names it, allow its folder: ledger.open(..., "
                "allowed_locations=[...]), or LAKELEDGER_ALLOWED_LOCATIONS"
            )

    def options_at(self, url: str) -> Mapping[str, Any]:
        """Return the client options for a URL: none for other services than `home`."""
        return self.options if self._resolve_endpoint(url) == self.home else {}

    def _resolve_endpoint(self, url: str) -> Endpoint:
        place = place_of(url, _ROOT)
        is_near = place.family == self.home[0]
        found = _resolve_endpoint(place, self.options if is_near else {})
        # An Azure URL without an account refers to that of the ledger.
        return self.home if is_near and not found[1] else found

    def open(self, url: str) -> tuple[AbstractFileSystem, str]:
        """Return the file system of a permitted URL, and the path in it.

        Raises:
            InvalidInputError: As of `open_location`.
            UnsupportedError: As of `check`.
            MissingDependencyError: The client library is not installed.
        """
        self.check(url)
        place = place_of(url, _ROOT)
        if place.family == LOCAL:
            # The resolved path that was checked: after a link, `..` leads elsewhere.
            return open_location(f"/{resolve_symlinks(place).path}")
        if place.family == "abfs" and "@" not in place.host and self.home[1]:
            url = f"abfss://{place.host}@{self.home[1]}/{place.path}"
        return open_location(url, self.options_at(url))

    def read(self, url: str) -> bytes:
        """Return a file's bytes.

        Raises:
            OSError: It does not exist, is not a regular file, or cannot be read.
            InvalidInputError: As of `open_location`, or it has more than `MAX_FILE_BYTES`.
            UnsupportedError: As of `check`.
        """
        filesystem, path = self.open(url)
        return read_limited(filesystem, path, url)


def read_limited(filesystem: AbstractFileSystem, path: str, url: str) -> bytes:
    """Return the bytes of a file of at most `MAX_FILE_BYTES`.

    Args:
        filesystem: The file system, as `open_location` returned it.
        path: The path in it.
        url: The file's name in messages.

    Raises:
        OSError: It cannot be read; errors of client libraries are converted to it.
        InvalidInputError: It is larger.
    """
    try:
        size = filesystem.info(path).get("size") or 0
        if size <= MAX_FILE_BYTES:
            body: bytes = filesystem.cat_file(path)
            return body
    except (OSError, StoreError):
        raise
    except Exception as error:
        # Each client library has its own exceptions.
        raise OSError(f"{type(error).__name__}: {error}") from error
    raise InvalidInputError(
        f"{shown(url)} has {size:,} bytes, and metadata files of at most {MAX_FILE_BYTES:,} are "
        "read; check the place that names it"
    )
