"""Delta projection: versions of a table as files of a Delta log, and plans for it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

from ledger.decide.format_rules import declared_by
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.model.errors import StoreError, UnsupportedError
from ledger.model.types import type_places
from ledger.state.table import TableState
from ledger.table import Table
from projections.delta import position as positions
from projections.delta.actions import FOLDER, HINT, is_checkpoint, is_own, version_of
from projections.delta.checkpoint import is_same
from projections.delta.columns import renames_or_drops
from projections.delta.position import RENDERER, DeltaPosition
from projections.delta.project import Projection
from projections.delta.rules import widened
from projections.materialising import (
    Compared,
    Difference,
    Materialisation,
    Otherwise,
    Progress,
    files_of,
    outputs_of,
    target_state,
)
from projections.outputs import Gathering, MemoryOutputs, Outputs, StoreOutputs
from projections.position_file import PositionFile

DELTA_PLAN: Final = "delta"


@frozen
class Planned:
    """What `lakeledger plan` shows of Delta; called, it gives the files of a change."""

    def __call__(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return the files that projecting a change writes, relative to the table's location.

        One commit; which version it is depends on how many there are already.

        Args:
            before: The table before the change.
            after: The table after it, with the same snapshots and tags.
        """
        return (f"{FOLDER}/*.json",) if after.schema.id != before.schema.id else ()

    def warnings(self, before: TableState, after: TableState) -> tuple[str, ...]:
        """Return which readers will no longer open the table, and what the log will not say.

        Args:
            before: The table before the change.
            after: The table after it.
        """
        readers = tuple(_warnings(before, after)) if before.snapshot is not None else ()
        return (*readers, *_unsaid(before, after))


def _warnings(before: TableState, after: TableState) -> Iterator[str]:
    if renames_or_drops(before.schema, after.schema):
        yield (
            "Delta maps columns by name from the first rename or drop on, and neither Polars nor "
            "delta-rs' to_pyarrow_table opens such a table; delta-rs' QueryBuilder, DuckDB and "
            "Spark do"
        )
    if widened(before.schema, after.schema):
        yield (
            "Delta reads wider types by the table feature typeWidening, which neither Polars nor "
            "delta-rs opens; DuckDB and Spark do"
        )


def _unsaid(before: TableState, after: TableState) -> Iterator[str]:
    """Yield what a change brings that the log will not say; all of it, where it declares Delta."""
    is_new = DELTA_PLAN not in declared_by(before.schema.options).formats
    had = set() if is_new else {*unsaid(before)}
    yield from (each for each in unsaid(after) if each not in had)


def unsaid(state: TableState) -> Iterator[str]:
    """Yield in a sentence each what a table has that its Delta log does not say."""
    if state.branches:
        yield (
            f"Delta's log has no branches: {', '.join(sorted(state.branches))} cannot be read "
            "there, until main is fast-forwarded to it"
        )
    for name, default in _defaults(state):
        yield (
            f"Delta's log says nothing of the default {default} of column {name}, since only "
            "the ledger's writers write there: who writes new rows takes it from the ledger"
        )


def _defaults(state: TableState) -> Iterator[tuple[str, str]]:
    for place in type_places(state.schema.fields):
        if place.field is not None and place.field.default_value is not None:
            yield place.name, place.field.default_value


planned = Planned()


__all__ = ["DELTA", "expected", "follow", "project", "rebuild", "verify"]


@frozen
class _Renewing(StoreOutputs):
    """A table's folder, where commits of the ledger's own make room for others."""

    def put(self, path: str, body: bytes) -> None:
        """Keep a file, in the place of one of our own if one stands there.

        Raises:
            StoreError: Another's file stands there.
        """
        there = self.read(path)
        if there not in (None, body) and (is_checkpoint(path) or is_own(there or b"")):
            self.restore(path, body)
        else:
            super().put(path, body)


@frozen
class _Ahead:
    """A table's folder as a run would leave it; nothing is written.

    Attributes:
        inner: The folder.
        new: The files that the run has written.
    """

    inner: StoreOutputs
    new: MemoryOutputs = field(factory=MemoryOutputs)

    def put(self, path: str, body: bytes) -> None:
        """Keep a file in memory.

        Raises:
            StoreError: A file of another program has its name.
        """
        found = self.read(path)
        if found not in (None, body) and not is_checkpoint(path) and not is_own(found or b""):
            raise StoreError(
                f"{self.inner.key(path)} is not a file of the ledger's, and has the name of one "
                "that the projection writes: move it away, or rebuild the projection",
                kind="FOREIGN_FILE",
            )
        self.new.put(path, body)

    def point(self, path: str, body: bytes) -> None:
        """Keep a file in memory."""
        self.new.point(path, body)

    def remove(self, path: str) -> None:
        """Forget a file that the run has written."""
        self.new.remove(path)

    def read(self, path: str) -> bytes | None:
        """Return a file, of the run if it has written it."""
        body = self.new.read(path)
        return self.inner.read(path) if body is None else body

    def paths(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder of the table."""
        yield from {*self.inner.paths(folder), *self.new.paths(folder)}


@frozen
class DeltaFiles:
    """The files of a Delta log; see `projections.materialising.FileFormat`."""

    name: str = "delta"
    title: str = "Delta"
    folders: tuple[str, ...] = (FOLDER,)

    @property
    def hints(self) -> Mapping[str, str]:
        """The newest checkpoint's, which is no number."""
        return {HINT: ""}

    @property
    def positions(self) -> PositionFile[DeltaPosition]:
        """Where a position is kept."""
        return positions.FILE

    def is_found(self, path: str) -> bool:
        """Whether readers come upon a file: they list the log."""
        return path.startswith(FOLDER)

    def run(
        self,
        table: Table,
        outputs: Outputs,
        start: DeltaPosition,
        target: TableState,
        on_progress: Progress,
    ) -> DeltaPosition:
        """Write what a stretch of the log brings; return the new position.

        A clock that was corrected since changes the times of versions that stand already.
        """
        is_corrected = len(target.corrections) != start.corrections
        if is_corrected and isinstance(outputs, Gathering):
            renewing = _Renewing(outputs.inner.store, outputs.inner.root)
            return Projection(table, renewing, DeltaPosition(), target).run(on_progress)
        return Projection(table, outputs, start, target).run(on_progress)

    def otherwise(self, table: Table, stood: DeltaPosition) -> Otherwise | None:
        """Return whether another renderer made files."""
        del table
        if stood.version < 0 or stood.renderer == RENDERER:
            return None
        return Otherwise("older_renderer_replaced", {"renderer": stood.renderer})

    def renew(
        self, table: Table, older: DeltaPosition, target: TableState, on_progress: Progress
    ) -> DeltaPosition:
        """Make files that another renderer made as they are made now, where they stand."""
        del older
        outputs = outputs_of(table)
        renewing = _Renewing(outputs.store, outputs.root)
        return Projection(table, renewing, DeltaPosition(), target).run(on_progress)

    def compare(self, table: Table, stood: DeltaPosition, at: TableState) -> Compared:
        """Compare what stands on the store with what the log makes of it.

        Checkpoints are compared by content. A file of somebody else's in a place that is or will
        be the ledger's is told as changed. Rebuilding makes the files of the newest version.
        """
        del stood
        outputs = outputs_of(table)
        there = {path: outputs.read(path) or b"" for path in outputs.paths(FOLDER)}
        wanted, newest = files_of(self, table, at), target_state(table, None)
        behind = at.version < newest.version
        later = _later(self, table, at, newest) if behind else ({}, {})
        last = max(filter(None, map(version_of, {**wanted, **later[0]})), default=0)
        lost = sorted(wanted.keys() - there.keys() - {HINT})
        missing = [path for path in lost if not behind or path in later[0]]
        changed, foreign, in_the_way = [], [], []
        for path, body in sorted(there.items()):
            kinds = [each[path] for each in (wanted, *later) if path in each]
            if any(_is_as_made(path, body, each) for each in kinds):
                continue
            version = version_of(path)
            if path in wanted:
                changed.append(path)
            elif kinds or (version is not None and version > last):
                in_the_way.append(path)
            elif path == HINT:
                changed.append(path)
            else:
                foreign.append(path)
        found = Difference(
            tuple(missing),
            tuple(sorted((*changed, *in_the_way))),
            tuple(foreign),
            unsaid=tuple(unsaid(at)),
        )
        return Compared(found, wanted, tuple(in_the_way), newest)

    def lost(self, table: Table, stood: DeltaPosition) -> Mapping[str, bytes]:
        """Return all files that are lost or damaged, as readers go back in time, too."""
        wanted = files_of(self, table, target_state(table, stood.version))
        outputs = outputs_of(table)
        found = {path: outputs.read(path) for path in wanted}
        return {
            path: body
            for path, body in wanted.items()
            if not _is_as_made(path, found[path] or b"", body)
        }

    def make_way(self, outputs: StoreOutputs, path: str) -> None:
        """Set a file of somebody else's aside, under a name that readers pass over."""
        body = outputs.read(path)
        if body is not None and not is_checkpoint(path) and not is_own(body):
            name = path.rpartition("/")[2]
            outputs.put(f"{FOLDER}/_aside.{hashlib.sha256(body).hexdigest()[:16]}.{name}", body)
        outputs.remove(path)

    def projected(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return nothing: what names a file is not followed."""
        del outputs, at
        return ()

    def marked(self, outputs: StoreOutputs, at: TableState) -> Collection[str]:
        """Return nothing: names follow from commits alone."""
        del outputs, at
        return ()


def _is_as_made(path: str, body: bytes, wanted: bytes) -> bool:
    return body == wanted or (is_checkpoint(path) and is_same(body, wanted))


def _later(
    files: DeltaFiles, table: Table, stood: TableState, newest: TableState
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return what the newest version has, and what a run to it may have written on the way."""
    found = []
    for target in (newest, evolve(newest, earliest_snapshot_id=stood.earliest_snapshot_id)):
        try:
            found.append(files_of(files, table, target))
        except UnsupportedError:
            # What cannot be projected now, no run has projected either.
            found.append({})
    return found[0], found[1]


DELTA = Materialisation(DeltaFiles())


def check_ahead(table: Table, ahead: Sequence[Commit[TableEvent]], target: TableState) -> None:
    """Check that a table's log can be projected with commits to come; nothing is written.

    Args:
        table: The table.
        ahead: Commits that follow its newest one.
        target: The table after them.

    Raises:
        DamagedLogError: A file of an earlier run is missing or damaged, or the log is.
        StoreError: A file that the ledger did not project has the name of one to be written.
        UnsupportedError: Delta has no such files.
    """
    stood = DELTA.position(table)
    is_current = stood.renderer == RENDERER and stood.corrections == len(target.corrections)
    start = stood if is_current else DeltaPosition()
    Projection(table, _Ahead(outputs_of(table)), start, target).check_ahead(ahead)


project = DELTA.project
follow = DELTA.follow
expected = DELTA.expected
verify = DELTA.verify
rebuild = DELTA.rebuild
