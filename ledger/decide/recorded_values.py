"""Checks of the values in events and files before they are recorded.

Used on the events of a source before they are committed, and by `verify` on recorded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from attrs import frozen
from msgspec import UNSET, Struct, UnsetType

from ledger.decide.bounds import IN_LOGS, IN_LOGS_BY_KEY, LONG, Bound
from ledger.events.catalog import DatabaseCreated
from ledger.events.imported import StatisticsSet
from ledger.events.schema import SetOption
from ledger.events.snapshots import ListingEvent, PartitionStatisticsSet
from ledger.events.table import TableCreated
from ledger.locations import may_escape_folder
from ledger.model.credentials import find_credentials
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange, inline_files
from ledger.model.messages import excerpt
from ledger.model.types.wire import FieldObject, TypeObject

_Values = Callable[[Sequence[Struct]], Iterable[Any]]
"""Gets some values of each of some records."""

_Range = tuple[int, int]
"""The smallest and the greatest number that is allowed."""

_NO_RANGE: Final = (0, 0)
"""Range of values that are not numbers, such as texts."""

_NO_NUMBERS: Final = frozenset((UNSET, None))
_SCALARS: Final = frozenset((int, str, bool, NoneType))


def number_problems(record: Struct) -> Iterator[str]:
    """Yield each number of a record, and of what is inside it, that is out of its key's range.

    Example:
        >>> from ledger.events.snapshots import SnapshotsExpired
        >>> list(number_problems(SnapshotsExpired(earliest_snapshot_id=0)))
        ['earliestSnapshotId is 0, out of 1 to 9223372036854775807']
    """
    if not number_keys_of(type(record)).all_fit((record,)):
        yield from _out_of_range_numbers(record)


def _out_of_range_numbers(record: Struct) -> Iterator[str]:
    for name, encoded, numbers, keys in number_keys_of(type(record)).keys:
        value = getattr(record, name)
        if type(value) is int:
            low, high = numbers
            if not low <= value <= high:
                yield f"{encoded} is {short_number(value)}, out of {low} to {high}"
        elif type(value) is tuple:
            yield from _nested_number_problems(value, encoded, numbers)
        elif isinstance(value, dict):
            yield from _nested_number_problems(value, encoded, keys)
            yield from _nested_number_problems(value.values(), encoded, numbers)
        elif isinstance(value, Struct):
            yield from number_problems(value)


@frozen
class NumberKeys:
    """The keys of a kind of record that may hold numbers, or records that do.

    Attributes:
        keys: For each attribute: its name, its key in the log, its range, and that of map keys.
        plain: A getter of the numbers, or absent values, of one range, and the range.
        nested: A getter of a value that may hold several numbers, or a record, and its ranges.
    """

    keys: tuple[tuple[str, str, _Range, _Range], ...]
    plain: tuple[tuple[_Values, int, int], ...]
    nested: tuple[tuple[_Values, _Range, _Range], ...]

    def all_fit(self, records: Sequence[Struct]) -> bool:
        """Return whether all numbers of some records are in range, by a quick check.

        False: a full check is needed, such as of records inside records.
        """
        for values_of, low, high in self.plain:
            # Most columns have few distinct values.
            numbers = {*values_of(records)} - _NO_NUMBERS
            if numbers and not (low <= min(numbers) and max(numbers) <= high):
                return False
        for values_of, inside, keys in self.nested:
            values = [*values_of(records)]
            if any(values) and not all(
                _is_value_in_range(each, inside, keys) for each in values if each
            ):
                return False
        return True


def _is_value_in_range(value: object, numbers: _Range, keys: _Range) -> bool:
    """Return whether all numbers inside a value are in range; False: a full check is needed."""
    if isinstance(value, dict):
        # Texts have no range.
        return all(
            limits is _NO_RANGE or (limits[0] <= min(some) and max(some) <= limits[1])
            for limits, some in ((keys, value), (numbers, value.values()))
        )
    if type(value) is not tuple:
        # Most types are a text.
        return type(value) is str
    whole = [each for each in value if each.__class__ is int]
    if whole and not (numbers[0] <= min(whole) and max(whole) <= numbers[1]):
        return False
    return len(whole) == len(value) or _SCALARS.issuperset(map(type, value))


def _nested_number_problems(values: Iterable[object], name: str, limits: _Range) -> Iterator[str]:
    low, high = limits
    for each in values:
        if isinstance(each, Struct):
            yield from number_problems(each)
        elif type(each) is int and not low <= each <= high:
            yield f"{name} holds {short_number(each)}, out of {low} to {high}"


def short_number(number: int) -> str:
    """Return a number for a message, however many digits it has."""
    # Python refuses to print very long ones.
    bits = number.bit_length()
    return str(number) if bits <= 128 else f"a number of {bits} bits"  # noqa: PLR2004 - 39 digits


@cache
def number_keys_of(kind: type[Struct]) -> NumberKeys:
    """Return the keys of a kind of record that may hold numbers, with their ranges."""
    of_range: dict[_Range, list[str]] = {}
    keys, nested = [], []
    for each in msgspec.structs.fields(kind):
        if not _holds_numbers(each.type):
            continue
        if dict in {get_origin(one) for one in (each.type, *get_args(each.type))}:
            of_keys, of_values = IN_LOGS_BY_KEY[each.name]
            limits = _log_limits(of_values, _NO_RANGE), _log_limits(of_keys, _NO_RANGE)
        else:
            limits = _log_limits(IN_LOGS.get(each.name), LONG), _NO_RANGE
        keys.append((each.name, each.encode_name, *limits))
        if {*_union_member_types(each.type)} <= {int, UnsetType, NoneType}:
            of_range.setdefault(limits[0], []).append(each.name)
        else:
            nested.append((_attribute_getter((each.name,)), *limits))
    plain = [(_attribute_getter(names), *limits) for limits, names in of_range.items()]
    return NumberKeys(tuple(keys), tuple(plain), tuple(nested))


def _union_member_types(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, without the bounds of their numbers."""
    if get_origin(annotation) is Annotated:
        yield get_args(annotation)[0]
    elif get_origin(annotation) in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _union_member_types(each)
    else:
        yield annotation


def _log_limits(bound: Bound | None, default: _Range) -> _Range:
    return default if bound is None else bound.log_limits


def _attribute_getter(names: Sequence[str]) -> _Values:
    """Return a getter of the values of some attributes of some records."""
    getter = attrgetter(*names)
    if len(names) > 1:
        return lambda records: chain.from_iterable(map(getter, records))
    return lambda records: map(getter, records)


def _holds_numbers(annotation: Any) -> bool:
    if annotation in {int, FieldObject, TypeObject}:
        return True
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return bool(number_keys_of(annotation).keys)
    return any(_holds_numbers(each) for each in get_args(annotation) if each is not Ellipsis)


_PATHS: Final[dict[type, Callable[[Any], str]]] = {
    TableCreated: attrgetter("path"),
    DatabaseCreated: attrgetter("path"),
    PartitionStatisticsSet: attrgetter("partition_statistics.statistics_path"),
    StatisticsSet: attrgetter("statistics.statistics_path"),
}
KINDS_WITH_PATHS: Final = _PATHS.keys()
"""The events that have a path."""


def path_problems(event: Struct) -> Iterator[str]:
    """Yield the path of an event if it leaves the folder that it has to stay in."""
    path_of = _PATHS.get(type(event))
    if path_of is not None and may_escape_folder(path_of(event)):
        yield f"its path {excerpt(path_of(event))} is outside of its folder"


def file_path_problems(file: FileChange) -> Iterator[str]:
    """Yield the paths of a file that leave the folder that they have to stay in."""
    if may_escape_folder(file.path):
        yield f"the file path {excerpt(file.path)} is outside of its folder"
    referenced = file.referenced_data_file
    if isinstance(referenced, str) and may_escape_folder(referenced):
        yield f"file {excerpt(file.path)} deletes rows of a file that is outside of its folder"


def check_recorded_values(said: Iterable[object], source: str) -> None:
    """Reject values of a source that no log can hold.

    Args:
        said: Events, with the files in them, and parts of events.
        source: Name of the source, for the message.

    Raises:
        InvalidInputError: A number is out of its range, a path leaves its folder, or a URL
            carries credentials.

    Example:
        >>> from ledger.events.snapshots import SnapshotsExpired
        >>> check_recorded_values([SnapshotsExpired(earliest_snapshot_id=1)], "/web/visits")
    """
    for each in said:
        if not isinstance(each, Struct):
            continue
        for problem in _recorded_value_problems(each):
            raise InvalidInputError(
                f"{source}: {problem}, which a log cannot hold; nothing was written: correct "
                "it, then retry"
            )
        check_credentials(msgspec.json.encode(each).decode(), source)
        if isinstance(each, SetOption):
            # As a document with that key, in which names of secrets are known.
            check_credentials(msgspec.json.encode({each.key: each.value}).decode(), source)


def check_credentials(text: str, source: str) -> None:
    """Check that no URL within a text of a source carries credentials, which a log would keep.

    Args:
        text: Any text, also JSON.
        source: Name of the source, for the message.

    Raises:
        InvalidInputError: One does.
    """
    found = find_credentials(text)
    if found is not None:
        raise InvalidInputError(
            f"{source}: {excerpt(found)} carries a user, a key or a signature, and a ledger keeps "
            "no credentials; nothing was written: take them out of the metadata, and give the "
            "credentials of the location as storage_options"
        )


def parts_of_creation(creation: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts of a table's origin at its creation, by the keys of `TableCreated`."""
    for each in creation.values():
        yield from each if isinstance(each, tuple) else (each,)


def _recorded_value_problems(said: Struct) -> Iterator[str]:
    yield from number_problems(said)
    yield from path_problems(said)
    if not isinstance(said, ListingEvent):
        return
    files = inline_files(said.files)
    if not number_keys_of(FileChange).all_fit(files):
        for each in files:
            for problem in number_problems(each):
                yield f"file {excerpt(each.path)}: {problem}"
    for each in files:
        yield from file_path_problems(each)
