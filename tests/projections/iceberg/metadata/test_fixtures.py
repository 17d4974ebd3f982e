"""Real metadata files: Java's verdict on each, round trips, and whole lives of tables."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from ledger import InvalidInputError, LedgerError, UpgradeRequiredError
from projections.iceberg import (
    TableMetadata,
    apply_updates,
    check_requirements,
    read_metadata,
    requirement_to_json,
    requirements_of,
    table_update_from_json,
    write_metadata,
)
from projections.iceberg.rest_updates import update_to_json
from projections.iceberg.schema_json import encode_record
from projections.iceberg.table_metadata import check_same_table
from tests.projections.iceberg.metadata.cases import DATA

REFUSED: dict[str, type[LedgerError]] = {
    "TableMetadataV1MissingSchemaType.json": InvalidInputError,
    "TableMetadataV2CurrentSchemaNotFound.json": InvalidInputError,
    "TableMetadataV2MissingSchemas.json": InvalidInputError,
    "TableMetadataV2MissingPartitionSpecs.json": InvalidInputError,
    "TableMetadataV2MissingLastPartitionId.json": InvalidInputError,
    "TableMetadataV2MissingSortOrder.json": InvalidInputError,
    "TableMetadataUnsupportedVersion.json": UpgradeRequiredError,
    "table-v2-with-fixed-and-decimal-types.json": InvalidInputError,
    "table-v3.json": InvalidInputError,
}
FOUND = [*DATA.glob("java/*.json"), *DATA.glob("pyiceberg/*.json")]
TABLES = sorted(each for each in FOUND if "view" not in each.name.lower())
LIVES = sorted(DATA.glob("generated/java-life/*"))
LIFE_FILES = sorted(DATA.glob("generated/java-life/*/*.metadata.json"))


def readable(paths: list[Path]) -> list[Path]:
    return [each for each in paths if each.name not in REFUSED]


def refused(paths: list[Path]) -> list[Path]:
    return [each for each in paths if each.name in REFUSED]


def test_every_verdict_is_on_a_file_that_is_there() -> None:
    assert REFUSED.keys() <= {each.name for each in FOUND}
    assert (len(readable(TABLES)), len(LIFE_FILES)) == (11, 37)


@pytest.mark.parametrize("path", refused(TABLES), ids=lambda each: each.name)
def test_a_table_that_java_rejects_is_rejected(path: Path) -> None:
    with pytest.raises(REFUSED[path.name]):
        read_metadata(path.read_bytes())


@pytest.mark.parametrize("path", [*readable(TABLES), *LIFE_FILES], ids=lambda each: each.name)
def test_what_is_read_and_written_reads_the_same(path: Path) -> None:
    metadata = read_metadata(path.read_bytes())
    written = write_metadata(metadata)
    assert read_metadata(written) == metadata
    assert read_metadata(written.decode()) == metadata
    assert read_metadata(gzip.compress(written)) == metadata
    assert write_metadata(read_metadata(written)) == written


@pytest.mark.parametrize("path", LIFE_FILES, ids=lambda each: f"{each.parent.name}-{each.name}")
def test_a_file_of_java_is_written_again_key_by_key(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    written = write_metadata(read_metadata(content))
    # As texts, so that the order of keys counts, too.
    assert json.dumps(json.loads(written)) == json.dumps(json.loads(content))


@pytest.mark.parametrize("path", LIFE_FILES, ids=lambda each: f"{each.parent.name}-{each.name}")
def test_snapshots_rendered_before_give_the_same_file(path: Path) -> None:
    metadata = read_metadata(path.read_bytes())
    rendered = [encode_record(each) for each in metadata.snapshots]
    assert write_metadata(metadata, rendered) == write_metadata(metadata)
    with pytest.raises(InvalidInputError, match="rendered snapshots"):
        write_metadata(metadata, [*rendered, b"{}"])


def commits(life: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((life / "commits.json").read_text(encoding="utf-8"))
    return listed


def after(life: Path, commit: dict[str, Any]) -> TableMetadata:
    return read_metadata((life / commit["result"]).read_bytes())


@pytest.mark.parametrize("life", LIVES, ids=lambda each: each.name)
def test_the_fold_of_a_commit_is_the_file_that_java_wrote(life: Path) -> None:
    first, *others = commits(life)
    base = after(life, first)
    for step, commit in enumerate(others):
        expected = after(life, commit)
        batch = [table_update_from_json(each) for each in commit["updates"]]
        folded = apply_updates(
            base,
            batch,
            now_ms=expected.last_updated_ms,
            previous_location=f"mem:/t/metadata/{step:05}-x.metadata.json",
        )
        assert folded == expected, commit["title"]
        # The fold gave the file from the file before; from its own results it does, too.
        base = folded


@pytest.mark.parametrize("life", LIVES, ids=lambda each: each.name)
def test_updates_call_for_the_requirements_that_java_sent(life: Path) -> None:
    first, *others = commits(life)
    base = after(life, first)
    for commit in others:
        required = requirements_of(
            base, [table_update_from_json(each) for each in commit["updates"]]
        )
        assert [requirement_to_json(each) for each in required] == commit["requirements"]
        check_requirements(base, required)
        base = after(life, commit)


@pytest.mark.parametrize("life", LIVES, ids=lambda each: each.name)
def test_updates_are_written_as_java_sent_them(life: Path) -> None:
    deprecated = {"add-schema": "last-column-id", "set-statistics": "snapshot-id"}
    for commit in commits(life):
        for sent in commit["updates"]:
            expected = {k: v for k, v in sent.items() if k != deprecated.get(sent["action"])}
            assert update_to_json(table_update_from_json(sent)) == expected


def test_a_table_of_another_uuid_is_another_table() -> None:
    table = read_metadata((DATA / "java/TableMetadataV2Valid.json").read_bytes())
    shouted = evolve(table, table_uuid=(table.table_uuid or "").upper())
    check_same_table(table, shouted)
    check_same_table(evolve(table, table_uuid=None), table)
    with pytest.raises(InvalidInputError, match="dropped"):
        check_same_table(table, evolve(table, table_uuid="0b7c"))
