"""Arrow schemas of frames: columns of pandas frames, and columns that no frame library exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt, join_names

if TYPE_CHECKING:
    import pyarrow as pa


def is_pandas_frame(given: object) -> bool:
    """Return whether a value is a DataFrame of pandas, or of a subclass; pandas is not imported.

    Example:
        >>> import pandas
        >>> is_pandas_frame(pandas.DataFrame({"id": [1]})), is_pandas_frame({"id": [1]})
        (True, False)
    """
    return any(
        each.__name__ == "DataFrame" and each.__module__.partition(".")[0] == "pandas"
        for each in type(given).__mro__
    )


def check_column_names(frame: Any) -> None:
    """Reject a pandas frame with a column whose name is no text, or that another one has.

    Raises:
        InvalidInputError: See above; the message has the name.

    Example:
        >>> import pandas
        >>> check_column_names(pandas.DataFrame({0: [1]}))
        Traceback (most recent call last):
        ledger.model.errors.InvalidInputError: 0 is no name of a column; rename the columns of ...
    """
    names: set[str] = set()
    for name in frame.columns:
        if not isinstance(name, str):
            raise InvalidInputError(
                f"{excerpt(name)} is no name of a column; rename the columns of the frame to texts"
            )
        if name in names:
            raise InvalidInputError(
                f"the frame has two columns {excerpt(name)}; drop or rename all but one"
            )
        names.add(name)


def pandas_schema(frame: Any) -> pa.Schema:
    """Return the Arrow schema of a pandas frame, whose index is no column.

    Its times have microseconds: pandas counts in nanoseconds by default.

    Raises:
        InvalidInputError: A column has no name, or no one type; or the index has a name, so that
            it is a column to its author.

    Example:
        >>> import pandas
        >>> pandas_schema(pandas.DataFrame({"id": [1]})).names
        ['id']
    """
    import pyarrow as pa

    check_column_names(frame)
    dropped = [each for each in frame.index.names if each is not None and each not in frame.columns]
    if dropped:
        raise InvalidInputError(
            f"the frame has {join_names(dropped)} as its index, which would be no column; call "
            "reset_index() to make it one, or reset_index(drop=True) to leave it out"
        )
    fields = []
    for place, name in enumerate(frame.columns):
        try:
            found = pa.Schema.from_pandas(frame.iloc[:, [place]], preserve_index=False).field(0)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"the type of column {name} of the frame cannot be inferred: {error}; convert its "
                "values to one type in pandas first, or create the table with a Schema"
            ) from error
        fields.append(found.with_type(_in_microseconds(found.type)))
    return pa.schema(fields)


def _in_microseconds(kind: Any) -> Any:
    import pyarrow as pa

    is_finer = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return pa.timestamp("us", kind.tz) if is_finer else kind


def refuse_python_objects(given: Any) -> None:
    """Reject a Polars frame with Python objects, which it exports as addresses in memory.

    Raises:
        InvalidInputError: A column has the type `polars.Object`; the message has its name.

    Example:
        >>> import polars
        >>> refuse_python_objects(polars.DataFrame({"id": [1]}))
    """
    if type(given).__module__.partition(".")[0] != "polars":
        return
    for name, kind in getattr(given, "schema", {}).items():
        if str(kind) == "Object":
            raise InvalidInputError(
                f"column {name} of the frame is polars.Object: its Python values exist in this "
                "process alone; cast the column to another type of Polars, or drop it"
            )
