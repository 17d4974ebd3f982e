"""Rules of data file formats: which types their files can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ledger.evolution.refusals import argument, unsupported
from ledger.evolution.subject import Subject, contains_root
from ledger.evolution.validation_blobs import managed_blobs
from ledger.model.types import (
    ArrayType,
    DataField,
    DataType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
    TimeType,
)

_AVRO_TIMESTAMP_PRECISION = 6
_AVRO_TIME_PRECISION = 3
_GEO = ("GEOMETRY", "GEOGRAPHY")


def data_fields(subject: Subject) -> None:
    """Check that the table's file format can hold its columns.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or UNSUPPORTED, naming column and type.
    """
    check = _FORMATS.get(_format(subject, "file.format") or "parquet")
    if check is None:
        return
    for column in _in_data_files(subject):
        for inner in _inner_types(column.type):
            check(column.name, inner)


def avro_levels(subject: Subject) -> None:
    """Check that levels written as Avro hold no timestamps finer than microseconds.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    if "avro" not in _level_formats(subject):
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
    formats = [_format(subject, "file.format") or "parquet", *_level_formats(subject)]
    changelog = _format(subject, "changelog-file.format")
    for each in (*formats, *([] if changelog is None else [changelog])):
        if each != "parquet":
            raise argument(f"columns {sorted(names)} need Parquet files, not {each}")
    roles = {
        "clustering.columns": subject.options.names("clustering.columns"),
        "bucket-key": subject.bucket_keys,
        "sequence.field": subject.sequence_fields,
    }
    for option, used in roles.items():
        if names & set(used):
            raise argument(f"option {option} cannot name {sorted(names & set(used))}: no order")


def _format(subject: Subject, key: str) -> str | None:
    value = subject.options.text(key)
    return None if value is None else value.strip().lower()


def _level_formats(subject: Subject) -> list[str]:
    listed = subject.options.text("file.format.per.level") or ""
    return [each.partition(":")[2].strip().lower() for each in listed.split(",") if each.strip()]


def _in_data_files(subject: Subject) -> Iterator[DataField]:
    apart = set(managed_blobs(subject))
    if subject.options.text("vector.file.format") is not None:
        apart |= {each.name for each in subject.schema.fields if each.type.root == "VECTOR"}
    return (each for each in subject.schema.fields if each.name not in apart)


def _inner_types(data_type: DataType) -> Iterator[DataType]:
    match data_type:
        case ArrayType(element=inner) | MultisetType(element=inner):
            yield from _inner_types(inner)
        case MapType(key=key, value=value):
            yield from _inner_types(key)
            yield from _inner_types(value)
        case RowType(fields=fields):
            for each in fields:
                yield from _inner_types(each.type)
        case _:
            pass
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
