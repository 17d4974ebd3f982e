"""`lakeledger project delta`: Delta's own flags."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen
from cyclopts import Parameter

from ledger.table import Table
from projections.command import FormatCommand, PythonReader
from projections.delta.materialise import DELTA
from projections.materialising import Progress


@Parameter(name="*")
@frozen
class DeltaFlags:
    """Up to where."""

    version: Annotated[int | None, Parameter(help="Up to this commit; the newest if left out.")] = (
        None
    )

    def project(self, table: Table, on_progress: Progress) -> int:
        """Bring the log up to a version; return the version reached."""
        return DELTA.project(table, version=self.version, on_progress=on_progress)


COMMAND = FormatCommand(
    DELTA,
    DeltaFlags,
    "commits, checkpoints",
    PythonReader(
        "deltalake",
        "from deltalake import DeltaTable, QueryBuilder",
        'read = QueryBuilder().register("t", DeltaTable("{opened}"))\n'
        'read.execute("SELECT * FROM t").read_all()',
    ),
)
