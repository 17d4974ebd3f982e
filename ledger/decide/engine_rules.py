"""Validation rules of indexes, merge functions and scan options.

`file-index.<type>.columns` names columns that such an index can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ledger.decide.errors import argument_error, runtime_error, state_error, unsupported_error
from ledger.decide.rule_rows import SchemaCandidate, contains_root
from ledger.decide.table_options import INDEX_COLUMN_OPTIONS, TableOptions, parse_integer_option
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
"""Options of the indexes whose columns have an order."""


def check_one_index_per_column(candidate: SchemaCandidate) -> None:
    """Check that no column is in two primary-key indexes.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    owners: dict[str, str] = {}
    for option in INDEX_COLUMN_OPTIONS:
        for name in candidate.options.names(option):
            if name in owners:
                raise argument_error(f"column {name} is listed in {owners[name]} and in {option}")
            owners[name] = option


def check_sortable_columns(candidate: SchemaCandidate) -> None:
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
            raise argument_error(f"option {option} names {name}, which is not an ARRAY column")
        data_type = data_type.element
    if data_type.root not in _SORTABLE:
        raise unsupported_error(
            f"option {option}: {name} holds {data_type.root}, which has no order"
        )


def check_one_vector_column(candidate: SchemaCandidate) -> None:
    """Check that a vector index has one column, with an option for its index type.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    name = _single_option_column(candidate, _VECTOR)
    index_type = candidate.options.text(f"fields.{name}.pk-vector.index.type")
    if not (index_type or "").strip():
        raise argument_error(f"option {_VECTOR} needs option fields.{name}.pk-vector.index.type")


def check_one_text_column(candidate: SchemaCandidate) -> None:
    """Check that a full-text index has one column.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    _single_option_column(candidate, _FULL_TEXT)


def check_vector_column(candidate: SchemaCandidate) -> None:
    """Check that the column of a vector index holds vectors, and that its metric is known.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    name = _single_option_column(candidate, _VECTOR)
    column = candidate.columns.get(name)
    if column is None or not isinstance(column.type, VectorType):
        raise argument_error(f"option {_VECTOR} names {name}, which is not a VECTOR column")
    if column.type.element.root != "FLOAT":
        raise argument_error(f"option {_VECTOR}: {name} must hold FLOAT elements")
    metric = candidate.options.text(f"fields.{name}.pk-vector.distance.metric")
    if metric is not None and metric.lower().replace("-", "_") not in _METRICS:
        raise argument_error(
            f"option {_VECTOR}: {name} is measured by one of {', '.join(_METRICS)}"
        )


def _single_option_column(candidate: SchemaCandidate, option: str) -> str:
    names = candidate.options.names(option)
    if len(names) != 1:
        raise argument_error(f"option {option} takes one column, not {list(names)}")
    return names[0]


_PREFIX, _SUFFIX = "file-index.", ".columns"
_OPTION_PARTS = 3
_COMPACT_DIGITS = 18
_MICROSECONDS = 6

_COUNTED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_ORDERED = frozenset({*_COUNTED, "CHAR", "VARCHAR", "FLOAT", "DOUBLE"})


def _supports_range_index(data_type: DataType) -> bool:
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
    "range-bitmap": _supports_range_index,
}
"""Check of the column types that each kind of index can hold; newer kinds add rows."""


def check_file_index(candidate: SchemaCandidate) -> None:
    """Check the columns of file indexes, and that options of a column name one of them.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT, or RUNTIME for an unknown kind of index.
    """
    indexed = list(_file_index_entries(candidate))
    _check_file_index_options(candidate, {(kind, name) for kind, name, _ in indexed})
    for kind, name, is_inside in indexed:
        column = candidate.columns.get(name)
        if column is None:
            raise argument_error(
                f"option {_PREFIX}{kind}{_SUFFIX} names {name}, which is not a column"
            )
        data_type = _indexed_map_value_type(candidate, kind, name) if is_inside else column.type
        if kind not in INDEX_TYPES:
            known = ", ".join(INDEX_TYPES)
            raise runtime_error(
                f"option {_PREFIX}{kind}{_SUFFIX}: there is no such index; use {known}"
            )
        if not INDEX_TYPES[kind](data_type):
            raise argument_error(
                f"option {_PREFIX}{kind}{_SUFFIX}: {name} is {data_type.root}, "
                f"which no {kind} index can hold"
            )


def _file_index_entries(candidate: SchemaCandidate) -> Iterator[tuple[str, str, bool]]:
    """Yield kind, column, and whether a key of its map is indexed, as `m[key]` says."""
    for key, value in candidate.options.values.items():
        if not key.startswith(_PREFIX) or not key.endswith(_SUFFIX):
            continue
        kind = key[len(_PREFIX) : -len(_SUFFIX)]
        for each in value.split(","):
            name = each.strip()
            if not name:
                raise argument_error(f"option {key}={value!r} has an empty entry; name a column")
            column, bracket, _ = name.partition("[")
            is_inside = bool(bracket) and name.endswith("]")
            yield kind, column if is_inside else name, is_inside


def _check_file_index_options(candidate: SchemaCandidate, declared: set[tuple[str, str]]) -> None:
    for key in candidate.options.values:
        if not key.startswith(_PREFIX) or key.endswith(_SUFFIX):
            continue
        parts = key.removeprefix(_PREFIX).split(".")
        if len(parts) != _OPTION_PARTS:
            continue
        kind, column, _ = parts
        if (kind, column.partition("[")[0] if column.endswith("]") else column) not in declared:
            raise argument_error(
                f"option {key}: {column} is not listed in {_PREFIX}{kind}{_SUFFIX}; add it there"
            )


def _indexed_map_value_type(candidate: SchemaCandidate, kind: str, name: str) -> DataType:
    data_type = candidate.columns[name].type
    if not isinstance(data_type, MapType) or data_type.key.root not in {"CHAR", "VARCHAR"}:
        raise argument_error(f"option {_PREFIX}{kind}{_SUFFIX}: {name} is no MAP with text keys")
    if candidate.is_shredded(name):
        raise argument_error(
            f"option {_PREFIX}{kind}{_SUFFIX}: {name} has map.storage-layout=shared-shredding, "
            "whose keys cannot be indexed"
        )
    return data_type.value


_FIELDS_PREFIX = "fields"
_DEFAULT_FUNCTION = "default-aggregate-function"
_GROUP_SUFFIX = ".sequence-group"

CHAIN_KEYS = "chain-table.chain-partition-keys"

AGGREGATE_FUNCTIONS = frozenset(
    {
        "bool_and",
        "bool_or",
        "collect",
        "first_non_null_value",
        "first_not_null_value",
        "first_value",
        "hll_sketch",
        "last_non_null_value",
        "last_value",
        "listagg",
        "max",
        "merge_map",
        "merge_map_with_keytime",
        "min",
        "nested_partial_update",
        "nested_update",
        "primary-key",
        "product",
        "rbm32",
        "rbm64",
        "sum",
        "theta_sketch",
    }
)
"""Paimon's own aggregate functions; newer releases add some."""


def check_field_options(candidate: SchemaCandidate) -> None:
    """Check that every `fields.<names>.` option names columns, and no member of a ROW.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for key in candidate.options.values:
        if not key.startswith(_FIELDS_PREFIX):
            continue
        segments = key.split(".")
        if not any(segments[1:]):
            raise runtime_error(f"option {key} names no column; write fields.<column>.<option>")
        names = segments[1].split(",")
        for name in names:
            if name != _DEFAULT_FUNCTION and name not in candidate.columns:
                raise argument_error(f"option {key} names {name}, which is not a column")
        is_path = len(segments) > 3 and len(names) == 1  # noqa: PLR2004 - fields.<name>.<aspect>
        column = candidate.columns.get(names[0])
        if is_path and column is not None and column.type.root == "ROW":
            raise argument_error(f"option {key} goes inside ROW column {names[0]}; it cannot")


def check_partial_update(candidate: SchemaCandidate) -> None:
    """Check how rows of one key are merged column by column: sequence groups, and deletes.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or ILLEGAL_STATE.
    """
    groups = {
        key: key.removeprefix(f"{_FIELDS_PREFIX}.").removesuffix(_GROUP_SUFFIX).split(",")
        for key in candidate.options.values
        if key.startswith(f"{_FIELDS_PREFIX}.") and key.endswith(_GROUP_SUFFIX)
    }
    for key, ordering in groups.items():
        for name in ordering:
            if name in candidate.columns and contains_root(candidate.columns[name].type, "BLOB"):
                raise argument_error(f"option {key}: {name} holds BLOBs, which have no order")
    if candidate.has_primary_key:
        protected = _sequence_group_columns(candidate, groups)
        _check_partial_functions(candidate, groups, protected)
        _check_delete_handling(candidate, groups)


def _sequence_group_columns(candidate: SchemaCandidate, groups: dict[str, list[str]]) -> set[str]:
    protected: set[str] = set()
    for key, ordering in groups.items():
        members = candidate.options.values[key].split(",")
        for name in (*members, *ordering):
            if name not in candidate.columns:
                raise argument_error(f"option {key} names {name}, which is not a column")
            if name in candidate.schema.primary_keys:
                raise argument_error(f"option {key} names {name}, which is in the primary key")
        repeated = protected & set(members)
        if repeated or len(set(members)) < len(members):
            raise argument_error(
                f"option {key} names {sorted(repeated)}, which stand in a group already"
            )
        protected |= set(members)
    return protected


def _check_partial_functions(
    candidate: SchemaCandidate, groups: dict[str, list[str]], protected: set[str]
) -> None:
    ordering = {name for names in groups.values() for name in names}
    for name in candidate.schema.names:
        if name in ordering or name in candidate.schema.primary_keys:
            continue
        function = candidate.aggregate_function(name)
        if function not in {None, "last_non_null_value"} and name not in protected:
            raise argument_error(
                f"column {name} needs a sequence group to be aggregated by {function}"
            )


def _check_delete_handling(candidate: SchemaCandidate, groups: dict[str, list[str]]) -> None:
    options = candidate.options
    ignores = options.ignores_delete
    removes = options.flag("partial-update.remove-record-on-delete")
    group_key = "partial-update.remove-record-on-sequence-group"
    on_group = options.text(group_key)
    if ignores and (removes or on_group is not None):
        raise state_error(
            "option ignore-delete does not go with removing records; remove one of them"
        )
    if removes and groups:
        raise state_error("partial-update.remove-record-on-delete does not go with sequence groups")
    ordering = {name for names in groups.values() for name in names}
    if on_group is not None and not set(on_group.split(",")) <= ordering:
        raise state_error(f"option {group_key}={on_group!r} must name fields of sequence groups")


def check_aggregate_functions(candidate: SchemaCandidate) -> None:
    """Check that every aggregate function is known.

    Raises:
        InvalidChangeError: RUNTIME.
    """
    if not candidate.has_primary_key:
        return
    if candidate.options.merge_engine not in {"partial-update", "aggregation"}:
        return
    for name in candidate.schema.names:
        function = candidate.aggregate_function(name)
        if function is not None and function not in AGGREGATE_FUNCTIONS:
            raise runtime_error(
                f"column {name}: aggregate function {function!r} is unknown; "
                f"there are {_join_sorted_names(AGGREGATE_FUNCTIONS)}"
            )


def _join_sorted_names(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names))


def check_chain_partition_keys(candidate: SchemaCandidate) -> None:
    """Check that a chain table's own keys are the last of its partition keys.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    listed = candidate.options.text(CHAIN_KEYS) or ""
    if not listed.strip():
        return
    chain = tuple(each.strip() for each in listed.split(","))
    keys = candidate.schema.partition_keys
    if keys[len(keys) - len(chain) :] != chain:
        raise argument_error(
            f"option {CHAIN_KEYS}={listed!r} must be the last of partition keys {keys}"
        )


_OLDER_KEYS = {"scan.timestamp-millis": ("log.scan.timestamp-millis",)}
_TIMES = ("scan.timestamp-millis", "scan.timestamp")
_FILE_TIME = "scan.file-creation-time-millis"
_CREATION_TIME = "scan.creation-time-millis"
_SNAPSHOT = "scan.snapshot-id"
_TAG = "scan.tag-name"
_INCREMENTAL = (
    "incremental-between",
    "incremental-between-timestamp",
    "incremental-to-auto-tag",
)


class ScanMode(Struct, frozen=True):
    """The options of one scan mode.

    Attributes:
        one_of: Exactly one of these must be set; empty when the mode needs none.
        none_of: None of these may be set.
    """

    one_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()


_PLAIN = ScanMode(none_of=(*_TIMES, _FILE_TIME, _SNAPSHOT, _TAG, *_INCREMENTAL))

MODES = {
    "latest-full": _PLAIN,
    "full": _PLAIN,
    "latest": _PLAIN,
    "compacted-full": _PLAIN,
    "from-creation-timestamp": _PLAIN,
    "latest-delta": ScanMode(
        none_of=(
            *_PLAIN.none_of,
            _CREATION_TIME,
            "scan.watermark",
            "scan.version",
            "incremental-between-scan-mode",
            "incremental-between-tag-to-snapshot",
        )
    ),
    "from-timestamp": ScanMode(_TIMES, (_SNAPSHOT, _FILE_TIME, _TAG, *_INCREMENTAL)),
    "from-snapshot": ScanMode(
        (_SNAPSHOT, _TAG, "scan.watermark"), (*_TIMES, _FILE_TIME, *_INCREMENTAL)
    ),
    "from-snapshot-full": ScanMode((_SNAPSHOT,), (*_TIMES, _FILE_TIME, _TAG, *_INCREMENTAL)),
    "from-file-creation-time": ScanMode(
        (_FILE_TIME,), ("scan.timestamp-millis", _SNAPSHOT, _TAG, *_INCREMENTAL)
    ),
    "incremental": ScanMode(_INCREMENTAL, (_SNAPSHOT, *_TIMES, _FILE_TIME, _TAG)),
}
"""Options that each `scan.mode` needs and forbids; newer modes add rows."""

BRANCHES = ("scan.fallback-branch", "scan.primary-branch")
"""Reads fall back to one branch, or start from one, but not both. Rules that know the branches
check whether it exists."""

_DERIVED = (
    ("from-timestamp", _TIMES),
    ("from-snapshot", (_SNAPSHOT, _TAG, "scan.watermark", "scan.version")),
    ("from-file-creation-time", (_FILE_TIME,)),
    ("from-creation-timestamp", (_CREATION_TIME,)),
    ("incremental", _INCREMENTAL[:2]),
)

_NUMBERS = ("scan.timestamp-millis", _SNAPSHOT, "scan.watermark", _FILE_TIME, _CREATION_TIME)


KEYS = frozenset(
    {
        "scan.mode",
        "log.scan",
        *_NUMBERS,
        *(key for mode in MODES.values() for key in (*mode.one_of, *mode.none_of)),
        *(key for _, keys in _DERIVED for key in keys),
        *(key for older in _OLDER_KEYS.values() for key in older),
    }
)
"""Every option that gives the start of a scan; a table without any is scanned whole."""


def check_scan_mode(candidate: SchemaCandidate) -> None:
    """Check that exactly the options of the scan mode are set.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT, naming the mode and the options.
    """
    options = candidate.options
    name = _scan_mode_name(options)
    mode = MODES[name]
    present = [key for key in mode.one_of if _is_option_set(options, key)]
    if mode.one_of and len(present) != 1:
        raise argument_error(
            f"scan.mode {name} needs exactly one of {list(mode.one_of)}, not {present}"
        )
    for key in mode.none_of:
        if _is_option_set(options, key):
            raise argument_error(f"option {key} cannot be set under scan.mode {name}")


def _scan_mode_name(options: TableOptions) -> str:
    given = options.text("scan.mode", "log.scan")
    asked = "default" if given is None else given.lower()
    if asked != "default":
        if asked not in MODES:
            raise argument_error(
                f"option scan.mode={given!r} is unknown: use one of {sorted(MODES)}"
            )
        return asked
    for key in _NUMBERS:
        value = options.text(key, *_OLDER_KEYS.get(key, ()))
        if value is not None:
            parse_integer_option(key, value, bits=64)
    for name, keys in _DERIVED:
        if any(_is_option_set(options, key) for key in keys):
            return name
    return "latest-full"


def _is_option_set(options: TableOptions, key: str) -> bool:
    return options.text(key, *_OLDER_KEYS.get(key, ())) is not None
