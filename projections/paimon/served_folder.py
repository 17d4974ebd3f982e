"""Changes that engines make to the folder of a served table by themselves, recorded in the log.

Engines expire snapshots of a line by deleting the oldest files. They create, replace and delete
tags by their files, some through the catalog and some not. So the folder says which tags there are,
and which snapshots expired; the log says everything else. A tag that is created through the catalog
is written before it is recorded, and one that is deleted is removed before.

Source: Paimon's ExpireSnapshotsImpl, TagManager, TagAutoManager and TagTimeExpire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, Unpack

from attrs import frozen
from msgspec import UNSET

from ledger.events import TableEvent
from ledger.events.snapshots import SnapshotsExpired, TagCreated, TagDeleted, TagReplaced
from ledger.log.request import CommitOptions
from ledger.model.errors import InvalidInputError
from ledger.model.snapshot import Snapshot, Tag
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.outputs import StoreOutputs
from projections.paimon.branch_commits import commit_to_line
from projections.paimon.branch_lines import line_state
from projections.paimon.line_files import tag_files
from projections.paimon.paths import snapshot_path, tag_path
from projections.paimon.served_files import (
    line_outputs,
    outputs_of_engines,
    write_committed_files,
    write_files,
)
from projections.paimon.served_origin import served_origin
from projections.paimon.snapshot_event import snapshot_event
from projections.paimon.snapshot_file import (
    TagFile,
    check_file_names,
    is_same_snapshot,
    tag_from_json,
)

_SNAPSHOT: Final = snapshot_path(0).removesuffix("0")
_FEW: Final = 8


@frozen
class FolderContents:
    """Snapshots and tags in a folder.

    Attributes:
        seen: The line's state before the folder was read, whose files existed then.
        snapshot_ids: The ids of the snapshots with a file, or at least the earliest of the line's.
        tags: The tags, by name.
    """

    seen: TableState
    snapshot_ids: frozenset[int]
    tags: Mapping[str, TagFile]


def read_folder(table: TableHandle, branch: str | None = None) -> FolderContents:
    """Return the contents of the folder of a served table's line, whose files are up to date.

    Args:
        table: The table.
        branch: The branch; None for the main line.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidChangeError: Engines of Paimon do not own the table.
        StoreError: The folder cannot be read.
    """
    state = table.state
    write_files(table, state, branch)
    seen = line_state(table, state, branch)
    outputs = line_outputs(outputs_of_engines(table, state), branch)
    tags = _read_tags(outputs, tag_files(outputs))
    return FolderContents(seen, frozenset(_snapshot_ids(outputs)), tags)


def read_expired(
    table: TableHandle, state: TableState, branch: str | None = None
) -> FolderContents | None:
    """Return what a commit records of a folder; None if no snapshot expired.

    Its cost does not depend on the number of snapshots, and only tags that the log does not have
    are read. One that an engine replaced is found by `record_folder`.

    Args:
        table: The table.
        state: The table's state, whose files exist.
        branch: The branch; None for the main line.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidChangeError: Engines of Paimon do not own the table.
        StoreError: The folder cannot be read.
    """
    seen = line_state(table, state, branch)
    if not has_expired(table, seen, branch):
        return None
    outputs = line_outputs(outputs_of_engines(table, state), branch)
    readable = served_origin(seen).readable_snapshots
    known = {
        name: TagFile(readable[it.snapshot_id], it.create_time_millis, it.time_retained_millis)
        for name, it in seen.tags.items()
    }
    there = tag_files(outputs)
    new = _read_tags(outputs, {name: path for name, path in there.items() if name not in known})
    tags = {name: each for name, each in known.items() if name in there} | new
    return FolderContents(seen, _earliest_ids(outputs, seen), tags)


def _earliest_ids(outputs: StoreOutputs, seen: TableState) -> frozenset[int]:
    """Return ids of snapshots with a file, the earliest one of a line's state among them."""
    # Jobs expire one or a few at a time; more are cheaper to list.
    for each in sorted(served_origin(seen).snapshots)[:_FEW]:
        if outputs.store.exists(outputs.key(snapshot_path(each))):
            return frozenset({each})
    return frozenset(_snapshot_ids(outputs))


def _snapshot_ids(outputs: StoreOutputs) -> Iterator[int]:
    for path in outputs.paths("snapshot"):
        digits = path.removeprefix(_SNAPSHOT)
        if digits.isascii() and digits.isdigit():
            yield int(digits)


def _read_tags(outputs: StoreOutputs, paths: Mapping[str, str]) -> dict[str, TagFile]:
    """Return the tags in files, by name."""
    tags: dict[str, TagFile] = {}
    bodies = outputs.store.read_many([*map(outputs.key, paths.values())])
    for (name, path), body in zip(paths.items(), bodies, strict=True):
        # A file that another program has put there is no tag.
        with suppress(InvalidInputError):
            file = None if body is None else tag_from_json(body)
            if file is not None:
                check_file_names(file.snapshot, path)
                tags[name] = file
    return tags


def folder_events(state: TableState, folder: FolderContents) -> tuple[TableEvent, ...]:
    """Return the events that record what engines did to a folder.

    Args:
        state: The table's state, which may be later than the folder's.
        folder: The folder's contents.
    """
    origin, seen = served_origin(state), served_origin(folder.seen)
    unchanged = {n: it for n, it in origin.snapshots.items() if seen.snapshots.get(n) == it}
    there = folder.snapshot_ids & unchanged.keys()
    oldest = min(origin.snapshots, default=0)
    earliest = min(there, default=oldest)
    changed = {*_changed_tags(state, folder)}
    restored = {
        each.snapshot.id: each.snapshot
        for name, each in folder.tags.items()
        if name in changed
        and each.snapshot.id not in origin.readable_snapshots
        and each.snapshot.id < oldest
        and each.snapshot.schema_id in origin.schemas
    }
    readable = {**origin.readable_snapshots, **restored}
    events: list[TableEvent] = [snapshot_event(each) for _, each in sorted(restored.items())]
    for name in sorted(changed):
        file = folder.tags.get(name)
        if file is None:
            events.append(TagDeleted(tag_name=name))
        elif _is_readable(file.snapshot, readable):
            kind = TagReplaced if name in state.tags else TagCreated
            events.append(_tag_event(kind, name, file))
    if restored or earliest > oldest:
        events.append(SnapshotsExpired(earliest_snapshot_id=earliest))
    return tuple(events)


def _changed_tags(state: TableState, folder: FolderContents) -> Iterator[str]:
    """Yield the tags of which the folder says something else, and the log nothing newer."""
    for name in state.tags.keys() | folder.tags.keys():
        known = state.tags.get(name)
        if known == folder.seen.tags.get(name) and not _is_recorded(known, folder.tags.get(name)):
            yield name


def _is_recorded(tag: Tag | None, file: TagFile | None) -> bool:
    if tag is None or file is None:
        return tag is None and file is None
    recorded = (tag.snapshot_id, tag.time_retained_millis)
    return recorded == (file.snapshot.id, file.time_retained_millis)


def _is_readable(snapshot: Snapshot, readable: Mapping[int, Snapshot]) -> bool:
    found = readable.get(snapshot.id)
    return found is not None and is_same_snapshot(found, snapshot)


def _tag_event(
    kind: type[TagCreated | TagReplaced], name: str, file: TagFile
) -> TagCreated | TagReplaced:
    retained, created = file.time_retained_millis, file.create_time_millis
    return kind(
        tag_name=name,
        snapshot_id=file.snapshot.id,
        time_retained_millis=UNSET if retained is None else retained,
        create_time_millis=UNSET if created is None else created,
    )


def record_folder(
    table: TableHandle, branch: str | None = None, **commit: Unpack[CommitOptions]
) -> TableState:
    """Record what engines did to the folder of a served table's line; return its newest state.

    Nothing is committed where they did nothing.

    Args:
        table: The table.
        branch: The branch; None for the main line.
        commit: See CommitOptions.

    Raises:
        NotFoundError: The branch does not exist.
        InvalidChangeError: Engines of Paimon do not own the table.
        CommitUnknownError: The store did not answer, so the commit may have been made.
        StoreError: The folder cannot be read.
    """
    folder = read_folder(table, branch)
    if not folder_events(folder.seen, folder):
        return folder.seen
    done = commit_to_line(
        table, branch, ["paimonFolder"], lambda state: folder_events(state, folder), **commit
    )
    write_committed_files(table, done.state)
    return line_state(table, done.state, branch)


def has_expired(table: TableHandle, state: TableState, branch: str | None = None) -> bool:
    """Return whether an engine has deleted the file of the oldest snapshot of a line's state."""
    oldest = min(served_origin(state).snapshots, default=0)
    if not oldest:
        return False
    outputs = line_outputs(outputs_of_engines(table, state), branch)
    return not outputs.store.exists(outputs.key(snapshot_path(oldest)))


def list_tags(table: TableHandle, state: TableState, branch: str | None = None) -> list[str]:
    """Return the names of the tags of a served table's line, sorted, as its folder has them.

    Args:
        table: The table.
        state: The table's state, whose files exist.
        branch: The branch; None for the main line.
    """
    outputs = line_outputs(outputs_of_engines(table, state), branch)
    return sorted(tag_files(outputs))


def read_tag(
    table: TableHandle, state: TableState, name: str, branch: str | None = None
) -> TagFile | None:
    """Return a tag of a served table's line, as its folder has it; None if there is none.

    Args:
        table: The table.
        state: The table's state, whose files exist.
        name: The tag.
        branch: The branch; None for the main line.

    Raises:
        InvalidNameError: No tag can have the name.
        InvalidInputError: The file is damaged.
    """
    outputs = line_outputs(outputs_of_engines(table, state), branch)
    body = outputs.read(tag_path(name))
    return None if body is None else tag_from_json(body)
