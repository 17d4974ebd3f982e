"""Declaring Iceberg asks what tags and files a table has already; tags are asked as they come."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pytest
from attrs import frozen

from ledger import FileChange, FormatError, Schema
from ledger.decide import Batch
from ledger.decide.format_rules import BoundNames, MemberMisfit, ReadableReach, problems
from ledger.formats import INSTALLED
from ledger.state import LayoutTrail, PastColumns, Rules, TableState
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG
from tests.evolution.test_commit_facts import BOTH, PAIMON, file, table_of


@frozen
class Past:
    """A history with one file."""

    schema: Schema
    file: FileChange

    def schemas(self, schema_ids: Collection[int]) -> list[Schema]:
        return [self.schema for _ in schema_ids]

    def names(self, state: TableState, more: Collection[int]) -> BoundNames:
        names = BoundNames()
        for each in self.schemas([*state.named_schema_ids, *more]):
            names.add(each)
        return names

    def holds(self, state: TableState, schema_id: int) -> bool:
        return schema_id in state.named_schema_ids

    def live(self, state: TableState) -> Collection[FileChange]:
        del state
        return (self.file,)

    def columns(self, state: TableState) -> PastColumns:
        return PastColumns([state.schema])

    def reach(self, state: TableState) -> ReadableReach:
        return ReadableReach(frozenset({state.schema.id}), files=(self.file,))

    def member_misfits(
        self, files: Collection[FileChange], schemas: Mapping[int, Schema]
    ) -> Iterator[MemberMisfit]:
        del files, schemas
        return iter(())


def test_declaring_iceberg_asks_what_older_files_are() -> None:
    table = table_of()
    table.alter([PAIMON])
    state = table.state
    past = Past(state.schema, file("f.parquet", format="lance"))
    layout = LayoutTrail(state.specs, state.sort_orders)
    batch = Batch(state, state.schema, layout, Rules.of({}), past)
    assert [each.message[:34] for each in problems(batch, INSTALLED)] == [
        "file f.parquet: files are parquet,"
    ]


def test_no_tag_has_the_name_of_the_branch_that_every_table_has() -> None:
    table = table_of()
    table.append([file("f.parquet")])
    with pytest.raises(FormatError, match="^tag main: tags and branches share their names"):
        table.create_tag("main")
    table.create_tag("Main")
    ICEBERG.project(handle_of(table))
    # Under Paimon it would be one file with the next on some stores.
    table.delete_tag("Main")

    table.alter([PAIMON])
    table.create_tag("main")
    with pytest.raises(FormatError, match="tag main"):
        table.alter([BOTH])
    assert [each.message[:9] for each in table.plan([BOTH]).refusals] == ["tag main:"]
    table.delete_tag("main")
    table.alter([BOTH])
    ICEBERG.project(handle_of(table))
