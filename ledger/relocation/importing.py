"""Import of a ledger from an export, verified along the hash chain.

Existing files are never rewritten, and have to equal the exported ones, so that an import of the
same lines, or of a later export, resumes an earlier attempt. The ledger's root file is written
last: an incomplete import cannot be opened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import define, field, frozen
from msgspec import UNSET

from ledger.history.verifying.subject import Subject
from ledger.history.verifying.surroundings import CatalogedTable, CatalogedTables
from ledger.history.verifying.verify import Verification, repair
from ledger.locations import is_absolute
from ledger.log import personal_data
from ledger.log.codec import digest
from ledger.log.layout import STREAM_FOLDER, Layout
from ledger.log.personal_data import COLUMNS, FIELDS, decoded, encoded, erase_content
from ledger.log.request import Committed, LogFile, commit_file_or_raise
from ledger.model.errors import AlreadyExistsError, DamagedLogError, InvalidInputError
from ledger.opening.context import AnyLog, TableSetting, catalog_stream, recordable_url
from ledger.opening.creation import record_creation
from ledger.opening.ledger_file import (
    ROOT_KEY,
    check_format,
    copied_from,
    id_of,
    read_root,
    root_of_copy,
)
from ledger.opening.opened_table import OpenedTable, stream_place
from ledger.relocation.exporting import (
    CATALOG,
    FileLine,
    FirstLine,
    LastLine,
    ReportProgress,
    Said,
    StreamLine,
    ignore_progress,
    read,
)

_PERSONAL = "personal/"
_BESIDE = ("changes/", "statistics/")
"""Folders of files that commits name, below a stream's `_ledger` folder."""


@frozen
class ImportSummary:
    """Result of an import.

    Attributes:
        ledger_id: The id of the imported ledger.
        copied_from: The id of the original if the import is a copy; None for the same ledger.
        streams: The name, the last version and the head's digest of each stream.
        written: Number of commits written; the others existed already.
        absent: The names of tables in the catalog whose logs neither this export nor one before it
            brought.
    """

    ledger_id: str
    copied_from: str | None
    streams: tuple[tuple[str, int, str], ...]
    written: int
    absent: tuple[str, ...]


def import_lines(
    setting: TableSetting,
    lines: Iterable[bytes],
    *,
    as_copy: bool = False,
    report: ReportProgress = ignore_progress,
) -> ImportSummary:
    """Import the lines of an export into a store.

    Args:
        setting: The settings of the target ledger.
        lines: The lines, each with its line break.
        as_copy: True to give the import a new ledger id, because the original stays in use.
        report: Called with the progress.

    Raises:
        AlreadyExistsError: The store has another ledger, or commits that differ from the lines.
        DamagedLogError: The lines are truncated or changed; the ledger cannot be opened yet.
        InvalidInputError: A table is outside of its ledger's folder and cannot be imported.
        StoreError: The store is unusable, or did not answer; a retry resumes.
    """
    return _ImportRun(setting, as_copy, report).run(lines)


@define
class _ImportRun:
    """State of one import."""

    setting: TableSetting
    as_copy: bool
    report: ReportProgress
    cataloged_tables: CatalogedTables = field(factory=CatalogedTables)
    known: dict[str, CatalogedTable] = field(factory=dict)
    streams: list[_ImportedStream] = field(factory=list)
    files: int = 0
    written: int = 0
    root: bytes = b""
    theirs: bytes = b""
    last_line: LastLine | None = None

    def run(self, lines: Iterable[bytes]) -> ImportSummary:
        catalog = catalog_stream(self.setting.store)
        for number, said, place in _decode_lines(lines):
            if number == 1:
                self._read_first_line(said, place)
            elif isinstance(said, LastLine):
                self._check_last_line(said, place)
            elif isinstance(said, StreamLine):
                self._begin_stream(said, place)
            elif self.last_line is not None or not self.streams:
                raise DamagedLogError(f"{place} is in a position where no export has one", place)
            elif isinstance(said, FileLine):
                self._import_file(said, place)
            elif isinstance(said, bytes):
                self._import_commit(said, place)
            else:
                raise DamagedLogError(f"{place} begins another export", place)
        if self.last_line is None:
            raise DamagedLogError(
                "the lines end before the export does; the part so far is kept, and the ledger "
                "cannot be opened yet: repeat the import with all lines",
                "the export",
            )
        self._mark_tables_created(catalog)
        # Before the root: after an invalid stream the ledger cannot be opened.
        self._build_caches()
        self._write_root_file()
        here = id_of(self.root)
        return ImportSummary(
            here,
            copied_from(self.root),
            tuple((each.shown, each.last, each.parent) for each in self.streams),
            self.written,
            tuple(each.name for each in self._absent_tables()),
        )

    def _read_first_line(self, said: object, place: str) -> None:
        if not isinstance(said, FirstLine):
            raise InvalidInputError(f"{place} does not begin a ledger's export")
        theirs = said.root.encode()
        check_format(theirs, f"{place}, {ROOT_KEY}")
        here = self.setting.store.read(ROOT_KEY)
        mine = theirs if not self.as_copy else None
        if here is not None:
            fits = copied_from(here) == id_of(theirs) if self.as_copy else here == theirs
            if self.as_copy and id_of(here) == id_of(theirs):
                raise AlreadyExistsError(
                    f"{self.setting.store.url} holds the ledger {id_of(here)} itself, of which the "
                    "lines are an export; a copy needs an empty place"
                )
            if not fits:
                raise AlreadyExistsError(
                    f"{self.setting.store.url} holds the ledger {id_of(here)} already, and the "
                    f"lines are of {id_of(theirs)}; choose an empty place"
                )
            mine = here
        self.root = mine or b""
        self.theirs = theirs

    def _begin_stream(self, said: StreamLine, place: str) -> None:
        self._refuse_unfinished_stream(place)
        if not self.streams:
            if said.name != CATALOG:
                raise DamagedLogError(f"{place}: the catalog's stream comes first", place)
            self.streams.append(_ImportedStream(catalog_stream(self.setting.store), CATALOG, said))
            return
        self.known = self.known or {each.table_id: each for each in self.cataloged_tables}
        cataloged = self.known.get(said.name)
        if cataloged is None or any(each.said.name == said.name for each in self.streams):
            raise DamagedLogError(f"{place}: the catalog has no such table {said.name!r}", place)
        if is_absolute(cataloged.path):
            raise InvalidInputError(
                f"table {cataloged.name} lies outside of its ledger, at {cataloged.path}, and "
                "cannot be imported: its log belongs there. Export the other tables by their names"
            )
        log = OpenedTable.at(cataloged.path, self.setting).log
        self.streams.append(_ImportedStream(log, cataloged.name, said, cataloged.digest))

    def _refuse_unfinished_stream(self, place: str) -> None:
        if self.streams and not self.streams[-1].is_complete:
            stream = self.streams[-1]
            raise DamagedLogError(
                f"{place}: {stream.shown} ended at version {stream.version}, and is to have "
                f"{stream.last}",
                place,
            )

    def _import_file(self, said: FileLine, place: str) -> None:
        if said.path.startswith(_PERSONAL):
            self._import_sidecar_values(f"{STREAM_FOLDER}/{said.path}", said.bytes_of(place))
        elif said.path.startswith(_BESIDE):
            log = self.streams[-1].log
            self._write_if_absent(f"{log.layout.root}/{said.path}", said.bytes_of(place), 0)
        else:
            raise DamagedLogError(f"{place} holds a file that no commit names: {said.path}", place)
        self.files += 1

    def _import_sidecar_values(self, key: str, body: bytes) -> None:
        """Write a sidecar file without the values that were erased on either side."""
        store, left = self.setting.store, _sidecar_reducer(key, body)
        if store.exists(key):
            erase_content(store, key, left)
        else:
            self._write_if_absent(key, body, 0)

    def _import_commit(self, body: bytes, place: str) -> None:
        stream = self.streams[-1]
        commit = stream.decode_next_commit(body, place)
        self.written += self._write_if_absent(
            stream.log.layout.commit(commit.version), body, commit.version
        )
        if stream.shown == CATALOG:
            self.cataloged_tables.learn(commit)
        self.report(stream.shown, stream.version + 1, stream.last + 1)

    def _write_if_absent(self, key: str, body: bytes, version: int) -> bool:
        """Write a file unless it exists; return whether it was written."""
        store = self.setting.store
        says = "an import of the same lines resumes from here"
        outcome = commit_file_or_raise(
            store, LogFile(key, body, version), self.setting.retry_policy, says
        )
        if isinstance(outcome, Committed):
            return True
        if store.read(key) != body:
            raise AlreadyExistsError(
                f"{store.url}/{key} differs from the file in the export: another writer used this "
                "place. Choose an empty one"
            )
        return False

    def _check_last_line(self, said: LastLine, place: str) -> None:
        self._refuse_unfinished_stream(place)
        commits = sum(each.last + 1 for each in self.streams)
        if (said.streams, said.commits, said.files) != (len(self.streams), commits, self.files):
            raise DamagedLogError(f"{place}: lines are missing before the end", place)
        self.last_line = said

    def _absent_tables(self) -> Iterator[CatalogedTable]:
        carried = {each.said.name for each in self.streams}
        return (
            each
            for each in self.cataloged_tables
            if each.table_id not in carried
            and each.dropped_millis is None
            and not self._has_log(each.path)
        )

    def _has_log(self, path: str) -> bool:
        """Return whether an earlier import brought a table's log."""
        store, folder = stream_place(self.setting, path)
        return store.exists(Layout(folder).commit(0))

    def _mark_tables_created(self, catalog: AnyLog) -> None:
        """Mark tables so that no opener recreates an imported or an absent one.

        A table that was exported between the catalog's commit and its version 0 has no commits: the
        next opener creates it here, as in the original.
        """
        unbegun = {each.said.name for each in self.streams if each.last < 0}
        for cataloged in self.cataloged_tables:
            if cataloged.table_id not in unbegun:
                record_creation(catalog, cataloged.table_id, cataloged.created_version)

    def _write_root_file(self) -> None:
        if not self.root:
            here = recordable_url(self.setting.store.url)
            self.root = root_of_copy(self.theirs, here, self.streams[0].last + 1)
        self._write_if_absent(ROOT_KEY, self.root, 0)
        read_root(self.setting)

    def _build_caches(self) -> None:
        """Build the caches that opening and reading long logs needs."""
        for stream in self.streams:
            if stream.last < 0:
                continue
            log = stream.log
            subject: Subject[Any, Any] = Subject(
                stream.shown, log, has_files=stream.shown != CATALOG
            )

            def on_progress(done: int, of: int, shown: str = stream.shown) -> None:
                self.report(f"{shown}, its caches", done, of)

            for finding in Verification(subject).run(on_progress):
                if finding.kind == "damage":
                    raise DamagedLogError(
                        f"{stream.shown}: {finding.file}: {finding.what}", finding.file
                    )
                repair(subject, finding)


def _sidecar_reducer(key: str, theirs: bytes) -> Callable[[bytes], bytes | None]:
    """Return a function that reduces an existing sidecar file to the values on both sides.

    Raises:
        DamagedLogError: The exported bytes are not a sidecar file.
    """
    if not key.startswith(f"{COLUMNS}/"):
        values = decoded(theirs, key)
        gone = [each for each in FIELDS if values.get(each) is None]

        def left(body: bytes) -> bytes | None:
            mine = decoded(body, key)
            less = mine.without(gone)
            return None if less == mine else encoded(less)

        return left
    there = personal_data.decode_values(theirs, key).values

    def left_of_columns(body: bytes) -> bytes | None:
        mine = personal_data.decode_values(body, key)
        both = {digest: each for digest, each in mine.values.items() if digest in there}
        less = personal_data.ColumnValues(mine.time_millis, both)
        return None if less == mine else personal_data.encode_values(less)

    return left_of_columns


@define
class _ImportedStream:
    """Stream that is being imported.

    Attributes:
        log: The target stream.
        shown: The stream's name for messages.
        said: The stream's header line.
        creation_digest: The digest of its version 0, if the catalog has it.
        version: The version of the last imported commit.
        parent: The digest of that commit's file.
    """

    log: AnyLog
    shown: str
    said: StreamLine
    creation_digest: str | None = None
    version: int = -1
    parent: str = ""

    @property
    def last(self) -> int:
        return self.said.last

    @property
    def is_complete(self) -> bool:
        return (self.version, self.parent) == (self.said.last, self.said.head)

    def decode_next_commit(self, body: bytes, place: str) -> Any:
        """Return the decoded next commit after verifying that it follows the last one.

        Raises:
            DamagedLogError: It does not follow the last commit.
        """
        commit = self.log.codec.decode(body, place)
        found = digest(body)
        parent = "" if commit.parent is UNSET else commit.parent
        if commit.version != self.version + 1 or self.version == self.last:
            raise DamagedLogError(
                f"{place} holds version {commit.version} of {self.shown}, after {self.version}",
                place,
            )
        if parent != self.parent or (self.version < 0 and found != (self.creation_digest or found)):
            raise DamagedLogError(
                f"{place}: version {commit.version} of {self.shown} does not follow the commit "
                "before it: the lines were changed",
                place,
            )
        self.version, self.parent = commit.version, found
        return commit


def _decode_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, Said | bytes, str]]:
    """Yield each line's number, decoded content and position; verify the last line's hash.

    Raises:
        DamagedLogError: A line is not one of an export, or the lines were changed.
    """
    seen = hashlib.sha256()
    for number, line in enumerate(lines, 1):
        place = f"line {number} of the export"
        if not line.endswith(b"\n"):
            raise DamagedLogError(
                f"{place} is cut off; the part so far is kept, and the ledger cannot be opened "
                "yet: repeat the import with all lines",
                place,
            )
        said = read(line, place)
        if isinstance(said, LastLine) and said.sha256 != seen.hexdigest():
            raise DamagedLogError(f"{place}: the lines before were changed in transfer", place)
        seen.update(line)
        yield number, said, place
