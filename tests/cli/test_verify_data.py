"""`lakeledger verify --data` of tables whose files engines' manifests list."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import ledger
from ledger import FormatError, Ledger, SetOption
from tests.cli.conftest import Run
from tests.cli.test_expire_imported import (
    NAME,
    mirrored_iceberg,
    promoted_delta,
    promoted_iceberg,
    promoted_paimon,
    served_iceberg,
    served_promoted_iceberg,
)
from tests.projections.iceberg.importing import writing as iceberg
from tests.projections.iceberg.serving.served_table import Served

SERVED = (served_iceberg, served_promoted_iceberg)
MAKERS = (mirrored_iceberg, *SERVED, promoted_iceberg, promoted_delta, promoted_paimon)


def path_of(url: str) -> Path:
    return Path(url.removeprefix("file://"))


@pytest.fixture
def there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("LAKELEDGER_ALLOWED_LOCATIONS", str(tmp_path))
    return lambda *argv: run(*argv, "--ledger", tmp_path / "lake")


def found(there: Run, *argv: str) -> dict[str, str]:
    """Return what the findings of a failing verification say, by file."""
    ran = there("verify", *argv, "--data", "--output", "json")
    assert ran.code == 6, ran
    return {each["file"]: each["what"] for each in json.loads(ran.out)["findings"]}


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_the_files_of_all_snapshots_are_checked(
    make: Callable[[Path], Ledger], tmp_path: Path, there: Run
) -> None:
    table = make(tmp_path).table(NAME)
    oldest, newest = table.state.snapshot_ids[-1], table.state.snapshot_ids[0]
    gone = {each.path for each in table.at(snapshot=oldest).files}
    live = {each.path for each in table.at(snapshot=newest).files}
    assert there("verify", "--data").code == 0

    for each in gone | live:
        (path_of(table.location) / path_of(each)).unlink()
    said = found(there)
    assert set(said.values()) == {"the data file is missing"}
    assert len(said) == len(gone | live)


def test_heads_of_branches_and_tags_are_checked(tmp_path: Path, there: Run) -> None:
    theirs = iceberg.created(tmp_path / "t")
    first = iceberg.appended(theirs, 1, name=["a"])
    with theirs.manage_snapshots() as refs:
        refs.create_tag(first, "kept")
        refs.create_branch(first, "audit")
    with theirs.transaction() as ours:
        ours.delete("id = 1")
    iceberg.appended(theirs, 2, name=["b"])
    theirs.append(theirs.scan().to_arrow(), branch="audit")
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    table = lake.import_table(NAME, theirs.metadata_location) and lake.table(NAME)
    assert there("verify", NAME, "--data").code == 0

    (tagged,) = table.at(tag="kept").files
    (_, branched) = table.at("branch:audit").files
    for each in (tagged, branched):
        path_of(each.path).write_bytes(b"PAR1")
    said = found(there, NAME)
    assert said.keys() == {tagged.path, branched.path}
    assert f"4 bytes, and is recorded with {tagged.file_size_in_bytes}" in said[tagged.path]


def test_a_missing_manifest_hides_no_finding_about_other_tables(tmp_path: Path, there: Run) -> None:
    served = Served(served_iceberg(tmp_path))
    native = served.lake.create_table("a.z", {"id": "BIGINT"})
    native.append([{"id": 1}])
    (lost,) = native.at().files
    path_of(f"{native.location}/{lost.path}").unlink()
    listed = served.engine().snapshots()[0].manifest_list
    path_of(listed).unlink()
    newest = served.engine().inspect.files().to_pylist()[0]["file_path"]
    path_of(newest).unlink()

    said = found(there)

    assert said[lost.path] == "the data file is missing"
    assert said[newest] == "the data file is missing"
    assert any(listed in each for each in said.values())


def test_a_format_is_rejected_by_its_rule_though_the_first_snapshot_is_removed(
    tmp_path: Path,
) -> None:
    table = promoted_iceberg(tmp_path).table(NAME)
    table.append([{"id": 9, "name": "z"}])
    table.expire_snapshots(before=table.state.last_snapshot_id)
    with pytest.raises(FormatError, match="it was imported from Iceberg"):
        table.alter([SetOption("ledger.formats", "iceberg,delta")])
