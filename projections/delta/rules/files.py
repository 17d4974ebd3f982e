"""What Delta can say of data files that a snapshot adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from msgspec import UnsetType

from ledger.evolution.declared.format import Refusal
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.iceberg.layout import PartitionSpec, SomeSpecs, spec_by_id
from ledger.model.messages.excerpt import excerpt
from ledger.model.schema import Schema
from ledger.model.transforms.values import has_room
from ledger.model.types import DataField
from ledger.model.types.text import bare_text
from projections.delta.table.metadata import partition_columns
from projections.delta.table.values import partition_text

_TEXTS = ("CHAR", "VARCHAR")


@attrs.define
class FileRules:
    """The files that a Delta table can have.

    Attributes:
        schema: The table's.
        specs: Its partition specs.
        spec: The one in force.
    """

    schema: Schema
    specs: SomeSpecs
    spec: PartitionSpec
    _sound: set[tuple[object, ...]] = attrs.Factory(set)

    def problems(self, files: Iterable[FileChange]) -> Iterator[Refusal]:
        """Yield what Delta cannot say of the files that come; what goes is no problem."""
        columns = partition_columns(self.schema, self.spec)
        come = [each for each in files if each.kind == "ADD"]
        if come:
            yield from key_problems(self.schema, come[0].path)
        for each in come:
            yield from _kind(each)
            yield from self._partition(each, columns)

    def _partition(self, file: FileChange, columns: Sequence[DataField]) -> Iterator[Refusal]:
        # Many files have one partition; without their types, 1 and True would be one key.
        key = file.spec_id, file.partition, *map(type, file.partition)
        if not columns or key in self._sound:
            return
        spec = spec_by_id(self.specs, file.spec_id)
        places = {
            each.source_id: place
            for place, each in enumerate(spec.fields)
            if each.transform == "identity"
        }
        for column in columns:
            if column.id not in places:
                rule = f"its spec {file.spec_id} has no identity({column.name}), which partitions"
                yield _refusal(file, f"{rule} the table", "write it under a spec that has")
                return
            value = file.partition[places[column.id]]
            if value == "" and column.type.root in _TEXTS:
                rule = f"an empty text in partition column {column.name} is NULL to readers"
                yield _refusal(file, rule, "give the file NULL, or another text")
                return
            # Older clients' logs have such values, and files of them that stand as they are.
            if value is not None and not has_room(value, column.type):
                rule = f"partition column {column.name} has no room for {excerpt(value)}"
                yield _refusal(file, rule, f"give the file a value of {bare_text(column.type)}")
                return
            try:
                partition_text(value, column.type)
            except UnsupportedError as error:
                what = f"partition column {column.name}: {error.message}"
                yield _refusal(file, what, "give the file a value that is one")
                return
        self._sound.add(key)


def key_problems(schema: Schema, path: str) -> Iterator[Refusal]:
    """Yield what is wrong with a file that stands in a snapshot of a table with a primary key."""
    if schema.primary_keys:
        yield Refusal(
            f"file {path}",
            "only Paimon's merge finds the newest rows of a table with a primary key, so that "
            "others would show older ones, too",
            "drop the primary key before there are files",
        )


def engine_problems(facts: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield what is wrong with a snapshot whose files only its engine's manifests list."""
    if isinstance(facts.get("base_manifest_list"), str):
        yield Refusal(
            "the snapshot",
            "its files stand in manifests of its engine, which Delta's readers do not know",
            "let the engine commit its files to the ledger",
        )


def _kind(file: FileChange) -> Iterator[Refusal]:
    if file.content != "data":
        rule = f"it has no files of {excerpt(file.content)}"
        yield _refusal(file, rule, "rewrite the data files without the rows")
    elif not isinstance(file.sort_order_id, UnsetType) and file.sort_order_id:
        rule = f"its log says no sort order, and this file has {file.sort_order_id}"
        yield _refusal(file, rule, "leave sort_order_id out")
    elif file.format.lower() != "parquet":
        rule = f"its files are Parquet, and this one is {excerpt(file.format)}"
        yield _refusal(file, rule, "write it again as Parquet")


def _refusal(file: FileChange, rule: str, alternative: str) -> Refusal:
    return Refusal(f"file {file.path}", rule, alternative)
