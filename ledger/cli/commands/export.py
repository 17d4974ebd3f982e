"""Commands that copy ledgers and tables: `export`, `promote`, `replay`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any, Final

from attrs import frozen
from cyclopts import Group, Parameter

from ledger.cli.commands.log import rows
from ledger.cli.exits import UsageError
from ledger.cli.options import InstantFlags, LedgerFlags, TableName, tables_of
from ledger.cli.output import Screen, progress_notices
from ledger.cli.phrases import plain
from ledger.model.names import Identifier
from ledger.model.types import whole_number
from ledger.relocation.exporting import export as export_ledger
from ledger.relocation.replaying import Replay, Step

_REPLAYING: Final = "replaying {}: {:,} of {:,} commits"


def export(
    *names: Annotated[
        str, Parameter(help="DATABASE.TABLE; none: the whole ledger.", completer=tables_of)
    ],
    version: Annotated[
        int | None, Parameter(help="Of one table: no commit after this version.")
    ] = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Write a ledger to stdout as lines of JSON: its commits byte for byte, and what they name.

    Others may go on writing meanwhile: the catalog is read first, then each table as far as it
    reaches. Tables that were dropped are there, too. Data files are not, and neither is what can be
    made again from the log: caches and projections.

    `lakeledger import ledger` brings the lines back.

    Example:
        lakeledger export > backup.jsonl

        lakeledger export shop.orders shop.items | zstd > two.jsonl.zst
    """
    if sys.stdout.isatty():
        raise UsageError("this would fill the screen: lakeledger export > FILE")
    lake = place.open()
    wanted = [Identifier.parse(each) for each in names]
    out = sys.stdout.buffer
    report = progress_notices(place.screen, "exporting {}: {:,} of {:,} commits")
    done = export_ledger(lake.setting, out, wanted, version=version, told=report)
    out.flush()
    place.screen.notice(
        f"exported {done.commits:,} commits of {len(done.streams):,} logs, and "
        f"{done.files:,} files that they name"
    )


def promote(
    table: Annotated[str, Parameter(help="DATABASE.TABLE, which was imported.")],
    /,
    *,
    source: Annotated[
        str | None,
        Parameter(help="Where its source is, if it is found otherwise than when it was imported."),
    ] = None,
    dry_run: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Only say what would be done."),
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Own a table that others owned until now, and that the ledger followed.

    Stop its writers first. What is new at the source is taken over, then the ledger owns the
    table: it takes commits, lists its older files itself, and follows its source no more. Where the
    source is a table of one of PyIceberg's SQL catalogs, the catalog leads to the ledger's files
    from then on. A Delta log gets one more version, after which engines refuse to write there, and
    in a Paimon table the next snapshot's place is taken. What is left to do is printed. Nothing
    else is written at the source.

    Asked again, it ends what was interrupted, and leads the catalog on to the newest version.

    Example:
        lakeledger promote shop.orders --dry-run

        lakeledger promote shop.orders
    """
    lake, screen = place.open(), place.screen
    with screen.progress("promoting") as progress:
        if dry_run:
            done = lake.plan_promotion(table, source=source)
        else:
            done = lake.promote(table, source=source, on_progress=progress)
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
        screen.line(f"{done.identifier} is the ledger's own since it was promoted")
    elif done.version is None:
        screen.line(
            f"the ledger would own {done.identifier}, after {done.transactions:,} transactions "
            f"more from {done.source}; it has {done.files:,} live files now"
        )
    else:
        screen.line(
            f"the ledger owns {done.identifier} since version {done.version}, with "
            f"{done.files:,} live files; it follows {done.source} no more"
        )
    if done.catalog:
        led = "would lead" if done.version is None else "leads"
        screen.line(f"{done.catalog} {led} to the ledger's files")
    for each in done.instructions:
        screen.line(f"left to do: {each}")


_INTO = Group("Where to (at most one; none: each step is shown)", sort_key=10)


@Parameter(name="*", group=_INTO)
@frozen
class Into:
    """Where a replay goes."""

    into: Annotated[
        tuple[str, str] | None,
        Parameter(help="FORMAT FOLDER: its files as of then, which engines open."),
    ] = None
    into_ledger: Annotated[
        str | None, Parameter(help="A new ledger that holds the table up to then, as a copy.")
    ] = None
    lines: Annotated[
        bool, Parameter(negative="", help="Lines that `import ledger` takes, on stdout.")
    ] = False


def replay(
    name: TableName,
    /,
    *,
    to: Annotated[
        str | None,
        Parameter(help="The last commit: a version, or what --at takes; none: the newest."),
    ] = None,
    first: Annotated[int, Parameter(help="The first version that is shown.")] = 0,
    into: Into = Into(),
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Replay a table's commits up to any version: shown, as lines, a ledger, or a format's files.

    Without a place to go to, each step is shown: who, when, why, and what it made of the table;
    with --output jsonl it is a line with its events and what differs.

    Example:
        lakeledger replay shop.flights --to 1

        lakeledger replay shop.flights --to 1 --into iceberg ./as-of-1

        lakeledger replay shop.flights --to -1 --into-ledger ./earlier
    """
    if (into.into is not None) + (into.into_ledger is not None) + into.lines > 1:
        raise UsageError("give one of --into, --into-ledger and --lines")
    table, screen = place.table(name), place.screen
    until = None if to is None else _when(to).of(table)
    found = table.replay(first=first, until=until)
    if into.into is not None:
        kind, folder = into.into
        with screen.progress("replaying") as progress:
            where = found.into_files(kind, folder, on_progress=progress)
        facts: dict[str, Any] = {"format": kind, "folder": where}
        _say(screen, name, found, facts, f"{kind} files in {where}")
    elif into.into_ledger is not None:
        url = into.into_ledger
        report = progress_notices(screen, _REPLAYING)
        done = found.into_ledger(url, place.storage_options(), told=report)
        facts = {"url": url, "ledgerId": done.ledger_id, "commitsWritten": done.written}
        _say(screen, name, found, facts, f"a ledger of its own in {url}")
    elif into.lines:
        if sys.stdout.isatty():
            raise UsageError("this would fill the screen: lakeledger replay ... --lines > FILE")
        found.into_lines(sys.stdout.buffer, told=progress_notices(screen, _REPLAYING))
        sys.stdout.buffer.flush()
    else:
        screen.results("steps", map(_replay_document, found), lambda to: _show(to, found))


def _when(text: str) -> InstantFlags:
    """Return the instant that a text names; a number alone is a version."""
    number = whole_number(text)
    return InstantFlags(at=text) if number is None else InstantFlags(version=number)


def _say(screen: Screen, name: str, found: Replay, facts: dict[str, Any], what: str) -> None:
    document = {"table": name, "version": found.last, **facts}
    said = f"{name} at version {found.last}, as {what}"
    screen.result(document, lambda to: to.line(said))


def _replay_document(step: Step) -> dict[str, Any]:
    document: dict[str, Any] = plain(step.commit)
    document["differences"] = [
        {"what": what, "before": before, "after": after}
        for what, before, after in _differences(step)
    ]
    return document


def _differences(step: Step) -> Iterator[tuple[str, str | None, str | None]]:
    diff = step.diff
    for each in () if diff is None else diff.rows:
        yield each.what, each.before, each.after


def _show(screen: Screen, found: Replay) -> None:
    for step in found:
        for version, at, author, message, said in rows([step.commit]):
            head = "  ".join(str(each) for each in (version, at, author, message) if each)
            if head:
                screen.line(head)
            screen.line(f"  {said}")
        screen.table(("what", "before", "after"), list(_differences(step)))
