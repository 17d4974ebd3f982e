"""Typed reading of table options, and the options that name columns.

Validation, the propagation of renames and rebasing use it. An option that names columns means those
columns: it is resolved to field ids when a change is first decided, and follows them when the
change is decided again on a newer schema.

Renames are Paimon's: it maps old names to new ones once, after the batch, which goes wrong when a
name is renamed twice or freed and used again. Such a batch is rejected: with Paimon's own error
where it has one, and where an option or the key would silently name another column, too.

The option `ledger.personal` names the personal columns of a table. Their values are kept in
sidecars, where they can be erased. A nested column is personal with its parent.

Source: Paimon's CoreOptions, SchemaManager and file formats; Iceberg's table properties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal

from attrs import frozen
from msgspec import Struct
from msgspec.structs import replace

from ledger.decide.errors import argument_error, state_error
from ledger.events.schema import RenameColumn
from ledger.model.errors import ColumnNotFoundError, InvalidChangeError
from ledger.model.file_change import FileChange, sidecar_location_of
from ledger.model.iceberg_layout import PartitionField, PartitionSpec
from ledger.model.schema import Schema
from ledger.model.types import DataField, type_places, walk_fields

_TRUE_FALSE = {"true": True, "false": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_SIZE = re.compile(
    r"\s*[0-9]{1,19}\s*(?:b|bytes|(?:k|m|g|t)b?|(?:ki|me|gi|te)bibytes)?\s*", re.IGNORECASE
)


class TableOptions(Struct, frozen=True):
    """Table options, parsed as the rules need them. An invalid value raises ILLEGAL_ARGUMENT.

    Example:
        >>> TableOptions({"bucket": "4"}).number("bucket", -1)
        4
    """

    values: Mapping[str, str]

    def text(self, key: str, *older_keys: str) -> str | None:
        """Return an unparsed value, by its key or one of its older names."""
        for each in (key, *older_keys):
            if each in self.values:
                return self.values[each]
        return None

    def number(self, key: str, default: int) -> int:
        """Return a 32-bit integer."""
        value = self.values.get(key)
        return default if value is None else parse_integer_option(key, value)

    def check_size(self, key: str) -> None:
        """Reject a value that is not a number of bytes, such as `64 mb`."""
        value = self.values.get(key)
        if value is not None and _SIZE.fullmatch(value) is None:
            raise argument_error(f"option {key}={value!r} is not a size, such as 64 mb")

    def flag(self, key: str, *older_keys: str) -> bool:
        """Return a boolean that is false by default."""
        value = self.text(key, *older_keys)
        if value is None:
            return False
        read = _TRUE_FALSE.get(value.lower())
        if read is None:
            raise argument_error(f"option {key}={value!r} is neither true nor false")
        return read

    def is_true(self, key: str, *, default: bool = False) -> bool:
        """Return a boolean that is true only for `true`, as in Paimon's schema rules."""
        value = self.values.get(key)
        return default if value is None else value.lower() == "true"

    def choice(self, key: str, default: str, allowed: Sequence[str]) -> str:
        """Return one of `allowed`, in lower case."""
        value = self.values.get(key)
        if value is None:
            return default
        read = value.lower()
        if read not in allowed:
            raise argument_error(
                f"option {key}={value!r} is unknown: use one of {', '.join(allowed)}"
            )
        return read

    def names(self, key: str) -> tuple[str, ...]:
        """Return the entries of a comma list; blank ones do not count."""
        listed = self.values.get(key)
        return comma_list(listed) if listed else ()

    def fraction(self, key: str, default: float) -> float:
        """Return a decimal number."""
        value = self.values.get(key)
        try:
            return default if value is None else float(value)
        except ValueError as error:
            raise argument_error(f"option {key}={value!r} is not a number") from error

    @property
    def ignores_delete(self) -> bool:
        """True if deletions are ignored when rows merge."""
        engines = ("first-row", "deduplicate", "partial-update")
        return self.flag("ignore-delete", *(f"{each}.ignore-delete" for each in engines))

    @property
    def bucket(self) -> int:
        """The number of buckets; -1 is dynamic or none, -2 is postponed."""
        return self.number("bucket", -1)

    @property
    def file_format(self) -> str:
        """The format of data files, as Paimon compares it."""
        return (self.text("file.format") or "parquet").lower()

    @property
    def full_compaction_commits(self) -> int:
        """The number of commits after which files are compacted completely; 0 if not set."""
        return self.number("full-compaction.delta-commits", 0)

    @property
    def merge_engine(self) -> str:
        """The way in which rows of one key are merged."""
        return self.choice("merge-engine", "deduplicate", MERGE_ENGINES)

    @property
    def changelog_producer(self) -> str:
        """The source of changelog files."""
        return self.choice("changelog-producer", "none", CHANGELOG_PRODUCERS)


MERGE_ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
CHANGELOG_PRODUCERS = ("none", "input", "full-compaction", "lookup")


FILE_FORMATS = frozenset(
    {
        *("avro", "blob", "csv", "json", "lance", "mosaic", "orc"),
        *("parquet", "row", "text", "vortex"),
    }
)
"""Paimon's file formats, those of its optional modules included."""


def comma_list(text: str) -> tuple[str, ...]:
    """Return the trimmed, non-blank entries of a comma list.

    >>> comma_list("a, b,,")
    ('a', 'b')
    """
    return tuple(each.strip() for each in text.split(",") if each.strip())


def parse_integer_option(key: str, value: str, *, bits: int = 32) -> int:
    """Return the integer value of an option.

    Raises:
        InvalidChangeError: It is not an integer, or has more bits.

    Example:
        >>> (
        ...     parse_integer_option("a", "-2147483648"),
        ...     parse_integer_option("a", "-9223372036854775808", bits=64),
        ... )
        (-2147483648, -9223372036854775808)
    """
    # int() alone would take "1_000" and digits of any script.
    if _WHOLE.fullmatch(value) is None or not -(1 << bits - 1) <= int(value) < 1 << bits - 1:
        raise argument_error(f"option {key}={value!r} is not a whole number of {bits} bits")
    return int(value)


Shape = Literal["column", "columns", "indexed columns", "members", "paths"]
"""Form in which a value names columns: one; a comma list; a comma list whose entries may be
`m[key]`; a comma list of members of the ROW inside the ARRAY that the key names; a comma list of
dotted paths."""

Path = tuple[str, ...]


@frozen
class ColumnOption:
    """One row: an option, or a family of them, that names columns.

    Attributes:
        key: The key; `{columns}` stands for a comma list of columns, `{column}` for one, `{path}`
            for a dotted path, `*` for anything without a dot, and `**` for anything.
        value: The form in which the value names columns; None where only the key does.
        carried: Whether Paimon's renames update it.
        named: Whether it is meant by name, so that a rename does not change it: Iceberg's
            properties.
        followed: Whether it follows its columns by their ids, whatever formats are declared.
    """

    key: str
    value: Shape | None = None
    carried: bool = False
    named: bool = False
    followed: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of its keys, with the columns as group `columns`, `column` or `path`."""
        text = re.escape(self.key).replace(r"\*\*", ".+?").replace(r"\*", "[^.]+")
        for group in ("columns", "column", "path"):
            text = text.replace(rf"\{{{group}\}}", f"(?P<{group}>.+?)")
        return re.compile(text)


KEY_OPTIONS = ("primary-key", "partition")
"""Options that a schema holds as lists instead."""

INDEX_COLUMN_OPTIONS = (
    "pk-vector.index.columns",
    "pk-btree.index.columns",
    "pk-bitmap.index.columns",
    "pk-multivalue.index.columns",
    "pk-full-text.index.columns",
)
"""Options that list the columns of primary-key indexes."""

BLOB_OPTIONS = (
    "blob-field",
    "blob-descriptor-field",
    "blob.stored-descriptor-fields",
    "blob-view-field",
)
"""Options that list BLOB columns; the third is an older name of the second."""

MAP_LAYOUT_SUFFIXES = (
    "map.storage-layout",
    "map.shared-shredding.max-columns",
    "map.shared-shredding.column-placement-policy",
)
"""Suffixes of `fields.<column>.` for the layout of a MAP in files."""

CARRIED_SUFFIXES = (
    "aggregate-function",
    "ignore-retract",
    "distinct",
    "list-agg-delimiter",
    *MAP_LAYOUT_SUFFIXES,
)
"""Suffixes of `fields.<column>.` that Paimon's renames update."""

COLUMN_OPTIONS: tuple[ColumnOption, ...] = (
    *(ColumnOption(each, "columns") for each in KEY_OPTIONS),
    ColumnOption("bucket-key", "columns", carried=True),
    ColumnOption("sequence.field", "columns", carried=True),
    ColumnOption("fields.{columns}.sequence-group", "columns", carried=True),
    ColumnOption("fields.{columns}.nested-key", "members", carried=True),
    ColumnOption("fields.{columns}.nested-sequence-field", "members"),
    *(ColumnOption(f"fields.{{columns}}.{each}", carried=True) for each in CARRIED_SUFFIXES),
    ColumnOption("fields.{columns}.**"),
    ColumnOption("field.{columns}.vector-dim"),
    *(ColumnOption(each, "columns") for each in (*BLOB_OPTIONS, "vector-field")),
    *(ColumnOption(each, "columns") for each in INDEX_COLUMN_OPTIONS),
    ColumnOption("file-index.*.columns", "indexed columns"),
    ColumnOption("file-index.*.{column}.*"),
    ColumnOption("clustering.columns", "columns"),
    ColumnOption("sink.clustering.by-columns", "columns"),
    ColumnOption("chain-table.chain-partition-keys", "columns"),
    ColumnOption("partial-update.remove-record-on-sequence-group", "columns"),
    ColumnOption("manifest-sort.partition-field", "column"),
    ColumnOption("record-level.time-field", "column"),
    ColumnOption("rowkind.field", "column"),
    ColumnOption("orc.bloom.filter.columns", "columns"),
    ColumnOption("orc.column.encoding.direct", "columns"),
    ColumnOption("ledger.personal", "columns", followed=True),
    ColumnOption("delta.dataSkippingStatsColumns", "paths", followed=True),
    ColumnOption("parquet.**#{path}", named=True),
    ColumnOption("write.orc.bloom.filter.columns", "columns", named=True),
    ColumnOption("write.**.column.{path}", named=True),
)
"""Every option that names columns; the first matching row counts. Names inside of values such as
`$day` in `partition.timestamp-pattern` are of partition keys, which are never renamed."""

_FAMILIES = ("fields.", "field.", "file-index.", "parquet.", "write.")
_PLAIN = {each.key: each for each in COLUMN_OPTIONS if not {"{", "*"} & set(each.key)}


def column_option(key: str) -> ColumnOption | None:
    """Return the row of an option; None when it names no columns.

    Example:
        >>> column_option("fields.a,b.sequence-group").value, column_option("bucket")
        ('columns', None)
    """
    found = _PLAIN.get(key)
    if found is not None or not key.startswith(_FAMILIES):
        return found
    return next((each for each in COLUMN_OPTIONS if each.pattern.fullmatch(key)), None)


class ColumnMention(Struct, frozen=True):
    """One column named by an option.

    Attributes:
        text: The name in the option.
        owner: The column whose elements have it as a member; None for any other.
        is_path: Whether the text is a dotted path from a column on.
    """

    text: str
    owner: str | None = None
    is_path: bool = False

    def names(self, path: Path) -> bool:
        """Return whether this is the column, or member, at a path."""
        if self.is_path:
            return ".".join(path) == self.text
        return path == ((self.text,) if self.owner is None else (self.owner, "element", self.text))

    def text_at_path(self, path: Path) -> str:
        """Return the text by which the option names the column at a path."""
        return ".".join(path) if self.is_path else path[-1]


class OptionColumnReferences(Struct, frozen=True):
    """An option split into the columns that it names and the text between them.

    Attributes:
        key: Parts of its key.
        value: Parts of its value; None where it is removed.
        carried: Whether renames update it.
    """

    key: tuple[str | ColumnMention, ...]
    value: tuple[str | ColumnMention, ...] | None
    carried: bool

    @property
    def mentions(self) -> tuple[ColumnMention, ...]:
        """The columns that it names, those in the key first."""
        return tuple(
            each for each in (*self.key, *(self.value or ())) if isinstance(each, ColumnMention)
        )

    def said(self, texts: Iterable[str]) -> tuple[str, str | None]:
        """Return key and value with the mentions replaced by these texts, in order."""
        rest = iter(texts)
        key = "".join(next(rest) if isinstance(each, ColumnMention) else each for each in self.key)
        if self.value is None:
            return key, None
        return key, "".join(
            next(rest) if isinstance(each, ColumnMention) else each for each in self.value
        )


def split_option_columns(key: str, value: str | None) -> OptionColumnReferences | None:
    """Split an option; None when it names no columns.

    Example:
        >>> [each.text for each in split_option_columns("fields.a.sequence-group", "b, c").mentions]
        ['a', 'b', 'c']
    """
    row = column_option(key)
    if row is None:
        return None
    found = row.pattern.fullmatch(key)
    group = found and next(iter(found.groupdict()), None)
    if not found or not group:
        named: tuple[str | ColumnMention, ...] = (key,)
    else:
        named = (
            key[: found.start(group)],
            *_split_key_columns(group, found[group]),
            key[found.end(group) :],
        )
    owner = next((each.text for each in named if isinstance(each, ColumnMention)), None)
    said = None if value is None else tuple(_split_value_columns(row.value, value, owner))
    return OptionColumnReferences(named, said, row.carried or row.followed)


def _split_key_columns(group: str, text: str) -> Iterator[str | ColumnMention]:
    if group == "path":
        yield ColumnMention(text, is_path=True)
    else:
        yield from _split_list_columns(text, is_indexed=group == "column")


def _split_value_columns(
    shape: Shape | None, value: str, owner: str | None
) -> Iterator[str | ColumnMention]:
    match shape:
        case None:
            yield value
        case "column":
            yield from _split_padded_column(value, None)
        case "columns":
            yield from _split_list_columns(value)
        case "indexed columns":
            yield from _split_list_columns(value, is_indexed=True)
        case "members":
            yield from _split_list_columns(value, owner)
        case "paths":
            for each in _split_list_columns(value):
                yield each if isinstance(each, str) else ColumnMention(each.text, is_path=True)


def _split_list_columns(
    value: str, owner: str | None = None, *, is_indexed: bool = False
) -> Iterator[str | ColumnMention]:
    for number, entry in enumerate(value.split(",")):
        yield "," if number else ""
        name, bracket, rest = entry.partition("[") if is_indexed else (entry, "", "")
        if bracket and rest.rstrip().endswith("]"):
            yield from (*_split_padded_column(name, owner), bracket + rest)
        else:
            yield from _split_padded_column(entry, owner)


def _split_padded_column(entry: str, owner: str | None) -> Iterator[str | ColumnMention]:
    name = entry.strip()
    if not name:
        yield entry
        return
    before, _, after = entry.partition(name)
    yield from (before, ColumnMention(name, owner), after)


@frozen
class ColumnNames:
    """Paths of a schema's columns, and of nested ones, by name and by id."""

    fields: Sequence[DataField]

    @cached_property
    def _top_level_ids(self) -> dict[str, int]:
        return {each.name: each.id for each in self.fields}

    @cached_property
    def _top_level_paths(self) -> dict[int, Path]:
        return {each.id: (each.name,) for each in self.fields}

    @cached_property
    def _nested_paths(self) -> dict[int, Path]:
        # Hardly any option names nested columns, and wide tables have many of them.
        places = type_places(self.fields)
        return {each.field.id: each.path for each in places if each.field is not None}

    def resolve(self, option: OptionColumnReferences) -> tuple[int | None, ...]:
        """Return the id of each column that an option names; None where there is no such column."""
        return tuple(map(self._mentioned_column_id, option.mentions))

    def _mentioned_column_id(self, mention: ColumnMention) -> int | None:
        if mention.owner is None and mention.text in self._top_level_ids:
            return self._top_level_ids[mention.text]
        if mention.owner is None and not mention.is_path:
            return None
        return next(
            (found for found, path in self._nested_paths.items() if mention.names(path)), None
        )

    def has(self, field_id: int | None) -> bool:
        """Return whether the schema has a column with that id."""
        return field_id is not None and self.path(field_id) is not None

    def path(self, field_id: int) -> Path | None:
        """Return the path of the column with an id; None where there is none."""
        return self._top_level_paths.get(field_id) or self._nested_paths.get(field_id)

    def said(self, mention: ColumnMention, field_id: int | None) -> str | None:
        """Return an option's text for the column with an id; None where there is none."""
        path = None if field_id is None else self.path(field_id)
        return None if path is None else mention.text_at_path(path)

    def say(
        self, option: OptionColumnReferences, ids: Iterable[int | None]
    ) -> tuple[str, str | None]:
        """Return key and value with every column by its current name.

        Args:
            option: The option as requested.
            ids: One a mention; None leaves its text unchanged.

        Raises:
            ColumnNotFoundError: One of them does not exist.
        """
        return option.said(
            each.text if found is None else self._current_mention_text(option, each, found)
            for each, found in zip(option.mentions, ids, strict=True)
        )

    def _current_mention_text(
        self, option: OptionColumnReferences, mention: ColumnMention, field_id: int
    ) -> str:
        said = self.said(mention, field_id)
        if said is None:
            key = option.said(each.text for each in option.mentions)[0]
            raise ColumnNotFoundError(
                f"column {mention.text} (id {field_id}), which option {key} was to name, does not "
                "exist any more"
            )
        return said


def renamed_options(options: Mapping[str, str], renames: Sequence[RenameColumn]) -> dict[str, str]:
    """Return the options as Paimon rewrites them after a batch with these renames.

    Raises:
        InvalidChangeError: ILLEGAL_STATE: two of them have the same column as source.

    Example:
        >>> renamed_options({"sequence.field": "v"}, [RenameColumn(("v",), "w")])
        {'sequence.field': 'w'}
    """
    names: dict[str, str] = {}
    for rename in renames:
        if rename.field_names[0] in names:
            raise state_error(
                f"two renames of one batch begin at {rename.field_names[0]}; use two transactions"
            )
        names[rename.field_names[0]] = rename.new_name
    return dict(_rename_in_option(key, value, names) for key, value in options.items())


def _rename_in_option(key: str, value: str, names: Mapping[str, str]) -> tuple[str, str]:
    row = column_option(key)
    if row is None or not row.carried:
        return key, value
    found = row.pattern.fullmatch(key)
    inside = found["columns"] if found is not None and found.groups() else ""
    if row.value is not None:
        return _replace_key_columns(
            key, inside, _map_listed_names(inside, names)
        ), _map_listed_names(value, names)
    renamed = inside
    for old, new in names.items():
        # One after the other, as Paimon processes these keys.
        renamed = new if renamed == old else renamed
    return _replace_key_columns(key, inside, renamed), value


def _replace_key_columns(key: str, inside: str, renamed: str) -> str:
    prefix = "fields."
    return prefix + renamed + key.removeprefix(prefix + inside) if inside else key


def strayed_options(
    options: Mapping[str, str],
    renames: Sequence[RenameColumn],
    meant: Callable[[str], Sequence[int | None]],
    names: Callable[[], ColumnNames],
) -> Iterator[str]:
    """Yield the options that would name other columns than they mean, after Paimon's renames.

    Args:
        options: The options after the changes of the batch.
        renames: The renames of the batch.
        meant: Returns the field ids that an option means.
        names: Returns the columns after the batch.
    """
    mapped = {each.field_names[0]: each.new_name for each in renames}
    for key, value in options.items():
        row = column_option(key)
        if row is None or row.named or row.followed:
            continue
        after = split_option_columns(*_rename_in_option(key, value, mapped))
        said = after.mentions if after is not None else ()
        ids, here = meant(key), names()
        # A new name may have a comma, or be none at all.
        if len(said) != len(ids) or any(
            (wanted := here.said(each, found)) is not None and wanted != each.text
            for each, found in zip(said, ids, strict=True)
        ):
            yield key


def renamed_keys(keys: Sequence[str], renames: Sequence[RenameColumn]) -> tuple[str, ...]:
    """Return the primary key as Paimon rewrites it: each name mapped once."""
    names = {each.field_names[0]: each.new_name for each in renames if len(each.field_names) == 1}
    return tuple(names.get(each, each) for each in keys)


def _map_listed_names(listed: str, names: Mapping[str, str]) -> str:
    return ",".join(names.get(each, each) for each in listed.split(","))


PERSONAL_OPTION: Final = "ledger.personal"
"""Option: the personal columns, separated by commas."""

_SAYS_NOTHING = ("bucket[", "void")
"""Transforms whose results identify no one: a bucket's number is shared by many values."""


class MarkedColumns(Struct, frozen=True):
    """The personal columns of a table.

    Attributes:
        personal: Their field ids, and those of their nested columns.
        known: The field ids of all columns of the table.
    """

    personal: frozenset[int]
    known: frozenset[int]

    @classmethod
    def of(cls, schema: Schema) -> MarkedColumns | None:
        """Return the columns that a table's schema marks; None where it marks none.

        Example:
            >>> columns = {"id": "INT", "mail": "STRING"}
            >>> schema = Schema.of(columns, options={"ledger.personal": "mail"})
            >>> (
            ...     sorted(MarkedColumns.of(schema).personal),
            ...     MarkedColumns.of(Schema.of({"id": "INT"})) is None,
            ... )
            ([1], True)
        """
        return _find_personal_columns(schema) if schema.options.get(PERSONAL_OPTION) else None

    def __contains__(self, field_id: int) -> bool:
        # A column that was dropped, or is unknown, may have been personal.
        return field_id in self.personal or field_id not in self.known

    def partitions(self, spec: PartitionSpec) -> list[tuple[int, PartitionField]]:
        """Return the fields of a spec whose values are personal, each with its index."""
        return [
            (place, each)
            for place, each in enumerate(spec.fields)
            if each.source_id in self and not each.transform.startswith(_SAYS_NOTHING)
        ]

    def without(self, file: FileChange, spec: PartitionSpec | None) -> FileChange:
        """Return a file change without its personal values; of an unknown spec, without any."""
        lower, upper = (
            {key: value for key, value in each.items() if key not in self}
            if isinstance(each, dict)
            else each
            for each in (file.lower_bounds, file.upper_bounds)
        )
        gone = {place for place, _ in self.partitions(spec)} if spec is not None else None
        partition = tuple(
            None if gone is None or place in gone else value
            for place, value in enumerate(file.partition)
        )
        return replace(file, lower_bounds=lower, upper_bounds=upper, partition=partition)

    def holds_personal_value(self, file: FileChange, spec: PartitionSpec) -> bool:
        """Return whether a file change itself holds a personal value."""
        bounds = (file.lower_bounds, file.upper_bounds)
        if any(key in self for each in bounds if isinstance(each, dict) for key in each):
            return True
        values = (file.partition[place] for place, _ in self.partitions(spec))
        return any(each is not None and sidecar_location_of(each) is None for each in values)


def _find_personal_columns(schema: Schema) -> MarkedColumns:
    named = set(comma_list(schema.options[PERSONAL_OPTION]))
    marked = [each for each in schema.fields if each.name in named]
    ids = frozenset(each.id for each in walk_fields(marked))
    return MarkedColumns(ids, frozenset(each.id for each in walk_fields(schema.fields)))


def refuse_invalid_marks(schema: Schema, before: Mapping[str, str], *, is_erasable: bool) -> None:
    """Reject marks of columns that do not exist, or in a ledger that cannot erase.

    Args:
        schema: The table's new schema.
        before: Its options before.
        is_erasable: Whether the table keeps personal values in sidecars.

    Raises:
        InvalidChangeError: A column does not exist, or the ledger cannot erase.
    """
    said = schema.options.get(PERSONAL_OPTION)
    if said is None or said == before.get(PERSONAL_OPTION):
        return
    missing = [each for each in comma_list(said) if each not in schema.names]
    if missing:
        raise InvalidChangeError(
            f"option {PERSONAL_OPTION}={said!r}: there is no column {missing[0]}; it names columns "
            "of the table, separated by commas"
        )
    if not is_erasable:
        refuse_unerasable(schema.options)


def unmatched_mark_names(said: str, fields: Sequence[DataField]) -> tuple[str, ...]:
    """Return the names of marks that no column has."""
    there = {each.name for each in fields}
    return tuple(each for each in comma_list(said) if each not in there)


def ineffective_marks_reason(schema: Schema, *, is_erasable: bool) -> str:
    """Return the reason why a table's marks have no effect, in a phrase; empty where they have.

    Its own marks were checked when they were set. Those of a source are adopted unchecked.

    Args:
        schema: The table's schema.
        is_erasable: Whether the table keeps personal values in sidecars.

    Example:
        >>> schema = Schema.of({"id": "INT"}, options={"ledger.personal": "mail"})
        >>> ineffective_marks_reason(schema, is_erasable=True)
        'mail is no column'
    """
    said = schema.options.get(PERSONAL_OPTION, "")
    lost = unmatched_mark_names(said, schema.fields)
    if lost:
        return f"{', '.join(lost)} is no column"
    if said and not is_erasable:
        return "this ledger was created without --erasable, and keeps all in its lines"
    return ""


def followed_marks(before: Schema, said: str, fields: Sequence[DataField]) -> str:
    """Return the marks of a table that follows a source.

    A rename in the source may not update the marks: where the source's option names a missing
    column, those that were marked before stay marked, by their current names.

    Args:
        before: The table's schema before an update of its source.
        said: The source's option after it.
        fields: The columns after it.

    Example:
        >>> before = Schema.of({"id": "INT", "mail": "STRING"}, options={"ledger.personal": "mail"})
        >>> after = Schema.of({"id": "INT", "email": "STRING"}).fields
        >>> followed_marks(before, "mail", after), followed_marks(before, "id", after)
        ('email', 'id')
    """
    lost, marked = unmatched_mark_names(said, fields), MarkedColumns.of(before)
    if not lost or marked is None:
        return said
    named = [each for each in comma_list(said) if each not in lost]
    kept = [each.name for each in fields if each.id in marked.personal]
    return ",".join(dict.fromkeys((*named, *kept))) or said


def refuse_unerasable(options: Mapping[str, str]) -> None:
    """Reject options that mark columns, where nothing can be erased.

    Raises:
        InvalidChangeError: They do.
    """
    said = options.get(PERSONAL_OPTION)
    if said is not None:
        raise InvalidChangeError(
            f"option {PERSONAL_OPTION}={said!r}: this ledger keeps all values in its lines, "
            "which never change, so that none can be erased; only a ledger that was created for "
            "that can erase: lakeledger init --erasable"
        )
