"""Paimon: a table's files as Paimon's own writers write them."""

from __future__ import annotations

from projections.paimon.schema_file import (
    paimon_json,
    schema_file,
    schema_from_json,
    schema_to_json,
)

__all__ = ["paimon_json", "schema_file", "schema_from_json", "schema_to_json"]
