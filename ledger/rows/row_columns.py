"""Rows as a table's columns: fields resolved by name at any depth, values converted without loss.

A name matches exactly or, if no field has it, by the only one that differs in case. A missing field
gets the column's default, or NULL. Types are converted where every value keeps its meaning; where a
type alone does not decide that, Arrow checks each value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from attrs import evolve, frozen

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.messages import excerpt, name_hint
from ledger.model.schema import Schema
from ledger.model.types.text import bare_type_text

if TYPE_CHECKING:
    import pyarrow as pa

_INTEGER_DIGITS: Final = 20
"""Decimal digits of the widest integers of Arrow."""

Instants = Literal["rejected", "localized"]
"""Rule for times with a zone in columns of TIMESTAMP: an error, or the local time in their zone."""


@frozen
class ColumnMatch:
    """Match of incoming rows with a table's columns; pickled to executors.

    Attributes:
        found: The rows' Arrow schema.
        schema: The table's schema, with the names that its data files use.
        table: The table's full name, for messages.
        instants: Rule for times with a zone in columns without one.
    """

    found: pa.Schema
    schema: Schema
    table: str
    instants: Instants = "rejected"

    @cached_property
    def _wanted(self) -> pa.Schema:
        return self.schema.to_arrow()

    @classmethod
    def of(
        cls, found: pa.Schema, schema: Schema, table: str, instants: Instants = "rejected"
    ) -> ColumnMatch:
        """Return the match of rows with a table.

        Args:
            found: The rows' Arrow schema.
            schema: The table's schema.
            table: The table's full name, for messages.
            instants: Rule for times with a zone in columns without one.

        Raises:
            InvalidInputError: A column or nested field is unknown, ambiguous, or missing though
                NOT NULL; or its type cannot be converted without loss.
            UnsupportedError: Arrow or Parquet has no type for a column of the table.

        Example:
            >>> import pyarrow as pa
            >>> wanted = Schema.of({"id": "BIGINT", "name": "STRING"})
            >>> match = ColumnMatch.of(pa.schema({"ID": pa.int32()}), wanted, "shop.orders")
            >>> rows = pa.RecordBatch.from_pydict({"ID": pa.array([1], pa.int32())})
            >>> match.convert(rows).to_pydict()
            {'id': [1], 'name': [None]}
        """
        match = cls(found, schema, table, instants)
        # Names and types are checked whatever the number of rows.
        match.convert(_empty_batch(found))
        return match

    def convert(self, batch: pa.RecordBatch, rows_before: int = 0) -> pa.Table:
        """Return rows in the table's Arrow schema, with field ids at every depth.

        Args:
            batch: The rows.
            rows_before: Number of rows before them in the whole input, for messages.

        Raises:
            InvalidInputError: A value does not fit its column; the message names the first such
                row, counted from 1 in the whole input, and the column.
        """
        try:
            return self._convert(batch)
        except InvalidInputError as error:
            if not batch.num_rows:
                raise
            raise self._name_row(batch, rows_before, error) from error

    def _name_row(
        self, batch: pa.RecordBatch, rows_before: int, error: InvalidInputError
    ) -> InvalidInputError:
        """Return the error of the first row that does not fit, by bisection."""
        fitting, end = 0, batch.num_rows
        while end - fitting > 1:
            middle = (fitting + end) // 2
            try:
                self._convert(batch.slice(fitting, middle - fitting))
                fitting = middle
            except InvalidInputError as found:
                error, end = found, middle
        return row_error(rows_before + fitting, error)

    def _convert(self, batch: pa.RecordBatch) -> pa.Table:
        import pyarrow as pa

        wanted = self._wanted
        conversion = _Conversion(self.table, len(batch), self.instants)
        members = _Members(batch.schema.names, batch.column, None)
        arrays = conversion.convert_members(
            members, self.schema.fields, [each.type for each in wanted], ""
        )
        return pa.Table.from_arrays(arrays, schema=wanted)


def row_error(rows_before: int, error: InvalidInputError) -> InvalidInputError:
    """Return an error with the number of its row, counted from 1.

    Example:
        >>> str(row_error(3, InvalidInputError("column id is NOT NULL")))
        'row 4 (counted from 1): column id is NOT NULL'
    """
    return InvalidInputError(f"row {rows_before + 1} (counted from 1): {error.message}", error.kind)


def match_names(
    found: Sequence[str], wanted: Sequence[str], table: str, around: str = ""
) -> list[int | None]:
    """Return the position of each wanted field among those found; None where it is missing.

    Args:
        found: The names of the rows.
        wanted: The names of the table's fields.
        table: The table's full name, for messages.
        around: The path of the struct around them, with a final dot.

    Raises:
        InvalidInputError: A name is unknown, or two mean the same field.

    Example:
        >>> match_names(["ID"], ["id", "name"], "shop.orders")
        [0, None]
    """
    places: list[int | None] = []
    for name in wanted:
        exact = [place for place, each in enumerate(found) if each == name]
        folded = [
            place
            for place, each in enumerate(found)
            if each.casefold() == name.casefold() and each not in wanted
        ]
        candidates = exact or folded
        if len(candidates) > 1:
            names = " and ".join(found[place] for place in candidates)
            raise InvalidInputError(
                f"{names} of the rows both mean column {around}{name} of {table}; drop or "
                "rename all but one"
            )
        places.append(candidates[0] if candidates else None)
    for place, name in enumerate(found):
        if place not in places:
            hint = name_hint(name, wanted)
            stop = "" if hint.endswith("?") else "."
            raise InvalidInputError(
                f"{table} has no column {excerpt(around + name)}; {hint}{stop} Add it to the "
                "table, or drop it from the rows"
            )
    return places


def default_of(wanted: t.DataField, arrow_type: pa.DataType, table: str, path: str) -> pa.Scalar:
    """Return the default of a field as an Arrow scalar; NULL if it has none.

    Args:
        wanted: The field.
        arrow_type: Its Arrow type.
        table: The table's full name, for messages.
        path: The field's path, for messages.

    Raises:
        InvalidInputError: Arrow cannot convert the default.
    """
    import pyarrow as pa

    if wanted.default_value is None:
        return pa.scalar(None, arrow_type)
    try:
        return pa.scalar(wanted.default_value).cast(arrow_type)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"the rows have no column {path} of {table}, and its default "
            f"{excerpt(wanted.default_value)} is not written here; add the column to the rows"
        ) from error


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    # Unlike array(), nulls() takes dictionaries of string views, as Polars has them.
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


@frozen
class _Members:
    """Columns of rows, or members of a struct.

    Attributes:
        names: Their names.
        read: Function from a position to the array.
        is_valid: Mask of the struct's values that are not NULL; None if all are.
    """

    names: Sequence[str]
    read: Callable[[int], Any]
    is_valid: Any


@frozen
class _Conversion:
    """Conversion of the arrays of one batch.

    Attributes:
        table: The table's full name.
        count: Number of rows, or of values of the struct around the members.
        instants: As of `ColumnMatch`.
    """

    table: str
    count: int
    instants: Instants

    def convert_members(
        self,
        members: _Members,
        fields: Sequence[t.DataField],
        types: Sequence[pa.DataType],
        around: str,
    ) -> list[Any]:
        """Return an array for each wanted field, in their order."""
        names = [each.name for each in fields]
        places = match_names(members.names, names, self.table, around)
        arrays = []
        for wanted, arrow_type, place in zip(fields, types, places, strict=True):
            path = f"{around}{wanted.name}"
            if place is None:
                array = self._missing_values(wanted, arrow_type, path)
            else:
                array = self.convert(members.read(place), wanted.type, arrow_type, path)
            if not wanted.type.nullable:
                self._refuse_nulls(array, members.is_valid, path)
            arrays.append(array)
        return arrays

    def _missing_values(self, wanted: t.DataField, arrow_type: pa.DataType, path: str) -> Any:
        import pyarrow as pa

        if wanted.default_value is not None:
            return pa.repeat(default_of(wanted, arrow_type, self.table, path), self.count)
        if not wanted.type.nullable:
            raise InvalidInputError(
                f"column {path} of {self.table} is NOT NULL, and the rows do not have it; add it"
            )
        return pa.nulls(self.count, arrow_type)

    def _refuse_nulls(self, array: Any, is_valid: Any, path: str) -> None:
        import pyarrow.compute as pc

        nulls = pc.is_null(array)
        if is_valid is not None:
            nulls = pc.and_(nulls, is_valid)
        if pc.any(nulls, min_count=0).as_py():
            raise InvalidInputError(
                f"column {path} of {self.table} is NOT NULL, and a row has NULL there; fill it, or "
                "allow NULL in the table"
            )

    def convert(self, array: Any, wanted: t.DataType, arrow_type: pa.DataType, path: str) -> Any:
        """Return an array in the Arrow type of a wanted type."""
        import pyarrow as pa

        is_a = pa.types
        if is_a.is_dictionary(array.type):
            array = _decode_dictionary(array)
        if is_a.is_null(array.type):
            return pa.nulls(len(array), arrow_type)
        match wanted:
            case t.RowType(fields=()):
                raise UnsupportedError(
                    f"column {path} of {self.table} is a ROW without members, which Parquet cannot "
                    "hold; give it a member, or leave the column out"
                )
            case t.RowType(fields=fields):
                self._check_kind(is_a.is_struct(array.type), array, wanted, path)
                return self._convert_struct(array, fields, arrow_type, path)
            case t.ArrayType() | t.VectorType() | t.MapType() | t.MultisetType():
                return self._convert_nested(array, wanted, arrow_type, path)
            case _:
                return self._convert_atomic(array, wanted, arrow_type, path)

    def _convert_nested(self, array: Any, wanted: t.DataType, arrow_type: Any, path: str) -> Any:
        import pyarrow as pa

        is_a = pa.types
        types: tuple[t.DataType, t.DataType]
        is_list = is_a.is_list(array.type) or is_a.is_large_list(array.type)
        is_list = is_list or is_a.is_fixed_size_list(array.type)
        match wanted:
            case t.VectorType():
                self._check_kind(is_list, array, wanted, path)
                return self._convert_vector(array, wanted, arrow_type, path)
            case t.ArrayType(element=element):
                self._check_kind(is_list, array, wanted, path)
                return self._convert_list(array, element, arrow_type, path)
            case t.MultisetType(element=element):
                types = (element.with_nullability(nullable=False), t.IntType(nullable=False))
            case t.MapType(key=key, value=value):
                types = (key, value)
            case _:
                raise self._type_error(array, wanted, path)
        self._check_kind(is_a.is_map(array.type), array, wanted, path)
        return self._convert_map(array, types, arrow_type, path)

    def _check_kind(self, fits: bool, array: Any, wanted: t.DataType, path: str) -> None:  # noqa: FBT001 - the outcome
        if not fits:
            raise self._type_error(array, wanted, path)

    def _type_error(
        self, array: Any, wanted: t.DataType, path: str, reason: str = ""
    ) -> InvalidInputError:
        why = f": {reason}" if reason else ", which cannot be converted without loss"
        return InvalidInputError(
            f"column {path} of {self.table} is {bare_type_text(wanted)}, and the rows have "
            f"{array.type}{why}; cast the column before writing, or change the table's"
        )

    def _convert_struct(
        self, array: Any, fields: Sequence[t.DataField], arrow_type: Any, path: str
    ) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        names = [each.name for each in array.type]
        is_valid = pc.is_valid(array) if array.null_count else None
        # Flattened members are NULL where the struct is, whatever lies below.
        members = _Members(names, array.flatten().__getitem__, is_valid)
        inner = evolve(self, count=len(array))
        arrays = inner.convert_members(
            members, fields, [each.type for each in arrow_type], f"{path}."
        )
        mask = None if is_valid is None else pc.invert(is_valid)
        return pa.StructArray.from_arrays(arrays, fields=list(arrow_type), mask=mask)

    def _convert_list(self, array: Any, element: t.DataType, arrow_type: Any, path: str) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        # Flattened values do not include those below NULL lists, whose length counts as 0.
        values = self.convert(array.flatten(), element, arrow_type.value_type, f"{path}.element")
        if not element.nullable:
            self._refuse_nulls(values, None, f"{path}.element")
        offsets = _offsets(pc.list_value_length(array))
        mask = pc.is_null(array) if array.null_count else None
        return pa.ListArray.from_arrays(offsets, values, type=arrow_type, mask=mask)

    def _convert_map(
        self, array: Any, types: tuple[t.DataType, t.DataType], arrow_type: Any, path: str
    ) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        # Maps are lists of entries in Arrow.
        entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        flat = entries.flatten()
        keys = self.convert(flat.field(0), types[0], arrow_type.key_type, f"{path}.key")
        items = self.convert(flat.field(1), types[1], arrow_type.item_type, f"{path}.value")
        if not types[1].nullable:
            self._refuse_nulls(items, None, f"{path}.value")
        offsets = _offsets(pc.list_value_length(entries))
        mask = pc.is_null(array) if array.null_count else None
        return pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type, mask=mask)

    def _convert_vector(self, array: Any, wanted: t.DataType, arrow_type: Any, path: str) -> Any:
        import pyarrow as pa

        fits = _is_convertible(array.type.value_type, arrow_type.value_type)
        self._check_kind(fits, array, wanted, path)
        try:
            return array.cast(arrow_type)
        except pa.ArrowException as error:
            raise self._type_error(array, wanted, path, str(error)) from error

    def _convert_atomic(self, array: Any, wanted: t.DataType, arrow_type: Any, path: str) -> Any:
        import pyarrow as pa

        if isinstance(wanted, t.TimestampType) and pa.types.is_timestamp(array.type):
            array = self._local_times(array, wanted, path)
        if array.type != arrow_type:
            if not _is_convertible(array.type, arrow_type):
                reason = ""
                if isinstance(wanted, t.LocalZonedTimestampType) and pa.types.is_timestamp(
                    array.type
                ):
                    reason = "a time without zone, whose zone is unknown here"
                raise self._type_error(array, wanted, path, reason)
            try:
                if pa.types.is_integer(array.type) and pa.types.is_decimal(arrow_type):
                    # Wide enough for any integer, so that values decide and not the type.
                    scale = arrow_type.scale
                    array = array.cast(pa.decimal256(_INTEGER_DIGITS + scale, scale))
                array = array.cast(arrow_type)
            except pa.ArrowException as error:
                raise self._type_error(array, wanted, path, str(error)) from error
        self._refuse_too_long(array, wanted, path)
        return array

    def _local_times(self, array: Any, wanted: t.TimestampType, path: str) -> Any:
        """Return times without a zone as they are, and instants by the rule for them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if array.type.tz is None:
            return array
        if self.instants == "rejected":
            raise InvalidInputError(
                f"column {path} of {self.table} is {bare_type_text(wanted)}, and the rows have "
                f"{array.type}, whose zone it would lose; convert the times to UTC and drop their "
                "zone, or make the column TIMESTAMP_LTZ"
            )
        try:
            return pc.local_timestamp(array)
        except pa.ArrowException as error:
            raise self._type_error(array, wanted, path, str(error)) from error

    def _refuse_too_long(self, array: Any, wanted: t.DataType, path: str) -> None:
        import pyarrow.compute as pc

        match wanted:
            case t.CharType(length=length) | t.VarCharType(length=length):
                longest = pc.max(pc.utf8_length(array)).as_py()
            case t.BinaryType(length=length) | t.VarBinaryType(length=length):
                longest = pc.max(pc.binary_length(array)).as_py()
            case _:
                return
        if longest is not None and longest > length:
            raise InvalidInputError(
                f"column {path} of {self.table} is {bare_type_text(wanted)}, and a value has the "
                f"length {longest}; shorten the values, or change the column's type"
            )


def _decode_dictionary(array: Any) -> Any:
    """Return the values of a dictionary array."""
    import pyarrow as pa

    values = array.dictionary
    # Arrow takes no values from views; Polars has categories as such.
    if _is_text(values.type):
        values = values.cast(pa.large_string())
    return values.take(array.indices)


def _offsets(lengths: Any) -> Any:
    """Return the offsets of lists with some lengths; that of NULL is 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.fill_null(lengths, 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(known)])


def _is_convertible(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of one Arrow type keep their meaning in another, if Arrow casts them.

    Arrow raises if a whole number, a decimal or a time does not fit; it rounds binary fractions.
    """
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_integer(found):
        return bool(is_a.is_integer(wanted) or is_a.is_floating(wanted) or is_a.is_decimal(wanted))
    if is_a.is_floating(found):
        return bool(is_a.is_floating(wanted) and found.bit_width <= wanted.bit_width)
    if is_a.is_decimal(found):
        return bool(is_a.is_decimal(wanted))
    if is_a.is_timestamp(found):
        return bool(is_a.is_timestamp(wanted) and (found.tz is None) == (wanted.tz is None))
    if found == wanted:
        return True
    kinds = (_is_text, _is_bytes, is_a.is_date, is_a.is_time, is_a.is_boolean)
    return any(both(found) and both(wanted) for both in kinds)


def _is_text(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    view = getattr(pa.types, "is_string_view", lambda _: False)
    is_a = pa.types
    return bool(is_a.is_string(arrow_type) or is_a.is_large_string(arrow_type) or view(arrow_type))


def _is_bytes(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    is_a = pa.types
    view = getattr(is_a, "is_binary_view", lambda _: False)
    is_uuid = str(arrow_type).startswith("extension<arrow.uuid")
    return bool(
        is_a.is_binary(arrow_type)
        or is_a.is_large_binary(arrow_type)
        or is_a.is_fixed_size_binary(arrow_type)
        or view(arrow_type)
        or is_uuid
    )
