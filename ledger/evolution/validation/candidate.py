"""What the rules of whole schemas look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from attrs import define, field

from ledger.evolution.columns.directives import is_blob
from ledger.evolution.options.reading import TableOptions
from ledger.model.schema import Schema
from ledger.model.types import DataField, DataType
from ledger.model.types.columns import indexed
from ledger.model.types.walk import parts_of

R = TypeVar("R")

UNUSUAL_ROOTS = frozenset(
    {"ARRAY", "MAP", "MULTISET", "ROW", "VECTOR", "BLOB", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
)
"""Types that some rule speaks of, and those that such a type may stand inside."""


@define(slots=False)
class Candidate:
    """A schema that is to be, with its columns found.

    Attributes:
        schema: The schema.
        options: Its options, readable.
        unusual: The columns of types that some rule speaks of.
    """

    schema: Schema
    options: TableOptions = field(init=False)
    unusual: tuple[DataField, ...] = field(init=False, eq=False, repr=False)

    @options.default
    def _readable(self) -> TableOptions:
        return TableOptions(self.schema.options)

    @unusual.default
    def _of_unusual_types(self) -> tuple[DataField, ...]:
        if UNUSUAL_ROOTS.isdisjoint(indexed(self.schema.fields).roots):
            return ()
        return tuple([each for each in self.schema.fields if each.type.root in UNUSUAL_ROOTS])

    def of_names(self, ask: Callable[[tuple[str, ...]], R]) -> R:
        """Return what a function says of the columns' names; asked once while they stand."""
        return indexed(self.schema.fields).of_names(ask)

    @property
    def columns(self) -> Mapping[str, DataField]:
        """The columns by name."""
        return indexed(self.schema.fields).by_name

    @property
    def has_primary_key(self) -> bool:
        """Whether rows are found by a key."""
        return bool(self.schema.primary_keys)

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns that choose a row's bucket, as the option spells them."""
        listed = self.options.text("bucket-key") or ""
        return tuple(listed.split(",")) if listed.strip() else ()

    @property
    def sequence_fields(self) -> tuple[str, ...]:
        """The columns that say which of two rows is newer."""
        listed = self.options.text("sequence.field")
        return () if listed is None else tuple(each.strip() for each in listed.split(","))

    @property
    def keys_left_out(self) -> set[str]:
        """The partition keys that are not in the primary key."""
        return set(self.schema.partition_keys) - set(self.schema.primary_keys)

    @property
    def blobs(self) -> list[str]:
        """The columns of BLOBs."""
        return [each.name for each in self.unusual if is_blob(each.type)]

    @property
    def vectors(self) -> list[str]:
        """The columns that are VECTORs."""
        return [each.name for each in self.unusual if each.type.root == "VECTOR"]

    @property
    def managed_blobs(self) -> tuple[str, ...]:
        """The columns whose BLOBs are kept in files of their own."""
        inline = {
            name
            for key in ("blob-descriptor-field", "blob-view-field")
            for name in self.inline_blobs(key)
        }
        return tuple(each for each in self.blobs if each not in inline)

    def inline_blobs(self, key: str) -> tuple[str, ...]:
        """Return the columns that one of the two options lists whose BLOBs stand in the rows."""
        if key == "blob-descriptor-field" and self.options.text(key) is None:
            return self.options.names("blob.stored-descriptor-fields")
        return self.options.names(key)

    def is_shredded(self, name: str) -> bool:
        """Return whether a column's map is spread over columns of the file."""
        layout = self.options.text(f"fields.{name}.map.storage-layout") or "default"
        return layout.lower() == "shared-shredding"

    def aggregate_function(self, name: str) -> str | None:
        """Return the function that a column's values merge by, if one is given."""
        return self.options.text(
            f"fields.{name}.aggregate-function", "fields.default-aggregate-function"
        )


def contains_root(data_type: DataType, *roots: str) -> bool:
    """Return whether a type of one of these roots stands anywhere inside `data_type`."""
    if data_type.root in roots:
        return True
    return any(contains_root(each.type, *roots) for each in parts_of(data_type))
