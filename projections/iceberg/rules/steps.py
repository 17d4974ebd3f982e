"""What may become of a column from one schema to a later one, so that no value reads otherwise.

Source: the Iceberg table specification, "Schema Evolution".
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from attrs import frozen

from ledger.evolution.declared.format import Refusal, refused_retyping
from ledger.model.schema import Schema
from ledger.model.types import ArrayType, DataField, DataType, DateType, MapType, RowType
from ledger.model.types.casting import can_promote
from ledger.model.types.walk import TypePlace, type_places


@frozen
class Step:
    """From one schema to a later one.

    Attributes:
        before: The earlier schema.
        format_version: Iceberg's.
        may_require: Whether a column may become required although older rows may lack it.
    """

    before: Schema
    format_version: int
    may_require: bool

    def problems(
        self, columns: Iterable[DataField], only: Container[int] | None = None
    ) -> Iterator[Refusal]:
        """Yield what Iceberg forbids of what some columns of the later schema became.

        Args:
            columns: Those.
            only: The ids of what to look at in them; None for all.
        """
        later = tuple(columns)
        ids = {each.id for each in later}
        earlier = (each for each in self.before.fields if each.id in ids)
        before = {each.field.id: each for each in type_places(earlier) if each.field}
        for place in type_places(later):
            if place.field is None or (only is not None and place.field.id not in only):
                continue
            old = before.get(place.field.id)
            if old is not None:
                yield from self._nullability(place.name, old.type, place.type)
                yield from self._type(place, place.name, old.type, place.type)
            elif place.level[0] is None or place.level[0] in before:
                yield from self._added(place, place.field)

    def _added(self, place: TypePlace, column: DataField) -> Iterator[Refusal]:
        if column.type.nullable or self.may_require or column.initial_default is not None:
            return
        if column.id <= self.before.highest_field_id:
            # It is back, and NOT NULL only if no row was written without it.
            return
        yield Refusal(
            f"column {place.name}",
            "older files have no value for a new NOT NULL column",
            "add it as nullable, or with a default under format-version=3, or allow incompatible "
            "changes if there are no such rows",
        )

    def _nullability(self, name: str, before: DataType, after: DataType) -> Iterator[Refusal]:
        if not before.nullable or after.nullable or self.may_require:
            return
        yield Refusal(
            f"column {name}",
            "older files may hold NULL in it, so it cannot become NOT NULL",
            "keep it nullable, or allow incompatible changes if there is none",
        )

    def _type(
        self, place: TypePlace, name: str, before: DataType, after: DataType
    ) -> Iterator[Refusal]:
        match before, after:
            case RowType(), RowType():
                # Its members are columns of their own.
                return
            case ArrayType(element=old), ArrayType(element=new):
                yield from self._member(place, f"{name}.element", old, new)
            case MapType(), MapType():
                if before.key != after.key:
                    yield Refusal(f"column {name}.key", "map keys never change", "add a new map")
                yield from self._member(place, f"{name}.value", before.value, after.value)
            case _ if not can_promote(before, after, format_version=self.format_version):
                rule = "Iceberg reads old files as the new type and only ever widens types"
                yield refused_retyping(f"column {name}", before, after, rule)
            case DateType(), _ if not isinstance(after, DateType):
                # The specification allows it in version 3, and its own library refuses it.
                rule = "Spark, Trino and PyIceberg cannot read the dates of older files as moments"
                yield refused_retyping(f"column {name}", before, after, rule)

    def _member(
        self, place: TypePlace, name: str, before: DataType, after: DataType
    ) -> Iterator[Refusal]:
        yield from self._nullability(name, before, after)
        yield from self._type(place, name, before, after)
