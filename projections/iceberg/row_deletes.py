"""Position deletes name data files by their URI: whether they still name any of the table's.

A ledger that was copied or moved has delete files that name the files at the other place. A reader
would find that none of them applies, and show deleted rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyarrow import parquet

from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.table import Table
from projections.iceberg.row_files import RowFiles

_NAMES = "file_path"


def refuse_lost_deletes(table: Table, files: Iterable[FileChange], io: RowFiles) -> None:
    """Refuse to read where a delete file names a file that was never in the table.

    Args:
        table: The table.
        files: Those that are to be read.
        io: Reads them.

    Raises:
        NotFoundError: A delete file is gone.
        UnsupportedError: One names a file of another place.
    """
    for each in files:
        if each.content != "position-deletes" or each.format.lower() != "parquet":
            continue
        uri = table_uri(table, each.path)
        with io.new_input(uri).open() as body:
            names = set(parquet.read_table(body, columns=[_NAMES])[_NAMES].unique().to_pylist())
        prefix = f"{table.location}/"
        paths = {name: name.removeprefix(prefix) for name in names}
        known = table.live.newest(sorted(paths.values()), table.state.version)
        for name, path in sorted(paths.items()):
            if path not in known:
                raise UnsupportedError(
                    f"{uri} deletes rows of {name}, which was never in {table.identifier} at "
                    f"{table.location}: the ledger was copied or moved from another place after "
                    "the deletes were written, and no reader would apply them; read the table "
                    "where it was, or rewrite its data files without the rows there and copy again"
                )


def table_uri(table: Table, path: str) -> str:
    """Return where a file is whose path the log has."""
    return path if "://" in path or path.startswith("/") else f"{table.location}/{path}"
