"""`lakeledger replay`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

from attrs import frozen
from cyclopts import Group, Parameter

from ledger.cli.commands.keep.export import telling
from ledger.cli.commands.look.log import rows
from ledger.cli.exits import UsageError
from ledger.cli.options import InstantFlags, LedgerFlags, TableName
from ledger.cli.phrases import plain
from ledger.cli.screen import Screen
from ledger.model.types.numbers import whole_number
from ledger.moving.replaying import Replay, Step

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
        with telling(screen, "replaying") as told:
            done = found.into_ledger(url, place.storage_options(), told=told)
        facts = {"url": url, "ledgerId": done.ledger_id, "commitsWritten": done.written}
        _say(screen, name, found, facts, f"a ledger of its own in {url}")
    elif into.lines:
        if sys.stdout.isatty():
            raise UsageError("this would fill the screen: lakeledger replay ... --lines > FILE")
        with telling(screen, "replaying") as told:
            found.into_lines(sys.stdout.buffer, told=told)
        sys.stdout.buffer.flush()
    else:
        screen.results("steps", map(_document, found), lambda to: _show(to, found))


def _when(text: str) -> InstantFlags:
    """Return the instant that a text names; a number alone is a version."""
    number = whole_number(text)
    return InstantFlags(at=text) if number is None else InstantFlags(version=number)


def _say(screen: Screen, name: str, found: Replay, facts: dict[str, Any], what: str) -> None:
    document = {"table": name, "version": found.last, **facts}
    said = f"{name} at version {found.last}, as {what}"
    screen.result(document, lambda to: to.line(said))


def _document(step: Step) -> dict[str, Any]:
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
        for version, time, author, message, said in rows([step.commit]):
            head = "  ".join(str(each) for each in (version, time, author, message) if each)
            if head:
                screen.line(head)
            screen.line(f"  {said}")
        screen.table(("what", "before", "after"), list(_differences(step)))
