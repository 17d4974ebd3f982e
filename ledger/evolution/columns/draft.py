"""A decision in the making: the old schema, a working copy, and the facts decided so far.

What each change was about is kept as its Anchor, for deciding it again on a newer schema.
"""

from __future__ import annotations

from msgspec import Struct

from ledger.events.schema_changes import RenameColumn, SetOption
from ledger.events.schema_events import SchemaEvent
from ledger.evolution.declared.rules import PAIMON_RULES, Rules
from ledger.evolution.fold.schema_builder import SchemaBuilder
from ledger.evolution.options.naming import ColumnNames, OptionText, option_text
from ledger.evolution.options.reading import TableOptions
from ledger.evolution.refusals import argument
from ledger.evolution.tree.past import PastColumns, PastOf
from ledger.evolution.tree.paths import Located, dotted, locate
from ledger.model.errors import ColumnExistsError
from ledger.model.schema import Schema
from ledger.model.types import ArrayType, DataField, MapType, RowType


class Anchor(Struct, frozen=True):
    """What a change was about when it was first decided, for deciding it again later.

    Attributes:
        ids: One field id a path segment; None for wrapper segments and for a new column's name.
            Where a change names several paths, those of the first path come first.
        reference_id: The column that a move refers to.
        named: The columns that an option names, one id a mention; None where there was no such
            column.
        assigned: The ids that this change gave out, the column's own first.
        lapsed: Whether Paimon stored nothing: an option was set to what it was before the batch.
    """

    ids: tuple[int | None, ...] = ()
    reference_id: int | None = None
    named: tuple[int | None, ...] = ()
    assigned: tuple[int, ...] = ()
    lapsed: bool = False


class SchemaDraft:
    """What the rules of one batch look at and add to.

    Paimon's rules differ in what they read: guards, behaviour flags and "is the value unchanged"
    look at the schema before the batch (`old`), existence, ids and types at the `working` copy.
    """

    __slots__ = (
        "_meant",
        "_past",
        "_past_of",
        "events",
        "has_snapshots",
        "old",
        "old_options",
        "renames",
        "rules",
        "working",
    )

    def __init__(
        self,
        old: Schema,
        *,
        has_snapshots: bool,
        rules: Rules = PAIMON_RULES,
        past: PastOf | None = None,
    ) -> None:
        self.old = old
        self.rules = rules
        self.old_options = TableOptions(old.options)
        self.has_snapshots = has_snapshots
        self.working = SchemaBuilder(old)
        self.events: list[SchemaEvent] = []
        self.renames: list[RenameColumn] = []
        self._past_of = past
        self._past: PastColumns | None = None
        self._meant: dict[str, tuple[int | None, ...]] = {}

    @property
    def past(self) -> PastColumns:
        """Every column that the table had.

        Raises:
            InvalidChangeError: A schema alone is decided on, which has no past.
        """
        if self._past_of is None:
            raise argument(
                "what was dropped stands in a table's history, and a schema alone has none: ask "
                "the table, with table.alter([...])"
            )
        if self._past is None:
            self._past = self._past_of()
        return self._past

    def columns_named(self, option: OptionText | None) -> tuple[int | None, ...]:
        """Return the ids of the columns that an option names at this point of the batch.

        Where Paimon's renames carry the option along, a name that was renamed away in this batch
        is the column's that had it before: it maps old names to new ones when the batch is done.
        """
        if option is None:
            return ()
        now = ColumnNames(tuple(self.working.columns.values())).resolve(option)
        if None not in now or not option.carried:
            return now
        before = ColumnNames(self.old.fields).resolve(option)
        return tuple(
            then if found is None else found for found, then in zip(now, before, strict=True)
        )

    def columns_meant(self, key: str) -> tuple[int | None, ...]:
        """Return the ids of the columns that an option of the working copy has meant all along."""
        if key not in self._meant:
            option = option_text(key, self.working.options[key])
            self._meant[key] = (
                () if option is None else ColumnNames(self.old.fields).resolve(option)
            )
        return self._meant[key]

    def record(self, event: SchemaEvent) -> None:
        """Apply a fact to the working copy and keep it."""
        if isinstance(event, SetOption):
            self._meant[event.key] = self.columns_named(option_text(event.key, event.value))
        self.working.apply(event)
        self.events.append(event)

    def freeze(self) -> Schema:
        """Return the schema as it stands now, one id after the old one's."""
        return self.working.freeze(schema_id=self.old.id + 1, time_millis=self.old.time_millis)


def named_place(draft: SchemaDraft, path: tuple[str, ...]) -> Located:
    """Return the place of a path that must end at a named column.

    Raises:
        ColumnNotFoundError: There is none.
        InvalidChangeError: It ends at an ARRAY's element or a MAP's value.
    """
    place = locate(draft.working.column(path), path)
    if place.is_wrapped:
        raise argument(
            f"{dotted(path)} is the inside of column {place.owner.name}, not a column: "
            "only its type and nullability can change"
        )
    return place


def struct_around(
    draft: SchemaDraft, path: tuple[str, ...]
) -> tuple[tuple[DataField, ...], tuple[int | None, ...]]:
    """Return the members beside the last segment of a path, and the ids of the segments before it.

    Raises:
        ColumnNotFoundError: A segment before the last names nothing.
        ColumnExistsError: The last segment stands for an ARRAY's element or a MAP's value.
        InvalidChangeError: Nothing can stand below that type.
    """
    if len(path) == 1:
        return tuple(draft.working.columns.values()), ()
    parent = locate(draft.working.column(path), path[:-1])
    match parent.type:
        case RowType(fields=fields):
            return fields, parent.ids
        case ArrayType() | MapType():
            raise ColumnExistsError(f"column {dotted(path)} exists already and is not a ROW")
        case other:
            raise argument(
                f"column {dotted(path)} cannot be added: {dotted(path[:-1])} is {other.root}, "
                "and only a ROW has members"
            )
