"""Export of a ledger as lines of JSON, safe with concurrent writers.

The catalog is read first, and then each table's stream up to its current end: every table that the
catalog names exists, and a table dropped meanwhile is a drop that its next reader completes. The
store is not changed.

Every line is JSON. A line that begins with `{"lakeledger":` describes what follows; any other is a
commit's file, byte for byte, of the stream named last.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec
from attrs import frozen
from msgspec import UNSET, Struct, UnsetType

from ledger.events.commit import Commit
from ledger.events.imported import StatisticsSet
from ledger.events.snapshots import PartitionStatisticsSet
from ledger.files.change_lists import change_references, commit_files
from ledger.history.verifying.surroundings import CatalogedTable, CatalogedTables
from ledger.log import personal_data
from ledger.log.codec import digest
from ledger.log.layout import STREAM_FOLDER
from ledger.log.personal_data import key_of, newest
from ledger.log.replay import START
from ledger.model.errors import (
    DamagedLogError,
    InvalidInputError,
    NotFoundError,
    UpgradeRequiredError,
)
from ledger.model.messages import similar_names
from ledger.model.names import Identifier
from ledger.opening.context import AnyLog, TableSetting, catalog_stream
from ledger.opening.creation import was_created
from ledger.opening.ledger_file import ROOT_KEY
from ledger.opening.opened_table import OpenedTable

FORMAT: Final = 1
"""Version of the export format; a newer one raises `UpgradeRequiredError`."""

CATALOG: Final = "catalog"
"""The name of the catalog's stream."""

SIGN: Final = b'{"lakeledger":'


class FirstLine(
    Struct,
    frozen=True,
    tag_field="lakeledger",
    tag="export",
    rename="camel",
    omit_defaults=True,
    kw_only=True,
):
    """First line of an export.

    Attributes:
        format: The version of the export format.
        root: The text of the ledger's `_ledger/ledger.json`.
        tables: The ids of the exported tables; absent if all are exported.
        version: The last exported version of a single table, if it was requested.
    """

    format: int
    root: str
    tables: tuple[str, ...] | UnsetType = UNSET
    version: int | UnsetType = UNSET


class StreamLine(Struct, frozen=True, tag_field="lakeledger", tag="stream", rename="camel"):
    """Header of a stream, whose commits follow from version 0 on.

    Attributes:
        name: `catalog`, or the id of the table.
        last: The last version; -1 if the stream has no commit.
        head: The digest of the last commit's file; empty without a commit.
    """

    name: str
    last: int
    head: str


class FileLine(Struct, frozen=True, tag_field="lakeledger", tag="file", rename="camel"):
    """A change, statistics or sidecar file that the next commits name.

    Attributes:
        path: The path below the stream's `_ledger` folder.
        sha256: SHA-256 of its bytes, hex.
        body: The bytes, in base64.
    """

    path: str
    sha256: str
    body: str

    @classmethod
    def of(cls, path: str, body: bytes) -> FileLine:
        """Return the line of a file from its path and bytes."""
        return cls(path, hashlib.sha256(body).hexdigest(), base64.b64encode(body).decode())

    def bytes_of(self, place: str) -> bytes:
        """Return the bytes of the file.

        Args:
            place: The position of the line, for errors.

        Raises:
            DamagedLogError: The bytes are not those that were exported.
        """
        body = _decode_base64(self.body, "a file", place)
        if hashlib.sha256(body).hexdigest() != self.sha256:
            raise DamagedLogError(
                f"{place} holds a file that was changed in transfer: {self.path}", place
            )
        return body


class Base64Commit(Struct, frozen=True, tag_field="lakeledger", tag="commit", rename="camel"):
    """A commit whose file does not fit in one line.

    Attributes:
        body: The bytes of its file, in base64.
    """

    body: str


class LastLine(Struct, frozen=True, tag_field="lakeledger", tag="end", rename="camel"):
    """Last line of a complete export.

    Attributes:
        streams: Number of streams.
        commits: Number of commits.
        files: Number of files.
        sha256: SHA-256 of all bytes before this line, hex.
    """

    streams: int
    commits: int
    files: int
    sha256: str


Said = FirstLine | StreamLine | FileLine | Base64Commit | LastLine

_SAID: Final[msgspec.json.Decoder[Said]] = msgspec.json.Decoder(Said)
_ENCODER: Final = msgspec.json.Encoder()


class _Envelope(Struct):
    """The part of a first line that all format versions share."""

    format: int


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)


def encode_line(said: Said) -> bytes:
    r"""Return the encoded line of an export's record.

    Example:
        >>> encode_line(StreamLine("catalog", 3, ""))
        b'{"lakeledger":"stream","name":"catalog","last":3,"head":""}\n'
    """
    return _ENCODER.encode(said) + b"\n"


def encode_commit_line(body: bytes) -> bytes:
    r"""Return the encoded line of a commit's file.

    Example:
        >>> encode_commit_line(b'{"format":1}\n')
        b'{"format":1}\n'
    """
    is_line = body.endswith(b"\n") and b"\n" not in body[:-1] and not body.startswith(SIGN)
    return body if is_line else encode_line(Base64Commit(base64.b64encode(body).decode()))


def read(line: bytes, place: str) -> Said | bytes:
    """Decode a line: the record, or the bytes of a commit's file.

    Args:
        line: The line with its line break.
        place: The position of the line, for errors.

    Raises:
        DamagedLogError: It is not a line of an export.
        UpgradeRequiredError: A newer version wrote it.
    """
    if not line.startswith(SIGN):
        return line
    try:
        said = _SAID.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse_newer_format(line, place)
        raise DamagedLogError(f"{place} is no line of an export: {error}", place) from error
    if isinstance(said, FirstLine):
        _refuse_newer_format(line, place)
    if isinstance(said, Base64Commit):
        return _decode_base64(said.body, "a commit", place)
    return said


def _decode_base64(text: str, what: str, place: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise DamagedLogError(f"{place} holds {what} that is no base64: {error}", place) from error


def _refuse_newer_format(line: bytes, place: str) -> None:
    try:
        found = _ENVELOPE.decode(line).format
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if found > FORMAT:
        raise UpgradeRequiredError(
            f"{place} has format {found}; this version reads up to format {FORMAT}: upgrade "
            "lakeledger"
        )


ReportProgress = Callable[[str, int, int], None]
"""Called with the name of the stream, the number of commits done, and of all."""


class LineSink(Protocol):
    """Writable destination of lines, such as a binary file."""

    def write(self, line: bytes, /) -> object:
        """Write bytes."""


@frozen
class ExportSummary:
    """Summary of an export.

    Attributes:
        streams: The name and the last version of each stream.
        commits: Number of commits.
        files: Number of change, statistics and sidecar files.
    """

    streams: tuple[tuple[str, int], ...]
    commits: int
    files: int


def ignore_progress(_stream: str, _done: int, _of: int) -> None:
    """Ignore progress."""


def export(
    setting: TableSetting,
    out: LineSink,
    tables: Sequence[Identifier] = (),
    *,
    version: int | None = None,
    report: ReportProgress = ignore_progress,
) -> ExportSummary:
    """Export a ledger as lines of JSON.

    Args:
        setting: The settings of the ledger.
        out: The destination of the lines.
        tables: The tables to export; empty for all, dropped ones included. The catalog's stream is
            always exported whole.
        version: The last version to export, for a single table.
        report: Called with the progress.

    Raises:
        InvalidInputError: A version is given without exactly one table.
        NotFoundError: There is no ledger, no such table or no such version.
        DamagedLogError: A log is damaged; the lines written so far are not a complete export.
    """
    if version is not None and len(tables) != 1:
        raise InvalidInputError(
            "a version is one table's: name the table whose commits are wanted up to there"
        )
    root = setting.store.read(ROOT_KEY)
    if root is None:
        raise NotFoundError(f"there is no ledger at {setting.store.url}: {ROOT_KEY} is missing")
    catalog = catalog_stream(setting.store)
    cut = _last_version(catalog)
    cataloged_tables = CatalogedTables.of(
        read.commit for read in catalog.reader.after(START, cut) if cut >= 0
    )
    chosen = _select_tables(cataloged_tables, tables)
    lines = _ExportWriter(out, report)
    ids = tuple(each.table_id for each in chosen) if tables else UNSET
    asked = UNSET if version is None else version
    lines.write_line(
        encode_line(FirstLine(format=FORMAT, root=root.decode(), tables=ids, version=asked))
    )
    lines.write_stream(CATALOG, CATALOG, catalog, cut)
    for cataloged in chosen:
        log = OpenedTable.at(cataloged.path, setting).log
        lines.write_stream(
            cataloged.table_id,
            cataloged.name,
            log,
            _last_exported_version(cataloged, catalog, log, version),
        )
    return lines.end()


def _select_tables(
    cataloged_tables: CatalogedTables, tables: Sequence[Identifier]
) -> list[CatalogedTable]:
    if not tables:
        return [*cataloged_tables]
    found = []
    for each in tables:
        cataloged = cataloged_tables.named(each)
        if cataloged is None:
            known = [str(one.identifier) for one in cataloged_tables if one.dropped_millis is None]
            near = similar_names(str(each), known)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise NotFoundError(f"table {each} does not exist{hint}")
        found.append(cataloged)
    return found


def _last_version(log: AnyLog) -> int:
    state = log.refresh()
    return -1 if state is None else int(state.version)


def _last_exported_version(
    cataloged: CatalogedTable, catalog: AnyLog, log: AnyLog, version: int | None
) -> int:
    """Return the last version to export; commits after a requested version are not read."""
    if version is None:
        return _last_table_version(cataloged, catalog, log)
    if version < 0 or not log.store.exists(log.layout.commit(version)):
        raise NotFoundError(
            f"table {cataloged.identifier} has no version {version}; "
            f"it has 0 to {_last_version(log)}"
        )
    return version


def _last_table_version(cataloged: CatalogedTable, catalog: AnyLog, log: AnyLog) -> int:
    """Return a table's last version; -1 while its creator has not written version 0.

    Raises:
        DamagedLogError: The table was created, and its log is missing.
    """
    last = _last_version(log)
    if last < 0 and cataloged.dropped_millis is None and was_created(catalog, cataloged.table_id):
        # Its creator may have written version 0 between the two reads.
        last = _last_version(log)
        if last < 0:
            key = log.layout.commit(0)
            raise DamagedLogError(
                f"{log.store.url}/{key} is missing, so the log of table {cataloged.name} cannot be "
                "written: restore it from a backup, or export the other tables by their names; "
                "the lines written so far are no complete export",
                key,
            )
    return last


class _ExportWriter:
    """Writer of lines that counts and hashes them for the last line."""

    def __init__(self, out: LineSink, report: ReportProgress) -> None:
        self._out = out
        self._report = report
        self._hash = hashlib.sha256()
        self._streams: list[tuple[str, int]] = []
        self._commits = 0
        self._files = 0

    def write_line(self, line: bytes) -> None:
        self._hash.update(line)
        self._out.write(line)

    def write_stream(self, name: str, shown: str, log: AnyLog, last: int) -> None:
        """Write a stream's commits up to a version, with the files that they name."""
        self._streams.append((shown, last))
        self.write_line(encode_line(StreamLine(name, last, _commit_digest(log, last))))
        if last < 0:
            return
        known: set[str] = set()
        for read in log.reader.after(START, last):
            for file in (
                *_files(log, read.commit, known),
                *_sidecar_files(log, read.commit, known),
            ):
                self.write_line(encode_line(file))
                self._files += 1
            self.write_line(encode_commit_line(read.body))
            self._commits += 1
            self._report(shown, read.commit.version + 1, last + 1)

    def end(self) -> ExportSummary:
        """Write the last line."""
        end = LastLine(len(self._streams), self._commits, self._files, self._hash.hexdigest())
        self.write_line(encode_line(end))
        return ExportSummary(tuple(self._streams), self._commits, self._files)


def _commit_digest(log: AnyLog, last: int) -> str:
    body = log.store.read(log.layout.commit(last)) if last >= 0 else None
    return "" if body is None else digest(body)


def _files(log: AnyLog, commit: Commit[Any], known: set[str]) -> Iterator[FileLine]:
    """Yield the change, statistics and sidecar files that a commit is the first to name."""
    for reference in change_references(commit):
        if reference.path in known:
            continue
        known.add(reference.path)
        key = f"{log.layout.root}/{reference.path}"
        body = log.store.read(key)
        file = None if body is None else FileLine.of(reference.path, body)
        if file is None or file.sha256 != reference.sha256:
            said = "is missing" if file is None else "is not the file"
            raise DamagedLogError(
                f"{key} {said} that version {commit.version} names. Restore it from a backup; "
                "the lines written so far are no complete export",
                key,
            )
        yield file
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, PartitionStatisticsSet):
                yield from _statistics_file(log, event.partition_statistics.statistics_path, known)
            elif isinstance(event, StatisticsSet):
                yield from _statistics_file(log, event.statistics.statistics_path, known)


def _statistics_file(log: AnyLog, path: str, known: set[str]) -> Iterator[FileLine]:
    """Yield a statistics file in the stream's folder; the commit has no hash of it."""
    inside = path.removeprefix(f"{STREAM_FOLDER}/")
    if inside == path or inside in known:
        return
    known.add(inside)
    body = log.store.read(f"{log.layout.root}/{inside}")
    if body is not None:
        yield FileLine.of(inside, body)


def _sidecar_files(log: AnyLog, commit: Commit[Any], known: set[str]) -> Iterator[FileLine]:
    """Yield the sidecar files of a commit; missing ones are left to `verify`."""
    said = [each.outside for each in commit.transactions if each.outside is not UNSET]
    keys = [key for each in said if (key := key_of(each)) is not None]
    if said:
        named = personal_data.references(commit_files(log.store, log.layout, commit))
        keys += sorted({personal_data.key_of_values(each) for each in named})
    for key in keys:
        (body,) = newest(log.personal.store, [key])
        if body is not None and key not in known:
            known.add(key)
            yield FileLine.of(key.removeprefix(f"{STREAM_FOLDER}/"), body)
