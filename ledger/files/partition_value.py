"""One partition value of a file to register: what its path says, what its rows say, or neither."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from ledger.files.facts import FooterColumn
from ledger.files.hive import ICEBERG_NULL
from ledger.files.partition_check import check_single_valued
from ledger.files.single_result import Unsaid, single_result
from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import PartitionValue
from ledger.model.partition import PartitionField
from ledger.model.transforms import Identity, Transform, Void, transform_of
from ledger.model.types import CharType, DataField, VarCharType


def partition_value(
    file: str,
    field: PartitionField,
    said: PartitionValue | UnsetType,
    source: DataField | None,
    stored: Mapping[int, FooterColumn],
) -> PartitionValue:
    """Return a file's value of a partition field.

    A path's value has to be that of all rows. Where the path is silent, the statistics have to
    show one value.

    Args:
        file: Its name, for errors.
        field: Of the spec that the file is written with.
        said: What its path says; UNSET for nothing.
        source: The column that the field derives from; None when it was dropped.
        stored: The file's columns by field id.

    Raises:
        InvalidChangeError: The rows have several values, or other ones than the path says, or
            nothing says the value.
    """
    transform = transform_of(field.transform)
    if source is None or isinstance(transform, Void):
        return None
    column = stored.get(source.id)
    if isinstance(transform, Identity) and not isinstance(said, UnsetType):
        if column is None:
            return said
        if said == ICEBERG_NULL and _by_statistics(column, source, transform) is None:
            return None
        check_single_valued(file, column, source, said)
        return said
    found = _by_statistics(column, source, transform)
    what = f"partition field {field.name} ({field.transform} of {source.name})"
    if found is Unsaid.SEVERAL:
        raise InvalidChangeError(
            f"file {file}: its rows have several values of {what}; split the file by it, or append "
            "a FileChange of a spec that it fits, with spec_id= and partition="
        )
    if isinstance(found, Unsaid):
        if isinstance(said, UnsetType):
            raise InvalidChangeError(
                f"file {file}: neither its statistics nor a folder {field.name}=... say its value "
                f"of {what}; write it with statistics and one value, move it into such a folder, "
                "or append a FileChange with partition="
            )
        return said
    if said not in (UNSET, found) and _has_one_escape(source):
        raise InvalidChangeError(
            f"file {file}: its path says {field.name}={said}, but by its statistics it has {found} "
            f"as {what}; move the file"
        )
    return found


def _has_one_escape(source: DataField) -> bool:
    # Formats escape texts in paths each in its own way, and only the rows tell which it was.
    return not isinstance(source.type, CharType | VarCharType)


def _by_statistics(
    column: FooterColumn | None, source: DataField, transform: Transform
) -> PartitionValue | Unsaid:
    if column is None:
        # Readers see NULL in a column that the file lacks, unless that has a default.
        absent = not isinstance(transform, Identity) and source.initial_default is None
        return None if absent else Unsaid.UNKNOWN
    if column.facts is None or column.type is None:
        return Unsaid.UNKNOWN
    return single_result(column.facts, column.type, source.type, transform)
