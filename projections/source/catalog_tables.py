"""Tables of Spark's catalog: `CREATE TABLE ... USING ledger OPTIONS (...)`.

Spark keeps the options of such a table, but passes none of them to a source in Python when the
table is read. It does pass the columns with their comments. So the comment of the first column
holds the options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from attrs import evolve

from ledger.model.errors import InvalidInputError
from projections.source.columns import Column

_MARK = "; read with OPTIONS "
_OPTION = "option."


def options_of_creation(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of a table that is being created; None if none is.

    Spark adds properties of its own, such as the owner, and each option a second time.

    Args:
        options: Everything that Spark passed.

    Raises:
        InvalidInputError: An option may not be kept in a catalog.

    Example:
        >>> options_of_creation({"path": "lake", "option.view": "tags", "provider": "ledger"})
        {'view': 'tags', 'path': 'lake'}
    """
    if "provider" not in {each.lower() for each in options}:
        return None
    found = {
        name[len(_OPTION) :]: value
        for name, value in options.items()
        if name.lower().startswith(_OPTION)
    }
    found |= {name: value for name, value in options.items() if name.lower() == "path"}
    if any(name.lower() == "storageoptions" for name in found):
        raise InvalidInputError(
            "option storageOptions would be kept in Spark's catalog, where others can read it; "
            "leave it out, and give driver and executors the storage's environment variables"
        )
    return found


def keep_options(columns: Sequence[Column], options: Mapping[str, str]) -> list[Column]:
    """Return columns whose first comment holds the options of their table."""
    first, *others = columns
    text = msgspec.json.encode(options, order="sorted").decode()
    return [evolve(first, comment=f"{first.comment}{_MARK}{text}"), *others]


def kept_options(comment: str) -> dict[str, str]:
    """Return the options that the comment of a table's first column holds; none if it has none.

    Raises:
        InvalidInputError: They were changed.

    Example:
        >>> (column,) = keep_options([Column("x", "string", "its x")], {"path": "lake"})
        >>> column.comment
        'its x; read with OPTIONS {"path":"lake"}'
        >>> kept_options(column.comment)
        {'path': 'lake'}
    """
    _, mark, text = comment.partition(_MARK)
    if not mark:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.DecodeError as error:
        raise InvalidInputError(
            f"the comment of the table's first column has options that are no JSON ({error}); "
            "create the table again"
        ) from error
