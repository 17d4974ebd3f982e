"""Commands that copy or take ownership of ledgers and tables: `export`, `promote`, `replay`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any, Final

from attrs import frozen
from cyclopts import Group, Parameter

from ledger.cli.commands.log import rows
from ledger.cli.exits import UsageError
from ledger.cli.options import AuthorFlags, InstantFlags, LedgerFlags, TableName, tables_of
from ledger.cli.output import Screen, progress_reports
from ledger.cli.phrases import plain
from ledger.model.messages import counted
from ledger.model.names import Identifier
from ledger.relocation.exporting import export as export_ledger
from ledger.relocation.replaying import Replay, Step
from ledger.table_handle import handle_of

_REPLAYING: Final = "replaying {}: {:,} of {:,} commits"


def export(
    *names: Annotated[
        str, Parameter(help="DATABASE.TABLE; default: the whole ledger.", completer=tables_of)
    ],
    version: Annotated[
        int | None, Parameter(name="--to", help="Last version to export; for a single table.")
    ] = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Export a ledger to stdout as JSON lines: its commits byte for byte, and their files.

    Safe with concurrent writers: the catalog is read first, then each table up to its newest
    version. Dropped tables are included. Data files are not, nor are caches and projections, which
    can be rebuilt from the log.

    `lakeledger import ledger` reads the lines.

    Example:
        lakeledger export > backup.jsonl

        lakeledger export shop.orders shop.items | zstd > two.jsonl.zst
    """
    if sys.stdout.isatty():
        raise UsageError("stdout is a terminal; redirect it: lakeledger export > FILE")
    lake = place.open()
    wanted = [Identifier.parse(each) for each in names]
    out = sys.stdout.buffer
    report = progress_reports(place.screen, "exporting {}: {:,} of {:,} commits")
    done = export_ledger(handle_of(lake).setting, out, wanted, version=version, report=report)
    out.flush()
    place.screen.notice(
        f"exported {done.commits:,} commits of {len(done.streams):,} logs, and "
        f"{done.files:,} files that they reference"
    )


def promote(
    table: Annotated[str, Parameter(help="DATABASE.TABLE of an imported table.")],
    /,
    *,
    source: Annotated[
        str | None,
        Parameter(help="Location of its source, if it differs from the one of the import."),
    ] = None,
    dry_run: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Only show the plan."),
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
    commit: AuthorFlags = AuthorFlags(),  # noqa: B008 - frozen
) -> None:
    """Promote a mirrored table: the ledger becomes its owner.

    Stop its writers first. The command imports the latest changes of the source. From then on the
    table accepts commits through the ledger and no longer follows its source. If the source is in a
    SQL catalog of PyIceberg, the catalog is pointed to the ledger's metadata. A Delta log gets one
    more version, which makes engines reject writes there; in a Paimon table the id of the next
    snapshot is taken. Nothing else is written at the source. Remaining manual steps are printed.

    Run again after an interruption, it completes the promotion and updates the catalog pointer.

    Example:
        lakeledger promote shop.orders --dry-run

        lakeledger promote shop.orders
    """
    lake, screen = place.open(), place.screen
    with screen.progress("promoting") as progress:
        if dry_run:
            done = lake.plan_promotion(table, source=source)
        else:
            done = lake.promote(table, source=source, on_progress=progress, **commit.options())
    screen.result(_promotion_document(done), lambda to: _print_promotion(to, done))


def _promotion_document(done: Any) -> dict[str, Any]:
    return {
        "table": str(done.identifier),
        "source": done.source,
        "dryRun": done.version is None,
        "isNew": done.is_new,
        "transactions": done.transactions,
        "files": done.files,
        "catalog": done.catalog or None,
        "instructions": list(done.instructions),
        "version": done.version,
    }


def _print_promotion(screen: Screen, done: Any) -> None:
    if not done.is_new:
        screen.line(f"{done.identifier} was promoted before; the ledger owns it")
    elif done.version is None:
        screen.line(
            f"the ledger would own {done.identifier} after importing "
            f"{counted(done.transactions, 'more transaction')} from {done.source}; it has "
            f"{counted(done.files, 'live file')} now"
        )
    else:
        screen.line(
            f"the ledger owns {done.identifier} since version {done.version}, with "
            f"{counted(done.files, 'live file')}; it no longer follows {done.source}"
        )
    if done.catalog:
        led = "would point" if done.version is None else "points"
        screen.line(f"{done.catalog} {led} to the ledger's metadata")
    for each in done.instructions:
        screen.line(f"remaining step: {each}")


_INTO = Group("Target (at most one; default: print each commit)", sort_key=10)


@Parameter(name="*", group=_INTO)
@frozen
class ReplayTarget:
    """Target of a replay."""

    into: Annotated[
        tuple[str, str] | None,
        Parameter(help="FORMAT FOLDER: files of a format at that version, for engines to open."),
    ] = None
    into_ledger: Annotated[
        str | None,
        Parameter(help="Root of a new ledger with a copy of the table up to that version."),
    ] = None
    lines: Annotated[
        bool, Parameter(negative="", help="Print an export for `import ledger` to stdout.")
    ] = False


def replay(
    name: TableName,
    /,
    *,
    to: Annotated[
        str | None,
        Parameter(help="Last commit: a version, or a value of --at; default: the newest."),
    ] = None,
    first: Annotated[int, Parameter(help="First version to print.")] = 0,
    into: ReplayTarget = ReplayTarget(),
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Replay a table up to a version: print its commits, or write an export, a ledger or files.

    Without a target, each commit is printed with author, time, message and its effect on the table;
    with --output jsonl it is one line with its events and differences.

    Example:
        lakeledger replay shop.flights --to 1

        lakeledger replay shop.flights --to 1 --into iceberg ./as-of-1

        lakeledger replay shop.flights --to -1 --into-ledger ./earlier
    """
    if (into.into is not None) + (into.into_ledger is not None) + into.lines > 1:
        raise UsageError("give one of --into, --into-ledger and --lines")
    table, screen = place.table(name), place.screen
    until = None if to is None else InstantFlags(at=to).of(table)
    found = table.replay(first=first, until=until)
    if into.into is not None:
        kind, folder = into.into
        with screen.progress("replaying") as progress:
            where = found.into_files(kind, folder, on_progress=progress)
        facts: dict[str, Any] = {"format": kind, "folder": where}
        _print_replay_target(screen, name, found, facts, f"{kind} files in {where}")
    elif into.into_ledger is not None:
        url = into.into_ledger
        report = progress_reports(screen, _REPLAYING)
        done = found.into_ledger(url, place.storage_options(), report=report)
        facts = {
            "url": url,
            "ledgerId": done.ledger_id,
            "commitsWritten": done.written,
            "notCarried": list(done.absent),
        }
        _print_replay_target(screen, name, found, facts, f"a ledger of its own in {url}")
        if done.absent:
            screen.notice(
                f"its catalog lists tables without logs: {', '.join(done.absent)}; bring each: "
                f"lakeledger replay TABLE --into-ledger {url}"
            )
    elif into.lines:
        if sys.stdout.isatty():
            raise UsageError(
                "stdout is a terminal; redirect it: lakeledger replay ... --lines > FILE"
            )
        found.into_lines(sys.stdout.buffer, report=progress_reports(screen, _REPLAYING))
        sys.stdout.buffer.flush()
    else:
        screen.results("steps", map(_replay_document, found), lambda to: _print_replay(to, found))


def _print_replay_target(
    screen: Screen, name: str, found: Replay, facts: dict[str, Any], what: str
) -> None:
    document = {"table": name, "version": found.last, **facts}
    said = f"{name} at version {found.last}, as {what}"
    screen.result(document, lambda to: to.line(said))


def _replay_document(step: Step) -> dict[str, Any]:
    document: dict[str, Any] = plain(step.commit)
    document["differences"] = [
        {"what": what, "before": before, "after": after}
        for what, before, after in _difference_rows(step)
    ]
    return document


def _difference_rows(step: Step) -> Iterator[tuple[str, str | None, str | None]]:
    diff = step.diff
    for each in () if diff is None else diff.rows:
        yield each.what, each.before, each.after


def _print_replay(screen: Screen, found: Replay) -> None:
    for step in found:
        for version, at, author, message, said in rows([step.commit]):
            head = "  ".join(str(each) for each in (version, at, author, message) if each)
            if head:
                screen.line(head)
            screen.line(f"  {said}")
        screen.table(("what", "before", "after"), list(_difference_rows(step)))
