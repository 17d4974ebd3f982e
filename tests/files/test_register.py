from __future__ import annotations

import struct
from datetime import date
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from attrs import evolve

from ledger import (
    DataField,
    FileChange,
    InvalidChangeError,
    InvalidInputError,
    NotFoundError,
    Schema,
)
from ledger.files import data_files
from ledger.model import types as t
from tests.files.building import state_of, written

FLIGHTS = Schema.of({"id": "BIGINT", "carrier": "STRING", "day": "DATE"}, partition_keys=["day"])
ROWS = pa.table({"id": [1, 2, None], "carrier": ["AA", "UA", "UA"]})


def registered(
    location: Path, *paths: str | Path, schema: Schema = FLIGHTS, **options: Any
) -> tuple[FileChange, ...]:
    return data_files(
        [str(each) for each in paths],
        state=state_of(schema),
        history=options.pop("history", [schema]),
        location=f"file://{location}",
        **options,
    )


def test_a_file_inside_the_table_is_registered_with_all_its_facts(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "day=2013-01-01/x.parquet", ROWS))
    stat = path.stat()

    (found,) = registered(tmp_path, path)

    assert found == FileChange(
        path="day=2013-01-01/x.parquet",
        partition=("2013-01-01",),
        record_count=3,
        file_size_in_bytes=stat.st_size,
        creation_time=int(stat.st_mtime * 1000),
        value_counts={0: 3, 1: 3},
        null_value_counts={0: 1, 1: 0},
        lower_bounds={0: struct.pack("<q", 1).hex(), 1: b"AA".hex()},
        upper_bounds={0: struct.pack("<q", 2).hex(), 1: b"UA".hex()},
    )


def test_a_file_written_with_the_tables_arrow_schema_carries_its_ids(tmp_path: Path) -> None:
    table = pa.table([[1], ["AA"], [date(2013, 1, 1)]], schema=FLIGHTS.to_arrow())
    path = written(tmp_path / "day=2013-01-01/x.parquet", table)

    (found,) = registered(tmp_path, path)

    assert found.field_ids
    assert found.lower_bounds is not None
    assert 2 in found.value_counts  # type: ignore[operator]  # the footer has statistics


def test_a_file_with_old_names_has_the_old_schema_id(tmp_path: Path) -> None:
    old = FLIGHTS
    new = evolve(
        FLIGHTS,
        id=3,
        fields=[evolve(f, name="airline") if f.id == 1 else f for f in FLIGHTS.fields],
    )
    path = written(tmp_path / "day=2013-01-01/x.parquet", ROWS)

    (found,) = registered(tmp_path, path, schema=new, history=[new, old])

    assert found.schema_id == 0
    assert found.value_counts == {0: 3, 1: 3}


def test_a_file_outside_has_one_name_however_it_is_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "elsewhere/day=2013-01-01/x.parquet", ROWS)
    monkeypatch.chdir(tmp_path)

    spelled = [path, f"file://{path}", "elsewhere/day=2013-01-01/x.parquet"]
    names = {registered(tmp_path / "table", each)[0].path for each in spelled}

    assert names == {f"file://{path}"}


def test_folders_and_globs_are_expanded_without_hidden_files_and_sorted(tmp_path: Path) -> None:
    for name in ("day=2013-01-02/b", "day=2013-01-01/c", "day=2013-01-01/a"):
        written(tmp_path / f"{name}.parquet", ROWS)
    for name in ("_SUCCESS", ".crc", "_ledger/log/0.json", "day=2013-01-01/_x.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    expected = [
        "day=2013-01-01/a.parquet",
        "day=2013-01-01/c.parquet",
        "day=2013-01-02/b.parquet",
    ]

    assert [each.path for each in registered(tmp_path, tmp_path)] == expected
    assert [each.path for each in registered(tmp_path, tmp_path / "*/*.parquet")] == expected
    both = registered(tmp_path, tmp_path / "day=2013-01-01", tmp_path / expected[0])
    assert [each.path for each in both] == expected[:2]


def test_a_folder_of_a_partition_named_with_an_underscore_is_no_hidden_one(tmp_path: Path) -> None:
    schema = Schema.of({"id": "BIGINT", "carrier": "STRING", "_d": "INT"}, partition_keys=["_d"])
    written(tmp_path / "_d=1/x.parquet", ROWS)

    (found,) = registered(tmp_path, tmp_path, schema=schema)

    assert found.partition == (1,)


def test_progress_is_reported(tmp_path: Path) -> None:
    for nth in range(3):
        written(tmp_path / f"day=2013-01-01/{nth}.parquet", ROWS)
    reported: list[tuple[int, int]] = []

    registered(tmp_path, tmp_path, on_progress=lambda done, total: reported.append((done, total)))

    assert reported == [(1, 3), (2, 3), (3, 3)]


def test_a_path_that_means_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nothing\.parquet names no file"):
        registered(tmp_path, tmp_path / "nothing.parquet")
    with pytest.raises(NotFoundError, match="names no file"):
        registered(tmp_path, tmp_path / "*.parquet")
    with pytest.raises(InvalidInputError, match="no paths were given"):
        registered(tmp_path)


def test_an_unknown_scheme_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="'nowhere' is not on the list of schemes"):
        registered(tmp_path, "nowhere://x")


def test_two_file_systems_in_one_call_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "day=2013-01-01/x.parquet", ROWS)
    fsspec.filesystem("memory").pipe_file("/register/x.parquet", b"x")

    with pytest.raises(InvalidInputError, match="another file system"):
        registered(tmp_path, path, "memory://register/x.parquet")


def test_files_on_another_file_system_than_the_table_keep_their_url(tmp_path: Path) -> None:
    body = Path(written(tmp_path / "x.parquet", ROWS)).read_bytes()
    path = "/register/day=2013-01-01/x.parquet"
    fsspec.filesystem("memory").pipe_file(path, body)

    (found,) = registered(tmp_path, f"memory:/{path}")

    assert found.path == f"memory://{path}"
    assert found.partition == ("2013-01-01",)


@pytest.mark.parametrize("value", ["2013-01-02", "__HIVE_DEFAULT_PARTITION__"])
def test_a_path_that_contradicts_the_files_own_column_is_refused(
    tmp_path: Path, value: str
) -> None:
    table = ROWS.append_column("day", pa.array([date(2013, 1, 1)] * 3))
    path = written(tmp_path / f"day={value}/x.parquet", table)

    with pytest.raises(InvalidChangeError, match="its column 'day' holds other values"):
        registered(tmp_path, path)


def test_a_partition_column_in_the_file_may_agree_with_the_path(tmp_path: Path) -> None:
    table = ROWS.append_column("day", pa.array([date(2013, 1, 1)] * 3))
    path = written(tmp_path / "day=2013-01-01/x.parquet", table)

    assert registered(tmp_path, path)[0].partition == ("2013-01-01",)


def test_a_column_that_only_the_path_has_is_refused_where_it_does_not_partition(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "day=2013-01-01/x.parquet", ROWS)

    with pytest.raises(InvalidChangeError, match="only its path says day"):
        registered(tmp_path, path, schema=evolve(FLIGHTS, partition_keys=()))


def test_every_fault_names_its_file(tmp_path: Path) -> None:
    path = written(tmp_path / "day=2013-01-01/x.parquet", pa.table({"id": ["text"]}))

    with pytest.raises(InvalidChangeError, match=r"file day=2013-01-01/x\.parquet fits no schema"):
        registered(tmp_path, path)


@pytest.mark.parametrize(
    ("mode", "counts", "bounds"),
    [
        ("none", None, None),
        ("Counts", 2, None),
        ("truncate(3)", 2, (b"abc", b"abe")),
        ("full", 2, (b"abcdefghijklmnopqrstuvwxyz", b"abdz")),
        (None, 2, (b"abcdefghijklmnop", b"abdz")),
    ],
)
def test_a_table_says_which_facts_of_a_column_are_kept(
    tmp_path: Path, mode: str | None, counts: int | None, bounds: tuple[bytes, bytes] | None
) -> None:
    nested = pa.array([{"mail": "abcdefghijklmnopqrstuvwxyz"}, {"mail": "abdz"}])
    path = written(tmp_path / "x.parquet", pa.table({"id": [1, 2], "who": nested}))
    options = {} if mode is None else {"write.metadata.metrics.column.who.mail": mode}
    mail = 2
    who = t.RowType((DataField(mail, "mail", t.STRING),))
    schema = Schema.of({"id": "BIGINT", "who": who}, options=options)

    (found,) = registered(tmp_path, path, schema=schema)

    assert facts_of(found, mail) == (counts, None if counts is None else 0, *(bounds or NONE))
    assert facts_of(found, 0) == (2, 0, struct.pack("<q", 1), struct.pack("<q", 2))


NONE = (None, None)


def facts_of(file: FileChange, field_id: int) -> tuple[int | bytes | None, ...]:
    """Return a file's statistics of a column: values, nulls, and its bounds."""
    facts: list[Any] = [file.value_counts, file.null_value_counts]
    bounds: list[Any] = [file.lower_bounds, file.upper_bounds]
    found = [each.get(field_id) for each in bounds]
    return (
        *(each.get(field_id) for each in facts),
        *(None if each is None else bytes.fromhex(each) for each in found),
    )


def test_a_mode_for_all_columns_yields_to_that_of_one(tmp_path: Path) -> None:
    options = {
        "write.metadata.metrics.default": "none",
        "write.metadata.metrics.column.id": "truncate(16)",
    }
    path = written(tmp_path / "day=2013-01-01/x.parquet", ROWS)

    (found,) = registered(tmp_path, path, schema=evolve(FLIGHTS, options=options))

    assert facts_of(found, 0)[0] == 3
    assert facts_of(found, 1) == (None, None, *NONE)


def test_what_is_no_mode_is_refused_before_a_bound_stays_for_good(tmp_path: Path) -> None:
    schema = evolve(FLIGHTS, options={"write.metadata.metrics.column.carrier": "off"})
    path = written(tmp_path / "day=2013-01-01/x.parquet", ROWS)

    with pytest.raises(InvalidChangeError, match=r"column.carrier is 'off', .* set none, counts"):
        registered(tmp_path, path, schema=schema)
