"""Common part of `lakeledger import FORMAT`."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated, Any, TypeAlias

from attrs import define, field, frozen
from cyclopts import Parameter

from ledger.cli.exits import Stop, UsageError, stop_flag_between_rounds
from ledger.cli.options import LedgerFlags
from ledger.cli.output import Screen, as_json
from ledger.ledger import Ledger
from ledger.model.errors import InvalidInputError, LedgerError
from ledger.model.messages import counted
from projections.importing.importing import Imported
from projections.materialising import Progress

Name: TypeAlias = Annotated[
    str,
    Parameter(
        help="DATABASE.TABLE in this ledger; DATABASE or nothing imports every table below SOURCE."
    ),
]
DryRun: TypeAlias = Annotated[
    bool,
    Parameter(negative="", show_default=False, help="Show what would be imported."),
]
Follow: TypeAlias = Annotated[
    bool,
    Parameter(negative="", show_default=False, help="Keep importing new commits until Ctrl-C."),
]
Interval: TypeAlias = Annotated[
    float, Parameter(help="With --follow, seconds between two checks for new commits.")
]


@frozen
class ImportRequest:
    """Arguments of an import command.

    Attributes:
        format_name: The source's format.
        source: URL or path of the source.
        name: The table's name in the ledger, or the database of all tables; empty for the source's.
        dry_run: Only show what would be imported.
        follow: Keep importing new commits.
        interval_s: Seconds between two checks.
    """

    format_name: str
    source: str
    name: str
    dry_run: bool
    follow: bool
    interval_s: float

    @property
    def is_one(self) -> bool:
        """Return whether one table is requested."""
        return "." in self.name


def run_import_request(place: LedgerFlags, asked: ImportRequest) -> None:
    """Import the requested tables, and print the result.

    Args:
        place: Location of the ledger.
        asked: The arguments.

    Raises:
        UsageError: --follow and --dry-run are both given.
        InvalidInputError: Some of many tables could not be imported; the others were.
    """
    if asked.follow and asked.dry_run:
        raise UsageError("give one of --follow and --dry-run")
    lake, screen = place.open(), place.screen
    if asked.follow:
        _RepeatedImport(lake, screen, asked).run()
    elif asked.is_one:
        with screen.progress("importing") as progress:
            done = _import_or_plan(lake, asked, asked.name, asked.source, progress)
        screen.result(_result_document(done), lambda to: _print_result(to, done))
    else:
        _import_all(lake, screen, asked)


def _import_or_plan(
    lake: Ledger, asked: ImportRequest, name: str, source: str, progress: Progress
) -> Imported:
    done: Imported
    if asked.dry_run:
        done = lake.plan_import(name, source, format_name=asked.format_name)
    else:
        done = lake.import_table(name, source, format_name=asked.format_name, on_progress=progress)
    return done


def _sources_by_table(lake: Ledger, asked: ImportRequest) -> dict[str, str]:
    """Return the source of each table, by its name in the ledger."""
    if asked.is_one:
        return {asked.name: asked.source}
    return lake.tables_to_import(
        asked.source, database=asked.name or None, format_name=asked.format_name
    )


def _import_all(lake: Ledger, screen: Screen, asked: ImportRequest) -> None:
    done: list[Imported] = []
    failed: dict[str, str] = {}
    tables = _sources_by_table(lake, asked)
    for name, source in tables.items():
        try:
            with screen.progress(f"importing {name}") as progress:
                done.append(_import_or_plan(lake, asked, name, source, progress))
        except (LedgerError, OSError) as error:
            failed[name] = str(error)
            screen.notice(f"{name}: {error}")
    document = {
        "tables": [_result_document(each) for each in done],
        "failed": [{"table": name, "error": said} for name, said in failed.items()],
    }

    def text(to: Screen) -> None:
        for each in done:
            _print_result(to, each)

    screen.result(document, text)
    if failed:
        raise InvalidInputError(
            f"{len(failed)} of {len(tables)} tables could not be imported: {', '.join(failed)}; "
            "the lines above give the reasons"
        )


@define
class _RepeatedImport:
    """Repeated imports of one table, or of all below a source.

    Attributes:
        lake: The ledger.
        screen: Output of lines.
        asked: The arguments.
        problems: By table, the reason that its new commits cannot be imported; printed once.
        not_carried: By table, what could not be carried at its last import; printed once.
        transactions: Number of imported transactions.
    """

    lake: Ledger
    screen: Screen
    asked: ImportRequest
    problems: dict[str, str] = field(factory=dict)
    not_carried: dict[str, tuple[str, ...]] = field(factory=dict)
    transactions: int = 0

    def run(self) -> None:
        """Import new commits until the process is asked to stop."""
        with stop_flag_between_rounds() as stop, suppress(_StopAskedError):
            while True:
                self._import_round(stop)
                if stop.wait(self.asked.interval_s):
                    break
        failed = f"; failed tables: {len(self.problems)}" if self.problems else ""
        self.screen.notice(
            f"followed {self.asked.source}: {counted(self.transactions, 'transaction')} "
            f"imported{failed}"
        )

    def _import_round(self, stop: Stop) -> None:
        try:
            tables = _sources_by_table(self.lake, self.asked)
        except (LedgerError, OSError) as error:
            self._print_failure(self.asked.source, error)
            return
        for name, source in tables.items():
            try:
                with self.screen.progress(f"importing {name}") as progress:
                    done = _import_or_plan(
                        self.lake, self.asked, name, source, _stop_on_request(stop, progress)
                    )
            except (LedgerError, OSError) as error:
                self._print_failure(name, error)
                continue
            self.problems.pop(name, None)
            if done.transactions or done.is_new:
                self._print_imported(done)
        self.problems.pop(self.asked.source, None)

    def _print_imported(self, done: Imported) -> None:
        self.transactions += done.transactions
        if self.screen.output == "text":
            if done.created_database:
                self.screen.line(_created_database_text(done))
            self.screen.line(
                f"{done.identifier} stands at version {done.version}: "
                f"{counted(done.transactions, 'transaction')} imported, "
                f"{counted(len(done.snapshots), 'snapshot')} among them"
            )
            for each in done.not_carried:
                if each not in self.not_carried.get(str(done.identifier), ()):
                    self.screen.line(f"not carried: {each}")
            self.not_carried[str(done.identifier)] = done.not_carried
        else:
            sys.stdout.write(as_json(_result_document(done)) + "\n")
        sys.stdout.flush()

    def _print_failure(self, name: str, error: Exception) -> None:
        said = f"{name}: {error}"
        if self.problems.get(name) != said:
            self.screen.notice(said)
        self.problems[name] = said


class _StopAskedError(Exception):
    """A stop was requested during an import; the next run imports the rest."""


def _stop_on_request(stop: Stop, progress: Progress) -> Progress:
    def report(done: int, of: int) -> None:
        progress(done, of)
        if stop.asked:
            raise _StopAskedError

    return report


def _result_document(done: Imported) -> dict[str, Any]:
    return {
        "table": str(done.identifier),
        "source": done.source,
        "metadataFile": done.metadata_file,
        "dryRun": done.version is None,
        "isNew": done.is_new,
        "createdDatabase": done.created_database or None,
        "transactions": done.transactions,
        "snapshots": list(done.snapshots),
        "schemas": list(done.schemas),
        "refs": list(done.refs),
        "notCarried": list(done.not_carried),
        "version": done.version,
    }


def _created_database_text(done: Imported) -> str:
    verb = "would create" if done.version is None else "created"
    return f"{verb} database {done.created_database}, which did not exist"


def _print_result(screen: Screen, done: Imported) -> None:
    if not done.transactions and not done.is_new:
        screen.line(f"{done.identifier} is up to date with {done.source}")
        return
    if done.created_database:
        screen.line(_created_database_text(done))
    came = "would come" if done.version is None else "came"
    screen.line(f"{counted(done.transactions, 'transaction')} {came} from {done.source}:")
    for some, noun, plural in (
        (done.snapshots, "snapshot", ""),
        (done.schemas, "schema", ""),
        (done.refs, "branch or tag", "branches and tags"),
    ):
        screen.line(f"  {counted(len(some), noun, plural)}")
    for each in done.not_carried:
        screen.line(f"not carried: {each}")
    if done.version is not None:
        screen.line(f"{done.identifier} stands at version {done.version}")
