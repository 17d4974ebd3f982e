"""Position deletes: which data files one names, and whether the table has them.

A file of position deletes names data files by their whole URLs. After a move the names are those of
the other place, and no reader would apply them: deleted rows would be back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from ledger.evolution.state import TableState
from ledger.files.live import LiveFiles
from ledger.model.bounded.parquet import bounded_table, opened, python_values
from ledger.model.file_change import FileChange

_NAMES: Final = "file_path"
_WHAT: Final = "the file of position deletes"


class FilesOfTable(Protocol):
    """What is asked of a table's handle."""

    live: LiveFiles

    @property
    def location(self) -> str:
        """The URL that its files are named by."""

    @property
    def state(self) -> TableState:
        """The newest state."""


def names_files(file: FileChange) -> bool:
    """Whether a file of a table is one of position deletes that can be looked into."""
    return file.content == "position-deletes" and file.format.lower() == "parquet"


def named_files(body: bytes, file: str = _WHAT) -> list[str]:
    """Return the URLs of the data files that a file of position deletes names, sorted.

    Args:
        body: The file.
        file: Its name, for errors.

    Raises:
        TooLargeError: It declares or unpacks to more than a file of its size may.
    """
    found: set[str] = set()
    for batch in opened(body, file, [_NAMES]).batches():
        found.update(python_values(batch.column(0)))
    return sorted(found)


def lost_names(table: FilesOfTable, names: list[str]) -> list[str]:
    """Return those of some names that no file of a table ever had, at the place where it is."""
    prefix = f"{table.location}/"
    paths = {each: each.removeprefix(prefix) for each in names}
    known = table.live.newest(sorted(paths.values()), table.state.version)
    return [each for each, path in paths.items() if path not in known]


def renamed(body: bytes, new: Mapping[str, str]) -> bytes:
    """Return a file of position deletes that names files otherwise.

    Args:
        body: The file.
        new: What a file is called instead; others stay as they are.

    Raises:
        TooLargeError: It declares or unpacks to more than a file of its size may.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows: Any = bounded_table(body, _WHAT)
    at = rows.schema.get_field_index(_NAMES)
    field = rows.schema.field(at)
    names = [new.get(each, each) for each in rows.column(at).to_pylist()]
    sink = pa.BufferOutputStream()
    rows = rows.set_column(at, field, pa.array(names, field.type))
    parquet.write_table(rows.replace_schema_metadata(rows.schema.metadata), sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def prefix_of(table: FilesOfTable, names: list[str]) -> str | None:
    """Return what lost names begin with where the table was; None if it cannot be known.

    The rest of each is the path of a file of the table's.
    """
    first = names[0]
    for at in (index for index, char in enumerate(first) if char == "/"):
        prefix = first[: at + 1]
        if not all(each.startswith(prefix) for each in names):
            return None
        rest = sorted(each.removeprefix(prefix) for each in names)
        if all(rest) and rest == sorted(table.live.newest(rest, table.state.version)):
            return prefix
    return None
