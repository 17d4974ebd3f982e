"""Credentials stay with the store: no log line, error, repr or stored byte holds them."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import ledger
from ledger import FileChange, Schema
from ledger.ledger_handle import LedgerHandle
from ledger.opening.context import TableSetting
from ledger.stores import LocalStore, open_store
from ledger.stores.services import SERVICES, root_of
from ledger.table_handle import handle_of
from tests.lakes import orders

SECRET = "s3cr3t-VALUE-0192837465"  # noqa: S105 - of nothing
NOWHERE = "http://127.0.0.1:9"


def quick() -> dict[str, Any]:
    """Return what lets the client give up at once; it changes what it is given."""
    return {"retries": {"max_attempts": 0}, "connect_timeout": 1}


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "fsspec": (
        "s3://bucket/lake",
        {"key": "me", "secret": SECRET, "endpoint_url": NOWHERE, "config_kwargs": quick()},
    ),
    "delta-rs": (
        "s3://bucket/lake",
        {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": NOWHERE},
    ),
    "a wrong option": ("s3://bucket/lake", {"secrets": SECRET}),
    "a wrong type": ("s3://bucket/lake", {"secret": [SECRET], "anon": SECRET}),
    "memory": ("memory://secret-test", {"token": SECRET}),
    "local": ("/tmp/nowhere", {"password": SECRET}),  # noqa: S108 - rejected before it is touched
    "no such store": ("sftp://host/lake", {"password": SECRET}),
}


def shown_by(work: Callable[[], object]) -> str:
    """Return all that a failing call shows: its error, that error's causes, and what it logs."""
    with capture_logs() as logs:
        try:
            shown = repr(work())
        except Exception as error:  # noqa: BLE001 - any error is shown
            shown = "".join(traceback.format_exception(error, limit=0))
            shown += repr(error) + repr(error.args) + repr(pickle.loads(pickle.dumps(error)))  # noqa: S301 - just made
    return shown + repr(logs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIONS)
def test_a_secret_in_the_options_is_never_shown(name: str) -> None:
    url, options = OPTIONS[name]

    assert SECRET not in shown_by(lambda: open_store(url, options))
    if name != "delta-rs":
        # Their words know no short retries.
        assert SECRET not in shown_by(lambda: ledger.open(url, options))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("url", [f"s3://me:{SECRET}@bucket/lake", f"sftp://me:{SECRET}@host/lake"])
def test_a_secret_in_a_url_is_never_shown(url: str) -> None:
    assert SECRET not in shown_by(lambda: ledger.open(url))


class Unreachable(LocalStore):
    """A store whose network is gone from one moment on."""

    is_gone = False

    def create(self, key: str, body: bytes) -> bool:
        if self.is_gone:
            raise OSError("the network is gone")
        return super().create(key, body)


@pytest.fixture
def lake(tmp_path: Path) -> ledger.Ledger:
    store = Unreachable(tmp_path)
    options = {"key": "me", "secret": SECRET, "endpoint_url": NOWHERE, "config_kwargs": quick()}
    return ledger.Ledger(
        LedgerHandle(TableSetting(store=store, storage_options=options, author="me"))
    )


def test_a_secret_is_in_no_handle_and_nothing_stored(lake: ledger.Ledger, tmp_path: Path) -> None:
    table = orders(lake)
    shown = repr(lake) + str(lake) + repr(table) + repr(table.at()) + repr(handle_of(table).log)

    assert SECRET not in shown
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()


def test_a_secret_is_not_in_the_repr_of_the_setting(lake: ledger.Ledger) -> None:
    assert SECRET not in repr(handle_of(lake).setting)


def test_a_secret_is_in_no_error_of_a_table(lake: ledger.Ledger) -> None:
    table = orders(lake, Schema.of({"id": "INT"}))

    assert SECRET not in shown_by(lambda: table.add_files(["s3://bucket/nowhere.parquet"]))
    assert SECRET not in shown_by(lambda: table.add_files(["nowhere.parquet"]))


CARRYING = (
    f"s3://me:{SECRET}@bucket/lake",
    f"s3://{SECRET}@bucket/lake",
    f"s3://bucket/lake?X-Amz-Signature={SECRET}",
    f"s3a://bucket/lake?sig={SECRET}",
    f"gs://bucket/lake?token={SECRET}",
    f"abfss://me:{SECRET}@account.dfs.core.windows.net/lake",
    f"abfss://c@account.dfs.core.windows.net/lake?sv=1&sig={SECRET}",
    f"https://me:{SECRET}@host/lake",
    f"https://host/lake?token={SECRET}",
    f"sftp://me:{SECRET}@host/lake",
    f"simplecache::s3://me:{SECRET}@bucket/lake",
    f"hdfs://host/lake?delegation={SECRET}",
)
DOORS: dict[str, Callable[[ledger.Ledger, str], object]] = {
    "open": lambda _, url: ledger.open(url),
    "open_store": lambda _, url: open_store(url),
    "location": lambda lake, url: lake.create_table(
        "shop.external", Schema.of({"id": "INT"}), location=url
    ),
    "add_files": lambda lake, url: lake.table("shop.orders").add_files([f"{url}/a.parquet"]),
    "add_files of its own": lambda lake, url: lake.table("shop.orders").add_files([url]),
    "append": lambda lake, url: lake.table("shop.orders").append(
        [FileChange(path=url, record_count=1, file_size_in_bytes=1)]
    ),
    "overwrite": lambda lake, url: lake.table("shop.orders").overwrite(
        [FileChange(path=url, record_count=1, file_size_in_bytes=1)]
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("url", CARRYING)
@pytest.mark.parametrize("door", DOORS)
def test_a_url_that_carries_a_secret_is_rejected_and_neither_shown_nor_stored(
    lake: ledger.Ledger, tmp_path: Path, door: str, url: str
) -> None:
    orders(lake, Schema.of({"id": "INT"}))

    with pytest.raises(ledger.LedgerError):
        DOORS[door](lake, url)
    assert SECRET not in shown_by(lambda: DOORS[door](lake, url))
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()


def test_a_query_is_a_name_where_nobody_signs_in(tmp_path: Path) -> None:
    assert open_store(f"file://{tmp_path}/a?b=c").url == f"file://{tmp_path}/a?b=c"


def test_a_secret_is_not_in_the_repr_of_a_buckets_root() -> None:
    root = root_of(SERVICES[0], "bucket/lake", {"key": "me", "secret": SECRET})

    assert SECRET not in repr(root)
