"""The rows of what can be asked of options, of the table's comment and of its keys as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.events import schema_changes as asked
from ledger.events.schema_events import UpdateKeys
from ledger.evolution.columns.following import Following
from ledger.evolution.operation import Cell, Operation, SchemaOperation, no_cells
from ledger.evolution.options import deciding
from ledger.evolution.wire import reading as reads


def _set(fact: asked.SetOption) -> Iterator[tuple[Cell, Any]]:
    yield ("option", fact.key), fact.value


def _removed(fact: asked.RemoveOption) -> Iterator[tuple[Cell, Any]]:
    yield ("option", fact.key), None


def _commented(fact: asked.UpdateComment) -> Iterator[tuple[Cell, Any]]:
    yield ("comment",), fact.comment


def _dropped_key(_fact: asked.DropPrimaryKey) -> Iterator[tuple[Cell, Any]]:
    yield ("primaryKey",), ()


def _keys(fact: UpdateKeys) -> Iterator[tuple[Cell, Any]]:
    yield ("primaryKey",), fact.primary_keys
    yield ("partitionKeys",), fact.partition_keys


def _says_comment(change: asked.UpdateComment) -> str:
    return f"{'removed' if change.comment is None else 'changed'} the table's comment"


def _says_keys(fact: UpdateKeys) -> str:
    keys = f"partition keys to {list(fact.partition_keys)}"
    return f"set the {keys}, the primary keys to {list(fact.primary_keys)}"


OPTION_OPERATIONS: tuple[Operation, ...] = (
    SchemaOperation(
        asked=asked.SetOption,
        facts=(asked.SetOption,),
        reads=reads.set_option,
        names=Following.set_option,
        touches="nothing",
        decide=deciding.decide_set_option,
        sets=_set,
        claims=_set,
        says=lambda it: f"set option {it.key} to {it.value}",
    ),
    SchemaOperation(
        asked=asked.RemoveOption,
        facts=(asked.RemoveOption,),
        reads=reads.remove_option,
        names=Following.remove_option,
        touches="nothing",
        decide=deciding.decide_remove_option,
        sets=_removed,
        claims=_removed,
        says=lambda it: f"removed option {it.key}",
    ),
    SchemaOperation(
        asked=asked.UpdateComment,
        facts=(asked.UpdateComment,),
        reads=reads.table_comment,
        names=Following.as_asked,
        touches="nothing",
        decide=deciding.decide_table_comment,
        sets=_commented,
        claims=_commented,
        says=_says_comment,
    ),
    SchemaOperation(
        asked=asked.DropPrimaryKey,
        facts=(asked.DropPrimaryKey,),
        reads=reads.drop_primary_key,
        names=Following.as_asked,
        touches="nothing",
        decide=deciding.decide_drop_primary_key,
        sets=_dropped_key,
        claims=_dropped_key,
        says=lambda _: "dropped the primary key",
    ),
    # Options that are keys became it; they claim what they mean, by id.
    Operation(facts=(UpdateKeys,), sets=_keys, claims=no_cells, says=_says_keys, alters=True),
)
