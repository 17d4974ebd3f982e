"""`lakeledger project paimon`: Paimon's own flags."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen
from cyclopts import Parameter

from ledger.table import Table
from projections.command import FormatCommand, PythonReader
from projections.materialising import Progress
from projections.paimon.materialise import PAIMON


@Parameter(name="*")
@frozen
class PaimonFlags:
    """Up to where."""

    version: Annotated[int | None, Parameter(help="Up to this commit; the newest if left out.")] = (
        None
    )

    def project(self, table: Table, on_progress: Progress) -> int:
        """Bring the files up to a version; return the version reached."""
        return PAIMON.project(table, version=self.version, on_progress=on_progress)


COMMAND = FormatCommand(
    PAIMON,
    PaimonFlags,
    "schema, snapshot, tag, manifest",
    PythonReader(
        "pypaimon",
        "from pypaimon.table.file_store_table import FileStoreTable",
        'read = FileStoreTable.from_path("{opened}").new_read_builder()\n'
        "read.new_read().to_arrow(read.new_scan().plan().splits())",
    ),
)
