"""FormatRules: the interface of a table format to decisions, and the checks by it.

A change means what it means whatever formats a table declares. Whether the table stays expressible
in a format is that format's own to say, and nothing in here knows one by name.

It fails closed: a format that is declared and cannot be asked refuses whatever could concern it.
Leaving it, and the end of a tag or of the table, concern no format.
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
from ledger.model.errors import FormatError, InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionField, PartitionSpec, SortField, SortOrder
from ledger.model.messages import similar
from ledger.model.schema import Schema, indexed
from ledger.model.transforms import transform_of
from ledger.model.types import DataField, DataType, TypePlace, type_places, walk_fields
from ledger.model.types.text import bare_text, format_type
from ledger.state.columns import PastColumns
from ledger.state.declared_formats import (
    DEFAULT_FORMATS,
    FOLLOW_OPTION,
    FORMATS_OPTION,
    OWN_PREFIX,
    READER_GRACE_OPTION,
    Rules,
    followed,
    refuse_grace,
)
from ledger.state.layout import LayoutTrail
from ledger.state.table import TableState

Binding = tuple[tuple[int | str | None, ...], str]
"""A level of a schema and a name in it; see `TypePlace.level`."""


def bindings(schema: Schema) -> dict[Binding, int]:
    """Return the field id that each name stands for, level by level.

    Example:
        >>> from ledger.model.types import DataField, IntType, RowType
        >>> bindings(Schema.of({"a": "INT", "b": RowType([DataField(0, "a", IntType())])}))
        {((None,), 'a'): 0, ((None,), 'b'): 1, ((1,), 'a'): 2}
    """
    return {binding_of(place): field_id for place, field_id in named_places(schema)}


class BoundNames:
    """What the names of many schemas stand for, asked without going through the schemas again.

    It only grows, by steps that any thread may take, and take twice: nobody waits for a lock.

    Example:
        >>> names = BoundNames()
        >>> names.add(Schema.of({"a": "INT", "b": "INT"}))
        >>> names.agree({((None,), "b"): 1}), names.agree({((None,), "b"): 2})
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
        """Take in a schema's names."""
        self.bind(((binding, (each,)) for binding, each in bindings(schema).items()), (schema.id,))

    def bind(
        self, meant: Iterable[tuple[Binding, tuple[int, ...]]], schema_ids: Iterable[int]
    ) -> None:
        """Take in what the names of some schemas mean."""
        for binding, field_ids in meant:
            known = self._meant.setdefault(binding, set())
            known.update(field_ids)
            if len(known) > 1:
                self._doubtful.add(binding)
        # Only now, so that who finds a schema here finds its names, too.
        self._schema_ids.update(schema_ids)

    @property
    def is_doubtful(self) -> bool:
        """Whether some name means two things."""
        return bool(self._doubtful)

    def agree(self, bound: Mapping[Binding, int]) -> bool:
        """Whether each of these names means the same in every schema that has it."""
        return all(
            self._meant.get(each, {field_id}) == {field_id} for each, field_id in bound.items()
        )

    def are_one(self, schemas: Iterable[Schema]) -> bool:
        """Whether no name of these schemas means two things."""
        return all(self._doubtful.isdisjoint(bindings(each)) for each in schemas)

    def meant(self) -> Iterator[tuple[Binding, tuple[int, ...]]]:
        """Yield every name with the field ids that it means."""
        return ((each, tuple(sorted(ids))) for each, ids in list(self._meant.items()))


def named_places(schema: Schema) -> Iterator[tuple[TypePlace, int]]:
    """Yield every place of a schema that has a field id, with it."""
    for place in type_places(schema.fields):
        if place.field is not None:
            yield place, place.field.id


def binding_of(place: TypePlace) -> Binding:
    """Return the level and the name that a place has."""
    return place.level, place.path[-1]


class Refusal(Struct, frozen=True):
    """What a format cannot express, and the way out.

    The ledger makes a FormatError of it, and offers to leave the format besides.

    Attributes:
        what: The thing and what is wanted of it.
        rule: What the format says, as half a sentence.
        alternative: What can be done instead.
    """

    what: str
    rule: str
    alternative: str


def emptiness_problems(schema: Schema) -> Iterator[Refusal]:
    """Yield the refusal of a table without columns, by a format whose readers fail on one."""
    if not schema.fields:
        yield Refusal("a table without columns", "readers fail on it", "give it a column")


def source_problems(schema: Schema, spec: PartitionSpec, order: SortOrder) -> Iterator[Refusal]:
    """Yield the fields of a spec and an order whose column is gone or does not fit.

    Not every format knows both, but whoever writes a file goes by them: without its column, a
    partition field is NULL for every row.
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
    places = {each.field.id: each for each in type_places(schema.fields) if each.field}
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
    """Yield the fields of the layout in force that lose their column by a batch."""
    before, layout = batch.before, batch.layout
    return unless_stood(
        source_problems(batch.schema, layout.spec, layout.sort_order),
        source_problems(before.schema, before.spec, before.sort_order),
    )


def unless_stood(now: Iterable[Refusal], before: Iterable[Refusal]) -> Iterator[Refusal]:
    """Yield what is refused of a table, but for what was so before a change.

    Args:
        now: What is refused of it afterwards.
        before: What was refused of it before; not looked at where nothing is now.
    """
    found = list(now)
    stood = set(before) if found else ()
    return (each for each in found if each not in stood)


def refused_retyping(what: str, before: DataType, after: DataType, rule: str) -> Refusal:
    """Return the refusal of a change of type; `what` changes it, such as `column a`."""
    return Refusal(
        f"{what} from {_shown(before)} to {_shown(after)}",
        rule,
        "add a column of the new type and fill it",
    )


def _shown(data_type: DataType) -> str:
    return data_type.root if data_type.depth else bare_text(data_type)


class FileForm(Struct, frozen=True):
    """How a format's files hold a type, where readers of another format may expect it otherwise.

    Attributes:
        form: In words that follow "as", the same for all formats whose readers read each other's.
        alternative: What to take instead of the type.
    """

    form: str
    alternative: str


class Reach(Struct, frozen=True):
    """What the snapshots that can be read, tagged ones included, hold.

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
    """What the rules have to know of a table's past; asked for only when it decides."""

    def schemas(self, schema_ids: Collection[int]) -> list[Schema]:
        """Return some schemas, oldest first."""

    def names(self, state: TableState, more: Collection[int]) -> BoundNames:
        """Return the names of `state.named_schema_ids` and of more schemas, at least."""

    def holds(self, state: TableState, schema_id: int) -> bool:
        """Whether a snapshot that can be read surely holds a file that uses a schema's names.

        Reads nothing; where that would be needed, it is not sure.
        """

    def live(self, state: TableState) -> Collection[FileChange]:
        """Return the files that are live at a state; reads them."""

    def reach(self, state: TableState) -> Reach:
        """Return what can be read at a state; may read every file change that is live."""

    def columns(self, state: TableState) -> PastColumns:
        """Return every column that the table had up to a state; reads as far as is asked."""


class Birth(Struct, frozen=True):
    """A table that is to be.

    Attributes:
        schema: Its first schema.
        layout: Its first spec and order.
        rules: Whose rules apply.
    """

    schema: Schema
    layout: LayoutTrail
    rules: Rules


class SchemaStep(Struct, frozen=True):
    """From one schema to columns of a later one.

    Attributes:
        before: The earlier schema.
        columns: Columns of the later one.
        only: The ids of what to look at in them; None for all.
    """

    before: Schema
    columns: tuple[DataField, ...]
    only: frozenset[int] | None = None


_Value = TypeVar("_Value")


class once(Generic[_Value]):  # noqa: N801 - written as `property` is
    """A property that is worked out when it is first asked for, and kept in its `__dict__`.

    Like `functools.cached_property`, but without the lock that Python 3.11's holds for all
    instances of a class: a signal handler that commits while its thread computes such a property
    would wait for the committer thread, and that one for the lock. Two threads may both compute
    it for one instance.

    Example:
        >>> class Sum:
        ...     @once
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
    def __get__(self, instance: None, owner: type) -> once[_Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...
    def __get__(self, instance: object | None, owner: type) -> once[_Value] | _Value:
        """Return what was worked out; the property itself, asked of the class."""
        if instance is None:
            return self
        # Found there from now on: what stands in an instance goes before what its class has.
        value = instance.__dict__[self._name] = self._works_out(instance)
        return value


class Batch(Struct, frozen=True, dict=True):
    """What a transaction makes of a table.

    Attributes:
        before: The table before it.
        schema: Its schema afterwards.
        layout: Its specs and orders afterwards.
        rules: Whose rules apply, by the options afterwards.
        history: The table's past.
    """

    before: TableState
    schema: Schema
    layout: LayoutTrail
    rules: Rules
    history: History

    @once
    def declared_before(self) -> Rules:
        """The rules before; those of no format where they cannot be read."""
        return declared_by(self.before.schema.options)

    def is_new(self, asked: FormatRules) -> bool:
        """Whether a format, or the version of it that is meant, was not declared before."""
        if asked.name not in self.declared_before.formats:
            return True
        before, after = self.before.schema.options, self.schema.options
        return before != after and asked.version(before) != asked.version(after)

    @once
    def is_same_shape(self) -> bool:
        """Whether columns, keys and layout are all as they were."""
        return _shape(self.before.schema, self.before) == _shape(self.schema, self.layout)

    @property
    def only_leaves(self) -> bool:
        """Whether nothing happens but that the table leaves some of its formats."""
        was, now = self.before.schema, self.schema
        return (
            self.rules.formats < self.declared_before.formats
            and self.is_same_shape
            and was.comment == now.comment
            and _without_declaration(was.options) == _without_declaration(now.options)
        )

    @property
    def may_require(self) -> bool:
        """Whether a column may become required although older rows may lack it."""
        return self.rules.allow_incompatible or self.before.snapshot is None

    @once
    def reach(self) -> Reach:
        """What can be read before it; may read every file change that is live."""
        return self.history.reach(self.before)

    @once
    def readable(self) -> list[Schema]:
        """The schemas of what can be read, but for the one afterwards; oldest first."""
        return self.history.schemas(self.reach.schema_ids - {self.schema.id})

    def steps(self, asked: FormatRules) -> Iterator[SchemaStep]:
        """Yield from which schemas to which columns a format's readers have to come.

        Where the format is new, from each that can be read to the next; else by what the batch
        changes alone. Columns that are back are met by files of any schema before.
        """
        if self.is_new(asked):
            older = self.readable
            # The change itself counts, too, however few rows can be read.
            known = {each.id for each in older}
            newest = [each for each in (self.before.schema,) if each.id not in known]
            for before, after in pairwise([*older, *newest, self.schema]):
                yield SchemaStep(before, after.fields)
            columns, back = self.schema.fields, self._ever_returned(older)
        else:
            columns, back = self.changed_columns, self.returned
            if columns:
                yield SchemaStep(self.before.schema, columns)
        for each in self.readable if back else ():
            yield SchemaStep(each, columns, back)

    @once
    def returned(self) -> frozenset[int]:
        """The ids of columns that had been dropped, and stand again."""
        highest = self.before.schema.highest_field_id
        back = {each.id for each in walk_fields(self.changed_columns) if each.id <= highest}
        there = self.columns_before
        stood = [there[each.id] for each in self.changed_columns if each.id in there]
        back.difference_update([each.id for each in walk_fields(stood)])
        if back:
            # What stood in another column has only moved.
            back.difference_update([each.id for each in walk_fields(self.before.schema.fields)])
        return frozenset(back)

    def _ever_returned(self, older: Iterable[Schema]) -> frozenset[int]:
        """Return the ids of columns that stand afterwards, and did not in between.

        Args:
            older: Schemas of the table, oldest first.
        """
        stood: set[int] = set()
        gone: set[int] = set()
        for schema in (*older, self.before.schema):
            there = {each.id for each in walk_fields(schema.fields)}
            gone |= stood - there
            stood |= there
        return frozenset(each.id for each in walk_fields(self.schema.fields) if each.id in gone)

    @property
    def columns_before(self) -> Mapping[int, DataField]:
        """The columns before, by id."""
        return indexed(self.before.schema.fields).by_id

    @once
    def changed_columns(self) -> tuple[DataField, ...]:
        """The columns afterwards that are not as they were."""
        before, after = self.before.schema.fields, self.schema.fields
        # Comparing tuples looks at what their items are first: what nobody touched costs nothing.
        if before == after:
            return ()
        # Most stand where they stood, and are the same.
        touched = compress(after, map(is_not, after, chain(before, repeat(None))))
        there = self.columns_before
        return tuple(
            [each for each in touched if (was := there.get(each.id)) is not each and was != each]
        )


class Arrival(Struct, frozen=True):
    """What a snapshot adds to a table and takes from it.

    Attributes:
        state: The table before.
        rules: Whose rules apply.
        files: What comes and goes.
        facts: What the snapshot says of itself, its engine's manifest lists among it.
        is_back: Whether a rollback brings back what comes.
    """

    state: TableState
    rules: Rules
    files: Collection[FileChange]
    facts: Mapping[str, Any]
    is_back: bool


class FormatRules(Protocol):
    """Whether a table stays expressible in a format; the format's own, and pure.

    What was so before is not held against a change, unless the change declares the format.

    Attributes:
        name: By which `ledger.formats` declares it.
        title: What messages call it.
        number: Of the rules, from 1. Raise it when they refuse more than they did: a table keeps
            the highest that it was changed by, and older packages refuse to go on.
        binds_names: Whether a name that files without field ids use stands for one field for ever.
        file_forms: By the root of a type, how its files hold it, where that needs a word.
    """

    name: str
    title: str
    number: int
    binds_names: bool
    file_forms: Mapping[str, FileForm]

    def version(self, options: Mapping[str, str]) -> int:
        """Return the version of it that a table's options mean; another one is declared anew."""

    def birth_problems(self, birth: Birth) -> Iterator[Refusal]:
        """Yield what it cannot express of a new table."""

    def problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield what it cannot express of what a batch makes of a table."""

    def last_problems(self, batch: Batch) -> Iterator[Refusal]:
        """Yield what it refuses of a batch unless another format has a more fitting word."""

    def file_problems(self, arrival: Arrival) -> Iterator[Refusal]:
        """Yield what it cannot say of a snapshot's files."""

    def name_problems(
        self, schema: Schema, files: Collection[FileChange], state: TableState, history: History
    ) -> Iterator[Refusal]:
        """Yield what is wrong with the names that files hold columns by.

        Args:
            schema: The table's schema.
            files: What comes and goes; each file that comes says whose names it uses.
            state: The table before.
            history: Its past.
        """

    def tag_problems(self, name: str, others: Collection[str]) -> Iterator[Refusal]:
        """Yield why it can have no tag of a name.

        Args:
            name: The tag's.
            others: Those of the tags that there are; none where it is there itself.
        """


class Formats(Protocol):
    """The formats that there are."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all, the default ones first."""

    def find(self, name: str) -> FormatRules | Refusal:
        """Return a format's rules, or why nobody can ask them."""


def declared_by(options: Mapping[str, str]) -> Rules:
    """Return the rules that options declare; those of no format where they cannot be read."""
    try:
        return Rules.of(options)
    except InvalidChangeError:
        return Rules(frozenset())


def _shape(schema: Schema, layout: TableState | LayoutTrail) -> tuple[object, ...]:
    identity = (schema.identifier_field_ids, schema.primary_keys)
    return schema.fields, identity, layout.specs, layout.default_spec_id, layout.sort_order


def _without_declaration(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key != FORMATS_OPTION}


_DEFAULT_FORMATS = tuple(DEFAULT_FORMATS.split(","))


def refuse_unknown(options: Mapping[str, str], before: Mapping[str, str], formats: Formats) -> None:
    """Refuse options that declare a format which there is not, or follow one that is not declared.

    Args:
        options: The table's, as they shall be.
        before: As they were; what was declared before is not held against a change.
        formats: The formats that there are.

    Raises:
        InvalidChangeError: They do.
    """
    if options is before or options == before:
        return
    _refuse_misspelt(options, before)
    _refuse_following(options, before)
    if options.get(READER_GRACE_OPTION) != before.get(READER_GRACE_OPTION):
        refuse_grace(options)
    if options.get(FORMATS_OPTION) == before.get(FORMATS_OPTION):
        return
    new = Rules.of(options).formats - declared_by(before).formats
    if not new <= set(formats.names()):
        raise _unknown(options, formats)


def _refuse_misspelt(options: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Refuse what is almost an option of the ledger: nobody would heed it, and nobody would say."""
    known = (FORMATS_OPTION, FOLLOW_OPTION, READER_GRACE_OPTION, PERSONAL_OPTION, *RULE_OPTIONS)
    for key in options.keys() - before.keys():
        if not key.startswith(OWN_PREFIX) or key in known or key.startswith(OWNERS):
            continue
        if near := similar(key, known):
            raise InvalidChangeError(
                f"there is no option {key}: did you mean {near[0]}? What begins with {OWN_PREFIX} "
                "is the ledger's own; name yours otherwise"
            )


def _refuse_following(options: Mapping[str, str], before: Mapping[str, str]) -> None:
    if _following(options) == _following(before):
        return
    declared = Rules.of(options).formats
    for each in followed(options):
        if each not in declared:
            raise InvalidChangeError(
                f"option {FOLLOW_OPTION} names {each!r}, which the table does not declare: files "
                f"of a format that nobody checks cannot follow. Name it in {FORMATS_OPTION}, too, "
                f"or leave it out of {FOLLOW_OPTION}"
            )


def _following(options: Mapping[str, str]) -> tuple[str | None, str | None]:
    return options.get(FOLLOW_OPTION), options.get(FORMATS_OPTION)


def _unknown(options: Mapping[str, str], formats: Formats) -> InvalidChangeError:
    text = options.get(FORMATS_OPTION, DEFAULT_FORMATS)
    return InvalidChangeError(
        f"option {FORMATS_OPTION} is {text!r}; name one or more of {', '.join(formats.names())}, "
        "separated by commas"
    )


def refuse_inexpressible(batch: Batch, formats: Formats) -> None:
    """Refuse what a batch made of a table, when one of its formats cannot express it.

    Raises:
        FormatError: The first problem; it names the format, its rule and the alternative.
    """
    for problem in problems(batch, formats):
        raise problem


def problems(batch: Batch, formats: Formats) -> Iterator[FormatError]:
    """Yield everything that the formats of `batch.rules` cannot express."""
    if batch.only_leaves:
        return
    options = batch.schema.options
    asked: list[FormatRules] = []
    for name, found in _found(batch.rules, batch.before, formats):
        if isinstance(found, Refusal):
            yield _worded(name, found, options)
        else:
            asked.append(found)
    for each in asked:
        for refusal in each.problems(batch):
            yield _worded(each.name, refusal, options)
    for each in asked:
        for refusal in each.last_problems(batch):
            yield _worded(each.name, refusal, options)
    for one, other in combinations(asked, 2):
        for refusal in _pair_problems(one, other, batch):
            yield _worded(one.name, refusal, options)


def refuse_birth(birth: Birth, formats: Formats) -> None:
    """Refuse a table that one of its formats cannot express.

    Raises:
        FormatError: As `refuse_inexpressible`.
        InvalidChangeError: It declares a format that there is not, or has an option that is wrong.
    """
    _refuse_misspelt(birth.schema.options, {})
    _refuse_following(birth.schema.options, {})
    refuse_grace(birth.schema.options)
    if not birth.rules.formats <= set(formats.names()):
        raise _unknown(birth.schema.options, formats)
    for problem in birth_problems(birth, formats):
        raise problem


def birth_problems(birth: Birth, formats: Formats) -> Iterator[FormatError]:
    """Yield everything that a new table's formats cannot express."""
    options = birth.schema.options
    asked: list[FormatRules] = []
    for name in _in_order(birth.rules.formats):
        found = formats.find(name)
        if isinstance(found, Refusal):
            yield _worded(name, found, options)
            continue
        asked.append(found)
        for refusal in found.birth_problems(birth):
            yield _worded(name, refusal, options)
    for one, other in combinations(asked, 2):
        for refusal in _clashing_forms(one, other, birth.schema.fields):
            yield _worded(one.name, refusal, options)


def raised_rules(
    options: Mapping[str, str], state: TableState, formats: Formats
) -> FormatRulesRaised | None:
    """Return the fact that a table is changed by higher rules than ever; None where it is not.

    Args:
        options: The table's, after the change.
        state: The table before.
        formats: The formats that there are.
    """
    raised = {}
    for name in _in_order(declared_by(options).formats):
        found = formats.find(name)
        if not isinstance(found, Refusal) and found.number > state.format_rules.get(name, 1):
            raised[name] = found.number
    return FormatRulesRaised(rules=raised) if raised else None


def refuse_names(
    schema: Schema,
    files: Collection[FileChange],
    state: TableState,
    history: History,
    formats: Formats,
) -> None:
    """Refuse files by whose names one of the table's formats does not find its columns.

    Args:
        schema: The table's schema.
        files: What comes and goes.
        state: The table before.
        history: Its past.
        formats: The formats that there are.

    Raises:
        FormatError: A name would stand for two fields, or a field have two names.
    """
    for each in _declared(schema, state, formats):
        for refusal in each.name_problems(schema, files, state, history):
            raise _worded(each.name, refusal, schema.options)


def binds_names(state: TableState, formats: Formats) -> bool:
    """Whether a declared format asks what the names of older schemas meant."""
    found = (formats.find(each) for each in declared_by(state.schema.options).formats)
    return any(not isinstance(each, Refusal) and each.binds_names for each in found)


def refuse_files(
    state: TableState,
    files: Collection[FileChange],
    facts: Mapping[str, Any],
    formats: Formats,
    *,
    is_back: bool = False,
) -> None:
    """Refuse files that come and that one of a table's formats cannot say.

    Args:
        state: The table before.
        files: What comes and goes, of one snapshot.
        facts: What the snapshot says of itself.
        formats: The formats that there are.
        is_back: Whether a rollback brings back what comes.

    Raises:
        FormatError: The first problem.
    """
    rules = declared_by(state.schema.options)
    arrival = Arrival(state, rules, files, facts, is_back)
    # In reverse: formats beside the first know values and bytes, and say best what is wrong.
    for each in reversed(list(_declared(state.schema, state, formats))):
        for refusal in each.file_problems(arrival):
            raise _worded(each.name, refusal, state.schema.options)


def refuse_tag(state: TableState, name: str, formats: Formats) -> None:
    """Refuse a tag that one of a table's formats cannot have.

    Raises:
        FormatError: It cannot.
    """
    others = () if name in state.tags else state.tags.keys()
    for each in _declared(state.schema, state, formats):
        for refusal in each.tag_problems(name, others):
            raise _worded(each.name, refusal, state.schema.options)


def _declared(schema: Schema, state: TableState, formats: Formats) -> Iterator[FormatRules]:
    rules = declared_by(schema.options)
    for name, found in _found(rules, state, formats):
        if isinstance(found, Refusal):
            raise _worded(name, found, schema.options)
        yield found


def _found(
    rules: Rules, state: TableState, formats: Formats
) -> Iterator[tuple[str, FormatRules | Refusal]]:
    for name in _in_order(rules.formats):
        found = formats.find(name)
        used = state.format_rules.get(name, 1)
        if isinstance(found, Refusal) or found.number >= used:
            yield name, found
            continue
        yield (
            name,
            Refusal(
                f"format {name!r}",
                f"the table was changed by rules {used} of it, and those that are installed here "
                f"are {found.number}",
                "upgrade the package that brings them",
            ),
        )


# Every commit asks, and tables have few answers.
@lru_cache(maxsize=64)
def _in_order(names: frozenset[str]) -> tuple[str, ...]:
    first = tuple(each for each in _DEFAULT_FORMATS if each in names)
    return (*first, *sorted(names.difference(first)))


def _worded(name: str, refusal: Refusal, options: Mapping[str, str]) -> FormatError:
    """Return a refusal with leaving the format as one more way out.

    Args:
        name: The format's.
        refusal: What it says.
        options: The table's, which declare its formats.
    """
    declared = declared_by(options).formats
    others = _in_order(declared - {name} or frozenset(_DEFAULT_FORMATS) - {name})
    ways = (
        f"{refusal.alternative}, or leave format {name!r}: set {FORMATS_OPTION}={','.join(others)}"
    )
    return FormatError(f"{refusal.what}: {refusal.rule}; {ways}", name, refusal.rule, ways)


def _pair_problems(one: FormatRules, other: FormatRules, batch: Batch) -> Iterator[Refusal]:
    """Yield the columns that no file can hold so that readers of both formats read them."""
    were_declared = {one.name, other.name} <= batch.declared_before.formats
    if were_declared and batch.is_same_shape:
        return
    roots = _clashing_roots(one, other)
    if not roots:
        return
    if were_declared:
        for column in batch.changed_columns:
            old = batch.columns_before.get(column.id)
            # Tables that are older than the rule keep what they have.
            if old is None or not any(_clashes_at(one, other, roots, [old])):
                yield from _clashes_at(one, other, roots, [column])
        return
    yield from _clashes_at(one, other, roots, batch.schema.fields)
    for older in batch.readable:
        yield from _clashes_at(one, other, roots, older.fields)


def _clashing_forms(
    one: FormatRules, other: FormatRules, columns: Iterable[DataField]
) -> Iterator[Refusal]:
    roots = _clashing_roots(one, other)
    return _clashes_at(one, other, roots, columns) if roots else iter(())


def _clashes_at(
    one: FormatRules, other: FormatRules, roots: Collection[str], columns: Iterable[DataField]
) -> Iterator[Refusal]:
    for place in type_places(columns):
        if place.type.root in roots:
            ours, theirs = one.file_forms[place.type.root], other.file_forms[place.type.root]
            yield Refusal(
                f"column {place.name}",
                f"{one.title}'s files keep a {place.type.root} as {ours.form}, and "
                f"{other.title}'s as {theirs.form}, so that nobody could write one for both",
                ours.alternative,
            )


def _clashing_roots(one: FormatRules, other: FormatRules) -> set[str]:
    return {
        root
        for root in one.file_forms.keys() & other.file_forms.keys()
        if one.file_forms[root].form != other.file_forms[root].form
    }
