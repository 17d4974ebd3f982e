"""Command `lakeledger project --all`: every table, to the formats that it declares."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from attrs import field, frozen
from cyclopts import Parameter

from ledger.cli.app import unknown_command_error
from ledger.cli.exits import UsageError, exit_code_of, worst_of
from ledger.cli.options import LedgerFlags
from ledger.cli.output import Screen, progress_reports
from ledger.decide.format_rules import declared_rules
from ledger.formats import INSTALLED, having, part
from ledger.ledger_handle import LedgerHandle
from ledger.model.errors import LedgerError
from ledger.stores.concurrency import run_concurrently
from ledger.table_handle import handle_of


@frozen
class ProjectedTable:
    """Outcome of one table.

    Attributes:
        table: The table's name.
        versions: The version of the files by format.
        errors: The error by format, or by "" if the table could not be opened.
    """

    table: str
    versions: Mapping[str, int] = field(factory=dict)
    errors: Mapping[str, Exception] = field(factory=dict)

    def failures(self) -> Iterator[tuple[str, Exception]]:
        """Yield each failure: the table and its format in words, and the error."""
        for name, error in self.errors.items():
            yield f"{self.table}, {name}" if name else self.table, error


def project_tables(
    *names: Annotated[
        str, Parameter(help="With --all, databases whose tables to project; default: all.")
    ],
    every: Annotated[
        bool,
        Parameter(
            name="--all",
            negative="",
            show_default=False,
            help="Project every table to its declared formats.",
        ),
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Project tables' metadata to the files of other formats.

    With --all, tables are projected concurrently up to their newest versions. A failure does not
    stop the others; it is reported, and the exit code is that of the worst one.

    Example:
        lakeledger project --all shop

        lakeledger project paimon shop.flights
    """
    if not every:
        raise _no_format_error(names)
    screen, lake = place.screen, place.open()
    tables = [
        f"{database}.{each}"
        for database in dict.fromkeys(names or lake.databases())
        for each in lake.tables(database)
    ]
    done = _project_concurrently(handle_of(lake), tables, screen)
    failures = [failure for each in done for failure in each.failures()]
    screen.result(_document(done), lambda to: _print(to, done))
    for what, error in failures:
        screen.notice(f"{what}: {error}")
    if failures:
        raise worst_of([error for _, error in failures])


def _no_format_error(names: Sequence[str]) -> UsageError:
    formats = having("command")
    if names:
        return unknown_command_error(["project"], names[0], formats)
    return UsageError(
        f"'project' needs a format, which is one of {', '.join(formats)}, or --all; see: "
        "lakeledger project --help"
    )


def _project_concurrently(
    lake: LedgerHandle, tables: Sequence[str], screen: Screen
) -> list[ProjectedTable]:
    done: dict[str, ProjectedTable] = {}
    report = progress_reports(screen, "projected {}: {:,} of {:,} tables")
    reporting = threading.Lock()

    def project(name: str) -> None:
        done[name] = _project_table(lake, name)
        with reporting:
            report(name, len(done), len(tables))

    run_concurrently(project, tables)
    return [done[each] for each in tables]


def _project_table(lake: LedgerHandle, name: str) -> ProjectedTable:
    versions: dict[str, int] = {}
    errors: dict[str, Exception] = {}
    try:
        table = lake.table(name)
        declared = declared_rules(table.state.schema.options).formats
    except (LedgerError, OSError) as error:
        return ProjectedTable(name, errors={"": error})
    for each in sorted(declared):
        if each in INSTALLED.names() and each not in having("project"):
            # A format of rules alone has no files.
            continue
        try:
            versions[each] = part(each, "project")(table, version=None)
        except (LedgerError, OSError) as error:
            errors[each] = error
    return ProjectedTable(name, versions, errors)


def _document(done: Sequence[ProjectedTable]) -> dict[str, Any]:
    return {
        "tables": [{"table": each.table, "versions": dict(each.versions)} for each in done],
        "failures": [
            {
                "table": each.table,
                "format": name or None,
                "error": type(error).__name__,
                "message": str(error),
                "exitCode": exit_code_of(error),
            }
            for each in done
            for name, error in each.errors.items()
        ],
    }


def _print(screen: Screen, done: Sequence[ProjectedTable]) -> None:
    for each in done:
        reached = [f"{name} at version {version}" for name, version in each.versions.items()]
        failed = [f"{name or 'the table'} failed" for name in each.errors]
        screen.line(f"{each.table}  {', '.join([*reached, *failed]) or 'has no files to project'}")
    if not done:
        screen.line("there are no tables to project")
