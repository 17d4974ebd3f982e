from __future__ import annotations

from pathlib import Path

import pytest

from ledger.model.errors import InvalidNameError, StoreError
from ledger.stores import LocalStore, MemoryStore, open_store


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
        "s3://bucket/lake",
        "gs://bucket/lake",
        "abfs://container/lake",
        "hdfs://host/lake",
        "https://host/lake",
        "simplecache::s3://bucket/lake",
        "dir::file:///x",
        "memory::x",
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


def test_a_memory_url_that_escapes_is_refused() -> None:
    with pytest.raises(InvalidNameError):
        open_store("memory://a/../b")


def test_options_that_nobody_reads_are_refused(tmp_path: Path) -> None:
    assert open_store(str(tmp_path), {}).url == f"file://{tmp_path}"
    with pytest.raises(StoreError, match=r"no storage_options.*\['key'\]"):
        open_store(str(tmp_path), {"key": "1"})
