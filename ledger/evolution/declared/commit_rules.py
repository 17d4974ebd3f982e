"""What a table asks of whoever changes it: rules of its owners, declared as options.

What the options refuse:

- `ledger.require-message`: a change without a message (`true`), or with one in which this regular
  expression is not found.
- `ledger.column-names`: a column's name that this regular expression does not match whole.
- `ledger.allowed-types`: a type whose name is not on this list, as `INT,STRING`.
- `ledger.owners.ID`: a change of the column of this field id by nobody on this list, as
  `ann,etl@*`.
- `ledger.freeze`: a change in one of these times, `START/END,...` as ISO 8601 with a zone; or at
  any (`true`).

They are about schema, options, comment and layout, not about data and tags. Who lifts one, by
`removeOption`, does so in a commit with his name; that is never frozen. Like formats, they are
asked when a change is decided, and never on replay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final

from attrs import frozen

from ledger.events import TableEvent
from ledger.events.schema_changes import RemoveOption, SetOption
from ledger.events.schema_events import (
    ColumnAdded,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    SchemaEvent,
)
from ledger.events.spec_events import SpecEvent
from ledger.evolution.state import TableState
from ledger.model.errors import FormatError, InvalidChangeError
from ledger.model.path_text import shown_path
from ledger.model.types import DataField
from ledger.model.types.walk import type_places
from ledger.model.types.wire import type_from_wire

OWNERS: Final = "ledger.owners."
"""What the rules begin with that say whose a column is; its field id follows."""


@frozen
class Asker:
    """Who wants a change.

    Attributes:
        author: Who.
        message: Why; None where that is not known yet.
        now_millis: Gives the time, Unix milliseconds; asked only where something may be frozen.
    """

    author: str
    message: str | None
    now_millis: Callable[[], int]


def refuse_commit(state: TableState, events: Sequence[TableEvent], asker: Asker) -> None:
    """Refuse what a table's own rules do not allow.

    Raises:
        FormatError: They do not; `format` is `ledger`.
        InvalidChangeError: A rule that is set cannot be read.
    """
    refusal = next(commit_refusals(state, events, asker), None)
    if refusal is not None:
        raise refusal


def commit_refusals(
    state: TableState, events: Sequence[TableEvent], asker: Asker
) -> Iterator[FormatError]:
    """Yield why a table's own rules do not allow a change.

    Args:
        state: The table before it, whose rules count.
        events: What it comes to.
        asker: Who wants it.

    Raises:
        InvalidChangeError: A rule that it sets cannot be read.
    """
    meant = [each for each in events if isinstance(each, SchemaEvent | SpecEvent)]
    if not meant:
        # Options may be many, and most commits are of files.
        return
    for event in meant:
        if isinstance(event, SetOption) and is_rule(event.key):
            _check_readable(event.key, event.value)
    rules = {key: v for key, v in state.schema.options.items() if is_rule(key)}
    for key, value in sorted(rules.items()):
        try:
            yield from _rule(key).refuses(state, key, value, meant, asker)
        except (ValueError, re.error) as error:
            # One that was set when nobody looked must not be there for ever.
            if not any(_lifts(each, key) for each in meant):
                raise _unreadable(key, value, error) from error


def is_rule(key: str) -> bool:
    """Return whether an option is a rule for commits.

    Example:
        >>> is_rule("ledger.freeze"), is_rule("ledger.owners.3"), is_rule("ledger.freezer")
        (True, True, False)
    """
    return key in _RULES or key.startswith(OWNERS)


def _rule(key: str) -> _Rule:
    return _RULES[OWNERS if key.startswith(OWNERS) else key]


def _message(
    _state: TableState, key: str, value: str, _events: Sequence[Any], asker: Asker
) -> Iterator[FormatError]:
    if asker.message is None:
        return
    pattern = r"\S" if value == "true" else value
    if value != "false" and re.search(pattern, asker.message) is None:
        wanted = "a message" if value == "true" else f"a message that matches {value}"
        yield _refusal("the change", f"{key} asks for {wanted}", "say why: message=, --message")


def _names(
    _state: TableState, key: str, value: str, events: Sequence[Any], _asker: Asker
) -> Iterator[FormatError]:
    for name in _given_names(events):
        if re.fullmatch(value, name) is None:
            yield _refusal(f"column {name}", f"{key} wants names like {value}", "choose another")


_NEW = (ColumnAdded, ColumnUndropped)
"""Facts by which a table has one column more."""


def _given_names(events: Sequence[Any]) -> Iterator[str]:
    for each in events:
        if isinstance(each, _NEW):
            yield each.field_names[-1]
            yield from (name for name, _ in _inside(each.data_type))
        elif isinstance(each, ColumnRenamed):
            yield each.new_name


def _inside(wire: Any) -> Iterator[tuple[str, str]]:
    """Yield the named members inside a type, each with its type's name."""
    for place in type_places([DataField(0, "", type_from_wire(wire))]):
        if place.field is not None and place.level != (None,):
            yield place.field.name, place.type.root


def _types(
    _state: TableState, key: str, value: str, events: Sequence[Any], _asker: Asker
) -> Iterator[FormatError]:
    allowed = {each.strip().upper() for each in value.split(",")}
    allowed |= {"VARCHAR"} if "STRING" in allowed else set()
    allowed |= {"VARBINARY"} if "BYTES" in allowed else set()
    for each in events:
        wire = each.data_type if isinstance(each, _NEW) else None
        wire = each.new_data_type if isinstance(each, ColumnTypeUpdated) else wire
        if wire is None:
            continue
        for place in type_places([DataField(0, "", type_from_wire(wire))]):
            if place.type.root not in allowed:
                path = shown_path((*each.field_names, *place.path[1:]))
                yield _refusal(
                    f"column {path}", f"{key} allows {value}, not {place.type.root}", "choose one"
                )


def _owners(
    state: TableState, key: str, value: str, events: Sequence[Any], asker: Asker
) -> Iterator[FormatError]:
    owned = _owned(key)
    authors = [each.strip() for each in value.split(",")]
    if any(fnmatchcase(asker.author, each) for each in authors):
        return
    within = _within(state, owned)
    for each in events:
        touched = owned if _lifts(each, key) else getattr(each, "field_id", None)
        # A new member of a column is a change of it.
        touched = getattr(each, "parent_id", None) if isinstance(each, _NEW) else touched
        if touched in within:
            path = within[touched]
            yield _refusal(
                f"column {path}", f"{key} says that it is of {value}", "ask its owner to do it"
            )
            return


def _owned(key: str) -> int:
    return int(key.removeprefix(OWNERS))


def _within(state: TableState, owned: int) -> Mapping[Any, str]:
    """Return a column and those inside it: where they stand, by id; empty where it is gone."""
    places = [each for each in type_places(state.schema.fields) if each.field is not None]
    path = next((each.path for each in places if each.field and each.field.id == owned), None)
    if path is None:
        return {}
    return {
        each.field.id: shown_path(each.path)
        for each in places
        if each.field is not None and each.path[: len(path)] == path
    }


def _lifts(event: object, key: str) -> bool:
    """Whether a fact sets or removes a rule."""
    return isinstance(event, SetOption | RemoveOption) and event.key == key


def _freeze(
    _state: TableState, key: str, value: str, events: Sequence[Any], asker: Asker
) -> Iterator[FormatError]:
    if all(_lifts(each, key) for each in events):
        return
    now = asker.now_millis()
    for begin, end in _windows(value):
        if begin <= now < end:
            yield _refusal(
                "the change",
                f"{key} says that nothing changes now ({value})",
                f"wait, or lift it by name: remove option {key}",
            )
            return


def _windows(value: str) -> Iterator[tuple[float, float]]:
    if value == "true":
        yield float("-inf"), float("inf")
    for each in value.split(",") if value not in {"true", "false", ""} else ():
        begin, _, end = each.strip().partition("/")
        yield _millis(begin), _millis(end)


def _millis(text: str) -> float:
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return moment.timestamp() * 1000


def _check_readable(key: str, value: str) -> None:
    """Refuse a rule that nobody could ever follow.

    Raises:
        InvalidChangeError: It cannot be read.
    """
    try:
        _rule(key).reads(key, value)
    except (ValueError, re.error) as error:
        raise _unreadable(key, value, error) from error


def _unreadable(key: str, value: str, error: Exception) -> InvalidChangeError:
    return InvalidChangeError(f"option {key}={value!r} is a rule that cannot be read: {error}")


def _refusal(what: str, rule: str, alternative: str) -> FormatError:
    return FormatError(f"{what}: {rule}; {alternative}", "ledger", rule, alternative)


@frozen
class _Rule:
    """A kind of rule.

    Attributes:
        refuses: Yields why a rule of the kind does not allow a change.
        reads: Reads a key and a value; raises what nobody could follow.
    """

    refuses: Callable[[TableState, str, str, Sequence[Any], Asker], Iterator[FormatError]]
    reads: Callable[[str, str], object]


_RULES: Final[Mapping[str, _Rule]] = {
    "ledger.require-message": _Rule(_message, lambda _, value: re.compile(value)),
    "ledger.column-names": _Rule(_names, lambda _, value: re.compile(value)),
    "ledger.allowed-types": _Rule(_types, lambda _, value: value),
    OWNERS: _Rule(_owners, lambda key, _: _owned(key)),
    "ledger.freeze": _Rule(_freeze, lambda _, value: list(_windows(value))),
}
