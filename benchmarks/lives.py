"""Tables of several kinds with the same history, short or long.

A hundred commits of it are mostly appends, deletes, two compactions, a rollback, a tag that
replaces the previous one, an expiry and a change of columns or options; every thousand change the
layout twice. The amount of live data is constant, so that only history is longer; except for a kind
of table that keeps its tags: its state grows, too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from ledger import (
    AddColumn,
    AddPartitionField,
    DropColumn,
    FileChange,
    Ledger,
    RemovePartitionField,
    RenameColumn,
    Schema,
    SetOption,
    SnapshotPlan,
    Table,
    UpdatePartitionSpec,
)
from ledger.ledger_handle import LedgerHandle
from ledger.opening.context import TableSetting
from ledger.stores import MemoryStore, Store
from ledger.stores.concurrency import create_one_by_one
from ledger.stores.local import Durability, LocalStore
from ledger.stores.wrappers import ForwardingStore
from ledger.table_handle import handle_of

NAME = "bench.events"
PARTITIONS = 1000
_START_MILLIS = 1_700_000_000_000
_COLUMNS = {"id": "BIGINT", "day": "DATE", "amount": "INT"}
_HALF = 500


@frozen
class Kind:
    """A kind of table.

    Attributes:
        name: Name in the report.
        field_ids: Whether its files carry field ids; without, some use an older schema's names.
        partitions: Number of partitions; 0: it has no partition keys.
        manifests: Whether an engine writes the manifests, so that no file is named.
        tags_stay: Whether tags are kept for ever, so that the table has more and more of them;
            otherwise each replaces the previous one.
    """

    name: str
    field_ids: bool = True
    partitions: int = 0
    manifests: bool = False
    tags_stay: bool = False

    def schema(self) -> Schema:
        """Return the initial schema of such a table."""
        return Schema.of(_COLUMNS, partition_keys=["day"] if self.partitions else ())

    def partition(self, number: int) -> tuple[str, ...]:
        """Return the partition of a file."""
        if not self.partitions:
            return ()
        month, day = divmod(number % self.partitions, 28)
        return (f"{2000 + month // 12}-{month % 12 + 1:02d}-{day + 1:02d}",)

    def file(self, name: str, number: int, schema_id: int) -> FileChange:
        """Return a file for such a table."""
        return FileChange(
            path=f"{name}.parquet",
            partition=self.partition(number),
            schema_id=schema_id,
            field_ids=self.field_ids,
            record_count=10,
            file_size_in_bytes=1000,
            creation_time=_START_MILLIS,
            lower_bounds={0: "0100000000000000"},
            upper_bounds={0: "0900000000000000"},
        )


KINDS = (
    Kind("native, by id"),
    Kind("native, by name", field_ids=False),
    Kind("many partitions", partitions=PARTITIONS),
    Kind("engine's manifests", manifests=True),
)
TAGGED: Final = Kind("tags that stay", tags_stay=True)


@define
class Life:
    """One table and the generator of its history; every step is one commit."""

    kind: Kind
    table: Table
    _added: list[str] = field(factory=list)

    @property
    def added(self) -> tuple[str, ...]:
        """Live files that were appended since the last compaction."""
        return tuple(self._added)

    def append(self, name: str, number: int, **options: Any) -> None:
        """Add a file; in a table by name, every second one uses the first schema's names."""
        older = not self.kind.field_ids and number % 2
        self.append_of(name, number, 0 if older else self._schema_id(), **options)

    def append_of(self, name: str, number: int, schema_id: int, **options: Any) -> None:
        """Add a file that uses a schema's names."""
        if self.kind.manifests:
            facts = {"base_manifest_list": f"manifest-list-{name}"}
            self.table.commit_snapshot(SnapshotPlan("APPEND", facts=facts), **options)
            return
        file = self.kind.file(name, number, schema_id)
        self.table.append([file], **options)
        self._added.append(file.path)

    def _schema_id(self) -> int:
        head = handle_of(self.table).log.head
        return head.state.schema.id if head else 0

    def delete(self) -> None:
        """Delete the newest file."""
        self.table.delete_files([self._added.pop()])

    def overwrite(self, name: str, number: int) -> None:
        """Replace everything, or one partition of many."""
        if self.kind.manifests:
            plan = SnapshotPlan("OVERWRITE", facts={"base_manifest_list": f"manifest-list-{name}"})
            self.table.commit_snapshot(plan)
            return
        where = {"day": self.kind.partition(number)[0]} if self.kind.partitions else None
        self.table.overwrite([self.kind.file(name, number, self._schema_id())], where=where)
        self._added = []

    def compact(self, name: str, number: int) -> None:
        """Replace the files appended since the last compaction by one file."""
        if self.kind.manifests:
            self.overwrite(name, number)
            return
        file = self.kind.file(name, number, self._schema_id())
        plan = SnapshotPlan("COMPACT", (file,), delete=tuple(self._added))
        self.table.commit_snapshot(plan)
        self._added = [file.path]

    def rollback(self) -> None:
        """Roll back the newest snapshot, which added a file."""
        self.table.rollback(snapshot=self._newest() - 1)
        self._added = self._added[:-1]

    def _newest(self) -> int:
        head = handle_of(self.table).log.head
        return head.state.last_snapshot_id if head else 0

    def expire(self, kept: int) -> None:
        """Expire all but some snapshots."""
        self.table.expire_snapshots(before=max(1, self._newest() - kept))

    def widen(self, number: int) -> None:
        """Change columns or an option, at constant width."""
        turn = number // 100 % 4
        born = f"n{number - turn * 100}"
        match turn:
            case 0:
                self.table.alter([AddColumn((born,), "INT")])
            case 1:
                self.table.alter([SetOption("team.owner", str(number))])
            case 2:
                self.table.alter([RenameColumn((born,), f"{born}x")])
            case _:
                self.table.alter([DropColumn((f"{born}x",))])

    def lay_out(self, number: int) -> None:
        """Add a partition field, or remove the one that was added last."""
        name = f"by_{number // 1000}"
        if number % 1000 < _HALF:
            update: Any = AddPartitionField(("id",), "bucket[8]", name)
        else:
            update = RemovePartitionField(name)
        self.table.alter([UpdatePartitionSpec((update,))])

    def live(self, versions: Iterable[int]) -> None:
        """Make the commits of these versions."""
        for version in versions:
            self._step(version)
        handle_of(self.table).log.wait_for_caches()

    def _step(self, version: int) -> None:
        name, turn = f"f{version}", version % 100
        if version == 1 and self.kind.partitions:
            files = [self.kind.file(f"p{each}", each, 0) for each in range(self.kind.partitions)]
            self.table.append(files)
        elif turn == 2:
            self.widen(version - 2)
        elif version % 500 == 6:
            self.lay_out(version - 6)
        elif turn == 8:
            self.table.create_tag(f"t{version}")
        elif turn == 9 and version > 100 and not self.kind.tags_stay:
            self.table.delete_tag(f"t{version - 101}")
        elif turn == 10:
            self.expire(150)
        elif turn == 12:
            self.rollback()
        elif turn % 50 == 14:
            self.compact(name, version)
        elif turn % 10 == 7 and not self.kind.manifests and version % 500 != 7:
            self.delete()
        else:
            self.append(name, version)

    def reopened(self, store: Store) -> Life:
        """Return the same history on a handle that has just opened the table."""
        return Life(self.kind, lake_on(store).table(NAME), self._added)


def _append(life: Life, number: int) -> None:
    life.append(f"a{number}", 2 * number)


def _append_with_id(life: Life, number: int) -> None:
    life.append(f"i{number}", 2 * number, commit_id=f"job-{number}")


def _append_older(life: Life, number: int) -> None:
    life.append_of(f"o{number}", number, 0)


def _lay_out(life: Life, number: int) -> None:
    added = AddPartitionField(("id",), f"bucket[{number + 16}]", f"wide_{number}")
    life.table.alter([UpdatePartitionSpec((added,))])


CHANGES: Final[Mapping[str, Callable[[Life, int], object]]] = {
    "append": _append,
    "append, id given": _append_with_id,
    "append, older names": _append_older,
    "delete": lambda life, _: life.delete(),
    "compaction": lambda life, number: life.compact(f"c{number}", number),
    "overwrite": lambda life, number: life.overwrite(f"w{number}", number),
    "append again": lambda life, number: life.append(f"b{number}", 2 * number),
    "rollback": lambda life, _: life.rollback(),
    "column": lambda life, number: life.table.alter([AddColumn((f"m{number}",), "INT")]),
    "option": lambda life, number: life.table.alter([SetOption("team.owner", f"m{number}")]),
    "layout": _lay_out,
    "tag": lambda life, number: life.table.create_tag(f"g{number}"),
    "expiry": lambda life, _: life.expire(149),
}
"""Every kind of change, one commit each, in an order that meets their preconditions."""


def changes_of(kind: Kind) -> Mapping[str, Callable[[Life, int], object]]:
    """Return the changes that are possible for a kind of table."""
    less = {"delete", "append, older names"} if kind.manifests else set()
    if kind.field_ids:
        less.add("append, older names")
    return {name: change for name, change in CHANGES.items() if name not in less}


class Counted(ForwardingStore):
    """A store like a distant one: it counts requests, and none is served locally.

    Requests in the background, for caches and announcements, are not counted.
    """

    is_near = False

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.requests = 0

    def create(self, key: str, body: bytes) -> bool:
        """See `Store.create`."""
        self._count()
        return self.inner.create(key, body)

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """See `Store.create_many`."""
        create_one_by_one(self.create, steps, met)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        self._count()
        return self.inner.read(key)

    def confirm(self, key: str) -> bytes | None:
        """See `Store.confirm`."""
        self._count()
        return self.inner.confirm(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See `Store.read_many`."""
        return map(self.read, keys)

    def exists(self, key: str) -> bool:
        """See `Store.exists`."""
        self._count()
        return self.inner.exists(key)

    def replace(self, key: str, body: bytes) -> None:
        """See `Store.replace`."""
        self._count()
        self.inner.replace(key, body)

    def _count(self) -> None:
        self.requests += not is_in_background()


def is_in_background() -> bool:
    """Return whether no commit waits for this thread: it saves caches, or announces commits."""
    return threading.current_thread().name in {"ledger-caches", "ledger-activity"}


def lake_on(store: Store) -> Ledger:
    """Return a ledger on a store."""
    return Ledger(LedgerHandle(TableSetting(store=store, storage_options={}, author="bench")))


def born(kind: Kind, store: Store) -> Life:
    """Return a new table with its first commits."""
    lake = lake_on(store)
    lake.create_database(NAME.split(".", maxsplit=1)[0])
    return Life(kind, lake.create_table(NAME, kind.schema()))


def life_at(workdir: Path, kind: Kind, version: int) -> Path:
    """Return a ledger whose table of a kind is at a version, with its caches.

    Built at the first call and cached; do not write to it, take a `history.copy`.
    """
    lake = workdir / f"life-{kind.name.replace(' ', '-')}-{version}"
    if not lake.exists():
        workdir.mkdir(parents=True, exist_ok=True)
        draft = workdir / f".building-{os.getpid()}-{lake.name}"
        # In memory first, which is several times faster.
        built, kept = MemoryStore(lake.name), LocalStore(draft, durable=Durability.NONE)
        born(kind, built).live(range(1, version + 1))
        for key in list(built.keys("")):
            kept.replace(key, built.read(key) or b"")
            built.delete(key)
        draft.rename(lake)
    return lake
