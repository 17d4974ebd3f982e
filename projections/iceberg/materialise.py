"""Keeping a table's Iceberg files on its store: what Materialisation asks of the format."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from attrs import evolve, frozen

from ledger.evolution.state import TableState
from ledger.log.travel import at_version
from ledger.model.errors import InvalidInputError, NotFoundError
from ledger.table import Table
from projections.iceberg import position as positions
from projections.iceberg.names import FOLDER, HINT, RENDERER, Names
from projections.iceberg.position import IcebergPosition
from projections.iceberg.project import Projection, Wants, no_other
from projections.iceberg.standing import Renewing, compared, projected
from projections.leaving import Leaving
from projections.materialising import (
    Compared,
    Materialisation,
    Otherwise,
    Progress,
    files_of,
    nobody,
    outputs_of,
    target_state,
)
from projections.outputs import MemoryOutputs, Outputs, StoreOutputs
from projections.position_file import PositionFile

_HINTS = {HINT: f"{FOLDER}/v{{}}.metadata.json"}


@frozen
class IcebergFiles:
    """The files of an Iceberg table; see `projections.materialising.FileFormat`.

    Attributes:
        wants: Which versions on the way get a metadata file, too.
    """

    wants: Wants = no_other
    name: str = "iceberg"
    title: str = "Iceberg"
    folders: tuple[str, ...] = (FOLDER,)

    @property
    def hints(self) -> Mapping[str, str]:
        """The version of Hadoop's newest metadata file."""
        return _HINTS

    @property
    def positions(self) -> PositionFile[IcebergPosition]:
        """Where a position is kept."""
        return positions.FILE

    def is_found(self, path: str) -> bool:
        """Whether readers come upon a file: metadata files are looked for by their versions."""
        return path.endswith(".metadata.json")

    def run(
        self,
        table: Table,
        outputs: Outputs,
        start: IcebergPosition,
        target: TableState,
        on_progress: Progress,
    ) -> IcebergPosition:
        """Write what a stretch of the log brings; return the new position."""
        return Projection(table, outputs, start, target, self.wants).run(on_progress)

    def otherwise(self, table: Table, stood: IcebergPosition) -> Otherwise | None:
        """Return whether another renderer made files, or for another place."""
        if stood.leads_on(table.location):
            return None
        if stood.renderer != RENDERER:
            return Otherwise("older_renderer_replaced", {"renderer": stood.renderer})
        facts = {"stood_at": stood.location, "now_at": table.location}
        return Otherwise("place_replaced", facts)

    def renew(
        self, table: Table, older: IcebergPosition, target: TableState, on_progress: Progress
    ) -> IcebergPosition:
        """Project from the beginning over files of an older renderer or of another place.

        What an interrupted run wrote beyond the position is of the older kind, too.
        """
        outputs = outputs_of(table)
        names = Names(target.table_id, older.renderer)
        own = projected(outputs, names) | {names.hadoop(each) for each in older.metadata_versions}
        own |= {*_marked(outputs, names)}
        versions = {names.version_of(path) for path in own}
        renewing = Renewing(outputs.store, outputs.root, own=own)
        run = Projection(
            table,
            renewing,
            IcebergPosition(),
            target,
            lambda each: self.wants(each) or each in versions,
        )
        reached = run.run(on_progress)
        made = projected(outputs, Names(target.table_id))
        gone = (each for each in own - made if each != names.hadoop(target.version))
        return evolve(reached, garbage=tuple(sorted({*reached.garbage, *gone})))

    def compare(self, table: Table, stood: IcebergPosition, at: TableState) -> Compared:
        """Compare what stands on the store with what the log makes of it.

        Metadata files of earlier versions are compared where they are; nothing has to name them. A
        file in a place that later versions need is changed, unless it is theirs. Rebuilding makes
        the files of the version that they stood at.

        Raises:
            NotFoundError: The files were made by an older renderer, or for another place.
        """
        if not stood.leads_on(table.location):
            raise NotFoundError(_otherwise(table, stood), kind="OTHER_PROJECTION")
        return compared(table, stood, at)

    def lost(self, table: Table, stood: IcebergPosition) -> Mapping[str, bytes]:
        """Return what is lost or damaged, if a reader of the newest snapshot misses any."""
        if _is_whole(table, stood):
            return {}
        at = at_version(table.log, stood.version)
        outputs, wanted = outputs_of(table), files_of(self, table, at)
        return {path: body for path, body in wanted.items() if outputs.read(path) != body}

    def make_way(self, outputs: StoreOutputs, path: str) -> None:
        """Take a file of somebody else's away, as Hadoop's readers would come upon it."""
        outputs.remove(path)

    def projected(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return the files that our metadata files name, and these themselves."""
        return projected(outputs, Names(at.table_id))

    def marked(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return the manifests and lists with the table's marks between their blocks."""
        return _marked(outputs, Names(at.table_id))


def _marked(outputs: StoreOutputs, names: Names) -> list[str]:
    found = ((path, outputs.read(path)) for path in outputs.paths(FOLDER))
    return [path for path, body in found if body and body.endswith(names.sync_marker(path))]


def _is_whole(table: Table, stood: IcebergPosition) -> bool:
    """Whether all files are sound that a reader of the newest snapshot needs."""
    outputs, state = outputs_of(table), at_version(table.log, stood.version)
    names = Names(state.table_id)
    wanted = {each.path: each.check for each in stood.manifests if not each.is_of_engine}
    if stood.list_check:
        wanted[names.manifest_list(state.last_snapshot_id)] = stood.list_check
    wanted |= dict.fromkeys(
        (names.metadata(state.version), names.hadoop(state.version)), stood.check
    )
    found = ((outputs.read(path), check) for path, check in wanted.items())
    return outputs.read(HINT) == b"%d" % stood.version and all(
        body is not None and hashlib.sha256(body).hexdigest() == check for body, check in found
    )


def _otherwise(table: Table, stood: IcebergPosition) -> str:
    again = f"make them anew: lakeledger project iceberg {table.identifier}"
    if stood.renderer != RENDERER:
        return f"the Iceberg files of {table.identifier} were made by an older renderer; {again}"
    return (
        f"the Iceberg files of {table.identifier} were made at {stood.location}, and the table is "
        f"at {table.location}: the ledger was copied or moved, and they lead to the other place; "
        f"{again}"
    )


ICEBERG = Materialisation(IcebergFiles())

advance = ICEBERG.advance
follow = ICEBERG.follow
expected = ICEBERG.expected
verify = ICEBERG.verify
rebuild = ICEBERG.rebuild


def project(
    table: Table,
    *,
    version: int | None = None,
    every: int | None = None,
    on_progress: Progress = nobody,
) -> int:
    """Bring a table's Iceberg files up to its newest version; return the version they stand at.

    See `Materialisation.project`, but for one version.

    Args:
        table: The table.
        version: Instead of that, write the metadata file of this version beside the newest one,
            and return it. Snapshots that expired since are named in it, but not there.
        every: On the way, write the metadata files of every so many versions, too.
        on_progress: Told how many commits of how many were applied.

    Raises:
        InvalidInputError: Every how many is not possible.
    """
    if every is not None and every < 1:
        raise InvalidInputError(f"every {every} versions is not possible; give 1 or more")
    if version is not None:
        return _one(table, version, on_progress)
    wants = no_other if every is None else lambda each: each % every == 0
    return Materialisation(IcebergFiles(wants)).project(table, on_progress=on_progress)


def _one(table: Table, version: int, on_progress: Progress) -> int:
    """Write one version's metadata file, and what it names if the files are not so far yet."""
    with table.log.store.lock(ICEBERG.key(table)):
        stands = ICEBERG.position(table).version
        made, target = MemoryOutputs(), target_state(table, version)
        ICEBERG.refuse_undeclared(table, target)
        Projection(table, made, IcebergPosition(), target).render(on_progress)
        metadata = Names(target.table_id).metadata(version)
        outputs = outputs_of(table)
        for path, body in made.files.items():
            if path == metadata or version > stands:
                outputs.put(path, body)
        Leaving(table, "iceberg").stay(outputs.met)
    return version
