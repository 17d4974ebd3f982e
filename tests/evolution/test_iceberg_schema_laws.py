"""However calls are mixed, the compiled changes lead to what Iceberg's model leads to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledger import InvalidInputError, Schema
from ledger.decide import SchemaUpdate, decide_schema, with_policy
from ledger.model import paths_of, read_type
from ledger.state import Rules, SchemaBuilder
from tests.evolution.iceberg_json import json_of
from tests.evolution.iceberg_model import Leaf, Model, RefusedError, leaves
from tests.thorough import examples

ICEBERG = Rules(frozenset({"iceberg"}))
BOTH = Rules(frozenset({"paimon", "iceberg"}))

PAIMON_IDS = Schema.of(
    {
        name: read_type(text)
        for name, text in {
            "a": "INT NOT NULL",
            "b": "FLOAT",
            "s": "ROW<a INT NOT NULL, b STRING, c ROW<a INT>> NOT NULL",
            "l": "ARRAY<ROW<a INT, b FLOAT>>",
            "m": "MAP<ROW<a INT>, ROW<a INT, b INT NOT NULL>>",
            "n": "ARRAY<INT>",
        }.items()
    }
)
ICEBERG_IDS = with_policy(PAIMON_IDS, "iceberg")

PLACES = st.sampled_from(
    [
        *("a", "b", "s", "l", "m", "n", "x", "y"),
        *("s.a", "s.b", "s.c", "s.c.a", "s.x", "l.a", "l.element.b", "l.element", "l.x"),
        *("m.a", "m.value.b", "m.key", "m.key.a", "m.value", "n.element", "m.x", "zz"),
    ]
)
NEW_PLACES = st.sampled_from(
    [
        *(("x",), ("y",), ("a",), ("b",), ("s",)),
        *(("s", "x"), ("s", "a"), ("s", "b"), ("s", "c", "x"), ("s", "c", "a")),
        *(("l", "x"), ("l", "element", "a"), ("m", "x"), ("m", "value", "a"), ("m", "key", "x")),
        *(("n", "x"), ("a", "x"), ("zz", "x")),
    ]
)
NAMES = st.sampled_from(["a", "b", "c", "s", "x", "y"])
TYPES = st.sampled_from(["INT", "BIGINT", "FLOAT", "DOUBLE", "STRING"]).map(read_type)
NEW_TYPES = st.one_of(TYPES, st.just(read_type("ROW<a INT>")))

Call = tuple[str, tuple[Any, ...]]


def call(kind: str, *given_parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Call]:
    return st.tuples(st.just(kind), st.tuples(*given_parts))


# Deletions and renames are what everything else trips over.
CALLS = st.one_of(
    call("add", NEW_PLACES, NEW_TYPES, st.booleans(), st.sampled_from([None, None, "7"])),
    call("add", NEW_PLACES, st.just(read_type("INT")), st.just(value=False), st.none()),
    call("delete", PLACES),
    call("delete", PLACES),
    call("rename", PLACES, NAMES),
    call("rename", PLACES, NAMES),
    call("retype", PLACES, TYPES),
    call("comment", PLACES, st.sampled_from(["one", "two"])),
    call("default", PLACES, st.sampled_from(["1", "2"])),
    call("optional", PLACES),
    call("require", PLACES),
    call("move", PLACES, st.just("FIRST"), st.none()),
    call("move", PLACES, st.sampled_from(["BEFORE", "AFTER"]), PLACES),
    call("identify", st.lists(PLACES, max_size=2)),
    call("allow"),
)

Outcome = tuple[tuple[Leaf, ...], tuple[int, ...]] | None


def of_model(schema: Schema, calls: list[Call]) -> tuple[list[Call], Outcome]:
    """Return the calls that were not rejected at once, and their results."""
    model = Model(schema)
    taken: list[Call] = []
    for each in calls:
        try:
            _ask_model(model, *each)
            taken.append(each)
        except RefusedError:
            continue
    try:
        return taken, model.result()
    except RefusedError:
        return taken, None


def _ask_model(model: Model, kind: str, parts: tuple[Any, ...]) -> None:
    match kind:
        case "add":
            model.add(parts[0], parts[1], required=parts[2], default=parts[3])
        case "identify":
            model.named = parts[0]
        case "allow":
            model.allows = True
        case "optional" | "require":
            model.nullability(parts[0], nullable=kind == "optional")
        case "default":
            model.set_default(*parts)
        case _:
            getattr(model, kind)(*parts)


def _ask_update(update: SchemaUpdate, kind: str, parts: tuple[Any, ...]) -> None:
    match kind:
        case "add":
            update.add_column(parts[0], parts[1], required=parts[2], default=parts[3])
        case "retype":
            update.update_column(parts[0], parts[1])
        case "comment":
            update.update_column(parts[0], doc=parts[1])
        case "default":
            update.update_column(parts[0], default=parts[1])
        case "move" if parts[1] == "FIRST":
            update.move_first(parts[0])
        case "move":
            (update.move_before if parts[1] == "BEFORE" else update.move_after)(parts[0], parts[2])
        case "identify":
            update.set_identifier_fields(*parts[0])
        case "allow":
            update.allow_incompatible_changes()
        case _:
            calls: dict[str, Callable[..., object]] = {
                "delete": update.delete_column,
                "rename": update.rename_column,
                "optional": update.make_optional,
                "require": update.require,
            }
            calls[kind](*parts)


def evolved(schema: Schema, calls: list[Call], rules: Rules) -> tuple[list[Call], Schema | None]:
    """Return the calls that were not rejected at once, and their results."""
    update = SchemaUpdate(schema)
    taken: list[Call] = []
    for each in calls:
        try:
            _ask_update(update, *each)
            taken.append(each)
        except InvalidInputError:
            continue
    try:
        changes = update.changes()
        allowing = Rules(rules.formats, rules.format_version, update.allows_incompatible)
        decision = decide_schema(schema, changes, has_snapshots=True, rules=allowing)
    except InvalidInputError:
        return taken, None
    replayed = SchemaBuilder(schema)
    for fact in decision.events:
        replayed.apply(fact)
    assert replayed.freeze(schema_id=schema.id + 1, time_millis=0) == decision.schema
    return taken, decision.schema


def outcome(schema: Schema | None) -> Outcome:
    return None if schema is None else (leaves(schema), schema.identifier_field_ids)


INT = read_type("INT")
INSIDE_RENAMED: list[Call] = [
    ("rename", ("s", "y")),
    ("rename", ("s.a", "b")),
    ("rename", ("s.b", "a")),
    ("add", (("s", "x"), INT, False, None)),
    ("default", ("s.x", "1")),
    ("add", (("s", "c", "x"), INT, False, None)),
    ("delete", ("s.c.a",)),
    ("move", ("s.x", "BEFORE", "s.b")),
    ("move", ("s.a", "AFTER", "s.c")),
    ("retype", ("s.a", read_type("BIGINT"))),
    ("identify", (["s.a"],)),
]
REPLACED: list[Call] = [
    ("delete", ("s.c.a",)),
    ("add", (("s", "c", "a"), INT, False, None)),
    ("move", ("s.c.a", "FIRST", None)),
    ("delete", ("l.a",)),
    ("rename", ("l.b", "a")),
    ("add", (("l", "x"), INT, False, None)),
]
IN_A_CIRCLE: list[Call] = [
    ("rename", ("a", "b")),
    ("rename", ("b", "s")),
    ("rename", ("s", "a")),
    ("rename", ("m.a", "b")),
    ("rename", ("m.b", "a")),
    ("move", ("s", "FIRST", None)),
]


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(CALLS, min_size=1, max_size=10), st.sampled_from([PAIMON_IDS, ICEBERG_IDS]))
@example(INSIDE_RENAMED, ICEBERG_IDS)
@example(REPLACED, ICEBERG_IDS)
@example(IN_A_CIRCLE, ICEBERG_IDS)
def test_an_update_leads_where_the_model_leads_or_both_refuse(
    calls: list[Call], schema: Schema
) -> None:
    taken, after = evolved(schema, calls, ICEBERG)

    assert (taken, outcome(after)) == of_model(schema, calls)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(CALLS, max_size=5))
def test_under_paimon_too_an_update_leads_where_the_model_leads_or_is_refused(
    calls: list[Call],
) -> None:
    taken, after = evolved(PAIMON_IDS, calls, BOTH)

    if after is not None:
        assert (taken, outcome(after)) == of_model(PAIMON_IDS, calls)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(CALLS, max_size=10))
def test_an_update_never_gives_an_id_to_another_field(calls: list[Call]) -> None:
    _, after = evolved(ICEBERG_IDS, calls, ICEBERG)

    if after is None:
        return
    old = {field_id: path for path, field_id in paths_of(ICEBERG_IDS)}
    ids = [field_id for _, field_id in paths_of(after)]
    assert len(set(ids)) == len(ids)
    assert all(each in old or each > ICEBERG_IDS.highest_field_id for each in ids)
    assert after.highest_field_id >= max(ids)


PEER_CALLS = st.one_of(
    call("add", NEW_PLACES, TYPES, st.just(value=False), st.none()),
    call("delete", PLACES),
    call("rename", PLACES, NAMES),
    call("retype", PLACES, TYPES),
    call("optional", PLACES),
    call("move", PLACES, st.just("FIRST"), st.none()),
    call("move", PLACES, st.sampled_from(["BEFORE", "AFTER"]), PLACES),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(PEER_CALLS, max_size=6))
def test_pyiceberg_leads_to_the_same_schema_where_both_accept(calls: list[Call]) -> None:
    taken, after = evolved(ICEBERG_IDS, calls, ICEBERG)
    peer = of_pyiceberg(ICEBERG_IDS, taken)

    if after is not None and peer is not None:
        assert json_of(after)["fields"] == peer


@frozen
class Begun:
    """As much of PyIceberg's transaction as its update of a schema looks at."""

    table_metadata: Any


def test_the_named_examples_are_accepted_whole() -> None:
    for calls in (INSIDE_RENAMED, REPLACED, IN_A_CIRCLE):
        taken, after = evolved(ICEBERG_IDS, calls, ICEBERG)
        assert taken == calls
        assert after is not None


def test_pyiceberg_is_asked_in_its_own_words() -> None:
    calls: list[Call] = [
        ("add", (("s", "x"), read_type("INT"), False, None)),
        ("rename", ("a", "y")),
        ("delete", ("l.b",)),
        ("move", ("s", "FIRST", None)),
        ("retype", ("n.element", read_type("BIGINT"))),
    ]
    _, after = evolved(ICEBERG_IDS, calls, ICEBERG)

    assert after is not None
    assert json_of(after)["fields"] == of_pyiceberg(ICEBERG_IDS, calls)


def of_pyiceberg(schema: Schema, calls: list[Call]) -> list[dict[str, Any]] | None:
    from pyiceberg.exceptions import ResolveError
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
    from pyiceberg.schema import Schema as PeerSchema
    from pyiceberg.table.metadata import new_table_metadata
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
    from pyiceberg.table.update.schema import UpdateSchema as PeerUpdate

    before = PeerSchema.model_validate(json_of(schema))
    begun = Begun(
        new_table_metadata(before, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "mem:/t")
    )
    make: Any = PeerUpdate
    update = make(transaction=begun, schema=before)
    try:
        for each in calls:
            _ask_peer(update, *each)
        after = update._apply()
    # Where an update touches a new column, PyIceberg stumbles.
    except (ValueError, ResolveError, KeyError, StopIteration):
        return None
    plain: list[dict[str, Any]] = after.model_dump(mode="json")["fields"]
    return plain


def _ask_peer(update: Any, kind: str, parts: tuple[Any, ...]) -> None:
    from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType, StringType

    peers = {
        "INT": IntegerType(),
        "BIGINT": LongType(),
        "FLOAT": FloatType(),
        "DOUBLE": DoubleType(),
        "VARCHAR": StringType(),
    }
    match kind:
        case "add":
            update.add_column(parts[0], peers[parts[1].root])
        case "retype":
            update.update_column(parts[0], field_type=peers[parts[1].root])
        case "move" if parts[1] == "FIRST":
            update.move_first(parts[0])
        case "move":
            (update.move_before if parts[1] == "BEFORE" else update.move_after)(parts[0], parts[2])
        case "delete":
            update.delete_column(parts[0])
        case "rename":
            update.rename_column(*parts)
        case _:
            update.make_column_optional(parts[0])
