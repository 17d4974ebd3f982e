"""As much of Parquet's Thrift structures as has to be known before Arrow may read a file.

Source: the Parquet format, parquet.thrift; the Thrift compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_SCHEMA: Final = 2
_CHILDREN: Final = 5
_UNPACKED, _PACKED = 2, 3
_DATA, _DICTIONARY, _DATA_V2 = 5, 7, 8
_BOOLEANS: Final = (1, 2)
_BYTE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 3, 8, 9, 10, 11, 12
_FIXED: Final = {1: 0, 2: 0, _BYTE: 1, 7: 8}
"""Bytes of truth values, which stand in the field's head, of a byte, and of a double."""
_INTEGERS: Final = (4, 5, 6)
_LONG_LIST: Final = 15
_MORE: Final = 0x80
"""Set in each byte of a number but its last."""
_NEXT_FIELD: Final = 0x10
"""Below it, a field's head is followed by its number."""
_FIELDS: Final = 64
"""Above all numbers of fields in parquet.thrift."""
_PAGES: Final = ([_DATA], [_DATA_V2], [_DICTIONARY])
_LONGEST_NUMBER: Final = 10
_STRUCTURE_DEPTH: Final = 16


def schema_depth(body: bytes, start: int, end: int, most: int) -> int:
    """Return how many groups of a footer's schema nest in one another.

    Args:
        body: Bytes that hold the footer.
        start: Where it begins.
        end: Where it ends.
        most: A schema of so few elements is not read: its elements are returned, as a bound.

    Raises:
        IndexError: It ends early.
        ValueError: It is no footer.
    """
    footer = _Compact(body, start, end)
    for number, kind in footer.fields():
        if number == _SCHEMA:
            return _depth(footer, most)
        footer.skip(kind)
    raise ValueError("it has no schema")


def _depth(footer: _Compact, most: int) -> int:
    """Return the depth of the list of elements that follows, each before its children."""
    elements = footer.list_size()
    if elements <= most:
        return elements
    left: list[int] = []
    deepest = 0
    for _ in range(elements):
        children = 0
        for number, kind in footer.fields():
            if number == _CHILDREN:
                children = footer.integer()
            else:
                footer.skip(kind)
        while left and not left[-1]:
            left.pop()
        if left:
            left[-1] -= 1
        if children > 0:
            left.append(children)
        deepest = max(deepest, len(left))
    return deepest


class PageHeader(NamedTuple):
    """A page's header.

    Attributes:
        end: Where the page ends, in bytes from the file's begin.
        unpacked: Bytes of the page when it is decompressed.
        values: How many it holds.
        is_dictionary: Whether these are the entries of a dictionary.
    """

    end: int
    unpacked: int
    values: int
    is_dictionary: bool


def page_header(body: bytes, start: int, end: int) -> PageHeader:  # noqa: C901, PLR0912 - one loop without calls
    """Return what the header of a page says.

    Args:
        body: The file.
        start: Where the header begins.
        end: Where the page's column chunk ends.

    Raises:
        OSError: It is no header, or the page does not end in its column chunk.
    """
    sizes = {_UNPACKED: 0, _PACKED: 0}
    values, is_dictionary = 0, False
    at, number = start, 0
    around: list[int] = []
    try:
        # One loop without calls: a file may have thousands of pages, and lists of files are read
        # for every commit that removes one.
        while (head := body[at]) or around:
            at += 1
            if not head:
                number = around.pop()
                continue
            if head < _NEXT_FIELD:
                raise _no_header("a field's number is written out")
            number, kind = number + (head >> 4), head & 0x0F
            if kind in _INTEGERS or kind == _BINARY:
                raw = shift = 0
                while (byte := body[at]) >= _MORE:
                    raw, at, shift = raw | (byte & 0x7F) << shift, at + 1, shift + 7
                    if shift >= 7 * _LONGEST_NUMBER:
                        raise _no_header("a number does not end")
                raw, at = raw | byte << shift, at + 1
                if kind == _BINARY:
                    at += raw
                elif not around:
                    sizes[number] = raw >> 1 ^ -(raw & 1)
                elif number == 1 and around in _PAGES:
                    values, is_dictionary = raw >> 1 ^ -(raw & 1), around == [_DICTIONARY]
            elif kind == _STRUCT:
                if len(around) >= _STRUCTURE_DEPTH:
                    raise _no_header("structures nest too deep")
                around.append(number)
                number = 0
            elif kind in _FIXED:
                at += _FIXED[kind]
            else:
                raise _no_header(f"a page's header has no value of kind {kind}")
            if at > end:
                raise _no_header("it ends early")
    except (IndexError, ValueError) as error:
        raise OSError(f"the header of the page at byte {start} is no Thrift") from error
    at += 1
    unpacked, packed = sizes[_UNPACKED], sizes[_PACKED]
    if min(packed, unpacked, values) < 0 or at + packed > end:
        raise OSError(f"the page at byte {start} has sizes that do not fit")
    return PageHeader(at + packed, unpacked, values, is_dictionary)


class ChunkValue(NamedTuple):
    """A value in the metadata of a column chunk that has to fit the schema.

    Attributes:
        column: The place of the column among the leaves of the schema; 0 for `chunks`.
        part: One of `minimum or maximum`, `repetition levels`, `definition levels`,
            `unencoded bytes`, `physical type` and `chunks`.
        value: Bytes of an extreme, entries of a histogram, a number of bytes, the number of a type
            in parquet.thrift, or how many column chunks a row group has.
    """

    column: int
    part: str
    value: int


_GROUP: Final = 4
_CHUNK: Final = _GROUP << 6 | 1
_METADATA: Final = _CHUNK << 6 | 3
_ENCRYPTION: Final = (_CHUNK << 6 | 8, _CHUNK << 6 | 9)
_MEASURED: Final = {
    _CHUNK: "chunks",
    **dict.fromkeys(
        ((_METADATA << 6 | 12) << 6 | each for each in (1, 2, 5, 6)), "minimum or maximum"
    ),
    (_METADATA << 6 | 16) << 6 | 2: "repetition levels",
    (_METADATA << 6 | 16) << 6 | 3: "definition levels",
}
"""Places in a footer, six bits a field: lists of column chunks, values of statistics, histograms of
size statistics."""
_NUMBERS: Final = {
    _METADATA << 6 | 1: "physical type",
    (_METADATA << 6 | 16) << 6 | 1: "unencoded bytes",
}
_NAMES: Final = (_SCHEMA << 6 | 4, _METADATA << 6 | 3)
"""Places of columns' names, which are UTF-8."""
_INT32, _INT64 = 5, 6
_ELEMENTS: Final = {
    **dict.fromkeys((_SCHEMA, _GROUP, 5, 7, _CHUNK, _GROUP << 6 | 4), _STRUCT),
    _METADATA << 6 | 2: _INT32,
    _METADATA << 6 | 3: _BINARY,
    **dict.fromkeys((_METADATA << 6 | 8, _METADATA << 6 | 13), _STRUCT),
    (_METADATA << 6 | 16) << 6 | 2: _INT64,
    (_METADATA << 6 | 16) << 6 | 3: _INT64,
}
"""Kinds of the elements of lists. Thrift in C++ reads the kind that it expects, not the one that a
list declares; read by the latter, the rest of the footer would mean something else."""


def chunk_values(body: bytes, start: int, end: int) -> set[ChunkValue]:  # noqa: C901, PLR0912, PLR0915 - one loop without calls
    """Return the values in a footer that PyArrow takes on trust, each of a column once.

    Args:
        body: Bytes that hold the footer.
        start: Where it begins.
        end: Where it ends.

    Raises:
        IndexError: It ends early.
        ValueError: It is no footer, or a column is encrypted.
    """
    found: set[ChunkValue] = set()
    at, number, path, left, column = start, 0, 0, 0, 0
    around: tuple[int, int, int, Any] | None = None
    while True:
        head = body[at]
        at += 1
        if not head:
            if path == _CHUNK:
                column += 1
            if left:
                left, number = left - 1, 0
            elif around is None:
                return found
            else:
                number, path, left, around = around
            continue
        kind = head & 0x0F
        if head < _NEXT_FIELD:
            number, at = _field_number(body, at, number)
        else:
            number += head >> 4
        place = path << 6 | number
        if place in _ENCRYPTION:
            raise _no_header("a column is encrypted")
        size = 1
        if kind in {_LIST, _SET}:
            kind, size, at = _list_head(body, at, end, place)
            if place == _CHUNK:
                column = 0
            if place in _MEASURED:
                found.add(ChunkValue(column, _MEASURED[place], size))
        if kind == _STRUCT:
            if size:
                around, number, path, left = (number, path, left, around), 0, place, size - 1
        elif kind in _FIXED:
            at += _FIXED[kind] * size
        elif kind in _INTEGERS or kind == _BINARY:
            for _ in range(size):
                raw = shift = 0
                while (byte := body[at]) >= _MORE and shift < 7 * _LONGEST_NUMBER:
                    raw, at, shift = raw | (byte & 0x7F) << shift, at + 1, shift + 7
                raw, at = raw | byte << shift, at + 1
                if kind == _BINARY:
                    at += raw
                    if place in _NAMES:
                        str(body[at - raw : at], "utf-8")
                    if place in _MEASURED:
                        found.add(ChunkValue(column, _MEASURED[place], raw))
                elif place in _NUMBERS:
                    found.add(ChunkValue(column, _NUMBERS[place], raw >> 1 ^ -(raw & 1)))
        else:
            raise _no_header(f"a footer has no value of kind {kind}")
        if at > end:
            raise IndexError("it ends early")


def _list_head(body: bytes, at: int, end: int, place: int) -> tuple[int, int, int]:
    """Return the kind and the number of a list's elements, and the byte after its head."""
    head = body[at]
    at += 1
    kind, size = head & 0x0F, head >> 4
    if size == _LONG_LIST:
        size, at = _number(body, at)
    if size > end - at:
        raise _no_header(f"it declares {size} elements, more than there are bytes")
    if size and kind != _ELEMENTS.get(place, kind):
        raise _no_header(f"it declares a list with elements of kind {kind}")
    return _BYTE if kind in _BOOLEANS or not size else kind, size, at


def _field_number(body: bytes, at: int, before: int) -> tuple[int, int]:
    """Return the number of a field that is written out, and the byte after it."""
    raw, at = _number(body, at)
    if not before + 15 < raw >> 1 < _FIELDS or raw & 1:
        raise _no_header("a field is there twice, or its number is not the shortest")
    return raw >> 1, at


def _number(body: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a byte, and the byte after it."""
    found = shift = 0
    while (byte := body[at]) >= _MORE and shift < 7 * _LONGEST_NUMBER:
        found, at, shift = found | (byte & 0x7F) << shift, at + 1, shift + 7
    return found | byte << shift, at + 1


def _no_header(why: str) -> ValueError:
    return ValueError(why)


class _Compact:
    """Reads structures of Thrift's compact protocol."""

    __slots__ = ("_body", "_end", "position")

    def __init__(self, body: bytes, start: int, end: int) -> None:
        self._body = body
        self._end = end
        self.position = start

    def _byte(self) -> int:
        if self.position >= self._end:
            raise IndexError("it ends early")
        self.position += 1
        return self._body[self.position - 1]

    def _unsigned(self) -> int:
        found = self._byte()
        if found < 0x80:  # noqa: PLR2004
            return found
        found &= 0x7F
        for shift in range(7, 7 * _LONGEST_NUMBER, 7):
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004
                return found
        raise ValueError("a number does not end")

    def integer(self) -> int:
        """Return the next number."""
        raw = self._unsigned()
        return raw >> 1 ^ -(raw & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and the kind of a structure's fields; the caller reads each value."""
        number = 0
        while head := self._byte():
            step = head >> 4
            number = number + step if step else self.integer()
            yield number, head & 0x0F

    def list_size(self) -> int:
        """Return how many elements the list has that begins here.

        Raises:
            ValueError: There are fewer bytes.
        """
        return self._checked(self._list_head()[0])

    def _checked(self, size: int) -> int:
        if size > self._end - self.position:
            raise ValueError(f"it declares {size} elements, more than there are bytes")
        return size

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        size = head >> 4
        size = self._unsigned() if size == _LONG_LIST else size
        return size, head & 0x0F

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over a value."""
        if depth > _STRUCTURE_DEPTH:
            raise ValueError("structures nest too deep")
        if kind in _FIXED:
            self.position += _FIXED[kind]
        elif kind in _INTEGERS:
            self._unsigned()
        elif kind == _BINARY:
            length = self._unsigned()
            self.position += length
        elif kind == _STRUCT:
            for _, inside in self.fields():
                self.skip(inside, depth + 1)
        else:
            self._skip_container(kind, depth + 1)

    def _skip_container(self, kind: int, depth: int) -> None:
        if kind in {_LIST, _SET}:
            size, inside = self._list_head()
            kinds = [inside]
        elif kind == _MAP:
            size = self._unsigned()
            both = self._byte() if size else 0
            kinds = [both >> 4, both & 0x0F]
        else:
            raise ValueError(f"no value is of kind {kind}")
        for _ in range(self._checked(size)):
            for each in kinds:
                # Inside of a container a truth value takes a byte.
                self.skip(_BYTE if each in _BOOLEANS else each, depth)
