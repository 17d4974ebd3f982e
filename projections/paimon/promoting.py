"""Promotion of Paimon tables: one more file fences other writers.

Whoever commits to a Paimon table writes `snapshot-N+1`, once, after he has read `snapshot-N`. The
last file that the source gets stands there and says that it is snapshot N: readers find the same
rows in it, and whoever wants to commit finds his place taken, however often he tries, also one who
has opened the table before. Whoever was faster has committed before it: that is taken over first.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve
from msgspec import UNSET

from ledger.decide.format_rules import Arrival
from ledger.events import TableEvent
from ledger.events.table import TablePromoted
from ledger.model.errors import LedgerError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.snapshot import Snapshot
from ledger.state.declared_formats import Rules
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from projections.importing.promoting import ByFolder, Promoting, adopting, conditional_store
from projections.importing.trial import place_of_source, plain
from projections.paimon.engine_files import engine_files
from projections.paimon.importing import PAIMON, is_same_snapshot
from projections.paimon.materialise import project
from projections.paimon.paths import snapshot_path
from projections.paimon.rules import RULES
from projections.paimon.snapshot_file import snapshot_file
from projections.paimon.sources import FENCE, open_source

_OWNER = "lakeledger.location"
_OF_ROWS = {
    "row-tracking.enabled": "its engines give each row an id",
    "data-evolution.enabled": "its files hold some columns of their rows each",
}
_OWN_TABLE = "write its rows into a table of the ledger's own (lakeledger create, then add-files)"


class PaimonHandover:
    """See `projections.importing.promoting.Handover`."""

    def source(self, table: Table) -> str:
        """Return how the table's source is found."""
        return table.state.imported_from(PaimonOrigin).source

    def is_here(self, table: Table, source: str, access: FileAccess) -> bool:
        """Return no: a folder is its source for good.

        Raises:
            UnsupportedError: Another ledger owns the table.
        """
        if open_source(source, access).fence not in {None, table.state.table_id}:
            raise UnsupportedError(
                f"{source} is written by a ledger's table already, and by nobody else: commit "
                "there; what stands here was followed up to then"
            )
        return False

    def promotion(self, table: Table, source: str) -> tuple[TableEvent, ...]:
        """Return what the promotion says: Paimon's engines can write any table of theirs."""
        del source
        return (TablePromoted(source=table.state.origin.source),)

    def adoption(self, table: Table) -> tuple[TableEvent, ...]:
        """Return the snapshot that lists the live files; nothing without a snapshot.

        Raises:
            UnsupportedError: Only Paimon's engines can write what the table needs.
            NotFoundError: A manifest is gone.
        """
        state = table.state
        paimon = state.imported_from(PaimonOrigin)
        source = paimon.source
        for problem in _table_problems(state):
            raise UnsupportedError(f"{source} stays its engines': {problem}")
        files = engine_files(table, state)
        for problem in _file_problems(state, paimon, files):
            raise UnsupportedError(f"{source} stays its engines': {problem}")
        current = paimon.current
        if current is None:
            return ()
        adopted = adopting(
            files,
            snapshot_id=current.id + 1,
            schema_id=state.schema.id,
            watermark=UNSET if current.watermark is None else current.watermark,
            named_schema_ids=tuple(sorted({each.schema_id for each in files})),
        )
        return (adopted,)

    def hand_over(self, table: Table, source: str, access: FileAccess, now_millis: int) -> bool:
        """Write the file that keeps others out, if nobody has committed meanwhile.

        Then the source is looked at once more. Where its storage knows no conditional create, or
        it has no snapshot yet, its owner has to stop its writers, and nothing is written there.
        """
        found = open_source(source, access)
        current = table.state.imported_from(PaimonOrigin).current
        newest = found.snapshot_ids[-1] if found.snapshot_ids else 0
        if current is None:
            return not newest
        if newest != current.id or not is_same_snapshot(current, found.snapshot(newest)):
            return False
        folder = plain(place_of_source(source))
        store = None if found.fence else conditional_store(folder, access)
        if store is None:
            return True
        # Whoever was first: what stands there comes in now.
        body = _fence(table, found.snapshot(newest), now_millis)
        store.create(snapshot_path(newest + 1), body)
        return False

    def instructions(self, table: Table) -> tuple[str, ...]:
        """Return what the table's former owner has to do, a sentence each."""
        paimon, name = table.state.imported_from(PaimonOrigin), table.identifier
        read = f"let readers read {table.location}: its snapshots are the source's, and go on"
        keep = (
            f"keep the files below {paimon.source}, and let no snapshots expire there: older rows "
            "stay in it"
        )
        on = f"after later changes, bring the files up to date: lakeledger project paimon {name}"
        return (*_of_source(table, paimon), read, keep, on)


def _of_source(table: Table, paimon: PaimonOrigin) -> Iterator[str]:
    """Yield what is to be done at the source, as it is found there now."""
    stop = f"stop all writers of {paimon.source}: what commits there now is lost here"
    try:
        table.file_access.check(paimon.source)
        found = open_source(paimon.source, table.file_access)
        fence, later = found.fence, [*found.snapshot_ids]
    except (LedgerError, OSError):
        yield stop
        return
    last = paimon.source_last_id
    if fence == table.state.table_id:
        yield (
            f"lead its writers to the ledger: {paimon.source} lets nobody commit any more, since "
            f"its snapshot-{last + 1} says that it is snapshot {last}"
        )
    else:
        yield stop
    lost = [each for each in later if each > last]
    if paimon.is_promoted and lost:
        named = ", ".join(map(str, lost))
        yield (
            f"snapshots {named} came to {paimon.source} after the promotion: import it under "
            "another name and add what they brought"
        )
    if paimon.branches:
        named = ", ".join(sorted(paimon.branches))
        yield f"stop the writers of its branches {named}, too: they stay here as they were"


def _fence(table: Table, newest: Snapshot, now_millis: int) -> bytes:
    """Return the file that stands where the next snapshot would: the newest one's rows again.

    Whoever reads a source as a stream passes over what was merely compacted.
    """
    said = {FENCE: table.state.table_id, _OWNER: table.location}
    again = evolve(
        newest,
        commit_kind="COMPACT",
        commit_user="lakeledger",
        time_millis=max(now_millis, newest.time_millis),
        changelog_manifest_list=None,
        changelog_manifest_list_size=None,
        changelog_record_count=None,
        properties=said,
    )
    return snapshot_file(again)


def _table_problems(state: TableState) -> Iterator[str]:
    """Yield why the ledger's own words could not go on with a table, a sentence each."""
    schema = state.schema
    if schema.primary_keys:
        yield (
            f"it has the primary key {', '.join(schema.primary_keys)}, and only they merge the "
            "levels that its rows stand in; go on following or serving it, or " + _OWN_TABLE
        )
    for option, why in _OF_ROWS.items():
        if schema.options.get(option, "").lower() == "true":
            yield f"it has {option}, so that {why}; go on following or serving it, or {_OWN_TABLE}"
    if state.snapshot is not None and state.snapshot.index_manifest is not None:
        yield (
            f"snapshot {state.snapshot.id} reads the index manifest "
            f"{state.snapshot.index_manifest}, such as of deletion vectors, which the ledger does "
            "not list; compact the table there until it needs none"
        )


def _file_problems(
    state: TableState, paimon: PaimonOrigin, files: tuple[FileChange, ...]
) -> Iterator[str]:
    """Yield why its files could not be listed by the ledger, a sentence each."""
    for each in files:
        if each.schema_id not in paimon.schemas:
            yield (
                f"file {each.path} was written with schema {each.schema_id}, which a rollback took "
                "away there, so that nobody knows its columns; write its rows again"
            )
    arrival = Arrival(state, Rules.of(state.schema.options), files, {}, is_back=False)
    for problem in RULES.file_problems(arrival):
        yield f"{problem.what}: {problem.rule}; {problem.alternative}"


PROMOTE = Promoting(PAIMON, PaimonHandover(), ByFolder(project))
