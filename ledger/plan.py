"""Plan of a change: its effects, before anything is written.

Of a table's schema and layout: facts, differences, and each format's verdict. Of a stream's times:
what a correction would say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from attrs import frozen
from msgspec.structs import replace

from ledger.audit.difference import DiffRow, differences
from ledger.audit.migration import folded
from ledger.decide.changes import CorrectClock
from ledger.decide.commit_policies import CommitContext, commit_refusals, rules_that_count
from ledger.decide.format_rules import Formats, History, problems, refuse_unknown
from ledger.decide.operations import in_words
from ledger.decide.table import Decided, PendingTableChanges
from ledger.events import SchemaChange, SpecChange, TableEvent
from ledger.formats import part_if_any
from ledger.log.stream_log import StreamLog
from ledger.log.time_travel import at_timestamp, head_state
from ledger.model.errors import FormatError, InvalidChangeError, InvalidInputError, NotFoundError
from ledger.model.instant import TimestampInstant, millis
from ledger.model.messages import first_few, html_table
from ledger.state.declared_formats import Rules
from ledger.state.table import TableState


@frozen
class Verdict:
    """What a format says to a change.

    Attributes:
        format: Its name.
        is_declared: Whether the table is to stay expressible in it, by its options afterwards.
        refusals: Why it cannot take the change; empty when it can.
        files: What projecting the change would write, relative to the table's location; None when
            the change is refused or nothing that is installed projects the format.
        warnings: What readers that people use get wrong of what the change brings.
    """

    format: str
    is_declared: bool
    refusals: tuple[InvalidChangeError, ...]
    files: tuple[str, ...] | None
    warnings: tuple[str, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Whether the format can express the table after the change."""
        return not self.refusals


@frozen(repr=False)
class ChangePlan:
    """What changes would come to on the state that was met; nothing was written.

    Attributes:
        before: The table as it is.
        after: The table as it would be; its version and times are of no meaning.
        events: The facts that would stand in the log.
        verdicts: One a format, declared or not; last, of `ledger`, that of the rules for commits
            of the table and its database, where there are some.
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
        return f"{type(self).__name__}({first_few(map(in_words, self.events))}: {', '.join(said)})"

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
        """Why the change would be refused; empty when it would be made."""
        return tuple(
            refusal for each in self.verdicts if each.is_declared for refusal in each.refusals
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What readers of the declared formats get wrong of what the change brings."""
        return tuple(said for each in self.verdicts if each.is_declared for said in each.warnings)

    @property
    def differences(self) -> tuple[DiffRow, ...]:
        """What is not as it was, in schema, options and layout."""
        return tuple(differences(self.before, self.after))


def plan_changes(
    state: TableState,
    changes: Sequence[SchemaChange | SpecChange],
    history: History,
    formats: Formats,
    context: CommitContext | None = None,
) -> ChangePlan:
    """Return what changes of schema and layout would come to.

    Args:
        state: The table.
        changes: One batch, as for `Table.alter`.
        history: The table's past.
        formats: The formats that there are.
        context: Who wants them, for the table's own rules; None where nobody is to be judged.

    Raises:
        InvalidChangeError: No format has rules under which the changes mean anything.
    """
    trial = _Trial(state, tuple(changes), history, formats)
    outcome = trial.outcome()
    after = folded(state, outcome.events)
    declared = Rules.of(after.schema.options).formats
    verdicts = []
    for name in _asked(declared, formats):
        refusals = tuple(trial.refusals(name, outcome))
        files = None if refusals else _files(name, state, after)
        warnings = () if refusals else _warnings(name, state, after)
        verdicts.append(Verdict(name, name in declared, refusals, files, warnings))
    if context is not None and rules_that_count(state.schema.options, context.database_policy):
        own = tuple(commit_refusals(state, outcome.events, context))
        verdicts.append(Verdict("ledger", is_declared=True, refusals=own, files=None))
    return ChangePlan(state, after, outcome.events, tuple(verdicts))


@frozen
class _Trial:
    state: TableState
    changes: tuple[SchemaChange | SpecChange, ...]
    history: History
    formats: Formats

    def outcome(self) -> Decided:
        """Return what the changes come to by the declared rules, or by whichever take them."""
        refusals: list[InvalidChangeError] = []
        for rules_of in (Rules.of, *map(_only, self.formats.names()), _nobodys):
            try:
                return self._decide(rules_of)
            except InvalidChangeError as error:
                refusals.append(error)
        raise refusals[0]

    def refusals(self, format_name: str, outcome: Decided) -> Iterator[InvalidChangeError]:
        """Yield why a format cannot take the changes.

        Args:
            format_name: The format.
            outcome: What the changes come to by the rules of whoever takes them.
        """
        rules_of = _only(format_name)
        try:
            yield from problems(self._decide(rules_of).batch, self.formats)
        except InvalidChangeError as error:
            # One that is refused while it is decided: all that is wrong with it is said first.
            rules = rules_of(outcome.batch.schema.options)
            found = tuple(problems(replace(outcome.batch, rules=rules), self.formats))
            yield from found or (error,)

    def _decide(self, rules_of: Callable[[Mapping[str, str]], Rules]) -> Decided:
        # The first decision pins columns, so each trial begins anew.
        pending_changes = PendingTableChanges(self.changes, self.state.schema.highest_field_id)
        before = self.state.schema.options

        def known(options: Mapping[str, str]) -> Rules:
            refuse_unknown(options, before, self.formats)
            return rules_of(options)

        return pending_changes.decide(self.state, known, self.history)


def _asked(declared: frozenset[str], formats: Formats) -> tuple[str, ...]:
    """Return every format that has a word to say, or would have if it were installed."""
    installed = formats.names()
    return (*installed, *sorted(declared.difference(installed)))


def _only(format_name: str) -> Callable[[Mapping[str, str]], Rules]:
    return lambda options: replace(Rules.of(options), formats=frozenset({format_name}))


def _nobodys(options: Mapping[str, str]) -> Rules:
    return replace(Rules.of(options), formats=frozenset())


def _files(format_name: str, before: TableState, after: TableState) -> tuple[str, ...] | None:
    planned = part_if_any(format_name, "planned")
    return None if planned is None else tuple(planned(before, after))


def _warnings(format_name: str, before: TableState, after: TableState) -> tuple[str, ...]:
    # Not every format knows its readers.
    warns = getattr(part_if_any(format_name, "planned"), "warnings", None)
    return tuple(warns(before, after)) if warns is not None else ()


def creation_warnings(state: TableState) -> tuple[str, ...]:
    """Return what readers of a new table's formats get wrong of it.

    Args:
        state: The table right after its creation.
    """
    before = attrs.evolve(state, schema=attrs.evolve(state.schema, fields=()), specs=())
    declared = sorted(Rules.of(state.schema.options).formats)
    return tuple(said for each in declared for said in _warnings(each, before, state))


def refusal_record(refusal: InvalidChangeError) -> dict[str, str]:
    """Return a refusal as plain JSON: its message and, where a format refuses, rule and ways out.

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
    """What correcting a stream's times would say.

    Attributes:
        first_version: The first commit that says a later time than the true one.
        newest_version: The last one that says so, since all after the first do.
        recorded_millis: What the newest commit says, Unix milliseconds.
        true_time_millis: What is taken for all of them from then on.
    """

    first_version: int
    newest_version: int
    recorded_millis: int
    true_time_millis: int

    @property
    def change(self) -> CorrectClock:
        """What is asked of the stream."""
        return CorrectClock(self.first_version, self.true_time_millis)


def plan_correction(
    log: StreamLog[Any, Any], now_millis: int, true_time: datetime | int | None
) -> ClockPlan:
    """Return what correcting a stream's times would say; nothing is written.

    Args:
        log: The stream.
        now_millis: What this machine's clock says, which is taken to be right.
        true_time: When the commits that are ahead happened, at the latest; None for now.

    Raises:
        InvalidInputError: The true time lies in the future, or has no time zone.
        InvalidChangeError: No commit is ahead of it.
    """
    log.refresh()
    newest = head_state(log)
    latest = now_millis if true_time is None else millis(true_time)
    if latest > now_millis:
        raise InvalidInputError(
            f"the true time cannot be {TimestampInstant(latest)}, which lies in the future; by "
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
