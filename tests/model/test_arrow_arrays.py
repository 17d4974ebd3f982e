"""Arrays made of buffers are those that Arrow makes of the lists, and need nothing else of it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import FileChange
from ledger.files import to_table
from ledger.files.change_lists import changes_from_table
from ledger.model.arrow_types import boolean_array, integer_array, string_array_of_utf8, texts
from tests.programs import output_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LONGS = st.integers(-(2**63), 2**63 - 1)
MAYBE = st.none() | st.dictionaries(LONGS, LONGS, max_size=2)


@given(st.lists(LONGS), st.lists(TEXTS), st.lists(st.booleans()))
def test_arrays_are_those_of_arrow(longs: list[int], words: list[str], truths: list[bool]) -> None:
    assert integer_array(longs, pa.int64()).equals(pa.array(longs, pa.int64()))
    assert texts(words).equals(pa.array(words, pa.string()))
    assert string_array_of_utf8([each.encode() for each in words]).equals(
        pa.array(words, pa.string())
    )
    assert boolean_array(truths).equals(pa.array(truths, pa.bool_()))


def test_what_is_no_text_or_too_great_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        texts(["\ud800"])
    with pytest.raises(pa.ArrowInvalid):
        string_array_of_utf8([b"\xff"])
    with pytest.raises(OverflowError):
        integer_array([2**63], pa.int64())


@given(st.lists(st.tuples(MAYBE, MAYBE, st.none() | st.lists(TEXTS, max_size=2), st.booleans())))
def test_file_changes_come_back_from_their_table(rows: list[tuple[object, ...]]) -> None:
    changes = []
    for counts, nulls, extra, has_ids in rows:
        some = {"value_counts": counts, "null_value_counts": nulls, "field_ids": has_ids}
        some["extra_files"] = None if extra is None else tuple(extra)  # type: ignore[arg-type]
        said = {name: each for name, each in some.items() if each is not None}
        partition = (str(has_ids), None, has_ids)
        changes.append(
            FileChange(path="a", record_count=1, file_size_in_bytes=1, partition=partition, **said)  # type: ignore[arg-type]
        )

    table = to_table(changes)
    table.validate(full=True)

    assert changes_from_table(table) == changes


def test_what_a_writer_keeps_next_to_its_log_is_made_and_read_by_arrays_alone() -> None:
    code = (
        "import sys\n"
        "from ledger.table_handle import handle_of\n"
        "from tests.lakes import data_file, lake_on, memory, orders\n"
        "table = orders(lake_on(memory()))\n"
        "for number in range(800):\n"
        "    table.append([data_file(f'f{number}.parquet')])\n"
        "handle_of(table).log.wait_for_caches(60)\n"
        "assert 'pyarrow' in sys.modules\n"
        "assert handle_of(table).log.segments.made(0, 800)\n"
        "(found,) = handle_of(table).log.segments.read([(0, 800)])\n"
        "assert len(found.bodies) == 801\n"
        "sys.exit(bool({'pandas', 'pyarrow.compute'} & {*sys.modules}))\n"
    )
    output_of("-c", code, timeout_s=300)
