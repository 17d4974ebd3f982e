"""Rendering of partitions as text, a column at a time.

Files of several specs can be in one shown partition: for example after a bucket field was added.
Several values can have one text: NULL and a blank text, or two spellings of a timestamp. So the
rows of a shown partition are found in two steps: its text gives ranges of keys that hold all of
them, and the keys found there are rendered and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec
from attrs import evolve, field, frozen

from ledger.events.commit import OUTSIDE
from ledger.log.personal_data import PersonalColumns
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import sidecar_location_of
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.state.table import TableState
from projections.partition_text import PartitionText, ValuePrefix, key_places, partition_path
from projections.statistics.tile_files import PartitionRange

if TYPE_CHECKING:
    import pyarrow as pa


class Instant(Protocol):
    """A table at an instant; `Table.at` returns it."""

    @property
    def state(self) -> TableState:
        """The folded state."""

    @property
    def schema(self) -> Schema:
        """The schema to read with."""


@frozen
class RenderedSpec:
    """A partition as text: its path, which identifies it, and its keys with their values."""

    path: str
    items: tuple[tuple[str, str], ...]


_MOST_PREFIXES = 64
_MOST_PLAIN_FIELDS = 9
_PLAIN = r'"?([0-9A-Za-z_.+\-]+)"?'
_HIDDEN = r'(?:"[^"\\]*"|[^",\[\]]+)'


@frozen
class DisplayedPartitionFields:
    """Displayed partition fields of one spec's files.

    If a spec has the table's partition keys, only these, whatever other fields it has: they are the
    partitions of the DLF metadata API. Otherwise the spec's own fields, with the values of the log:
    another column may have a field's name by now.

    Attributes:
        names: Their names.
        places: Their positions among the values of a partition.
        text: The text of a value.
        count: The number of values of a partition.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    text: PartitionText
    count: int

    @classmethod
    def of(
        cls, schema: Schema, spec: PartitionSpec, text: PartitionText
    ) -> DisplayedPartitionFields:
        """Return the displayed fields of a spec, with values written by `text`."""
        count = len(spec.fields)
        try:
            places = key_places(schema, spec)
        except UnsupportedError:
            places = ()
        if places:
            return cls(schema.partition_keys, places, text, count)
        shown = [each for each in enumerate(spec.fields) if each[1].transform != "void"]
        names = tuple(each.name for _, each in shown)
        return cls(names, tuple(place for place, _ in shown), evolve(text, types={}), count)

    def render(self, partition: str) -> RenderedSpec:
        """Return the partition of a key, a JSON array.

        Raises:
            InvalidInputError: A value does not have its column's type.
        """
        values = msgspec.json.decode(partition)
        spec = self.text.spec(self.names, [values[each] for each in self.places])
        return RenderedSpec(partition_path(spec), tuple(spec.items()))

    def paths(self, partitions: pa.Array) -> pa.Array:
        """Return the paths of partitions, those of plain values by one regular expression."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._is_plain:
            rendered = [self.render(each).path for each in partitions.to_pylist()]
            return pa.array(rendered, pa.string())
        named = {place: name for name, place in zip(self.names, self.places, strict=True)}
        values = [_PLAIN if each in named else _HIDDEN for each in range(self.count)]
        order = sorted(self.places)
        path = "/".join(
            partition_path({name: ""}) + rf"\{order.index(place) + 1}"
            for name, place in zip(self.names, self.places, strict=True)
        )
        found = pc.replace_substring_regex(partitions, rf"^\[{','.join(values)}\]$", path)
        # No path begins with a bracket; and a text with this word is rendered in any case.
        others = pc.or_(pc.starts_with(found, "["), pc.match_substring(partitions, "null"))
        if not pc.any(others).as_py():
            return found
        rendered = [self.render(each).path for each in partitions.filter(others).to_pylist()]
        return pc.replace_with_mask(found, others, pa.array(rendered, pa.string()))

    @property
    def _is_plain(self) -> bool:
        """True if plain values are their own text, and few enough for a regular expression."""
        are_own_text = all(map(self.text.is_unchanged, self.names))
        return are_own_text and len(self.names) <= _MOST_PLAIN_FIELDS

    def prefixes(self, spec: Mapping[str, str]) -> Iterator[str]:
        """Yield prefixes of the keys of all partitions that may be shown as one."""
        named = {place: name for name, place in zip(self.names, self.places, strict=True)}
        known = ["["]
        for place in range(self.count):
            name = named.get(place)
            values = () if name is None else self.text.value_prefixes(name, spec[name])
            if name is None or len(known) * len(values) > _MOST_PREFIXES:
                break
            end = "]" if place == self.count - 1 else ","
            # A personal value is stored separately, and its text unknown here.
            for each in (*values, ValuePrefix(f'"{OUTSIDE}', is_whole=False)):
                if not each.is_whole:
                    yield from (before + each.text for before in known)
            known = [
                before + each.text + end for before in known for each in values if each.is_whole
            ]
        yield from known


def partition_texts(columns: PersonalColumns, partitions: Iterable[str]) -> dict[str, str]:
    """Return the full values of partitions whose personal values are stored separately.

    An erased value is NULL.

    Args:
        columns: The personal values.
        partitions: JSON arrays from rows of statistics, which are the keys of the result.
    """
    outside = {each: msgspec.json.decode(each) for each in partitions if OUTSIDE in each}
    wanted = {
        at for values in outside.values() for each in values if (at := sidecar_location_of(each))
    }
    known = columns.values(wanted)
    return {
        text: msgspec.json.encode(
            [
                each if (at := sidecar_location_of(each)) is None else known.get(at)
                for each in values
            ]
        ).decode()
        for text, values in outside.items()
    }


def fill_personal_values(columns: PersonalColumns, rows: pa.Table) -> pa.Table:
    """Return rows with the personal values of partitions filled in; erased ones are NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_outside = pc.fill_null(pc.match_substring(rows["partition"], OUTSIDE), fill_value=False)
    if not pc.any(is_outside).as_py():
        return rows
    said = partition_texts(columns, pc.unique(rows["partition"].filter(is_outside)).to_pylist())
    found = [said.get(each, each) for each in rows["partition"].to_pylist()]
    place = rows.schema.get_field_index("partition")
    return rows.set_column(place, rows.schema.field(place), pa.array(found, pa.string()))


@frozen
class PartitionRendering:
    """A table's rendering of partitions, at one instant.

    Attributes:
        shown: By spec id, the displayed fields.
        columns: Personal partition values, which rows do not contain.
    """

    shown: Mapping[int, DisplayedPartitionFields] = field(hash=False)
    columns: PersonalColumns | None = None

    @classmethod
    def of(cls, schema: Schema, specs: Sequence[PartitionSpec]) -> PartitionRendering:
        """Return the rendering for people: a date is a date.

        Example:
            >>> from ledger.state.layout import identity_spec
            >>> schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
            >>> PartitionRendering.of(schema, [identity_spec(schema)]).spec(
            ...     0, '["2024-01-01"]'
            ... ).path
            'day=2024-01-01'
        """
        text = evolve(PartitionText.of(schema), legacy_name=False)
        return cls(
            {each.spec_id: DisplayedPartitionFields.of(schema, each, text) for each in specs}
        )

    @classmethod
    def paimon(cls, schema: Schema, specs: Sequence[PartitionSpec]) -> PartitionRendering:
        """Return the rendering of Paimon's and the DLF metadata API's objects.

        It follows the table's option `partition.legacy-name`, by which a date is a day number.

        Example:
            >>> from ledger.state.layout import identity_spec
            >>> schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
            >>> PartitionRendering.paimon(schema, [identity_spec(schema)]).spec(
            ...     0, '["2024-01-01"]'
            ... ).path
            'day=19723'
        """
        text = PartitionText.of(schema)
        return cls(
            {each.spec_id: DisplayedPartitionFields.of(schema, each, text) for each in specs}
        )

    def spec(self, spec_id: int, partition: str) -> RenderedSpec:
        """Return the partition of a row's keys.

        Args:
            spec_id: The row's spec.
            partition: Its values, a JSON array.

        Raises:
            InvalidInputError: A value does not have its column's type.
        """
        return self.shown[spec_id].render(partition)

    def paths(self, rows: pa.Table) -> pa.Array:
        """Return the path of the partition of each row; raises as `spec`.

        Args:
            rows: Rows of `definition.ROWS`, none of a whole table.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        partitions = rows["partition"].combine_chunks()
        spec_ids = pc.unique(rows["spec_id"]).to_pylist()
        if len(spec_ids) == 1:
            return self.shown[spec_ids[0]].paths(partitions)
        found = pa.nulls(len(rows), pa.string())
        for spec_id in spec_ids:
            is_mine = pc.equal(rows["spec_id"], spec_id).combine_chunks()
            paths = self.shown[spec_id].paths(partitions.filter(is_mine))
            found = pc.replace_with_mask(found, is_mine, paths)
        return found

    def ranges_of(self, spec: Mapping[str, str]) -> set[PartitionRange]:
        """Return ranges of the keys of all rows that may be shown as a partition, and others."""
        same = [each for each in self.shown.values() if set(each.names) == spec.keys()]
        return {PartitionRange.of_prefix(prefix) for each in same for prefix in each.prefixes(spec)}

    def paths_of(self, spec: Mapping[str, str]) -> list[str]:
        """Return the paths of a partition, which are several if specs order its keys otherwise."""
        same = [each.names for each in self.shown.values() if set(each.names) == spec.keys()]
        return [partition_path({name: spec[name] for name in names}) for names in {*same}]


def rendering_of(at: Instant) -> PartitionRendering:
    """Return the rendering of partitions for people at an instant."""
    return PartitionRendering.of(at.schema, at.state.specs)


def paimon_rendering_of(at: Instant) -> PartitionRendering:
    """Return the rendering of Paimon and the DLF metadata API at an instant."""
    return PartitionRendering.paimon(at.schema, at.state.specs)
