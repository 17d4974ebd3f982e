"""What a table-wide check looks at."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from ledger.evolution.options.reading import TableOptions
from ledger.model.schema import Schema
from ledger.model.types import DataField, DataType
from ledger.model.types.walk import parts_of

UNUSUAL_ROOTS = frozenset(
    {"ARRAY", "MAP", "MULTISET", "ROW", "VECTOR", "BLOB", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
)
"""Types that some rule speaks of, and those that such a type may stand inside."""


@frozen
class Subject:
    """A whole schema, with its options readable and its columns by name."""

    schema: Schema
    options: TableOptions
    columns: dict[str, DataField]
    unusual: tuple[DataField, ...]

    @classmethod
    def of(cls, schema: Schema) -> Subject:
        """Return the subject of a schema's checks."""
        return cls(
            schema,
            TableOptions(schema.options),
            {each.name: each for each in schema.fields},
            tuple([each for each in schema.fields if each.type.root in UNUSUAL_ROOTS]),
        )

    @property
    def has_primary_key(self) -> bool:
        """Whether rows are found by a key."""
        return bool(self.schema.primary_keys)

    def is_shredded(self, name: str) -> bool:
        """Return whether a column's map is spread over columns of the file."""
        layout = self.options.text(f"fields.{name}.map.storage-layout") or "default"
        return layout.lower() == "shared-shredding"

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


Check = Callable[[Subject], object]
"""Looks at one rule; raises InvalidChangeError where it is broken."""


def contains_root(data_type: DataType, *roots: str) -> bool:
    """Return whether a type of one of these roots stands anywhere inside `data_type`."""
    if data_type.root in roots:
        return True
    return any(contains_root(each.type, *roots) for each in parts_of(data_type))
