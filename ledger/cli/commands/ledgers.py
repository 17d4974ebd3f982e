"""Commands that work on a whole ledger: `init`, `doctor`, `move`."""

from __future__ import annotations

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
from ledger.decide.table_options import ineffective_marks_reason
from ledger.following.files import Freshness, freshness
from ledger.formats import part
from ledger.history.verifying.subject import Finding, Subject
from ledger.history.verifying.surroundings import ahead as ahead_of
from ledger.ledger import Ledger
from ledger.ledger_handle import LedgerHandle
from ledger.log.clock import check_clock, is_clock_far_off, millis_ahead
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import RetryPolicy, fresh_id, now_millis
from ledger.log.stream_log import StreamLog
from ledger.model.errors import LedgerError, StoreError
from ledger.opening.context import TableSetting
from ledger.opening.ledger_file import ROOT_KEY, copied_from, id_of
from ledger.relocation.moving import NEXT, SAID, Findings, copied_version, found
from ledger.state.catalog import TableEntry
from ledger.stores import Store, open_store
from ledger.stores.factory import check_store
from ledger.stores.wrappers import with_trust
from ledger.table_handle import TableHandle, handle_of

_Flag = Parameter(negative="", show_default=False)


def move(
    *,
    alias: Annotated[
        bool,
        _Flag,
        Parameter(help="Record another mount or URL of the same storage instead of a move."),
    ] = False,
    copy: Annotated[
        bool,
        _Flag,
        Parameter(help="Record a copy instead of a move; the copy gets its own ledger id."),
    ] = False,
    rewrite: Annotated[
        bool, _Flag, Parameter(help="Rewrite position deletes that name the old location.")
    ] = False,
    dry_run: Annotated[
        bool, _Flag, Parameter(help="Only show the recorded location and the files tied to it.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Record that the ledger was moved here; stop all writers of the old location first.

    A ledger records its location. Opened elsewhere, it accepts commits only to tables without files
    tied to the old location; all tables can be read. Files with absolute URLs are tied: position
    deletes, which are rejected or, with --rewrite, rewritten, and projected files, which are
    projected again. `lakeledger doctor` shows whether the ledger was moved, copied or mounted
    elsewhere, as far as that can be determined.

    With --alias, paths keep the recorded location. With --copy, tables outside the ledger's folder
    stay with the original and are removed from the copy.

    Run again after an interruption, it completes the move; check it with `lakeledger verify`.

    Example:
        lakeledger move --dry-run
    """
    if alias and copy:
        raise UsageError("--alias and --copy exclude each other; give one of them")
    if rewrite and alias:
        raise UsageError("--alias changes no files; omit --rewrite")
    lake = place.open()
    findings = lake.inspect_location()
    document = _move_document(findings, dry_run=dry_run)
    if dry_run:
        place.screen.result(document, lambda to: _print_location(to, findings))
        return
    document |= _record_location(lake, writing, alias=alias, copy=copy, rewrite=rewrite)
    document["ledgerId"] = lake.ledger_id
    made, problems = ([], {}) if alias else _project_relocated_files(lake)
    document["projected"] = made
    document["problems"] = problems
    place.screen.result(document, lambda to: _print_move(to, lake, findings, document))
    if problems:
        said = "; ".join(f"{name}: {error}" for name, error in problems.items())
        raise StoreError(
            f"the location of the ledger is recorded, but {len(problems)} of its projections still "
            f"point to the old one: {said}. Complete the move with: {NEXT['here']}"
        )


def _record_location(
    lake: Ledger, writing: CommitFlags, *, alias: bool, copy: bool, rewrite: bool
) -> dict[str, Any]:
    """Record a move, alias or copy; return the catalog's version and if it was recorded before."""
    options = writing.options()
    if alias:
        done = lake.record_alias(**options)
    elif copy:
        version = copied_version(handle_of(lake))
        if version is not None:
            return {"version": version, "repeated": True}
        done = lake.record_copy(rewrites=rewrite, **options)
    else:
        done = lake.record_move(rewrites=rewrite, **options)
    return {"version": done.version, "repeated": done.repeated}


def _project_relocated_files(lake: Ledger) -> tuple[list[str], dict[str, str]]:
    """Project the files again that point to another location than the ledger's.

    They are found on the store after the location was recorded, so that a retry completes an
    interrupted move.
    """
    made: list[str] = []
    problems: dict[str, str] = {}
    for each in lake.inspect_location().ties:
        name = f"{each.table}, {each.format}"
        try:
            part(each.format, "kept").settle(handle_of(lake).table(each.table))
            made.append(name)
        except (LedgerError, OSError) as error:
            problems[name] = str(getattr(error, "message", error))
    return made, problems


def findings_document(findings: Findings) -> dict[str, Any]:
    """Return the findings about a ledger's location as plain JSON."""
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


def _move_document(findings: Findings, *, dry_run: bool) -> dict[str, Any]:
    return {"dryRun": dry_run, **findings_document(findings)}


def said(findings: Findings) -> dict[str, str]:
    """Return the findings about a ledger's location as text facts."""
    ties = {f"tied {number}": str(each) for number, each in enumerate(findings.ties, 1)}
    if not findings.is_elsewhere:
        left = {"what happened": "a move to this location is not complete"}
        return left | ties | {"next": findings.next_step} if ties else {}
    facts = {
        "recorded location": findings.recorded,
        "what happened": SAID[findings.verdict],
        **ties,
    }
    if not findings.ties:
        return facts | {"next": "nothing: no table is tied to the other location"}
    return facts | {"next": findings.next_step}


def _print_location(screen: Screen, findings: Findings) -> None:
    if not findings.is_elsewhere and not findings.ties:
        screen.line(f"{findings.here}: {SAID[findings.verdict]}; there is nothing to do")
        return
    screen.facts({"url": findings.here, **said(findings)})


def _print_move(screen: Screen, lake: Ledger, findings: Findings, document: dict[str, Any]) -> None:
    was = f"; before: {findings.recorded}" if findings.is_elsewhere else ""
    before = again(repeated=document["repeated"])
    screen.line(f"ledger {document['ledgerId']} is now at {lake.url}{was}{before}")
    for each in document["projected"]:
        screen.line(f"projected the files of {each}")


_ERASABLE = Parameter(
    negative="",
    show_default=False,
    help="Store authors, messages and properties outside the log, so that they can be erased.",
)


def init(
    url: Annotated[str | None, Parameter(help="Root of the ledger; or use --ledger.")] = None,
    /,
    *,
    erasable: Annotated[bool, _ERASABLE] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Initialize a ledger; does nothing if one already exists.

    Commands that are run in its folder or below work on it.

    Example:
        lakeledger init lake
    """
    chosen = place.or_at(url)
    if not chosen.ledger and chosen.named() is None:
        raise UsageError(
            "no folder is given for the ledger; write lakeledger init FOLDER, or . for the current "
            "folder"
        )
    lake = chosen.open_maybe_uninitialized()
    known = lake.is_begun
    if known and erasable and not lake.is_erasable:
        raise UsageError(
            f"{lake.url} already is a ledger, which stores authors and messages in its log; only a "
            "new ledger can be erasable: run lakeledger init --erasable at another location"
        )
    document = {
        "url": lake.url,
        "ledgerId": lake.init(erasable=erasable),
        "created": not known,
        "erasable": lake.is_erasable,
    }
    now = "already is a ledger" if known else "is initialized as a ledger"

    def text(screen: Screen) -> None:
        screen.line(f"{lake.url} {now} ({document['ledgerId']})")
        if not known:
            where = "" if url is None else f" --ledger {quote(url)}"
            screen.line(f"next, create a database: lakeledger create NAME{where}")

    chosen.screen.result(document, text)


def doctor(
    url: Annotated[str | None, Parameter(help="Location to check; or use --ledger.")] = None,
    /,
    *,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Check whether a store can hold a ledger; writes a test key and removes it.

    For an existing ledger, it also checks for commit times ahead of the clock, shows the lag of the
    projections and the original of a copy, detects a move, copy or other mount since the location
    was recorded, and lists columns in ledger.personal that do not exist or cannot be erased.

    Example:
        lakeledger doctor lake
    """
    store, place = _store_and_flags(url, place)
    done = _run_store_checks(store)
    ahead = millis_ahead(store, now_millis, RetryPolicy())
    failed = [str(each["check"]) for each in done if not each["holds"]]
    late: list[tuple[str, Finding]] = []
    unread: dict[str, str] = {}
    if not failed and not is_clock_far_off(ahead):
        late += _streams_ahead_of_clock(store, place, unread)
    healthy = not failed and not is_clock_far_off(ahead) and not late
    of_ledger = _ledger_ids(store, place) if not failed else {}
    root_location = _location_findings(store, place) if of_ledger else None
    stale = _format_lags(store, place) if of_ledger else []
    marks = dict(_personal_option_problems(store, place)) if of_ledger else {}
    place.screen.result(
        {
            "url": store.url,
            "healthy": healthy,
            "checks": done,
            **of_ledger,
            **({} if root_location is None else {"place": findings_document(root_location)}),
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
            | _ledger_id_facts(of_ledger)
            | ({} if root_location is None else said(root_location))
            | {
                str(each["check"]): f"{'yes' if each['holds'] else 'NO'}, {each['millis']} ms"
                for each in done
            }
            | ({} if ahead is None else {"this machine's clock": _describe_clock_difference(ahead)})
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
            f"{store.url} cannot hold a ledger, since these checks failed: "
            f"{'; '.join(failed)}. Use another location"
        )
    check_clock(store, now_millis(), ahead)
    for name, each in late:
        raise StoreError(f"{name} version {each.version}: {each.what}; {each.advice}")


def _run_store_checks(store: Store) -> list[dict[str, object]]:
    """Run the checks of a store and return their results in order."""
    done: list[dict[str, object]] = []
    start = time.perf_counter()
    try:
        for check in check_store(store, f"{STREAM_FOLDER}/doctor-{fresh_id()}"):
            millis = round((time.perf_counter() - start) * 1000, 1)
            done.append({"check": check.claim, "holds": check.holds, "millis": millis})
            start = time.perf_counter()
    except OSError as error:
        raise StoreError(f"{error} ({len(done)} checks passed before)") from error
    return done


def _store_and_flags(url: str | None, place: LedgerFlags) -> tuple[Store, LedgerFlags]:
    chosen = evolve(place, ledger=url or place.ledger)
    return open_store(chosen.url(), chosen.storage_options()), chosen


def _table_setting(store: Store, place: LedgerFlags) -> TableSetting:
    """Return the shared settings of the ledger's handles."""
    trusted = with_trust(store, place.trust)
    return TableSetting(trusted, place.storage_options(), author="", trust=place.trust)


def _streams_ahead_of_clock(
    store: Store, place: LedgerFlags, unread: dict[str, str]
) -> Iterator[tuple[str, Finding]]:
    """Yield the streams whose times are ahead of the clock, if there is a ledger.

    Streams that cannot be read are added to `unread`; `verify` reports their damage.
    """
    setting = _table_setting(store, place)
    lake = LedgerHandle(setting)
    streams: list[TableEntry | None] = [None]
    with suppress(LedgerError, OSError):
        streams += lake.state.tables.values()
    for entry in streams:
        name = "catalog" if entry is None else str(entry.identifier)
        try:
            log: StreamLog[Any, Any] = (
                lake.log
                if entry is None
                else TableHandle(entry.identifier, entry.path, setting).log
            )
            state = log.refresh()
            subject = Subject(name, log, has_files=entry is not None)
            found = None if state is None else ahead_of(subject, state, now_millis())
        except (LedgerError, OSError) as error:
            unread[name] = str(getattr(error, "message", error))
            continue
        if found is not None:
            yield name, found


def _ledger_ids(store: Store, place: LedgerFlags) -> dict[str, str]:
    """Return the id of the ledger and of its original; empty if there is no ledger."""
    body = store.read(ROOT_KEY)
    if body is None:
        return {}
    try:
        original = copied_from(body)
        found = {"ledgerId": id_of(body)} | ({} if original is None else {"copiedFrom": original})
    except LedgerError:
        return {}
    # Damage is reported by verify.
    with suppress(LedgerError, OSError):
        state = LedgerHandle(_table_setting(store, place)).state
        if state.ledger_id:
            found = {"ledgerId": state.ledger_id, "copiedFrom": state.copied_from}
    return found


def _location_findings(store: Store, place: LedgerFlags) -> Findings | None:
    """Return the findings about the ledger's location; None if it cannot be read."""
    try:
        return found(LedgerHandle(_table_setting(store, place)))
    except (LedgerError, OSError):
        return None


def _ledger_id_facts(of_ledger: dict[str, str]) -> dict[str, str]:
    copied = of_ledger.get("copiedFrom")
    said = {"ledger": of_ledger["ledgerId"]} if of_ledger else {}
    return said if copied is None else {**said, "a copy of": copied}


def _format_lags(store: Store, place: LedgerFlags) -> list[tuple[str, Freshness]]:
    """Return the lag of the followed formats by table, skipping tables that cannot be read."""
    found: list[tuple[str, Freshness]] = []
    with suppress(LedgerError):
        setting = _table_setting(store, place)
        for entry in LedgerHandle(setting).state.tables.values():
            with suppress(LedgerError, OSError):
                table = TableHandle(entry.identifier, entry.path, setting)
                found += [(str(entry.identifier), each) for each in freshness(table)]
    return found


def _personal_option_problems(store: Store, place: LedgerFlags) -> Iterator[tuple[str, str]]:
    """Yield problems of the option ledger.personal by table; it may come from a source."""
    with suppress(LedgerError):
        setting = _table_setting(store, place)
        for entry in LedgerHandle(setting).state.tables.values():
            with suppress(LedgerError, OSError):
                state = TableHandle(entry.identifier, entry.path, setting).state
                said = ineffective_marks_reason(state.schema, is_erasable=state.keeps_outside)
                if said:
                    yield str(entry.identifier), said


def _describe_clock_difference(ahead_millis: int) -> str:
    seconds = round(ahead_millis / 1000)
    if not seconds:
        return "equal to the store's, to the second"
    return f"{abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'} the store's"
