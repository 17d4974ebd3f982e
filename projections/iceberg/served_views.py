"""Views that engines create and change through Iceberg's REST catalog.

Updates are decided again on each state that a commit meets, and committed only if the metadata
projected from the events equals the metadata that the updates ask for. Each version of a view has
a metadata file on the storage, written before a call returns.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Unpack

from attrs import fields, frozen

from ledger.events.iceberg_views import IcebergViewUpdate
from ledger.ledger_handle import LedgerHandle
from ledger.ledger_writes import create_iceberg_view, update_iceberg_view
from ledger.locations import is_absolute, place_of
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import (
    InvalidInputError,
    NotFoundError,
    StoreError,
    UnsupportedError,
    UpgradeRequiredError,
)
from ledger.model.names import Identifier
from ledger.state.catalog import CatalogState, ViewEntry
from ledger.state.iceberg_view import IcebergView, fold_view_updates
from ledger.state.used_locations import find_location_conflict
from ledger.stores.file_access import resolve_symlinks
from projections.iceberg.position import METADATA_PATH
from projections.iceberg.view_metadata import (
    ViewMetadata,
    metadata_of_iceberg_view,
    read_view_metadata,
    updates_of_metadata,
    view_metadata_location,
    view_metadata_of,
    write_view_metadata,
)
from projections.iceberg.view_updates import (
    AssertViewUuid,
    ViewUpdate,
    apply_view_updates,
    check_view_requirements,
)
from projections.locations import check_location


@frozen
class LoadedView:
    """A view's metadata, its file's contents, and the file's location, where it exists."""

    metadata: ViewMetadata
    content: bytes
    location: str


def create_view(
    ledger: LedgerHandle,
    name: Identifier,
    updates: Sequence[ViewUpdate],
    **commit: Unpack[CommitOptions],
) -> ViewEntry:
    """Create a view by one commit, and return it.

    Args:
        ledger: The ledger.
        name: The view's name.
        updates: What makes it up: a UUID, a location, a schema and a current version at least.
        commit: See CommitOptions.

    Raises:
        AlreadyExistsError: A table or view of that name exists.
        NotFoundError: The database does not exist.
        InvalidInputError: The updates do not make up a view.
    """
    home, now_ms = ledger.setting.home, ledger.setting.now_millis()
    commit.setdefault("asked", ["icebergCreateView", str(name), [*map(repr, updates)]])

    def decide() -> tuple[IcebergViewUpdate, ...]:
        made = apply_view_updates(None, updates, home=home, now_ms=now_ms)
        return _checked(ledger, made.recorded, made.metadata)

    return create_iceberg_view(ledger, name, decide, commit)


def _read_view_file(ledger: LedgerHandle, location: str) -> ViewMetadata:
    check_location(ledger, location, "metadata-location")
    try:
        content = ledger.setting.file_access().read(location)
    except FileNotFoundError as error:
        raise NotFoundError(f"File does not exist: {location}") from error
    except OSError as error:
        raise StoreError(f"{location} cannot be read: {error}") from error
    try:
        return read_view_metadata(content)
    except UpgradeRequiredError as error:
        raise UnsupportedError(f"{location}: {error}") from error


def register_view(
    ledger: LedgerHandle,
    name: Identifier,
    metadata_location: str,
    **commit: Unpack[CommitOptions],
) -> ViewEntry:
    """Create a view from a metadata file, and return it.

    Args:
        ledger: The ledger.
        name: The view's name.
        metadata_location: The URL of the metadata file.
        commit: See CommitOptions.

    Raises:
        AlreadyExistsError: A table or view of that name exists.
        NotFoundError: The database or the file does not exist.
        InvalidInputError: It is not view metadata, or contradicts itself.
        UnsupportedError: A location is outside of the allowed ones.
    """
    commit.setdefault("asked", ["icebergRegisterView", str(name), metadata_location])

    def decide() -> tuple[IcebergViewUpdate, ...]:
        metadata = _read_view_file(ledger, metadata_location)
        return _checked(ledger, updates_of_metadata(metadata, ledger.setting.home), metadata)

    return create_iceberg_view(ledger, name, decide, commit)


def _checked(
    ledger: LedgerHandle, recorded: tuple[IcebergViewUpdate, ...], metadata: ViewMetadata
) -> tuple[IcebergViewUpdate, ...]:
    """Return the updates of a new view after checking that they make up its metadata."""
    _check_recorded(None, recorded, metadata, ledger.setting.home)
    _check_folder(ledger, ledger.state, metadata)
    return recorded


def update_view(
    ledger: LedgerHandle,
    name: Identifier,
    requirements: Sequence[AssertViewUuid],
    updates: Sequence[ViewUpdate],
    **commit: Unpack[CommitOptions],
) -> Appended[CatalogState]:
    """Commit updates to a view.

    The first updates of a view that was created through the ledger make it an Iceberg view: the
    event then has its metadata so far, too.

    Raises:
        NotFoundError: There is no such view.
        StaleBaseError: A requirement does not hold.
        CommitConflictError: A concurrent commit changed the same part of the view.
        InvalidInputError: An update contradicts the view.
        UnsupportedError: The ledger cannot express the metadata that the updates ask for.
    """
    catalog, home, now_ms = ledger.state, ledger.setting.home, ledger.setting.now_millis()
    content = [*map(repr, requirements)], [*map(repr, updates)]
    commit.setdefault("asked", ["icebergUpdateView", str(name), *content])

    def decide(view: ViewEntry) -> tuple[IcebergViewUpdate, ...]:
        base = view_metadata_of(view, home)
        check_view_requirements(base, requirements)
        made = apply_view_updates(base, updates, home=home, now_ms=now_ms)
        if not made.recorded:
            return ()
        so_far = updates_of_metadata(base, home) if view.iceberg is None else ()
        recorded = (*so_far, *made.recorded)
        _check_recorded(view.iceberg, recorded, made.metadata, home)
        _check_folder(ledger, catalog, made.metadata)
        return recorded

    return update_iceberg_view(ledger, name, decide, commit)


def load_view(ledger: LedgerHandle, view: ViewEntry) -> LoadedView:
    """Return a view's metadata; write its file unless it exists.

    Raises:
        UnsupportedError: Iceberg has no such view, or the folder of its file is not allowed.
        InvalidInputError: The folder of its file is one of the ledger's own.
        OSError: The file cannot be written.
    """
    metadata = view_metadata_of(view, ledger.setting.home)
    content = write_view_metadata(metadata)
    location = view_metadata_location(metadata, content)
    # Changes by the library and by foreign catalogs do not pass `update_view`.
    named = METADATA_PATH if METADATA_PATH in metadata.properties else "location"
    _check_place(ledger, posixpath.dirname(location), f"{named} of view {view.identifier}")
    setting = ledger.setting
    key, store = _path_below_root(ledger, location), setting.store
    if key is None:
        folder, key = posixpath.split(location)
        store = setting.store_at(folder)
    if not store.exists(key):
        # The name follows from the contents, so a file that another server created is the same.
        store.create(key, content)
    return LoadedView(metadata, content, location)


def _path_below_root(ledger: LedgerHandle, location: str) -> str | None:
    """Return a location's path in the ledger's store; None for a location outside of its root."""
    place = resolve_symlinks(place_of(location))
    for url in (ledger.url, ledger.setting.home):
        root = resolve_symlinks(place_of(url))
        if root.holds(place):
            return place.path[len(root.path) :].lstrip("/")
    return None


def _check_folder(ledger: LedgerHandle, state: CatalogState, metadata: ViewMetadata) -> None:
    """Check the folder of a view's metadata files before anything is committed.

    Raises:
        InvalidInputError: It is relative, one of the ledger's own, or a table's.
        UnsupportedError: It, or the view's location, is outside of the allowed locations.
    """
    folder = posixpath.dirname(view_metadata_location(metadata, b""))
    for what, said in (("location", metadata.location), (METADATA_PATH, folder)):
        _check_place(ledger, said, what)
    inside = _path_below_root(ledger, folder)
    if inside is not None and STREAM_FOLDER in inside.split("/"):
        raise InvalidInputError(f"{folder} is a folder of the ledger's own files; choose another")
    used = find_location_conflict(state, folder if inside is None else inside)
    if used is not None:
        raise InvalidInputError(
            f"{folder} overlaps {used}, which was given to a table or database; choose another "
            f"location, or another {METADATA_PATH}"
        )


def _check_place(ledger: LedgerHandle, url: str, what: str) -> None:
    if not is_absolute(url):
        raise InvalidInputError(f"{what} {url!r} is relative; write an absolute path or a URL")
    check_location(ledger, url, what)


def _check_recorded(
    before: IcebergView | None,
    recorded: Sequence[IcebergViewUpdate],
    wanted: ViewMetadata,
    home: str,
) -> None:
    """Compare the metadata that the updates ask for with the metadata of the events.

    Raises:
        UnsupportedError: They differ; the message names the fields.
    """
    found = metadata_of_iceberg_view(fold_view_updates(before, recorded), home)
    differing = [
        each.name
        for each in fields(ViewMetadata)
        if getattr(found, each.name) != getattr(wanted, each.name)
    ]
    if differing:
        raise UnsupportedError(
            f"the ledger cannot express {', '.join(differing).replace('_', '-')} of the view as "
            "requested; nothing was changed"
        )
