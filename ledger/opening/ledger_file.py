"""The file `_ledger/ledger.json`, and locations of external tables."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType, field

from ledger.decide.catalog import clash, external_location
from ledger.events.commit import FORMAT
from ledger.locations import is_absolute, place_of
from ledger.log.codec import other_format
from ledger.log.layout import STREAM_FOLDER, Layout
from ledger.log.request import LogFile, fresh_id, land_or_refuse
from ledger.model.errors import DamagedLogError, InvalidChangeError, StoreError
from ledger.opening.context import TableSetting, recordable
from ledger.state.catalog import CatalogState
from ledger.stores import Store, open_store
from ledger.stores.factory import examine
from ledger.stores.file_access import behind_links

ROOT_KEY: Final = f"{STREAM_FOLDER}/ledger.json"


class _Root(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the file says: the format that the ledger began with, its id, whose copy it is, where.

    `place_since` is the first version of the catalog that can say otherwise.
    """

    format: int
    ledger_id: str
    copied_from: str | UnsetType = UNSET
    place: str = field(default="", name="location")
    place_since: int = field(default=0, name="locationSince")


_ROOT = msgspec.json.Decoder(_Root)


def read_root(setting: TableSetting) -> str | None:
    """Return the id of the ledger that is here; None: none is.

    Raises:
        DamagedLogError: The file is no ledger's root.
        UpgradeRequiredError: A newer lakeledger wrote it.
        UnsupportedError: It has a format that was never released.
    """
    body = setting.store.read(ROOT_KEY)
    if body is None:
        return None
    check_format(body, f"{setting.store.url}/{ROOT_KEY}")
    root = _decoded(body)
    setting.whereabouts.begin(root.place, root.place_since)
    return root.ledger_id


def check_format(body: bytes, place: str) -> None:
    """Check that a ledger's root has the format that this version knows.

    Args:
        body: The root's bytes.
        place: What they are called in errors.

    Raises:
        DamagedLogError: They are no ledger's root.
        UpgradeRequiredError: A newer lakeledger wrote them.
        UnsupportedError: They have a format that was never released.
    """
    found = _decoded(body).format
    if found != FORMAT:
        raise other_format(place, found)


def _decoded(body: bytes) -> _Root:
    try:
        return _ROOT.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLogError(f"{ROOT_KEY} is no ledger's root: {error}", ROOT_KEY) from error


def id_of(body: bytes) -> str:
    """Return the id of the ledger whose root is given.

    Raises:
        DamagedLogError: The bytes are no ledger's root.
    """
    return _decoded(body).ledger_id


def copied_from(body: bytes) -> str | None:
    """Return the id of the ledger that another was copied from, by its root; None: from none.

    Raises:
        DamagedLogError: The bytes are no ledger's root.
    """
    found = _decoded(body).copied_from
    return None if found is UNSET else found


def root_of_copy(body: bytes, place: str, since: int) -> bytes:
    """Return the root of a copy of the ledger whose root is given: with an id of its own.

    Args:
        body: The root of the original.
        place: Where the copy is.
        since: The first version of the catalog's that is the copy's own.

    Raises:
        DamagedLogError: The bytes are no ledger's root.
    """
    root = _decoded(body)
    return _encoded(_Root(root.format, fresh_id(), root.ledger_id, place, since))


def _encoded(root: _Root) -> bytes:
    return msgspec.json.encode(root) + b"\n"


def begin_root(setting: TableSetting) -> None:
    """Write the file if it is not there.

    Raises:
        StoreError: The place cannot hold a ledger, or did not answer; no commit was written.
    """
    body = _encoded(_Root(FORMAT, fresh_id(), place=recordable(setting.store.url)))
    says = "whether the ledger has begun is unknown, and no commit was written. Ask again"
    land_or_refuse(setting.store, LogFile(ROOT_KEY, body, 0), setting.patience, says)


def refuse_location(location: str, state: CatalogState, setting: TableSetting) -> None:
    """Refuse a location that a table cannot have, before the catalog says that it has.

    The place is tried out: what a store needs is done to a key of its own, which is gone
    afterwards.

    Raises:
        InvalidInputError: It is not absolute, or not plain.
        InvalidChangeError: It meets the ledger's root or another table's location, by its text or
            through links, or holds a log already.
        StoreError: It cannot hold a table, or does not answer; nothing was committed.
        UnsupportedError: It lies on another service than the ledger, and is not allowed.
    """
    path = external_location(location)
    used = clash(state, path)
    if used is not None:
        raise _meets(location, f"{used}, which was given to a table before")
    place, root = behind_links(place_of(path)), behind_links(place_of(setting.store.url))
    if place.meets(root):
        raise _meets(location, f"the ledger's root {setting.store.url}")
    for other in sorted(filter(is_absolute, state.used_paths)):
        if place.meets(behind_links(place_of(other))):
            raise _meets(location, f"{other}, which was given to a table before")
    setting.file_access().check(path)
    _try_out(location, open_store(path, setting.options_for(path)))


def _meets(location: str, what: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"location {location} meets {what}; no place is used twice, so choose another"
    )


def _try_out(location: str, store: Store) -> None:
    try:
        for key in (Layout(STREAM_FOLDER).commit(0), ROOT_KEY):
            if store.exists(key):
                raise InvalidChangeError(
                    f"location {location} holds a log already ({key}); choose another"
                )
        probe = f"{STREAM_FOLDER}/probe-{fresh_id()}"
        failed = [each.claim for each in examine(store, probe) if not each.holds]
    except OSError as error:
        raise StoreError(f"location {location}: {error}; nothing was committed") from error
    if failed:
        raise StoreError(
            f"location {location} cannot hold a table: not everything holds that one needs "
            f"({'; '.join(failed)}). Nothing was committed; choose another"
        )
