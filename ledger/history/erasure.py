"""Erasure of personal data from sidecar files.

Personal values are only in sidecar files: no cache and no segment ever contains one. Metadata of
engines contains partition values, and is rendered again. Values inside log lines cannot be erased
and are reported: an older commit's author, a data file's path, an option's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import unquote

import msgspec
from attrs import field, frozen

from ledger.decide.bounds import list_map_member_ids
from ledger.files.change_lists import commit_files
from ledger.history.value_matcher import ValueMatcher, may_be_truncated_from
from ledger.log import personal_data
from ledger.log.personal_data import (
    BOUNDS,
    COLUMNS,
    FIELDS,
    FOLDER,
    ColumnValue,
    Field,
    PersonalSidecars,
    Values,
    confirm_folders,
    decoded,
    encoded,
    erase_content,
    first,
    folder_of,
    newest,
)
from ledger.log.replay import START, Read
from ledger.log.stream_log import StreamLog
from ledger.model import types as t
from ledger.model.errors import DamagedLogError, InvalidInputError, LedgerError
from ledger.model.file_change import FileChange, PartitionValue, sidecar_location_of
from ledger.model.iceberg_layout import PartitionField, PartitionSpec, SomeSpecs, spec_of_id
from ledger.model.messages import excerpt, is_utf8_encodable
from ledger.model.schema import Schema
from ledger.model.types import walk_fields, walk_ids
from ledger.model.types.text import format_type
from ledger.state.table import TableState
from ledger.stores import Store

_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_AT_ONCE: Final = 256
_LOCK: Final = f"{FOLDER}/lock"


class ErasureCriterion(Protocol):
    """Criterion of an erasure: the personal values to erase."""

    @property
    def folder(self) -> str:
        """The folder of sidecar files that can contain the values, below the ledger's root."""

    @property
    def column_ids(self) -> tuple[str, int] | tuple[()]:
        """The ids of the only table and column concerned; empty if values may be anywhere."""

    def fields(self, values: Values) -> tuple[Field, ...]:
        """Return the fields of a transaction's sidecar values to erase."""

    def matches_column_value(self, value: ColumnValue) -> bool:
        """Return True if a personal column's value is to be erased."""

    def is_in_commit(self, read: Read[Any], files: Sequence[FileChange]) -> bool:
        """Return True if a commit's line, or its change file, contains a value permanently."""

    def is_in_data_path(self, path: str) -> bool:
        """Return True if a data file's path contains a value."""

    def author_to_record(self, name: str) -> str:
        """Return the author to record for the erasure; empty if the name is to be erased."""

    def check_message(self, message: str) -> str:
        """Return the message to record for the erasure, after checking it.

        Raises:
            InvalidInputError: It contains a value to be erased.
        """


def revealing_message_error() -> InvalidInputError:
    """Return the error for an erasure's message that contains a value to be erased."""
    return InvalidInputError(
        "the message of an erasure is recorded in the ledger, and this one names what is to be "
        "erased; rephrase it. Nothing was written"
    )


@frozen
class AuthorOrTextCriterion:
    """Criterion of an erasure by author, or by text.

    Attributes:
        author: Erase this author's values, and others' values that contain the name as a word.
        text: Erase every value that contains this text.
    """

    author: str | None = None
    text: str | None = None
    _word: re.Pattern[str] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if (self.author is None) == (self.text is None) or not self.sought_text.strip():
            raise InvalidInputError(
                "an erasure needs one author, or one text, and neither may be empty"
            )
        if not is_utf8_encodable(self.sought_text):
            raise InvalidInputError(
                f"{excerpt(self.sought_text)} contains a lone surrogate: no log has one"
            )

    @_word.default
    def _compile_word_pattern(self) -> re.Pattern[str]:
        return re.compile(rf"(?<!\w){re.escape(self.author or self.text or '')}(?!\w)")

    @property
    def sought_text(self) -> str:
        """The author or text to erase."""
        return self.author or self.text or ""

    def names(self, said: str) -> bool:
        """Return True if a text names the author as a word, or contains the text."""
        if self.text is not None:
            return self.text in said
        return self._word.search(said) is not None

    def author_to_record(self, name: str) -> str:
        """Return the author to record for the erasure; empty if the name is to be erased."""
        is_meant = name == self.author or (self.text is not None and self.names(name))
        return "" if is_meant else name

    def check_message(self, message: str) -> str:
        """Return the message to record for the erasure, after checking it.

        Raises:
            InvalidInputError: It contains a value to be erased.
        """
        if self.names(message):
            raise revealing_message_error()
        return message

    @property
    def folder(self) -> str:
        """The folder of sidecar files that can contain the values, below the ledger's root."""
        return FOLDER

    @property
    def column_ids(self) -> tuple[()]:
        """Empty: values may be in any table and column."""
        return ()

    def matches_column_value(self, value: ColumnValue) -> bool:
        """Return True if a personal column's value is to be erased."""
        if value.of != personal_data.BOUNDS:
            return self.names(str(value.partition))
        texts = (_decode_bound(each) for each in (value.bounds.lower, value.bounds.upper))
        return any(
            self.names(each) or may_be_truncated_from(each, self.sought_text) for each in texts
        )

    def is_in_commit(self, read: Read[Any], files: Sequence[FileChange]) -> bool:
        """Return True if a commit's line, or its change file, contains a value permanently."""
        plain = msgspec.json.encode(self.sought_text)[1:-1]
        bodies = (read.body, *map(msgspec.json.encode, files))
        needles = (plain, self.sought_text.encode().hex().encode())
        return any(each in one for one in bodies for each in needles)

    def is_in_data_path(self, path: str) -> bool:
        """Return True if a data file's path contains a value."""
        return self.sought_text in path or self.sought_text in unquote(path)

    def fields(self, values: Values) -> tuple[Field, ...]:
        """Return the fields of a transaction's sidecar values to erase."""
        there = tuple(each for each in FIELDS if values.get(each) is not None)
        author = "" if values.author is None else values.author.value
        if author == self.author:
            return there
        return tuple(each for each in there if self._is_in_field(each, values))

    def _is_in_field(self, which: Field, values: Values) -> bool:
        value = values.get(which)
        if value is None or (which == "author" and self.text is None):
            return False
        if which != "properties":
            return self.names(value.value)
        properties = _TEXTS.decode(value.value)
        return any(map(self.names, (*properties, *properties.values())))


def _decode_bound(bound: str | None) -> str:
    try:
        return bytes.fromhex(bound or "").decode()
    except (ValueError, UnicodeDecodeError):
        return ""


@frozen
class RemainingValues:
    """Values that an erasure cannot remove from a stream's log.

    Attributes:
        stream: The stream's name.
        versions: Versions of the commits whose lines or change files contain a value.
        paths: Paths of data files that contain a value.
        problem: The error that prevented reading the stream; empty if it was read.
    """

    stream: str
    versions: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    problem: str = ""


@frozen
class Erasure:
    """Result of an erasure, or of its dry run: values erased, and values that cannot be.

    Attributes:
        values: Number of values: authors, messages, maps of properties, bounds, partition values.
        transactions: Number of transactions that they belong to.
        remaining: Values that remain in logs.
        version: The catalog's version that records the erasure; None if nothing was erased.
        unrendered: Files of engines' metadata that could not be rendered again, with reasons.
        repeated: True if that commit had been committed by an earlier attempt.
    """

    values: int
    transactions: int
    remaining: tuple[RemainingValues, ...]
    version: int | None = None
    unrendered: tuple[str, ...] = ()
    repeated: bool = False


Progress = Callable[[str, int, int], None]
"""Called with the phase, the number of items done, and the number of all items."""


def count_matches(
    personal: PersonalSidecars, sought: ErasureCriterion, report: Progress
) -> tuple[int, int]:
    """Return the number of values to erase, and of the transactions that they belong to."""
    counts = [each for _, each in _matching_sidecars(personal.store, sought, report)]
    return sum(counts), len(counts)


def erase(personal: PersonalSidecars, sought: ErasureCriterion, report: Progress) -> None:
    """Erase all matching values from sidecar files; repeat until none is left.

    Raises:
        OSError: The store failed; a retry continues.
    """
    store = personal.store
    with store.lock(_LOCK):
        while count_matches(personal, sought, report) != (0, 0):
            for key, _ in _matching_sidecars(store, sought, report):
                erase_content(store, key, partial(_body_without_matches, key, sought))
        for draft in store.drafts(FOLDER):
            # A concurrent writer sees an unknown outcome, and writes its file again.
            store.discard(draft)
        confirm_folders(store, store.walk(sought.folder))


def _matching_sidecars(
    store: Store, sought: ErasureCriterion, report: Progress
) -> Iterator[tuple[str, int]]:
    """Yield the sidecar files that contain matching values, and the number of values."""
    keys = [each for each in store.walk(sought.folder) if each == first(each)]
    for begin in range(0, len(keys), _AT_ONCE):
        some = keys[begin : begin + _AT_ONCE]
        for key, body in zip(some, newest(store, some), strict=True):
            count = 0 if body is None else _remove_matches(key, body, sought)[1]
            if count:
                yield key, count
        report("personal values", begin + len(some), len(keys))


def _body_without_matches(key: str, sought: ErasureCriterion, body: bytes) -> bytes | None:
    return _remove_matches(key, body, sought)[0]


def _remove_matches(key: str, body: bytes, sought: ErasureCriterion) -> tuple[bytes | None, int]:
    """Return a sidecar file without the matching values, or None, and the number of values.

    None: the file has no such value. An unreadable file is emptied, since readers treat its values
    as erased anyway.
    """
    if key.startswith(f"{COLUMNS}/"):
        return _remove_column_matches(key, body, sought)
    try:
        values = decoded(body, key)
    except DamagedLogError:
        return encoded(Values(0)), 1
    fields = sought.fields(values)
    return (encoded(values.without(fields)) if fields else None), len(fields)


def _remove_column_matches(
    key: str, body: bytes, sought: ErasureCriterion
) -> tuple[bytes | None, int]:
    try:
        kept = personal_data.decode_values(body, key)
    except DamagedLogError:
        return personal_data.encode_values(personal_data.ColumnValues(0, {})), 1
    stays = {
        digest: each
        for digest, each in kept.values.items()
        if not sought.matches_column_value(each)
    }
    gone = len(kept.values) - len(stays)
    less = personal_data.ColumnValues(kept.time_millis, stays)
    return (personal_data.encode_values(less) if gone else None), gone


def remaining(
    streams: Iterable[tuple[str, StreamLog[Any, Any]]], sought: ErasureCriterion, report: Progress
) -> Iterator[RemainingValues]:
    """Yield the streams whose logs contain matching values, and those that cannot be read."""
    for name, log in streams:
        versions: list[int] = []
        paths: dict[str, None] = {}
        try:
            state = log.refresh()
            last = -1 if state is None else state.version
            for read in log.reader.after(START, last) if last >= 0 else ():
                files = list(commit_files(log.store, log.layout, read.commit))
                if sought.is_in_commit(read, files):
                    versions.append(read.commit.version)
                paths |= dict.fromkeys(
                    each.path for each in files if sought.is_in_data_path(each.path)
                )
                if read.commit.version % _AT_ONCE == 0:
                    report(name, read.commit.version + 1, last + 1)
        except (LedgerError, OSError) as error:
            yield RemainingValues(name, tuple(versions), tuple(paths), str(error))
        else:
            if versions or paths:
                yield RemainingValues(name, tuple(versions), tuple(paths))


_ID_KEYS: Final = ("fieldId", "id", "field-id")
_DEFAULT_KEYS: Final = (
    *("defaultValue", "newDefaultValue", "initialDefault"),
    *("initial-default", "write-default"),
)


@frozen
class ColumnCriterion:
    """Criterion of an erasure by column, nested fields included: all of its values, or one.

    Attributes:
        table_id: The table's id.
        column: The column in its current or last form.
        value: The value to erase; None for all values.
        ids: The field ids of the column and of all fields that were ever nested in it.
        specs: The table's partition specs.
    """

    table_id: str
    column: t.DataField
    value: ValueMatcher | None
    ids: frozenset[int]
    specs: SomeSpecs

    @property
    def folder(self) -> str:
        """The folder of sidecar files that can contain the values, below the ledger's root."""
        return folder_of(self.table_id)

    @property
    def column_ids(self) -> tuple[str, int]:
        """The ids of the table and of the column."""
        return self.table_id, self.column.id

    def fields(self, _values: Values) -> tuple[Field, ...]:
        """Return no field: authors and messages are not values of a column."""
        return ()

    def matches_column_value(self, value: ColumnValue) -> bool:
        """Return True if a personal column's value is to be erased."""
        if value.field_id not in self.ids:
            return False
        if value.of == BOUNDS:
            bounds = (value.bounds.lower, value.bounds.upper)
            return any(self._matches_bound(value.field_id, each) for each in bounds)
        return self._matches_partition(value.field_id, value.partition, value.of)

    def is_in_commit(self, read: Read[Any], files: Sequence[FileChange]) -> bool:
        """Return True if a commit's line, or its change file, contains a value permanently."""
        return any(map(self._is_in_file, files)) or any(
            map(self._matches_default, self._defaults_in_commit(read))
        )

    def is_in_data_path(self, path: str) -> bool:
        """Return True if a data file's path contains a value."""
        plain = unquote(path)
        if self.value is not None:
            folders = {each.partition("=")[2] for each in plain.split("/")[:-1]}
            return self.value.said in plain or not folders.isdisjoint(self.value.all_spellings)
        names = {
            each.name for spec in self.specs for each in self._partition_fields_on_column(spec)
        }
        return any(f"{name}=" in plain for name in names)

    def author_to_record(self, name: str) -> str:
        """Return the author to record for the erasure; empty if the name is to be erased."""
        return "" if self._is_in_text(name) else name

    def check_message(self, message: str) -> str:
        """Return the message to record for the erasure, after checking it.

        Raises:
            InvalidInputError: It contains a value to be erased.
        """
        if self._is_in_text(message):
            raise revealing_message_error()
        return message

    def _is_in_text(self, words: str) -> bool:
        return self.value is not None and self.value.is_contained_in_text(words)

    def _matches_bound(self, field_id: int, bound: str | None) -> bool:
        if bound is None:
            return False
        # It is unknown which member of an earlier type became a part of the value.
        return self.value is None or field_id != self.column.id or self.value.may_be_bound(bound)

    def _matches_partition(self, field_id: int, value: PartitionValue, transform: str) -> bool:
        if self.value is None or field_id != self.column.id:
            return value is not None
        return self.value.matches_partition_value(value, transform)

    def _matches_default(self, text: str) -> bool:
        return self.value is None or self.value.matches_written_text(text)

    def _defaults_in_commit(self, read: Read[Any]) -> Iterator[str]:
        """Yield the column defaults in a commit's line for the column or its nested fields."""
        if b"efault" not in read.body:
            return
        yield from _defaults_of_fields(msgspec.json.decode(read.body), self.ids)

    def _is_in_file(self, file: FileChange) -> bool:
        for bounds in (file.lower_bounds, file.upper_bounds):
            there = bounds.items() if isinstance(bounds, dict) else ()
            if any(key in self.ids and self._matches_bound(key, bound) for key, bound in there):
                return True
        spec = spec_of_id(self.specs, file.spec_id)
        return spec is not None and any(
            sidecar_location_of(value) is None
            and self._matches_partition(each.source_id, value, each.transform)
            for each, value in zip(spec.fields, file.partition, strict=False)
            if each in self._partition_fields_on_column(spec)
        )

    def _partition_fields_on_column(self, spec: PartitionSpec) -> list[PartitionField]:
        return [each for each in spec.fields if each.source_id in self.ids]


def _defaults_of_fields(part: Any, ids: frozenset[int]) -> Iterator[str]:
    """Yield the defaults of the given fields anywhere in JSON, also in JSON inside strings."""
    if isinstance(part, dict):
        if any(part.get(key) in ids for key in _ID_KEYS if type(part.get(key)) is int):
            said = (part[key] for key in _DEFAULT_KEYS if part.get(key) is not None)
            yield from (each if isinstance(each, str) else str(each) for each in said)
        for each in part.values():
            yield from _defaults_of_fields(each, ids)
    elif isinstance(part, list):
        for each in part:
            yield from _defaults_of_fields(each, ids)
    elif isinstance(part, str) and "efault" in part and part[:1] in ("{", "["):
        with suppress(msgspec.DecodeError, UnicodeEncodeError):
            yield from _defaults_of_fields(msgspec.json.decode(part), ids)


def make_column_criterion(
    state: TableState, schemas: Iterable[Schema], field_id: int, value: PartitionValue
) -> ColumnCriterion:
    """Return the criterion to erase a table's column, or one value of it.

    Args:
        state: The table's newest state.
        schemas: All schemas that the table ever had, oldest first: a value may have been written
            under any type that the column had.
        field_id: The column's field id.
        value: The value, or its text in any spelling of the column's current or earlier types;
            None for all values.

    Raises:
        InvalidInputError: It is not a value of the column, or the column has nested fields.
    """
    every = [
        each
        for schema in (*schemas, state.schema)
        for each in walk_fields(schema.fields)
        if each.id == field_id
    ]
    column, types = every[-1], tuple(each.type for each in every)
    ids = frozenset().union(*map(_field_ids_in, {each.type: each for each in every}.values()))
    if value is None:
        return ColumnCriterion(state.table_id, column, None, ids, state.specs)
    if column.type.depth:
        raise InvalidInputError(
            f"column {column.name} has nested fields; name the field of the value, or give no "
            "value to erase all of them"
        )
    matcher = ValueMatcher(str(value), types)
    if not matcher.denotes_value:
        raise InvalidInputError(
            f"{value!r} is no value of column {column.name} {format_type(column.type)}; write "
            "dates and timestamps as in SQL, decimals with all their digits"
        )
    return ColumnCriterion(state.table_id, column, matcher, ids, state.specs)


def _field_ids_in(column: t.DataField) -> frozenset[int]:
    """Return the field ids of a column and its nested fields, as in data files."""
    named = (each.id for each in walk_fields([column]))
    made = (each for _, _, each in list_map_member_ids([column]))
    return frozenset({*named, *walk_ids(column.type), *made})
