"""Whatever becomes of tables that others wrote, every reader finds the rows that were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.foreign.lives import Life, Report
from tests.foreign.model import KINDS
from tests.foreign.sources import (
    ColumnMapping,
    DeltaSource,
    IcebergSource,
    MappedDeltaSource,
    PaimonSource,
    Source,
)
from tests.pypaimon_or_skip import needs_pypaimon
from tests.thorough import some

SEEDS: Final = 20
COLUMNS: Final = 5
CHANGES: Final = 5


def iceberg(version: int) -> Callable[[Path], Source]:
    return lambda folder: IcebergSource(folder / "t", version)


def delta(*, cleaned: bool) -> Callable[[Path], Source]:
    return lambda folder: DeltaSource(folder / "t", cleaned)


def mapped(
    mode: str, prefix: str = "", *, nested: bool = False, cleaned: bool = False
) -> Callable[[Path], Source]:
    how = ColumnMapping(mode, prefix, nested, cleaned)
    return lambda folder: MappedDeltaSource(folder / "t", how)


def paimon(folder: Path) -> Source:
    needs_pypaimon()
    return PaimonSource(folder / "warehouse/s.db/t")


SOURCES: Final[Mapping[str, Callable[[Path], Source]]] = {
    "iceberg 1": iceberg(1),
    "iceberg 2": iceberg(2),
    "delta": delta(cleaned=False),
    "delta from a checkpoint": delta(cleaned=True),
    "delta by name": mapped("name"),
    "delta by name, nested ids": mapped("name", nested=True),
    "delta by name, physical names": mapped("name", "col-"),
    "delta by name, physical names, nested ids": mapped("name", "col-", nested=True),
    "delta by id": mapped("id"),
    "delta by id, physical names, nested ids": mapped("id", "col-", nested=True),
    "delta by name from a checkpoint": mapped("name", nested=True, cleaned=True),
    "paimon": paimon,
}


def left_out(source: str) -> frozenset[str]:
    """Return the steps that meet a known fault; who mends one takes its step off here."""
    found = set()
    if source.startswith("iceberg"):
        # The metadata of a promoted Iceberg table has no name mapping for the ledger's own files.
        found.add("append_without_ids")
    if source in ("delta by name", "delta by name, physical names", "delta by id"):
        # Lists and maps in these files have no ids inside; Iceberg's readers want all or none.
        found.add("declare iceberg")
    if source.endswith("from a checkpoint"):
        # The log of the promoted table cannot be projected past its next checkpoint.
        found.add("promote")
    return frozenset(found)


@pytest.fixture(scope="module")
def total() -> Iterator[Report]:
    report = Report()
    yield report
    print(f"\n{report}")  # noqa: T201 - how much was looked at


@pytest.mark.parametrize("seed", some(range(SEEDS), 1))
@pytest.mark.parametrize("source", SOURCES)
def test_every_reader_finds_the_rows_that_were_written(
    tmp_path: Path, source: str, seed: int, total: Report
) -> None:
    named = f"{source}, seed {seed}"
    kinds = Random(named).sample(sorted(KINDS), COLUMNS)
    report = Report()
    life = Life(tmp_path, SOURCES[source](tmp_path), named, report, left_out(source))
    life.lives(kinds, CHANGES)
    total.add(report)
    assert report.wrong == []
    assert report.reads
