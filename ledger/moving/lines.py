"""The lines of an export: the commits as they stand in the log, and a few that say where they go.

Every line is JSON. One that begins with `{"lakeledger":` says what follows; any other is a
commit's file, byte for byte, of the stream that was named last.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ledger.model.errors import DamagedLogError, UpgradeRequiredError

FORMAT: Final = 1
"""Of these lines; a newer one is refused with "upgrade"."""

CATALOG: Final = "catalog"
"""The name of the catalog's stream."""

SIGN: Final = b'{"lakeledger":'


class FirstLine(
    Struct,
    frozen=True,
    tag_field="lakeledger",
    tag="export",
    rename="camel",
    omit_defaults=True,
    kw_only=True,
):
    """The first line.

    Attributes:
        format: Of the lines.
        root: The text of the ledger's `_ledger/ledger.json`.
        tables: Of whose tables the streams follow, by their ids; absent where all do.
        version: The last version of the only table, where it was asked for.
    """

    format: int
    root: str
    tables: tuple[str, ...] | UnsetType = UNSET
    version: int | UnsetType = UNSET


class StreamLine(Struct, frozen=True, tag_field="lakeledger", tag="stream", rename="camel"):
    """The commits that follow are this stream's, from version 0 on.

    Attributes:
        name: `catalog`, or the id of the table.
        last: The last version; -1 where the stream has none.
        head: The digest of the last commit's file; empty where there is none.
    """

    name: str
    last: int
    head: str


class File(Struct, frozen=True, tag_field="lakeledger", tag="file", rename="camel"):
    """A file beside the log that the next commits name.

    Attributes:
        path: Below the stream's `_ledger` folder.
        sha256: Of its bytes, hex.
        body: They, in base64.
    """

    path: str
    sha256: str
    body: str

    @classmethod
    def of(cls, path: str, body: bytes) -> File:
        """Return the line of a file."""
        return cls(path, hashlib.sha256(body).hexdigest(), base64.b64encode(body).decode())

    def bytes_of(self, place: str) -> bytes:
        """Return the file.

        Args:
            place: Where the line stands, for errors.

        Raises:
            DamagedLogError: They are not the bytes that were exported.
        """
        body = _from_base64(self.body, "a file", place)
        if hashlib.sha256(body).hexdigest() != self.sha256:
            raise DamagedLogError(
                f"{place} holds a file that was changed on its way: {self.path}", place
            )
        return body


class Raw(Struct, frozen=True, tag_field="lakeledger", tag="commit", rename="camel"):
    """A commit whose file is not one line.

    Attributes:
        body: Its bytes, in base64.
    """

    body: str


class LastLine(Struct, frozen=True, tag_field="lakeledger", tag="end", rename="camel"):
    """The last line: all came through.

    Attributes:
        streams: How many.
        commits: How many.
        files: How many.
        sha256: Of every byte before this line, hex.
    """

    streams: int
    commits: int
    files: int
    sha256: str


Said = FirstLine | StreamLine | File | Raw | LastLine

_SAID: Final[msgspec.json.Decoder[Said]] = msgspec.json.Decoder(Said)
_ENCODER: Final = msgspec.json.Encoder()


class _Envelope(Struct):
    """As much of a first line as every format has."""

    format: int


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)


def written(said: Said) -> bytes:
    r"""Return a line.

    Example:
        >>> written(StreamLine("catalog", 3, ""))
        b'{"lakeledger":"stream","name":"catalog","last":3,"head":""}\n'
    """
    return _ENCODER.encode(said) + b"\n"


def written_commit(body: bytes) -> bytes:
    r"""Return the line of a commit's file.

    Example:
        >>> written_commit(b'{"format":1}\n')
        b'{"format":1}\n'
    """
    is_line = body.endswith(b"\n") and b"\n" not in body[:-1] and not body.startswith(SIGN)
    return body if is_line else written(Raw(base64.b64encode(body).decode()))


def read(line: bytes, place: str) -> Said | bytes:
    """Return what a line says: a commit's file as its bytes.

    Args:
        line: With its end.
        place: Where it stands, for errors.

    Raises:
        DamagedLogError: It is no line of an export.
        UpgradeRequiredError: A newer version wrote it.
    """
    if not line.startswith(SIGN):
        return line
    try:
        said = _SAID.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse_newer(line, place)
        raise DamagedLogError(f"{place} is no line of an export: {error}", place) from error
    if isinstance(said, FirstLine):
        _refuse_newer(line, place)
    if isinstance(said, Raw):
        return _from_base64(said.body, "a commit", place)
    return said


def _from_base64(text: str, what: str, place: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise DamagedLogError(f"{place} holds {what} that is no base64: {error}", place) from error


def _refuse_newer(line: bytes, place: str) -> None:
    try:
        found = _ENVELOPE.decode(line).format
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if found > FORMAT:
        raise UpgradeRequiredError(
            f"{place} has format {found}; this version reads up to format {FORMAT}: upgrade "
            "lakeledger"
        )
