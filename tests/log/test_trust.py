"""A handle that trusts the log alone reads no cache, not even one that fits in every way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from attrs import evolve

import ledger
from ledger import FileChange, Ledger, SetOption, Table, UpdateComment
from ledger.cli import exits, main
from ledger.ledger_handle import LedgerHandle
from ledger.stores import LocalStore, Store
from ledger.stores.wrappers import LogOnlyStore
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import lake_on, memory

CACHES = ("/caches/", "/segments/", "/statistics/")


class Heard(Wrapped):
    """Notes what is read of it."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.keys_read: list[str] = []

    def read(self, key: str) -> bytes | None:
        self.keys_read.append(key)
        return super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return map(self.read, keys)


def lived(store: Store) -> Table:
    """Return a table with caches of every kind."""
    lake = lake_on(store)
    lake.create_database("shop")
    table = lake.create_table("shop.orders", {"id": "INT", "day": "INT"})
    table.alter([UpdateComment("the truth")])
    for number in range(105):
        file = FileChange(path=f"{number}.parquet", record_count=1, file_size_in_bytes=9)
        table.append([file], commit_id=f"id-{number}")
    table.alter([ledger.RenameColumn(("day",), "date")])
    return table


def read_all(lake: Ledger) -> None:
    """Let every kind of reader read, and a writer write."""
    table = lake.table("shop.orders")
    assert table.at().totals.file_count == len(table.at().files) == 105
    assert table.at(snapshot=3).totals.file_count == 3
    assert table.at(timestamp=table.at(version=50).state.time_millis).state.version == 50
    assert len(list(table.entries(last=500))) == 108
    assert table.blame()
    assert len(list(table.schemas())) == 3
    assert len(table.at().plan("id = 1").files) == 105
    again = FileChange(path="50.parquet", record_count=1, file_size_in_bytes=9)
    assert table.append([again], commit_id="id-50").repeated
    assert table.delete_files("50.parquet").state.totals.file_count == 104


def test_no_cache_is_read_by_a_handle_that_trusts_the_log() -> None:
    inner = memory()
    lived(inner)
    heard = Heard(inner)
    read_all(
        Ledger(
            LedgerHandle(
                evolve(handle_of(lake_on(memory())).setting, store=LogOnlyStore(heard), trust="log")
            )
        )
    )
    assert [key for key in heard.keys_read if any(each in key for each in CACHES)] == []
    assert any("/log/" in key for key in heard.keys_read)


def test_a_handle_that_trusts_the_log_sees_its_files_and_no_cache() -> None:
    inner = memory()
    lived(inner)
    there = {*inner.walk("")}
    seen = {*LogOnlyStore(inner).walk("")}
    assert any("/caches/" in key for key in there)
    assert [key for key in seen if any(each in key for each in CACHES)] == []
    assert {key for key in there if "/log/" in key} == {key for key in seen if "/log/" in key}


def test_a_forged_checkpoint_that_fits_the_log_deceives_others_alone(tmp_path: Path) -> None:
    lived(LocalStore(tmp_path))
    for path in tmp_path.glob("shop.db/orders/_ledger/caches/*/*.json"):
        body, said = path.read_text(), json.loads(path.read_bytes())
        state = body[body.index('"state":') + len('"state":') : body.rindex("}")]
        assert hashlib.sha256(state.encode()).hexdigest() == said["check"]
        forged = state.replace("the truth", "no truth!")
        assert forged != state
        check = hashlib.sha256(forged.encode()).hexdigest()
        path.write_text(body.replace(state, forged).replace(said["check"], check))

    assert ledger.open(tmp_path).table("shop.orders").state.schema.comment == "no truth!"
    truth = ledger.open(tmp_path, trust="log").table("shop.orders")
    assert truth.state.schema.comment == "the truth"
    assert truth.alter([SetOption("k", "1")]).version == 108


@pytest.mark.parametrize("way", ["option", "environment", "none"])
def test_the_command_line_trusts_as_its_option_says(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    test_a_forged_checkpoint_that_fits_the_log_deceives_others_alone(tmp_path)
    if way == "environment":
        monkeypatch.setenv("LAKELEDGER_TRUST", "log")
    trusting = ["--trust", "log"] if way == "option" else []
    line = ["show", "shop.orders", "--version", "107", "--ledger", str(tmp_path)]
    assert main([*line, *trusting, "--output", "json"]) == exits.OK
    assert ("no truth!" in capsys.readouterr().out) == (way == "none")
    # Verification reads caches, whatever is trusted, and finds the forged ones.
    assert main(["verify", "--ledger", str(tmp_path), *trusting]) != exits.OK
    assert "caches/" in capsys.readouterr().out
