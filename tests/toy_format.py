"""Toy: a third format, which has rules of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping

from attrs import define, field
from msgspec import UnsetType

from ledger import FileChange, Schema, Table, TableAt
from ledger.decide import Batch, Refusal
from ledger.decide.format_rules import FileForm, History, SnapshotArrival, TableCreation
from ledger.events import SnapshotCommitted
from ledger.state import TableState
from projections.statistics import Kept
from projections.statistics.engine_files import (
    Asked,
    ListedManifest,
    ManifestPart,
    ManifestReader,
    NamedManifestList,
    Row,
)
from projections.statistics.publishing import Published
from projections.statistics.query import totals


@define
class ToyRules:
    """Rejects columns, files and tags that have `toy` in their name; and DATE with Iceberg."""

    name: str = "toy"
    title: str = "Toy"
    number: int = 1
    binds_names: bool = False
    orders_members: bool = False
    file_forms: Mapping[str, FileForm] = field(factory=dict)

    def version(self, options: Mapping[str, str]) -> int:
        return int(options.get("toy.version", "1"))

    def creation_problems(self, creation: TableCreation) -> Iterator[Refusal]:
        yield from self._columns(creation.schema)

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        if batch.is_new(self) or not batch.is_same_shape:
            yield from self._columns(batch.schema)

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        if batch.schema.options.get("toy.color") == "grey":
            yield Refusal("option toy.color", "toys are not grey", "take red")

    def file_problems(self, arrival: SnapshotArrival) -> Iterator[Refusal]:
        for each in arrival.files:
            if self._minds(each.path):
                yield Refusal(f"file {each.path}", "toys come in no files", "rename it")

    def name_problems(
        self, schema: Schema, files: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        del schema, files, state, history
        return iter(())

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        del others
        if self._minds(name):
            yield Refusal(f"tag {name}", "no toy has a tag", "name it otherwise")

    def _columns(self, schema: Schema) -> Iterator[Refusal]:
        for name in schema.names:
            if self._minds(name):
                yield Refusal(f"column {name}", "no column is a toy", "take another name")

    def _minds(self, text: str) -> bool:
        return "toy" in text


class Indifferent(ToyRules):
    """Minds nothing."""

    def _minds(self, text: str) -> bool:
        del text
        return False


class Toy:
    """The object that the entry point of a test's package names."""

    def __init__(self, rules: ToyRules) -> None:
        self.rules = rules


TOY = Toy(ToyRules())
NEWER = Toy(ToyRules(number=2))
PICKY = Toy(ToyRules(file_forms={"DATE": FileForm("text", "take STRING")}))


class ToyManifests:
    """A list of toys is JSON, `[[manifest, entries], ...]`; so is a manifest, `[[path, rows]]`."""

    def has_named(self, event: SnapshotCommitted) -> bool:
        name = event.base_manifest_list
        return not isinstance(name, UnsetType) and name.endswith(".toys")

    def lists(self, event: SnapshotCommitted, asked: Asked) -> Iterator[NamedManifestList]:
        del asked
        yield NamedManifestList(str(event.base_manifest_list), None)

    def listed(
        self, body: bytes, file: str, event: SnapshotCommitted, asked: Asked
    ) -> list[ListedManifest]:
        del file, event, asked
        return [ListedManifest(path, -1, count) for path, count in json.loads(body)]

    def reader(self, state: TableState, schemas: Callable[[], Iterator[Schema]]) -> ManifestReader:
        del state, schemas

        def rows(body: bytes, part: ManifestPart) -> Iterator[Row]:
            for path, count in json.loads(body):
                yield (0, "[]", "data", 1, count, 100 * count, part.time_millis, path)

        return rows


class ToyPublisher:
    """Returns only the number of rows."""

    what = "how many toys there are"
    makes_snapshot = False

    def check(self, table: Table, at: TableAt, analysis: object) -> None:
        del table, at, analysis

    def publish(
        self, table: Table, kept: Kept, at: TableAt, analysis: object
    ) -> Iterator[Published]:
        del analysis
        count = totals(kept, at)[-1].record_count
        snapshot_id = at.state.last_snapshot_id
        yield Published("toy", snapshot_id, f"toys/{count}", table.state.version, is_new=True)


class CountedToy(Toy):
    """Brings what the statistics ask of a format, too."""

    engine_manifests = ToyManifests()
    publisher = ToyPublisher()


COUNTED = CountedToy(ToyRules())
