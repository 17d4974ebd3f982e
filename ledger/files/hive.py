"""Partition values from `key=value` paths and back, with Hive's and Paimon's escapes.

Source: Paimon's PartitionPathUtils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ledger.files.partition_text import value_of
from ledger.model.errors import InvalidChangeError, UnsupportedError
from ledger.model.file_change import PartitionValue
from ledger.model.partition import PartitionSpec
from ledger.model.type_text import format_type
from ledger.model.types import DataType

DEFAULT_NAME = "__DEFAULT_PARTITION__"
"""What stands for NULL in Paimon's paths; the option `partition.default-name` names another."""

_HIVE_DEFAULT_NAME = "__HIVE_DEFAULT_PARTITION__"
_SPECIAL = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def escape(text: str) -> str:
    """Return a key or value as a path has it.

    Example:
        >>> escape("a/b=ü")
        'a%2Fb%3Dü'
    """
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", text)


def unescape(text: str) -> str:
    """Return what `escape` was given; a % that begins no escape stands for itself."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def path_keys(path: str) -> dict[str, str]:
    """Return the unescaped keys of a path's folders, each with its unescaped value.

    Raises:
        InvalidChangeError: Two folders name the same key.

    Example:
        >>> path_keys("region=eu/day=2013-01-01/a=b.parquet")
        {'region': 'eu', 'day': '2013-01-01'}
    """
    found: dict[str, str] = {}
    for folder in path.split("/")[:-1]:
        key, sign, value = folder.partition("=")
        if not sign or not key:
            continue
        name = unescape(key)
        if name in found:
            raise InvalidChangeError(
                f"path {path} names partition key {name!r} twice; move the file, or name its "
                "partition values yourself"
            )
        found[name] = unescape(value)
    return found


def partition_values(
    path: str,
    spec: PartitionSpec,
    types: Mapping[int, DataType],
    *,
    default_name: str = DEFAULT_NAME,
) -> tuple[PartitionValue, ...]:
    """Return a file's partition values, in the spec's order, from its path.

    Args:
        path: Of the file; folders that the spec does not name are passed over.
        spec: Which keys to look for.
        types: Column types by field id.
        default_name: What stands for NULL; Hive's name does, too.

    Raises:
        InvalidChangeError: A key is missing, or its text is no value of its column's type.
        UnsupportedError: A value cannot be taken from a path: its column's type has no text form,
            or its transform is not identity.

    Example:
        >>> from ledger.model.partition import PartitionField
        >>> from ledger.model.types import DateType
        >>> spec = PartitionSpec(0, [PartitionField(3, 1000, "day")])
        >>> partition_values("day=2013-01-01/x.parquet", spec, {3: DateType()})
        ('2013-01-01',)
    """
    if not spec.fields:
        return ()
    found = path_keys(path)
    nulls = (default_name, _HIVE_DEFAULT_NAME)
    values: list[PartitionValue] = []
    for field in spec.fields:
        if field.transform != "identity":
            raise UnsupportedError(
                f"partition field {field.name!r} is {field.transform} of a column, which a path "
                "does not say; name the files' partition values yourself"
            )
        text = found.get(field.name)
        if text is None:
            raise InvalidChangeError(
                f"path {path} has no folder {field.name}=...; the table is partitioned by "
                f"{[each.name for each in spec.fields]}"
            )
        values.append(
            None if text in nulls else _value(path, field.name, text, types[field.source_id])
        )
    return tuple(values)


def _value(path: str, key: str, text: str, data_type: DataType) -> PartitionValue:
    try:
        return value_of(text, data_type)
    except UnsupportedError as error:
        raise UnsupportedError(f"path {path}, partition key {key!r}: {error}") from error
    except (ValueError, OverflowError) as error:
        raise InvalidChangeError(
            f"path {path}, partition key {key!r}: {text!r} is no {format_type(data_type)}; move "
            "the file, or name its partition values yourself"
        ) from error


def partition_path(
    values: Sequence[PartitionValue],
    spec: PartitionSpec,
    *,
    default_name: str = DEFAULT_NAME,
) -> str:
    """Return the folders of a partition, `key=value/` for each field of the spec.

    NULL and blank text become `default_name`, as in Paimon. `partition_values` reads it back.

    Example:
        >>> from ledger.model.partition import PartitionField
        >>> partition_path(["a/b"], PartitionSpec(0, [PartitionField(3, 1000, "k")]))
        'k=a%2Fb/'
    """
    return "".join(
        f"{escape(field.name)}={escape(_text_of(value, default_name))}/"
        for field, value in zip(spec.fields, values, strict=True)
    )


def _text_of(value: PartitionValue, default_name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "" if value is None else str(value)
    return text if text.strip() else default_name
