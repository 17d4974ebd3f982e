"""Rules of how rows merge: `fields.*` options, sequence fields and groups, aggregate functions."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.evolution.refusals import argument, runtime, state
from ledger.evolution.validation.candidate import Candidate, contains_root

_PREFIX = "fields"
_DEFAULT_FUNCTION = "default-aggregate-function"
_GROUP_SUFFIX = ".sequence-group"

CHAIN_KEYS = "chain-table.chain-partition-keys"

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


def field_options(candidate: Candidate) -> None:
    """Check that every `fields.<names>.` option names columns, and no member of a ROW.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    for key in candidate.options.values:
        if not key.startswith(_PREFIX):
            continue
        segments = key.split(".")
        if not any(segments[1:]):
            raise runtime(f"option {key} names no column; write fields.<column>.<option>")
        names = segments[1].split(",")
        for name in names:
            if name != _DEFAULT_FUNCTION and name not in candidate.columns:
                raise argument(f"option {key} names {name}, which is not a column")
        is_path = len(segments) > 3 and len(names) == 1  # noqa: PLR2004 - fields.<name>.<aspect>
        column = candidate.columns.get(names[0])
        if is_path and column is not None and column.type.root == "ROW":
            raise argument(f"option {key} goes inside ROW column {names[0]}; it cannot")


def partial_update(candidate: Candidate) -> None:
    """Check how rows of one key become one column by column: sequence groups, and deletes.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT or ILLEGAL_STATE.
    """
    groups = {
        key: key.removeprefix(f"{_PREFIX}.").removesuffix(_GROUP_SUFFIX).split(",")
        for key in candidate.options.values
        if key.startswith(f"{_PREFIX}.") and key.endswith(_GROUP_SUFFIX)
    }
    for key, ordering in groups.items():
        for name in ordering:
            if name in candidate.columns and contains_root(candidate.columns[name].type, "BLOB"):
                raise argument(f"option {key}: {name} holds BLOBs, which have no order")
    if candidate.has_primary_key:
        protected = _protected(candidate, groups)
        _partial_functions(candidate, groups, protected)
        _deletes(candidate, groups)


def _protected(candidate: Candidate, groups: dict[str, list[str]]) -> set[str]:
    protected: set[str] = set()
    for key, ordering in groups.items():
        members = candidate.options.values[key].split(",")
        for name in (*members, *ordering):
            if name not in candidate.columns:
                raise argument(f"option {key} names {name}, which is not a column")
            if name in candidate.schema.primary_keys:
                raise argument(f"option {key} names {name}, which is in the primary key")
        repeated = protected & set(members)
        if repeated or len(set(members)) < len(members):
            raise argument(f"option {key} names {sorted(repeated)}, which stand in a group already")
        protected |= set(members)
    return protected


def _partial_functions(
    candidate: Candidate, groups: dict[str, list[str]], protected: set[str]
) -> None:
    ordering = {name for names in groups.values() for name in names}
    for name in candidate.schema.names:
        if name in ordering or name in candidate.schema.primary_keys:
            continue
        function = candidate.aggregate_function(name)
        if function not in {None, "last_non_null_value"} and name not in protected:
            raise argument(f"column {name} needs a sequence group to be aggregated by {function}")


def _deletes(candidate: Candidate, groups: dict[str, list[str]]) -> None:
    options = candidate.options
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


def aggregate_functions(candidate: Candidate) -> None:
    """Check that every aggregate function is known.

    Raises:
        InvalidChangeError: RUNTIME.
    """
    if not candidate.has_primary_key:
        return
    if candidate.options.merge_engine not in {"partial-update", "aggregation"}:
        return
    for name in candidate.schema.names:
        function = candidate.aggregate_function(name)
        if function is not None and function not in AGGREGATE_FUNCTIONS:
            raise runtime(
                f"column {name}: aggregate function {function!r} is unknown; "
                f"there are {_listed(AGGREGATE_FUNCTIONS)}"
            )


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names))


def chain_partition_keys(candidate: Candidate) -> None:
    """Check that a chain table's own keys are the last of its partition keys.

    Raises:
        InvalidChangeError: ILLEGAL_ARGUMENT.
    """
    listed = candidate.options.text(CHAIN_KEYS) or ""
    if not listed.strip():
        return
    chain = tuple(each.strip() for each in listed.split(","))
    keys = candidate.schema.partition_keys
    if keys[len(keys) - len(chain) :] != chain:
        raise argument(f"option {CHAIN_KEYS}={listed!r} must be the last of partition keys {keys}")
