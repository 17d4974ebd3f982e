"""Tables that Iceberg's own Java writes are followed, and read as Java reads them.

Their histories have every kind of snapshot change: branches, tags, a rollback and a ref that goes
back, staged snapshots, cherry-picked ones, and expiries by id.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import define

import ledger
from ledger import Ledger, SnapshotPlan, Table
from ledger.stores.file_access import FileAccess
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, metadata_of, open_source, verify
from projections.iceberg.imported_metadata import differing_fields
from tests.projections.iceberg.importing.test_folders import FOLDERS, REJECTED, write, write_hint
from tests.projections.iceberg.importing.test_looking_again import metadata
from tests.readers.iceberg_runtime import catalog_of, hadoop_catalog
from tests.thorough import some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGED = "spark.wap.id"

_numbers = itertools.count()
"""Spark never forgets where a catalog of a name was."""


@define
class Theirs:
    """A table that Spark and Iceberg's Java write, in a folder of its own."""

    spark: SparkSession
    folder: Path
    version: int
    name: str = ""

    def begin(self) -> None:
        self.name = f"{catalog_of(str(self.folder))}.db.t"
        # Files of deletes came with version 2.
        mode = "copy-on-write" if self.version == 1 else "merge-on-read"
        self.sql(
            f"CREATE TABLE {self.name} (id INT, name STRING) USING iceberg TBLPROPERTIES ("
            f"'format-version'='{self.version}', 'write.delete.mode'='{mode}', "
            "'write.wap.enabled'='true')"
        )

    def sql(self, query: str) -> list[Any]:
        return [each.asDict() for each in self.spark.sql(query).collect()]

    def insert(self, *ids: int, into: str = "") -> None:
        width = len(self.spark.table(self.name).columns)
        written = ([str(each), *[repr(str(each))] * (width - 1)] for each in ids)
        rows = ", ".join(f"({', '.join(each)})" for each in written)
        self.sql(f"INSERT INTO {self.name}{into} VALUES {rows}")  # noqa: S608 - written here

    def stage(self, *ids: int) -> int:
        """Write a snapshot that no ref reaches; return its id."""
        before = set(self.snapshots())
        self.spark.conf.set(STAGED, f"staged-{ids[0]}")
        try:
            self.insert(*ids)
        finally:
            self.spark.conf.unset(STAGED)
        (new,) = set(self.snapshots()) - before
        return new

    @property
    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.newest.read_bytes())
        return found

    @property
    def newest(self) -> Path:
        files = (self.folder / "db/t/metadata").glob("v*.metadata.json")
        return max(files, key=lambda each: int(each.name[1:].partition(".")[0]))

    def snapshots(self) -> list[int]:
        return [each["snapshot-id"] for each in self.metadata.get("snapshots", ())]

    def current(self) -> int:
        return int(self.metadata["current-snapshot-id"])

    def manage(self, change: Callable[[Any], Any]) -> None:
        """Commit what Iceberg's Java calls the management of snapshots."""
        change(self.java().manageSnapshots()).commit()

    def java(self) -> Any:
        jvm = self.spark._jvm
        assert jvm is not None
        tables = jvm.org.apache.iceberg.hadoop.HadoopTables(
            self.spark._jsparkSession.sessionState().newHadoopConf()
        )
        return tables.load(str(self.folder / "db/t"))

    def again(self, document: bytes) -> dict[str, Any]:
        """Return a metadata file as Iceberg's Java reads and writes it."""
        jvm = self.spark._jvm
        assert jvm is not None
        parser = jvm.org.apache.iceberg.TableMetadataParser
        found: dict[str, Any] = json.loads(parser.toJson(parser.fromJson(document.decode())))
        return found


@pytest.fixture
def theirs(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Theirs]:
    folder = tmp_path / f"theirs_{next(_numbers)}"
    with hadoop_catalog(spark, str(folder)):
        thread = spark._jvm.java.lang.Thread.currentThread()  # type: ignore[union-attr]
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(spark._jsparkSession.sharedState().jarClassLoader())
        try:
            found = Theirs(spark, folder, request.param)
            found.begin()
            yield found
        finally:
            thread.setContextClassLoader(before)


def lived(theirs: Theirs) -> Iterator[None]:
    """Live a life; yield at every point where somebody may look."""
    theirs.insert(1, 2, 3)
    first = theirs.current()
    theirs.insert(4, 5)
    yield
    theirs.manage(lambda it: it.createBranch("audit", first).createTag("v1", first))
    theirs.insert(100, into=".branch_audit")
    theirs.sql(f"ALTER TABLE {theirs.name} ADD COLUMN note STRING")
    theirs.insert(6)
    yield
    picked, left = theirs.stage(200, 201), theirs.stage(300)
    theirs.insert(7)
    yield
    theirs.manage(lambda it: it.cherrypick(picked))
    cherry = theirs.current()
    assert cherry not in {picked, left}
    yield
    theirs.sql(f"DELETE FROM {theirs.name} WHERE id IN (2, 200)")  # noqa: S608 - written here
    theirs.sql(f"ALTER TABLE {theirs.name} RENAME COLUMN name TO called")
    yield
    deleted = theirs.current()
    theirs.manage(lambda it: it.rollbackTo(cherry))
    theirs.insert(8)
    yield
    # Branches go back and on, and what no ref reaches goes by its id.
    theirs.manage(lambda it: it.replaceBranch("audit", cherry).setMaxRefAgeMs("v1", 10**12))
    for each in (left, deleted):
        expiry = theirs.java().expireSnapshots().expireSnapshotId(each)
        expiry.cleanExpiredFiles(False).commit()  # noqa: FBT003 - Java's
    assert {left, deleted}.isdisjoint(theirs.snapshots())
    yield
    theirs.manage(lambda it: it.removeBranch("audit"))
    theirs.insert(9)
    theirs.sql(f"DELETE FROM {theirs.name} WHERE id = 9 OR id = 4")  # noqa: S608 - written here
    yield


def rows(spark: SparkSession, name: str, at: str = "") -> list[str]:
    query = f"SELECT * FROM {name}{at}"  # noqa: S608 - written here
    return sorted(str(each.asDict()) for each in spark.sql(query).collect())


def said(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return what a metadata file says of the table, but for where it and its own history lie."""
    elsewhere = {"location", "metadata-log", "last-updated-ms"}
    return {key: each for key, each in metadata.items() if key not in elsewhere}


@pytest.mark.parametrize("theirs", some([3, 2, 1], 1), indirect=True)
def test_a_history_by_java_is_imported_and_read_as_java_does(
    theirs: Theirs, tmp_path: Path
) -> None:
    lake = ledger.open(str(tmp_path / f"ours_{next(_numbers)}"))
    for _ in lived(theirs):
        lake.import_table("a.b", str(theirs.newest))
        wanted = open_source(str(theirs.newest), FileAccess(("file", ""), {})).newest.metadata
        assert differing_fields(metadata_of(lake.table("a.b").state), wanted) == []
    ours = lake.table("a.b")
    with hadoop_catalog(theirs.spark, lake.url.removeprefix("file://")):
        version = ICEBERG.project(handle_of(ours))
        folder = Path(ours.location.removeprefix("file://")) / "metadata"
        body = (folder / f"v{version}.metadata.json").read_bytes()
        assert said(theirs.again(body)) == said(theirs.again(theirs.newest.read_bytes()))
        name = f"{catalog_of(lake.url.removeprefix('file://'))}.`a.db`.b"
        places = [
            *("", ".snapshots", ".refs", ".history", ".files", ".all_manifests"),
            *(f" VERSION AS OF {each}" for each in theirs.snapshots()),
            *(f" VERSION AS OF '{each}'" for each in theirs.metadata["refs"]),
        ]
        assert len(places) > 12
        for place in places:
            found = rows(theirs.spark, name, place)
            assert found == rows(theirs.spark, theirs.name, place), place
            assert found
    assert verify(handle_of(ours)).is_empty


@pytest.mark.parametrize("theirs", [3], indirect=True)
def test_deletion_vectors_of_java_are_the_ledgers_own_after_a_promotion(
    theirs: Theirs, tmp_path: Path
) -> None:
    theirs.insert(*range(6))
    theirs.sql(f"DELETE FROM {theirs.name} WHERE id < 2")  # noqa: S608 - written here
    lake = ledger.open(str(tmp_path / f"ours_{next(_numbers)}"))
    lake.import_table("a.b", str(theirs.newest))
    lake.promote("a.b")
    table = lake.table("a.b")
    vectors = [each for each in table.at().files if each.is_vector]
    assert vectors
    assert {e.referenced_data_file for e in vectors} <= {e.path for e in table.at().files}
    with hadoop_catalog(theirs.spark, lake.url.removeprefix("file://")):
        assert ids(lake, table, theirs.spark) == [2, 3, 4, 5]
        before = table.state.last_snapshot_id
        gone = tuple(each.path for each in vectors)
        table.commit_snapshot(SnapshotPlan("OVERWRITE", delete=gone))
        assert ids(lake, table, theirs.spark) == [*range(6)]
        table.rollback(snapshot=before)
        assert ids(lake, table, theirs.spark) == [2, 3, 4, 5]


def ids(lake: Ledger, table: Table, spark: SparkSession) -> list[int]:
    table.project("iceberg")
    name = f"{catalog_of(lake.url.removeprefix('file://'))}.`a.db`.b"
    query = f"SELECT id FROM {name}"  # noqa: S608 - written here
    return sorted(each["id"] for each in spark.sql(query).collect())


@pytest.mark.parametrize("theirs", some([2, 3, 1], 1), indirect=True)
def test_what_sparks_procedures_do_to_snapshots_and_manifests_reads_as_there(
    theirs: Theirs, tmp_path: Path
) -> None:
    lake = ledger.open(str(tmp_path / f"ours_{next(_numbers)}"))
    catalog = catalog_of(str(theirs.folder))

    def call(procedure: str) -> None:
        theirs.sql(f"CALL {catalog}.system.{procedure}")
        lake.import_table("a.b", str(theirs.newest))

    for number in range(4):
        theirs.insert(number)
    before = theirs.current()
    call("rewrite_manifests('db.t')")
    rewritten = theirs.current()
    assert rewritten != before
    theirs.insert(7)
    call(f"rollback_to_snapshot('db.t', {rewritten})")
    assert theirs.current() == rewritten
    picked = theirs.stage(8)
    theirs.insert(9)
    call(f"cherrypick_snapshot('db.t', {picked})")
    assert rows(theirs.spark, theirs.name)[-1].startswith("{'id': 9")
    theirs.sql(f"DELETE FROM {theirs.name} WHERE id = 1")  # noqa: S608 - written here
    call("rewrite_manifests('db.t')")
    wanted = {
        each: rows(theirs.spark, theirs.name, f" VERSION AS OF {each}")
        for each in theirs.snapshots()
    }
    ours = lake.table("a.b")
    with hadoop_catalog(theirs.spark, lake.url.removeprefix("file://")):
        name = f"{catalog_of(lake.url.removeprefix('file://'))}.`a.db`.b"
        for promoted in (False, True):
            if promoted:
                lake.promote("a.b")
            ICEBERG.project(handle_of(ours))
            for each, expected in wanted.items():
                assert rows(theirs.spark, name, f" VERSION AS OF {each}") == expected
            assert rows(theirs.spark, name) == wanted[theirs.current()]
        files = ours.at(snapshot=rewritten).files
        assert {e.path for e in files} == {e.path for e in ours.at(snapshot=before).files}
    assert verify(handle_of(ours)).is_empty


HADOOP_FOLDERS = {
    what: (files, hint, newest)
    for what, (files, hint, newest) in {
        **FOLDERS,
        **{said: (files, hint, "") for files, hint, said in REJECTED},
    }.items()
    if all(each.startswith("v") or "0000-4000" in each for each in files)
}


@pytest.mark.parametrize("theirs", [2], indirect=True)
def test_javas_hadoop_tables_find_the_newest_files_that_imports_find(
    theirs: Theirs, tmp_path: Path
) -> None:
    jvm = theirs.spark._jvm
    assert jvm is not None
    tables = jvm.org.apache.iceberg.hadoop.HadoopTables(
        theirs.spark._jsparkSession.sessionState().newHadoopConf()
    )
    assert len(HADOOP_FOLDERS) > 20
    for number, (what, (files, hint, newest)) in enumerate(HADOOP_FOLDERS.items()):
        folder = tmp_path / str(number)
        for name, snapshots in files.items():
            write(folder, name, metadata(snapshots))
        write_hint(folder, hint)
        if not newest:
            with pytest.raises(Exception, match="ValidationException|NoSuchTableException"):
                tables.load(str(folder))
            continue
        found = tables.load(str(folder)).operations().current().metadataFileLocation()
        assert Path(found).match(newest), what
