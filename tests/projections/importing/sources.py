"""One table of each format that others own: its engine commits to it, its readers read it.

A promotion passes one gate at each source: the call that keeps the source's writers out, or that
leads its catalog to the ledger's files. Tests put races and kills right before and after it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pytest
from attrs import define, frozen
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog
from pyiceberg.table import StaticTable

from ledger import Table
from ledger.stores import Store
from projections.delta import importing as delta_promoting
from projections.iceberg import importing as iceberg_sources
from projections.paimon import importing as paimon_promoting
from tests.faults import Died, Wrapped
from tests.projections.delta.importing.writing import read_by_all
from tests.projections.formats import DELTA, ICEBERG, PAIMON, Format
from tests.projections.iceberg.importing import writing as iceberg
from tests.projections.paimon.importing.paimon_source import PaimonSource, grown, rows
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.test_delta_readers import folder_of

Call = Callable[..., Any]
_ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})


@frozen
class Gate:
    """The call at which a promotion keeps the source's writers out.

    Attributes:
        module: Where it is looked up.
        name: Its name there.
        dying: Wraps it, so that the process dies before it takes effect, or after.
    """

    module: Any
    name: str
    dying: Callable[[Call, int], Call]

    def replace(self, monkeypatch: pytest.MonkeyPatch, wrap: Callable[[Call], Call]) -> None:
        """Let promotions call something else."""
        monkeypatch.setattr(self.module, self.name, wrap(getattr(self.module, self.name)))


class Source(Protocol):
    """A table that others own.

    Attributes:
        format: The format's files in the ledger.
        gate: Where a promotion takes it.
        place: How `import_table` finds it.
        catalog: The catalog's table that leads to it; empty where none does.
    """

    format: ClassVar[Format]
    gate: ClassVar[Gate]

    @property
    def place(self) -> str: ...

    @property
    def catalog(self) -> str: ...

    def commit(self) -> None:
        """Add rows as the table's engine does."""

    def commits(self) -> int:
        """Return how many commits are there, the gate's included."""

    def rows(self) -> list[str]:
        """Return the rows that the source's readers find, as sorted texts."""

    def rows_of(self, table: Table) -> list[str]:
        """Project a table; return the rows that all readers find in it, as sorted texts."""

    def is_closed_by(self, table: Table) -> bool:
        """Return whether the source leads to the table that was promoted from it."""


class _DiesAtCreate(Wrapped):
    """A store whose process dies at its first create, once that was applied so many times."""

    def __init__(self, inner: Store, times: int) -> None:
        super().__init__(inner)
        self._times = times

    def create(self, key: str, body: bytes) -> bool:
        for _ in range(self._times):
            super().create(key, body)
        raise Died


def _dying_store(found: Call, creates: int) -> Call:
    def dying(*asked: Any) -> Store | None:
        store: Store | None = found(*asked)
        return None if store is None else _DiesAtCreate(store, creates)

    return dying


def _dying_swap(swap: Call, calls: int) -> Call:
    def dying(*asked: Any) -> None:
        for _ in range(calls):
            swap(*asked)
        raise Died

    return dying


@define
class OfDelta:
    """A folder that delta-rs writes: two appends and a delete."""

    format: ClassVar[Format] = DELTA
    gate: ClassVar[Gate] = Gate(delta_promoting, "conditional_store", _dying_store)
    place: str
    catalog: str = ""

    @classmethod
    def made(cls, folder: Path) -> OfDelta:
        """Write one."""
        found = cls(str(folder / "t"))
        found.commit()
        found.commit()
        DeltaTable(found.place).delete("id = 1")
        return found

    def commit(self) -> None:
        """Append two rows."""
        write_deltalake(self.place, _ROWS, mode="append")

    def commits(self) -> int:
        """Return how many versions there are."""
        return int(DeltaTable(self.place).version()) + 1

    def rows(self) -> list[str]:
        """Return what all readers of the newest version find."""
        names, found = read_by_all(self.place)
        return sorted(str(dict(zip(names, each, strict=True))) for each in found)

    def rows_of(self, table: Table) -> list[str]:
        """Return what all readers of the projected log's newest version find."""
        DELTA.project(table)
        return OfDelta(folder_of(table)).rows()

    def is_closed_by(self, table: Table) -> bool:
        """Return whether the newest version names the table."""
        (newest,) = DeltaTable(self.place).history(1)
        return bool(newest["operationParameters"]["owner"] == table.location)


@define
class OfIceberg:
    """A table of a catalog: one append."""

    format: ClassVar[Format] = ICEBERG
    gate: ClassVar[Gate] = Gate(iceberg_sources, "swap_catalog_pointer", _dying_swap)
    _catalog: Catalog
    _name: str
    _ids: itertools.count[int]

    @classmethod
    def made(cls, catalog: Catalog, name: str) -> OfIceberg:
        """Write one."""
        catalog.create_table(name, iceberg.COLUMNS)
        found = cls(catalog, name, itertools.count(1))
        found.commit()
        return found

    @property
    def place(self) -> str:
        """The catalog's name and the table's."""
        return f"here:{self._name}"

    @property
    def catalog(self) -> str:
        """The same."""
        return self.place

    def commit(self) -> None:
        """Append a row."""
        iceberg.appended(self._catalog.load_table(self._name), next(self._ids), name=["a"])

    def commits(self) -> int:
        """Return how many snapshots the catalog's table has."""
        return len(self._catalog.load_table(self._name).metadata.snapshots)

    def rows(self) -> list[str]:
        """Return what PyIceberg reads of the catalog's table."""
        return [str(each) for each in iceberg.rows(self._catalog.load_table(self._name))]

    def rows_of(self, table: Table) -> list[str]:
        """Return what PyIceberg reads of the ledger's files."""
        return _rows_of_iceberg(table)

    def is_closed_by(self, table: Table) -> bool:
        """Return whether the catalog names the table's metadata."""
        found = self._catalog.load_table(self._name).metadata_location
        return found.startswith(f"{table.location}/metadata/")


@define
class OfIcebergFolder:
    """A folder that no catalog knows: one append."""

    format: ClassVar[Format] = ICEBERG
    gate: ClassVar[Gate] = OfIceberg.gate
    _table: Any
    _ids: itertools.count[int]
    catalog: str = ""

    @classmethod
    def made(cls, folder: Path) -> OfIcebergFolder:
        """Write one."""
        found = cls(iceberg.created(folder / "t"), itertools.count(1))
        found.commit()
        return found

    @property
    def place(self) -> str:
        """The newest metadata file."""
        return str(self._table.metadata_location)

    def commit(self) -> None:
        """Append a row."""
        iceberg.appended(self._table, next(self._ids), name=["a"])

    def commits(self) -> int:
        """Return how many snapshots there are."""
        return len(self._table.metadata.snapshots)

    def rows(self) -> list[str]:
        """Return what PyIceberg reads."""
        return [str(each) for each in iceberg.rows(self._table)]

    def rows_of(self, table: Table) -> list[str]:
        """Return what PyIceberg reads of the ledger's files."""
        return _rows_of_iceberg(table)

    def is_closed_by(self, table: Table) -> bool:
        """Return True: nothing in a folder can keep writers out."""
        del table
        return True


def _rows_of_iceberg(table: Table) -> list[str]:
    version = table.project("iceberg")
    read = StaticTable.from_metadata(f"{table.location}/metadata/v{version}.metadata.json")
    found = iceberg.rows(read)
    assert sorted(table.at().to_arrow().to_pylist(), key=str) == found
    return [str(each) for each in found]


@define
class OfPaimon:
    """A folder that pypaimon writes: two schemas, three snapshots and a tag."""

    format: ClassVar[Format] = PAIMON
    gate: ClassVar[Gate] = Gate(paimon_promoting, "conditional_store", _dying_store)
    _source: PaimonSource
    catalog: str = ""

    @classmethod
    def made(cls, folder: Path) -> OfPaimon:
        """Write one."""
        return cls(grown(folder))

    @property
    def place(self) -> str:
        """The table's folder."""
        return str(self._source.folder)

    def commit(self) -> None:
        """Append two rows."""
        self._source.append()

    def commits(self) -> int:
        """Return how many snapshots there are."""
        return len(self._source.snapshots)

    def rows(self) -> list[str]:
        """Return what pypaimon reads."""
        return rows(self._source.table)

    def rows_of(self, table: Table) -> list[str]:
        """Return what pypaimon reads of the ledger's files."""
        PAIMON.project(table)
        catalog = CatalogFactory.create({"warehouse": str(Path(folder_of(table)).parents[1])})
        return rows(catalog.get_table("a.b"))

    def is_closed_by(self, table: Table) -> bool:
        """Return whether the newest snapshot file names the table."""
        newest = self._source.folder / f"snapshot/snapshot-{self._source.snapshots[-1]}"
        said = json.loads(newest.read_bytes())
        return bool(said["properties"]["lakeledger.location"] == table.location)


def maker(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Source]:
    """Return what makes sources of a kind in folders; a catalog is in the one given here."""
    if kind == "iceberg":
        catalog, numbers = iceberg.sql_catalog(folder, monkeypatch), itertools.count()
        return lambda _: OfIceberg.made(catalog, f"s.t{next(numbers)}")
    made: dict[str, Callable[[Path], Source]] = {
        "delta": OfDelta.made,
        "iceberg in a folder": OfIcebergFolder.made,
        "paimon": OfPaimon.made,
    }
    return made[kind]
