"""Rules of data file formats: which types their files can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ledger.evolution.options.reading import FILE_FORMATS, TableOptions, whole
from ledger.evolution.refusals import argument, runtime, unsupported
from ledger.evolution.validation.blobs import managed_blobs
from ledger.evolution.validation.subject import Subject, contains_root
from ledger.model.types import (
    STRING,
    DataField,
    DataType,
    GeographyType,
    LocalZonedTimestampType,
    TimestampType,
    TimeType,
)
from ledger.model.types.walk import parts_of

_AVRO_TIMESTAMP_PRECISION = 6
_AVRO_TIME_PRECISION = 3
_GEO = ("GEOMETRY", "GEOGRAPHY")


def data_fields(subject: Subject) -> None:
    """Check that the table's file format can hold its columns.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or UNSUPPORTED, naming column and type.
    """
    name = file_format(subject.options, "file.format") or "parquet"
    check = _FORMATS.get(name)
    if check is None and name not in _FLAT_FORMATS and name != "text":
        return
    columns = list(_in_data_files(subject))
    if name in _FLAT_FORMATS:
        for column in columns:
            if column.type.root not in _FLAT_FORMATS[name]:
                raise unsupported(f"column {column.name}: {name} cannot hold {column.type.root}")
    if name == "text" and len(columns) != 1 and (not columns or columns[0].type != STRING):
        raise argument("option file.format=text takes a single STRING column")
    if check is None:
        return
    for column in columns:
        for inner in _inner_types(column.type):
            check(column.name, inner)


def avro_levels(subject: Subject) -> None:
    """Check that levels written as Avro hold no timestamps finer than microseconds.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    if "avro" not in level_values(subject.options, "file.format.per.level"):
        return
    for column in _in_data_files(subject):
        match column.type:
            case TimestampType(precision=precision) | LocalZonedTimestampType(precision=precision):
                if precision > _AVRO_TIMESTAMP_PRECISION:
                    raise argument(
                        f"option file.format.per.level: column {column.name} has precision "
                        f"{precision}; Avro keeps {_AVRO_TIMESTAMP_PRECISION}"
                    )
            case _:
                continue


def geospatial(subject: Subject) -> None:
    """Check what shapes need: Parquet, and no part in clustering, buckets or sequence.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    names = {each.name for each in subject.unusual if contains_root(each.type, *_GEO)}
    if not names:
        return
    formats = [
        file_format(subject.options, "file.format") or "parquet",
        *level_values(subject.options, "file.format.per.level"),
    ]
    changelog = file_format(subject.options, "changelog-file.format")
    for each in (*formats, *([] if changelog is None else [changelog])):
        if each != "parquet":
            raise argument(f"columns {sorted(names)} need Parquet files, not {each}")
    _iceberg_geospatial(subject)
    roles = {
        "clustering.columns": subject.options.names("clustering.columns"),
        "bucket-key": subject.bucket_keys,
        "sequence.field": subject.sequence_fields,
    }
    for option, used in roles.items():
        if names & set(used):
            raise argument(f"option {option} cannot name {sorted(names & set(used))}: no order")


def iceberg_storage(subject: Subject) -> str:
    """Return where Iceberg metadata of the table is kept, `disabled` being nowhere.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT: there is no such storage.
    """
    return subject.options.choice("metadata.iceberg.storage", "disabled", _ICEBERG_STORAGES)


def _iceberg_geospatial(subject: Subject) -> None:
    storage = iceberg_storage(subject)
    if storage == "disabled":
        return
    if subject.options.number("metadata.iceberg.format-version", 2) != 3:  # noqa: PLR2004 - v3
        raise argument("shapes in Iceberg metadata need metadata.iceberg.format-version=3")
    if storage == "rest-catalog":
        raise argument("metadata.iceberg.storage=rest-catalog does not go with shapes")
    for column in subject.unusual:
        for inner in _inner_types(column.type):
            if isinstance(inner, GeographyType) and "," in inner.crs:
                raise argument(f"column {column.name}: Iceberg metadata takes no comma in a CRS")


_ICEBERG_STORAGES = (
    *("disabled", "table-location", "hadoop-catalog", "hive-catalog", "rest-catalog"),
)


def known_format(subject: Subject) -> None:
    """Check that the table's file format is one, and can be set up.

    Raises:
        InvalidChangeError: RUNTIME for an unknown format, ILLEGAL_ARGUMENT for its options.
    """
    options = subject.options
    for key in ("read.batch-size", "write.batch-size", "file.compression.zstd-level"):
        options.number(key, 0)
    for key in ("write.batch-memory", "file.block-size"):
        options.check_size(key)
    name = file_format(options, "file.format") or "parquet"
    if name not in FILE_FORMATS:
        raise runtime(f"option file.format={name!r} is unknown: use one of {sorted(FILE_FORMATS)}")


def file_format(options: TableOptions, key: str) -> str | None:
    """Return the name of a file format as Paimon compares it."""
    value = options.text(key)
    return None if value is None else value.lower()


def level_values(options: TableOptions, key: str) -> list[str]:
    """Return the values of an option such as `0:avro,3:parquet`, in lower case.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT: it is not written like this.
    """
    listed = options.text(key)
    if not listed:
        return []
    pairs = [each.split(":") for each in listed.split(",")]
    if any(len(pair) != 2 for pair in pairs):  # noqa: PLR2004 - level and value
        raise argument(f"option {key}={listed!r} is not written like 0:avro,3:parquet")
    for level, _ in pairs:
        whole(key, level)
    return [value.strip().lower() for _, value in pairs]


def _in_data_files(subject: Subject) -> Iterator[DataField]:
    apart = set(managed_blobs(subject))
    if subject.options.text("vector.file.format") is not None:
        apart |= {each.name for each in subject.schema.fields if each.type.root == "VECTOR"}
    return (each for each in subject.schema.fields if each.name not in apart)


def _inner_types(data_type: DataType) -> Iterator[DataType]:
    for each in parts_of(data_type):
        yield from _inner_types(each.type)
    yield data_type


def _avro(name: str, data_type: DataType) -> None:
    match data_type:
        case TimestampType(precision=precision) | LocalZonedTimestampType(precision=precision):
            limit = _AVRO_TIMESTAMP_PRECISION
        case TimeType(precision=precision):
            limit = _AVRO_TIME_PRECISION
        case _ if data_type.root in {"VARIANT", *_GEO}:
            raise unsupported(f"column {name}: Avro files cannot hold {data_type.root}")
        case _:
            return
    if precision > limit:
        raise argument(f"column {name}: Avro keeps {limit} digits of a second, not {precision}")


_ORC_REFUSED = frozenset({"VECTOR", "VARIANT", *_GEO})


def _orc(name: str, data_type: DataType) -> None:
    if data_type.root in _ORC_REFUSED:
        raise unsupported(f"column {name}: ORC files cannot hold {data_type.root}")


_FORMATS: dict[str, Callable[[str, DataType], None]] = {"avro": _avro, "orc": _orc}

_FLAT = frozenset(
    {
        *("CHAR", "VARCHAR", "BOOLEAN", "BINARY", "VARBINARY", "DECIMAL", "TINYINT", "SMALLINT"),
        *("INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"),
    }
)
_FLAT_FORMATS = {"csv": _FLAT, "json": _FLAT | {"ARRAY", "VECTOR", "MAP", "ROW"}}
