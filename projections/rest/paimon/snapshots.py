"""Snapshots of tables: the newest one with its sums, one by its version, and the list."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from attrs import evolve, frozen

from ledger.log.time_travel import head_state
from ledger.model.errors import NotFoundError, UnsupportedError
from ledger.model.snapshot import Snapshot
from ledger.state.paimon_origin import PaimonOrigin
from ledger.table_handle import TableHandle
from projections.dlf import TableSnapshot, table_snapshot
from projections.dlf.objects import (
    GetTableSnapshotResponse,
    GetVersionSnapshotResponse,
    ListSnapshotsResponse,
)
from projections.materialising import outputs_of
from projections.paimon.paths import snapshot_path
from projections.paimon.served_files import write_files
from projections.paimon.served_folder import has_expired, record_folder
from projections.paimon.served_origin import is_engine_table
from projections.paimon.served_partitions import read_line
from projections.paimon.snapshot_file import snapshot_from_json
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.errors import no_such_snapshot
from projections.rest.paimon.lines import Line, open_line
from projections.rest.paimon.paging import page_of
from projections.rest.paimon.readable import project_readable
from projections.rest.paimon.requests import reply
from projections.rest.requests import Call, Endpoint, Reply

EARLIEST: Final = "EARLIEST"
LATEST: Final = "LATEST"
_ID_DIGITS: Final = 19
_ID: Final = re.compile(f"[0-9]{{1,{_ID_DIGITS}}}")


def load_latest(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return the newest snapshot of a table, with the sums over its files."""
    line = _open_line(catalog, call)
    if is_engine_table(line.whole):
        found = _with_partition_sums(line)
    else:
        snapshots = LineSnapshots.of(line)
        newest = snapshots.get(max(snapshots.ids, default=0))
        found = table_snapshot(line.state, snapshot=newest)
    if found is None:
        raise no_such_snapshot(LATEST, line.identifier)
    # The clients' classes need a number.
    known = evolve(found, last_file_creation_time=found.last_file_creation_time or 0)
    return reply(GetTableSnapshotResponse(known))


def _with_partition_sums(line: Line) -> TableSnapshot | None:
    """Return the newest snapshot of a line that engines commit to, with the sums of partitions.

    Sums that cannot be read from the manifests are zero, except that of rows.
    """
    try:
        # The newest state may be newer than the line's, and has the sums.
        found, totals = read_line(
            line.table,
            lambda index, state: (table_snapshot(state), index.totals),
            branch=line.branch,
        )
    except (NotFoundError, UnsupportedError):
        found = table_snapshot(line.state)
        return None if found is None else evolve(found, file_count=0, file_size_in_bytes=0)
    if found is None:
        return None
    # Clients read the files of the snapshot, which may be newer than the line.
    write_files(line.table, head_state(line.table.log))
    return evolve(
        found,
        record_count=totals.records,
        file_size_in_bytes=totals.size_in_bytes,
        file_count=totals.files,
        last_file_creation_time=totals.last_file_creation_time,
    )


def _open_line(catalog: PaimonCatalog, call: Call) -> Line:
    """Return the line in a call's path, whose files exist: clients read those of its snapshots."""
    line = open_line(catalog, call)
    if is_engine_table(line.whole):
        write_files(line.table, line.whole, line.branch)
    return line


def load_version(catalog: PaimonCatalog, call: Call) -> Reply:
    """Return the snapshot of a version: EARLIEST, LATEST, an id or the name of a tag."""
    line = _without_expired(_open_line(catalog, call))
    version = call.values["version"]
    snapshots = LineSnapshots.of(line)
    found = snapshots.get(_id_of_version(line, snapshots.ids, version))
    if found is None:
        raise no_such_snapshot(version, line.identifier)
    return reply(GetVersionSnapshotResponse(found))


def list_snapshots(catalog: PaimonCatalog, call: Call) -> Reply:
    """List the snapshots of a table, oldest first."""
    snapshots = LineSnapshots.of(_without_expired(_open_line(catalog, call)))
    page = page_of(call, sorted(snapshots.ids), lambda each: str(each).zfill(_ID_DIGITS))
    items = tuple(found for each in page.items if (found := snapshots.get(each)) is not None)
    return reply(ListSnapshotsResponse(snapshots=items, next_page_token=page.token))


def _without_expired(line: Line) -> Line:
    """Return a line after the snapshots that engines expired in the folder are recorded."""
    is_served = line.branch is None and is_engine_table(line.whole)
    if not is_served or not has_expired(line.table, line.whole):
        return line
    state = record_folder(line.table)
    return Line(line.table, None, state, state)


def _id_of_version(line: Line, ids: Collection[int], version: str) -> int:
    """Return the id of the snapshot that a version means; 0 for none."""
    if version == EARLIEST:
        return min(ids, default=0)
    if version == LATEST:
        return max(ids, default=0)
    if _ID.fullmatch(version):
        return int(version)
    tag = line.state.tags.get(version)
    return 0 if tag is None else tag.snapshot_id


@frozen
class LineSnapshots:
    """The snapshots of a line: those that engines committed, or those of projected files.

    Attributes:
        ids: The ids of those that are not expired.
        get: Returns a snapshot by its id, expired ones that tags keep included.
    """

    ids: Collection[int]
    get: Callable[[int], Snapshot | None]

    @classmethod
    def of(cls, line: Line) -> LineSnapshots:
        """Return the snapshots of a line.

        Raises:
            UnsupportedError: The ledger lists the table's files, and Paimon cannot express it.
        """
        origin = line.state.origin
        if isinstance(origin, PaimonOrigin) and is_engine_table(line.whole):
            return cls(origin.snapshots, origin.readable_snapshots.get)
        project_readable(line.table, line.whole)
        return cls(line.state.snapshot_ids, partial(_projected_snapshot, line.table))


def _projected_snapshot(table: TableHandle, snapshot_id: int) -> Snapshot | None:
    body = outputs_of(table).read(snapshot_path(snapshot_id))
    return None if body is None else snapshot_from_json(body)


_ONE: Final = "/v1/{prefix}/databases/{database}/tables/{table}"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("GET", f"{_ONE}/snapshot", load_latest),
    Endpoint("GET", f"{_ONE}/snapshots", list_snapshots),
    Endpoint("GET", f"{_ONE}/snapshots/{{version}}", load_version),
)
