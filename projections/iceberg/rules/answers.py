"""IcebergRules: whether a table stays expressible in Iceberg."""

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
    declared_by,
    emptiness_problems,
    unless_stood,
)
from ledger.evolution.declared.rules import Rules
from ledger.evolution.layout.fold import LayoutTrail
from ledger.evolution.state import TableState
from ledger.evolution.table.origin.iceberg import IcebergOrigin
from ledger.evolution.table.origin.paimon import PaimonOrigin
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from projections.iceberg.rules import files, names, schemas
from projections.iceberg.rules.schemas import Step


class IcebergRules:
    """Iceberg's answers; see `FormatRules`."""

    name = "iceberg"
    title = "Iceberg"
    number = 1
    binds_names = True
    file_forms: Mapping[str, FileForm] = MappingProxyType(
        {"TIME": FileForm("microseconds in 8", "take INT or TIMESTAMP")}
    )

    def version(self, options: Mapping[str, str]) -> int:
        """Return the format version."""
        return Rules.of(options).format_version

    def birth_problems(self, birth: Birth) -> Iterator[Refusal]:
        """Yield what it cannot express of a new table."""
        schema, version = birth.schema, birth.rules.format_version
        yield from schemas.type_problems(schema.fields, version)
        yield from schemas.default_problems(schema.fields, version)
        yield from _whole(schema, birth.layout, birth.rules)

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield what it cannot express of what a batch makes of a table."""
        is_new = batch.is_new(self)
        if batch.is_same_shape and not is_new:
            return
        yield from _version_problems(batch, [batch.declared_before])
        version = batch.rules.format_version
        columns = batch.schema.fields if is_new else batch.changed_columns
        yield from schemas.type_problems(columns, version)
        yield from schemas.default_problems(columns, version)
        if is_new:
            yield from _origin_problems(batch.before)
            yield from _past_problems(batch)
        for each in batch.steps(self):
            step = Step(each.before, version, may_require=batch.may_require)
            yield from step.problems(each.columns, each.only)
        whole = _whole(batch.schema, batch.layout, batch.rules)
        stood = () if is_new else _whole(batch.before.schema, batch.before, batch.rules)
        yield from unless_stood(whole, stood)
        yield from names.batch_name_problems(batch, is_new=is_new)

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield nothing: it has said everything."""
        del batch
        return iter(())

    def file_problems(self, arrival: Arrival) -> Iterator[Refusal]:
        """Yield what it cannot say of a snapshot's files."""
        state = arrival.state
        # A table that came from Iceberg has its version from there, and no option that says it.
        origin = state.origin if isinstance(state.origin, IcebergOrigin) else arrival.rules
        version = origin.format_version
        known = files.FileRules(state.schema, state.specs, version, is_back=arrival.is_back)
        return known.problems(arrival.files)

    def name_problems(
        self, schema: Schema, come: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        """Yield the names of files without field ids that mean other fields than the schema's."""
        return names.file_name_problems(schema, come, state, history)

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        """Yield why it can have no tag of a name."""
        del others
        return schemas.tag_problems([name])


RULES = IcebergRules()


def _origin_problems(state: TableState) -> Iterator[Refusal]:
    """Yield that a promoted Paimon table has snapshots whose files Paimon's manifests list."""
    origin = state.origin
    if isinstance(origin, PaimonOrigin) and origin.source_last_id:
        yield Refusal(
            "the table",
            f"it was born in Paimon, and the manifests of its snapshots up to "
            f"{origin.source_last_id} do not say what Iceberg needs",
            "read it by paimon",
        )


def _whole(schema: Schema, layout: TableState | LayoutTrail, rules: Rules) -> Iterator[Refusal]:
    yield from emptiness_problems(schema)
    yield from schemas.name_problems(schema)
    yield from schemas.identifier_problems(schema)
    yield from schemas.source_problems(schema, layout.spec, layout.sort_order)
    yield from schemas.spec_name_problems(schema, layout.specs)
    yield from schemas.spec_id_problems(layout.specs, rules.format_version)


def _version_problems(batch: Batch, declared: Iterable[Rules]) -> Iterator[Refusal]:
    versions = (each.format_version for each in declared if IcebergRules.name in each.formats)
    reached = max(versions, default=0)
    if batch.rules.format_version < reached:
        yield Refusal(
            f"format-version {batch.rules.format_version}",
            f"format versions only go up, and the table's is {reached}",
            f"keep format-version={reached}",
        )


def _past_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield what Iceberg cannot say of what can still be read, but for the order of its schemas."""
    if IcebergRules.name not in batch.declared_before.formats:
        yield from _version_problems(batch, (declared_by(each.options) for each in batch.readable))
        yield from schemas.tag_problems(batch.before.tags)
        yield from _file_problems(batch)
    for each in batch.readable:
        yield from schemas.type_problems(each.fields, batch.rules.format_version)
        # A schema stays as it was said first, whatever version comes later.
        yield from schemas.default_problems(each.fields, declared_by(each.options).format_version)


def _file_problems(batch: Batch) -> Iterator[Refusal]:
    if batch.reach.spec_ids:
        # Nobody adds a primary key later, so that all files stand under it.
        yield from files.key_problems(batch.before.schema, "of an older snapshot")
    rules = files.FileRules(batch.schema, batch.layout.specs, batch.rules.format_version)
    yield from rules.problems(batch.reach.files)
