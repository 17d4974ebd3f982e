"""A checkpoint holds what Arrow makes of the same rows, and making one needs no pandas."""

from __future__ import annotations

import io
import json
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import FileChange, Schema
from ledger.table_handle import handle_of
from projections.delta import DELTA, Reconciled, checkpoint, checkpoint_path, from_parquet
from projections.delta.actions import HINT, Add, Remove, Txn
from projections.delta.checkpoint import to_parquet
from projections.materialising import outputs_of
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders
from tests.programs import output_of
from tests.thorough import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LONGS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.dictionaries(TEXTS, st.none() | TEXTS, max_size=3)
ADDS = st.builds(Add, TEXTS, VALUES, LONGS, LONGS, st.just(value=False), st.none() | TEXTS)
REMOVES = st.builds(Remove, TEXTS, LONGS, st.just(value=False), st.booleans(), VALUES, LONGS)
TXNS = st.builds(Txn, TEXTS, LONGS, LONGS)
PROTOCOL = st.fixed_dictionaries(
    {"minReaderVersion": st.integers(1, 3), "minWriterVersion": st.integers(1, 7)},
    optional={"readerFeatures": st.lists(TEXTS), "writerFeatures": st.lists(TEXTS)},
)
METADATA = st.fixed_dictionaries(
    {
        "id": TEXTS,
        "format": st.just({"provider": "parquet", "options": {}}),
        "schemaString": TEXTS,
        "partitionColumns": st.lists(TEXTS),
        "configuration": st.dictionaries(TEXTS, TEXTS, max_size=3),
    },
    optional={"name": TEXTS, "description": TEXTS, "createdTime": LONGS},
)


@st.composite
def reconciled(draw: st.DrawFn) -> Reconciled:
    return Reconciled(
        {each.path: each for each in draw(st.lists(ADDS, max_size=4))},
        {each.path: each for each in draw(st.lists(REMOVES, max_size=4))},
        {each.app_id: each for each in draw(st.lists(TXNS, max_size=2))},
        _in_order("protocol", draw(PROTOCOL)),
        _in_order("metaData", draw(METADATA)),
    )


def _in_order(kind: str, said: dict[str, Any]) -> bytes:
    names = [each.name for each in checkpoint._checkpoint_schema().field(kind).type]
    return msgspec.json.encode({name: said[name] for name in names if name in said})


def as_arrow_makes_it(found: Reconciled) -> Any:
    """Return the table by Arrow's own look at Python's objects, for which maps are pairs."""

    def pairs(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: pairs(each) for key, each in value.items()}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [(each["key"], each["value"]) for each in value]
        return value

    rows = [pairs(each) for each in checkpoint._checkpoint_rows(found)]
    return pa.Table.from_pylist(rows, schema=checkpoint._checkpoint_schema())


@settings(max_examples=examples(60))
@given(reconciled())
def test_a_checkpoint_says_what_was_reconciled(found: Reconciled) -> None:
    body = to_parquet(found)
    table = pq.ParquetFile(io.BytesIO(body)).read()
    table.validate(full=True)
    assert table.equals(as_arrow_makes_it(found))
    assert from_parquet(body) == found


def test_blocks_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow reads long checkpoints in parts; no line is longer than a part."""
    monkeypatch.setattr(checkpoint, "_LEAST_BLOCK_BYTES", 1)
    adds = [Add(f"{n}.parquet", {"day": None}, n, n, data_change=False) for n in range(500)]
    metadata = {
        "id": "a",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": "{}",
        "partitionColumns": ["day"],
        "configuration": {},
    }
    found = Reconciled(
        {each.path: each for each in adds},
        protocol=b'{"minReaderVersion":1,"minWriterVersion":2}',
        metadata=msgspec.json.encode(metadata),
    )
    read = pq.ParquetFile(io.BytesIO(to_parquet(found))).read()
    assert read.equals(as_arrow_makes_it(found))


def test_no_format_needs_pandas() -> None:
    code = (
        "import sys\n"
        "from ledger import SetOption\n"
        "from projections.delta.materialise import DELTA\n"
        "from projections.iceberg.materialise import ICEBERG\n"
        "from projections.paimon.materialise import PAIMON\n"
        "from ledger.table_handle import handle_of\n"
        "from tests.lakes import data_file, lake_on, memory, orders\n"
        "table = orders(lake_on(memory()))\n"
        "handle = handle_of(table)\n"
        "table.alter([SetOption('ledger.formats', 'iceberg,paimon,delta')])\n"
        "for number in range(25):\n"
        "    table.append([data_file(f'f{number}.parquet')])\n"
        "    if number == 12: DELTA.advance(handle)\n"
        "for each in (DELTA, ICEBERG, PAIMON):\n"
        "    each.advance(handle)\n"
        "assert 'pyarrow' in sys.modules\n"
        "assert handle.log.store.exists(handle.log.layout.root.removesuffix('_ledger') + "
        "'_delta_log/00000000000000000020.checkpoint.parquet')\n"
        "sys.exit('pandas' in sys.modules)\n"
    )
    output_of("-c", code)


@pytest.mark.parametrize("before", range(8, 14))
def test_the_hint_stays_at_the_newest_checkpoint_whatever_the_log_begins_with(before: int) -> None:
    options = {"ledger.formats": "delta", "delta.checkpointInterval": "5"}
    table = orders(lake_on(memory()), Schema.of({"id": "BIGINT"}, options=options))
    for number in range(22):
        table.append([FileChange(path=f"{number}.parquet", record_count=1, file_size_in_bytes=9)])
    DELTA.project(handle_of(table))
    outputs = outputs_of(handle_of(table))
    hint = outputs.read(HINT)
    assert hint is not None
    assert json.loads(hint)["version"] == 20

    table.expire_snapshots(before=before)
    DELTA.project(handle_of(table))

    assert outputs.read(HINT) == hint
    assert outputs.read(checkpoint_path(before)) is not None


def test_an_expiry_reads_no_more_commits_than_lie_between_two_checkpoints() -> None:
    class Counts(Wrapped):
        read_commits = 0

        def read(self, key: str) -> bytes | None:
            self.read_commits += "_delta_log" in key and key.endswith(".json")
            return super().read(key)

    store = Counts(memory())
    options = {"ledger.formats": "delta"}
    table = orders(lake_on(store), Schema.of({"id": "BIGINT"}, options=options))
    for number in range(200):
        file = FileChange(path=f"{number}.parquet", record_count=1, file_size_in_bytes=1)
        table.append([file])
        if number % 50 == 49:
            DELTA.project(handle_of(table))
    for oldest in (105, 155):
        table.expire_snapshots(before=oldest)
        store.read_commits = 0
        DELTA.project(handle_of(table))
        assert store.read_commits <= 12
