"""From a URL to a store: the list of places with a proven put-if-absent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ledger.model.errors import StoreError
from ledger.stores.base import Store
from ledger.stores.local import LocalStore
from ledger.stores.memory import MemoryStore

_SUPPORTED: Final = "a local path, file:///absolute/path and memory://NAME"
_scheme_of = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)(?:://|::)|((?i:file)):").match


def open_store(url: str, storage_options: Mapping[str, Any] | None = None) -> Store:
    """Open the store whose root is `url`; nothing is read or written yet.

    A plain path may be relative and begin with `~`. A `file:` URL is taken literally, without
    percent-decoding.

    Args:
        url: The root.
        storage_options: What the store's backend needs; none of today's takes any.

    Raises:
        StoreError: No store with a proven conditional create serves this URL or these options.
        InvalidNameError: The name after `memory://` cannot be a path.

    Example:
        >>> open_store("memory://docs").url, open_store("file:///data/lake/").url
        ('memory://docs', 'file:///data/lake')
    """
    if storage_options:
        raise StoreError(
            f"the store {url!r} takes no storage_options, but was given "
            f"{sorted(storage_options)}; leave them out"
        )
    match = _scheme_of(url)
    if match is None:
        return LocalStore(_local_path(url))
    scheme = (match[1] or match[2]).lower()
    if scheme == "memory" and match[0].endswith("://"):
        return MemoryStore(url[match.end() :])
    if scheme == "file" and not match[0].endswith("::"):
        return LocalStore(_file_path(url))
    raise StoreError(
        f"{url!r} cannot hold a ledger: {scheme!r} is not on the list of stores with a proven "
        f"conditional create, and without one, commits get lost. Supported in this version: "
        f"{_SUPPORTED}"
    )


def _local_path(url: str) -> str:
    if not url or "\0" in url:
        raise StoreError(f"{url!r} is no path; give {_SUPPORTED}")
    return str(Path(url).expanduser())


def _file_path(url: str) -> str:
    path = url[len("file:") :].removeprefix("//")
    if not path.startswith("/") or "\0" in path:
        raise StoreError(
            f"{url!r} names a host or a relative path; write file:///absolute/path, "
            f"or the plain path without 'file:'"
        )
    return path
