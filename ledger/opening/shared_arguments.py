"""Validators of arguments that methods of `Ledger` and of `Table` share."""

from __future__ import annotations

from typing import get_args

from ledger.events.table import ServingProtocol
from ledger.model import arguments as its

PROTOCOL = its.one_of(*get_args(ServingProtocol))
WANTED_ENTRIES = {
    "last": its.whole.or_none(),
    "since": its.moment.or_none(),
    "until": its.moment.or_none(),
    "author": its.text.or_none(),
    "message": its.text.or_none(),
    "kinds": its.paths,
    "column": its.column.or_none(),
    "branch": its.text.or_none(),
}
"""Validators of the arguments of `Table.entries`."""
