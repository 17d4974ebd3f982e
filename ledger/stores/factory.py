"""Factory of stores by URL, and a check of a store before its first use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ledger.model.credentials import carries_credentials, credentials_error_text, shown
from ledger.model.errors import StoreError
from ledger.stores.base import Store, folder_of
from ledger.stores.local import LocalStore
from ledger.stores.memory import MemoryStore

if TYPE_CHECKING:
    from ledger.stores.services import Service


_SUPPORTED: Final = (
    "s3://BUCKET/FOLDER, gs://BUCKET/FOLDER, abfs://CONTAINER/FOLDER, a local path, "
    "file:///absolute/path and memory://NAME"
)
_REASONS: Final = {
    "simplecache": "a cache in between drops the condition of a create",
    "filecache": "a cache in between drops the condition of a create",
    "blockcache": "a cache in between drops the condition of a create",
    "hdfs": "its client overwrites, or deletes and renames",
    "webhdfs": "its client overwrites",
    "sftp": "its client leaves an empty file behind where a create fails",
    "ssh": "its client leaves an empty file behind where a create fails",
    "smb": "readers see a file while it is written",
    "oss": "its client has no conditional create",
    "http": "it cannot be written to",
    "https": "it cannot be written to",
}
_NO_SERVICE: Final = ("", "file", "memory")
_scheme_of = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)(?:://|::)|((?i:file)):").match


def open_store(url: str, storage_options: Mapping[str, Any] | None = None) -> Store:
    """Open the store whose root is `url`; nothing is read or written yet.

    A plain path may be relative and begin with `~`. A `file:` URL is taken literally, without
    percent-decoding.

    Args:
        url: The root.
        storage_options: Options of the URL's client, as fsspec or delta-rs name them; local and
            memory stores take none.

    Raises:
        StoreError: No store with a proven conditional create supports this URL or these options.
        InvalidNameError: The folder below a bucket, or the name after `memory://`, is invalid.
        MissingDependencyError: The library of that kind of store is not installed.

    Example:
        >>> open_store("memory://docs").url, open_store("file:///data/lake/").url
        ('memory://docs', 'file:///data/lake')
    """
    if carries_credentials(url):
        raise StoreError(credentials_error_text(url))
    match = _scheme_of(url)
    scheme = "" if match is None else (match[1] or match[2]).lower()
    service = _service_of(scheme)
    if match is not None and service is not None and match[0].endswith("://"):
        from ledger.stores.object_store import ObjectStore
        from ledger.stores.services import root_of

        return ObjectStore(root_of(service, url[match.end() :], storage_options or {}))
    if storage_options:
        raise StoreError(
            f"the store {shown(url)!r} takes no storage_options, but was given "
            f"{sorted(storage_options)}; leave them out"
        )
    if match is None:
        return LocalStore(_expand_local_path(url))
    if scheme == "memory" and match[0].endswith("://"):
        return MemoryStore(url[match.end() :])
    if scheme == "file" and not match[0].endswith("::"):
        return LocalStore(_path_of_file_url(url))
    raise StoreError(
        f"{shown(url)!r} cannot hold a ledger: {scheme!r} is not on the list of stores with a "
        f"proven conditional create, and without one, commits get lost"
        f"{f' ({_REASONS[scheme]})' if scheme in _REASONS else ''}. Supported: {_SUPPORTED}"
    )


def client_options(url: str, storage_options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return storage options in fsspec's names, for reading data files with a store's client.

    Raises:
        StoreError: Two of them contradict each other.

    Example:
        >>> client_options("s3a://bucket/lake", {"AWS_ACCESS_KEY_ID": "mine"})["key"]
        'mine'
    """
    match = _scheme_of(url)
    service = _service_of("" if match is None else (match[1] or match[2]).lower())
    if service is None and not storage_options:
        return {}
    from ledger.stores.services import fsspec_options

    return fsspec_options("" if service is None else service.scheme, storage_options or {})


def _service_of(scheme: str) -> Service | None:
    if scheme in _NO_SERVICE:
        # A local store does not need the import below.
        return None
    from ledger.stores.services import service_of

    return service_of(scheme)


def _expand_local_path(url: str) -> str:
    if not url or "\0" in url:
        raise StoreError(f"{url!r} is no path; give {_SUPPORTED}")
    # Imported here: slow, compared to the start of a program.
    from pathlib import Path

    try:
        return str(Path(url).expanduser())
    except RuntimeError as error:
        raise StoreError(
            f"{url!r} is below the home folder of a user that this machine does not have; write "
            "the absolute path, or './' before the '~' of a folder's name"
        ) from error


def _path_of_file_url(url: str) -> str:
    path = url[len("file:") :].removeprefix("//")
    if not path.startswith("/") or "\0" in path:
        raise StoreError(
            f"{shown(url)!r} names a host or a relative path; write file:///absolute/path, "
            f"or the plain path without 'file:'"
        )
    return path


_FIRST = b"first"
_SECOND = b"second"


class Check(NamedTuple):
    """Result of one check of a store: a required behaviour, and whether the store has it."""

    claim: str
    holds: bool


def check_store(store: Store, key: str) -> Iterator[Check]:
    """Yield checks of a store's required behaviour on a key, which is deleted afterwards.

    Args:
        store: The store.
        key: A key that does not exist and that no other process uses.

    Raises:
        StoreError: The store's self-test rejects it.
        OSError: It does not answer.

    Example:
        >>> from ledger.stores.memory import MemoryStore
        >>> all(check.holds for check in check_store(MemoryStore("examined"), "a/b"))
        True
    """
    try:
        yield Check("creates a new key", store.create(key, _FIRST))
        yield Check("refuses to create it again", not store.create(key, _SECOND))
        yield Check("keeps what was written first", store.read(key) == _FIRST)
        yield Check("lists it at once", key in store.keys(folder_of(key)))
        store.replace(key, _SECOND)
        yield Check("replaces it", store.read(key) == _SECOND)
    finally:
        # An error here must not hide an earlier one; the last check finds a key that remains.
        with suppress(OSError):
            store.delete(key)
    yield Check("forgets it once deleted", not store.exists(key))
