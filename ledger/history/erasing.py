"""Taking away what a ledger keeps of somebody outside of its lines, and saying what stays.

The values are in one place, so little else has to be found: no cache and no segment ever holds one.
Engines' metadata holds values of partitions, and is made anew. What lines themselves hold stays: an
older commit's author, a data file's path, an option's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import unquote

import msgspec
from attrs import field, frozen

from ledger.files.change_file import commit_files
from ledger.history.value_matcher import may_be_cut_from
from ledger.log.outside import column_values
from ledger.log.outside.column_values import COLUMNS, ColumnValue
from ledger.log.outside.commit_texts import (
    FIELDS,
    FOLDER,
    Field,
    Personal,
    Values,
    decoded,
    encoded,
)
from ledger.log.outside.erasable import confirm_folders, first, newest, take_out
from ledger.log.replay import START, Read
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, InvalidInputError, LedgerError
from ledger.model.file_change import FileChange
from ledger.model.messages.excerpt import excerpt, is_storable
from ledger.stores import Store

_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_AT_ONCE: Final = 256
_LOCK: Final = f"{FOLDER}/lock"


class Sought(Protocol):
    """What is to go."""

    @property
    def folder(self) -> str:
        """Where it can be kept, below the ledger's root."""

    @property
    def column_of(self) -> tuple[str, int] | tuple[()]:
        """The id of the table, and of its column, that it is all about; nothing: of all."""

    def fields(self, values: Values) -> tuple[Field, ...]:
        """Return which of a transaction's values have to go."""

    def holds(self, value: ColumnValue) -> bool:
        """Whether a personal column's value has to go."""

    def in_line(self, read: Read[Any], files: Sequence[FileChange]) -> bool:
        """Whether a commit's line, or a list that it names, holds it for ever."""

    def in_path(self, path: str) -> bool:
        """Whether a data file's path holds it."""

    def eraser(self, name: str) -> str:
        """Return who is said to have erased: nobody, if that is whom it is about."""

    def harmless(self, message: str) -> str:
        """Return the message that an erasure is recorded with.

        Raises:
            InvalidInputError: It holds what is sought.
        """


def harmful() -> InvalidInputError:
    """Return the error of a message that holds what is to be erased."""
    return InvalidInputError(
        "the message of an erasure stands in the ledger, and this one names what is to be "
        "erased; say it in other words. Nothing was written"
    )


@frozen
class SoughtPerson:
    """Whose values, or which.

    Attributes:
        author: All that this author said, and what others say that names him as a word.
        text: Every value that holds this text.
    """

    author: str | None = None
    text: str | None = None
    _word: re.Pattern[str] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if (self.author is None) == (self.text is None) or not self.needle.strip():
            raise InvalidInputError(
                "an erasure is of one author, or of one text, and neither is empty"
            )
        if not is_storable(self.needle):
            raise InvalidInputError(f"{excerpt(self.needle)} is half of a character: no log has it")

    @_word.default
    def _as_word(self) -> re.Pattern[str]:
        return re.compile(rf"(?<!\w){re.escape(self.author or self.text or '')}(?!\w)")

    @property
    def needle(self) -> str:
        """The text that is to be nowhere afterwards."""
        return self.author or self.text or ""

    def names(self, said: str) -> bool:
        """Whether somebody's words name the author, or hold the text."""
        if self.text is not None:
            return self.text in said
        return self._word.search(said) is not None

    def eraser(self, name: str) -> str:
        """Return who is said to have erased: nobody, if that is whom it is about."""
        is_meant = name == self.author or (self.text is not None and self.names(name))
        return "" if is_meant else name

    def harmless(self, message: str) -> str:
        """Return the message that an erasure is recorded with.

        Raises:
            InvalidInputError: It holds what is sought.
        """
        if self.names(message):
            raise harmful()
        return message

    @property
    def folder(self) -> str:
        """Where it can be kept, below the ledger's root."""
        return FOLDER

    @property
    def column_of(self) -> tuple[()]:
        """No table's column alone."""
        return ()

    def holds(self, value: ColumnValue) -> bool:
        """Whether a personal column's value has to go."""
        if value.of != column_values.BOUNDS:
            return self.names(str(value.partition))
        texts = (_text(each) for each in (value.bounds.lower, value.bounds.upper))
        return any(self.names(each) or may_be_cut_from(each, self.needle) for each in texts)

    def in_line(self, read: Read[Any], files: Sequence[FileChange]) -> bool:
        """Whether a commit's line, or a list that it names, holds it for ever."""
        plain = msgspec.json.encode(self.needle)[1:-1]
        bodies = (read.body, *map(msgspec.json.encode, files))
        needles = (plain, self.needle.encode().hex().encode())
        return any(each in one for one in bodies for each in needles)

    def in_path(self, path: str) -> bool:
        """Whether a data file's path holds it."""
        return self.needle in path or self.needle in unquote(path)

    def fields(self, values: Values) -> tuple[Field, ...]:
        """Return which of a transaction's values have to go."""
        there = tuple(each for each in FIELDS if values.get(each) is not None)
        author = "" if values.author is None else values.author.value
        if author == self.author:
            return there
        return tuple(each for each in there if self._is_in(each, values))

    def _is_in(self, which: Field, values: Values) -> bool:
        value = values.get(which)
        if value is None or (which == "author" and self.text is None):
            return False
        if which != "properties":
            return self.names(value.value)
        properties = _TEXTS.decode(value.value)
        return any(map(self.names, (*properties, *properties.values())))


def _text(bound: str | None) -> str:
    try:
        return bytes.fromhex(bound or "").decode()
    except (ValueError, UnicodeDecodeError):
        return ""


@frozen
class Remaining:
    """Where a stream's own lines hold what is sought, for ever.

    Attributes:
        stream: Its name.
        versions: Of the commits that hold it, or its bytes among the bounds of a column.
        paths: The data files whose paths hold it.
        problem: Why nobody knows; empty where the stream was read.
    """

    stream: str
    versions: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    problem: str = ""


@frozen
class Erasure:
    """What an erasure took away, or would take away, and what it cannot reach.

    Attributes:
        values: How many authors, messages and maps of properties, bounds and partition values.
        transactions: Of how many transactions.
        standing: What stays in lines.
        version: The catalog's commit that records it; None where there was nothing to erase.
        unrendered: Which files of engines' metadata could not be made anew, and why.
        repeated: Whether that commit had landed before.
    """

    values: int
    transactions: int
    standing: tuple[Remaining, ...]
    version: int | None = None
    unrendered: tuple[str, ...] = ()
    repeated: bool = False


Progress = Callable[[str, int, int], None]
"""Told what is looked through, how much of it is done, and of how much."""


def found(personal: Personal, sought: Sought, told: Progress) -> tuple[int, int]:
    """Return how many values there are to erase, and of how many transactions."""
    counts = [each for _, each in _matches(personal.store, sought, told)]
    return sum(counts), len(counts)


def erase(personal: Personal, sought: Sought, told: Progress) -> None:
    """Take away every value that is sought, until there is none left; asking again goes on.

    Raises:
        OSError: The store failed.
    """
    store = personal.store
    with store.lock(_LOCK):
        while found(personal, sought, told) != (0, 0):
            for key, _ in _matches(store, sought, told):
                take_out(store, key, partial(_less, key, sought))
        for draft in store.drafts(FOLDER):
            # A writer at work is told that he knows nothing, and writes it again.
            store.discard(draft)
        confirm_folders(store, store.walk(sought.folder))


def _matches(store: Store, sought: Sought, told: Progress) -> Iterator[tuple[str, int]]:
    """Yield the files that hold what is sought, by their first keys, and how much of it."""
    keys = [each for each in store.walk(sought.folder) if each == first(each)]
    for begin in range(0, len(keys), _AT_ONCE):
        some = keys[begin : begin + _AT_ONCE]
        for key, body in zip(some, newest(store, some), strict=True):
            count = 0 if body is None else _left(key, body, sought)[1]
            if count:
                yield key, count
        told("what is kept of people", begin + len(some), len(keys))


def _less(key: str, sought: Sought, body: bytes) -> bytes | None:
    return _left(key, body, sought)[0]


def _left(key: str, body: bytes, sought: Sought) -> tuple[bytes | None, int]:
    """Return what is left of a file without what is sought, if that is less, and how much goes.

    Of one that cannot be read, no reader takes anything for more than erased.
    """
    if key.startswith(f"{COLUMNS}/"):
        return _left_of_columns(key, body, sought)
    try:
        values = decoded(body, key)
    except DamagedLogError:
        return encoded(Values(0)), 1
    fields = sought.fields(values)
    return (encoded(values.without(fields)) if fields else None), len(fields)


def _left_of_columns(key: str, body: bytes, sought: Sought) -> tuple[bytes | None, int]:
    try:
        kept = column_values.decoded(body, key)
    except DamagedLogError:
        return column_values.encoded(column_values.ColumnValues(0, {})), 1
    stays = {digest: each for digest, each in kept.values.items() if not sought.holds(each)}
    gone = len(kept.values) - len(stays)
    less = column_values.ColumnValues(kept.time_millis, stays)
    return (column_values.encoded(less) if gone else None), gone


def standing(
    streams: Iterable[tuple[str, StreamLog[Any, Any]]], sought: Sought, told: Progress
) -> Iterator[Remaining]:
    """Yield the streams whose lines hold what is sought, and those that cannot be read."""
    for name, log in streams:
        versions: list[int] = []
        paths: dict[str, None] = {}
        try:
            state = log.refresh()
            last = -1 if state is None else state.version
            for read in log.reader.after(START, last) if last >= 0 else ():
                files = list(commit_files(log.store, log.layout, read.commit))
                if sought.in_line(read, files):
                    versions.append(read.commit.version)
                paths |= dict.fromkeys(each.path for each in files if sought.in_path(each.path))
                if read.commit.version % _AT_ONCE == 0:
                    told(name, read.commit.version + 1, last + 1)
        except (LedgerError, OSError) as error:
            yield Remaining(name, tuple(versions), tuple(paths), str(error))
        else:
            if versions or paths:
                yield Remaining(name, tuple(versions), tuple(paths))
