"""What stands on a store of a table's Iceberg files, against what the log makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from ledger.evolution.state import TableState
from ledger.log.travel import head_state
from ledger.model.errors import DamagedLogError, UnsupportedError
from ledger.table import Table
from projections.iceberg import position as positions
from projections.iceberg.names import FOLDER, HINT, Names
from projections.iceberg.position import Position
from projections.iceberg.project import Projection, Wants, no_other
from projections.materialisation import Difference, difference, nobody, outputs_of, target_state
from projections.outputs import MemoryOutputs


def expected(
    table: Table, *, version: int | None = None, wants: Wants = no_other
) -> dict[str, bytes]:
    """Return every file that a table's projection has at a version, by path below its location."""
    outputs = MemoryOutputs()
    Projection(table, outputs, Position(), target_state(table, version), wants).run(nobody)
    return outputs.files


def cut(table: Table, stood: Position) -> str | None:
    """Return how a log is other than the one that files were made of; None if it goes on from it.

    Args:
        table: The table.
        stood: Where its files stand.
    """
    table.log.refresh()
    newest = head_state(table.log).version
    if stood.version > newest:
        return (
            f"the Iceberg files of {table.identifier} stand at version {stood.version}, and its "
            f"log ends at {newest}: commits were taken away"
        )
    if stood.version >= 0 and stood.commit and _digest(table, stood.version) != stood.commit:
        return (
            f"the Iceberg files of {table.identifier} were made of another commit "
            f"{stood.version} than the one in its log: commits were exchanged"
        )
    return None


def _digest(table: Table, version: int) -> str:
    head = table.log.head
    if head is not None and head.state.version == version:
        return head.digest
    (read,) = table.log.commits(version, version)
    return read.digest


def _damage(table: Table, stood: Position, problem: str) -> DamagedLogError:
    key = table.log.layout.commit(min(stood.version, head_state(table.log).version + 1))
    return DamagedLogError(
        f"{problem}. Restore {key} from a backup, or make the files of what the log holds: "
        f"lakeledger project iceberg {table.identifier} --rebuild",
        key,
    )


@frozen
class Compared:
    """What stands on a store, against what should.

    Attributes:
        target: The version that files are compared at.
        difference: What is wrong.
        wanted: The files that should be there, by path.
    """

    target: TableState
    difference: Difference
    wanted: Mapping[str, bytes]

    @classmethod
    def of(cls, table: Table, stood: Position) -> Compared:
        """Compare a table's files at the version that they stand at.

        At the newest, where nobody knows that, or the log was cut below it.

        Args:
            table: The table.
            stood: Where they stand.
        """
        problem = cut(table, stood)
        is_cut = problem is not None
        target = target_state(table, None if stood.version < 0 or is_cut else stood.version)
        outputs, names = outputs_of(table), Names(target.table_id)
        there = frozenset(outputs.paths(FOLDER))
        wanted = _wanted(table, target, names, there)
        found = difference(outputs, wanted, folders=(FOLDER,), hints=(HINT,))
        later = _later(table, target, names, there)
        ours = {path for path in found.foreign if later.get(path) == outputs.read(path)}
        ours.update(each.path for each in target_state(table, None).partition_statistics.values())
        in_way = {
            path
            for path in found.foreign
            if path not in ours and (path in later or _is_later(names, path, target.version))
        }
        key = positions.key(table.log.layout)
        changed = [*found.changed, *in_way, *([key] if is_cut else [])]
        missing = list(found.missing)
        if stood.version >= 0 and not is_cut:
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
            damage=None if problem is None else _damage(table, stood, problem),
        )
        return cls(target, told, wanted)


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
    wanted = expected(
        table, version=target.version, wants=lambda each: each in versions or each in older
    )
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
            made |= expected(table, version=version)
        except UnsupportedError:
            # What cannot be projected, nobody projected.
            continue
    return {path: body for path, body in made.items() if path in there and path != HINT}
