"""`lakeledger move`: what happened to a ledger that was found elsewhere."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags
from ledger.cli.phrases import again
from ledger.cli.screen import Screen
from ledger.formats import part
from ledger.ledger import Ledger
from ledger.model.errors import LedgerError, StoreError
from ledger.moving.places import NEXT, SAID, Findings, copied_version

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
