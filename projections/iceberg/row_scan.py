"""PyIceberg's scan over the ledger's files and plans.

Position deletes written before a ledger was copied or moved name files at the old location: a
reader would find that none of them applies, and show deleted rows.

PyIceberg 0.12 fails to plan if the filter compares a partition value that is NULL, and uses the
newest schema for older snapshots; the ledger's plan has neither problem.
"""

from __future__ import annotations

import atexit
import io
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import UUID
from weakref import WeakSet

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg
from pyiceberg import expressions as e
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
from pyiceberg.io.fsspec import FsspecInputFile
from pyiceberg.io.pyarrow import ArrowScan, _read_all_delete_files, schema_to_pyarrow
from pyiceberg.manifest import FileFormat
from pyiceberg.schema import Accessor, Schema
from pyiceberg.table import DataScan, FileScanTask
from pyiceberg.table.metadata import TableMetadata

from ledger.files.live import find_lost_file_names, is_position_delete_file, read_named_data_files
from ledger.locations import below
from ledger.model import types as t
from ledger.model.errors import DamagedLogError, LedgerError, NotFoundError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.single_values import EXACT_DECIMALS
from ledger.planning.expression import NEGATIVE, Always, And, Expression, Not, Op, Or, Predicate
from ledger.stores.file_access import FileAccess
from ledger.table_handle import TableHandle
from projections.manifest_files.container import read_container

_LONGEST_WAIT_S = 5.0

# A caller that stops early leaves Arrow's read-ahead threads running, which abort a process that
# ends while they access one of its files.
_read: WeakSet[Any] = WeakSet()


@atexit.register
def _let_readers_finish() -> None:
    until = time.monotonic() + _LONGEST_WAIT_S
    while _read and time.monotonic() < until:
        time.sleep(0.001)


class RowFiles(FileIO):
    """Read-only file access for PyIceberg, with some files in memory.

    Args:
        access: Permission to open the files that the log names.
        made: Files that exist only in memory, by their URL.
        reached: Function from a location to the URL by which this process accesses it.
    """

    def __init__(
        self,
        access: FileAccess,
        made: Mapping[str, bytes],
        reached: Callable[[str], str],
    ) -> None:
        super().__init__()
        self._access = access
        self._made = made
        self._reached = reached

    def new_input(self, location: str) -> InputFile:
        """Return a file to read; a missing file raises only when it is opened.

        Raises:
            UnsupportedError: It is outside the permitted locations.
            InvalidInputError: It is not a valid file URL.
        """
        body = self._made.get(location)
        if body is not None:
            return _MemoryInputFile(location, body)
        filesystem, inside = self._access.open(self._reached(location))
        return _StoredInputFile(inside, filesystem)

    def new_output(self, location: str) -> OutputFile:
        """Raise an error: writing is not supported."""
        raise _read_only_error(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Raise an error: deleting is not supported."""
        raise _read_only_error(location)


def _read_only_error(location: object) -> UnsupportedError:
    return UnsupportedError(
        f"{location} cannot be changed through a scan: commit to the ledger instead"
    )


class _StoredInputFile(FsspecInputFile):
    def open(self, seekable: bool = True) -> InputStream:  # noqa: FBT001, FBT002 - PyIceberg's
        """Open the file.

        Raises:
            NotFoundError: The file does not exist.
        """
        try:
            stream = super().open(seekable)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"file {self.location} of the table does not exist: restore it, or remove it from "
                "the table with delete_files. The source of an imported table may have deleted it "
                "by its own maintenance, such as VACUUM: read a later version"
            ) from error
        _read.add(stream)
        return stream


class _MemoryInputFile(InputFile):
    def __init__(self, location: str, body: bytes) -> None:
        super().__init__(location=location)
        self._body = body

    def __len__(self) -> int:
        return len(self._body)

    def exists(self) -> bool:
        """Return True: files in memory exist."""
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT001, FBT002 - PyIceberg's
        """Open the file."""
        return io.BytesIO(self._body)


def refuse_lost_deletes(table: TableHandle, files: Iterable[FileChange], io: RowFiles) -> None:
    """Reject a read if a position delete file names a file that was never in the table.

    Args:
        table: The table.
        files: The files to read.
        io: The file access.

    Raises:
        NotFoundError: A delete file does not exist.
        UnsupportedError: A delete file names a file at another location.
    """
    for each in files:
        if not is_position_delete_file(each):
            continue
        uri = table_uri(table, each.path)
        with io.new_input(uri).open() as body:
            lost = find_lost_file_names(table, read_named_data_files(body.read(), uri))
        if lost:
            raise UnsupportedError(
                f"{uri} deletes rows of {lost[0]}, which was never in {table.identifier} at "
                f"{table.location}: the ledger was copied or moved from another place after "
                "the deletes were written, and no reader would apply them; read the table "
                "where it was, or record the move and have the deletes rewritten: lakeledger "
                "move --rewrite"
            )


def table_uri(table: TableHandle, path: str) -> str:
    """Return the URI of a file, from its path in the log."""
    return below(table.location, path)


class _SequentialReader(ArrowScan):
    """PyIceberg's reader of rows without its concurrency.

    PyIceberg decodes all files as fast as it can, however slowly the caller takes their rows.
    """

    def to_record_batches(self, tasks: Iterable[FileScanTask]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files, in the order of the files."""
        planned = list(tasks)
        deletes = _read_all_delete_files(self._io, planned)
        yield from self._record_batches_from_scan_tasks_and_deletes(planned, deletes)


class LedgerScan(DataScan):
    """PyIceberg's scan, with errors that name the table and, if one is damaged, the file.

    `to_pandas`, `to_polars`, `to_duckdb` and `to_ray` read through `to_arrow`.
    """

    def to_arrow(self, *args: Any, **kwargs: Any) -> pa.Table:
        """Read the rows into memory; arguments as for PyIceberg's scan.

        Raises:
            DamagedLogError: A data file, a manifest or a manifest list is damaged.
            UnsupportedError: PyIceberg cannot read the rows.
        """
        with self._reader_errors():
            return super().to_arrow(*args, **kwargs)

    # Without dictionary-encoded columns, whose types are only known from the first file's rows.
    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:  # type: ignore[override]
        """Read the rows batch by batch, one file after another; a file is opened when needed.

        Raises:
            DamagedLogError: A file is damaged; raised while batches are read.
            UnsupportedError: PyIceberg cannot read the rows; raised while batches are read.
        """
        with self._reader_errors():
            schema = schema_to_pyarrow(self.projection())
        batches = pa.RecordBatchReader.from_batches(schema, self._sequential_batches())
        return pa.RecordBatchReader.from_batches(schema, self._batches_of(batches.cast(schema)))

    def _sequential_batches(self) -> Iterator[pa.RecordBatch]:
        reader = _SequentialReader(
            self.table_metadata,
            self.io,
            self.projection(),
            self.row_filter,
            self.case_sensitive,
            self.limit,
        )
        yield from reader.to_record_batches(self.plan_files())

    def _batches_of(self, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with self._reader_errors():
            yield from batches

    @contextmanager
    def _reader_errors(self) -> Iterator[None]:
        """Convert the errors of PyIceberg and Arrow, which have no common class."""
        try:
            yield
        except (LedgerError, MemoryError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            location = self.table_metadata.location
            # An OSError without a number is Arrow's, about the content of a file.
            checks = (
                (_check_footer, _check_pages) if isinstance(error, OSError) else (_check_footer,)
            )
            damaged = self._find_damaged_file(checks)
            if damaged is not None:
                raise DamagedLogError(
                    f"file {damaged} of the table at {location} is no valid Parquet file: restore "
                    "it, or remove it from the table with delete_files",
                    damaged,
                ) from error
            reason = " ".join(str(error).split())
            raise UnsupportedError(
                f"PyIceberg {pyiceberg.__version__} cannot read the rows of the table at "
                f"{location} ({type(error).__name__}: {reason:.300}): read its files with another "
                "reader; known defects are listed in readers.md"
            ) from error

    def _find_damaged_file(self, checks: Sequence[Callable[[Any], object]]) -> str | None:
        """Return the first damaged data file; None if there is none.

        Args:
            checks: Functions that read a file and raise if it is damaged, the cheapest first.

        Raises:
            DamagedLogError: A manifest list or a manifest is damaged.
        """
        try:
            tasks = list(self.plan_files())
        except LedgerError:
            raise
        except Exception:  # noqa: BLE001 - PyIceberg's errors have no common class
            tasks = []
        # PyIceberg's decoder reads beyond the end of a cut file, and detects that only by chance.
        self._refuse_damaged_manifests()
        paths = [
            each.file.file_path for each in tasks if each.file.file_format is FileFormat.PARQUET
        ]
        return next((path for check in checks for path in paths if self._fails(path, check)), None)

    def _refuse_damaged_manifests(self) -> None:
        snapshot = self.snapshot()
        path = None if snapshot is None else snapshot.manifest_list
        if path is None:
            return
        for manifest in read_container(self._read(path), path):
            named = str(manifest["manifest_path"])
            for _ in read_container(self._read(named), named):
                pass

    def _read(self, path: str) -> bytes:
        with self.io.new_input(path).open() as body:
            return body.read()

    def _fails(self, path: str, check: Callable[[Any], object]) -> bool:
        """Return whether a data file fails a check by its content."""
        with self.io.new_input(path).open() as body:
            try:
                check(body)
            except (pa.ArrowException, OSError) as error:
                # Arrow's own errors about a file's content have no number.
                return getattr(error, "errno", None) is None
        return False


def _check_footer(body: Any) -> None:
    pq.read_metadata(body)


def _check_pages(body: Any) -> None:
    for _ in pq.ParquetFile(body).iter_batches(use_threads=False):
        pass


def with_optional_columns(metadata: TableMetadata, field_ids: Container[int]) -> TableMetadata:
    """Return metadata in which some top-level columns are nullable in every schema.

    PyIceberg rejects a file without a NOT NULL column, even if its partition has the value.
    """
    schemas = [
        Schema(
            *(
                each.model_copy(update={"required": False}) if each.field_id in field_ids else each
                for each in schema.fields
            ),
            schema_id=schema.schema_id,
            identifier_field_ids=[
                each for each in schema.identifier_field_ids if each not in field_ids
            ],
        )
        for schema in metadata.schemas
    ]
    return metadata.model_copy(update={"schemas": schemas})


_OF_THE_SAME_FILES = {"selected_fields", "case_sensitive", "options", "limit"}
_PROPERTIES = ("table_metadata", "io", "row_filter", "snapshot_id", *sorted(_OF_THE_SAME_FILES))


class RowScan(LedgerScan):
    """PyIceberg's scan over a known list of files.

    Args:
        location: The table's location.
        residuals: By the URI of each data file to read, the filter left to apply to its rows.
        doubles: By the URI of a data file, its DOUBLE partition values, by their place in its
            partition: PyIceberg reads those of manifests as FLOAT.
        scan: The arguments of PyIceberg's scan.
    """

    def __init__(
        self,
        *,
        location: str,
        residuals: Mapping[str, BooleanExpression],
        doubles: Mapping[str, Mapping[int, Any]],
        **scan: Any,
    ) -> None:
        super().__init__(**scan)
        self._location = location
        self._residuals = residuals
        self._doubles = doubles

    def plan_files(self) -> Iterable[FileScanTask]:
        """Return the files to read, each with the deletes that apply to it.

        Raises:
            DamagedLogError: The projected files differ from the ledger's plan.
        """
        everything = list(
            self._replace_scan_properties(DataScan, row_filter=AlwaysTrue()).plan_files()
        )
        found = [
            FileScanTask(each.file, each.delete_files, self._residuals[each.file.file_path])
            for each in everything
            if each.file.file_path in self._residuals
        ]
        missing = sorted(self._residuals.keys() - {each.file.file_path for each in found})
        if missing:
            listed = next((each.file.file_path for each in everything), "no file at all")
            raise DamagedLogError(
                f"{len(missing)} files of the table at {self._location} are not among its Iceberg "
                f"files, {missing[0]} for one; they list {listed}. They were projected for another "
                f"place, or changed since: remove {self._location}/metadata, then read again",
                missing[0],
            )
        for each in found:
            for place, value in self._doubles[each.file.file_path].items():
                each.file.partition[place] = value
        return found

    def filter(self, expr: str | BooleanExpression) -> RowScan:
        """Return this scan with a row filter added, over the same files."""
        also = parse(expr) if isinstance(expr, str) else expr
        narrowed = {path: e.And(each, also) for path, each in self._residuals.items()}
        row_filter = e.And(self.row_filter, also)
        scan: RowScan = self._replace_scan_properties(
            RowScan,
            location=self._location,
            row_filter=row_filter,
            residuals=narrowed,
            doubles=self._doubles,
        )
        return scan

    def update(self, **overrides: Any) -> Any:
        """Return this scan with changed properties; those that change its files go to PyIceberg."""
        if overrides.keys() <= _OF_THE_SAME_FILES:
            return self._replace_scan_properties(
                RowScan,
                location=self._location,
                residuals=self._residuals,
                doubles=self._doubles,
                **overrides,
            )
        return self._replace_scan_properties(LedgerScan, **overrides)

    def _replace_scan_properties(self, kind: Any, **overrides: Any) -> Any:
        return kind(**{**{each: getattr(self, each) for each in _PROPERTIES}, **overrides})


_MADE: dict[Op, Any] = {
    Op.LESS: e.LessThan,
    Op.AT_MOST: e.LessThanOrEqual,
    Op.GREATER: e.GreaterThan,
    Op.AT_LEAST: e.GreaterThanOrEqual,
    Op.EQUAL: e.EqualTo,
    Op.NOT_EQUAL: e.NotEqualTo,
    Op.IN: e.In,
    Op.NOT_IN: e.NotIn,
    Op.IS_NULL: e.IsNull,
    Op.NOT_NULL: e.NotNull,
    Op.IS_NAN: e.IsNaN,
    Op.NOT_NAN: e.NotNaN,
    Op.STARTS_WITH: e.StartsWith,
    Op.NOT_STARTS_WITH: e.NotStartsWith,
}

_EACH: dict[Op, tuple[Op, Any]] = {Op.IN: (Op.EQUAL, e.Or), Op.NOT_IN: (Op.NOT_EQUAL, e.And)}


def row_filter(expression: Expression, schema: Schema) -> e.BooleanExpression:
    """Convert a filter for PyIceberg; NULL matches only `is null`, as in SQL.

    Args:
        expression: The ledger's filter, bound to columns and without NOT.
        schema: PyIceberg's schema at the same instant; columns are resolved by field id.

    Example:
        >>> from pyiceberg.types import IntegerType, NestedField
        >>> from ledger.planning.expression import BoundColumn
        >>> price = Predicate(Op.LESS, BoundColumn(1, "price", t.IntType()), (5,))
        >>> row_filter(price, Schema(NestedField(1, "price", IntegerType())))
        LessThan(term=Reference(name='price'), literal=LongLiteral(5))

    Raises:
        UnsupportedError: A column name contains a dot, which PyIceberg takes for a struct's.
    """
    match expression:
        case Always(holds=holds):
            return e.AlwaysTrue() if holds else e.AlwaysFalse()
        case And(parts=parts):
            return e.And(*(row_filter(each, schema) for each in parts))
        case Or(parts=parts):
            return e.Or(*(row_filter(each, schema) for each in parts))
        case Not(part=part):
            return e.Not(row_filter(part, schema))
        case Predicate():
            return _predicate_expression(expression, schema)


def _predicate_expression(predicate: Predicate, schema: Schema) -> e.BooleanExpression:
    column, op = predicate.column, predicate.op
    name = schema.find_column_name(column.id)
    if name is not None and name.count(".") > _struct_depth(schema.accessor_for_field(column.id)):
        raise UnsupportedError(
            f"PyIceberg cannot filter by {name}, since a name in it has a dot; leave the condition "
            "out and filter the rows that come, or rename the column"
        )
    values = [_pyiceberg_literal(each, column.type) for each in predicate.values]
    made = _membership_expression(name, op, values) if op in _EACH else _MADE[op](name, *values)
    # PyIceberg alone answers for NULL differently, depending on how the file was written.
    return e.And(_MADE[Op.NOT_NULL](name), made) if op in NEGATIVE else made


def _struct_depth(accessor: Accessor) -> int:
    """Return the number of structs around a column."""
    return 0 if accessor.inner is None else 1 + _struct_depth(accessor.inner)


def _membership_expression(name: str | None, op: Op, values: Sequence[Any]) -> e.BooleanExpression:
    made: e.BooleanExpression
    if not any(isinstance(each, float) for each in values):
        made = _MADE[op](name, set(values))
        return made
    # PyIceberg distinguishes 0.0 from -0.0 in a set, but not in a single comparison.
    one, joined = _EACH[op]
    parts: list[e.BooleanExpression] = [_MADE[one](name, each) for each in values]
    made = parts[0] if len(parts) == 1 else joined(*parts)
    return made


def _pyiceberg_literal(value: Any, data_type: t.DataType) -> Any:
    """Return a value in PyIceberg's form: dates and timestamps are the same integers there."""
    match data_type:
        case t.DecimalType(scale=scale):
            return Decimal(value).scaleb(-scale, EXACT_DECIMALS)
        case t.UuidType():
            return UUID(bytes=value)
        case _:
            return value
