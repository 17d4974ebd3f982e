"""The formats that keep files beside a log, seen alike: what has to hold for each of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from attrs import frozen

from ledger import Table
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.delta import materialise as of_delta
from projections.iceberg import materialise as of_iceberg
from projections.materialising import Difference, Materialisation, PendingDeletes
from projections.paimon import materialise as of_paimon
from tests.faults import Died, DiesAfter, Wrapped
from tests.lakes import lake_on, memory
from tests.projections.delta import projecting as delta_projecting
from tests.projections.iceberg import projecting as iceberg_projecting
from tests.projections.paimon import projecting as paimon_projecting

# A module has what a format gives; each is checked where it is called.
_Module = Any


@frozen
class Format:
    """One format.

    Attributes:
        name: In keys and commands.
        made: The files that a projection left, of those that `expected` gives, too.
        kinds: Parts of paths, one for each kind of file.
        foreign: What files of others may be called there, sorted.
    """

    name: str
    kept: Materialisation[Any]
    projecting: _Module
    made: Callable[[Table], dict[str, bytes]]
    kinds: tuple[str, ...]
    foreign: tuple[str, ...]

    def left(self, table: Table) -> dict[str, bytes]:
        """Return what a projection left, without what only stays a while for older readers."""
        leaving = self.leaving(table)
        return {path: body for path, body in self.made(table).items() if path not in leaving}

    def leaving(self, table: Table) -> frozenset[str]:
        return PendingDeletes(handle_of(table), self.name).paths()

    def random_table(self, seed: int, store: Store, steps: int = 40) -> Table:
        table: Table = self.projecting.random_table(seed, store, steps)
        return table

    def go_on(self, table: Table, rng: random.Random, steps: int) -> None:
        self.projecting.go_on(table, rng, steps)

    def project(self, table: Table) -> int:
        return self.kept.project(handle_of(table))

    def advance(self, table: Table, *, version: int | None) -> int:
        return self.kept.advance(handle_of(table), version=version)

    def expected(self, table: Table, version: int | None = None) -> dict[str, bytes]:
        return self.kept.expected(handle_of(table), version=version)

    def verify(self, table: Table) -> Difference:
        return self.kept.verify(handle_of(table))

    def rebuild(self, table: Table) -> Difference:
        return self.kept.rebuild(handle_of(table))

    def position(self, table: Table) -> Any:
        return self.kept.position(handle_of(table))

    def stands(self, table: Table) -> int:
        return self.kept.freshness(handle_of(table)).version

    def all_files(self, table: Table) -> dict[str, bytes]:
        files: dict[str, bytes] = self.projecting.Left.by(table).files
        return files

    def is_consistent(self, table: Table) -> bool:
        return bool(self.projecting.is_consistent(self.projecting.Left.by(table)))

    def position_key(self, table: Table) -> str:
        return self.kept.key(handle_of(table))

    def is_position(self, key: str) -> bool:
        return key.endswith(f"/projections/{self.name}.json")

    def halfway(self, seed: int) -> tuple[Store, Table]:
        """Return a table whose newer half, which expires some of the older, is yet to project."""
        store = memory()
        table = self.random_table(seed, store, 14)
        self.project(table)
        self.go_on(table, random.Random(seed), 16)
        return store, table

    def kill(self, store: Store, writes: int) -> bool:
        """Project with a process that is killed before a write; return whether it was."""
        try:
            self.project(through(DiesAfter(store, writes)))
        except Died:
            return True
        return False

    def assert_exact(self, table: Table, version: int | None = None) -> None:
        left, wanted = self.left(table), self.expected(table, version)
        assert self.leaving(table).isdisjoint(wanted)
        assert sorted(left) == sorted(wanted)
        assert left == wanted
        if version is None:
            assert self.verify(table).is_empty


PAIMON = Format(
    "paimon",
    of_paimon.PAIMON,
    paimon_projecting,
    lambda table: paimon_projecting.Left.by(table).files,
    ("schema/", "snapshot/snapshot-", "tag/", "manifest/manifest-list-", "manifest/manifest-"),
    ("snapshot/snapshot-x", "tag/tag-mine", "manifest/manifest-mine"),
)
ICEBERG = Format(
    "iceberg",
    of_iceberg.ICEBERG,
    iceberg_projecting,
    lambda table: iceberg_projecting.Left.by(table).newest(table),
    ("-m0.avro", "snap", "metadata/0", "metadata/v"),
    ("metadata/00001-mine.metadata.json", "metadata/mine-m0.avro", "metadata/mine.stats"),
)
DELTA = Format(
    "delta",
    of_delta.DELTA,
    delta_projecting,
    lambda table: delta_projecting.Left.by(table).files,
    (".json", ".checkpoint.parquet"),
    ("_delta_log/mine.json",),
)


class Unlocked(Wrapped):
    """A store that lets everybody in; `action` runs right before write `nth` among those `on`."""

    def __init__(
        self, inner: Store, nth: int, action: Callable[[], object], on: Callable[[str], bool]
    ) -> None:
        super().__init__(inner)
        self.writes_left = nth
        self._action = action
        self._on = on

    def lock(self, key: str) -> AbstractContextManager[None]:
        del key
        return nullcontext()

    def create(self, key: str, body: bytes) -> bool:
        self._writing(key)
        return super().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        self._writing(key)
        super().replace(key, body)

    def delete(self, key: str) -> None:
        self._writing(key)
        super().delete(key)

    def _writing(self, key: str) -> None:
        self.writes_left -= self._on(key)
        if self.writes_left == 0 and self._on(key):
            self._action()


class Saved:
    """The content of a store, to restore later."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bodies = {key: store.read(key) or b"" for key in store.keys("")}

    def restore(self) -> Table:
        for key in list(self._store.keys("")):
            self._store.delete(key)
        for key, body in self._bodies.items():
            self._store.create(key, body)
        return through(self._store)


def through(store: Store) -> Table:
    return lake_on(store).table("shop.orders")
