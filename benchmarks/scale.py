"""Requests, bytes and processor time of each operation at two sizes: the constants of `scale.md`.

A ledger in memory answers like a distant store and counts the requests of the caller; those of the
background, for caches, are left out. Every dimension has a ledger of its own for each size: commits
of one table, its columns, files added by one commit, and tables. Time is processor time, the least
of some repeats; a formula's slope is the difference of two sizes by that of their numbers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import cyclopts

# Loaded, as in any process that reads Parquet: the first use would be timed otherwise.
import pyarrow.parquet  # noqa: F401
from attrs import frozen

from benchmarks.lives import Counted, is_in_background, lake_on
from benchmarks.measure import Figure, Output, Report, question_of, show
from ledger import FileChange, Ledger, Schema, SetOption, Table
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.stores import MemoryStore, Store

NAME: Final = "shop.t0"
REPEATS: Final = 5


class Metered(Counted):
    """A store that also counts the bytes of the caller's requests."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read_bytes = self.written_bytes = 0
        self._turn = threading.Lock()

    def create(self, key: str, body: bytes) -> bool:
        """See `Store.create`."""
        self._add(written=len(body))
        return super().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        """See `Store.replace`."""
        self._add(written=len(body))
        super().replace(key, body)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        body = super().read(key)
        self._add(read=len(body or b""))
        return body

    def confirm(self, key: str) -> bytes | None:
        """See `Store.confirm`."""
        body = super().confirm(key)
        self._add(read=len(body or b""))
        return body

    def _add(self, *, read: int = 0, written: int = 0) -> None:
        if not is_in_background():
            with self._turn:
                self.read_bytes += read
                self.written_bytes += written


@frozen
class Warm:
    """A store, and handles that have read its ledger and its table, as in a long program."""

    store: Store
    lake: Ledger
    table: Table


Operation = Callable[[Warm, int], object]


@frozen
class Cost:
    """Cost of one call for its caller."""

    requests: int
    read_kb: float
    written_kb: float
    cpu_ms: float


@frozen
class Dimension:
    """A number that grows, and the operations whose cost may grow with it.

    Attributes:
        name: Plural of what is counted.
        sizes: The two sizes.
        build: Makes the ledger of a size.
        operations: The operations by name; each gets a number that is new for each call.
    """

    name: str
    sizes: tuple[int, int]
    build: Callable[[Ledger, int], object]
    operations: Mapping[str, Operation]


def _build_commits(lake: Ledger, size: int) -> None:
    table = _table(lake, 10)
    for number in range(size):
        table.append([_file(f"a{number}")])


def _build_columns(lake: Ledger, size: int) -> None:
    _table(lake, size).append([_file("a")])


def _build_files(lake: Ledger, size: int) -> None:
    _table(lake, 10).append([_file(f"wide/{number:08}") for number in range(size)])


def _build_tables(lake: Ledger, size: int) -> None:
    _table(lake, 10)
    schema = Schema.of({"id": "BIGINT"})
    for first in range(1, size, 200):
        numbers = range(first, min(size, first + 200))
        lake.create_tables({f"shop.t{number}": schema for number in numbers})
    while lake.state.version < CHECKPOINT_INTERVAL:
        lake.rename_table("shop.t1", "shop.renamed")
        lake.rename_table("shop.renamed", "shop.t1")


def _table(lake: Ledger, width: int) -> Table:
    lake.create_database("shop")
    return lake.create_table(NAME, Schema.of({f"c{number}": "INT" for number in range(width)}))


def _file(path: str) -> FileChange:
    return FileChange(path=f"{path}.parquet", record_count=10, file_size_in_bytes=1_000)


def _open(warm: Warm, _number: int) -> Table:
    return lake_on(warm.store).table(NAME)


def _append(warm: Warm, number: int) -> None:
    warm.table.append([_file(f"more/{number}")])


def _set_option(warm: Warm, number: int) -> None:
    warm.table.alter([SetOption("team.owner", str(number))])


def _as_of(warm: Warm, number: int) -> None:
    newest = warm.table.state.version
    warm.table.at(version=(newest // 2 + number) % newest).schema  # noqa: B018 - reads it


def _log(warm: Warm, _number: int) -> None:
    list(warm.table.entries(last=10))


def _append_many(warm: Warm, number: int) -> None:
    files = warm.table.state.totals.file_count
    warm.table.append([_file(f"again/{number}/{each:08}") for each in range(files)])


def _remove(warm: Warm, number: int) -> None:
    warm.table.delete_files([f"wide/{number:08}.parquet"])


def _remove_fresh(warm: Warm, number: int) -> None:
    _open(warm, number).delete_files([f"wide/{number:08}.parquet"])


def _list_files(warm: Warm, number: int) -> None:
    sum(1 for _ in _open(warm, number).at().files)


def _create(warm: Warm, number: int) -> None:
    warm.lake.create_table(f"shop.new{number}", Schema.of({"id": "BIGINT"}))


def _create_fresh(warm: Warm, number: int) -> None:
    lake_on(warm.store).create_table(f"shop.fresh{number}", Schema.of({"id": "BIGINT"}))


def _create_many(warm: Warm, number: int) -> None:
    schema = Schema.of({"id": "BIGINT"})
    warm.lake.create_tables({f"shop.many{number}x{each}": schema for each in range(10)})


def _list_tables(warm: Warm, _number: int) -> None:
    lake_on(warm.store).tables()


DIMENSIONS: Final = (
    Dimension(
        "commits",
        (250, 2_550),
        _build_commits,
        {
            "open a table": _open,
            "append a file": _append,
            "set an option": _set_option,
            "read an older version": _as_of,
            "the newest ten log entries": _log,
        },
    ),
    Dimension(
        "columns",
        (10, 1_010),
        _build_columns,
        {"open a table": _open, "append a file": _append, "set an option": _set_option},
    ),
    Dimension(
        "files of one commit",
        (1_000, 101_000),
        _build_files,
        {
            "open a table": _open,
            "append a file": _append,
            "remove a file": _remove,
            "remove a file by a fresh handle": _remove_fresh,
            "list live files": _list_files,
            "append as many files as there are": _append_many,
        },
    ),
    Dimension(
        "tables",
        (10, 10_010),
        _build_tables,
        {
            "open a table": _open,
            "append a file": _append,
            "create a table": _create,
            "create a table by a fresh handle": _create_fresh,
            "create ten tables at once": _create_many,
            "list tables": _list_tables,
        },
    ),
)


def run(dimensions: Sequence[Dimension] = DIMENSIONS, *, repeats: int = REPEATS) -> Report:
    figures: list[Figure] = []
    lines = [f"{'operation':<54} {'requests':>8} {'read kB':>9} {'written kB':>10} {'cpu ms':>8}"]
    for dimension in dimensions:
        costs = {size: _costs(dimension, size, repeats) for size in dimension.sizes}
        small, large = dimension.sizes
        for name in dimension.operations:
            for size in dimension.sizes:
                cost = costs[size][name]
                lines.append(
                    f"{f'{name}, {size:,} {dimension.name}':<54} {cost.requests:>8} "
                    f"{cost.read_kb:>9.1f} {cost.written_kb:>10.1f} {cost.cpu_ms:>8.2f}"
                )
            figures += _slopes(name, dimension, costs[small][name], costs[large][name])
    landed = [(each.name, each.sizes) for each in dimensions]
    return Report(question_of(__doc__), f"{landed}", tuple(figures), tuple(lines))


def _costs(dimension: Dimension, size: int, repeats: int) -> dict[str, Cost]:
    store = Metered(MemoryStore(f"scale-{dimension.name}-{size}"))
    lake = lake_on(store.inner)
    dimension.build(lake, size)
    lake.close()
    try:
        return {
            name: _cost(operation, store, (repeats + 1) * place, repeats)
            for place, (name, operation) in enumerate(dimension.operations.items())
        }
    finally:
        for key in list(store.inner.keys("")):
            store.inner.delete(key)


def _cost(operation: Operation, store: Metered, first: int, repeats: int) -> Cost:
    lake = lake_on(store)
    warm = Warm(store, lake, lake.table(NAME))
    operation(warm, first)
    found = []
    for number in range(first + 1, first + 1 + repeats):
        before = store.requests, store.read_bytes, store.written_bytes
        begun = time.process_time_ns()
        operation(warm, number)
        took_ms = (time.process_time_ns() - begun) / 1e6
        now = store.requests, store.read_bytes, store.written_bytes
        requests, read, written = (
            after - earlier for after, earlier in zip(now, before, strict=True)
        )
        found.append(Cost(requests, read / 1e3, written / 1e3, took_ms))
    lake.close()
    return min(found, key=lambda each: each.cpu_ms)


def _slopes(name: str, dimension: Dimension, small: Cost, large: Cost) -> Iterator[Figure]:
    thousands = (dimension.sizes[1] - dimension.sizes[0]) / 1_000
    what = f"{name}, for each 1,000 {dimension.name}"
    yield Figure(f"{what}: requests", (large.requests - small.requests) / thousands, "")
    yield Figure(f"{what}: read", (large.read_kb - small.read_kb) / thousands, "kB")
    yield Figure(f"{what}: time", (large.cpu_ms - small.cpu_ms) / thousands, "ms")


def main(*, repeats: int = REPEATS, output: Output = "text") -> None:
    """Count requests and bytes of operations at two sizes.

    Args:
        repeats: Number of calls of each operation.
        output: text or json.
    """
    show(run(repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
