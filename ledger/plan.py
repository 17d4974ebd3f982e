"""Plan of a change: its effects, before anything is written.

A plan of a table change holds events, differences in schema and layout, and each format's verdict.
A plan of a clock correction holds the times that the correction would set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from attrs import frozen
from msgspec.structs import replace

from ledger.audit.difference import DiffRow, differences
from ledger.audit.migration import state_after_events
from ledger.decide.changes import CorrectClock
from ledger.decide.commit_policies import CommitContext, applicable_rules, commit_refusals
from ledger.decide.format_rules import Formats, History, problems, refuse_unknown
from ledger.decide.operations import planned_words
from ledger.decide.table import PendingTableChanges, TableDecision, refuse_by_owner
from ledger.events import SchemaChange, SpecChange, TableEvent
from ledger.formats import part_if_any
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import at_timestamp, head_state
from ledger.model.errors import FormatError, InvalidChangeError, InvalidInputError, NotFoundError
from ledger.model.instant import TimestampInstant, millis
from ledger.model.messages import first_few, html_table
from ledger.model.schema import Schema
from ledger.state.declared_formats import Rules
from ledger.state.table import TableState


@frozen
class Verdict:
    """Result of validating a change against one format.

    Attributes:
        format: Its name.
        is_declared: Whether the table must stay expressible in it, by its options afterwards.
        refusals: Why it cannot take the change; empty when it can.
        files: What projecting the change would write, relative to the table's location; None when
            the change is rejected or no installed package projects the format.
        warnings: Faults of known readers that the change triggers.
    """

    format: str
    is_declared: bool
    refusals: tuple[InvalidChangeError, ...]
    files: tuple[str, ...] | None
    warnings: tuple[str, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Return whether the format can express the table after the change."""
        return not self.refusals


@frozen(repr=False)
class ChangePlan:
    """Effects of changes on the current state of a table; nothing is written.

    Attributes:
        before: The table as it is.
        after: The table as it would be; its version and times have no meaning.
        events: The events that would be appended to the log.
        verdicts: One per format, declared or not; the last, of `ledger`, is that of the commit
            rules of the table and its database, where there are some.
    """

    before: TableState
    after: TableState
    events: tuple[TableEvent, ...]
    verdicts: tuple[Verdict, ...]

    def __repr__(self) -> str:
        said = [
            f"{each.format} {'allows it' if each.is_allowed else 'refuses it'}"
            for each in self.verdicts
            if each.is_declared
        ]
        changes = first_few(map(planned_words, self.events))
        return f"{type(self).__name__}({changes}: {', '.join(said)})"

    def _repr_html_(self) -> str:
        changed = [(each.what, each.before, each.after) for each in self.differences]
        said = [
            (each.format, "; ".join(error.message for error in each.refusals) or "allowed")
            for each in self.verdicts
            if each.is_declared
        ]
        return html_table(
            ("what", "before", "after"), changed, caption="nothing was written"
        ) + html_table(("format", "verdict"), said, caption="what the table's formats say")

    @property
    def refusals(self) -> tuple[InvalidChangeError, ...]:
        """Return the reasons for which the change would be rejected; empty if it would commit."""
        return tuple(
            refusal for each in self.verdicts if each.is_declared for refusal in each.refusals
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return faults of the declared formats' readers that the change triggers."""
        return tuple(said for each in self.verdicts if each.is_declared for said in each.warnings)

    @property
    def differences(self) -> tuple[DiffRow, ...]:
        """Return the differences in schema, options and layout."""
        return tuple(differences(self.before, self.after, "id"))


def plan_changes(
    state: TableState,
    changes: Sequence[SchemaChange | SpecChange],
    history: History,
    formats: Formats,
    earlier: Callable[[], Iterable[Schema]],
    context: CommitContext | None = None,
) -> ChangePlan:
    """Return the effects of changes of schema and layout.

    Args:
        state: The table.
        changes: One batch, as for `Table.alter`.
        history: The table's history.
        formats: The installed formats.
        earlier: Returns the table's schemas up to the current one.
        context: The commit context, for the table's own rules; None to skip those rules.

    Raises:
        InvalidChangeError: The table follows a source, or no format has rules under which the
            changes are valid.
    """
    refuse_by_owner(state, changes)
    trial = _ChangeTrial(state, tuple(changes), history, formats)
    outcome = trial.outcome()
    after = state_after_events(state, outcome.events)
    declared = Rules.of(after.schema.options).formats
    verdicts = []
    for name in _formats_to_check(declared, formats):
        refusals = tuple(trial.refusals(name, outcome))
        files = None if refusals else _planned_files(name, state, after)
        warnings = () if refusals else _reader_warnings(name, state, after, earlier)
        verdicts.append(Verdict(name, name in declared, refusals, files, warnings))
    if context is not None and applicable_rules(state.schema.options, context.database_policy):
        own = tuple(commit_refusals(state, outcome.events, context))
        verdicts.append(Verdict("ledger", is_declared=True, refusals=own, files=None))
    return ChangePlan(state, after, outcome.events, tuple(verdicts))


@frozen
class _ChangeTrial:
    state: TableState
    changes: tuple[SchemaChange | SpecChange, ...]
    history: History
    formats: Formats

    def outcome(self) -> TableDecision:
        """Return the decision by the declared rules, or by the first rules that accept it."""
        refusals: list[InvalidChangeError] = []
        for rules_of in (
            Rules.of,
            *map(_rules_of_one_format, self.formats.names()),
            _rules_without_formats,
        ):
            try:
                return self._decide_changes(rules_of)
            except InvalidChangeError as error:
                refusals.append(error)
        raise refusals[0]

    def refusals(self, format_name: str, outcome: TableDecision) -> Iterator[InvalidChangeError]:
        """Yield the reasons for which a format rejects the changes.

        Args:
            format_name: The format.
            outcome: The decision by rules that accept the changes.
        """
        rules_of = _rules_of_one_format(format_name)
        try:
            yield from problems(self._decide_changes(rules_of).batch, self.formats)
        except InvalidChangeError as error:
            # If the decision itself was rejected, its errors come first.
            rules = rules_of(outcome.batch.schema.options)
            found = tuple(problems(replace(outcome.batch, rules=rules), self.formats))
            yield from found or (error,)

    def _decide_changes(self, rules_of: Callable[[Mapping[str, str]], Rules]) -> TableDecision:
        # The first decision pins columns, so each trial starts from the initial state.
        pending_changes = PendingTableChanges(self.changes, self.state.schema.highest_field_id)
        before = self.state.schema.options

        def known(options: Mapping[str, str]) -> Rules:
            refuse_unknown(options, before, self.formats)
            return rules_of(options)

        return pending_changes.decide(self.state, known, self.history)


def _formats_to_check(declared: frozenset[str], formats: Formats) -> tuple[str, ...]:
    """Return all installed formats, then declared ones that are not installed."""
    installed = formats.names()
    return (*installed, *sorted(declared.difference(installed)))


def _rules_of_one_format(format_name: str) -> Callable[[Mapping[str, str]], Rules]:
    return lambda options: replace(Rules.of(options), formats=frozenset({format_name}))


def _rules_without_formats(options: Mapping[str, str]) -> Rules:
    return replace(Rules.of(options), formats=frozenset())


def _planned_files(
    format_name: str, before: TableState, after: TableState
) -> tuple[str, ...] | None:
    planned = part_if_any(format_name, "planned")
    return None if planned is None else tuple(planned(before, after))


def _reader_warnings(
    format_name: str,
    before: TableState,
    after: TableState,
    earlier: Callable[[], Iterable[Schema]],
) -> tuple[str, ...]:
    # Not every format has warnings about readers.
    warns = getattr(part_if_any(format_name, "planned"), "warnings", None)
    return tuple(warns(before, after, earlier)) if warns is not None else ()


def creation_warnings(state: TableState) -> tuple[str, ...]:
    """Return faults of the readers of a new table's formats that the table triggers.

    Args:
        state: The table right after its creation.
    """
    before = attrs.evolve(state, schema=attrs.evolve(state.schema, fields=()), specs=())
    declared = sorted(Rules.of(state.schema.options).formats)
    return tuple(said for each in declared for said in _reader_warnings(each, before, state, tuple))


def refusal_record(refusal: InvalidChangeError) -> dict[str, str]:
    """Return a rejection as plain JSON: its message and, for a format, rule and alternative.

    Example:
        >>> refusal_record(InvalidChangeError("column b does not exist"))
        {'message': 'column b does not exist'}
    """
    if not isinstance(refusal, FormatError):
        return {"message": refusal.message}
    return {
        "message": refusal.message,
        "rule": refusal.rule,
        "alternative": refusal.alternative,
    }


@frozen
class ClockPlan:
    """Effects of a correction of a stream's times.

    Attributes:
        first_version: The first commit with a time later than the true one.
        newest_version: The newest commit; all since the first have such a time.
        recorded_millis: Recorded time of the newest commit, Unix milliseconds.
        true_time_millis: Time that is used for all of them after the correction.
    """

    first_version: int
    newest_version: int
    recorded_millis: int
    true_time_millis: int

    @property
    def change(self) -> CorrectClock:
        """Return the change that corrects the stream."""
        return CorrectClock(self.first_version, self.true_time_millis)


def plan_correction(
    log: StreamLog[Any, Any], now_millis: int, true_time: datetime | int | str | None
) -> ClockPlan:
    """Return the effects of a correction of a stream's times; nothing is written.

    Args:
        log: The stream.
        now_millis: The current time by this machine's clock, which is assumed correct.
        true_time: Latest time at which the commits ahead happened; None for now.

    Raises:
        InvalidInputError: The true time is in the future, or has no time zone.
        InvalidChangeError: No commit is ahead of the true time.
    """
    log.refresh()
    newest = head_state(log)
    latest = now_millis if true_time is None else millis(true_time)
    if latest > now_millis:
        raise InvalidInputError(
            f"the true time cannot be {TimestampInstant(latest)}, which is in the future; by "
            f"this machine's clock it is {TimestampInstant(now_millis)}"
        )
    if newest.effective_millis <= latest:
        raise InvalidChangeError(
            f"no commit of {log.layout.root} is ahead of {TimestampInstant(latest)}: the newest is "
            f"of {TimestampInstant(newest.effective_millis)}. There is nothing to correct",
            kind="ILLEGAL_STATE",
        )
    try:
        first = at_timestamp(log, latest).version + 1
    except NotFoundError:
        first = 0
    return ClockPlan(first, newest.version, newest.effective_millis, latest)
