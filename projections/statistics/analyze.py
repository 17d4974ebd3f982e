"""Distinct counts by theta sketches over a table's data, in Spark.

A data file never changes, so its sketches are kept, one per file and column; the next analysis
reads only new files. The sketches of the files that are live at a snapshot are merged by union.
Executors read, count and write; no data is sent to the driver.

Sketches over the same bytes can be merged, whatever made them: Iceberg's Java hashes these, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen
from msgspec import UnsetType

from ledger.decide.table_options import MarkedColumns
from ledger.history.older import schemas_by_id
from ledger.locations import below
from ledger.model import types as t
from ledger.model.arrow_types import FIELD_ID_KEY
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.parquet_limits import open_parquet_stream, read_bounded_table
from ledger.model.schema import with_column_names
from ledger.model.single_values import EXACT_DECIMALS, decode_value, unit_digits
from ledger.model.types import DataType
from ledger.model.types.text import format_type
from ledger.planning.bound_value import value_to_bytes
from ledger.stores.file_access import FileAccess
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of
from projections.statistics.engine_listed import merges_rows
from projections.statistics.session import spark_session
from projections.statistics.spark_source import LogSource
from projections.statistics.tile_rows import folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


_MICROSECONDS = 6
_ROWS_AT_ONCE = 65_536


@frozen
class WantedColumn:
    """A column to read from a file.

    Attributes:
        field_id: Its id.
        name: Its name in the file's schema.
        type: Its current type, which the file's may precede.
    """

    field_id: int
    name: str
    type: t.DataType


def is_counted(data_type: t.DataType) -> bool:
    """Return whether a type's values are counted, as those with single-value bytes are."""
    return type(data_type) in _CASTS or isinstance(data_type, _OTHERS)


_OTHERS = (t.DecimalType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType)


def distinct_bytes(
    file: Any, wanted: tuple[WantedColumn, ...], *, field_ids: bool
) -> Iterator[tuple[int, pa.Array]]:
    """Yield the distinct values of each column, some rows at a time; nulls are left out.

    Args:
        file: A `pyarrow.parquet.ParquetFile`, which may read texts as dictionaries.
        wanted: The columns.
        field_ids: Whether the file's columns are found by their ids, or by name.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places = _columns_in_file(file.schema_arrow, wanted, field_ids=field_ids)
    for each, name in places.items():
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[name], use_threads=False):
            values = pc.drop_null(pc.unique(batch.column(0)))
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            if len(values):
                yield each.field_id, encode_single_values(values, each.type)


def _columns_in_file(
    schema: pa.Schema, wanted: tuple[WantedColumn, ...], *, field_ids: bool
) -> Mapping[WantedColumn, str]:
    """Return the file's columns by wanted column; one that it lacks holds no values."""
    if not field_ids:
        return {each: each.name for each in wanted if each.name in schema.names}
    ids = {each.name: (each.metadata or {}).get(FIELD_ID_KEY) for each in schema}
    by_id = {int(number): name for name, number in ids.items() if number is not None}
    # A source may list files without ids although its protocol requires them.
    by_name = {each.field_id: each.name for each in wanted if ids.get(each.name, b"") is None}
    found = {**by_name, **by_id}
    return {each: found[each.field_id] for each in wanted if each.field_id in found}


def encode_single_values(values: pa.Array, data_type: t.DataType) -> pa.Array:
    """Return values as the bytes of a type, after promotion of a file's own type.

    Example:
        >>> import pyarrow as pa
        >>> encode_single_values(pa.array([34], pa.int32()), t.BigIntType())[0].as_py().hex()
        '2200000000000000'
        >>> encode_single_values(pa.array(["a"]), t.VarCharType(9)).to_pylist()
        [b'a']
    """
    import pyarrow as pa

    if isinstance(data_type, t.TimeType | t.TimestampType | t.LocalZonedTimestampType):
        return _pack_fixed_width(_temporal_to_integers(values, data_type), "<i8")
    if isinstance(data_type, t.DecimalType):
        exact = values.cast(pa.decimal128(data_type.precision, data_type.scale)).to_pylist()
        numbers = (int(each.scaleb(data_type.scale, EXACT_DECIMALS)) for each in exact)
        return pa.array([value_to_bytes(each, data_type) for each in numbers], pa.binary())
    casts, form = _CASTS[type(data_type)]
    for each in casts:
        values = values.cast(pa.type_for_alias(each))
    return _pack_fixed_width(values, form) if form else values


_CASTS: dict[type[t.DataType], tuple[tuple[str, ...], str]] = {
    **dict.fromkeys((t.CharType, t.VarCharType), (("string", "binary"), "")),
    **dict.fromkeys((t.BinaryType, t.VarBinaryType), (("binary",), "")),
    **dict.fromkeys((t.TinyIntType, t.SmallIntType, t.IntType), (("int32",), "<i4")),
    t.BooleanType: (("bool", "int8"), "<i1"),
    t.DateType: (("date32", "int32"), "<i4"),
    t.BigIntType: (("int64",), "<i8"),
    t.FloatType: (("float32",), "<f4"),
    t.DoubleType: (("float64",), "<f8"),
}


def _temporal_to_integers(
    values: pa.Array, data_type: t.TimeType | t.TimestampType | t.LocalZonedTimestampType
) -> pa.Array:
    import pyarrow as pa

    unit = "us" if unit_digits(data_type) <= _MICROSECONDS else "ns"
    if isinstance(data_type, t.TimeType):
        # Iceberg's times have microseconds, whatever the column's precision.
        return values.cast(pa.time64("ns")).cast(pa.time64("us"), safe=False).cast(pa.int64())
    zone = getattr(values.type, "tz", None)
    return values.cast(pa.timestamp(unit, zone)).cast(pa.int64())


def _pack_fixed_width(values: pa.Array, form: str) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    body = values.to_numpy(zero_copy_only=False).astype(np.dtype(form)).tobytes()
    width = int(form[-1])
    plain = pa.Array.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(body)])
    return plain.cast(pa.binary())


OLDEST_SPARK = (4, 1)
"""Oldest Spark version that has theta sketches."""

_BYTES_A_TASK = 16_000_000
"""Size of the data files that a task reads and counts: some seconds of one core."""
_SKETCHES_A_TASK = 16
_VALUES = "place bigint, field_id bigint, value binary"
_KEPT = "name string"
_SKETCHES = "field_id bigint, sketch binary"


@frozen
class Analysis:
    """Estimated distinct counts of columns at a snapshot.

    Attributes:
        snapshot_id: The snapshot.
        distinct: The estimate by field id.
        is_exact: Whether every row of the live files is the table's; rows that are deleted or
            replaced are not subtracted.
        read_count: Number of data files read; the sketches of others were kept.
        sketches: By field id, the theta sketch of its values; absent for a column without files.
    """

    snapshot_id: int
    distinct: Mapping[int, int] = field(hash=False)
    is_exact: bool
    read_count: int
    sketches: Mapping[int, bytes] = field(factory=dict, hash=False, repr=False)


def analyze(
    table: Table, *, at: TableAt | None = None, spark: SparkSession | None = None
) -> Analysis:
    """Estimate the number of distinct values of each column, by reading the data in Spark.

    Columns of nested types are left out, and personal ones, since a sketch keeps hashes of values
    that an erasure would miss. A file that lacks a column adds no value to it.

    Args:
        table: The table, in a ledger that other processes can reach: not `memory://`.
        at: The instant; None for the current table.
        spark: The session to use; None for the active one, or else a small local one.

    Raises:
        UnsupportedError: Spark is older than 4.1, a data file is not Parquet, or an engine's
            manifests list the files.
        InvalidInputError: There is no snapshot, or the ledger is in memory.
        MissingDependencyError: A session has to be started, and pyspark or Java is missing.
    """
    instant = at or table.at()
    source = LogSource.of(table)
    session = spark or spark_session()
    require_sketches(session.version)
    if instant.state.last_snapshot_id == 0:
        raise InvalidInputError(
            f"{table.identifier} has no snapshot yet, so nothing to analyze: add files first"
        )
    data = [each for each in instant.files if each.content == "data"]
    specs = {each.spec_id: each for each in instant.state.specs}
    # A column that is personal now was so at the instant, too.
    marked = MarkedColumns.of(table.state.schema) or ()
    counted = {
        each.id: each.type
        for each in instant.schema.fields
        if is_counted(each.type) and each.id not in marked
    }
    types = {key: format_type(each) for key, each in counted.items()}
    job = _AnalysisJob(
        source, handle_of(table).file_access, _columns_by_schema(table, counted, data), types, specs
    )
    missing = job.missing(data)
    job.read(session, missing)
    sketches = job.merge_sketches(session, data)
    return Analysis(
        instant.state.last_snapshot_id,
        {key: sketches[key][0] if key in sketches else 0 for key in sorted(counted)},
        is_exact=len(data) == len(instant.files) and not merges_rows(instant.state),
        read_count=len(missing),
        sketches={key: sketch for key, (_, sketch) in sorted(sketches.items())},
    )


def require_sketches(version: str) -> None:
    """Reject a Spark without theta sketches.

    Raises:
        UnsupportedError: It is too old.

    Example:
        >>> require_sketches("4.0.1")
        Traceback (most recent call last):
        ledger.model.errors.UnsupportedError: distinct counts need Spark's theta_sketch_agg, ...
    """
    major, minor = (int(each) for each in version.split(".")[:2])
    if (major, minor) < OLDEST_SPARK:
        raise UnsupportedError(
            "distinct counts need Spark's theta_sketch_agg, which exists from 4.1 on, and this "
            f"session is Spark {version}: use a newer one"
        )


@frozen
class _DataFile:
    """The fields of a file that executors need."""

    path: str
    url: str
    size: int
    field_ids: bool
    wanted: tuple[WantedColumn, ...]
    constants: tuple[tuple[int, bytes], ...]


@frozen
class _AnalysisJob:
    """Analysis of one table.

    Attributes:
        source: The table's location.
        access: Permission to open the files that its log names.
        columns: By schema id, the columns to read from files of that schema.
        types: By field id, the types of all columns that are counted.
        specs: Partition specs by id: an identity column may be missing in the files.
    """

    source: LogSource
    access: FileAccess = field(hash=False)
    columns: Mapping[int, tuple[WantedColumn, ...]] = field(hash=False)
    types: Mapping[int, str] = field(hash=False)
    specs: Mapping[int, PartitionSpec] = field(hash=False)

    def missing(self, data: Iterable[FileChange]) -> list[_DataFile]:
        """Return the files with columns that have no kept sketch."""
        known = {
            key for name in self._kept_sketch_keys() for key in _read_sketch_keys(self.source, name)
        }
        root = f"{self.source.url.rstrip('/')}/{self.source.path}"
        found = []
        for each in data:
            names = {} if isinstance(each.column_names, UnsetType) else each.column_names
            wanted = tuple(
                evolve(one, name=names.get(one.field_id, one.name))
                for one in self.columns[each.schema_id]
                if (each.path, one.field_id, format_type(one.type)) not in known
            )
            if wanted:
                url = below(root, each.path)
                self.access.check(url)
                constants = tuple(
                    _identity_partition_values(each, wanted, self.specs[each.spec_id])
                )
                size = each.file_size_in_bytes
                found.append(_DataFile(each.path, url, size, each.field_ids, wanted, constants))
        return found

    def read(self, spark: SparkSession, files: list[_DataFile]) -> None:
        """Sketch files on executors, and keep the sketches."""
        if not files:
            return
        from pyspark.sql import functions as F

        size = sum(each.size for each in files)
        count = min(len(files), max(1, -(-size // _BYTES_A_TASK)))
        places = spark.range(0, len(files), 1, count)
        values = places.mapInArrow(
            partial(_read_distinct_values, self.access, tuple(files)), _VALUES
        )
        sketches = values.groupBy("place", "field_id").agg(
            F.theta_sketch_agg("value").alias("sketch")
        )
        sketches.mapInArrow(partial(_write_sketches, self.source, tuple(files)), _KEPT).collect()

    def merge_sketches(
        self, spark: SparkSession, data: Iterable[FileChange]
    ) -> dict[int, tuple[int, bytes]]:
        """Return the estimate and the merged sketch of each column over some files."""
        from pyspark.sql import functions as F

        names = tuple(self._kept_sketch_keys())
        live, types = frozenset(each.path for each in data), dict(self.types)
        if not names:
            return {}
        places = spark.range(0, len(names), 1, -(-len(names) // _SKETCHES_A_TASK))
        sketches = places.mapInArrow(
            partial(_read_live_sketches, self.source, names, live, types), _SKETCHES
        )
        merge_sketches = sketches.groupBy("field_id").agg(
            F.theta_union_agg("sketch").alias("sketch")
        )
        counted = merge_sketches.select(
            "field_id", "sketch", F.theta_sketch_estimate("sketch").alias("count")
        )
        return {
            int(each["field_id"]): (int(each["count"]), bytes(each["sketch"]))
            for each in counted.collect()
        }

    def _kept_sketch_keys(self) -> list[str]:
        log = self.source.log()
        return sorted(log.store.keys(f"{folder(log.layout)}/sketches"))


def _columns_by_schema(
    table: Table, now: Mapping[int, DataType], data: Iterable[FileChange]
) -> dict[int, tuple[WantedColumn, ...]]:
    """Return, by schema id, the columns to read from its files, by the names in that schema."""
    found = {}
    origin = table.state.origin
    for schema_id, schema in schemas_by_id(
        handle_of(table).log, {each.schema_id for each in data}
    ).items():
        names = origin.physical_names if schema_id <= origin.last_physical_schema_id else {}
        found[schema_id] = tuple(
            WantedColumn(each.id, each.name, now[each.id])
            for each in with_column_names(schema, names).fields
            if each.id in now
        )
    for each in data:
        if each.format != "parquet":
            raise UnsupportedError(
                f"{each.path} is {each.format}, and only Parquet is analyzed: let the table's "
                "engine count, or compact it into Parquet"
            )
    return found


def _identity_partition_values(
    file: FileChange, wanted: tuple[WantedColumn, ...], spec: PartitionSpec
) -> Iterator[tuple[int, bytes]]:
    types = {each.field_id: each.type for each in wanted}
    for each, text in zip(spec.fields, file.partition, strict=True):
        if each.transform == "identity" and each.source_id in types:
            value = decode_value(text, types[each.source_id])
            if value is not None:
                yield each.source_id, value_to_bytes(value, types[each.source_id])


def _read_sketch_keys(source: LogSource, name: str) -> Iterator[tuple[str, int, str]]:
    rows = _read_sketch_columns(source, name, ["path", "field_id", "type"]).to_pydict()
    yield from zip(rows["path"], rows["field_id"], rows["type"], strict=True)


def _read_sketch_columns(source: LogSource, name: str, columns: list[str]) -> pa.Table:
    body = source.log().store.read(name)
    if body is None:
        raise InvalidInputError(f"{name} was deleted while it was read; run it again")
    return read_bounded_table(body, name, columns)


def _read_distinct_values(
    access: FileAccess, files: tuple[_DataFile, ...], batches: Iterable[Any]
) -> Iterator[Any]:
    """Yield the distinct values of each file's columns; runs on executors."""
    import pyarrow as pa

    for place in (place for batch in batches for place in batch.column(0).to_pylist()):
        file = files[place]
        system, inside = access.open(file.url)
        with system.open(inside, "rb") as stream:
            opened = open_parquet_stream(stream, int(system.size(inside)), file.url)
            # A column without values gets an empty sketch, so that it counts as analysed.
            for each in file.wanted:
                yield _value_batch(place, each.field_id, pa.nulls(1, pa.binary()))
            for field_id, value in file.constants:
                yield _value_batch(place, field_id, pa.array([value], pa.binary()))
            for field_id, values in distinct_bytes(opened, file.wanted, field_ids=file.field_ids):
                yield _value_batch(place, field_id, values)


def _value_batch(place: int, field_id: int, values: pa.Array) -> pa.RecordBatch:
    import pyarrow as pa

    same = [pa.repeat(pa.scalar(each, pa.int64()), len(values)) for each in (place, field_id)]
    return pa.RecordBatch.from_arrays([*same, values], names=["place", "field_id", "value"])


def _write_sketches(
    source: LogSource, files: tuple[_DataFile, ...], batches: Iterable[Any]
) -> Iterator[Any]:
    """Write a task's sketches into one file, named by its digest."""
    import pyarrow as pa
    from pyarrow import parquet

    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return
    rows = pa.Table.from_batches(found).to_pydict()
    types = {
        (place, one.field_id): format_type(one.type)
        for place in set(rows["place"])
        for one in files[place].wanted
    }
    keys = list(zip(rows["place"], rows["field_id"], strict=True))
    table = pa.table(
        {
            "path": [files[place].path for place in rows["place"]],
            "field_id": pa.array(rows["field_id"], pa.int64()),
            "type": [types[each] for each in keys],
            "sketch": pa.array(rows["sketch"], pa.binary()),
        }
    ).sort_by([("path", "ascending"), ("field_id", "ascending")])
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", write_page_checksum=True)
    body = bytes(sink.getvalue())
    log = source.log()
    name = f"{folder(log.layout)}/sketches/{hashlib.sha256(body).hexdigest()}.parquet"
    log.store.replace(name, body)
    yield pa.RecordBatch.from_pydict({"name": [name]})


def _read_live_sketches(
    source: LogSource,
    names: tuple[str, ...],
    live: frozenset[str],
    types: Mapping[int, str],
    batches: Iterable[Any],
) -> Iterator[Any]:
    """Yield the kept sketches of live files."""
    import pyarrow as pa

    seen: set[tuple[str, int]] = set()
    for place in (place for batch in batches for place in batch.column(0).to_pylist()):
        rows = _read_sketch_columns(
            source, names[place], ["path", "field_id", "type", "sketch"]
        ).to_pylist()
        mine = [
            each
            for each in rows
            if each["path"] in live and types.get(each["field_id"]) == each["type"]
        ]
        fresh = [each for each in mine if (each["path"], each["field_id"]) not in seen]
        seen |= {(each["path"], each["field_id"]) for each in fresh}
        yield pa.RecordBatch.from_pydict(
            {
                "field_id": pa.array([each["field_id"] for each in fresh], pa.int64()),
                "sketch": pa.array([each["sketch"] for each in fresh], pa.binary()),
            }
        )
