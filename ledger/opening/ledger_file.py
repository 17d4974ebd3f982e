"""The file `_ledger/ledger.json`."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType, field

from ledger.events.commit import FORMAT
from ledger.log.codec import unsupported_format_error
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import LogFile, commit_file_or_raise, fresh_id
from ledger.model.errors import DamagedLogError
from ledger.opening.context import TableSetting, recordable_url

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
