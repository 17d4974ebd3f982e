"""Matching of stored column values against a sought value, under each type of the column.

Neither a bound nor a partition value records the type under which it was written, so each type of
the column is tried. A stored value matches if the sought text denotes it under that type, or if
casts to a later type of the column make both equal.

Values have the form that `ledger.model.single_values` describes. NaN is a value here, equal to
itself.

Source: Paimon's cast rules. Times with a local zone are converted in UTC.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, DecimalException
from itertools import groupby
from typing import Any, Final

from attrs import field, frozen

from ledger.files.bounds import TRUNCATE_LENGTH
from ledger.model import types as t
from ledger.model.errors import LedgerError
from ledger.model.file_change import PartitionValue
from ledger.model.single_values import (
    SECONDS_A_DAY,
    WHOLE_BITS,
    Value,
    date_text,
    day_number,
    decimal_text,
    decode_value,
    encode_value,
    is_in_integer_range,
    parse_text,
    parse_time,
    parse_timestamp,
    round_to_float32,
    time_text,
    timestamp_text,
    unit_digits,
)
from ledger.model.transforms import Identity, Truncate, transform_of
from ledger.planning.bound_value import value_from_bytes

_TEXTS: Final = ("CHAR", "VARCHAR")
_BYTES: Final = ("BINARY", "VARBINARY")
_FLOATS: Final = ("FLOAT", "DOUBLE")
_MOMENTS: Final = ("TIMESTAMP", "TIMESTAMP_LTZ")
_TRUE: Final = frozenset({"t", "true", "y", "yes", "1"})
_FALSE: Final = frozenset({"f", "false", "n", "no", "0"})
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_NO_NUMBER: Final = r"[+-]?(?:nan|inf|infinity)"
_FLOAT: Final = re.compile(rf"(?:{_NUMBER.pattern})[fd]?|{_NO_NUMBER}", re.IGNORECASE)
_DATE: Final = re.compile(r"([+-]?[0-9]{1,7})-([0-9]{1,2})-([0-9]{1,2})")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,9}")
_MOST_DIGITS: Final = 512
_EXACT: Final = Context(prec=2 * _MOST_DIGITS)
_INT_BITS, _LONG_BITS = 32, 64
_MILLIS: Final = 3


def parse_possible_values(text: str, data_type: t.DataType) -> tuple[Value, ...]:
    """Return the values of a type that a user's text may denote; empty if there is none.

    Numbers may have any spelling, such as `55512`, `55512.00` and `5.5512E4`; a DATE may be given
    as days since 1970 or as its midnight; bytes as hex or as the text that they encode.

    Example:
        >>> (
        ...     parse_possible_values("55512.00", t.IntType()),
        ...     parse_possible_values("soon", t.DateType()),
        ... )
        ((55512,), ())
        >>> (
        ...     parse_possible_values("1989-03-02", t.DateType()),
        ...     parse_possible_values("7000", t.DateType()),
        ... )
        ((7000,), (7000,))
        >>> parse_possible_values("+1657958-02-03", t.DateType())
        (604837230,)
    """
    read = _READERS.get(data_type.root)
    if read is None or (len(text) > _MOST_DIGITS and data_type.root not in (*_TEXTS, *_BYTES)):
        return ()
    said = text if data_type.root in (*_TEXTS, *_BYTES) else text.strip()
    found: dict[Value, None] = {}
    with suppress(ValueError, OverflowError, DecimalException):
        for each in read(said, data_type):
            found[each] = None
    return tuple(found)


def text_of(value: Value, data_type: t.DataType) -> str:
    """Return the text of a value, as a cast to a text type gives it.

    Example:
        >>> text_of(1420, t.DecimalType(9, 2)), text_of(True, t.BooleanType())
        ('14.20', 'true')
    """
    return spellings(value, data_type)[0]


def spellings(value: Value, data_type: t.DataType) -> tuple[str, ...]:
    """Return the texts that writers may use for a value, the one of a cast first.

    Example:
        >>> spellings(0, t.TimestampType(6))[:2]
        ('1970-01-01 00:00:00.000000', '1970-01-01T00:00:00.000000')
    """
    match value:
        case bool():
            return str(value).lower(), str(int(value))
        case str():
            return (value,)
        case bytes():
            return value.decode(errors="ignore"), value.hex()
        case float():
            whole = (f"{value:.0f}",) if value.is_integer() else ()
            return repr(value), *whole, _format_with_exponent(value)
        case int():
            return tuple(dict.fromkeys(_numeric_spellings(value, data_type)))


def _numeric_spellings(value: int, data_type: Any) -> Iterator[str]:
    match data_type.root:
        case "DECIMAL":
            said = decimal_text(value, data_type.scale)
            yield said
            if data_type.scale:
                yield said.rstrip("0").rstrip(".")
        case "DATE":
            yield date_text(value)
            yield str(value)
        case "TIME":
            yield from _fraction_spellings(time_text(value, unit_digits(data_type)))
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            said = timestamp_text(value, unit_digits(data_type))
            for each in _fraction_spellings(said):
                yield each.replace("T", " ")
                yield each
        case _:
            yield str(value)


def _fraction_spellings(said: str) -> Iterator[str]:
    yield said
    yield said.rstrip("0").rstrip(".")
    seconds, _, fraction = said.partition(".")
    if not fraction[_MILLIS:].strip("0"):
        yield f"{seconds}.{fraction[:_MILLIS]}"


def _format_with_exponent(number: float) -> str:
    """Return a number in Java's exponent form, such as 5.5512345E7."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"
    exact = Decimal(repr(number))
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0") or "0"
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exact.adjusted()}"


def cast_value(value: Value, source: t.DataType, target: t.DataType) -> Value | None:
    """Return a value cast to another type, as Paimon casts it; None if the result is NULL.

    Example:
        >>> (
        ...     cast_value(55512, t.IntType(), t.DecimalType(12, 2)),
        ...     cast_value(7000, t.DateType(), t.STRING),
        ... )
        (5551200, '1989-03-02')
        >>> cast_value(15012, t.DecimalType(10, 2), t.DecimalType(12, 3))
        150120
    """
    with suppress(ValueError, OverflowError, DecimalException):
        return _cast_to_type(value, source, target)
    return None


def _cast_to_type(value: Any, source: Any, target: Any) -> Value | None:
    if target.root in _TEXTS:
        return _fit_to_text_length(text_of(value, source), target)
    if source.root in _TEXTS:
        return _cast_from_text(value, target)
    if target.root in _BYTES:
        return bytes(value[: target.length]) if source.root in _BYTES else None
    if source.root in _MOMENTS or source.root in ("DATE", "TIME"):
        return _cast_from_time(value, source, target)
    number = _numeric_value_of(value, source)
    return None if number is None else _cast_number(number, target)


def _fit_to_text_length(text: str, target: Any) -> str:
    cut = text[: target.length]
    return cut.ljust(target.length) if target.root == "CHAR" else cut


def _cast_from_text(text: str, target: Any) -> Value | None:
    said = text.strip()
    if target.root in _BYTES:
        return text.encode()[: target.length]
    if (target.root in WHOLE_BITS or target.root == "DECIMAL") and _NUMBER.fullmatch(said):
        return _cast_number(Decimal(said), target)
    if target.root == "DATE":
        said = re.split("[ T]", said)[0]
    found = parse_possible_values(said, target)
    return found[0] if found else None


def _numeric_value_of(value: Any, source: Any) -> Decimal | float | None:
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        scale = source.scale if source.root == "DECIMAL" else 0
        return Decimal(value).scaleb(-scale, _EXACT)
    return None


def _cast_number(number: Decimal | float, target: Any) -> Value | None:
    """Return a number cast to another type."""
    root = target.root
    if root == "BOOLEAN":
        return bool(number != 0)
    if root in _FLOATS:
        return round_to_float32(float(number)) if root == "FLOAT" else float(number)
    if root in WHOLE_BITS:
        return _narrow_to_integer(number, WHOLE_BITS[root])
    if root == "DECIMAL":
        exact = Decimal(repr(number)) if isinstance(number, float) else number
        return _unscaled_decimal(exact, target, ROUND_HALF_UP)
    if root in _MOMENTS and isinstance(number, Decimal):
        return int(number * 10 ** unit_digits(target))
    return None


def _narrow_to_integer(number: Decimal | float, bits: int) -> int:
    """Return a number narrowed to an integer type as in Java: floats saturate, others wrap."""
    if isinstance(number, float):
        if math.isnan(number):
            return 0
        wide = _LONG_BITS if bits == _LONG_BITS else _INT_BITS
        limit = 1 << wide - 1
        whole = limit if number > limit else -limit if number < -limit else int(number)
        whole = min(whole, limit - 1)
    else:
        whole = int(number.to_integral_value(ROUND_DOWN, _EXACT))
    half = 1 << bits - 1
    return (whole + half) % (2 * half) - half


def _unscaled_decimal(number: Decimal, target: Any, rounding: str) -> int | None:
    if not number.is_finite() or number.adjusted() > _MOST_DIGITS:
        return None
    shifted = number.scaleb(target.scale, _EXACT)
    unscaled = int(shifted.to_integral_value(rounding, _EXACT))
    return unscaled if abs(unscaled) < 10**target.precision else None


def _cast_from_time(value: int, source: Any, target: Any) -> Value | None:  # noqa: PLR0911 - a table
    day = SECONDS_A_DAY
    match source.root, target.root:
        case "DATE", "TIMESTAMP" | "TIMESTAMP_LTZ":
            return int(value * day * 10 ** unit_digits(target))
        case "TIME", "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _convert_time_unit(value, source, target)
        case "TIMESTAMP" | "TIMESTAMP_LTZ", "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _convert_time_unit(value, source, target)
        case "TIMESTAMP" | "TIMESTAMP_LTZ", "DATE":
            return int(value // (day * 10 ** unit_digits(source)))
        case "TIMESTAMP" | "TIMESTAMP_LTZ", "TIME":
            return _convert_time_unit(value % (day * 10 ** unit_digits(source)), source, target)
        case "TIMESTAMP" | "TIMESTAMP_LTZ", "INT" | "BIGINT":
            seconds = Decimal(value // 10 ** unit_digits(source))
            return _narrow_to_integer(seconds, WHOLE_BITS[target.root])
        case _:
            # Paimon has no other cast of a time.
            return None


def _convert_time_unit(value: int, source: Any, target: Any) -> int:
    """Return a time in the unit of another type, truncated to that type's precision."""
    digits = min(target.precision, unit_digits(source))
    kept = value // 10 ** (unit_digits(source) - digits)
    return int(kept * 10 ** (unit_digits(target) - digits))


def _parse_as_text(text: str, _type: Any) -> Iterator[Value]:
    yield text


def _parse_as_bytes(text: str, _type: Any) -> Iterator[Value]:
    with suppress(ValueError):
        yield bytes.fromhex(text)
    yield text.encode()


def _parse_as_boolean(text: str, _type: Any) -> Iterator[Value]:
    said = text.lower()
    if said in _TRUE or said in _FALSE:
        yield said in _TRUE


def _parse_as_integer(text: str, data_type: Any) -> Iterator[Value]:
    number = Decimal(text) if _NUMBER.fullmatch(text) else None
    if number is None or number.adjusted() > _MOST_DIGITS or number != number.to_integral_value():
        return
    if is_in_integer_range(int(number), data_type):
        yield int(number)


def _parse_as_decimal(text: str, data_type: Any) -> Iterator[Value]:
    number = Decimal(text) if _NUMBER.fullmatch(text) else Decimal("NaN")
    unscaled = _unscaled_decimal(number, data_type, ROUND_DOWN)
    if unscaled is not None and Decimal(unscaled).scaleb(-data_type.scale, _EXACT) == number:
        yield unscaled


def _parse_as_float(text: str, data_type: Any) -> Iterator[Value]:
    if _FLOAT.fullmatch(text):
        is_name = text.lower().endswith(("f", "d")) and not text.lower().endswith("inf")
        number = float(text[:-1] if is_name else text)
        yield round_to_float32(number) if data_type.root == "FLOAT" else number


def _parse_as_date(text: str, _type: Any) -> Iterator[Value]:
    found = _DATE.fullmatch(text)
    if found:
        yield day_number(*map(int, found.groups()))
    elif _WHOLE.fullmatch(text):
        yield int(text)
    else:
        count, _ = parse_timestamp(text, 9)
        days, within = divmod(count, SECONDS_A_DAY * 10**9)
        if not within:
            yield days


def _parse_as_time(text: str, data_type: Any) -> Iterator[Value]:
    digits = unit_digits(data_type)
    if _WHOLE.fullmatch(text):
        # Paimon's own files count milliseconds.
        yield int(text) * 10 ** (digits - _MILLIS)
    else:
        yield parse_time(text, digits)


def _parse_as_timestamp(text: str, data_type: Any) -> Iterator[Value]:
    digits = unit_digits(data_type)
    found = re.fullmatch(rf"({_DATE.pattern})(.*)", text, re.DOTALL)
    if found:
        day = date_text(day_number(int(found[2]), int(found[3]), int(found[4])))
        text = day + re.sub(r"(\.[0-9]*?)0+(?=[^0-9]|$)", r"\1", found[5]).replace(".Z", "Z")
        text = text.rstrip(".")
    yield parse_timestamp(text, digits)[0]


def _parse_as_uuid(text: str, data_type: Any) -> Iterator[Value]:
    yield parse_text(text, data_type)


_READERS: Final[dict[str, Callable[[str, Any], Iterator[Value]]]] = {
    **dict.fromkeys(_TEXTS, _parse_as_text),
    **dict.fromkeys(_BYTES, _parse_as_bytes),
    **dict.fromkeys(WHOLE_BITS, _parse_as_integer),
    **dict.fromkeys(_FLOATS, _parse_as_float),
    **dict.fromkeys(_MOMENTS, _parse_as_timestamp),
    "BOOLEAN": _parse_as_boolean,
    "DECIMAL": _parse_as_decimal,
    "DATE": _parse_as_date,
    "TIME": _parse_as_time,
    "UUID": _parse_as_uuid,
}


LEAST_CUT: Final = 8
"""Minimum length of a truncated bound; a shorter one is a whole value, or is not informative."""

_FLOAT_WIDTHS: Final = (4, 8)
_NAN: Final = "NaN"
"""Replacement of NaN, which does not equal itself."""


def may_be_truncated_from(bound: str | bytes, whole: str | bytes) -> bool:
    """Return whether a bound may be a truncated longer value, its last part perhaps one higher.

    Example:
        >>> (
        ...     may_be_truncated_from("ann@mail.con", "ann@mail.com/private"),
        ...     may_be_truncated_from("a", "ab"),
        ... )
        (True, False)
        >>> may_be_truncated_from("12345678", "1234567")
        False
    """
    if not LEAST_CUT <= len(bound) < len(whole):
        return False
    return whole[: len(bound) - 1] == bound[:-1]


def _changed_types(types: Iterable[t.DataType]) -> tuple[t.DataType, ...]:
    """Return types without nullability, with consecutive duplicates removed."""
    plain = (each.with_nullability(nullable=True) for each in types)
    return tuple(each for each, _ in groupby(plain))


@frozen
class ValueMatcher:
    """Matcher of a column's stored values against a sought value.

    Attributes:
        said: The text of the sought value, in any spelling of one of the types.
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
        return [_replace_nan(parse_possible_values(self.said, each)) for each in self.types]

    @_wanted.default
    def _typed_or_cast(self) -> Sequence[frozenset[Value]]:
        """For each type, the sought values under it, and those cast to it from earlier types."""
        found: list[frozenset[Value]] = []
        for place, typed in enumerate(self._typed):
            found.append(typed | (self._cast_to_type(found[-1], place) if place else frozenset()))
        return found

    @_texts.default
    def _spellings_by_type(self) -> Sequence[frozenset[str]]:
        """For each type, the spellings of sought values while the column was text."""
        later: frozenset[str] = frozenset()
        back: frozenset[Value] = frozenset()
        found: list[frozenset[str]] = []
        after: t.DataType | None = None
        for place, data_type in reversed([*enumerate(self.types)]):
            # A later type's value cast back to this type: one of the values that become it.
            made = _cast_all(back, after, data_type) if after else frozenset()
            back = self._typed[place] | made
            later |= _spellings_of_values(back, data_type)
            found.append(later | _spellings_of_values(self._wanted[place], data_type))
            after = data_type
        return found[::-1]

    @_tails.default
    def _truncated_tails_by_type(self) -> Sequence[frozenset[str]]:
        """For each type, suffixes that truncated texts may lack, if a later type is not text."""
        return [
            frozenset(text[begin:] for text in texts for begin in range(len(text)))
            if any(each.root not in _TEXTS for each in self.types[place:])
            else frozenset()
            for place, texts in enumerate(self._texts)
        ]

    @property
    def denotes_value(self) -> bool:
        """True if the text denotes a value of any of the types."""
        return any(self._typed)

    @property
    def is_text_column(self) -> bool:
        """True if the column's current type is text."""
        return self.types[-1].root in _TEXTS

    def is_contained_in_text(self, words: str) -> bool:
        """Return whether a text contains the value; never for integers and booleans, too common."""
        now = self.types[-1]
        if self.is_text_column:
            return self.said != "" and self.said in words
        if now.root in WHOLE_BITS or now.root == "BOOLEAN":
            return False
        texts = (text_of(each, now) for each in self._typed[-1] if each is not _NAN)
        return any(each in words for each in (*texts, self.said) if len(each) >= LEAST_CUT)

    @property
    def all_spellings(self) -> frozenset[str]:
        """All spellings of the value under any of the types."""
        return frozenset({self.said}).union(*self._texts)

    def may_be_bound(self, bound: str) -> bool:
        """Return whether a bound, in hex, is the value or may be truncated from it.

        True also if the bound is not a value of any of the types, since its meaning is unknown.
        """
        try:
            body = bytes.fromhex(bound)
        except ValueError:
            return True
        reached: frozenset[Value] = frozenset()
        is_known = False
        for place, data_type in enumerate(self.types):
            values = _replace_nan(_decode_bound_bytes(body, data_type))
            is_known = is_known or bool(values)
            if self._matches_truncated_bound(values, place):
                return True
            reached = (
                values
                | self._complete_truncated_texts(values, place)
                | self._cast_to_type(reached, place)
            )
            if reached & self._typed[place]:
                return True
        return not is_known

    def matches_partition_value(self, value: PartitionValue, transform: str) -> bool:
        """Return whether a partition value is the transform's result for the sought value."""
        if value is None:
            return False
        found, reached = transform_of(transform), frozenset[Value]()
        for place, data_type in enumerate(self.types):
            reached = self._cast_to_type(reached, place)
            if found.accepts(data_type):
                result = found.result_type(data_type)
                for each in self._wanted[place]:
                    with suppress(LedgerError):
                        if encode_value(found.apply(each, data_type), result) == value:
                            return True
            if isinstance(found, Identity | Truncate):
                with suppress(LedgerError):
                    decoded = decode_value(value, data_type)
                    reached |= _replace_nan([] if decoded is None else [decoded])
            if reached & self._typed[place]:
                return True
        return str(value) == self.said

    def matches_written_text(self, text: str) -> bool:
        """Return whether a text in a log line, such as a default, denotes the sought value."""
        plain = text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
        reached: frozenset[Value] = frozenset()
        for place, data_type in enumerate(self.types):
            values = _replace_nan(parse_possible_values(plain, data_type))
            reached = values | self._cast_to_type(reached, place)
            if values & self._wanted[place] or reached & self._typed[place]:
                return True
        return self.is_text_column and self.said in plain

    def _cast_to_type(self, values: Iterable[Value], place: int) -> frozenset[Value]:
        """Return values of the previous type cast to the type at an index."""
        if not place:
            return frozenset()
        return _cast_all(values, self.types[place - 1], self.types[place])

    def _is_text_cast_again(self, place: int) -> bool:
        """Return whether text became another type that was changed again.

        The result for a truncated text is then unknown.
        """
        later = [each.root not in _TEXTS for each in self.types[place:]]
        return any(later[:-1])

    def _complete_truncated_texts(self, values: Iterable[Value], place: int) -> frozenset[Value]:
        """Return the possible whole texts of truncated ones, whose last character may be higher."""
        cut = (each for each in values if isinstance(each, str) and len(each) >= TRUNCATE_LENGTH)
        starts = [start for each in cut for start in (each, each[:-1])]
        return frozenset(start + tail for start in starts for tail in ("", *self._tails[place]))

    def _matches_truncated_bound(self, values: frozenset[Value], place: int) -> bool:
        """Return whether a bound is a sought value, or may be truncated from one."""
        root, wanted = self.types[place].root, self._wanted[place]
        if values & wanted:
            return True
        if root in _BYTES:
            whole = [each for each in wanted if isinstance(each, bytes)]
            whole += [each.encode() for each in self._texts[place]]
            found = (each for each in values if isinstance(each, bytes))
            return any(each in whole or _is_truncated_from_any(each, whole) for each in found)
        if root not in _TEXTS:
            return False
        texts = self._texts[place]
        return any(
            each.rstrip(" ") in texts
            or (self.is_text_column and self.said in each)
            or _is_truncated_from_any(each, texts)
            or (len(each) >= TRUNCATE_LENGTH and self._is_text_cast_again(place))
            for each in values
            if isinstance(each, str)
        )


def _replace_nan(values: Iterable[Value]) -> frozenset[Value]:
    """Return values with NaN replaced, so that all values equal themselves."""
    return frozenset(each if each == each else _NAN for each in values)  # noqa: PLR0124 - NaN


def _cast_all(values: Iterable[Value], source: t.DataType, target: t.DataType) -> frozenset[Value]:
    made = (cast_value(each, source, target) for each in values if each is not _NAN)
    return _replace_nan(each for each in made if each is not None)


def _spellings_of_values(values: Iterable[Value], data_type: t.DataType) -> frozenset[str]:
    return frozenset(text for each in values for text in spellings(each, data_type) if text)


def _decode_bound_bytes(body: bytes, data_type: t.DataType) -> Iterator[Value]:
    if data_type.root in _TEXTS:
        # Other writers truncate bounds within a character.
        yield body.decode(errors="ignore")
        return
    if data_type.root in ("FLOAT", "DOUBLE") and len(body) in _FLOAT_WIDTHS:
        found = value_from_bytes(body, data_type)
        yield _NAN if found is None else found
        return
    found = value_from_bytes(body, data_type)
    if found is not None:
        yield found


def _is_truncated_from_any(bound: str | bytes, whole: Iterable[str | bytes]) -> bool:
    return any(may_be_truncated_from(bound, each) for each in whole)
