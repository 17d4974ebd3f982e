"""Common part of `lakeledger import FORMAT`."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated, Any, TypeAlias

from attrs import define, field, frozen
from cyclopts import Parameter

from ledger.cli.exits import Stop, UsageError, ends_between_rounds
from ledger.cli.options import LedgerFlags
from ledger.cli.output import Screen, as_json
from ledger.ledger import Ledger
from ledger.model.errors import InvalidInputError, LedgerError
from projections.importing.importing import Imported
from projections.materialising import Progress

Name: TypeAlias = Annotated[
    str,
    Parameter(
        help="DATABASE.TABLE in this ledger; DATABASE or nothing imports every table below SOURCE."
    ),
]
DryRun: TypeAlias = Annotated[
    bool, Parameter(negative="", show_default=False, help="Only show the plan.")
]
Follow: TypeAlias = Annotated[
    bool,
    Parameter(negative="", show_default=False, help="Import new changes until Ctrl-C."),
]
Interval: TypeAlias = Annotated[
    float, Parameter(help="Seconds between checks of the source, with --follow.")
]


@frozen
class AskedImport:
    """What a command line asks for.

    Attributes:
        format_name: Whose tables they are.
        source: Where they are.
        name: What the one is called in the ledger, or the database of all; empty for their own.
        dry_run: Only say what would come.
        follow: Go on with what is new.
        interval_s: How long to wait between two looks.
    """

    format_name: str
    source: str
    name: str
    dry_run: bool
    follow: bool
    interval_s: float

    @property
    def is_one(self) -> bool:
        """Whether one table is asked for."""
        return "." in self.name


def import_asked(place: LedgerFlags, asked: AskedImport) -> None:
    """Bring in what is asked for, and print what came.

    Args:
        place: Which ledger.
        asked: What to bring.

    Raises:
        UsageError: Following and a dry run are asked for at once.
        InvalidInputError: Some of many tables could not come in; what could has.
    """
    if asked.follow and asked.dry_run:
        raise UsageError("give one of --follow and --dry-run")
    lake, screen = place.open(), place.screen
    if asked.follow:
        _Following(lake, screen, asked).run()
    elif asked.is_one:
        with screen.progress("importing") as progress:
            done = _take(lake, asked, asked.name, asked.source, progress)
        screen.result(_document(done), lambda to: _print(to, done))
    else:
        _import_all(lake, screen, asked)


def _take(lake: Ledger, asked: AskedImport, name: str, source: str, progress: Progress) -> Imported:
    done: Imported
    if asked.dry_run:
        done = lake.plan_import(name, source, format_name=asked.format_name)
    else:
        done = lake.import_table(name, source, format_name=asked.format_name, on_progress=progress)
    return done


def _tables(lake: Ledger, asked: AskedImport) -> dict[str, str]:
    """Return where each table is, by what it is called here."""
    if asked.is_one:
        return {asked.name: asked.source}
    return lake.tables_to_import(
        asked.source, database=asked.name or None, format_name=asked.format_name
    )


def _import_all(lake: Ledger, screen: Screen, asked: AskedImport) -> None:
    done: list[Imported] = []
    failed: dict[str, str] = {}
    tables = _tables(lake, asked)
    for name, source in tables.items():
        try:
            with screen.progress(f"importing {name}") as progress:
                done.append(_take(lake, asked, name, source, progress))
        except (LedgerError, OSError) as error:
            failed[name] = str(error)
            screen.notice(f"{name}: {error}")
    document = {
        "tables": [_document(each) for each in done],
        "failed": [{"table": name, "error": said} for name, said in failed.items()],
    }

    def text(to: Screen) -> None:
        for each in done:
            _print(to, each)

    screen.result(document, text)
    if failed:
        raise InvalidInputError(
            f"{len(failed)} of {len(tables)} tables could not come in: {', '.join(failed)}; the "
            "lines above say why"
        )


@define
class _Following:
    """Rounds over one table, or over all that there are below a source.

    Attributes:
        lake: The ledger.
        screen: Where lines go.
        asked: What is followed.
        problems: By table, why what is new cannot come in; told once.
        transactions: How many came.
    """

    lake: Ledger
    screen: Screen
    asked: AskedImport
    problems: dict[str, str] = field(factory=dict)
    transactions: int = 0

    def run(self) -> None:
        """Take what is new, for ever, until somebody asks to end."""
        with ends_between_rounds() as stop, suppress(_StopAskedError):
            while True:
                self._round(stop)
                if stop.wait(self.asked.interval_s):
                    break
        failed = f"; {len(self.problems)} could not go on" if self.problems else ""
        self.screen.notice(
            f"followed {self.asked.source}: {self.transactions:,} transactions came{failed}"
        )

    def _round(self, stop: Stop) -> None:
        try:
            tables = _tables(self.lake, self.asked)
        except (LedgerError, OSError) as error:
            self._failed(self.asked.source, error)
            return
        for name, source in tables.items():
            try:
                with self.screen.progress(f"importing {name}") as progress:
                    done = _take(self.lake, self.asked, name, source, _stopping(stop, progress))
            except (LedgerError, OSError) as error:
                self._failed(name, error)
                continue
            self.problems.pop(name, None)
            if done.transactions or done.is_new:
                self._came(done)
        self.problems.pop(self.asked.source, None)

    def _came(self, done: Imported) -> None:
        self.transactions += done.transactions
        if self.screen.output == "text":
            self.screen.line(
                f"{done.identifier} stands at version {done.version}: {done.transactions:,} "
                f"transactions came, {len(done.snapshots):,} snapshots among them"
            )
        else:
            sys.stdout.write(as_json(_document(done)) + "\n")
        sys.stdout.flush()

    def _failed(self, name: str, error: Exception) -> None:
        said = f"{name}: {error}"
        if self.problems.get(name) != said:
            self.screen.notice(said)
        self.problems[name] = said


class _StopAskedError(Exception):
    """Somebody asked to end while much was coming in; the rest comes next time."""


def _stopping(stop: Stop, progress: Progress) -> Progress:
    def report(done: int, of: int) -> None:
        progress(done, of)
        if stop.asked:
            raise _StopAskedError

    return report


def _document(done: Imported) -> dict[str, Any]:
    return {
        "table": str(done.identifier),
        "source": done.source,
        "metadataFile": done.metadata_file,
        "dryRun": done.version is None,
        "isNew": done.is_new,
        "transactions": done.transactions,
        "snapshots": list(done.snapshots),
        "schemas": list(done.schemas),
        "refs": list(done.refs),
        "notCarried": list(done.not_carried),
        "version": done.version,
    }


def _print(screen: Screen, done: Imported) -> None:
    if not done.transactions and not done.is_new:
        screen.line(f"{done.identifier} has all that {done.source} says; nothing is new")
        return
    came = "would come" if done.version is None else "came"
    screen.line(f"{done.transactions:,} transactions {came} from {done.source}:")
    for noun, some in (
        ("snapshots", done.snapshots),
        ("schemas", done.schemas),
        ("branches and tags", done.refs),
    ):
        screen.line(f"  {len(some):,} {noun}")
    for each in done.not_carried:
        screen.line(f"not carried: {each}")
    if done.version is not None:
        screen.line(f"{done.identifier} stands at version {done.version}")
