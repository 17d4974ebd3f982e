"""Partition values from `key=value` paths and back, with Hive's and Paimon's escapes.

Source: Paimon's PartitionPathUtils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from ledger.files.registering.partition_text import transformed_value_of
from ledger.model.errors import InvalidChangeError, UnsupportedError
from ledger.model.file_change import PartitionValue
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.transforms import Identity, Transform, Void, transform_of
from ledger.model.types import CharType, DataType, UnknownType, VarCharType
from ledger.model.types.text import format_type

DEFAULT_NAME = "__DEFAULT_PARTITION__"
"""What stands for NULL in Paimon's paths; the option `partition.default-name` names another."""

ICEBERG_NULL = "null"
"""What stands for NULL in Iceberg's paths, and for the text `null`, too."""

HIVE_DEFAULT_NAME = "__HIVE_DEFAULT_PARTITION__"
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
) -> tuple[PartitionValue | UnsetType, ...]:
    """Return what a file's path says of its partition values, in the spec's order.

    Args:
        path: Of the file; folders that the spec does not name are passed over.
        spec: Which keys to look for. Results of transforms are read in the form that Iceberg's
            paths have.
        types: Column types by field id.
        default_name: What stands for NULL; Hive's name does, too, and Iceberg's `null` wherever
            it cannot be a text.

    Returns:
        UNSET for a field that no folder names.

    Raises:
        InvalidChangeError: A text is no value of its field.
        UnsupportedError: A column's type has no text form.

    Example:
        >>> from ledger.model.iceberg.layout import PartitionField
        >>> from ledger.model.types import DateType
        >>> spec = PartitionSpec(0, (PartitionField("day", "identity", 3, field_id=1000),))
        >>> partition_values("day=2013-01-01/x.parquet", spec, {3: DateType()})
        ('2013-01-01',)
    """
    if not spec.fields:
        return ()
    found = path_keys(path)
    nulls = (default_name, HIVE_DEFAULT_NAME)
    values: list[PartitionValue | UnsetType] = []
    for field in spec.fields:
        text = found.get(field.name)
        transform = transform_of(field.transform)
        if isinstance(transform, Void) or text in nulls:
            values.append(None)
        elif text is None:
            values.append(UNSET)
        else:
            source = types.get(field.source_id, UnknownType())
            values.append(_value(path, field.name, text, transform, source))
    return tuple(values)


def _value(
    path: str, key: str, text: str, transform: Transform, source: DataType
) -> PartitionValue:
    result = transform.result_type(source)
    if text == ICEBERG_NULL and not isinstance(result, CharType | VarCharType):
        return None
    try:
        return transformed_value_of(text, transform, source)
    except UnsupportedError as error:
        raise UnsupportedError(f"path {path}, partition key {key!r}: {error}") from error
    except (ValueError, OverflowError) as error:
        what = format_type(source)
        raise InvalidChangeError(
            f"path {path}, partition key {key!r}: {text!r} is no "
            f"{what if isinstance(transform, Identity) else f'{transform.text} of a {what}'}; "
            "move the file, or name its partition values yourself"
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
        >>> from ledger.model.iceberg.layout import PartitionField
        >>> spec = PartitionSpec(0, (PartitionField("k", "identity", 3, field_id=1000),))
        >>> partition_path(["a/b"], spec)
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
