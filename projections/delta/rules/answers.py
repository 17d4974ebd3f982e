"""DeltaRules: whether a table stays expressible in Delta."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from ledger.evolution.declared.format import (
    Arrival,
    Batch,
    Birth,
    FileForm,
    History,
    Refusal,
    emptiness_problems,
    lost_source_problems,
    unless_stood,
)
from ledger.evolution.state import TableState
from ledger.model.file_change import FileChange
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
from projections.delta.rules import files, held, schemas


class DeltaRules:
    """Delta's answers; see `FormatRules`."""

    name = "delta"
    title = "Delta"
    number = 1
    binds_names = False
    file_forms: Mapping[str, FileForm] = MappingProxyType({})

    def version(self, options: Mapping[str, str]) -> int:
        """Return one and the same: the protocol is as low as the table allows."""
        del options
        return 1

    def birth_problems(self, birth: Birth) -> Iterator[Refusal]:
        """Yield what it cannot express of a new table."""
        schema = birth.schema
        yield from emptiness_problems(schema)
        yield from schemas.column_problems(schema.fields)
        yield from schemas.name_problems(schema)
        yield from schemas.option_problems(schema.options)
        yield from schemas.spec_problems(schema, birth.layout.spec)

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield what it cannot express of what a batch makes of a table."""
        is_new = batch.is_new(self)
        stood = {} if is_new else batch.before.schema.options
        options = batch.schema.options
        yield from schemas.option_problems({k: v for k, v in options.items() if k not in stood})
        if batch.is_same_shape and not is_new:
            return
        columns = batch.schema.fields if is_new else batch.changed_columns
        yield from schemas.column_problems(columns)
        if is_new:
            yield from origin_problems(batch.before)
            yield from _past_problems(batch)
        for each in batch.steps(self):
            step = schemas.Step(each.before, may_require=batch.may_require)
            yield from step.problems(each.columns, each.only)
        if is_new:
            yield from held.past_problems(batch)
        elif batch.returned:
            yield from held.returning_problems(batch)
        yield from _whole_problems(batch, is_new=is_new)

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield the fields of the layout in force that lose their column by the batch."""
        if not batch.is_same_shape or batch.is_new(self):
            yield from lost_source_problems(batch)

    def file_problems(self, arrival: Arrival) -> Iterator[Refusal]:
        """Yield what it cannot say of a snapshot's files."""
        state = arrival.state
        yield from files.engine_problems(arrival.facts)
        yield from files.FileRules(state.schema, state.specs, state.spec).problems(arrival.files)

    def name_problems(
        self, schema: Schema, come: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        """Yield the columns that live files would hold under several names."""
        return held.arriving_problems(schema, come, state, history)

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        """Yield nothing: Delta has no tags, and keeps the versions that are tagged here."""
        del name, others
        return iter(())


RULES = DeltaRules()


def origin_problems(state: TableState) -> Iterator[Refusal]:
    """Yield that it has no files of a table that was born where commits are others."""
    origin = state.origin
    if origin.manifest_folder:
        yield Refusal(
            "the table",
            f"it was born in {origin.format_name.title()}, and what its engines committed there is "
            "no version of Delta's log",
            f"read it by {origin.format_name}",
        )


def _whole_problems(batch: Batch, *, is_new: bool) -> Iterator[Refusal]:
    schema, before = batch.schema, batch.before
    whole = _whole(schema, batch.layout.spec)
    if is_new:
        yield from emptiness_problems(schema)
        yield from whole
        return
    yield from unless_stood(whole, _whole(before.schema, before.spec))
    if before.snapshot is not None:
        now = (schema, batch.layout.spec)
        yield from schemas.layout_problems((before.schema, before.spec), now)


def _whole(schema: Schema, spec: PartitionSpec) -> Iterator[Refusal]:
    yield from schemas.name_problems(schema)
    yield from schemas.spec_problems(schema, spec)


def _past_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield what Delta cannot say of what can still be read, but for how it came to be."""
    if batch.reach.spec_ids:
        # Nobody adds a primary key later, so that all files stand under it.
        yield from files.key_problems(batch.before.schema, "of an older snapshot")
    rules = files.FileRules(batch.schema, batch.layout.specs, batch.layout.spec)
    yield from rules.problems(batch.reach.files)
    for each in batch.readable:
        yield from schemas.column_problems(each.fields)
        yield from schemas.name_problems(each)
