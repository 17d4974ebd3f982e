"""What a file that comes may say of its order, its rows' ids and what it deletes, on a table.

Source: the Iceberg table specification, "Data File Fields", "Deletion Vectors" and "Equality Delete
Files".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import UNSET, UnsetType

from ledger.evolution.state import TableState
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.model.types.walk import walk_fields

_BY_POSITION: Final = "position-deletes"
_BY_VALUE: Final = "equality-deletes"


def check_later_facts(
    state: TableState, file: FileChange, check_path: Callable[[str], None]
) -> None:
    """Refuse a file that says what is not there, or what a file of its kind cannot say.

    Args:
        state: The table.
        file: A file that comes.
        check_path: Refuses a path that leaves the table's location.

    Raises:
        InvalidChangeError: It does.
    """
    for problem in (_sorted(state, file), _compares(state, file), _deletes_from(file)):
        if problem is not None:
            raise InvalidChangeError(f"file {file.path} {problem}")
    if not isinstance(file.referenced_data_file, UnsetType):
        check_path(file.referenced_data_file)


def _sorted(state: TableState, file: FileChange) -> str | None:
    order_id = file.sort_order_id
    if isinstance(order_id, UnsetType):
        return None
    if file.content == _BY_POSITION:
        return "has position deletes, whose order is always their own: leave sort_order_id out"
    known = [each.order_id for each in state.sort_orders]
    if order_id in known:
        return None
    return f"names sort order {order_id}; the table has {', '.join(map(str, known))}"


def _compares(state: TableState, file: FileChange) -> str | None:
    ids = file.equality_ids
    if isinstance(ids, UnsetType):
        return None
    if file.content != _BY_VALUE:
        return f"has equality_ids, and only {_BY_VALUE} compare columns: leave them out"
    if not ids or len({*ids}) < len(ids):
        return f"compares the columns {list(ids)}: name one or more, each once"
    known = {each.id for each in walk_fields(state.schema.fields)}
    missing = [each for each in ids if each not in known]
    if missing:
        return f"compares column {missing[0]}, which the table does not have"
    return None


def _deletes_from(file: FileChange) -> str | None:
    if file.is_vector:
        return _vector(file)
    if not isinstance(file.referenced_data_file, UnsetType) and file.content != _BY_POSITION:
        return f"has a referenced_data_file, and only {_BY_POSITION} are of one: leave it out"
    if file.content_offset is UNSET and file.content_size_in_bytes is UNSET:
        return None
    return "has a content_offset or content_size_in_bytes, and is no deletion vector in Puffin"


def _vector(file: FileChange) -> str | None:
    offset, size = file.content_offset, file.content_size_in_bytes
    if isinstance(offset, UnsetType) or isinstance(size, UnsetType):
        return "is a deletion vector: say its content_offset and content_size_in_bytes"
    if file.referenced_data_file is UNSET:
        return "is a deletion vector: say its referenced_data_file"
    if offset + size > file.file_size_in_bytes:
        return f"has {file.file_size_in_bytes} bytes, and its vector ends at {offset + size}"
    if file.stored_at in {"", file.path}:
        return f"is a deletion vector: end its path in #{offset}, as one file may hold several"
    return None
