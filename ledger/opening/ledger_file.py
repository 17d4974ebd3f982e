"""The file `_ledger/ledger.json`, and locations of external tables."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType, field

from ledger.events.commit import FORMAT
from ledger.locations import is_absolute, place_of
from ledger.log.codec import unsupported_format_error
from ledger.log.layout import STREAM_FOLDER, Layout
from ledger.log.request import LogFile, commit_file_or_raise, fresh_id
from ledger.model.errors import DamagedLogError, InvalidChangeError, StoreError
from ledger.opening.context import TableSetting, recordable_url
from ledger.state.catalog import CatalogState
from ledger.state.used_locations import find_location_conflict
from ledger.stores import Store, open_store
from ledger.stores.factory import check_store
from ledger.stores.file_access import resolve_symlinks

ROOT_KEY: Final = f"{STREAM_FOLDER}/ledger.json"


class _RootFile(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Content of `ledger.json`.

    Attributes:
        format: The format version of the ledger when it was created.
        ledger_id: The ledger's id.
        copied_from: The id of the ledger that it is a copy of, if it is one.
        place: The URL where it was created; empty if not recorded.
        place_since: The first catalog version whose recorded location overrides `place`.
    """

    format: int
    ledger_id: str
    copied_from: str | UnsetType = UNSET
    place: str = field(default="", name="location")
    place_since: int = field(default=0, name="locationSince")


_ROOT = msgspec.json.Decoder(_RootFile)


def read_root(setting: TableSetting) -> str | None:
    """Return the id of the ledger in a store, and note its location; None without a ledger.

    Raises:
        DamagedLogError: The file is not a ledger's root file.
        UpgradeRequiredError: A newer lakeledger wrote it.
        UnsupportedError: It has a format that was never released.
    """
    body = setting.store.read(ROOT_KEY)
    if body is None:
        return None
    check_format(body, f"{setting.store.url}/{ROOT_KEY}")
    root = _decode_root(body)
    setting.root_location.begin(root.place, root.place_since)
    return root.ledger_id


def check_format(body: bytes, place: str) -> None:
    """Check that a ledger's root file has the supported format version.

    Args:
        body: The bytes of `ledger.json`.
        place: The file's name in errors.

    Raises:
        DamagedLogError: The bytes are not a ledger's root file.
        UpgradeRequiredError: A newer lakeledger wrote them.
        UnsupportedError: They have a format that was never released.
    """
    found = _decode_root(body).format
    if found != FORMAT:
        raise unsupported_format_error(place, found)


def _decode_root(body: bytes) -> _RootFile:
    try:
        return _ROOT.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLogError(
            f"{ROOT_KEY} is not a ledger's root file: {error}; restore it from a backup", ROOT_KEY
        ) from error


def id_of(body: bytes) -> str:
    """Return the ledger id in a root file, given its bytes.

    Raises:
        DamagedLogError: The bytes are not a ledger's root file.
    """
    return _decode_root(body).ledger_id


def copied_from(body: bytes) -> str | None:
    """Return the id of the ledger that this one is a copy of, given the root file; None: no copy.

    Raises:
        DamagedLogError: The bytes are not a ledger's root file.
    """
    found = _decode_root(body).copied_from
    return None if found is UNSET else found


def root_of_copy(body: bytes, place: str, since: int) -> bytes:
    """Return the root file of a copy of a ledger, with a new ledger id.

    Args:
        body: The root file of the original.
        place: The URL of the copy.
        since: The first catalog version that is the copy's own.

    Raises:
        DamagedLogError: The bytes are not a ledger's root file.
    """
    root = _decode_root(body)
    return _encode_root(_RootFile(root.format, fresh_id(), root.ledger_id, place, since))


def _encode_root(root: _RootFile) -> bytes:
    return msgspec.json.encode(root) + b"\n"


def create_root_file(setting: TableSetting) -> None:
    """Create `ledger.json` unless it exists.

    Raises:
        StoreError: The store cannot hold a ledger, or did not answer; no commit was written.
    """
    body = _encode_root(_RootFile(FORMAT, fresh_id(), place=recordable_url(setting.store.url)))
    says = "the ledger may have been created or not, and no commit was written. Try again"
    commit_file_or_raise(setting.store, LogFile(ROOT_KEY, body, 0), setting.retry_policy, says)


def refuse_location(location: str, state: CatalogState, setting: TableSetting) -> None:
    """Reject a location that a new table cannot have, before it is recorded in the catalog.

    The store's required behaviour is checked with a temporary key.

    Raises:
        InvalidInputError: It is not absolute, or not plain.
        InvalidChangeError: It overlaps the ledger's root or another table's location, by its text
            or through links, or contains a log already.
        StoreError: It cannot hold a table, or does not answer; nothing was committed.
        UnsupportedError: It is on another service than the ledger, and is not allowed.
    """
    # Opening a ledger creates no table.
    from ledger.decide.catalog import external_location

    path = external_location(location)
    used = find_location_conflict(state, path)
    if used is not None:
        raise _overlap_error(location, f"{used}, which was given to a table before")
    place, root = resolve_symlinks(place_of(path)), resolve_symlinks(place_of(setting.store.url))
    if place.meets(root):
        raise _overlap_error(location, f"the ledger's root {setting.store.url}")
    for other in sorted(filter(is_absolute, state.used_paths)):
        if place.meets(resolve_symlinks(place_of(other))):
            raise _overlap_error(location, f"{other}, which was given to a table before")
    setting.file_access().check(path)
    _check_new_location(location, open_store(path, setting.options_for(path)))


def _overlap_error(location: str, what: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"location {location} overlaps {what}; locations must not overlap, so choose another"
    )


def _check_new_location(location: str, store: Store) -> None:
    try:
        for key in (Layout(STREAM_FOLDER).commit(0), ROOT_KEY):
            if store.exists(key):
                raise InvalidChangeError(
                    f"location {location} contains a log already ({key}); choose another"
                )
        probe = f"{STREAM_FOLDER}/probe-{fresh_id()}"
        failed = [each.claim for each in check_store(store, probe) if not each.holds]
    except OSError as error:
        raise StoreError(f"location {location}: {error}; nothing was committed") from error
    if failed:
        raise StoreError(
            f"location {location} cannot hold a table: its store failed these checks: "
            f"{'; '.join(failed)}. Nothing was committed; choose another"
        )
