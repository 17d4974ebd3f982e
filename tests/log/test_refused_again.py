"""A rejected or committed transaction stays so when it is looked up twice."""

from __future__ import annotations

import pytest

from ledger import DamagedLogError, Schema, SetOption
from ledger.log.stream_log import SURE_FOR_S
from tests.faults import DeliversTwice
from tests.lakes import lake_on, memory
from tests.log.test_warm_handle import Watch, keys, warm


def test_a_handle_whose_newest_commit_was_removed_is_rejected_each_time() -> None:
    store, watch = memory(), Watch()
    table = warm(store, watch)
    newest, following = keys(table, (3, 4))
    body = store.read(newest)
    assert body is not None
    store.delete(newest)
    watch.seconds += SURE_FOR_S

    for _ in range(2):
        with pytest.raises(DamagedLogError, match="0003.json was read before"):
            table.alter([SetOption("k", "v")])
    assert not store.exists(following)

    store.create(newest, body)
    assert table.alter([SetOption("k", "v")]).version == 4


class ThenNewer(DeliversTwice):
    """Delivers twice, and right after it a newer version of the ledger commits."""

    def create(self, key: str, body: bytes) -> bool:
        hits = self.hits
        answer = super().create(key, body)
        if self.hits > hits:
            self.inner.create(f"{key.removesuffix('1.json')}2.json", b'{"format":9}\n')
        return answer


def test_a_committed_writer_is_acknowledged_whatever_a_newer_version_commits_next() -> None:
    inner = memory()
    store = ThenNewer(
        inner, on=lambda key: key.endswith("db/t/_ledger/log/" + "1".zfill(20) + ".json")
    )
    lake = lake_on(store)
    lake.create_database("db")
    table = lake.create_table("db.t", Schema.of({"id": "INT"}))

    assert table.alter([SetOption("k", "v")]).version == 1
    assert store.hits == 1
