"""The Iceberg files of a table that was born in Iceberg: its metadata, in the words of its source.

Manifest lists, manifests and data files are the engines' and stay where they are, so a metadata
file is all that there is to project: a function of the state at its version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.state import TableState
from ledger.log.travel import at_version
from ledger.table import Table
from projections.iceberg.importing.metadata import metadata_of
from projections.iceberg.metadata.table_json import write_metadata
from projections.iceberg.names import FOLDER, HINT, Names
from projections.iceberg.position import Position
from projections.iceberg.table.properties import most_previous_versions
from projections.materialising import Progress, new_commits
from projections.outputs import Outputs


def born_metadata(state: TableState) -> bytes:
    """Return the metadata file of a born table at a version."""
    return write_metadata(metadata_of(state))


def render_born(outputs: Outputs, state: TableState) -> None:
    """Write a version's metadata file, but point nowhere."""
    outputs.put(Names(state.table_id).metadata(state.version), born_metadata(state))


def project_born(
    table: Table,
    outputs: Outputs,
    start: Position,
    target: TableState,
    wants: Callable[[int], bool],
    on_progress: Progress,
) -> Position:
    """Write what a stretch of the log brings; see `projections.iceberg.project.Projection`."""
    names, commit = Names(target.table_id), start.commit
    found = [version for each in outputs.paths(FOLDER) if (version := names.version_of(each))]
    builder = TableBuilder(at_version(table.log, start.version) if start.version >= 0 else None)
    for read in new_commits(table, start, target, on_progress):
        builder.commit(read.commit)
        commit = read.digest
        if wants(read.commit.version) and read.commit.version != target.version:
            render_born(outputs, builder.freeze())
    body = born_metadata(target)
    outputs.put(names.metadata(target.version), body)
    outputs.put(names.hadoop(target.version), body)
    outputs.point(HINT, b"%d" % target.version)
    oldest = target.version - most_previous_versions(target.schema)
    written = sorted({*start.metadata_versions, *found, target.version})
    return Position(
        version=target.version,
        check=hashlib.sha256(body).hexdigest(),
        metadata_versions=tuple(each for each in written if each >= oldest),
        location=table.location,
        commit=commit,
        garbage=tuple(_files(names, [each for each in written if each < oldest])),
    )


def _files(names: Names, versions: list[int]) -> Iterator[str]:
    for each in versions:
        yield names.metadata(each)
        yield names.hadoop(each)
