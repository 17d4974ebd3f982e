"""The file `_ledger/ledger.json`, written once: that a ledger is here, and which one it is."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ledger.events.commit import NEWEST_FORMAT, OLDEST_FORMAT
from ledger.log.landing import LogFile, land_or_refuse
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import fresh_id
from ledger.model.errors import DamagedLogError, UpgradeRequiredError
from ledger.opening.setting import TableSetting
from ledger.opening.whereabouts import recordable

ROOT_KEY: Final = f"{STREAM_FOLDER}/ledger.json"


class _Root(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What the file says: the format that the ledger began with, its id, whose copy it is, where.

    `place_since` is the first version of the catalog that can say otherwise.
    """

    format: int
    ledger_id: str
    copied_from: str | UnsetType = UNSET
    place: str = ""
    place_since: int = 0


_ROOT = msgspec.json.Decoder(_Root)


def read_root(setting: TableSetting) -> str | None:
    """Return the id of the ledger that is here, and let its gate know the format; None: none is.

    Raises:
        DamagedLogError: The file is no ledger's root.
        UpgradeRequiredError: A newer lakeledger wrote it.
    """
    body = setting.store.read(ROOT_KEY)
    if body is None:
        return None
    root = _readable(body, setting.store.url)
    setting.gate.begin(root.format)
    setting.whereabouts.begin(root.place, root.place_since)
    return root.ledger_id


def refuse_unreadable(body: bytes, place: str) -> None:
    """Check that the root of a ledger can be read.

    Args:
        body: The bytes of the root.
        place: The source of the root, for errors.

    Raises:
        DamagedLogError: The bytes are no root of a ledger.
        UpgradeRequiredError: A newer lakeledger wrote it.
    """
    _readable(body, place)


def _readable(body: bytes, place: str) -> _Root:
    root = _decoded(body)
    if root.format > NEWEST_FORMAT:
        raise UpgradeRequiredError(
            f"{place} has format {root.format}; this version reads up to {NEWEST_FORMAT}: upgrade "
            "lakeledger"
        )
    if root.format < OLDEST_FORMAT:
        raise DamagedLogError(
            f"{ROOT_KEY} has format {root.format}, which there never was", ROOT_KEY
        )
    return root


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
    body = _encoded(_Root(NEWEST_FORMAT, fresh_id(), place=recordable(setting.store.url)))
    says = "whether the ledger has begun is unknown, and no commit was written. Ask again"
    land_or_refuse(setting.store, LogFile(ROOT_KEY, body, 0), setting.patience, says)
