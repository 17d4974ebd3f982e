"""Rules of file indexes: `file-index.<type>.columns` names columns that such an index can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ledger.evolution.refusals import argument, runtime
from ledger.evolution.validation.subject import Subject
from ledger.model.types import (
    DataType,
    DecimalType,
    LocalZonedTimestampType,
    MapType,
    TimestampType,
)

_PREFIX, _SUFFIX = "file-index.", ".columns"
_OPTION_PARTS = 3
_COMPACT_DIGITS = 18
_MICROSECONDS = 6

_COUNTED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_ORDERED = frozenset({*_COUNTED, "CHAR", "VARCHAR", "FLOAT", "DOUBLE"})


def _fits_ranges(data_type: DataType) -> bool:
    match data_type:
        case DecimalType(precision=precision):
            return precision <= _COMPACT_DIGITS
        case TimestampType(precision=precision) | LocalZonedTimestampType(precision=precision):
            return precision <= _MICROSECONDS
        case _:
            return data_type.root in _ORDERED | {"BOOLEAN"}


INDEX_TYPES: dict[str, Callable[[DataType], bool]] = {
    "bloom-filter": lambda of: of.root in _ORDERED | {"BINARY", "VARBINARY"},
    "bitmap": lambda of: of.root in _ORDERED | {"BOOLEAN"},
    "bsi": lambda of: of.root in {*_COUNTED, "DECIMAL"},
    "range-bitmap": _fits_ranges,
}
"""What each kind of index can hold; newer kinds add rows."""


def file_index(subject: Subject) -> None:
    """Check the columns of file indexes, and that options of a column name one of them.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT, or RUNTIME for an unknown kind of index.
    """
    indexed = list(_indexed(subject))
    _check_options(subject, {(kind, name) for kind, name, _ in indexed})
    for kind, name, is_inside in indexed:
        column = subject.columns.get(name)
        if column is None:
            raise argument(f"option {_PREFIX}{kind}{_SUFFIX} names {name}, which is not a column")
        data_type = _inside(subject, kind, name) if is_inside else column.type
        if kind not in INDEX_TYPES:
            known = ", ".join(INDEX_TYPES)
            raise runtime(f"option {_PREFIX}{kind}{_SUFFIX}: there is no such index; use {known}")
        if not INDEX_TYPES[kind](data_type):
            raise argument(
                f"option {_PREFIX}{kind}{_SUFFIX}: {name} is {data_type.root}, "
                f"which no {kind} index can hold"
            )


def _indexed(subject: Subject) -> Iterator[tuple[str, str, bool]]:
    """Yield kind, column, and whether a key of its map is meant, as `m[key]` says."""
    for key, value in subject.options.values.items():
        if not key.startswith(_PREFIX) or not key.endswith(_SUFFIX):
            continue
        kind = key[len(_PREFIX) : -len(_SUFFIX)]
        for each in value.split(","):
            name = each.strip()
            if not name:
                raise argument(f"option {key}={value!r} has an empty entry; name a column")
            column, bracket, _ = name.partition("[")
            is_inside = bool(bracket) and name.endswith("]")
            yield kind, column if is_inside else name, is_inside


def _check_options(subject: Subject, declared: set[tuple[str, str]]) -> None:
    for key in subject.options.values:
        if not key.startswith(_PREFIX) or key.endswith(_SUFFIX):
            continue
        parts = key.removeprefix(_PREFIX).split(".")
        if len(parts) != _OPTION_PARTS:
            continue
        kind, column, _ = parts
        if (kind, column.partition("[")[0] if column.endswith("]") else column) not in declared:
            raise argument(
                f"option {key}: {column} is not listed in {_PREFIX}{kind}{_SUFFIX}; add it there"
            )


def _inside(subject: Subject, kind: str, name: str) -> DataType:
    data_type = subject.columns[name].type
    if not isinstance(data_type, MapType) or data_type.key.root not in {"CHAR", "VARCHAR"}:
        raise argument(f"option {_PREFIX}{kind}{_SUFFIX}: {name} is no MAP with text keys")
    if subject.is_shredded(name):
        raise argument(
            f"option {_PREFIX}{kind}{_SUFFIX}: {name} has map.storage-layout=shared-shredding, "
            "whose keys cannot be indexed"
        )
    return data_type.value
