"""Commands that register data files: `add-files`, `overwrite`, `delete-files`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from ledger.cli.changes import read_pairs
from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags, OnBranch, TableName
from ledger.cli.phrases import committed, print_unchanged
from ledger.decide.changes import Isolation
from ledger.files.partition_values import DEFAULT_NAME, HIVE_DEFAULT_NAME
from ledger.files.register import expand_paths_to_files, ledger_names
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.log.request import Appended, CommitOptions
from ledger.rows.file_rows import is_text_file, open_row_files
from ledger.rows.row_commits import commit_rows
from ledger.state.table import TableState
from ledger.stores.file_access import open_location
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of


def add_files(
    name: TableName,
    /,
    *paths: Annotated[str, Parameter(help="Parquet files, folders or globs; paths or URLs.")],
    new: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Skip files that the table already has; commit nothing if it has all.",
        ),
    ] = False,
    branch: OnBranch = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Register existing Parquet files as one snapshot; reads only their footers.

    Partition values are read from KEY=VALUE folders in the paths.

    Example:
        lakeledger add-files shop.flights try/january.parquet

        lakeledger add-files shop.flights try/january.parquet --new
    """
    if not paths:
        raise UsageError("no files are given; name files, folders or globs")
    if new and branch is not None:
        raise UsageError("--new compares with the files of main; omit it with --branch")
    table = place.table(name)
    screen = place.screen
    line = table if branch is None else table.branch(branch)
    with screen.progress("reading footers") as report:

        def ask_new(options: CommitOptions) -> Appended[TableState] | None:
            coming = table.new_files(paths)
            return table.add_files(coming, report, **options) if coming else None

        if new:
            appended = writing.once(table, ["add-files", "--new", paths], ask_new)
        else:
            appended = line.add_files(paths, report, **writing.options())
    if appended is None:
        print_unchanged(screen, table, "it already has all of these files")
        return
    committed(screen, table, appended, writing)


def overwrite(
    name: TableName,
    /,
    *paths: Annotated[
        str,
        Parameter(help="Parquet files, folders or globs, or files of CSV or JSON lines."),
    ],
    where: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            help="KEY=VALUE of the partitions to replace, with values as in paths: month=2024-02, "
            "`key=__DEFAULT_PARTITION__` for NULL; repeatable.",
        ),
    ] = (),
    isolation: Annotated[
        Isolation,
        Parameter(
            help="Isolation level: with serializable, a concurrent add of a file is a conflict."
        ),
    ] = "serializable",
    branch: OnBranch = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Replace the live files of a table or of matching partitions.

    Makes one snapshot and deletes nothing on disk. Parquet files are registered as they are; the
    rows of CSV and JSON lines are written as `append` does. Without files, the matching partitions
    become empty.

    Example:
        lakeledger overwrite shop.flights try/new-year.parquet
    """
    if not paths and not where:
        raise UsageError(
            "nothing to overwrite; give files, or --where KEY=VALUE to empty a partition"
        )
    table = place.table(name)
    values = _partition_values(where) or None
    # In an erasable ledger a digest of the values would allow guessing them.
    said = sorted(values or ()) if table.state.keeps_outside else values
    with place.screen.progress("reading files") as report:
        texts = _texts_among(paths)
        rows = open_row_files(texts, place.storage_options())

        def commit(options: CommitOptions) -> Appended[TableState]:
            if texts:
                plan = SnapshotPlan("OVERWRITE", where=values or {}, isolation=isolation)
                return commit_rows(handle_of(table), rows, plan, options, branch=branch)
            files = table.data_files(paths, report) if paths else ()
            line = table if branch is None else table.branch(branch)
            return line.overwrite(files, where=values, isolation=isolation, **options)

        done = writing.once(table, ["overwrite", paths, said, isolation, branch], commit)
    committed(place.screen, table, done, writing)


def _partition_values(where: Sequence[str]) -> dict[str, str | None]:
    """Return the values of KEY=VALUE texts; the folder names of NULL are None."""
    nulls = {DEFAULT_NAME, HIVE_DEFAULT_NAME}
    return {key: None if value in nulls else value for key, value in read_pairs("--where", where)}


def _texts_among(paths: Sequence[str]) -> list[str]:
    """Return the paths of CSV and JSON lines.

    Raises:
        UsageError: Only some of the paths are.
    """
    texts = [each for each in paths if is_text_file(each)]
    if texts and len(texts) < len(paths):
        raise UsageError(
            f"{texts[0]} has rows to write, and other files are Parquet, which is registered as it "
            "is; convert one of them"
        )
    return texts


def delete_files(
    name: TableName,
    /,
    *paths: Annotated[
        str, Parameter(help="Live files: paths, globs or URLs, or paths as stored in the table.")
    ],
    branch: OnBranch = None,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Remove live files from a table as one snapshot; deletes nothing on disk.

    Example:
        lakeledger delete-files shop.flights try/new-year.parquet
    """
    if not paths:
        raise UsageError("no files are given; name the paths of live files")
    table = place.table(name)
    line = table if branch is None else table.branch(branch)
    done = writing.once(
        table,
        ["delete-files", paths, branch],
        lambda options: line.delete_files(
            _resolve_stored_paths(table, line.at(), paths, place), **options
        ),
    )
    committed(place.screen, table, done, writing)


def _resolve_stored_paths(
    table: Table, at: TableAt, paths: Sequence[str], place: LedgerFlags
) -> list[str]:
    """Resolve paths to the paths that the table stores; keep those that it stores as given."""
    live = handle_of(table).live.lookup_live_files_at(list(paths), at.state)
    options = place.storage_options()
    names: list[str] = []
    for path in paths:
        if path in live:
            names.append(path)
            continue
        there, inside = open_location(path, options)
        files = (
            expand_paths_to_files([path], options).infos if set("*?[") & set(inside) else [inside]
        )
        names += [ledger_names(each, there, handle_of(table).live.names)[0] for each in files]
    return names
