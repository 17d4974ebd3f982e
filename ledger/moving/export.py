"""Writing a ledger as lines, while others go on writing into it.

The catalog is read first, and each table's stream as far as it reaches afterwards: a table that
the catalog names is there, and what was dropped since shows as a drop that its next reader
finishes. Nothing on the store is changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from attrs import frozen
from msgspec import UNSET

from ledger.events.born.iceberg import StatisticsSet
from ledger.events.commit import Commit
from ledger.events.snapshot_events import PartitionStatisticsSet
from ledger.files.change_file import commit_files
from ledger.history.verifying.births import Births, NamedBirth
from ledger.history.verifying.subject import references
from ledger.log.codec import digest
from ledger.log.layout import STREAM_FOLDER
from ledger.log.outside import column_values
from ledger.log.outside.commit_texts import key_of
from ledger.log.outside.erasable import newest
from ledger.log.replay import START
from ledger.model.errors import DamagedLogError, InvalidInputError, NotFoundError
from ledger.model.identifier import Identifier
from ledger.model.messages.similar import similar
from ledger.moving.lines import (
    CATALOG,
    FORMAT,
    File,
    FirstLine,
    LastLine,
    StreamLine,
    written,
    written_commit,
)
from ledger.opening.birth import was_born
from ledger.opening.root import ROOT_KEY
from ledger.opening.setting import TableSetting
from ledger.opening.streams import AnyLog, OpenedTable, catalog_stream

Told = Callable[[str, int, int], None]
"""Told of which stream how many commits are done, of how many."""


class Out(Protocol):
    """Where lines go."""

    def write(self, line: bytes, /) -> object:
        """Take some bytes."""


@frozen
class Exported:
    """What an export holds.

    Attributes:
        streams: The name and the last version of each.
        commits: How many.
        files: How many files beside the logs.
    """

    streams: tuple[tuple[str, int], ...]
    commits: int
    files: int


def tell_nobody(_stream: str, _done: int, _of: int) -> None:
    """Say nothing."""


def export(
    setting: TableSetting,
    out: Out,
    tables: Sequence[Identifier] = (),
    *,
    version: int | None = None,
    told: Told = tell_nobody,
) -> Exported:
    """Write a ledger as lines.

    Args:
        setting: The ledger's.
        out: Where to.
        tables: Of which tables; none: of all, those that were dropped included. The catalog's
            stream is always whole.
        version: The last version of the only table.
        told: Told how far it is.

    Raises:
        InvalidInputError: A version is asked of anything but one table.
        NotFoundError: There is no ledger, no such table or no such version.
        DamagedLogError: A log does not fit; what was written so far has no end and is no export.
    """
    if version is not None and len(tables) != 1:
        raise InvalidInputError(
            "a version is one table's: name the table whose commits are wanted up to there"
        )
    root = setting.store.read(ROOT_KEY)
    if root is None:
        raise NotFoundError(f"there is no ledger at {setting.store.url}: {ROOT_KEY} is not there")
    catalog = catalog_stream(setting.store)
    cut = _last(catalog)
    births = Births.of(read.commit for read in catalog.reader.after(START, cut) if cut >= 0)
    chosen = _chosen(births, tables)
    lines = _Lines(out, told)
    ids = tuple(each.table_id for each in chosen) if tables else UNSET
    asked = UNSET if version is None else version
    lines.put(written(FirstLine(format=FORMAT, root=root.decode(), tables=ids, version=asked)))
    lines.stream(CATALOG, CATALOG, catalog, cut)
    for birth in chosen:
        log = OpenedTable.at(birth.path, setting).log
        lines.stream(birth.table_id, birth.name, log, _until(birth, catalog, log, version))
    return lines.end()


def _chosen(births: Births, tables: Sequence[Identifier]) -> list[NamedBirth]:
    if not tables:
        return [*births]
    found = []
    for each in tables:
        birth = births.named(each)
        if birth is None:
            known = [str(one.identifier) for one in births if one.dropped_millis is None]
            near = similar(str(each), known)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise NotFoundError(f"table {each} does not exist{hint}")
        found.append(birth)
    return found


def _last(log: AnyLog) -> int:
    state = log.refresh()
    return -1 if state is None else int(state.version)


def _until(birth: NamedBirth, catalog: AnyLog, log: AnyLog, version: int | None) -> int:
    """Return the last version to write: where one is asked for, nothing behind it is looked at."""
    if version is None:
        return _begun(birth, catalog, log)
    if version < 0 or not log.store.exists(log.layout.commit(version)):
        raise NotFoundError(
            f"table {birth.identifier} has no version {version}; it has 0 to {_last(log)}"
        )
    return version


def _begun(birth: NamedBirth, catalog: AnyLog, log: AnyLog) -> int:
    """Return a table's last version; -1 while its creator has not begun it.

    Raises:
        DamagedLogError: It was begun, and its log is gone.
    """
    last = _last(log)
    if last < 0 and birth.dropped_millis is None and was_born(catalog, birth.table_id):
        # Its creator may have begun it between the two looks.
        last = _last(log)
        if last < 0:
            key = log.layout.commit(0)
            raise DamagedLogError(
                f"{log.store.url}/{key} is missing, so the log of table {birth.name} cannot be "
                "written: restore it from a backup, or export the other tables by their names; "
                "the lines written so far have no end and are no export",
                key,
            )
    return last


class _Lines:
    """Writes lines, and keeps what the last one says of all."""

    def __init__(self, out: Out, told: Told) -> None:
        self._out = out
        self._told = told
        self._hash = hashlib.sha256()
        self._streams: list[tuple[str, int]] = []
        self._commits = 0
        self._files = 0

    def put(self, line: bytes) -> None:
        self._hash.update(line)
        self._out.write(line)

    def stream(self, name: str, shown: str, log: AnyLog, last: int) -> None:
        """Write a stream's commits up to one, with the files that they name."""
        self._streams.append((shown, last))
        self.put(written(StreamLine(name, last, _digest_of(log, last))))
        if last < 0:
            return
        known: set[str] = set()
        for read in log.reader.after(START, last):
            for file in (*_files(log, read.commit, known), *_values(log, read.commit, known)):
                self.put(written(file))
                self._files += 1
            self.put(written_commit(read.body))
            self._commits += 1
            self._told(shown, read.commit.version + 1, last + 1)

    def end(self) -> Exported:
        """Write the last line."""
        end = LastLine(len(self._streams), self._commits, self._files, self._hash.hexdigest())
        self.put(written(end))
        return Exported(tuple(self._streams), self._commits, self._files)


def _digest_of(log: AnyLog, last: int) -> str:
    body = log.store.read(log.layout.commit(last)) if last >= 0 else None
    return "" if body is None else digest(body)


def _files(log: AnyLog, commit: Commit[Any], known: set[str]) -> Iterator[File]:
    """Yield the files beside the log that a commit is the first to name."""
    for reference in references(commit):
        if reference.path in known:
            continue
        known.add(reference.path)
        key = f"{log.layout.root}/{reference.path}"
        body = log.store.read(key)
        file = None if body is None else File.of(reference.path, body)
        if file is None or file.sha256 != reference.sha256:
            said = "is missing" if file is None else "is not the file"
            raise DamagedLogError(
                f"{key} {said} that version {commit.version} names. Restore it from a backup; "
                "the lines written so far have no end and are no export",
                key,
            )
        yield file
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, PartitionStatisticsSet):
                yield from _statistics(log, event.partition_statistics.statistics_path, known)
            elif isinstance(event, StatisticsSet):
                yield from _statistics(log, event.statistics.statistics_path, known)


def _statistics(log: AnyLog, path: str, known: set[str]) -> Iterator[File]:
    """Yield a file of statistics that stands in the stream's folder: no hash of it is written."""
    inside = path.removeprefix(f"{STREAM_FOLDER}/")
    if inside == path or inside in known:
        return
    known.add(inside)
    body = log.store.read(f"{log.layout.root}/{inside}")
    if body is not None:
        yield File.of(inside, body)


def _values(log: AnyLog, commit: Commit[Any], known: set[str]) -> Iterator[File]:
    """Yield what a commit says outside of its line; one that is lost is for verify to tell."""
    said = [each.outside for each in commit.transactions if each.outside is not UNSET]
    keys = [key for each in said if (key := key_of(each)) is not None]
    if said:
        named = column_values.references(commit_files(log.store, log.layout, commit))
        keys += sorted({column_values.key_of(each) for each in named})
    for key in keys:
        (body,) = newest(log.personal.store, [key])
        if body is not None and key not in known:
            known.add(key)
            yield File.of(key.removeprefix(f"{STREAM_FOLDER}/"), body)
