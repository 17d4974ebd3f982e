"""Matching of stored column values against a sought value, under each type of the column.

Neither a bound nor a partition's value says under which type it was written, so each is tried. A
stored value matches where it is what the sought text names under that type, or where a later type
of the column makes the same value of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Final

from attrs import field, frozen

from ledger.files.registering.bounds import TRUNCATE_LENGTH
from ledger.history.value_casts import cast, spellings, text_of, values_of
from ledger.model import types as t
from ledger.model.errors import LedgerError
from ledger.model.file_change import PartitionValue
from ledger.model.transforms import Identity, Truncate, transform_of
from ledger.model.transforms.values import WHOLE_BITS, Value, decode_value, encode_value
from ledger.planning.bound_value import value_from_bytes

LEAST_CUT: Final = 8
"""A shorter bound is a whole value, or says nothing of one."""

_TEXTS: Final = ("CHAR", "VARCHAR")
_BYTES: Final = ("BINARY", "VARBINARY")
_FLOAT_WIDTHS: Final = (4, 8)
_NAN: Final = "NaN"
"""In the place of a float that is equal to nothing."""


def may_be_cut_from(bound: str | bytes, whole: str | bytes) -> bool:
    """Return whether a bound may be cut from a longer value, its last part one higher perhaps.

    Example:
        >>> may_be_cut_from("ann@mail.con", "ann@mail.com/private"), may_be_cut_from("a", "ab")
        (True, False)
        >>> may_be_cut_from("12345678", "1234567")
        False
    """
    if not LEAST_CUT <= len(bound) < len(whole):
        return False
    return whole[: len(bound) - 1] == bound[:-1]


def _changed_types(types: Iterable[t.DataType]) -> tuple[t.DataType, ...]:
    """Return types without their nullability, and none twice in a row."""
    plain = (each.with_nullability(nullable=True) for each in types)
    return tuple(each for each, _ in groupby(plain))


@frozen
class ValueMatcher:
    """Compares stored values of a column with one that is sought.

    Attributes:
        said: The sought value as a text, in any spelling of one of the types.
        types: The column's types, oldest first.
    """

    said: str
    types: Sequence[t.DataType] = field(converter=_changed_types)
    _typed: Sequence[frozenset[Value]] = field(init=False, repr=False, eq=False)
    _wanted: Sequence[frozenset[Value]] = field(init=False, repr=False, eq=False)
    _texts: Sequence[frozenset[str]] = field(init=False, repr=False, eq=False)
    _tails: Sequence[frozenset[str]] = field(init=False, repr=False, eq=False)

    @_typed.default
    def _typed_values(self) -> Sequence[frozenset[Value]]:
        return [_comparable(values_of(self.said, each)) for each in self.types]

    @_wanted.default
    def _typed_or_cast(self) -> Sequence[frozenset[Value]]:
        """What the text names under each type, and what that is of a value of an earlier one."""
        found: list[frozenset[Value]] = []
        for place, typed in enumerate(self._typed):
            found.append(typed | (self._cast(found[-1], place) if place else frozenset()))
        return found

    @_texts.default
    def _spelled(self) -> Sequence[frozenset[str]]:
        """How values that are sought may be spelled where the column was text."""
        later: frozenset[str] = frozenset()
        back: frozenset[Value] = frozenset()
        found: list[frozenset[str]] = []
        after: t.DataType | None = None
        for place, data_type in reversed([*enumerate(self.types)]):
            # A later value as this type has it: one of those that become it.
            made = _cast_all(back, after, data_type) if after else frozenset()
            back = self._typed[place] | made
            later |= _spellings(back, data_type)
            found.append(later | _spellings(self._wanted[place], data_type))
            after = data_type
        return found[::-1]

    @_tails.default
    def _spelled_tails(self) -> Sequence[frozenset[str]]:
        """What may be missing of texts that were cut, where a later type is no text."""
        return [
            frozenset(text[begin:] for text in texts for begin in range(len(text)))
            if any(each.root not in _TEXTS for each in self.types[place:])
            else frozenset()
            for place, texts in enumerate(self._texts)
        ]

    @property
    def is_value(self) -> bool:
        """Whether the text names a value of any of the types."""
        return any(self._typed)

    @property
    def is_text(self) -> bool:
        """Whether the column is text now."""
        return self.types[-1].root in _TEXTS

    def is_said_in(self, words: str) -> bool:
        """Return whether words hold the value; whole numbers and booleans stand in too many."""
        now = self.types[-1]
        if self.is_text:
            return self.said != "" and self.said in words
        if now.root in WHOLE_BITS or now.root == "BOOLEAN":
            return False
        texts = (text_of(each, now) for each in self._typed[-1] if each is not _NAN)
        return any(each in words for each in (*texts, self.said) if len(each) >= LEAST_CUT)

    @property
    def all_spellings(self) -> frozenset[str]:
        """How the value may be spelled under any of the types."""
        return frozenset({self.said}).union(*self._texts)

    def is_bound(self, bound: str) -> bool:
        """Return whether a bound, in hex, is the value or may be cut from it.

        True also where it is no value of any of the types, so that nobody knows what it tells.
        """
        try:
            body = bytes.fromhex(bound)
        except ValueError:
            return True
        reached: frozenset[Value] = frozenset()
        is_known = False
        for place, data_type in enumerate(self.types):
            values = _comparable(_from_bytes(body, data_type))
            is_known = is_known or bool(values)
            if self._is_cut(values, place):
                return True
            reached = values | self._completed(values, place) | self._cast(reached, place)
            if reached & self._typed[place]:
                return True
        return not is_known

    def is_partition(self, value: PartitionValue, transform: str) -> bool:
        """Return whether a partition's value is the transform's result for the value."""
        if value is None:
            return False
        found, reached = transform_of(transform), frozenset[Value]()
        for place, data_type in enumerate(self.types):
            reached = self._cast(reached, place)
            if found.accepts(data_type):
                result = found.result_type(data_type)
                for each in self._wanted[place]:
                    with suppress(LedgerError):
                        if encode_value(found.apply(each, data_type), result) == value:
                            return True
            if isinstance(found, Identity | Truncate):
                with suppress(LedgerError):
                    decoded = decode_value(value, data_type)
                    reached |= _comparable([] if decoded is None else [decoded])
            if reached & self._typed[place]:
                return True
        return str(value) == self.said

    def is_written(self, text: str) -> bool:
        """Return whether a text that a line holds, such as a default, is the value."""
        plain = text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
        reached: frozenset[Value] = frozenset()
        for place, data_type in enumerate(self.types):
            values = _comparable(values_of(plain, data_type))
            reached = values | self._cast(reached, place)
            if values & self._wanted[place] or reached & self._typed[place]:
                return True
        return self.is_text and self.said in plain

    def _cast(self, values: Iterable[Value], place: int) -> frozenset[Value]:
        """Return what values of the type before one of the types are under that."""
        if not place:
            return frozenset()
        return _cast_all(values, self.types[place - 1], self.types[place])

    def _is_read_twice(self, place: int) -> bool:
        """Return whether text became another type that was changed again.

        Nobody can tell what a text that was cut becomes then.
        """
        later = [each.root not in _TEXTS for each in self.types[place:]]
        return any(later[:-1])

    def _completed(self, values: Iterable[Value], place: int) -> frozenset[Value]:
        """Return what texts may be that were cut, the last character one higher perhaps."""
        cut = (each for each in values if isinstance(each, str) and len(each) >= TRUNCATE_LENGTH)
        starts = [start for each in cut for start in (each, each[:-1])]
        return frozenset(start + tail for start in starts for tail in ("", *self._tails[place]))

    def _is_cut(self, values: frozenset[Value], place: int) -> bool:
        """Return whether a bound is, or may be cut from, a value that is sought."""
        root, wanted = self.types[place].root, self._wanted[place]
        if values & wanted:
            return True
        if root in _BYTES:
            whole = [each for each in wanted if isinstance(each, bytes)]
            whole += [each.encode() for each in self._texts[place]]
            found = (each for each in values if isinstance(each, bytes))
            return any(each in whole or _is_any_cut(each, whole) for each in found)
        if root not in _TEXTS:
            return False
        texts = self._texts[place]
        return any(
            each.rstrip(" ") in texts
            or (self.is_text and self.said in each)
            or _is_any_cut(each, texts)
            or (len(each) >= TRUNCATE_LENGTH and self._is_read_twice(place))
            for each in values
            if isinstance(each, str)
        )


def _comparable(values: Iterable[Value]) -> frozenset[Value]:
    """Return values that are equal to themselves."""
    return frozenset(each if each == each else _NAN for each in values)  # noqa: PLR0124 - NaN


def _cast_all(values: Iterable[Value], source: t.DataType, target: t.DataType) -> frozenset[Value]:
    made = (cast(each, source, target) for each in values if each is not _NAN)
    return _comparable(each for each in made if each is not None)


def _spellings(values: Iterable[Value], data_type: t.DataType) -> frozenset[str]:
    return frozenset(text for each in values for text in spellings(each, data_type) if text)


def _from_bytes(body: bytes, data_type: t.DataType) -> Iterator[Value]:
    if data_type.root in _TEXTS:
        # Other writers cut bounds within a character.
        yield body.decode(errors="ignore")
        return
    if data_type.root in ("FLOAT", "DOUBLE") and len(body) in _FLOAT_WIDTHS:
        found = value_from_bytes(body, data_type)
        yield _NAN if found is None else found
        return
    found = value_from_bytes(body, data_type)
    if found is not None:
        yield found


def _is_any_cut(bound: str | bytes, whole: Iterable[str | bytes]) -> bool:
    return any(may_be_cut_from(bound, each) for each in whole)
