from __future__ import annotations

import datetime as dt
import math
import os
from decimal import Decimal
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.local import LocalFileSystem

from ledger import InvalidInputError, NotFoundError, Schema
from ledger.files import ColumnFacts, FooterColumn, read_footer, read_footers
from ledger.model import types as t
from tests.files.building import written

LOCAL = LocalFileSystem()


def columns_of(path: str) -> dict[str, FooterColumn]:
    return {each.name: each for each in read_footer(path, filesystem=LOCAL).columns}


def facts_of(tmp_path: Path, values: pa.Array, **options: object) -> ColumnFacts | None:
    path = written(tmp_path / "x.parquet", pa.table({"a": values}), **options)
    return columns_of(path)["a"].facts


def test_a_footer_gives_counts_size_and_time(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", pa.table({"a": [1, None, 3]}))
    os.utime(path, (0, 1_700_000_000.25))

    footer = read_footer(path, filesystem=LOCAL)

    assert footer.path == path
    assert footer.record_count == 3
    assert footer.file_size_in_bytes == Path(path).stat().st_size
    assert footer.creation_time == 1_700_000_000_250
    assert footer.columns[0].facts == ColumnFacts(3, 1, 1, 3)


def test_facts_are_those_of_all_row_groups(tmp_path: Path) -> None:
    values = pa.array([5, 9, None, None, -2, 4])

    assert facts_of(tmp_path, values, row_group_size=2) == ColumnFacts(6, 2, -2, 9)


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        (pa.array([None, None], pa.int32()), ColumnFacts(2, 2)),
        (pa.array([], pa.int32()), ColumnFacts(0, 0)),
        (pa.array(["b", "ü"]), ColumnFacts(2, 0, b"b", "ü".encode())),
        (pa.array([True, False]), ColumnFacts(2, 0, lower=False, upper=True)),
        (pa.array([math.nan, 1.0]), ColumnFacts(2, 0, 1.0, 1.0)),
        (
            pa.array([Decimal("-3.00"), Decimal("1.20")], pa.decimal128(20, 2)),
            ColumnFacts(2, 0, -300, 120),
        ),
        (pa.array([dt.date(1970, 1, 2)]), ColumnFacts(1, 0, 1, 1)),
        (pa.array([7], pa.timestamp("ms")), ColumnFacts(1, 0, 7, 7)),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_extremes_are_in_the_columns_own_unit(
    tmp_path: Path, values: pa.Array, facts: ColumnFacts
) -> None:
    assert facts_of(tmp_path, values) == facts


def test_without_statistics_there_are_only_counts(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, pa.array([1, 2]), write_statistics=False)

    assert facts == ColumnFacts(2, None)


def test_types_are_neutral_and_unknown_ones_are_named(tmp_path: Path) -> None:
    table = pa.table(
        {
            "u": pa.array([1], pa.uint32()),
            "z": pa.array([1], pa.timestamp("us", tz="UTC")),
            "d": pa.array(["a"]).dictionary_encode(),
        }
    )

    found = columns_of(written(tmp_path / "x.parquet", table))

    assert (found["u"].type, found["u"].type_text) == (None, "uint32")
    assert found["u"].facts is None
    assert found["z"].type == t.LocalZonedTimestampType(6)
    assert found["d"].type == t.STRING


def test_members_of_rows_have_facts_and_those_below_lists_have_none(tmp_path: Path) -> None:
    row = {"x": 1, "many": [1, 2]}
    table = pa.table(
        {"a": [row, None], "m": pa.array([[("k", 1)], []], pa.map_("string", "int32"))}
    )

    found = columns_of(written(tmp_path / "x.parquet", table))

    members = {each.name: each for each in found["a"].members}
    assert members["x"].facts == ColumnFacts(2, 1, 1, 1)
    assert members["many"].members[0].facts is None
    assert [each.facts for each in found["m"].members] == [None, None]


def test_field_ids_are_found_at_every_level(tmp_path: Path) -> None:
    schema = Schema.of({"id": "INT", "at": t.RowType([t.DataField(0, "x", t.IntType())])})
    table = pa.table([[1], [{"x": 2}]], schema=schema.to_arrow())

    found = columns_of(written(tmp_path / "x.parquet", table))

    assert [found["id"].field_id, found["at"].field_id] == [0, 1]
    assert found["at"].members[0].field_id == 2


def test_a_footer_larger_than_the_first_read_is_read_whole(tmp_path: Path) -> None:
    table = pa.table({f"column_{nth}": [nth] for nth in range(900)})
    path = written(tmp_path / "x.parquet", table)

    footer = read_footer(path, filesystem=LOCAL)

    assert len(footer.columns) == 900
    assert footer.columns[899].facts == ColumnFacts(1, 0, 899, 899)


class Metered(LocalFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """Counts the bytes that are read."""

    cachable = False
    total = 0

    def cat_file(self, path, start=None, end=None, **options):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN201 - as in the class
        body = super().cat_file(path, start=start, end=end, **options)
        self.total += len(body)
        return body


def test_no_rows_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", pa.table({"a": range(200_000)}), use_dictionary=False)
    place = Metered()

    read_footer(path, filesystem=place)

    assert Path(path).stat().st_size > 500_000
    assert 0 < place.total <= 64 * 1024


@pytest.mark.parametrize(
    "body", [b"", b"PAR1", b"a,b\n1,2\n", b"\0" * 40 + b"PAR1", b"PAR1" + b"\xff\xff\xff\x7fPAR1"]
)
def test_what_is_no_parquet_file_is_refused_by_name(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(body)

    with pytest.raises(InvalidInputError, match=str(path)):
        read_footer(str(path), filesystem=LOCAL)


def test_a_torn_file_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", pa.table({"a": [1]}))
    body = Path(path).read_bytes()
    Path(path).write_bytes(body[: len(body) // 2])

    with pytest.raises(InvalidInputError, match=f"{path} is no Parquet file, or is torn"):
        read_footer(path, filesystem=LOCAL)


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nothing.parquet"):
        read_footers([str(tmp_path / "nothing.parquet")], filesystem=LOCAL)


def test_many_are_read_in_order_with_progress(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{n}.parquet", pa.table({"a": range(n)})) for n in range(20)]
    reported: list[tuple[int, int]] = []

    footers = read_footers(
        paths, filesystem=LOCAL, on_progress=lambda done, total: reported.append((done, total))
    )

    assert [each.record_count for each in footers] == list(range(20))
    assert reported == [(n, 20) for n in range(1, 21)]


def test_files_elsewhere_are_read_through_fsspec(tmp_path: Path) -> None:
    body = Path(written(tmp_path / "x.parquet", pa.table({"a": [1]}))).read_bytes()
    place = fsspec.filesystem("memory")
    place.pipe_file("/footers/x.parquet", body)
    made = place.created("/footers/x.parquet")

    footer = read_footer("/footers/x.parquet", filesystem=place)

    assert footer.record_count == 1
    assert footer.creation_time == int(made.timestamp() * 1000)
