"""Blame counts a transaction once: its last value of an aspect, and none that it gives back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AddPartitionField,
    Move,
    RemoveOption,
    RemovePartitionField,
    RenameColumn,
    ReplaceSortOrder,
    Schema,
    SetIdentifierFields,
    SetOption,
    SortColumn,
    Table,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
    UpdatePartitionSpec,
)
from ledger.audit.blame import blame_column, blame_settings
from ledger.audit.column_history import ColumnHistories, RequestedHistories
from ledger.model.types import STRING, ArrayType, DataField, DataType, IntType, MapType, RowType
from tests.lakes import lake_on, memory, orders
from tests.thorough import examples

SUBJECTS = ("a", "s.m", "l.element.m", "k.value.m")
FREE = {"alter-column-null-to-not-null.disabled": "false"}


def wide_table(formats: str = "paimon") -> Table:
    member = RowType([DataField(at, name, IntType()) for at, name in enumerate("mno")])
    nested = {"s": member, "l": ArrayType(member), "k": MapType(STRING, member)}
    plain = "INT" if formats == "paimon" else "INT NOT NULL"
    columns: dict[str, str | DataType] = {**dict.fromkeys("abc", plain), **nested}
    options = {"ledger.formats": formats, **(FREE if formats == "paimon" else {})}
    return orders(lake_on(memory()), Schema.of(columns, options=options))


@frozen
class Aspect:
    """An aspect: the changes that give it a value, and the subject and origin in a blame."""

    name: str
    values: Mapping[str, Any]
    """A change for each of the values `old`, `new` and `other`."""
    subject: str
    origin: str
    formats: str = "paimon"


def column_aspects() -> Iterable[Aspect]:
    for subject in SUBJECTS:
        path = tuple(subject.split("."))
        last, behind = path[-1], "b" if subject == "a" else "n"
        named: dict[str, dict[str, Any]] = {
            "comment": {n: UpdateColumnComment(path, n) for n in ("old", "new", "other")},
            "default": {
                n: UpdateColumnDefaultValue(path, str(at))
                for at, n in enumerate(("old", "new", "other"))
            },
            "type": {
                n: UpdateColumnType(path, each, keep_nullability=True)
                for n, each in (("old", "BIGINT"), ("new", "DECIMAL(20, 0)"), ("other", "DOUBLE"))
            },
            "order": {
                "old": UpdateColumnPosition(Move(last, "LAST"), path),
                "new": UpdateColumnPosition(Move(last, "AFTER", behind), path),
                "other": UpdateColumnPosition(Move(last, "FIRST"), path),
            },
        }
        for origin, values in named.items():
            owner = subject
            if origin == "order":
                owner = subject.split(".")[0] if len(path) > 1 else ""
            yield Aspect(f"{origin} of {subject}", values, owner, origin)
    for path in (("a",), ("s", "m"), ("l", "element"), ("k", "value")):
        origin = "nullability" if path[-1] in {"a", "m"} else f"nullability of {path[-1]}"
        subject = ".".join(path if path[-1] in {"a", "m"} else path[:1])
        values = {
            "old": UpdateColumnNullability(path, new_nullability=False),
            "new": UpdateColumnNullability(path, new_nullability=True),
            "other": UpdateColumnNullability(path, new_nullability=False),
        }
        yield Aspect(f"nullability of {'.'.join(path)}", values, subject, origin)


def setting_aspects() -> Iterable[Aspect]:
    names = ("old", "new", "other")
    yield Aspect("an option", {n: SetOption("k", n) for n in names}, "option k", "value")
    yield Aspect("the comment", {n: UpdateComment(n) for n in names}, "comment", "value")
    yield Aspect(
        "identifier fields",
        dict(zip(names, [SetIdentifierFields(((n,),)) for n in "abc"], strict=True)),
        "identifier fields",
        "value",
        "iceberg",
    )
    yield Aspect(
        "the sort order",
        dict(zip(names, [ReplaceSortOrder((SortColumn((n,)),)) for n in "abc"], strict=True)),
        "sort order",
        "value",
        "iceberg",
    )


ASPECTS = [*column_aspects(), *setting_aspects()]
each_aspect = pytest.mark.parametrize("aspect", ASPECTS, ids=lambda each: each.name)


def causes_of(table: Table, aspect: Aspect) -> list[tuple[int, str]]:
    """Return version and author of the causes of an aspect's value, creation not included."""
    histories = ColumnHistories(RequestedHistories())
    histories.take(table.events())
    if aspect.formats == "iceberg" or aspect.subject in {"", "option k", "comment"}:
        subject = aspect.subject or "column order"
        found = [each for each in blame_settings(histories) if each.subject == subject]
    else:
        found = [blame_column(histories, tuple(aspect.subject.split(".")))]
    return [
        (origin.cause.version, origin.cause.author)
        for each in found
        for origin in each.origins
        if origin.aspect == aspect.origin and not origin.repeats and origin.cause.version
    ]


def altered(aspect: Aspect, *batches: tuple[str, Sequence[str]]) -> Table:
    """Return a table after batches, each an author and the names of its values."""
    table = wide_table(aspect.formats)
    for author, values in batches:
        table.alter([aspect.values[each] for each in values], author=author)
    return table


@each_aspect
def test_a_batch_that_sets_one_value_twice_is_a_cause(aspect: Aspect) -> None:
    table = altered(aspect, ("ann", ["old"]), ("bob", ["new", "new"]))

    assert set(causes_of(table, aspect)) == {(2, "bob")}


@each_aspect
def test_a_batch_that_sets_several_values_is_one_cause(aspect: Aspect) -> None:
    table = altered(aspect, ("ann", ["old"]), ("bob", ["other", "new"]))

    assert set(causes_of(table, aspect)) == {(2, "bob")}


@each_aspect
def test_a_batch_is_a_cause_only_if_a_diff_shows_a_change(aspect: Aspect) -> None:
    table = altered(aspect, ("ann", ["old"]), ("bob", ["new", "old"]))

    # Of an option that is set back within a batch, Paimon keeps the first value.
    is_kept = aspect.name == "an option"
    assert bool(table.diff(1)) == is_kept
    assert ((2, "bob") in causes_of(table, aspect)) == is_kept


@pytest.mark.parametrize(
    "aspect",
    [each for each in ASPECTS if "order of" not in each.name and each.name != "an option"],
    ids=lambda each: each.name,
)
def test_a_value_that_a_later_batch_sets_again_has_no_single_cause(aspect: Aspect) -> None:
    table = altered(aspect, ("ann", ["new"]), ("bob", ["old", "old"]), ("eve", ["new", "old"]))

    assert causes_of(table, aspect) == []


def test_a_name_that_is_given_back_is_no_cause() -> None:
    table = wide_table()
    table.alter([RenameColumn(("a",), "x"), RenameColumn(("x",), "a")], author="bob")
    table.alter([RenameColumn(("b",), "y"), RenameColumn(("y",), "z")], author="eve")

    assert [each.author for each in table.blame("a")[0].causes] == ["tester"]
    assert [each.author for each in table.blame("z")[0].causes] == ["tester", "eve"]
    assert [each.version for each in table.entries(column="a")] == [1, 0]


def test_a_spec_that_is_updated_twice_in_a_batch_has_that_batch_as_its_cause() -> None:
    table = wide_table("iceberg")
    added = UpdatePartitionSpec((AddPartitionField(("a",), "bucket[4]"),))
    removed = UpdatePartitionSpec((RemovePartitionField("a_bucket_4"),))
    more = UpdatePartitionSpec((AddPartitionField(("b",)),))
    table.alter([added, more], author="ann")
    table.alter([removed, added], author="bob")

    histories = ColumnHistories(RequestedHistories())
    histories.take(table.events())
    (spec,) = (each for each in blame_settings(histories) if each.subject == "partition spec")

    assert {each.author for each in spec.causes} <= {"ann", "bob"}
    assert spec.causes


def test_an_option_that_is_removed_and_set_again_keeps_its_first_origin() -> None:
    table = wide_table()
    table.alter([SetOption("k", "1")], author="ann")
    table.alter([RemoveOption("k"), SetOption("other", "1"), SetOption("other", "1")], author="bob")

    found = {each.subject: each for each in table.blame()}
    assert "option k" not in found
    assert [each.author for each in found["option other"].causes] == ["bob"]


batches = st.lists(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 3]), st.sampled_from(["old", "new", "other"])),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=5,
)
DRAWN = [
    next(each for each in ASPECTS if each.name == name)
    for name in ("comment of a", "comment of s.m", "default of l.element.m", "the comment")
]


@settings(deadline=None, max_examples=examples(60))
@given(asked=batches)
def test_the_causes_are_the_transactions_whose_removal_would_change_the_value(
    asked: list[list[tuple[int, str]]],
) -> None:
    table = wide_table()
    # The values of each aspect by version, as events of the log.
    given_: list[dict[int, str]] = [{} for _ in DRAWN]
    for batch in asked:
        receipt = table.alter([DRAWN[at].values[value] for at, value in batch])
        for at, value in batch:
            given_[at][receipt.version] = value

    for aspect, values in zip(DRAWN, given_, strict=True):
        final = [None, *values.values()][-1]
        needed = [
            version
            for version in values
            if [None, *(values[each] for each in values if each != version)][-1] != final
        ]
        assert [version for version, _ in causes_of(table, aspect)] == needed
