"""Promotion of Iceberg tables: the catalog's pointer is swapped."""

from __future__ import annotations

import posixpath

from msgspec import UNSET

import projections.iceberg.sources as catalogs
from ledger.decide.table_options import PERSONAL_OPTION, lost_marks
from ledger.events import TableEvent
from ledger.events.snapshots import SnapshotCommitted
from ledger.events.table import TablePromoted
from ledger.model.errors import UnsupportedError
from ledger.state.iceberg_origin import IcebergOrigin, last_taken
from ledger.state.iceberg_summary import FileCounts, totals_of
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from projections.iceberg.engine_files import EngineManifests
from projections.iceberg.importing import ICEBERG
from projections.iceberg.materialise import project
from projections.iceberg.position import RENDERER, Names
from projections.iceberg.sources import IN_CATALOG, open_source
from projections.iceberg.table_metadata import ROW_IDS_SINCE
from projections.importing.promoting import Promoting, adopting


class IcebergHandover:
    """See `projections.importing.promoting.Handover`."""

    def source(self, table: Table) -> str:
        """Return how the table's source is found."""
        return table.state.imported_from(IcebergOrigin).source

    def is_here(self, table: Table, source: str, access: FileAccess) -> bool:
        """Whether the source leads to the ledger's own files already."""
        return _is_own(table, open_source(source, access).newest.url)

    def promotion(self, table: Table, source: str) -> tuple[TableEvent, ...]:
        """Return what the promotion says.

        Raises:
            UnsupportedError: The table is encrypted, or marks a column as personal that there is
                not.
        """
        state = table.state
        born = state.imported_from(IcebergOrigin)
        if born.encryption_keys:
            raise UnsupportedError(
                f"{born.source} is encrypted, and the ledger writes nothing that is: it stays its "
                "owner's"
            )
        lost = lost_marks(state.schema.options.get(PERSONAL_OPTION, ""), state.schema.fields)
        if lost and state.keeps_outside:
            raise UnsupportedError(
                f"{born.source} marks {lost[0]} as personal, and has no such column: bounds of the "
                f"one that is meant would stand in lines for ever. Set its property "
                f"{PERSONAL_OPTION}, take that over (lakeledger import iceberg), and promote again"
            )
        last = last_taken(born.snapshots)
        said = TablePromoted(
            source=born.source, catalog=_catalog(source) or UNSET, last_snapshot_id=last
        )
        return (said,)

    def adoption(self, table: Table) -> tuple[TableEvent, ...]:
        """Return the snapshot that lists the live files; nothing without a snapshot.

        Raises:
            UnsupportedError: A snapshot has no manifest list.
            NotFoundError: A manifest is gone.
        """
        state = table.state
        origin = state.imported_from(IcebergOrigin)
        last = origin.last_assigned_id if origin.is_promoted else last_taken(origin.snapshots)
        adopted = _adopted(table, state, origin, last)
        return () if adopted is None else (adopted,)

    def hand_over(self, table: Table, source: str, access: FileAccess, now_millis: int) -> bool:
        """Swap the catalog's pointer, if it is where the last import found it."""
        del now_millis
        newest = open_source(source, access).newest.url
        if _is_own(table, newest):
            return True
        imported = table.state.imported_from(IcebergOrigin).metadata_file
        if posixpath.basename(newest) != posixpath.basename(imported):
            return False
        if not _catalog(source):
            return True
        version = project(table)
        return catalogs.swap_pointer(source, newest, _metadata(table, version))

    def instructions(self, table: Table) -> tuple[str, ...]:
        """Return what the table's former owner has to do, a sentence each."""
        born, name = table.state.imported_from(IcebergOrigin), table.identifier
        stop = f"stop all writers of {born.source}: what commits there now is lost to the ledger"
        if _catalog(born.source):
            on = f"after later changes, lead {born.source} on with: lakeledger promote {name}"
            return (stop, on)
        read = f"let readers read {table.location}, or register its newest metadata file for them"
        keep = f"keep the files below {born.location}: the table's older rows stay there"
        on = f"after later changes, bring the files up to date: lakeledger project iceberg {name}"
        return (stop, read, keep, on)


class IcebergLeading:
    """See `projections.importing.promoting.Leading`."""

    def follow(self, table: Table) -> None:
        """Project the table, and lead the catalog's pointer on if it still leads here."""
        version = project(table)
        source = table.state.imported_from(IcebergOrigin).source
        if not _catalog(source):
            return
        at = catalogs.pointer_of(source)
        wanted = _metadata(table, version)
        if at not in (None, wanted) and _is_own(table, at):
            catalogs.swap_pointer(source, at, wanted)

    def catalog(self, source: str) -> str:
        """Return the catalog's table that leads here; empty where none does."""
        return _catalog(source)


def _catalog(source: str) -> str:
    named = IN_CATALOG.fullmatch(source)
    return source if named is not None and catalogs.is_swappable(named["catalog"]) else ""


def _metadata(table: Table, version: int) -> str:
    return f"{table.location}/{Names(table.state.table_id).metadata(version)}"


def _is_own(table: Table, url: str) -> bool:
    """Whether a metadata file is one that the ledger projected, by whichever renderer."""
    own = f"{table.location}/"
    path = url.removeprefix(own)
    names = (Names(table.state.table_id, each) for each in range(1, RENDERER + 1))
    return path != url and any(each.version_of(path) is not None for each in names)


def _adopted(
    table: Table, state: TableState, born: IcebergOrigin, last: int
) -> SnapshotCommitted | None:
    """Return the snapshot by which the ledger lists the live files; None where there are none."""
    current = born.current
    if current is None:
        return None
    manifests = EngineManifests(state, born, table.read_file)
    files = tuple(manifests.files(current))
    rows = sum(each.new_rows for each in manifests.listed(current))
    is_numbered = born.format_version >= ROW_IDS_SINCE
    return adopting(
        files,
        snapshot_id=last + 1,
        schema_id=born.schema_id,
        summary=FileCounts.of(()).summary("COMPACT", totals_of(files).named, {}),
        next_row_id=born.next_row_id + rows if is_numbered else UNSET,
    )


PROMOTE = Promoting(ICEBERG, IcebergHandover(), IcebergLeading())
