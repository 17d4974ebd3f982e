"""Erasure removes all that is kept of a person, also if the eraser dies midway."""

from __future__ import annotations

import io
import itertools
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    Schema,
    SetOption,
)
from ledger.events import CatalogEvent
from ledger.events.commit import Outside
from ledger.history.garbage import KEPT_MILLIS, orphaned_sidecar_files, remove
from ledger.log import Request, StreamLog, Transaction
from ledger.log.personal_data import FOLDER
from ledger.relocation.exporting import export
from ledger.relocation.importing import import_lines
from ledger.state import CatalogBuilder
from ledger.stores import Durability, LocalStore, Store
from ledger.table_handle import handle_of
from projections.source.commit_rows import commit_rows
from projections.source.span_reading import LogScan, SpanEnd
from tests.erasing.lives import Life, findings, holding, read_all
from tests.faults import Died, DiesAfter, LosesAnswers
from tests.lakes import START_MILLIS, data_file, lake_on, memory, no_time, orders
from tests.thorough import some

ANN, BOB = "ann-0123456789abcdef", "bob-0123456789abcdef"


def a_life_is_erased(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    life = Life(store, rng)
    life.begin()
    gone: list[str] = []
    for _ in range(rng.randint(2, 4)):
        for _ in range(rng.randint(1, 8)):
            life.step()
        person = rng.choice(life.people)
        before = len(holding(store, person))
        lake = lake_on(store) if rng.random() < 0.5 else life.lake
        done = lake.erase(author=person)

        assert done.remaining == ()
        assert (done.version is None) == (done.values == 0) == (before == 0)
        assert holding(store, person) == []
        gone.append(person)
        life.people.remove(person)
        if not life.people:
            break
    said = "\n".join(read_all(lake_on(store)))
    assert not any(each in said for each in gone)
    assert findings(life.lake, store) == []


@pytest.mark.parametrize("seed", some(range(12), 4))
def test_what_is_erased_at_a_random_point_of_a_history_stands_nowhere(
    seed: int, tmp_path: Path
) -> None:
    a_life_is_erased(LocalStore(tmp_path, durable=Durability.NONE), seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_two_hundred_histories_erased(seed: int, tmp_path: Path) -> None:
    a_life_is_erased(LocalStore(tmp_path, durable=Durability.NONE), 1000 + seed)


def kept(store: Store) -> list[str]:
    return list(store.walk(FOLDER))


def erasable(store: Store) -> Ledger:
    lake = lake_on(store)
    lake.init(erasable=True)
    return lake


def test_only_the_files_of_values_ever_hold_one_whatever_is_made_of_a_long_log() -> None:
    store = memory()
    table = orders(erasable(store))
    for number in range(805):
        table.alter([SetOption("k", str(number))], author=ANN, message=f"{BOB} {number}")
    table.append([data_file("a.parquet")], author=ANN, properties={"by": BOB})
    for each in ("paimon", "iceberg"):
        table.project(each)

    assert any("/segments/" in key for key in store.walk(""))
    assert any("/caches/" in key for key in store.walk(""))
    for text in (ANN, BOB):
        found = holding(store, text)
        assert found
        assert all(key.startswith(FOLDER) for key in found)


def test_a_delta_log_holds_none() -> None:
    store = memory()
    schema = Schema.of({"id": "INT"}, options={"ledger.formats": "delta"})
    table = orders(erasable(store), schema)
    table.alter([SetOption("k", "1")], author=ANN, message=BOB)
    table.project("delta")

    assert any("_delta_log" in key for key in store.walk(""))
    assert all(key.startswith(FOLDER) for key in holding(store, ANN) + holding(store, BOB))


def test_an_eraser_that_dies_at_any_write_is_asked_again_and_ends() -> None:
    for writes in itertools.count():
        store = memory()
        table = orders(erasable(store))
        for number in range(3):
            table.alter([SetOption("k", str(number))], author=ANN, message=f"for {BOB}")
        died = False
        try:
            lake_on(DiesAfter(store, writes), retry_policy=no_time()).erase(author=ANN)
        except Died:
            died = True
        again = lake_on(store).erase(author=ANN)

        assert holding(store, ANN) == holding(store, BOB) == []
        assert lake_on(store).erase(author=ANN).values == 0
        assert findings(lake_on(store), store) == []
        erased = [
            event
            for commit in lake_on(store).events()
            for each in commit.transactions
            for event in each.events
            if type(event).__name__ == "ValuesErased"
        ]
        assert erased
        if not died:
            assert again.values == 0
            return


def test_what_goes_under_an_id_that_recorded_another_erasure_is_recorded_too() -> None:
    """No digest identifies the erased person, so an id does not either."""
    store = memory()
    lake = erasable(store)
    table = orders(lake)
    table.alter([SetOption("k", "1")], author=ANN)
    table.alter([SetOption("k", "2")], author=BOB)

    first = lake.erase(author=ANN, commit_id="monday")
    again = lake.erase(author=ANN, commit_id="monday")
    other = lake.erase(author=BOB, commit_id="monday")

    assert first.version is not None
    assert (first.values, first.repeated) == (1, False)
    assert (again.values, again.version, again.repeated) == (0, first.version, True)
    assert (other.values, other.version, other.repeated) == (1, first.version + 1, False)
    assert holding(store, ANN) == holding(store, BOB) == []
    newest = list(lake.events())[-1]
    assert [each.id == "monday" for each in newest.transactions] == [False]
    assert [type(each).__name__ for each in newest.transactions[0].events] == ["ValuesErased"]


def test_what_others_say_of_an_author_goes_and_the_rest_of_it_stays() -> None:
    store = memory()
    table = orders(erasable(store))
    table.alter([SetOption("k", "1")], author=BOB, message=f"as {ANN} said", properties={"a": "b"})
    table.alter([SetOption("k", "2")], author=f"{ANN}2", message="mine")

    done = lake_on(store).erase(author=ANN)

    assert (done.values, done.transactions) == (1, 1)
    newest, before = list(lake_on(store).table("shop.orders").entries())[:2]
    assert (newest.transaction.author, newest.transaction.message) == (f"{ANN}2", "mine")
    transaction: Transaction[object] = before.transaction
    assert (transaction.author, transaction.message, transaction.properties) == (
        BOB,
        "erased",
        {"a": "b"},
    )


def test_a_text_is_erased_wherever_it_is_a_part() -> None:
    store = memory()
    table = orders(erasable(store))
    table.alter([SetOption("k", "1")], author=f"{ANN}@host", message="fine")
    table.alter([SetOption("k", "2")], author=BOB, properties={f"x{ANN}": "1"})

    done = lake_on(store).erase(text=ANN)

    assert (done.values, done.transactions) == (2, 2)
    assert holding(store, ANN) == []
    newest, before = list(lake_on(store).table("shop.orders").entries())[:2]
    assert newest.transaction.author == BOB
    assert newest.transaction.properties == {"erased": ""}
    assert (before.transaction.author, before.transaction.message) == ("erased", "fine")


def test_values_that_lines_hold_for_ever_are_reported_and_not_removed() -> None:
    store = memory()
    lake = erasable(store)
    table = orders(lake)
    table.alter([SetOption("k", "1")], author=ANN)
    table.alter([SetOption("owner", ANN)], author=BOB)
    table.append([data_file(f"{ANN}/a.parquet")])

    (remaining,) = lake.erase(author=ANN).remaining

    assert remaining.stream == "shop.orders"
    assert remaining.versions == (2, 3)
    assert remaining.paths == (f"{ANN}/a.parquet",)


def test_a_ledger_that_keeps_all_in_its_lines_erases_nothing() -> None:
    store = memory()
    orders(lake_on(store))

    with pytest.raises(InvalidInputError, match="lakeledger init --erasable"):
        lake_on(store).erase(author=ANN)
    assert lake_on(store).plan_erasure(author="tester").remaining[0].versions == (0, 1)


def test_a_request_that_is_asked_again_leaves_nothing_that_no_commit_names() -> None:
    store = memory()
    table = orders(erasable(store))
    for _ in range(2):
        table.alter([SetOption("k", "1")], author=ANN, message="why", commit_id="once")
    assert len(holding(store, ANN)) == 1
    lake_on(store).erase(author=ANN)
    assert holding(store, ANN) == []


def test_a_plan_changes_nothing() -> None:
    store = memory()
    orders(erasable(store)).alter([SetOption("k", "1")], author=ANN)
    before = {key: store.read(key) for key in store.walk("")}

    assert lake_on(store).plan_erasure(author=ANN).values == 1
    assert {key: store.read(key) for key in store.walk("")} == before


def test_an_erasure_does_not_name_the_person_that_it_erases() -> None:
    store = memory()
    orders(erasable(store)).alter([SetOption("k", "1")], author=ANN)

    with pytest.raises(InvalidInputError, match="names what is to be erased"):
        lake_on(store).erase(author=ANN, message=f"{ANN} asked for it")
    lake_on(store).erase(author=ANN, by=ANN, message="asked for by letter")

    last = list(lake_on(store).events())[-1].transactions[0]
    assert (last.author, last.message) == ("", "asked for by letter")
    assert holding(store, ANN) == []


def test_neither_nothing_nor_two_things_are_sought() -> None:
    lake = erasable(memory())
    for author, text in ((None, None), ("a", "b"), (None, " ")):
        with pytest.raises(InvalidInputError):
            lake.erase(author=author, text=text)


def test_the_log_alone_shows_no_author_and_not_that_two_are_the_same() -> None:
    store = memory()
    table = orders(erasable(store))
    for number in range(4):
        table.alter([SetOption("k", str(number))], author=ANN)
    said = [
        read.commit.transactions[0].outside.author  # type: ignore[union-attr]
        for read in handle_of(table).log.commits(1, 4)
    ]

    assert len(set(said)) == len(said)
    # All that a name could be tried with went with it.
    before = {key: store.read(key) or b"" for key in kept(store)}
    lake_on(store).erase(author=ANN)
    salts = [
        body.split(b'"salt":"')[1].split(b'"')[0]
        for body in before.values()
        if ANN.encode() in body
    ]
    assert [len(each) for each in salts] == [32] * len(said)
    assert not any(salt in (store.read(key) or b"") for salt in salts for key in store.walk(""))


def test_a_handle_from_before_the_first_commit_keeps_values_outside() -> None:
    store = memory()
    old = lake_on(store)
    old.init()
    lake_on(store).init(erasable=True)
    table = orders(old)
    table.alter([SetOption("k", "2")], author=ANN)
    old.create_database("more", author=ANN)

    assert all(key.startswith(FOLDER) for key in holding(store, ANN))
    assert [each.transaction.author for each in table.entries()] == [ANN, "tester"]


def test_a_ledger_that_has_commits_is_not_made_erasable() -> None:
    store = memory()
    orders(lake_on(store))
    before = {key: store.read(key) for key in store.walk("")}

    with pytest.raises(InvalidInputError, match="only a new ledger can be made erasable"):
        lake_on(store).init(erasable=True)

    assert {key: store.read(key) for key in store.walk("")} == before
    assert not lake_on(store).is_erasable


def test_an_erasable_ledger_is_begun_again_without_a_commit() -> None:
    store = memory()
    lake = erasable(store)
    version = lake.state.version
    lake.init(erasable=True)
    lake_on(store).init()

    assert (version, lake_on(store).state.version) == (0, 0)
    assert lake_on(store).is_erasable


def test_an_uncommitted_change_leaves_nothing_of_its_author() -> None:
    store = memory()
    table = orders(erasable(store))
    with pytest.raises(InvalidInputError):
        table.alter([SetOption("bucket", "-7")], author=ANN)
    with pytest.raises(InvalidInputError):
        table.alter([SetOption("k", "1")], author=ANN, expect_version=7)

    assert holding(store, ANN) == []


def test_a_commit_id_again_gives_the_first_commit_and_keeps_one_file() -> None:
    store = memory()
    table = orders(erasable(store))
    first = table.alter([SetOption("k", "1")], author=ANN, commit_id="mine")
    there = kept(store)
    again = lake_on(store).table("shop.orders")
    assert again.alter([SetOption("k", "1")], author=ANN, commit_id="mine").version == first.version
    assert kept(store) == there
    lake_on(store).erase(author=ANN)
    assert table.alter([SetOption("k", "1")], author=BOB, commit_id="mine").version == first.version
    assert holding(store, BOB) == []


def test_lost_answers_lose_no_author() -> None:
    store = memory()
    lake = lake_on(LosesAnswers(store), retry_policy=no_time())
    lake.init(erasable=True)
    table = orders(lake)
    table.alter([SetOption("k", "1")], author=ANN)

    assert next(lake_on(store).table("shop.orders").entries()).transaction.author == ANN
    assert findings(lake_on(store), store) == []


def test_threads_in_one_group_commit_each_keep_their_own() -> None:
    store = memory()
    table = orders(erasable(store))
    threads = [
        threading.Thread(target=_set, args=(table.alter, f"{ANN}{number}", number))
        for number in range(16)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    authors = {each.transaction.author for each in lake_on(store).table("shop.orders").entries()}
    assert {f"{ANN}{number}" for number in range(16)} < authors
    assert findings(lake_on(store), store) == []


def _set(alter: Callable[..., object], author: str, number: int) -> None:
    alter([SetOption(f"k{number}", "1")], author=author, message=f"{number}")


def test_a_conflict_names_its_winner() -> None:
    store = memory()
    table = orders(erasable(store))
    lake_on(store).table("shop.orders").alter([SetOption("k", "2")], author=ANN)

    with pytest.raises(CommitConflictError, match=ANN) as refused:
        table.alter([SetOption("k", "1")], author=BOB)
    assert refused.value.author == ANN
    with pytest.raises(CommitConflictError, match=ANN):
        table.alter([SetOption("k", "3")], expect_version=0)
    assert holding(store, BOB) == []


def test_a_drop_left_half_done_is_finished_in_its_authors_name() -> None:
    store = memory()
    handle_of(orders(erasable(store))).seal(author=ANN, message="no use")
    lake = lake_on(store)

    assert lake.tables() == ["shop.orders"]
    with pytest.raises(Exception, match="does not exist"):
        lake.table("shop.orders")
    last = list(lake.events())[-1].transactions[0]
    assert (last.author, last.message) == (ANN, "no use")
    assert lake.erase(author=ANN).transactions == 2
    assert holding(store, ANN) == []


def test_a_lost_file_and_a_changed_value_are_found_and_an_erased_one_is_none() -> None:
    store = memory()
    table = orders(erasable(store))
    table.alter([SetOption("k", "1")], author=ANN)
    table.alter([SetOption("k", "2")], author=BOB)
    table.alter([SetOption("k", "3")], author="erased soon")
    lake_on(store).erase(author="erased soon")
    (of_ann,), (of_bob,) = holding(store, ANN), holding(store, BOB)
    store.delete(of_ann)
    store.replace(of_bob, (store.read(of_bob) or b"").replace(BOB.encode(), b"somebody else"))

    found = findings(lake_on(store), store)

    assert {(each.kind, each.version, each.file) for each in found} == {
        ("damage", 1, of_ann),
        ("damage", 2, of_bob),
    }
    authors = [each.transaction.author for each in lake_on(store).table("shop.orders").entries()]
    assert authors[:3] == ["erased", "erased", "erased"]


def test_drafts_of_killed_writers_go_with_an_erasure(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durable=Durability.NONE)
    table = orders(erasable(store))
    table.alter([SetOption("k", "1")], author=ANN)
    (key,) = holding(store, ANN)
    draft = (tmp_path / key).parent / ".tmp-0123456789abcdef"
    draft.hardlink_to(tmp_path / key)

    lake_on(store).erase(author=ANN)

    assert not draft.exists()
    assert not any(
        ANN.encode() in each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()
    )


def exported(store: Store) -> bytes:
    out = io.BytesIO()
    export(handle_of(lake_on(store)).setting, out)
    return out.getvalue()


def brought(lines: bytes, store: Store) -> None:
    import_lines(handle_of(lake_on(store)).setting, io.BytesIO(lines))


def test_what_was_erased_on_either_side_is_erased_after_an_import() -> None:
    here, there = memory(), memory()
    table = orders(erasable(here))
    table.alter([SetOption("k", "1")], author=ANN, message="old")
    table.alter([SetOption("k", "2")], author=BOB, properties={"a": "1"})
    before = exported(here)
    brought(before, there)
    assert lake_on(there).table("shop.orders").state == table.state
    assert holding(there, ANN) == holding(here, ANN) != []

    lake_on(here).erase(author=ANN)
    lake_on(there).erase(author=BOB)
    brought(before, there)
    assert holding(there, BOB) == []
    with pytest.raises(AlreadyExistsError):
        # Both recorded an erasure of their own: they are two ledgers now.
        brought(exported(here), there)

    third = memory()
    brought(before, third)
    brought(exported(here), third)
    assert holding(third, ANN) == []
    assert holding(third, BOB) != []
    assert findings(lake_on(third), third) == []


def test_what_no_commit_names_goes_after_seven_days_and_nothing_else() -> None:
    store = memory()
    lake = erasable(store)
    table = orders(lake)
    table.alter([SetOption("k", "1")], author=ANN)
    named = set(kept(store))
    request = Request(commit_id="x", author=BOB, asked="00")
    handle_of(table).log.personal.keep(request, START_MILLIS, no_time())
    logs: list[StreamLog[Any, Any]] = [handle_of(lake).log, handle_of(table).log]

    due = START_MILLIS + KEPT_MILLIS
    assert list(orphaned_sidecar_files(handle_of(table).log.personal, logs, due - 1)) == []
    (orphan,) = orphaned_sidecar_files(handle_of(table).log.personal, logs, due + 10**9)
    assert orphan.sort == "values"
    remove(store, orphan)
    assert set(kept(store)) == named


def test_a_transaction_is_not_folded_that_breaks_the_rule() -> None:
    outside = Outside(author="aa")
    begun: Transaction[CatalogEvent] = Transaction(asked="", id="1", outside=outside)
    broken: list[Transaction[CatalogEvent]] = [
        Transaction(asked="", id="2", author="ann", outside=outside),
        Transaction(asked="", id="2", message="why", outside=Outside()),
    ]
    for transaction in broken:
        builder = CatalogBuilder()
        builder.begin(0, 1)
        with pytest.raises(InvalidChangeError, match="kept outside of the lines here"):
            builder.add(transaction)
    builder = CatalogBuilder()
    builder.begin(0, 1)
    builder.add(begun)
    with pytest.raises(InvalidChangeError, match="its line does not say what was kept"):
        builder.add(Transaction(asked="", id="2", author="ann"))
    builder = CatalogBuilder()
    builder.begin(0, 1)
    builder.add(Transaction(asked="", id="2", author="ann"))
    with pytest.raises(InvalidChangeError, match="cannot keep them outside from now on"):
        builder.add(begun)


def test_rows_for_spark_show_author_and_message_until_they_are_erased() -> None:
    store = memory()
    table = orders(erasable(store))
    table.alter([SetOption("k", "1")], author=ANN, message="why", properties={"a": "1"})

    def said() -> list[tuple[object, ...]]:
        return [row[5:8] for row in commit_rows(LogScan(handle_of(table), 1, SpanEnd(1)))]

    assert said() == [(ANN, "why", [("a", "1")])]
    lake_on(store).erase(author=ANN)
    assert said() == [("erased", "erased", [("erased", "")])]


def test_a_table_outside_of_the_root_keeps_its_people_below_the_root(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "lake", durable=Durability.NONE)
    lake = erasable(store)
    lake.create_database("db")
    place = tmp_path / "outside"
    table = lake.create_table("db.t", {"id": "INT"}, location=str(place), author=ANN)
    table.alter([SetOption("k", "1")], author=ANN)

    assert [each.transaction.author for each in table.entries()] == [ANN, ANN]
    written = [each.read_bytes() for each in place.rglob("*") if each.is_file()]
    assert written
    assert not any(ANN.encode() in each for each in written)
    assert lake.erase(author=ANN).transactions == 2
    assert [each.transaction.author for each in table.entries()] == ["erased", "erased"]
    assert findings(lake, store) == []


def test_entries_are_found_by_author_and_message_until_they_are_erased() -> None:
    store = memory()
    table = orders(erasable(store))
    table.alter([SetOption("k", "1")], author=ANN, message="because")
    table.alter([SetOption("k", "2")], author=BOB)

    assert [each.version for each in table.entries(author=ANN[:5].upper())] == [1]
    assert [each.version for each in table.entries(message="^bec")] == [1]
    lake_on(store).erase(author=ANN)
    assert list(table.entries(author=ANN)) == []
    assert [each.version for each in table.entries(author="erased")] == [1]


def test_a_change_is_planned_to_be_undone_and_is_where_people_can_be_forgotten() -> None:
    table = orders(erasable(memory()))
    table.alter([SetOption("k", "1")], author=ANN)

    assert table.plan_undo(1).changes
    table.undo(1)
    assert "k" not in table.at().options
    table.restore(1)
    assert table.at().options["k"] == "1"
