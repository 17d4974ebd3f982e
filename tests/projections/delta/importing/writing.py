"""Delta tables that delta-rs writes into a folder, version by version."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from tests.readers.test_delta_readers import delta_rs_query, duckdb

Read = tuple[list[str], list[tuple[Any, ...]]]
READERS = (delta_rs_query, duckdb)
"""Those that read files which lie outside of their table."""


def read_by_all(folder: str, version: int | None = None) -> Read:
    """Return what every reader finds in a version, the newest if None."""
    at = DeltaTable(folder).version() if version is None else version
    first, *others = (reader(folder, at) for reader in READERS)
    assert all(each == first for each in others)
    return first


KEYS: dict[str, pa.DataType] = {
    "text": pa.string(),
    "number": pa.int64(),
    "day": pa.date32(),
    "flag": pa.bool_(),
    "price": pa.decimal128(9, 2),
    "at": pa.timestamp("us", tz="UTC"),
    "local": pa.timestamp("us"),
}
"""Partition columns of a table, with their types."""

_MORE = {"extra_int": pa.int32(), "extra text": pa.string(), "extra_float": pa.float64()}


def values(kind: pa.DataType, count: int, rng: random.Random) -> pa.Array:
    """Values of a type, NULL among them, before 1970, too."""
    days = [rng.randrange(-40_000, 40_000) for _ in range(count)]
    moments = [
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=each, seconds=1.5) for each in days
    ]
    made: dict[str, list[Any]] = {
        "string": [rng.choice(["", "a b", "ü/=%", "z" * 40, "x"]) for _ in days],
        "int64": [rng.choice([-(2**60), 0, 7, 2**60]) for _ in days],
        "int32": days,
        "double": [rng.choice([-0.5, 0.0, 1e300, float("inf")]) for _ in days],
        "bool": [each % 2 == 0 for each in days],
        "date32[day]": [date(1970, 1, 1) + timedelta(days=each) for each in days],
        "decimal128(9, 2)": [Decimal(each).scaleb(-2) for each in days],
        "timestamp[us, tz=UTC]": moments,
        "timestamp[us]": [each.replace(tzinfo=None) for each in moments],
    }
    some = [None if rng.random() < 0.2 else each for each in made[str(kind)]]
    return pa.array(some, kind)


class Life:
    """A table that lives at random.

    Args:
        folder: Where.
        seed: Of the random changes.
        key: What it is partitioned by; None for nothing.
    """

    def __init__(self, folder: Path, seed: int, key: str | None = None) -> None:
        self.folder = str(folder)
        self._rng = random.Random(seed)
        self._key = key
        self._columns: dict[str, pa.DataType] = {"id": pa.int64()}
        if key is not None:
            self._columns[key] = KEYS[key]
        self._first = dict(self._columns)
        self.write("error", configuration={"delta.checkpointInterval": "4"})

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.folder)

    @property
    def version(self) -> int:
        return int(self.table.version())

    def rows(self) -> pa.Table:
        count = self._rng.randrange(1, 5)
        keyed = {
            name: values(kind, count, self._rng)
            for name, kind in self._columns.items()
            if name != self._key
        }
        if self._key is not None:
            # What delta-rs writes for them is the same for all readers.
            some = values(KEYS[self._key], count, self._rng).to_pylist()
            plain = [None if each is None or each == "" else _sound(each) for each in some]
            keyed[self._key] = pa.array(plain, KEYS[self._key])
        return pa.table({name: keyed[name] for name in self._columns})

    def write(self, mode: Any, **more: Any) -> None:
        said = {"userName": self._rng.choice(["ann", "bob"]), "userMetadata": mode}
        properties = CommitProperties(custom_metadata=said)
        parts = None if self._key is None else [self._key]
        write_deltalake(
            self.folder,
            self.rows(),
            mode=mode,
            partition_by=parts,
            commit_properties=properties,
            **more,
        )

    def step(self) -> None:
        chance = self._rng.random()
        if chance < 0.4:
            self.write("append")
        elif chance < 0.55:
            self.write("overwrite")
        elif chance < 0.7:
            left = [each for each in _MORE if each not in self._columns]
            if left:
                self._columns[left[0]] = _MORE[left[0]]
            self.write("append", schema_mode="merge")
        elif chance < 0.8:
            self.table.delete("id = 7")
        elif chance < 0.85:
            self.table.optimize.compact()
        elif chance < 0.9:
            self.table.restore(self._rng.randrange(self.version + 1))
            known = [each.name for each in self.table.schema().fields]
            self._columns = {name: {**_MORE, **self._first}[name] for name in known}
        elif chance < 0.95:
            for extra in [each for each in _MORE if each in self._columns]:
                del self._columns[extra]
            self.write("overwrite", schema_mode="overwrite")
        else:
            self.table.alter.set_table_properties({"delta.appendOnly": "false"})


def _sound(value: Any) -> Any:
    """A partition value that delta-rs itself reads back."""
    return abs(value) if isinstance(value, Decimal) else value


def clean(folder: Path, before: int) -> None:
    """Take away the log before a version, as engines do once a checkpoint stands for it."""
    for each in (folder / "_delta_log").iterdir():
        if each.name[:20].isdigit() and int(each.name[:20]) < before:
            each.unlink()


def authors(folder: Path) -> list[str]:
    """Authors of each remaining version, as its file says."""
    found = []
    for each in sorted((folder / "_delta_log").glob("*.json")):
        infos = [json.loads(line).get("commitInfo") for line in each.read_text().splitlines()]
        found.append(next((i.get("userName", "") for i in infos if i), ""))
    return found


__all__ = [
    "KEYS",
    "READERS",
    "Life",
    "Read",
    "authors",
    "clean",
    "deltalake",
    "read_by_all",
    "values",
]
