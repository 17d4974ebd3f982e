"""Whether what lines say outside of themselves stands there, or was erased."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from msgspec import UNSET

from ledger.events.commit import Outside
from ledger.files.change_file import commit_files
from ledger.history.verifying.finding import FROM_BACKUP, Finding
from ledger.history.verifying.subject import Subject
from ledger.log.outside import column_values
from ledger.log.outside.column_values import references
from ledger.log.outside.commit_texts import FIELDS, decoded, key_of
from ledger.log.outside.erasable import newest
from ledger.log.replay import START
from ledger.model.errors import DamagedLogError

_AT_ONCE: Final = 256


def lost_values(subject: Subject[Any, Any], last: int) -> Iterator[Finding]:
    """Yield where values outside of the lines are gone that nobody erased, or are others.

    Args:
        subject: A stream that keeps them outside of its lines, and was verified.
        last: Its newest commit.
    """
    store = subject.log.personal.store
    named = _named(subject, last)
    while some := list(islice(named, _AT_ONCE)):
        keys = [key for _, key, _ in some]
        for (version, key, outside), body in zip(some, newest(store, keys), strict=True):
            problem = "is missing" if body is None else _problem(outside, body, key)
            if problem:
                said = f"what version {version} says of who and why {problem}"
                yield Finding("damage", said, key, version, FROM_BACKUP)
    yield from _lost_columns(subject, last)


def _lost_columns(subject: Subject[Any, Any], last: int) -> Iterator[Finding]:
    store = subject.log.personal.store
    known: set[str] = set()
    for read in subject.log.reader.after(START, last) if subject.has_files else ():
        files = commit_files(subject.store, subject.layout, read.commit)
        keys = sorted({column_values.key_of(each) for each in references(files)} - known)
        known.update(keys)
        for key, body in zip(keys, newest(store, keys), strict=True):
            problem = "is missing" if body is None else _column_problem(body, key)
            if problem:
                said = f"what version {read.commit.version} says of personal columns {problem}"
                yield Finding("damage", said, key, read.commit.version, FROM_BACKUP)


def _column_problem(body: bytes, key: str) -> str:
    try:
        kept = column_values.decoded(body, key)
    except DamagedLogError:
        return "is torn"
    is_same = all(each.digest == digest for digest, each in kept.values.items())
    return "" if is_same else "was changed"


def _named(subject: Subject[Any, Any], last: int) -> Iterator[tuple[int, str, Outside]]:
    for read in subject.log.reader.after(START, last):
        for transaction in read.commit.transactions:
            outside = transaction.outside
            if outside is not UNSET and (key := key_of(outside)) is not None:
                yield read.commit.version, key, outside


def _problem(outside: Outside, body: bytes, key: str) -> str:
    try:
        values = decoded(body, key)
    except DamagedLogError:
        return "is torn"
    for each in FIELDS:
        value = values.get(each)
        if value is not None and value.digest(each) != getattr(outside, each):
            return "was changed"
    return ""
