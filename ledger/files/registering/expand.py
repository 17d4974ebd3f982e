"""Which files a path, folder or glob means, and what each is called in the ledger."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.locations import LOCAL, FileNames, place_of
from ledger.model.errors import InvalidInputError, LedgerError, NotFoundError
from ledger.model.messages.credentials import shown
from ledger.stores.file_access import open_location

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


@frozen
class FoundFiles:
    """Files on one file system.

    Attributes:
        filesystem: Where they are.
        infos: What it said of each, by its path there; sorted by path.
    """

    filesystem: AbstractFileSystem
    infos: Mapping[str, Mapping[str, Any]]


def expand(paths: Sequence[str], storage_options: Mapping[str, Any] | None = None) -> FoundFiles:
    """Return the files that some paths mean: each is a file, a folder, or a glob.

    In folders and globs, files and folders whose names begin with a dot or an underscore are
    passed over, as engines do; `_key=value` is a partition's folder and is not.

    Raises:
        NotFoundError: A path means no file.
        InvalidInputError: The paths lie on more than one file system, or one cannot be opened.
        MissingDependencyError: The client library of the URL is not installed.
    """
    filesystem: Any = None
    infos: dict[str, Mapping[str, Any]] = {}
    for path in paths:
        place, inside = open_location(path, storage_options)
        if filesystem is not None and place is not filesystem:
            raise InvalidInputError(
                f"{path} lies on another file system than {paths[0]}; add them in two calls"
            )
        filesystem = place
        try:
            found = _files(place, inside)
        except LedgerError:
            raise
        except ValueError as error:
            # A port out of range, or no bucket.
            raise InvalidInputError(f"{shown(path)} cannot be opened: {error}") from error
        if not found:
            raise NotFoundError(f"{path} names no file; look at the path")
        infos.update(found)
    if filesystem is None:
        raise InvalidInputError("no paths were given; name at least one file, folder or glob")
    return FoundFiles(filesystem, dict(sorted(infos.items())))


def _files(filesystem: AbstractFileSystem, path: str) -> dict[str, Mapping[str, Any]]:
    if filesystem.isdir(path):
        found = filesystem.find(path, detail=True)
        return {name: info for name, info in found.items() if _visible(name, path)}
    if filesystem.exists(path):
        return {path: filesystem.info(path)}
    if not any(mark in path for mark in "*?["):
        return {}
    found = filesystem.glob(path, detail=True)
    fixed = path[: min(path.index(mark) for mark in "*?[" if mark in path)].rpartition("/")[0]
    return {
        name: info
        for name, info in found.items()
        if info["type"] == "file" and _visible(name, fixed)
    }


def _visible(name: str, base: str) -> bool:
    below = PurePosixPath(name[len(base) :].lstrip("/"))
    return not any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in below.parts)


def ledger_names(path: str, filesystem: AbstractFileSystem, names: FileNames) -> tuple[str, str]:
    """Return what a file is called in the ledger, and what it is called where it was found.

    A symbolic link on this machine is another name of one file, so the ledger's name is that of
    what it leads to. The other one has the folders that say partition values.

    Args:
        path: As `filesystem` spells it.
        filesystem: Where it is.
        names: What the table's files are called.
    """
    found = str(filesystem.unstrip_protocol(path))
    place = place_of(names.location)
    if place.family != LOCAL or place_of(found).family != LOCAL:
        return names.usual(found), names.usual(found)
    # The table's own folder may be reached through a link, too.
    real = FileNames(f"file://{os.path.realpath(f'/{place.path}')}")
    return real.usual(os.path.realpath(path)), names.usual(found)
