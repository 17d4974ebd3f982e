"""Random lives with position deletes: engines read of each snapshot what its files hold."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import define, field
from pyarrow import parquet
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    FileChange,
    InvalidInputError,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    TableAt,
    UpdateColumnType,
)
from ledger.table_handle import handle_of
from projections.iceberg import Names, verify
from tests.readers.engines import HAS_CHDB, chdb_rows, duckdb_rows
from tests.readers.lakehouse import Rows, add_rows, by_id, folder_of

_DELETES = pa.schema(
    [
        pa.field(
            "file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}
        ),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
)


@define
class Life:
    """A table that changes at random, and when each of its files came first."""

    table: Table
    rng: random.Random
    has_ids: Callable[[random.Random], bool]
    came: dict[str, int] = field(factory=dict)
    rows: int = 0

    def step(self) -> None:
        steps = [self.append] * 4 + [self.delete_rows] * 3 + [self.delete_files, self.rollback] * 2
        steps += [self.evolve] * 3 + [self.tag, self.expire, self.upgrade]
        try:
            self.rng.choice(steps)()
        except InvalidInputError:
            # A name that is taken, a version that takes no deletes: the next step is another.
            return

    def append(self) -> None:
        rows = []
        for _ in range(self.rng.randrange(1, 4)):
            row: dict[str, Any] = {"id": self.rows}
            for each in self.table.state.schema.fields[1:]:
                value = self.rng.choice((None, self.rows, -1))
                is_text = each.type.root == "VARCHAR"
                row[each.name] = f"t{value}" if is_text and value is not None else value
            rows.append(row)
            self.rows += 1
        path = f"data/{self.rows}.parquet"
        add_rows(self.table, path, rows, has_ids=self.has_ids(self.rng))
        self.came[path] = self.table.state.last_snapshot_id

    def delete_rows(self) -> None:
        data = [each for each in self.table.at().files if each.content == "data"]
        if not data:
            return
        of = self.rng.choice(data)
        named = {
            "file_path": [f"{self.table.location}/{of.path}"],
            "pos": [self.rng.randrange(of.record_count)],
        }
        path = f"data/d{len(self.came)}.parquet"
        body = pa.table(named, schema=_DELETES)
        parquet.write_table(body, folder_of(self.table) / path)
        size = (folder_of(self.table) / path).stat().st_size
        change = FileChange(
            path=path,
            record_count=1,
            file_size_in_bytes=size,
            content="position-deletes",
            field_ids=True,
        )
        self.table.append([change])
        self.came[path] = self.table.state.last_snapshot_id

    def delete_files(self) -> None:
        live = [each.path for each in self.table.at().files]
        if live:
            self.table.delete_files(self.rng.sample(live, self.rng.randrange(1, len(live) + 1)))

    def _readable(self) -> list[int]:
        state = self.table.state
        tagged = [each.snapshot_id for each in state.tags.values()]
        return [*tagged, *range(state.earliest_snapshot_id, state.last_snapshot_id + 1)]

    def rollback(self) -> None:
        if self._readable():
            self.table.rollback(snapshot=self.rng.choice(self._readable()))

    def evolve(self) -> None:
        names = list(self.table.state.schema.names)[1:]
        new = f"c{self.rng.randrange(5)}"
        kind = self.rng.choice(("INT", "STRING"))
        changes: list[Any] = [AddColumn((new,), kind)]
        if names:
            old = self.rng.choice(names)
            changes += [
                RenameColumn((old,), new),
                DropColumn((old,)),
                UpdateColumnType((old,), "BIGINT"),
            ]
        self.table.alter([self.rng.choice(changes)])

    def tag(self) -> None:
        name = f"t{self.rng.randrange(2)}"
        move = self.table.replace_tag if name in self.table.state.tags else self.table.create_tag
        if self._readable():
            move(name, snapshot=self.rng.choice(self._readable()), time_retained_millis=86_400_000)

    def expire(self) -> None:
        state = self.table.state
        if state.last_snapshot_id > state.earliest_snapshot_id + 4:
            self.table.expire_snapshots(before=state.earliest_snapshot_id + 2)

    def upgrade(self) -> None:
        if self.rng.random() < 0.3:
            self.table.alter([SetOption("format-version", "3")])

    def expected(self, at: TableAt) -> Rows:
        """Return the rows at an instant: plain reads of the live files, less what is deleted."""
        files = at.files
        gone: set[tuple[str, int]] = set()
        for each in files:
            if each.content == "position-deletes":
                read = parquet.read_table(folder_of(self.table) / each.path)
                for uri, pos in zip(
                    read["file_path"].to_pylist(), read["pos"].to_pylist(), strict=True
                ):
                    path = uri.removeprefix(f"{self.table.location}/")
                    if self.came[path] <= self.came[each.path]:
                        gone.add((path, pos))
        ids = {each.name: each.id for each in at.schema.fields}
        found = []
        for each in files:
            if each.content != "data":
                continue
            written = {e.id: e.name for e in self.schema(each.schema_id).fields}
            read_rows = parquet.read_table(folder_of(self.table) / each.path).to_pylist()
            for pos, row in enumerate(read_rows):
                if (each.path, pos) not in gone:
                    named = {name: row.get(written.get(key, "")) for name, key in ids.items()}
                    found.append(named)
        return by_id(found)

    def schema(self, schema_id: int) -> Schema:
        (found,) = handle_of(self.table).past.schemas([schema_id])
        return found


def _pyiceberg(life: Life, snapshot: int | None) -> Rows:
    names, version = Names(life.table.state.table_id), life.table.state.version
    metadata = f"{life.table.location}/{names.metadata(version)}"
    scan = StaticTable.from_metadata(metadata).scan(snapshot_id=snapshot)
    rows: Rows = scan.to_arrow().to_pylist()
    return rows


READERS: dict[str, Callable[[Life, int | None], Rows]] = {
    "ledger": lambda life, at: life.table.at(snapshot=at).to_arrow().to_pylist(),
    "pyiceberg": _pyiceberg,
    "duckdb": lambda life, at: duckdb_rows(folder_of(life.table), at),
    "clickhouse": lambda life, at: chdb_rows(folder_of(life.table), at),
}
_ABSENT = {"clickhouse": not HAS_CHDB}


def lived(place: Path, seed: int, has_ids: Callable[[random.Random], bool]) -> Life:
    lake = ledger.open(str(place))
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg", "format-version": "2"}
    schema = Schema.of({"id": "BIGINT", "n": "INT"}, options=options)
    rng = random.Random(seed)
    life = Life(lake.create_table("shop.t", schema), rng, has_ids)
    (folder_of(life.table) / "data").mkdir(parents=True)
    for _ in range(30):
        life.step()
        if rng.random() < 0.2:
            life.table.project("iceberg")
    life.table.project("iceberg")
    return life


def _differences(life: Life, reader: str) -> list[str]:
    state = life.table.state
    tagged = {each.snapshot_id for each in state.tags.values()}
    readable = {*tagged, *range(state.earliest_snapshot_id, state.last_snapshot_id + 1)}
    wrong = []
    for snapshot in (None, *sorted(readable)):
        wanted = life.expected(life.table.at(snapshot=snapshot))
        found = by_id(READERS[reader](life, snapshot))
        if found != wanted:
            wrong.append(f"snapshot {snapshot}: {found} instead of {wanted}")
    return wrong


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("files", ["with ids", "without ids", "mixed"])
@pytest.mark.parametrize("reader", READERS)
def test_each_snapshot_reads_as_its_files_hold(
    tmp_path: Path, reader: str, files: str, seed: int
) -> None:
    if _ABSENT.get(reader):
        pytest.skip(f"{reader} is not installed")
    shares = {"with ids": 1.0, "without ids": 0.0, "mixed": 0.5}
    life = lived(tmp_path / "lake", seed, lambda rng: rng.random() < shares[files])
    assert verify(handle_of(life.table)).is_empty
    assert _differences(life, reader) == []
