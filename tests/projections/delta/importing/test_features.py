"""The projected log of an imported Delta table claims only features whose content it has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import Factory, frozen
from deltalake import DeltaTable, QueryBuilder
from pyarrow import parquet

import ledger
from ledger import Ledger, Table
from projections.delta import from_parquet
from tests.projections.delta.importing.test_following import ID, add, info, remove, write
from tests.readers.lakehouse import folder_of

Action = dict[str, Any]
_ON = "true"


@frozen
class Feature:
    """One table feature of a source, with everything that its writers keep in the log.

    Attributes:
        configuration: The options of the metadata.
        column: The metadata of column `id`.
        of_readers: Whether readers have to support it.
        file: The fields of each `add` action.
        actions: The actions of each commit.
        is_backed: Whether a log, as (metadata, actions), has the content that the feature needs.
    """

    configuration: dict[str, str] = Factory(dict)
    column: dict[str, Any] = Factory(dict)
    of_readers: bool = False
    file: dict[str, Any] = Factory(dict)
    actions: tuple[Action, ...] = ()
    is_backed: Callable[[Action, list[Action]], bool] = lambda _metadata, _actions: True


def domain(name: str, **said: Any) -> Action:
    return {"domainMetadata": {"domain": name, "configuration": json.dumps(said), "removed": False}}


def has_domain(name: str) -> Callable[[Action, list[Action]], bool]:
    return lambda _, actions: any(
        each["domainMetadata"]["domain"] == name for each in actions if "domainMetadata" in each
    )


def is_configured(key: str) -> Callable[[Action, list[Action]], bool]:
    return lambda metadata, _: key in metadata["configuration"]


def has_column_key(key: str) -> Callable[[Action, list[Action]], bool]:
    return lambda metadata, _: f'"{key}"' in metadata["schemaString"]


def has_row_ids(metadata: Action, actions: list[Action]) -> bool:
    files = [each["add"] for each in actions if "add" in each]
    return has_domain("delta.rowTracking")(metadata, actions) and all(
        {"baseRowId", "defaultRowCommitVersion"} <= each.keys() for each in files
    )


def has_changes(_: Action, actions: list[Action]) -> bool:
    return any("cdc" in each for each in actions)


def has_times(metadata: Action, actions: list[Action]) -> bool:
    infos = [each["commitInfo"] for each in actions if "commitInfo" in each]
    is_on = metadata["configuration"].get("delta.enableInCommitTimestamps") == _ON
    return is_on and all("inCommitTimestamp" in each for each in infos)


def never(_metadata: Action, _actions: list[Action]) -> bool:
    return False


_ROW_IDS = {"delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1"} | {
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1"
}
_MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
_WIDER = [{"fromType": "integer", "toType": "long"}]
_CHANGES = {
    "cdc": {"path": "_change_data/c", "partitionValues": {}, "size": 1, "dataChange": False}
}
_DEFAULT_COLUMN_ID = {"delta.identity.start": 1, "delta.identity.step": 1}

FEATURES: dict[str, Feature] = {
    "allowColumnDefaults": Feature(
        {"delta.feature.allowColumnDefaults": "supported"},
        {"CURRENT_DEFAULT": "7"},
        is_backed=has_column_key("CURRENT_DEFAULT"),
    ),
    "appendOnly": Feature(
        {"delta.appendOnly": "false"}, is_backed=is_configured("delta.appendOnly")
    ),
    "changeDataFeed": Feature(
        {"delta.enableChangeDataFeed": _ON}, actions=(_CHANGES,), is_backed=has_changes
    ),
    "checkConstraints": Feature(
        {"delta.constraints.least": "id > 0"}, is_backed=is_configured("delta.constraints.least")
    ),
    "checkpointProtection": Feature(
        {"delta.requireCheckpointProtectionBeforeVersion": "2"}, is_backed=never
    ),
    "clustering": Feature(
        actions=(domain("delta.clustering", clusteringColumns=[["id"]]),),
        is_backed=has_domain("delta.clustering"),
    ),
    "columnMapping": Feature(
        {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"},
        _MAPPED,
        of_readers=True,
        is_backed=has_column_key("delta.columnMapping.physicalName"),
    ),
    "deletionVectors": Feature({"delta.enableDeletionVectors": _ON}, of_readers=True),
    "domainMetadata": Feature(actions=(domain("app", a=1),), is_backed=has_domain("app")),
    "generatedColumns": Feature(
        column={"delta.generationExpression": "1 + 1"},
        is_backed=has_column_key("delta.generationExpression"),
    ),
    **{
        f"icebergCompatV{each}": Feature(
            {
                f"delta.enableIcebergCompatV{each}": _ON,
                "delta.universalFormat.enabledFormats": "iceberg",
            },
            is_backed=never,
        )
        for each in (1, 2, 3)
    },
    "icebergWriterCompatV1": Feature({"delta.enableIcebergWriterCompatV1": _ON}, is_backed=never),
    "identityColumns": Feature(
        column=_DEFAULT_COLUMN_ID, is_backed=has_column_key("delta.identity.start")
    ),
    "inCommitTimestamp": Feature(
        {"delta.enableInCommitTimestamps": _ON}, is_backed=has_times
    ),
    "invariants": Feature(
        column={"delta.invariants": '{"expression":{"expression":"id > 0"}}'},
        is_backed=has_column_key("delta.invariants"),
    ),
    "rowTracking": Feature(
        {"delta.enableRowTracking": _ON, "delta.rowTrackingSuspended": "false", **_ROW_IDS},
        file={"baseRowId": 0, "defaultRowCommitVersion": 1},
        actions=(domain("delta.rowTracking", rowIdHighWaterMark=1),),
        is_backed=has_row_ids,
    ),
    "timestampNtz": Feature(of_readers=True),
    "typeWidening": Feature(
        {"delta.enableTypeWidening": _ON},
        {"delta.typeChanges": _WIDER},
        of_readers=True,
        is_backed=has_column_key("delta.typeChanges"),
    ),
    "v2Checkpoint": Feature({"delta.checkpointPolicy": "v2"}, of_readers=True),
    "vacuumProtocolCheck": Feature(of_readers=True),
    "a feature of tomorrow": Feature(
        {"delta.enableA feature of tomorrow": _ON}, is_backed=never
    ),
}  # fmt: skip
FENCES = {"lakeledger"}


KEPT = {
    *("allowColumnDefaults", "appendOnly", "checkConstraints", "columnMapping", "deletionVectors"),
    *("generatedColumns", "identityColumns", "inCommitTimestamp", "invariants", "timestampNtz"),
    *("typeWidening", "v2Checkpoint", "vacuumProtocolCheck"),
}
NOT_OF_DELTA_RS = {"typeWidening", "vacuumProtocolCheck"}
"""Reader features that delta-rs does not support; it opens no source with them, either."""


def source(folder: Path, names: list[str]) -> str:
    """Write a table of four versions that has some features."""
    features = [FEATURES[each] for each in names]
    for version in (1, 2):
        rows = pa.table({"id": pa.array([version, version + 10], pa.int64())})
        folder.mkdir(exist_ok=True)
        parquet.write_table(rows, folder / f"{version}.parquet")
    column = {**ID, "metadata": {key: each for one in features for key, each in one.column.items()}}
    protocol: Action = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": names}
    if any(each.of_readers for each in features):
        of_readers = [each for each in names if FEATURES[each].of_readers]
        protocol |= {"minReaderVersion": 3, "readerFeatures": of_readers}
    table: Action = {
        "id": "7d6c1f9e-0000-4000-8000-000000000001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [column]}),
        "partitionColumns": [],
        "configuration": {"delta.checkpointInterval": "1"},
        "createdTime": 1,
    }
    for each in features:
        table["configuration"].update(each.configuration)
    more = [action for one in features for action in one.actions]
    facts = {key: each for one in features for key, each in one.file.items()}

    def file(name: str) -> Action:
        size = (folder / name).stat().st_size
        return add(name, size=size, stats=json.dumps({"numRecords": 2}), **facts)

    write(folder, 0, info(1), {"protocol": protocol}, {"metaData": table})
    write(folder, 1, info(2, inCommitTimestamp=2), file("1.parquet"), *more)
    write(folder, 2, info(3, inCommitTimestamp=3), file("2.parquet"), *more)
    write(folder, 3, info(4, inCommitTimestamp=4), remove("1.parquet"), *more)
    return str(folder)


def imported(tmp_path: Path, names: list[str]) -> tuple[Ledger, Table]:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", source(tmp_path / "source", names), format_name="delta")
    return lake, lake.table("a.b")


def projected(table: Table) -> tuple[Action, Action, list[Action]]:
    """Return the newest protocol and metadata of the projected log, and all its actions."""
    table.project("delta")
    logs = sorted((folder_of(table) / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for each in logs for line in each.read_text().splitlines()]
    protocol = [each["protocol"] for each in actions if "protocol" in each][-1]
    metadata = [each["metaData"] for each in actions if "metaData" in each][-1]
    return protocol, metadata, actions


def claimed(protocol: Action) -> set[str]:
    return {*protocol["writerFeatures"], *protocol.get("readerFeatures", ())} - FENCES


def assert_fenced(table: Table) -> None:
    """Check that every protocol of the log locks out other writers."""
    folder = folder_of(table)
    protocols = [
        json.loads(line)["protocol"]
        for each in sorted((folder / "_delta_log").glob("*.json"))
        for line in each.read_text().splitlines()
        if "protocol" in json.loads(line)
    ] + [
        json.loads(from_parquet(each.read_bytes()).protocol)
        for each in (folder / "_delta_log").glob("*.checkpoint.parquet")
    ]
    features = [each["writerFeatures"] for each in protocols]
    fences = [{each for each in some if each.startswith("lakeledger")} for some in features]
    assert fences == [FENCES] * len(protocols)
    assert protocols


def check(table: Table) -> set[str]:
    """Check that the log has what it claims, and that delta-rs reads it; return the claims."""
    protocol, metadata, actions = projected(table)
    found = claimed(protocol)
    assert [each for each in found if not FEATURES[each].is_backed(metadata, actions)] == []
    left_out = FEATURES.keys() - found
    used = {key for each in found for key in FEATURES[each].configuration}
    turned_on = {key for each in left_out for key in FEATURES[each].configuration} - used
    assert turned_on.isdisjoint(metadata["configuration"])
    if not NOT_OF_DELTA_RS.isdisjoint(found):
        return found
    opened = DeltaTable(str(folder_of(table)))
    rows = QueryBuilder().register("t", opened).execute("SELECT id FROM t ORDER BY id").read_all()
    assert rows["id"].to_pylist() == [2, 12]
    return found


@pytest.mark.parametrize("name", FEATURES)
def test_an_imported_table_claims_a_feature_only_with_its_content(
    tmp_path: Path, name: str
) -> None:
    lake, table = imported(tmp_path, [name])
    assert check(table) == {"inCommitTimestamp", *({name} & KEPT)}
    lake.promote("a.b")
    check(lake.table("a.b"))


def test_an_imported_table_with_all_features_claims_those_with_their_content(
    tmp_path: Path,
) -> None:
    _, table = imported(tmp_path, list(FEATURES))
    assert check(table) == KEPT
    checkpoint = max((folder_of(table) / "_delta_log").glob("*.checkpoint.parquet"))
    found = from_parquet(checkpoint.read_bytes())
    assert claimed(json.loads(found.protocol)) == KEPT
    assert json.loads(found.metadata) == projected(table)[1]


@pytest.mark.parametrize("writer", range(1, 7))
def test_a_legacy_protocol_claims_only_what_the_log_has(tmp_path: Path, writer: int) -> None:
    folder = tmp_path / "source"
    source(folder, ["changeDataFeed"])
    first = folder / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(each) for each in first.read_text().splitlines()]
    lines[1] = {"protocol": {"minReaderVersion": 1, "minWriterVersion": writer}}
    first.write_text("".join(json.dumps(each) + "\n" for each in lines))
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", str(folder), format_name="delta")
    protocol, metadata, _ = projected(lake.table("a.b"))
    assert "changeDataFeed" not in claimed(protocol)
    assert "delta.enableChangeDataFeed" not in metadata["configuration"]


def test_the_source_keeps_its_features_when_it_is_promoted(tmp_path: Path) -> None:
    lake, table = imported(tmp_path, ["rowTracking", "domainMetadata"])
    lake.promote("a.b")
    newest = max((tmp_path / "source" / "_delta_log").glob("*.json"))
    actions = [json.loads(each) for each in newest.read_text().splitlines()]
    (protocol,) = (each["protocol"] for each in actions if "protocol" in each)
    assert {"rowTracking", "domainMetadata"} <= set(protocol["writerFeatures"])
    assert table.identifier == lake.table("a.b").identifier


def another(tmp_path: Path, name: str, source: str) -> Table:
    """Import a source into another ledger, and project it there."""
    lake = ledger.open(str(tmp_path / name))
    lake.import_table("a.b", source, format_name="delta")
    table = lake.table("a.b")
    table.project("delta")
    return table


@pytest.mark.parametrize("names", [["rowTracking"], ["columnMapping"], ["timestampNtz"]])
def test_every_log_of_an_imported_table_locks_out_other_writers(
    tmp_path: Path, names: list[str]
) -> None:
    lake, table = imported(tmp_path, names)
    table.project("delta")
    follower = another(tmp_path, "follower", str(tmp_path / "source"))
    for each in (table, follower, another(tmp_path, "mirror", str(folder_of(table)))):
        assert_fenced(each)
    lake.promote("a.b")
    table = lake.table("a.b")
    table.project("delta")
    table.alter([ledger.AddColumn(("more",), "STRING")])
    table.project("delta")
    assert_fenced(table)
    assert_fenced(another(tmp_path, "of promoted", str(folder_of(table))))
    assert_fenced(another(tmp_path, "of a fenced source", str(tmp_path / "source")))
    assert_fenced(another(tmp_path, "follower", str(tmp_path / "source")))


def test_a_mirror_of_a_native_tables_log_locks_out_other_writers(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("a")
    options = {"ledger.formats": "delta"}
    table = lake.create_table("a.b", ledger.Schema.of({"id": "BIGINT"}, options=options))
    table.project("delta")
    assert_fenced(another(tmp_path, "mirror", str(folder_of(table))))


OTHERS = {
    "delta.appendOnly": "true",
    "delta.checkpointInterval": "10",
    "delta.columnMapping.mode": "none",
    "delta.constraints.least": "id > 0",
    "delta.inclined": "1",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.parquet.vorder.enabled": "true",
}


@pytest.mark.parametrize("name", ["append", "column", "in", "checkpoint", "log", "c"])
def test_an_unknown_feature_takes_only_its_own_options_along(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "source"
    source(folder, ["appendOnly", "checkConstraints", "columnMapping"])
    first = folder / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(each) for each in first.read_text().splitlines()]
    actions[1]["protocol"]["writerFeatures"].append(name)
    of_it = [f"delta.{name}", f"delta.{name}.more", f"delta.enable{name.title()}"]
    actions[2]["metaData"]["configuration"] = {**OTHERS, **dict.fromkeys(of_it, "1")}
    first.write_text("".join(json.dumps(each) + "\n" for each in actions))
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", str(folder), format_name="delta")
    protocol, metadata, _ = projected(lake.table("a.b"))
    assert name not in claimed(protocol)
    assert metadata["configuration"] == {**OTHERS, "delta.enableInCommitTimestamps": "true"}
