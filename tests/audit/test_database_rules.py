"""Rules for commits that a database declares for its tables, and for itself."""

from __future__ import annotations

import errno
import pickle
import threading
import time
from typing import Any

import pytest

import ledger
from ledger import (
    AddColumn,
    DamagedLogError,
    DataField,
    FormatError,
    InvalidChangeError,
    Ledger,
    RemoveOption,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdateColumnComment,
)
from ledger.log import StreamLog
from ledger.model import parse_type
from ledger.model.types import RowType
from ledger.opening.context import DatabasePolicies
from ledger.state import CatalogStream
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders, ticking

ALWAYS = "2000-01-01T00:00:00+00:00/2999-01-01T00:00:00+00:00"


@pytest.fixture
def lake() -> Ledger:
    return lake_on(memory(), ticking(START_MILLIS, 1))


def ruled(lake: Ledger, **rules: str) -> Table:
    table = orders(lake)
    updates = {f"ledger.{key.replace('_', '-')}": value for key, value in rules.items()}
    lake.alter_database("shop", updates=updates, message="as agreed")
    return table


def schema_of(column: str) -> Schema:
    path, kind = column.split()
    name, _, member = path.partition(".")
    inner = RowType((DataField(1, member, parse_type(kind)),)) if member else parse_type(kind)
    return Schema.of({name: inner})


@pytest.mark.parametrize(
    ("key", "value", "bad", "good"),
    [
        ("column-names", "[a-z_]+", RenameColumn(("amount",), "Amount"), AddColumn(("ok",), "INT")),
        ("allowed-types", "INT, STRING", AddColumn(("x",), "DOUBLE"), AddColumn(("x",), "STRING")),
        (
            "owners.amount",
            "ann,etl@*",
            UpdateColumnComment(("amount",), "mine"),
            UpdateColumnComment(("day",), "mine"),
        ),
        ("freeze", ALWAYS, AddColumn(("x",), "INT"), SetOption("ledger.freeze", "false")),
        ("freeze", "true", UpdateColumnComment(("day",), "x"), SetOption("ledger.freeze", "")),
        ("require-message", "^JIRA-", SetOption("k", "v"), None),
    ],
)
def test_a_database_rules_its_tables_wherever_they_are_held(
    lake: Ledger, key: str, value: str, bad: Any, good: Any
) -> None:
    table = orders(lake)
    elsewhere = lake_on(handle_of(lake).log.store).table("shop.orders")
    lake.alter_database("shop", updates={f"ledger.{key}": value}, message="as agreed")

    for handle in (table, elsewhere):
        with pytest.raises(FormatError, match=f"ledger.{key} of database shop") as refused:
            handle.alter([bad])
        assert refused.value.format == "ledger"
        if key != "require-message":
            assert [str(each) for each in handle.plan([bad]).refusals] == [str(refused.value)]
            assert handle.plan([bad]).verdicts[-1].format == "ledger"
    assert table.state.version == 0
    table.append([data_file("a.parquet")])
    if good is not None:
        assert table.alter([good]).version == 2
    else:
        assert table.alter([bad], message="JIRA-7").version == 2


class Unreadable(Wrapped):
    """A catalog that raises when it is looked at, so many times."""

    def __init__(self, inner: Store, error: Exception, times: int) -> None:
        super().__init__(inner)
        self._error = error
        self.left = times

    def exists(self, key: str) -> bool:
        if self.left and key.startswith("_ledger/log/"):
            self.left -= 1
            raise self._error
        return super().exists(key)


@pytest.mark.parametrize(
    ("error", "times"),
    [
        (OSError("no answer"), 3),
        (OSError(errno.EIO, "the disk"), 1),
        (DamagedLogError("a bit flipped", "_ledger/log/1"), 3),
    ],
    ids=["silent", "system", "damaged"],
)
def test_nobodys_commit_waits_for_a_catalog_that_cannot_be_read(
    lake: Ledger, error: Exception, times: int
) -> None:
    ruled(lake, freeze="true")
    store = Unreadable(handle_of(lake).log.store, error, 0)
    table = lake_on(store).table("shop.orders")
    with pytest.raises(FormatError, match="freeze of database shop"):
        table.alter([SetOption("k", "v")])
    lake.alter_database("shop", removals=["ledger.freeze"], message="it is over")

    store.left = times
    with pytest.raises(FormatError, match="freeze of database shop"):
        table.alter([SetOption("k", "v")])
    store.left = 0
    assert table.alter([SetOption("k", "v")]).version == 1


def test_an_exception_of_a_signal_handler_is_raised_to_the_caller(lake: Ledger) -> None:
    table = ruled(lake, freeze="false")
    store = Unreadable(handle_of(lake).log.store, TimeoutError("the limit of the caller"), 0)
    table = lake_on(store).table("shop.orders")

    store.left = 1
    with pytest.raises(TimeoutError, match="the limit of the caller"):
        table.alter([SetOption("k", "v")])

    assert table.alter([SetOption("k", "v")]).version == 1


def test_a_pickled_handle_asks_the_catalog_too() -> None:
    lake = ledger.open("memory://pickled-rules")
    table = pickle.loads(pickle.dumps(orders(lake)))  # noqa: S301 - just made
    lake.alter_database("shop", updates={"ledger.freeze": "true"})

    with pytest.raises(FormatError, match="freeze of database shop"):
        table.alter([SetOption("k", "v")])


def test_a_tables_own_rule_counts_instead_and_setting_it_is_an_event(lake: Ledger) -> None:
    table = ruled(lake, column_names="[a-z]+", freeze="true")
    with pytest.raises(FormatError, match="set option ledger.freeze=false of the table"):
        table.alter([AddColumn(("quiet",), "INT")])
    table.alter([SetOption("ledger.freeze", "false")], author="ann", message="this one goes on")
    with pytest.raises(FormatError, match="column-names of database shop"):
        table.alter([AddColumn(("Loud",), "INT")])
    table.alter([SetOption("ledger.column-names", "[A-Za-z]+")], author="ann")

    table.alter([AddColumn(("Loud",), "INT")])
    said = [(each.transaction.author, each.kinds) for each in table.entries(author="ann")]
    assert said == [("ann", ("setOption",))] * 2

    table.alter([RemoveOption("ledger.column-names")])
    with pytest.raises(FormatError, match="column-names of database shop"):
        table.alter([AddColumn(("Louder",), "INT")])


def test_lifting_a_databases_rule_is_an_event_with_an_author(lake: Ledger) -> None:
    table = ruled(lake, freeze="true", require_message="true")
    with pytest.raises(FormatError, match="freeze of database shop"):
        lake.alter_database("shop", updates={"owner": "bob"}, message="mine")
    with pytest.raises(FormatError, match="requires a message"):
        lake.alter_database("shop", removals=["ledger.freeze"], author="ann")
    lake.alter_database("shop", removals=["ledger.freeze"], author="ann", message="it is over")

    table.alter([AddColumn(("x",), "INT")], message="at last")
    newest = list(lake.events())[-1].transactions[0]
    assert (newest.author, newest.message) == ("ann", "it is over")


def test_a_database_says_which_tables_it_takes_and_when(lake: Ledger) -> None:
    ruled(lake, column_names="[a-z]+", allowed_types="INT,ROW,STRING")
    for bad in ("Loud INT", "a DOUBLE", "a.b DOUBLE", "a.B INT"):
        with pytest.raises(FormatError, match="of database shop"):
            lake.create_table("shop.other", schema_of(bad))
    lake.create_table("shop.other", schema_of("a.b STRING"))
    lake.alter_database("shop", updates={"ledger.freeze": "true"})
    lake.create_database("free")

    for refused in (
        lambda: lake.create_table("shop.third", Schema.of({"a": "INT"})),
        lambda: lake.rename_table("shop.other", "free.other"),
        lambda: lake.drop_table("shop.other"),
    ):
        with pytest.raises(FormatError, match="freeze of database shop"):
            refused()
    assert not lake.table("shop.other").state.dropped
    lake.alter_database("shop", removals=["ledger.freeze"])
    lake.rename_table("shop.other", "free.other")
    assert lake.table("free.other").alter([AddColumn(("Loud",), "DOUBLE")]).version == 1


def test_a_table_follows_its_database_through_a_rename(lake: Ledger) -> None:
    table = ruled(lake, freeze="true")
    lake.create_database("free")
    lake.alter_database("shop", removals=["ledger.freeze"])
    lake.rename_table("shop.orders", "free.orders")
    lake.alter_database("shop", updates={"ledger.freeze": "true"})

    assert table.alter([SetOption("k", "v")]).version == 1


def test_an_owner_of_the_table_counts_instead_of_the_databases(lake: Ledger) -> None:
    table = ruled(lake, **{"owners.amount": "ann"})
    mine = UpdateColumnComment(("amount",), "mine")
    with pytest.raises(FormatError, match=r"owners\.amount of database shop"):
        table.alter([SetOption("ledger.owners.2", "bob")], author="bob")
    table.alter([SetOption("ledger.owners.2", "bob")], author="ann")

    table.alter([mine], author="bob")
    with pytest.raises(FormatError, match=r"ledger\.owners\.2 restricts it to bob"):
        table.alter([UpdateColumnComment(("amount",), "hers")], author="ann")


@pytest.mark.parametrize(
    ("key", "value"), [("column-names", "["), ("freeze", "soon"), ("owners.a b", "ann")]
)
def test_a_database_rule_that_no_commit_could_satisfy_is_rejected(
    lake: Ledger, key: str, value: str
) -> None:
    with pytest.raises((InvalidChangeError, ledger.InvalidInputError)):
        lake.create_database("shop", {f"ledger.{key}": value})
    lake.create_database("shop")
    with pytest.raises((InvalidChangeError, ledger.InvalidInputError)):
        lake.alter_database("shop", updates={f"ledger.{key}": value})


def test_each_table_is_checked_by_the_rules_of_its_own_database(
    lake: Ledger,
) -> None:
    strict = ruled(lake, require_message="true")
    lake.create_database("free")
    free = lake.create_table("free.t", Schema.of({"id": "INT"}))

    for number in range(2):
        free.alter([SetOption("a.b", str(number))])
        with pytest.raises(FormatError, match=r"ledger\.require-message of database shop"):
            strict.alter([SetOption("a.b", str(number))])


def test_rules_say_nothing_to_data_and_tags(lake: Ledger) -> None:
    table = ruled(lake, require_message="true", column_names="never")

    assert table.append([data_file("a.parquet")]).version == 1
    assert table.create_tag("v1").version == 2


def test_concurrent_lookups_are_served_by_one_more_read(lake: Ledger) -> None:
    table = ruled(lake, freeze="false")
    setting = handle_of(table).setting
    looked: list[str] = []
    asked, may_go_on = Asked(), threading.Event()

    class Slow(StreamLog[Any, Any]):
        def catch_up(self) -> Any:
            looked.append(threading.current_thread().name)
            if len(looked) == 1:
                assert may_go_on.wait(120)
            return super().catch_up()

    database_policies = DatabasePolicies()
    database_policies.set_catalog_log(Slow(setting.store, "_ledger", CatalogStream()))
    database_policies._turn = asked  # type: ignore[assignment]
    threads = [
        threading.Thread(target=database_policies.of, args=(setting.store, table.state.table_id))
        for _ in range(16)
    ]
    threads[0].start()
    asked.wait_for(1)
    while not looked:
        time.sleep(0.001)
    for each in threads[1:]:
        each.start()
    asked.wait_for(len(threads))
    may_go_on.set()
    for each in threads:
        each.join(120)

    assert len(looked) == 2
    assert not any(each.is_alive() for each in threads)


class Asked:
    """A lock that tells how many threads asked for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._asked: list[None] = []

    def __enter__(self) -> None:
        self._asked.append(None)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait_for(self, count: int) -> None:
        while len(self._asked) < count:
            time.sleep(0.001)
