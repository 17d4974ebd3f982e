"""Validation of data files for Iceberg.

Source: the Iceberg table specification, "Manifests", "Data File Fields" and appendix D.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import attrs
from msgspec import UnsetType

from ledger.decide.format_rules import Refusal
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import SomeSpecs, spec_by_id
from ledger.model.iceberg_types import single_value_bytes
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.single_values import decode_value
from ledger.model.transforms import transform_of
from ledger.model.types import DataField, DataType, RowType, walk_fields
from ledger.model.types.text import bare_text

_FORMATS = ("parquet", "orc", "avro")
_FIRST_VERSION_OF_DELETES = 2
_INCOMPARABLE = frozenset({"FLOAT", "DOUBLE", "ARRAY", "MAP", "MULTISET", "ROW"})
_FIRST_VERSION_OF_VECTORS = 3

_WIDTHS = {
    "BOOLEAN": 1,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "DATE", "FLOAT"), 4),
    **dict.fromkeys(("BIGINT", "DOUBLE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"), 8),
    "UUID": 16,
}
_PROMOTED = {"BIGINT": 4, "DOUBLE": 4, "TIMESTAMP": 4}
"""How many bytes the type has that a column may have had before; readers take those, too."""

_MOST_DECIMAL_BYTES = 16


@attrs.define
class FileRules:
    """The files that an Iceberg table can have.

    Attributes:
        schema: The table's.
        specs: Its partition specs.
        format_version: Iceberg's.
        is_back: Whether the files were in the table before, and a rollback brings them back.
    """

    schema: Schema
    specs: SomeSpecs
    format_version: int
    is_back: bool = False
    _sound: set[tuple[object, ...]] = attrs.Factory(set)
    _typed: dict[int, list[tuple[str, DataType | None]]] = attrs.Factory(dict)

    def problems(self, files: Iterable[FileChange]) -> Iterator[Refusal]:
        """Yield what Iceberg cannot say of the files that come; what goes is no problem."""
        come = [each for each in files if each.kind == "ADD"]
        if come:
            yield from key_problems(self.schema, come[0].path)
        for each in come:
            yield from self._kind(each)
            yield from self._partition(each)
            yield from self._bounds(each)

    def _kind(self, file: FileChange) -> Iterator[Refusal]:
        if file.format.lower() not in _FORMATS and not file.is_vector:
            yield _refusal(
                file,
                f"files are {', '.join(_FORMATS)}, and this one is {excerpt(file.format)}",
                "write it again as one of them",
            )
        match file.content:
            case "data":
                return
            case "position-deletes" if file.is_vector:
                if self.format_version < _FIRST_VERSION_OF_VECTORS:
                    rule = f"format version {self.format_version} has no deletion vectors"
                    yield _refusal(
                        file, rule, "set format-version=3 first, or commit position deletes"
                    )
            case "position-deletes" if self.format_version >= _FIRST_VERSION_OF_VECTORS:
                if not self.is_back:
                    rule = (
                        f"format version {self.format_version} has deletion vectors in place of "
                        "position delete files, and takes no new ones"
                    )
                    yield _refusal(
                        file, rule, "commit vectors, or rewrite the data files without the rows"
                    )
            case "position-deletes" if self.format_version >= _FIRST_VERSION_OF_DELETES:
                return
            case "position-deletes" | "equality-deletes" if (
                self.format_version < _FIRST_VERSION_OF_DELETES
            ):
                rule = f"format version {self.format_version} has no files of deletes"
                yield _refusal(
                    file, rule, "set format-version=2 first, or rewrite the files without the rows"
                )
            case "equality-deletes":
                yield from self._compared(file)
            case other:
                rule = (
                    f"files hold data, position-deletes or equality-deletes, and this one "
                    f"{excerpt(other)}"
                )
                yield _refusal(file, rule, "name its content by one of these words")

    def _compared(self, file: FileChange) -> Iterator[Refusal]:
        if isinstance(file.equality_ids, UnsetType):
            rule = "it has to say which columns equality deletes compare, and this file does not"
            yield _refusal(file, rule, "say their ids in equality_ids, or commit position deletes")
            return
        for each in file.equality_ids:
            data_type = self._types.get(each)
            if data_type is None:
                continue
            root = data_type.root
            if root in _INCOMPARABLE or each not in self._comparable:
                what = root if root in _INCOMPARABLE else "members of lists and maps"
                rule = f"equality deletes compare no {what}, which field {each} is"
                yield _refusal(file, rule, "compare other columns, or commit position deletes")

    def _partition(self, file: FileChange) -> Iterator[Refusal]:
        # Many files have one partition; without their types, 1 and True would be one key.
        key = file.spec_id, file.partition, *map(type, file.partition)
        if not file.partition or key in self._sound:
            return
        types = self._partition_types(file.spec_id)
        for value, (name, data_type) in zip(file.partition, types, strict=True):
            if value is not None and data_type is not None and not _fits(value, data_type):
                yield _refusal(
                    file,
                    f"partition field {name} has values of {bare_text(data_type)}, and "
                    f"{excerpt(value)} is none",
                    "give the file a value that is one",
                )
                return
        self._sound.add(key)

    def _bounds(self, file: FileChange) -> Iterator[Refusal]:
        for bounds in (file.lower_bounds, file.upper_bounds):
            if isinstance(bounds, UnsetType):
                continue
            for field_id, text in bounds.items():
                rule = self._bound_rule(field_id, text)
                if rule is not None:
                    yield _refusal(file, rule, "leave the bound out, or write it so")

    def _bound_rule(self, field_id: int, text: str) -> str | None:
        try:
            body = bytes.fromhex(text)
        except (TypeError, ValueError):
            return f"bounds are bytes in hex, and that of field {field_id} is {excerpt(text)}"
        data_type = self._types.get(field_id)
        if data_type is None or _is_bound(body, data_type):
            return None
        return (
            f"a bound of field {field_id}, {bare_text(data_type)}, is {_form(data_type)}, and "
            f"{excerpt(text)} is not"
        )

    @cached_property
    def _types(self) -> dict[int, DataType]:
        return {each.id: each.type for each in walk_fields(self.schema.fields)}

    @cached_property
    def _comparable(self) -> frozenset[int]:
        return frozenset(_columns_and_members(self.schema.fields))

    def _partition_types(self, spec_id: int) -> list[tuple[str, DataType | None]]:
        # Of the specs that there ever were, files use few; of a column that is gone, nobody here
        # knows the type.
        found = self._typed.get(spec_id)
        if found is None:
            spec = spec_by_id(self.specs, spec_id)
            found = self._typed[spec_id] = [
                (
                    each.name,
                    transform_of(each.transform).result_type(self._types[each.source_id])
                    if each.source_id in self._types
                    else None,
                )
                for each in spec.fields
            ]
        return found


def _columns_and_members(fields: Iterable[DataField]) -> Iterator[int]:
    for each in fields:
        yield each.id
        if isinstance(each.type, RowType):
            yield from _columns_and_members(each.type.fields)


def key_problems(schema: Schema, path: str) -> Iterator[Refusal]:
    """Yield what is wrong with a file that stands in a snapshot of a table with a primary key."""
    if schema.primary_keys:
        yield Refusal(
            f"file {path}",
            "only Paimon's merge finds the newest rows of a table with a primary key, so that "
            "others would show older ones, too",
            "let the engine commit manifest lists of its own, or drop the primary key before "
            "there are files",
        )


def _fits(value: PartitionValue, data_type: DataType) -> bool:
    try:
        decoded = decode_value(value, data_type)
        # Not every number that is written out has room in as many bytes as Iceberg gives it.
        if decoded is not None:
            single_value_bytes(decoded, data_type)
    except (InvalidInputError, ValueError, OverflowError):
        return False
    return True


def _is_bound(body: bytes, data_type: DataType) -> bool:
    match data_type.root:
        case "DECIMAL":
            return 0 < len(body) <= _MOST_DECIMAL_BYTES
        case "CHAR" | "VARCHAR":
            try:
                body.decode()
            except UnicodeDecodeError:
                return False
            return True
        case root:
            wanted = _WIDTHS.get(root, len(body)), _PROMOTED.get(root)
            return len(body) in wanted


def _form(data_type: DataType) -> str:
    match data_type.root:
        case "DECIMAL":
            return f"1 to {_MOST_DECIMAL_BYTES} bytes"
        case "CHAR" | "VARCHAR":
            return "UTF-8"
        case root:
            return f"{_WIDTHS[root]} bytes"


def _refusal(file: FileChange, rule: str, alternative: str) -> Refusal:
    return Refusal(f"file {file.path}", rule, alternative)
