"""Promotion of Delta tables: one more version fences other writers.

A version of a Delta log is created once, whoever writes it. The last one that the source gets asks
writers for a feature that no engine has, so that whoever commits after it is refused, and whoever
was faster has committed before it: that is taken over first. It changes nothing that readers see.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from ledger.events import TableEvent
from ledger.events.commit import FORMAT, Commit, Outside, Transaction
from ledger.events.imported import DeltaFollowed
from ledger.events.schema import RemoveOption
from ledger.events.table import TablePromoted
from ledger.history.older import schemas_by_id
from ledger.model.errors import UnsupportedError
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from projections.delta import rules
from projections.delta.actions import FOLDER, commit_path, line
from projections.delta.columns import CalledInFiles
from projections.delta.importing import DELTA
from projections.delta.log_reading import Protocol
from projections.delta.materialise import check_ahead, project
from projections.delta.source import Source
from projections.delta.table_metadata import FENCE, is_reserved, with_features
from projections.importing.promoting import ByFolder, Promoting, conditional_store
from projections.importing.trial import Trial, place_of_source, plain

_TIMED = "delta.enableInCommitTimestamps"


class DeltaHandover:
    """See `projections.importing.promoting.Handover`."""

    def source(self, table: Table) -> str:
        """Return how the table's source is found."""
        return table.state.imported_from(DeltaOrigin).source

    def is_here(self, table: Table, source: str, access: FileAccess) -> bool:
        """Return no: a folder is its source for good, and its last version comes in, too."""
        del table, source, access
        return False

    def promotion(self, table: Table, source: str) -> tuple[TableEvent, ...]:
        """Return what the promotion says, and refuse what the ledger cannot own.

        Raises:
            UnsupportedError: Another ledger owns the table, or the ledger's own words do not say
                its columns or what its files call them.
            DamagedLogError: Its projected log lacks a file, or has a damaged one.
            StoreError: A file of another program has the name of one to be projected.
        """
        state = table.state
        delta = state.imported_from(DeltaOrigin)
        if FENCE in _features(delta) and not is_fenced(state):
            raise UnsupportedError(
                f"{source} is written by a ledger's table already, and by nobody else: commit "
                "there; what it gets is followed here"
            )
        for problem in _problems(table):
            raise UnsupportedError(f"{source} stays its owner's: {problem}")
        kept = (RemoveOption(each) for each in sorted(state.schema.options) if is_reserved(each))
        events: tuple[TableEvent, ...] = (TablePromoted(source=delta.source), *kept)
        if not is_fenced(state):
            # Once the source keeps others out there is no way back.
            _check_projection(table, delta, events)
        return events

    def adoption(self, table: Table) -> tuple[TableEvent, ...]:
        """Return nothing: the ledger lists the files of a table from Delta ever since."""
        del table
        return ()

    def hand_over(self, table: Table, source: str, access: FileAccess, now_millis: int) -> bool:
        """Write the version that keeps others out, if nobody has committed meanwhile.

        It has then to come in, too. Where the source's storage knows no conditional create, its
        owner has to stop its writers, and nothing is written there.
        """
        state = table.state
        delta = state.imported_from(DeltaOrigin)
        if Source(source, access).newest != delta.delta_version:
            return False
        log = f"{plain(place_of_source(source))}/{FOLDER}"
        store = None if is_fenced(state) else conditional_store(log, access)
        if store is None:
            return True
        path = commit_path(delta.delta_version + 1)
        # Whoever was first: what stands there comes in now.
        store.create(path.removeprefix(f"{FOLDER}/"), _last_version(table, delta, now_millis))
        return False

    def instructions(self, table: Table) -> tuple[str, ...]:
        """Return what the table's former owner has to do, a sentence each."""
        state, name = table.state, table.identifier
        delta = state.imported_from(DeltaOrigin)
        if is_fenced(state):
            said = f"lead its writers to the ledger: {delta.source} refuses those that know table"
            stop = f"{said} features since its version {delta.delta_version}"
        else:
            stop = f"stop all writers of {delta.source}: what commits there now is lost here"
        read = f"let readers read {table.location}: its versions are the source's, and go on"
        keep = (
            f"keep the files below {delta.source}, and run no VACUUM there: older rows stay in it"
        )
        on = f"after later changes, bring the files up to date: lakeledger project delta {name}"
        return (stop, read, keep, on)


def is_fenced(state: TableState) -> bool:
    """Whether a table's source lets nobody commit any more but this ledger's table."""
    return _own_fence(state.table_id) in _features(state.imported_from(DeltaOrigin))


def _own_fence(table_id: str) -> str:
    return f"{FENCE}-{table_id}"


def _features(delta: DeltaOrigin) -> tuple[str, ...]:
    if not delta.protocol:
        return ()
    return msgspec.json.decode(delta.protocol, type=Protocol).writer_features or ()


def _check_projection(table: Table, delta: DeltaOrigin, events: tuple[TableEvent, ...]) -> None:
    """Project the promotion in memory: the source's last version, then the ledger's first."""
    state = table.state
    trial = Trial(state, state.effective_millis)
    last = DeltaFollowed(
        delta_version=delta.delta_version + 1,
        timestamp_millis=delta.timestamp_millis + 1,
        protocol=_fenced_protocol(table.state.table_id, delta).decode(),
    )
    ahead = []
    for some in ((last,), events):
        trial.take(some, state.effective_millis, "", delta.source)
        ahead.append(
            Commit(
                format=FORMAT,
                version=trial.state.version,
                time_millis=trial.state.time_millis,
                transactions=(
                    Transaction(
                        id="",
                        asked="",
                        effective_time_millis=trial.state.effective_millis,
                        outside=Outside() if state.keeps_outside else UNSET,
                        events=some,
                    ),
                ),
            )
        )
    check_ahead(table, ahead, trial.state)


def _fenced_protocol(table_id: str, delta: DeltaOrigin) -> bytes:
    return with_features(delta.protocol, {FENCE, _own_fence(table_id)})


def _last_version(table: Table, delta: DeltaOrigin, now_millis: int) -> bytes:
    """Return the commit by which a source's log ends for everybody else."""
    configuration = msgspec.json.decode(delta.metadata).get("configuration") or {}
    millis = max(now_millis, delta.timestamp_millis + 1)
    timed = {"inCommitTimestamp": millis} if configuration.get(_TIMED) == "true" else {}
    info = {
        **timed,
        "timestamp": millis,
        "operation": "PROMOTE",
        "operationParameters": {"owner": table.location},
        "readVersion": delta.delta_version,
        "isBlindAppend": False,
        "userMetadata": f"the ledger's from here on: {table.location}",
    }
    fence = _fenced_protocol(table.state.table_id, delta)
    return line("commitInfo", info) + line("protocol", msgspec.Raw(fence))


def _problems(table: Table) -> Iterator[str]:
    """Yield what stands against going on in the ledger's own words, a sentence each."""
    state = table.state
    schema = state.schema
    for each in (
        *rules.column_problems(schema.fields),
        *rules.name_problems(schema),
        *rules.spec_problems(schema, state.spec),
    ):
        yield f"{each.what}: {each.rule}"
    called = CalledInFiles(state.imported_from(DeltaOrigin).names_in_files, schema.id)
    if called.schema(schema) == schema:
        return
    unnumbered = {each.schema_id: each.path for each in table.at().files if not each.field_ids}
    for schema_id, said in schemas_by_id(table.log, unnumbered).items():
        if called.schema(said) != said:
            yield (
                f"file {unnumbered[schema_id]} has no field ids of the table's, and other names "
                "for its columns, so that only Delta finds them; write its rows into a table of "
                "the ledger's own (lakeledger create, then add-files)"
            )


PROMOTE = Promoting(DELTA, DeltaHandover(), ByFolder(project))
