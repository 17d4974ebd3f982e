"""Codec of commits. `ledger/FORMAT.md` describes the bytes field by field.

Three errors tell apart what cannot be decoded: written by a newer lakeledger (upgrade), in a format
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
# Built at import, by a single thread: when two threads build decoders of the same classes, msgspec
# uses half-built ones and the process crashes.
_DECODERS: Final[dict[Any, Any]] = {
    each: msgspec.json.Decoder(Commit[each])  # type: ignore[valid-type]
    for each in (TableEvent, CatalogEvent)
}


def digest(body: bytes) -> str:
    """Return the digest of a commit file, which the next commit names as its parent.

    Example:
        >>> digest(b"")[:14]
        'sha256:e3b0c44'
    """
    return "sha256:" + hashlib.sha256(body).hexdigest()


def encode(commit: Commit[Any]) -> bytes:
    """Return a commit's file: one JSON object on one line, keys in their fixed order.

    Mappings keep their order; they are sorted when an event is decided.
    """
    return _ENCODER.encode(commit) + b"\n"


def encode_commits(commits: Sequence[Commit[Any]]) -> bytes:
    """Return the files of several commits, concatenated.

    Example:
        >>> encode_commits([])
        b''
    """
    return _ENCODER.encode_lines(commits)


def encode_transaction(transaction: Transaction[Any]) -> bytes:
    """Return the JSON of a transaction, as inside a commit's file."""
    return _ENCODER.encode(transaction)


class EventOutline(msgspec.Struct, gc=False):
    """The part that all events have in common: `type` is the kind, such as `addColumn`."""

    type: str


class TransactionOutline(msgspec.Struct, gc=False, rename="camel"):
    """A transaction without the content of its events; see `Transaction`."""

    author: str = ""
    message: str = ""
    effective_time_millis: int | UnsetType = UNSET
    events: tuple[EventOutline, ...] = ()
    outside: msgspec.Raw | UnsetType = msgspec.field(default=UNSET, name="sidecar")


class Sketch(msgspec.Struct, gc=False, rename="camel"):
    """A commit without the content of its events, for scans of many commits; see `Commit`."""

    format: int
    version: int
    time_millis: int
    parent: str | UnsetType = UNSET
    transactions: tuple[TransactionOutline, ...] = ()


_SKETCHES = msgspec.json.Decoder(Sketch)
_UNREAD = msgspec.json.Decoder(Commit[msgspec.Raw])


class _Envelope(msgspec.Struct):
    """The part of a commit that all versions of the format have in common."""

    format: int


_ENVELOPE = msgspec.json.Decoder(_Envelope)


class Codec(Generic[E]):
    """Decoder of the commits of a kind of stream, a table's or a catalog's.

    Args:
        event_types: The union of event classes that the stream can contain.
    """

    def __init__(self, event_types: Any) -> None:
        decoder: msgspec.json.Decoder[Commit[E]] = _DECODERS[event_types]
        self._decode = decoder.decode
        self._event_types = event_types

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of the stream's events, such as `addColumn`."""
        return _event_kinds(self._event_types)

    def decode(self, body: bytes, file: str) -> Commit[E]:
        """Return the commit in a file.

        Args:
            body: The file's bytes.
            file: Its name, for errors.

        Raises:
            UpgradeRequiredError: A newer format version, event or key.
            UnsupportedError: A format that was never released.
            DamagedLogError: Any other file that is not a commit, such as a torn or changed one.
        """
        try:
            return self._decode(_check_utf8(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._explain_decode_error(body, file, error) from error

    def decode_with_raw_events(self, body: bytes, file: str) -> Commit[msgspec.Raw]:
        """Return the commit in a file, with its events as undecoded JSON.

        The events may be of kinds that this version does not know; the caller checks that.

        Args:
            body: The file's bytes.
            file: Its name, for errors.

        Raises:
            UpgradeRequiredError: A newer format version or key.
            DamagedLogError: The file is torn, or not a commit.
        """
        try:
            return _UNREAD.decode(_check_utf8(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._explain_decode_error(body, file, error) from error

    def known(self, body: bytes) -> Commit[E] | None:
        """Return the commit in a file; None where `decode` raises an error."""
        try:
            return self._decode(_check_utf8(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def decode_all(self, bodies: Sequence[bytes]) -> list[Commit[E]] | None:
        """Return the commits in several files; None where `decode` raises for one of them."""
        try:
            return [*map(self._decode, map(_check_utf8, bodies))]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def sketch(self, body: bytes, file: str) -> Sketch:
        """Return the commit in a file, without decoding the content of its events.

        Args:
            body: The file's bytes.
            file: Its name, for errors.

        Raises:
            UpgradeRequiredError: A newer format version or event.
            DamagedLogError: The file is torn, or not a commit.
        """
        try:
            found = _SKETCHES.decode(_check_utf8(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._explain_decode_error(body, file, error) from error
        kinds = self.kinds
        is_known = found.format == FORMAT and found.transactions
        if not is_known or any(
            event.type not in kinds for each in found.transactions for event in each.events
        ):
            # Raises the error.
            self.decode(body, file)
        return found

    def _explain_decode_error(self, body: bytes, file: str, error: Exception) -> LedgerError:
        try:
            envelope = _ENVELOPE.decode(body)
            loose = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return DamagedLogError(
                f"{file} is torn or not a commit ({len(body)} bytes): {error}. Nothing was "
                "skipped; compare it with a backup",
                file,
            )
        if envelope.format != FORMAT:
            return unsupported_format_error(file, envelope.format)
        unknown = next(_find_unknown_parts(loose, self._event_types), None)
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
def _event_kinds(event_types: Any) -> frozenset[str]:
    return frozenset(each.__struct_config__.tag for each in get_args(event_types))


def _check_utf8(body: bytes) -> bytes:
    """Return the body after checking that it is UTF-8; the JSON decoder checks only what it reads.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    if not body.isascii():
        body.decode()
    return body


def unsupported_format_error(file: str, version: int) -> LedgerError:
    """Return the error for a file whose format version is not the supported one.

    Args:
        file: The file's name.
        version: Its format version.

    Example:
        >>> print(unsupported_format_error("_ledger/ledger.json", 2))
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


def _find_unknown_parts(loose: Any, event_types: Any) -> Any:
    """Yield the unknown events and keys, which a newer version may have added."""
    known = {kind.__struct_config__.tag: kind for kind in get_args(event_types)}
    yield from _unknown_keys(loose, Commit, "the key")
    for transaction in _list_at_key(loose, "transactions"):
        yield from _unknown_keys(transaction, Transaction, "the transaction key")
        outside = transaction.get("sidecar") if isinstance(transaction, dict) else None
        yield from _unknown_keys(outside, Outside, "the sidecar key")
        for event in _list_at_key(transaction, "events"):
            tag = event.get("type") if isinstance(event, dict) else None
            if isinstance(tag, str) and tag not in known:
                yield f"the event {tag!r}"
            elif isinstance(tag, str):
                yield from _unknown_keys(event, known[tag], f"the {tag} key")


def _unknown_keys(loose: Any, struct: Any, what: str) -> Any:
    names = {each.encode_name for each in msgspec.structs.fields(struct)} | {"type"}
    if isinstance(loose, dict):
        yield from (f"{what} {key!r}" for key in loose if key not in names)


def _list_at_key(loose: Any, key: str) -> list[Any]:
    found = loose.get(key) if isinstance(loose, dict) else None
    return found if isinstance(found, list) else []
