"""Rules of how rows merge: `fields.*` options, sequence fields and groups, aggregate functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ledger.evolution.refusals import argument, runtime, state
from ledger.evolution.validation.subject import Subject, contains_root

_PREFIX = "fields"
_DEFAULT_FUNCTION = "default-aggregate-function"
_GROUP_SUFFIX = ".sequence-group"

AGGREGATE_FUNCTIONS = frozenset(
    {
        "bool_and",
        "bool_or",
        "collect",
        "first_non_null_value",
        "first_not_null_value",
        "first_value",
        "hll_sketch",
        "last_non_null_value",
        "last_value",
        "listagg",
        "max",
        "merge_map",
        "merge_map_with_keytime",
        "min",
        "nested_partial_update",
        "nested_update",
        "primary-key",
        "product",
        "rbm32",
        "rbm64",
        "sum",
        "theta_sketch",
    }
)
"""Paimon's own aggregate functions; newer releases add some."""


def field_options(subject: Subject) -> None:
    """Check that every `fields.<names>.` option names columns, and no member of a ROW.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for key in subject.options.values:
        if not key.startswith(_PREFIX):
            continue
        segments = key.split(".")
        if not any(segments[1:]):
            raise runtime(f"option {key} names no column; write fields.<column>.<option>")
        names = segments[1].split(",")
        for name in names:
            if name != _DEFAULT_FUNCTION and name not in subject.columns:
                raise argument(f"option {key} names {name}, which is not a column")
        is_path = len(segments) > 3 and len(names) == 1  # noqa: PLR2004 - fields.<name>.<aspect>
        column = subject.columns.get(names[0])
        if is_path and column is not None and column.type.root == "ROW":
            raise argument(f"option {key} goes inside ROW column {names[0]}; it cannot")


def sequence_fields(subject: Subject) -> None:
    """Check the columns that say which of two rows is newer.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    names = subject.sequence_fields
    times = Counter(names)
    for name in names:
        if name not in subject.columns:
            raise argument(f"option sequence.field names {name}, which is not a column")
        if subject.options.text(f"{_PREFIX}.{name}.aggregate-function") is not None:
            raise argument(f"sequence field {name} cannot be aggregated; remove its function")
        if times[name] > 1:
            raise argument(f"option sequence.field names {name} more than once")
    if not names:
        return
    if subject.options.merge_engine == "first-row":
        raise argument("option sequence.field does not go with merge-engine first-row")
    missing = set(subject.schema.partition_keys) - set(subject.schema.primary_keys)
    if subject.has_primary_key and missing:
        raise argument(
            f"option sequence.field needs all partition keys in the primary key; missing {missing}"
        )


def merge_function(subject: Subject) -> None:
    """Check how rows of one key merge: what happens on a delete, and sequence groups.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or ILLEGAL_STATE.
    """
    match subject.options.merge_engine:
        case "partial-update":
            _partial_update(subject)
        case "aggregation" if subject.has_primary_key:
            subject.options.flag("aggregation.remove-record-on-delete")
        case _ if subject.has_primary_key:
            _ = subject.options.ignores_delete
        case _:
            return


def _partial_update(subject: Subject) -> None:
    groups = {
        key: key.removeprefix(f"{_PREFIX}.").removesuffix(_GROUP_SUFFIX).split(",")
        for key in subject.options.values
        if key.startswith(f"{_PREFIX}.") and key.endswith(_GROUP_SUFFIX)
    }
    for key, ordering in groups.items():
        for name in ordering:
            if name in subject.columns and contains_root(subject.columns[name].type, "BLOB"):
                raise argument(f"option {key}: {name} holds BLOBs, which have no order")
    if subject.has_primary_key:
        protected = _protected(subject, groups)
        _partial_functions(subject, groups, protected)
        _deletes(subject, groups)


def _protected(subject: Subject, groups: dict[str, list[str]]) -> set[str]:
    protected: set[str] = set()
    for key, ordering in groups.items():
        members = subject.options.values[key].split(",")
        for name in (*members, *ordering):
            if name not in subject.columns:
                raise argument(f"option {key} names {name}, which is not a column")
            if name in subject.schema.primary_keys:
                raise argument(f"option {key} names {name}, which is in the primary key")
        repeated = protected & set(members)
        if repeated or len(set(members)) < len(members):
            raise argument(f"option {key} names {sorted(repeated)}, which stand in a group already")
        protected |= set(members)
    return protected


def _partial_functions(subject: Subject, groups: dict[str, list[str]], protected: set[str]) -> None:
    ordering = {name for names in groups.values() for name in names}
    for name in subject.schema.names:
        if name in ordering or name in subject.schema.primary_keys:
            continue
        function = aggregate_function(subject, name)
        if function not in {None, "last_non_null_value"} and name not in protected:
            raise argument(f"column {name} needs a sequence group to be aggregated by {function}")


def _deletes(subject: Subject, groups: dict[str, list[str]]) -> None:
    options = subject.options
    ignores = options.ignores_delete
    removes = options.flag("partial-update.remove-record-on-delete")
    group_key = "partial-update.remove-record-on-sequence-group"
    on_group = options.text(group_key)
    if ignores and (removes or on_group is not None):
        raise state("option ignore-delete does not go with removing records; remove one of them")
    if removes and groups:
        raise state("partial-update.remove-record-on-delete does not go with sequence groups")
    ordering = {name for names in groups.values() for name in names}
    if on_group is not None and not set(on_group.split(",")) <= ordering:
        raise state(f"option {group_key}={on_group!r} must name fields of sequence groups")


def aggregate_functions(subject: Subject) -> None:
    """Check that every aggregate function is known.

    Raises:
        InvalidChangeError: RUNTIME.
    """
    if not subject.has_primary_key:
        return
    if subject.options.merge_engine not in {"partial-update", "aggregation"}:
        return
    for name in subject.schema.names:
        function = aggregate_function(subject, name)
        if function is not None and function not in AGGREGATE_FUNCTIONS:
            raise runtime(
                f"column {name}: aggregate function {function!r} is unknown; "
                f"there are {_listed(AGGREGATE_FUNCTIONS)}"
            )


def aggregate_function(subject: Subject, name: str) -> str | None:
    """Return the function that a column's values merge by, if one is given."""
    return subject.options.text(
        f"{_PREFIX}.{name}.aggregate-function", f"{_PREFIX}.{_DEFAULT_FUNCTION}"
    )


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names))
