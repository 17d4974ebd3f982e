"""The Iceberg files of a table that was born in Iceberg: its metadata, in the words of its source.

Manifest lists, manifests and data files of engines stay where they are, so a metadata file is all
that there is to project, a function of the state at its version; until the table is promoted, and
the ledger's own snapshots come with manifests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial

from attrs import evolve
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.born.iceberg import SnapshotsRemoved
from ledger.events.snapshot_events import SnapshotFacts
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.state import TableState
from ledger.locations import below
from ledger.log.replay import Read
from ledger.log.travel import at_version
from ledger.table import Table
from projections.iceberg.importing.metadata import metadata_of
from projections.iceberg.metadata.table_json import write_metadata
from projections.iceberg.names import FOLDER, HINT, Names
from projections.iceberg.position import IcebergPosition
from projections.iceberg.promoted import PromotedManifests
from projections.iceberg.table.properties import most_previous_versions
from projections.materialising import Progress, new_commits
from projections.outputs import Outputs

_OF_FILES = SnapshotFacts | SnapshotsRemoved


def born_metadata(table: Table, state: TableState) -> bytes:
    """Return the metadata file of a born table at a version.

    The lists of the snapshots that the ledger made, and the statistics that were published since,
    lie in its own place.
    """
    names = Names(state.table_id)
    said = metadata_of(state, lambda each: f"{table.location}/{names.manifest_list(each)}")

    uri = partial(below, table.location)
    found = evolve(
        said,
        statistics=tuple(
            replace(each, statistics_path=uri(each.statistics_path)) for each in said.statistics
        ),
        partition_statistics=tuple(
            replace(each, statistics_path=uri(each.statistics_path))
            for each in said.partition_statistics
        ),
    )
    return write_metadata(found)


def render_born(table: Table, outputs: Outputs, target: TableState, on_progress: Progress) -> None:
    """Write a version's metadata file and what the ledger made for it, but point nowhere."""
    run = _Run(table, outputs, IcebergPosition(), target)
    if target.is_promoted:
        for read in new_commits(table, IcebergPosition(), target, on_progress):
            run.commit(read)
    run.put_metadata(target)


def project_born(
    table: Table,
    outputs: Outputs,
    start: IcebergPosition,
    target: TableState,
    wants: Callable[[int], bool],
    on_progress: Progress,
) -> IcebergPosition:
    """Write what a stretch of the log brings; see `projections.iceberg.project.Projection`."""
    names = Names(target.table_id)
    found = [version for each in outputs.paths(FOLDER) if (version := names.version_of(each))]
    run = _Run(table, outputs, start, target)
    for read in new_commits(table, start, target, on_progress):
        run.commit(read)
        if wants(read.commit.version) and read.commit.version != target.version:
            run.put_metadata(run.builder.freeze())
    body = run.put_metadata(target)
    outputs.put(names.hadoop(target.version), body)
    outputs.point(HINT, b"%d" % target.version)
    oldest = target.version - most_previous_versions(target.schema)
    written = sorted({*start.metadata_versions, *found, target.version})
    manifests = run.own.manifests
    return IcebergPosition(
        version=target.version,
        check=hashlib.sha256(body).hexdigest(),
        metadata_versions=tuple(each for each in written if each >= oldest),
        manifests=manifests.current,
        next_row_id=manifests.next_row_id,
        location=table.location,
        commit=run.reached,
        list_check=manifests.list_check,
        garbage=(
            *_files(names, [each for each in written if each < oldest]),
            *run.own.garbage(),
        ),
    )


class _Run:
    def __init__(
        self, table: Table, outputs: Outputs, start: IcebergPosition, target: TableState
    ) -> None:
        self._table, self._outputs = table, outputs
        self.builder = TableBuilder(
            at_version(table.log, start.version) if start.version >= 0 else None
        )
        self.own = PromotedManifests.at(table, outputs, start, target)
        self.reached = start.commit

    def commit(self, read: Read[TableEvent]) -> None:
        """Project one commit."""
        commit, self.reached = read.commit, read.digest
        self.builder.begin(commit.version, commit.time_millis)
        for transaction in commit.transactions:
            self.builder.add(transaction)
            if any(isinstance(each, _OF_FILES) for each in transaction.events):
                self.own.learn(transaction, self.builder.freeze())

    def put_metadata(self, state: TableState) -> bytes:
        """Write a version's metadata file."""
        body = born_metadata(self._table, state)
        self._outputs.put(Names(state.table_id).metadata(state.version), body)
        return body


def _files(names: Names, versions: list[int]) -> Iterator[str]:
    for each in versions:
        yield names.metadata(each)
        yield names.hadoop(each)
