"""`lakeledger project iceberg`: Iceberg's own flags."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen
from cyclopts import Parameter

from ledger.table import Table
from projections.command import FormatCommand, PythonReader
from projections.iceberg.materialise import ICEBERG, project
from projections.materialising import Progress


@Parameter(name="*")
@frozen
class IcebergFlags:
    """Which versions get a metadata file."""

    version: Annotated[
        int | None,
        Parameter(help="Write this commit's metadata file, and leave the newest where it is."),
    ] = None
    every: Annotated[
        int | None, Parameter(help="On the way, write every so many commits' metadata files, too.")
    ] = None

    def project(self, table: Table, on_progress: Progress) -> int:
        """Write one version, or bring the files up to the newest; return the version reached."""
        return project(table, version=self.version, every=self.every, on_progress=on_progress)


COMMAND = FormatCommand(
    ICEBERG,
    IcebergFlags,
    "metadata, manifest lists, manifests",
    PythonReader(
        "pyiceberg",
        "from pyiceberg.table import StaticTable",
        'StaticTable.from_metadata("{opened}").scan().to_arrow()',
    ),
    opens="metadata/v{version}.metadata.json",
)
