"""Schema suggested by Parquet files and their folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Final

from ledger.files.footers import read_footer
from ledger.files.partition_values import DEFAULT_NAME, HIVE_DEFAULT_NAME, path_keys, value_of
from ledger.files.register import FoundFiles, expand_paths_to_files
from ledger.model import arguments as its
from ledger.model.arguments import path_texts, validate_arguments
from ledger.model.errors import InvalidInputError
from ledger.model.schema import Schema
from ledger.model.types import (
    STRING,
    BigIntType,
    DataField,
    DataType,
    DateType,
    IntType,
    assign_field_ids,
)

_GUESSES: Final[tuple[DataType, ...]] = (IntType(), BigIntType())
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]*")
_DATE_LENGTH: Final = len("2013-01-01")


@validate_arguments(paths=its.paths, storage_options=its.mapping.or_none())
def schema_of_files(
    paths: str | PurePath | Iterable[str | PurePath],
    storage_options: Mapping[str, Any] | None = None,
) -> Schema:
    """Return a schema, inferred from Parquet files and their folders, for a table to hold them.

    Its columns are those of the first file, in the file's order and all nullable, and one for
    each key of the `key=value` folders that the file does not have. The keys partition the
    table; their types are DATE, INT or BIGINT if all values can be read so, else STRING.

    Args:
        paths: Parquet files, folders or globs, one or several; paths or URLs.
        storage_options: For the file system of a URL.

    Raises:
        NotFoundError: A path matches no file.
        InvalidInputError: A column has a type that a table cannot have, or files have different
            partition keys.

    Example:
        >>> import tempfile, pyarrow as pa
        >>> from pathlib import Path
        >>> from pyarrow import parquet
        >>> folder = Path(tempfile.mkdtemp(), "visits", "day=2026-01-01")
        >>> folder.mkdir(parents=True)
        >>> parquet.write_table(pa.table({"id": [1, 2]}), folder / "a.parquet")
        >>> schema = schema_of_files([str(folder.parent)])
        >>> [(each.name, str(each.type.root)) for each in schema.fields], schema.partition_keys
        ([('id', 'BIGINT'), ('day', 'DATE')], ('day',))
    """
    found = expand_paths_to_files(path_texts(paths), storage_options)
    columns = _first_file_columns(found)
    keys = {
        name: each
        for name, each in _folder_partition_keys(found.infos).items()
        if name not in columns
    }
    columns |= {name: _guess_key_type(values) for name, values in keys.items()}
    return Schema(fields=_assign_column_ids(columns), partition_keys=tuple(keys))


def _first_file_columns(found: FoundFiles) -> dict[str, DataType]:
    first = next(iter(found.infos))
    columns: dict[str, DataType] = {}
    for each in read_footer(first, filesystem=found.filesystem).columns:
        if each.type is None:
            raise InvalidInputError(
                f"{first}: column {each.name} is {each.type_text} there, which no type holds; "
                "name the columns yourself"
            )
        columns[each.name] = each.type.with_nullability(True)  # noqa: FBT003 - the value
    return columns


def _folder_partition_keys(paths: Iterable[str]) -> dict[str, set[str]]:
    """Return the partition keys in the files' folders, each with its values."""
    found: dict[str, set[str]] = {}
    first: str | None = None
    for path in paths:
        keys = path_keys(path)
        if first is None:
            first, found = path, {name: set() for name in keys}
        if keys.keys() != found.keys():
            raise InvalidInputError(
                f"{path} lies in folders of {_key_names_text(keys)}, and {first} in folders of "
                f"{_key_names_text(found)}; files of one table name the same partition keys"
            )
        for name, value in keys.items():
            found[name].add(value)
    return found


def _key_names_text(keys: Iterable[str]) -> str:
    return ", ".join(keys) or "no key"


def _guess_key_type(values: Iterable[str]) -> DataType:
    known = [each for each in values if each not in {DEFAULT_NAME, HIVE_DEFAULT_NAME}]
    if known and all(
        len(each) == _DATE_LENGTH and _can_parse_value(DateType(), each) for each in known
    ):
        return DateType()
    # 007 would be written back as 7, so it is a text.
    if not all(map(_WHOLE.fullmatch, known)):
        return STRING
    fits = (
        guess
        for guess in _GUESSES
        if known and all(_can_parse_value(guess, each) for each in known)
    )
    return next(fits, STRING)


def _can_parse_value(data_type: DataType, text: str) -> bool:
    try:
        value_of(text, data_type)
    except (ValueError, OverflowError):
        return False
    return True


def _assign_column_ids(columns: Mapping[str, DataType]) -> tuple[DataField, ...]:
    fields: list[DataField] = []
    highest = -1
    for name, data_type in columns.items():
        own_id = highest + 1
        numbered, highest = assign_field_ids(data_type, own_id)
        fields.append(DataField(own_id, name, numbered))
    return tuple(fields)
