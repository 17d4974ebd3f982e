"""States of tables and catalogs, and the builders that fold events into them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import exporter

if TYPE_CHECKING:
    from ledger.state.catalog import (
        EMPTY_CATALOG,
        Audit,
        CatalogState,
        FunctionEntry,
        TableEntry,
        ViewEntry,
    )
    from ledger.state.catalog_builder import CatalogBuilder
    from ledger.state.columns import PastColumns
    from ledger.state.declared_formats import PAIMON_RULES, Rules
    from ledger.state.delta_origin import DeltaOrigin
    from ledger.state.iceberg_origin import IcebergOrigin
    from ledger.state.layout import LayoutTrail, PartitionFilter, identity_spec
    from ledger.state.native_origin import NativeOrigin
    from ledger.state.owner import Owner
    from ledger.state.paimon_origin import PaimonOrigin
    from ledger.state.records import FOLD_VERSION, CatalogStream, TableStream
    from ledger.state.schema_builder import SchemaBuilder
    from ledger.state.stream import Builder, Stream
    from ledger.state.table import TableState
    from ledger.state.table_builder import TableBuilder

__all__ = [
    "EMPTY_CATALOG",
    "FOLD_VERSION",
    "PAIMON_RULES",
    "Audit",
    "Builder",
    "CatalogBuilder",
    "CatalogState",
    "CatalogStream",
    "DeltaOrigin",
    "FunctionEntry",
    "IcebergOrigin",
    "LayoutTrail",
    "NativeOrigin",
    "Owner",
    "PaimonOrigin",
    "PartitionFilter",
    "PastColumns",
    "Rules",
    "SchemaBuilder",
    "Stream",
    "TableBuilder",
    "TableEntry",
    "TableState",
    "TableStream",
    "ViewEntry",
    "identity_spec",
]

if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "ledger.state.catalog": (
                "EMPTY_CATALOG",
                "Audit",
                "CatalogState",
                "FunctionEntry",
                "TableEntry",
                "ViewEntry",
            ),
            "ledger.state.catalog_builder": ("CatalogBuilder",),
            "ledger.state.columns": ("PastColumns",),
            "ledger.state.declared_formats": (
                "PAIMON_RULES",
                "Rules",
            ),
            "ledger.state.delta_origin": ("DeltaOrigin",),
            "ledger.state.iceberg_origin": ("IcebergOrigin",),
            "ledger.state.layout": (
                "LayoutTrail",
                "PartitionFilter",
                "identity_spec",
            ),
            "ledger.state.native_origin": ("NativeOrigin",),
            "ledger.state.owner": ("Owner",),
            "ledger.state.paimon_origin": ("PaimonOrigin",),
            "ledger.state.records": (
                "FOLD_VERSION",
                "CatalogStream",
                "TableStream",
            ),
            "ledger.state.schema_builder": ("SchemaBuilder",),
            "ledger.state.stream": (
                "Builder",
                "Stream",
            ),
            "ledger.state.table": ("TableState",),
            "ledger.state.table_builder": ("TableBuilder",),
        },
    )
