"""A decision in the making: the old schema, a working copy, and the facts decided so far."""

from __future__ import annotations

from ledger.events.schema_changes import RenameColumn
from ledger.events.schema_events import SchemaEvent
from ledger.evolution.rules import PAIMON_RULES, Rules
from ledger.evolution.schema_builder import SchemaBuilder
from ledger.evolution.table_options import TableOptions
from ledger.model.schema import Schema


class Draft:
    """What the rules of one batch look at and add to.

    Paimon's rules differ in what they read: guards, behaviour flags and "is the value unchanged"
    look at the schema before the batch (`old`), existence, ids and types at the `working` copy.
    """

    __slots__ = ("events", "has_snapshots", "old", "old_options", "renames", "rules", "working")

    def __init__(self, old: Schema, *, has_snapshots: bool, rules: Rules = PAIMON_RULES) -> None:
        self.old = old
        self.rules = rules
        self.old_options = TableOptions(old.options)
        self.has_snapshots = has_snapshots
        self.working = SchemaBuilder.of(old)
        self.events: list[SchemaEvent] = []
        self.renames: list[RenameColumn] = []

    def record(self, event: SchemaEvent) -> None:
        """Apply a fact to the working copy and keep it."""
        self.working.apply(event)
        self.events.append(event)

    def freeze(self) -> Schema:
        """Return the schema as it stands now, one id after the old one's."""
        return self.working.freeze(schema_id=self.old.id + 1, time_millis=self.old.time_millis)
