"""Tables whose engines commit through another format; Iceberg's clients only read them.

The files of such a table are in the lists of its engines, and Iceberg's readers get the rows of the
same data files. Metadata is rendered when a version is loaded, from the log and the engines' lists,
which never change; a record next to the log says what was rendered, so that a load reads only what
is new. All files are below the ledger's own folder `metadata`. Files that the newest version does
not need are deleted after the time for readers (`ledger.reader-grace`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from ledger.formats import part_if_any
from ledger.model.errors import InvalidChangeError
from ledger.state.declared_formats import reader_grace_millis
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.foreign_manifests import RENDERER
from projections.iceberg.foreign_metadata import (
    ForeignMetadata,
    RenderedTable,
    Rendering,
    format_name,
)
from projections.iceberg.position import FOLDER
from projections.iceberg.table_metadata import TableMetadata
from projections.materialising import ObsoleteFiles, PendingDeletes, outputs_of
from projections.outputs import load_position, save_position

_PENDING: Final = "iceberg"
_MOST_RECORDED_REMOVALS: Final = 10_000


_renderings: WeakKeyDictionary[TableHandle, Rendering] = WeakKeyDictionary()


def is_foreign(state: TableState) -> bool:
    """Return whether only lists of another format's engines name a table's files."""
    # Once it is promoted, its newer snapshots are in the ledger's lists, for any later owner.
    if state.owner.kind == "ledger" or state.is_promoted:
        return False
    return part_if_any(format_name(state), "engine_lists") is not None


def refuse_foreign_commit(state: TableState) -> None:
    """Reject a commit by Iceberg's protocol to a foreign table.

    Raises:
        InvalidChangeError: The table is one.
    """
    if not is_foreign(state):
        return
    name = format_name(state)
    writers = (
        f"its owner is elsewhere, and the ledger follows it (lakeledger import {name})"
        if state.is_mirrored
        else f"engines commit to it through the {state.owner.protocol} protocol"
    )
    raise InvalidChangeError(
        f"the table is from {name.title()}, and Iceberg's clients only read it; nothing was "
        f"committed: {writers}",
        kind="NOT_SERVED",
    )


def render_foreign(table: TableHandle, state: TableState) -> RenderedTable:
    """Render a version of a foreign table; its files exist then.

    Args:
        table: The table.
        state: Its state at that version.

    Raises:
        UnsupportedError: Iceberg cannot express the table; the message says why.
        DamagedLogError: A file of its engines is missing or damaged.
        StoreError: A file cannot be written.
    """
    key = _key(table)
    with table.log.store.lock(key):
        before = _known_rendering(table, state.version)
        run = ForeignMetadata.of(table, state, before)
        made, rendering = run.render()
        PendingDeletes(table, _PENDING).stay(rendering.paths)
        _write_files(table, run.manifests.files, made)
        if before.version <= state.version:
            _note_obsolete_files(table, state, before.paths - rendering.paths)
            save_position(table.log.store, key, _recorded(rendering))
            _delete_expired_files(table, state)
            _renderings[table] = rendering
    return made


def render_in_memory(
    table: TableHandle, state: TableState
) -> tuple[TableMetadata, dict[str, bytes]]:
    """Return the metadata of a version of a foreign table, without writing anything.

    Args:
        table: The table.
        state: Its state at that version.

    Returns:
        The metadata, and the files that it names and that are not on the store, by URL.

    Raises:
        UnsupportedError, DamagedLogError: As of `render_foreign`.
    """
    is_trusted = table.setting.trust != "log" and not table.location.startswith("memory://")
    before = _known_rendering(table, state.version) if is_trusted else Rendering()
    run = ForeignMetadata.of(table, state, before)
    made, _ = run.render()
    files = run.manifests.files.items()
    return made.metadata, {f"{table.location}/{path}": body for path, body in files}


def _recorded(rendering: Rendering) -> Rendering:
    """Return what is recorded of a rendering: many removed files are read again instead."""
    if len(rendering.holders) <= _MOST_RECORDED_REMOVALS:
        return rendering
    return replace(rendering, removals={}, holders={})


def _key(table: TableHandle) -> str:
    return f"{table.log.layout.root}/projections/iceberg-foreign.json"


def _known_rendering(table: TableHandle, version: int) -> Rendering:
    """Return what was rendered last, without what is not on the store.

    Another process may have rendered versions since, and deleted files that they did not need.

    Args:
        table: The table.
        version: The version that is rendered next.
    """
    known = _renderings.get(table)
    is_recent = known is not None and known.version >= version - 1
    if known is not None and is_recent and known.location == table.location:
        return known
    saved = load_position(table.log.store, _key(table), Rendering)
    if saved is None or saved.renderer != RENDERER or saved.location != table.location:
        return Rendering()
    there = frozenset(outputs_of(table).paths(FOLDER))
    return replace(
        saved,
        snapshots=tuple(each for each in saved.snapshots if each.list_path in {"", *there}),
        manifests={key: each for key, each in saved.manifests.items() if each.file.path in there},
    )


def _write_files(table: TableHandle, files: Mapping[str, bytes], made: RenderedTable) -> None:
    """Write manifests, then lists, then the metadata file."""
    lists = {path: body for path, body in files.items() if path.startswith(f"{FOLDER}/snap-")}
    manifests = {path: body for path, body in files.items() if path not in lists}
    steps = (manifests, lists, {made.path: made.body})
    outputs_of(table).put_many([step for step in steps if step])


def _note_obsolete_files(table: TableHandle, state: TableState, paths: Iterable[str]) -> None:
    gone = tuple(sorted(paths, reverse=True))
    if gone:
        PendingDeletes(table, _PENDING).note(state.version, ObsoleteFiles(state.version, gone))


def _delete_expired_files(table: TableHandle, state: TableState) -> None:
    pending, outputs = PendingDeletes(table, _PENDING), outputs_of(table)
    grace_millis = reader_grace_millis(state.schema.options)
    for version, paths in list(pending.due(state.version, state, grace_millis)):
        for path in paths:
            outputs.remove(path)
        pending.forget(version)
