"""Decoding JSON into typed records, with errors that name the place.

Keys that a class does not have are ignored at every depth: newer writers have more.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from ledger.model.errors import InvalidInputError, TooLargeError

MOST_BYTES = 2**30
"""A file whose content is larger than this is refused, compressed or not."""

_GZIP_FLOOR = 32 << 20
_GZIP_EXPANSION = 100
"""How many times its size a file may unpack to beyond the floor. Metadata of 5,000 snapshots with
summaries that are alike packs 15 to 30 times."""

_VALUES_FLOOR = 2_000_000
_VALUES_PER_BYTE = 4
"""Values of a compressed file; as objects of Python the shortest take 30 times their bytes."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = zlib.MAX_WBITS | 16

_Record = TypeVar("_Record")
_encoder = msgspec.json.Encoder()


def decoded(content: bytes | str, kind: type[_Record], what: str) -> _Record:
    """Return JSON as a typed record; keys that a record does not have are ignored at every depth.

    Args:
        content: The JSON.
        kind: The record's class.
        what: What the JSON should be, for the message.

    Raises:
        InvalidInputError: It is none; the message names the place.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError) and _UNKNOWN in str(error):
            return converted(msgspec.json.decode(content), kind, what)
        raise not_a(what, error) from error


def converted(obj: Any, kind: type[_Record], what: str) -> _Record:
    """Return what a JSON decoder made as a typed record, as `decoded` does.

    Raises:
        InvalidInputError: It is none; the message names the place.
    """
    try:
        return msgspec.convert(_known(obj, inspect.type_info(kind)), kind)
    except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
        raise not_a(what, error) from error


_UNKNOWN = "unknown field"


def _known(value: Any, kind: inspect.Type) -> Any:
    """Return decoded JSON without the keys that a type does not have, which newer writers have."""
    match kind:
        case inspect.StructType(fields=fields) if isinstance(value, dict):
            own = {each.encode_name: each.type for each in fields}
            tag = kind.tag_field
            return {
                key: _known(each, own[key]) if key in own else each
                for key, each in value.items()
                if key in own or key == tag
            }
        case inspect.CollectionType(item_type=item) if isinstance(value, list):
            return [_known(each, item) for each in value]
        case inspect.DictType(value_type=inside) if isinstance(value, dict):
            return {key: _known(each, inside) for key, each in value.items()}
        case inspect.UnionType(types=types):
            return _known(value, _meant(value, types))
        case _:
            return value


def _meant(value: Any, types: tuple[inspect.Type, ...]) -> inspect.Type:
    """Return the type of a union that a value is of; its first one where no tag tells."""
    for each in types:
        if isinstance(each, inspect.StructType) and each.tag_field is not None:
            if isinstance(value, dict) and value.get(each.tag_field) == each.tag:
                return each
        elif isinstance(each, inspect.StructType | inspect.CollectionType | inspect.DictType):
            return each
    return types[0]


def not_a(what: str, error: Exception | str) -> InvalidInputError:
    """Return the error for JSON that is not what it should be."""
    return InvalidInputError(f"not Iceberg {what}: {error}; see the Iceberg specification")


def encoded(value: Any) -> bytes:
    """Return a record as compact JSON; it has the record's order of keys."""
    return _encoder.encode(value)


def inflated(content: bytes | str) -> bytes | str:
    """Return the content of a file that may be compressed with gzip.

    Raises:
        InvalidInputError: The compressed bytes are torn, or the content is not UTF-8. The decoder
            passes over texts that a record has no room for, so it does not find that.
        TooLargeError: More comes out of them than of metadata that writers make.
    """
    if len(content) > MOST_BYTES:
        raise TooLargeError(f"a metadata file of more than {MOST_BYTES} bytes is not read")
    if isinstance(content, str):
        return content
    found = _unpacked(content) if content.startswith(_GZIP) else content
    try:
        found.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"byte {error.start} of a metadata file is not UTF-8; have its owner write it again"
        ) from error
    return found


def _unpacked(content: bytes) -> bytes:
    most = min(_GZIP_FLOOR + _GZIP_EXPANSION * len(content), MOST_BYTES)
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    try:
        found = inflater.decompress(content, most + 1)
    except zlib.error as error:
        raise InvalidInputError(f"not gzip: {error}; fetch the metadata file again") from error
    if len(found) > most:
        raise TooLargeError(
            f"the gzip data unpacks to more than {most} bytes, the limit for {len(content)} bytes "
            "of it: have its owner write the metadata file again"
        )
    if not inflater.eof:
        raise InvalidInputError("the gzip data ends early; fetch the metadata file again")
    values = found.count(b",") + found.count(b"[") + found.count(b"{")
    if values > _VALUES_FLOOR + _VALUES_PER_BYTE * len(content):
        raise TooLargeError(
            f"the gzip data holds {values} values, and the limit for {len(content)} bytes of it is "
            f"{_VALUES_FLOOR + _VALUES_PER_BYTE * len(content)}: have its owner write the metadata "
            "file again"
        )
    return found


def kebab(class_name: str) -> str:
    """Return a class's name as the tag that its JSON has.

    Example:
        >>> kebab("AddSnapshot")
        'add-snapshot'
    """
    words = "".join(f"-{each.lower()}" if each.isupper() else each for each in class_name)
    return words.removeprefix("-")


def whole_number(properties: Mapping[str, str], key: str, default: int) -> int:
    """Return a property that is a whole number.

    Raises:
        InvalidInputError: It is set to something else.
    """
    text = properties.get(key)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise InvalidInputError(f"property {key} is {text!r:.80} and should be a number") from error


def truth(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Return a property that is true or false; as in Java, all but `true` is false."""
    text = properties.get(key)
    return default if text is None else text.lower() == "true"
