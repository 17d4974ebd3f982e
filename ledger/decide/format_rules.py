"""FormatRules: the interface of a table format to decisions, and the checks by it.

A change means the same whatever formats a table declares. Each format checks whether it can still
express the table, and this module knows no format by name.

It fails closed: a declared format that is not installed rejects every change that could concern it.
Leaving it, and removing a tag or the table, concern no format.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, combinations, compress, pairwise, repeat
from operator import is_not
from typing import Any, Generic, Protocol, TypeVar, overload

from msgspec import Struct

from ledger.decide.commit_policies import OWNERS, RULE_OPTIONS
from ledger.decide.table_options import PERSONAL_OPTION
from ledger.events.table import FormatRulesRaised
from ledger.model.column_index import column_index_of, columns_around
from ledger.model.errors import FormatError, InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionField, PartitionSpec, SortField, SortOrder
from ledger.model.messages import similar_names
from ledger.model.schema import Schema
from ledger.model.transforms import transform_of
from ledger.model.types import DataField, DataType, TypePlace, type_places, walk_fields
from ledger.model.types.text import bare_type_text, format_type
from ledger.state.columns import PastColumns
from ledger.state.declared_formats import (
    DEFAULT_FORMATS,
    FOLLOW_OPTION,
    FORMATS_OPTION,
    OWN_PREFIX,
    READER_GRACE_OPTION,
    TARGET_FILE_SIZE_OPTION,
    Rules,
    following_format_names,
    refuse_invalid_grace,
    target_file_size,
)
from ledger.state.layout import LayoutTrail
from ledger.state.table import TableState

Binding = tuple[tuple[int | str | None, ...], str]
"""A level of a schema and a name in it; see `TypePlace.level`."""


def name_bindings(schema: Schema) -> dict[Binding, int]:
    """Return the field id of each name in a schema, level by level.

    Example:
        >>> from ledger.model.types import DataField, IntType, RowType
        >>> name_bindings(Schema.of({"a": "INT", "b": RowType([DataField(0, "a", IntType())])}))
        {((None,), 'a'): 0, ((None,), 'b'): 1, ((1,), 'a'): 2}
    """
    return {place_binding(place): field_id for place, field_id in places_with_ids(schema)}


class BoundNames:
    """Field ids by name over many schemas, which are read only once.

    It only grows, by idempotent steps that any thread may take: no lock is needed.

    Example:
        >>> names = BoundNames()
        >>> names.add(Schema.of({"a": "INT", "b": "INT"}))
        >>> names.agrees_with({((None,), "b"): 1}), names.agrees_with({((None,), "b"): 2})
        (True, False)
    """

    def __init__(self) -> None:
        self._schema_ids: set[int] = set()
        self._meant: dict[Binding, set[int]] = {}
        self._doubtful: set[Binding] = set()

    @property
    def schema_ids(self) -> set[int]:
        """The schemas that were added."""
        return self._schema_ids

    def add(self, schema: Schema) -> None:
        """Add a schema's names."""
        self.bind(
            ((binding, (each,)) for binding, each in name_bindings(schema).items()), (schema.id,)
        )

    def bind(
        self, meant: Iterable[tuple[Binding, tuple[int, ...]]], schema_ids: Iterable[int]
    ) -> None:
        """Add the field ids of names, for some schemas."""
        for binding, field_ids in meant:
            known = self._meant.setdefault(binding, set())
            known.update(field_ids)
            if len(known) > 1:
                self._doubtful.add(binding)
        # Last, so that a thread which finds a schema here finds its names, too.
        self._schema_ids.update(schema_ids)

    @property
    def is_doubtful(self) -> bool:
        """True if some name stands for two fields."""
        return bool(self._doubtful)

    def agrees_with(self, bound: Mapping[Binding, int]) -> bool:
        """Return whether each of these names has the same field id in every schema that has it."""
        return all(
            self._meant.get(each, {field_id}) == {field_id} for each, field_id in bound.items()
        )

    def have_unique_names(self, schemas: Iterable[Schema]) -> bool:
        """Return whether every name of these schemas stands for one field only."""
        return all(self._doubtful.isdisjoint(name_bindings(each)) for each in schemas)

    def meant(self) -> Iterator[tuple[Binding, tuple[int, ...]]]:
        """Yield every name with its field ids."""
        return ((each, tuple(sorted(ids))) for each, ids in list(self._meant.items()))


def places_with_ids(schema: Schema) -> Iterator[tuple[TypePlace, int]]:
    """Yield every place of a schema that has a field id, with the id."""
    for place in type_places(schema.fields):
        if place.field is not None:
            yield place, place.field.id


def place_binding(place: TypePlace) -> Binding:
    """Return the level and the name of a place."""
    return place.level, place.path[-1]


class Refusal(Struct, frozen=True):
    """Reason why a format cannot express a table, with an alternative.

    The ledger makes a FormatError of it, and adds the option to leave the format.

    Attributes:
        what: The thing and the wanted change.
        rule: The format's rule, as half a sentence.
        alternative: Advice to the caller.
    """

    what: str
    rule: str
    alternative: str


class MemberMisfit(Struct, frozen=True):
    """A struct in a data file whose members are not those of the file's schema, in its order.

    Attributes:
        file: The file's name.
        column: The path of the struct.
        wanted: The names of the members in the schema.
        found: Their names in the file.
    """

    file: str
    column: str
    wanted: tuple[str, ...]
    found: tuple[str, ...]

    def refusal(self) -> Refusal:
        """Return the problem of the file in a format whose readers take members by position."""
        return Refusal(
            f"file {self.file}: column {self.column}",
            f"readers take the members of a struct by their position, which has to be that of the "
            f"schema, ({', '.join(self.wanted)}), and the file has ({', '.join(self.found)})",
            "write the file again with all of them in that order, NULL where there is no value",
        )


def emptiness_problems(schema: Schema) -> Iterator[Refusal]:
    """Yield the problem of a table without columns, in a format whose readers fail on one."""
    if not schema.fields:
        yield Refusal("a table without columns", "readers fail on it", "give it a column")


def source_problems(schema: Schema, spec: PartitionSpec, order: SortOrder) -> Iterator[Refusal]:
    """Yield the fields of a spec and an order whose column was dropped or does not fit.

    Not every format has both, but file writers use them: without its column, a partition field is
    NULL for every row.
    """
    if not (spec.fields or order.fields):
        return
    used: list[tuple[PartitionField | SortField, str, str]] = [
        *((each, f"partition field {each.name}", "remove it") for each in spec.fields),
        *(
            (each, f"sort field {each.transform}({each.source_id})", "replace the sort order")
            for each in order.fields
        ),
    ]
    around = columns_around(schema.fields, [each.source_id for each, _, _ in used])
    places = {each.field.id: each for each in type_places(around) if each.field}
    for each, what, instead in used:
        place = places.get(each.source_id)
        if each.transform == "void":
            continue
        if place is None:
            rule = "files are written by it from now on, and its column would be gone"
            yield Refusal(what, rule, f"{instead} first")
        elif not transform_of(each.transform).accepts(place.type):
            rule = f"column {place.name} would be {format_type(place.type)}, which has no "
            yield Refusal(what, f"{rule}{each.transform}", f"{instead} first")


def lost_source_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield the fields of the default layout that lose their column by a batch."""
    before, layout = batch.before, batch.layout
    return new_problems(
        source_problems(batch.schema, layout.spec, layout.sort_order),
        source_problems(before.schema, before.spec, before.sort_order),
    )


def new_problems(now: Iterable[Refusal], before: Iterable[Refusal]) -> Iterator[Refusal]:
    """Yield the problems of a table that it did not have before a change.

    Args:
        now: The problems afterwards.
        before: The problems before; not read where there are none now.
    """
    found = list(now)
    existing = set(before) if found else ()
    return (each for each in found if each not in existing)


def refused_retyping(what: str, before: DataType, after: DataType, rule: str) -> Refusal:
    """Return the problem of a change of type; `what` changes it, such as `column a`."""
    return Refusal(
        f"{what} from {_type_text(before)} to {_type_text(after)}",
        rule,
        "add a column of the new type and fill it",
    )


def _type_text(data_type: DataType) -> str:
    return data_type.root if data_type.depth else bare_type_text(data_type)


class FileForm(Struct, frozen=True):
    """Representation of a type in a format's files, where readers of other formats may differ.

    Attributes:
        form: In words that follow "as"; equal for formats whose readers read each other's files.
        alternative: The type to use instead.
    """

    form: str
    alternative: str


class ReadableReach(Struct, frozen=True):
    """Ids and files that the readable snapshots use, tagged ones included.

    Attributes:
        schema_ids: Schemas of snapshots and of their files.
        named_schema_ids: Schemas whose names files without field ids use.
        spec_ids: Partition specs of files.
        files: Files themselves, as they were added.
    """

    schema_ids: frozenset[int] = frozenset()
    named_schema_ids: frozenset[int] = frozenset()
    spec_ids: frozenset[int] = frozenset()
    files: tuple[FileChange, ...] = ()


class History(Protocol):
    """A table's history, as far as the rules need it; read only when one does."""

    def schemas(self, schema_ids: Collection[int]) -> list[Schema]:
        """Return some schemas, oldest first."""

    def names(self, state: TableState, more: Collection[int]) -> BoundNames:
        """Return the names of `state.named_schema_ids` and of more schemas, at least."""

    def holds(self, state: TableState, schema_id: int) -> bool:
        """Return True if a readable snapshot certainly holds a file that uses a schema's names.

        Reads nothing; False where reading would be needed.
        """

    def live(self, state: TableState) -> Collection[FileChange]:
        """Return the files that are live at a state; reads them."""

    def reach(self, state: TableState) -> ReadableReach:
        """Return what can be read at a state; may read every live file change."""

    def columns(self, state: TableState) -> PastColumns:
        """Return every column that the table had up to a state; reads lazily."""

    def member_misfits(
        self, files: Collection[FileChange], schemas: Mapping[int, Schema]
    ) -> Iterator[MemberMisfit]:
        """Yield structs in Parquet files whose members are not as the files' schemas list them.

        Reads the footers of the files that have structs; a file that does not exist is left out.

        Args:
            files: Data files.
            schemas: The schemas of the files, by id.
        """


class TableCreation(Struct, frozen=True):
    """A table to be created.

    Attributes:
        schema: Its first schema.
        layout: Its first spec and order.
        rules: The rules that apply.
    """

    schema: Schema
    layout: LayoutTrail
    rules: Rules


class SchemaStep(Struct, frozen=True):
    """A step from one schema to columns of a later one.

    Attributes:
        before: The earlier schema.
        columns: Columns of the later one.
        only: The ids of the columns to check; None for all.
    """

    before: Schema
    columns: tuple[DataField, ...]
    only: frozenset[int] | None = None


_Value = TypeVar("_Value")


class cached_attribute(Generic[_Value]):  # noqa: N801 - written as `property` is
    """A property that is computed on first access, and kept in the instance's `__dict__`.

    Like `functools.cached_property`, but without the lock that Python 3.11's holds for all
    instances of a class: a signal handler that commits while its thread computes such a property
    would wait for the committer thread, and that one for the lock. Two threads may both compute
    it for one instance.

    Example:
        >>> class Sum:
        ...     @cached_attribute
        ...     def value(self) -> int:
        ...         print("working")
        ...         return 2 + 2
        >>> sums = Sum()
        >>> sums.value + sums.value
        working
        8
    """

    def __init__(self, works_out: Callable[[Any], _Value]) -> None:
        self._works_out = works_out
        self._name = works_out.__name__
        self.__doc__ = works_out.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> cached_attribute[_Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...
    def __get__(self, instance: object | None, owner: type) -> cached_attribute[_Value] | _Value:
        """Return the computed value; the property itself on the class."""
        if instance is None:
            return self
        # Found there from now on: an instance's attributes take precedence over its class.
        value = instance.__dict__[self._name] = self._works_out(instance)
        return value


class Batch(Struct, frozen=True, dict=True):
    """A table before and after a transaction.

    Attributes:
        before: The table before it.
        schema: Its schema afterwards.
        layout: Its specs and orders afterwards.
        rules: The rules that apply, by the options afterwards.
        history: The table's history.
    """

    before: TableState
    schema: Schema
    layout: LayoutTrail
    rules: Rules
    history: History

    @cached_attribute
    def declared_before(self) -> Rules:
        """The rules before; those of no format where they cannot be parsed."""
        return declared_rules(self.before.schema.options)

    def is_new(self, asked: FormatRules) -> bool:
        """Return whether a format, or this version of it, was not declared before."""
        if asked.name not in self.declared_before.formats:
            return True
        before, after = self.before.schema.options, self.schema.options
        return before != after and asked.version(before) != asked.version(after)

    @cached_attribute
    def is_same_shape(self) -> bool:
        """True if columns, keys and layout are all unchanged."""
        return _schema_layout_shape(self.before.schema, self.before) == _schema_layout_shape(
            self.schema, self.layout
        )

    @property
    def only_leaves_formats(self) -> bool:
        """True if the only change is that the table leaves some of its formats."""
        was, now = self.before.schema, self.schema
        return (
            self.rules.formats < self.declared_before.formats
            and self.is_same_shape
            and was.comment == now.comment
            and _without_declaration(was.options) == _without_declaration(now.options)
        )

    @property
    def may_require(self) -> bool:
        """True if a column may become required although older rows may lack it."""
        return self.rules.allow_incompatible or self.before.snapshot is None

    @cached_attribute
    def reach(self) -> ReadableReach:
        """Ids and files that can be read before it; may read every live file change."""
        return self.history.reach(self.before)

    @cached_attribute
    def readable(self) -> list[Schema]:
        """The schemas that can be read, except the one afterwards; oldest first."""
        return self.history.schemas(self.reach.schema_ids - {self.schema.id})

    def steps(self, asked: FormatRules) -> Iterator[SchemaStep]:
        """Yield the pairs of schema and later columns between which a format's readers convert.

        Where the format is new, from each readable schema to the next; else only the changes of the
        batch. Restored columns are read from files of any schema before.
        """
        if self.is_new(asked):
            older = self.readable
            # The change itself counts, too, however few rows can be read.
            known = {each.id for each in older}
            newest = [each for each in (self.before.schema,) if each.id not in known]
            for before, after in pairwise([*older, *newest, self.schema]):
                yield SchemaStep(before, after.fields)
            columns, back = self.schema.fields, self._returned_since(older)
        else:
            columns, back = self.changed_columns, self.returned
            if columns:
                yield SchemaStep(self.before.schema, columns)
        for each in self.readable if back else ():
            yield SchemaStep(each, columns, back)

    @cached_attribute
    def returned(self) -> frozenset[int]:
        """The ids of columns that had been dropped, and exist again."""
        highest = self.before.schema.highest_field_id
        back = {each.id for each in walk_fields(self.changed_columns) if each.id <= highest}
        there = self.columns_before
        existing = [there[each.id] for each in self.changed_columns if each.id in there]
        back.difference_update([each.id for each in walk_fields(existing)])
        if back:
            # A member of another column has only moved.
            back.difference_update([each.id for each in walk_fields(self.before.schema.fields)])
        return frozenset(back)

    def _returned_since(self, older: Iterable[Schema]) -> frozenset[int]:
        """Return the ids of columns that exist afterwards, and were dropped in between.

        Args:
            older: Schemas of the table, oldest first.
        """
        existing: set[int] = set()
        gone: set[int] = set()
        for schema in (*older, self.before.schema):
            there = {each.id for each in walk_fields(schema.fields)}
            gone |= existing - there
            existing |= there
        return frozenset(each.id for each in walk_fields(self.schema.fields) if each.id in gone)

    @property
    def columns_before(self) -> Mapping[int, DataField]:
        """The columns before, by id."""
        return column_index_of(self.before.schema.fields).by_id

    @cached_attribute
    def changed_columns(self) -> tuple[DataField, ...]:
        """The columns afterwards that were changed."""
        before, after = self.before.schema.fields, self.schema.fields
        # Comparing tuples compares identities first: unchanged columns cost nothing.
        if before == after:
            return ()
        if before == after[: len(before)]:
            # Columns were added at the end.
            touched = iter(after[len(before) :])
        else:
            # Most are at the same index, and unchanged.
            touched = compress(after, map(is_not, after, chain(before, repeat(None))))
        there = self.columns_before
        return tuple(
            [each for each in touched if (was := there.get(each.id)) is not each and was != each]
        )


class SnapshotArrival(Struct, frozen=True):
    """A snapshot to be added to a table.

    Attributes:
        state: The table before.
        rules: The rules that apply.
        files: The added and removed files.
        facts: The snapshot's fields, with its engine's manifest lists.
        is_back: Whether a rollback restores the added files.
    """

    state: TableState
    rules: Rules
    files: Collection[FileChange]
    facts: Mapping[str, Any]
    is_back: bool


class FormatRules(Protocol):
    """Checks of a table format on tables and changes; pure.

    Problems from before a change are not reported, unless the change declares the format.

    Attributes:
        name: Its name in `ledger.formats`.
        title: Its name in messages.
        number: Version of the rules, from 1. Raise it when they reject more than before: a table
            keeps the highest that it was changed by, and older packages refuse to change it.
        binds_names: Whether a name that files without field ids use stands for one field for ever.
        orders_members: Whether its readers take the members of a struct by their position in files.
        file_forms: By the root of a type, its representation in files, where formats differ.
    """

    name: str
    title: str
    number: int
    binds_names: bool
    orders_members: bool
    file_forms: Mapping[str, FileForm]

    def version(self, options: Mapping[str, str]) -> int:
        """Return the format's version by a table's options; another one counts as declared anew."""

    def creation_problems(self, creation: TableCreation) -> Iterator[Refusal]:
        """Yield what the format cannot express of a new table."""

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield what the format cannot express of a table after a batch."""

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield problems of a batch to report only if no other format has any."""

    def file_problems(self, arrival: SnapshotArrival) -> Iterator[Refusal]:
        """Yield what the format cannot express of a snapshot's files."""

    def name_problems(
        self, schema: Schema, files: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        """Yield problems with the names by which files have columns.

        Args:
            schema: The table's schema.
            files: The added and removed files; each added file has the schema whose names it uses.
            state: The table before.
            history: The table's history.
        """

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        """Yield the reasons why the format cannot have a tag of a name.

        Args:
            name: The tag's name.
            others: The names of existing tags; none if the tag exists itself.
        """


class Formats(Protocol):
    """The installed formats."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all, the default ones first."""

    def find(self, name: str) -> FormatRules | Refusal:
        """Return a format's rules, or the reason why they are not available."""


def declared_rules(options: Mapping[str, str]) -> Rules:
    """Return the rules that options declare; those of no format where they cannot be parsed."""
    try:
        return Rules.of(options)
    except InvalidChangeError:
        return Rules(frozenset())


def _schema_layout_shape(schema: Schema, layout: TableState | LayoutTrail) -> tuple[object, ...]:
    identity = (schema.identifier_field_ids, schema.primary_keys)
    return schema.fields, identity, layout.specs, layout.default_spec_id, layout.sort_order


def _without_declaration(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key != FORMATS_OPTION}


_DEFAULT_FORMATS = tuple(DEFAULT_FORMATS.split(","))


def refuse_unknown(options: Mapping[str, str], before: Mapping[str, str], formats: Formats) -> None:
    """Reject options that declare an unknown format, or follow one that is not declared.

    Args:
        options: The table's new options.
        before: The options before; formats declared before are not checked again.
        formats: The installed formats.

    Raises:
        InvalidChangeError: They do.
    """
    if options is before or options == before:
        return
    _refuse_misspelt(options, before)
    _refuse_undeclared_follow(options, before)
    if options.get(READER_GRACE_OPTION) != before.get(READER_GRACE_OPTION):
        refuse_invalid_grace(options)
    if options.get(TARGET_FILE_SIZE_OPTION) != before.get(TARGET_FILE_SIZE_OPTION):
        target_file_size(options)
    if options.get(FORMATS_OPTION) == before.get(FORMATS_OPTION):
        return
    new = Rules.of(options).formats - declared_rules(before).formats
    if not new <= set(formats.names()):
        raise _unknown_format_error(options, formats)


def _refuse_misspelt(options: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Reject keys that resemble an option of the ledger: they would be ignored silently."""
    known = (
        FORMATS_OPTION,
        FOLLOW_OPTION,
        READER_GRACE_OPTION,
        TARGET_FILE_SIZE_OPTION,
        PERSONAL_OPTION,
        *RULE_OPTIONS,
    )
    for key in options.keys() - before.keys():
        if not key.startswith(OWN_PREFIX) or key in known or key.startswith(OWNERS):
            continue
        if near := similar_names(key, known):
            raise InvalidChangeError(
                f"there is no option {key}: did you mean {near[0]}? Keys that begin with "
                f"{OWN_PREFIX} are the ledger's own; choose another name"
            )


def _refuse_undeclared_follow(options: Mapping[str, str], before: Mapping[str, str]) -> None:
    if _follow_options(options) == _follow_options(before):
        return
    declared = Rules.of(options).formats
    for each in following_format_names(options):
        if each not in declared:
            raise InvalidChangeError(
                f"option {FOLLOW_OPTION} names {each!r}, which the table does not declare: files "
                f"of a format that is not checked cannot follow. Name it in {FORMATS_OPTION}, too, "
                f"or leave it out of {FOLLOW_OPTION}"
            )


def _follow_options(options: Mapping[str, str]) -> tuple[str | None, str | None]:
    return options.get(FOLLOW_OPTION), options.get(FORMATS_OPTION)


def _unknown_format_error(options: Mapping[str, str], formats: Formats) -> InvalidChangeError:
    text = options.get(FORMATS_OPTION, DEFAULT_FORMATS)
    return InvalidChangeError(
        f"option {FORMATS_OPTION} is {text!r}; name one or more of {', '.join(formats.names())}, "
        "separated by commas"
    )


def refuse_inexpressible(batch: Batch, formats: Formats) -> None:
    """Reject a batch whose result one of the table's formats cannot express.

    Raises:
        FormatError: The first problem; it names the format, its rule and the alternative.
    """
    for problem in problems(batch, formats):
        raise problem


def problems(batch: Batch, formats: Formats) -> Iterator[FormatError]:
    """Yield everything that the formats of `batch.rules` cannot express."""
    if batch.only_leaves_formats:
        return
    options = batch.schema.options
    asked: list[FormatRules] = []
    for name, found in _find_formats(batch.rules, batch.before, formats):
        if isinstance(found, Refusal):
            yield _refusal_error(name, found, options)
        else:
            asked.append(found)
    for each in asked:
        for refusal in (*each.problems(batch), *_member_problems(batch, each)):
            yield _refusal_error(each.name, refusal, options)
    for each in asked:
        for refusal in each.last_problems(batch):
            yield _refusal_error(each.name, refusal, options)
    for one, other in combinations(asked, 2):
        for refusal in _format_pair_problems(one, other, batch):
            yield _refusal_error(one.name, refusal, options)


def _member_problems(batch: Batch, asked: FormatRules) -> Iterator[Refusal]:
    """Yield the first struct in a readable file that readers of a newly declared format misread.

    A plan also checks formats that are not declared; it does not read data files for them.
    """
    is_declared = asked.name in declared_rules(batch.schema.options).formats
    if not (is_declared and asked.orders_members and batch.is_new(asked)):
        return
    known = (*batch.readable, batch.before.schema, batch.schema)
    schemas = {each.id: each for each in known}
    for each in batch.history.member_misfits(batch.reach.files, schemas):
        yield each.refusal()
        return


def check_creation(creation: TableCreation, formats: Formats) -> None:
    """Reject a table that one of its formats cannot express.

    Raises:
        FormatError: As `refuse_inexpressible`.
        InvalidChangeError: It declares an unknown format, or has an invalid option.
    """
    _refuse_misspelt(creation.schema.options, {})
    _refuse_undeclared_follow(creation.schema.options, {})
    refuse_invalid_grace(creation.schema.options)
    target_file_size(creation.schema.options)
    if not creation.rules.formats <= set(formats.names()):
        raise _unknown_format_error(creation.schema.options, formats)
    for problem in creation_problems(creation, formats):
        raise problem


def creation_problems(creation: TableCreation, formats: Formats) -> Iterator[FormatError]:
    """Yield everything that a new table's formats cannot express."""
    options = creation.schema.options
    asked: list[FormatRules] = []
    for name in _sort_format_names(creation.rules.formats):
        found = formats.find(name)
        if isinstance(found, Refusal):
            yield _refusal_error(name, found, options)
            continue
        asked.append(found)
        for refusal in found.creation_problems(creation):
            yield _refusal_error(name, refusal, options)
    for one, other in combinations(asked, 2):
        for refusal in clashing_type_forms(one, other, creation.schema.fields):
            yield _refusal_error(one.name, refusal, options)


def raised_rule_numbers(
    options: Mapping[str, str], state: TableState, formats: Formats
) -> FormatRulesRaised | None:
    """Return the event that raises a table's rule numbers; None where they are that high already.

    Args:
        options: The table's options after the change.
        state: The table before.
        formats: The installed formats.
    """
    raised = {}
    for name in _sort_format_names(declared_rules(options).formats):
        found = formats.find(name)
        if not isinstance(found, Refusal) and found.number > state.format_rules.get(name, 1):
            raised[name] = found.number
    return FormatRulesRaised(rules=raised) if raised else None


def refuse_unresolvable_names(
    schema: Schema,
    files: Collection[FileChange],
    state: TableState,
    history: History,
    formats: Formats,
) -> None:
    """Reject files whose column names one of the table's formats cannot resolve.

    Args:
        schema: The table's schema.
        files: The added and removed files.
        state: The table before.
        history: The table's history.
        formats: The installed formats.

    Raises:
        FormatError: A name would stand for two fields, or a field have two names.
    """
    for each in _declared_formats(schema, state, formats):
        for refusal in each.name_problems(schema, files, state, history):
            raise _refusal_error(each.name, refusal, schema.options)


def member_ordering_format(state: TableState, formats: Formats) -> str | None:
    """Return the first declared format whose readers take struct members by their position."""
    names = _sort_format_names(declared_rules(state.schema.options).formats)
    found = (formats.find(each) for each in names)
    return next(
        (each.name for each in found if not isinstance(each, Refusal) and each.orders_members), None
    )


def member_misfit_error(name: str, misfit: MemberMisfit, state: TableState) -> FormatError:
    """Return the error of a file whose struct members readers of a format would misread."""
    return _refusal_error(name, misfit.refusal(), state.schema.options)


def binds_names(state: TableState, formats: Formats) -> bool:
    """Return whether a declared format needs the meaning of names in older schemas."""
    found = (formats.find(each) for each in declared_rules(state.schema.options).formats)
    return any(not isinstance(each, Refusal) and each.binds_names for each in found)


def refuse_inexpressible_files(
    state: TableState,
    files: Collection[FileChange],
    facts: Mapping[str, Any],
    formats: Formats,
    *,
    is_back: bool = False,
) -> None:
    """Reject added files that one of a table's formats cannot express.

    Args:
        state: The table before.
        files: The added and removed files of one snapshot.
        facts: The snapshot's fields.
        formats: The installed formats.
        is_back: Whether a rollback restores the added files.

    Raises:
        FormatError: The first problem.
    """
    rules = declared_rules(state.schema.options)
    arrival = SnapshotArrival(state, rules, files, facts, is_back)
    # In reverse: formats after the first know values and bytes, and have more specific messages.
    for each in reversed(list(_declared_formats(state.schema, state, formats))):
        for refusal in each.file_problems(arrival):
            raise _refusal_error(each.name, refusal, state.schema.options)


def refuse_inexpressible_tag(state: TableState, name: str, formats: Formats) -> None:
    """Reject a tag that one of a table's formats cannot have.

    Raises:
        FormatError: It cannot.
    """
    others = () if name in state.tags else state.tags.keys()
    for each in _declared_formats(state.schema, state, formats):
        for refusal in each.tag_problems(name, others):
            raise _refusal_error(each.name, refusal, state.schema.options)


def _declared_formats(schema: Schema, state: TableState, formats: Formats) -> Iterator[FormatRules]:
    rules = declared_rules(schema.options)
    for name, found in _find_formats(rules, state, formats):
        if isinstance(found, Refusal):
            raise _refusal_error(name, found, schema.options)
        yield found


def _find_formats(
    rules: Rules, state: TableState, formats: Formats
) -> Iterator[tuple[str, FormatRules | Refusal]]:
    for name in _sort_format_names(rules.formats):
        found = formats.find(name)
        used = state.format_rules.get(name, 1)
        if isinstance(found, Refusal) or found.number >= used:
            yield name, found
            continue
        yield (
            name,
            Refusal(
                f"format {name!r}",
                f"the table was changed by rules {used} of it, and the installed ones "
                f"are {found.number}",
                "upgrade the package that provides them",
            ),
        )


# Every commit calls it, and there are few different sets.
@lru_cache(maxsize=64)
def _sort_format_names(names: frozenset[str]) -> tuple[str, ...]:
    first = tuple(each for each in _DEFAULT_FORMATS if each in names)
    return (*first, *sorted(names.difference(first)))


def _refusal_error(name: str, refusal: Refusal, options: Mapping[str, str]) -> FormatError:
    """Return the error of a problem, with leaving the format as one more alternative.

    Args:
        name: The format's name.
        refusal: The problem.
        options: The table's options, which declare its formats.
    """
    declared = declared_rules(options).formats
    others = _sort_format_names(declared - {name} or frozenset(_DEFAULT_FORMATS) - {name})
    ways = (
        f"{refusal.alternative}, or leave format {name!r}: set {FORMATS_OPTION}={','.join(others)}"
    )
    return FormatError(f"{refusal.what}: {refusal.rule}; {ways}", name, refusal.rule, ways)


def _format_pair_problems(one: FormatRules, other: FormatRules, batch: Batch) -> Iterator[Refusal]:
    """Yield the columns that no single file can hold for readers of both formats."""
    were_declared = {one.name, other.name} <= batch.declared_before.formats
    if were_declared and batch.is_same_shape:
        return
    roots = _clashing_type_roots(one, other)
    if not roots:
        return
    if were_declared:
        for column in batch.changed_columns:
            old = batch.columns_before.get(column.id)
            # Columns that are older than the rule stay.
            if old is None or not any(_form_clashes_in_columns(one, other, roots, [old])):
                yield from _form_clashes_in_columns(one, other, roots, [column])
        return
    yield from _form_clashes_in_columns(one, other, roots, batch.schema.fields)
    for older in batch.readable:
        yield from _form_clashes_in_columns(one, other, roots, older.fields)


def clashing_type_forms(
    one: FormatRules, other: FormatRules, columns: Iterable[DataField]
) -> Iterator[Refusal]:
    """Yield the columns that the files of two formats hold in different forms, at every depth."""
    roots = _clashing_type_roots(one, other)
    return _form_clashes_in_columns(one, other, roots, columns) if roots else iter(())


def _form_clashes_in_columns(
    one: FormatRules, other: FormatRules, roots: Collection[str], columns: Iterable[DataField]
) -> Iterator[Refusal]:
    for place in type_places(columns):
        if place.type.root in roots:
            ours, theirs = one.file_forms[place.type.root], other.file_forms[place.type.root]
            yield Refusal(
                f"column {place.name}",
                f"{one.title}'s files keep a {place.type.root} as {ours.form}, and "
                f"{other.title}'s as {theirs.form}, so that no file suits both",
                ours.alternative,
            )


def _clashing_type_roots(one: FormatRules, other: FormatRules) -> set[str]:
    return {
        root
        for root in one.file_forms.keys() & other.file_forms.keys()
        if one.file_forms[root].form != other.file_forms[root].form
    }
