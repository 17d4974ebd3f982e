"""Data types and columns in each style; what a style has no word for is refused.

The DLF page wraps every type: `{"primitiveType": "INT NOT NULL"}`, `{"arrayType": {...}}`.
"""

from __future__ import annotations

from typing import Any

from ledger.model.errors import UnsupportedError
from ledger.model.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)
from ledger.model.types.text import format_type
from projections.dlf.style import Style

# The page's valid values of primitiveType. TIMESTAMP_LTZ is spelled `TIMESTAMP(p) WITH ...`, so it
# begins with a valid one; STRING and BYTES are VARCHAR and VARBINARY of the greatest length.
_DLF_PRIMITIVES = frozenset(
    {
        *("BIGINT", "BINARY", "BOOLEAN", "CHAR", "DATE", "DECIMAL", "DOUBLE", "FLOAT", "INT"),
        *("SMALLINT", "TIMESTAMP", "TIMESTAMP_LTZ", "TINYINT", "VARBINARY", "VARCHAR", "VARIANT"),
    }
)
_NOT_IN_PAIMON = frozenset({"UUID", "UNKNOWN"})


def field_json(column: DataField, style: Style, where: str = "") -> dict[str, Any]:
    """Return a DataField; `description` and `defaultValue` are left out when absent.

    The DLF page does not list these two, but has changes that set the first, so both are written
    where a column has them: nothing is dropped in silence.

    Args:
        column: The column, or the member of a ROW.
        style: The spelling.
        where: The dotted name of what holds it, for messages.

    Raises:
        UnsupportedError: Its type has no word in this style.
    """
    name = f"{where}.{column.name}" if where else column.name
    content = {"id": column.id, "name": column.name, "type": type_json(column.type, style, name)}
    if column.description is not None:
        content["description"] = column.description
    if column.default_value is not None:
        content["defaultValue"] = column.default_value
    return content


def type_json(data_type: DataType, style: Style, where: str) -> Any:
    """Return a DataType.

    Args:
        data_type: The type.
        style: The spelling.
        where: The dotted name of the column, for messages.

    Raises:
        UnsupportedError: It, or a type inside it, has no word in this style.

    Example:
        >>> from ledger.model.types.text import parse_type
        >>> type_json(ArrayType(parse_type("INT")), Style.DLF, "tags")
        {'arrayType': {'type': 'ARRAY', 'element': {'primitiveType': 'INT'}}}
        >>> type_json(ArrayType(parse_type("INT")), Style.PAIMON_REST, "tags")
        {'type': 'ARRAY', 'element': 'INT'}
    """
    content: dict[str, Any]
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element):
            content = {"element": type_json(element, style, f"{where}.element")}
        case MapType(key=key, value=value):
            content = {
                "key": type_json(key, style, f"{where}.key"),
                "value": type_json(value, style, f"{where}.value"),
            }
        case RowType(fields=fields):
            content = {"fields": [field_json(each, style, where) for each in fields]}
        case VectorType(element=element, length=length) if style is Style.PAIMON_REST:
            content = {"element": type_json(element, style, f"{where}.element"), "length": length}
        case _:
            return _atomic(data_type, style, where)
    name = data_type.root if data_type.nullable else f"{data_type.root} NOT NULL"
    content = {"type": name, **content}
    return {f"{data_type.root.lower()}Type": content} if style is Style.DLF else content


def _atomic(data_type: DataType, style: Style, where: str) -> Any:
    text = format_type(data_type)
    if style is Style.PAIMON_REST and data_type.root not in _NOT_IN_PAIMON:
        return text
    if style is Style.DLF and data_type.root in _DLF_PRIMITIVES:
        return {"primitiveType": text}
    raise UnsupportedError(
        f"column {where} is {text}, which {style.value} objects have no word for; "
        "read the table through another projection, or change the column's type"
    )
