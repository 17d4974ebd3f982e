"""FormatRules: the interface of a table format to decisions, and declared formats.

A change means what it means whatever formats a table declares. Whether the table stays expressible
in a format is that format's own to say, and nothing in here knows one by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, compress, pairwise, repeat
from operator import is_not
from typing import Any, Protocol

from msgspec import Struct

from ledger.model.errors import InvalidChangeError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionField, PartitionSpec, SortField, SortOrder
from ledger.model.lazy_values import once
from ledger.model.schema import Schema, indexed
from ledger.model.transforms import transform_of
from ledger.model.types import DataField, DataType, TypePlace, type_places, walk_fields
from ledger.model.types.text import bare_text, format_type
from ledger.state.columns import PastColumns
from ledger.state.declared_formats import FORMATS_OPTION, Rules
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
