"""Commands about a ledger as a whole: `init`, `doctor`, `move`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from shlex import quote
from typing import Annotated, Any

from attrs import evolve
from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags
from ledger.cli.output import Screen
from ledger.cli.phrases import again
from ledger.decide.table_options import idle_marks
from ledger.following.files import Freshness
from ledger.formats import part
from ledger.history.verifying.subject import Finding, Subject
from ledger.history.verifying.surroundings import ahead as ahead_of
from ledger.ledger import Ledger
from ledger.log.clock import check_clock, is_far, millis_ahead
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import Patience, fresh_id, now_millis
from ledger.log.stream_log import StreamLog
from ledger.model.errors import LedgerError, StoreError
from ledger.opening.context import TableSetting
from ledger.opening.ledger_file import ROOT_KEY, copied_from, id_of
from ledger.relocation.moving import NEXT, SAID, Findings, copied_version
from ledger.state.catalog import TableEntry
from ledger.stores import Store, open_store
from ledger.stores.factory import examine
from ledger.stores.wrappers import trusting
from ledger.table import Table

_Flag = Parameter(negative="", show_default=False)


def move(
    *,
    alias: Annotated[
        bool,
        _Flag,
        Parameter(help="It was not moved: this is another mount or URL of the same storage."),
    ] = False,
    copy: Annotated[
        bool,
        _Flag,
        Parameter(help="It was not moved: this is a copy, and gets an identity of its own."),
    ] = False,
    rewrite: Annotated[
        bool, _Flag, Parameter(help="Write position deletes anew that name the old place.")
    ] = False,
    dry_run: Annotated[
        bool, _Flag, Parameter(help="Only say what is known, and what is tied to the old place.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Say that the ledger was moved to where it is now: stop all writers of the old place first.

    A ledger knows where it is. Found elsewhere, tables that nothing ties to the old place are
    written as ever; others are read, and take commits once it is said what happened. What names
    files by whole URLs ties: position deletes, which are refused by name or written anew with
    --rewrite, and projected files, which are made anew here. `lakeledger doctor` says which of the
    three it was, as far as can be known.

    With --alias files go on being named by the place that was recorded. With --copy tables outside
    of the ledger's folder stay the original's, and leave the copy.

    Run again, it completes what an interruption left: `lakeledger verify` says whether it did.

    Example:
        lakeledger move --dry-run
    """
    if alias and copy:
        raise UsageError("--alias and --copy say different things; give one of them")
    if rewrite and alias:
        raise UsageError("an alias leaves everything as it is; leave --rewrite out")
    lake = place.open()
    findings = lake.whereabouts()
    document = _document(findings, dry_run=dry_run)
    if dry_run:
        place.screen.result(document, lambda to: _print(to, findings))
        return
    document |= _tell(lake, writing, alias=alias, copy=copy, rewrite=rewrite)
    document["ledgerId"] = lake.ledger_id
    made, problems = ([], {}) if alias else _projected(lake)
    document["projected"] = made
    document["problems"] = problems
    place.screen.result(document, lambda to: _print_done(to, lake, findings, document))
    if problems:
        said = "; ".join(f"{name}: {error}" for name, error in problems.items())
        raise StoreError(
            f"the place of the ledger is recorded, but {len(problems)} of its projections lead to "
            f"the old place still: {said}. Complete the move with: {NEXT['here']}"
        )


def _tell(
    lake: Ledger, writing: CommitFlags, *, alias: bool, copy: bool, rewrite: bool
) -> dict[str, Any]:
    """Record what happened; return the catalog's version that says so, and if it did before."""
    options = writing.options()
    if alias:
        done = lake.record_alias(**options)
    elif copy:
        version = copied_version(lake)
        if version is not None:
            return {"version": version, "repeated": True}
        done = lake.record_copy(rewrites=rewrite, **options)
    else:
        done = lake.record_move(rewrites=rewrite, **options)
    return {"version": done.version, "repeated": done.repeated}


def _projected(lake: Ledger) -> tuple[list[str], dict[str, str]]:
    """Render the projections that lead elsewhere where the ledger is now.

    They are derived from the store after the place was recorded, so that a retry finds what an
    interrupted move has left.
    """
    made: list[str] = []
    problems: dict[str, str] = {}
    for each in lake.whereabouts().ties:
        name = f"{each.table}, {each.format}"
        try:
            part(each.format, "kept").settle(lake.table(each.table))
            made.append(name)
        except (LedgerError, OSError) as error:
            problems[name] = str(getattr(error, "message", error))
    return made, problems


def document_of(findings: Findings) -> dict[str, Any]:
    """Return what is known of a ledger's place, as plain JSON."""
    return {
        "here": findings.here,
        "recorded": findings.recorded or None,
        "verdict": findings.verdict,
        "tied": [
            {"table": each.table, "kind": each.kind, "what": each.what, "place": each.place}
            for each in findings.ties
        ],
        "next": findings.next_step or None,
    }


def _document(findings: Findings, *, dry_run: bool) -> dict[str, Any]:
    return {"dryRun": dry_run, **document_of(findings)}


def said(findings: Findings) -> dict[str, str]:
    """Return what is known of a ledger's place, for people."""
    ties = {f"tied {number}": str(each) for number, each in enumerate(findings.ties, 1)}
    if not findings.is_elsewhere:
        left = {"what happened": "a move to this place is not complete"}
        return left | ties | {"next": findings.next_step} if ties else {}
    facts = {
        "said to be at": findings.recorded,
        "what happened": SAID[findings.verdict],
        **ties,
    }
    if not findings.ties:
        return facts | {"next": "nothing: no table is tied to the other place"}
    return facts | {"next": findings.next_step}


def _print(screen: Screen, findings: Findings) -> None:
    if not findings.is_elsewhere and not findings.ties:
        screen.line(f"{findings.here}: {SAID[findings.verdict]}; there is nothing to do")
        return
    screen.facts({"url": findings.here, **said(findings)})


def _print_done(screen: Screen, lake: Ledger, findings: Findings, document: dict[str, Any]) -> None:
    was = f"; it was at {findings.recorded}" if findings.is_elsewhere else ""
    before = again(repeated=document["repeated"])
    screen.line(f"ledger {document['ledgerId']} is at {lake.url} now{was}{before}")
    for each in document["projected"]:
        screen.line(f"made the files of {each}")


_ERASABLE = Parameter(
    negative="",
    show_default=False,
    help="Keep authors, messages and properties so that they can be erased.",
)


def init(
    url: Annotated[str | None, Parameter(help="The ledger's root; or give --ledger.")] = None,
    /,
    *,
    erasable: Annotated[bool, _ERASABLE] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Begin a ledger in an empty folder; where there is one already, nothing changes.

    Example:
        lakeledger init lake
    """
    # A root that the environment gives is for when nothing else is said.
    if url is not None and place.ledger not in {None, url, os.environ.get("LAKELEDGER_URL")}:
        raise UsageError(f"two ledgers are named, {url} and {place.ledger}; name one")
    chosen = evolve(place, ledger=url or place.ledger)
    lake = chosen.begun_or_not()
    known = lake.is_begun
    if known and erasable and not lake.is_erasable:
        raise UsageError(
            f"{lake.url} is a ledger already, which keeps authors and messages in its lines; only "
            "a new ledger can be made erasable: lakeledger init --erasable at another place"
        )
    document = {
        "url": lake.url,
        "ledgerId": lake.init(erasable=erasable),
        "created": not known,
        "erasable": lake.is_erasable,
    }
    now = "is a ledger already" if known else "is a ledger now"

    def text(screen: Screen) -> None:
        screen.line(f"{lake.url} {now} ({document['ledgerId']})")
        if not known:
            where = "" if url is None else f" --ledger {quote(url)}"
            screen.line(f"next, a database: lakeledger create NAME{where}")

    chosen.screen.result(document, text)


def doctor(
    url: Annotated[str | None, Parameter(help="The place to look at; or give --ledger.")] = None,
    /,
    *,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Try out whether a place can hold a ledger: writes a key of its own, and removes it again.

    Of a ledger that is there, it looks whether a clock that was ahead has left its times wrong, how
    far behind the formats are that follow its tables, whose copy it is, whether it was moved,
    copied or mounted elsewhere since it was said where it is, and which columns its tables call
    personal that there are not, or that nothing of could be erased.

    Example:
        lakeledger doctor lake
    """
    store, place = _named(url, place)
    done = _examined(store)
    ahead = millis_ahead(store, now_millis, Patience())
    failed = [str(each["check"]) for each in done if not each["holds"]]
    late: list[tuple[str, Finding]] = []
    unread: dict[str, str] = {}
    if not failed and not is_far(ahead):
        late += _ahead(store, place, unread)
    healthy = not failed and not is_far(ahead) and not late
    of_ledger = _of_ledger(store, place) if not failed else {}
    whereabouts = _whereabouts(store, place) if of_ledger else None
    stale = _stale(store, place) if of_ledger else []
    marks = dict(_idle_marks(store, place)) if of_ledger else {}
    place.screen.result(
        {
            "url": store.url,
            "healthy": healthy,
            "checks": done,
            **of_ledger,
            **({} if whereabouts is None else {"place": document_of(whereabouts)}),
            "clock_millis_ahead": ahead,
            "following": [{"table": name, **each.document()} for name, each in stale],
            "idleMarks": [{"table": name, "what": each} for name, each in marks.items()],
            "streams_ahead": [
                {"stream": name, "version": each.version, "what": each.what} for name, each in late
            ],
            "streams_unread": [{"stream": name, "what": why} for name, why in unread.items()],
        },
        lambda screen: screen.facts(
            {"url": store.url}
            | _said_of(of_ledger)
            | ({} if whereabouts is None else said(whereabouts))
            | {
                str(each["check"]): f"{'yes' if each['holds'] else 'NO'}, {each['millis']} ms"
                for each in done
            }
            | ({} if ahead is None else {"this machine's clock": _distance(ahead)})
            | {f"the times of {name}": f"NO, {each.what}" for name, each in late}
            | {
                f"the times of {name}": f"cannot be read ({why}); see lakeledger verify"
                for name, why in unread.items()
            }
            | {f"the {each.format} files of {name}": f"at {each}" for name, each in stale}
            | {f"the personal columns of {name}": f"NO, {each}" for name, each in marks.items()}
        ),
    )
    if failed:
        raise StoreError(
            f"{store.url} cannot hold a ledger: not everything holds that one needs "
            f"({'; '.join(failed)}). Use another place"
        )
    check_clock(store, now_millis(), ahead)
    for name, each in late:
        raise StoreError(f"{name} version {each.version}: {each.what}; {each.advice}")


def _examined(store: Store) -> list[dict[str, object]]:
    """Return what a store was found to do, in the order of the checks."""
    done: list[dict[str, object]] = []
    start = time.perf_counter()
    try:
        for check in examine(store, f"{STREAM_FOLDER}/doctor-{fresh_id()}"):
            millis = round((time.perf_counter() - start) * 1000, 1)
            done.append({"check": check.claim, "holds": check.holds, "millis": millis})
            start = time.perf_counter()
    except OSError as error:
        raise StoreError(f"{error} ({len(done)} checks held before)") from error
    return done


def _named(url: str | None, place: LedgerFlags) -> tuple[Store, LedgerFlags]:
    chosen = evolve(place, ledger=url or place.ledger)
    return open_store(chosen.url(), chosen.storage_options()), chosen


def _setting(store: Store, place: LedgerFlags) -> TableSetting:
    """Return what handles of the ledger in a store share."""
    trusted = trusting(store, place.trust)
    return TableSetting(trusted, place.storage_options(), author="", trust=place.trust)


def _ahead(
    store: Store, place: LedgerFlags, unread: dict[str, str]
) -> Iterator[tuple[str, Finding]]:
    """Yield the streams of the ledger there, if there is one, whose times are ahead.

    Those that cannot be read go to `unread`: what is wrong with them is verify's to tell.
    """
    setting = _setting(store, place)
    lake = Ledger(setting)
    streams: list[TableEntry | None] = [None]
    with suppress(LedgerError, OSError):
        streams += lake.state.tables.values()
    for entry in streams:
        name = "catalog" if entry is None else str(entry.identifier)
        try:
            log: StreamLog[Any, Any] = (
                lake.log if entry is None else Table(entry.identifier, entry.path, setting).log
            )
            state = log.refresh()
            subject = Subject(name, log, has_files=entry is not None)
            found = None if state is None else ahead_of(subject, state, now_millis())
        except (LedgerError, OSError) as error:
            unread[name] = str(getattr(error, "message", error))
            continue
        if found is not None:
            yield name, found


def _of_ledger(store: Store, place: LedgerFlags) -> dict[str, str]:
    """Return which ledger is there, and whose copy it is; nothing where there is none."""
    body = store.read(ROOT_KEY)
    if body is None:
        return {}
    try:
        original = copied_from(body)
        found = {"ledgerId": id_of(body)} | ({} if original is None else {"copiedFrom": original})
    except LedgerError:
        return {}
    # What cannot be read there is verify's to tell.
    with suppress(LedgerError, OSError):
        state = Ledger(_setting(store, place)).state
        if state.ledger_id:
            found = {"ledgerId": state.ledger_id, "copiedFrom": state.copied_from}
    return found


def _whereabouts(store: Store, place: LedgerFlags) -> Findings | None:
    """Return what is known of the ledger's place; what cannot be read there is verify's to tell."""
    try:
        return Ledger(_setting(store, place)).whereabouts()
    except (LedgerError, OSError):
        return None


def _said_of(of_ledger: dict[str, str]) -> dict[str, str]:
    copied = of_ledger.get("copiedFrom")
    said = {"ledger": of_ledger["ledgerId"]} if of_ledger else {}
    return said if copied is None else {**said, "a copy of": copied}


def _stale(store: Store, place: LedgerFlags) -> list[tuple[str, Freshness]]:
    """Return how far behind followed formats are, by table; what cannot be read is verify's."""
    found: list[tuple[str, Freshness]] = []
    with suppress(LedgerError):
        setting = _setting(store, place)
        for entry in Ledger(setting).state.tables.values():
            with suppress(LedgerError, OSError):
                table = Table(entry.identifier, entry.path, setting)
                found += [(str(entry.identifier), each) for each in table.freshness()]
    return found


def _idle_marks(store: Store, place: LedgerFlags) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the marks of tables, whose sources may have given them."""
    with suppress(LedgerError):
        setting = _setting(store, place)
        for entry in Ledger(setting).state.tables.values():
            with suppress(LedgerError, OSError):
                state = Table(entry.identifier, entry.path, setting).state
                said = idle_marks(state.schema, is_erasable=state.keeps_outside)
                if said:
                    yield str(entry.identifier), said


def _distance(ahead_millis: int) -> str:
    seconds = round(ahead_millis / 1000)
    if not seconds:
        return "as the store's, to the second"
    return f"{abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'} the store's"
