"""Checks of a change against a table's declared formats; never run on replay.

It fails closed: a format that is declared and cannot be asked refuses whatever could concern it.
Leaving it, and the end of a tag or of the table, concern no format.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any

from ledger.decide.commit_policies import OWNERS, RULE_OPTIONS
from ledger.decide.format_rules import (
    Arrival,
    Batch,
    Birth,
    FormatRules,
    Formats,
    History,
    Refusal,
    declared_by,
)
from ledger.decide.personal_columns import PERSONAL_OPTION
from ledger.events.table import FormatRulesRaised
from ledger.model.errors import FormatError, InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.model.messages import similar
from ledger.model.schema import Schema
from ledger.model.types import DataField, type_places
from ledger.state.declared_formats import (
    DEFAULT_FORMATS,
    FOLLOW_OPTION,
    FORMATS_OPTION,
    OWN_PREFIX,
    READER_GRACE_OPTION,
    Rules,
    followed,
    refuse_grace,
)
from ledger.state.table import TableState

_DEFAULT_FORMATS = tuple(DEFAULT_FORMATS.split(","))


def refuse_unknown(options: Mapping[str, str], before: Mapping[str, str], formats: Formats) -> None:
    """Refuse options that declare a format which there is not, or follow one that is not declared.

    Args:
        options: The table's, as they shall be.
        before: As they were; what was declared before is not held against a change.
        formats: The formats that there are.

    Raises:
        InvalidChangeError: They do.
    """
    if options is before or options == before:
        return
    _refuse_misspelt(options, before)
    _refuse_following(options, before)
    if options.get(READER_GRACE_OPTION) != before.get(READER_GRACE_OPTION):
        refuse_grace(options)
    if options.get(FORMATS_OPTION) == before.get(FORMATS_OPTION):
        return
    new = Rules.of(options).formats - declared_by(before).formats
    if not new <= set(formats.names()):
        raise _unknown(options, formats)


def _refuse_misspelt(options: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Refuse what is almost an option of the ledger: nobody would heed it, and nobody would say."""
    known = (FORMATS_OPTION, FOLLOW_OPTION, READER_GRACE_OPTION, PERSONAL_OPTION, *RULE_OPTIONS)
    for key in options.keys() - before.keys():
        if not key.startswith(OWN_PREFIX) or key in known or key.startswith(OWNERS):
            continue
        if near := similar(key, known):
            raise InvalidChangeError(
                f"there is no option {key}: did you mean {near[0]}? What begins with {OWN_PREFIX} "
                "is the ledger's own; name yours otherwise"
            )


def _refuse_following(options: Mapping[str, str], before: Mapping[str, str]) -> None:
    if _following(options) == _following(before):
        return
    declared = Rules.of(options).formats
    for each in followed(options):
        if each not in declared:
            raise InvalidChangeError(
                f"option {FOLLOW_OPTION} names {each!r}, which the table does not declare: files "
                f"of a format that nobody checks cannot follow. Name it in {FORMATS_OPTION}, too, "
                f"or leave it out of {FOLLOW_OPTION}"
            )


def _following(options: Mapping[str, str]) -> tuple[str | None, str | None]:
    return options.get(FOLLOW_OPTION), options.get(FORMATS_OPTION)


def _unknown(options: Mapping[str, str], formats: Formats) -> InvalidChangeError:
    text = options.get(FORMATS_OPTION, DEFAULT_FORMATS)
    return InvalidChangeError(
        f"option {FORMATS_OPTION} is {text!r}; name one or more of {', '.join(formats.names())}, "
        "separated by commas"
    )


def refuse_inexpressible(batch: Batch, formats: Formats) -> None:
    """Refuse what a batch made of a table, when one of its formats cannot express it.

    Raises:
        FormatError: The first problem; it names the format, its rule and the alternative.
    """
    for problem in problems(batch, formats):
        raise problem


def problems(batch: Batch, formats: Formats) -> Iterator[FormatError]:
    """Yield everything that the formats of `batch.rules` cannot express."""
    if batch.only_leaves:
        return
    options = batch.schema.options
    asked: list[FormatRules] = []
    for name, found in _found(batch.rules, batch.before, formats):
        if isinstance(found, Refusal):
            yield _worded(name, found, options)
        else:
            asked.append(found)
    for each in asked:
        for refusal in each.problems(batch):
            yield _worded(each.name, refusal, options)
    for each in asked:
        for refusal in each.last_problems(batch):
            yield _worded(each.name, refusal, options)
    for one, other in combinations(asked, 2):
        for refusal in _pair_problems(one, other, batch):
            yield _worded(one.name, refusal, options)


def refuse_birth(birth: Birth, formats: Formats) -> None:
    """Refuse a table that one of its formats cannot express.

    Raises:
        FormatError: As `refuse_inexpressible`.
        InvalidChangeError: It declares a format that there is not, or has an option that is wrong.
    """
    _refuse_misspelt(birth.schema.options, {})
    _refuse_following(birth.schema.options, {})
    refuse_grace(birth.schema.options)
    if not birth.rules.formats <= set(formats.names()):
        raise _unknown(birth.schema.options, formats)
    for problem in birth_problems(birth, formats):
        raise problem


def birth_problems(birth: Birth, formats: Formats) -> Iterator[FormatError]:
    """Yield everything that a new table's formats cannot express."""
    options = birth.schema.options
    asked: list[FormatRules] = []
    for name in _in_order(birth.rules.formats):
        found = formats.find(name)
        if isinstance(found, Refusal):
            yield _worded(name, found, options)
            continue
        asked.append(found)
        for refusal in found.birth_problems(birth):
            yield _worded(name, refusal, options)
    for one, other in combinations(asked, 2):
        for refusal in _clashing_forms(one, other, birth.schema.fields):
            yield _worded(one.name, refusal, options)


def raised_rules(
    options: Mapping[str, str], state: TableState, formats: Formats
) -> FormatRulesRaised | None:
    """Return the fact that a table is changed by higher rules than ever; None where it is not.

    Args:
        options: The table's, after the change.
        state: The table before.
        formats: The formats that there are.
    """
    raised = {}
    for name in _in_order(declared_by(options).formats):
        found = formats.find(name)
        if not isinstance(found, Refusal) and found.number > state.format_rules.get(name, 1):
            raised[name] = found.number
    return FormatRulesRaised(rules=raised) if raised else None


def refuse_names(
    schema: Schema,
    files: Collection[FileChange],
    state: TableState,
    history: History,
    formats: Formats,
) -> None:
    """Refuse files by whose names one of the table's formats does not find its columns.

    Args:
        schema: The table's schema.
        files: What comes and goes.
        state: The table before.
        history: Its past.
        formats: The formats that there are.

    Raises:
        FormatError: A name would stand for two fields, or a field have two names.
    """
    for each in _declared(schema, state, formats):
        for refusal in each.name_problems(schema, files, state, history):
            raise _worded(each.name, refusal, schema.options)


def binds_names(state: TableState, formats: Formats) -> bool:
    """Whether a declared format asks what the names of older schemas meant."""
    found = (formats.find(each) for each in declared_by(state.schema.options).formats)
    return any(not isinstance(each, Refusal) and each.binds_names for each in found)


def refuse_files(
    state: TableState,
    files: Collection[FileChange],
    facts: Mapping[str, Any],
    formats: Formats,
    *,
    is_back: bool = False,
) -> None:
    """Refuse files that come and that one of a table's formats cannot say.

    Args:
        state: The table before.
        files: What comes and goes, of one snapshot.
        facts: What the snapshot says of itself.
        formats: The formats that there are.
        is_back: Whether a rollback brings back what comes.

    Raises:
        FormatError: The first problem.
    """
    rules = declared_by(state.schema.options)
    arrival = Arrival(state, rules, files, facts, is_back)
    # In reverse: formats beside the first know values and bytes, and say best what is wrong.
    for each in reversed(list(_declared(state.schema, state, formats))):
        for refusal in each.file_problems(arrival):
            raise _worded(each.name, refusal, state.schema.options)


def refuse_tag(state: TableState, name: str, formats: Formats) -> None:
    """Refuse a tag that one of a table's formats cannot have.

    Raises:
        FormatError: It cannot.
    """
    others = () if name in state.tags else state.tags.keys()
    for each in _declared(state.schema, state, formats):
        for refusal in each.tag_problems(name, others):
            raise _worded(each.name, refusal, state.schema.options)


def _declared(schema: Schema, state: TableState, formats: Formats) -> Iterator[FormatRules]:
    rules = declared_by(schema.options)
    for name, found in _found(rules, state, formats):
        if isinstance(found, Refusal):
            raise _worded(name, found, schema.options)
        yield found


def _found(
    rules: Rules, state: TableState, formats: Formats
) -> Iterator[tuple[str, FormatRules | Refusal]]:
    for name in _in_order(rules.formats):
        found = formats.find(name)
        used = state.format_rules.get(name, 1)
        if isinstance(found, Refusal) or found.number >= used:
            yield name, found
            continue
        yield (
            name,
            Refusal(
                f"format {name!r}",
                f"the table was changed by rules {used} of it, and those that are installed here "
                f"are {found.number}",
                "upgrade the package that brings them",
            ),
        )


# Every commit asks, and tables have few answers.
@lru_cache(maxsize=64)
def _in_order(names: frozenset[str]) -> tuple[str, ...]:
    first = tuple(each for each in _DEFAULT_FORMATS if each in names)
    return (*first, *sorted(names.difference(first)))


def _worded(name: str, refusal: Refusal, options: Mapping[str, str]) -> FormatError:
    """Return a refusal with leaving the format as one more way out.

    Args:
        name: The format's.
        refusal: What it says.
        options: The table's, which declare its formats.
    """
    declared = declared_by(options).formats
    others = _in_order(declared - {name} or frozenset(_DEFAULT_FORMATS) - {name})
    ways = (
        f"{refusal.alternative}, or leave format {name!r}: set {FORMATS_OPTION}={','.join(others)}"
    )
    return FormatError(f"{refusal.what}: {refusal.rule}; {ways}", name, refusal.rule, ways)


def _pair_problems(one: FormatRules, other: FormatRules, batch: Batch) -> Iterator[Refusal]:
    """Yield the columns that no file can hold so that readers of both formats read them."""
    were_declared = {one.name, other.name} <= batch.declared_before.formats
    if were_declared and batch.is_same_shape:
        return
    roots = _clashing_roots(one, other)
    if not roots:
        return
    if were_declared:
        for column in batch.changed_columns:
            old = batch.columns_before.get(column.id)
            # Tables that are older than the rule keep what they have.
            if old is None or not any(_clashes_at(one, other, roots, [old])):
                yield from _clashes_at(one, other, roots, [column])
        return
    yield from _clashes_at(one, other, roots, batch.schema.fields)
    for older in batch.readable:
        yield from _clashes_at(one, other, roots, older.fields)


def _clashing_forms(
    one: FormatRules, other: FormatRules, columns: Iterable[DataField]
) -> Iterator[Refusal]:
    roots = _clashing_roots(one, other)
    return _clashes_at(one, other, roots, columns) if roots else iter(())


def _clashes_at(
    one: FormatRules, other: FormatRules, roots: Collection[str], columns: Iterable[DataField]
) -> Iterator[Refusal]:
    for place in type_places(columns):
        if place.type.root in roots:
            ours, theirs = one.file_forms[place.type.root], other.file_forms[place.type.root]
            yield Refusal(
                f"column {place.name}",
                f"{one.title}'s files keep a {place.type.root} as {ours.form}, and "
                f"{other.title}'s as {theirs.form}, so that nobody could write one for both",
                ours.alternative,
            )


def _clashing_roots(one: FormatRules, other: FormatRules) -> set[str]:
    return {
        root
        for root in one.file_forms.keys() & other.file_forms.keys()
        if one.file_forms[root].form != other.file_forms[root].form
    }
