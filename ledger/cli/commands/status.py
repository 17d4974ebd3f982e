"""Command `status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any, Final, Literal, TypeAlias

from attrs import field, frozen
from cyclopts import Parameter

from ledger.audit.entries import Entry
from ledger.cli.exits import UsageError
from ledger.cli.options import LedgerFlags, check_one_or_more, tables_of
from ledger.cli.output import Cell, Screen
from ledger.cli.phrases import phrases, when
from ledger.decide.format_rules import declared_rules
from ledger.following.files import Freshness, format_freshness
from ledger.formats import having
from ledger.history.verifying.subject import Subject
from ledger.history.verifying.surroundings import ahead
from ledger.ledger import Ledger
from ledger.ledger_handle import LedgerHandle
from ledger.log.clock import is_clock_far_off, millis_ahead
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.request import RetryPolicy, now_millis
from ledger.log.stream_log import StreamLog
from ledger.model.errors import LedgerError
from ledger.model.messages import moment
from ledger.model.names import Identifier
from ledger.relocation.moving import NEXT, SAID, Findings, locate, unfinished_projections
from ledger.state.catalog import TableEntry
from ledger.state.declared_formats import following_format_names
from ledger.state.table import TableState
from ledger.stores.concurrency import answers
from ledger.table_handle import TableHandle, handle_of

NEWEST: Final = 5
"""Number of transactions that are shown."""

_MOST_PHRASES: Final = 3

_COLUMNS = ("table", "version", "time (UTC)", "author", "message", "what happened")

Kind: TypeAlias = Literal[
    "location", "move", "clock", "times", "projection", "checkpoint", "drop", "undrop", "damage"
]


@frozen
class Attention:
    """Something that needs attention.

    Attributes:
        kind: The kind of problem.
        subject: The ledger, the catalog, or a table's full name.
        what: The problem, as a phrase.
        command: The command that resolves it, or shows how.
    """

    kind: Kind
    subject: str
    what: str
    command: str

    def document(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "what": self.what,
            "command": self.command,
        }


@frozen
class _TableStatus:
    """Status of one table.

    Attributes:
        attention: What needs attention.
        owner: The owner in words; empty if it is unknown.
        version: The newest version; -1 if it is unknown.
    """

    attention: Sequence[Attention]
    owner: str = ""
    version: int = -1


@frozen
class _Status:
    """Status of a ledger or of one table.

    Attributes:
        url: Root of the ledger.
        ledger_id: Id of the ledger.
        version: Version of the catalog, or of the table.
        total: Number of tables that exist.
        tables: Status of each table that was looked at.
        clock_millis: Milliseconds that this machine's clock is ahead of the store's; None: unknown.
        location: Location of the ledger compared with the recorded one.
        newest: Newest transactions, newest first.
        attention: What needs attention beside the tables.
    """

    url: str
    ledger_id: str | None
    version: int
    total: int
    tables: Sequence[_TableStatus]
    clock_millis: int | None
    location: Findings
    newest: Sequence[Entry]
    attention: Sequence[Attention] = field(factory=tuple)

    @property
    def owners(self) -> Mapping[str, int]:
        """Number of tables by owner."""
        return dict(sorted(Counter(each.owner for each in self.tables if each.owner).items()))

    def all_attention(self) -> list[Attention]:
        """Return everything that needs attention."""
        return [*self.attention, *(line for each in self.tables for line in each.attention)]


def status(
    name: Annotated[
        str | None,
        Parameter(help="DATABASE.TABLE; default: the whole ledger.", completer=tables_of),
    ] = None,
    /,
    *,
    limit: Annotated[
        int,
        Parameter(
            alias="-n",
            validator=check_one_or_more,
            help="Number of tables to look at, those with the newest commits first.",
        ),
    ] = 200,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show what needs attention, each with the command that resolves it.

    These are projections behind their log, unfinished moves and drops, missing checkpoints, clocks
    that differ, commits dated in the future, and tables that cannot be read. Also shows the newest
    commits and the owners of the tables. The exit code is 0 whatever is found; in JSON, attention
    is empty if all is well. `verify` reads everything, `doctor` tests the store.

    Example:
        lakeledger status

        lakeledger status shop.flights --output json
    """
    if name is not None and "." not in name:
        raise UsageError(f"{name!r} is not a full name: write DATABASE.TABLE")
    found = _find_status(place.with_caches().open(), name, limit)
    place.screen.result(_document(found, name), lambda to: _print(to, found, name))


def _find_status(lake: Ledger, name: str | None, limit: int) -> _Status:
    handle = handle_of(lake)
    beside: list[Attention] = []
    location = locate(handle)
    clock = millis_ahead(handle.log.store, now_millis, RetryPolicy())
    beside += _location_attention(location)
    beside += _clock_attention(clock)
    is_clock_right = not is_clock_far_off(clock)
    if name is None:
        beside += _stream_attention("catalog", handle.log, is_clock_right=is_clock_right)
        entries, damage = _tables_by_newest_commit(handle, limit)
        beside += damage
    else:
        entries = [handle.state.table(Identifier.parse(name))]
    is_here = location.verdict == "here"
    tables = answers(
        lambda entry: _table_status(handle, entry, is_clock_right=is_clock_right, is_here=is_here),
        entries,
    )
    newest: list[Entry] = []
    with suppress(LedgerError, OSError):
        # Damage of a table is among what needs attention.
        newest += islice(lake.entries() if name is None else lake.table(name).entries(), NEWEST)
    return _Status(
        lake.url,
        lake.ledger_id,
        handle.state.version if name is None else tables[0].version,
        len(handle.state.tables),
        tables,
        clock,
        location,
        newest,
        beside,
    )


def _tables_by_newest_commit(
    handle: LedgerHandle, limit: int
) -> tuple[list[TableEntry], list[Attention]]:
    """Return some tables, those with the newest commits first, and damage that was found."""
    try:
        heads = sorted(handle.table_heads(), key=lambda each: each.time_millis, reverse=True)
    except (LedgerError, OSError) as error:
        damage = Attention("damage", "ledger", str(error), "lakeledger verify")
        return [*islice(handle.state.tables.values(), limit)], [damage]
    live = (handle.state.table_by_id(each.table.table_id) for each in heads if each.is_live)
    return [*islice((entry for entry in live if entry is not None), limit)], []


def _location_attention(location: Findings) -> Iterator[Attention]:
    if location.is_elsewhere:
        what = f"{SAID[location.verdict]}; the recorded location is {location.recorded}"
        yield Attention("location", "ledger", what, "lakeledger doctor")


def _clock_attention(ahead_millis: int | None) -> Iterator[Attention]:
    if ahead_millis is not None and is_clock_far_off(ahead_millis):
        what = f"{_describe_clock(ahead_millis)}, so that commits are rejected; set it"
        yield Attention("clock", "this machine's clock", what, "lakeledger doctor")


def _table_status(
    handle: LedgerHandle, entry: TableEntry, *, is_clock_right: bool, is_here: bool
) -> _TableStatus:
    name = str(entry.identifier)
    # Opened without completing an interrupted drop or restoration.
    table = TableHandle(entry.identifier, entry.path, handle.setting)
    try:
        state = table.log.refresh()
        if state is None:
            return _TableStatus([_damage(name, "its log is missing")])
        if state.dropped:
            return _TableStatus([_unfinished(entry, state)])
        attention = [*_projection_attention(table, state)]
        attention += _stream_attention(name, table.log, is_clock_right=is_clock_right)
        for each in unfinished_projections(table) if is_here else ():
            attention.append(Attention("move", name, each.what, NEXT["here"]))
        return _TableStatus(attention, str(state.owner), state.version)
    except (LedgerError, OSError) as error:
        return _TableStatus([_damage(name, str(error))])


def _damage(name: str, what: str) -> Attention:
    return Attention("damage", name, f"it cannot be read: {what}", f"lakeledger verify {name}")


def _unfinished(entry: TableEntry, state: TableState) -> Attention:
    name = str(entry.identifier)
    is_restored = state.version == entry.unsealed_version
    kind: Kind = "undrop" if is_restored else "drop"
    what = f"its {kind} was interrupted, and is completed by the next opening of the table"
    return Attention(kind, name, what, f"lakeledger show {name}")


def _projection_attention(table: TableHandle, state: TableState) -> Iterator[Attention]:
    name = str(table.identifier)
    options = state.schema.options
    followed = following_format_names(options)
    declared = declared_rules(options).formats
    for each in dict.fromkeys(
        (*followed, *(other for other in having("kept") if other in declared))
    ):
        fresh = format_freshness(table, each, state.version)
        # A format that never had files need not have any, unless it is followed.
        if not _is_behind(fresh) or (fresh.version < 0 and each not in followed):
            continue
        what = f"its {each} files are at {fresh}"
        command = f"follow {name} --once" if each in followed else f"project {each} {name}"
        yield Attention("projection", name, what, f"lakeledger {command}")


def _is_behind(fresh: Freshness) -> bool:
    return bool(fresh.behind) or fresh.problem is not None


def _stream_attention(
    name: str, log: StreamLog[Any, Any], *, is_clock_right: bool
) -> Iterator[Attention]:
    """Yield what is wrong with a stream's times and its newest checkpoint."""
    state = log.refresh()
    if state is None:
        return
    if is_clock_right:
        found = ahead(Subject(name, log, has_files=name != "catalog"), state, now_millis())
        if found is not None:
            what = f"its newest commit is dated {moment(state.effective_millis)} UTC, in the future"
            yield Attention("times", name, what, f"lakeledger correct-clock {name} --dry-run")
    expected = state.version - state.version % CHECKPOINT_INTERVAL
    if expected and not log.store.exists(log.layout.checkpoint(expected)):
        what = f"the checkpoint of version {expected} is missing, so that it opens slowly"
        repair = "lakeledger verify --repair" if name == "catalog" else ""
        yield Attention("checkpoint", name, what, repair or f"lakeledger verify {name} --repair")


def _describe_clock(ahead_millis: int) -> str:
    seconds = round(ahead_millis / 1000)
    if not seconds:
        return "equal to the store's, to the second"
    return f"{abs(seconds):,} s {'ahead of' if seconds > 0 else 'behind'} the store's"


def _document(found: _Status, name: str | None) -> dict[str, Any]:
    return {
        "url": found.url,
        "ledgerId": found.ledger_id,
        "table": name,
        "version": found.version,
        "tables": {"total": found.total, "lookedAt": len(found.tables)},
        "owners": found.owners,
        "clockMillisAhead": found.clock_millis,
        "location": {
            "recorded": found.location.recorded or None,
            "verdict": found.location.verdict,
        },
        "newest": [
            {
                "table": each.label or None,
                "version": each.version,
                "timeMillis": when(each.commit, each.transaction),
                "author": each.transaction.author,
                "message": each.transaction.message,
                "says": phrases(each.transaction),
            }
            for each in found.newest
        ],
        "attention": [each.document() for each in found.all_attention()],
    }


def _print(screen: Screen, found: _Status, name: str | None) -> None:
    looked, clock = len(found.tables), found.clock_millis
    tables = f"{found.total:,}"
    if name is None and looked < found.total:
        tables += f"; looked at the {looked:,} with the newest commits, see --limit"
    screen.line(name or found.url, style="bold")
    screen.facts(
        {
            "version": found.version,
            "tables": tables if name is None else None,
            "owners": ", ".join(f"{count:,} {owner}" for owner, count in found.owners.items()),
            "clock": None if clock is None else _describe_clock(clock),
        }
    )
    screen.heading("Newest commits")
    screen.table(_COLUMNS, map(_entry_row, found.newest))
    attention = found.all_attention()
    screen.heading("Needs attention" if attention else "Nothing needs attention")
    for each in attention:
        screen.line(f"  {each.subject}: {each.what}: {each.command}")


def _first_of(said: Sequence[str]) -> str:
    more = len(said) - _MOST_PHRASES
    return "; ".join(said[:_MOST_PHRASES]) + (f"; and {more:,} more" if more > 0 else "")


def _entry_row(entry: Entry) -> tuple[Cell, ...]:
    transaction = entry.transaction
    return (
        entry.label or "(catalog)",
        entry.version,
        moment(when(entry.commit, transaction)),
        transaction.author,
        transaction.message,
        _first_of(phrases(transaction)),
    )
