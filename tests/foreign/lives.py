"""Lives of foreign tables: imported, followed, promoted, changed, appended to, and read by all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Final

import pyarrow as pa
from attrs import Factory, define
from deltalake import DeltaTable, QueryBuilder
from pyarrow import parquet
from pyiceberg.table import StaticTable

import ledger
from ledger import AddColumn, Ledger, LedgerError, RenameColumn, SetOption, Table
from ledger.model import from_arrow_type, type_to_wire
from tests.foreign.model import KINDS, Model, Row, value_of
from tests.foreign.sources import Source
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.engines import duckdb_connection

IDENTIFIER: Final = "s.t"
HALF: Final = 0.5
Reader = Callable[[Table], pa.Table]


def _folder(table: Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def _by_pyiceberg(table: Table) -> pa.Table:
    version = table.project("iceberg")
    path = f"{table.location}/metadata/v{version}.metadata.json"
    return StaticTable.from_metadata(path).scan().to_arrow()


def _by_duckdb_iceberg(table: Table) -> pa.Table:
    version = table.project("iceberg")
    path = f"{_folder(table)}/metadata/v{version}.metadata.json"
    with duckdb_connection("avro", "iceberg") as connection:
        return connection.sql(f"SELECT * FROM iceberg_scan('{path}')").to_arrow_table()  # noqa: S608 - written here


def _by_delta_rs(table: Table) -> pa.Table:
    table.project("delta")
    found = QueryBuilder().register("t", DeltaTable(str(_folder(table))))
    return pa.table(found.execute("select * from t").read_all())


def _by_duckdb_delta(table: Table) -> pa.Table:
    table.project("delta")
    with duckdb_connection("delta") as connection:
        return connection.sql(f"SELECT * FROM delta_scan('{_folder(table)}')").to_arrow_table()  # noqa: S608 - written here


def _by_pypaimon(table: Table) -> pa.Table:
    table.project("paimon")
    catalog = CatalogFactory.create({"warehouse": str(_folder(table).parents[1])})
    builder = catalog.get_table(IDENTIFIER).new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def _by_ledger(table: Table) -> pa.Table:
    return table.at().to_arrow()


READERS: Final[Mapping[str, Mapping[str, Reader]]] = {
    "iceberg": {
        "to_arrow": _by_ledger,
        "PyIceberg": _by_pyiceberg,
        "DuckDB's iceberg_scan": _by_duckdb_iceberg,
    },
    "delta": {"delta-rs": _by_delta_rs, "DuckDB's delta_scan": _by_duckdb_delta},
    "paimon": {"pypaimon": _by_pypaimon},
}
"""Those of each declared format, by name."""


def is_here(format_name: str) -> bool:
    """Return whether the readers of a format are installed."""
    return format_name != "paimon" or find_spec("pypaimon") is not None


@define
class Report:
    """The results of some runs.

    Attributes:
        tables: How many there were.
        reads: How many times a reader read a whole table.
        unreadable: Reads of what a reader is known not to read.
        wrong: Reads that found other rows than were written, or that failed.
        refused: How many times the ledger refused each thing.
    """

    tables: int = 0
    reads: int = 0
    unreadable: int = 0
    wrong: list[str] = Factory(list)
    refused: Counter[str] = Factory(Counter)

    def add(self, other: Report) -> None:
        """Count another one's, too."""
        self.tables += other.tables
        self.reads += other.reads
        self.unreadable += other.unreadable
        self.wrong += other.wrong
        self.refused += other.refused

    def __str__(self) -> str:
        reads = f"{self.reads} reads, {self.unreadable} of them of what a reader cannot read"
        counts = f"{self.tables} tables, {reads}, {len(self.wrong)} wrong"
        refused = [f"refused {n} times: {each}" for each, n in self.refused.items()]
        return "\n".join([counts, *self.wrong, *refused])


EXPECTED_REFUSALS: Final = (
    "one name has to find a column in all files",
    "and Paimon's readers find it by its name in the schema",
    "it was imported from Iceberg, and Paimon's files have neither",
    "it was imported from Iceberg, and what its engines committed there",
    "it was imported from Paimon, and what its engines committed there",
    "it was imported from Paimon, and the manifests of its snapshots",
)
"""Parts of error messages for tables that a format cannot express."""


class Life:
    """The random history of one table.

    Args:
        folder: Its location.
        source: The writer that creates it.
        seed: Of the random steps.
        report: Takes note of what readers find.
        left_out: Steps that it does not take: `promote`, a change, `declare FORMAT`.
    """

    def __init__(
        self,
        folder: Path,
        source: Source,
        seed: str,
        report: Report,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        self.rng, self.source, self.report, self.seed = Random(seed), source, report, seed
        self.left_out = left_out
        self.model = Model(self.rng, {"id": pa.int64()})
        self.lake: Ledger = ledger.open(folder / "lake")
        self.steps: list[str] = []
        self.is_wrong = self.members_renamed = False
        self.first_schema: pa.Schema = pa.schema([])
        self.first_names: dict[str, str] = {}
        self.names = iter(range(10_000))
        report.tables += 1

    @property
    def table(self) -> Table:
        return self.lake.table(IDENTIFIER)

    def lives(self, kinds: Iterable[str], changes: int) -> None:
        """Live it.

        Args:
            kinds: Of its columns.
            changes: How many there are once it is promoted.
        """
        for each in kinds:
            self.model.add_column(f"c{next(self.names)}", KINDS[each])
        for _ in range(2):
            self._append_at_source()
        if self.source.format_name != "paimon":
            self.model.add_column(f"c{next(self.names)}", self._kind())
        self._append_at_source()
        self.source.settle()
        self._import()
        self._append_at_source()
        self._import()
        if "promote" in self.left_out:
            return
        self.lake.promote(IDENTIFIER)
        self._check("promoted")
        self.first_schema = self.table.at().schema.to_arrow()
        self.first_names = {name: name for name in self.model.columns}
        for name in (*FIRST, *self.rng.choices(sorted(_CHANGES), k=changes)):
            if not self.is_wrong and name not in self.left_out:
                self._try(name)

    def _append_at_source(self) -> None:
        rows = self.model.new_rows(self.rng.randint(1, 3))
        self.source.append(self.model, rows)
        self.model.put(rows)

    def _import(self) -> None:
        self.lake.import_table(
            IDENTIFIER, str(self.source.place), format_name=self.source.format_name
        )
        self._check("imported")

    def _kind(self) -> pa.DataType:
        named = sorted(KINDS)
        return KINDS[self.rng.choice(named)]

    def _try(self, name: str) -> None:
        try:
            done = _CHANGES[name](self)
        except LedgerError as error:
            self.report.refused[name] += 1
            if not any(each in str(error) for each in EXPECTED_REFUSALS):
                self._note("the ledger", f"refused {name}: {type(error).__name__}: {error}")
            return
        if done:
            self._check(name)

    def _check(self, step: str) -> None:
        """Let every reader of every declared format read the table."""
        self.steps.append(step)
        table = self.table
        formats = table.state.schema.options.get("ledger.formats", "")
        declared = [each.strip() for each in formats.split(",")] if formats else []
        for each in declared or [self.source.format_name]:
            for name, reader in READERS[each].items() if is_here(each) else ():
                self._read(name, reader, table)

    def _read(self, name: str, reader: Reader, table: Table) -> None:
        self.report.reads += 1
        try:
            found = self.model.found(reader(table))
        except Exception as error:  # noqa: BLE001 - whatever a reader raises is what it found
            unreadable = self.source.unreadable
            if unreadable and reader is _by_duckdb_iceberg and unreadable in str(error):
                self.report.unreadable += 1
                return
            self._note(name, f"{type(error).__name__}: {_head(error)}")
            return
        wanted = self.model.wanted()
        if found.keys() != wanted.keys():
            self._note(name, f"ids {sorted(found)} instead of {sorted(wanted)}")
            return
        for number, row in wanted.items():
            for column, value in row.items():
                if found[number][column] != value:
                    kind = self.model.columns[column]
                    seen = f"{found[number][column]!r} instead of {value!r}"
                    self._note(name, f"row {number}, {column} ({kind}): {seen}"[:300])
                    return

    def _note(self, name: str, what: str) -> None:
        self.is_wrong = True
        self.report.wrong.append(f"{self.seed} after {', '.join(self.steps)}: {name}: {what}")

    def _structs(self) -> list[str]:
        return [name for name, kind in self.model.columns.items() if pa.types.is_struct(kind)]

    def append_with_ids(self) -> bool:
        return self._append(self.table.at().schema.to_arrow())

    def append_without_ids(self) -> bool:
        return self._append(self.model.schema)

    def _append(self, schema: pa.Schema) -> bool:
        rows = self.model.new_rows(2)
        self._write(rows, schema)
        self.model.put(rows)
        return True

    def _write(self, rows: list[Row], schema: pa.Schema) -> None:
        path = _folder(self.table) / "data" / f"{len(self.steps)}-{next(self.names)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        self.table.add_files(str(path))

    def append_with_first_names(self) -> bool:
        """Append as a writer that still has the columns of the promotion."""
        if self.members_renamed:
            return False
        columns = {each.name: each for each in self.first_schema}
        rows = self.model.new_rows(2)
        for row in rows:
            for name in row:
                first = columns.get(self.first_names.get(name, ""))
                if name != "id":
                    row[name] = None if first is None else value_of(first.type, self.rng)
        written = [{first: row[name] for name, first in self.first_names.items()} for row in rows]
        plain = pa.schema([(each.name, each.type) for each in self.first_schema])
        with_ids = "append_without_ids" in self.left_out or self.rng.random() < HALF
        self._write(written, self.first_schema if with_ids else plain)
        self.model.put(rows)
        return True

    def add_column(self) -> bool:
        name, kind = f"c{next(self.names)}", self._kind()
        self._alter(AddColumn((name,), type_to_wire(from_arrow_type(kind))))
        self.model.add_column(name, kind)
        return True

    def add_member(self) -> bool:
        if not (structs := self._structs()):
            return False
        column, name, kind = self.rng.choice(structs), f"m{next(self.names)}", self._kind()
        self._alter(AddColumn((column, name), type_to_wire(from_arrow_type(kind))))
        self.model.add_member(column, name, kind)
        return True

    def rename_column(self) -> bool:
        old = self.rng.choice([each for each in self.model.columns if each != "id"])
        new = f"r{next(self.names)}"
        self._alter(RenameColumn((old,), new))
        self.model.rename_column(old, new)
        names = self.first_names.items()
        self.first_names = {new if name == old else name: first for name, first in names}
        return True

    def rename_member(self) -> bool:
        if not (structs := self._structs()):
            return False
        column = self.rng.choice(structs)
        old, new = self.rng.choice([*self.model.columns[column]]).name, f"n{next(self.names)}"
        self._alter(RenameColumn((column, old), new))
        self.model.rename_member(column, old, new)
        self.members_renamed = True
        return True

    def declare(self) -> bool:
        formats = self.rng.choice(["iceberg", "paimon", "delta"])
        if formats == self.source.format_name or f"declare {formats}" in self.left_out:
            return False
        self._alter(SetOption("ledger.formats", f"{self.source.format_name},{formats}"))
        return True

    def _alter(self, change: AddColumn | RenameColumn | SetOption) -> None:
        self.table.alter([change])


def _head(error: Exception) -> str:
    return " ".join(str(error).split())[:160]


FIRST: Final = (
    "append_with_ids",
    "append_without_ids",
    "add_column",
    "append_with_ids",
    "rename_column",
    "append_with_first_names",
    "declare",
)
"""Steps of every promoted table, before the random ones."""

_CHANGES: Final[Mapping[str, Callable[[Life], bool]]] = {
    "append_with_ids": Life.append_with_ids,
    "append_without_ids": Life.append_without_ids,
    "append_with_first_names": Life.append_with_first_names,
    "add_column": Life.add_column,
    "add_member": Life.add_member,
    "rename_column": Life.rename_column,
    "rename_member": Life.rename_member,
    "declare": Life.declare,
}
