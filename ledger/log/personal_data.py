"""Personal data in sidecar files: commit texts and column values.

Each transaction of an erasable stream has a sidecar file below the ledger's root, written before
the commit, which names its values by salted digests. Erasing removes a value from its sidecar file;
the file stays. No other file of the ledger contains the values: not the log, no checkpoint, no
segment, no projection.

Personal bounds and partition values of file changes are kept in sidecar files as well: one file for
each list that a writer commits, below the ledger's root, each value with its own salt. Runs,
checkpoints, segments and statistics contain references to them; readers and planners resolve the
references. Engines' metadata never contains such bounds. It contains partition values, since
readers find no rows without them, and NULL where they were erased.

An erasure writes the remaining values as the file's next generation, by a conditional create, which
only one of several erasers wins; then it replaces the file by a fixed marker that a next generation
exists. So no store needs a conditional replace, and no erased value reappears.

Each step is durable before the next one begins: the next generation before its predecessor is
replaced, and the replacement before the erasure is acknowledged. A power loss in between leaves
either the whole old file or the whole next one, and a retry completes the erasure.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from attrs import evolve
from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from ledger.decide.table_options import MarkedColumns
from ledger.events.commit import OUTSIDE, Commit, Outside, Transaction
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import LogFile, Request, RetryPolicy, create_unique_file
from ledger.model.errors import DamagedLogError, InvalidInputError, StoreError
from ledger.model.file_change import (
    FileChange,
    PartitionValue,
    personal_placeholder,
    sidecar_location_of,
)
from ledger.model.iceberg_layout import PartitionSpec
from ledger.stores import Store
from ledger.stores.base import folder_of as key_folder_of

V = TypeVar("V")

NEXT: Final = b'{"next":true}\n'
"""Content of a sidecar file that its next generation has replaced."""

_GENERATION: Final = re.compile(r"\.([1-9][0-9]*)\.json$")


class SidecarCodec(Generic[V]):
    """Codec of a kind of sidecar file.

    Args:
        values: The class of its content.
        called: Description of the content, for error messages.
    """

    def __init__(self, values: type[V], called: str) -> None:
        self._decoder = msgspec.json.Decoder(values)
        self._called = called

    def encoded(self, values: V) -> bytes:
        """Return the bytes of a file with this content."""
        return msgspec.json.encode(values) + b"\n"

    def decoded(self, body: bytes, key: str) -> V:
        """Return the content of a file.

        Raises:
            DamagedLogError: The bytes are not a file of this kind.
        """
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedLogError(f"{key} holds no {self._called}: {error}", key) from error


def next_generation_key(key: str) -> str:
    """Return the key of a file's next generation.

    Example:
        >>> next_generation_key("a/b.json"), next_generation_key("a/b.9.json")
        ('a/b.1.json', 'a/b.10.json')
    """
    found = _GENERATION.search(key)
    number = 1 if found is None else int(found[1]) + 1
    return f"{first(key).removesuffix('.json')}.{number}.json"


def first(key: str) -> str:
    """Return the key of a file's first generation, from before any erasure.

    Example:
        >>> first("a/b.10.json"), first("a/b.json")
        ('a/b.json', 'a/b.json')
    """
    return _GENERATION.sub(".json", key)


def newest(store: Store, keys: Sequence[str]) -> list[bytes | None]:
    """Return the newest generation of each file; None for one that is missing.

    Args:
        store: The ledger's store.
        keys: Keys of the files' first generations.
    """
    found: list[bytes | None] = list(store.read_many(keys))
    at = {place: keys[place] for place, body in enumerate(found) if body == NEXT}
    while at:
        at = {place: next_generation_key(key) for place, key in at.items()}
        bodies = list(store.read_many(list(at.values())))
        for place, body in zip(at, bodies, strict=True):
            found[place] = body
        at = {place: key for place, key in at.items() if found[place] == NEXT}
    return found


def confirm_folders(store: Store, keys: Iterable[str]) -> None:
    """Make creations, replacements and deletions in the folders of these keys durable.

    An eraser that was killed may have replaced a file without an fsync of its folder, and the retry
    finds nothing left to do there.

    Raises:
        OSError: The store failed.
    """
    for key in {key_folder_of(each): each for each in keys}.values():
        store.confirm(key)


def erase_content(store: Store, key: str, smaller: Callable[[bytes], bytes | None]) -> None:
    """Erase content of a sidecar file; a retry completes an interrupted erasure.

    Args:
        store: The ledger's store.
        key: The key of the file's first generation.
        smaller: Returns the remaining body; None if there is nothing to erase in it.

    Raises:
        OSError: The store failed.
    """
    body = store.read(key)
    while body is not None:
        after = next_generation_key(key)
        if body != NEXT:
            less = smaller(body)
            if less is None:
                return
            if not store.create(after, less):
                # Another eraser created it and erased other values; continue with its file.
                store.confirm(after)
            store.replace_durably(key, NEXT)
        key, body = after, store.read(after)


E = TypeVar("E")

FOLDER: Final = f"{STREAM_FOLDER}/personal"
"""Folder of the texts of transactions, below the ledger's root, for all of its streams."""

ERASED: Final = "erased"
"""Text that readers get in place of an erased value."""

Field = Literal["author", "message", "properties"]
FIELDS: Final[tuple[Field, ...]] = ("author", "message", "properties")

_SALT_BYTES: Final = 16
_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_MANY: Final = 256


class SaltedText(Struct, frozen=True, forbid_unknown_fields=True):
    """A text with a salt, without which it could be guessed from its digest.

    Attributes:
        salt: 128 bits, hex.
        value: The text; for properties, their JSON.
    """

    salt: str
    value: str

    def digest(self, field: str) -> str:
        """Return the digest by which the commit names it."""
        said = f"{self.salt}\n{field}\n{self.value}"
        return hashlib.sha256(said.encode()).hexdigest()


class Values(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Content of the sidecar file of a transaction.

    Attributes:
        time_millis: Time of writing by the writer's clock, Unix milliseconds.
        author: The author; None if empty or erased.
        message: The message; None likewise.
        properties: The properties; None likewise.
    """

    time_millis: int
    author: SaltedText | None = None
    message: SaltedText | None = None
    properties: SaltedText | None = None

    def get(self, field: Field) -> SaltedText | None:
        """Return the value of a field."""
        found: SaltedText | None = getattr(self, field)
        return found

    def without(self, fields: Iterable[Field]) -> Values:
        """Return a copy without these fields."""
        return replace(self, **dict.fromkeys(fields, None))


_FORM: Final = SidecarCodec(Values, "values of a transaction")
encoded: Final = _FORM.encoded
decoded: Final = _FORM.decoded


def key_of(outside: Outside) -> str | None:
    """Return the key of a transaction's sidecar file; None if it has none.

    The file is named by the digest of its first value.

    Example:
        >>> key_of(Outside(message="9f86d0"))
        '_ledger/personal/9f/9f86d0.json'
    """
    for each in FIELDS:
        digest = getattr(outside, each)
        if digest is not UNSET:
            return f"{FOLDER}/{digest[:2]}/{digest}.json"
    return None


class SidecarTexts(Struct, frozen=True):
    """The texts of a transaction to be written: digests for the commit, and the sidecar file.

    Attributes:
        outside: The digests.
        key: The file's key; None if all texts are empty.
        body: The file's bytes.
    """

    outside: Outside
    key: str | None
    body: bytes

    @classmethod
    def of(cls, request: Request, now_millis: int) -> SidecarTexts:
        """Return the author, message and properties of a request, each with a new salt."""
        texts: dict[Field, str] = {"author": request.author, "message": request.message}
        if request.properties:
            properties = dict(sorted(request.properties.items()))
            texts["properties"] = msgspec.json.encode(properties).decode()
        values = {
            field: SaltedText(os.urandom(_SALT_BYTES).hex(), text)
            for field, text in texts.items()
            if text
        }
        outside = Outside(**{field: each.digest(field) for field, each in values.items()})
        body = encoded(Values(now_millis, **values))
        return cls(outside, key_of(outside), body)


class PersonalSidecars(Struct, frozen=True):
    """Sidecar files with the authors, messages and properties of a ledger's transactions.

    Attributes:
        store: The ledger's store, also for external tables.
    """

    store: Store

    @property
    def columns(self) -> PersonalColumns:
        """The values of personal columns."""
        return PersonalColumns(self.store)

    def keep(self, request: Request, now_millis: int, retry_policy: RetryPolicy) -> SidecarTexts:
        """Write the sidecar file of a request, and return its digests for the commit.

        Raises:
            StoreError: The store rejects the file, gave no answer, or has another file under its
                key; nothing was committed.
        """
        kept = SidecarTexts.of(request, now_millis)
        if kept.key is not None:
            file = LogFile(kept.key, kept.body, 0)
            create_unique_file(self.store, file, retry_policy, "author and message")
        return kept

    def forget(self, kept: SidecarTexts) -> None:
        """Delete a sidecar file that no commit names, best effort; `maintain` finds the rest."""
        if kept.key is not None:
            with suppress(OSError, StoreError):
                self.store.delete(kept.key)

    def resolve(self, commits: Sequence[Commit[E]]) -> list[Commit[E]]:
        """Return commits with the texts from their sidecar files; `ERASED` for erased ones."""
        wanted = [
            outside
            for commit in commits
            for transaction in commit.transactions
            if (outside := transaction.outside) is not UNSET
        ]
        if not wanted:
            return list(commits)
        found = self._read_sidecars(wanted)
        return [
            replace(
                commit,
                transactions=tuple(_resolve_texts(each, found) for each in commit.transactions),
            )
            for commit in commits
        ]

    def resolve_each(self, commits: Iterable[Commit[E]]) -> Iterator[Commit[E]]:
        """Yield many commits as `resolve` returns them, reading up to `_MANY` commits at a time."""
        some: list[Commit[E]] = []
        for commit in commits:
            if not some and all(each.outside is UNSET for each in commit.transactions):
                yield commit
                continue
            some.append(commit)
            if len(some) == _MANY:
                yield from self.resolve(some)
                some.clear()
        yield from self.resolve(some)

    def transaction(self, transaction: Transaction[E]) -> Transaction[E]:
        """Return a transaction with the texts from its sidecar file; `ERASED` for erased ones."""
        if transaction.outside is UNSET:
            return transaction
        return _resolve_texts(transaction, self._read_sidecars([transaction.outside]))

    def name(self, said: str) -> str:
        """Return the author's name for a value of `created_by` or `updated_by` in a state.

        The value is the name itself, or a reference to a sidecar file.
        """
        if not said.startswith(OUTSIDE):
            return said
        outside = Outside(author=said.removeprefix(OUTSIDE))
        return _verified_text(outside, "author", self._read_sidecars([outside]))

    def named(self, state: Any) -> Any:
        """Return a state, or a part of one, with the names of `created_by` and `updated_by`."""
        names = {"created_by": state.created_by, "updated_by": state.updated_by}
        if not any(each.startswith(OUTSIDE) for each in names.values()):
            return state
        return evolve(state, **{key: self.name(each) for key, each in names.items()})

    def _read_sidecars(self, wanted: Iterable[Outside]) -> Mapping[str, Values]:
        keys = [*dict.fromkeys(key for each in wanted if (key := key_of(each)) is not None)]
        found: dict[str, Values] = {}
        for key, body in zip(keys, newest(self.store, keys), strict=True):
            if body is not None:
                with suppress(DamagedLogError):
                    found[key] = decoded(body, key)
        return found


def _resolve_texts(transaction: Transaction[E], found: Mapping[str, Values]) -> Transaction[E]:
    outside = transaction.outside
    if outside is UNSET:
        return transaction
    properties: dict[str, str] = {}
    if outside.properties is not UNSET:
        text = _verified_text(outside, "properties", found)
        properties = {ERASED: ""} if text == ERASED else _TEXTS.decode(text)
    return replace(
        transaction,
        author=_verified_text(outside, "author", found),
        message=_verified_text(outside, "message", found),
        properties=properties,
        outside=UNSET,
    )


def _verified_text(outside: Outside, field: Field, found: Mapping[str, Values]) -> str:
    """Return a text; `ERASED` if it is missing or does not match the digest in the commit."""
    digest, key = getattr(outside, field), key_of(outside)
    if digest is UNSET or key is None:
        return ""
    values = found.get(key)
    value = None if values is None else values.get(field)
    return value.value if value is not None and value.digest(field) == digest else ERASED


COLUMNS: Final = f"{STREAM_FOLDER}/personal/columns"
"""Folder of values of personal columns, below the ledger's root; a subfolder for each table."""

BOUNDS: Final = "bounds"
"""Kind of a `ColumnValue` with a file's bounds; of a partition value it is the transform."""

_HALF: Final = 16
_MOST: Final = 2_000
"""Number of values in a sidecar file, at most."""


class ValueBounds(Struct, frozen=True, omit_defaults=True):
    """Lower and upper bound of a column in a data file, in hex."""

    lower: str | None = None
    upper: str | None = None


class ColumnValue(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A personal column's value with a salt, without which it could be guessed from its digest.

    Attributes:
        salt: 128 bits, hex.
        field_id: The column's field id.
        of: `bounds`, or the partition transform whose result it is.
        value: JSON: `ValueBounds`, or a partition value.
    """

    salt: str
    field_id: int
    of: str = field(name="kind")
    value: str

    @property
    def digest(self) -> str:
        """Digest by which the file change in the log names it."""
        said = f"{self.salt}\n{self.field_id}\n{self.of}\n{self.value}"
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def bounds(self) -> ValueBounds:
        """The bounds in it, if it is of that kind."""
        return _BOUNDS.decode(self.value)

    @property
    def partition(self) -> PartitionValue:
        """The partition value in it, if it is of that kind."""
        value: PartitionValue = _VALUE.decode(self.value)
        return value


class ColumnValues(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Content of a sidecar file of personal columns.

    Attributes:
        time_millis: Time of writing by the writer's clock, Unix milliseconds.
        values: Values by digest; a missing one was erased.
    """

    time_millis: int
    values: dict[str, ColumnValue]


_BOUNDS: Final = msgspec.json.Decoder(ValueBounds)
_VALUE: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(str | int | bool | None)
_VALUES_FORM: Final = SidecarCodec(ColumnValues, "values of columns")
encode_values: Final = _VALUES_FORM.encoded
decode_values: Final = _VALUES_FORM.decoded


def folder_of(table_id: str) -> str:
    """Return the folder of the column values of a table.

    Example:
        >>> folder_of("8c9d")
        '_ledger/personal/columns/4653dfc955a062e8'
    """
    return f"{COLUMNS}/{hashlib.sha256(table_id.encode()).hexdigest()[:_HALF]}"


def key_of_values(reference: str) -> str:
    """Return the key of the sidecar file that a reference names."""
    name = reference.partition(":")[0]
    return f"{COLUMNS}/{name[:_HALF]}/{name}.json"


def references(files: Iterable[FileChange]) -> set[str]:
    """Return the references to column values in file changes."""
    found: set[str] = set()
    for each in files:
        if isinstance(each.sidecar, dict):
            found.update(each.sidecar.values())
            found.update(
                at for value in each.partition if (at := sidecar_location_of(value)) is not None
            )
    return found


class WriteContext(Struct, frozen=True):
    """Context of writing column values.

    Attributes:
        table_id: The table's id.
        now_millis: The current time, Unix milliseconds.
        retry_policy: The retry policy.
    """

    table_id: str
    now_millis: int
    retry_policy: RetryPolicy


class PersonalColumns(Struct, frozen=True):
    """Sidecar files with the values of a ledger's personal columns.

    Attributes:
        store: The ledger's store, also for external tables.
    """

    store: Store

    def keep(
        self,
        files: Sequence[FileChange],
        marked: MarkedColumns,
        spec: Callable[[int], PartitionSpec],
        writing: WriteContext,
    ) -> tuple[FileChange, ...]:
        """Move personal values of file changes to sidecar files; return them with references.

        Raises:
            StoreError: The store rejects a file, gave no answer, or has another file under its
                key; nothing was committed.
        """
        sealing = _ValueReplacement(marked, spec, folder_of(writing.table_id).rpartition("/")[2])
        sealed = tuple(map(sealing.sealed, files))
        for name, values in sealing.files.items():
            body = encode_values(ColumnValues(writing.now_millis, values))
            file = LogFile(key_of_values(name), body, 0)
            create_unique_file(self.store, file, writing.retry_policy, "values of personal columns")
        return sealed

    def opened(self, files: Iterable[FileChange]) -> list[FileChange]:
        """Return file changes with their references resolved.

        Erased bounds are absent; an erased partition value is still a reference, as its value is
        unknown.
        """
        listed = list(files)
        if not any(map(_has_sidecar, listed)):
            # Most tables have no such column.
            return listed
        found = self._read_referenced_values(listed)
        return [_resolve_file(each, found) for each in listed]

    def without_personal_bounds(self, files: Iterable[FileChange]) -> list[FileChange]:
        """Return file changes without personal bounds, and with partition values resolved.

        An erased partition value is still a reference, as its value is unknown.
        """
        listed = list(files)
        found = self._read_referenced_values(
            replace(each, sidecar={}) for each in listed if _has_sidecar(each)
        )
        return [_without_bounds(each, found) for each in listed]

    def rendered(self, files: Iterable[FileChange]) -> list[FileChange]:
        """Return file changes for engines' metadata: without bounds of personal columns.

        Partition values are resolved, and NULL where they were erased.
        """
        return [_null_erased_partition(each) for each in self.without_personal_bounds(files)]

    def values(self, partitions: Iterable[str]) -> dict[str, PartitionValue]:
        """Return partition values by reference; erased ones are missing."""
        return {at: value.partition for at, value in self._read_sidecars(set(partitions)).items()}

    def _read_referenced_values(self, files: Iterable[FileChange]) -> Mapping[str, ColumnValue]:
        return self._read_sidecars(references(files))

    def _read_sidecars(self, wanted: set[str]) -> Mapping[str, ColumnValue]:
        if not wanted:
            return {}
        keys = sorted({key_of_values(each) for each in wanted})
        there: dict[str, ColumnValues] = {}
        for key, body in zip(keys, newest(self.store, keys), strict=True):
            if body is not None:
                there[key] = decode_values(body, key)
        found: dict[str, ColumnValue] = {}
        for each in wanted:
            values = there.get(key_of_values(each))
            digest = each.partition(":")[2]
            value = None if values is None else values.values.get(digest)
            # A value that does not match its digest counts as erased; `verify` reports it.
            if value is not None and value.digest == digest:
                found[each] = value
        return found


class SidecarWriter(Struct, frozen=True, eq=False):
    """Column values that one commit request writes, over all attempts to plan it.

    Attributes:
        columns: The sidecar files.
        keys: Keys of the files that were written.
    """

    columns: PersonalColumns
    keys: set[str] = set()

    def keep(
        self,
        files: Sequence[FileChange],
        marked: MarkedColumns,
        spec: Callable[[int], PartitionSpec],
        writing: WriteContext,
    ) -> tuple[FileChange, ...]:
        """Do the same as `PersonalColumns.keep`, and record the files written."""
        sealed = self.columns.keep(files, marked, spec, writing)
        self.keys.update(map(key_of_values, references(sealed) - references(files)))
        return sealed

    def forget(self, named: Iterable[FileChange] = ()) -> None:
        """Delete written files that the commit does not name, best effort.

        `maintain` finds the rest.
        """
        for key in self.keys - set(map(key_of_values, references(named))) if self.keys else ():
            with suppress(OSError, StoreError):
                self.columns.store.delete(key)


def _has_sidecar(file: FileChange) -> bool:
    return isinstance(file.sidecar, dict)


def _resolve_file(file: FileChange, found: Mapping[str, ColumnValue]) -> FileChange:
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
        partition=tuple(_resolve_partition_value(each, found) for each in file.partition),
        sidecar=UNSET,
    )


def _without_bounds(file: FileChange, found: Mapping[str, ColumnValue]) -> FileChange:
    if not _has_sidecar(file):
        return file
    partition = tuple(_resolve_partition_value(each, found) for each in file.partition)
    return replace(file, partition=partition, sidecar=UNSET)


def _null_erased_partition(file: FileChange) -> FileChange:
    if not has_erased_partition(file):
        return file
    partition = (None if sidecar_location_of(each) is not None else each for each in file.partition)
    return replace(file, partition=tuple(partition))


def has_erased_partition(file: FileChange) -> bool:
    """Return whether a partition value of a resolved file change was erased."""
    return any(sidecar_location_of(each) is not None for each in file.partition)


def _resolve_partition_value(
    value: PartitionValue, found: Mapping[str, ColumnValue]
) -> PartitionValue:
    at = sidecar_location_of(value)
    return found[at].partition if at is not None and at in found else value


def _bounds_of(file: FileChange) -> tuple[Any, Any]:
    return file.lower_bounds, file.upper_bounds


class _ValueReplacement(Struct, frozen=True):
    """Replacement of personal values in a list of file changes by references.

    Attributes:
        files: Values to be written: by digest, by the name of the sidecar file.
    """

    marked: MarkedColumns
    spec: Callable[[int], PartitionSpec]
    folder: str
    files: dict[str, dict[str, ColumnValue]] = {}
    _partitions: dict[tuple[int, str, str], str] = {}

    def sealed(self, file: FileChange) -> FileChange:
        """Return a file change with its personal values replaced by references."""
        if _has_sidecar(file):
            # It was in the table before, and has references already.
            return file
        if any(sidecar_location_of(each) is not None for each in file.partition):
            raise InvalidInputError(
                f"file {file.path} has a partition value that was erased, or that is a reference "
                "to a sidecar file; give the value itself"
            )
        if not self.marked.holds_personal_value(file, self.spec(file.spec_id)):
            return file
        lower, upper = ({**each} if isinstance(each, dict) else {} for each in _bounds_of(file))
        sidecar: dict[int, str] = {}
        for field_id in sorted({*lower, *upper}):
            if field_id in self.marked:
                bounds = ValueBounds(lower.pop(field_id, None), upper.pop(field_id, None))
                sidecar[field_id] = self._store_value(field_id, BOUNDS, bounds)
        partition = [*file.partition]
        for place, each in self.marked.partitions(self.spec(file.spec_id)):
            if partition[place] is not None:
                at = self._partition_reference(each.source_id, each.transform, partition[place])
                partition[place] = personal_placeholder(at)
        return replace(
            file,
            lower_bounds=lower or UNSET,
            upper_bounds=upper or UNSET,
            partition=tuple(partition),
            sidecar=sidecar,
        )

    def _partition_reference(self, field_id: int, transform: str, value: PartitionValue) -> str:
        """Return the reference to a partition value; the same one for all files of the list."""
        key = field_id, transform, msgspec.json.encode(value).decode()
        if key not in self._partitions:
            self._partitions[key] = self._store_value(field_id, transform, value)
        return self._partitions[key]

    def _store_value(self, field_id: int, of: str, value: ValueBounds | PartitionValue) -> str:
        text = msgspec.json.encode(value).decode()
        kept = ColumnValue(os.urandom(_SALT_BYTES).hex(), field_id, of, text)
        name = next(reversed(self.files), "")
        if not name or len(self.files[name]) >= _MOST:
            name = self.folder + os.urandom(_HALF // 2).hex()
            self.files[name] = {}
        self.files[name][kept.digest] = kept
        return f"{name}:{kept.digest}"
