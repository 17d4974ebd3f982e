"""Import and synchronization of a table, in any format.

Opening a table reads its checkpoint, and that of an imported table holds its whole history.
"""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TypeAlias
from weakref import WeakKeyDictionary

from attrs import frozen

from ledger.decide.recorded_values import check_credentials
from ledger.events import TableEvent
from ledger.events import imported as e
from ledger.events.imported import PaimonBranchUpdated
from ledger.events.snapshots import SnapshotFacts, TagCreated, TagReplaced
from ledger.ledger_handle import LedgerHandle
from ledger.ledger_writes import adopt_table
from ledger.model.credentials import shown
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from ledger.model.names import Identifier
from ledger.stores.file_access import FileAccess
from ledger.table_handle import TableHandle
from ledger.table_writes import commit_imported
from projections.importing.trial import ImportedCreation, PlannedTransaction, SourceFiles
from projections.materialising import Progress, ignore_progress

_MOST = 64
_handles: WeakKeyDictionary[LedgerHandle, dict[str, TableHandle]] = WeakKeyDictionary()
"""For each ledger, the table handles used last, by the table's id."""


def mirror(lake: LedgerHandle, identifier: Identifier) -> TableHandle:
    """Return a table's handle: the cached one, if its name has not changed.

    Raises:
        NotFoundError: As of `Ledger.table`.
    """
    entry = lake.state.table(identifier)
    handles = _handles.setdefault(lake, {})
    found = handles.pop(entry.table_id, None)
    if (
        found is None
        or (found.identifier, found.path) != (identifier, entry.path)
        or found.state.dropped
    ):
        found = lake.table(identifier)
    handles[entry.table_id] = found
    for oldest in list(handles)[:-_MOST]:
        handles.pop(oldest, None)
    return found


IsTable = Callable[[SourceFiles, str], bool]
"""Returns whether a folder is a table of the format, complete or damaged."""


@frozen
class FoundTable:
    """A table found at a source.

    Attributes:
        database: Its database's name at the source.
        name: Its name at the source.
        source: Its URL or path, for an import.
    """

    database: str
    name: str
    source: str

    def called(self, database: str | None) -> str:
        """Return its name in a ledger: `database.table`; None for the source's database."""
        return f"{database or self.database}.{self.name}"


def has_folder(*names: str) -> IsTable:
    """Return a predicate for tables of a format: folders that contain these folders."""

    def is_table(files: SourceFiles, folder: str) -> bool:
        return any(_folder_exists(files, f"{folder}/{each}") for each in names)

    return is_table


def _folder_exists(files: SourceFiles, folder: str) -> bool:
    try:
        files.names(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # The import will raise the reason.
        return True
    return True


def tables_below(files: SourceFiles, root: str, is_table: IsTable) -> list[FoundTable]:
    """Return the tables in a folder, or in its subfolders, which are databases then.

    A database's folder may end in `.db`, as Hive's and Paimon's do.

    Args:
        files: Lists the folder.
        root: The folder.
        is_table: Predicate for tables of the format.

    Raises:
        NotFoundError: There is no such folder, or no table in it.
        InvalidInputError: It is a table itself.
        StoreError: It cannot be listed.
    """
    if is_table(files, root):
        raise InvalidInputError(f"{root} is a table: give its name in the ledger, DATABASE.TABLE")
    try:
        names = _without_hidden(files.names(root))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f"there is no folder {root}") from error
    except OSError as error:
        raise StoreError(f"{root} cannot be listed: {error}") from error
    found = list(_find_tables(files, root, names, is_table))
    if not found:
        raise NotFoundError(f"{root} holds no such table, nor do the folders in it")
    return found


def _find_tables(
    files: SourceFiles, root: str, names: list[str], is_table: IsTable
) -> Iterator[FoundTable]:
    for name in names:
        folder = f"{root}/{name}"
        if is_table(files, folder):
            yield FoundTable(_database_of_folder(root), name, folder)
            continue
        try:
            inside = _without_hidden(files.names(folder))
        except OSError:
            # A file, or an unrelated folder.
            continue
        for each in inside:
            if is_table(files, f"{folder}/{each}"):
                yield FoundTable(_database_of_folder(folder), each, f"{folder}/{each}")


def _database_of_folder(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2].removesuffix(".db")


def _without_hidden(names: list[str]) -> list[str]:
    return [each for each in names if each[0] not in "._"]


SOURCE_FILE = "source.metadata-file"
"""The transaction property with the path of the metadata file that it was read from."""


@frozen
class IncomingTransactions:
    """New transactions of a source, all validated.

    Attributes:
        source: The source's name for messages, without secrets.
        metadata_file: The source's newest metadata file.
        creation: Origin and initial state of the table; None for one that the ledger has.
        planned: The transactions to import, oldest first.
        not_carried: Features of the source that the ledger cannot store, in words.
        schemas: The ids of imported schemas that no event carries.
    """

    source: str
    metadata_file: str
    creation: ImportedCreation | None
    planned: Sequence[PlannedTransaction]
    not_carried: tuple[str, ...] = ()
    schemas: tuple[int, ...] = ()


Read: TypeAlias = Callable[[str, TableHandle | None, int, FileAccess], IncomingTransactions]
"""Reads a source's transactions that are new to the ledger's table (None: all of them), with times
no later than now in Unix milliseconds. Its files are opened with the given permission, which each
reader extends to the folder of the source.

It raises an AlreadyExistsError for a table that follows another source, and an UnsupportedError
for each feature, by name, that the ledger cannot hold."""


@frozen
class Imported:
    """Result of an import, or of its dry run.

    Attributes:
        identifier: The table's name in the ledger.
        source: The source's name for messages, without secrets.
        metadata_file: The source's newest metadata file.
        is_new: Whether the table was not in the ledger before.
        created_database: The database that did not exist and was created for the table, or would
            be; empty if there is none.
        transactions: The number of imported transactions.
        snapshots: The ids of the imported snapshots, oldest first.
        schemas: The ids of the imported schemas, including the table's first one.
        refs: The branches and tags that were set.
        not_carried: Features of the source that the ledger cannot store, in words.
        version: The table's version afterwards; None for a dry run.
    """

    identifier: Identifier
    source: str
    metadata_file: str
    is_new: bool
    created_database: str
    transactions: int
    snapshots: tuple[int, ...]
    schemas: tuple[int, ...]
    refs: tuple[str, ...]
    not_carried: tuple[str, ...]
    version: int | None


@frozen
class RefusedImport:
    """A table among many that could not be imported.

    Attributes:
        identifier: Its intended name, as text, since the source's names may be invalid here.
        source: Its URL or path.
        error: The reason.
    """

    identifier: str
    source: str
    error: LedgerError | OSError


def _refuse_listing(source: str, access: FileAccess) -> list[FoundTable]:
    del access
    raise UnsupportedError(f"tables of this format are imported one by one: name one of {source}")


@frozen
class Importing:
    """One format's import; see `Ledger.import_table`.

    Attributes:
        format_name: The format's name, as of the origins of its tables.
        read: Reads a source of the format into transactions.
        tables: Finds the tables in a folder or a catalog, with the permission to open files.
    """

    format_name: str
    read: Read
    tables: Callable[[str, FileAccess], list[FoundTable]] = _refuse_listing

    def run_all(
        self,
        lake: LedgerHandle,
        source: str,
        *,
        database: str | None,
        access: FileAccess,
        now_millis: Callable[[], int],
    ) -> Iterator[Imported | RefusedImport]:
        """Import the new transactions of each table; see `Ledger.import_tables`."""
        for each in self.tables(source, access):
            name = each.called(database)
            try:
                yield self.run(
                    lake,
                    Identifier.parse(name),
                    each.source,
                    now_millis=now_millis(),
                    access=access,
                )
            except (LedgerError, OSError) as error:
                yield RefusedImport(name, each.source, error)

    def plan(
        self,
        lake: LedgerHandle,
        identifier: Identifier,
        source: str,
        *,
        now_millis: int,
        access: FileAccess,
    ) -> Imported:
        """Return the result of an import without writing anything."""
        _, incoming = self._read_incoming(lake, identifier, source, now_millis, access)
        return _import_result(identifier, incoming, _missing_database(lake, identifier), None)

    def run(
        self,
        lake: LedgerHandle,
        identifier: Identifier,
        source: str,
        *,
        now_millis: int,
        access: FileAccess,
        on_progress: Progress | None = None,
    ) -> Imported:
        """Import the new transactions.

        All are read and validated before anything is written. After an interruption, call it again:
        committed transactions are not imported twice.
        """
        table, incoming = self._read_incoming(lake, identifier, source, now_millis, access)
        created = _missing_database(lake, identifier)
        if incoming.creation is not None:
            table = _create_imported_table(lake, identifier, incoming.creation, incoming.source)
        if table is None:
            raise AssertionError("a table exists, or has an origin")
        version = _commit_planned(table, incoming, on_progress or ignore_progress)
        return _import_result(identifier, incoming, created, version)

    def _read_incoming(
        self,
        lake: LedgerHandle,
        identifier: Identifier,
        source: str,
        now_millis: int,
        access: FileAccess,
    ) -> tuple[TableHandle | None, IncomingTransactions]:
        table = None
        with suppress(NotFoundError):
            table = mirror(lake, identifier)
        if table is not None and not table.state.is_mirrored:
            raise AlreadyExistsError(
                f"table {identifier} was promoted: the ledger owns it, and it follows "
                f"{table.state.origin.source} no more; import under another name what was "
                "committed there since"
                if table.state.is_promoted
                else f"table {identifier} exists and is the ledger's own; import under another name"
            )
        if table is not None:
            self._refuse_other_format(table)
        incoming = self._read_quietly(source, table, now_millis, access)
        for text in incoming.not_carried:
            check_credentials(text, incoming.source)
        for each in incoming.planned:
            texts = (each.author, each.message, *chain.from_iterable(each.properties.items()))
            for text in texts:
                check_credentials(text, each.metadata_file)
        return table, incoming

    def _refuse_other_format(self, table: TableHandle) -> None:
        """Reject a mirrored table whose source is of another format.

        Raises:
            AlreadyExistsError: It is.
        """
        origin, name = table.state.origin, table.identifier
        if origin.format_name != self.format_name:
            raise AlreadyExistsError(
                f"table {name} follows {origin.source}, a table of {origin.format_name.title()}, "
                f"and was not imported from {self.format_name.title()}: import what is new with "
                f"lakeledger import {origin.format_name} {shlex.quote(origin.source)} {name}, or "
                "give the other table another name"
            )

    def _read_quietly(
        self, source: str, table: TableHandle | None, now_millis: int, access: FileAccess
    ) -> IncomingTransactions:
        """Read a source; replace an error that quotes its credentials, itself or as a cause.

        Raises:
            InvalidInputError: It was replaced, or is one.
            LedgerError: As of `Read`.
            OSError: A storage failed.
        """
        try:
            return self.read(source, table, now_millis, access)
        except (LedgerError, OSError) as error:
            failed = error
        # Not within the except clause: the error would be the context of the new one.
        check_credentials("".join(traceback.format_exception(failed, limit=0)), shown(source))
        raise failed


def _missing_database(lake: LedgerHandle, identifier: Identifier) -> str:
    """Return the database of a table if it does not exist; else an empty text."""
    return "" if identifier.database in lake.state.databases else identifier.database


def _create_imported_table(
    lake: LedgerHandle, identifier: Identifier, creation: ImportedCreation, source: str
) -> TableHandle:
    return adopt_table(
        lake,
        identifier,
        creation.facts(),
        author="",
        message=f"imported from {source}",
        effective_time=creation.millis,
    )


def _commit_planned(
    table: TableHandle, incoming: IncomingTransactions, on_progress: Progress
) -> int:
    version = table.state.version
    for done, each in enumerate(incoming.planned, 1):
        version = commit_imported(
            table,
            each.events,
            version,
            author=each.author,
            message=each.message or f"imported from {incoming.source}",
            properties={SOURCE_FILE: each.metadata_file, **each.properties},
            effective_time=each.millis,
        ).version
        on_progress(done, len(incoming.planned))
    return version


def _import_result(
    identifier: Identifier,
    incoming: IncomingTransactions,
    created_database: str,
    version: int | None,
) -> Imported:
    events = [each for step in incoming.planned for each in step.events]
    creation = incoming.creation
    first = () if creation is None else (getattr(creation.origin, "schema_id", 0),)
    added = (
        each.schema.schema_id if isinstance(each, e.SchemaAdded) else each.schema_id
        for each in events
        if isinstance(each, e.SchemaAdded | e.SchemaNamed)
    )
    return Imported(
        identifier=identifier,
        source=incoming.source,
        metadata_file=incoming.metadata_file,
        is_new=incoming.creation is not None,
        created_database=created_database,
        transactions=len(incoming.planned),
        snapshots=tuple(
            each.snapshot.snapshot_id if isinstance(each, e.SnapshotAdded) else each.snapshot_id
            for each in events
            if isinstance(each, e.SnapshotAdded | SnapshotFacts)
        ),
        schemas=(*first, *added, *incoming.schemas),
        refs=tuple(dict.fromkeys(name for each in events if (name := _ref_name_of(each)))),
        not_carried=incoming.not_carried,
        version=version,
    )


def _ref_name_of(event: TableEvent) -> str:
    """Return the branch or tag that an event sets; empty where it sets none."""
    match event:
        case e.SnapshotRefSet(ref_name=name):
            return name
        case TagCreated(tag_name=name) | TagReplaced(tag_name=name):
            return name
        case PaimonBranchUpdated(branch_name=name):
            return name
    return ""
