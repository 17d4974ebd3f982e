"""Files in the folder of a served table that its engines read: schemas, snapshots and branches.

They are a function of the newest state, except that an engine may have written the same schema or
snapshot in another spelling. A process that writes them reads the newest state again afterwards:
what a rollback of another process removed meanwhile is removed again.

A branch has the same files in a folder of its own. Its files are written as the log has them.

Tags are written before they are recorded; see `served_tags`, and `line_files` for the files of one
line.
"""

from __future__ import annotations

import threading
from typing import Final
from weakref import WeakKeyDictionary

from attrs import Factory, define, frozen
from msgspec import UnsetType

from ledger.events.imported import PaimonBranchUpdated
from ledger.locations import place_of
from ledger.model.errors import (
    CommitUnknownError,
    LedgerError,
    StoreError,
)
from ledger.observing.telemetry import warn
from ledger.state.snapshots import MAIN
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.materialising import Difference
from projections.outputs import StoreOutputs
from projections.paimon.branch_folders import (
    BranchFolder,
    begin_branch,
    read_consumers,
    remove_branch,
)
from projections.paimon.branch_lines import line_state
from projections.paimon.line_files import (
    Line,
    Listing,
    begin_line,
    continue_line,
    expected_files,
)
from projections.paimon.paths import snapshot_path
from projections.paimon.served_origin import folder_of, served_origin


@define
class _Folder:
    """Knowledge of a handle about its table's folder.

    Attributes:
        written: The newest state whose files exist; None before the first.
        lock: Held while files are written.
    """

    written: TableState | None = None
    lock: threading.RLock = Factory(threading.RLock)


_folders: WeakKeyDictionary[TableHandle, _Folder] = WeakKeyDictionary()
_new_folder = threading.Lock()
_LOGGER: Final = "projections.paimon"


def write_files(table: TableHandle, state: TableState, branch: str | None = None) -> None:
    """Make the files of a served table's newest state exist, durably.

    Where this handle has done so for the state, it looks for one file only: that of the newest
    snapshot of a line, which engines never delete. A server that removed a former snapshot of the
    id, and died before it read the newer state, may have removed it.

    Args:
        table: The table.
        state: A state of it.
        branch: The branch whose newest snapshot is looked for; None for the main line.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidChangeError: Engines of Paimon do not own the table.
        StoreError: A file cannot be written.
    """
    folder = _folder_of(table)
    if folder.written is None or folder.written.version < state.version:
        with folder.lock:
            _catch_up(table, folder, state)
    elif _has_lost_newest(table, state, branch):
        with folder.lock:
            folder.written = None
            _catch_up(table, folder, state)


def _has_lost_newest(table: TableHandle, state: TableState, branch: str | None) -> bool:
    newest = max(served_origin(line_state(table, state, branch)).snapshots, default=None)
    if newest is None:
        return False
    outputs = line_outputs(outputs_of_engines(table, state), branch)
    return not outputs.store.exists(outputs.key(snapshot_path(newest)))


def write_committed_files(table: TableHandle, state: TableState | None = None) -> None:
    """Make the files of a commit exist, as `write_files` does; no failure looks like a rejection.

    Args:
        table: The table.
        state: The state after the commit; None for the newest.

    Raises:
        StoreError: The commit was made, and a file of it cannot be written, or the table has been
            dropped or given to another owner since.
    """
    try:
        write_files(table, table.state if state is None else state)
    except (StoreError, CommitUnknownError):
        raise
    except LedgerError as error:
        raise StoreError(
            f"the commit was made, and its files cannot be written: {error}; load the table again"
        ) from error


def _catch_up(table: TableHandle, folder: _Folder, state: TableState) -> None:
    while folder.written is None or folder.written.version < state.version:
        if folder.written is None:
            state = _begin_lines(table, state)
        else:
            _continue_lines(table, folder.written, state)
        folder.written = state
        # Another process may have committed a rollback meanwhile.
        state = table.state


def _folder_of(table: TableHandle) -> _Folder:
    with _new_folder:
        return _folders.setdefault(table, _Folder())


@frozen
class ServedFolder:
    """The folder of a served table; see `projections.materialising.EngineFolder`.

    Tags are not compared, since engines create and delete them; files of snapshots that engines
    expired are not missing.

    Attributes:
        table: The table.
    """

    table: TableHandle

    def write(self) -> int:
        """Write the files of the newest state; return its version."""
        state = self.table.state
        write_files(self.table, state)
        return state.version

    def compare(self) -> Difference:
        """Compare the files with the newest state."""
        table = self.table
        outputs = outputs_of_engines(table, table.state)
        listings = _listings(outputs, table.state)
        missing: list[str] = []
        changed: list[str] = []
        for name, line in _lines(table, table.state).items():
            there = listings.get(name, Listing(frozenset()))
            inside = line_outputs(outputs, name)
            for file in expected_files(line, there):
                body = inside.read(file.path)
                if body is None:
                    missing.append(line_path(name, file.path))
                elif not file.is_in(body):
                    changed.append(line_path(name, file.path))
            # Engines would take a later one for the newest.
            changed += (line_path(name, each) for each in there.foreign(line.origin))
        return Difference(missing=tuple(missing), changed=tuple(changed))

    def restore(self) -> Difference:
        """Write lost and damaged files again; return the differences found."""
        table, folder = self.table, _folder_of(self.table)
        with folder.lock:
            found = self.compare()
            wrong = {*found.missing, *found.changed}
            state = table.state
            if wrong:
                name, version = str(table.identifier), state.version
                warn(_LOGGER, "files_restored", table=name, format="paimon", version=version)
            outputs = outputs_of_engines(table, state)
            listings = _listings(outputs, state)
            for line_name, line in _lines(table, state).items():
                inside = line_outputs(outputs, line_name)
                for file in expected_files(line, listings[line_name]):
                    if line_path(line_name, file.path) in wrong:
                        file.write(inside)
            folder.written = None
            _catch_up(table, folder, state)
        return found


def outputs_of_engines(table: TableHandle, state: TableState) -> StoreOutputs:
    """Return the outputs of the folder that a served table's engines write into."""
    url = folder_of(table, state)
    if place_of(url) == place_of(table.location):
        return StoreOutputs(table.log.store, table.log.layout.folder)
    return StoreOutputs(table.setting.store_at(table.reached(url)), "")


def line_path(name: str, path: str) -> str:
    """Return the path below the table's folder of a file of a line."""
    return path if name == MAIN else f"branch/branch-{name}/{path}"


def line_outputs(outputs: StoreOutputs, name: str | None) -> StoreOutputs:
    """Return the outputs of the folder of a line.

    Args:
        outputs: Those of the table.
        name: The branch; `main` or None for the main line.
    """
    if name is None or name == MAIN:
        return outputs
    return StoreOutputs(outputs.store, outputs.key(f"branch/branch-{name}"))


def _line(table: TableHandle, state: TableState, name: str) -> Line:
    main = served_origin(state)
    if name == MAIN:
        return Line(main, state.tags)
    branch = line_state(table, state, name)
    return Line(served_origin(branch), branch.tags, main.branches[name])


def _lines(table: TableHandle, state: TableState) -> dict[str, Line]:
    names = (MAIN, *sorted(served_origin(state).branches))
    return {name: _line(table, state, name) for name in names}


def _listings(outputs: StoreOutputs, state: TableState) -> dict[str, Listing]:
    names = (MAIN, *sorted(served_origin(state).branches))
    return {name: Listing.of(line_outputs(outputs, name)) for name in names}


def _begin_lines(table: TableHandle, state: TableState) -> TableState:
    """Write what is missing in a folder of which nothing is known; return the state that it has."""
    outputs = outputs_of_engines(table, state)
    there = Listing.of(outputs)
    # A later file than the state's is not foreign if its commit is newer.
    state = table.state
    begin_line(outputs, _line(table, state, MAIN), there)
    for name in sorted(served_origin(state).branches):
        _write_branch(table, name)
    return state


def _continue_lines(table: TableHandle, before: TableState, state: TableState) -> None:
    """Write and remove the files that differ between two states."""
    outputs = outputs_of_engines(table, state)
    old, new = served_origin(before), served_origin(state)
    continue_line(outputs, Line(old, before.tags), Line(new, state.tags))
    if old.branches is new.branches:
        return
    known = old.branch_added_in.items() & new.branch_added_in.items()
    kept = {name for name, _ in known}
    for name in sorted(new.branches.keys() - kept):
        _write_branch(table, name)
    for name in sorted(kept):
        if old.branches[name] is not new.branches[name]:
            lines = _line(table, before, name), _line(table, state, name)
            continue_line(line_outputs(outputs, name), *lines)
    for name in sorted(old.branches.keys() - new.branches.keys()):
        # Another process may have created it anew.
        if name not in served_origin(table.state).branches:
            remove_branch(line_outputs(outputs, name))


def _write_branch(table: TableHandle, name: str) -> None:
    """Write what is missing in the folder of a branch of which this process knows nothing."""
    outputs = outputs_of_engines(table, table.state)
    inside = line_outputs(outputs, name)
    there = BranchFolder.of(inside)
    # A file that another process writes for a newer commit is not foreign.
    state = table.state
    origin = served_origin(state)
    if name not in origin.branches:
        return
    line, listing = _line(table, state, name), there.listing
    added = origin.branch_added_in.get(name, 0)
    mark = f"{state.table_id} {added}"
    # A registered folder has branches that engines have changed before.
    is_taken_over = added <= state.owner.since_version and any(listing.numbers("schema"))
    if there.mark != mark and not is_taken_over:
        former = _former_name(table, name, added)
        is_known = former is not None and former not in origin.branches
        consumers = read_consumers(line_outputs(outputs, former)) if is_known else {}
        begin_branch(inside, line, there, mark, consumers)
        listing = Listing(frozenset(line.texts))
    begin_line(inside, line, listing)


def _former_name(table: TableHandle, name: str, version: int) -> str | None:
    """Return the name that a branch had before a commit; None if the commit created it."""
    for commit in table.events(version, version):
        for transaction in commit.transactions:
            for event in transaction.events:
                if isinstance(event, PaimonBranchUpdated) and event.branch_name == name:
                    former = event.renamed_from
                    return None if isinstance(former, UnsetType) else former
    return None
