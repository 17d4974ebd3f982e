"""Values of personal columns are erased everywhere, and readers continue without them."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from ledger import (
    AddPartitionField,
    CommitConflictError,
    DropColumn,
    FileChange,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    RenameColumn,
    Schema,
    SetOption,
    StoreError,
    Table,
)
from ledger.log.personal_data import FOLDER
from ledger.relocation.exporting import export
from ledger.relocation.importing import import_lines
from ledger.stores import Durability, LocalStore, Store
from ledger.table_handle import handle_of
from projections.source.file_rows import file_rows
from projections.source.span_reading import LogScan, SpanEnd
from projections.statistics import Kept, refresh
from tests.erasing.column_lives import COLUMNS, ColumnLife, bound, holding_deep
from tests.erasing.lives import findings
from tests.faults import DeliversTwice, Died, DiesAfter, LosesRequests, SometimesFaulty, Wrapped
from tests.lakes import lake_on, memory, no_time
from tests.projections.statistics.lives import listed_partitions
from tests.thorough import some


def read_all(lake: Ledger) -> str:
    """Let readers read a table; return what they say of values."""
    table = lake.table("shop.people")
    said = [repr(table.at().files), table.report(), repr(list(table.history()))]
    said += [repr(file_rows(LogScan(handle_of(table), 0, SpanEnd(table.state.version))))]
    said += [repr(list(file_rows(LogScan(handle_of(table), 0, SpanEnd(table.state.version)))))]
    kept = Kept.of(handle_of(table).log)
    said += [repr(listed_partitions(kept, table.at()))]
    for each in ("mail = 'nobody'", "kind = 'nobody'", "id > 100"):
        plan = table.at().plan(f"{each.replace('mail', mail_of(table))}")
        said += [repr(plan.files), repr([pruned.reason.text for pruned in plan.pruned()])]
    return "".join(said)


def mail_of(table: Table) -> str:
    return next(each for each in table.state.schema.names if each.startswith("mail"))


def a_life_of_columns_is_erased(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    life = ColumnLife(store, rng)
    gone: list[str] = []
    for _ in range(rng.randint(2, 4)):
        for _ in range(rng.randint(2, 9)):
            life.step()
        if rng.random() < 0.3:
            refresh(handle_of(life.table).log)
        lake = lake_on(store) if rng.random() < 0.5 else life.lake
        kind = rng.randrange(4)
        if kind == 0:
            person = life.mails.pop()
            done = lake.erase(table="shop.people", column=life.mail, value=person)
            gone += [person, person[:16]]
        elif kind == 1 and life.kinds:
            person = life.kinds.pop()
            done = lake.erase(table="shop.people", column="kind", value=person)
            gone.append(person)
        elif kind == 2:
            person = life.mails.pop()
            done = lake.erase(text=person)
            gone += [person, person[:16]]
        else:
            done = lake.erase(table="shop.people", column=life.mail)
            gone += [each[:16] for each in life.mails]
            life.mails = [f"{each}{seed}"[::-1] for each in life.mails]
        assert (done.remaining, done.unrendered) == ((), ())
        assert {text: found for text in gone if (found := holding_deep(store, text))} == {}
        if not life.mails:
            break
    all_text = read_all(lake_on(store))
    assert not any(each in all_text for each in gone)
    assert findings(life.lake, store) == []


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_values_erased_at_a_random_point_of_a_history_stand_nowhere(
    seed: int, tmp_path: Path
) -> None:
    a_life_of_columns_is_erased(LocalStore(tmp_path, durable=Durability.NONE), seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_two_hundred_histories_of_columns_erased(seed: int, tmp_path: Path) -> None:
    a_life_of_columns_is_erased(LocalStore(tmp_path, durable=Durability.NONE), 1000 + seed)


ANN, BOB, YEAR = "ann-0123456789abcdef@example.com", "bob-0123456789abcdef", "kind-0123456789abcd"


def exported(store: Store) -> bytes:
    out = io.BytesIO()
    export(handle_of(lake_on(store)).setting, out)
    return out.getvalue()


class Interrupted(Wrapped):
    """Runs a callback once before its n-th write; no lock is held."""

    def __init__(self, inner: Store, before: int, between: Callable[[], object]) -> None:
        super().__init__(inner)
        self.writes_left = before
        self.between = between
        self.was_met = False

    def lock(self, key: str) -> AbstractContextManager[None]:  # noqa: ARG002 - as its store's
        return nullcontext(None)

    def create(self, key: str, body: bytes) -> bool:
        self._meet()
        return super().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        self._meet()
        super().replace(key, body)

    def replace_durably(self, key: str, body: bytes) -> None:
        self._meet()
        super().replace_durably(key, body)

    def _meet(self) -> None:
        if self.writes_left == 0:
            self.was_met = True
            self.between()
        self.writes_left -= 1


def people(store: Store, **options: str) -> Table:
    """Return a table whose mails and kinds are personal."""
    lake = lake_on(store)
    lake.init(erasable=True)
    lake.create_database("shop")
    marked = {"ledger.personal": "mail, kind", "ledger.formats": "iceberg", **options}
    schema = Schema.of(COLUMNS, partition_keys=["kind"], options=marked)
    return lake.create_table("shop.people", schema)


def file(name: str, mail: str, kind: str | None = YEAR) -> FileChange:
    text = mail.encode().hex()
    return FileChange(
        path=name,
        partition=(kind,),
        record_count=3,
        file_size_in_bytes=100,
        field_ids=True,
        lower_bounds={0: "0100000000000000", 1: text},
        upper_bounds={0: "0900000000000000", 1: text},
    )


def paths(table: Table, where: str) -> list[str]:
    return [each.file.path for each in table.at().plan(where).files]


def test_bounds_and_partitions_prune_until_they_are_erased_and_never_wrongly_after() -> None:
    store = memory()
    table = people(store)
    table.append([file("a", ANN), file("b", BOB, "other")])

    assert paths(table, f"mail = '{BOB}'") == ["b"]
    assert paths(table, f"kind = '{YEAR}'") == ["a"]
    lake_on(store).erase(table="shop.people", column="mail", value=ANN)
    lake_on(store).erase(table="shop.people", column="kind", value=YEAR)

    assert holding_deep(store, ANN[:16]) == holding_deep(store, YEAR) == []
    assert paths(table, f"mail = '{BOB}'") == ["a", "b"]
    assert paths(table, f"mail = '{BOB}' and id > 100") == []
    assert paths(table, "kind = 'other'") == ["a", "b"]
    assert paths(table, "kind = 'third'") == ["a"]


def test_the_log_alone_confirms_no_guess_and_not_that_two_files_are_of_one_person() -> None:
    store = memory()
    table = people(store)
    table.append([file("a", ANN)], commit_id="1")
    table.append([file("b", ANN)], commit_id="2")
    other = people(memory())
    other.append([file("a", BOB, "third")], commit_id="1")

    logs = [handle_of(each).log.commit_at(1).transactions[0] for each in (table, other)]
    # What was asked is hashed without a salt, so nothing of a person is in it.
    assert logs[0].asked == logs[1].asked
    refs = [each.sidecar for each in handle_of(table).live.at(2).values()]
    assert all(isinstance(each, dict) and len(each) == 1 for each in refs)
    assert len({value for each in refs if isinstance(each, dict) for value in each.values()}) == 2
    assert len({each.partition for each in handle_of(table).live.at(2).values()}) == 2


def test_what_was_removed_is_removed_from_the_statistics_of_its_partition() -> None:
    table = people(memory())
    table.append([file("a", ANN), file("b", BOB)])
    table.append([file("c", BOB)])
    table.delete_files("a")
    (found,) = listed_partitions(Kept.of(handle_of(table).log), table.at())

    assert (dict(found.spec), found.file_count) == ({"kind": YEAR}, 2)


def test_an_overwrite_meets_what_others_add_to_a_personal_partition() -> None:
    store = memory()
    table, late = people(store), lake_on(store).table("shop.people")
    table.append([file("a", ANN)])
    assert late.state.version == 1
    table.append([file("b", ANN)])

    with pytest.raises(CommitConflictError):
        late.overwrite([], where={"kind": YEAR})
    assert table.overwrite([file("c", BOB)], where={"kind": "other"}).version == 3
    assert [each.path for each in table.at().files] == ["a", "b", "c"]


def test_marks_follow_renames_whatever_formats_a_table_has_and_a_dropped_column_goes_on() -> None:
    for formats in ("iceberg", "delta"):
        store = memory()
        table = people(store, **{"ledger.formats": formats})
        table.alter([RenameColumn(("mail",), "email")])
        assert table.at().options["ledger.personal"].startswith("email")
        table.append([file("a", ANN)])
        table.alter([DropColumn(("email",))])
        table.append([file("b", ANN)])

        (key,) = {key.rpartition("/")[0] for key in holding_deep(store, ANN[:16])}
        assert key.startswith("_ledger/personal/columns/")
        assert lake_on(store).erase(table="shop.people", column="email", value=ANN).values == 2
        assert holding_deep(store, ANN[:16]) == []


def test_columns_are_marked_where_they_are_and_in_a_ledger_that_can_forget() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    marked = Schema.of(COLUMNS, options={"ledger.personal": "mail"})
    with pytest.raises(InvalidChangeError, match="lakeledger init --erasable"):
        lake.create_table("shop.people", marked)
    table = lake.create_table("shop.people", Schema.of(COLUMNS))
    with pytest.raises(InvalidChangeError, match="lakeledger init --erasable"):
        table.alter([SetOption("ledger.personal", "mail")])
    lake = lake_on(memory())
    lake.init(erasable=True)
    lake.create_database("shop")
    table = lake.create_table("shop.people", Schema.of(COLUMNS))
    with pytest.raises(InvalidChangeError, match="there is no column male"):
        table.alter([SetOption("ledger.personal", "male")])
    assert table.alter([SetOption("ledger.personal", "mail")]).version == 1


def test_values_in_lines_from_before_a_column_was_marked_are_reported() -> None:
    store = memory()
    table = people(store)
    table.alter([SetOption("ledger.personal", "")])
    table.append([file("a", ANN), file(f"kind={YEAR}/b", BOB)])
    table.alter([SetOption("ledger.personal", "kind,mail")])
    table.append([file("c", ANN)])

    mails = lake_on(store).erase(table="shop.people", column="mail", value=ANN)
    kinds = lake_on(store).erase(table="shop.people", column="kind", value=YEAR)
    assert [(each.values, each.remaining[0].versions) for each in (mails, kinds)] == [
        (1, (2,)),
        (1, (2,)),
    ]
    assert kinds.remaining[0].paths == (f"kind={YEAR}/b",)


def test_a_writer_that_did_not_know_of_a_mark_is_asked_to_retry() -> None:
    store = memory()
    table = people(store)
    table.alter([SetOption("ledger.personal", "kind")])
    late = lake_on(store).table("shop.people")
    assert late.state.version == 1
    table.alter([SetOption("ledger.personal", "mail, kind")])

    with pytest.raises(CommitConflictError):
        late.append([file("a", ANN)])
    late.append([file("a", ANN)])
    assert all(key.startswith("_ledger/personal/") for key in holding_deep(store, ANN[:16]))


def test_an_eraser_of_columns_that_dies_at_any_write_is_asked_again_and_ends() -> None:
    for writes in itertools.count():
        store = memory()
        table = people(store)
        for number in range(2):
            table.append([file(f"{number}-a", ANN), file(f"{number}-b", BOB)])
        table.project("iceberg")
        died = False
        try:
            lake_on(DiesAfter(store, writes), retry_policy=no_time()).erase(text=YEAR)
        except Died:
            died = True
        again = lake_on(store).erase(text=YEAR)

        assert holding_deep(store, YEAR) == []
        assert findings(lake_on(store), store) == []
        assert len(holding_deep(store, BOB[:16])) == 2
        if not died:
            assert again.values == 0
            return


def test_two_erasures_at_once_of_one_file_bring_nothing_back() -> None:
    for writes in itertools.count():
        store = memory()
        people(store).append([file("a", ANN), file("b", BOB)])
        # The first reads, and stops before a write; the second runs whole; the first goes on.
        stopped = Interrupted(store, writes, partial(lake_on(store).erase, text=BOB))
        lake_on(stopped).erase(text=ANN)

        if not stopped.was_met:
            assert writes > 3
            return
        assert holding_deep(store, ANN[:16]) == holding_deep(store, BOB[:16]) == []


def test_an_export_carries_values_and_an_import_brings_none_back() -> None:
    here, there = memory(), memory()
    people(here).append([file("a", ANN), file("b", BOB)])
    before = exported(here)
    lake_on(here).erase(text=ANN)
    import_lines(handle_of(lake_on(there)).setting, io.BytesIO(exported(here)))
    assert holding_deep(there, ANN[:16]) == []
    assert paths(lake_on(there).table("shop.people"), f"mail = '{BOB}'") == ["a", "b"]

    import_lines(handle_of(lake_on(there)).setting, io.BytesIO(before))
    assert holding_deep(there, ANN[:16]) == []
    assert findings(lake_on(there), there) == []


def test_values_of_columns_that_are_lost_or_changed_are_damage() -> None:
    store = memory()
    people(store).append([file("a", ANN)])
    (key,) = store.walk("_ledger/personal/columns")
    body = store.read(key) or b""

    store.replace(key, body.replace(bound(ANN).encode(), bound(BOB).encode()))
    assert ["was changed" in each.what for each in findings(lake_on(store), store)] == [True]
    store.delete(key)
    assert ["is missing" in each.what for each in findings(lake_on(store), store)] == [True]
    assert paths(lake_on(store).table("shop.people"), "kind = 'x'") == ["a"]


def test_numbers_dates_and_transforms_are_found_by_their_values() -> None:
    store = memory()
    lake = lake_on(store)
    lake.init(erasable=True)
    lake.create_database("shop")
    options = {"ledger.personal": "born, number", "ledger.formats": "iceberg"}
    schema = Schema.of({"id": "INT", "born": "DATE", "number": "BIGINT"}, options=options)
    spec = [AddPartitionField(("born",), "month"), AddPartitionField(("number",), "bucket[4]")]
    table = lake.create_table("shop.people", schema, partition_spec=spec)
    seven = (7).to_bytes(8, "little").hex()
    table.append(
        [
            FileChange(
                path=f"{month}",
                partition=(month, 3),
                record_count=1,
                file_size_in_bytes=9,
                field_ids=True,
                lower_bounds={2: "0100000000000000", 3: seven},
                upper_bounds={2: "0100000000000000", 3: seven},
            )
            for month in (240, 241)
        ]
    )
    assert lake.plan_erasure(table="shop.people", column="number", value="8").values == 0
    assert lake.plan_erasure(table="shop.people", column="born", value="1990-02-03").values == 1
    with pytest.raises(InvalidInputError, match="is no value of column born DATE"):
        lake.plan_erasure(table="shop.people", column="born", value="soon")
    # A bucket's number is that of many, and stays.
    assert [each.partition[1] for each in handle_of(table).live.at(1).values()] == [3, 3]


def test_branches_hold_no_values_and_lose_them_as_main_does() -> None:
    store = memory()
    table = people(store)
    table.append([file("a", ANN)])
    table.create_branch("audit")
    table.branch("audit").append([file("b", BOB)])
    assert all(key.startswith("_ledger/personal/") for key in holding_deep(store, BOB))
    table.branch("audit").fast_forward()

    assert lake_on(store).erase(text=BOB).values == 1
    assert holding_deep(store, BOB) == []
    assert [each.path for each in table.at().files] == ["a", "b"]
    assert findings(lake_on(store), store) == []


def test_iceberg_readers_find_files_whose_partition_was_erased_whatever_they_ask(
    tmp_path: Path,
) -> None:
    store = LocalStore(tmp_path, durable=Durability.NONE)
    table = people(store)
    table.append([file("a", ANN), file("b", BOB, "other")])
    table.project("iceberg")

    def planned(where: str) -> list[str]:
        newest = max((tmp_path / handle_of(table).path / "metadata").glob("0*.metadata.json"))
        scan = StaticTable.from_metadata(str(newest)).scan(row_filter=where)
        return sorted(each.file.file_path.rpartition("/")[2] for each in scan.plan_files())

    assert planned(f"kind = '{YEAR}'") == ["a"]
    lake_on(store).erase(table="shop.people", column="kind", value=YEAR)
    assert planned(f"kind = '{YEAR}'") == planned("kind is null") == ["a"]
    assert planned("kind = 'other'") == ["a", "b"]
    assert planned("id > 100") == []


@pytest.mark.parametrize("formats", ["paimon,iceberg", "iceberg,delta"])
@pytest.mark.parametrize("is_noted", [True, False])
def test_what_stays_for_readers_that_came_before_goes_where_values_are_erased(
    formats: str, *, is_noted: bool
) -> None:
    store = memory()
    table = people(store, **{"ledger.formats": formats})
    other = YEAR[::-1]
    for number in range(3):
        one, two = (f"{number}-{each}.parquet" for each in "ab")
        table.append([file(one, ANN), file(two, BOB, other)])
        for name in formats.split(","):
            table.project(name)
    table.overwrite([], where={"kind": YEAR})
    table.expire_snapshots(before=table.state.last_snapshot_id)
    for name in formats.split(","):
        table.project(name)
    notes = [key for key in store.walk("") if "/_ledger/pending-deletes/" in key]
    assert notes
    for key in notes if not is_noted else ():
        store.delete(key)

    done = lake_on(store).erase(table="shop.people", column="kind", value=YEAR)
    assert (done.values, done.unrendered) == (3, ())
    assert holding_deep(store, YEAR) == []
    assert holding_deep(store, other) != []
    assert findings(lake_on(store), store) == []
    for name in formats.split(","):
        assert lake_on(store).table("shop.people").project(name) == table.state.version


@pytest.mark.parametrize(
    "between",
    [
        [SetOption("ledger.personal", "mail, kind")],
        [SetOption("ledger.personal", "id, mail, kind")],
        [SetOption("ledger.personal", "")],
        [SetOption("ledger.personal", "id"), DropColumn(("mail",))],
        [RenameColumn(("mail",), "email"), SetOption("ledger.personal", "kind")],
    ],
    ids=str,
)
@pytest.mark.parametrize("branch", [None, "audit"])
def test_a_request_that_is_asked_again_is_found_whatever_was_marked_since(
    between: list[SetOption], branch: str | None
) -> None:
    store = memory()
    table = people(store)
    table.alter([SetOption("ledger.personal", "mail")])
    table.append([file("0", BOB)])
    table.create_branch("audit")
    line = table if branch is None else table.branch(branch)
    first = line.append([file("a", ANN)], commit_id="mine")
    over = line.overwrite([file("b", BOB)], where={"kind": YEAR}, commit_id="ours")
    table.alter(between)

    for warm in (table, lake_on(store).table("shop.people")):
        line = warm if branch is None else warm.branch(branch)
        for said, again in (
            (first, line.append([file("a", ANN)], commit_id="mine")),
            (over, line.overwrite([file("b", BOB)], where={"kind": YEAR}, commit_id="ours")),
        ):
            assert (again.repeated, again.version) == (True, said.version)
        with pytest.raises(InvalidInputError, match="used for something else"):
            line.append([file("c", ANN)], commit_id="mine")


def test_a_request_from_before_columns_were_personal_is_found() -> None:
    store = memory()
    lake = lake_on(store)
    lake.init(erasable=True)
    lake.create_database("shop")
    table = lake.create_table("shop.people", Schema.of(COLUMNS, partition_keys=["kind"]))
    first = table.append([file("a.parquet", ANN)], commit_id="mine")
    table.alter([SetOption("ledger.personal", "mail, kind")])

    again = table.append([file("a.parquet", ANN)], commit_id="mine")
    assert (again.repeated, again.version) == (True, first.version)


def test_an_uncommitted_change_leaves_no_value_of_a_column() -> None:
    store = memory()
    table = people(store)
    late = [lake_on(store).table("shop.people") for _ in range(3)]
    assert {each.state.version for each in late} == {0}
    table.append([file("a", ANN)], commit_id="mine")
    table.alter([SetOption("k", "1")])
    kept = set(store.walk("_ledger/personal/columns"))

    assert late[0].append([file("a", ANN)], commit_id="mine").repeated
    with pytest.raises(CommitConflictError):
        late[1].append([file("a", ANN)])
    with pytest.raises(CommitConflictError):
        late[2].append([file("b", ANN)], expect_version=0)
    assert set(store.walk("_ledger/personal/columns")) == kept
    assert table.append([file("b", ANN)]).version == 3
    assert len(set(store.walk("_ledger/personal/columns"))) == len(kept) + 1


class OthersAreFaster(SometimesFaulty):
    """Somebody else creates another file in the very place, right before."""

    def create(self, key: str, body: bytes) -> bool:
        if self.is_hit(key):
            super().create(key, b"theirs")
        return super().create(key, body)


def of_texts(key: str) -> bool:
    return key.startswith(f"{FOLDER}/") and not of_columns(key)


def of_columns(key: str) -> bool:
    return key.startswith(f"{FOLDER}/columns/")


@pytest.mark.parametrize("kept", [of_texts, of_columns])
def test_a_commit_succeeds_though_a_client_sent_its_values_twice(
    kept: Callable[[str], bool],
) -> None:
    store = memory()
    people(store)
    twice = DeliversTwice(store, on=kept)
    lake = lake_on(twice, retry_policy=no_time())

    committed = lake.table("shop.people").append([file("a", ANN)], author=BOB)

    assert (twice.hits, committed.version) == (1, 1)
    assert findings(lake, store) == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (OthersAreFaster, "another file is already there; "),
        (LosesRequests, r"the store gave no answer \(the answer to create .* was lost\); "),
    ],
)
@pytest.mark.parametrize(
    ("kept", "what"), [(of_texts, "author and message"), (of_columns, "values of personal columns")]
)
def test_a_writer_that_cannot_keep_values_first_commits_nothing_and_raises_the_reason(
    fault: type[SometimesFaulty], said: str, kept: Callable[[str], bool], what: str
) -> None:
    store = memory()
    people(store)
    table = lake_on(fault(store, on=kept), retry_policy=no_time()).table("shop.people")

    with pytest.raises(StoreError, match=f"{said}{what} have to be stored there before the commit"):
        table.append([file("a", ANN)], author=BOB)
    assert table.state.version == 0
