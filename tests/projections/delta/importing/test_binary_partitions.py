"""Partition values of BINARY: the bytes are the text's in UTF-8, as every reader takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import ledger
from ledger import SetOption, Table
from tests.projections.delta.importing.test_following import (
    ID,
    PROTOCOL,
    add,
    info,
    metadata,
    write,
)
from tests.readers.test_delta_readers import folder_of

KEY = {**ID, "name": "p", "type": "binary"}

VALUES: dict[str, tuple[str | None, bytes | None]] = {
    "letters": ("hello", b"hello"),
    "control characters": ("\x01\x02\x03", b"\x01\x02\x03"),
    "NUL": ("\x00", b"\x00"),
    "a path": ("a/b=c%20 d", b"a/b=c%20 d"),
    "a letter beyond ASCII": ("ÿ", b"\xc3\xbf"),
    "a letter of four bytes": ("\U0001f600", "\U0001f600".encode()),
    "a digest in hex": ("c3bf", b"c3bf"),
    "an escape as delta-rs writes it": ("\\u00FF", b"\\u00FF"),
    "NULL": (None, None),
    "an empty text, which is NULL": ("", None),
}
"""Partition values in a log, and the bytes that Spark and delta-rs read."""


def rows(folder: str, version: int | None = None) -> list[Any]:
    table = DeltaTable(folder, version=version)
    found = QueryBuilder().register("t", table).execute("SELECT id, p FROM t ORDER BY id")
    read: list[Any] = pa.table(found.read_all()).to_pylist()
    return read


def with_values(folder: Path, *texts: str | None) -> str:
    """Write a table with a file of each partition value."""
    folder.mkdir()
    write(folder, 0, info(1), PROTOCOL, metadata(ID, KEY, partitionColumns=["p"]))
    adds = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), path)
        size = path.stat().st_size
        adds.append(add(path.name, partitionValues={"p": text}, size=size, stats=None))
    write(folder, 1, info(2), *adds)
    return str(folder)


def imported(folder: Path, source: str) -> Table:
    lake = ledger.open(str(folder))
    lake.import_table("a.b", source, format_name="delta")
    return lake.table("a.b")


@pytest.mark.parametrize("case", VALUES)
def test_a_value_is_imported_planned_projected_and_promoted(tmp_path: Path, case: str) -> None:
    text, expected = VALUES[case]
    source = with_values(tmp_path / "t", text, "other")
    table = imported(tmp_path / "lake", source)
    assert [each.partition for each in table.at().files] == [
        (None if expected is None else expected.hex(),),
        (b"other".hex(),),
    ]
    where = "p IS NULL" if expected is None else f"p = X'{expected.hex()}'"
    (planned,) = table.at().plan(where).files
    assert planned.file.path.endswith("/0.parquet")
    assert [each["p"] for each in rows(source)] in ([expected, b"other"], [b"", b"other"])
    read = [{"id": 0, "p": expected}, {"id": 1, "p": b"other"}]
    table.project("delta")
    assert rows(folder_of(table)) == read
    ledger.open(str(tmp_path / "lake")).promote("a.b")
    table = ledger.open(str(tmp_path / "lake")).table("a.b")
    table.alter([SetOption("ledger.formats", "delta,iceberg")])
    table.project("delta")
    assert rows(folder_of(table)) == read
    assert table.at().to_arrow().sort_by("id").to_pylist() == read


def test_a_checkpoint_holds_the_same_values(tmp_path: Path) -> None:
    texts = [text for text, _ in VALUES.values()]
    source = with_values(tmp_path / "t", *texts)
    DeltaTable(source).create_checkpoint()
    for version in range(2):
        (tmp_path / f"t/_delta_log/{version:020d}.json").unlink()
    table = imported(tmp_path / "lake", source)
    expected = [None if each is None else each.hex() for _, each in VALUES.values()]
    found = {each.path.rpartition("/")[2]: each.partition[0] for each in table.at().files}
    assert [found[f"{number}.parquet"] for number in range(len(texts))] == expected


def test_what_delta_rs_writes_reads_through_the_ledger_as_delta_rs_reads_it(
    tmp_path: Path,
) -> None:
    source = str(tmp_path / "t")
    for number, value in enumerate([b"hello", b"\x01\x02", b"\xff\xfe", "ÿ".encode(), None]):
        data = pa.table({"id": [number], "p": pa.array([value], pa.binary())})
        write_deltalake(source, data, mode="append", partition_by=["p"])
    table = imported(tmp_path / "lake", source)
    table.project("delta")
    for version in range(5):
        assert rows(folder_of(table), version) == rows(source, version)
