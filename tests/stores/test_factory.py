from __future__ import annotations

import sys
from pathlib import Path

import pytest

import ledger
from ledger import InvalidInputError, InvalidNameError, MissingDependencyError, StoreError
from ledger.stores import LocalStore, MemoryStore, client_options, open_store
from ledger.stores.services import ALWAYS, SERVICES, Service, root_of, service_of


def test_a_plain_path_and_its_url_open_the_same_store(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "a lake%20#1"))
    store.create("a", b"1")

    assert isinstance(store, LocalStore)
    assert store.url == f"file://{tmp_path}/a lake%20#1"
    assert open_store(store.url).read("a") == b"1"
    assert open_store(store.url).url == store.url


@pytest.mark.parametrize(
    "url", ["file:///x/y", "file:///x/y/", "file:/x/y", "file:////x/y", "FILE:///x/z/../y"]
)
def test_every_spelling_has_one_canonical_url(url: str) -> None:
    assert open_store(url).url == "file:///x/y"


def test_relative_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("lake")
    monkeypatch.chdir("/")

    assert store.url == f"file://{tmp_path}/lake"


def test_plain_paths_expand_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")

    assert open_store("~/lake").url == "file:///home/somebody/lake"
    assert open_store("file:///~/lake").url == "file:///~/lake"


def test_opening_touches_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "lake"))

    assert store.read("a") is None
    assert list(store.keys("")) == []
    assert list(tmp_path.iterdir()) == []


def test_a_memory_url_opens_the_shared_store() -> None:
    open_store("memory://factory").create("a", b"1")

    assert isinstance(open_store("memory://factory/"), MemoryStore)
    assert open_store("memory://factory/").read("a") == b"1"


@pytest.mark.parametrize(
    "url",
    [
        "hdfs://host/lake",
        "https://host/lake",
        "simplecache::s3://bucket/lake",
        "dir::file:///x",
        "memory::x",
        "s3::x",
        "adl://container/lake",
        "oss://bucket/lake",
        "file::/x",
    ],
)
def test_a_store_without_a_proven_create_is_refused(url: str) -> None:
    with pytest.raises(StoreError, match=r"proven conditional create.*memory://NAME"):
        open_store(url)


@pytest.mark.parametrize("url", ["file://host/lake", "file://lake", "file:", "file:///a\0b"])
def test_a_file_url_with_a_host_is_refused(url: str) -> None:
    with pytest.raises(StoreError):
        open_store(url)


@pytest.mark.parametrize("url", ["", "a\0b"])
def test_what_is_no_path_is_refused(url: str) -> None:
    with pytest.raises(StoreError, match="is no path"):
        open_store(url)


def test_the_home_of_a_user_that_does_not_exist_is_refused() -> None:
    with pytest.raises(StoreError, match="a user that this machine does not have"):
        ledger.open("~nobody-is-called-so/lake")


def test_a_path_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "_ledger").symlink_to(tmp_path / "a")
    for place in (tmp_path / "a", f"file://{tmp_path}/b/lake", tmp_path / "lake"):
        with pytest.raises(StoreError, match="Too many levels of symbolic links") as failed:
            ledger.open(place)
        assert failed.value.kind == "NO_FOLDER"
    with pytest.raises(StoreError, match="use a shorter path"):
        ledger.open(tmp_path / ("a" * 300))


def test_a_memory_url_that_escapes_is_refused() -> None:
    with pytest.raises(InvalidNameError):
        open_store("memory://a/../b")


def test_options_that_nobody_reads_are_refused(tmp_path: Path) -> None:
    assert open_store(str(tmp_path), {}).url == f"file://{tmp_path}"
    with pytest.raises(StoreError, match=r"no storage_options.*\['key'\]"):
        open_store(str(tmp_path), {"key": "1"})


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("s3://bucket/lake/", "s3://bucket/lake"),
        ("S3A://bucket/lake", "s3://bucket/lake"),
        ("s3://bucket", "s3://bucket"),
        ("gcs://bucket/a/b c", "gs://bucket/a/b c"),
        ("az://container/lake", "abfs://container/lake"),
        ("abfs://container@account.dfs.core.windows.net/lake", None),
        ("az://container@account.blob.core.windows.net/lake/", None),
    ],
)
def test_every_spelling_of_a_bucket_has_one_canonical_url(url: str, canonical: str | None) -> None:
    scheme, _, rest = url.partition("://")
    service = service_of(scheme.lower())
    assert service is not None
    found = root_of(service, rest, {})

    assert found.url == (canonical or f"abfss://{rest.removesuffix('/')}")
    again, _, rest = found.url.partition("://")
    assert service_of(again) == service
    assert root_of(service, rest, {}) == found
    assert found.options.get("account_name") == (None if canonical else "account")


def test_an_account_in_another_cloud_keeps_its_host() -> None:
    options = root_of(SERVICES[2], "c@account.dfs.core.chinacloudapi.cn/lake", {}).options
    assert options["account_host"] == "account.blob.core.chinacloudapi.cn"
    assert options["account_name"] == "account"


@pytest.mark.parametrize(
    "url", ["s3://", "s3:///lake", "s3://a@bucket/x", "s3://b?x=1/y", "abfs://c@host/x", "s3://b*"]
)
def test_a_url_without_a_bucket_is_refused(url: str) -> None:
    with pytest.raises((StoreError, InvalidInputError), match="write|keeps no credentials"):
        open_store(url)


@pytest.mark.parametrize("url", ["s3://bucket//x", "s3://bucket/a/../b", "gs://bucket/a//"])
def test_a_folder_that_is_no_path_is_refused(url: str) -> None:
    with pytest.raises(InvalidNameError):
        open_store(url)


def test_clients_of_files_next_to_a_store_get_its_options() -> None:
    assert client_options("/data/lake") == {}
    assert client_options("/data/lake", {"auto_mkdir": True}) == {"auto_mkdir": True}
    assert client_options("s3://bucket/lake") == dict(ALWAYS)


def test_two_accounts_are_refused() -> None:
    with pytest.raises(StoreError, match="'one'.*'two'"):
        open_store("abfs://c@one.dfs.core.windows.net/lake", {"account_name": "two"})


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.extra)
def test_a_library_that_is_missing_is_named(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, service.module.partition(".")[0], None)
    monkeypatch.setitem(sys.modules, service.module, None)
    expected = rf"pip install .*\[{service.extra}\]"
    with pytest.raises(MissingDependencyError, match=expected):
        open_store(f"{service.scheme}://bucket/lake")


def test_options_that_a_client_refuses_are_named_and_not_quoted() -> None:
    with pytest.raises(StoreError, match=r"\['connection_string'\]") as refused:
        open_store("abfs://container/lake", {"connection_string": "AccountKey=hush"})
    assert "hush" not in str(refused.value)
