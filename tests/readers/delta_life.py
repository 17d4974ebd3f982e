"""Random lives of Delta tables over real Parquet files, and what plain pyarrow reads of them.

Every life knows, for each snapshot, the rows of its live files in the schema of that moment: each
column by its field id, under the name that the file was written with.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import define, evolve, field
from msgspec.structs import replace

from ledger import (
    AddColumn,
    DataField,
    DropColumn,
    FileChange,
    InvalidInputError,
    Ledger,
    RenameColumn,
    Schema,
    Table,
    UpdateColumnType,
)
from ledger.files import data_files
from ledger.history.older import schemas, schemas_by_id
from ledger.model import PartitionSpec, encode_value
from ledger.model import types as t
from ledger.table_handle import handle_of

Row = tuple[Any, ...]

_WALLS = (
    dt.datetime(1955, 3, 4, 5, 6, 7, 891011),  # noqa: DTZ001 - a wall clock
    dt.datetime(2024, 1, 2),  # noqa: DTZ001 - another
    None,
)
PARTITIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "p_text": ("STRING", ("a b/c=d%20", "ü+:", None)),
    "p_bytes": ("BYTES", (b"a b/c=d%20", "\xff".encode(), b"\x01\x02\x7f", None)),
    "p_date": ("DATE", (dt.date(1901, 2, 3), dt.date(2024, 1, 2), None)),
    "p_int": ("INT", (-5, 7, None)),
    "p_big": ("BIGINT", (2**40, -1)),
    "p_small": ("SMALLINT", (-3, 4)),
    "p_tiny": ("TINYINT", (-3, 4)),
    "p_bool": ("BOOLEAN", (True, False, None)),
    "p_decimal": ("DECIMAL(9,2)", (Decimal("0.25"), Decimal("2.00"), None)),
    "p_double": ("DOUBLE", (-1.5, 2.25)),
    "p_float": ("FLOAT", (-1.5, 2.25)),
    "p_ntz": (
        "TIMESTAMP(6)",
        _WALLS,
    ),
    "p_ltz": (
        "TIMESTAMP_LTZ(6)",
        (dt.datetime(1955, 3, 4, 5, 6, 7, 891011, dt.UTC), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)),
    ),
}
"""A column of every type that can partition a Delta table, with values of it."""


def columns(*, with_wall_clocks: bool) -> dict[str, Any]:
    """Return the columns of a life; wall clocks ask for a table feature."""
    found: dict[str, Any] = {
        "id": "BIGINT NOT NULL",
        "name": "STRING",
        "amount": "DECIMAL(12,3)",
        "day": "DATE",
        "at": "TIMESTAMP_LTZ(6)",
        "ratio": "DOUBLE",
        "small": "SMALLINT",
        "flag": "BOOLEAN",
        "raw": "BYTES",
        "inside": t.RowType(
            (t.DataField(0, "x", t.IntType()), t.DataField(1, "y", t.VarCharType(99)))
        ),
        "many": t.ArrayType(t.IntType()),
        "pairs": t.MapType(t.VarCharType(99, nullable=False), t.BigIntType()),
    }
    if with_wall_clocks:
        found["wall"] = "TIMESTAMP(6)"
    return found


@define
class Life:
    """One table and what it held at every snapshot."""

    lake: Ledger
    folder: Path
    rng: random.Random
    options: dict[str, str]
    partition: str | None = None
    widens: bool = False
    has_walls: bool = False
    is_mapped: bool = False
    number: int = 0
    files: int = 0
    constant: Any = None
    at_snapshot: dict[int, tuple[tuple[str, ...], list[Row]]] = field(factory=dict)

    def begin(self, name: str) -> Table:
        """Create the table."""
        found = columns(with_wall_clocks=self.has_walls)
        keys = []
        if self.partition is not None:
            found[self.partition] = PARTITIONS[self.partition][0]
            keys = [self.partition]
        return self.lake.create_table(
            name, Schema.of(found, partition_keys=keys, options=self.options)
        )

    def value(  # noqa: C901, PLR0911, PLR0912 - one case a kind
        self, column: DataField, number: int
    ) -> Any:
        """Return a value of a column; every fourth is NULL where it may be."""
        if column.type.nullable and self.rng.random() < 0.25:
            return None
        since = dt.datetime(1945, 1, 1)  # noqa: DTZ001 - a wall clock
        moment = since + dt.timedelta(days=97 * number, microseconds=number)
        match column.type:
            case t.VarCharType():
                return f"text {number} ü"
            case t.DecimalType(scale=scale):
                return Decimal(number - 50).scaleb(-scale)
            case t.DateType():
                return moment.date()
            case t.LocalZonedTimestampType():
                return moment.replace(tzinfo=dt.UTC)
            case t.TimestampType():
                return moment
            case t.DoubleType() | t.FloatType():
                return number / 4
            case t.BooleanType():
                return number % 2 == 0
            case t.VarBinaryType():
                return bytes([number % 256, 0])
            case t.RowType(fields=fields):
                return {each.name: self.value(each, number) for each in fields}
            case t.ArrayType(element=element):
                inner = t.DataField(0, "e", element)
                return [self.value(inner, number + each) for each in range(number % 3)]
            case t.MapType(value=value):
                inner = t.DataField(0, "v", value)
                return [(f"k{each}", self.value(inner, number)) for each in range(number % 3)]
            case _:
                return number % 100 - 50

    def write(self, table: Table) -> Path:
        """Write a file of the current schema, of one partition."""
        schema = table.at().schema
        if self.partition is not None:
            self.constant = self.rng.choice(PARTITIONS[self.partition][1])
        size = self.rng.randrange(1, 5)
        numbers = range(self.number, self.number + size)
        self.number += size
        data = {
            each.name: [self.constant] * size
            if each.name == self.partition
            else [self.value(each, number) for number in numbers]
            for each in schema.fields
        }
        path = self.folder / handle_of(table).path / f"f {self.files}%.parquet"
        self.files += 1
        path.parent.mkdir(parents=True, exist_ok=True)
        arrow = schema.to_arrow()
        if self.rng.random() < 0.5:
            arrow = pa.schema([each.remove_metadata() for each in arrow])
        pq.write_table(pa.table(data, schema=arrow), path)
        return path

    def add(self, table: Table) -> None:
        """Append a file."""
        table.append(self.files_of(table))
        self.note(table)

    def files_of(self, table: Table) -> list[FileChange]:
        """Write a file of the current schema; return it as the ledger registers it."""
        (found,) = data_files(
            [str(self.write(table))],
            state=evolve(table.at().state, specs=(PartitionSpec(0),), default_spec_id=0),
            history=schemas(handle_of(table).log),
            location=table.location,
        )
        if self.partition is None:
            return [found]
        column = table.at().schema.field(self.partition)
        value = encode_value(_as_stored(self.constant, column.type), column.type)
        return [replace(found, partition=(value,))]

    def step(self, table: Table) -> None:
        """Take one step; what the formats refuse is not taken."""
        try:
            self._step(table)
        except InvalidInputError:
            return
        finally:
            self.note(table)

    def _step(self, table: Table) -> None:
        live = [each.path for each in table.at().files]
        match self.rng.randrange(12):
            case 0 | 1 | 2 | 3 | 4:
                table.append(self.files_of(table))
            case 5:
                table.delete_files(self.rng.sample(live, min(1, len(live))))
            case 6:
                table.overwrite(self.files_of(table))
            case 7 if table.state.last_snapshot_id:
                first = table.state.earliest_snapshot_id
                table.rollback(snapshot=self.rng.randint(first, table.state.last_snapshot_id))
            case _:
                self._alter(table)

    def _alter(self, table: Table) -> None:
        names = [each for each in table.at().schema.names if each not in (self.partition, "id")]
        name = self.rng.choice(names)
        match self.rng.randrange(5):
            case 0:
                table.alter([AddColumn((f"c{table.state.version}",), self.rng.choice(_ADDED))])
            case 1 if self.is_mapped:
                table.alter([RenameColumn((name,), f"r{table.state.version}")], message="a name")
            case 2 if self.is_mapped:
                table.alter([DropColumn((name,))])
            case 3 if self.widens and "small" in names:
                table.alter([UpdateColumnType(("small",), "INT")])
            case _:
                return

    def note(self, table: Table) -> None:
        """Remember what the newest snapshot holds, read by plain pyarrow."""
        state = table.at().state
        if state.last_snapshot_id not in self.at_snapshot and state.snapshot is not None:
            self.at_snapshot[state.last_snapshot_id] = (
                state.schema.names,
                sorted(rows_of(table), key=repr),
            )


_ADDED = ("STRING", "INT", "DATE")


def _as_stored(value: Any, data_type: t.DataType) -> Any:
    """Return a value as the ledger computes with it."""
    match value:
        case dt.datetime():
            moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
            return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - dt.date(1970, 1, 1)).days
        case Decimal() if isinstance(data_type, t.DecimalType):
            return int(value.scaleb(data_type.scale))
        case _:
            return value


def rows_of(table: Table) -> Iterator[Row]:
    """Yield the rows of a table's live files in its newest schema, by plain pyarrow reads."""
    schema = table.at().schema
    for file in table.at().files:
        written = schemas_by_id(handle_of(table).log, [file.schema_id])[file.schema_id]
        folder = Path(unquote(urlparse(table.location).path))
        data = pq.ParquetFile(folder / file.path).read().to_pylist()
        for row in data:
            yield tuple(plain(_found(row, each, written.fields)) for each in schema.fields)


def _found(row: Any, wanted: DataField, fields: tuple[DataField, ...]) -> Any:
    held = next((each for each in fields if each.id == wanted.id), None)
    if held is None or row is None:
        return None
    value = row.get(held.name)
    if isinstance(wanted.type, t.RowType) and isinstance(held.type, t.RowType):
        if value is None:
            return None
        return {e.name: _found(value, e, held.type.fields) for e in wanted.type.fields}
    return value


def plain(value: Any) -> Any:  # noqa: PLR0911 - one case a kind
    """Return a value as all readers are compared by."""
    match value:
        case dict():
            return tuple((key, plain(each)) for key, each in value.items())
        case list() | tuple():
            return tuple(plain(each) for each in value)
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).isoformat()
        case dt.datetime() | dt.date():
            return value.isoformat()
        case bytearray() | memoryview():
            return bytes(value)
        case Decimal():
            return format(value, "f")
        case _:
            return value
