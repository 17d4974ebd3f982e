"""Commit policies of a table, declared as options and checked on every commit.

A database can declare them for all of its tables (`DatabasePolicy`); a table's own option of
the same key takes precedence. The options and what they reject:

- `ledger.require-message`: a change without a message (`true`), or with one in which this regular
  expression is not found.
- `ledger.column-names`: a column name that this regular expression does not match as a whole.
- `ledger.allowed-types`: a type whose name is not on this list, as `INT,STRING`.
- `ledger.owners.ID`: a change of the column with this field id by an author not on this list, as
  `ann,etl@*`. A database gives the column's path instead, as `ledger.owners.address.zip`.
- `ledger.freeze`: a change in one of these times, `START/END,...` as ISO 8601 with a zone; or at
  any (`true`).

They apply to schema, options, comment and layout, not to data and tags. A commit that removes one,
by `removeOption`, records its author; that is never frozen. Like formats, they are checked when a
change is decided, and never on replay. Changes of a database itself, or of its list of tables, are
checked by its own rules (`refuse_catalog_commit`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, Final, get_args

from msgspec import Struct

from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent, DatabaseAltered, DatabaseCreated, DatabaseDropped
from ledger.events.schema import (
    ColumnAdded,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    RemoveOption,
    SchemaEvent,
    SetOption,
    SpecEvent,
)
from ledger.events.table import TableCreated, TableDropped, TableRenamed, TableUndropped
from ledger.model.errors import FormatError, InvalidChangeError, InvalidTypeError
from ledger.model.instant import parse_iso_datetime
from ledger.model.names import parse_column_path, quote_path
from ledger.model.schema import paths_of
from ledger.model.types import DataField, type_places
from ledger.model.types.sql import read_type
from ledger.model.types.wire import type_from_wire
from ledger.state.table import TableState

_BEGINNING: Final = "ledger."
"""Prefix of every rule's key."""

OWNERS: Final = "ledger.owners."
"""Prefix of the rules that restrict a column to its owners; its field id follows."""


class DatabasePolicy(Struct, frozen=True):
    """Commit policies of a database for its tables.

    Attributes:
        database: Its name.
        options: Its options.
    """

    database: str = ""
    options: Mapping[str, str] = {}


class CommitContext(Struct, frozen=True):
    """Commit context: author, message and time of a change, with the database's policies.

    Attributes:
        author: The author.
        message: The reason; None where that is not known yet.
        now_millis: Returns the time, Unix milliseconds; called only where a freeze may apply.
        database_policy: The policies of the table's database.
    """

    author: str
    message: str | None
    now_millis: Callable[[], int]
    database_policy: DatabasePolicy = DatabasePolicy()


class _DeclaredRule(Struct, frozen=True):
    """A rule as it was declared.

    Attributes:
        key: The option.
        value: The option's value.
        database: The database that declares it; empty for the table's own.
    """

    key: str
    value: str
    database: str = ""

    def __str__(self) -> str:
        return f"{self.key} of database {self.database}" if self.database else self.key

    @property
    def rule(self) -> _RuleKind:
        """The kind of rule."""
        if not self.key.startswith(OWNERS):
            return _RULES[self.key]
        return _OWNERS_BY_PATH if self.database else _RULES[OWNERS]


_MEANT: Final = frozenset(get_args(SchemaEvent | SpecEvent))
"""The kinds of events that a table's rules apply to."""


def refuse_commit(state: TableState, events: Sequence[TableEvent], context: CommitContext) -> None:
    """Reject events that a table's own rules do not allow.

    Raises:
        FormatError: They do not; `format` is `ledger`.
        InvalidChangeError: The value of a rule is invalid.
    """
    refusal = next(commit_refusals(state, events, context), None)
    if refusal is not None:
        raise refusal


def commit_refusals(
    state: TableState, events: Sequence[TableEvent], context: CommitContext
) -> Iterator[FormatError]:
    """Yield the reasons for which a table's own rules reject a change.

    Args:
        state: The table before the change, whose rules apply.
        events: The events of the change.
        context: The commit context.

    Raises:
        InvalidChangeError: The value of a rule that it sets is invalid.
    """
    meant = [each for each in events if type(each) in _MEANT]
    if not meant:
        # Options may be many, and most commits are of files.
        return
    for event in meant:
        if isinstance(event, SetOption) and is_commit_policy(event.key):
            _check_rule_readable(_DeclaredRule(event.key, event.value))
    for said in applicable_rules(state.schema.options, context.database_policy):
        try:
            yield from said.rule.refuses(state, said, meant, context)
        except (ValueError, re.error) as error:
            # An invalid rule that was set without a check must be removable.
            if not any(_changes_rule(each, said.key) for each in meant):
                raise _unreadable_rule_error(said, error) from error


def applicable_rules(
    options: Mapping[str, str], database_policy: DatabasePolicy
) -> list[_DeclaredRule]:
    """Return the rules that apply: the table's own, and its database's where it has none.

    Args:
        options: The table's options.
        database_policy: The policies of its database.
    """
    # A table may have many options, and most have no rule among them.
    rules: list[str] = []
    if _BEGINNING in "\n".join(options):
        rules = [each for each in options if each.startswith(_BEGINNING) and is_commit_policy(each)]
    if not rules and not database_policy.options:
        return []
    own = [_DeclaredRule(key, options[key]) for key in sorted(rules)]
    theirs = [
        _DeclaredRule(key, value, database_policy.database)
        for key, value in sorted(database_policy.options.items())
        # A table names columns by their ids, so that it never has these keys.
        if is_commit_policy(key) and (key not in options or key.startswith(OWNERS))
    ]
    return [*own, *theirs]


def refuse_catalog_commit(
    databases: Mapping[str, Mapping[str, str]],
    events: Sequence[CatalogEvent],
    context: CommitContext,
) -> None:
    """Reject events that the rules of databases do not allow for themselves and their tables.

    Args:
        databases: The options of all databases before the change, by name.
        events: The events of the change.
        context: The commit context.

    Raises:
        FormatError: They do not; `format` is `ledger`.
        InvalidChangeError: The value of a rule that it sets is invalid.
    """
    for event in events:
        _check_event_rules(event)
        for name in _databases_of(event):
            database_policy = DatabasePolicy(name, databases.get(name, {}))
            for refusal in _catalog_refusals(event, applicable_rules({}, database_policy), context):
                raise refusal


def _check_event_rules(event: CatalogEvent) -> None:
    if isinstance(event, DatabaseCreated | DatabaseAltered):
        given = event.options if isinstance(event, DatabaseCreated) else event.updates
        for key, value in given.items():
            if is_commit_policy(key):
                _check_rule_readable(_DeclaredRule(key, value, event.name))


def _databases_of(event: CatalogEvent) -> tuple[str, ...]:
    """Return the databases whose rules apply to an event of the catalog."""
    if isinstance(event, DatabaseAltered | DatabaseDropped):
        return (event.name,)
    if isinstance(event, TableCreated | TableDropped | TableUndropped):
        # An import records what already happened in the source.
        is_asked = not isinstance(event, TableCreated) or not event.is_imported
        return (event.identifier.database_name,) if is_asked else ()
    if isinstance(event, TableRenamed):
        return tuple(dict.fromkeys((event.source.database_name, event.destination.database_name)))
    return ()


def _catalog_refusals(
    event: CatalogEvent, rules: Sequence[_DeclaredRule], context: CommitContext
) -> Iterator[FormatError]:
    columns: list[ColumnAdded] = []
    if isinstance(event, TableCreated):
        columns = [
            ColumnAdded(field_names=(each.name,), field_id=each.id, data_type=each.type)
            for each in event.schema.fields
        ]
    touched = {*event.removals, *event.updates} if isinstance(event, DatabaseAltered) else set()
    for said in rules:
        if said.key.startswith(OWNERS) or touched == {said.key} == {"ledger.freeze"}:
            continue
        try:
            yield from said.rule.refuses(None, said, columns or [event], context)
        except (ValueError, re.error) as error:
            if said.key not in touched:
                raise _unreadable_rule_error(said, error) from error


def is_commit_policy(key: str) -> bool:
    """Return whether an option is a commit policy.

    Example:
        >>> (
        ...     is_commit_policy("ledger.freeze"),
        ...     is_commit_policy("ledger.owners.3"),
        ...     is_commit_policy("ledger.freezer"),
        ... )
        (True, True, False)
    """
    return key in _RULES or key.startswith(OWNERS)


def _message_refusals(
    _state: TableState | None, said: _DeclaredRule, _events: Sequence[Any], context: CommitContext
) -> Iterator[FormatError]:
    if context.message is None:
        return
    value = said.value
    pattern = r"\S" if value == "true" else value
    if value != "false" and re.search(pattern, context.message) is None:
        wanted = "a message" if value == "true" else f"a message that matches {value}"
        yield _policy_refusal(
            "the change", f"{said} requires {wanted}", "give one: message=, --message"
        )


def _name_refusals(
    _state: TableState | None, said: _DeclaredRule, events: Sequence[Any], _context: CommitContext
) -> Iterator[FormatError]:
    wanted = said.value
    for name in _new_column_names(events):
        if re.fullmatch(wanted, name) is None:
            yield _policy_refusal(
                f"column {name}", f"{said} wants names like {wanted}", "choose another"
            )


_NEW = (ColumnAdded, ColumnUndropped)
"""Events by which a table has one more column."""


def _new_column_names(events: Sequence[Any]) -> Iterator[str]:
    for each in events:
        if isinstance(each, _NEW):
            yield each.field_names[-1]
            yield from (name for name, _ in _named_members(each.data_type))
        elif isinstance(each, ColumnRenamed):
            yield each.new_name


def _named_members(wire: Any) -> Iterator[tuple[str, str]]:
    """Yield the named members inside a type, each with its type's name."""
    for place in type_places([DataField(0, "", type_from_wire(wire))]):
        if place.field is not None and place.level != (None,):
            yield place.field.name, place.type.root


def _type_refusals(
    _state: TableState | None, said: _DeclaredRule, events: Sequence[Any], _context: CommitContext
) -> Iterator[FormatError]:
    names = [each.strip() for each in said.value.split(",")]
    allowed = {each.upper() for each in names}
    for each in names:
        # ARRAY, VARCHAR and others are no types without their parameters.
        with suppress(InvalidTypeError):
            allowed.add(read_type(each).root)
    for each in events:
        wire = each.data_type if isinstance(each, _NEW) else None
        wire = each.new_data_type if isinstance(each, ColumnTypeUpdated) else wire
        if wire is None:
            continue
        for place in type_places([DataField(0, "", type_from_wire(wire))]):
            if place.type.root not in allowed:
                path = quote_path((*each.field_names, *place.path[1:]))
                rule = f"{said} allows {said.value}, not {place.type.root}"
                yield _policy_refusal(f"column {path}", rule, "choose one")


def _owner_refusals(
    state: TableState | None, said: _DeclaredRule, events: Sequence[Any], context: CommitContext
) -> Iterator[FormatError]:
    if state is not None:
        yield from _foreign_column_refusals(
            state, _owned_column_id(said.key), said, events, context
        )


def _owner_path_refusals(
    state: TableState | None, said: _DeclaredRule, events: Sequence[Any], context: CommitContext
) -> Iterator[FormatError]:
    path = parse_column_path(said.key.removeprefix(OWNERS))
    owned = None if state is None else dict(paths_of(state.schema)).get(path)
    if state is None or owned is None or f"{OWNERS}{owned}" in state.schema.options:
        # The table itself declares the column's owners, or the column does not exist.
        return
    yield from _foreign_column_refusals(state, owned, said, events, context)


def _foreign_column_refusals(
    state: TableState,
    owned: int,
    said: _DeclaredRule,
    events: Sequence[Any],
    context: CommitContext,
) -> Iterator[FormatError]:
    """Yield the reasons for which an author may not change a column of others."""
    authors = [each.strip() for each in said.value.split(",")]
    if any(fnmatchcase(context.author, each) for each in authors):
        return
    within = _owned_column_paths(state, owned)
    for each in events:
        # Declaring a column's owners in the table itself needs the current owner.
        is_lifted = _changes_rule(each, said.key) or _changes_rule(each, f"{OWNERS}{owned}")
        touched = owned if is_lifted else getattr(each, "field_id", None)
        # A new member of a column is a change of it.
        touched = getattr(each, "parent_id", None) if isinstance(each, _NEW) else touched
        if touched in within:
            path = within[touched]
            rule = f"{said} restricts it to {said.value}"
            yield _policy_refusal(f"column {path}", rule, "ask its owner to do it")
            return


def _owned_column_id(key: str) -> int:
    return int(key.removeprefix(OWNERS))


def _owned_column_paths(state: TableState, owned: int) -> Mapping[Any, str]:
    """Return the paths of a column and those inside it, by id; empty where it was dropped."""
    places = [each for each in type_places(state.schema.fields) if each.field is not None]
    path = next((each.path for each in places if each.field and each.field.id == owned), None)
    if path is None:
        return {}
    return {
        each.field.id: quote_path(each.path)
        for each in places
        if each.field is not None and each.path[: len(path)] == path
    }


def _changes_rule(event: object, key: str) -> bool:
    """Return whether an event sets or removes a rule."""
    return isinstance(event, SetOption | RemoveOption) and event.key == key


def _freeze_refusals(
    _state: TableState | None, said: _DeclaredRule, events: Sequence[Any], context: CommitContext
) -> Iterator[FormatError]:
    if all(_changes_rule(each, said.key) for each in events):
        return
    now = context.now_millis()
    for begin, end in _parse_freeze_windows(said.value):
        if begin <= now < end:
            own = f"set option {said.key}=false of the table" if said.database else ""
            yield _policy_refusal(
                "the change",
                f"{said} freezes changes now ({said.value})",
                f"wait, or lift the freeze: {own or f'remove option {said.key}'}",
            )
            return


def _parse_freeze_windows(value: str) -> Iterator[tuple[float, float]]:
    if value == "true":
        yield float("-inf"), float("inf")
    for each in value.split(",") if value not in {"true", "false", ""} else ():
        begin, _, end = each.strip().partition("/")
        yield _parse_millis(begin), _parse_millis(end)


def _parse_millis(text: str) -> float:
    moment = parse_iso_datetime(text.strip())
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return moment.timestamp() * 1000


def _check_rule_readable(said: _DeclaredRule) -> None:
    """Reject a rule whose value is invalid.

    Raises:
        InvalidChangeError: It is.
    """
    try:
        said.rule.reads(said)
    except (ValueError, re.error) as error:
        raise _unreadable_rule_error(said, error) from error


def _unreadable_rule_error(said: _DeclaredRule, error: Exception) -> InvalidChangeError:
    return InvalidChangeError(
        f"option {said}: {said.value!r} is a rule that cannot be read: {error}"
    )


def _policy_refusal(what: str, rule: str, alternative: str) -> FormatError:
    return FormatError(f"{what}: {rule}; {alternative}", "ledger", rule, alternative)


class _RuleKind(Struct, frozen=True):
    """A kind of rule.

    Attributes:
        refuses: Yields the reasons for which a rule of the kind rejects a change.
        reads: Parses a rule's value; raises if it is invalid.
    """

    refuses: Callable[
        [TableState | None, _DeclaredRule, Sequence[Any], CommitContext], Iterator[FormatError]
    ]
    reads: Callable[[_DeclaredRule], object]


_OWNERS_BY_PATH: Final = _RuleKind(
    _owner_path_refusals, lambda said: parse_column_path(said.key.removeprefix(OWNERS))
)

_RULES: Final[Mapping[str, _RuleKind]] = {
    "ledger.require-message": _RuleKind(_message_refusals, lambda said: re.compile(said.value)),
    "ledger.column-names": _RuleKind(_name_refusals, lambda said: re.compile(said.value)),
    "ledger.allowed-types": _RuleKind(_type_refusals, lambda said: said.value),
    OWNERS: _RuleKind(_owner_refusals, lambda said: _owned_column_id(said.key)),
    "ledger.freeze": _RuleKind(
        _freeze_refusals, lambda said: list(_parse_freeze_windows(said.value))
    ),
}

RULE_OPTIONS: Final = tuple(each for each in _RULES if each != OWNERS)
"""The rules with fixed keys."""
