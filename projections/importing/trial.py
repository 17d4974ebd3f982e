"""Trial of an import: validated as a whole before anything is written."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

from attrs import define, field, frozen
from msgspec import UNSET, UnsetType

from ledger.decide.recorded_values import check_recorded_values, parts_of_creation
from ledger.events import TableEvent
from ledger.events.commit import Outside, Transaction
from ledger.events.imported import ImportedDeltaTable, ImportedIcebergTable, ImportedPaimonTable
from ledger.events.table import SchemaRecord, TableCreated, TableName
from ledger.locations import is_url, local_path, place_of
from ledger.model.credentials import carries_credentials, credentials_error_text
from ledger.model.errors import InvalidChangeError, InvalidInputError, UnsupportedError
from ledger.model.iceberg_layout import PartitionField, SortField
from ledger.model.schema import FieldIdPolicy, Schema
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.stores.file_access import FileAccess, absolute


@frozen
class ImportedCreation:
    """Origin and initial state of an imported table.

    Attributes:
        schema: Its first schema.
        origin: The source.
        millis: Creation time as far as known, Unix milliseconds.
        field_id_policy: The party that assigns its field ids.
        partition_spec: Spec 0, if the source has one.
        sort_order: Order 1, if the source began with it.
    """

    schema: SchemaRecord
    origin: ImportedIcebergTable | ImportedPaimonTable | ImportedDeltaTable
    millis: int
    field_id_policy: FieldIdPolicy
    partition_spec: tuple[PartitionField, ...] | UnsetType = UNSET
    sort_order: tuple[SortField, ...] | UnsetType = UNSET

    def facts(self) -> dict[str, Any]:
        """Return the fields of its creation event, by the keys of `TableCreated`."""
        facts = {
            "schema": self.schema,
            "origin": self.origin,
            "field_id_policy": self.field_id_policy,
            "partition_spec": self.partition_spec,
            "sort_order": self.sort_order,
        }
        return {key: each for key, each in facts.items() if each is not UNSET}

    def state(self) -> TableState:
        """Return the table's state after its creation, for planning; it has no name yet.

        Raises:
            InvalidInputError: A field cannot be stored in a log.
        """
        check_recorded_values(parts_of_creation(self.facts()), self.origin.source)
        created = TableCreated(
            identifier=TableName("", ""), table_id="unborn", path="", **self.facts()
        )
        builder = TableBuilder()
        builder.begin(0, self.millis)
        builder.add(Transaction(id="", asked="", events=(created,)))
        return builder.freeze()


@frozen
class PlannedTransaction:
    """A transaction that an import will commit.

    Attributes:
        events: Its events.
        millis: The time of the events, Unix milliseconds.
        author: The author, as far as the source names one.
        metadata_file: The file of the source that it was read from.
        message: The message, as far as the source has one.
        properties: Further properties from the source.
    """

    events: tuple[TableEvent, ...]
    millis: int
    author: str
    metadata_file: str
    message: str = ""
    properties: Mapping[str, str] = field(factory=dict, hash=False)


@define
class PlanningState:
    """State of the table after everything planned so far.

    States are built only on request, since building one copies the whole table.

    Attributes:
        now_millis: Upper bound of all times, Unix milliseconds.
    """

    _state: TableState
    now_millis: int
    _ahead: TableBuilder | None = field(default=None, init=False)

    @property
    def state(self) -> TableState:
        """The table."""
        if self._ahead is not None:
            self._state, self._ahead = self._ahead.freeze(), None
        return self._state

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self._current_state.schema

    @property
    def _current_state(self) -> TableState | TableBuilder:
        return self._state if self._ahead is None else self._ahead

    def after(self, events: Iterable[TableEvent], millis: int, author: str) -> TableState:
        """Return the state after more events; the trial itself is unchanged.

        Args:
            events: The events.
            millis: Their time; never earlier than that of the events before.
            author: Their author.

        Raises:
            UnsupportedError: The ledger cannot hold them; the message gives the reason.
        """
        builder = TableBuilder(self.state)
        self._add_transaction(builder, tuple(events), self._commit_time(millis), author)
        return builder.freeze()

    def take(
        self, events: Iterable[TableEvent], millis: int, author: str, metadata_file: str
    ) -> PlannedTransaction:
        """Apply more events, and return the transaction with them.

        After a rejection, the trial cannot be used any more.

        Raises:
            UnsupportedError: As of `after`.
            InvalidInputError: They cannot be stored in a log; the message names the file.
        """
        said, moment = tuple(events), self._commit_time(millis)
        check_recorded_values(said, metadata_file)
        if self._ahead is None:
            self._ahead = TableBuilder(self._state)
        self._add_transaction(self._ahead, said, moment, author)
        return PlannedTransaction(said, moment, author, metadata_file)

    def _add_transaction(
        self, builder: TableBuilder, said: tuple[TableEvent, ...], moment: int, author: str
    ) -> None:
        builder.begin(builder.version + 1, max(builder.time_millis, moment))
        # Events without an author say so.
        who: dict[str, Any] = {"outside": Outside()} if builder.keeps_outside else {}
        transaction = Transaction[TableEvent](
            id="",
            asked="",
            effective_time_millis=moment,
            events=said,
            **(who or {"author": author}),
        )
        try:
            builder.add(transaction)
        except InvalidChangeError as error:
            raise UnsupportedError(
                f"the ledger cannot hold what the source says: {error}"
            ) from error

    def _commit_time(self, millis: int) -> int:
        """Return the time of a commit: never before an earlier commit, never in the future."""
        return min(max(self._current_state.effective_millis, millis), self.now_millis)


class ReadableFiles(Protocol):
    """Files of a source, by their URLs."""

    def read(self, url: str) -> bytes:
        """Return a file's bytes.

        Raises:
            FileNotFoundError: There is no such file.
            OSError: It cannot be read.
        """

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted.

        Raises:
            FileNotFoundError: There is no such folder.
            OSError: It cannot be listed.
        """


@frozen
class SourceFiles:
    """Read access to files by their URLs.

    Attributes:
        access: Permission to open them.
    """

    access: FileAccess

    def read(self, url: str) -> bytes:
        """Return a file's bytes; errors as of `FileAccess.read`."""
        return self.access.read(url)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted.

        Raises:
            FileNotFoundError: There is no such folder.
            OSError: It cannot be listed.
            UnsupportedError: It is outside of the permitted locations.
            InvalidInputError: Its URL has a scheme that files cannot be opened at.
        """
        return sorted(self.written(folder))

    def written(self, folder: str) -> dict[str, int]:
        """Return the modification times of a folder's entries, Unix milliseconds, by name.

        A storage without modification times gives 0.

        Raises:
            OSError: As of `names`.
            UnsupportedError: As of `names`.
            InvalidInputError: As of `names`.
        """
        files, path = self.access.open(folder)
        # A mirrored folder changes between two listings.
        files.invalidate_cache()
        try:
            found: list[dict[str, Any]] = files.ls(path, detail=True)
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        named = ((posixpath.basename(str(each["name"]).rstrip("/")), each) for each in found)
        return {name: _modified_millis(each) for name, each in named if name}


def canonical_source(source: str) -> str:
    """Return the URL of a source, or its absolute local path without `..`; links are kept.

    Raises:
        InvalidInputError: It holds a password or a key.
    """
    if carries_credentials(source):
        raise InvalidInputError(f"source {credentials_error_text(source)}")
    if is_url(source):
        return source.rstrip("/")
    return f"/{place_of(str(absolute(canonical_url(source)))).path}"


def canonical_url(url: str) -> str:
    """Return the canonical form of a URL, so that spellings of a local path compare equal.

    Example:
        >>> canonical_url("FILE:///lake/t/"), canonical_url("/lake/t"), canonical_url("s3://b/t")
        ('/lake/t', '/lake/t', 's3://b/t')
    """
    return (local_path(url) or url).rstrip("/")


_WRITTEN = ("mtime", "LastModified", "last_modified", "updated", "created")
"""Storages' names for the modification time of a file."""


def _modified_millis(entry: Mapping[str, Any]) -> int:
    found = next((entry[each] for each in _WRITTEN if entry.get(each)), 0)
    if isinstance(found, str):
        found = datetime.fromisoformat(found)
    return int((found.timestamp() if isinstance(found, datetime) else found) * 1000)
