"""Command that writes rows: `append`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags, OnBranch, TableName
from ledger.cli.phrases import committed
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.table_handle import handle_of


def append(
    name: TableName,
    /,
    *paths: Annotated[
        str, Parameter(help="Files that end in .csv, .jsonl, .ndjson or .parquet; paths or URLs.")
    ],
    branch: OnBranch = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Write the rows of files into a table as one snapshot.

    Columns are matched by name; texts of CSV and JSON are parsed by the table's types. In CSV an
    empty value is NULL, but in a column of texts. `add-files` registers Parquet files as they are.

    Example:
        lakeledger append shop.flights try/new-year.parquet
    """
    if not paths:
        raise UsageError("no files are given; name files that end in .csv, .jsonl or .parquet")
    from ledger.rows.file_rows import open_row_files
    from ledger.rows.row_commits import commit_rows

    table = place.table(name)
    screen = place.screen
    rows = open_row_files(paths, place.storage_options())
    with screen.progress("writing rows"):
        done = writing.once(
            table,
            ["append", paths, branch],
            lambda options: commit_rows(
                handle_of(table), rows, SnapshotPlan("APPEND"), options, branch=branch
            ),
        )
    committed(screen, table, done, writing)
