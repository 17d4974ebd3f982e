"""`lakeledger plan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.cli.commands.change.alter import DroppingPrimaryKey, Written, wanted_changes
from ledger.cli.options import LedgerFlags, TableName, pairs
from ledger.cli.phrases import plain
from ledger.cli.screen import Document, Screen
from ledger.evolution.operations import in_words
from ledger.model.errors import FormatError, InvalidChangeError
from ledger.plan import ChangePlan, Verdict, refusal_record

_MOST_NAMED = 10


def plan(
    name: TableName,
    /,
    *,
    change: Written = (),
    drop_primary_key: DroppingPrimaryKey = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show what `alter` would do with the same options; nothing is written.

    For each format, declared or not: the files that it would get, or every rule that is in the way
    and what can be done instead; and what engines that people use read wrongly then. A change that
    `alter` would refuse ends with its exit code.

    Example:
        lakeledger plan shop.orders --add "note STRING" --drop address.city
    """
    changes = wanted_changes(pairs(change), drop_primary_key)
    table = place.table(name)
    planned = table.plan(changes)
    place.screen.result(
        {"table": name, **_document(planned)}, lambda screen: _text(screen, name, planned)
    )
    for refusal in planned.refusals:
        raise refusal


def _document(planned: ChangePlan) -> Document:
    before, after = planned.before, planned.after
    return {
        "version": before.version,
        "isAllowed": not planned.refusals,
        "schemaId": {"before": before.schema.id, "after": after.schema.id},
        "differences": [
            {"what": each.what, "before": each.before, "after": each.after}
            for each in planned.differences
        ],
        "events": [plain(each) for each in planned.events],
        "formats": {each.format: _verdict(each) for each in planned.verdicts},
    }


def _verdict(verdict: Verdict) -> Document:
    return {
        "isDeclared": verdict.is_declared,
        "isAllowed": verdict.is_allowed,
        "files": None if verdict.files is None else list(verdict.files),
        "refusals": [refusal_record(each) for each in verdict.refusals],
        "warnings": list(verdict.warnings),
    }


def _text(screen: Screen, name: str, planned: ChangePlan) -> None:
    screen.line(f"{name} at version {planned.before.version}; nothing was written")
    if not planned.events:
        screen.line("  nothing: all that was asked holds already")
    for event in planned.events:
        screen.line(f"  {in_words(event)}")
    old, new = planned.before.schema.id, planned.after.schema.id
    if old != new:
        screen.line(f"  schema {old} becomes schema {new}")
    screen.table(
        ("what", "before", "after"),
        [(each.what, each.before, each.after) for each in planned.differences],
    )
    screen.table(("format", "declared", "verdict", "files"), map(_row, planned.verdicts))
    if planned.warnings:
        screen.heading("Readers that get it wrong")
    for said in planned.warnings:
        screen.line(f"  {said}")
    for verdict in planned.verdicts:
        if verdict.refusals:
            screen.heading(f"Refused by {verdict.format}")
        for said in _told_once(verdict.refusals):
            screen.line(f"  {said}")


def _told_once(refusals: Iterable[InvalidChangeError]) -> Iterator[str]:
    """Yield what is wrong, a rule that many columns break once."""
    by_rule: dict[str, list[str]] = {}
    for each in refusals:
        rule = f": {each.rule}; " if isinstance(each, FormatError) else ""
        what, _, rest = each.message.partition(rule) if rule else (each.message, "", "")
        by_rule.setdefault(f"{rule}{rest}", []).append(what)
    for rest, (first, *others) in by_rule.items():
        more = f" (and {len(others)} more: {', '.join(others[:_MOST_NAMED])}" if others else ""
        if others:
            more += ", ...)" if len(others) > _MOST_NAMED else ")"
        yield f"{first}{more}{rest}"


def _row(verdict: Verdict) -> tuple[str, str, str, str]:
    count = len(verdict.refusals)
    said = "allowed" if not count else f"refused by {count} rule{'s'[: count > 1]}"
    files = "" if verdict.files is None else ", ".join(verdict.files) or "none"
    return verdict.format, "yes" if verdict.is_declared else "no", said, files
