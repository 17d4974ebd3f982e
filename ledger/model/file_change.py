"""FileChange: one data file that a snapshot adds or removes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from msgspec.json import Decoder, decode
from msgspec.structs import fields

PartitionValue = str | int | bool | None
"""A partition value in JSON form: numbers and booleans as such, everything else as text.

Dates are `2013-01-01`, timestamps ISO 8601, decimals and floats their decimal text, so that no
floating-point number is in hashed bytes.
"""

_PLACEHOLDER: Final = re.compile(r"sidecar:[0-9a-f]{32}:[0-9a-f]{64}")


def personal_placeholder(reference: str) -> str:
    """Return the partition value that replaces a personal column's value.

    Args:
        reference: The value's location in a sidecar file, `<file>:<digest>`.
    """
    return f"sidecar:{reference}"


def sidecar_location_of(value: PartitionValue) -> str | None:
    """Return the sidecar location that a placeholder refers to; None for an ordinary value.

    Example:
        >>> (
        ...     sidecar_location_of("2024-01-01"),
        ...     sidecar_location_of(personal_placeholder(f"{32 * '0'}:{64 * 'f'}")) is None,
        ... )
        (None, False)
    """
    if not isinstance(value, str) or _PLACEHOLDER.fullmatch(value) is None:
        return None
    return value.removeprefix("sidecar:")


class FileChange(
    Struct,
    frozen=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    forbid_unknown_fields=True,
):
    """A data file added to or removed from a table, as commits and change files record it.

    Attributes:
        kind: ADD or DELETE.
        path: Relative to the table's location, or absolute for a file outside of it.
        partition: One value for each field of the spec `spec_id`, in the spec's order.
        schema_id: The schema whose column names the file uses, except for `column_names`.
        record_count: Rows.
        file_size_in_bytes: Bytes.
        creation_time: Unix time in milliseconds.
        format: `parquet`, `orc` or `avro`; of a deletion vector `puffin`.
        content: `data`, `position-deletes` or `equality-deletes`.
        spec_id: The partition spec that it was written with.
        bucket: Paimon's bucket; 0 for append tables.
        level: Paimon's level; 0 for append tables.
        field_ids: True if the file carries this table's field ids.
        value_counts: Values by field id, nulls included.
        null_value_counts: Nulls by field id.
        lower_bounds: By field id, hex of Iceberg's single-value bytes.
        upper_bounds: As `lower_bounds`.
        first_row_id: Id of the first row, in tables with row tracking; the other ids follow it.
        extra_files: Files that belong to it (Paimon's indexes).
        sort_order_id: The sort order that its rows are in; one of the table's.
        equality_ids: Of equality deletes: the columns that they compare, by field id.
        referenced_data_file: Path of the one data file that position deletes apply to, as `path`.
        content_offset: Of a deletion vector: its byte offset in its Puffin file; its `path` is that
            file's, followed by `#` and this number.
        content_size_in_bytes: Of a deletion vector: its length.
        column_names: Names of columns in the file, by field id, where they differ from those of
            the schema: Delta finds a renamed column by the name that it has in older files.
        sidecar: Locations of personal columns' bounds in sidecar files, by field id,
            `<file>:<digest>`; empty if only partition values are in a sidecar file.
    """

    kind: Literal["ADD", "DELETE"] = "ADD"
    path: str
    partition: tuple[PartitionValue, ...] = ()
    schema_id: int = 0
    record_count: int
    file_size_in_bytes: int
    creation_time: int = 0
    format: str = "parquet"
    content: str = "data"
    spec_id: int = 0
    bucket: int = 0
    level: int = 0
    field_ids: bool = False
    value_counts: dict[int, int] | UnsetType = UNSET
    null_value_counts: dict[int, int] | UnsetType = UNSET
    lower_bounds: dict[int, str] | UnsetType = UNSET
    upper_bounds: dict[int, str] | UnsetType = UNSET
    first_row_id: int | UnsetType = UNSET
    extra_files: tuple[str, ...] | UnsetType = UNSET
    sidecar: dict[int, str] | UnsetType = UNSET
    sort_order_id: int | UnsetType = UNSET
    equality_ids: tuple[int, ...] | UnsetType = UNSET
    referenced_data_file: str | UnsetType = UNSET
    content_offset: int | UnsetType = UNSET
    content_size_in_bytes: int | UnsetType = UNSET
    column_names: dict[int, str] | UnsetType = UNSET

    if TYPE_CHECKING:
        # A list of files is converted when it is committed, so that any sequence will do.
        def __init__(  # noqa: PLR0913 - one parameter a field
            self,
            *,
            kind: Literal["ADD", "DELETE"] = "ADD",
            path: str,
            partition: Sequence[PartitionValue] = (),
            schema_id: int = 0,
            record_count: int,
            file_size_in_bytes: int,
            creation_time: int = 0,
            format: str = "parquet",  # noqa: A002 - the field's name
            content: str = "data",
            spec_id: int = 0,
            bucket: int = 0,
            level: int = 0,
            field_ids: bool = False,
            value_counts: Mapping[int, int] | UnsetType = UNSET,
            null_value_counts: Mapping[int, int] | UnsetType = UNSET,
            lower_bounds: Mapping[int, str] | UnsetType = UNSET,
            upper_bounds: Mapping[int, str] | UnsetType = UNSET,
            first_row_id: int | UnsetType = UNSET,
            extra_files: Sequence[str] | UnsetType = UNSET,
            sidecar: Mapping[int, str] | UnsetType = UNSET,
            sort_order_id: int | UnsetType = UNSET,
            equality_ids: Sequence[int] | UnsetType = UNSET,
            referenced_data_file: str | UnsetType = UNSET,
            content_offset: int | UnsetType = UNSET,
            content_size_in_bytes: int | UnsetType = UNSET,
            column_names: Mapping[int, str] | UnsetType = UNSET,
        ) -> None: ...

    @property
    def is_vector(self) -> bool:
        """True for a deletion vector, which shares a Puffin file with others."""
        return self.content == "position-deletes" and self.format.lower() == "puffin"

    @property
    def stored_at(self) -> str:
        """The path of the file that stores it; several deletion vectors may share that file.

        Example:
            >>> vector = FileChange(
            ...     path="a.puffin#4", content_offset=4, record_count=1, file_size_in_bytes=99
            ... )
            >>> vector.stored_at
            'a.puffin'
        """
        if isinstance(self.content_offset, UnsetType):
            return self.path
        return self.path.removesuffix(f"#{self.content_offset}")


RARE_FACTS: Final = (
    "sort_order_id",
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
    "column_names",
)
"""Optional attributes that few file changes have."""

_rare_facts = attrgetter(*RARE_FACTS)
_SAYS_NONE: Final = (UNSET,) * len(RARE_FACTS)


def has_rare_facts(files: Iterable[FileChange]) -> bool:
    """Return True if any of the file changes sets one of `RARE_FACTS`.

    Example:
        >>> has_rare_facts([FileChange(path="a", record_count=1, file_size_in_bytes=9)])
        False
    """
    return any(_rare_facts(each) != _SAYS_NONE for each in files)


_DECODER = Decoder(tuple[FileChange, ...])


def inline_files(files: Raw) -> tuple[FileChange, ...]:
    """Return the file changes listed inside an event, decoded from JSON.

    Raises:
        msgspec.DecodeError: The JSON is not a list of file changes.
        RecursionError: They nest too deep.

    Example:
        >>> inline_files(Raw(b""))
        ()
    """
    try:
        return _DECODER.decode(files) if memoryview(files).nbytes else ()
    except UnicodeDecodeError as error:
        raise DecodeError(f"they are not UTF-8: {error}") from error


_KEYS: Final = frozenset(each.encode_name for each in fields(FileChange))


def find_unknown_key(files: Raw) -> str | None:
    """Return the first key in a JSON list of file changes that is unknown; None without one.

    Example:
        >>> find_unknown_key(Raw(b'[{"path":"a"},{"rows":1}]'))
        'rows'
    """
    try:
        found = decode(files)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    listed = (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
    return next((key for each in listed for key in each if key not in _KEYS), None)


_ALL = Decoder(list[tuple[FileChange, ...]])


def inline_files_of_all(lists: Sequence[Raw]) -> list[tuple[FileChange, ...]] | None:
    """Return the file changes of several events, each as `inline_files` returns them.

    None if they cannot be decoded together; call `inline_files` for each then.

    Example:
        >>> inline_files_of_all([Raw(b""), Raw(b"[]")]), inline_files_of_all([Raw(b"[[]]")])
        ([(), ()], None)
    """
    bodies = [bytes(each) or b"[]" for each in lists]
    try:
        found = _ALL.decode(b"[%b]" % b",".join(bodies))
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if len(found) == len(lists) else None


def as_files(files: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return files as a tuple."""
    return tuple(files)
