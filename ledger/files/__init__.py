"""Data files: footers, registration, live files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import exporter

if TYPE_CHECKING:
    from ledger.files.bounds import ColumnFacts, FooterColumn, lower_bound, upper_bound
    from ledger.files.change_lists import (
        event_files,
        load_changes,
        store_changes,
        to_table,
        write_changes,
    )
    from ledger.files.footers import read_footer, read_footers
    from ledger.files.live import LiveFiles, file_key
    from ledger.files.partition_values import value_of
    from ledger.files.register import data_files
    from ledger.files.runs import Net, Placed

__all__ = [
    "ColumnFacts",
    "FooterColumn",
    "LiveFiles",
    "Net",
    "Placed",
    "data_files",
    "event_files",
    "file_key",
    "load_changes",
    "lower_bound",
    "read_footer",
    "read_footers",
    "store_changes",
    "to_table",
    "upper_bound",
    "value_of",
    "write_changes",
]

if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "ledger.files.bounds": ("ColumnFacts", "FooterColumn", "lower_bound", "upper_bound"),
            "ledger.files.change_lists": (
                "event_files",
                "load_changes",
                "store_changes",
                "to_table",
                "write_changes",
            ),
            "ledger.files.footers": ("read_footer", "read_footers"),
            "ledger.files.live": ("LiveFiles", "file_key"),
            "ledger.files.partition_values": ("value_of",),
            "ledger.files.register": ("data_files",),
            "ledger.files.runs": ("Net", "Placed"),
        },
    )
