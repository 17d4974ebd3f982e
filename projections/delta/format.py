"""Delta as a format of tables: what the entry point of `lakeledger.formats` names."""

from __future__ import annotations

from projections.delta.rules.answers import DeltaRules


class Delta:
    """See `ledger.formats.Format`."""

    rules = DeltaRules()


DELTA = Delta()
