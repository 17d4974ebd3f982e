"""Every Iceberg table of the fixtures is imported, and its metadata is written back unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger import InvalidInputError, Ledger, UpgradeRequiredError
from ledger.events import SourceFollowed
from ledger.state import TableStream
from ledger.stores.file_access import FileAccess
from projections.iceberg import TableMetadata, metadata_of, open_source
from projections.iceberg.imported_metadata import differing_fields
from tests.lakes import lake_on, memory
from tests.projections.importing.what_came import now

DATA = Path(__file__).parents[3] / "data/iceberg"
INVALID = {
    "TableMetadataUnsupportedVersion.json",
    "TableMetadataV1MissingSchemaType.json",
    "TableMetadataV2CurrentSchemaNotFound.json",
    "TableMetadataV2MissingLastPartitionId.json",
    "TableMetadataV2MissingPartitionSpecs.json",
    "TableMetadataV2MissingSchemas.json",
    "TableMetadataV2MissingSortOrder.json",
    "table-v2-with-fixed-and-decimal-types.json",
    "table-v3.json",
}
TABLES = sorted(
    each for each in (*(DATA / "java").glob("*.json"), *(DATA / "pyiceberg").glob("table*.json"))
)
VERSIONS = ("v1", "v2", "v3")


def fresh() -> Ledger:
    return lake_on(memory(), clock=now)


def placed(body: bytes, folder: Path, name: str = "a.metadata.json") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(body)
    return str(folder / name)


def assert_imported(lake: Ledger, source: str) -> TableMetadata:
    """The table says what the source says, by replay and by checkpoint."""
    wanted = open_source(source, FileAccess(("file", ""), {})).newest.metadata
    state = lake.table("a.b").state
    kept = TableStream().decode_state(TableStream().encode_state(state))
    assert differing_fields(metadata_of(state), wanted) == []
    assert differing_fields(metadata_of(kept), wanted) == []
    return wanted


@pytest.mark.parametrize("file", [each for each in TABLES if each.name not in INVALID])
def test_a_metadata_file_is_imported_completely(file: Path, tmp_path: Path) -> None:
    lake, source = fresh(), placed(file.read_bytes(), tmp_path)
    planned = lake.plan_import("a.b", source)
    assert not lake.is_begun
    done = lake.import_table("a.b", source)
    assert (done.transactions, done.snapshots) == (planned.transactions, planned.snapshots)
    assert_imported(lake, source)
    assert lake.import_table("a.b", source).transactions == 0


@pytest.mark.parametrize("file", [each for each in TABLES if each.name in INVALID])
def test_a_source_that_is_no_table_is_rejected_in_a_line_and_leaves_nothing(
    file: Path, tmp_path: Path
) -> None:
    lake = fresh()
    with pytest.raises((InvalidInputError, UpgradeRequiredError)) as refused:
        lake.import_table("a.b", placed(file.read_bytes(), tmp_path))
    assert "\n" not in str(refused.value)
    assert not lake.is_begun


def test_defaults_of_columns_come_in_as_their_texts(tmp_path: Path) -> None:
    said = json.loads(life("v3")[0])
    fields = said["schemas"][-1]["fields"]
    free = max(each["id"] for each in fields) + 100
    said["last-column-id"] = free + 1
    fields += [
        {"id": free, "name": "n", "required": False, "type": "int", "initial-default": 7},
        {
            "id": free + 1,
            "name": "s",
            "required": False,
            "type": "string",
            "initial-default": "a",
            "write-default": "b",
        },
    ]
    lake = fresh()
    lake.import_table("a.b", placed(json.dumps(said).encode(), tmp_path))

    columns = {each.name: each for each in lake.table("a.b").state.schema.fields}
    defaults = {each: (columns[each].initial_default, columns[each].default_value) for each in "ns"}
    assert defaults == {"n": ("7", None), "s": ("a", "b")}


def life(version: str) -> list[bytes]:
    folder = DATA / "generated/java-life" / version
    return [each.read_bytes() for each in sorted(folder.glob("*.metadata.json"))]


def history_of(lake: Ledger) -> list[object]:
    """The events, without the locations of the source's files."""
    return [
        event.last_updated_millis if isinstance(event, SourceFollowed) else event
        for commit in lake.table("a.b").events(1)
        for event in commit.transactions[0].events
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_history_of_iceberg_java_is_imported_at_once_in_steps_and_from_its_last_file(
    version: str, tmp_path: Path
) -> None:
    bodies = life(version)
    folder = tmp_path / "metadata"
    followed, at_once, from_last = fresh(), fresh(), fresh()
    for number, body in enumerate(bodies):
        source = placed(body, folder, f"{number:05d}-x.metadata.json")
        followed.import_table("a.b", source)
        assert_imported(followed, source)
        alone = fresh()
        alone.import_table("a.b", placed(body, tmp_path / f"alone-{number}"))
        assert_imported(alone, source)
    at_once.import_table("a.b", source)
    from_last.import_table("a.b", placed(bodies[-1], tmp_path / "last"))
    assert_imported(at_once, source)
    assert_imported(from_last, source)
    assert history_of(followed) == history_of(at_once)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_history_of_iceberg_java_keeps_its_times_and_ids(version: str, tmp_path: Path) -> None:
    lake = fresh()
    last = json.loads(life(version)[-1])
    lake.import_table("a.b", placed(life(version)[-1], tmp_path))
    table = lake.table("a.b")
    for snapshot in last.get("snapshots", ()):
        at = table.at(snapshot=snapshot["snapshot-id"])
        assert at.snapshot is not None
        assert at.snapshot.time_millis == snapshot["timestamp-ms"]
        assert at.schema.id == snapshot.get("schema-id", at.schema.id)
    times = [each.transactions[0].effective_time_millis for each in table.events()]
    assert times == sorted(times, key=str)


def test_unknown_keys_are_named(tmp_path: Path) -> None:
    said = json.loads(life("v3")[-1])
    said["colour"] = {"a": 1}
    said["snapshots"][0]["shade"] = 1
    said["schemas"][0]["fields"][0]["hue"] = 1
    said["refs"]["main"]["tint"] = 1
    lake, source = fresh(), placed(json.dumps(said).encode(), tmp_path)
    named = " ".join(lake.import_table("a.b", source).not_carried)
    for each in ("key colour ", "snapshots.shade", "schemas.fields.hue", "refs.*.tint"):
        assert each in named
    assert lake.import_table("a.b", source).not_carried == ()
    assert fresh().plan_import("a.b", placed(life("v3")[-1], tmp_path)).not_carried == ()
