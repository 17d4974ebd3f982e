"""Promotion of an imported table, in any format.

First all new transactions of the source are imported, then its readers are directed to the ledger's
files, where possible, and one commit makes the ledger the owner of the table. An interrupted
promotion can be repeated: completed steps are skipped, and the source is the owner until that
commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from attrs import frozen
from msgspec import UNSET, Raw

from ledger.decide.changes import FileSums
from ledger.decide.recorded_values import check_recorded_values
from ledger.decide.snapshots import encode_checked_files
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
from ledger.state.owner import refuse_unservable_options
from ledger.state.table import TableState
from ledger.stores import LocalStore, Store, open_store
from ledger.stores.file_access import FileAccess
from ledger.table_handle import TableHandle
from ledger.table_writes import commit_imported
from projections.importing.importing import Importing
from projections.materialising import Progress

_MOST_LOOKS = 5


@frozen
class Promoted:
    """Result of a promotion, or of its dry run.

    Attributes:
        identifier: The table's name in the ledger.
        source: The former owner's table.
        transactions: The number of transactions imported before the promotion.
        files: The number of live files that the ledger lists from now on.
        catalog: The catalog's table that now refers to the ledger's files; empty where none does.
        instructions: Steps left for its owner, a sentence each.
        version: The version of the promotion; None for a dry run.
        is_new: Whether this call promoted the table.
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
    """The format-specific steps of a promotion."""

    def source(self, table: TableHandle) -> str:
        """Return the URL or path of the table's source."""

    def is_here(self, table: TableHandle, source: str, access: FileAccess) -> bool:
        """Return whether the source refers to the ledger's own files already."""

    def promotion(self, table: TableHandle, source: str) -> tuple[TableEvent, ...]:
        """Return the events of a promotion that hold for any owner.

        Raises:
            UnsupportedError: The table cannot be promoted; the message gives the reason.
        """

    def adoption(self, table: TableHandle) -> tuple[TableEvent, ...]:
        """Return the further events by which the ledger lists the table's files itself.

        Raises:
            UnsupportedError: It cannot; the message names the step that an engine has to do.
        """

    def hand_over(
        self, table: TableHandle, source: str, access: FileAccess, now_millis: int
    ) -> bool:
        """Make the ledger the owner at the source, if the source is unchanged since the import.

        Its readers are directed to the ledger's files, or its writers are blocked. Returns whether
        the source is unchanged; False means that it has new commits.
        """

    def instructions(self, table: TableHandle) -> tuple[str, ...]:
        """Return the steps left for the table's former owner, a sentence each."""


class Leading(Protocol):
    """Directs a format's readers to a promoted table."""

    def check(self, table: TableHandle, source: str | None) -> None:
        """Check that only the ledger committed where the readers of a promoted table look.

        Args:
            table: The table.
            source: Where they look; None for the catalog that its promotion recorded.

        Raises:
            CommitConflictError: Another writer did; the message names its commit.
            NotFoundError: The readers' catalog does not know the table.
        """

    def follow(self, table: TableHandle, source: str | None) -> None:
        """Update the files or catalog that readers use to the newest version.

        Args:
            table: The table.
            source: As of `check`.

        Raises:
            CommitConflictError: As of `check`; nothing was overwritten.
            NotFoundError: As of `check`.
        """

    def catalog(self, table: TableHandle, source: str) -> str:
        """Return the catalog's table that refers to the ledger; empty where none does."""


@frozen
class FolderReaders:
    """Readers open a folder, without a catalog.

    Attributes:
        project: Projects a table's own files up to the newest version.
    """

    project: Callable[[TableHandle], int]

    def check(self, table: TableHandle, source: str | None) -> None:
        """Check nothing: the promotion blocked other writers, or its instructions name them."""
        del table, source

    def follow(self, table: TableHandle, source: str | None) -> None:
        """Project the table's own files up to the newest version."""
        del source
        self.project(table)

    def catalog(self, table: TableHandle, source: str) -> str:
        """Return nothing."""
        del table, source
        return ""


@frozen
class Promoting:
    """One format's promotion; see `Ledger.promote`.

    Attributes:
        importing: The format's import.
        handover: The format-specific steps.
        leading: Directs its readers to the table from then on.
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
        """Return the result of a promotion without writing anything."""
        table = lake.table(identifier)
        _refuse_promoted(table, protocol)
        if table.state.is_promoted:
            self.leading.check(table, source)
            owner = source or table.state.origin.source
            return self._promotion_result(table, owner, 0, 0, is_new=False)
        found = source or _recorded_source(self.handover, table)
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
        self._promotion_events(table, found, protocol)
        result = self._promotion_result(table, found, new, _live_file_count(table), is_new=True)
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
        """Promote a table, or complete an interrupted promotion, and update readers' pointers."""
        table = lake.table(identifier)
        _refuse_promoted(table, protocol)
        if table.state.is_promoted:
            self._update_reader_pointers(table, source)
            owner = source or table.state.origin.source
            return self._promotion_result(table, owner, 0, 0, is_new=False)
        found, new = source or _recorded_source(self.handover, table), 0
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
            events = self._promotion_events(table, found, protocol)
            if not self.handover.hand_over(table, found, access, now_millis()):
                continue
            try:
                self._commit_promotion(table, state, events, now_millis(), commit)
            except CommitConflictError:
                # A concurrent process imports the same transactions.
                continue
            self._update_reader_pointers(table, found)
            return self._promotion_result(table, found, new, _live_file_count(table), is_new=True)
        raise InvalidInputError(
            f"new commits were found at {found} on each attempt: stop its writers, then promote "
            f"{identifier} again"
        )

    def adoption(self, table: TableHandle) -> tuple[TableEvent, ...]:
        """Return the events by which the ledger takes a promoted table back from engines.

        Raises:
            UnsupportedError: Only the table's engines can write what it needs.
        """
        return self.handover.adoption(table)

    def _promotion_events(
        self, table: TableHandle, source: str, protocol: ServingProtocol | None
    ) -> tuple[TableEvent, ...]:
        """Return the events of a promotion.

        Raises:
            InvalidChangeError: The table cannot be served through the protocol.
            UnsupportedError: The table cannot be promoted, or only its engines can write it.
        """
        if protocol is None:
            return (*self.handover.promotion(table, source), *self.handover.adoption(table))
        refuse_unservable_options(table.state.schema.options, protocol)
        served = OwnerSet(owner="served", protocol=protocol)
        return (*self.handover.promotion(table, source), served)

    def _update_reader_pointers(self, table: TableHandle, source: str | None) -> None:
        """Update the readers' pointers of a promoted table to the newest version.

        Raises:
            StoreError: A store failed; the message says that the ledger owns the table already.
        """
        try:
            self.leading.follow(table, source)
        except (StoreError, OSError) as error:
            raise StoreError(
                f"the ledger owns {table.identifier} since version {table.state.version}, but the "
                f"pointer of its readers could not be written: {error}. Complete it with: "
                f"lakeledger promote {table.identifier}"
            ) from error

    def _commit_promotion(
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
        commit_imported(table, events, state.version, **options)

    def _promotion_result(
        self, table: TableHandle, source: str, transactions: int, files: int, *, is_new: bool
    ) -> Promoted:
        return Promoted(
            identifier=table.identifier,
            source=source,
            transactions=transactions,
            files=files,
            catalog=self.leading.catalog(table, source),
            instructions=self.handover.instructions(table),
            version=table.state.version,
            is_new=is_new,
        )


def _refuse_promoted(table: TableHandle, protocol: ServingProtocol | None) -> None:
    """Reject to promote a table for engines that was promoted for another owner.

    Raises:
        InvalidChangeError: It was promoted for another owner.
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


def _recorded_source(handover: Handover, table: TableHandle) -> str:
    """Return the source that a table's log names, if it may be opened.

    Raises:
        UnsupportedError: It is outside of the permitted locations: the log may be foreign.
        InvalidInputError: Its URL has a scheme that files cannot be opened at.
    """
    found = handover.source(table)
    if is_absolute(found):
        table.file_access.check(found)
    return found


def _live_file_count(table: TableHandle) -> int:
    return table.state.totals.file_count


def adoption_snapshot(
    files: tuple[FileChange, ...],
    *,
    total_record_count: int,
    snapshot_id: int,
    schema_id: int,
    **facts: Any,
) -> SnapshotCommitted:
    """Return the snapshot by which a ledger lists the live files of a table that it now owns.

    Args:
        files: The changes from the files that the log lists to the live ones.
        total_record_count: The number of rows in the live files.
        snapshot_id: The snapshot's id.
        schema_id: The current schema's id.
        facts: Further fields, by the event's names.

    Raises:
        InvalidChangeError: A fact of a file cannot be stored in the log.
        InvalidInputError: A number or a path cannot be stored in the log.
    """
    sums = FileSums.of(files)
    created = sums.last_file_creation_time
    adopted = SnapshotCommitted(
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        commit_user=fresh_id(),
        commit_kind="COMPACT",
        total_record_count=total_record_count,
        delta_record_count=sums.record_count,
        delta_file_count=sums.file_count,
        delta_file_size_in_bytes=sums.file_size_in_bytes,
        last_file_creation_time=UNSET if created is None else created,
        files=Raw(encode_checked_files(files)) if files else NO_FILES,
        **facts,
    )
    check_recorded_values((adopted,), "its engines' manifests")
    return adopted


def conditional_store(folder: str, access: FileAccess) -> Store | None:
    """Return a source's folder as a store with an atomic put-if-absent.

    Args:
        folder: Its path or URL.
        access: The options of its client.

    Returns:
        None where its storage has no conditional create.
    """
    try:
        return (
            LocalStore(folder)
            if family_of(folder) == LOCAL
            else open_store(folder, access.options_at(folder))
        )
    except StoreError:
        return None
