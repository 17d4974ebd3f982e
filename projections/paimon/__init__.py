"""The files of a Paimon table, as Paimon's own writers write them."""

from __future__ import annotations

from projections.paimon.json_text import paimon_json
from projections.paimon.schema_file import schema_file, schema_from_json, schema_to_json

__all__ = ["paimon_json", "schema_file", "schema_from_json", "schema_to_json"]
