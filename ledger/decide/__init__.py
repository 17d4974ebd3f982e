"""Decisions: requested changes, checked against a state, become events. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import exporter

if TYPE_CHECKING:
    from ledger.decide.catalog import (
        AliasLedger,
        AlterDatabase,
        AlterView,
        CatalogIntent,
        CatalogRequest,
        CopyLedger,
        CreateDatabase,
        CreateTable,
        CreateView,
        DropDatabase,
        DropTable,
        DropView,
        MoveLedger,
        RenameTable,
        RenameView,
    )
    from ledger.decide.change_json import as_table_change
    from ledger.decide.changes import (
        AllowIncompatibleChanges,
        CommitSnapshot,
        CorrectClock,
        CreateTag,
        DeleteTag,
        ExpireSnapshots,
        FastForward,
        OtherChange,
        ReplaceTag,
        Rollback,
        SetBranch,
        SetPartitionStatistics,
        TableChange,
    )
    from ledger.decide.conflicts import RecentlyTouched
    from ledger.decide.format_rules import Batch, Refusal
    from ledger.decide.functions import AlterFunction, CreateFunction, DropFunction
    from ledger.decide.operation import StateOperation
    from ledger.decide.operations import OPERATIONS, in_words, planned_words
    from ledger.decide.schema_batch import Decision, decide_schema
    from ledger.decide.schema_update import SchemaUpdate
    from ledger.decide.table import TableIntent
    from ledger.decide.table_creation import create_schema, with_policy

__all__ = [
    "OPERATIONS",
    "AliasLedger",
    "AllowIncompatibleChanges",
    "AlterDatabase",
    "AlterFunction",
    "AlterView",
    "Batch",
    "CatalogIntent",
    "CatalogRequest",
    "CommitSnapshot",
    "CopyLedger",
    "CorrectClock",
    "CreateDatabase",
    "CreateFunction",
    "CreateTable",
    "CreateTag",
    "CreateView",
    "Decision",
    "DeleteTag",
    "DropDatabase",
    "DropFunction",
    "DropTable",
    "DropView",
    "ExpireSnapshots",
    "FastForward",
    "MoveLedger",
    "OtherChange",
    "RecentlyTouched",
    "Refusal",
    "RenameTable",
    "RenameView",
    "ReplaceTag",
    "Rollback",
    "SchemaUpdate",
    "SetBranch",
    "SetPartitionStatistics",
    "StateOperation",
    "TableChange",
    "TableIntent",
    "as_table_change",
    "create_schema",
    "decide_schema",
    "in_words",
    "planned_words",
    "with_policy",
]

if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "ledger.decide.catalog": (
                "CatalogIntent",
                "AliasLedger",
                "AlterDatabase",
                "AlterView",
                "CatalogRequest",
                "CopyLedger",
                "CreateDatabase",
                "CreateTable",
                "CreateView",
                "DropDatabase",
                "DropTable",
                "DropView",
                "MoveLedger",
                "RenameTable",
                "RenameView",
            ),
            "ledger.decide.change_json": ("as_table_change",),
            "ledger.decide.changes": (
                "AllowIncompatibleChanges",
                "CommitSnapshot",
                "CreateTag",
                "DeleteTag",
                "ExpireSnapshots",
                "FastForward",
                "OtherChange",
                "ReplaceTag",
                "Rollback",
                "SetBranch",
                "SetPartitionStatistics",
                "TableChange",
                "CorrectClock",
            ),
            "ledger.decide.conflicts": ("RecentlyTouched",),
            "ledger.decide.format_rules": (
                "Batch",
                "Refusal",
            ),
            "ledger.decide.functions": (
                "AlterFunction",
                "CreateFunction",
                "DropFunction",
            ),
            "ledger.decide.operation": ("StateOperation",),
            "ledger.decide.operations": (
                "OPERATIONS",
                "in_words",
                "planned_words",
            ),
            "ledger.decide.schema_batch": (
                "Decision",
                "decide_schema",
            ),
            "ledger.decide.schema_update": ("SchemaUpdate",),
            "ledger.decide.table": ("TableIntent",),
            "ledger.decide.table_creation": (
                "create_schema",
                "with_policy",
            ),
        },
    )
