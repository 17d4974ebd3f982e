"""Validation rules of file formats and of columns kept in files of their own.

Topics: the types that a format can hold, shapes, BLOB and VECTOR columns, the layout of MAP and
VARIANT columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ledger.decide.column_draft import is_blob
from ledger.decide.errors import argument_error, state_error, unsupported_error
from ledger.decide.rule_rows import (
    SchemaCandidate,
    check_option_minimum,
    contains_root,
    rule_option_keys,
)
from ledger.decide.table_options import TableOptions, parse_integer_option
from ledger.model.types import (
    STRING,
    DataField,
    DataType,
    GeographyType,
    LocalZonedTimestampType,
    MapType,
    TimestampType,
    TimeType,
    parts_of,
)

ICEBERG_STORAGE = "metadata.iceberg.storage"
_ICEBERG_STORAGES = (
    *("disabled", "table-location", "hadoop-catalog", "hive-catalog", "rest-catalog"),
)

BLOB_KEYS = rule_option_keys(
    "blob-field",
    "blob-descriptor-field",
    "blob.stored-descriptor-fields",
    "blob-view-field",
)
"""Options that list BLOB columns."""

_VARIANT = "variant.shredding"
VARIANT_KEYS = rule_option_keys(
    f"{_VARIANT}.minFieldCardinalityRatio",
    f"{_VARIANT}.inferenceMode",
    f"{_VARIANT}.adaptive.maxInferBufferRow",
    f"{_VARIANT}.adaptive.retentionRatio",
)
"""Options of how VARIANT columns are shredded, besides the number of sampled rows."""

_AVRO_TIMESTAMP_PRECISION = 6
_AVRO_TIME_PRECISION = 3
_GEO = ("GEOMETRY", "GEOGRAPHY")


def check_file_format_types(candidate: SchemaCandidate) -> None:
    """Check that the table's file format can hold its columns.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or UNSUPPORTED, naming column and type.
    """
    name = candidate.options.file_format
    check = _FORMATS.get(name)
    if check is None and name not in _FLAT_FORMATS and name != "text":
        return
    columns = list(_data_file_columns(candidate))
    if name in _FLAT_FORMATS:
        for column in columns:
            if column.type.root not in _FLAT_FORMATS[name]:
                raise unsupported_error(
                    f"column {column.name}: {name} cannot hold {column.type.root}"
                )
    if name == "text" and len(columns) != 1 and (not columns or columns[0].type != STRING):
        raise argument_error("option file.format=text takes a single STRING column")
    if check is None:
        return
    for column in columns:
        for inner in _inner_types(column.type):
            check(column.name, inner)


def check_avro_level_timestamps(candidate: SchemaCandidate) -> None:
    """Check that levels written as Avro hold no timestamps finer than microseconds.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    if "avro" not in per_level_option_values(candidate.options, "file.format.per.level"):
        return
    for column in _data_file_columns(candidate):
        match column.type:
            case TimestampType(precision=precision) | LocalZonedTimestampType(precision=precision):
                if precision > _AVRO_TIMESTAMP_PRECISION:
                    raise argument_error(
                        f"option file.format.per.level: column {column.name} has precision "
                        f"{precision}; Avro keeps {_AVRO_TIMESTAMP_PRECISION}"
                    )
            case _:
                continue


def check_geospatial_columns(candidate: SchemaCandidate) -> None:
    """Check the needs of shapes: Parquet, and no part in clustering, buckets or sequence.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    names = {each.name for each in candidate.unusual if contains_root(each.type, *_GEO)}
    if not names:
        return
    formats = [
        candidate.options.file_format,
        *per_level_option_values(candidate.options, "file.format.per.level"),
    ]
    changelog = candidate.options.text("changelog-file.format")
    for each in (*formats, *([] if changelog is None else [changelog.lower()])):
        if each != "parquet":
            raise argument_error(f"columns {sorted(names)} need Parquet files, not {each}")
    _check_iceberg_geospatial(candidate)
    roles = {
        "clustering.columns": candidate.options.names("clustering.columns"),
        "bucket-key": candidate.bucket_keys,
        "sequence.field": candidate.sequence_fields,
    }
    for option, used in roles.items():
        if names & set(used):
            raise argument_error(
                f"option {option} cannot name {sorted(names & set(used))}: no order"
            )


def iceberg_metadata_storage(options: TableOptions, key: str = ICEBERG_STORAGE) -> str:
    """Return the storage of the table's Iceberg metadata; `disabled` means none.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT: the storage is unknown.
    """
    return options.choice(key, "disabled", _ICEBERG_STORAGES)


def _check_iceberg_geospatial(candidate: SchemaCandidate) -> None:
    storage = iceberg_metadata_storage(candidate.options)
    if storage == "disabled":
        return
    if candidate.options.number("metadata.iceberg.format-version", 2) != 3:  # noqa: PLR2004 - v3
        raise argument_error("shapes in Iceberg metadata need metadata.iceberg.format-version=3")
    if storage == "rest-catalog":
        raise argument_error("metadata.iceberg.storage=rest-catalog does not go with shapes")
    for column in candidate.unusual:
        for inner in _inner_types(column.type):
            if isinstance(inner, GeographyType) and "," in inner.crs:
                raise argument_error(
                    f"column {column.name}: Iceberg metadata takes no comma in a CRS"
                )


def per_level_option_values(options: TableOptions, key: str) -> list[str]:
    """Return the values of an option such as `0:avro,3:parquet`, in lower case.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT: it is not written like this.
    """
    listed = options.text(key)
    if not listed:
        return []
    pairs = [each.split(":") for each in listed.split(",")]
    if any(len(pair) != 2 for pair in pairs):  # noqa: PLR2004 - level and value
        raise argument_error(f"option {key}={listed!r} is not written like 0:avro,3:parquet")
    for level, _ in pairs:
        parse_integer_option(key, level)
    return [value.strip().lower() for _, value in pairs]


def _data_file_columns(candidate: SchemaCandidate) -> Iterator[DataField]:
    apart = set(candidate.managed_blobs)
    if candidate.options.text("vector.file.format") is not None:
        apart |= set(candidate.vectors)
    return (each for each in candidate.schema.fields if each.name not in apart)


def _inner_types(data_type: DataType) -> Iterator[DataType]:
    for each in parts_of(data_type):
        yield from _inner_types(each.type)
    yield data_type


def _check_avro_type(name: str, data_type: DataType) -> None:
    match data_type:
        case TimestampType(precision=precision) | LocalZonedTimestampType(precision=precision):
            limit = _AVRO_TIMESTAMP_PRECISION
        case TimeType(precision=precision):
            limit = _AVRO_TIME_PRECISION
        case _ if data_type.root in {"VARIANT", *_GEO}:
            raise unsupported_error(f"column {name}: Avro files cannot hold {data_type.root}")
        case _:
            return
    if precision > limit:
        raise argument_error(
            f"column {name}: Avro keeps {limit} digits of a second, not {precision}"
        )


_ORC_REFUSED = frozenset({"VECTOR", "VARIANT", *_GEO})


def _check_orc_type(name: str, data_type: DataType) -> None:
    if data_type.root in _ORC_REFUSED:
        raise unsupported_error(f"column {name}: ORC files cannot hold {data_type.root}")


_FORMATS: dict[str, Callable[[str, DataType], None]] = {
    "avro": _check_avro_type,
    "orc": _check_orc_type,
}

_FLAT = frozenset(
    {
        *("CHAR", "VARCHAR", "BOOLEAN", "BINARY", "VARBINARY", "DECIMAL", "TINYINT", "SMALLINT"),
        *("INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
    }
)
_FLAT_FORMATS = {"csv": _FLAT, "json": _FLAT | {"ARRAY", "VECTOR", "MAP", "ROW"}}


# ---- columns in files of their own


def check_nested_blobs(candidate: SchemaCandidate) -> None:
    """Check that BLOBs are no deeper than in an ARRAY or as values of a MAP.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for column in candidate.unusual:
        # A more specific rule covers shredded maps later.
        if candidate.is_shredded(column.name):
            continue
        if not is_blob(column.type) and contains_root(column.type, "BLOB"):
            raise argument_error(
                f"column {column.name} holds BLOBs too deep: only BLOB, ARRAY of BLOB and "
                "MAP to BLOB can be columns"
            )


def check_blob_options(candidate: SchemaCandidate) -> None:
    """Check that the options of BLOBs list only BLOB columns, each once.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for name in _unfiltered_list_entries(candidate, "blob-field"):
        if name not in candidate.columns or not is_blob(candidate.columns[name].type):
            raise argument_error(f"option blob-field names {name}, which is not a BLOB column")
    descriptors = set(candidate.inline_blobs("blob-descriptor-field"))
    for key in ("blob-descriptor-field", "blob-view-field"):
        for name in candidate.inline_blobs(key):
            if name not in candidate.columns or candidate.columns[name].type.root != "BLOB":
                raise argument_error(f"option {key} names {name}, which is not a BLOB column")
    both = descriptors & set(candidate.inline_blobs("blob-view-field"))
    if both:
        raise argument_error(
            f"columns {sorted(both)} are listed as blob descriptors and as blob views"
        )


def _unfiltered_list_entries(candidate: SchemaCandidate, key: str) -> tuple[str, ...]:
    listed = candidate.options.text(key)
    return () if listed is None else tuple(each.strip() for each in listed.split(","))


def check_blob_roles(candidate: SchemaCandidate) -> None:
    """Check that BLOBs in files of their own are neither keys nor sequence fields.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    managed = set(candidate.managed_blobs)
    for what, names in (
        ("primary keys", candidate.schema.primary_keys),
        ("bucket keys", candidate.bucket_keys),
        ("sequence fields", candidate.sequence_fields),
    ):
        if managed & set(names):
            raise argument_error(f"BLOB columns {sorted(managed & set(names))} cannot be {what}")


def check_blob_retractions(candidate: SchemaCandidate) -> None:
    """Check that no aggregated BLOB of a sequence group would be retracted.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    protected = {
        name
        for key, value in candidate.options.values.items()
        if key.startswith("fields.") and key.endswith(".sequence-group")
        for name in value.split(",")
    }
    for name in candidate.managed_blobs:
        function = candidate.aggregate_function(name)
        if name not in protected or function in {None, "last_value"}:
            continue
        if not candidate.options.flag(f"fields.{name}.ignore-retract"):
            raise argument_error(
                f"BLOB column {name} cannot be aggregated by {function}: retractions carry no "
                f"BLOBs; set fields.{name}.ignore-retract=true"
            )


def check_vector_fields(candidate: SchemaCandidate) -> None:
    """Check that option `vector-field` names VECTOR columns.

    Raises:
        InvalidChangeError: ILLEGAL_STATE or ILLEGAL_ARGUMENT.
    """
    listed = (candidate.options.text("vector-field") or "").strip()
    names = listed.split(",") if listed else []
    for name in names:
        column = candidate.columns.get(name)
        if column is not None and column.type.root != "VECTOR":
            raise state_error(f"option vector-field: {name} is {column.type.root}, not a VECTOR")
    unknown = [name for name in names if name not in candidate.columns]
    if unknown:
        raise argument_error(f"option vector-field names {unknown}, which are not columns")


def check_other_columns_exist(candidate: SchemaCandidate, names: list[str]) -> None:
    """Check that a table has other columns than those in files of their own, partition keys apart.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    if len(candidate.schema.fields) <= len(names):
        raise argument_error(f"columns {names} need at least one ordinary column beside them")
    keys = set(names) & set(candidate.schema.partition_keys)
    if keys:
        raise argument_error(f"columns {sorted(keys)} cannot be partition keys")


# ---- MAP and VARIANT columns

_PREFIX, _SUFFIX = "fields.", ".map.storage-layout"
_LAYOUTS = ("default", "shared-shredding")
_POLICIES = ("plain", "sequential", "lru")
_COMPRESSIONS = frozenset({"none", "lz4", "zstd"})


def check_map_layout(candidate: SchemaCandidate) -> None:
    """Check that `map.storage-layout` is set for MAP columns, and the needs of shredding.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    shredded = False
    for key in candidate.options.values:
        if not key.startswith(_PREFIX) or not key.endswith(_SUFFIX):
            continue
        name = key.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        column = candidate.columns.get(name)
        if column is None or not isinstance(column.type, MapType):
            raise argument_error(f"option {key}: {name} is not a MAP column")
        if candidate.options.choice(key, "default", _LAYOUTS) == "default":
            continue
        shredded = True
        if column.type.key.root != "VARCHAR" or column.type.key.nullable:
            raise argument_error(f"option {key}: the key of {name} must be STRING NOT NULL")
        _check_shredding(candidate, name)
    if shredded:
        _check_shredding_formats(candidate)
        _check_shredding_columns(candidate)


def _check_shredding(candidate: SchemaCandidate, name: str) -> None:
    check_option_minimum(candidate, f"{_PREFIX}{name}.map.shared-shredding.max-columns", 1)
    policy = f"{_PREFIX}{name}.map.shared-shredding.column-placement-policy"
    candidate.options.choice(policy, "lru", _POLICIES)


def _check_shredding_formats(candidate: SchemaCandidate) -> None:
    options = candidate.options
    formats = [
        options.file_format,
        *per_level_option_values(options, "file.format.per.level"),
        (options.text("changelog-file.format") or "").lower(),
    ]
    for each in formats:
        if each and each not in {"parquet", "orc"}:
            raise argument_error(
                f"map.storage-layout shared-shredding needs Parquet or ORC, not {each}"
            )
    compressions = [
        options.text("file.compression"),
        *per_level_option_values(options, "file.compression.per.level"),
        options.text("changelog-file.compression"),
    ]
    for compression in compressions:
        if compression and compression.lower() not in _COMPRESSIONS:
            raise argument_error(
                f"map.storage-layout shared-shredding does not go with compression {compression}"
            )


def _check_shredding_columns(candidate: SchemaCandidate) -> None:
    for column in candidate.unusual:
        if contains_root(column.type, "VARIANT", "MULTISET"):
            raise argument_error(
                f"map.storage-layout shared-shredding does not go with column {column.name}'s type"
            )
        if (
            isinstance(column.type, MapType)
            and candidate.is_shredded(column.name)
            and contains_root(column.type.value, "BLOB", "VECTOR")
        ):
            raise argument_error(
                f"map.storage-layout shared-shredding: values of {column.name} cannot hold "
                "BLOB or VECTOR"
            )
    if candidate.options.bucket == -2:  # noqa: PLR2004 - postponed buckets
        raise argument_error("map.storage-layout shared-shredding does not go with bucket=-2")


def check_variant_shredding(candidate: SchemaCandidate) -> None:
    """Check the ratios by which fields of VARIANT columns are shredded.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    options = candidate.options
    admission = options.fraction(f"{_VARIANT}.minFieldCardinalityRatio", 0.1)
    if not 0 <= admission <= 1:
        raise argument_error(f"option {_VARIANT}.minFieldCardinalityRatio must be between 0 and 1")
    mode = options.choice(f"{_VARIANT}.inferenceMode", "per-file", ("per-file", "adaptive"))
    if mode == "per-file":
        return
    check_option_minimum(candidate, f"{_VARIANT}.adaptive.maxInferBufferRow", 1)
    retention = options.fraction(f"{_VARIANT}.adaptive.retentionRatio", 0.05)
    if not 0 <= retention <= admission:
        raise argument_error(
            f"option {_VARIANT}.adaptive.retentionRatio must be at most {admission}"
        )
