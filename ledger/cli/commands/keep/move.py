"""`lakeledger move`: what happened to a ledger that was found elsewhere."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags
from ledger.cli.phrases import again
from ledger.cli.screen import Screen
from ledger.ledger import Ledger
from ledger.log.request import Appended
from ledger.model.errors import LedgerError
from ledger.moving.places import SAID, Findings

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
    done = _tell(lake, writing, alias=alias, copy=copy, rewrite=rewrite)
    document |= {"version": done.version, "repeated": done.repeated}
    document["ledgerId"] = lake.ledger_id
    made, problems = ([], {}) if alias else _projected(lake, findings)
    document["projected"] = made
    document["problems"] = problems
    for name, said in problems.items():
        place.screen.notice(f"the files of {name} could not be made here yet: {said}")
    place.screen.result(document, lambda to: _print_done(to, lake, findings, document))


def _tell(
    lake: Ledger, writing: CommitFlags, *, alias: bool, copy: bool, rewrite: bool
) -> Appended[Any]:
    options = writing.options()
    if alias:
        return lake.record_alias(**options)
    if copy:
        return lake.record_copy(rewrites=rewrite, **options)
    return lake.record_move(rewrites=rewrite, **options)


def _projected(lake: Ledger, findings: Findings) -> tuple[list[str], dict[str, str]]:
    """Make the projected files that lead elsewhere anew, where the ledger is now."""
    made: list[str] = []
    problems: dict[str, str] = {}
    for each in findings.ties:
        if each.kind != "projection":
            continue
        name = f"{each.table}, {each.format}"
        try:
            lake.table(each.table).project(each.format)
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
    if not findings.is_elsewhere:
        return {}
    facts = {
        "said to be at": findings.recorded,
        "what happened": SAID[findings.verdict],
        **{f"tied {number}": str(each) for number, each in enumerate(findings.ties, 1)},
    }
    if not findings.ties:
        return facts | {"next": "nothing: no table is tied to the other place"}
    return facts | {"next": findings.next_step}


def _print(screen: Screen, findings: Findings) -> None:
    if not findings.is_elsewhere:
        screen.line(f"{findings.here}: {SAID[findings.verdict]}; there is nothing to do")
        return
    screen.facts({"url": findings.here, **said(findings)})


def _print_done(screen: Screen, lake: Ledger, findings: Findings, document: dict[str, Any]) -> None:
    was = f"; it was at {findings.recorded}" if findings.is_elsewhere else ""
    before = again(repeated=document["repeated"])
    screen.line(f"ledger {document['ledgerId']} is at {lake.url} now{was}{before}")
    for each in document["projected"]:
        screen.line(f"made the files of {each}")
