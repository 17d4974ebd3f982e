"""The bytes of a state are what FORMAT.md says, for every ledger that is kept and every kind."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest

import ledger
from ledger import (
    FileFunctionDefinition,
    RemoveOption,
    SetOption,
    SqlFunctionDefinition,
    UpdateComment,
)
from ledger.events import (
    AddDefinition,
    BranchBase,
    CatalogEvent,
    ClockCorrected,
    ColumnAdded,
    ColumnDropped,
    ColumnUndropped,
    DropDefinition,
    FormatRulesRaised,
    FunctionRecord,
    SchemaRecord,
    SnapshotRefRemoved,
    SnapshotRefSet,
    StatisticsSet,
    TableCreated,
    TableDropped,
    TableEvent,
    TableName,
    TablePurged,
)
from ledger.events import catalog as c
from ledger.events import snapshots as n
from ledger.log import Commit, Transaction, encode
from ledger.model import (
    Branch,
    ClockCorrection,
    FieldObject,
    Snapshot,
    SnapshotRef,
    StatisticsFile,
    Tag,
    Totals,
)
from ledger.state import CatalogStream, DeltaOrigin, IcebergOrigin, PaimonOrigin, TableStream
from ledger.state.records import _CatalogRecord as CatalogRecord
from ledger.state.records import _TableStateRecord as TableRecord
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from tests.evolution.born import LIVES, PROMOTED_LIFE
from tests.evolution.folds import NAME, snapshot
from tests.evolution.test_every_kind import KINDS
from tests.independent.agreeing import agrees, bodies, compared
from tests.independent.elsewhere import imported_table
from tests.independent.replayer import Catalog, Table
from tests.independent.states import state_bytes, state_hash
from tests.independent.test_replayer import NOT_MADE_HERE, events_of
from tests.lakes import lake_on

DATA = Path(__file__).parents[1] / "data"
KEPT = sorted({*DATA.rglob("*.zip"), *DATA.rglob("*.tar.xz")})
BRANCH = 1_000_000_000_000
PUFFIN = StatisticsFile(
    snapshot_id=1,
    statistics_path="p",
    file_size_in_bytes=9,
    file_footer_size_in_bytes=3,
    blob_metadata=(),
)


@pytest.mark.parametrize("archive", KEPT, ids=lambda each: str(each.name))
def test_every_kept_ledger_gives_the_same_states(archive: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(archive, tmp_path, filter="data" if ".tar" in archive.name else None)
    assert agrees(tmp_path, ledger.open(tmp_path)) > 0


def test_a_checkpoint_has_the_hash_that_the_second_reader_computes(tmp_path: Path) -> None:
    lake = lake_on(LocalStore(tmp_path))
    lake.create_database("db")
    table = lake.create_table("db.t", {"id": "INT"})
    for number in range(101):
        table.alter([SetOption("k", str(number))])
    lake.close()
    assert handle_of(table).log.wait_for_caches()
    (file,) = tmp_path.glob("db.db/t/_ledger/caches/*/*0.json")
    kept, other = json.loads(file.read_bytes()), Table(Path())
    for line in bodies(tmp_path / "db.db/t")[: kept["version"] + 1]:
        other.fold(json.loads(line))
    assert kept["check"] == state_hash(other)
    assert file.read_bytes().endswith(b',"state":%b}' % state_bytes(other))


def lines(*commits: tuple[Any, ...] | Any) -> list[bytes]:
    """Return commits, each of one event or of some, after one another."""
    found = []
    for version, events in enumerate(commits):
        some = events if isinstance(events, tuple) else (events,)
        millis = version * 100 + 100
        facts: dict[str, Any] = {"id": f"t{version}", "author": "ann", "asked": "", "events": some}
        if any(isinstance(each, ClockCorrected) for each in some):
            facts["effective_time_millis"] = millis - 90
        (transaction,) = (Transaction[Any](**facts),)
        found.append(
            encode(
                Commit(format=3, version=version, time_millis=millis, transactions=(transaction,))
            )
        )
    return found


LINE: dict[str, Any] = {
    "schema_id": 2,
    "commit_user": "u",
    "commit_kind": "APPEND",
    "total_record_count": 11,
    "delta_record_count": 1,
    "delta_file_count": 1,
    "delta_file_size_in_bytes": 100,
}


def created(columns: tuple[FieldObject, ...], highest: int) -> TableCreated:
    record = SchemaRecord(columns, highest_field_id=highest)
    return TableCreated(identifier=NAME, table_id="t", path="db.db/t", schema=record)


def outside(name: str) -> TableCreated:
    """Return the creation of a table outside of the ledger's folder."""
    record = SchemaRecord((), highest_field_id=-1)
    identifier = TableName("db", name)
    return TableCreated(
        identifier=identifier, table_id=name, path=f"/{name}", schema=record, is_external=True
    )


ID, DAY = FieldObject(0, "id", "INT"), FieldObject(1, "day", "DATE")
OWN: tuple[TableEvent | tuple[TableEvent, ...], ...] = (
    created((ID, DAY), 1),
    (snapshot(1), n.TagCreated(tag_name="v1", snapshot_id=1)),
    ColumnDropped(("day",), field_id=1),
    ColumnUndropped(field_names=("day",), data_type="DATE", field_id=1),
    SnapshotRefSet(
        "audit",
        SnapshotRef(snapshot_id=1, type="branch", max_ref_age_ms=7),
        BranchBase(version=1, record_count=10, file_size_in_bytes=100, file_count=1),
    ),
    n.BranchCommitted(snapshot_id=BRANCH + 1, branch_name="audit", parent_snapshot_id=1, **LINE),
    StatisticsSet(PUFFIN),
    ClockCorrected(first_version=1, true_time_millis=150),
    FormatRulesRaised(rules={"toy": 3, "paimon": 2}),
    SnapshotRefRemoved("audit"),
    ColumnAdded(("more",), "INT", field_id=2),
)
PROMOTED = (*PROMOTED_LIFE[:4], ClockCorrected(first_version=1, true_time_millis=120))
AREA = FunctionRecord(
    input_params=(ID,),
    definitions={"z": SqlFunctionDefinition("1"), "a": FileFunctionDefinition()},
    options={"z": "1", "a": "2"},
)
SEEN = c.ViewRecord(fields=(ID,), query="q", dialects={"z": "1", "a": "2"})
CATALOG: tuple[CatalogEvent | tuple[CatalogEvent, ...], ...] = (
    c.DatabaseCreated(name="first", path="first.db"),
    c.DatabaseCreated(name="db", path="db.db", options={"b": "1", "a": "2"}),
    (
        created((ID,), 0),
        c.ViewCreated(identifier=TableName("db", "v"), view_id="v", schema=SEEN),
        c.FunctionCreated(identifier=TableName("db", "v"), function_id="f", function=AREA),
        c.FunctionCreated(identifier=TableName("db", "g"), function_id="g", function=AREA),
        c.FunctionAltered(
            identifier=TableName("db", "v"),
            function_id="f",
            changes=(
                UpdateComment("b"),
                AddDefinition("m", SqlFunctionDefinition("2")),
                DropDefinition("a"),
                RemoveOption("z"),
            ),
        ),
        c.FunctionDropped(identifier=TableName("db", "g"), function_id="g"),
    ),
    ClockCorrected(first_version=0, true_time_millis=150),
    c.PlaceAliased("s3://b/lake"),
    c.PlaceAliased("/mnt/lake"),
    c.ValuesErased(3, 2),
    TableDropped(identifier=NAME, table_id="t", purge=True),
    TablePurged(identifier=NAME, table_id="t"),
    (outside("e"), outside("f"), TableDropped(identifier=TableName("db", "f"), table_id="f")),
    c.LedgerMoved("s3://c/lake"),
    c.PlaceAliased("s3://d/lake"),
    c.LedgerCopied(place="/copy", ledger_id="b", copied_from="a", without=("e",)),
)


def test_what_is_corrected_is_earlier_for_both_readers() -> None:
    own = imported_table(json.loads(lines(*OWN)[0]), Path())
    assert compared(lines(*OWN), own) == len(OWN)
    assert own.state["tags"]["v1"][1] == own.state["snapshot"]["timeMillis"] == 150
    promoted: Any = imported_table(json.loads(lines(*PROMOTED)[0]), Path())
    assert compared(lines(*PROMOTED), promoted) == len(PROMOTED)
    moments = {each["timestamp-ms"] for each in promoted.imported["snapshots"].values()}
    # The source's own keeps what the source says.
    assert moments == {10, 120}
    assert promoted.imported["tagTimes"] == {"v1": 120}
    catalog = Catalog()
    assert compared(lines(*CATALOG[:4]), catalog) == 4
    assert catalog.databases["db"]["created"] == [150, "ann"]


def test_a_moved_catalog_gives_the_same_states() -> None:
    catalog = Catalog()
    assert compared(lines(*CATALOG), catalog) == len(CATALOG)
    assert (catalog.place, catalog.placed_version, catalog.tables) == ("/copy", 12, {})
    assert [*catalog.dropped] == ["t"]


def test_every_key_of_a_state_has_a_place_in_the_format() -> None:
    section = (DATA.parents[1] / "ledger/FORMAT.md").read_text().split("\n## States\n")[1]
    section = section.split("\n## ")[0]
    structs: tuple[Any, ...] = (
        TableRecord,
        IcebergOrigin,
        PaimonOrigin,
        DeltaOrigin,
        CatalogRecord,
    )
    keys = [each.encode_name for kind in structs for each in msgspec.structs.fields(kind)]
    values: tuple[Any, ...] = (Snapshot, Tag, Totals, Branch, ClockCorrection)
    keys += [each.name for kind in values for each in attrs.fields(kind)]
    assert [key for key in keys if not re.search(rf"\b{key}\b", section)] == []
    for number in (TableStream.fold_version, CatalogStream.fold_version):
        assert f"fold version {number} for tables" in section or f"and {number} for" in section


def test_texts_of_a_state_are_escaped_as_the_format_says() -> None:
    odd = "".join(map(chr, [*range(32), 34, 92, 127, 0x2028, 0xE4, 0x1F600]))
    said = lines(c.DatabaseCreated(name="db", path="p", options={"k": odd}))
    assert compared(said, Catalog()) == 1


def test_both_readers_agree_on_every_kind_of_event() -> None:
    lives = (each for life in LIVES.values() for each in life)
    here = [*OWN, *CATALOG, *lives]
    some = (each if isinstance(each, tuple) else (each,) for each in here)
    tags = {type(event).__struct_config__.tag for each in some for event in each}
    # The others happen in the lives of `test_replayer`, which says so of itself.
    assert {*KINDS.values()} - tags <= (events_of(Table) | events_of(Catalog)) - NOT_MADE_HERE
