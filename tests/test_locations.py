"""Texts that mean the same file, and the names of a table's files."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pyarrow import parquet

import ledger
from ledger import (
    CommitConflictError,
    FileChange,
    InvalidChangeError,
    InvalidInputError,
    Schema,
    Table,
)
from ledger.cli import exits, main
from ledger.decide.snapshots import check_file_path, check_file_references
from ledger.locations import (
    FAMILIES,
    FileNames,
    below,
    family_of,
    is_absolute,
    may_escape_folder,
    place_of,
)
from ledger.opening.context import TableSetting
from ledger.stores import LocalStore
from ledger.stores.services import SERVICES, service_of
from ledger.table_handle import handle_of
from projections.importing.trial import canonical_url
from tests.faults import RacesBefore
from tests.lakes import Elsewhere, lake_on
from tests.projections.iceberg.older_logs import record_file

_HERE = "file:///lake/t"
_LOCAL_SPELLINGS = [
    "/lake/t/d/a",
    "file:///lake/t/d/a",
    "file:/lake/t/d/a",
    "FILE:///lake/t/d/a",
    "file://localhost/lake/t/d/a",
    "/lake//t/d/a",
    "//lake/t/d/a",
    "/lake/t/./d/a",
    "/lake/u/../t/d/a",
    "/../lake/t/d/a",
    "file:///lake/t//d/a",
]


@pytest.mark.parametrize("text", ["d/a", *_LOCAL_SPELLINGS])
def test_every_spelling_of_a_local_file_is_one_place(text: str) -> None:
    names = FileNames(_HERE)
    assert place_of(text, place_of(_HERE)) == place_of("/lake/t/d/a")
    assert names.usual(text) == "d/a"
    assert names.spellings(text) == names.spellings("d/a")


@pytest.mark.parametrize(
    ("location", "texts", "usual"),
    [
        ("s3://b/t", ["d/a", "s3://b/t/d/a", "s3a://b/t/d/a", "S3N://b/t/d/a"], "d/a"),
        ("s3a://b/t", ["s3://b/d/a", "s3n://b/d/a"], "s3://b/d/a"),
        ("gs://b", ["d/a", "gcs://b/d/a", "gs://b/d/a"], "d/a"),
        ("abfs://c/t", ["d/a", "az://c/t/d/a", "abfss://c/t/d/a"], "d/a"),
        (
            "abfss://c@x.dfs.core.windows.net/t",
            [
                "d/a",
                "abfs://c/t/d/a",
                "az://c/t/d/a",
                "abfss://c@x.blob.core.windows.net/t/d/a",
                "wasb://c@x.blob.core.windows.net/t/d/a",
                "wasbs://c@X.Blob.core.windows.net/t/d/a",
                "ABFS://c@X.DFS.CORE.WINDOWS.NET/t/d/a",
            ],
            "d/a",
        ),
        (_HERE, ["/lake/tt/a", "file:///lake/tt/a"], "file:///lake/tt/a"),
        ("file:///", ["/a", "file:///a", "a"], "a"),
    ],
)
def test_every_spelling_of_a_file_has_one_usual_name(
    location: str, texts: list[str], usual: str
) -> None:
    names = FileNames(location)
    assert {names.usual(each) for each in texts} == {usual}
    assert all(each in names.spellings(usual) for each in texts if each == each.lower())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/t/d/a", "s3://b/t/d//a"),
        ("s3://b/t/d/a", "s3://b/t/x/../d/a"),
        ("s3://b/t/a", "s3://c/t/a"),
        ("s3://b/t/a", "s3://b/t/A"),
        ("s3://b/t/a", "gs://b/t/a"),
        ("s3://b/t/a", "/b/t/a"),
        ("s3://b/t/a%20b", "s3://b/t/a b"),
        ("abfss://c@x.dfs.core.windows.net/a", "abfss://C@x.dfs.core.windows.net/a"),
        ("abfss://c@x.dfs.core.windows.net/a", "wasb://c@x.blob.core.windows.net/A"),
        ("abfss://c@x.dfs.core.windows.net/a", "abfss://c@y.dfs.core.windows.net/a"),
    ],
)
def test_keys_are_bytes_and_buckets_are_apart(one: str, other: str) -> None:
    for location in ("s3://b/t", _HERE):
        names = FileNames(location)
        assert names.usual(one) != names.usual(other)
        assert set(names.spellings(one)).isdisjoint(names.spellings(other))


def test_a_key_that_goes_on_with_a_slash_keeps_its_url() -> None:
    assert FileNames("s3://b/t").usual("s3a://b/t//a") == "s3://b/t//a"


_SEGMENTS = st.lists(st.sampled_from(["a", "b c", "dt=1", "ü", "%2e"]), min_size=1, max_size=4)


@given(
    path=_SEGMENTS.map("/".join),
    location=st.sampled_from(
        [_HERE, "s3://b/t", "gs://b", "abfs://c/t", "memory://m/t", "hdfs://n/t"]
    ),
)
def test_spellings_agree_with_one_another(path: str, location: str) -> None:
    names = FileNames(location)
    found = names.spellings(path)
    assert found[0] == path
    assert len(set(found)) == len(found)
    for each in found:
        assert names.spellings(each) == found
        names.check(each)
        assert is_absolute(each) == (each != path)


@pytest.mark.parametrize("text", ["d/a", "d:/a", "files:/a", *_LOCAL_SPELLINGS, "s3a://b//a"])
def test_only_what_is_relative_lies_below_a_location(text: str) -> None:
    outside = text not in {"d/a", "d:/a", "files:/a"}
    for location in (_HERE, "s3://b/t"):
        found = below(location, text)
        assert found == (text if outside else f"{location}/{text}")
        assert place_of(found) == place_of(text, place_of(location))
        assert family_of(found) == place_of(found).family


@pytest.mark.parametrize("text", _LOCAL_SPELLINGS)
def test_a_source_on_this_machine_is_named_by_its_path(text: str) -> None:
    assert place_of(canonical_url(text)) == place_of(text)
    assert canonical_url(f"{text}/") == canonical_url(text) == f"/{canonical_url(text).strip('/')}"


def test_what_lies_in_what() -> None:
    root = place_of("file:///lake")
    assert root.holds(place_of("/lake"))
    assert root.holds(place_of("file:/lake/t"))
    assert not root.holds(place_of("/lakes"))
    assert not root.holds(place_of("s3://lake/t"))
    assert root.meets(place_of("/LAKE/t"))
    assert root.meets(place_of("/"))
    assert place_of("s3://b").holds(place_of("s3a://b/t"))
    with pytest.raises(InvalidInputError, match="is relative"):
        place_of("lake")


def test_the_services_schemes_are_those_of_places() -> None:
    assert [each.scheme for each in SERVICES] == [*FAMILIES]
    for family, schemes in FAMILIES.items():
        assert {service.scheme for each in schemes if (service := service_of(each))} == {family}


@pytest.mark.parametrize(
    ("store", "near", "far"),
    [
        ("s3://b/lake", ["s3://c/t", "s3a://b/t", "S3N://b/t"], ["gs://b/t", "/b/t"]),
        ("gs://b", ["gs://c/t", "gcs://b/t"], ["s3://b/t", "memory://b"]),
        (
            "abfss://c@x.dfs.core.windows.net/lake",
            ["abfs://c@x.blob.core.windows.net/t", "az://c/t"],
            ["s3://c/t", "file:/c/t"],
        ),
    ],
)
def test_the_client_of_a_ledger_is_that_of_all_on_its_kind_of_storage(
    store: str, near: list[str], far: list[str]
) -> None:
    options = {"key": "mine"}
    setting = TableSetting(Elsewhere(store), options, author="me")
    assert all(setting.options_for(each) == options for each in near)
    assert not any(setting.options_for(each) for each in far)


def a_file(path: str) -> FileChange:
    return FileChange(path=path, record_count=3, file_size_in_bytes=9)


def schema() -> Schema:
    """Columns of a table whose files may have any names."""
    return Schema.of({"id": "BIGINT"}, options={"ledger.formats": "iceberg"})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = ledger.open(str(tmp_path / "lake"), author="me")
    lake.create_database("shop")
    return lake.create_table("shop.orders", schema())


def spelled(table: Table, name: str) -> list[str]:
    path = table.location.removeprefix("file://")
    return [name, f"{path}/{name}", f"file://{path}/{name}"]


@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("second", range(3))
def test_a_file_comes_once_whatever_it_is_called(table: Table, first: int, second: int) -> None:
    names = spelled(table, "d/a")
    table.append([a_file(names[first])])
    other = table if first else ledger.open(handle_of(table).ledger_url).table("shop.orders")

    with pytest.raises(InvalidChangeError, match="live file already"):
        other.append([a_file(names[second])])
    # As it was written.
    assert [each.path for each in table.at().files] == [names[first]]
    table.delete_files([names[second]])
    assert table.at().files == ()
    with pytest.raises(InvalidChangeError, match="was removed"):
        table.append([a_file(names[second])])


_AZURE = "abfss://c@acc.dfs.core.windows.net/k"
_AZURE_LATER = [
    "wasbs://c@acc.blob.core.windows.net/k",
    "wasb://c@acc.blob.core.windows.net/k",
    "abfss://c@ACC.dfs.core.windows.net/k",
]


@pytest.mark.parametrize("path", ["abfs://c@acc.blob.core.windows.net/k", *_AZURE_LATER])
def test_a_file_on_azure_comes_once(table: Table, path: str) -> None:
    table.append([a_file(_AZURE)])
    with pytest.raises(InvalidChangeError, match="live file already|not a canonical spelling"):
        table.append([a_file(path)])


@pytest.mark.parametrize("path", _AZURE_LATER)
def test_what_older_clients_took_for_two_files_is_sound(table: Table, path: str) -> None:
    table.append([a_file(_AZURE)])
    record_file(table, a_file(path))
    assert main(["verify", "--ledger", handle_of(table).ledger_url]) == exits.OK
    table.delete_files([path])
    assert [each.path for each in table.at().files] == [_AZURE]


def test_a_file_comes_once_after_a_checkpoint_too(table: Table) -> None:
    relative, absolute, url = spelled(table, "d/a")
    table.append([a_file(absolute)])
    for number in range(120):
        table.append([a_file(str(number))])
    for name in (relative, url):
        with pytest.raises(InvalidChangeError, match="live file already"):
            ledger.open(handle_of(table).ledger_url).table("shop.orders").append([a_file(name)])


def test_a_file_is_named_once_in_a_commit(table: Table) -> None:
    relative, absolute, url = spelled(table, "d/a")
    for names in ([relative, absolute], [absolute, url], [relative, relative]):
        with pytest.raises(InvalidChangeError, match="named twice in one commit"):
            table.append(list(map(a_file, names)))


def test_two_writers_that_add_one_file_under_two_names_conflict(tmp_path: Path) -> None:
    class Unlocked(LocalStore):
        def lock(self, key: str) -> AbstractContextManager[None]:
            del key
            return nullcontext()

    store = Unlocked(tmp_path / "lake")
    other = lake_on(store)
    other.create_database("shop")
    theirs = other.create_table("shop.orders", schema())
    relative, absolute, _ = spelled(theirs, "d/a")
    log = handle_of(theirs).log.layout.commit(1)
    racing = RacesBefore(
        store, lambda: theirs.append([a_file(absolute)]), on=lambda key: key == log
    )
    mine = lake_on(racing).table("shop.orders")

    with pytest.raises((CommitConflictError, InvalidChangeError)):
        mine.append([a_file(relative)])
    assert len(theirs.at().files) == 1


@pytest.mark.parametrize(
    "path",
    [
        "/lake//a",
        "/lake/./a",
        "/lake/u/../a",
        "file://localhost/lake/a",
        "FILE:///lake/a",
        "S3://b/a",
        "s3://b/../a",
        "s3://b/./a",
        "https://host/a/../b",
        "simplecache::s3://b/a",
        "zip://a::file:///b",
    ],
)
def test_a_spelling_that_readers_disagree_about_is_refused(table: Table, path: str) -> None:
    with pytest.raises(InvalidChangeError, match="file path"):
        table.append([a_file(path)])


_LEADS_OUT = [
    *("", "..", "a/../../b", "s3://b/k/../c", "hdfs://n/a/../b", "/x/../a", "file:///x/.."),
    *("a\\..\\b", "..\\b", "a/..\\b", "s3://b/..\\c", "/x\\..\\a", "file:///x/..\\a"),
    *("a\0b", "s3://b/a\0b", "/a\0b", "file:/a\0b"),
]


def _adds(table: Table, path: str) -> None:
    table.append([a_file(path)])


def _refers(table: Table, path: str) -> None:
    deletes = replace(a_file("d"), content="position-deletes", referenced_data_file=path)
    check_file_references(table.state, deletes, check_file_path)


def _counts(table: Table, path: str) -> None:
    table.set_partition_statistics(1, path, 9)


def _sketches(table: Table, path: str) -> None:
    table.set_statistics(1, path, 9, 3, [])


_DOORS = [_adds, _refers, _counts, _sketches]


@pytest.mark.parametrize("path", _LEADS_OUT)
@pytest.mark.parametrize("door", _DOORS)
def test_what_verify_would_report_enters_by_no_interface(
    table: Table, door: Callable[[Table, str], None], path: str
) -> None:
    table.append([a_file("a")])
    assert may_escape_folder(path)
    with pytest.raises((InvalidChangeError, InvalidInputError)):
        door(table, path)


@pytest.mark.parametrize(
    "path", ["a..b", "a/..b", "a\\b", "C:\\a", "s3a://b//a", "s3://b/a\\b", "/elsewhere/a", "x:y"]
)
@pytest.mark.parametrize("door", _DOORS)
def test_what_is_accepted_verify_does_not_report(
    table: Table, door: Callable[[Table, str], None], path: str
) -> None:
    table.append([a_file("a")])
    door(table, path)
    assert main(["verify", "--ledger", handle_of(table).ledger_url]) == exits.OK


@pytest.mark.parametrize("path", ["x/a://b", "://a", "1://a", "dt=a://b/c"])
def test_half_a_url_is_no_place_elsewhere(table: Table, path: str) -> None:
    with pytest.raises(InvalidChangeError, match="neither a URL nor below"):
        table.append([a_file(path)])


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../../x", "/etc/passwd", "d/x", "a\\b", "s3://b/x", "a\0b", "a\nb"]
)
def test_an_extra_file_lies_next_to_its_file(table: Table, name: str) -> None:
    with pytest.raises(InvalidChangeError, match="extra file"):
        table.append([replace(a_file("a"), extra_files=("a.index", name))])
    table.append([replace(a_file("a"), extra_files=("a.index", "a b.index"))])
    assert main(["verify", "--ledger", handle_of(table).ledger_url]) == exits.OK


@pytest.mark.parametrize("path", ["s3a://b//a", "hdfs://n/a", "abfs://c/a", "/elsewhere/a"])
def test_a_plain_spelling_is_kept_byte_for_byte(table: Table, path: str) -> None:
    table.append([a_file(path)])
    assert [each.path for each in table.at().files] == [path]


def rows(place: Path, names: list[str] | None = None) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    numbers = pa.array([1, 2, 3], pa.int64())
    parquet.write_table(
        pa.Table.from_arrays([numbers] * len(names or ["id"]), names or ["id"]), place
    )
    return place


def test_existing_files_are_found_under_every_name(table: Table, tmp_path: Path) -> None:
    folder = Path(table.location.removeprefix("file://"))
    rows(folder / "d/a.parquet")
    (tmp_path / "link").symlink_to(folder)
    (folder / "e").symlink_to(folder / "d")
    texts = [
        f"{folder}//d/a.parquet",
        f"{folder}/d/../d/a.parquet",
        f"file://{folder}/d/a.parquet",
        f"{tmp_path}/link/d/a.parquet",
        f"{folder}/e/a.parquet",
        os.path.relpath(folder / "d/a.parquet"),
    ]
    for each in texts:
        assert [found.path for found in table.data_files([each])] == ["d/a.parquet"]
    table.add_files([texts[0]])
    for each in texts:
        with pytest.raises(InvalidChangeError, match="live file already"):
            table.add_files([each])


def test_a_table_that_is_reached_through_a_link_knows_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    lake = ledger.open(str(tmp_path / "link"), author="me")
    lake.create_database("shop")
    table = lake.create_table("shop.orders", schema())
    rows(tmp_path / "real/shop.db/orders/a.parquet")
    for root in ("real", "link"):
        (found,) = table.data_files([str(tmp_path / root / "shop.db/orders/a.parquet")])
        assert found.path == "a.parquet"


def test_a_linked_partition_folder_says_its_value(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"), author="me")
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "day": "STRING"}, partition_keys=["day"])
    table = lake.create_table("shop.orders", schema)
    target = rows(tmp_path / "other/a.parquet")
    folder = Path(table.location.removeprefix("file://"))
    folder.mkdir(exist_ok=True)
    (folder / "day=x").symlink_to(target.parent)

    (found,) = table.data_files([str(folder / "day=x/a.parquet")])
    assert (found.path, found.partition) == (f"file://{target}", ("x",))


@pytest.mark.parametrize("names", [["id", "id"], ["id", "x", "x"]])
def test_two_columns_of_one_name_are_refused(table: Table, names: list[str]) -> None:
    place = rows(Path(table.location.removeprefix("file://")) / "a.parquet", names)
    with pytest.raises(InvalidInputError, match=f"two columns named '{names[-1]}'"):
        table.add_files([str(place)])


def test_two_members_of_one_name_are_refused(table: Table) -> None:
    place = Path(table.location.removeprefix("file://")) / "a.parquet"
    place.parent.mkdir(exist_ok=True)
    number = pa.field("m", pa.int64())
    inner = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], fields=[number, number])
    parquet.write_table(pa.table({"id": inner}), place)
    with pytest.raises(InvalidInputError, match=r"two columns named 'id\.m'"):
        table.add_files([str(place)])
