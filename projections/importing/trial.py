"""Trial of an import: validated as a whole before anything is written."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import define, field, frozen
from msgspec import UNSET, UnsetType

from ledger.decide.recorded_values import check_said, parts_of_creation
from ledger.events import TableEvent
from ledger.events.commit import Outside, Transaction
from ledger.events.imported import ImportedDeltaTable, ImportedIcebergTable, ImportedPaimonTable
from ledger.events.table import SchemaRecord, TableCreated, TableName
from ledger.locations import is_url, local_path, place_of
from ledger.model.credentials import advice, carries_credentials
from ledger.model.errors import InvalidChangeError, InvalidInputError, UnsupportedError
from ledger.model.iceberg_layout import PartitionField, SortField
from ledger.model.schema import FieldIdPolicy, Schema
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.stores.file_access import FileAccess, absolute


@frozen
class ImportedCreation:
    """What a table begins with that comes from elsewhere.

    Attributes:
        schema: Its first schema.
        origin: Where it comes from.
        millis: When it was made, as far as anything tells; Unix milliseconds.
        field_id_policy: Who counts its field ids.
        partition_spec: Spec 0, if the source says one.
        sort_order: Order 1, if the source began with it.
    """

    schema: SchemaRecord
    origin: ImportedIcebergTable | ImportedPaimonTable | ImportedDeltaTable
    millis: int
    field_id_policy: FieldIdPolicy
    partition_spec: tuple[PartitionField, ...] | UnsetType = UNSET
    sort_order: tuple[SortField, ...] | UnsetType = UNSET

    def facts(self) -> dict[str, Any]:
        """Return what its creation says, by the keys of `TableCreated`, as far as there is any."""
        facts = {
            "schema": self.schema,
            "origin": self.origin,
            "field_id_policy": self.field_id_policy,
            "partition_spec": self.partition_spec,
            "sort_order": self.sort_order,
        }
        return {key: each for key, each in facts.items() if each is not UNSET}

    def state(self) -> TableState:
        """Return the table as its creation will leave it, to plan on; it has no name yet.

        Raises:
            InvalidInputError: It says what no log may hold.
        """
        check_said(parts_of_creation(self.facts()), self.origin.source)
        created = TableCreated(
            identifier=TableName("", ""), table_id="unborn", path="", **self.facts()
        )
        builder = TableBuilder()
        builder.begin(0, self.millis)
        builder.add(Transaction(id="", asked="", events=(created,)))
        return builder.freeze()


@frozen
class Planned:
    """One transaction to come.

    Attributes:
        events: What it says.
        millis: When that happened.
        author: Who did it, as far as the source says.
        metadata_file: The file of the source that it was read from.
        message: Why, as far as the source says.
        properties: What else the source says of it.
    """

    events: tuple[TableEvent, ...]
    millis: int
    author: str
    metadata_file: str
    message: str = ""
    properties: Mapping[str, str] = field(factory=dict, hash=False)


@define
class Trial:
    """The table as everything planned so far leaves it.

    Whoever takes thousands of steps is not held up by states that nobody asks for: to make one, all
    that the table has is copied.

    Attributes:
        now_millis: Nothing takes effect later.
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
        return self._now.schema

    @property
    def _now(self) -> TableState | TableBuilder:
        return self._state if self._ahead is None else self._ahead

    def after(self, events: Iterable[TableEvent], millis: int, author: str) -> TableState:
        """Return the table after more events; it stays as it is.

        Args:
            events: They.
            millis: When they happened; what is earlier than what came before happened with it.
            author: Who did it.

        Raises:
            UnsupportedError: The ledger cannot hold them; the message says why.
        """
        builder = TableBuilder(self.state)
        self._add(builder, tuple(events), self._moment(millis), author)
        return builder.freeze()

    def take(
        self, events: Iterable[TableEvent], millis: int, author: str, metadata_file: str
    ) -> Planned:
        """Go on to the table after more events, and return the transaction that says them.

        Where they are refused, nothing more can be tried.

        Raises:
            UnsupportedError: As of `after`.
            InvalidInputError: They say what no log may hold; the message names the file.
        """
        said, moment = tuple(events), self._moment(millis)
        check_said(said, metadata_file)
        if self._ahead is None:
            self._ahead = TableBuilder(self._state)
        self._add(self._ahead, said, moment, author)
        return Planned(said, moment, author, metadata_file)

    def _add(
        self, builder: TableBuilder, said: tuple[TableEvent, ...], moment: int, author: str
    ) -> None:
        builder.begin(builder.version + 1, max(builder.time_millis, moment))
        # Where nobody is named in lines, it says so.
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

    def _moment(self, millis: int) -> int:
        """Return when something takes effect: never before what came earlier, never in future."""
        return min(max(self._now.effective_millis, millis), self.now_millis)


@frozen
class SourceFiles:
    """Reads files by their URLs.

    Attributes:
        access: Permission to open them.
    """

    access: FileAccess

    def read(self, url: str) -> bytes:
        """Return a file's bytes; errors as of `FileAccess.read`."""
        return self.access.read(url)

    def names(self, folder: str) -> list[str]:
        """Return the names of what lies in a folder, sorted.

        Raises:
            FileNotFoundError: There is no such folder.
            OSError: It may not be listed.
            UnsupportedError: It lies outside of the permitted locations.
            InvalidInputError: It is no URL that files are opened at.
        """
        return sorted(self.written(folder))

    def written(self, folder: str) -> dict[str, int]:
        """Return what lies in a folder: when each was written, Unix milliseconds, by its name.

        A storage that does not say has 0.

        Raises:
            OSError: As of `names`.
            UnsupportedError: As of `names`.
            InvalidInputError: As of `names`.
        """
        files, path = self.access.open(folder)
        # What a mirror looks at changes between two looks.
        files.invalidate_cache()
        try:
            found: list[dict[str, Any]] = files.ls(path, detail=True)
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        named = ((posixpath.basename(str(each["name"]).rstrip("/")), each) for each in found)
        return {name: _millis(each) for name, each in named if name}


def place_of_source(source: str) -> str:
    """Return where a source is: its URL, or its local path from the root, without `..`; links stay.

    Raises:
        InvalidInputError: It holds a password or a key.
    """
    if carries_credentials(source):
        raise InvalidInputError(f"source {advice(source)}")
    if is_url(source):
        return source.rstrip("/")
    return f"/{place_of(str(absolute(plain(source)))).path}"


def plain(url: str) -> str:
    """Return a URL by which local places compare, however their scheme is written.

    Example:
        >>> plain("FILE:///lake/t/"), plain("/lake/t"), plain("s3://b/t")
        ('/lake/t', '/lake/t', 's3://b/t')
    """
    return (local_path(url) or url).rstrip("/")


_WRITTEN = ("mtime", "LastModified", "last_modified", "updated", "created")
"""What storages call the time at which a file was written."""


def _millis(entry: Mapping[str, Any]) -> int:
    found = next((entry[each] for each in _WRITTEN if entry.get(each)), 0)
    if isinstance(found, str):
        found = datetime.fromisoformat(found)
    return int((found.timestamp() if isinstance(found, datetime) else found) * 1000)
