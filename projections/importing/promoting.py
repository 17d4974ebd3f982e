"""Promotion of a mirrored table, in any format.

First all that is new at the source is taken over, then whatever leads readers there is led here,
where that can be done, and one commit says that the ledger owns the table. Whoever was interrupted
asks again: what has happened is not done twice, and until that commit the source is the owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from attrs import frozen
from msgspec import UNSET, Raw

from ledger.decide.changes import FileSums
from ledger.decide.recorded_values import check_said
from ledger.decide.snapshots import readable_files
from ledger.events import TableEvent
from ledger.events.snapshots import NO_FILES, SnapshotCommitted
from ledger.events.table import OwnerSet, ServingProtocol
from ledger.ledger_handle import LedgerHandle
from ledger.locations import LOCAL, family_of, is_absolute
from ledger.log.request import CommitOptions, fresh_id
from ledger.model.errors import (
    CommitConflictError,
    InvalidChangeError,
    InvalidInputError,
    StoreError,
)
from ledger.model.file_change import FileChange
from ledger.model.names import Identifier
from ledger.state.owner import refuse_unservable
from ledger.state.table import TableState
from ledger.stores import LocalStore, Store, open_store
from ledger.stores.file_access import FileAccess
from ledger.table_handle import TableHandle
from ledger.table_writes import take_over
from projections.importing.importing import Importing
from projections.materialising import Progress

_MOST_LOOKS = 5


@frozen
class Promoted:
    """What came of a promotion, or would.

    Attributes:
        identifier: The table's name in the ledger.
        source: Whose it was.
        transactions: How many of the source's came first.
        files: How many live files the ledger lists from now on.
        catalog: The catalog's table that leads to the ledger's files now; empty where none does.
        instructions: What its owner has to do, a sentence each.
        version: The version that says so; None where nothing was to be written.
        is_new: Whether the table was promoted just now.
    """

    identifier: Identifier
    source: str
    transactions: int
    files: int
    catalog: str
    instructions: tuple[str, ...]
    version: int | None
    is_new: bool


class Handover(Protocol):
    """What a format does of a promotion."""

    def source(self, table: TableHandle) -> str:
        """Return how the table's source is found."""

    def is_here(self, table: TableHandle, source: str, access: FileAccess) -> bool:
        """Whether the source leads to the ledger's own files already."""

    def promotion(self, table: TableHandle, source: str) -> tuple[TableEvent, ...]:
        """Return the events of a promotion for any owner.

        Raises:
            UnsupportedError: The table stays its source's; the message says why.
        """

    def adoption(self, table: TableHandle) -> tuple[TableEvent, ...]:
        """Return the further events by which the ledger lists the table's files itself.

        Raises:
            UnsupportedError: It cannot; the message says what only the table's engines can.
        """

    def hand_over(
        self, table: TableHandle, source: str, access: FileAccess, now_millis: int
    ) -> bool:
        """Make the ledger the source's owner there, if the source is as it came in.

        Its readers are led to the ledger's files, or its writers are kept out. Returns whether the
        source is as it came in: no means that more has come there.
        """

    def instructions(self, table: TableHandle) -> tuple[str, ...]:
        """Return what the table's former owner has to do, a sentence each."""


class Leading(Protocol):
    """What leads a format's readers to a promoted table."""

    def follow(self, table: TableHandle) -> None:
        """Bring what leads readers here up to the newest version."""

    def catalog(self, source: str) -> str:
        """Return the catalog's table that leads here; empty where none does."""


@frozen
class ByFolder:
    """Readers know a folder, which no catalog leads to.

    Attributes:
        project: Brings a table's own files up to the newest version.
    """

    project: Callable[[TableHandle], int]

    def follow(self, table: TableHandle) -> None:
        """Bring the table's own files up to the newest version."""
        self.project(table)

    def catalog(self, source: str) -> str:
        """Return nothing."""
        del source
        return ""


@frozen
class Promoting:
    """One format's promotion; see `Ledger.promote`.

    Attributes:
        importing: The format's import.
        handover: What the format does of it.
        leading: What leads its readers to the table from then on.
    """

    importing: Importing
    handover: Handover
    leading: Leading

    def plan(
        self,
        lake: LedgerHandle,
        identifier: Identifier,
        *,
        source: str | None,
        protocol: ServingProtocol | None,
        now_millis: int,
        access: FileAccess,
    ) -> Promoted:
        """Return what a promotion would do; nothing is written."""
        table = lake.table(identifier)
        _refuse_promoted(table, protocol)
        if table.state.is_promoted:
            owner = source or table.state.origin.source
            return self._result(table, owner, 0, 0, is_new=False)
        found = source or _recorded(self.handover, table)
        new = 0
        if not self.handover.is_here(table, found, access):
            come = self.importing.plan(
                lake,
                identifier,
                found,
                now_millis=now_millis,
                access=access,
            )
            new = come.transactions
        self._events(table, found, protocol)
        result = self._result(table, found, new, _files(table), is_new=True)
        return Promoted(
            identifier=result.identifier,
            source=result.source,
            transactions=new,
            files=result.files,
            catalog=result.catalog,
            instructions=result.instructions,
            version=None,
            is_new=True,
        )

    def run(  # noqa: PLR0913 - what is promoted, for whom, and how it is committed
        self,
        lake: LedgerHandle,
        identifier: Identifier,
        *,
        source: str | None,
        protocol: ServingProtocol | None,
        now_millis: Callable[[], int],
        access: FileAccess,
        on_progress: Progress,
        commit: CommitOptions,
    ) -> Promoted:
        """Promote a table; asked again, end what was interrupted, and lead readers on."""
        table = lake.table(identifier)
        _refuse_promoted(table, protocol)
        if table.state.is_promoted:
            self._lead(table)
            return self._result(table, table.state.origin.source, 0, 0, is_new=False)
        found, new = source or _recorded(self.handover, table), 0
        for _ in range(_MOST_LOOKS):
            if not self.handover.is_here(table, found, access):
                new += self.importing.run(
                    lake,
                    identifier,
                    found,
                    now_millis=now_millis(),
                    access=access,
                    on_progress=on_progress,
                ).transactions
            state = table.state
            events = self._events(table, found, protocol)
            if not self.handover.hand_over(table, found, access, now_millis()):
                continue
            try:
                self._commit(table, state, events, now_millis(), commit)
            except CommitConflictError:
                # Another process takes over what is new at the same time.
                continue
            self._lead(table)
            return self._result(table, found, new, _files(table), is_new=True)
        raise InvalidInputError(
            f"more came at {found} each time that it was looked at: stop its writers, then promote "
            f"{identifier} again"
        )

    def adoption(self, table: TableHandle) -> tuple[TableEvent, ...]:
        """Return what the ledger says that takes a promoted table back from engines.

        Raises:
            UnsupportedError: Only the table's engines can write what it needs.
        """
        return self.handover.adoption(table)

    def _events(
        self, table: TableHandle, source: str, protocol: ServingProtocol | None
    ) -> tuple[TableEvent, ...]:
        """Return what a promotion says.

        Raises:
            InvalidChangeError: The table cannot be served through the protocol.
            UnsupportedError: The table stays its source's, or only its engines can write it.
        """
        if protocol is None:
            return (*self.handover.promotion(table, source), *self.handover.adoption(table))
        refuse_unservable(table.state.schema.options, protocol)
        served = OwnerSet(owner="served", protocol=protocol)
        return (*self.handover.promotion(table, source), served)

    def _lead(self, table: TableHandle) -> None:
        """Bring what leads readers here up to the newest version of a table that is promoted.

        Raises:
            StoreError: A store failed; the message says that the ledger owns the table already.
        """
        try:
            self.leading.follow(table)
        except (StoreError, OSError) as error:
            raise StoreError(
                f"the ledger owns {table.identifier} since version {table.state.version}, but what "
                f"leads readers to its files could not be written: {error}. Complete it with: "
                f"lakeledger promote {table.identifier}"
            ) from error

    def _commit(
        self,
        table: TableHandle,
        state: TableState,
        events: tuple[TableEvent, ...],
        now_millis: int,
        commit: CommitOptions,
    ) -> None:
        options: CommitOptions = {**commit}
        options.setdefault("message", f"promoted: it followed {state.origin.source}")
        options.setdefault("effective_time", max(state.effective_millis, now_millis))
        take_over(table, events, state.version, **options)

    def _result(
        self, table: TableHandle, source: str, transactions: int, files: int, *, is_new: bool
    ) -> Promoted:
        return Promoted(
            identifier=table.identifier,
            source=source,
            transactions=transactions,
            files=files,
            catalog=self.leading.catalog(source),
            instructions=self.handover.instructions(table),
            version=table.state.version,
            is_new=is_new,
        )


def _refuse_promoted(table: TableHandle, protocol: ServingProtocol | None) -> None:
    """Refuse to promote a table for engines that was promoted for another owner.

    Raises:
        InvalidChangeError: It was.
    """
    owner = table.state.owner
    if owner.kind == "mirrored" or protocol in {None, owner.protocol}:
        return
    way = "lakeledger serve-table" + (" --back" if owner.kind == "served" else "")
    raise InvalidChangeError(
        f"table {table.identifier} was promoted before, and its owner is {owner} since version "
        f"{owner.since_version}; change that with: {way} {table.identifier}",
        kind="ILLEGAL_STATE",
    )


def _recorded(handover: Handover, table: TableHandle) -> str:
    """Return the source that a table's log names, if it may be opened.

    Raises:
        UnsupportedError: It lies outside of the permitted locations: the log may be foreign.
        InvalidInputError: It is no URL that files are opened at.
    """
    found = handover.source(table)
    if is_absolute(found):
        table.file_access.check(found)
    return found


def _files(table: TableHandle) -> int:
    return table.state.totals.file_count


def adopting(
    files: tuple[FileChange, ...], *, snapshot_id: int, schema_id: int, **facts: Any
) -> SnapshotCommitted:
    """Return the snapshot by which a ledger lists the live files of a table that it now owns.

    Args:
        files: Those.
        snapshot_id: Its id.
        schema_id: The current schema's.
        facts: What it says besides, by the event's names.

    Raises:
        InvalidChangeError: A fact of a file cannot stand in the log.
        InvalidInputError: The same of a number, or of a path.
    """
    sums = FileSums.of(files)
    created = sums.last_file_creation_time
    adopted = SnapshotCommitted(
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        commit_user=fresh_id(),
        commit_kind="COMPACT",
        total_record_count=sums.record_count,
        delta_record_count=sums.record_count,
        delta_file_count=sums.file_count,
        delta_file_size_in_bytes=sums.file_size_in_bytes,
        last_file_creation_time=UNSET if created is None else created,
        files=Raw(readable_files(files)) if files else NO_FILES,
        **facts,
    )
    check_said((adopted,), "its engines' manifests")
    return adopted


def conditional_store(folder: str, access: FileAccess) -> Store | None:
    """Return a source's folder as a store that creates a file once, whoever is first.

    Args:
        folder: Its path or URL.
        access: Has the options of its client.

    Returns:
        None where its storage knows no conditional create.
    """
    try:
        return (
            LocalStore(folder)
            if family_of(folder) == LOCAL
            else open_store(folder, access.options_at(folder))
        )
    except StoreError:
        return None
