"""Versions that the ledger cannot hold: the next one that it can hold has their changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from attrs import frozen
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import ledger
from ledger import Ledger, LedgerError, NotFoundError, Table, UnsupportedError
from ledger.cli import main
from ledger.state.delta_origin import DeltaOrigin
from ledger.table_handle import handle_of
from projections.delta import DELTA
from projections.delta.source import DeltaSource
from tests.lakes import lake_on, memory
from tests.projections.delta.importing.test_following import (
    ID,
    NAME,
    PROTOCOL,
    VECTOR,
    add,
    imported,
    info,
    metadata,
    parquet_rows,
    remove,
    write,
)
from tests.projections.delta.projecting import Left, is_consistent
from tests.projections.importing.what_came import now, transactions_of
from tests.readers.lakehouse import folder_of

Action = dict[str, Any]


def without_schema(**schema: Any) -> Action:
    action = metadata()["metaData"]
    return {"metaData": {**{k: v for k, v in action.items() if k != "schemaString"}, **schema}}


def requiring(reader: int, *readers: str, writers: Sequence[str] = ()) -> Action:
    said = {"minReaderVersion": reader, "minWriterVersion": 7, "writerFeatures": list(writers)}
    return {"protocol": {**said, "readerFeatures": list(readers)} if readers else said}


DAY = {**ID, "name": "day", "type": "date"}
BY_DAY = metadata(ID, DAY, partitionColumns=["day"])
INTERVAL = {**ID, "name": "s", "type": {"type": "struct", "fields": [{**ID, "type": "interval"}]}}


@frozen
class Cause:
    """Actions of a version that the ledger cannot hold, and of one that it can hold after it.

    Attributes:
        begins: The actions of the first version that cannot be held.
        ends: The actions of the version that can be held again.
        reason: The reason that the import gives.
        columns: The columns afterwards.
        error: The error where no version can be held.
    """

    begins: tuple[Action, ...]
    ends: tuple[Action, ...]
    reason: str
    columns: tuple[str, ...] = ("id",)
    error: type[LedgerError] = UnsupportedError


NO_COLUMNS = "the source's table has no columns"
CAUSES: dict[str, Cause] = {
    "no columns": Cause((metadata(),), (metadata(ID),), NO_COLUMNS),
    "no schema": Cause((without_schema(),), (metadata(ID),), NO_COLUMNS),
    "a schema that is null": Cause(
        (without_schema(schemaString=None),), (metadata(ID),), NO_COLUMNS
    ),
    "an empty schema": Cause((without_schema(schemaString=""),), (metadata(ID),), NO_COLUMNS),
    "a type": Cause((metadata(ID, INTERVAL),), (metadata(ID),), "has Delta's type interval"),
    "a feature of readers": Cause(
        (requiring(3, "catalogManaged"), metadata(ID)), (PROTOCOL,), "must support catalogManaged"
    ),
    "a version of readers": Cause(
        (requiring(4), metadata(ID)), (PROTOCOL,), "must support reader version 4"
    ),
    "a coordinator": Cause(
        (requiring(1, writers=["coordinatedCommits"]), metadata(ID)), (PROTOCOL,), "a coordinator"
    ),
    "a deletion vector": Cause(
        (metadata(ID), add("x", **VECTOR)), (remove("x"),), "/x has a deletion vector"
    ),
    "a file that is rewritten": Cause(
        (metadata(ID), add("x", **VECTOR)), (remove("x"), add("y")), "/x has a deletion vector"
    ),
    "a deletion vector that is restored": Cause(
        (metadata(ID), add("x", **VECTOR)), (remove("x"), add("x")), "/x has a deletion vector"
    ),
    "a missing file without statistics": Cause(
        (metadata(ID), add("x", stats=None)),
        (remove("x"),),
        "/x has no row count in its statistics, and does not exist",
        error=NotFoundError,
    ),
    "statistics that come later": Cause(
        (metadata(ID), add("x", stats=None)),
        (add("x"),),
        "/x has no row count in its statistics, and does not exist",
        error=NotFoundError,
    ),
    "a partition value": Cause(
        (BY_DAY, add("x", partitionValues={"day": "yesterday"})),
        (remove("x"),),
        "/x has the value 'yesterday'",
        ("id", "day"),
    ),
}
ONLY_FIRST: dict[str, Cause] = {
    "no metadata": Cause((), (metadata(ID),), "begins a table without metadata"),
    "no protocol": Cause((metadata(ID),), (PROTOCOL,), "begins a table without protocol"),
}


def folder_with(folder: Path, versions: Sequence[Sequence[Action]], first: int = 0) -> str:
    for number, actions in enumerate(versions, first):
        write(folder, number, info(10 * number + 10, userName=f"u{number}"), *actions)
    return str(folder)


def delta_version(table: Table) -> int:
    return table.state.origin_of_kind(DeltaOrigin).delta_version


def paths(table: Table) -> set[str]:
    return {each.path.rpartition("/")[2] for each in table.at().files}


def live_after(versions: Sequence[Sequence[Action]]) -> set[str]:
    found: set[str] = set()
    for actions in versions:
        found -= {each["remove"]["path"] for each in actions if "remove" in each}
        found |= {each["add"]["path"] for each in actions if "add" in each}
    return found


def assert_projected(table: Table) -> None:
    DELTA.project(handle_of(table))
    assert DELTA.verify(handle_of(table)).is_empty
    left = Left.by(table)
    assert is_consistent(left)
    first, last = left.versions()
    assert (first, last) == (
        table.state.origin_of_kind(DeltaOrigin).oldest_version,
        delta_version(table),
    )
    assert {each.rpartition("/")[2] for each in left.at(last).adds} == paths(table)


@pytest.mark.parametrize(("number", "name"), [*enumerate(CAUSES | ONLY_FIRST)])
def test_an_import_begins_at_the_first_version_that_can_be_held(
    tmp_path: Path, number: int, name: str
) -> None:
    cause, more = (CAUSES | ONLY_FIRST)[name], 3 * (number % 2)
    protocol = () if name == "no protocol" else (PROTOCOL,)
    between = [[add(f"b{each}")] for each in range(more)]
    versions = [[*protocol, *cause.begins], *between, [*cause.ends, add("e")], [add("f")]]
    source = folder_with(tmp_path / "t", versions)
    lake = lake_on(memory(), clock=now)
    planned = lake.plan_import("a.b", source, format_name="delta")
    done = imported(lake, source)
    assert planned.not_carried == done.not_carried
    (said,) = done.not_carried
    which = f"versions 0 to {more} have" if more else "version 0 has"
    assert said.startswith(f"{which} no transaction, and that of version {more + 1} has their")
    assert cause.reason in said
    table = lake.table("a.b")
    assert table.at().schema.names == cause.columns
    assert paths(table) == live_after(versions)
    first, second = transactions_of(lake)
    assert (first[0], first[1], first[2]) == (
        f"u{more + 1}",
        f"imported from {source}, versions 0 to {more + 1}",
        10 * more + 20,
    )
    assert second[1] == f"imported from {source}"
    assert delta_version(table) == more + 2
    assert_projected(table)


@pytest.mark.parametrize("is_followed", [True, False])
@pytest.mark.parametrize("name", CAUSES)
def test_a_version_in_between_is_left_out_in_one_import_and_in_two(
    tmp_path: Path, name: str, *, is_followed: bool
) -> None:
    cause, more = CAUSES[name], 2 * is_followed
    begun = [[PROTOCOL, BY_DAY if "partition" in name else metadata(ID), add("a"), add("z")]]
    if "partition" in name:
        begun = [[PROTOCOL, BY_DAY]]
    versions = [*begun, list(cause.begins), *([add(f"b{each}")] for each in range(more))]
    last = [*cause.ends, add("e"), remove("a")]
    source = folder_with(tmp_path / "t", begun)
    lake = ledger.open(str(tmp_path / "lake"))
    if is_followed:
        imported(lake, source)
        folder_with(tmp_path / "t", versions[1:], 1)
        with pytest.raises(cause.error, match=cause.reason):
            imported(lake, source)
        assert delta_version(lake.table("a.b")) == 0
    folder_with(tmp_path / "t", [*versions[1:], last], 1)
    done = imported(lake, source)
    (said,) = done.not_carried
    assert cause.reason in said
    table = lake.table("a.b")
    assert [entry[0] for entry in transactions_of(lake)] == ["u0", f"u{more + 2}"]
    assert paths(table) == live_after([*versions, last])
    assert table.at().schema.names == cause.columns
    assert_projected(table)
    lake.promote("a.b")
    table = lake.table("a.b")
    table.alter([ledger.AddColumn(("more",), "STRING")])
    DELTA.project(handle_of(table))
    assert DELTA.verify(handle_of(table)).is_empty
    assert paths(table) == live_after([*versions, last])


@pytest.mark.parametrize("begun", [0, 1])
@pytest.mark.parametrize("name", CAUSES)
def test_a_newest_version_that_cannot_be_held_is_rejected_and_nothing_is_written(
    tmp_path: Path, name: str, begun: int
) -> None:
    cause = CAUSES[name]
    versions = [[PROTOCOL, metadata(ID)]] * begun
    first = [PROTOCOL, *cause.begins] if not begun else list(cause.begins)
    source = folder_with(tmp_path / "t", [*versions, first, [add("f")]])
    lake = lake_on(memory(), clock=now)
    for read in (lake.import_table, lake.plan_import):
        with pytest.raises(cause.error, match=f"version {begun} of .*{cause.reason}"):
            read("a.b", source, format_name="delta")
    assert not lake.is_begun


def test_a_checkpoint_that_cannot_be_held_is_followed_by_the_first_version_that_can(
    tmp_path: Path,
) -> None:
    log = tmp_path / "t/_delta_log"
    log.mkdir(parents=True)
    missing = add("x", stats=None)
    rows = [PROTOCOL, metadata(ID), add("a"), missing]
    parquet_rows(log / f"{4:020d}.checkpoint.parquet", rows)
    source = folder_with(tmp_path / "t", [[add("b")], [remove("x"), add("c")], [add("d")]], 5)
    lake = lake_on(memory(), clock=now)
    (said,) = imported(lake, source).not_carried
    assert said.startswith("versions 4 to 5 have no transaction, and that of version 6 has their")
    table = lake.table("a.b")
    assert paths(table) == {"a", "b", "c", "d"}
    assert_projected(table)


def test_a_compaction_of_rows_that_were_left_out_is_no_compaction(tmp_path: Path) -> None:
    kept = {"dataChange": False}
    source = folder_with(
        tmp_path / "t",
        [
            [PROTOCOL, metadata(ID), add("a")],
            [add("x", **VECTOR)],
            [remove("x", **kept), remove("a", **kept), add("y", **kept)],
        ],
    )
    lake = lake_on(memory(), clock=now)
    imported(lake, source)
    found = lake.table("a.b").at().snapshot
    assert found is not None
    assert found.commit_kind == "OVERWRITE"


VERSIONS = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["add", "bad", "remove"]))),
    min_size=1,
    max_size=8,
)


@given(VERSIONS, st.integers(0, 8))
def test_each_transaction_has_the_files_of_a_version_that_can_be_held(
    changes: list[list[tuple[str, str]]], cut: int
) -> None:
    versions: list[list[Action]] = [[PROTOCOL, metadata(ID)]]
    held, live = [0], dict[str, str]()
    contents: dict[int, set[str]] = {0: set()}
    for number, some in enumerate(changes, 1):
        actions: list[Action] = []
        for path, kind in {path: (path, kind) for path, kind in some}.values():
            if kind == "remove":
                live.pop(path, None)
                actions.append(remove(path))
            else:
                live[path] = kind
                actions.append(add(path, **(VECTOR if kind == "bad" else {})))
        versions.append(actions)
        if "bad" not in live.values():
            held.append(number)
            contents[number] = set(live)
    with TemporaryDirectory() as folder:
        check_import(Path(folder), versions, held, contents, cut)


def check_import(
    folder: Path,
    versions: list[list[Action]],
    held: list[int],
    contents: dict[int, set[str]],
    cut: int,
) -> None:
    """Import a log in two steps, and compare the files of each transaction."""
    lake = lake_on(memory(), clock=now)
    for some in (versions[: cut + 1], versions):
        source = folder_with(folder / "t", some)
        if len(some) - 1 in held:
            imported(lake, source)
        else:
            with pytest.raises(UnsupportedError, match="deletion vector"):
                imported(lake, source)
    if lake.is_begun:
        assert_files(lake, held, contents)


def assert_files(lake: Ledger, held: list[int], contents: dict[int, set[str]]) -> None:
    table = lake.table("a.b")
    seen = []
    for version in range(1, table.state.version + 1):
        at = table.at(version=version)
        number = at.state.origin_of_kind(DeltaOrigin).delta_version
        assert {each.path.rpartition("/")[2] for each in at.files} == contents[number]
        seen.append(number)
    assert seen == [each for each in held if each <= seen[-1]]


VECTORS = requiring(3, "deletionVectors", writers=["deletionVectors"])


def vectors(version: int) -> dict[str, Any]:
    return {"deletionVector": {**VECTOR["deletionVector"], "offset": version}}


CHANGES: dict[str, Callable[[int], list[Action]]] = {
    "one file's vector changes": lambda each: [remove("x"), add("x", **vectors(each))],
    "another file gets a vector": lambda each: [
        remove("x" if each == 1 else f"x{each - 1}"),
        add(f"x{each}", **vectors(each)),
    ],
    "a file comes as well": lambda each: [add(f"y{each}"), add("x", **vectors(each))],
    "the metadata changes": lambda each: [
        metadata(ID, NAME) if each % 2 else metadata(ID),
        add("x", **vectors(each)),
    ],
    "the file without statistics is added again": lambda each: [
        add("0.parquet", stats=None),
        add("x", **vectors(each)),
    ],
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_files_of_versions_left_out_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, *, is_first: bool
) -> None:
    folder, reads = tmp_path / "t", Counter[str]()
    folder.mkdir()
    for each in range(3):
        parquet.write_table(pa.table({"id": [each] * (each + 1)}), folder / f"{each}.parquet")
    files = [add(f"{each}.parquet", stats=None) for each in range(3)]
    bad = add("x", **vectors(0))
    begun = [VECTORS, metadata(ID), *([bad, *files] if is_first else [*files, bad])]
    versions = [begun, *(CHANGES[change](each) for each in range(1, 9))]
    last = [remove(each) for each in sorted(live_after(versions)) if each.startswith("x")]
    original = DeltaSource.read

    def counted(source: DeltaSource, path: str) -> bytes:
        reads[path.rpartition("/")[2]] += 1
        return original(source, path)

    monkeypatch.setattr(DeltaSource, "read", counted)
    lake = lake_on(memory(), clock=now)
    imported(lake, folder_with(folder, [*versions, last]))
    assert {each: reads[f"{each}.parquet"] for each in range(3)} == {0: 1, 1: 1, 2: 1}
    table = lake.table("a.b")
    assert paths(table) == live_after([*versions, last])
    counts = {each.path.rpartition("/")[2]: each.record_count for each in table.at().files}
    assert [counts[f"{each}.parquet"] for each in range(3)] == [1, 2, 3]
    assert table.at().schema.names == ("id",)


ROWS: dict[int, list[int]] = {0: [1], 1: [1, 2], 3: [2, 3], 4: [2, 3, 4], 6: [3, 4, 6]} | {
    7: [3, 4, 6, 7]
}
"""The rows of each version of `table_with_two_gaps` that the ledger can hold."""


def table_with_two_gaps(folder: Path, first: int, last: int) -> str:
    """Write some of eight versions; versions 2 and 5 have a file with a deletion vector."""

    def file(number: int, **more: Any) -> Action:
        path = folder / f"{number}.parquet"
        folder.mkdir(exist_ok=True)
        parquet.write_table(pa.table({"id": [number]}), path)
        stats = json.dumps({"numRecords": 1})
        return add(path.name, size=path.stat().st_size, stats=stats, **more)

    versions = [
        [VECTORS, metadata(ID), file(1)],
        [file(2)],
        [remove("1.parquet"), file(1, **VECTOR)],
        [remove("1.parquet"), file(3)],
        [file(4)],
        [remove("2.parquet"), file(2, **VECTOR)],
        [remove("2.parquet"), file(6)],
        [file(7)],
    ]
    return folder_with(folder, versions[first : last + 1], first)


def rows_of_versions(table: Table) -> dict[int, list[int]]:
    """Return the rows of each version that delta-rs can read."""
    found = {}
    for version in range(8):
        with suppress(DeltaError):
            opened = DeltaTable(str(folder_of(table)), version=version)
            query = QueryBuilder().register("t", opened).execute("SELECT id FROM t ORDER BY id")
            found[version] = pa.table(query.read_all())["id"].to_pylist()
    return found


@pytest.mark.parametrize("is_promoted", [False, True])
@pytest.mark.parametrize(
    ("imports", "projections"),
    [
        ([7], [7]),
        ([0, 7], [0, 7]),
        ([1, 7], [1, 7]),
        ([1, 3, 7], [1, 7]),
        ([1, 4, 7], [1, 4, 7]),
        ([1, 4, 6, 7], [1, 7]),
        ([4, 6, 7], [4, 6, 7]),
        ([0, 1, 3, 4, 6, 7], [0, 1, 3, 4, 6, 7]),
    ],
)
def test_a_projected_version_has_its_sources_number_and_rows(
    tmp_path: Path, imports: list[int], projections: list[int], *, is_promoted: bool
) -> None:
    lake, last = ledger.open(str(tmp_path / "lake")), -1
    for each in imports:
        imported(lake, table_with_two_gaps(tmp_path / "t", last + 1, each))
        last = each
        if is_promoted and each == imports[-1]:
            lake.promote("a.b")
        if each in projections:
            table = lake.table("a.b")
            DELTA.project(handle_of(table))
    known = {**ROWS, 8: ROWS[7], 9: ROWS[7]} if is_promoted else ROWS
    found = rows_of_versions(table)
    assert found == {each: known[each] for each in found}
    assert {6, 7} <= found.keys()
    left = Left.by(table)
    assert set(left.infos()) <= known.keys()
    assert DELTA.verify(handle_of(table)).is_empty
    DELTA.rebuild(handle_of(table))
    again = Left.by(table).files
    assert again == {path: left.files[path] for path in again}
    assert {6, 7} <= rows_of_versions(table).keys()


@pytest.mark.parametrize("version", [2, 5])
@pytest.mark.parametrize("begun", [0, 1, 4, 7])
def test_verify_rejects_a_commit_of_a_version_that_was_left_out(
    tmp_path: Path, version: int, begun: int
) -> None:
    lake, first = ledger.open(str(tmp_path / "lake")), 0
    for last in sorted({begun, 7}):
        imported(lake, table_with_two_gaps(tmp_path / "t", first, last))
        DELTA.project(handle_of(lake.table("a.b")))
        first = last + 1
    table = lake.table("a.b")
    log = folder_of(table) / "_delta_log"
    stray = log / f"{version:020d}.json"
    stray.write_bytes((log / f"{7:020d}.json").read_bytes())
    assert DELTA.verify(handle_of(table)).changed == (f"_delta_log/{stray.name}",)
    DELTA.rebuild(handle_of(table))
    assert not stray.exists()
    assert DELTA.verify(handle_of(table)).is_empty


def test_the_command_line_says_which_versions_were_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder_with(tmp_path / "t", [[PROTOCOL, metadata()], [metadata(ID), add("a")]])
    place = ["--ledger", str(tmp_path / "lake")]
    main(["init", *place])
    main(["create", "a", *place])
    capsys.readouterr()
    main(["import", "delta", source, "a.b", "--output", "json", *place])
    (said,) = json.loads(capsys.readouterr().out)["notCarried"]
    assert said.startswith("version 0 has no transaction, and that of version 1 has their changes")
