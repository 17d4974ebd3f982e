"""Which schema of a table a file fits: the one whose names it uses.

A file that carries field ids is this table's own, or it is refused: another table's ids would
show values under the wrong names. A file without ids is matched by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from ledger.files.facts import FooterColumn
from ledger.files.readable import misfits
from ledger.model.errors import InvalidChangeError
from ledger.model.schema import Schema
from ledger.model.similar import listed, similar
from ledger.model.types import DataField, RowType
from ledger.model.types.field_ids import walk_fields

_MOST_HINTS = 5


@frozen
class Match:
    """The schema that a file fits, and whether the file carries the table's field ids."""

    schema: Schema
    field_ids: bool

    @property
    def schema_id(self) -> int:
        """The id of the schema whose names the file uses."""
        return self.schema.id


def schema_id_of(columns: Sequence[FooterColumn], history: Iterable[Schema], *, file: str) -> Match:
    """Return the newest schema that a file fits.

    It fits when each of its columns is in the schema, by name and (when the file carries ids) by
    id, with a type that readers can read the file's values as, and when no NOT NULL column that
    does not partition the table is missing from it.

    Args:
        columns: The file's.
        history: The table's schemas, newest first; no more are taken than are needed.
        file: Its name, for errors.

    Raises:
        InvalidChangeError: It fits none; the message names the file, the column and the reason.
    """
    if not columns:
        raise InvalidChangeError(f"file {file} has no columns")
    with_ids = _carries_ids(columns, file)
    seen: list[Schema] = []
    for schema in history:
        seen.append(schema)
        if next(_faults(columns, schema, with_ids=with_ids), None) is None:
            return Match(schema, with_ids)
    if not seen:
        raise InvalidChangeError(f"file {file} cannot be matched: the table has no schema")
    if with_ids:
        _refuse_foreign(columns, seen, file)
    raise InvalidChangeError(_explain(columns, seen, file, with_ids=with_ids))


def pairs(
    columns: Sequence[FooterColumn], fields: Sequence[DataField]
) -> Iterator[tuple[FooterColumn, DataField]]:
    """Yield the file's columns and ROW members with the fields of the schema that they are.

    Args:
        columns: Of a file that fits.
        fields: Of the schema that it fits.
    """
    by_name = {each.name: each for each in fields}
    for column in columns:
        field = by_name[column.name]
        yield column, field
        if isinstance(field.type, RowType):
            yield from pairs(column.members, field.type.fields)


def _carries_ids(columns: Sequence[FooterColumn], file: str) -> bool:
    without = [each.name for each in columns if each.field_id is None]
    if without and len(without) < len(columns):
        raise InvalidChangeError(
            f"file {file}: columns {without} carry no field id, but others do; write it again "
            "with the table's schema.to_arrow(), or without field ids"
        )
    return not without


def _faults(columns: Sequence[FooterColumn], schema: Schema, *, with_ids: bool) -> Iterator[str]:
    """Yield why a file does not fit a schema, unknown columns first."""
    by_name = {each.name: each for each in schema.fields}
    strange = [
        each.name
        for each in columns
        if (field := by_name.get(each.name)) is None or (with_ids and field.id != each.field_id)
    ]
    if strange:
        yield _not_among(strange, by_name)
    for column in columns:
        field = by_name.get(column.name)
        if field is not None:
            yield from misfits(column, field.type, column.name, with_ids=with_ids)
    present = {each.name for each in columns}
    for field in schema.fields:
        absent = field.name not in present and field.name not in schema.partition_keys
        if absent and not field.type.nullable:
            yield f"the NOT NULL column {field.name!r} is missing from the file"


def _not_among(strange: Sequence[str], known: Mapping[str, DataField]) -> str:
    columns = "column" if len(strange) == 1 else "columns"
    they = "is" if len(strange) == 1 else "are"
    near = {each: similar(each, known) for each in strange}
    hints = [f"for {name!r} {' or '.join(map(repr, each))}" for name, each in near.items() if each]
    said = f"near: {', '.join(hints[:_MOST_HINTS])}" if hints else ""
    if not all(near.values()):
        said += f"{'; ' if said else ''}there are: {listed(known)}"
    names = repr(strange[0]) if len(strange) == 1 else listed(strange)
    return f"{columns} {names} {they} not among its columns ({said})"


def _refuse_foreign(columns: Sequence[FooterColumn], seen: Sequence[Schema], file: str) -> None:
    names: dict[int, list[str]] = {}
    for schema in seen:
        for field in schema.fields:
            known = names.setdefault(field.id, [])
            if field.name not in known:
                known.append(field.name)
    inner = {each.id for schema in seen for each in walk_fields(schema.fields)}
    for column in columns:
        known = names.get(column.field_id if column.field_id is not None else -1, [])
        if column.name in known:
            continue
        is_here = f"is {' or '.join(map(repr, known))}" if known else "is no column"
        if not known and column.field_id in inner:
            is_here = "is inside another column"
        raise InvalidChangeError(
            f"file {file}: column {column.name!r} carries field id {column.field_id}, which "
            f"{is_here} in this table. The ids are another table's: write the file again with "
            "this table's schema.to_arrow(), or without field ids"
        )


def _explain(
    columns: Sequence[FooterColumn], seen: Sequence[Schema], file: str, *, with_ids: bool
) -> str:
    names = {each.name for each in columns}
    # The newest schema that has all the columns says most about what else is wrong.
    best = next((each for each in seen if names <= set(each.names)), seen[0])
    reasons = list(_faults(columns, best, with_ids=with_ids))
    return (
        f"file {file} fits no schema of this table; of schema {best.id}: {'; '.join(reasons)}. "
        "Change the table first, or write the file again"
    )
