"""Which rules of its formats a table has been changed by."""

from ledger.events.base import Record


class FormatRulesRaised(Record, frozen=True, tag="raiseFormatRules", kw_only=True):
    """From now on no package with lower rules of these formats changes the table.

    `rules` gives numbers by a format's name, each higher than before; a format that was never named
    has number 1.
    """

    rules: dict[str, int]
