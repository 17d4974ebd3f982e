"""Adding to a schema what another one has more: Iceberg's union by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import UNSET, UnsetType

from ledger.evolution.declared.rules import Rules
from ledger.evolution.refusals import state
from ledger.evolution.tree.paths import dotted
from ledger.evolution.update.names import Path, Spot
from ledger.evolution.update.pending import Pending
from ledger.model.types import ArrayType, DataField, DataType, MapType, RowType
from ledger.model.types.casting import can_promote
from ledger.model.types.text import format_type


class Update(Protocol):
    """A schema's update, as far as a union asks something of it."""

    def add_column(self, name: Path, data_type: DataType, *, doc: str | None) -> object:
        """Add a column at the end of its struct."""

    def update_column(
        self,
        name: Path,
        data_type: DataType | UnsetType = UNSET,
        *,
        doc: str | UnsetType | None = UNSET,
        default: str | UnsetType | None = UNSET,
    ) -> object:
        """Change a column's type, comment or default for new rows."""

    def make_optional(self, name: Path) -> object:
        """Let a column be NULL."""


def union_columns(
    update: Update, pending: Pending, columns: Sequence[DataField], parent: Path = ()
) -> None:
    """Ask an update for what these members of the struct at `parent` have more or wider.

    Raises:
        InvalidChangeError: A member has a type that neither side can become.
    """
    for each in columns:
        path = (*parent, each.name)
        spot = pending.find(dotted(path))
        if spot is None or spot.path[:-1] != parent:
            _add(update, path, each)
            continue
        _widen(update, pending, spot, each.type)
        if each.description is not None:
            update.update_column(spot.path, doc=each.description)
        if each.default_value is not None:
            update.update_column(spot.path, default=each.default_value)


def _add(update: Update, path: Path, column: DataField) -> None:
    optional = column.type.with_nullability(nullable=True)
    update.add_column(path, optional, doc=column.description)
    if column.default_value is not None:
        update.update_column(path, default=column.default_value)


def _widen(update: Update, pending: Pending, spot: Spot, other: DataType) -> None:
    if other.nullable and not spot.type.nullable:
        update.make_optional(spot.path)
    match spot.type, other:
        case RowType(), RowType(fields=members):
            union_columns(update, pending, members, spot.path)
        case ArrayType(), ArrayType(element=inner):
            _widen(update, pending, pending.names.spots[*spot.path, "element"], inner)
        case MapType(key=key), MapType(key=wanted, value=inner):
            _check_key(pending, spot, key, wanted)
            _widen(update, pending, pending.names.spots[*spot.path, "value"], inner)
        case _ if spot.type.depth or other.depth:
            raise _neither(spot, spot.type, other)
        case _:
            _promote(update, pending, spot, other)


def _promote(update: Update, pending: Pending, spot: Spot, other: DataType) -> None:
    version = Rules.of(pending.schema.options).format_version
    if can_promote(spot.type, other, format_version=version):
        update.update_column(spot.path, other)
    elif not can_promote(other, spot.type, format_version=version):
        raise _neither(spot, spot.type, other)


def _check_key(pending: Pending, spot: Spot, key: DataType, other: DataType) -> None:
    version = Rules.of(pending.schema.options).format_version
    if not can_promote(other, key, format_version=version):
        raise state(
            f"column {spot}: a map's key never changes, but {format_type(key)} would have to "
            f"become {format_type(other)}"
        )


def _neither(spot: Spot, mine: DataType, other: DataType) -> Exception:
    return state(
        f"column {spot}: neither of {format_type(mine)} and {format_type(other)} can become the "
        "other"
    )
