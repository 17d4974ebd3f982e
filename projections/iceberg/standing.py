"""What stands on a store of a table's Iceberg files, against what the log makes of them.

Files that the ledger projected otherwise, by an older renderer or for another place, are nobody
else's, so that the newest renderer's take their place: new ones are written first, the pointer goes
over to them, and the old ones are taken away last.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator

import msgspec
from attrs import frozen

from ledger.evolution.state import TableState
from ledger.model.errors import DamagedLogError, TooLargeError, UnsupportedError
from ledger.table import Table
from projections.iceberg.names import FOLDER, HINT, Names
from projections.iceberg.position import IcebergPosition
from projections.iceberg.project import Projection, Wants, no_other
from projections.leaving import Leaving
from projections.manifest_files.container import read_container
from projections.materialising import (
    Compared,
    Difference,
    difference,
    nobody,
    outputs_of,
    target_state,
)
from projections.outputs import MemoryOutputs, StoreOutputs


def compared(table: Table, stood: IcebergPosition, at: TableState) -> Compared:
    """Compare a table's files with those that it should have at a state.

    Args:
        table: The table.
        stood: Where they stand.
        at: The state; the newest, where nobody knows that, or the log was cut below it.
    """
    outputs, names = outputs_of(table), Names(at.table_id)
    # Of what leaves, nobody asks any more how it should be.
    there = frozenset(outputs.paths(FOLDER)) - Leaving(table, "iceberg").paths()
    wanted = _wanted(table, at, names, there)
    found = difference(outputs, wanted, folders=(FOLDER,), hints=(HINT,))
    later = _later(table, at, names, there)
    ours = {path for path in found.foreign if later.get(path) == outputs.read(path)}
    newest = target_state(table, None)
    ours.update(each.statistics_path for each in newest.partition_statistics.values())
    ours.update(each.statistics_path for each in newest.puffin_files.values())
    in_way = {
        path
        for path in found.foreign
        if path not in ours and (path in later or _is_later(names, path, at.version))
    }
    changed, missing = [*found.changed, *in_way], list(found.missing)
    if stood.version == at.version:
        hint = outputs.read(HINT)
        # A run that was killed may have pointed to a later version already.
        fine = {wanted[HINT], *(b"%d" % v for v in _hadoop_versions(names, ours))}
        if hint is None:
            missing.append(HINT)
        elif hint not in fine:
            changed.append(HINT)
    told = Difference(
        missing=tuple(sorted(missing)),
        changed=tuple(sorted(changed)),
        foreign=found.without(ours | in_way).foreign,
    )
    return Compared(told, wanted, tuple(sorted(in_way)), at)


def _rendered(table: Table, target: TableState, wants: Wants = no_other) -> dict[str, bytes]:
    outputs = MemoryOutputs()
    Projection(table, outputs, IcebergPosition(), target, wants).run(nobody)
    return outputs.files


def _version(names: Names, path: str) -> int | None:
    """Return the version whose metadata file has that name, a catalog's or Hadoop's."""
    digits = path.removeprefix(f"{FOLDER}/v").removesuffix(".metadata.json")
    if digits.isascii() and digits.isdigit() and path == names.hadoop(int(digits)):
        return int(digits)
    return names.version_of(path)


def _is_later(names: Names, path: str, version: int) -> bool:
    found = _version(names, path)
    return found is not None and found > version


def _hadoop_versions(names: Names, paths: set[str]) -> Iterator[int]:
    for path in paths:
        version = _version(names, path)
        if version is not None and path == names.hadoop(version):
            yield version


def _wanted(
    table: Table, target: TableState, names: Names, there: frozenset[str]
) -> dict[str, bytes]:
    """Return what should be there, with the metadata files of earlier versions that are."""
    versions = {names.version_of(path) for path in there}
    older = {v: names.hadoop(v) for v in range(target.version) if names.hadoop(v) in there}
    wanted = _rendered(table, target, lambda each: each in versions or each in older)
    for each, path in older.items():
        if names.metadata(each) in wanted:
            wanted[path] = wanted[names.metadata(each)]
            if each not in versions:
                del wanted[names.metadata(each)]
    return wanted


def _later(
    table: Table, target: TableState, names: Names, there: frozenset[str]
) -> dict[str, bytes]:
    """Return what later versions have in places where something stands already, by path.

    A run that was killed leaves such files, and so does a version that was asked for.
    """
    newest = target_state(table, None).version
    found = {_version(names, path) for path in there}
    wanted = {v for v in found if v is not None and target.version < v <= newest}
    made: dict[str, bytes] = {}
    for version in sorted(wanted | ({newest} - {target.version})):
        try:
            made |= _rendered(table, target_state(table, version))
        except UnsupportedError:
            # What cannot be projected, nobody projected.
            continue
    return {path: body for path, body in made.items() if path in there and path != HINT}


class _Snapshot(msgspec.Struct, rename="kebab"):
    manifest_list: str


class _Metadata(msgspec.Struct, rename="kebab"):
    snapshots: list[_Snapshot]


def projected(outputs: StoreOutputs, names: Names) -> frozenset[str]:
    """Return the files on a store that a renderer's metadata files name, and these themselves.

    Args:
        outputs: Where they are.
        names: The renderer's.
    """
    there = frozenset(outputs.paths(FOLDER))
    found: set[str] = set()
    lists: set[str] = set()
    for path in there:
        version = names.version_of(path)
        if version is None:
            continue
        body = outputs.read(path) or b""
        found.add(path)
        if outputs.read(names.hadoop(version)) == body:
            found.add(names.hadoop(version))
        lists.update(_lists(body))
    lists &= there
    manifests = {each for path in lists for each in _manifests(outputs.read(path) or b"", path)}
    return frozenset(found | lists | (manifests & there))


def _lists(metadata: bytes) -> Iterator[str]:
    try:
        snapshots = msgspec.json.decode(metadata, type=_Metadata).snapshots
    except (msgspec.DecodeError, UnicodeError):
        return
    for each in snapshots:
        yield _below(each.manifest_list)


def _manifests(body: bytes, path: str) -> Iterator[str]:
    try:
        records = list(read_container(body, path))
    except (DamagedLogError, TooLargeError):
        return
    for each in records:
        yield _below(str(each.get("manifest_path", "")))


def _below(uri: str) -> str:
    return f"{FOLDER}/{posixpath.basename(uri)}"


@frozen
class Renewing(StoreOutputs):
    """A table's folder, where some files are the ledger's own and make room for others.

    Attributes:
        own: The paths of these.
    """

    own: Collection[str] = ()

    def put(self, path: str, body: bytes) -> None:
        """Keep a file, in the place of one of our own if one stands there.

        Raises:
            StoreError: Another's file stands there.
        """
        if path in self.own and self.read(path) not in (None, body):
            self.restore(path, body)
        else:
            super().put(path, body)
