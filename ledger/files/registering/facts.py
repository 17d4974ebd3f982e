"""What a Parquet footer says, as values that know nothing of the library that read them."""

from __future__ import annotations

from attrs import field, frozen

from ledger.model.types import DataType

Extreme = bool | int | float | bytes
"""A least or greatest value: text as UTF-8, moments as counts of the column's own unit, decimals
without their point."""


@frozen
class ColumnFacts:
    """The sums over one column's chunks.

    Attributes:
        value_count: Values, nulls included.
        null_count: Nulls; None where a chunk does not say.
        lower: No value is less; None where that is not known.
        upper: No value is greater; None where that is not known.
    """

    value_count: int
    null_count: int | None = None
    lower: Extreme | None = None
    upper: Extreme | None = None


@frozen
class FooterColumn:
    """One column of a file, or one member of a nested one; equal to another of the same shape.

    Attributes:
        name: Its name in the file.
        field_id: The id that the file carries for it; None when it carries none.
        type: The type of its values, whose unit and scale are the file's; None when no type of
            the ledger holds them. Nullability and the ids of members have no meaning in it.
        type_text: The type as Arrow prints it, for messages.
        members: A ROW's members; an ARRAY's element; a MAP's key and value.
        facts: None for nested columns and below lists, where one row has many values.
    """

    name: str
    field_id: int | None
    type: DataType | None
    type_text: str
    members: tuple[FooterColumn, ...] = ()
    facts: ColumnFacts | None = field(default=None, eq=False)


@frozen
class Footer:
    """What one Parquet file says of itself.

    Attributes:
        path: As the file system was asked for it.
        record_count: Rows.
        file_size_in_bytes: Of the whole file.
        creation_time: When it was last written, Unix milliseconds; 0 when the place cannot say.
        columns: In the file's order.
    """

    path: str
    record_count: int
    file_size_in_bytes: int
    creation_time: int
    columns: tuple[FooterColumn, ...]
