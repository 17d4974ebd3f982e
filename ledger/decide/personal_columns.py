"""Personal columns of a table, named by its option `ledger.personal`.

The values of such columns stand outside of the lines of the log, where they can be erased. A column
that holds others marks them, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ledger.decide.table_options import comma_list
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import FileChange, kept_at
from ledger.model.iceberg_layout import PartitionField, PartitionSpec
from ledger.model.schema import Schema
from ledger.model.types import DataField, walk_fields

PERSONAL_OPTION: Final = "ledger.personal"
"""Names columns, parted by commas."""

_SAYS_NOTHING = ("bucket[", "void")
"""Transforms whose results are no value of anybody: a bucket's number is that of many."""


class Marked(Struct, frozen=True):
    """The personal columns of a table.

    Attributes:
        personal: Their field ids, with those of what is nested in them.
        known: The field ids of all columns that the table has.
    """

    personal: frozenset[int]
    known: frozenset[int]

    @classmethod
    def of(cls, schema: Schema) -> Marked | None:
        """Return what a table's schema marks; None where that is nothing.

        Example:
            >>> columns = {"id": "INT", "mail": "STRING"}
            >>> schema = Schema.of(columns, options={"ledger.personal": "mail"})
            >>> sorted(Marked.of(schema).personal), Marked.of(Schema.of({"id": "INT"})) is None
            ([1], True)
        """
        return _marked(schema) if schema.options.get(PERSONAL_OPTION) else None

    def __contains__(self, field_id: int) -> bool:
        # Of what is no column any more, or has no field of its own, nobody says that it is not.
        return field_id in self.personal or field_id not in self.known

    def partitions(self, spec: PartitionSpec) -> list[tuple[int, PartitionField]]:
        """Return the fields of a spec whose values are personal, each with its place."""
        return [
            (place, each)
            for place, each in enumerate(spec.fields)
            if each.source_id in self and not each.transform.startswith(_SAYS_NOTHING)
        ]

    def without(self, file: FileChange, spec: PartitionSpec | None) -> FileChange:
        """Return a file's facts without its personal values; of an unknown spec, without any."""
        lower, upper = (
            {key: value for key, value in each.items() if key not in self}
            if isinstance(each, dict)
            else each
            for each in (file.lower_bounds, file.upper_bounds)
        )
        gone = {place for place, _ in self.partitions(spec)} if spec is not None else None
        partition = tuple(
            None if gone is None or place in gone else value
            for place, value in enumerate(file.partition)
        )
        return replace(file, lower_bounds=lower, upper_bounds=upper, partition=partition)

    def exposed(self, file: FileChange, spec: PartitionSpec) -> bool:
        """Whether a file's facts hold a personal value themselves."""
        bounds = (file.lower_bounds, file.upper_bounds)
        if any(key in self for each in bounds if isinstance(each, dict) for key in each):
            return True
        values = (file.partition[place] for place, _ in self.partitions(spec))
        return any(each is not None and kept_at(each) is None for each in values)


def _marked(schema: Schema) -> Marked:
    named = set(comma_list(schema.options[PERSONAL_OPTION]))
    marked = [each for each in schema.fields if each.name in named]
    ids = frozenset(each.id for each in walk_fields(marked))
    return Marked(ids, frozenset(each.id for each in walk_fields(schema.fields)))


def refuse_marks(schema: Schema, before: Mapping[str, str], *, is_erasable: bool) -> None:
    """Refuse to mark columns that there are not, or in a ledger that can erase nothing.

    Args:
        schema: The table's, as it shall be.
        before: Its options as they were.
        is_erasable: Whether the table keeps values outside of its lines.

    Raises:
        InvalidChangeError: It is so.
    """
    said = schema.options.get(PERSONAL_OPTION)
    if said is None or said == before.get(PERSONAL_OPTION):
        return
    missing = [each for each in comma_list(said) if each not in schema.names]
    if missing:
        raise InvalidChangeError(
            f"option {PERSONAL_OPTION}={said!r}: there is no column {missing[0]}; it names columns "
            "of the table, parted by commas"
        )
    if not is_erasable:
        refuse_unerasable(schema.options)


def lost_marks(said: str, fields: Sequence[DataField]) -> tuple[str, ...]:
    """Return the names of marks that no column has."""
    there = {each.name for each in fields}
    return tuple(each for each in comma_list(said) if each not in there)


def idle_marks(schema: Schema, *, is_erasable: bool) -> str:
    """Return why a table's marks do not do what they say, in a phrase; empty where they do.

    Its own were looked at when they were set. Those of a source of others are taken as they are.

    Args:
        schema: The table's.
        is_erasable: Whether the table keeps values outside of its lines.

    Example:
        >>> schema = Schema.of({"id": "INT"}, options={"ledger.personal": "mail"})
        >>> idle_marks(schema, is_erasable=True)
        'mail is no column'
    """
    said = schema.options.get(PERSONAL_OPTION, "")
    lost = lost_marks(said, schema.fields)
    if lost:
        return f"{', '.join(lost)} is no column"
    if said and not is_erasable:
        return "this ledger was created without --erasable, and keeps all in its lines"
    return ""


def followed_marks(before: Schema, said: str, fields: Sequence[DataField]) -> str:
    """Return what marks the columns of a table that follows a source of others.

    Who renames a column there need not know of marks: where the source's word names one that is not
    there, those that were marked before stay so, by their names now.

    Args:
        before: The table's schema before a step of its source.
        said: What the source says after it.
        fields: The columns after it.

    Example:
        >>> before = Schema.of({"id": "INT", "mail": "STRING"}, options={"ledger.personal": "mail"})
        >>> after = Schema.of({"id": "INT", "email": "STRING"}).fields
        >>> followed_marks(before, "mail", after), followed_marks(before, "id", after)
        ('email', 'id')
    """
    lost, marked = lost_marks(said, fields), Marked.of(before)
    if not lost or marked is None:
        return said
    named = [each for each in comma_list(said) if each not in lost]
    kept = [each.name for each in fields if each.id in marked.personal]
    return ",".join(dict.fromkeys((*named, *kept))) or said


def refuse_unerasable(options: Mapping[str, str]) -> None:
    """Refuse options that mark columns, where nothing can be erased.

    Raises:
        InvalidChangeError: They do.
    """
    said = options.get(PERSONAL_OPTION)
    if said is not None:
        raise InvalidChangeError(
            f"option {PERSONAL_OPTION}={said!r}: this ledger keeps everything inside of its lines, "
            "which never change, so no value can be erased; only a ledger that is created for it "
            "can erase: lakeledger init --erasable"
        )
