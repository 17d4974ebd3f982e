"""Paimon as a format of tables: what the entry point of `lakeledger.formats` names."""

from __future__ import annotations

from projections.paimon.rules.answers import PaimonRules


class Paimon:
    """See `ledger.formats.Format`."""

    rules = PaimonRules()


PAIMON = Paimon()
