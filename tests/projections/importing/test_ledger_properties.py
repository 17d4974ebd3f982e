"""Properties of a source in the ledger's own namespace are recorded, and do not act."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest
from attrs import define
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

import ledger
from ledger import AddColumn, Ledger, SetOption, Table
from ledger.cli import main
from ledger.decide.commit_policies import RULE_OPTIONS
from ledger.events.schema import RemoveOption
from ledger.events.table import TableCreated
from ledger.state.declared_formats import FOLLOW_OPTION, FORMATS_OPTION, READER_GRACE_OPTION
from projections.importing.deriving import (
    option_of_property,
    options_of_properties,
    properties_of_options,
)
from projections.materialising import Difference
from tests.projections.delta.importing.writing import Life
from tests.projections.formats import DELTA, ICEBERG, PAIMON, Format
from tests.projections.iceberg.importing import writing as iceberg
from tests.projections.paimon.importing.paimon_source import PaimonSource
from tests.pypaimon_or_skip import needs_pypaimon

VALUES = {
    FORMATS_OPTION: "delta,paimon,iceberg",
    FOLLOW_OPTION: "delta,paimon,iceberg",
    READER_GRACE_OPTION: "never",
    "ledger.freeze": "true",
    "ledger.require-message": "true",
    "ledger.column-names": "x",
    "ledger.allowed-types": "DATE",
    "ledger.owners.1": "nobody",
    "ledger.owners.99": "nobody",
    "ledger.of-a-later-version": "on",
    "ledger.": "",
    "source.ledger.freeze": "true",
    "source.source.ledger.formats": "iceberg",
}
"""Properties that the source has, each with a value that would change what the ledger does."""


class Source(Protocol):
    """A table that others own, with properties."""

    format: ClassVar[Format]

    @property
    def place(self) -> str: ...

    def set(self, properties: Mapping[str, str]) -> None:
        """Commit the table's properties, instead of those that it had."""

    def projected(self, table: Table) -> Mapping[str, str]:
        """Project a table; return the properties that the format's readers find."""


@define
class OfIceberg:
    format: ClassVar[Format] = ICEBERG
    folder: Path
    table: Any = None

    @property
    def place(self) -> str:
        return str(self.folder)

    def set(self, properties: Mapping[str, str]) -> None:
        if self.table is None:
            self.table = iceberg.created(self.folder)
            iceberg.appended(self.table, 1, name=["a"])
        gone = self.table.properties.keys() - properties.keys()
        with self.table.transaction() as transaction:
            transaction.set_properties(dict(properties))
            transaction.remove_properties(*gone)

    def projected(self, table: Table) -> Mapping[str, str]:
        version = table.project("iceberg")
        path = f"{table.location}/metadata/v{version}.metadata.json"
        return dict(StaticTable.from_metadata(path).properties)


@define
class OfDelta:
    format: ClassVar[Format] = DELTA
    folder: Path
    life: Any = None

    @property
    def place(self) -> str:
        return str(self.folder)

    def set(self, properties: Mapping[str, str]) -> None:
        log = self.folder / "_delta_log"
        is_new = self.life is None
        if is_new:
            self.life = Life(self.folder, 1)
        first = log / f"{0:020d}.json"
        lines = [json.loads(each) for each in first.read_text().splitlines()]
        said = next(each for each in lines if "metaData" in each)
        said["metaData"]["configuration"] = dict(properties)
        if is_new:
            first.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
            return
        version = DeltaTable(self.place).version() + 1
        (log / f"{version:020d}.json").write_text(json.dumps(said) + "\n")

    def projected(self, table: Table) -> Mapping[str, str]:
        table.project("delta")
        found = DeltaTable(table.location.removeprefix("file://")).metadata().configuration
        return {key: each for key, each in found.items() if not key.startswith("delta.")}


@define
class OfPaimon:
    format: ClassVar[Format] = PAIMON
    folder: Path
    source: PaimonSource | None = None

    @property
    def place(self) -> str:
        return str(self.folder / "s.db/t")

    def set(self, properties: Mapping[str, str]) -> None:
        if self.source is None:
            self.source = PaimonSource(self.folder, keyed=False, **properties)
            self.source.append()
            return
        schemas = sorted(Path(self.place, "schema").glob("schema-*"))
        said = json.loads(schemas[-1].read_text())
        said |= {"id": said["id"] + 1, "options": dict(properties)}
        schemas[-1].with_name(f"schema-{said['id']}").write_text(json.dumps(said))

    def projected(self, table: Table) -> Mapping[str, str]:
        table.project("paimon")
        folder = Path(table.location.removeprefix("file://"))
        newest = max(folder.glob("schema/schema-*"), key=lambda each: int(each.name[7:]))
        found: dict[str, str] = json.loads(newest.read_text())["options"]
        return found


@pytest.fixture(params=["delta", "iceberg", "paimon"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    folder = tmp_path / "theirs"
    if request.param == "paimon":
        needs_pypaimon()
        return OfPaimon(folder)
    return OfDelta(folder) if request.param == "delta" else OfIceberg(folder)


def mirrored(lake: Ledger, source: Source) -> Table:
    lake.import_table("a.b", source.place, format_name=source.format.name)
    return lake.table("a.b")


def recorded(table: Table) -> dict[str, str | None]:
    """Return the last value of each option that an event has; None for a removed one."""
    found: dict[str, str | None] = {}
    for commit in table.events():
        for event in (event for each in commit.transactions for event in each.events):
            if isinstance(event, TableCreated):
                found |= event.schema.options
            elif isinstance(event, SetOption):
                found[event.key] = event.value
            elif isinstance(event, RemoveOption):
                found[event.key] = None
    return found


def test_all_options_of_the_ledger_are_tried() -> None:
    named = {each.removesuffix(".1") for each in VALUES}
    assert {*RULE_OPTIONS, FORMATS_OPTION, FOLLOW_OPTION, READER_GRACE_OPTION} <= named


@pytest.mark.parametrize("is_first", [True, False])
def test_such_properties_are_events_that_do_not_act_and_are_projected_as_they_are(
    source: Source, tmp_path: Path, *, is_first: bool
) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    if not is_first:
        source.set({"team": "sales"})
        mirrored(lake, source)
    source.set({"team": "sales", **VALUES})

    table = mirrored(lake, source)

    held = {f"source.{key}": value for key, value in VALUES.items()}
    wanted = {FORMATS_OPTION: source.format.name, "team": "sales", **held}
    assert dict(table.state.schema.options) == recorded(table) == wanted
    assert source.projected(table) == {"team": "sales", **VALUES}
    assert source.format.verify(table) == Difference()
    assert main(["verify", "--ledger", str(tmp_path / "lake")]) == 0
    assert lake.import_table("a.b", source.place, format_name=source.format.name).transactions == 0
    changed = {key: f"{value}2" for key, value in VALUES.items()}
    source.set(changed)
    assert source.projected(mirrored(lake, source)) == changed
    source.set({})
    assert source.projected(mirrored(lake, source)) == {}
    assert {each: recorded(table)[each] for each in held} == dict.fromkeys(held)
    assert source.format.verify(table) == Difference()


def test_a_promoted_table_follows_no_rules_that_its_source_has_set(
    source: Source, tmp_path: Path
) -> None:
    source.set(VALUES)
    lake = ledger.open(str(tmp_path / "lake"))
    mirrored(lake, source)

    lake.promote("a.b")

    table = lake.table("a.b")
    table.alter([AddColumn(("note",), "STRING")])
    assert table.state.schema.options[FORMATS_OPTION] == source.format.name
    assert not table.freshness()
    table.alter([SetOption("ledger.require-message", "true")])
    with pytest.raises(ledger.LedgerError, match="message"):
        table.alter([AddColumn(("other",), "STRING")])
    source.projected(table)
    assert source.format.verify(table) == Difference()
    assert main(["verify", "--ledger", str(tmp_path / "lake")]) == 0


def test_a_table_that_another_ledger_projects_is_followed_with_its_declared_formats(
    tmp_path: Path,
) -> None:
    owner = ledger.open(str(tmp_path / "owner"))
    owner.create_database("a")
    formats = {FORMATS_OPTION: "iceberg,delta"}
    theirs = owner.create_table("a.b", ledger.Schema.of({"id": "BIGINT"}, options=formats))
    follower = ledger.open(str(tmp_path / "follower"))
    for each in ("iceberg", "delta"):
        theirs.project(each)
        follower.import_table(f"{each}.b", f"{tmp_path}/owner/a.db/b", format_name=each)
        options = follower.table(f"{each}.b").state.schema.options
        assert options[FORMATS_OPTION] == each
        assert options[f"source.{FORMATS_OPTION}"] == "iceberg,delta"


KEYS = st.lists(st.sampled_from(["source", "ledger", "formats", "personal", ""]), max_size=4).map(
    ".".join
)


@given(st.dictionaries(KEYS, st.text(max_size=3), max_size=4))
def test_every_property_is_an_option_of_its_own_and_comes_back(properties: dict[str, str]) -> None:
    options = options_of_properties(properties)
    assert len(options) == len(properties)
    assert {each for each in options if each.startswith("ledger.")} <= {"ledger.personal"}
    assert properties_of_options({**options, FORMATS_OPTION: "delta"}) == properties
    assert option_of_property("ledger.personal") == "ledger.personal"
