"""A table with real Parquet files, and what a test knows about them without asking the ledger."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from attrs import define, field, frozen
from pyarrow import parquet

from ledger import SchemaChange, Table
from ledger.table_handle import handle_of
from projections.paimon import PAIMON

Rows = list[dict[str, Any]]


@frozen
class DataFile:
    """A file that was written: where, with how many lenses before it, and its partition in SQL."""

    path: Path
    lenses: int
    partition: Mapping[str, str]


@frozen
class Snapshot:
    """The expected content of a snapshot: these files, through that many lenses."""

    files: tuple[DataFile, ...]
    lenses: int


@define
class Book:
    """Writes files, commits them, and keeps its own record of what each snapshot holds.

    A lens is how a row of an older file looks after a schema change, as SQL over `{rows}`: it is
    written by hand beside the change, so that nothing of the ledger's fold goes into what is
    expected. A book that follows projects after every commit.
    """

    table: Table
    has_ids: bool = True
    follows: bool = False
    live: list[DataFile] = field(factory=list)
    lenses: list[str] = field(factory=list)
    snapshots: dict[int, Snapshot] = field(factory=dict)
    tags: dict[str, int] = field(factory=dict)
    _ids: Iterator[int] = field(factory=lambda: count(1))
    _names: Iterator[int] = field(factory=count)

    @property
    def root(self) -> Path:
        return Path(self.table.location.removeprefix("file://"))

    def alter(self, changes: Sequence[SchemaChange], lens: str = "SELECT * FROM {rows}") -> None:
        self.table.alter(changes)
        self.lenses.append(lens)
        self._follow()

    def write(self, folder: str = "", partition: Mapping[str, str] | None = None) -> DataFile:
        """Write five rows with the current schema, the partition's columns left out."""
        schema = self.table.at().schema
        fields = [each for each in schema.to_arrow() if each.name not in schema.partition_keys]
        numbers = [next(self._ids) for _ in range(5)]
        columns = [
            pa.array(
                [number if each.name == "id" else _value(each, number) for number in numbers],
                _bare(each.type) if not self.has_ids else each.type,
            )
            for each in fields
        ]
        kept = fields if self.has_ids else [pa.field(e.name, _bare(e.type)) for e in fields]
        path = self.root / folder / f"{next(self._names)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table(columns, schema=pa.schema(kept)), path)
        return DataFile(path, len(self.lenses), partition or {})

    def add(self, folder: str = "", partition: Mapping[str, str] | None = None) -> DataFile:
        written = self.write(folder, partition)
        self.table.add_files([str(written.path)])
        self.live.append(written)
        self.note()
        return written

    def delete(self, *files: DataFile) -> None:
        self.table.delete_files([str(each.path.relative_to(self.root)) for each in files])
        self.live = [each for each in self.live if each not in files]
        self.note()

    def overwrite(self, new: DataFile, gone: Sequence[DataFile], **where: str) -> None:
        self.table.overwrite(self.table.data_files([str(new.path)]), where=where or None)
        self.live = [each for each in self.live if each not in gone] + [new]
        self.note()

    def rollback(self, snapshot: int) -> None:
        self.table.rollback(snapshot=snapshot)
        self.live = list(self.snapshots[snapshot].files)
        self.note()

    def rollback_to_tag(self, name: str) -> None:
        self.table.rollback(tag=name)
        self.live = list(self.snapshots[self.tags[name]].files)
        self.note()

    def tag(self, name: str, snapshot: int) -> None:
        move = self.table.replace_tag if name in self.tags else self.table.create_tag
        move(name, snapshot=snapshot)
        self.tags[name] = snapshot
        self._follow()

    def untag(self, name: str) -> None:
        self.table.delete_tag(name)
        del self.tags[name]
        self._follow()

    def expire(self, before: int) -> None:
        self.table.expire_snapshots(before=before)
        self._follow()

    def note(self) -> None:
        """Remember what the newest snapshot holds."""
        self.snapshots[self.last] = Snapshot(tuple(self.live), len(self.lenses))
        self._follow()

    def _follow(self) -> None:
        if self.follows:
            PAIMON.project(handle_of(self.table))

    @property
    def last(self) -> int:
        return self.table.state.last_snapshot_id

    def expected(self, snapshot: int | None = None) -> Rows:
        """Return the rows at a snapshot, or now: DuckDB over the files, through the lenses."""
        if snapshot is None:
            held = Snapshot(tuple(self.live), len(self.lenses))
        else:
            held = self.snapshots[snapshot]
        reads = [self._sql(each, held.lenses) for each in held.files]
        if not reads:
            return []
        query = f"SELECT * FROM ({' UNION ALL BY NAME '.join(reads)}) ORDER BY id"  # noqa: S608 - written here
        with duckdb.connect() as duck:
            rows: Rows = duck.sql(query).to_arrow_table().to_pylist()
            return rows

    def _sql(self, file: DataFile, lenses: int) -> str:
        keys = "".join(f", {value} AS {key}" for key, value in file.partition.items())
        path = str(file.path).replace("'", "''")
        rows = f"(SELECT *{keys} FROM read_parquet('{path}', hive_partitioning=false))"  # noqa: S608 - written here
        for lens in self.lenses[file.lenses : lenses]:
            rows = f"({lens.format(rows=rows)})"
        return f"SELECT * FROM {rows}"  # noqa: S608 - written here


def by_id(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: row["id"])


def _bare(data_type: pa.DataType) -> pa.DataType:
    """Return a type without the field ids of its members."""
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(each.name, _bare(each.type)) for each in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(pa.field(data_type.value_field.name, _bare(data_type.value_type)))
    if pa.types.is_map(data_type):
        return pa.map_(_bare(data_type.key_type), _bare(data_type.item_type))
    return data_type


def _value(of: pa.Field, number: int) -> Any:
    """Return some value of a type; every fourth number gives NULL where that is allowed."""
    kind = of.type
    if of.nullable and number % 4 == 0:
        return None
    if pa.types.is_struct(kind):
        return {each.name: _value(each, number + index) for index, each in enumerate(kind)}
    if pa.types.is_list(kind):
        return [_value(kind.value_field, number + index) for index in range(number % 3)]
    if pa.types.is_map(kind):
        keys = [f"k{number}", f"l{number}"][: number % 3]
        return [(key, _value(kind.item_field, number + at)) for at, key in enumerate(keys, 1)]
    return _atomic(kind, number)


def _atomic(kind: pa.DataType, number: int) -> Any:
    day = dt.datetime(2013, 1, 1, 12, 30, 15, 123456)  # noqa: DTZ001 - a wall clock
    values = {
        pa.types.is_boolean: number % 2 == 0,
        pa.types.is_integer: number,
        pa.types.is_floating: number + 0.75,
        pa.types.is_decimal: Decimal(number * 101).scaleb(-getattr(kind, "scale", 0)),
        pa.types.is_date: (day + dt.timedelta(days=number)).date(),
        pa.types.is_timestamp: day + dt.timedelta(hours=number),
    }
    return next((value for fits, value in values.items() if fits(kind)), str(number))
