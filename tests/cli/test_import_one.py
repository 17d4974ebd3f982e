"""`lakeledger import FORMAT`, and what the other commands say of a table that came in so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pytest

from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.paimon.importing.paimon_source import PaimonSource

deltalake = pytest.importorskip("deltalake")

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("installed")

NAME = "here.visits"


class Theirs(Protocol):
    """A table that others own: where it is, and one more snapshot of it, whose id is returned."""

    folder: Path

    def append(self) -> int: ...


class InDelta:
    def __init__(self, root: Path) -> None:
        self.folder = root / "t"
        self._next = 1

    def append(self) -> int:
        deltalake.write_deltalake(
            str(self.folder),
            pa.table({"id": [self._next], "name": ["a"]}),
            mode="append",
            commit_properties=deltalake.CommitProperties(
                custom_metadata={"userName": "ann", "userMetadata": "the night's"}
            ),
        )
        self._next += 1
        return self._next - 1


class InIceberg:
    def __init__(self, root: Path) -> None:
        self.folder = root / "t"
        self.table: Table = created(self.folder)

    def append(self) -> int:
        return appended(self.table, 1, name=["a"])


class InPaimon:
    def __init__(self, root: Path) -> None:
        self._source = PaimonSource(root / "w")
        self.folder = self._source.folder

    def append(self) -> int:
        self._source.append()
        return self._source.snapshots[-1]


FORMATS: dict[str, type[InDelta | InIceberg | InPaimon]] = {
    "delta": InDelta,
    "iceberg": InIceberg,
    "paimon": InPaimon,
}
SAYS_ANN = {"delta": ("ann", "the night's"), "iceberg": ("ann",), "paimon": ()}
"""Authors and messages that the sources hold."""
REFUSED = {
    "delta": (),
    "iceberg": ((("project", "paimon", NAME), "was imported from Iceberg"),),
    "paimon": (),
}
ALSO = {
    "delta": (("show", NAME, "--snapshot", "1"), ("stats", NAME), ("blame", NAME)),
    "iceberg": (("head", NAME), ("stats", NAME)),
    "paimon": (("show", NAME, "--snapshot", "1"), ("stats", NAME)),
}
each_format = pytest.mark.parametrize("kind", FORMATS)


@each_format
def test_a_table_and_its_new_commits_are_imported(shop: Run, tmp_path: Path, kind: str) -> None:
    theirs: Theirs = FORMATS[kind](tmp_path)
    first = theirs.append()
    command = ("import", kind, theirs.folder, NAME)
    planned = shop(*command, "--dry-run", "--output", "json").document
    assert (planned["dryRun"], planned["snapshots"], planned["version"]) == (True, [first], None)
    assert shop("show", NAME).code == 3
    ran = shop(*command)
    assert (ran.code, ran.err) == (0, "")
    stands = shop("show", NAME, "--output", "json").document["version"]
    assert f"{NAME} stands at version {stands}" in ran.out
    second = theirs.append()
    assert shop(*command, "--output", "json").document["snapshots"] == [second]
    assert "is up to date with" in shop(*command).out


def test_a_database_that_the_import_creates_is_named(shop: Run, tmp_path: Path) -> None:
    theirs = InIceberg(tmp_path)
    command = ("import", "iceberg", theirs.folder)

    planned = shop(*command, "quaks.events", "--dry-run")
    assert "would create database quaks, which did not exist\n" in planned.out
    assert "quaks" not in shop("list", "--output", "json").out
    as_json = shop(*command, "quaks.events", "--dry-run", "--output", "json").document
    assert as_json["createdDatabase"] == "quaks"

    assert "created database quaks, which did not exist\n" in shop(*command, "quaks.events").out
    assert "database quaks" not in shop(*command, "quaks.again").out
    theirs.append()
    as_json = shop(*command, "quaks.again", "--output", "json").document
    assert as_json["createdDatabase"] is None


@pytest.mark.parametrize("kind", ["delta", "paimon"])
def test_an_import_by_another_format_names_the_table_and_its_own_format(
    shop: Run, tmp_path: Path, kind: str
) -> None:
    theirs: Theirs = FORMATS[kind](tmp_path)
    theirs.append()
    assert shop("import", kind, theirs.folder, NAME).code == 0

    ran = shop("import", "iceberg", theirs.folder, NAME)
    assert (ran.code, ran.out) == (3, "")
    assert f"table {NAME} follows {theirs.folder}, a table of {kind.title()}" in ran.err
    assert f"lakeledger import {kind} {theirs.folder} {NAME}" in ran.err


@each_format
def test_the_other_commands_know_it(shop: Run, tmp_path: Path, kind: str) -> None:
    theirs: Theirs = FORMATS[kind](tmp_path)
    first = theirs.append()
    theirs.append()
    assert shop("import", kind, theirs.folder, NAME).code == 0
    log = shop("log", NAME).out
    assert all(each in log for each in SAYS_ANN[kind])
    listed = shop("snapshots", NAME, "--output", "json").document["snapshots"]
    assert [each["snapshot"]["id"] for each in listed][-1] == first
    for command in (
        ("show", NAME),
        *ALSO[kind],
        ("verify",),
        ("maintain",),
        ("project", kind, NAME),
        ("project", kind, NAME, "--verify"),
        ("project", kind, NAME, "--rebuild"),
    ):
        ran = shop(*command)
        assert ran.code == 0, (command, ran.err)
    owned = shop("alter", NAME, "--set", "a=b")
    assert owned.code != 0
    assert "which others own" in owned.err
    assert f"lakeledger import {kind}" in owned.err
    for refused, said in REFUSED[kind]:
        ran = shop(*refused)
        assert ran.code != 0
        assert said in ran.err


def test_a_tag_of_theirs_is_known_by_its_name(shop: Run, tmp_path: Path) -> None:
    theirs = InIceberg(tmp_path)
    first = theirs.append()
    theirs.table.manage_snapshots().create_tag(first, "v1").commit()
    theirs.append()
    assert shop("import", "iceberg", theirs.folder, NAME).code == 0
    assert f"tag v1 points to snapshot {first}" in shop("log", NAME).out
    listed = shop("snapshots", NAME, "--output", "json").document["snapshots"]
    assert listed[-1]["tags"] == ["v1"]
    assert shop("show", NAME, "--tag", "v1").code == 0
    assert shop("head", NAME, "--snapshot", first).code == 0


BAD = {
    ("delta", "nowhere"): "it has no folder _delta_log/",
    ("delta", "empty"): "holds no version of a Delta table",
    ("delta", "half"): "is not a file of a Delta log",
    ("iceberg", "nowhere"): "no folder metadata/",
    ("paimon", "nowhere"): "it has no schema/schema-N",
}


@pytest.mark.parametrize(("kind", "what"), BAD)
def test_a_bad_source_is_one_line_and_leaves_nothing(
    shop: Run, tmp_path: Path, kind: str, what: str
) -> None:
    folder = tmp_path / what
    if what == "empty":
        (folder / "_delta_log").mkdir(parents=True)
    if what == "half":
        theirs = InDelta(tmp_path)
        theirs.append()
        folder = theirs.folder
        (commit,) = (folder / "_delta_log").glob("*.json")
        commit.write_bytes(commit.read_bytes()[:-20])
    ran = shop("import", kind, folder, NAME)
    assert ran.code in {1, 3}, ran
    assert ran.err.count("\n") == 1
    assert BAD[kind, what] in ran.err
    assert "here" not in shop("list", "--output", "json").out


def test_the_author_of_the_environment_imports_and_promotes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, lake = InDelta(tmp_path), tmp_path / "lake"
    theirs.append()
    monkeypatch.setenv("LAKELEDGER_URL", str(lake))
    monkeypatch.setenv("LAKELEDGER_AUTHOR", "ada")
    for line in (
        ["init"],
        ["import", "delta", theirs.folder, NAME],
        ["promote", NAME, "--message", "ours now"],
    ):
        assert run(*line).code == 0
    created = run("log", "--kind", "createDatabase", "--output", "json").document
    promoted = run("log", NAME, "--kind", "promoteTable", "--output", "json").document
    for shown in (created, promoted):
        (done,) = shown["commits"][0]["transactions"]
        assert done["author"] == "ada"
    assert done["message"] == "ours now"


def test_a_file_that_the_source_s_own_maintenance_deleted_leads_to_a_later_version(
    shop: Run, tmp_path: Path
) -> None:
    theirs = InDelta(tmp_path)
    theirs.append()
    assert shop("import", "delta", theirs.folder, NAME).code == 0
    for each in theirs.folder.glob("*.parquet"):
        each.unlink()
    ran = shop("head", NAME)
    assert ran.code == 3
    assert "such as VACUUM: read a later version" in ran.err
