from __future__ import annotations

import pytest

from ledger import DamagedLogError, UpgradeRequiredError
from ledger.audit.entries import Entry
from ledger.log import Codec
from ledger.state import TableStream
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.log.long_logs import ROOT, long_log, store_of, table_on

NEWEST = 1_700
CODEC: Codec[object] = Codec(TableStream().event_types)


@pytest.fixture
def store() -> MemoryStore:
    return store_of(long_log(NEWEST), "sketches")


def test_a_sketch_says_what_its_commit_says(store: MemoryStore) -> None:
    log = handle_of(table_on(store)).log
    log.refresh()
    found = [*log.reader.sketches(0, NEWEST)]
    for (sketch, body), read in zip(found, log.commits(0, NEWEST), strict=True):
        commit = read.commit
        assert body == read.body
        assert (sketch.version, sketch.time_millis, sketch.parent) == (
            *(commit.version, commit.time_millis, commit.parent),
        )
        for sketched, transaction in zip(sketch.transactions, commit.transactions, strict=True):
            assert sketched.author == transaction.author
            assert sketched.message == transaction.message
            assert sketched.effective_time_millis == transaction.effective_time_millis
            assert [each.type for each in sketched.events] == [
                *Entry("t", commit, transaction).kinds
            ]


def test_a_filtered_log_is_the_whole_log_looked_through(store: MemoryStore) -> None:
    table = table_on(store)
    whole = [*table.entries()]
    assert [each.version for each in whole] == [*range(NEWEST, -1, -1)]
    kinds = {"renameColumn", "dropColumn"}
    assert [each.version for each in table.entries(kinds=kinds)] == [
        each.version for each in whole if not kinds.isdisjoint(each.kinds)
    ]
    assert [each.version for each in table.entries(author="ETL", last=900)] == [
        each.version for each in whole if "etl" in each.transaction.author and each.version <= 900
    ]
    assert [*table.entries(author="nobody")] == []


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (b'"type":"', b'"type":"later', UpgradeRequiredError),
        (b'"format":3', b'"format":9', UpgradeRequiredError),
        (b'"timeMillis"', b'"timeMillion"', UpgradeRequiredError),
        (b'"events":[', b'"events":{', DamagedLogError),
        (b'"transactions":[', b'"transactions":[],"x":[', UpgradeRequiredError),
    ],
)
def test_what_is_no_commit_or_newer_is_no_sketch_either(
    store: MemoryStore, old: bytes, new: bytes, error: type[Exception]
) -> None:
    body = store.read(f"{ROOT}/log/{7:020d}.json") or b""
    assert old in body
    with pytest.raises(error):
        CODEC.sketch(body.replace(old, new, 1), "f")


def test_a_changed_commit_shows_while_a_filter_passes_it_by(store: MemoryStore) -> None:
    key = f"{ROOT}/log/{NEWEST - 30:020d}.json"
    body = store.read(key) or b""
    store.delete(key)
    store.create(key, body.replace(b"etl@prod", b"etl@pr0d"))
    with pytest.raises(DamagedLogError, match="names another parent"):
        list(table_on(store).entries(author="nobody"))
