"""Iceberg as a format of tables: what the entry point of `lakeledger.formats` names."""

from __future__ import annotations

from projections.iceberg.rules.answers import IcebergRules


class Iceberg:
    """See `ledger.formats.Format`."""

    rules = IcebergRules()


ICEBERG = Iceberg()
