"""How a partition of the log is shown: by the keys of the table, as text.

Files of many specs can lie in one shown partition: where a spec got a bucket besides, say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from attrs import evolve, field, frozen

from ledger.events.commit import OUTSIDE
from ledger.log.outside.column_values import PersonalColumns
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import kept_at
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
from projections.partition_text import PartitionText, key_places, partition_path


@frozen
class RenderedSpec:
    """A partition as text: its path, which stands for it, and its keys with their values."""

    path: str
    items: tuple[tuple[str, str], ...]


@frozen
class ShownFields:
    """What the statistics show of the partitions of one spec's files.

    Where a spec has the table's partition keys, these alone, whatever else it became: they are the
    partitions of the DLF metadata API. Otherwise the spec's own fields, whose values are written as
    the log has them: a column that has a field's name may be another one by now.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    text: PartitionText

    @classmethod
    def of(cls, schema: Schema, spec: PartitionSpec, text: PartitionText) -> ShownFields:
        """Return what is shown of a spec, its values written as `text` writes them."""
        try:
            places = key_places(schema, spec)
        except UnsupportedError:
            places = ()
        if places:
            return cls(schema.partition_keys, places, text)
        shown = [each for each in enumerate(spec.fields) if each[1].transform != "void"]
        names = tuple(each.name for _, each in shown)
        return cls(names, tuple(place for place, _ in shown), evolve(text, types={}))


def told(columns: PersonalColumns, partitions: Iterable[str]) -> dict[str, str]:
    """Return what partitions say whose values are kept elsewhere, by what they said.

    What was erased is NULL.

    Args:
        columns: Where the values are kept.
        partitions: JSON arrays, as rows of statistics have them.
    """
    outside = {each: msgspec.json.decode(each) for each in partitions if OUTSIDE in each}
    wanted = {at for values in outside.values() for each in values if (at := kept_at(each))}
    known = columns.values(wanted)
    return {
        text: msgspec.json.encode(
            [each if (at := kept_at(each)) is None else known.get(at) for each in values]
        ).decode()
        for text, values in outside.items()
    }


@frozen
class Rendering:
    """A table's way of showing partitions, at one instant.

    Attributes:
        shown: By spec id, what is shown.
        columns: Where values of partitions are kept that rows do not have.
    """

    shown: Mapping[int, ShownFields] = field(hash=False)
    columns: PersonalColumns | None = None

    @classmethod
    def of(cls, schema: Schema, specs: Sequence[PartitionSpec]) -> Rendering:
        """Return the way for people: a date is a date.

        Example:
            >>> from ledger.evolution.layout.fold import identity_spec
            >>> schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
            >>> Rendering.of(schema, [identity_spec(schema)]).spec(0, '["2024-01-01"]').path
            'day=2024-01-01'
        """
        text = evolve(PartitionText.of(schema), legacy_name=False)
        return cls({each.spec_id: ShownFields.of(schema, each, text) for each in specs})

    @classmethod
    def paimon(cls, schema: Schema, specs: Sequence[PartitionSpec]) -> Rendering:
        """Return the way of Paimon's and the DLF metadata API's objects.

        It follows the table's option `partition.legacy-name`, by which a date is a day number.

        Example:
            >>> from ledger.evolution.layout.fold import identity_spec
            >>> schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
            >>> Rendering.paimon(schema, [identity_spec(schema)]).spec(0, '["2024-01-01"]').path
            'day=19723'
        """
        text = PartitionText.of(schema)
        return cls({each.spec_id: ShownFields.of(schema, each, text) for each in specs})

    def spec(self, spec_id: int, partition: str) -> RenderedSpec:
        """Return the partition that a row's keys mean.

        Args:
            spec_id: The row's.
            partition: Its values, a JSON array.

        Raises:
            InvalidInputError: A value is not one of its column's type.
        """
        fields = self.shown[spec_id]
        values = msgspec.json.decode(partition)
        spec = fields.text.spec(fields.names, [values[each] for each in fields.places])
        return RenderedSpec(partition_path(spec), tuple(spec.items()))
