"""An imported Delta log, from a checkpoint on or whole: history, projection, promotion, changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UnsetType

import ledger
from ledger import AddColumn, Ledger, SetOption, Table
from ledger.table_handle import handle_of
from projections.delta import DELTA
from projections.delta.actions import HINT
from tests.lakes import lake_on, memory
from tests.projections.delta.importing.checkpoints import FORMS, Form, classic, lose_beginning
from tests.projections.delta.importing.test_following import (
    ID,
    PROTOCOL,
    add,
    info,
    metadata,
    remove,
    write,
    written,
)
from tests.projections.delta.importing.test_promoting import own_file
from tests.projections.delta.importing.writing import READERS, Life, Read, read_by_all
from tests.projections.delta.projecting import Left, is_consistent
from tests.projections.importing.what_came import now
from tests.readers.test_delta_readers import folder_of
from tests.thorough import examples, some


@frozen
class Case:
    """A source's history, and how it gets to the ledger.

    Attributes:
        form: Writes the checkpoint that the log begins with; None leaves the log whole.
        seed: Of the source's rows and steps.
        keeps_commit: Whether the commit file of that version is left.
        interval: The option `delta.checkpointInterval`.
        key: The partition column; None for none.
        txns: Writers whose numbers the checkpoint holds.
        earlier: The source's commits before the checkpoint.
        later: The same after it.
        mirrored: How many of the earlier commits are imported before the log is cleaned up; -1 for
            an import that only sees what is left.
        is_projected: Whether the mirror is projected before the promotion.
        others: Other formats that are declared after the promotion.
    """

    form: Form | None
    seed: int = 1
    keeps_commit: bool = True
    interval: int = 1
    key: str | None = None
    txns: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ("append", "overwrite", "append")
    later: tuple[str, ...] = ("append",)
    mirrored: int = -1
    is_projected: bool = True
    others: str = "iceberg"


ACTIONS: dict[str, Callable[[Life], object]] = {
    "step": lambda life: life.step(),
    "append": lambda life: life.write("append"),
    "overwrite": lambda life: life.write("overwrite"),
    "delete": lambda life: life.table.delete("id = 7"),
    "compact": lambda life: life.table.optimize.compact(),
    "widen": lambda life: life.write("append", schema_mode="merge"),
    "properties": lambda life: life.table.alter.set_table_properties({"delta.appendOnly": "false"}),
}

_COMMITS = st.lists(st.sampled_from(sorted(ACTIONS.keys() - {"step"})), max_size=4).map(tuple)

CASES = st.builds(
    Case,
    form=st.sampled_from(FORMS),
    keeps_commit=st.booleans(),
    interval=st.sampled_from([1, 2, 3, 5, 10, 100]),
    key=st.sampled_from([None, None, "day", "text"]),
    txns=st.sampled_from([(), ("job",), ("job", "other")]),
    earlier=_COMMITS,
    later=_COMMITS,
    mirrored=st.integers(-1, 3),
    is_projected=st.booleans(),
    others=st.sampled_from(["iceberg", "paimon", "iceberg,paimon"]),
)


def newest(table: Table) -> Read:
    """Return what every reader finds in the newest projected version, which is sound."""
    table.project("delta")
    found = DELTA.verify(handle_of(table))
    assert found.is_empty
    assert not found.foreign
    return read_by_all(folder_of(table))


@contextmanager
def promoted(case: Case) -> Iterator[tuple[Table, dict[int, Read]]]:
    """Give a table that was promoted, and what each version read as that the source had left."""
    with TemporaryDirectory() as folder:
        life = Life(Path(folder) / "t", case.seed, case.key)
        life.table.alter.set_table_properties({"delta.checkpointInterval": str(case.interval)})
        with ledger.open(f"{folder}/lake") as lake:
            for number, each in enumerate(case.earlier):
                if number == case.mirrored:
                    imported(lake, life, case)
                ACTIONS[each](life)
            first = life.version
            for each in case.later:
                ACTIONS[each](life)
            before = {
                version: READERS[0](life.folder, version)
                for version in range(first, life.version + 1)
            }
            if case.form is not None:
                lose_beginning(
                    Path(life.folder),
                    first,
                    case.form,
                    txns=case.txns,
                    keeps_commit=case.keeps_commit,
                )
            imported(lake, life, case)
            lake.promote("a.b")
            yield lake.table("a.b"), before


def imported(lake: Ledger, life: Life, case: Case) -> None:
    lake.import_table("a.b", life.folder, format_name="delta")
    if case.is_projected:
        lake.table("a.b").project("delta")


def wider(read: Read, name: str) -> Read:
    """Return what is read after an empty column came."""
    names, rows = read
    return [*names, name], sorted(((*row, None) for row in rows), key=repr)


def assert_goes_on(case: Case) -> None:
    """Check every version of the source, then each kind of change of the new owner's."""
    with promoted(case) as (table, before):
        expected = before[max(before)]
        assert newest(table) == expected
        for version, read in before.items():
            for reader in READERS:
                assert reader(folder_of(table), version) == read, version
        for name in ("one", "two", "three"):
            table.alter([AddColumn((name,), "STRING")])
            expected = wider(expected, name)
            assert newest(table) == expected
        if case.key is None:
            table.add_files(own_file(table, "own.parquet", [777]))
            own = (777, *(None for _ in expected[0][1:]))
            expected = expected[0], sorted([*expected[1], own], key=repr)
            assert newest(table) == expected
        files = table.at().files
        if files:
            table.delete_files(files[0].path)
            left = newest(table)
            assert len(left[1]) == len(expected[1]) - files[0].record_count
            table.rollback(snapshot=table.state.last_snapshot_id - 1)
            assert newest(table) == expected
        table.alter([SetOption("ledger.formats", f"delta,{case.others}")])
        for each in case.others.split(","):
            table.project(each)
        if "iceberg" in case.others and files:
            assert table.at().to_arrow().num_rows == len(expected[1])
        table.alter([SetOption("ledger.reader-grace", "0")])
        if table.state.last_snapshot_id > 1:
            table.expire_snapshots(before=table.state.last_snapshot_id)
        assert newest(table) == expected


@pytest.mark.parametrize("keeps_commit", some([True, False], 1))
@pytest.mark.parametrize("form", FORMS)
def test_a_promoted_log_continues_from_each_form_of_checkpoint(
    form: Form, *, keeps_commit: bool
) -> None:
    assert_goes_on(Case(form, keeps_commit=keeps_commit))


@pytest.mark.parametrize("key", [None, "text", "day"])
def test_a_whole_promoted_log_continues_in_its_partitions_and_types(key: str | None) -> None:
    assert_goes_on(Case(None, seed=13, interval=4, key=key, earlier=(), later=("step",) * 5))


@pytest.mark.parametrize("is_projected", [True, False])
def test_a_promoted_log_continues_from_a_checkpoint_over_a_mirrors_gap(
    *, is_projected: bool
) -> None:
    gap = ("append", "overwrite", "append", "append")
    assert_goes_on(Case(classic, earlier=gap, mirrored=2, interval=2, is_projected=is_projected))


@settings(max_examples=examples(48))
@given(CASES)
def test_a_promoted_log_continues_whatever_checkpoint_it_begins_with(case: Case) -> None:
    assert_goes_on(case)


def brought_in(folder: Path, version: int, form: Form, *, keeps_commit: bool = True) -> Ledger:
    """Return a ledger with the table of a log that begins with the checkpoint of a version."""
    lose_beginning(folder, version, form, keeps_commit=keeps_commit)
    lake = lake_on(memory(), clock=now)
    lake.import_table("a.b", str(folder), format_name="delta")
    return lake


def history(lake: Ledger) -> list[tuple[str, str, int | UnsetType]]:
    return [
        (each.author, each.message, each.effective_time_millis)
        for commit in lake.table("a.b").events(1)
        for each in commit.transactions
    ]


@pytest.mark.parametrize("more", [{}, {"inCommitTimestamp": 31}])
@pytest.mark.parametrize("form", FORMS)
def test_the_commit_file_of_the_first_version_gives_its_time_author_and_message(
    tmp_path: Path, form: Form, more: dict[str, int]
) -> None:
    place = written(tmp_path / "t")
    said = info(30, userId="bob", userMetadata="nightly", **more)
    txn = {"txn": {"appId": "job", "version": 7, "lastUpdated": 30}}
    write(tmp_path / "t", 2, said, txn, add("e"))
    lake = brought_in(tmp_path / "t", 2, form)
    millis = more.get("inCommitTimestamp", 30)
    assert history(lake) == [("bob", "nightly", millis), ("", f"imported from {place}", 40)]
    table = lake.table("a.b")
    delta = table.at(version=1).state.delta
    assert delta is not None
    assert (delta.delta_version, delta.timestamp_millis) == (2, millis)
    assert snapshot_keys(table)[0] == ("job", 7)
    DELTA.project(handle_of(table))
    assert Left.by(table).infos()[2]["inCommitTimestamp"] == millis


def test_a_first_version_without_commit_file_has_no_author_and_the_time_of_its_checkpoint(
    tmp_path: Path,
) -> None:
    place = written(tmp_path / "t")
    lake = brought_in(tmp_path / "t", 3, classic, keeps_commit=False)
    ((author, message, millis),) = history(lake)
    (path,) = (tmp_path / "t/_delta_log").glob("*.checkpoint.parquet")
    assert (author, message) == ("", f"imported from {place}")
    assert millis == path.stat().st_mtime_ns // 1_000_000


def snapshot_keys(table: Table) -> list[tuple[str, int]]:
    found = (table.at(snapshot=each + 1).snapshot for each in range(table.state.last_snapshot_id))
    return [(each.commit_user, each.commit_identifier) for each in found if each is not None]


def commit_kinds(table: Table) -> list[str]:
    found = (table.at(snapshot=each + 1).snapshot for each in range(table.state.last_snapshot_id))
    return [each.commit_kind for each in found if each is not None]


@pytest.mark.parametrize("form", FORMS)
def test_a_checkpoint_over_a_gap_is_no_compaction_and_repeats_no_writers_number(
    tmp_path: Path, form: Form
) -> None:
    written(tmp_path / "t")
    lake = lake_on(memory(), clock=now)
    lake.import_table("a.b", str(tmp_path / "t"), format_name="delta")
    write(tmp_path / "t", 4, info(50), add("g"))
    write(tmp_path / "t", 5, info(60, userName="eve", userMetadata="late"), add("h"))
    lose_beginning(tmp_path / "t", 5, form, txns=["job"])
    lake.import_table("a.b", str(tmp_path / "t"), format_name="delta")
    table = lake.table("a.b")
    assert history(lake)[-1] == ("eve", "late", 60)
    assert commit_kinds(table) == ["APPEND", "OVERWRITE", "APPEND", "COMPACT", "APPEND"]
    assert snapshot_keys(table).count(("job", 7)) == 1


def test_the_first_version_is_no_compaction_though_its_checkpoint_holds_tombstones(
    tmp_path: Path,
) -> None:
    written(tmp_path / "t")
    write(tmp_path / "t", 4, info(now()), remove("f", deletionTimestamp=now()), add("g"))
    table = brought_in(tmp_path / "t", 4, classic).table("a.b")
    assert commit_kinds(table) == ["APPEND"]


@pytest.mark.parametrize(
    "more",
    [
        {"owner": {"team": "a"}},
        {"format": {"provider": "parquet", "options": {}, "version": 1}},
    ],
)
def test_metadata_with_unknown_fields_gets_a_checkpoint(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    often = {"delta.checkpointInterval": "1"}
    write(tmp_path / "t", 0, info(1), PROTOCOL, metadata(ID, configuration=often, **more))
    write(tmp_path / "t", 1, info(2), add("a"))
    lake = lake_on(memory(), clock=now)
    lake.import_table("a.b", str(tmp_path / "t"), format_name="delta")
    lake.promote("a.b", source=str(tmp_path / "t"))
    left = Left.by(lake.table("a.b"))
    assert HINT in left.files
    assert is_consistent(left)
