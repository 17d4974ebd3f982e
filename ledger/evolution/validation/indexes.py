"""Rules of indexes: those of primary-key tables, and those of files.

`file-index.<type>.columns` names columns that such an index can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ledger.evolution.options.naming import INDEX_COLUMN_OPTIONS
from ledger.evolution.refusals import argument, runtime, unsupported
from ledger.evolution.validation.candidate import Candidate
from ledger.model.types import (
    ArrayType,
    DataType,
    DecimalType,
    LocalZonedTimestampType,
    MapType,
    TimestampType,
    VectorType,
)

_VECTOR, _BTREE, _BITMAP, _MULTIVALUE, _FULL_TEXT = INDEX_COLUMN_OPTIONS
_METRICS = ("l2", "cosine", "inner_product")

SORTED_INDEX_OPTIONS = (_BTREE, _BITMAP, _MULTIVALUE)
"""Those of indexes whose columns have an order."""


def one_index_a_column(candidate: Candidate) -> None:
    """Check that no column is in two primary-key indexes.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    owners: dict[str, str] = {}
    for option in INDEX_COLUMN_OPTIONS:
        for name in candidate.options.names(option):
            if name in owners:
                raise argument(f"column {name} is listed in {owners[name]} and in {option}")
            owners[name] = option


def sortable_columns(candidate: Candidate) -> None:
    """Check that the columns of sorted indexes have an order.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or UNSUPPORTED.
    """
    for option in SORTED_INDEX_OPTIONS:
        for name in candidate.options.names(option):
            _check_sortable(option, name, candidate.columns[name].type)


_SORTABLE = frozenset(
    {
        *("CHAR", "VARCHAR", "BOOLEAN", "DECIMAL", "TINYINT", "SMALLINT", "INT", "BIGINT"),
        *("FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
    }
)


def _check_sortable(option: str, name: str, data_type: DataType) -> None:
    if option == _MULTIVALUE:
        if not isinstance(data_type, ArrayType):
            raise argument(f"option {option} names {name}, which is not an ARRAY column")
        data_type = data_type.element
    if data_type.root not in _SORTABLE:
        raise unsupported(f"option {option}: {name} holds {data_type.root}, which has no order")


def one_vector_column(candidate: Candidate) -> None:
    """Check that a vector index has one column, and says of which type it is.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    name = _only(candidate, _VECTOR)
    index_type = candidate.options.text(f"fields.{name}.pk-vector.index.type")
    if not (index_type or "").strip():
        raise argument(f"option {_VECTOR} needs option fields.{name}.pk-vector.index.type")


def one_text_column(candidate: Candidate) -> None:
    """Check that a full-text index has one column.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    _only(candidate, _FULL_TEXT)


def vector_column(candidate: Candidate) -> None:
    """Check that the column of a vector index holds vectors, and how they are measured.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    name = _only(candidate, _VECTOR)
    column = candidate.columns.get(name)
    if column is None or not isinstance(column.type, VectorType):
        raise argument(f"option {_VECTOR} names {name}, which is not a VECTOR column")
    if column.type.element.root != "FLOAT":
        raise argument(f"option {_VECTOR}: {name} must hold FLOAT elements")
    metric = candidate.options.text(f"fields.{name}.pk-vector.distance.metric")
    if metric is not None and metric.lower().replace("-", "_") not in _METRICS:
        raise argument(f"option {_VECTOR}: {name} is measured by one of {', '.join(_METRICS)}")


def _only(candidate: Candidate, option: str) -> str:
    names = candidate.options.names(option)
    if len(names) != 1:
        raise argument(f"option {option} takes one column, not {list(names)}")
    return names[0]


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


def file_index(candidate: Candidate) -> None:
    """Check the columns of file indexes, and that options of a column name one of them.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT, or RUNTIME for an unknown kind of index.
    """
    indexed = list(_indexed(candidate))
    _check_options(candidate, {(kind, name) for kind, name, _ in indexed})
    for kind, name, is_inside in indexed:
        column = candidate.columns.get(name)
        if column is None:
            raise argument(f"option {_PREFIX}{kind}{_SUFFIX} names {name}, which is not a column")
        data_type = _inside(candidate, kind, name) if is_inside else column.type
        if kind not in INDEX_TYPES:
            known = ", ".join(INDEX_TYPES)
            raise runtime(f"option {_PREFIX}{kind}{_SUFFIX}: there is no such index; use {known}")
        if not INDEX_TYPES[kind](data_type):
            raise argument(
                f"option {_PREFIX}{kind}{_SUFFIX}: {name} is {data_type.root}, "
                f"which no {kind} index can hold"
            )


def _indexed(candidate: Candidate) -> Iterator[tuple[str, str, bool]]:
    """Yield kind, column, and whether a key of its map is meant, as `m[key]` says."""
    for key, value in candidate.options.values.items():
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


def _check_options(candidate: Candidate, declared: set[tuple[str, str]]) -> None:
    for key in candidate.options.values:
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


def _inside(candidate: Candidate, kind: str, name: str) -> DataType:
    data_type = candidate.columns[name].type
    if not isinstance(data_type, MapType) or data_type.key.root not in {"CHAR", "VARCHAR"}:
        raise argument(f"option {_PREFIX}{kind}{_SUFFIX}: {name} is no MAP with text keys")
    if candidate.is_shredded(name):
        raise argument(
            f"option {_PREFIX}{kind}{_SUFFIX}: {name} has map.storage-layout=shared-shredding, "
            "whose keys cannot be indexed"
        )
    return data_type.value
