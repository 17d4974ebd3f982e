"""Values of personal columns that lines do not hold, so that they can be erased.

A file change says of its bounds, and of values of its partition, where they are kept: in one file
for the list that a writer commits, below the ledger's root, each under a salt of its own. Whoever
keeps something (runs, checkpoints, segments, statistics) keeps the references; whoever tells them,
or plans by them, reads what is there. Engines' metadata never has such bounds. It has the values of
partitions, as readers find no rows without, and NULL where they were erased.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from ledger.evolution.declared.personal import Marked
from ledger.log.landing import LogFile, land_own
from ledger.log.layout import STREAM_FOLDER
from ledger.log.outside.erasable import ErasableForm, newest
from ledger.log.patience import Patience
from ledger.model.errors import InvalidInputError, StoreError
from ledger.model.file_change import FileChange, PartitionValue, kept_at, placeholder
from ledger.model.iceberg.layout import PartitionSpec
from ledger.stores import Store

COLUMNS: Final = f"{STREAM_FOLDER}/personal/columns"
"""Below the root of the ledger; a folder a table."""

BOUNDS: Final = "bounds"
"""What a value is that stands for a file's two bounds; of partitions it is the transform."""

_SALT_BYTES: Final = 16
_HALF: Final = 16
_MOST: Final = 2_000
"""So many values stand in one file."""


class ValueBounds(Struct, frozen=True, omit_defaults=True):
    """The bounds of one column of a file, each in hex."""

    lower: str | None = None
    upper: str | None = None


class ColumnValue(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One value, and the salt without which nobody can guess it from its digest.

    Attributes:
        salt: 128 bits, hex.
        field_id: The column's.
        of: `bounds`, or the transform whose result it is.
        value: JSON: `ValueBounds`, or a partition's value.
    """

    salt: str
    field_id: int
    of: str = field(name="kind")
    value: str

    @property
    def digest(self) -> str:
        """What the line says of it."""
        said = f"{self.salt}\n{self.field_id}\n{self.of}\n{self.value}"
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def bounds(self) -> ValueBounds:
        """The bounds that it stands for."""
        return _BOUNDS.decode(self.value)

    @property
    def partition(self) -> PartitionValue:
        """The partition's value that it is."""
        value: PartitionValue = _VALUE.decode(self.value)
        return value


class ColumnValues(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a file holds.

    Attributes:
        time_millis: When it was written, by its writer's clock; Unix milliseconds.
        values: By digest; one that is not there was erased.
    """

    time_millis: int
    values: dict[str, ColumnValue]


_BOUNDS: Final = msgspec.json.Decoder(ValueBounds)
_VALUE: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(str | int | bool | None)
_FORM: Final = ErasableForm(ColumnValues, "values of columns")
encoded: Final = _FORM.encoded
decoded: Final = _FORM.decoded


def folder_of(table_id: str) -> str:
    """Return the folder with the values of a table.

    Example:
        >>> folder_of("8c9d")
        '_ledger/personal/columns/4653dfc955a062e8'
    """
    return f"{COLUMNS}/{hashlib.sha256(table_id.encode()).hexdigest()[:_HALF]}"


def key_of(reference: str) -> str:
    """Return the key of the file that a reference names."""
    name = reference.partition(":")[0]
    return f"{COLUMNS}/{name[:_HALF]}/{name}.json"


def references(files: Iterable[FileChange]) -> set[str]:
    """Return where files say that values of theirs are kept."""
    found: set[str] = set()
    for each in files:
        if isinstance(each.sidecar, dict):
            found.update(each.sidecar.values())
            found.update(at for value in each.partition if (at := kept_at(value)) is not None)
    return found


class Writing(Struct, frozen=True):
    """Who writes values: for which table, when, and how long he goes on.

    Attributes:
        table_id: The table's.
        now_millis: Unix milliseconds.
        patience: How long.
    """

    table_id: str
    now_millis: int
    patience: Patience


class PersonalColumns(Struct, frozen=True):
    """The values of a ledger's personal columns.

    Attributes:
        store: The ledger's own, also for tables that lie elsewhere.
    """

    store: Store

    def keep(
        self,
        files: Sequence[FileChange],
        marked: Marked,
        spec: Callable[[int], PartitionSpec],
        writing: Writing,
    ) -> tuple[FileChange, ...]:
        """Write the personal values of files; return the files as lines may hold them.

        Raises:
            StoreError: The store refuses, gave no answer, or has another file there; nothing was
                committed.
        """
        sealing = _Sealing(marked, spec, folder_of(writing.table_id).rpartition("/")[2])
        sealed = tuple(map(sealing.sealed, files))
        for name, values in sealing.files.items():
            body = encoded(ColumnValues(writing.now_millis, values))
            file = LogFile(key_of(name), body, 0)
            land_own(self.store, file, writing.patience, "values of personal columns")
        return sealed

    def opened(self, files: Iterable[FileChange]) -> list[FileChange]:
        """Return files with the values that are kept of them.

        Bounds that were erased are absent, and a partition's value is a reference still: nobody
        knows anything of it.
        """
        listed = list(files)
        if not any(map(_has_sidecar, listed)):
            # Most tables have no such column.
            return listed
        found = self._found(listed)
        return [_opened(each, found) for each in listed]

    def unbounded(self, files: Iterable[FileChange]) -> list[FileChange]:
        """Return files without bounds of personal columns, and with the values of partitions.

        A value that was erased is a reference still: nobody knows anything of it.
        """
        listed = list(files)
        found = self._found(replace(each, sidecar={}) for each in listed if _has_sidecar(each))
        return [_unbounded(each, found) for each in listed]

    def rendered(self, files: Iterable[FileChange]) -> list[FileChange]:
        """Return files as engines may be told of them: without bounds of personal columns.

        Values of partitions are there, and NULL where they were erased.
        """
        return [_with_nulls(each) for each in self.unbounded(files)]

    def values(self, partitions: Iterable[str]) -> dict[str, PartitionValue]:
        """Return what is kept of partitions' values, by reference."""
        return {at: value.partition for at, value in self._read(set(partitions)).items()}

    def _found(self, files: Iterable[FileChange]) -> Mapping[str, ColumnValue]:
        return self._read(references(files))

    def _read(self, wanted: set[str]) -> Mapping[str, ColumnValue]:
        if not wanted:
            return {}
        keys = sorted({key_of(each) for each in wanted})
        there: dict[str, ColumnValues] = {}
        for key, body in zip(keys, newest(self.store, keys), strict=True):
            if body is not None:
                there[key] = decoded(body, key)
        found: dict[str, ColumnValue] = {}
        for each in wanted:
            values = there.get(key_of(each))
            digest = each.partition(":")[2]
            value = None if values is None else values.values.get(digest)
            # What is not what the line says is told as erased; verify says more.
            if value is not None and value.digest == digest:
                found[each] = value
        return found


class Keeping(Struct, frozen=True, eq=False):
    """What one request for a commit keeps, as often as it is planned.

    Attributes:
        columns: Where.
        keys: The files that were written.
    """

    columns: PersonalColumns
    keys: set[str] = set()

    def keep(
        self,
        files: Sequence[FileChange],
        marked: Marked,
        spec: Callable[[int], PartitionSpec],
        writing: Writing,
    ) -> tuple[FileChange, ...]:
        """Do what `PersonalColumns.keep` does."""
        sealed = self.columns.keep(files, marked, spec, writing)
        self.keys.update(map(key_of, references(sealed) - references(files)))
        return sealed

    def forget(self, named: Iterable[FileChange] = ()) -> None:
        """Take away what files of a commit do not name, best effort; `maintain` finds the rest."""
        for key in self.keys - set(map(key_of, references(named))) if self.keys else ():
            with suppress(OSError, StoreError):
                self.columns.store.delete(key)


def _has_sidecar(file: FileChange) -> bool:
    return isinstance(file.sidecar, dict)


def _opened(file: FileChange, found: Mapping[str, ColumnValue]) -> FileChange:
    if not isinstance(file.sidecar, dict):
        return file
    lower, upper = ({**each} if isinstance(each, dict) else {} for each in _bounds_of(file))
    for field_id, at in file.sidecar.items():
        value = found.get(at)
        bounds = ValueBounds() if value is None else value.bounds
        for kept, bound in ((lower, bounds.lower), (upper, bounds.upper)):
            if bound is not None:
                kept[field_id] = bound
    return replace(
        file,
        lower_bounds=dict(sorted(lower.items())) or UNSET,
        upper_bounds=dict(sorted(upper.items())) or UNSET,
        partition=tuple(_value(each, found) for each in file.partition),
        sidecar=UNSET,
    )


def _unbounded(file: FileChange, found: Mapping[str, ColumnValue]) -> FileChange:
    if not _has_sidecar(file):
        return file
    partition = tuple(_value(each, found) for each in file.partition)
    return replace(file, partition=partition, sidecar=UNSET)


def _with_nulls(file: FileChange) -> FileChange:
    if not is_unknown(file):
        return file
    partition = (None if kept_at(each) is not None else each for each in file.partition)
    return replace(file, partition=tuple(partition))


def is_unknown(file: FileChange) -> bool:
    """Whether a value of a file's partition was erased, once those that are kept stand in it."""
    return any(kept_at(each) is not None for each in file.partition)


def _value(value: PartitionValue, found: Mapping[str, ColumnValue]) -> PartitionValue:
    at = kept_at(value)
    return found[at].partition if at is not None and at in found else value


def _bounds_of(file: FileChange) -> tuple[Any, Any]:
    return file.lower_bounds, file.upper_bounds


class _Sealing(Struct, frozen=True):
    """Files of one list on their way, and what is kept of them.

    Attributes:
        files: What is to be written: values by digest, by the file's name.
    """

    marked: Marked
    spec: Callable[[int], PartitionSpec]
    folder: str
    files: dict[str, dict[str, ColumnValue]] = {}
    _partitions: dict[tuple[int, str, str], str] = {}

    def sealed(self, file: FileChange) -> FileChange:
        """Return a file as a line may hold it."""
        if _has_sidecar(file):
            # It was in the table before, and is as it came.
            return file
        if any(kept_at(each) is not None for each in file.partition):
            raise InvalidInputError(
                f"file {file.path} has a partition value that was erased, or that stands for one "
                "which is kept elsewhere; give the value itself"
            )
        if not self.marked.exposed(file, self.spec(file.spec_id)):
            return file
        lower, upper = ({**each} if isinstance(each, dict) else {} for each in _bounds_of(file))
        sidecar: dict[int, str] = {}
        for field_id in sorted({*lower, *upper}):
            if field_id in self.marked:
                bounds = ValueBounds(lower.pop(field_id, None), upper.pop(field_id, None))
                sidecar[field_id] = self._kept(field_id, BOUNDS, bounds)
        partition = [*file.partition]
        for place, each in self.marked.partitions(self.spec(file.spec_id)):
            if partition[place] is not None:
                at = self._of_partition(each.source_id, each.transform, partition[place])
                partition[place] = placeholder(at)
        return replace(
            file,
            lower_bounds=lower or UNSET,
            upper_bounds=upper or UNSET,
            partition=tuple(partition),
            sidecar=sidecar,
        )

    def _of_partition(self, field_id: int, transform: str, value: PartitionValue) -> str:
        """Return where a value is kept; once for all files of the list that have it."""
        key = field_id, transform, msgspec.json.encode(value).decode()
        if key not in self._partitions:
            self._partitions[key] = self._kept(field_id, transform, value)
        return self._partitions[key]

    def _kept(self, field_id: int, of: str, value: ValueBounds | PartitionValue) -> str:
        text = msgspec.json.encode(value).decode()
        kept = ColumnValue(os.urandom(_SALT_BYTES).hex(), field_id, of, text)
        name = next(reversed(self.files), "")
        if not name or len(self.files[name]) >= _MOST:
            name = self.folder + os.urandom(_HALF // 2).hex()
            self.files[name] = {}
        self.files[name][kept.digest] = kept
        return f"{name}:{kept.digest}"
