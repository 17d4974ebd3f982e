"""Codec of commits. `ledger/FORMAT.md` describes the bytes field by field.

What cannot be decoded is sorted into three: written by a newer lakeledger (upgrade), of a format
that was never released, or damaged. Nothing is skipped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Generic, TypeVar, get_args

import msgspec
from msgspec import UNSET, UnsetType

from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent
from ledger.events.commit import FORMAT, Commit, Outside, Transaction
from ledger.model.errors import (
    DamagedLogError,
    LedgerError,
    UnsupportedError,
    UpgradeRequiredError,
)

E = TypeVar("E")

_ENCODER = msgspec.json.Encoder()
# Built with the import, which is one thread's: msgspec lets a second one go on with what the first
# has half built of the classes that both decode, and the process dies of it.
_DECODERS: Final[dict[Any, Any]] = {
    each: msgspec.json.Decoder(Commit[each])  # type: ignore[valid-type]
    for each in (TableEvent, CatalogEvent)
}


def digest(body: bytes) -> str:
    """Return what the next commit says of this file.

    Example:
        >>> digest(b"")[:14]
        'sha256:e3b0c44'
    """
    return "sha256:" + hashlib.sha256(body).hexdigest()


def encode(commit: Commit[Any]) -> bytes:
    """Return a commit's file: one JSON object on one line, keys in their fixed order.

    Mappings stand as they were given; whoever decides an event sorts them.
    """
    return _ENCODER.encode(commit) + b"\n"


def encode_all(commits: Sequence[Commit[Any]]) -> bytes:
    """Return the files of some commits, one after the other.

    Example:
        >>> encode_all([])
        b''
    """
    return _ENCODER.encode_lines(commits)


def encode_transaction(transaction: Transaction[Any]) -> bytes:
    """Return a transaction as it stands inside a commit's file."""
    return _ENCODER.encode(transaction)


class SketchedEvent(msgspec.Struct, gc=False):
    """As much of an event as every one has: `type` is its kind, such as `addColumn`."""

    type: str


class SketchedTransaction(msgspec.Struct, gc=False, rename="camel"):
    """A transaction without what its events say; see `Transaction`."""

    author: str = ""
    message: str = ""
    effective_time_millis: int | UnsetType = UNSET
    events: tuple[SketchedEvent, ...] = ()
    outside: msgspec.Raw | UnsetType = msgspec.field(default=UNSET, name="sidecar")


class Sketch(msgspec.Struct, gc=False, rename="camel"):
    """A commit without what its events say, for whoever looks for some among many; see `Commit`."""

    format: int
    version: int
    time_millis: int
    parent: str | UnsetType = UNSET
    transactions: tuple[SketchedTransaction, ...] = ()


_SKETCHES = msgspec.json.Decoder(Sketch)
_UNREAD = msgspec.json.Decoder(Commit[msgspec.Raw])


class _Envelope(msgspec.Struct):
    """As much of a commit as every version of the format has."""

    format: int


_ENVELOPE = msgspec.json.Decoder(_Envelope)


class Codec(Generic[E]):
    """Decodes the commits of one kind of stream.

    Args:
        event_types: The union of event classes that the stream can hold, a table's or a catalog's.
    """

    def __init__(self, event_types: Any) -> None:
        decoder: msgspec.json.Decoder[Commit[E]] = _DECODERS[event_types]
        self._decode = decoder.decode
        self._event_types = event_types

    @property
    def kinds(self) -> frozenset[str]:
        """The events' kinds, such as `addColumn`."""
        return _kinds(self._event_types)

    def decode(self, body: bytes, file: str) -> Commit[E]:
        """Return the commit that a file holds.

        Args:
            body: The file's bytes.
            file: Its name, for errors.

        Raises:
            UpgradeRequiredError: A newer format version, event or key.
            UnsupportedError: A format that was never released.
            DamagedLogError: Anything else that does not fit: torn, changed, not a commit.
        """
        try:
            return self._decode(_text(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._explain(body, file, error) from error

    def unread(self, body: bytes, file: str) -> Commit[msgspec.Raw]:
        """Return the commit that a file holds, with its events as the JSON that stands there.

        Whether they are events that this version knows is for the caller to find out.

        Args:
            body: The file's bytes.
            file: Its name, for errors.

        Raises:
            UpgradeRequiredError: A newer format version or key.
            DamagedLogError: It is torn, or no commit.
        """
        try:
            return _UNREAD.decode(_text(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._explain(body, file, error) from error

    def known(self, body: bytes) -> Commit[E] | None:
        """Return the commit that a file holds; None where `decode` refuses it, and says why."""
        try:
            return self._decode(_text(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def decode_all(self, bodies: Sequence[bytes]) -> list[Commit[E]] | None:
        """Return the commits that some files hold; None where `decode` refuses one of them."""
        try:
            return [*map(self._decode, map(_text, bodies))]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def sketch(self, body: bytes, file: str) -> Sketch:
        """Return what a commit is, without decoding what its events say.

        Args:
            body: The file's bytes.
            file: Its name, for errors.

        Raises:
            UpgradeRequiredError: A newer format version or event.
            DamagedLogError: It is torn, or no commit.
        """
        try:
            found = _SKETCHES.decode(_text(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._explain(body, file, error) from error
        kinds = self.kinds
        is_known = found.format == FORMAT and found.transactions
        if not is_known or any(
            event.type not in kinds for each in found.transactions for event in each.events
        ):
            # It says what is wrong.
            self.decode(body, file)
        return found

    def _explain(self, body: bytes, file: str, error: Exception) -> LedgerError:
        try:
            envelope = _ENVELOPE.decode(body)
            loose = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return DamagedLogError(
                f"{file} is torn or no commit ({len(body)} bytes): {error}. Nothing was skipped; "
                "compare it with a backup",
                file,
            )
        if envelope.format != FORMAT:
            return other_format(file, envelope.format)
        unknown = next(_unknown(loose, self._event_types), None)
        if unknown is not None:
            return UpgradeRequiredError(
                f"{file} holds {unknown}, which this version does not know: upgrade lakeledger"
            )
        if loose.get("transactions") == []:
            return DamagedLogError(
                f"{file} holds no transaction, and a commit has one or more. Compare it with a "
                "backup",
                file,
            )
        return DamagedLogError(f"{file} does not hold a commit: {error}", file)


@cache
def _kinds(event_types: Any) -> frozenset[str]:
    return frozenset(each.__struct_config__.tag for each in get_args(event_types))


def _text(body: bytes) -> bytes:
    """Return a line that is UTF-8 throughout; its reader looks at no byte of what it passes over.

    Raises:
        UnicodeDecodeError: It is not.
    """
    if not body.isascii():
        body.decode()
    return body


def other_format(file: str, version: int) -> LedgerError:
    """Return the error for a file of another format than the one that this version knows.

    Args:
        file: The file's name.
        version: The format that it has.

    Example:
        >>> print(other_format("_ledger/ledger.json", 2))
        _ledger/ledger.json has format 2, which was never released and which no release ...
    """
    if version > FORMAT:
        return UpgradeRequiredError(
            f"{file} has format {version}; this version reads format {FORMAT}: upgrade lakeledger"
        )
    if version >= 1:
        return UnsupportedError(
            f"{file} has format {version}, which was never released and which no release reads; "
            f"the first released format is {FORMAT}. Create a new ledger (lakeledger init) and "
            "register or import its tables there",
            kind="PRE_RELEASE_FORMAT",
        )
    return DamagedLogError(f"{file} has format {version}, which never existed", file)


def _unknown(loose: Any, event_types: Any) -> Any:
    """Yield what a newer version may have added: an event, or a key."""
    known = {kind.__struct_config__.tag: kind for kind in get_args(event_types)}
    yield from _unknown_keys(loose, Commit, "the key")
    for transaction in _items(loose, "transactions"):
        yield from _unknown_keys(transaction, Transaction, "the transaction key")
        outside = transaction.get("sidecar") if isinstance(transaction, dict) else None
        yield from _unknown_keys(outside, Outside, "the sidecar key")
        for event in _items(transaction, "events"):
            tag = event.get("type") if isinstance(event, dict) else None
            if isinstance(tag, str) and tag not in known:
                yield f"the event {tag!r}"
            elif isinstance(tag, str):
                yield from _unknown_keys(event, known[tag], f"the {tag} key")


def _unknown_keys(loose: Any, struct: Any, what: str) -> Any:
    names = {each.encode_name for each in msgspec.structs.fields(struct)} | {"type"}
    if isinstance(loose, dict):
        yield from (f"{what} {key!r}" for key in loose if key not in names)


def _items(loose: Any, key: str) -> list[Any]:
    found = loose.get(key) if isinstance(loose, dict) else None
    return found if isinstance(found, list) else []
