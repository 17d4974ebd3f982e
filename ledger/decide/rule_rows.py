"""Validation rules of whole schemas as rows, and their inputs.

A row has the options that it is about, so that only the rows of a table's own options are checked;
conditions, evaluated in order, under which it rejects; the kind of Paimon's error; and the message.
A rule that needs an algorithm is a row with a function. The message is a format string: `{name}`
and `{root}` are the column in question and its type, `{c...}` is anything of the `SchemaCandidate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Protocol

from attrs import define, field
from msgspec import Struct
from msgspec.structs import force_setattr

from ledger.decide.column_draft import is_blob
from ledger.decide.errors import argument_error
from ledger.decide.table_options import TableOptions
from ledger.model.column_index import NameFilter, column_index_of
from ledger.model.errors import InvalidChangeError
from ledger.model.schema import Schema
from ledger.model.types import DataField, DataType, parts_of

UNUSUAL_ROOTS = frozenset(
    {"ARRAY", "MAP", "MULTISET", "ROW", "VECTOR", "BLOB", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
)
"""Types that some rule is about, and those that such a type may be nested in."""


@define(slots=False)
class SchemaCandidate:
    """A schema to be validated, with its columns by role.

    Attributes:
        schema: The schema.
        options: Its options, parsed.
        unusual: The columns of types that some rule is about.
    """

    schema: Schema
    options: TableOptions = field(init=False)
    unusual: tuple[DataField, ...] = field(init=False, eq=False, repr=False)

    @options.default
    def _parsed_options(self) -> TableOptions:
        return TableOptions(self.schema.options)

    @unusual.default
    def _columns_of_unusual_types(self) -> tuple[DataField, ...]:
        if UNUSUAL_ROOTS.isdisjoint(column_index_of(self.schema.fields).roots):
            return ()
        return tuple([each for each in self.schema.fields if each.type.root in UNUSUAL_ROOTS])

    def names_by(self, select: NameFilter) -> tuple[str, ...]:
        """Return the column names that a filter selects; cached."""
        return column_index_of(self.schema.fields).names_by(select)

    @property
    def columns(self) -> Mapping[str, DataField]:
        """The columns by name."""
        return column_index_of(self.schema.fields).by_name

    @property
    def has_primary_key(self) -> bool:
        """True if the table has a primary key."""
        return bool(self.schema.primary_keys)

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns by which a row's bucket is chosen, as the option spells them."""
        listed = self.options.text("bucket-key") or ""
        return tuple(listed.split(",")) if listed.strip() else ()

    @property
    def sequence_fields(self) -> tuple[str, ...]:
        """The columns that decide which of two rows is newer."""
        listed = self.options.text("sequence.field")
        return () if listed is None else tuple(each.strip() for each in listed.split(","))

    @property
    def non_key_partition_columns(self) -> set[str]:
        """The partition keys that are not in the primary key."""
        return set(self.schema.partition_keys) - set(self.schema.primary_keys)

    @property
    def blobs(self) -> list[str]:
        """The columns of BLOBs."""
        return [each.name for each in self.unusual if is_blob(each.type)]

    @property
    def vectors(self) -> list[str]:
        """The columns that are VECTORs."""
        return [each.name for each in self.unusual if each.type.root == "VECTOR"]

    @property
    def managed_blobs(self) -> tuple[str, ...]:
        """The columns whose BLOBs are kept in files of their own."""
        inline = {
            name
            for key in ("blob-descriptor-field", "blob-view-field")
            for name in self.inline_blobs(key)
        }
        return tuple(each for each in self.blobs if each not in inline)

    def inline_blobs(self, key: str) -> tuple[str, ...]:
        """Return the columns that one of the two options lists whose BLOBs are in the rows."""
        if key == "blob-descriptor-field" and self.options.text(key) is None:
            return self.options.names("blob.stored-descriptor-fields")
        return self.options.names(key)

    def is_shredded(self, name: str) -> bool:
        """Return whether a column's map is shredded over columns of the file."""
        layout = self.options.text(f"fields.{name}.map.storage-layout") or "default"
        return layout.lower() == "shared-shredding"

    def aggregate_function(self, name: str) -> str | None:
        """Return the aggregate function of a column, if one is set."""
        return self.options.text(
            f"fields.{name}.aggregate-function", "fields.default-aggregate-function"
        )


def contains_root(data_type: DataType, *roots: str) -> bool:
    """Return whether a type of one of these roots is anywhere inside `data_type`."""
    if data_type.root in roots:
        return True
    return any(contains_root(each.type, *roots) for each in parts_of(data_type))


Keys = frozenset[str] | None
"""Options without any of which a row need not be checked; None: it always is."""

Refusal = Callable[[str], InvalidChangeError]
"""Returns the error of a kind; see `ledger.decide.errors`."""


class SchemaRule(Protocol):
    """One rule, or several on one subject."""

    @property
    def keys(self) -> Keys:
        """The options that it is about."""

    def check(self, candidate: SchemaCandidate) -> None:
        """Reject a schema that breaks it."""


def check_schema_rules(rows: Iterable[SchemaRule], candidate: SchemaCandidate) -> None:
    """Reject a schema that breaks a row, by the first such row.

    Raises:
        InvalidChangeError: It breaks one; `kind` is that of Paimon's error.
    """
    given = candidate.options.values
    for row in rows:
        if row.keys is None or not row.keys.isdisjoint(given):
            row.check(candidate)


class SchemaCondition(Struct, frozen=True):
    """A condition on a schema.

    Attributes:
        holds: Returns whether it holds. Raises ILLEGAL_ARGUMENT for an invalid option.
        keys: Options without any of which it never holds.
    """

    holds: Callable[[SchemaCandidate], bool]
    keys: Keys = None


class RefuseWhen(Struct, frozen=True):
    """Rejects where all conditions hold; they are evaluated in order, until one fails."""

    when: tuple[SchemaCondition, ...]
    refusal: Refusal
    says: str
    keys: Keys = None

    def __post_init__(self) -> None:
        # A later condition is not evaluated before the first, which may have an invalid option.
        force_setattr(self, "keys", self.when[0].keys)

    def check(self, candidate: SchemaCandidate) -> None:
        """Reject where all conditions hold."""
        for each in self.when:
            if not each.holds(candidate):
                return
        raise self.refusal(self.says.format(c=candidate))


class RulesWhen(Struct, frozen=True):
    """Rows that apply where a condition holds."""

    condition: SchemaCondition
    rows: tuple[SchemaRule, ...]
    keys: Keys = None

    def __post_init__(self) -> None:
        force_setattr(self, "keys", self.condition.keys)

    def check(self, candidate: SchemaCandidate) -> None:
        """Check the rows where the condition holds."""
        if self.condition.holds(candidate):
            check_schema_rules(self.rows, candidate)


class ColumnNamesGetter(Struct, frozen=True):
    """Columns that an option lists, or that have a role in the schema."""

    of: Callable[[SchemaCandidate], Sequence[str]]
    keys: Keys = None


class RefuseColumnName(Struct, frozen=True):
    """Rejects some column names; a row of `ForEachColumn`."""

    broken: Callable[[SchemaCandidate, str], bool]
    refusal: Refusal
    says: str


class ForEachColumn(Struct, frozen=True):
    """Rows that are checked for one column after the other."""

    names: ColumnNamesGetter
    rows: tuple[RefuseColumnName, ...]
    keys: Keys = None

    def __post_init__(self) -> None:
        force_setattr(self, "keys", self.names.keys)

    def check(self, candidate: SchemaCandidate) -> None:
        """Reject the first column that breaks a row."""
        for name in self.names.of(candidate):
            for row in self.rows:
                if row.broken(candidate, name):
                    column = candidate.columns.get(name)
                    root = "" if column is None else column.type.root
                    raise row.refusal(row.says.format(c=candidate, name=name, root=root))


class ReadableOptions(Struct, frozen=True):
    """Options whose value must be valid where they are set."""

    reads: Callable[[TableOptions, str], object]
    options: tuple[str, ...]
    keys: Keys = None

    def __post_init__(self) -> None:
        force_setattr(self, "keys", frozenset(self.options))

    def check(self, candidate: SchemaCandidate) -> None:
        """Parse them, which rejects invalid values."""
        for key in self.options:
            self.reads(candidate.options, key)


class OptionMinimum(Struct, frozen=True):
    """An integer option with a minimum."""

    option: str
    least: int
    keys: Keys = None

    def __post_init__(self) -> None:
        force_setattr(self, "keys", frozenset({self.option}))

    def check(self, candidate: SchemaCandidate) -> None:
        """Reject a smaller value."""
        check_option_minimum(candidate, self.option, self.least)


def check_option_minimum(candidate: SchemaCandidate, key: str, least: int) -> None:
    """Reject an option that is set to a smaller number than `least`."""
    if candidate.options.number(key, least) < least:
        raise argument_error(f"option {key} must be at least {least}")


class FunctionRule(Struct, frozen=True):
    """A rule with a function of its own."""

    algorithm: Callable[[SchemaCandidate], object]
    keys: Keys = None

    def check(self, candidate: SchemaCandidate) -> None:
        """Call the function."""
        self.algorithm(candidate)


def rule_option_keys(*keys: str) -> frozenset[str]:
    """Return the options that a row is about."""
    return frozenset(keys)


# ---- conditions


def is_switch_on(key: str, *older_keys: str) -> SchemaCondition:
    """A switch is on, by this key or one of its older names."""
    return SchemaCondition(
        lambda c: c.options.flag(key, *older_keys), rule_option_keys(key, *older_keys)
    )


def is_option_set(*keys: str) -> SchemaCondition:
    """An option is set to any value, by its key or one of its older names."""
    return SchemaCondition(lambda c: c.options.text(*keys) is not None, rule_option_keys(*keys))


def lists_columns(key: str) -> SchemaCondition:
    """An option lists a column or more."""
    return SchemaCondition(lambda c: bool(c.options.names(key)), rule_option_keys(key))


def merge_engine_is(*names: str) -> SchemaCondition:
    """The merge engine is one of these."""
    keys = None if "deduplicate" in names else rule_option_keys("merge-engine")
    return SchemaCondition(lambda c: c.options.merge_engine in names, keys)


def changelog_producer_is(*names: str) -> SchemaCondition:
    """The changelog producer is one of these."""
    keys = None if "none" in names else rule_option_keys("changelog-producer")
    return SchemaCondition(lambda c: c.options.changelog_producer in names, keys)


def negated(condition: SchemaCondition) -> SchemaCondition:
    """A condition does not hold; checked whatever options there are."""
    return SchemaCondition(lambda c: not condition.holds(c))


KEYED = SchemaCondition(lambda c: c.has_primary_key)
UNKEYED = negated(KEYED)
IN_SEQUENCE = SchemaCondition(lambda c: bool(c.sequence_fields), rule_option_keys("sequence.field"))
"""Some column decides which of two rows is newer."""
BUCKETED = SchemaCondition(lambda c: c.options.bucket != -1, rule_option_keys("bucket"))
"""The number of buckets is fixed, or postponed."""
UNBUCKETED = negated(BUCKETED)
UNUSUAL = SchemaCondition(lambda c: bool(c.unusual))
"""Some column has a type that few columns have."""
NO_FIXED_BUCKETS = SchemaCondition(lambda c: c.options.bucket < 1)
DELETION_VECTORS = is_switch_on("deletion-vectors.enabled")
OVERRIDES = is_switch_on("pk-clustering-override")
EVOLVES_DATA = is_switch_on("data-evolution.enabled")


def has_option_prefix(prefix: str) -> SchemaCondition:
    """Some option has this prefix."""
    return SchemaCondition(lambda c: any(map(str.startswith, c.options.values, repeat(prefix))))


# ---- columns


def listed_columns(key: str) -> ColumnNamesGetter:
    """The columns of a comma list; blank entries do not count."""
    return ColumnNamesGetter(lambda c: c.options.names(key), rule_option_keys(key))


def named_column(key: str) -> ColumnNamesGetter:
    """The one column that an option names."""
    return ColumnNamesGetter(lambda c: (c.options.values[key],), rule_option_keys(key))


BUCKET_KEYS = ColumnNamesGetter(lambda c: c.bucket_keys, rule_option_keys("bucket-key"))
SEQUENCE_FIELDS = ColumnNamesGetter(lambda c: c.sequence_fields, rule_option_keys("sequence.field"))
PRIMARY_KEYS = ColumnNamesGetter(lambda c: c.schema.primary_keys)
PARTITION_KEYS = ColumnNamesGetter(lambda c: c.schema.partition_keys)


def is_unknown_column(candidate: SchemaCandidate, name: str) -> bool:
    """Return whether there is no such column."""
    return name not in candidate.columns


def type_is_one_of(*roots: str) -> Callable[[SchemaCandidate, str], bool]:
    """Return a test whether a column's type is one of these."""
    return lambda c, name: c.columns[name].type.root in roots


def type_is_none_of(*roots: str) -> Callable[[SchemaCandidate, str], bool]:
    """Return a test whether a column's type is none of these."""
    return lambda c, name: c.columns[name].type.root not in roots


def refuse_unknown_column(key: str, refusal: Refusal = argument_error) -> RefuseColumnName:
    """Reject a name in an option that is no column's."""
    return RefuseColumnName(
        is_unknown_column, refusal, f"option {key} names {{name}}, which is not a column"
    )
