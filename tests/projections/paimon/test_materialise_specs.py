"""Paimon knows partition keys, whatever became of a table's partition spec."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ledger import Schema, SetOption, Table, UnsupportedError
from ledger.table_handle import handle_of
from ledger.transforms import bucket
from projections.materialising import files_of
from projections.paimon import PAIMON, ManifestEntry, decode_row, verify
from projections.paimon.row_values import scalar
from tests.lakes import data_file, lake_on, memory, orders
from tests.projections.paimon.projecting import Left

COLUMNS = {"id": "BIGINT", "day": "DATE", "kind": "STRING"}


def evolved() -> Table:
    """A table of two keys with a file of each of three specs, the keys in another place in each."""
    table = orders(lake_on(memory()), Schema.of(COLUMNS, partition_keys=["day", "kind"]))
    table.append([replace(data_file("a.parquet"), partition=("2013-01-01", "x"))])
    table.update_spec().add_field(bucket("id", 8)).rename_field("day", "on").commit()
    table.append([replace(data_file("b.parquet"), spec_id=1, partition=("2013-01-01", "y", 3))])
    table.update_spec().remove_field("on").add_non_default_spec().commit()
    other = table.update_spec().remove_field("on").remove_field("kind")
    other.add_field(bucket("id", 4)).add_non_default_spec().commit()
    return table


def partition_of(entry: ManifestEntry, schema: Schema) -> list[object]:
    types = [schema.field(name).type for name in schema.partition_keys]
    return [
        scalar(value, each)
        for value, each in zip(decode_row(entry.partition, types), types, strict=True)
    ]


def test_files_of_every_spec_stand_in_manifests_by_the_partition_keys() -> None:
    table = evolved()
    PAIMON.project(handle_of(table))
    left = Left.by(table)
    newest = left.snapshots()["snapshot/snapshot-2"]

    found = {
        each.file.file_name: partition_of(each, table.state.schema) for each in left.entries(newest)
    }

    assert found == {"a.parquet": ["2013-01-01", "x"], "b.parquet": ["2013-01-01", "y"]}
    assert verify(handle_of(table)).is_empty


def test_a_removal_names_a_file_as_its_addition_did() -> None:
    table = evolved()
    table.delete_files(["b.parquet"])
    PAIMON.project(handle_of(table))
    left = Left.by(table)
    newest = left.snapshots()["snapshot/snapshot-3"]

    entries = [each for each in left.entries(newest) if each.file.file_name == "b.parquet"]

    assert {each.kind for each in entries} <= {"ADD", "DELETE"}
    assert len({(each.partition, each.bucket) for each in entries}) <= 1
    assert left.live(table, newest) == ["a.parquet"]


def test_a_file_without_a_partition_key_is_rejected_by_its_spec() -> None:
    lake = lake_on(memory())
    schema = Schema.of(COLUMNS, partition_keys=["day"], options={"ledger.formats": "iceberg"})
    table = orders(lake, schema)
    table.update_spec().remove_field("day").commit()
    table.append([replace(data_file("a.parquet"), spec_id=1, partition=())])

    # Logs of before files were asked whether Paimon has them may hold such ones, too.
    with pytest.raises(UnsupportedError, match="partition spec 1 are not partitioned by day"):
        files_of(PAIMON.format, handle_of(table), table.state)


def test_a_table_that_is_to_stay_paimons_keeps_its_partition_keys() -> None:
    table = orders(lake_on(memory()))
    with pytest.raises(ValueError, match="paimon"):
        table.update_spec().remove_field("day").commit()

    table.alter([SetOption("ledger.formats", "iceberg")])
    table.update_spec().remove_field("day").commit()
    assert table.state.spec.fields == ()
