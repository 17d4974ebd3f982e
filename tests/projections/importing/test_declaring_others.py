"""An imported table cannot declare a format that cannot express its origin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ledger
from ledger import FileChange, FormatError, RemoveOption, SetOption, Table, UnsupportedError
from tests.projections.delta.importing import test_promoting as delta
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.paimon.importing import test_promoting as paimon
from tests.projections.paimon.importing.paimon_source import PaimonSource, grown


def from_iceberg(folder: Path) -> Table:
    theirs = created(folder / "t")
    appended(theirs, 1, name=["a"])
    lake = ledger.open(str(folder / "lake"))
    lake.import_table("a.b", theirs.metadata_location)
    lake.promote("a.b")
    return lake.table("a.b")


def from_delta(folder: Path) -> Table:
    return delta.owned(folder, delta.source(folder / "t"))


def from_paimon(folder: Path) -> Table:
    return paimon.owned(folder, grown(folder / "warehouse"))


@pytest.mark.parametrize(
    ("made", "own", "other"),
    [
        (from_iceberg, "iceberg", "paimon"),
        (from_iceberg, "iceberg", "delta"),
        (from_paimon, "paimon", "delta"),
        (from_paimon, "paimon", "iceberg"),
    ],
)
def test_what_could_never_be_projected_is_not_declared(
    tmp_path: Path, made: Callable[[Path], Table], own: str, other: str
) -> None:
    table = made(tmp_path)
    before = table.state.version

    said = f"imported from {own.title()}.* read it by {own}"
    with pytest.raises(FormatError, match=said) as refused:
        table.alter([SetOption("ledger.formats", f"{own},{other}")])
    assert refused.value.format == other
    with pytest.raises(UnsupportedError, match=f"not declared to be an? {other.title()} table"):
        table.project(other)
    assert table.state.version == before


def test_leaving_the_option_out_would_declare_what_is_the_default(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="imported from Iceberg"):
        from_iceberg(tmp_path).alter([RemoveOption("ledger.formats")])


@pytest.mark.parametrize("other", ["iceberg", "paimon"])
def test_what_can_be_projected_is_declared(tmp_path: Path, other: str) -> None:
    table = from_delta(tmp_path)
    table.alter([SetOption("ledger.formats", f"delta,{other}")])
    assert table.project(other) == table.state.version


def test_a_paimon_table_without_snapshots_of_its_engines_may_declare_iceberg(
    tmp_path: Path,
) -> None:
    table = paimon.owned(tmp_path, PaimonSource(tmp_path / "warehouse"))
    file = FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9, partition=("x",))
    table.append([file])
    table.alter([SetOption("ledger.formats", "iceberg,paimon")])
    assert table.project("iceberg") == table.state.version
