"""Folders that clients give tables: no two tables share one, and nothing in them is overwritten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from attrs import frozen

import ledger
from ledger import InvalidChangeError, Ledger, Schema
from ledger.ledger_handle import LedgerHandle
from ledger.model.errors import AlreadyExistsError, LedgerError
from ledger.model.names import Identifier
from ledger.table_handle import TableHandle, handle_of
from projections.paimon.served import create_table
from projections.paimon.served_registration import register_table
from tests.projections.paimon.serving.engines import SCHEMA, Engine

OTHER = Schema.of({"z": "STRING"})


@frozen
class Folders:
    """A ledger and a folder beside it, in which tables may be.

    Attributes:
        root: The folder of both.
    """

    root: Path

    def lake(self) -> Ledger:
        """Return the ledger, opened anew."""
        return ledger.open(f"file://{self.root}/lake", allowed_locations=[f"file://{self.root}"])

    def url(self, path: str) -> str:
        """Return the URL of a path below the root."""
        return f"file://{self.root}/{path}"

    def create(self, name: str, path: str, schema: Schema = SCHEMA) -> TableHandle:
        """Create a table a.NAME in a folder below the root."""
        return create_table(
            handle_of(self.lake()), Identifier("a", name), schema, location=self.url(path)
        )

    def register(self, name: str, path: str) -> TableHandle:
        """Register the table in a folder below the root as a.NAME."""
        return register_table(handle_of(self.lake()), Identifier("a", name), self.url(path))

    def files(self) -> dict[str, bytes]:
        """Return all files below the root but those of the logs."""
        return {
            str(each.relative_to(self.root)): each.read_bytes()
            for each in self.root.rglob("*")
            if each.is_file() and "_ledger" not in each.parts
        }


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    found = Folders(tmp_path)
    found.lake().create_database("a")
    return found


def paimon_table(folders: Folders, path: str) -> None:
    """Write the files of a table without snapshots, as Paimon's own catalog does."""
    made = folders.create("made", "made")
    folder = folders.root / path / "schema"
    folder.mkdir(parents=True)
    (folder / "schema-0").write_bytes((folders.root / "made/schema/schema-0").read_bytes())
    assert made.state.version == 0


@pytest.mark.parametrize("path", ["out/x", "out", "out/x/y", "OUT/X", "out/./z/../x/", "link/x"])
def test_a_table_is_not_created_over_another_external_one(folders: Folders, path: str) -> None:
    engine = Engine(folders.create("t", "out/x"))
    engine.commit()
    (folders.root / "link").symlink_to(folders.root / "out")
    before = folders.files()

    with pytest.raises(InvalidChangeError, match=r"meets the folder of table a\.t; "):
        folders.create("u", path, OTHER)

    assert folders.files() == before
    assert folders.lake().tables() == ["a.t"]
    engine.commit()


@pytest.mark.parametrize("kind", ["served", "native", "external"])
@pytest.mark.parametrize("place", ["", "/inside"])
def test_nor_over_the_own_folder_of_another(folders: Folders, kind: str, place: str) -> None:
    lake = folders.lake()
    match kind:
        case "served":
            create_table(handle_of(lake), Identifier("a", "t"), SCHEMA)
        case "native":
            lake.create_table("a.t", {"id": "INT"})
        case _:
            lake.create_table("a.t", {"id": "INT"}, location=folders.url("native/t"))
    own = "native/t" if kind == "external" else "lake/a.db/t"
    before = folders.files()

    with pytest.raises(InvalidChangeError, match=r"meets the folder of table a\.t; "):
        folders.create("u", own + place, OTHER)

    assert folders.files() == before


def test_nor_over_one_that_can_be_restored(folders: Folders) -> None:
    folders.create("t", "out/t")
    lake = folders.lake()
    lake.create_table("a.n", {"id": "INT"})
    lake.drop_table("a.n")
    lake.drop_table("a.t")
    for path in ("out", "out/t", "lake/a.db/n"):
        with pytest.raises(InvalidChangeError, match="was dropped and may be restored"):
            folders.create("u", path, OTHER)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("lake", "the ledger's root"),
        ("", "the ledger's root"),
        ("LAKE", "the ledger's root"),
        ("lake/a.db", "the folder of database a"),
        ("lake2", "a folder _ledger"),
    ],
)
def test_nor_over_anything_of_a_ledger(folders: Folders, path: str, said: str) -> None:
    ledger.open(folders.url("lake2")).create_database("a")
    before = folders.files()
    with pytest.raises(InvalidChangeError, match=f"holds {said}"):
        folders.create("u", path)
    assert folders.files() == before


@pytest.mark.parametrize("file", ["schema/schema-3", "snapshot/snapshot-7"])
def test_nor_over_a_table_of_paimon_that_can_be_registered(folders: Folders, file: str) -> None:
    path = folders.root / "out/t" / file
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(InvalidChangeError, match=f"table of Paimon already .{file}.; register it"):
        folders.create("t", "out/t")
    assert path.read_text() == "{}"
    assert folders.lake().tables() == []


def test_a_folder_of_other_files_or_beside_a_table_is_free(folders: Folders) -> None:
    folders.create("t", "out/t")
    (folders.root / "out/rows").mkdir()
    (folders.root / "out/rows/a.csv").write_text("1")
    for name, path in (("u", "out/rows"), ("v", "out/t2"), ("w", "lake/elsewhere/t")):
        assert folders.create(name, path).state.version == 0


def test_a_creation_that_is_sent_again_finds_its_own_folder(folders: Folders) -> None:
    first, again = (
        create_table(
            handle_of(folders.lake()),
            Identifier("a", "t"),
            SCHEMA,
            location=folders.url("out/t"),
            commit_id="monday",
        )
        for _ in range(2)
    )
    assert first.state.table_id == again.state.table_id


def test_a_taken_name_is_the_reason_before_a_taken_folder(folders: Folders) -> None:
    folders.create("t", "out/t")
    with pytest.raises(AlreadyExistsError):
        folders.create("t", "out/t")


def test_a_folder_is_registered_once(folders: Folders) -> None:
    paimon_table(folders, "out/t")
    folders.register("t", "out/t")
    with pytest.raises(InvalidChangeError, match=r"meets the folder of table a\.t; "):
        folders.register("u", "out/t")
    with pytest.raises(InvalidChangeError, match=r"meets the folder of table a\.made; "):
        folders.register("u", "made")
    folders.lake().drop_table("a.t")
    assert folders.register("u", "out/t").state.version == 0


@pytest.mark.parametrize("servers", [1, 4])
@pytest.mark.parametrize("call", ["create", "register"])
def test_of_concurrent_requests_for_a_folder_one_has_it(
    folders: Folders, call: str, servers: int
) -> None:
    paimon_table(folders, "found")
    handles: list[LedgerHandle] = [handle_of(folders.lake()) for _ in range(servers)]
    start = Barrier(8)

    def ask(number: int) -> str:
        name, handle = Identifier("a", f"t{number}"), handles[number % servers]
        start.wait()
        try:
            if call == "create":
                create_table(handle, name, SCHEMA, location=folders.url("out/t"))
            else:
                register_table(handle, name, folders.url("found"))
        except LedgerError as error:
            return type(error).__name__
        return "made"

    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(ask, range(8))]

    assert answers.count("made") == 1
    assert {*answers} <= {"made", "InvalidChangeError", "CommitConflictError"}
    assert len(folders.lake().tables()) == 2
