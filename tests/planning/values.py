"""Types, and values of them, for laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ledger.model import types as t
from ledger.model.single_values import WHOLE_BITS, round_to_float32

_CLOSE = st.integers(-40, 40)
_TEXT = st.text("ab\u00e4\U0001f4b0\uffff", max_size=20)
_BYTES = st.binary(max_size=20)


def comparable_types() -> st.SearchStrategy[t.DataType]:
    return st.one_of(
        st.sampled_from(
            [
                *(t.BooleanType(), t.TinyIntType(), t.SmallIntType(), t.IntType(), t.BigIntType()),
                *(t.FloatType(), t.DoubleType(), t.DateType(), t.UuidType(), t.STRING, t.BYTES),
                *(t.DecimalType(9, 2), t.DecimalType(38, 0), t.DecimalType(5, 5)),
                *(t.TimeType(3), t.TimeType(9), t.CharType(20), t.BinaryType(4)),
                *(t.TimestampType(3), t.TimestampType(9)),
                *(t.LocalZonedTimestampType(6), t.LocalZonedTimestampType(9)),
            ]
        )
    )


def _near_steps(width: int) -> st.SearchStrategy[int]:
    """Return numbers that crowd around multiples of a width, zero above all."""
    return st.builds(lambda steps, off: steps * width + off, _CLOSE, st.integers(-2, 2))


def _moments(data_type: Any) -> st.SearchStrategy[int]:
    second = 10 ** (9 if data_type.precision > 6 else 6)
    return st.one_of(_near_steps(3600 * second), _near_steps(86_400 * 31 * second))


def _times(data_type: Any) -> st.SearchStrategy[int]:
    return st.integers(0, 86_400 * 10 ** (9 if data_type.precision > 6 else 6) - 1)


def _numbers(limit: int) -> st.SearchStrategy[int]:
    return st.one_of(_CLOSE, st.integers(-limit, limit - 1))


_STRATEGIES: dict[str, Callable[[Any], st.SearchStrategy[Any]]] = {
    "BOOLEAN": lambda _: st.booleans(),
    "DECIMAL": lambda each: _numbers(10**each.precision - 1),
    "FLOAT": lambda _: st.floats(width=32, allow_nan=False).map(round_to_float32),
    "DOUBLE": lambda _: st.floats(allow_nan=False),
    **dict.fromkeys(("CHAR", "VARCHAR"), lambda _: _TEXT),
    "BINARY": lambda each: st.binary(min_size=each.length, max_size=each.length),
    "VARBINARY": lambda _: _BYTES,
    "UUID": lambda _: st.binary(min_size=16, max_size=16),
    "DATE": lambda _: st.one_of(_near_steps(365), _CLOSE),
    "TIME": _times,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _moments),
    **dict.fromkeys(WHOLE_BITS, lambda each: _numbers(1 << WHOLE_BITS[each.root] - 1)),
}


def values_of(data_type: t.DataType) -> st.SearchStrategy[Any]:
    return _STRATEGIES[data_type.root](data_type)


def typed_values() -> st.SearchStrategy[tuple[t.DataType, Any]]:
    return comparable_types().flatmap(lambda each: st.tuples(st.just(each), values_of(each)))
