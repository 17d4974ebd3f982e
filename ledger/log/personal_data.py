"""Personal data in sidecar files: commit texts and column values.

Each transaction of a stream that keeps them outside has a file of its own below the ledger's root,
written before the commit that names its values by salted digests. An erased value is gone from its
file, which stays; nothing else that the ledger keeps ever holds one: not the log, no checkpoint, no
segment, no projection.

A file change says of its bounds, and of values of its partition, where they are kept: in one file
for the list that a writer commits, below the ledger's root, each under a salt of its own. Whoever
keeps something (runs, checkpoints, segments, statistics) keeps the references; whoever tells them,
or plans by them, reads what is there. Engines' metadata never has such bounds. It has the values of
partitions, as readers find no rows without, and NULL where they were erased.

What is left is written as the file's next generation, which is created and so is one eraser's; only
then the one before is replaced by the word that there is a next, the same for everybody. So no
store has to compare before it replaces, and nothing that was taken out comes back.

Each step is durable before the next one begins: the next generation before the file before it is
replaced, and the replacement before the erasure is acknowledged. A power loss in between leaves
either the whole old file or the whole next one, and a retry completes it.
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

from ledger.decide.table_options import Marked
from ledger.events.commit import OUTSIDE, Commit, Outside, Transaction
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import LogFile, Patience, Request, land_own
from ledger.model.errors import DamagedLogError, InvalidInputError, StoreError
from ledger.model.file_change import FileChange, PartitionValue, kept_at, placeholder
from ledger.model.iceberg_layout import PartitionSpec
from ledger.stores import Store
from ledger.stores.base import folder_of as key_folder_of

V = TypeVar("V")

NEXT: Final = b'{"next":true}\n'
"""What a file says whose next generation stands."""

_GENERATION: Final = re.compile(r"\.([1-9][0-9]*)\.json$")


class ErasableForm(Generic[V]):
    """How what one kind of these files holds is written and read.

    Args:
        values: What it holds.
        called: That in words.
    """

    def __init__(self, values: type[V], called: str) -> None:
        self._decoder = msgspec.json.Decoder(values)
        self._called = called

    def encoded(self, values: V) -> bytes:
        """Return a file's bytes."""
        return msgspec.json.encode(values) + b"\n"

    def decoded(self, body: bytes, key: str) -> V:
        """Return what a file holds.

        Raises:
            DamagedLogError: It is no such file.
        """
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DamagedLogError(f"{key} holds no {self._called}: {error}", key) from error


def next_generation(key: str) -> str:
    """Return the key of a file's next generation.

    Example:
        >>> next_generation("a/b.json"), next_generation("a/b.9.json")
        ('a/b.1.json', 'a/b.10.json')
    """
    found = _GENERATION.search(key)
    number = 1 if found is None else int(found[1]) + 1
    return f"{first(key).removesuffix('.json')}.{number}.json"


def first(key: str) -> str:
    """Return the key that a file had before anything was taken out.

    Example:
        >>> first("a/b.10.json"), first("a/b.json")
        ('a/b.json', 'a/b.json')
    """
    return _GENERATION.sub(".json", key)


def newest(store: Store, keys: Sequence[str]) -> list[bytes | None]:
    """Return what is left of files, by their first keys; None for one that is missing."""
    found: list[bytes | None] = list(store.read_many(keys))
    at = {place: keys[place] for place, body in enumerate(found) if body == NEXT}
    while at:
        at = {place: next_generation(key) for place, key in at.items()}
        bodies = list(store.read_many(list(at.values())))
        for place, body in zip(at, bodies, strict=True):
            found[place] = body
        at = {place: key for place, key in at.items() if found[place] == NEXT}
    return found


def confirm_folders(store: Store, keys: Iterable[str]) -> None:
    """Make durable what was created, replaced and deleted in the folders of some keys.

    An eraser that was killed may have replaced a file without syncing its folder, and the retry
    sees nothing left to do there.

    Raises:
        OSError: The store failed.
    """
    for key in {key_folder_of(each): each for each in keys}.values():
        store.confirm(key)


def take_out(store: Store, key: str, smaller: Callable[[bytes], bytes | None]) -> None:
    """Take something out of a file; asking again ends what was broken off.

    Args:
        store: Where it is.
        key: Its first one.
        smaller: Returns what is left of a body; None where nothing has to go.

    Raises:
        OSError: The store failed.
    """
    body = store.read(key)
    while body is not None:
        after = next_generation(key)
        if body != NEXT:
            less = smaller(body)
            if less is None:
                return
            if not store.create(after, less):
                # Another's, who took out something else; what he left is looked at next.
                store.confirm(after)
            store.replace_durably(key, NEXT)
        key, body = after, store.read(after)


E = TypeVar("E")

FOLDER: Final = f"{STREAM_FOLDER}/personal"
"""Below the root of the ledger, for all of its streams."""

ERASED: Final = "erased"
"""What readers are told in the place of a value that is gone."""

Field = Literal["author", "message", "properties"]
FIELDS: Final[tuple[Field, ...]] = ("author", "message", "properties")

_SALT_BYTES: Final = 16
_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_MANY: Final = 256


class Value(Struct, frozen=True, forbid_unknown_fields=True):
    """A text, and the salt without which nobody can guess it from its digest.

    Attributes:
        salt: 128 bits, hex.
        value: The text; of properties, their JSON.
    """

    salt: str
    value: str

    def digest(self, field: str) -> str:
        """Return what the line says of it."""
        said = f"{self.salt}\n{field}\n{self.value}"
        return hashlib.sha256(said.encode()).hexdigest()


class Values(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What a file holds.

    Attributes:
        time_millis: When it was written, by its writer's clock; Unix milliseconds.
        author: Who, unless it was erased or nobody said.
        message: Why, likewise.
        properties: The properties, likewise.
    """

    time_millis: int
    author: Value | None = None
    message: Value | None = None
    properties: Value | None = None

    def get(self, field: Field) -> Value | None:
        """Return one of them."""
        found: Value | None = getattr(self, field)
        return found

    def without(self, fields: Iterable[Field]) -> Values:
        """Return what is left when some are erased."""
        return replace(self, **dict.fromkeys(fields, None))


_FORM: Final = ErasableForm(Values, "values of a transaction")
encoded: Final = _FORM.encoded
decoded: Final = _FORM.decoded


def key_of(outside: Outside) -> str | None:
    """Return the key of a transaction's values, named by the first of them; None: it has none.

    Example:
        >>> key_of(Outside(message="9f86d0"))
        '_ledger/personal/9f/9f86d0.json'
    """
    for each in FIELDS:
        digest = getattr(outside, each)
        if digest is not UNSET:
            return f"{FOLDER}/{digest[:2]}/{digest}.json"
    return None


class KeptTexts(Struct, frozen=True):
    """A transaction's values on their way: what the line says, and the file.

    Attributes:
        outside: The digests.
        key: Of the file; None where there is nothing to keep.
        body: Its bytes.
    """

    outside: Outside
    key: str | None
    body: bytes

    @classmethod
    def of(cls, request: Request, now_millis: int) -> KeptTexts:
        """Return what a request says of who and why, each under a salt of its own."""
        texts: dict[Field, str] = {"author": request.author, "message": request.message}
        if request.properties:
            properties = dict(sorted(request.properties.items()))
            texts["properties"] = msgspec.json.encode(properties).decode()
        values = {
            field: Value(os.urandom(_SALT_BYTES).hex(), text)
            for field, text in texts.items()
            if text
        }
        outside = Outside(**{field: each.digest(field) for field, each in values.items()})
        body = encoded(Values(now_millis, **values))
        return cls(outside, key_of(outside), body)


class Personal(Struct, frozen=True):
    """The values of a ledger's transactions that stand outside of their lines.

    Attributes:
        store: The ledger's own, also for tables that lie elsewhere.
    """

    store: Store

    @property
    def columns(self) -> PersonalColumns:
        """The values of personal columns."""
        # Most ledgers have none, and reading starts fast.

        return PersonalColumns(self.store)

    def keep(self, request: Request, now_millis: int, patience: Patience) -> KeptTexts:
        """Write what a request says of who and why; whoever commits it names it in the line.

        Raises:
            StoreError: The store refuses, gave no answer, or has another file there; nothing was
                committed.
        """
        kept = KeptTexts.of(request, now_millis)
        if kept.key is not None:
            file = LogFile(kept.key, kept.body, 0)
            land_own(self.store, file, patience, "author and message")
        return kept

    def forget(self, kept: KeptTexts) -> None:
        """Take away what no commit names, best effort; `maintain` finds what is left."""
        if kept.key is not None:
            with suppress(OSError, StoreError):
                self.store.delete(kept.key)

    def told(self, commits: Sequence[Commit[E]]) -> list[Commit[E]]:
        """Return commits as readers are told them: with the values, or that they were erased."""
        wanted = [
            outside
            for commit in commits
            for transaction in commit.transactions
            if (outside := transaction.outside) is not UNSET
        ]
        if not wanted:
            return list(commits)
        found = self._read(wanted)
        return [
            replace(commit, transactions=tuple(_told(each, found) for each in commit.transactions))
            for commit in commits
        ]

    def each_told(self, commits: Iterable[Commit[E]]) -> Iterator[Commit[E]]:
        """Yield what `told` returns of many commits, reading so many files at a time."""
        some: list[Commit[E]] = []
        for commit in commits:
            if not some and all(each.outside is UNSET for each in commit.transactions):
                yield commit
                continue
            some.append(commit)
            if len(some) == _MANY:
                yield from self.told(some)
                some.clear()
        yield from self.told(some)

    def transaction(self, transaction: Transaction[E]) -> Transaction[E]:
        """Return one transaction as readers are told it."""
        if transaction.outside is UNSET:
            return transaction
        return _told(transaction, self._read([transaction.outside]))

    def name(self, said: str) -> str:
        """Return an author that a state names: `created_by`, `updated_by`."""
        if not said.startswith(OUTSIDE):
            return said
        outside = Outside(author=said.removeprefix(OUTSIDE))
        return _text(outside, "author", self._read([outside]))

    def named(self, state: Any) -> Any:
        """Return a state, or a part of one, that says itself who made it and who changed it."""
        names = {"created_by": state.created_by, "updated_by": state.updated_by}
        if not any(each.startswith(OUTSIDE) for each in names.values()):
            return state
        return evolve(state, **{key: self.name(each) for key, each in names.items()})

    def _read(self, wanted: Iterable[Outside]) -> Mapping[str, Values]:
        keys = [*dict.fromkeys(key for each in wanted if (key := key_of(each)) is not None)]
        found: dict[str, Values] = {}
        for key, body in zip(keys, newest(self.store, keys), strict=True):
            if body is not None:
                with suppress(DamagedLogError):
                    found[key] = decoded(body, key)
        return found


def _told(transaction: Transaction[E], found: Mapping[str, Values]) -> Transaction[E]:
    outside = transaction.outside
    if outside is UNSET:
        return transaction
    properties: dict[str, str] = {}
    if outside.properties is not UNSET:
        text = _text(outside, "properties", found)
        properties = {ERASED: ""} if text == ERASED else _TEXTS.decode(text)
    return replace(
        transaction,
        author=_text(outside, "author", found),
        message=_text(outside, "message", found),
        properties=properties,
        outside=UNSET,
    )


def _text(outside: Outside, field: Field, found: Mapping[str, Values]) -> str:
    """Return a value; what is gone, or is not what the line says, is told as erased."""
    digest, key = getattr(outside, field), key_of(outside)
    if digest is UNSET or key is None:
        return ""
    values = found.get(key)
    value = None if values is None else values.get(field)
    return value.value if value is not None and value.digest(field) == digest else ERASED


COLUMNS: Final = f"{STREAM_FOLDER}/personal/columns"
"""Below the root of the ledger; a folder a table."""

BOUNDS: Final = "bounds"
"""What a value is that stands for a file's two bounds; of partitions it is the transform."""

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
_VALUES_FORM: Final = ErasableForm(ColumnValues, "values of columns")
encode_values: Final = _VALUES_FORM.encoded
decode_values: Final = _VALUES_FORM.decoded


def folder_of(table_id: str) -> str:
    """Return the folder with the values of a table.

    Example:
        >>> folder_of("8c9d")
        '_ledger/personal/columns/4653dfc955a062e8'
    """
    return f"{COLUMNS}/{hashlib.sha256(table_id.encode()).hexdigest()[:_HALF]}"


def key_of_values(reference: str) -> str:
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
            body = encode_values(ColumnValues(writing.now_millis, values))
            file = LogFile(key_of_values(name), body, 0)
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
        self.keys.update(map(key_of_values, references(sealed) - references(files)))
        return sealed

    def forget(self, named: Iterable[FileChange] = ()) -> None:
        """Take away what files of a commit do not name, best effort; `maintain` finds the rest."""
        for key in self.keys - set(map(key_of_values, references(named))) if self.keys else ():
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
