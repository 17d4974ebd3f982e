"""Sections of the audit page: columns with their gaps and comments, snapshots with their state."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import frozen

from ledger import (
    AddColumn,
    DropColumn,
    Move,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnPosition,
    UpdateComment,
)
from ledger.audit.report import table_page
from ledger.audit.snapshot_list import MOST_SNAPSHOTS
from ledger.events import TableEvent
from ledger.events.imported import SnapshotAdded
from ledger.log import Codec
from ledger.model.types import STRING, ArrayType, DataField, DataType, IntType, MapType, RowType
from ledger.state import TableBuilder
from tests.lakes import data_file, lake_on, memory, orders

MEMBER = RowType([DataField(at, name, IntType()) for at, name in enumerate("mno")])
WHOLE: dict[str, str | DataType] = {
    "id": "BIGINT NOT NULL",
    "day": "DATE",
    "x": "INT",
    "s": MEMBER,
    "l": ArrayType(MEMBER),
    "k": MapType(STRING, MEMBER),
}


def wide_table() -> Table:
    return orders(lake_on(memory()), Schema.of(WHOLE, partition_keys=["day"]))


@frozen
class Shown:
    """A bar as the page shows it: its kinds of segments in order, their titles and its text."""

    kinds: list[str]
    spans: list[tuple[float, float]]
    titles: list[str]
    text: str
    is_gone: bool


def bars(table: Table) -> dict[tuple[str, int], Shown]:
    """Return the bars of a page, by path and field id."""
    found: dict[tuple[str, int], Shown] = {}
    for block in re.findall(r'<div class="bar.*?</small></div>', table.report(), re.DOTALL):
        path = html.unescape(re.findall(r"<bdi>(.*?)</bdi>", block)[0].replace("<wbr>", ""))
        (field_id,) = re.findall(r"#(\d+)", block)[:1]
        parts = re.findall(
            r'<rect class="(\w+)" x="([\d.]+)"[^>]* width="([\d.]+)"[^>]*><title>(.*?)</title>',
            block,
        )
        found[path, int(field_id)] = Shown(
            [kind for kind, *_ in parts],
            [(float(left), float(left) + float(width)) for _, left, width, _ in parts],
            [html.unescape(title) for *_, title in parts],
            html.unescape(re.findall(r"<small><bdi>(.*?)</bdi>", block)[0]),
            block.startswith('<div class="bar gone'),
        )
    return found


def bar(table: Table, path: str) -> Shown:
    (found,) = (
        each for (name, _), each in bars(table).items() if name == path and not each.is_gone
    )
    return found


def restore_by_undo(table: Table, path: tuple[str, ...], dropped: int) -> None:
    del path
    table.undo(dropped, author="eve")


def restore_by_undrop(table: Table, path: tuple[str, ...], dropped: int) -> None:
    del dropped
    table.alter([UndropColumn(path)], author="eve")


def restore_by_restore(table: Table, path: tuple[str, ...], dropped: int) -> None:
    del path
    table.restore(dropped - 1, author="eve")


@pytest.mark.parametrize("restore", [restore_by_undo, restore_by_undrop, restore_by_restore])
@pytest.mark.parametrize("path", ["x", "s", "s.m", "l.element.m", "k.value.m"])
def test_a_bar_has_a_gap_where_its_column_was_dropped_and_restored(
    path: str, restore: Callable[[Table, tuple[str, ...], int], None]
) -> None:
    table = wide_table()
    names = tuple(path.split("."))
    dropped = table.alter([DropColumn(names)], author="bob").version
    restore(table, names, dropped)
    table.alter([SetOption("later", "1")])

    shown = bar(table, path)

    assert shown.kinds == ["name", "gap", "name"]
    assert re.search("dropped .* by bob, restored .* by eve", shown.text)
    assert re.search("dropped .* by bob, restored .* by eve", shown.titles[1])
    (_, first_end), gap, (second_begin, _) = shown.spans
    assert first_end == gap[0] < gap[1] == second_begin
    assert not shown.is_gone


def test_members_have_the_gap_of_the_column_around_them() -> None:
    table = wide_table()
    table.alter([DropColumn(("s",))], author="bob")
    table.alter([UndropColumn(("s",))], author="eve")

    for path in ("s", "s.m", "s.n", "s.o"):
        assert bar(table, path).kinds == ["name", "gap", "name"], path
    assert bar(table, "l.element.m").kinds == ["name"]


def test_a_column_that_was_dropped_twice_has_two_gaps_and_one_that_is_gone_ends() -> None:
    table = wide_table()
    for author in ("ann", "bob"):
        table.alter([DropColumn(("x",))], author=author)
        table.alter([UndropColumn(("x",))], author="eve")
    assert bar(table, "x").kinds == ["name", "gap", "name", "gap", "name"]

    table.alter([DropColumn(("x",))], author="zed")

    (gone,) = (each for (name, _), each in bars(table).items() if name == "x")
    assert gone.kinds == ["name", "gap", "name", "gap", "name"]
    assert gone.is_gone
    assert gone.text.count("restored") == 2
    assert re.search("; dropped [^,]* by zed$", gone.text)


def test_names_before_a_drop_and_after_a_restore_are_told_apart() -> None:
    table = wide_table()
    table.alter([RenameColumn(("x",), "y")], author="ann")
    table.alter([DropColumn(("y",))], author="bob")
    table.alter([UndropColumn(("z",), field_id=2)], author="eve")
    table.alter([RenameColumn(("z",), "w")], author="eve")

    shown = bar(table, "w")

    assert shown.kinds == ["name", "other", "gap", "name", "other"]
    assert "before: x, y, z" in shown.text


def test_a_restored_column_under_its_old_name_names_no_earlier_one() -> None:
    table = wide_table()
    table.alter([DropColumn(("x",))])
    table.alter([UndropColumn(("x",))])

    assert "before:" not in bar(table, "x").text


def test_a_column_added_under_the_name_of_a_dropped_one_is_another_bar() -> None:
    table = wide_table()
    table.alter([DropColumn(("x",))], author="bob")
    added = table.alter([AddColumn(("x",), "INT")], author="eve")
    field_id = added.state.schema.field("x").id

    found = {key: each for key, each in bars(table).items() if key[0] == "x"}

    assert set(found) == {("x", 2), ("x", field_id)}
    assert found["x", 2].is_gone
    assert not found["x", field_id].is_gone
    assert all(each.kinds == ["name"] for each in found.values())


def test_a_drop_and_a_restore_in_one_commit_are_a_gap_that_can_be_seen() -> None:
    table = wide_table()
    table.alter([DropColumn(("x",)), UndropColumn(("x",)), RenameColumn(("x",), "y")])

    shown = bar(table, "y")

    assert shown.kinds == ["name", "gap", "name", "other"]
    assert all(end - begin >= 2 for begin, end in shown.spans)


def test_a_column_that_only_moved_or_was_renamed_has_no_gap() -> None:
    table = wide_table()
    table.alter([UpdateColumnPosition(Move("x", "FIRST"))])
    table.alter([RenameColumn(("x",), "y")])

    assert "gap" not in {kind for each in bars(table).values() for kind in each.kinds}


def test_an_undo_says_that_a_dropped_column_was_restored_since() -> None:
    table = wide_table()
    for path in (("x",), ("s", "m")):
        dropped = table.alter([DropColumn(path)]).version
        table.undo(dropped)

        (reason,) = table.plan_undo(dropped).reasons

        name = ".".join(path)
        assert re.search(rf"column {name} \(id \d+\), which it dropped, was restored", reason)
    added = table.alter([AddColumn(("new",), "INT")]).version
    table.alter([DropColumn(("new",))])
    (reason,) = table.plan_undo(added).reasons
    assert re.search(r"column new \(id \d+\), which it added, was dropped since", reason)


# Comments.


def test_comments_of_columns_members_and_the_table_are_on_the_page() -> None:
    table = wide_table()
    table.alter(
        [
            UpdateColumnComment(("x",), "net <amount>"),
            UpdateColumnComment(("s", "m"), "a member"),
            UpdateColumnComment(("l", "element", "n"), "of an element"),
            UpdateColumnComment(("k", "value", "o"), "of a value"),
            UpdateComment("All orders \u0639\u0631\u0628\u064a"),
        ]
    )
    page = table.report()

    for text in ("net &lt;amount&gt;", "a member", "of an element", "of a value"):
        assert f"<td><bdi>{text}</bdi></td>" in page
    assert "<p><bdi>All orders \u0639\u0631\u0628\u064a</bdi></p>" in page
    table.alter([UpdateColumnComment(("x",))])
    assert "net &lt;amount&gt;" in table.report(), "older schemas keep their comments"


def test_a_table_without_comments_or_defaults_has_no_column_for_them() -> None:
    page = wide_table().report()

    assert ">comment</th>" not in page
    assert ">default value</th>" not in page


def test_schemas_have_the_default_values_that_columns_had() -> None:
    table = wide_table()
    table.alter([AddColumn("note", "STRING"), UpdateColumnDefaultValue("note", "5 <")])
    table.alter([UpdateColumnDefaultValue("note")])
    newest, before, _ = table.report().split("<details")[1:]

    assert ">default value</th>" not in newest
    assert "<td><bdi>5 &lt;</bdi></td>" in before


def test_long_names_break_behind_dots_and_underscores() -> None:
    table = orders(lake_on(memory()))
    table.alter([AddColumn("delay_in_minutes", "ROW<of_flight INT>")])
    page = table.report()

    assert "<h1><bdi>shop.<wbr>orders</bdi></h1>" in page
    assert "<span><bdi>delay_<wbr>in_<wbr>minutes.<wbr>of_<wbr>flight</bdi>" in page


# Snapshots.


def snapshot_rows(table: Table) -> list[tuple[str, str, str]]:
    """Return id, state and text of the listed snapshots, newest first."""
    return listed_snapshots(table.report())


def listed_snapshots(page: str) -> list[tuple[str, str, str]]:
    start = page.find('aria-label="Newest snapshots"')
    part = page[start : page.index("</table>", start)] if start >= 0 else ""
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in part.split("<tr>")[1:]]
    plain = [[re.sub("<[^>]+>", "", cell) for cell in row] for row in cells]
    return [(row[1], row[2], row[4]) for row in plain if row]


def append(table: Table, names: Sequence[str]) -> None:
    for name in names:
        table.append([data_file(f"{name}.parquet")])


def test_expired_snapshots_stay_listed_and_say_so() -> None:
    table = orders(lake_on(memory()))
    append(table, "abcd")
    table.create_tag("v1", snapshot=1)
    table.expire_snapshots(before=3, author="housekeeping")

    rows = snapshot_rows(table)

    assert [each[:2] for each in rows] == [
        ("", ""),
        ("4", "current"),
        ("3", ""),
        ("2", "expired"),
        ("1", "expired, kept by tag v1"),
    ]
    assert rows[0][2] == "expired the snapshots before 3"
    assert "keeps an expired snapshot" in table.report()


def test_a_tag_of_a_snapshot_that_is_there_keeps_no_expired_one() -> None:
    table = orders(lake_on(memory()))
    append(table, "ab")
    table.create_tag("v1", snapshot=1)

    assert [each[:2] for each in snapshot_rows(table)] == [("2", "current"), ("1", "tag v1")]
    assert "keeps an expired snapshot" not in table.report()


def test_rolled_back_snapshots_are_named_so() -> None:
    table = orders(lake_on(memory()))
    append(table, "abc")
    table.create_branch("audit")
    table.branch("audit").append([data_file("f.parquet")])
    table.rollback(snapshot=1)
    append(table, "d")

    states = {snapshot: state for snapshot, state, _ in snapshot_rows(table)}

    assert states["5"] == "current"
    assert states["4"] == ""
    assert states["3"] == "rolled back; start of branch audit"
    assert states["2"] == "rolled back"
    assert states["1"] == ""
    assert states[str(table.branch("audit").at().snapshot.id)] == "branch audit"  # type: ignore[union-attr]


def test_rolled_back_snapshots_of_a_branch_are_named_so() -> None:
    table = orders(lake_on(memory()))
    append(table, "a")
    table.create_branch("audit")
    branch = table.branch("audit")
    for name in "bc":
        branch.append([data_file(f"{name}.parquet")])
    branch.rollback(snapshot=branch.at().snapshot.id - 1)  # type: ignore[union-attr]

    assert [state for _, state, _ in snapshot_rows(table)] == [
        "branch audit",
        "rolled back",
        "",
        "current; start of branch audit",
    ]


def test_snapshots_of_a_deleted_branch_are_deleted_with_it() -> None:
    table = orders(lake_on(memory()))
    append(table, "a")
    table.create_branch("audit")
    table.branch("audit").append([data_file("f.parquet")])
    table.branch("audit").delete()

    assert [state for _, state, _ in snapshot_rows(table)] == [
        "deleted with branch audit",
        "current",
    ]


def test_a_table_without_snapshots_lists_none_and_draws_no_curve() -> None:
    page = orders(lake_on(memory())).report()

    assert "Newest snapshots" not in page
    assert "<polyline" not in page
    assert "<h2>Growth" not in page


def test_one_snapshot_is_a_curve_from_the_creation_until_now() -> None:
    table = orders(lake_on(memory()))
    append(table, "a")
    table.alter([SetOption("later", "1")])

    points = re.findall(r'<polyline points="([^"]*)"', table.report())

    assert points == ["0.0,200.0 500.0,200.0 500.0,0.0 1000.0,0.0"] * 2


@pytest.mark.long
def test_of_a_thousand_snapshots_the_newest_are_listed_and_the_others_counted() -> None:
    table = orders(lake_on(memory()))
    append(table, [f"f{number}" for number in range(1_000)])
    table.expire_snapshots(before=990)

    rows, page = snapshot_rows(table), table.report()

    assert len(rows) == MOST_SNAPSHOTS
    assert [each[:2] for each in rows[:2]] == [("", ""), ("1000", "current")]
    assert sum(state == "expired" for _, state, _ in rows) == MOST_SNAPSHOTS - 12
    assert f"{1_001 - MOST_SNAPSHOTS:,} older ones are not shown." in page
    assert len(page.encode()) < 1_000_000


def test_snapshots_of_an_imported_table_are_listed_with_those_that_were_removed() -> None:
    codec: Codec[TableEvent] = Codec(TableEvent)
    lines = (Path(__file__).parents[1] / "data/born/commits.jsonl").read_bytes().splitlines()
    commits = [codec.decode(each, "a line") for each in lines]
    builder = TableBuilder()
    for each in commits:
        builder.commit(each)
    state = builder.freeze()
    events = [f for c in commits for transaction in c.transactions for f in transaction.events]
    added = [f.snapshot.snapshot_id for f in events if isinstance(f, SnapshotAdded)]

    rows = listed_snapshots(table_page("shop.theirs", state, commits, [state.schema], {}))

    states = {snapshot: status for snapshot, status, _ in rows if snapshot}
    assert set(states) == set(map(str, added))
    removed = {each for each in states if int(each) not in state.snapshot_ids}
    assert {each for each, status in states.items() if "expired" in status} == removed
    assert len(added) > 1
