"""What a table's declared formats cannot express, refused when a change is decided."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Protocol

from attrs import frozen

from ledger.evolution import legality_files as iceberg_files
from ledger.evolution import legality_iceberg as iceberg
from ledger.evolution import legality_paimon as paimon
from ledger.evolution import legality_paimon_files as paimon_files
from ledger.evolution.layout.fold import LayoutTrail
from ledger.evolution.legality_names import BoundNames, bindings, name_clashes
from ledger.evolution.legality_rule import broken
from ledger.evolution.legality_steps import Step
from ledger.evolution.rules import Rules
from ledger.evolution.state import TableState
from ledger.model.errors import FormatError, InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.model.partition import PartitionSpec, SortOrder
from ledger.model.schema import Schema
from ledger.model.types import DataField


@frozen
class Reach:
    """What the snapshots that can be read, tagged ones included, hold.

    Attributes:
        schema_ids: Schemas of snapshots and of their files.
        named_schema_ids: Schemas whose names files without field ids use.
        spec_ids: Partition specs of files.
        files: Files themselves, as they were added.
    """

    schema_ids: frozenset[int] = frozenset()
    named_schema_ids: frozenset[int] = frozenset()
    spec_ids: frozenset[int] = frozenset()
    files: tuple[FileChange, ...] = ()


class History(Protocol):
    """What the rules have to know of a table's past; asked for only when it decides."""

    def schemas(self, schema_ids: Collection[int]) -> list[Schema]:
        """Return some schemas, oldest first."""

    def names(self, state: TableState, more: Collection[int]) -> BoundNames:
        """Return the names of `state.named_schema_ids` and of more schemas, at least."""

    def holds(self, state: TableState, schema_id: int) -> bool:
        """Whether a snapshot that can be read surely holds a file that uses a schema's names.

        Reads nothing; where that would be needed, it is not sure.
        """

    def reach(self, state: TableState) -> Reach:
        """Return what can be read at a state; may read every file change that is live."""


@frozen
class Batch:
    """What a transaction makes of a table.

    Attributes:
        before: The table before it.
        schema: Its schema afterwards.
        layout: Its specs and orders afterwards.
        rules: Whose rules apply, by the options afterwards.
        history: The table's past.
    """

    before: TableState
    schema: Schema
    layout: LayoutTrail
    rules: Rules
    history: History

    def declared_before(self) -> Rules:
        """Return the rules before; those of no format where they cannot be read."""
        return declared_by(self.before.schema.options)

    def is_new(self, format_name: str) -> bool:
        """Whether the format, or the version of it that is meant, was not declared before."""
        before = self.declared_before()
        if format_name not in before.formats:
            return True
        return format_name == "iceberg" and self.rules.format_version != before.format_version

    def asks_nothing(self) -> bool:
        """Return whether nothing changes that a format has a say in, as most commits do."""
        now, before = self.rules, self.declared_before()
        is_as_before = (now.formats, now.format_version) == (before.formats, before.format_version)
        return is_as_before and self.is_same_shape()

    def is_same_shape(self) -> bool:
        """Return whether columns, keys and layout are all as they were."""
        return _shape(self.before.schema, self.before) == _shape(self.schema, self.layout)

    def changed_columns(self) -> tuple[DataField, ...]:
        """Return the columns afterwards that are not as they were."""
        before, after = self.before.schema.fields, self.schema.fields
        # Comparing tuples looks at what their items are first: what nobody touched costs nothing.
        if before == after:
            return ()
        there = {each.id: each for each in before}
        touched = (each for each in after if there.get(each.id) is not each)
        return tuple(each for each in touched if there.get(each.id) != each)


def declared_by(options: Mapping[str, str]) -> Rules:
    """Return the rules that options declare; those of no format where they cannot be read."""
    try:
        return Rules.of(options)
    except InvalidChangeError:
        return Rules(frozenset())


def _shape(schema: Schema, layout: TableState | LayoutTrail) -> tuple[object, ...]:
    identity = (schema.identifier_field_ids, schema.primary_keys)
    return schema.fields, identity, layout.specs, layout.default_spec_id, layout.sort_order


def refuse_inexpressible(batch: Batch) -> None:
    """Refuse what a batch made of a table, when one of its formats cannot express it.

    Raises:
        FormatError: The first problem; it names the format, its rule and the alternative.
    """
    for problem in problems(batch):
        raise problem


def problems(batch: Batch) -> Iterator[FormatError]:
    """Yield everything that the formats of `batch.rules` cannot express.

    What was so before is not held against a change, unless the format is declared by it.
    """
    if batch.asks_nothing():
        return
    if batch.rules.paimon:
        yield from _paimon_problems(batch)
    if batch.rules.iceberg:
        yield from _iceberg_problems(batch)
    if batch.rules.paimon:
        yield from _paimon_sources(batch)
    if batch.rules.paimon and batch.rules.iceberg:
        yield from _shared_problems(batch)


def refuse_at_creation(schema: Schema, spec: PartitionSpec, order: SortOrder, rules: Rules) -> None:
    """Refuse a table that one of its formats cannot express.

    Raises:
        FormatError: As `refuse_inexpressible`.
    """
    for problem in creation_problems(schema, spec, order, rules):
        raise problem


def creation_problems(
    schema: Schema, spec: PartitionSpec, order: SortOrder, rules: Rules
) -> Iterator[FormatError]:
    """Yield everything that a new table's formats cannot express."""
    if rules.paimon:
        yield from paimon.column_problems(schema.fields)
        yield from paimon.spec_problems(schema, [spec])
    if rules.iceberg:
        yield from iceberg.type_problems(schema.fields, rules.format_version)
        yield from iceberg.default_problems(schema.fields, rules.format_version)
        yield from _iceberg_whole(schema, LayoutTrail((spec,), (order,)), rules)
    if rules.paimon and rules.iceberg:
        yield from paimon.shared_problems(schema.fields)


def refuse_names(
    schema: Schema, schema_ids: Collection[int], state: TableState, history: History
) -> None:
    """Refuse files without field ids whose names mean other fields than the schema's.

    Args:
        schema: The table's schema, which is to be expressible in Iceberg.
        schema_ids: The schemas whose names the files use.
        state: The table before.
        history: Its past.

    Raises:
        FormatError: A name would stand for two fields.
    """
    used = set(schema_ids) - {schema.id}
    # What is held was compared with the schema when the one or the other came.
    new = {each for each in used if not history.holds(state, each)}
    if not new:
        return
    names = history.names(state, new)
    if names.agree(bindings(schema)) and (
        not names.is_doubtful or names.are_one(history.schemas(new))
    ):
        return
    # Only now, as it reads much: what no readable snapshot holds any more does not count.
    held = history.reach(state).named_schema_ids
    for problem in name_clashes(schema, history.schemas(used.union(held) - {schema.id})):
        raise problem


def refuse_files(
    state: TableState,
    files: Collection[FileChange],
    facts: Mapping[str, Any],
    *,
    is_back: bool = False,
) -> None:
    """Refuse files that come and that one of a table's formats cannot say.

    Args:
        state: The table before.
        files: What comes and goes, of one snapshot.
        facts: What the snapshot says of itself.
        is_back: Whether a rollback brings back what comes.

    Raises:
        FormatError: The first problem.
    """
    rules = declared_by(state.schema.options)
    if rules.iceberg:
        known = iceberg_files.FileRules(
            state.schema, state.specs, rules.format_version, is_back=is_back
        )
        for problem in known.problems(files):
            raise problem
    if rules.paimon:
        for problem in paimon_files.key_problems(state.schema, files, facts):
            raise problem
        for problem in paimon_files.FileRules(state.schema, state.specs).problems(files):
            raise problem


def refuse_tag(state: TableState, name: str) -> None:
    """Refuse a tag that one of a table's formats cannot have.

    Raises:
        FormatError: It cannot.
    """
    if declared_by(state.schema.options).iceberg:
        for problem in iceberg.tag_problems([name]):
            raise problem


def _paimon_problems(batch: Batch) -> Iterator[FormatError]:
    if not batch.is_new("paimon"):
        yield from paimon.column_problems(batch.changed_columns())
        yield from paimon.spec_problems(batch.schema, [batch.layout.spec])
        return
    reach = batch.history.reach(batch.before)
    yield from paimon.column_problems(batch.schema.fields)
    readable = batch.history.schemas(reach.schema_ids - {batch.schema.id})
    for older in readable:
        yield from paimon.column_problems(older.fields)
        yield from paimon.step_problems(older, batch.schema)
    yield from paimon_files.FileRules(batch.schema, batch.layout.specs).problems(reach.files)
    used = {*reach.spec_ids, batch.layout.default_spec_id}
    yield from paimon.spec_problems(
        batch.schema, [each for each in batch.layout.specs if each.spec_id in used]
    )


def _paimon_sources(batch: Batch) -> Iterator[FormatError]:
    before, layout = batch.before, batch.layout
    found = paimon.source_problems(batch.schema, layout.spec, layout.sort_order)
    stood = paimon.source_problems(before.schema, before.spec, before.sort_order)
    known = {each.message for each in stood}
    yield from (each for each in found if each.message not in known)


def _shared_problems(batch: Batch) -> Iterator[FormatError]:
    before = batch.declared_before()
    if before.paimon and before.iceberg:
        stood = {each.id: each for each in batch.before.schema.fields}
        for column in batch.changed_columns():
            old = stood.get(column.id)
            # Tables that are older than the rule keep what they have.
            if old is None or not any(paimon.shared_problems([old])):
                yield from paimon.shared_problems([column])
        return
    yield from paimon.shared_problems(batch.schema.fields)
    reach = batch.history.reach(batch.before)
    for older in batch.history.schemas(reach.schema_ids - {batch.schema.id}):
        yield from paimon.shared_problems(older.fields)


def _iceberg_problems(batch: Batch) -> Iterator[FormatError]:
    yield from _version_problems(batch, [batch.declared_before()])
    version = batch.rules.format_version
    is_new = batch.is_new("iceberg")
    columns = batch.schema.fields if is_new else batch.changed_columns()
    yield from iceberg.type_problems(columns, version)
    yield from iceberg.default_problems(columns, version)
    if is_new:
        yield from _past_problems(batch)
    elif columns:
        yield from _step(batch, batch.before.schema).problems(columns)
    if is_new or not batch.is_same_shape():
        yield from _whole_problems(batch, is_new=is_new)
    yield from _name_problems(batch, is_new=is_new)


def _whole_problems(batch: Batch, *, is_new: bool) -> Iterator[FormatError]:
    found = list(_iceberg_whole(batch.schema, batch.layout, batch.rules))
    if found and not is_new:
        before = _iceberg_whole(batch.before.schema, batch.before, batch.rules)
        stood = {each.message for each in before}
        found = [each for each in found if each.message not in stood]
    yield from found


def _iceberg_whole(
    schema: Schema, layout: TableState | LayoutTrail, rules: Rules
) -> Iterator[FormatError]:
    yield from iceberg.name_problems(schema)
    yield from iceberg.identifier_problems(schema)
    yield from iceberg.source_problems(schema, layout.spec, layout.sort_order)
    yield from iceberg.spec_name_problems(schema, layout.specs)
    yield from iceberg.spec_id_problems(layout.specs, rules.format_version)


def _version_problems(batch: Batch, declared: Iterable[Rules]) -> Iterator[FormatError]:
    reached = max((each.format_version for each in declared if each.iceberg), default=0)
    if batch.rules.format_version < reached:
        yield broken(
            "iceberg",
            f"format-version {batch.rules.format_version}",
            f"format versions only go up, and the table's is {reached}",
            f"keep format-version={reached}",
        )


def _past_problems(batch: Batch) -> Iterator[FormatError]:
    """Yield what Iceberg cannot say of the schemas that can still be read, and of their order."""
    reach = batch.history.reach(batch.before)
    older = batch.history.schemas(reach.schema_ids - {batch.schema.id})
    if not batch.declared_before().iceberg:
        yield from _version_problems(batch, (declared_by(each.options) for each in older))
        yield from iceberg.tag_problems(batch.before.tags)
        yield from _file_problems(batch, reach)
    for each in older:
        yield from iceberg.type_problems(each.fields, batch.rules.format_version)
        # A schema stays as it was said first, whatever version comes later.
        yield from iceberg.default_problems(each.fields, declared_by(each.options).format_version)
    # The change itself counts, too, however few rows can be read.
    known = {each.id for each in older}
    newest = [each for each in (batch.before.schema,) if each.id not in known]
    for before, after in pairwise([*older, *newest, batch.schema]):
        yield from _step(batch, before).problems(after.fields)


def _file_problems(batch: Batch, reach: Reach) -> Iterator[FormatError]:
    if reach.spec_ids:
        # Nobody adds a primary key later, so that all files stand under it.
        yield from iceberg_files.key_problems(batch.before.schema, "of an older snapshot")
    rules = iceberg_files.FileRules(batch.schema, batch.layout.specs, batch.rules.format_version)
    yield from rules.problems(reach.files)


def _step(batch: Batch, before: Schema) -> Step:
    return Step(
        before,
        batch.rules.format_version,
        may_require=batch.rules.allow_incompatible or batch.before.snapshot is None,
    )


def _name_problems(batch: Batch, *, is_new: bool) -> Iterator[FormatError]:
    state = batch.before
    if not state.named_schema_ids:
        return
    bound = bindings(batch.schema)
    if not is_new:
        before = bindings(state.schema)
        bound = {each: meant for each, meant in bound.items() if before.get(each) != meant}
        if not bound:
            return
    names = batch.history.names(state, ())
    if names.agree(bound) and not (is_new and names.is_doubtful):
        return
    # Only now, as it reads much: what no readable snapshot holds any more does not count.
    held = batch.history.reach(state).named_schema_ids
    yield from name_clashes(batch.schema, batch.history.schemas(held))
