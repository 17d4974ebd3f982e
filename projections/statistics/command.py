"""`lakeledger stats`: what the statistics add to the command line, through entry points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from attrs import frozen
from cyclopts import App, Parameter, validators

from ledger.cli.example import help_and_example
from ledger.cli.exits import UsageError
from ledger.cli.options import Place, When
from ledger.cli.paths import key_and_value
from ledger.cli.screen import Screen
from ledger.model.errors import DamagedLogError
from ledger.table import Table
from projections.materialisation import Difference
from projections.statistics import materialise
from projections.statistics.busiest import busiest
from projections.statistics.engine import Engine, Engines
from projections.statistics.query import Order, growth, totals
from projections.statistics.report import (
    brought_up_to_date,
    print_history,
    print_many,
    print_report,
    report_of,
    totals_json,
)

__all__ = ["busiest", "register", "stats"]


@frozen
class Wanted:
    """What to show of a table."""

    top: int
    by: Order
    history: bool
    partition: tuple[str, ...]
    plot: Path | None


def register(app: App) -> None:
    """Add the command `stats`."""
    text, example = help_and_example(stats)
    app.command(stats, name="stats", help=text, help_epilogue=example)


def stats(  # noqa: PLR0913 - each is an option of the command
    name: Annotated[
        str | None, Parameter(help="DATABASE.TABLE, a DATABASE, or nothing for all tables.")
    ] = None,
    /,
    *,
    top: Annotated[
        int, Parameter(validator=validators.Number(gte=1), help="How many partitions at most.")
    ] = 10,
    by: Annotated[Order, Parameter(help="Which partitions come first.")] = "records",
    history: Annotated[
        bool, Parameter(negative="", help="The totals at every snapshot, too.")
    ] = False,
    partition: Annotated[
        tuple[str, ...],
        Parameter(
            negative="", show_default=False, help="KEY=VALUE: --history of this one; repeatable."
        ),
    ] = (),
    plot: Annotated[
        Path | None, Parameter(help="Draw growth and skew into this PNG; needs matplotlib.")
    ] = None,
    verify: Annotated[
        bool, Parameter(negative="", help="Compute all of it again and compare.")
    ] = False,
    rebuild: Annotated[
        bool, Parameter(negative="", help="Restore what --verify finds wrong.")
    ] = False,
    engine: Annotated[
        Engine, Parameter(help="auto takes Spark when more than 100,000 entries are new.")
    ] = "auto",
    when: When = When(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Show a table's partitions and totals at any instant, from its log alone.

    They are kept below the table's _ledger/statistics as Parquet; what is new is read and added.
    With a database, or without any name, one job does every table.

    Example:
        lakeledger stats shop.orders --at tag:end-of-week --top 3

        lakeledger stats shop.orders --partition day=2013-01-01

        lakeledger stats shop.orders --by size --plot growth.png
    """
    one = name is not None and "." in name
    if not one and (when.named() or plot or history or partition):
        raise UsageError(
            "--at, --history, --partition and --plot are of one table: name it DATABASE.TABLE"
        )
    wanted = Wanted(top, by, history or bool(partition), partition, plot)
    screen = place.screen
    tables = _tables(place, name)
    with Engines(engine, screen.notice) as engines:
        if verify or rebuild:
            _check(tables, engines, screen, rebuild=rebuild)
        elif one:
            _one(tables[0], when, engines, screen, wanted)
        else:
            _many(tables, engines, screen, wanted)


def _tables(place: Place, name: str | None) -> list[Table]:
    if name is not None and "." in name:
        return [place.table(name)]
    lake = place.open()
    databases = lake.databases() if name is None else [name]
    return [
        lake.table(f"{database}.{table}")
        for database in databases
        for table in lake.tables(database)
    ]


def _one(table: Table, when: When, engines: Engines, screen: Screen, wanted: Wanted) -> None:
    at = when.of(table)
    chosen = engines.choose(table)
    with screen.progress("counting") as told:
        kept = brought_up_to_date(table, chosen, screen.notice, told)
    report = report_of(table, kept, at, chosen.name)
    document = report.document(wanted.by, wanted.top)
    if wanted.history:
        of_one = dict(key_and_value(each) for each in wanted.partition)
        found = growth(kept, at, of_one) if of_one else totals(kept, at)
        document["history"] = [totals_json(each) for each in found]
    if wanted.plot is not None:
        from projections.statistics.plot import draw

        draw(wanted.plot, report, totals(kept, at))
        document["plot"] = str(wanted.plot)

    def text(to: Screen) -> None:
        print_report(to, f"{table.identifier}{when}", document)
        print_history(to, document.get("history", ()))
        if wanted.plot is not None:
            to.line(f"drawn into {wanted.plot}")

    screen.result(document, text)


def _many(tables: list[Table], engines: Engines, screen: Screen, wanted: Wanted) -> None:
    documents = []
    with screen.progress("tables") as told:
        for number, table in enumerate(tables, 1):
            chosen = engines.choose(table)
            kept = brought_up_to_date(table, chosen, screen.notice)
            report = report_of(table, kept, table.at(), chosen.name)
            documents.append(report.document(wanted.by, wanted.top))
            told(number, len(tables))

    def text(to: Screen) -> None:
        if not documents:
            to.line("there is no table yet")
        print_many(to, documents)

    screen.result({"tables": documents}, text)


def _check(tables: list[Table], engines: Engines, screen: Screen, *, rebuild: bool) -> None:
    check = materialise.rebuild if rebuild else materialise.verify
    found: dict[str, Difference] = {}
    for table in tables:
        chosen = engines.choose(table, first=0)
        found[str(table.identifier)] = check(
            table.log, chosen.scan, blocks_a_step=chosen.blocks_a_step
        )
    documents = [_difference_json(name, each) for name, each in found.items()]

    def text(to: Screen) -> None:
        for name, each in found.items():
            to.line(f"{name}: {'every figure is right' if each.is_empty else 'wrong'}")
        rows = [
            (each["table"], what, path)
            for each in documents
            for what in ("missing", "changed", "foreign")
            for path in each[what]
        ]
        to.table(("table", "what", "file"), rows)

    screen.result({"tables": documents}, text)
    wrong = [(name, each) for name, each in found.items() if not each.is_empty]
    if wrong and not rebuild:
        name, difference = wrong[0]
        raise DamagedLogError(
            f"the kept statistics of {name} are missing or changed; "
            f"restore them with: lakeledger stats {name} --rebuild",
            (*difference.missing, *difference.changed)[0],
        )


def _difference_json(name: str, difference: Difference) -> dict[str, Any]:
    return {
        "table": name,
        "missing": list(difference.missing),
        "changed": list(difference.changed),
        "foreign": list(difference.foreign),
    }
