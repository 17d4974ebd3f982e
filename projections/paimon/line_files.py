"""Files of one line of a served table in its folder: schemas, snapshots and hints.

Snapshots are written in ascending order, and engines expire the oldest ones by deleting their
files. So a missing file before an existing one is of a snapshot that expired, and any other missing
file is lost, and written again.

Source: Paimon's SnapshotManager, RollbackHelper and ExpireSnapshotsImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from attrs import evolve, field, frozen

from ledger.model.errors import InvalidInputError
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot, Tag
from ledger.state.paimon_origin import PaimonOrigin
from projections.importing.deriving import properties_of_options
from projections.outputs import StoreOutputs
from projections.paimon.paths import (
    EARLIEST,
    LATEST,
    TAG_PREFIX,
    quarantine_path,
    schema_path,
    snapshot_path,
    tag_path,
)
from projections.paimon.schema_file import schema_file, schema_from_json
from projections.paimon.snapshot_file import (
    is_same_snapshot,
    snapshot_file,
    snapshot_from_json,
    tag_file,
    tag_from_json,
)


@frozen
class Line:
    """A line of the table.

    Attributes:
        origin: The line as a table.
        tags: Its tags, by name.
        texts: The texts of its files, by path, as far as they are recorded: those of a branch.
    """

    origin: PaimonOrigin
    tags: Mapping[str, Tag] = field(hash=False)
    texts: Mapping[str, str] = field(factory=dict, hash=False)


@frozen(eq=False)
class LineFile:
    """A file that has to exist.

    Attributes:
        path: Its path below the folder.
        render: Returns its bytes.
        says_same: Returns whether other bytes say the same.
    """

    path: str
    render: Callable[[], bytes]
    says_same: Callable[[bytes], bool]

    def is_in(self, body: bytes) -> bool:
        """Return whether some bytes say what the file says."""
        with suppress(InvalidInputError):
            return body == self.render() or self.says_same(body)
        return False

    def write(self, outputs: StoreOutputs) -> None:
        """Write it; a file that says the same is left as it is, any other one is replaced."""
        key, body = outputs.key(self.path), self.render()
        if outputs.store.create(key, body):
            return
        there = outputs.store.confirm(key)
        if there is None or not self.is_in(there):
            outputs.store.replace_durably(key, body)

    def remove(self, outputs: StoreOutputs) -> None:
        """Remove it; another file in its place stays: that of the next commit with its id."""
        body = outputs.read(self.path)
        if body is not None and self.is_in(body):
            outputs.remove(self.path)


@frozen
class Listing:
    """The files of schemas and snapshots in a folder.

    Attributes:
        paths: Their paths.
    """

    paths: frozenset[str]

    @classmethod
    def of(cls, outputs: StoreOutputs) -> Listing:
        """Return those of a folder."""
        return cls(frozenset((*outputs.paths("schema"), *outputs.paths("snapshot"))))

    def numbers(self, folder: str) -> Iterator[int]:
        """Yield the numbers of the files in one of the two folders."""
        start = f"{folder}/{folder}-"
        found = (each.removeprefix(start) for each in self.paths if each.startswith(start))
        return (int(each) for each in found if each.isascii() and each.isdigit())

    def foreign(self, origin: PaimonOrigin) -> Iterator[str]:
        """Yield the files after the newest schema and snapshot, and before the oldest.

        They are of a rollback or expiry whose process died, or of a writer that does not commit to
        the ledger. Engines would take the newest ones for the table's.
        """
        live = origin.snapshots
        newest, oldest = max(live, default=0), min(live, default=0)
        for each in sorted(self.numbers("snapshot")):
            if not oldest <= each <= newest:
                yield snapshot_path(each)
        yield from map(
            schema_path, sorted(e for e in self.numbers("schema") if e > max(origin.schemas))
        )


def expected_files(line: Line, there: Listing) -> Iterator[LineFile]:
    """Yield the files of a line that have to exist: schemas, then snapshots in ascending order.

    Args:
        line: The line.
        there: The files in its folder.
    """
    origin = line.origin
    yield from (_schema_file(line, each) for each in sorted(origin.schemas))
    found = origin.snapshots.keys() & frozenset(there.numbers("snapshot"))
    oldest = min(found, default=0)
    for number, snapshot in sorted(origin.snapshots.items()):
        if number >= oldest:
            yield _snapshot_file(line, snapshot)


def _schema_file(line: Line, number: int) -> LineFile:
    path = schema_path(number)

    def schema() -> Schema:
        found = line.origin.schema(number)
        return evolve(found, options=properties_of_options(found.options))

    return LineFile(
        path,
        lambda: line.texts[path].encode() if path in line.texts else schema_file(schema()),
        lambda body: _comparable(schema_from_json(body)) == _comparable(schema()),
    )


def _comparable(schema: Schema) -> Schema:
    return evolve(schema, time_millis=0, version=3, field_id_policy="paimon")


def _snapshot_file(line: Line, snapshot: Snapshot) -> LineFile:
    path = snapshot_path(snapshot.id)
    return LineFile(
        path,
        lambda: line.texts[path].encode() if path in line.texts else snapshot_file(snapshot),
        lambda body: evolve(snapshot_from_json(body), watermark=snapshot.watermark) == snapshot,
    )


def text_file(path: str, text: str) -> LineFile:
    """Return a file that has to have a text."""
    return LineFile(path, text.encode, lambda _: False)


def tag_files(outputs: StoreOutputs) -> dict[str, str]:
    """Return the paths of the tags in the folder of a line, by their names."""
    paths = (each for each in outputs.paths("tag") if each.startswith(TAG_PREFIX))
    return {each.removeprefix(TAG_PREFIX): each for each in paths}


def move_away(outputs: StoreOutputs, path: str) -> None:
    """Rename a file so that engines do not find it."""
    body = outputs.read(path)
    if body is not None:
        outputs.put(quarantine_path(path, body), body)
        outputs.remove(path)


def begin_line(outputs: StoreOutputs, line: Line, there: Listing) -> None:
    """Write the files that are missing in the folder of a line of which nothing is known."""
    origin = line.origin
    for path in there.foreign(origin):
        move_away(outputs, path)
    live = origin.snapshots
    newest = {schema_path(max(origin.schemas)), snapshot_path(max(live, default=0))}
    for file in expected_files(line, there):
        if file.path not in there.paths or file.path in newest:
            file.write(outputs)
    _replace_lost_tags(outputs, line)
    if live:
        _point(outputs, origin)
    elif there.paths & {LATEST, EARLIEST}:
        outputs.remove(LATEST)
        outputs.remove(EARLIEST)


def continue_line(outputs: StoreOutputs, before: Line, line: Line) -> None:
    """Write and remove the files that differ between two states of a line."""
    old, new = before.origin, line.origin
    for number in _changed(old.schemas, new.schemas):
        _schema_file(line, number).write(outputs)
    come = _changed(old.snapshots, new.snapshots)
    gone = sorted(old.snapshots.keys() - new.snapshots.keys())
    newest = max(new.snapshots, default=0)
    is_rollback = any(each > newest for each in gone) or any(e in old.snapshots for e in come)
    # A reader takes the newest file for the newest snapshot, and has to find one at any time.
    if new.snapshots.keys() - come:
        _remove_snapshots(outputs, before, new, gone)
        gone = []
    for number in come:
        _snapshot_file(line, new.snapshots[number]).write(outputs)
    _remove_snapshots(outputs, before, new, gone)
    if not is_rollback:
        _point_changed(outputs, old, new)
    for number in sorted(old.schemas.keys() - new.schemas.keys()):
        _schema_file(before, number).remove(outputs)
    if is_rollback:
        _replace_lost_tags(outputs, line)
        _point(outputs, new)


def _changed(old: Mapping[int, Any], new: Mapping[int, Any]) -> list[int]:
    """Return the keys of values that are new or differ, ascending."""
    # States that follow one another share their values.
    return sorted(
        key for key, value in new.items() if (had := old.get(key)) is not value and had != value
    )


def _remove_snapshots(
    outputs: StoreOutputs, before: Line, origin: PaimonOrigin, numbers: list[int]
) -> None:
    if numbers and origin.snapshots:
        # A hint is believed if the snapshot after it does not exist.
        _point(outputs, origin)
    for number in numbers:
        _snapshot_file(before, before.origin.snapshots[number]).remove(outputs)


def _replace_lost_tags(outputs: StoreOutputs, line: Line) -> None:
    """Remove the tags of snapshots that a rollback removed, also those that only engines know.

    A tag that the log has names a snapshot that exists, and is written again: another one in its
    place is of a change that was not committed.
    """
    origin = line.origin
    newest = max(origin.snapshots, default=0)
    for name, path in tag_files(outputs).items():
        body = outputs.read(path)
        with suppress(InvalidInputError):
            snapshot = None if body is None else tag_from_json(body).snapshot
            if snapshot is not None:
                there = origin.readable_snapshots.get(snapshot.id)
                is_other = there is not None and not is_same_snapshot(there, snapshot)
                if is_other or snapshot.id > newest:
                    known = line.tags.get(name)
                    if known is None:
                        outputs.remove(path)
                    else:
                        outputs.restore(path, _tag_text(line, known).encode())


def _tag_text(line: Line, tag: Tag) -> str:
    path = tag_path(tag.name)
    if path in line.texts:
        return line.texts[path]
    body = tag_file(
        line.origin.readable_snapshots[tag.snapshot_id],
        create_time_millis=tag.create_time_millis,
        time_retained_millis=tag.time_retained_millis,
    )
    return body.decode()


def _point_changed(outputs: StoreOutputs, old: PaimonOrigin, new: PaimonOrigin) -> None:
    """Write the hints whose snapshots differ between two states, neither of which is a rollback."""
    had, has = old.snapshots, new.snapshots
    for path, ends in ((LATEST, max), (EARLIEST, min)):
        number = ends(has, default=0)
        if number and number != ends(had, default=0):
            outputs.restore(path, b"%d" % number)


def _point(outputs: StoreOutputs, origin: PaimonOrigin) -> None:
    """Write the hints that name the newest and the oldest snapshot; none without one."""
    if not origin.snapshots:
        outputs.remove(LATEST)
        outputs.remove(EARLIEST)
        return
    for path, number in ((LATEST, max(origin.snapshots)), (EARLIEST, min(origin.snapshots))):
        body = b"%d" % number
        if outputs.read(path) != body:
            outputs.restore(path, body)
