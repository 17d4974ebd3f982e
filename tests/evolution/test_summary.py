"""Iceberg's summary of a promoted table's snapshot is counted, whatever its writer says."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ledger import FileChange
from ledger.decide import CommitSnapshot, Rollback
from ledger.model.iceberg_objects import MAIN
from ledger.state import IcebergOrigin
from ledger.state.iceberg_summary import RESERVED, TOTALS, FileTotals
from tests.evolution.born import builder_of

_COUNTS = (
    *("added-data-files", "deleted-data-files"),
    *("added-delete-files", "removed-delete-files"),
    *("added-equality-delete-files", "removed-equality-delete-files"),
    *("added-position-delete-files", "removed-position-delete-files"),
    *("added-dvs", "removed-dvs", "added-records", "deleted-records"),
    *("added-files-size", "removed-files-size"),
    *("added-position-deletes", "removed-position-deletes"),
    *("added-equality-deletes", "removed-equality-deletes"),
)
"""Those of Iceberg's `SnapshotSummary` that count files."""


def promoted(**summary: str) -> IcebergOrigin:
    """A promoted table, whose newest snapshot has a summary; without one: no snapshot at all."""
    found = builder_of(life="promoted").freeze().origin_of_kind(IcebergOrigin)
    head = found.current
    assert head is not None
    if not summary:
        return replace(found, refs={k: v for k, v in found.refs.items() if k != MAIN})
    said = {key.replace("_", "-"): value for key, value in summary.items()}
    newest = replace(head, summary=said)
    return replace(found, snapshots={**found.snapshots, head.snapshot_id: newest})


def commit(*files: FileChange, **said: Any) -> CommitSnapshot:
    facts = {"snapshot_properties": said}
    return CommitSnapshot(
        commit_kind="APPEND", commit_user="ann", commit_identifier=1, files=files, facts=facts
    )


def summary_of(origin: IcebergOrigin, change: CommitSnapshot | Rollback) -> dict[str, str]:
    if isinstance(change, Rollback):
        return origin.snapshot_summary(change.files, "OVERWRITE", {})
    properties = change.facts["snapshot_properties"]
    return origin.snapshot_summary(change.files, change.commit_kind, properties)


def file(path: str, **facts: Any) -> FileChange:
    return FileChange(path=path, record_count=3, file_size_in_bytes=10, field_ids=True, **facts)


def test_what_is_counted_is_what_iceberg_counts_of_files() -> None:
    others = {"operation", "changed-partition-count", "engine-name"}
    assert {*_COUNTS, *TOTALS, *others} == RESERVED


@pytest.mark.parametrize("key", sorted(RESERVED))
@pytest.mark.parametrize("before", [{}, {"total_records": "3"}])
def test_nobody_says_of_a_snapshot_what_is_counted(key: str, before: dict[str, str]) -> None:
    table, files = promoted(**before), (file("a"),)
    forged = summary_of(table, commit(*files, **{key: "77", "job": "nightly"}))
    assert forged == {**summary_of(table, commit(*files)), "job": "nightly"}
    assert "77" not in forged.values()


def test_every_sort_of_file_is_counted_as_it_comes_and_as_it_goes() -> None:
    sorts: tuple[dict[str, Any], ...] = (
        {"content": "data", "partition": ("x",)},
        {"content": "position-deletes"},
        {"content": "position-deletes", "format": "puffin"},
        {"content": "equality-deletes"},
    )
    come = [file(f"a{place}", **facts) for place, facts in enumerate(sorts)]
    come.append(file("b"))
    gone = [file(f"c{place}", kind="DELETE", **facts) for place, facts in enumerate(sorts)]
    found = summary_of(promoted(total_records="7"), commit(*come, *gone))
    assert found == {
        "operation": "overwrite",
        **dict.fromkeys(_COUNTS, "1"),
        **dict.fromkeys(("added-data-files",), "2"),
        **dict.fromkeys(("added-delete-files", "removed-delete-files"), "3"),
        "added-records": "6",
        "deleted-records": "3",
        "added-files-size": "50",
        "removed-files-size": "40",
        "added-position-deletes": "6",
        "removed-position-deletes": "6",
        "added-equality-deletes": "3",
        "removed-equality-deletes": "3",
        "changed-partition-count": "2",
        "total-records": "10",
        "engine-name": "lakeledger",
    }


@pytest.mark.parametrize("total", ["", "many", "-1", "2", "9" * 5000])
def test_a_total_that_was_not_said_or_never_true_is_left_out(total: str) -> None:
    gone = file("a", kind="DELETE")
    found = summary_of(promoted(total_records=total, total_data_files="1"), commit(gone))
    totals = {key: value for key, value in found.items() if key in TOTALS}
    assert totals == {"total-data-files": "0"}


def test_a_first_snapshot_has_all_totals_and_so_has_one_after_no_summary_none() -> None:
    found = summary_of(promoted(), commit(file("a")))
    assert [found[key] for key in TOTALS] == ["1", "0", "3", "10", "0", "0"]
    table = promoted(operation="append")
    head = table.current
    assert head is not None
    silent = replace(head, summary=UNSET)
    table = replace(table, snapshots={**table.snapshots, head.snapshot_id: silent})
    assert not set(TOTALS) & set(summary_of(table, commit(file("a"))))


def test_a_rollback_is_named_by_what_comes_and_goes() -> None:
    back = Rollback(commit_user="ann", target_snapshot_id=1, files=(file("a", kind="DELETE"),))
    assert summary_of(promoted(), back)["operation"] == "delete"


def test_a_table_begins_with_no_files_and_every_sum_is_of_its_own() -> None:
    assert set(FileTotals().named.values()) == {0}
    sums = FileTotals(1, 2, 3, 4, 5, 6)
    assert sums.named == dict(zip(TOTALS, range(1, 7), strict=True))
    assert sums - sums == FileTotals() == sums - FileTotals(1, 2, 3, 4, 5, 6)
