"""Toy: a third format, which has a word for what nobody else minds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from attrs import define, field

from ledger.evolution.declared.format import Arrival, Batch, Birth, FileForm, History, Refusal
from ledger.evolution.state import TableState
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema


@define
class ToyRules:
    """Refuses columns, files and tags that have `toy` in their name; and DATE beside Iceberg."""

    name: str = "toy"
    title: str = "Toy"
    number: int = 1
    binds_names: bool = False
    file_forms: Mapping[str, FileForm] = field(factory=dict)

    def version(self, options: Mapping[str, str]) -> int:
        return int(options.get("toy.version", "1"))

    def birth_problems(self, birth: Birth) -> Iterator[Refusal]:
        yield from self._columns(birth.schema)

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        if batch.is_new(self) or not batch.is_same_shape:
            yield from self._columns(batch.schema)

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        if batch.schema.options.get("toy.color") == "grey":
            yield Refusal("option toy.color", "toys are not grey", "take red")

    def file_problems(self, arrival: Arrival) -> Iterator[Refusal]:
        for each in arrival.files:
            if self._minds(each.path):
                yield Refusal(f"file {each.path}", "toys come in no files", "rename it")

    def name_problems(
        self, schema: Schema, files: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        del schema, files, state, history
        return iter(())

    def tag_problems(self, name: str) -> Iterator[Refusal]:
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
    """What the entry point of a test's package names."""

    def __init__(self, rules: ToyRules) -> None:
        self.rules = rules


TOY = Toy(ToyRules())
NEWER = Toy(ToyRules(number=2))
PICKY = Toy(ToyRules(file_forms={"DATE": FileForm("text", "take STRING")}))
