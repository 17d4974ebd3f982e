"""Python values as Arrow arrays of a table's types: rows as dicts, object columns of pandas.

A value has to be of the Python class that its column's type names; nothing is parsed or truncated.
The arrays hold what the values hold, and `ColumnMatch` converts them to the table's types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property
from itertools import accumulate, islice
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final, assert_never
from uuid import UUID

from attrs import field, frozen

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.types.text import bare_type_text
from ledger.rows.row_columns import default_of, match_names, row_error

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_A_BATCH: Final = 1024
"""Rows that are held as Python objects at once."""

_MISSING: Final = object()
"""Value of a key that a dict does not have."""

_LISTS: Final = (list, tuple)


@frozen
class DictRows:
    """Rows as dicts, converted by a table's schema.

    A key matches a column exactly or, if no column has it, by the only one that differs in case. A
    missing key means the column's default, or NULL; so it does in the dicts of nested columns. None
    and pandas' NaT and NA are NULL. NaN is a number, which only columns of FLOAT and DOUBLE hold.

    Attributes:
        schema: The table's schema.
        table: The table's full name, for messages.
    """

    schema: Schema
    table: str

    @cached_property
    def _types(self) -> list[pa.DataType]:
        return [each.type for each in self.schema.to_arrow()]

    def batches(self, rows: Iterable[object]) -> Iterator[pa.RecordBatch]:
        """Yield rows as record batches, one after the other.

        Raises:
            InvalidInputError: A row is no dict, a key is no column, or a value is not of its
                column's class; the message has the row's number, counted from 1.

        Example:
            >>> schema = Schema.of({"id": "BIGINT", "tags": "ARRAY<STRING>"})
            >>> orders = DictRows(schema, "shop.orders")
            >>> [batch.to_pylist() for batch in orders.batches([{"id": 1, "tags": ["new"]}])]
            [[{'id': 1, 'tags': ['new']}]]
            >>> next(orders.batches([{"id": 1}, {"id": "2"}]))
            Traceback (most recent call last):
            ledger.model.errors.InvalidInputError: row 2 (counted from 1): column id of ...
        """
        before = 0
        left = iter(rows)
        while some := list(islice(left, ROWS_A_BATCH)):
            yield self._batch(some, before)
            before += len(some)

    def _batch(self, rows: Sequence[object], before: int) -> pa.RecordBatch:
        try:
            return self._convert(rows)
        except InvalidInputError as error:
            for number, each in enumerate(rows):
                try:
                    self._convert([each])
                except InvalidInputError as found:
                    raise row_error(before + number, found) from found
            raise error from None

    def _convert(self, rows: Sequence[object]) -> pa.RecordBatch:
        import pyarrow as pa

        for each in rows:
            if not isinstance(each, Mapping):
                raise InvalidInputError(
                    f"{excerpt(each)} is no dict of column names to values, as rows of "
                    f"{self.table} are; give rows of one kind"
                )
        values = _Values(self.table)
        arrays = values.members(rows, self.schema.fields, self._types, "")
        return pa.RecordBatch.from_arrays(arrays, names=list(self.schema.names))


@frozen
class _KeyMatch:
    """Match of the keys of dicts with fields; dicts of a batch mostly have the same keys."""

    table: str
    names: Sequence[str]
    around: str
    _known: dict[tuple[Any, ...], list[Any]] = field(factory=dict)

    def of(self, given: Mapping[Any, Any]) -> list[Any]:
        """Return the key of each field in a dict; `_MISSING` where it has none."""
        found = tuple(given)
        if found not in self._known:
            for key in found:
                if not isinstance(key, str):
                    raise InvalidInputError(
                        f"{excerpt(key)} is no name of a column of {self.table}; names are texts"
                    )
            places = match_names(found, self.names, self.table, self.around)
            self._known[found] = [_MISSING if each is None else found[each] for each in places]
        return self._known[found]


@frozen
class _Values:
    """Conversion of the values of one batch."""

    table: str

    def members(
        self,
        dicts: Sequence[Any],
        fields: Sequence[t.DataField],
        types: Sequence[pa.DataType],
        around: str,
    ) -> list[pa.Array]:
        """Return an array for each field of some dicts; None has no members."""
        keys = _KeyMatch(self.table, [each.name for each in fields], around)
        matched = [None if each is None else keys.of(each) for each in dicts]
        arrays = []
        for place, (wanted, arrow_type) in enumerate(zip(fields, types, strict=True)):
            path = f"{around}{wanted.name}"
            values = [
                None if names is None else each.get(names[place], _MISSING)
                for each, names in zip(dicts, matched, strict=True)
            ]
            if any(each is _MISSING for each in values):
                default = default_of(wanted, arrow_type, self.table, path).as_py()
                values = [default if each is _MISSING else each for each in values]
            arrays.append(self.array(values, wanted.type, arrow_type, path))
        return arrays

    def array(
        self, values: Sequence[Any], wanted: t.DataType, arrow_type: pa.DataType, path: str
    ) -> pa.Array:
        """Return values as an array that `ColumnMatch` converts to a type."""
        values = without_nulls_of_pandas(values)
        match wanted:
            case t.RowType(fields=fields):
                return self._structs(values, wanted, fields, arrow_type, path)
            case t.ArrayType() | t.VectorType():
                return self._lists(values, wanted, arrow_type, path)
            case t.MapType() | t.MultisetType():
                return self._maps(values, wanted, arrow_type, path)
            case _:
                return self._atoms(values, wanted, arrow_type, path)

    def _structs(
        self,
        values: Sequence[Any],
        wanted: t.DataType,
        fields: Sequence[t.DataField],
        arrow_type: Any,
        path: str,
    ) -> pa.Array:
        import pyarrow as pa

        self._check(values, (Mapping,), wanted, path, "dict")
        arrays = self.members(values, fields, [each.type for each in arrow_type], f"{path}.")
        mask = pa.array([each is None for each in values], pa.bool_())
        members = [
            pa.field(each.name, array.type) for each, array in zip(fields, arrays, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=members, mask=mask)

    def _lists(
        self,
        values: Sequence[Any],
        wanted: t.ArrayType | t.VectorType,
        arrow_type: Any,
        path: str,
    ) -> pa.Array:
        import pyarrow as pa

        values = [each.tolist() if _is_of_numpy(each) else each for each in values]
        self._check(values, _LISTS, wanted, path, "list")
        flat = [value for each in values if each is not None for value in each]
        inner = self.array(flat, wanted.element, arrow_type.value_type, f"{path}.element")
        return pa.ListArray.from_arrays(_offsets(values), inner)

    def _maps(
        self, values: Sequence[Any], wanted: t.MapType | t.MultisetType, arrow_type: Any, path: str
    ) -> pa.Array:
        import pyarrow as pa

        self._check(values, (Mapping, *_LISTS), wanted, path, "dict, or list of pairs")
        # Arrow returns maps as lists of pairs, since keys may be of classes that have no hash.
        entries = [[*each.items()] if isinstance(each, Mapping) else each for each in values]
        flat = [pair for each in entries if each is not None for pair in each]
        for pair in flat:
            if not isinstance(pair, _LISTS) or len(pair) != _PAIR:
                raise self._error(pair, wanted, f"{path}.key", "dict, or list of pairs")
        match wanted:
            case t.MapType(key=key, value=value):
                pass
            case t.MultisetType(element=key):
                value = t.IntType(nullable=False)
            case _:
                assert_never(wanted)
        keys = self.array([k for k, _ in flat], key, arrow_type.key_type, f"{path}.key")
        items = self.array([v for _, v in flat], value, arrow_type.item_type, f"{path}.value")
        if keys.null_count:
            raise InvalidInputError(f"a key of column {path} of {self.table} is None; give a value")
        return pa.MapArray.from_arrays(_offsets(entries), keys, items)

    def _atoms(
        self, values: Sequence[Any], wanted: t.DataType, arrow_type: pa.DataType, path: str
    ) -> pa.Array:
        import pyarrow as pa

        classes, name = _CLASSES[wanted.root]
        values = [each.item() if _is_of_numpy(each) else each for each in values]
        self._check(values, classes, wanted, path, name)
        if isinstance(wanted, t.UuidType):
            values = [each.bytes if isinstance(each, UUID) else each for each in values]
        try:
            return pa.array(values, _exact_type(values, wanted, arrow_type))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise InvalidInputError(
                f"column {path} of {self.table} is {bare_type_text(wanted)}, and a value does not "
                f"fit: {error}; change the value, or the column's type"
            ) from error

    def _check(
        self,
        values: Iterable[Any],
        classes: tuple[type, ...],
        wanted: t.DataType,
        path: str,
        name: str,
    ) -> None:
        for each in values:
            if each is None or (isinstance(each, classes) and _is_exactly(each, wanted)):
                continue
            raise self._error(each, wanted, path, name)

    def _error(self, value: Any, wanted: t.DataType, path: str, name: str) -> InvalidInputError:
        hint = ""
        if isinstance(wanted, t.TimestampType) and isinstance(value, datetime):
            hint = ": convert it to UTC and drop its zone, or make the column TIMESTAMP_LTZ"
        elif isinstance(value, float) and isnan(value):
            hint = ", or None for NULL: NaN is a value of FLOAT and DOUBLE alone"
        return InvalidInputError(
            f"column {path} of {self.table} is {bare_type_text(wanted)}, and the value is "
            f"{excerpt(value)} ({type(value).__name__}); give a value of {name}{hint}"
        )


_PAIR: Final = 2

_LARGEST_FLOAT: Final = (2 - 2**-23) * 2.0**127
"""Largest value of 32 bits."""

_LARGEST_EXPONENT: Final = 1_000
"""Exponent of a Decimal, to either side, beyond which no DECIMAL holds it."""


def without_nulls_of_pandas(values: Sequence[Any]) -> Sequence[Any]:
    """Return values with None for pandas' NaT and NA; pandas is not imported.

    Example:
        >>> import pandas
        >>> without_nulls_of_pandas([1, pandas.NA, pandas.NaT])
        [1, None, None]
    """
    return [None if type(each).__name__ in _NULLS_OF_PANDAS else each for each in values]


_NULLS_OF_PANDAS: Final = frozenset({"NaTType", "NAType"})
"""Names of the classes of NaT and NA, each of which has one instance."""


def _is_of_numpy(value: object) -> bool:
    return type(value).__module__ == "numpy"


def _is_exactly(value: Any, wanted: t.DataType) -> bool:
    """Return whether a value is of a class for its type, not of a subclass with another meaning."""
    match wanted:
        case t.DateType():
            return not isinstance(value, datetime)
        case t.LocalZonedTimestampType():
            return value.utcoffset() is not None
        case t.TimeType() | t.TimestampType():
            return value.tzinfo is None
        case t.FloatType():
            # A larger value would become infinity; an int may be larger than any float.
            is_small = abs(value) <= _LARGEST_FLOAT or not (
                isinstance(value, int) or isfinite(value)
            )
            return is_small and not isinstance(value, bool)
        case t.DecimalType() if isinstance(value, Decimal):
            # Arrow ends the process at some exponents, such as that of 1e-99999999.
            exponent = value.as_tuple().exponent
            return isinstance(exponent, int) and abs(exponent) <= _LARGEST_EXPONENT
        case _:
            return isinstance(value, bool) == isinstance(wanted, t.BooleanType)


_INTEGER: Final = (int,), "int"
_TEXT: Final = (str,), "str"
_BYTES: Final = (bytes, bytearray, memoryview), "bytes"
_CLASSES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "BOOLEAN": ((bool,), "bool"),
    "TINYINT": _INTEGER,
    "SMALLINT": _INTEGER,
    "INT": _INTEGER,
    "BIGINT": _INTEGER,
    "FLOAT": ((float, int), "float or int, in the range of 32 bits"),
    "DOUBLE": ((float, int), "float or int"),
    "DECIMAL": ((Decimal, int), "finite Decimal, with an exponent of -1,000 to 1,000, or int"),
    "CHAR": _TEXT,
    "VARCHAR": _TEXT,
    "BINARY": _BYTES,
    "VARBINARY": _BYTES,
    "UUID": ((UUID, bytes), "UUID"),
    "DATE": ((date,), "date (of a datetime: its .date())"),
    "TIME": ((time,), "time without time zone"),
    "TIMESTAMP": ((datetime,), "datetime without time zone"),
    "TIMESTAMP_LTZ": ((datetime,), "datetime with a time zone"),
    "UNKNOWN": ((), "None"),
}
"""Python classes of a type's values, and their names for messages."""


def _exact_type(values: Sequence[Any], wanted: t.DataType, arrow_type: pa.DataType) -> pa.DataType:
    """Return the Arrow type that holds values unchanged; Arrow would truncate to `arrow_type`."""
    import pyarrow as pa

    match wanted:
        case t.TimestampType() | t.LocalZonedTimestampType():
            zone = "UTC" if isinstance(wanted, t.LocalZonedTimestampType) else None
            # A pandas Timestamp has nanoseconds.
            has_nanoseconds = any(getattr(each, "nanosecond", 0) for each in values)
            return pa.timestamp("ns" if has_nanoseconds else "us", zone)
        case t.TimeType():
            return pa.time64("us")
        case t.UuidType():
            return pa.binary(16)
        case t.BinaryType() | t.VarBinaryType():
            return pa.binary()
        case _:
            return arrow_type


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Return the offsets of lists; NULL in the place of each None, as Arrow marks NULL lists."""
    import pyarrow as pa

    ends = [0, *accumulate(0 if each is None else len(each) for each in values)]
    starts = [None if each is None else at for at, each in zip(ends, values, strict=False)]
    return pa.array([*starts, ends[-1]], pa.int32())


def python_array(
    values: Sequence[Any], wanted: t.DataField, arrow_type: pa.DataType, table: str, before: int
) -> pa.Array:
    """Return the Python values of one column as an array that `ColumnMatch` converts.

    Args:
        values: The values.
        wanted: The column.
        arrow_type: Its Arrow type.
        table: The table's full name, for messages.
        before: Number of rows before them in the whole input, for messages.

    Raises:
        InvalidInputError: A value is not of the column's class; the message has the row's number.
    """
    column = _Values(table)
    try:
        return column.array(values, wanted.type, arrow_type, wanted.name)
    except InvalidInputError as error:
        for number, each in enumerate(values):
            try:
                column.array([each], wanted.type, arrow_type, wanted.name)
            except InvalidInputError as found:
                raise row_error(before + number, found) from found
        raise error from None
