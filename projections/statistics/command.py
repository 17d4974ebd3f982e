"""Command `lakeledger stats`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, cast

from attrs import frozen
from cyclopts import App, Group, Parameter, validators

import projections.statistics.materialise as statistics_files
from ledger.cli.changes import read_pairs
from ledger.cli.exits import UsageError
from ledger.cli.families import help_and_example
from ledger.cli.options import InstantFlags, LedgerFlags
from ledger.cli.output import Screen
from ledger.ledger import Ledger
from ledger.log.request import now_millis
from ledger.log.time_travel import effective_millis
from ledger.model.errors import (
    DamagedLogError,
    InvalidInputError,
    LedgerError,
    MissingDependencyError,
    NotFoundError,
    UnsupportedError,
)
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.materialising import Difference
from projections.partition_text import partition_path
from projections.statistics.analyze import Analysis, analyze
from projections.statistics.column_history import (
    column_statistics_at,
    column_statistics_by_snapshot,
)
from projections.statistics.engine import Engine, Engines
from projections.statistics.partition_rendering import Instant
from projections.statistics.partition_views import View
from projections.statistics.partition_views import document as view_document
from projections.statistics.printing import (
    print_answer,
    print_columns,
    print_distinct,
    print_history,
    print_many,
    print_report,
    print_view,
    totals_json,
)
from projections.statistics.publishing import Published, publishers
from projections.statistics.query import Order, StatisticsSource, growth, totals
from projections.statistics.questions import (
    TARGET_FILE_SIZE,
    Question,
    Thresholds,
    answer,
    statistics_for_question,
)
from projections.statistics.report import busiest, refreshed_statistics, report_of
from projections.statistics.spark_many import refresh_all
from projections.statistics.tile_rows import Kept

__all__ = ["busiest", "register", "stats"]


_DAYS, _LATE_DAYS = 30, 1


@Parameter(name="*", group=Group("For other readers", sort_key=15))
@frozen
class OutputOptions:
    """Alternative outputs of the statistics."""

    view: Annotated[
        View | None,
        Parameter(
            show_default=False,
            help="Instead: all partitions as the DLF API lists them, or the snapshot's change of "
            "each as in Paimon's commits.",
        ),
    ] = None
    columns: Annotated[
        bool,
        Parameter(
            negative="",
            help="Instead: counts, nulls and bounds of each column by partition, from the file "
            "metadata in the log; with --history at every snapshot that changed a partition.",
        ),
    ] = False
    analyze: Annotated[
        bool,
        Parameter(
            negative="",
            help="Estimate the number of distinct values of each column: Spark (from 4.1 on) reads "
            "the data files that no analysis has read before. With --publish the readers of that "
            "format get the counts, too.",
        ),
    ] = False
    publish: tuple[str, ...] = ()
    """Names of installed formats for whose readers to publish."""


@Parameter(name="*", group=Group("Questions", sort_key=14))
@frozen
class QuestionOptions:
    """Options of a question about a table's partitions and days."""

    ask: Annotated[
        Question | None,
        Parameter(
            show_default=False,
            help="Instead: small files and skew by partition and the gain of a compaction; "
            "growth by day (UTC); partitions that no commit has changed for --days; rows added "
            "--days after their partition's time; space freed by keeping snapshots for --days; or "
            "the cost of a filter (--where) under each partition spec.",
        ),
    ] = None
    target_size: Annotated[
        int,
        Parameter(
            validator=validators.Number(gte=1), help="Target file size of a compaction, bytes."
        ),
    ] = TARGET_FILE_SIZE
    days: Annotated[
        int | None,
        Parameter(
            validator=validators.Number(gte=0),
            show_default=False,
            help="Days without a change that make a partition untouched (30), after its time that "
            "make rows late (1), and of snapshot retention (30).",
        ),
    ] = None
    where: Annotated[
        str | None, Parameter(show_default=False, help="The filter to plan, as SQL.")
    ] = None

    def bounds(self, now_millis: int) -> Thresholds:
        """Return the thresholds of the answer."""
        days = self.days
        return Thresholds(
            now_millis=now_millis,
            target_file_size=self.target_size,
            untouched_days=_DAYS if days is None else days,
            late_days=_LATE_DAYS if days is None else days,
            retained_days=_DAYS if days is None else days,
            where=self.where,
        )


@frozen
class TableOutputOptions:
    """Options of the output for one table."""

    top: int
    by: Order
    history: bool
    partition: dict[str, str]
    plot: Path | None
    shapes: OutputOptions
    asking: QuestionOptions


def register(app: App) -> None:
    """Add the command `stats`, which can publish for the installed formats."""
    OutputOptions.__init__.__annotations__["publish"] = _publish_option()
    text, example = help_and_example(stats)
    app.command(stats, name="stats", help=text, help_epilogue=example)


def _publish_option() -> Any:
    """Return the option `publish`, with the formats that it accepts."""
    there = publishers()
    what = "; or ".join(each.what for each in there.values())
    option = Parameter(
        negative="",
        show_default=False,
        help=f"Publish to the readers of a format: {what}; repeatable.",
    )
    names: Any = cast("Any", Literal)[tuple(there)]
    return Annotated[tuple[names, ...], option]


_Limit = Annotated[
    int,
    Parameter(
        name=("--limit", "-n"),
        validator=validators.Number(gte=1),
        help="Maximum number of partitions.",
    ),
]


def stats(  # noqa: PLR0913 - each is an option of the command
    name: Annotated[
        str | None, Parameter(help="DATABASE.TABLE, or DATABASE; default: all tables.")
    ] = None,
    /,
    *,
    every: Annotated[
        bool, Parameter(name="--all", negative="", help="All tables, the default without a name.")
    ] = False,
    top: _Limit = 10,
    by: Annotated[Order, Parameter(help="Sort order of the partitions.")] = "records",
    history: Annotated[
        bool, Parameter(negative="", help="Also print the totals at every snapshot.")
    ] = False,
    partition: Annotated[
        tuple[str, ...],
        Parameter(negative="", show_default=False, help="KEY=VALUE for --history; repeatable."),
    ] = (),
    plot: Annotated[
        Path | None,
        Parameter(help="Draw growth and skew, or the answer of --ask, into this PNG."),
    ] = None,
    verify: Annotated[bool, Parameter(negative="", help="Recompute and compare.")] = False,
    rebuild: Annotated[
        bool, Parameter(negative="", help="Restore statistics that --verify finds wrong.")
    ] = False,
    engine: Annotated[
        Engine,
        Parameter(
            help="auto uses Spark where it is faster, its start included, and logs the reason."
        ),
    ] = "auto",
    asking: QuestionOptions = QuestionOptions(),
    shapes: OutputOptions = OutputOptions(),
    when: InstantFlags = InstantFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Show a table's partitions and totals at any instant, from its log alone.

    They are kept below the table's _ledger/statistics as Parquet and updated incrementally.
    With a database, or without any name, one job processes every table.

    Example:
        lakeledger stats shop.flights --at tag:january --limit 3

        lakeledger stats nyc.flights --ledger try \
            --partition day=2013-01-01

        lakeledger stats nyc.flights --ledger try --ask compaction

        lakeledger stats nyc.flights --ledger try --publish iceberg
    """
    one = _names_one_table(name, every=every)
    of_one = _parse_partition_option(partition)
    wanted = TableOutputOptions(top, by, history or bool(partition), of_one, plot, shapes, asking)
    _refuse_conflicting_options(wanted, when, one=one, checks=verify or rebuild)
    screen = place.screen
    with Engines(engine, screen.notice) as engines:
        if verify or rebuild:
            _verify_or_rebuild(_select_tables(place, name), screen, rebuild=rebuild)
        elif one:
            _print_table(_select_tables(place, name)[0], when, engines, screen, wanted)
        else:
            _print_all_tables(place.open(), name, engines, screen, wanted)


def _names_one_table(name: str | None, *, every: bool) -> bool:
    if every and name is not None:
        raise UsageError(f"--all means every table, and {name} only some: leave one of them out")
    return name is not None and "." in name


def _refuse_conflicting_options(
    wanted: TableOutputOptions, when: InstantFlags, *, one: bool, checks: bool
) -> None:
    shapes = wanted.shapes
    shapes_asked = shapes.view or shapes.columns or shapes.analyze or shapes.publish
    shown = wanted.history or wanted.plot or shapes_asked
    of_one = shown or wanted.asking.ask or when.named()
    if not one and of_one:
        raise UsageError(
            "--analyze, --at, --ask, --columns, --history, --partition, --plot, --view and "
            "--publish are of one table: name it DATABASE.TABLE"
        )
    if checks and of_one:
        raise UsageError(
            "--verify and --rebuild stand alone: leave --analyze, --at, --ask, --columns, "
            "--history, --partition, --plot, --view and --publish out"
        )
    _refuse_options_beside_ask(wanted)
    for name, each in publishers().items() if when.named() else ():
        if name in shapes.publish and each.makes_snapshot:
            raise UsageError(f"{each.what} is of the newest snapshot: leave the instant out")
    if wanted.plot is not None and not wanted.plot.absolute().parent.is_dir():
        raise UsageError(f"--plot {wanted.plot}: there is no folder {wanted.plot.parent}; make it")


def _refuse_options_beside_ask(wanted: TableOutputOptions) -> None:
    ask, shapes = wanted.asking.ask, wanted.shapes
    if wanted.asking.where is not None and ask != "filter":
        raise UsageError("--where is of --ask filter, which plans it: give both")
    if ask and (wanted.history or shapes.view or shapes.columns or shapes.publish):
        raise UsageError("--ask replaces the report: run the rest without it")
    if shapes.view and (wanted.history or wanted.plot or shapes.columns or shapes.publish):
        raise UsageError("--view replaces the report: run the rest without it")
    if shapes.analyze and (ask or shapes.view or shapes.columns):
        raise UsageError("--analyze is part of the report: run the rest without it")
    if shapes.columns and (wanted.plot or shapes.publish):
        raise UsageError("--columns replaces the report: run the rest without it")


def _parse_partition_option(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [*read_pairs("--partition", texts)]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UsageError(
            "--partition names one partition by all of its keys: give each key once, and run other "
            "partitions one by one"
        )
    return found


def _select_tables(place: LedgerFlags, name: str | None) -> list[Table]:
    if name is not None and "." in name:
        return [place.table(name)]
    lake = place.open()
    return [lake.table(each) for each in _list_table_names(lake, name)]


def _list_table_names(lake: Ledger, database: str | None) -> list[str]:
    databases = lake.databases() if database is None else [database]
    return [f"{each}.{table}" for each in databases for table in lake.tables(each)]


def _print_column_statistics(
    table: Table, when: InstantFlags, screen: Screen, wanted: TableOutputOptions
) -> None:
    read = column_statistics_by_snapshot if wanted.history else column_statistics_at
    rows = read(table, when.of(table)).to_pylist()
    if wanted.partition:
        rows = _rows_of_partition(rows, wanted.partition)
    first = list(dict.fromkeys(each["partition"] for each in rows))[: wanted.top]
    shown = [each for each in rows if each["partition"] in first]
    screen.results(
        "columns",
        rows,
        lambda to: print_columns(to, f"{table.identifier}{when}", shown),
        {"table": str(table.identifier)},
    )


def _rows_of_partition(
    rows: list[dict[str, Any]], partition: dict[str, str]
) -> list[dict[str, Any]]:
    wanted = set(partition_path(partition).split("/"))
    found = [each for each in rows if set(each["partition"].split("/")) == wanted]
    if not found:
        asked = ", ".join(f"{key}={value}" for key, value in partition.items())
        there = rows[0]["partition"] if rows else ""
        known = f"; the partitions are {there}" if there else ""
        raise NotFoundError(f"no file was ever in partition {asked}{known}")
    return found


def _print_table(
    table: Table, when: InstantFlags, engines: Engines, screen: Screen, wanted: TableOutputOptions
) -> None:
    if wanted.shapes.columns:
        # Computed from the log alone: nothing is kept of it.
        _print_column_statistics(table, when, screen, wanted)
        return
    at = when.of(table)
    chosen = engines.choose(table)
    with screen.progress("counting") as report_progress:
        kept = refreshed_statistics(table, at, chosen, screen.notice, report_progress)
    view, title = wanted.shapes.view, f"{table.identifier}{when}"
    if wanted.asking.ask is not None:
        _print_answer_to_question(wanted.asking.ask, table, when, kept, screen, wanted)
    elif view is not None:
        shown = view_document(view, kept, at)
        screen.result(shown, lambda to: print_view(to, title, shown))
    else:
        analysis = None
        if wanted.shapes.analyze:
            analysis = analyze(table, at=at, spark=engines.session())
        _print_table_report(table, when, kept, chosen.name, screen, wanted, analysis=analysis)


def _require_kept_statistics(table: Table, counted: StatisticsSource, what: str) -> Kept:
    """Return the kept statistics of a table, for options that need more than an instant.

    Raises:
        UnsupportedError: Its engine lists its files, so that none are kept.
    """
    if not isinstance(counted, Kept):
        raise UnsupportedError(
            f"{what} needs kept statistics, and the files of {table.identifier} are listed in its "
            "engine's manifests, of which none are kept: leave it out; all other statistics are "
            "counted from the manifests"
        )
    return counted


def _print_answer_to_question(
    ask: Question,
    table: Table,
    when: InstantFlags,
    kept: StatisticsSource,
    screen: Screen,
    wanted: TableOutputOptions,
) -> None:
    at = when.of(table)
    # A named instant is the reference time of the answer, too.
    now = at.state.time_millis if when.named() else now_millis()
    found = answer(
        ask,
        statistics_for_question(ask, table, at, kept),
        handle_of(table).log,
        at,
        wanted.asking.bounds(now),
    )
    about = {"table": str(table.identifier), "ask": ask}
    title = f"{table.identifier}{when}"
    if wanted.plot is not None:
        from projections.statistics.report import draw_answer

        draw_answer(wanted.plot, ask, title, found)
        about["plot"] = str(wanted.plot)

    def text(to: Screen) -> None:
        print_answer(to, title, found.slice(0, wanted.top))
        if wanted.plot is not None:
            to.line(f"drawn into {wanted.plot}")

    rows = (row for batch in found.to_batches() for row in batch.to_pylist())
    screen.results("answer", rows, text, about)


def _print_table_report(  # noqa: PLR0913 - what a report is made of
    table: Table,
    when: InstantFlags,
    kept: StatisticsSource,
    engine: str,
    screen: Screen,
    wanted: TableOutputOptions,
    *,
    analysis: Analysis | None,
) -> None:
    at = when.of(table)
    if wanted.partition:
        # Read before anything is published, as it may be missing.
        growth(kept, at, wanted.partition)
    published = _publish_statistics(table, kept, when, wanted.shapes.publish, analysis)
    if published:
        at = when.of(table)
    report = report_of(table, kept, at, engine)
    document = report.document(wanted.by, wanted.top)
    if analysis is not None:
        document["distinct"] = _distinct_json(analysis, at)
    if published:
        document["published"] = [_published_json(each) for each in published]
    if wanted.history:
        of_one = wanted.partition
        found = growth(kept, at, of_one) if of_one else totals(kept, at)
        document["history"] = [totals_json(each) for each in found]
    if wanted.plot is not None:
        from projections.statistics.report import draw_report

        draw_report(
            wanted.plot,
            report,
            totals(kept, at),
            lambda version: _source_time_of_version(table, version),
        )
        document["plot"] = str(wanted.plot)

    def text(to: Screen) -> None:
        print_report(to, f"{table.identifier}{when}", document)
        print_distinct(to, document.get("distinct"))
        print_history(to, document.get("history", ()))
        for each in published:
            what = "published" if each.is_new else "published before"
            to.line(f"{what} for {each.format}, of snapshot {each.snapshot_id}: {each.path}")
        if wanted.plot is not None:
            to.line(f"drawn into {wanted.plot}")

    screen.result(document, text)


def _distinct_json(analysis: Analysis, at: Instant) -> dict[str, Any]:
    names = {each.id: each.name for each in at.schema.fields}
    # A column may have been dropped since.
    counts = {names[key]: count for key, count in analysis.distinct.items() if key in names}
    return {
        "snapshotId": analysis.snapshot_id,
        "columns": counts,
        "isExact": analysis.is_exact,
        "filesRead": analysis.read_count,
    }


def _publish_statistics(
    table: Table,
    counted: StatisticsSource,
    when: InstantFlags,
    formats: tuple[str, ...],
    analysis: Analysis | None,
) -> list[Published]:
    found: list[Published] = []
    if not formats:
        return found
    kept = _require_kept_statistics(table, counted, "--publish")
    wanted = [each for name, each in publishers().items() if name in formats]
    # Checked before anything is published, so that it is all or none.
    for each in wanted:
        each.check(handle_of(table), when.of(table), analysis)
    # Formats that make a snapshot first, since others publish for the newest snapshot.
    for each in sorted(wanted, key=lambda each: not each.makes_snapshot):
        found += each.publish(handle_of(table), kept, when.of(table), analysis)
    return found


def _published_json(published: Published) -> dict[str, Any]:
    return {
        "format": published.format,
        "snapshotId": published.snapshot_id,
        "path": published.path,
        "version": published.version,
        "isNew": published.is_new,
    }


def _print_all_tables(
    lake: Ledger, database: str | None, engines: Engines, screen: Screen, wanted: TableOutputOptions
) -> None:
    problems: dict[str, LedgerError] = {}
    tables = _open_tables(lake, _list_table_names(lake, database), problems)
    by_spark = _refresh_with_spark(tables, engines, screen)
    documents = []
    with screen.progress("tables") as report_progress:
        for number, table in enumerate(tables, 1):
            try:
                chosen = engines.choose(table)
                at = table.at()
                kept = refreshed_statistics(table, at, chosen, screen.notice)
                engine = "spark" if str(table.identifier) in by_spark else chosen.name
                report = report_of(table, kept, at, engine)
                documents.append(report.document(wanted.by, wanted.top))
            except (MissingDependencyError, InvalidInputError):
                # The problem is the engine's, and so that of all tables.
                raise
            except LedgerError as error:
                problems[str(table.identifier)] = error
            report_progress(number, len(tables))
    for name, problem in problems.items():
        screen.notice(f"{name} is left out: {problem.message}")

    def text(to: Screen) -> None:
        if not documents and not problems:
            to.line("there is no table yet")
        print_many(to, documents)

    document: dict[str, Any] = {"tables": documents}
    if problems:
        document["problems"] = {name: each.message for name, each in problems.items()}
    screen.result(document, text)
    for problem in problems.values():
        raise problem


def _open_tables(lake: Ledger, names: list[str], problems: dict[str, LedgerError]) -> list[Table]:
    """Return the tables of some names; add the error of one that cannot be opened to problems."""
    found = []
    for name in names:
        try:
            found.append(lake.table(name))
        except LedgerError as error:
            problems[name] = error
    return found


def _refresh_with_spark(tables: list[Table], engines: Engines, screen: Screen) -> set[str]:
    """Return the names of the tables that Spark refreshed, if it is faster for all of them.

    Failed tables are retried afterwards, which raises the error.
    """
    session = engines.session_for(tables)
    if session is None:
        return set()
    with screen.progress("counting") as report_progress:
        found = refresh_all(tables, spark=session, on_progress=report_progress)
    return {each.table for each in found if not each.problem}


def _verify_or_rebuild(tables: list[Table], screen: Screen, *, rebuild: bool) -> None:
    check = statistics_files.rebuild if rebuild else statistics_files.verify
    found: dict[str, Difference] = {}
    for table in tables:
        found[str(table.identifier)] = check(handle_of(table).log)
    documents = [_difference_json(name, each) for name, each in found.items()]

    def text(to: Screen) -> None:
        if not found:
            to.line("there is no table yet")
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


def _source_time_of_version(table: Table, version: int) -> int:
    """Return the time of a version at its source, Unix milliseconds."""
    return effective_millis(handle_of(table).log.commit_at(version), table.state.corrections)
