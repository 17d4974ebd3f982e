"""PaimonRules: whether a table stays expressible in Paimon."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from ledger.evolution.declared.format import (
    Arrival,
    Batch,
    Birth,
    FileForm,
    History,
    Refusal,
    lost_source_problems,
)
from ledger.evolution.state import TableState
from ledger.evolution.table.origin.delta import DeltaOrigin
from ledger.evolution.table.origin.iceberg import IcebergOrigin
from ledger.locations import alike, folded
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema, paths_of
from projections.paimon.rules import files, schemas


class PaimonRules:
    """Paimon's answers; see `FormatRules`."""

    name = "paimon"
    title = "Paimon"
    number = 1
    binds_names = False
    file_forms: Mapping[str, FileForm] = MappingProxyType(
        {"TIME": FileForm("milliseconds in 4 bytes", "take INT or TIMESTAMP")}
    )

    def version(self, options: Mapping[str, str]) -> int:
        """Return 1: there is one."""
        del options
        return 1

    def birth_problems(self, birth: Birth) -> Iterator[Refusal]:
        """Yield what it cannot express of a new table."""
        yield from schemas.column_problems(birth.schema.fields)
        yield from schemas.spec_problems(birth.schema, [birth.layout.spec])

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield what it cannot express of what a batch makes of a table."""
        if batch.is_new(self):
            yield from _past_problems(batch)
        elif not batch.is_same_shape:
            yield from schemas.column_problems(batch.changed_columns)
            yield from schemas.spec_problems(batch.schema, [batch.layout.spec])

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield the fields of the layout in force that lose their column by the batch."""
        if batch.is_same_shape and not batch.is_new(self):
            return
        yield from lost_source_problems(batch)

    def file_problems(self, arrival: Arrival) -> Iterator[Refusal]:
        """Yield what it cannot say of a snapshot's files."""
        state = arrival.state
        yield from files.key_problems(state.schema, arrival.files, arrival.facts)
        yield from files.FileRules(state.schema, state.specs).problems(arrival.files)

    def name_problems(
        self, schema: Schema, come: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        """Yield nothing: its files' names are those of the schema that they were written by."""
        del schema, come, state, history
        return iter(())

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        """Yield the tag whose file some stores take for this one's."""
        return _tags_of_one_file([*sorted(alike(name, others))[:1], name])


RULES = PaimonRules()


def origin_problems(state: TableState) -> Iterator[Refusal]:
    """Yield that it has no files of a table that was born where snapshots are others."""
    if isinstance(state.origin, IcebergOrigin):
        yield Refusal(
            "the table",
            "it was born in Iceberg, and Paimon's files have neither its snapshot ids nor its "
            "branches",
            "read it by iceberg",
        )


def _tags_of_one_file(names: Iterable[str]) -> Iterator[Refusal]:
    seen: dict[str, str] = {}
    for each in names:
        other = seen.setdefault(folded(each), each)
        if other != each:
            yield Refusal(
                f"tag {each}",
                f"each tag is a file of its name, and some stores take it for that of tag {other}",
                "give one of them another name",
            )


def _name_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield a column that files of a table from Delta hold under another name than their schema's.

    Paimon's readers find columns by the names of the schema that a file says.
    """
    delta = batch.before.origin
    if not isinstance(delta, DeltaOrigin):
        return
    names = delta.names_in_files
    held = [batch.before.schema, *batch.readable]
    for schema in held:
        if schema.id in batch.reach.schema_ids and schema.id <= delta.source_schema_id:
            for path, field_id in paths_of(schema):
                if names.get(field_id, path[-1]) != path[-1]:
                    yield Refusal(
                        f"column {'.'.join(path)}",
                        f"files of {delta.source} hold it as {names[field_id]}, and Paimon's "
                        "readers find it by its own name",
                        "write the rows of these files again and expire older snapshots, or read "
                        "the table by delta",
                    )
                    return


def _past_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield what it cannot say of what can still be read, and of the table as it shall be."""
    yield from origin_problems(batch.before)
    yield from schemas.column_problems(batch.schema.fields)
    yield from _name_problems(batch)
    yield from _tags_of_one_file(batch.before.tags)
    for older in batch.readable:
        yield from schemas.column_problems(older.fields)
        yield from schemas.step_problems(older, batch.schema)
    yield from files.FileRules(batch.schema, batch.layout.specs).problems(batch.reach.files)
    used = {*batch.reach.spec_ids, batch.layout.default_spec_id}
    yield from schemas.spec_problems(
        batch.schema, [each for each in batch.layout.specs if each.spec_id in used]
    )
