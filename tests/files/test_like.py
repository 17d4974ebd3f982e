"""The schema of a table inferred from files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies
from pyarrow import parquet

from ledger import InvalidInputError, schema_of_files
from ledger.files.partition_values import escape_path
from ledger.model import format_type
from tests.lakes import lake_on, memory
from tests.thorough import examples


def laid(root: Path, *folders: str, table: pa.Table | None = None) -> Path:
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
        parquet.write_table(
            pa.table({"id": [1]}) if table is None else table, root / folder / "a.parquet"
        )
    return root


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["2013-01-01", "2013-12-31", "__HIVE_DEFAULT_PARTITION__"], "DATE"),
        (["2013-01-01", "2013-1-1"], "STRING"),
        (["2013-02-30"], "STRING"),
        (["1", "-1", "0"], "INT"),
        (["1", "2147483648"], "BIGINT"),
        (["1", "9223372036854775808"], "STRING"),
        (["007", "1"], "STRING"),
        (["-01"], "STRING"),
        (["eu", "1"], "STRING"),
        (["__DEFAULT_PARTITION__"], "STRING"),
        (["20130101"], "INT"),
    ],
)
def test_a_key_has_the_narrowest_type_that_gives_every_value_back(
    tmp_path: Path, values: list[str], wanted: str
) -> None:
    schema = schema_of_files([str(laid(tmp_path, *(f"k={each}" for each in values)))])

    assert [(each.id, each.name) for each in schema.fields] == [(0, "id"), (1, "k")]
    assert format_type(schema.field("k").type) == wanted
    assert schema.partition_keys == ("k",)


TEXTS = strategies.text(max_size=5).filter(str.strip)


@settings(deadline=None, max_examples=examples(30))
@given(values=strategies.sets(TEXTS, min_size=1, max_size=3))
def test_whatever_folders_are_called_their_files_can_be_added_to_a_table_like_them(
    tmp_path_factory: pytest.TempPathFactory, values: set[str]
) -> None:
    root = tmp_path_factory.mktemp("any")
    names = [f"k={escape_path(each)}" for each in values]
    laid(root, *names)
    lake = lake_on(memory())
    lake.create_database("db")
    table = lake.create_table("db.t", schema_of_files([str(root)]))

    table.add_files([str(root)])

    assert table.at().totals.file_count == len(names)


def test_a_column_that_the_file_has_itself_is_no_key(tmp_path: Path) -> None:
    table = pa.table({"day": ["x"], "id": [1]})
    schema = schema_of_files([str(laid(tmp_path, "day=2013-01-01", table=table))])

    assert [each.name for each in schema.fields] == ["day", "id"]
    assert schema.partition_keys == ()


def test_files_of_different_keys_are_no_one_table(tmp_path: Path) -> None:
    laid(tmp_path, "a=1", "a=1/b=2")

    with pytest.raises(InvalidInputError, match="files of one table name the same partition keys"):
        schema_of_files([str(tmp_path)])
