"""Where a table may be that lies outside of its ledger's root: asked before it is created."""

from __future__ import annotations

from ledger.evolution.catalog.location import clash, external_location
from ledger.evolution.catalog.state import CatalogState
from ledger.locations import is_absolute, place_of
from ledger.log.layout import STREAM_FOLDER, Layout
from ledger.log.request import fresh_id
from ledger.model.errors import InvalidChangeError, StoreError
from ledger.opening.root import ROOT_KEY
from ledger.opening.setting import TableSetting
from ledger.stores import Store, open_store
from ledger.stores.examination import examine
from ledger.stores.file_access import behind_links


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
