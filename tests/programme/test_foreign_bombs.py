"""Foreign files that declare or unpack to gigabytes are rejected by name, in bounded memory."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from ledger.model import types as t
from ledger.model.parquet_limits import open_parquet_stream
from projections.statistics.analyze import WantedColumn, distinct_bytes
from tests.programme.foreign_bombs import CASES, long_texts, written
from tests.programs import output_of

MOST_SECONDS = 10
LONGEST_FILE = 1_200_000


@pytest.mark.parametrize("case", CASES)
def test_a_bomb_is_rejected_by_name_in_bounded_memory_and_time(case: str, tmp_path: Path) -> None:
    CASES[case].build(tmp_path)
    sizes = [each.stat().st_size for each in tmp_path.rglob("*") if each.is_file()]
    found = json.loads(output_of("-m", "tests.programme.foreign_bombs", case, tmp_path))

    assert max(sizes, default=0) < LONGEST_FILE
    assert found["error"] is not None, "it was read"
    assert "LedgerError" in found["error"], found
    assert CASES[case].name in found["message"], found
    assert found["grown_mib"] < CASES[case].most_mib, found
    assert found["seconds"] < MOST_SECONDS, found


def test_a_text_that_a_data_file_repeats_takes_memory_once() -> None:
    """A million rows of a text of a megabyte, which the file holds once."""
    table = pa.table({"a": long_texts(1_000_000, 1_000_000)})
    body = written(table, dictionary_pagesize_limit=1 << 30)
    before = pa.total_allocated_bytes()
    file = open_parquet_stream(io.BytesIO(body), len(body), "a.parquet")
    wanted = WantedColumn(1, "a", t.VarCharType(9))
    most = 0
    for _, values in distinct_bytes(file, (wanted,), field_ids=False):
        most = max(most, pa.total_allocated_bytes() - before)
        assert [len(each) for each in values.to_pylist()] == [1_000_000]

    assert 0 < most < 64 << 20
