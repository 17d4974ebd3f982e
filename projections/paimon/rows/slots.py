"""The layout of one BinaryRow: null bits, slots of eight bytes, and the part behind them.

Everything is little-endian; offsets count from the row's start, behind its serialised field count.
"""

from __future__ import annotations

import struct

SLOT = 8

_HEADER_BITS = 8
_INLINE = 7
_INLINE_MARK = 0x80
_REFERENCE = struct.Struct("<II")


def _null_area(fields: int) -> int:
    return (fields + 63 + _HEADER_BITS) // 64 * SLOT


class RowWriter:
    """A row in the making; its kind is INSERT, which is 0."""

    def __init__(self, fields: int) -> None:
        self._slots = bytearray(_null_area(fields) + fields * SLOT)
        self._start = _null_area(fields)
        self._behind = bytearray()

    def body(self) -> bytes:
        """Return the row's bytes."""
        return bytes(self._slots + self._behind)

    def set_null(self, index: int) -> None:
        """Mark a field as NULL."""
        bit = index + _HEADER_BITS
        self._slots[bit // 8] |= 1 << bit % 8

    def set_slot(self, index: int, content: bytes) -> None:
        """Put at most eight bytes at the start of a field's slot."""
        start = self._start + index * SLOT
        self._slots[start : start + len(content)] = content

    def set_reference(self, index: int, content: bytes, *, low: int) -> None:
        """Put bytes behind the slots, padded to whole words, and point a slot at them.

        Args:
            index: The field.
            content: What to put there.
            low: The slot's lower half: the content's length, or what the type keeps there.
        """
        offset = len(self._slots) + len(self._behind)
        self._behind += content + bytes(-len(content) % SLOT)
        self.set_slot(index, _REFERENCE.pack(low, offset))

    def set_bytes(self, index: int, content: bytes) -> None:
        """Put bytes into the slot itself when they are few, else behind the slots."""
        if len(content) <= _INLINE:
            marked = content.ljust(_INLINE, b"\0") + bytes([_INLINE_MARK | len(content)])
            self.set_slot(index, marked)
        else:
            self.set_reference(index, content, low=len(content))


class RowReader:
    """A row's fields.

    Raises:
        ValueError: From every method: the row is too short for what it points at.
    """

    def __init__(self, body: bytes, fields: int) -> None:
        self._body = body
        self._start = _null_area(fields)

    def is_null(self, index: int) -> bool:
        """Return whether a field is NULL."""
        bit = index + _HEADER_BITS
        return bool(self._within(bit // 8, 1)[0] & 1 << bit % 8)

    def slot(self, index: int, width: int = SLOT) -> bytes:
        """Return the first bytes of a field's slot."""
        return self._within(self._start + index * SLOT, width)

    def reference(self, index: int) -> tuple[int, int]:
        """Return the lower half of a slot and the offset in its upper half."""
        low, offset = _REFERENCE.unpack(self.slot(index))
        return low, offset

    def behind(self, offset: int, length: int) -> bytes:
        """Return bytes that a slot points at."""
        return self._within(offset, length)

    def bytes_at(self, index: int) -> bytes:
        """Return what `RowWriter.set_bytes` put there."""
        slot = self.slot(index)
        if slot[_INLINE] & _INLINE_MARK:
            length = slot[_INLINE] & ~_INLINE_MARK
            if length > _INLINE:
                raise ValueError(f"{length} bytes cannot stand in a slot of {SLOT}")
            return slot[:length]
        return self.behind(*reversed(self.reference(index)))

    def _within(self, start: int, length: int) -> bytes:
        end = start + length
        if end > len(self._body):
            raise ValueError(f"it points at byte {end} of {len(self._body)}")
        return self._body[start:end]
