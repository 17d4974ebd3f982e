"""The newest metadata file of a folder is the one that Java's Hadoop tables and catalogs read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import AlreadyExistsError, InvalidInputError
from projections.importing.trial import SourceFiles
from tests.projections.iceberg.importing.test_looking_again import append, metadata
from tests.projections.iceberg.importing.writing import appended, created

OTHER = "5b1f0c3e-0000-4000-8000-000000000001"


def catalog_name(number: int, end: str = "a") -> str:
    return f"{number:05d}-{end}.metadata.json"


def write(folder: Path, name: str, said: Mapping[str, Any]) -> Path:
    """Write a metadata file, compressed if its name says so."""
    place = folder / "metadata" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(said).encode()
    place.write_bytes(gzip.compress(text) if ".gz" in name else text)
    return place


def write_hint(folder: Path, hint: str | None) -> None:
    if hint is not None:
        (folder / "metadata/version-hint.text").write_text(hint)


def imported(tmp_path: Path, folder: Path) -> tuple[str, tuple[int, ...]]:
    """Import the folder; return the name of its newest metadata file, and the snapshots."""
    lake = ledger.open(str(tmp_path / "lake"))
    found = lake.import_table("a.b", str(folder))
    return Path(found.metadata_file).name, found.snapshots


V = {each: f"v{each}.metadata.json" for each in range(12)}
GZIP, OLD_GZIP = "v{}.gz.metadata.json", "v{}.metadata.json.gz"
HADOOP = {V[1]: 1, V[2]: 2, V[3]: 3}
CATALOG = {catalog_name(each): each for each in range(4)}

FOLDERS: dict[str, tuple[dict[str, int], str | None, str]] = {
    "no hint": (HADOOP, None, V[3]),
    "a hint that is behind": (HADOOP, "1", V[3]),
    "a hint that is up to date": (HADOOP, "3", V[3]),
    "a hint with a line end": (HADOOP, "2\r\n", V[3]),
    "a hint with a second line": (HADOOP, "2\n99", V[3]),
    "a hint with a sign": (HADOOP, "+2", V[3]),
    "a hint with blanks": (HADOOP, " 1 ", V[3]),
    "an empty hint": (HADOOP, "", V[3]),
    "a hint that is a word": (HADOOP, "latest", V[3]),
    "a hint beyond Java's integers": (HADOOP, str(2**31), V[3]),
    "a hint of endless digits": (HADOOP, "9" * 5000, V[3]),
    "a hint that names a file": (HADOOP, V[1], V[3]),
    "a hint that names a file without its ending": (HADOOP, "v2", V[3]),
    "a hint before a gap": ({V[1]: 1, V[2]: 2, V[4]: 4}, "1", V[2]),
    "a gap without a hint": ({V[1]: 1, V[2]: 2, V[4]: 4}, None, V[4]),
    "a hint after a gap": ({V[1]: 1, V[4]: 4, V[5]: 5}, "4", V[5]),
    "versions of two digits": ({V[each]: each for each in range(1, 12)}, None, V[11]),
    "gzip": ({V[1]: 1, GZIP.format(2): 2}, "1", GZIP.format(2)),
    "gzip by its older name": ({V[1]: 1, OLD_GZIP.format(2): 2}, "1", OLD_GZIP.format(2)),
    "plain before gzip": ({OLD_GZIP.format(2): 1, GZIP.format(2): 1, V[2]: 2}, "2", V[2]),
    "gzip before its older name": ({OLD_GZIP.format(2): 1, GZIP.format(2): 2}, "2", "v2.gz*"),
    "a version with zeros": ({V[2]: 2, "v0009.metadata.json": 1}, None, V[2]),
    "a version that is no number": ({V[2]: 2, "vx.metadata.json": 1}, None, V[2]),
    "an unfinished commit": (
        {V[1]: 1, V[2]: 2, "99999999-0000-4000-8000-000000000001.metadata.json": 1},
        "1",
        V[2],
    ),
    "names of a catalog": (CATALOG, None, catalog_name(3)),
    "names of a catalog and a number as hint": (CATALOG, "1", catalog_name(3)),
    "names of a catalog and one as hint": (CATALOG, catalog_name(1), catalog_name(3)),
    "names of a catalog and one without ending as hint": (CATALOG, "00001-a", catalog_name(3)),
    "numbers of several lengths": (
        {catalog_name(99_999): 1, catalog_name(100_000): 2},
        None,
        catalog_name(100_000),
    ),
    "gzip by a catalog": (
        {catalog_name(0): 1, "00001-a.gz.metadata.json": 2},
        None,
        "00001-a.gz.metadata.json",
    ),
    "equal numbers, of which the hint names one": (
        {catalog_name(1): 1, catalog_name(2, "a"): 2, catalog_name(2, "b"): 2},
        "00002-a",
        catalog_name(2, "a"),
    ),
    "equal numbers, of which the hint names one by its path": (
        {catalog_name(1): 1, catalog_name(2, "a"): 2, catalog_name(2, "b"): 2},
        f"s3://lake/t/metadata/{catalog_name(2, 'b')}",
        catalog_name(2, "b"),
    ),
    "a Hadoop table that went on in a catalog": (
        {**HADOOP, catalog_name(0): 4, catalog_name(1): 5},
        "3",
        catalog_name(1),
    ),
    "a table of a catalog that went on as one of Hadoop": (
        {catalog_name(7): 1, V[1]: 2, V[2]: 3},
        "1",
        V[2],
    ),
    "a name without a number that the hint names": (
        {catalog_name(0): 1, "newest.metadata.json": 2},
        "newest",
        "newest.metadata.json",
    ),
}
"""Folders: the snapshots in each metadata file, the hint, and the newest file."""


@pytest.mark.parametrize("what", FOLDERS)
def test_the_newest_file_of_a_folder_is_imported_and_followed(tmp_path: Path, what: str) -> None:
    files, hint, newest = FOLDERS[what]
    for each, count in files.items():
        write(tmp_path / "t", each, metadata(count))
    write_hint(tmp_path / "t", hint)

    name, snapshots = imported(tmp_path, tmp_path / "t")

    assert Path(name).match(newest)
    assert snapshots == tuple(range(101, 101 + files[name]))
    assert imported(tmp_path, tmp_path / "t") == (name, ())


@pytest.mark.parametrize("hint", [None, "1", "junk"])
@pytest.mark.parametrize("name", ["v{}.metadata.json", GZIP, "{:05d}-a.metadata.json"])
def test_files_that_come_later_are_followed_though_the_hint_stays(
    tmp_path: Path, name: str, hint: str | None
) -> None:
    said = metadata(0)
    for number in range(1, 5):
        append(said)
        write(tmp_path / "t", name.format(number), said)
        write_hint(tmp_path / "t", hint)
        assert imported(tmp_path, tmp_path / "t") == (name.format(number), (100 + number,))


REJECTED: list[tuple[dict[str, int], str | None, str]] = [
    (HADOOP, "4", r"version-hint.text says version 4, and there is no v4\.metadata\.json"),
    (HADOOP, "0", "version-hint.text says version 0"),
    (HADOOP, "-1", "version-hint.text says version -1"),
    ({V[3]: 3}, "2", r"the newest one there is v3\.metadata\.json"),
    (
        {catalog_name(2, "a"): 1, catalog_name(2, "b"): 1},
        None,
        "2 files of the highest number, 00002-a",
    ),
    ({catalog_name(2, "a"): 1, catalog_name(2, "b"): 1}, "2", "name the one that is the"),
    ({"x.metadata.json": 1}, None, "nothing tells which file"),
]
"""Folders that have no newest file for certain, and the message of their rejection."""


@pytest.mark.parametrize(("files", "hint", "said"), REJECTED)
def test_a_folder_without_a_certain_newest_file_is_rejected(
    tmp_path: Path, files: dict[str, int], hint: str | None, said: str
) -> None:
    for name, snapshots in files.items():
        write(tmp_path / "t", name, metadata(snapshots))
    write_hint(tmp_path / "t", hint)
    with pytest.raises(InvalidInputError, match=said):
        imported(tmp_path, tmp_path / "t")
    assert not [*(tmp_path / "lake").rglob("*.json")]


def other(snapshots: int) -> dict[str, Any]:
    """The metadata of another table, with as many columns."""
    return {**metadata(snapshots), "table-uuid": OTHER}


RECREATED: dict[str, tuple[dict[str, int], dict[str, int], str | None]] = {
    "a catalog's, with fewer files": (CATALOG, {catalog_name(0, "b"): 0}, None),
    "a catalog's, with as many": (CATALOG, {catalog_name(3, "b"): 3}, None),
    "a catalog's, with more": (CATALOG, {catalog_name(9, "b"): 3}, None),
    "a catalog's, of which only the last is left": ({catalog_name(9): 5}, {"00000-b*": 0}, None),
    "one of Hadoop over the other's files": ({V[2]: 2, V[3]: 3}, {V[1]: 1}, "1"),
    "one of Hadoop next to a catalog's": ({catalog_name(3): 3}, {V[1]: 1}, "1"),
    "compressed": ({V[2]: 2}, {GZIP.format(1): 1}, "1"),
    "two by one number, one of them compressed": ({V[1]: 1}, {GZIP.format(1): 1}, "1"),
}


@pytest.mark.parametrize("what", RECREATED)
def test_a_folder_of_several_tables_is_rejected_by_name_until_one_is_named(
    tmp_path: Path, what: str
) -> None:
    dropped, recreated, hint = RECREATED[what]
    folder = tmp_path / "t"
    for each, count in dropped.items():
        write(folder, each, metadata(count))
    ((last, count),) = recreated.items()
    newest = write(folder, last.replace("*", ".metadata.json"), other(count))
    write_hint(folder, hint)

    with pytest.raises(InvalidInputError, match="files of 2 tables: ") as refused:
        imported(tmp_path, folder)

    assert not [*(tmp_path / "lake").rglob("*.json")]
    assert newest.name in str(refused.value)
    assert max(dropped) in str(refused.value)
    assert OTHER in str(refused.value)
    name, snapshots = imported(tmp_path, newest)
    assert (name, len(snapshots)) == (newest.name, count)
    # From then on the folder is followed where its newest file is certainly the table's.
    try:
        followed = imported(tmp_path, folder)
    except InvalidInputError as error:
        assert "files of 2 tables: " in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert followed[0] == newest.name


@pytest.mark.parametrize("is_older_by_its_times", [False, True])
def test_a_followed_folder_is_rejected_once_its_table_was_recreated(
    tmp_path: Path, *, is_older_by_its_times: bool
) -> None:
    for name, snapshots in CATALOG.items():
        write(tmp_path / "t", name, metadata(snapshots))
    imported(tmp_path, tmp_path / "t")
    name = catalog_name(9, "b") if is_older_by_its_times else catalog_name(0, "b")
    new = write(tmp_path / "t", name, other(0))
    if is_older_by_its_times:
        os.utime(new, (1, 1))
    with pytest.raises(InvalidInputError, match="files of 2 tables: "):
        imported(tmp_path, tmp_path / "t")
    for each in CATALOG:
        (tmp_path / "t/metadata" / each).unlink()
    with pytest.raises(AlreadyExistsError, match="was dropped and recreated"):
        imported(tmp_path, tmp_path / "t")


def test_one_table_has_one_uuid_however_it_is_written_or_missing(tmp_path: Path) -> None:
    said = metadata(1)
    old = {**said, "format-version": 1, "schema": said["schemas"][0], "partition-spec": []}
    old["snapshots"] = [{**each, "sequence-number": 0} for each in said["snapshots"]]
    for number, uuid in enumerate([None, said["table-uuid"].upper(), said["table-uuid"]]):
        body = {**old, "table-uuid": uuid} if uuid else {**old}
        if uuid is None:
            del body["table-uuid"]
        write(tmp_path / "t", catalog_name(number), body)
    (tmp_path / "t/metadata" / catalog_name(1, "torn")).write_text('{"table-uuid": "')
    assert imported(tmp_path, tmp_path / "t")[0] == catalog_name(2)


def test_a_follower_reads_no_metadata_files_from_before_its_last_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = created(tmp_path / "t")
    for number in range(4):
        appended(theirs, number, name=["x"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", str(tmp_path / "t"))
    for each in (tmp_path / "t/metadata").glob("*.metadata.json"):
        os.utime(each, (1_000_000_000, 1_000_000_000 + each.name.startswith("00004")))
    appended(theirs, 5, name=["x"])
    read: list[str] = []
    whole = SourceFiles.read

    def counted(self: SourceFiles, url: str) -> bytes:
        read.append(url.rpartition("/")[2][:5])
        return whole(self, url)

    monkeypatch.setattr(SourceFiles, "read", counted)
    assert lake.import_table("a.b", str(tmp_path / "t")).transactions == 1
    assert {each for each in read if each.startswith("0000")} == {"00004", "00005"}
